// Package xmpplan is the edge towards the XMPP server of the LAN: one connection for each domain of a far site, as a component
// (XEP-0114). It dials the server for as long as the gateway runs, cuts the received octets into stanzas for package
// internal/adapters/xmpp, and writes the stanzas in that package's orders. Instead, the gateway may connect with the server as the
// servers of these domains (peers.go), also without a handshake (zero.go). Where the gateway is the server itself, clients connect
// here (clients.go).
//
// Limits: the bounds of a stanza (package stanza), seconds of an unfinished one, octets that wait for a server that does not
// read. A server that exceeds a limit is called again.
//
// Any goroutine may call the methods; none waits for the server.
package xmpplan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// Config says where the server is. Zero values mean the defaults.
type Config struct {
	Server    netip.AddrPort
	Secret    string
	Domains   []string
	MaxQueue  int           // octets that wait for the server; default 16 MiB
	ReadStall time.Duration // longest time for a stanza that has begun; default 60 s
	Clients   *Clients      // nil: the gateway serves no clients
	Peers     *Peers        // nil: the gateway is a component of the server; otherwise it is another server, and calls the LAN's at Server
}

// A server that does not answer is called again after firstAgain, then after twice as long each time. Meanwhile a server that
// has restarted bounces stanzas for the gateway.
const (
	firstAgain = 250 * time.Millisecond
	lastAgain  = 10 * time.Second
	writeStall = 30 * time.Second
	logAgain   = time.Minute
)

// LAN holds the connections.
type LAN struct {
	cfg     Config
	post    func(site.Event)
	log     *slog.Logger
	nextID  atomic.Uint64
	octets  *prometheus.CounterVec
	refused *prometheus.CounterVec
	wait    sync.WaitGroup
	life    context.Context
	end     context.CancelFunc

	served served
	peers  peers

	mu     sync.Mutex
	conns  map[site.ConnID]*conn
	logged map[string]time.Time
}

// conn is one connection that has been accepted.
type conn struct {
	net  net.Conn
	web  *websocket.Conn // nil: the octets of net are a stream
	most int             // octets that may wait
	wake chan struct{}

	mu      sync.Mutex
	waiting [][]byte
	octets  int  // of these
	ending  bool // nothing may follow the queue
	closed  bool
}

// New makes the room. Events go to post, in order for each connection: Opened, Heard and Skipped..., Closed.
func New(cfg Config, post func(site.Event), reg prometheus.Registerer, log *slog.Logger) *LAN {
	if cfg.MaxQueue == 0 {
		cfg.MaxQueue = 16 << 20
	}
	if cfg.ReadStall == 0 {
		cfg.ReadStall = time.Minute
	}
	l := &LAN{cfg: cfg, post: post, log: log, conns: map[site.ConnID]*conn{}, logged: map[string]time.Time{},
		octets:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aldis_xmpp_lan_octets_total", Help: "Octets of streams with the LAN's XMPP server, or with clients."}, []string{"direction"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aldis_xmpp_lan_failed_total", Help: "Ended or failed connections to the LAN's XMPP server, or of clients: `client_...`."}, []string{"reason"})}
	l.life, l.end = context.WithCancel(noCancel)
	l.served.open(cfg.Clients)
	l.peers = peers{out: map[string]site.ConnID{}, changed: make(chan struct{}), unproved: map[string]int{}}
	if p := cfg.Peers; p != nil && p.LoginIn == 0 {
		p.LoginIn = 30 * time.Second
	}
	if reg != nil {
		reg.MustRegister(l.octets, l.refused)
	}
	return l
}

var noCancel = context.Background()

// Start keeps a connection for each domain until Shutdown.
func (l *LAN) Start() {
	if l.cfg.Clients != nil {
		l.wait.Add(1)
		go func() {
			defer l.wait.Done()
			l.watch()
		}()
	}
	if p := l.cfg.Peers; p != nil && p.Zero {
		if l.cfg.Server.IsValid() {
			l.keep(p.Domain, l.callZero)
		}
		return
	}
	for _, domain := range l.cfg.Domains {
		l.keep(domain, func() (bool, error) { return l.serve(domain) })
	}
}

// keep makes one connection after another until Shutdown; taken says that the server accepted the gateway.
func (l *LAN) keep(domain string, serve func() (taken bool, err error)) {
	l.wait.Add(1)
	go func() {
		defer l.wait.Done()
		for again := firstAgain; ; again = min(2*again, lastAgain) {
			taken, err := serve()
			if taken {
				again = firstAgain
			}
			if l.life.Err() == nil {
				l.failed(domain, err)
			}
			select {
			case <-l.life.Done():
				return
			case <-time.After(again):
			}
		}
	}()
}

func (l *LAN) dial() (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: keepAlive}
	return d.DialContext(l.life, "tcp", l.cfg.Server.String())
}

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// hand is the gateway's part of a handshake, until the server accepts the adapter's stanzas.
type hand interface {
	Hello() []byte
	Feed(b []byte, do func(e *stanza.Element, fault *stanza.Fault)) (reply []byte, err error)
	Ready() bool
	Open() bool
}

// hand makes the handshake for a domain.
func (l *LAN) hand(domain string) hand {
	if p := l.cfg.Peers; p != nil {
		return &server.Dialling{From: domain, To: p.Domain}
	}
	return &stanza.Handshake{Domain: domain, Secret: l.cfg.Secret}
}

// serve makes and serves one connection; taken says that the server accepted it.
func (l *LAN) serve(domain string) (taken bool, err error) {
	c, err := l.dial()
	if err != nil {
		return false, err
	}
	defer c.Close()
	stop := context.AfterFunc(l.life, func() { c.Close() })
	defer stop()
	n := &conn{net: c, most: l.cfg.MaxQueue, wake: make(chan struct{}, 1)}
	id := site.ConnID(l.nextID.Add(1))
	hand := l.hand(domain)
	if err := n.write(hand.Hello()); err != nil {
		return false, err
	}
	written := make(chan struct{})
	close(written)
	defer func() {
		if !taken {
			return
		}
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		n.nudge()
		c.Close()
		<-written
		l.mu.Lock()
		delete(l.conns, id)
		l.mu.Unlock()
		l.stands(domain, 0, xmpp.Closed{Conn: id})
	}()
	open := func() {
		if taken || !hand.Ready() {
			return
		}
		taken, written = true, make(chan struct{})
		l.mu.Lock()
		l.conns[id] = n
		l.mu.Unlock()
		l.stands(domain, id, xmpp.Opened{Conn: id, Domain: domain})
		go func() {
			defer close(written)
			n.loop(l)
		}()
	}
	buf := make([]byte, 32<<10)
	began := time.Now() // when the incomplete element began; zero: there is none
	for {
		deadline := time.Time{}
		if !began.IsZero() {
			deadline = began.Add(l.cfg.ReadStall)
		}
		n.net.SetReadDeadline(deadline)
		size, err := n.net.Read(buf)
		l.octets.WithLabelValues("in").Add(float64(size))
		whole := false
		reply, fault := hand.Feed(buf[:size], func(e *stanza.Element, f *stanza.Fault) {
			whole = true
			open()
			l.hear(id, e, f)
		})
		if len(reply) > 0 {
			if err := n.write(reply); err != nil {
				return taken, err
			}
		}
		if d, ok := hand.(*server.Dialling); ok && d.WantsTLS() && fault == nil {
			if err := l.secure(n); err != nil {
				return taken, err
			}
			if err := n.write(d.Secured()); err != nil {
				return taken, err
			}
		}
		if !taken && hand.Ready() {
			whole = true
			open()
		}
		switch {
		case fault != nil:
			return taken, fault
		case errors.Is(err, os.ErrDeadlineExceeded):
			return taken, fmt.Errorf("the server owes the rest for %v: %w", l.cfg.ReadStall, err)
		case err != nil:
			return taken, err
		case !hand.Open():
			began = time.Time{}
		case whole || began.IsZero():
			began = time.Now()
		}
	}
}

// hear passes a stanza to the adapter.
func (l *LAN) hear(id site.ConnID, e *stanza.Element, f *stanza.Fault) {
	switch {
	case f == nil:
		l.post(xmpp.Heard{Conn: id, Element: *e})
	case e == nil:
		l.post(xmpp.Skipped{Conn: id, Fault: f})
	default:
		l.post(xmpp.Skipped{Conn: id, Element: *e, Fault: f})
	}
}

// failed counts and logs how a connection ended.
func (l *LAN) failed(domain string, err error) {
	reason := "ended"
	switch fault := (*stanza.Fault)(nil); {
	case errors.Is(err, stanza.ErrRefused):
		reason = "refused"
	case errors.Is(err, server.ErrCertificate):
		reason = "certificate"
	case errors.Is(err, server.ErrForeign):
		reason = "foreign"
	case errors.As(err, &fault):
		reason = string(fault.Reason)
	case errors.Is(err, os.ErrDeadlineExceeded):
		reason = "stalled"
	case errors.Is(err, stanza.ErrEnded):
	default:
		reason = "network"
	}
	l.refused.WithLabelValues(reason).Inc()
	if l.news(domain + reason) {
		l.log.Warn("xmpp: no connection to the server", "domain", domain, "server", l.cfg.Server, "reason", reason, "error", err)
	}
}

// news says whether what was not logged within the last minute, and records that it is logged now.
func (l *LAN) news(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.logged[what]) < logAgain {
		return false
	}
	l.logged[what] = time.Now()
	return true
}

// Do carries out an order of the adapter; any other order is a bug.
func (l *LAN) Do(o site.Order) {
	var s server.Send
	switch o := o.(type) {
	case xmpp.Send:
		s.Conn, s.XML = o.Conn, o.XML
	case server.Send:
		s = o
	default:
		panic(fmt.Sprintf("xmpplan: order %T", o))
	}
	l.mu.Lock()
	n := l.conns[s.Conn]
	l.mu.Unlock()
	if n == nil {
		return
	}
	n.mu.Lock()
	full := n.octets+len(s.XML) > n.most
	if !full && !n.ending {
		n.waiting = append(n.waiting, s.XML)
		n.octets += len(s.XML)
		n.ending = s.End
	}
	n.mu.Unlock()
	if full { // stanzas that this loses are written again on the next connection
		go n.close() // it may take seconds to say good-bye
		return
	}
	n.nudge()
}

// Shutdown closes the connections and waits until every Closed was posted.
func (l *LAN) Shutdown() {
	l.end()
	l.shutClients()
	l.wait.Wait()
}

func (n *conn) nudge() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *conn) write(b []byte) error {
	if n.web != nil {
		ctx, cancel := context.WithTimeout(noCancel, writeStall)
		defer cancel()
		return n.web.Write(ctx, websocket.MessageText, b)
	}
	n.net.SetWriteDeadline(time.Now().Add(writeStall))
	_, err := n.net.Write(b)
	return err
}

// loop writes queued stanzas until the connection is closed.
func (n *conn) loop(l *LAN) {
	defer n.close()
	for range n.wake {
		n.mu.Lock()
		list, octets, ending, closed := n.waiting, n.octets, n.ending, n.closed
		n.waiting, n.octets = nil, 0
		n.mu.Unlock()
		if len(list) > 0 && !closed {
			if n.writeAll(list) != nil {
				return
			}
			l.octets.WithLabelValues("out").Add(float64(octets))
		}
		if ending && !closed {
			n.say(nil, true) // nobody waits for its result
		}
		if ending || closed {
			return
		}
	}
}

// writeAll writes stanzas.
func (n *conn) writeAll(list [][]byte) error {
	if n.web == nil {
		return n.write(bytes.Join(list, nil))
	}
	for _, b := range list {
		if len(b) == 0 {
			continue
		}
		if err := n.write(server.Frame(b)); err != nil {
			return err
		}
	}
	return nil
}

// say writes elements of a stream; with end it also closes the stream.
func (n *conn) say(list [][]byte, end bool) (err error) {
	if len(list) > 0 {
		err = n.writeAll(list)
	}
	if end && err == nil && n.web == nil {
		err = n.write([]byte("</stream:stream>"))
	} else if end && err == nil {
		err = n.write([]byte("<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>"))
	}
	return err
}

func (n *conn) close() {
	if n.web != nil {
		n.web.Close(websocket.StatusNormalClosure, "")
		return
	}
	n.net.Close()
}
