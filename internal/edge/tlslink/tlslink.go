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

// Config is what a bearer is made of.
type Config struct {
	Identity
	Bearer  int
	Name    string                    // of the bearer, for the log
	Largest int                       // octets of a datagram
	Stall   time.Duration             // octets that TCP has not acknowledged after this time end a connection
	Half    time.Duration             // longest time for a datagram that has begun; 0: a minute
	Dial    map[uint16]netip.AddrPort // the peers that this node calls
	Proxy   netip.AddrPort            // the proxy that is asked to CONNECT; invalid: none
	Post    func(api.Datagram) bool   // as radio.Open has it
	May     func() bool               // whether a datagram may go on the link now; nil: always. One that may not is dropped
	Tell    func(api.Line)            // of a connection that is there, or is not any more; it may wait
	Metrics *Metrics
	Log     *slog.Logger
}

// Bounds.
const (
	greetTime = 10 * time.Second // for the handshake of TLS, and the welcome
	maxQueue  = 256 << 10        // octets that wait for one connection
	maxGreets = 32               // connections that have not shown their key yet, of all addresses
	hostRate  = 0.5              // calls a second of one address, and how many at once
	hostBurst = 10
	allRate   = 20 // of all
	allBurst  = 100
	maxHosts  = 4096             // of which the rate is kept
	atOnce    = 10 * time.Second // calls of two nodes that cross each other are one
	logAgain  = time.Minute
	lastWords = time.Second // of a gateway that stops
)

// Metrics count for all bearers over TLS.
type Metrics struct {
	connections prometheus.Gauge
	refused     *prometheus.CounterVec
}

// NewMetrics makes them; reg may be nil.
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

// Link is the connections of a bearer.
type Link struct {
	cfg  Config
	own  tls.Certificate
	life context.Context
	end  context.CancelFunc
	wait sync.WaitGroup
	tell sync.Mutex // what is told of connections is in the order in which it came to be; before mu

	mu       sync.Mutex
	hushed   bool
	listener net.Listener
	changed  chan struct{} // closed when a connection came or went, or hushed is another
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

// Open makes a bearer without connections, which makes none before Hush says that it may. listener is where peers call; nil: none does.
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

// accept takes calls until the listener is closed.
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

// called lets a caller show its key, if it may.
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

// greet has both ends show their keys, and welcomes a node that has called.
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

// serve runs a connection until it ends.
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

// enter makes a connection the one with its peer; false: it is not wanted. A later one takes the place of an earlier one, which may be
// dead without anybody's notice. Of two that cross each other the one stays that the node with the lower number has made.
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

// leave notes the end of a connection.
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

// forget takes a connection out. The caller holds mu.
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

// Send queues datagrams for the connections to their addresses, in order. A datagram without a connection, or without room there, is lost.
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

// Gather does nothing: datagrams that have come over a connection are handed over at once.
func (l *Link) Gather(int) {}

// Hush ends all connections, after what waits for them has gone, and makes none while it is on.
func (l *Link) Hush(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hushed == on {
		return
	}
	l.hushed = on
	if on {
		for _, n := range l.byPeer {
			n.finish()
		}
		for c := range l.greeting {
			c.Close()
		}
	}
	l.news()
}

// Recheck ends the connections whose keys are not those of members any more.
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

// Close ends it; nothing is posted or told after it returns. The loop has ended before, or takes what is told.
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

// refuse counts a connection that was refused or ended, and logs each reason now and then.
func (l *Link) refuse(reason, remote string, err error) {
	l.cfg.Metrics.refused.WithLabelValues(reason).Inc()
	if l.may(reason) {
		l.cfg.Log.Warn("a connection of a bearer over TLS was refused or ended", "bearer", l.cfg.Name, "reason", reason, "remote", remote, "error", err)
	}
}

// may says whether the log is told of something now.
func (l *Link) may(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.life.Err() == nil && l.told.May(time.Now(), what)
}

// addrOf is the far address of a connection, as gateways write it.
func addrOf(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	at := t.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
}
