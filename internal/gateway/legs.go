package gateway

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/forecast"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
)

// Which bearer a message takes, and what becomes of it when the bearer fails: docs/decisions/bearers.md.

// named is what the log calls a leg: its peer, and the bearer where that has a name.
func (l *leg) named() []any {
	if l.Bearer.Name == "" {
		return []any{"peer", l.Name}
	}
	return []any{"peer", l.Name, "bearer", l.Bearer.Name}
}

// legOf is the leg of a carrier's peer.
func legOf(g *Gateway, m *mail.Peer) *leg {
	p := g.known(m.ID)
	for l := range legsTo(p) {
		if l.Peer == m {
			return l
		}
	}
	return p.leg
}

// legsTo are the legs of a peer, one for each bearer that reaches it.
func legsTo(p *peer) iter.Seq[*leg] {
	return func(yield func(*leg) bool) {
		for _, l := range p.legs {
			if l != nil && !yield(l) {
				return
			}
		}
	}
}

// legsOf are all legs of all peers.
func legsOf(g *Gateway) iter.Seq[*leg] {
	return func(yield func(*leg) bool) {
		for _, p := range g.peers {
			for l := range legsTo(p) {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// at is the leg on a bearer, by its mark; nil: there is none.
func (p *peer) at(mark uint8) *leg {
	i := slices.IndexFunc(p.legs, func(l *leg) bool { return l != nil && l.Bearer.Mark == mark })
	if i < 0 {
		return nil
	}
	return p.legs[i]
}

// answers says that a leg is not known to be down, and that the peer is not silent there.
func (l *leg) answers() bool {
	return l != nil && l.bearer.direct.opening[l.ID] == nil && (l.Reachable() || !l.Gone && len(l.of.via) == 0 && len(l.bearer.Channels) > 0 && l.bearer.Common.Group.IsValid()) && !l.Link.Dead() && !l.Link.Listening()
}

// goes says whether messages may take a leg now: it answers, and this node is not silent there.
func (l *leg) goes() bool { return l.answers() && !l.bearer.silence.quiet() }

// dear orders bearers by price; of two at the same price the faster goes first.
func dear(a, b *bearer) int {
	if a.price != b.price {
		return cmp.Compare(a.price, b.price)
	}
	took := func(b *bearer) time.Duration { return b.Profile.RoundTripMax(b.Profile.DatagramOctets) }
	return cmp.Or(cmp.Compare(took(a), took(b)), cmp.Compare(a.index, b.index))
}

// cheapest is the leg that any message should take now: the cheapest of those that go, or of all where none goes.
func (p *peer) cheapest() (best *leg) {
	bestGoes := false
	for l := range legsTo(p) {
		if goes := l.goes(); best == nil || goes && !bestGoes || goes == bestGoes && dear(l.bearer, best.bearer) < 0 {
			best, bestGoes = l, goes
		}
	}
	return best
}

// best is the leg that a message to a peer should take now; nil stands for any message.
func (p *peer) best(m *mail.Message) *leg {
	switch {
	case len(p.legs) == 1:
		return p.leg
	case m == nil: // this runs for each peer in each Step
		return p.cheapest()
	}
	return p.choose(m).leg
}

// way is the leg that a new message to a peer takes, and the leg where it waits, if it cannot go yet.
func (p *peer) way(now time.Time, m *mail.Message) (c choice, waits *leg) {
	if len(p.legs) == 1 && p.leg.bearer.day.most == 0 {
		return choice{leg: p.leg}, nil
	}
	c = p.choose(m)
	behind := p.stands(c.leg, m, math.MaxUint64)
	if park := p.park(); c.together() && park != nil && (behind || !c.takes(now) || park.Box.Waiting(frame.Direct, frame.Bulk) > 0) {
		return c, park
	}
	if behind || c.bearer.silence.spent && !p.beyond(m) {
		waits = c.leg
	}
	return c, waits
}

// stands says that a message must not go on a leg yet: one before it in its line, and no less urgent, is on another leg.
func (p *peer) stands(l *leg, m *mail.Message, place uint64) bool {
	return slices.ContainsFunc(p.legs, func(other *leg) bool { return other != nil && other != l && other.Box.Holds(m, place) })
}

// together says that a leg's carrier gives messages their numbers at once, so that none waits there.
func (l *leg) together() bool { return l.bearer.Carrier().Orders().Together() }

// park is the leg where messages wait for a carrier that gives numbers at once; nil: all carriers do.
func (p *peer) park() *leg {
	i := slices.IndexFunc(p.legs, func(l *leg) bool { return l != nil && !l.together() })
	if i < 0 {
		return nil
	}
	return p.legs[i]
}

// takes says whether a carrier that gives numbers at once is given messages now: it has little to send, and the peer has met this node
// there, because otherwise the peer takes nothing. A peer that was not met is greeted.
func (l *leg) takes(now time.Time) bool {
	if !l.goes() {
		return false
	}
	if !l.met() {
		l.want(now)
		return false
	}
	return l.bearer.Handovers[0].Room() > 0
}

// want greets a peer that was not met on a leg and for which something waits. If it does not answer, it is asked whether it is there, and
// messages take another leg.
func (l *leg) want(now time.Time) {
	if l.Handshake.Due.IsZero() { // otherwise a hello is planned, ever later where nobody answers
		l.Handshake.Owe(now)
	}
	if c := &l.bearer.Common; !l.wanted.After(l.LastHeard) {
		l.wanted = now
	} else if now.Sub(l.wanted) > c.Timing.RoundTrip+c.Timing.AckDelay {
		l.wanted = now
		l.Link.Doubt()
	}
}

// met says that this node and the peer know each other's starts on a leg.
func (l *leg) met() bool { return l.Handshake.KnowsUs && !l.Handshake.Owed }

// accept gives a message for some peers to the carriers that should take it. It returns the peers for which it was refused.
func accept(g *Gateway, now time.Time, to []*peer, content envelope.Message, kind mail.Kind) (refused []*peer) {
	type taken struct {
		choice
		at       *leg          // where it waits
		behind   bool          // it waits for leg
		foreseen time.Duration // how long it takes; 0: no forecast
	}
	var chosen []taken
	m := mail.Message{Content: content}
	if len(g.bearers) > 1 && content.Payload != nil {
		m.Full = make([]byte, forecast.About(content.Payload))
	}
	for _, p := range to {
		c, waits := p.way(now, &m)
		c.leg.greet(now)
		p.behind = p.behind || waits != nil
		one := taken{choice: c, at: cmp.Or(waits, c.leg), behind: waits != nil}
		if waits == nil {
			one.foreseen = c.reckon(now, &m)
		}
		chosen = append(chosen, one)
	}
	for _, b := range g.bearers {
		var list []*mail.Peer
		for _, c := range chosen {
			if c.at.bearer == b {
				list = append(list, c.at.Peer)
			}
		}
		if len(list) == 0 {
			continue
		}
		for _, m := range b.Carrier().Accept(now, list, content, kind) {
			refused = append(refused, g.byID[m.ID])
		}
		newest := g.mail.Newest()
		for _, c := range chosen {
			if c.at.bearer == b && newest != nil && newest.On(c.at.Peer) != nil {
				e := newest.On(c.at.Peer)
				if e.Behind = c.behind; c.at != c.leg {
					e.Way = c.Peer
				}
				if c.foreseen > 0 {
					c.reckoning.Foresee(now, c.place(e), len(e.Full), c.foreseen)
				}
				c.accepted(newest)
				if c.why != "" {
					c.noteChoice(&g.mail.Lives, newest)
				}
			}
		}
		g.orders.heed(now) // each bearer makes a message of its own
	}
	return refused
}

// asks says whether a question for the peer's state is on its way.
func (p *peer) asks() bool {
	return slices.ContainsFunc(p.legs, func(l *leg) bool { return l != nil && l.Box.Asks() })
}

// besides acknowledges messages of a peer that came on other bearers than one: those may be down by now.
func besides(g *Gateway, peer uint16, but *bearer) (list []frame.Beside) {
	for l := range legsTo(g.byID[peer]) {
		if l.bearer != but {
			for _, c := range l.bearer.Handovers {
				list = append(list, c.Beside(l.Peer)...)
			}
		}
	}
	return list
}

// tellsBy says whether a bearer carries this site's state to a peer: the bearer that its messages take, once no other holds earlier ones.
func tellsBy(g *Gateway, peer uint16, b *bearer) bool {
	p := g.byID[peer]
	l := p.best(nil)
	if len(p.legs) > 1 && !l.met() && l.bearer.Relay == nil && len(g.replica.Next(g.now, peer, 1)) > 0 {
		l.want(g.now)
	}
	return l.bearer == b && !p.stands(l, &mail.Message{}, math.MaxUint64)
}

// handOver moves the messages held for a peer when its bearers have failed or are back, and releases those that waited for another bearer.
func handOver(g *Gateway, now time.Time, p *peer) {
	if len(p.legs) == 1 && p.leg.bearer.day.most == 0 {
		return
	}
	usable := uint64(0)
	for i, l := range p.legs {
		if l == nil {
			continue
		}
		l.flaps.look(now, l.goes() || l.LastHeard.IsZero())
		if l.flaps.soon(now) {
			usable |= 1 << (i + 2*MostBearers)
		}
		if l.goes() {
			usable |= 1 << i
			if l.met() {
				usable |= 1 << (i + MostBearers)
			}
		}
	}
	if usable != p.usable {
		p.usable, p.behind = usable, true
		for l := range legsTo(p) {
			if usable != 0 && !l.Box.Empty() {
				moveFrom(g, now, p, l)
			}
		}
	}
	if p.behind {
		feed(g, now, p)
		p.behind = false
		for l := range legsTo(p) {
			p.behind = p.line(l) || p.behind
		}
	}
}

// line marks the messages on a leg that wait for something other than the leg's own turn; any: there are some.
func (p *peer) line(l *leg) (any bool) {
	l.parked = [len(precedences)]int{}
	return l.Box.Line(func(e *mail.Entry) bool {
		behind := e.Way != nil && e.Way != l.Peer || p.stands(l, e.Message, e.Place()) || l.bearer.silence.spent && !p.beyond(e.Message)
		if behind {
			for at := range e.Rank() + 1 {
				l.parked[at] += len(e.Full)
			}
		}
		return behind
	})
}

// feed gives messages that have waited on another leg to carriers that give numbers at once, as far as these have room.
func feed(g *Gateway, now time.Time, p *peer) {
	park := p.park()
	if park == nil {
		return
	}
	for to := range legsTo(p) {
		if !to.together() {
			continue
		}
		next := func() *mail.Entry {
			return park.Box.Next(func(e *mail.Entry) bool { return e.Way == to.Peer && !p.stands(to, e.Message, e.Place()) })
		}
		for e := next(); e != nil && to.takes(now); e = next() {
			g.mail.TakeOff(e, to.Peer)
			if !to.seat(now, e) {
				e.Peer = park.Peer
				park.seat(now, e)
				e.Way, e.Behind = to.Peer, true
				return
			}
		}
	}
}

// moveFrom moves the messages that wait on a leg to a better one. If the leg has failed, those under way go on there too.
func moveFrom(g *Gateway, now time.Time, p *peer, from *leg) {
	waiting, underWay := from.Box.Movable()
	moved, again, to := 0, 0, from
	for _, e := range underWay {
		best := p.best(e.Message)
		switch {
		case from.goes(), best == from, !best.goes(), from.waitsFor(e.Message), e.OnHold:
			continue
		case e.Seconded(), slices.ContainsFunc(p.legs, func(l *leg) bool { return l != nil && l.goes() && e.On(l.Peer) != nil }):
			continue // the other attempt moves as waiting messages do, or goes on
		case best.together() && !best.met():
			best.Handshake.Owe(now)
			continue
		}
		marks, rest := from.bearer.Handover(e.At.Queue).Rest(e)
		if next := g.mail.Again(e, best.Peer, marks, rest); !best.seat(now, next) {
			g.mail.Undo(next)
			continue
		}
		again, to = again+1, best
	}
	for _, e := range waiting {
		c := p.choose(e.Message)
		best, was := c.leg, e.Way
		switch e.Way = nil; {
		case best == from:
		case best.together() && from == p.park(): // feed moves it
			e.Way = best.Peer
		case best.together() && p.park() != nil:
			g.mail.TakeOff(e, p.park().Peer)
			p.park().seat(now, e)
			e.Way = best.Peer
		case e.On(best.Peer) != nil: // the attempt there goes on
			g.mail.Drop(e)
			continue
		default:
			if back := g.mail.TakeOff(e, best.Peer); !best.seat(now, e) { // P_Mul takes no more
				back()
				continue
			}
		}
		if going := cmp.Or(e.Way, best.Peer); going != cmp.Or(was, from.Peer) {
			c.noteChoice(&g.mail.Lives, e.Message)
			moved, to = moved+1, best
		}
	}
	if moved+again > 0 {
		g.Note("info", "messages for a peer change their bearer", "peer", p.Name, "from", bearerName(from), "to", bearerName(to), "waiting", moved, "under_way", again)
	}
}

// bearerName is the name of a leg's bearer, for people.
func bearerName(l *leg) string { return cmp.Or(l.Bearer.Name, l.bearer.Profile.Name) }

// greet greets a peer that was never met on a bearer that now has something for it: before that no long message goes.
func (l *leg) greet(now time.Time) {
	if l.Handshake.Unmet && l.bearer.index > 0 {
		l.Handshake.Owe(now)
	}
}

func (l *leg) seat(now time.Time, e *mail.Entry) bool {
	l.greet(now)
	return l.bearer.Handovers[0].Adopt(now, e)
}

// elsewhere tells the carrier of an attempt that its message has arrived on another bearer.
func elsewhere(g *Gateway, e *mail.Entry) {
	legOf(g, e.Peer).bearer.Handover(e.At.Queue).Elsewhere(g.now, e)
}

// moved takes a message that another bearer carried first. If it was read there, the result is empty.
func moved(g *Gateway, p *peer, m envelope.Message) (envelope.Message, error) {
	marks := m.Moved
	if m.Rest != nil {
		first := marks[0]
		l, at := p.at(first.Bearer), mail.TransmissionID{Queue: frame.Queue(first.Queue), Number: first.Number}
		var body []byte
		if l != nil && l.Handshake.InStream == first.Stream && l.bearer.Has(at.Queue) {
			body = l.bearer.Handover(at.Queue).Whole(l.Peer, at, m.Rest)
		}
		m = envelope.Message{}
		if body != nil {
			var err error
			if m, err = l.Reader.Read(g.coders.of(l.Peer), at, body, math.MaxInt); err != nil {
				return m, errors.Join(compact.ErrHistory, err)
			}
		} else if !p.arrivedBefore(marks[:1]) {
			return m, compact.ErrHistory // its sender sends all of it
		}
	}
	if p.arrivedBefore(marks) {
		return envelope.Message{}, nil
	}
	return m, nil
}

// arrivedBefore marks the numbers of a message on other bearers as used; true: it was read there.
func (p *peer) arrivedBefore(marks []envelope.Moved) (read bool) {
	for _, m := range marks {
		l := p.at(m.Bearer)
		if l == nil || !l.bearer.Has(frame.Queue(m.Queue)) {
			continue
		}
		if l.Handshake.Store == 0 && l.Handshake.InStream == 0 { // never heard there: messages that it sent may come yet
			l.Handshake.InStream = m.Stream
			l.Link.Record()
		}
		if l.Handshake.InStream != m.Stream {
			continue
		}
		for n := range m.More + 1 {
			at := mail.TransmissionID{Queue: frame.Queue(m.Queue), Number: m.Number + uint64(n)}
			was := l.bearer.Handover(at.Queue).Used(l.Peer, at)
			read = read || was && !ofSegments(m, marks) && !l.emptied.has(at)
		}
	}
	return read
}

// ofSegments says that a mark is of segments of a long message, which has a mark of its own on that bearer: one of them alone may have
// been read.
func ofSegments(m envelope.Moved, marks []envelope.Moved) bool {
	return frame.Queue(m.Queue) != frame.Bulk && slices.ContainsFunc(marks, func(o envelope.Moved) bool {
		return o.Bearer == m.Bearer && frame.Queue(o.Queue) == frame.Bulk
	})
}

// siteAt is the peer at an address of a bearer; 0: none is known there.
func siteAt(g *Gateway, bearer int, at netip.AddrPort) uint16 {
	for _, p := range g.peers {
		if l := p.legs[bearer]; l != nil && l.Addr == at {
			return p.ID
		}
	}
	return 0
}
