package gateway

import (
	"encoding/binary"
	"slices"
	"time"

	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/relay"
	"aldis/internal/link/envelope"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// Messages that other gateways pass on for this one, and this one for others: docs/decisions/relay.md.

// relays says whether other gateways pass on messages for a peer, or this one does for others.
func (c *Config) relays() bool {
	return c.Relay || len(c.willing) > 0 || slices.ContainsFunc(c.Peers, func(p PeerConfig) bool { return len(p.Via) > 0 })
}

// relayBearer is the way over other gateways. It takes two hops, so it costs at least twice as much as the dearest of the others.
func relayBearer(c *Config, others []BearerConfig) BearerConfig {
	b := BearerConfig{Name: mail.Relay, Profile: c.Profile, Price: 2 * UsualPrice, Peers: others[0].Peers}
	for _, o := range others {
		b.Price = max(b.Price, RelayPrice(o.Price))
	}
	return b
}

// RelayName is what rules and status call the way over other gateways.
const RelayName = mail.Relay

// RelayPrice is the price of 1,000 octets over other gateways in the gateway's reckoning, where named is the price of a bearer.
func RelayPrice(named float64) float64 { return 2 * max(named, UsualPrice) }

// relay makes the bearer's carrier.
func (b *bearer) relay(cfg BearerConfig, reached []*mail.Peer) {
	g := b.road.g
	b.Bearer = carriage.NewRelay(relay.Config{
		Common: mail.Common{Self: g.cfg.ID, Peers: reached, Services: b.road, Store: g.mail, Replica: g.replica, Coder: &g.coders.plain,
			Timing: g.bearers[0].Common.Timing, Tells: func(peer uint16) bool { return tellsBy(g, peer, b) }},
		Ways: ways{g, b}, Incarnation: g.cfg.Incarnation,
	}, cfg.Profile)
	b.linkProbes = newLinkProbes(b, false)
}

// ways is the gateway as its relay carrier sees it.
type ways struct {
	g *Gateway
	b *bearer
}

// Next is the first peer that answers, of those that pass on messages for another; where none answers, the first.
func (w ways) Next(to uint16, not ...uint16) (hop uint16, up bool) { return nextHop(w.g, to, not...) }

// nextHop is the gateway to which messages for another go first, other than those in not: the recipient itself if it answers,
// else a gateway that passes them on.
func nextHop(g *Gateway, to uint16, not ...uint16) (hop uint16, up bool) {
	p := g.byID[to]
	if p == nil {
		return 0, false
	}
	via := viaOf(g, p)
	for i := -1; i < len(via); i++ {
		id := to
		if i >= 0 {
			id = via[i]
		}
		switch way := g.byID[id]; {
		case way == nil, slices.Contains(not, id):
		case way.answers():
			return id, true
		case hop == 0 || hop == to:
			hop = id
		}
	}
	if hop == to && len(not) == 0 {
		hop = 0 // everything else goes to the peer itself
	}
	return hop, false
}

// viaOf are the gateways that pass on messages for a peer, as configured or as the roster says.
func viaOf(g *Gateway, p *peer) []uint16 {
	if p.Enrolled && len(p.via) == 0 {
		return g.cfg.willing
	}
	return p.via
}

// answers says whether messages may go to a peer without another gateway between.
func (p *peer) answers() bool {
	return slices.ContainsFunc(p.legs, func(l *leg) bool { return l != nil && l.Bearer.Name != mail.Relay && l.goes() })
}

// Hand gives custody a capsule for a hop.
func (w ways) Hand(now time.Time, hop uint16, c *relay.Capsule, mark site.Mark) bool {
	m := c.Message(now, mark)
	if len(c.To) == 1 && hop != c.To[0] {
		relayed(w.g, now, c.To[0], len(m.Parts[0].Data))
	}
	return len(accept(w.g, now, []*peer{w.g.byID[hop]}, envelope.Message{Payload: &m}, mail.Payload)) == 0
}

// Held is how many octets are in custody for a hop.
func (w ways) Held(hop uint16) (octets int) {
	for l := range legsTo(w.g.byID[hop]) {
		if l.bearer != w.b {
			_, _, held := l.Box.Held(0, 1, mail.Group)
			octets += held
		}
	}
	return octets
}

// Key is the key with which this node and another seal.
func (w ways) Key(from, to uint16, streams []byte) (seal.EndKey, bool) {
	return w.b.keys.End(from, to, streams)
}

// Secret is a secret that this node alone can make.
func (w ways) Secret(of []byte) [32]byte { return w.b.keys.Secret(of) }

// Anew begins anew with a node that knows nothing of this one, as with one that has lost its store.
func (w ways) Anew(now time.Time, p *mail.Peer, first bool) {
	l := legOf(w.g, p)
	if !first {
		w.g.newNumbers(now, l)
	}
	w.g.newStore(now, l, false)
}

// Model is that of this node.
func (w ways) Model() uint16 { return modelOf() }

// Name is what people call a node.
func (w ways) Name(id uint16) string { return w.g.siteName(id) }

// Why a capsule is not passed on; reasons of the gateway's counters.
const (
	notCapsule = "relay_malformed" // it is none
	notWilling = "relay_unwilling" // this gateway passes nothing on
	notFar     = "relay_hops"      // it has gone so far, or says so, that it goes in a circle
	notAgain   = "relay_again"     // it was passed on before
	notBack    = "relay_back"      // only the gateway that has sent it could take it on: a loop by configuration
	notKnown   = "relay_nowhere"   // this gateway does not know its recipient
	notTaken   = "relay_lost"      // the next gateway was not reached in its life, or its queue is full
)

// passed has the capsules that this gateway has passed on, so that none goes in a circle.
type passed struct {
	names  map[string]time.Time // when
	oldest []string
	said   map[string]time.Time // by reason: when the log last said that a capsule was not passed on
	count  map[string]int       // since then
	held   []heldBack           // the oldest first
	last   uint64               // number of the last one held back
	// asked says when a peer was last introduced to another because it had asked for that, and told when it was told of any.
	asked, told map[uint16]time.Time
}

// heldBack is a capsule that waits for company on its way to a hop. The journal has it, because its sender was told that it is here.
type heldBack struct {
	number uint64
	hop    uint16
	until  time.Time
	m      site.Message
}

const (
	bucketHeld = "relayed" // number -> hop, envelope
	holdFor    = time.Minute
	mostHeld   = 256
)

// hold keeps a message back until holdFor is over, or something else goes to the hop.
func (p *passed) hold(g *Gateway, now time.Time, hop uint16, m site.Message) {
	full, err := envelope.Append(binary.BigEndian.AppendUint16(nil, hop), envelope.Message{Payload: &m}, 0, true)
	if err != nil || len(p.held) >= mostHeld {
		p.release(g, now, hop, now)
		p.handOn(g, now, hop, m)
		return
	}
	p.last++
	p.held = append(p.held, heldBack{p.last, hop, now.Add(holdFor), m})
	g.Record(bucketHeld, tokenKey(p.last), full)
}

// release hands on messages held back for a hop whose time ends by until; hop 0: for any.
func (p *passed) release(g *Gateway, now time.Time, hop uint16, until time.Time) {
	var left []heldBack
	list := p.held
	p.held = nil
	for _, h := range list {
		if hop != 0 && h.hop != hop || h.until.After(until) {
			left = append(left, h)
			continue
		}
		g.Record(bucketHeld, tokenKey(h.number), nil)
		p.handOn(g, now, h.hop, h.m)
	}
	p.held = append(left, p.held...)
}

// step hands on messages that have been held back long enough; with the first for a hop go all others for it.
func (p *passed) step(g *Gateway, now time.Time) {
	for len(p.held) > 0 && !now.Before(p.held[0].until) {
		p.release(g, now, p.held[0].hop, now.Add(holdFor))
	}
}

func (p *passed) due() (at time.Time) {
	if len(p.held) > 0 {
		at = p.held[0].until
	}
	return at
}

// restore takes a record of bucketHeld. Its message goes on in the first Step.
func (p *passed) restore(key, value []byte) error {
	if len(key) != 8 || len(value) < 2 {
		return mail.ErrRecord
	}
	m, _, _, err := envelope.Parse(value[2:], nil)
	if err != nil || m.Payload == nil {
		return mail.ErrRecord
	}
	p.last = max(p.last, binary.BigEndian.Uint64(key))
	p.held = append(p.held, heldBack{number: binary.BigEndian.Uint64(key), hop: binary.BigEndian.Uint16(value), m: *m.Payload})
	return nil
}

// handOn gives custody a message for a hop.
func (p *passed) handOn(g *Gateway, now time.Time, hop uint16, m site.Message) {
	if to := g.byID[hop]; to == nil || len(accept(g, now, []*peer{to}, envelope.Message{Payload: &m}, mail.Payload)) > 0 {
		p.refuse(g, now, notTaken, g.siteName(hop), m.From, hop)
	}
}

// mostPassed is how many capsules are remembered: each costs a liar a message.
const mostPassed = 1 << 13

// onceIn is how long a capsule is not passed on again. Its origin sends it once more when that is over.
const onceIn = 5 * time.Minute

// before says whether a capsule was passed on lately.
func (p *passed) before(now time.Time, name string) bool {
	at, known := p.names[name]
	if known && now.Sub(at) < onceIn {
		return true
	}
	if p.names == nil {
		p.names = map[string]time.Time{}
	}
	if p.names[name] = now; known {
		return false
	}
	if p.oldest = append(p.oldest, name); len(p.oldest) > mostPassed {
		delete(p.names, p.oldest[0])
		p.oldest = p.oldest[1:]
	}
	return false
}

// refuse counts a capsule that is not passed on, and lets the log say so once a minute.
func (p *passed) refuse(g *Gateway, now time.Time, reason, from, origin string, to uint16) {
	g.Drop(reason)
	if p.said == nil {
		p.said, p.count = map[string]time.Time{}, map[string]int{}
	}
	var text string
	switch reason {
	case notCapsule:
		text = "a message to be passed on cannot be read; it is dropped. Does the peer run another version?"
	case notWilling:
		text = "a peer wants this gateway to pass on messages; set relay = true if it should"
	case notFar:
		text = "a message was not passed on: it says that four gateways have had it. Do the gateways' via keys form a circle?"
	case notAgain:
		text = "a message was not passed on: it was before. Do the gateways' via keys form a circle?"
	case notBack:
		text = "a message would go back to where it came from; it waits for its recipient. Do the gateways' via keys form a circle?"
	case notKnown:
		text = "a message was not passed on: this gateway knows no peer of that id"
	case notTaken:
		text = "messages that were to be passed on ended here: their life was over, or the queue for the next gateway is full"
	}
	if p.count[reason]++; now.Sub(p.said[reason]) >= time.Minute {
		g.Note("warn", text, "from", from, "origin", origin, "for", g.siteName(to), "times", p.count[reason])
		p.said[reason], p.count[reason] = now, 0
	}
}

// passOn takes a capsule that a peer has handed on: for this node, for others behind it, or both.
func passOn(g *Gateway, now time.Time, from *leg, m *site.Message) {
	c, err := relay.Parse(m)
	if err != nil || c.Origin == g.cfg.ID {
		g.passed.refuse(g, now, notCapsule, from.Name, m.From, 0)
		return
	}
	if slices.Contains(c.To, g.cfg.ID) {
		if len(c.To) == 1 && from.ID != c.Origin {
			relayed(g, now, c.Origin, len(m.Parts[0].Data))
		}
		if b := g.bearers[len(g.bearers)-1]; b.Relay != nil {
			b.Relay.Arrived(now, from.ID, c, m.Precedence)
		} else {
			g.passed.refuse(g, now, notWilling, from.Name, g.siteName(c.Origin), g.cfg.ID)
		}
	}
	groups := map[uint16][]uint16{}
	for _, to := range c.To {
		if to == g.cfg.ID {
			continue
		}
		hop, up := nextHop(g, to, from.ID, c.Origin)
		reason := ""
		switch {
		case !g.cfg.Relay:
			reason = notWilling
		case g.byID[to] == nil:
			reason = notKnown
		case c.Hops < 1 || c.Hops >= relay.MaxHops:
			reason = notFar
		case g.passed.before(now, c.Name(to)):
			reason = notAgain
		case hop == 0 || hop == to && !up:
			if len(g.byID[to].via) > 0 {
				g.passed.refuse(g, now, notBack, from.Name, g.siteName(c.Origin), to)
			}
			hop = to // it waits here
		}
		if reason != "" {
			g.passed.refuse(g, now, reason, from.Name, g.siteName(c.Origin), to)
			continue
		}
		groups[hop] = append(groups[hop], to)
	}
	c.Hops++
	for _, p := range g.peers {
		if to := groups[p.ID]; len(to) > 0 {
			on := c.For(to)
			m := on.Message(now, m.Mark)
			// Messages of a new session wait until those that went here have their receipts.
			if told := g.passed.told[p.ID]; on.Waits(m.Precedence) && (told.IsZero() || now.Sub(told) > 2*holdFor) {
				g.passed.hold(g, now, p.ID, m)
				continue
			}
			g.passed.release(g, now, p.ID, now.Add(holdFor))
			g.passed.handOn(g, now, p.ID, m)
		}
	}
}

// passedOn takes the outcome of a capsule in custody: the next gateway has it, or not.
func passedOn(g *Gateway, e *mail.Entry, fate mail.Fate) {
	c, err := relay.Parse(e.Content.Payload)
	switch {
	case err != nil, fate == mail.Reissued:
	case c.Origin == g.cfg.ID:
		if b := g.bearers[len(g.bearers)-1]; b.Relay != nil {
			b.Relay.Ended(g.now, e.Peer.ID, e.Content.Payload, fate)
		}
	case fate != mail.Delivered:
		g.passed.refuse(g, g.now, notTaken, e.Peer.Name, g.siteName(c.Origin), c.To[0])
	}
}
