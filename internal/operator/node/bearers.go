package node

import (
	"bytes"
	"crypto/ed25519"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/edge/config"
	"aldis/internal/edge/modem"
	"aldis/internal/edge/radio"
	"aldis/internal/edge/tlslink"
	"aldis/internal/gateway/api"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
	"aldis/internal/operator/control"
)

// bearer is the sockets of one link.
type bearer interface {
	Send([]api.Datagram)
	Gather(most int)
	Stats() radio.Stats
	Close() error
}

// airSide holds the bearers.
type airSide struct {
	bearers []bearer                      // in the order of the configuration
	members atomic.Pointer[roster.Roster] // the roster in force; nil: all nodes share a key
	tls     *tlslink.Metrics              // nil: no bearer is over TLS
	lead    *leadership                   // nil: this machine is the only one of its site
	modems  []listens
	desks   []*modem.Desk // of modems that report
	refused prometheus.Counter
}

// awaited is a radio whose network is not there yet. Datagrams that are sent until then are lost, as on a link that is down.
type awaited struct {
	radio  atomic.Pointer[radio.Radio] // nil: not yet
	unsent atomic.Uint64
	end    chan struct{}
	ended  chan struct{}
}

// awaitEvery is the time between two attempts to open it.
const awaitEvery = 5 * time.Second

// await opens a radio as soon as that succeeds, and then calls there.
func await(open func() (*radio.Radio, error), there func()) *awaited {
	a := &awaited{end: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		for tick := time.NewTicker(awaitEvery); ; {
			select {
			case <-a.end:
				tick.Stop()
				return
			case <-tick.C:
			}
			if r, err := open(); err == nil {
				a.radio.Store(r)
				there()
				tick.Stop()
				return
			}
		}
	}()
	return a
}

// Send passes datagrams to the radio, once there is one.
func (a *awaited) Send(list []api.Datagram) {
	if r := a.radio.Load(); r != nil {
		r.Send(list)
	} else {
		a.unsent.Add(uint64(len(list)))
	}
}

// Gather passes the call to the radio, once there is one.
func (a *awaited) Gather(most int) {
	if r := a.radio.Load(); r != nil {
		r.Gather(most)
	}
}

// Stats also counts datagrams that could not be sent as unsent.
func (a *awaited) Stats() (s radio.Stats) {
	if r := a.radio.Load(); r != nil {
		s = r.Stats()
	}
	s.UnsentDatagrams += a.unsent.Load()
	return s
}

// Close closes the radio, or stops waiting for it.
func (a *awaited) Close() error {
	close(a.end)
	<-a.ended
	if r := a.radio.Load(); r != nil {
		return r.Close()
	}
	return nil
}

// listens is a listening socket for a modem.
type listens struct {
	modem.Config
	net.Listener
}

// openModem opens the socket on which the modem of a bearer may report. Users that may give orders can open it.
func (n *node) openModem(place int, l config.Link) error {
	if n.air.refused == nil {
		n.air.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "aldis_modem_refused_total", Help: "Lines and connections of modems that were not taken."})
		n.reg.MustRegister(n.air.refused)
	}
	ln, err := control.ListenSocket(config.LinkKey(l, "modem"), l.Modem, n.cfg.Control.GID)
	if err == nil {
		n.air.modems = append(n.air.modems, listens{modem.Config{Bearer: place, Name: l.Name, Tell: func(m api.Modem) { n.daemon.PostOrder(m) }, Refused: n.air.refused, Log: n.log}, ln})
	}
	return err
}

// hearModems starts to hear modems: the loop runs now.
func (a *airSide) hearModems() {
	for _, m := range a.modems {
		a.desks = append(a.desks, modem.Serve(m.Config, m.Listener))
	}
}

// close closes all bearers.
func (a *airSide) close() {
	for _, b := range a.bearers {
		b.Close()
	}
	for _, m := range a.modems {
		m.Close()
	}
	for _, d := range a.desks {
		d.Close()
	}
}

// leastStall is the least time without acknowledgement after which a TLS connection is closed.
const leastStall = 15 * time.Second

// openTLS makes a bearer over TLS. listener is where peers call; nil: no peer calls.
func (n *node) openTLS(place int, l config.Link, listener net.Listener) error {
	if n.air.tls == nil {
		n.air.tls = tlslink.NewMetrics(n.reg)
	}
	own := tlslink.Identity{Self: n.cfg.Node.ID, Member: n.member}
	if t := n.cfg.Link.Trust; t.On() {
		n.air.members.Store(t.Roster)
		seed := t.Own.Seed()
		own.Key = ed25519.NewKeyFromSeed(seed[:])
	} else {
		own.Key = tlslink.KeyOfNetwork(n.cfg.Link.Key[:])
	}
	dial := map[uint16]netip.AddrPort{}
	for _, p := range l.Peers {
		if p.Address.IsValid() {
			dial[p.ID] = p.Address
		}
	}
	octets := l.Profile.MTU - profile.IPUDPOctets
	b, err := tlslink.Open(tlslink.Config{Identity: own, Bearer: place, Name: l.Name, Largest: octets, Stall: max(leastStall, 2*l.Profile.RoundTripMax(octets)),
		Dial: dial, Proxy: l.Proxy, Post: n.daemon.PostAir, May: func() bool { return n.air.lead.mayTransmit(0) }, Tell: func(ev api.Line) { n.daemon.PostOrder(ev) }, Metrics: n.air.tls, Log: n.log}, listener)
	if err != nil {
		return err
	}
	n.air.bearers = append(n.air.bearers, b)
	return nil
}

// member says whether a key that a TLS connection shows belongs to a node of the network.
func (n *node) member(id uint16, key ed25519.PublicKey) bool {
	r := n.air.members.Load()
	if r == nil {
		return bytes.Equal(key, tlslink.KeyOfNetwork(n.cfg.Link.Key[:]).Public().(ed25519.PublicKey)) && !n.cfg.Link.Trust.On()
	}
	m, ok := r.Node(id)
	return ok && bytes.Equal(key, m.Public[:])
}

// noteMembers records the roster in force. Connections with nodes that it does not name are closed.
func (n *node) noteMembers(r *roster.Roster) {
	n.air.members.Store(r)
	for _, b := range n.air.bearers {
		if b, ok := b.(*tlslink.Link); ok {
			b.Recheck()
		}
	}
}

// hush makes a bearer over TLS close its connections, or make them again.
func (n *node) hush(h api.Hush) { n.air.bearers[h.Bearer].(*tlslink.Link).Hush(h.On) }
