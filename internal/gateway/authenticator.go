package gateway

import (
	"cmp"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// Trust has keys of single nodes, in place of Config.Key.
type Trust = keys.Trust

// ForgetMost is how often a peer can be forgotten in one run.
const ForgetMost = seal.ForgetMost

// RefusesDatagrams says whether a reason of Status.Dropped is one for refusing a datagram of the link.
func RefusesDatagrams(reason string) bool { return keys.Refuses(reason) }

// newKeys are the keys of a node on a bearer that reaches these peers. of has the same rosters; nil: it is the first bearer.
func newKeys(cfg *Config, b BearerConfig, of *keys.Keys, services keys.Services, peers []*mail.Peer) *keys.Keys {
	mul := b.Profile.Transport == profile.PMul
	return keys.New(keys.Config{
		ID: cfg.ID, Name: cfg.Name, Incarnation: cfg.Incarnation, Key: cfg.Key, Trust: cfg.Trust, Services: services,
		Bearer: seal.BearerNumber(b.Name), Of: of, Apart: !(mul && b.Group.IsValid()),
		Forward: !mul && b.Name != mail.Relay, Shared: mul && b.Group.IsValid(),
		AckDelay: b.Profile.AckDelay, ProbeInterval: b.Profile.ProbeInterval, RoundTrip: carriage.TimingOf(b.Profile, b.Shore).RoundTrip,
	}, peers)
}

// answer gives a datagram that does not count what it asks for all the same.
func (g *Gateway) answer(now time.Time, p *leg, o *keys.Opened) {
	if o.Hello != nil {
		p.Counts.DatagramsReceived++
		p.Ledger.Head(mail.Received, o.Info.Long)
		p.Ledger.Add(mail.Received, mail.Key, o.Info.Proofs)
		p.Ledger.Add(mail.Received, mail.Key, o.Octets)
		if o.Info.Newest {
			p.Handshake.Model = cmp.Or(p.Handshake.Model, o.Hello.Model) // only messages to the peer are coded by Model and Ahead
			p.Handshake.Ahead = p.Handshake.Ahead || o.Hello.Ahead
		}
	}
	if o.Restarted {
		p.Link.Restarted()
	}
	if o.At.IsValid() {
		p.Paths.Heard(now, o.At, o.Restarted)
	}
	if o.Heard {
		p.Link.Heard(now)
	}
	if o.Greeting != nil {
		p.Link.Greeting(now, *o.Greeting)
	}
	if !o.Owe.IsZero() {
		p.Handshake.Owe(o.Owe)
	}
	if o.Greet != nil && !p.bearer.mute() { // it goes at once
		hello := p.bearer.road.Hello(now, p.Peer)
		o.Greet.Apply(&hello)
		p.Link.Greet(now, o.Greet.Addr, hello)
	}
}

// forget obeys the operator: the gateway forgets a peer's starts and addresses.
func (g *Gateway) forget(now time.Time, ev api.Forget) {
	p := g.byID[ev.Peer]
	if p == nil || !g.estrange(now, p, ev.AnyStart) {
		g.Note("warn", "a peer was not forgotten: the id is unknown, or it was forgotten too often since this start. In the second case restart the gateway", "id", ev.Peer)
		return
	}
	g.Note("info", "a peer was forgotten; its datagrams are accepted again after its next answer", "peer", p.Name, "id", p.ID, "any_start", ev.AnyStart)
}

// estrange makes a stranger of a peer; false: that was done too often in this run.
func (g *Gateway) estrange(now time.Time, p *peer, anyStart bool) bool {
	for l := range legsTo(p) {
		if !l.bearer.keys.Forget(p.ID, anyStart) {
			return false
		}
		l.Paths.Forget()
		l.Link.RecordPaths()
		l.LastHeard = time.Time{}
		l.Handshake.KnowsUs = false
		if l == p.leg || l.Handshake.Store != 0 {
			l.Handshake.Owe(now)
		}
	}
	return true
}

// part ends the exchange with peers that the roster does not name, and begins it with those that it names again.
func (g *Gateway) part(now time.Time) {
	for _, p := range g.peers {
		named := g.keys.Rosters.Names(p.ID)
		if p.Gone == !named {
			continue
		}
		for l := range legsTo(p) {
			if l.Gone = !named; named {
				l.Handshake.Owe(now)
				continue
			}
			for _, c := range l.bearer.Channels {
				c.Gone(now, l.Peer)
			}
			for _, c := range l.bearer.Carriers {
				for _, e := range c.NewStore(l.Peer) {
					if payload := e.Content.Payload; payload != nil {
						p.Counts.Cancelled++
						g.adapters.ended(payload, site.Cancelled)
					} else {
						p.ends.back(now, e.Content.Lost)
					}
				}
			}
			g.RecordPeer(l.Peer)
		}
		if named {
			continue
		}
		g.replica.Forget(p.ID)
		p.far.clear()
		g.siteLost(now, p.ID)
		g.Note("warn", "the roster no longer names a peer; the gateway refuses its datagrams and the messages that waited for it", "peer", p.Name, "id", p.ID)
	}
}

// tellRosters sends peers the rosters that they lack.
func (g *Gateway) tellRosters(now time.Time) {
	for _, b := range g.bearers {
		to := func(m *mail.Peer) bool { return g.byID[m.ID].best(nil).bearer == b }
		for _, t := range g.keys.Rosters.Tell(now, to) {
			for i, m := range t.To {
				t.To[i] = g.byID[m.ID].legs[b.index].Peer
			}
			g.keys.Rosters.Refused(now, t, b.Carrier().Accept(now, t.To, envelope.Message{Roster: t.Octets}, mail.Key))
		}
	}
	g.keys.Rosters.Turn(now)
}
