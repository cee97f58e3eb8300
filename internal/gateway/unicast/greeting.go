package unicast

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// GroupGreeting greets all members of a shared channel at once, instead of each with a HELLO: docs/decisions/greeting.md. Its zero
// value does nothing.
//
// Members speak one after the other. A start waits for its turn among all that may start with it, in the order of their IDs, so
// that a later one names those that it has heard. A member that a start asks waits until nobody starts any more, and then for its
// turn among those that are asked, the highest ID first: the one that spoke last has heard the others, so that those know it at once.
type GroupGreeting struct {
	c       *Carrier
	addr    netip.AddrPort
	Greeted func(now time.Time) // is called when this node has greeted: more members may have met it; nil: nothing is
	begun   bool                // this start has greeted
	planned bool                // hold is a turn of its own, to answer
	brief   bool                // the next greeting names only those to whom it says something new
	round   time.Time           // when all members have answered that were asked by a member that asked most of them
	hold    time.Time           // no answer goes before
	most    time.Time           // hold is not put off beyond it
	apart   map[uint16]bool
	said    time.Time         // when this node greeted last
	brought bool              // and brought the roster to members that were never heard: all of them answer
	named   map[uint16]uint32 // and which starts of the others it said that it has heard
}

// All in turns of one greeting.
const (
	quietTurns = 1 // nobody greets for so long, before the first one answers: one greeting may have been lost
	crossTurns = 3 // a member that asks that soon after our answer has not heard it yet
	retryTurns = 4 // besides the way there and back, before the same members are asked again
)

func newRoll(c *Carrier) GroupGreeting {
	return GroupGreeting{c: c, addr: c.Group, apart: map[uint16]bool{}, named: map[uint16]uint32{}}
}

// On says that several peers share a channel with an address of its own. A single peer whose address is known gets a HELLO of its own, which
// says less.
func (r *GroupGreeting) On() bool {
	return r.addr.IsValid() && (len(r.c.order) > 1 || len(r.c.order) == 1 && !r.c.order[0].Addr.IsValid())
}

// alone says that a peer that came later can read no datagram to all yet: it gets a HELLO of its own, since a greeting would tell it no
// more.
func (r *GroupGreeting) alone(p *mail.Peer) bool {
	return p.Later && (p.Absent() || p.Addr.IsValid()) && r.c.Behind(p.ID)
}

// greets says that a peer's HELLO is part of the greeting, as far as was known at the last one.
func (r *GroupGreeting) greets(l *peerLink) bool { return r.On() && !r.apart[l.ID] && !r.alone(l.Peer) }

// Met says that a peer and this node have each told the other, in their present starts, that it was heard. Before that, a member takes
// no messages of another, and those sent to it have to go again. Met is true at once where members are not greeted all at once, and also
// when this node has not greeted for three rounds.
func (r *GroupGreeting) Met(now time.Time, p *mail.Peer) bool {
	switch {
	case !r.On():
		return true
	case r.begun && now.After(r.turns(r.said, r.rounds())):
		return true
	}
	return r.begun && p.Handshake.KnowsUs && (r.apart[p.ID] || r.named[p.ID] == r.c.Services.Hello(now, p).HeardIncarnation)
}

// turn is how long one member's greeting takes, which names all.
func (r *GroupGreeting) turn() time.Duration {
	p := r.c.Profile
	octets := profile.IPUDPOctets + seal.OverheadLong + r.c.Proofs + frame.GreetingOctets + len(r.c.order)*frame.MemberOctets
	return p.Turnaround + p.KeyUp + p.Airtime(p.Up, min(octets, p.DatagramOctets+profile.IPUDPOctets))
}

// begin plans the greeting of this start. A start that knows peers greets at once: it has to say how far it has their messages
// before it acknowledges more, or nobody sees that it was put back.
func (r *GroupGreeting) begin(now time.Time) {
	before := 0
	for _, l := range r.c.order {
		if l.Handshake.Store != 0 {
			before = 0
			break
		}
		if l.ID < r.c.Self {
			before++
		}
	}
	r.hold = now.Add(time.Duration(before) * r.turn())
	r.most = r.hold
}

// heard takes a greeting of a peer, whether it asks for an answer or not. The caller bounds how often heard is called for greetings
// that anybody could have sent.
func (r *GroupGreeting) heard(now time.Time, p *mail.Peer, f frame.Greeting) {
	if !r.On() || !r.begun { // the first greeting of this start goes first, and answers this one too
		return
	}
	_, me, ok := f.For(r.c.Self)
	me = me && ok
	asked, before := 0, 0
	for _, l := range r.c.order {
		if _, asks, ok := f.For(l.ID); l.ID != p.ID && ok && asks {
			asked++
			if l.ID > r.c.Self {
				before++
			}
		}
	}
	planned := r.planned && now.Before(r.hold)
	r.brief = r.brief || f.Brief(p.ID)
	if me && !f.Starts && now.Before(r.turns(r.said, crossTurns)) && r.named[p.ID] == r.c.Services.Hello(now, p).HeardIncarnation {
		me = false // it asked before it could hear our answer
	}
	alone := r.alone(p)
	if me && !alone {
		p.Handshake.Owe(now)
		r.planned = true
	}
	switch {
	case f.Starts: // others may have started too: the last of them is answered
		r.plan(now, quietTurns+before)
		r.round = r.turns(now, quietTurns+asked+1)
	case me && !planned: // otherwise its turn serves this one too
		r.plan(due.Latest(now, r.round), 1+before)
	}
	if me && alone {
		p.Handshake.Owe(r.hold)
	}
}

// answered notes that a member has answered this node alone. The members to whom this node brings the roster do so one after the other.
// The next greeting waits until all have, or nobody has for a while: a member that it does not name answers again.
func (r *GroupGreeting) answered(now time.Time) {
	switch {
	case !r.brought:
	case slices.ContainsFunc(r.c.order, func(l *peerLink) bool { return !l.Gone && !l.Absent() && l.Handshake.Store == 0 }):
		r.round = due.Latest(r.round, due.Earliest(r.turns(r.said, r.rounds()), now.Add(r.c.Timing.AckDelay)))
	default:
		r.brought, r.round = false, now
	}
}

// rounds are three rounds, in turns: nothing waits longer for the greeting.
func (r *GroupGreeting) rounds() int { return 3 * (len(r.c.order) + 1) }

// turns is the time after so many turns.
func (r *GroupGreeting) turns(now time.Time, n int) time.Time {
	return now.Add(time.Duration(n) * r.turn())
}

// prompt is after how long a HELLO without an answer goes again for the first time. A peer that comes to the channel answers all members
// at once, in its next greeting.
func (r *GroupGreeting) prompt(l *peerLink) time.Duration {
	if !r.On() || !l.Absent() {
		return r.c.Timing.Prompt
	}
	return r.c.Timing.Prompt + time.Duration(r.rounds())*r.turn()
}

// plan puts the next greeting off for so many turns, but not for ever.
func (r *GroupGreeting) plan(now time.Time, turns int) {
	if r.hold.Before(now) {
		r.most = r.turns(now, r.rounds())
	}
	r.hold = due.Latest(r.hold, due.Earliest(r.most, r.turns(now, turns)))
}

// due is when a greeting goes; zero: not by itself.
func (r *GroupGreeting) due() (at time.Time) {
	if !r.On() {
		return at
	}
	for _, l := range r.c.order {
		if r.greets(l) {
			at = due.Earliest(at, l.Handshake.Due)
		}
	}
	if at.IsZero() {
		return at
	}
	at = due.Latest(due.Latest(at, r.hold), r.c.Air.Free)
	if !r.planned {
		at = due.Latest(at, r.round)
	}
	return at
}

// pump greets when it is time.
func (r *GroupGreeting) pump(now time.Time) {
	if !due.Reached(now, r.due()) {
		return
	}
	starts := !r.begun
	if starts {
		r.round = r.turns(now, quietTurns+len(r.c.order)+1)
	}
	brief := (r.brief || r.c.TakesOver) && !starts
	r.begun, r.planned, r.brief, r.said = true, false, false, now
	// The first that does not know this node stands for all.
	r.brought = slices.ContainsFunc(r.c.order, func(l *peerLink) bool { return introduce(r.c, now, l) })
	r.answered(now)
	for _, f := range r.compose(now, starts, brief) {
		body := frame.Append(nil, f, true)
		data, ok := r.c.Services.Seal(seal.Group, true, body)
		if !ok {
			r.hold = now.Add(time.Minute)
			return
		}
		r.c.Ledger.Head(mail.Sent, true)
		r.c.Ledger.Add(mail.Sent, mail.Key, len(data)-seal.OverheadLong)
		r.c.Air.Sent(now, r.c.Profile, len(data), r.c.Air.Gauge.Pace(r.c.Profile.Up.RateBps))
		r.c.Services.Send(r.addr, data)
	}
	wait := r.c.Timing.Prompt + retryTurns*r.turn() // more, while others greet
	for _, l := range r.c.order {
		if !r.apart[l.ID] && (l.Handshake.Owed || !l.Handshake.Unmet || !l.Absent()) {
			l.Handshake.Said(now, wait, wait>>min(max(l.Handshake.Tries()-1, 0), 2)) // it grows after the fourth
		}
	}
	if r.Greeted != nil {
		r.Greeted(now)
	}
}

// common has the fields of a HELLO that a greeting says to all.
type common struct {
	forgot uint8
	first  [frame.Queues]uint16
	digest uint32
}

func commonOf(h frame.Hello) common { return common{h.Forgot, h.First, h.Digest} }

// compose makes the greeting: it tells all peers what HELLOs would tell most of them. A peer that a HELLO would tell something else is
// apart. A brief greeting leaves out peers that it would tell nothing new.
func (r *GroupGreeting) compose(now time.Time, starts, brief bool) []frame.Greeting {
	hellos := make([]frame.Hello, len(r.c.order))
	votes := map[common]int{}
	for i, l := range r.c.order {
		h := r.c.Services.Hello(now, l.Peer)
		hellos[i] = h
		if h.Digest != 0 {
			votes[commonOf(h)]++
		}
	}
	said := commonOf(hellos[0])
	for i := range hellos { // in the order of the peers: the first of those with most
		if c := commonOf(hellos[i]); votes[c] > votes[said] {
			said = c
		}
	}
	head := frame.Greeting{Starts: starts, Store: hellos[0].Store, Model: hellos[0].Model, Stream: hellos[0].Stream, Forgot: said.forgot, Ahead: hellos[0].Ahead, First: said.first, Digest: said.digest, Roster: hellos[0].Roster, Mark: hellos[0].Mark, Corpus: hellos[0].Corpus}
	var members []frame.Member
	for i, l := range r.c.order {
		h := hellos[i]
		blank := h.Digest == 0 && said.digest != 0
		if blank {
			h.Digest = said.digest
		}
		apart := l.Addr.IsValid() && (commonOf(h) != said || h.End || h.Ended || h.Void || len(h.Starts) > 0 || r.c.Behind(l.ID)) // else no HELLO gets there
		if brief && !apart && l.Handshake.KnowsUs && !l.Handshake.Owed && r.named[l.ID] == h.HeardIncarnation {
			continue
		}
		r.apart[l.ID], r.named[l.ID] = apart, h.HeardIncarnation
		switch {
		case apart:
			members = append(members, frame.Member{ID: l.ID, Apart: true})
		case h.HeardIncarnation != 0 || h.Stream != head.Stream || blank || brief:
			members = append(members, frame.Member{ID: l.ID, HeardIncarnation: h.HeardIncarnation, Stream: h.Stream, HeardStream: h.HeardStream, Seen: h.Seen, Asks: !l.Handshake.KnowsUs, Blank: blank})
		}
	}
	if starts && r.c.TakesOver {
		members = append(members, frame.Member{ID: r.c.Self, Apart: true})
	}
	slices.SortFunc(members, func(a, b frame.Member) int { return cmp.Compare(a.ID, b.ID) })
	return r.split(head, members, brief)
}

// split makes one greeting of as many members as fit a datagram, or several.
func (r *GroupGreeting) split(head frame.Greeting, members []frame.Member, more bool) (list []frame.Greeting) {
	room := r.c.Profile.Filled() - seal.OverheadLong - r.c.Proofs
	for {
		f := head
		n := min(len(members), frame.MaxMembers)
		for f.Members = members[:n]; n > 1 && size(f) > room; f.Members = members[:n] {
			n--
		}
		members = members[n:]
		f.More = more || len(list) > 0 || len(members) > 0
		list = append(list, f)
		if len(members) == 0 {
			return list
		}
	}
}
