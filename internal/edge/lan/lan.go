package lan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

// Config bounds the room. Zero values mean the defaults.
type Config struct {
	Peer string     // the gateway's own unique value, for peers that request it over HTTP
	From netip.Addr // local address of calls to peers; zero: the kernel chooses
	// Sign appends to a message its trailer for a source (jxta.SignMessage); Sends that want a trailer need it.
	Sign               func(message []byte, source string) ([]byte, error)
	MaxConns           int // connections in all; over HTTP also sessions; default 4096
	MaxConnsPerAddress int // connections of one IP address; over HTTP also sessions; default 1024
	// Share is how much of the loop's time the unhandled messages of one IP address may take. The code that handles events must
	// then call Handled. 0: no accounts are kept.
	Share time.Duration
	// Passed says whether another machine of the site passes a connection on, and then how many of this gateway's octets the peer has
	// received. Nil: no other machine passes any on.
	Passed         func(remote netip.AddrPort) (has uint64, passed bool)
	MaxBody        int           // octets of one body; default 16 MiB
	MaxReading     int           // octets of bodies that are being read, on all connections together; default 64 MiB
	MaxQueue       int           // octets waiting to be written to one peer; default 32 MiB
	WelcomeTimeout time.Duration // for the peer's welcome line, and over HTTP for the head of a request; default 5 s, as in JXSE 2.7
	ReadStall      time.Duration // longest pause inside one package; default 60 s
	WriteStall     time.Duration // longest time for one write; then a peer that reads nothing is disconnected; default 30 s
	PollHold       time.Duration // longest poll over HTTP; default 120 s, as in JXTA itself (wire 3.1)
	PollLinger     time.Duration // how long a peer over HTTP without a poll counts as present; default 30 s
	IdleTimeout    time.Duration // between two requests on one connection; default 2 min
}

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.MaxConns, 4096)
	def(&c.MaxConnsPerAddress, 1024)
	def(&c.MaxBody, jxta.DefaultLimits.Total)
	def(&c.MaxReading, 64<<20)
	def(&c.MaxQueue, 32<<20)
	wait := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	wait(&c.WelcomeTimeout, 5*time.Second)
	wait(&c.ReadStall, time.Minute)
	wait(&c.WriteStall, 30*time.Second)
	wait(&c.PollHold, 2*time.Minute)
	wait(&c.PollLinger, 30*time.Second)
	wait(&c.IdleTimeout, 2*time.Minute)
	return c
}

// LAN holds the connections. Its methods may be called from any goroutine and never wait for a peer.
type LAN struct {
	cfg      Config
	post     func(site.Event)
	log      *slog.Logger
	metrics  *Metrics
	nextID   atomic.Uint64
	room     *room     // memory for bodies that are being read, beyond the first chunk of each
	accounts *accounts // of the loop's time
	wait     sync.WaitGroup

	mu        sync.Mutex
	conns     map[site.ConnID]*outbox
	sockets   int
	byAddress map[string]int
	listeners map[net.Listener]bool
	web       // peers over HTTP
	multicast multicast

	life    context.Context // of calls to peers
	end     context.CancelFunc
	dialing int
	closed  bool
}

// New makes the room. Events go to post, in order for each connection: Opened, Welcomed, Received..., Closed, with Written in
// between, and over HTTP perhaps Quiet; nothing after Closed. Heard belongs to no connection.
func New(cfg Config, post func(site.Event), reg prometheus.Registerer, log *slog.Logger) *LAN {
	life, end := context.WithCancel(noCancel)
	cfg = cfg.withDefaults()
	return &LAN{
		life: life, end: end, room: newRoom(cfg.MaxReading), accounts: newAccounts(cfg.Share),
		cfg: cfg, post: post, log: log, metrics: newMetrics(reg),
		conns: map[site.ConnID]*outbox{}, byAddress: map[string]int{}, listeners: map[net.Listener]bool{}, web: newWeb(),
		multicast: multicast{hosts: due.Each[netip.Addr]{Rate: hostRate, Burst: hostBurst, Most: maxHosts}},
	}
}

// Listen opens a listening socket for Serve, with TCP keepalive on its connections: JXTA has none of its own.
func Listen(address string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	return lc.Listen(noCancel, "tcp", address)
}

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// Serve accepts peers over TCP until the listener is closed, by Shutdown or from outside; then it returns nil.
func (l *LAN) Serve(ln net.Listener) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		ln.Close()
		return nil
	}
	l.listeners[ln] = true
	l.mu.Unlock()
	for {
		c, err := l.accept(ln)
		if err != nil {
			return nil
		}
		l.admit(c)
	}
}

// accept waits for a connection; an error means that the listener is closed.
func (l *LAN) accept(ln net.Listener) (net.Conn, error) {
	for {
		c, err := ln.Accept()
		if t, ok := c.(*net.TCPConn); ok {
			t.SetKeepAliveConfig(keepAlive) // another program may have opened the listening socket
		}
		if err == nil || errors.Is(err, net.ErrClosed) {
			return c, err
		}
		l.refuse("accept", "", err) // out of descriptors, or a connection that was reset while it waited
		<-time.After(100 * time.Millisecond)
	}
}

func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

// enter counts a new connection, or says why it is refused. The lock is held.
func (l *LAN) enter(host string) (reason string) {
	switch {
	case l.closed:
		return "shutdown"
	case l.sockets >= l.cfg.MaxConns:
		return "connections"
	case l.byAddress[host] >= l.cfg.MaxConnsPerAddress:
		return "connections_per_address"
	}
	l.sockets++
	l.byAddress[host]++
	l.metrics.Accepted.Inc()
	l.metrics.Connections.Inc()
	return ""
}

// leave counts a closed connection. The lock is held.
func (l *LAN) leave(host string) {
	l.sockets--
	l.byAddress[host]--
	if l.byAddress[host] == 0 {
		delete(l.byAddress, host)
	}
	l.metrics.Connections.Dec()
}

func (l *LAN) admit(c net.Conn) {
	host := hostOf(c.RemoteAddr().String())
	l.mu.Lock()
	if reason := l.enter(host); reason != "" {
		l.mu.Unlock()
		c.Close()
		l.refuse(reason, c.RemoteAddr().String(), nil)
		return
	}
	n := newConn(l, site.ConnID(l.nextID.Add(1)), c, host)
	l.conns[n.id] = &n.outbox
	l.wait.Add(1)
	l.mu.Unlock()
	go n.run()
}

func (l *LAN) forget(n *conn) {
	l.mu.Lock()
	delete(l.conns, n.id)
	l.leave(n.host)
	l.mu.Unlock()
}

func (l *LAN) conn(id site.ConnID) *outbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[id]
}

// Do carries out an order of the bridge; any other order is a bug.
func (l *LAN) Do(o site.Order) {
	switch o := o.(type) {
	case jxtabridge.Welcome:
		l.Welcome(o)
	case jxtabridge.Send:
		l.Send(o)
	case jxtabridge.Close:
		l.Close(o.Conn)
	case jxtabridge.Gate:
		l.Gate(o)
	case jxtabridge.Shout:
		l.Shout(o)
	case jxtabridge.Dial:
		l.Dial(o)
	default:
		panic(fmt.Sprintf("lan: order %T", o))
	}
}

// Welcome queues the gateway's welcome line; HTTP has none.
func (l *LAN) Welcome(w jxtabridge.Welcome) {
	n := l.conn(w.Conn)
	if n == nil || n.bare {
		return
	}
	line, err := jxta.AppendWelcome(nil, w.Line)
	if err != nil {
		l.refuse("own_welcome", n.remote, err)
		n.close()
		return
	}
	n.queue(outgoing{octets: line})
}

// Send queues one body. A closed connection drops it: the bridge has received Closed, or will.
func (l *LAN) Send(s jxtabridge.Send) {
	n := l.conn(s.Conn)
	if n == nil {
		return
	}
	o := outgoing{octets: s.Body, rest: s.Rest, sign: s.Sign, unsigned: s.Length(), token: s.Token, message: true}
	if !n.bare {
		o.header = jxta.AppendPackageHeader(nil, o.unsigned)
	}
	n.queue(o)
}

// Close closes a connection once its queue has been written, or at once if the peer does not read.
func (l *LAN) Close(id site.ConnID) {
	l.mu.Lock()
	n, s := l.conns[id], l.owners[id]
	if s != nil {
		s.unwanted = true
	}
	l.mu.Unlock()
	switch {
	case n != nil:
		n.finish()
	case s != nil:
		go s.expire() // expire may have to wait to post Closed, Close must not
	}
}

// Gate makes a connection stop reading, or go on. HTTP has no gate: there a peer waits for the response to each message.
func (l *LAN) Gate(g jxtabridge.Gate) {
	if n := l.conn(g.Conn); n != nil {
		n.gate(g.Shut)
	}
}

// Shutdown closes listeners and connections and waits until every Closed was posted.
func (l *LAN) Shutdown() {
	l.mu.Lock()
	l.closed = true // nothing is added from now on
	l.end()
	l.mu.Unlock()
	for ln := range l.listeners {
		ln.Close()
	}
	for srv := range l.servers {
		srv.Close()
	}
	l.mu.Lock()
	l.multicast.mu.Lock()
	if l.multicast.conn != nil {
		l.multicast.conn.Close()
	}
	l.multicast.mu.Unlock()
	conns, sessions := slices.Collect(maps.Values(l.conns)), slices.Collect(maps.Values(l.sessions))
	l.mu.Unlock()
	for _, n := range conns {
		n.close()
	}
	for _, s := range sessions {
		s.expire()
	}
	l.wait.Wait()
}

// refuse counts and logs a refusal.
func (l *LAN) refuse(reason, remote string, err error) {
	l.metrics.Refused.WithLabelValues(reason).Inc()
	attrs := []any{"reason", reason, "remote", remote}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	l.log.Warn("lan: refused", attrs...)
}
