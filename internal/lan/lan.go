package lan

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
)

// Config bounds the room. Zero values mean the defaults.
type Config struct {
	MaxConns           int           // connections in all; default 1024
	MaxConnsPerAddress int           // connections of one IP address; default 256
	MaxBody            int           // octets of one body; default 16 MiB
	MaxReading         int           // octets of bodies under way on all connections together; default 64 MiB
	MaxQueue           int           // octets waiting to be written to one peer; default 32 MiB
	WelcomeTimeout     time.Duration // for the peer's welcome line; default 5 s, as JXSE 2.7 has it
	ReadStall          time.Duration // longest pause inside one package; default 60 s
	WriteStall         time.Duration // longest time for one write; a peer that never reads is cut off then; default 30 s
}

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.MaxConns, 1024)
	def(&c.MaxConnsPerAddress, 256)
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
	return c
}

// LAN holds the connections. Its methods may be called from any goroutine and never wait on a peer.
type LAN struct {
	cfg     Config
	post    func(jxtabridge.Event)
	log     *slog.Logger
	metrics *Metrics
	nextID  atomic.Uint64
	reading atomic.Int64 // octets of bodies under way, beyond the first chunk of each
	wait    sync.WaitGroup

	mu        sync.Mutex
	conns     map[jxtabridge.ConnID]*conn
	byAddress map[string]int
	listeners map[net.Listener]bool
	closed    bool
}

// New makes the room. Events go to post, in order for each connection: Opened, Welcomed, Received..., Closed, with
// Written in between; nothing after Closed.
func New(cfg Config, post func(jxtabridge.Event), reg prometheus.Registerer, log *slog.Logger) *LAN {
	return &LAN{
		cfg: cfg.withDefaults(), post: post, log: log, metrics: newMetrics(reg),
		conns: map[jxtabridge.ConnID]*conn{}, byAddress: map[string]int{}, listeners: map[net.Listener]bool{},
	}
}

// Listen opens a listening socket for Serve, with TCP keepalive for what it accepts: JXTA has none of its own.
func Listen(address string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3,
	}}
	return lc.Listen(noCancel, "tcp", address)
}

// Serve accepts peers until the listener is closed, by Shutdown or from outside; then it answers nil.
func (l *LAN) Serve(ln net.Listener) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		ln.Close()
		return nil
	}
	l.listeners[ln] = true
	l.mu.Unlock()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil { // out of descriptors, or a connection that was reset while it waited
			l.refuse("accept", "", err)
			pause.Reset(100 * time.Millisecond)
			<-pause.C
			continue
		}
		l.admit(c)
	}
}

func (l *LAN) admit(c net.Conn) {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		host = c.RemoteAddr().String()
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
		l.refuse(reason, c.RemoteAddr().String(), nil)
		return
	}
	n := newConn(l, jxtabridge.ConnID(l.nextID.Add(1)), c, host)
	l.conns[n.id] = n
	l.byAddress[host]++
	l.wait.Add(1)
	l.mu.Unlock()
	l.metrics.Accepted.Inc()
	l.metrics.Connections.Inc()
	go n.run()
}

func (l *LAN) forget(n *conn) {
	l.mu.Lock()
	delete(l.conns, n.id)
	if l.byAddress[n.host]--; l.byAddress[n.host] == 0 {
		delete(l.byAddress, n.host)
	}
	l.mu.Unlock()
	l.metrics.Connections.Dec()
}

func (l *LAN) conn(id jxtabridge.ConnID) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[id]
}

// Welcome queues the gateway's welcome line.
func (l *LAN) Welcome(w jxtabridge.WelcomeOut) {
	n := l.conn(w.Conn)
	if n == nil {
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

// Send queues one body. A connection that is gone swallows it: Closed has told the bridge, or will.
func (l *LAN) Send(s jxtabridge.Send) {
	n := l.conn(s.Conn)
	if n == nil {
		return
	}
	n.queue(outgoing{header: jxta.AppendPackageHeader(nil, len(s.Body)), octets: s.Body, token: s.Token})
}

// Close cuts a connection once what is queued has been written, or at once if the peer does not read.
func (l *LAN) Close(id jxtabridge.ConnID) {
	if n := l.conn(id); n != nil {
		n.finish()
	}
}

// Shutdown closes listeners and connections and waits until every Closed was posted.
func (l *LAN) Shutdown() {
	l.mu.Lock()
	l.closed = true
	for ln := range l.listeners {
		ln.Close()
	}
	for _, n := range l.conns {
		n.close()
	}
	l.mu.Unlock()
	l.wait.Wait()
}

// refuse counts and logs what was not accepted.
func (l *LAN) refuse(reason, remote string, err error) {
	l.metrics.Refused.WithLabelValues(reason).Inc()
	attrs := []any{"reason", reason, "remote", remote}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	l.log.Warn("lan: refused", attrs...)
}
