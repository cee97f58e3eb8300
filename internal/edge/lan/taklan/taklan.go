package taklan

import (
	"context"
	"crypto/tls"
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

	"aldis/internal/adapters/tak"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// Config bounds the room. Zero values mean the defaults.
type Config struct {
	MaxConns           int           // default 512
	MaxConnsPerAddress int           // default 256: taky and other servers connect many devices from one address
	MaxQueue           int           // octets waiting for one device; default 4 MiB
	ReadStall          time.Duration // longest time for an event that has begun; default 60 s
	WriteStall         time.Duration // longest time for one write; default 30 s
	Rate               float64       // events a second of one address; default 500, and four times as many at once
	// Passed says whether another machine of the site passes a connection on, and then how many of this gateway's octets the device has
	// (pairlink); nil: none does.
	Passed func(remote netip.AddrPort) (has uint64, passed bool)
	// Verify says whether a connected device over TLS is still welcome; nil: it stays welcome.
	Verify func(tls.ConnectionState) error
}

func (c Config) withDefaults() Config {
	if c.MaxConns == 0 {
		c.MaxConns = 512
	}
	if c.MaxConnsPerAddress == 0 {
		c.MaxConnsPerAddress = 256
	}
	if c.MaxQueue == 0 {
		c.MaxQueue = 4 << 20
	}
	if c.ReadStall == 0 {
		c.ReadStall = time.Minute
	}
	if c.WriteStall == 0 {
		c.WriteStall = 30 * time.Second
	}
	if c.Rate == 0 {
		c.Rate = 500
	}
	return c
}

// LAN holds the streams.
type LAN struct {
	cfg     Config
	post    func(site.Event)
	log     *slog.Logger
	metrics *metrics
	nextID  atomic.Uint64
	wait    sync.WaitGroup

	mu        sync.Mutex
	conns     map[site.ConnID]*conn
	byAddress map[string]int
	listeners map[net.Listener]bool
	rates     map[string]*due.Bucket
	logged    time.Time
	closed    bool
	mesh      *Mesh               // nil: none
	directs   map[net.Conn]string // connections of one message each, by address
	hands     int                 // such connections from here

	life context.Context // of calls to servers
	end  context.CancelFunc
}

// New makes the room. Events go to post, in order for each stream: Opened, Heard and Taken..., perhaps Broken, Closed.
func New(cfg Config, post func(site.Event), reg prometheus.Registerer, log *slog.Logger) *LAN {
	life, end := context.WithCancel(noCancel)
	return &LAN{life: life, end: end, cfg: cfg.withDefaults(), post: post, log: log, metrics: newMetrics(reg), conns: map[site.ConnID]*conn{},
		byAddress: map[string]int{}, listeners: map[net.Listener]bool{}, directs: map[net.Conn]string{}, rates: map[string]*due.Bucket{}}
}

// Serve accepts devices until the listener is closed, by Shutdown or from outside; then it returns nil.
func (l *LAN) Serve(ln net.Listener) error {
	return l.accept(ln, func(c net.Conn) {
		if n := l.enter(c, false); n != nil {
			go n.run()
		}
	})
}

// accept passes each connection to take, until the listener is closed; then it returns nil.
func (l *LAN) accept(ln net.Listener, take func(net.Conn)) error {
	l.mu.Lock()
	closed := l.closed
	l.listeners[ln] = true
	l.mu.Unlock()
	if closed {
		ln.Close()
		return nil
	}
	for {
		c, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			l.refuse("accept", "", err)
			<-time.After(100 * time.Millisecond)
		default:
			take(c)
		}
	}
}

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// enter adds a stream; nil: there was no room, and it was closed.
func (l *LAN) enter(c net.Conn, server bool) *conn {
	remote := c.RemoteAddr().String()
	host, _, _ := net.SplitHostPort(remote)
	if t, ok := c.(*net.TCPConn); ok {
		t.SetKeepAliveConfig(keepAlive)
	}
	l.mu.Lock()
	reason := ""
	switch {
	case l.closed:
		reason = "shutdown"
	case len(l.conns) >= l.cfg.MaxConns:
		reason = "connections"
	case l.byAddress[host] >= l.cfg.MaxConnsPerAddress:
		reason = "connections_per_address"
	}
	if reason != "" {
		l.mu.Unlock()
		c.Close()
		l.refuse(reason, remote, nil)
		return nil
	}
	n := &conn{lan: l, server: server, id: site.ConnID(l.nextID.Add(1)), net: c, remote: remote, host: host, wake: make(chan struct{}, 1)}
	n.taken.init(n)
	l.conns[n.id] = n
	l.byAddress[host]++
	if l.rates[host] == nil {
		l.rates[host] = &due.Bucket{}
	}
	l.wait.Add(1)
	l.mu.Unlock()
	l.metrics.connections.Inc()
	return n
}

func (l *LAN) forget(n *conn) {
	l.mu.Lock()
	delete(l.conns, n.id)
	l.byAddress[n.host]--
	if l.byAddress[n.host] == 0 {
		delete(l.byAddress, n.host)
		delete(l.rates, n.host)
	}
	l.mu.Unlock()
	l.metrics.connections.Dec()
}

// late is how long an address must wait until its next event is read.
func (l *LAN) late(host string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.rates[host]
	if b == nil || b.Allow(time.Now(), l.cfg.Rate, 4*l.cfg.Rate) {
		return 0
	}
	return time.Duration(float64(time.Second) / l.cfg.Rate)
}

// Do carries out an order of the adapter; any other order is a bug.
func (l *LAN) Do(o site.Order) {
	switch o := o.(type) {
	case tak.Send:
		if n := l.conn(o.Conn); n != nil {
			n.queue(o.XML, o.Proto, o.Token)
		}
	case tak.Spread:
		l.mu.Lock()
		all := slices.Collect(maps.Values(l.conns))
		l.mu.Unlock()
		for _, n := range all {
			if !slices.Contains(o.Except, n.id) {
				n.queue(o.XML, o.Proto, o.Token)
			}
		}
	case tak.Speak:
		if n := l.conn(o.Conn); n != nil {
			n.speak()
		}
	case tak.Hand:
		l.hand(o)
	case tak.Shout:
		l.shout(o)
	default:
		panic(fmt.Sprintf("taklan: order %T", o))
	}
}

func (l *LAN) conn(id site.ConnID) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[id]
}

// Shutdown closes listeners and streams and waits until every Closed was posted.
func (l *LAN) Shutdown() {
	l.mu.Lock()
	l.closed = true
	l.end()
	if l.mesh != nil {
		l.mesh.close()
	}
	for ln := range l.listeners {
		ln.Close()
	}
	all := slices.Collect(maps.Values(l.conns))
	for c := range l.directs {
		c.Close()
	}
	l.mu.Unlock()
	for _, n := range all {
		n.net.Close()
	}
	l.wait.Wait()
}

// logAgain is the time between two log lines about refusals.
const logAgain = 10 * time.Second

// refuse counts a refusal, and logs one now and then.
func (l *LAN) refuse(reason, remote string, err error) {
	l.metrics.refused.WithLabelValues(reason).Inc()
	l.mu.Lock()
	quiet := time.Since(l.logged) < logAgain
	if !quiet {
		l.logged = time.Now()
	}
	l.mu.Unlock()
	if quiet {
		return
	}
	attrs := []any{"reason", reason, "remote", remote}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	l.log.Warn("tak: refused", attrs...)
}
