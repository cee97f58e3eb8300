package tlslink

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/edge/radio"
	"aldis/internal/gateway/api"
	"aldis/internal/ground/due"
)

// Config is the configuration of a bearer.
type Config struct {
	Identity
	Bearer  int
	Name    string                    // of the bearer, for the log
	Largest int                       // octets of a datagram
	Stall   time.Duration             // if TCP has octets unacknowledged for so long, the connection is closed
	Half    time.Duration             // longest time for a datagram that has begun; 0: a minute
	Dial    map[uint16]netip.AddrPort // the peers that this node calls
	Proxy   netip.AddrPort            // the proxy that gets the CONNECT request; invalid: none
	Post    func(api.Datagram) bool   // as in radio.Open
	May     func() bool               // whether a datagram may go on the link now; nil: always. A datagram that may not is dropped
	Tell    func(api.Line)            // reports that a connection was made or closed; it may wait
	Metrics *Metrics
	Log     *slog.Logger
}

// Bounds.
const (
	greetTime = 10 * time.Second // for the TLS handshake and the welcome
	maxQueue  = 256 << 10        // octets that wait for one connection
	maxGreets = 32               // connections that have not shown their key yet, from all addresses
	hostRate  = 0.5              // calls a second from one address, and how many at once
	hostBurst = 10
	allRate   = 20 // from all addresses
	allBurst  = 100
	maxHosts  = 4096             // whose rates are kept
	atOnce    = 10 * time.Second // two nodes that call each other within this time get one connection
	logAgain  = time.Minute
	lastWords = time.Second // for the last datagrams of a gateway that stops
)

// Metrics are the counters of all bearers over TLS.
type Metrics struct {
	connections prometheus.Gauge
	refused     *prometheus.CounterVec
}

// NewMetrics makes the counters; reg may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "aldis_link_tls_connections", Help: "TLS connections with peers."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aldis_link_tls_refused_total",
			Help: "Refused or ended TLS connections of the link."}, []string{"reason"}),
	}
	if reg != nil {
		reg.MustRegister(m.connections, m.refused)
	}
	return m
}

// Link holds the connections of a bearer.
type Link struct {
	cfg  Config
	own  tls.Certificate
	life context.Context
	end  context.CancelFunc
	wait sync.WaitGroup
	tell sync.Mutex // keeps reports about connections in the order of events; locked before mu

	mu       sync.Mutex
	hushed   bool
	calls    context.Context // of the calls under way: it ends with a silence
	still    context.CancelFunc
	listener net.Listener
	changed  chan struct{} // closed when a connection is made or closed, or hushed changes
	byPeer   map[uint16]*conn
	byAddr   map[netip.AddrPort]*conn
	greeting map[net.Conn]bool
	hosts    due.Each[netip.Addr]
	all      due.Bucket
	told     due.Seldom[string]

	receivedDatagrams, receivedOctets, dropped atomic.Uint64
	sentDatagrams, sentOctets, unsent          atomic.Uint64
}

var noCancel = context.Background()

// Open makes a bearer without connections; it makes none before Hush allows it. listener is where peers call; nil: no peer calls.
func Open(cfg Config, listener net.Listener) (*Link, error) {
	if cfg.Half == 0 {
		cfg.Half = time.Minute
	}
	own, err := cfg.certificate()
	if err != nil {
		return nil, err
	}
	l := &Link{cfg: cfg, own: own, hushed: true, listener: listener, changed: make(chan struct{}), byPeer: map[uint16]*conn{}, byAddr: map[netip.AddrPort]*conn{},
		greeting: map[net.Conn]bool{}, hosts: due.Each[netip.Addr]{Rate: hostRate, Burst: hostBurst, Most: maxHosts},
		told: due.Seldom[string]{Every: logAgain, Most: 64}}
	l.life, l.end = context.WithCancel(noCancel)
	l.calls, l.still = context.WithCancel(l.life)
	if listener != nil {
		l.wait.Add(1)
		go l.accept(listener)
	}
	for id, at := range cfg.Dial {
		l.wait.Add(1)
		go l.keep(id, at)
	}
	return l, nil
}

// accept accepts calls until the listener is closed.
func (l *Link) accept(ln net.Listener) {
	defer l.wait.Done()
	for {
		c, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptors left
			l.refuse("accept", "", err)
			select {
			case <-l.life.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		default:
			l.called(c)
		}
	}
}

// called starts the handshake with a caller, if there is room for it.
func (l *Link) called(c net.Conn) {
	from, ok := addrOf(c.RemoteAddr())
	reason := ""
	now := time.Now()
	l.mu.Lock()
	host := l.hosts.Of(now, from.Addr())
	switch {
	case l.hushed || !ok || l.life.Err() != nil:
		reason = "silent"
	case host == nil || !host.Allow(now, hostRate, hostBurst) || !l.all.Allow(now, allRate, allBurst):
		reason = "rate"
	case len(l.greeting) >= maxGreets:
		reason = "busy"
	default:
		l.greeting[c] = true
		l.wait.Add(1)
	}
	l.mu.Unlock()
	if reason != "" {
		c.Close()
		l.refuse(reason, from.String(), nil)
		return
	}
	go func() {
		defer l.wait.Done()
		n, err := l.greet(c, tls.Server(c, l.cfg.config(l.own, 0)), from, true)
		l.mu.Lock()
		delete(l.greeting, c)
		l.mu.Unlock()
		if err != nil {
			c.Close()
			l.refuse("handshake", from.String(), err)
			return
		}
		l.serve(n)
	}()
}

// greet does the TLS handshake, in which both ends show their keys, and welcomes a node that has called.
func (l *Link) greet(raw net.Conn, over *tls.Conn, at netip.AddrPort, called bool) (*conn, error) {
	raw.SetDeadline(time.Now().Add(greetTime))
	if err := over.HandshakeContext(l.life); err != nil {
		return nil, err
	}
	id, key, err := l.cfg.peer(over.ConnectionState())
	if err != nil {
		return nil, err
	}
	n := newConn(l, raw, over, id, key, at, called)
	if called {
		n.waiting = []byte{0, 0}
	} else {
		err = n.welcomed()
	}
	raw.SetDeadline(time.Time{})
	return n, err
}

// serve runs a connection until it is closed.
func (l *Link) serve(n *conn) {
	if !l.enter(n) {
		n.raw.Close()
		l.refuse("twice", n.at.String(), nil)
		return
	}
	l.cfg.Metrics.connections.Inc()
	l.wait.Add(1)
	go func() {
		defer l.wait.Done()
		n.write()
	}()
	n.nudge()
	if reason, err := n.read(); reason != "" {
		l.refuse(reason, n.at.String(), err)
	}
	n.finish()
	n.raw.Close()
	l.cfg.Metrics.connections.Dec()
	l.leave(n)
}

// enter makes a connection the one with its peer; false: it is not wanted. A later connection replaces an earlier one, which may be
// dead without having been noticed. If two nodes call each other at once, the connection made by the node with the lower id stays.
func (l *Link) enter(n *conn) bool {
	l.tell.Lock()
	defer l.tell.Unlock()
	l.mu.Lock()
	old := l.byPeer[n.peer]
	crossed := old != nil && old.called != n.called && time.Since(old.since) < atOnce
	if l.hushed || l.life.Err() != nil || crossed && n.called == (l.cfg.Self < n.peer) {
		l.mu.Unlock()
		return false
	}
	if old != nil {
		l.forget(old)
	}
	l.byPeer[n.peer], l.byAddr[n.at] = n, n
	l.news()
	l.mu.Unlock()
	if old != nil {
		old.raw.Close()
	}
	l.cfg.Tell(api.Line{Bearer: l.cfg.Bearer, Peer: n.peer, Addr: n.at})
	return true
}

// leave records that a connection was closed.
func (l *Link) leave(n *conn) {
	l.tell.Lock()
	defer l.tell.Unlock()
	l.mu.Lock()
	last := l.byPeer[n.peer] == n
	if last {
		l.forget(n)
		l.news()
	}
	l.mu.Unlock()
	if last {
		l.cfg.Tell(api.Line{Bearer: l.cfg.Bearer, Peer: n.peer})
	}
}

// forget removes a connection. The caller holds mu.
func (l *Link) forget(n *conn) {
	delete(l.byPeer, n.peer)
	if l.byAddr[n.at] == n {
		delete(l.byAddr, n.at)
	}
}

// news wakes the goroutines that wait for a change. The caller holds mu.
func (l *Link) news() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Send queues datagrams for the connections to their addresses, in order. A datagram without a connection, or without room in its queue,
// is lost.
func (l *Link) Send(datagrams []api.Datagram) {
	for _, d := range datagrams {
		l.mu.Lock()
		n := l.byAddr[d.Addr]
		l.mu.Unlock()
		if n == nil || len(d.Data) == 0 || len(d.Data) > l.cfg.Largest || !n.queue(d.Data) {
			l.unsent.Add(1)
			continue
		}
		l.sentDatagrams.Add(1)
		l.sentOctets.Add(uint64(len(d.Data)))
	}
}

// Gather does nothing: datagrams from a connection are posted at once.
func (l *Link) Gather(int) {}

// Hush, when on, closes all connections once their queues have been written, and prevents new ones.
func (l *Link) Hush(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hushed == on {
		return
	}
	l.hushed = on
	if !on {
		l.calls, l.still = context.WithCancel(l.life)
	} else {
		l.still()
		for _, n := range l.byPeer {
			n.finish()
		}
		for c := range l.greeting {
			c.Close()
		}
	}
	l.news()
}

// Recheck closes the connections whose keys no longer belong to members.
func (l *Link) Recheck() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.byPeer {
		if !l.cfg.Member(n.peer, n.key) {
			n.raw.Close()
		}
	}
}

// Stats are the counts so far; safe from every goroutine.
func (l *Link) Stats() radio.Stats {
	return radio.Stats{
		ReceivedDatagrams: l.receivedDatagrams.Load(), ReceivedOctets: l.receivedOctets.Load(), DroppedDatagrams: l.dropped.Load(),
		SentDatagrams: l.sentDatagrams.Load(), SentOctets: l.sentOctets.Load(), UnsentDatagrams: l.unsent.Load(),
	}
}

// Close closes the bearer; it posts and reports nothing after it returns. The loop has stopped before, or still takes reports.
func (l *Link) Close() error {
	l.end()
	l.mu.Lock()
	if l.listener != nil {
		l.listener.Close()
	}
	for _, n := range l.byPeer {
		n.finish()
		time.AfterFunc(lastWords, func() { n.raw.Close() })
	}
	for c := range l.greeting {
		c.Close()
	}
	l.news()
	l.mu.Unlock()
	l.wait.Wait()
	return nil
}

// refuse counts a connection that was refused or closed, and logs each reason now and then.
func (l *Link) refuse(reason, remote string, err error) {
	l.cfg.Metrics.refused.WithLabelValues(reason).Inc()
	if l.may(reason) {
		l.cfg.Log.Warn("a connection of a bearer over TLS was refused or ended", "bearer", l.cfg.Name, "reason", reason, "remote", remote, "error", err)
	}
}

// may says whether something may be logged now.
func (l *Link) may(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.life.Err() == nil && l.told.May(time.Now(), what)
}

// addrOf is the far address of a connection in the form that gateways use.
func addrOf(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	at := t.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
}
