package entropy

import (
	"math"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/link/hearing"
)

// PortID names a port.
type PortID uint32

// Port is a way to neighbours.
type Port struct {
	ID      PortID
	Channel int           // ports of one channel join nodes of which most reach each other
	Shared  bool          // one transmission reaches all Peers; else there is one
	Peers   []uint16      // that can be reached now, in order
	Down    bool          // nobody there answers: only digests go
	Hub     bool          // the neighbour passes on what it gets to all others of the channel
	Spreads bool          // this node does
	Trip    time.Duration // the longest round trip
	Bps     int
}

type port struct {
	Port
	talks map[Tag]*talk
	queue []want
	spent map[uint16]*spending
	blame map[uint16]*blame
}

// Kinds of wants, by what is to be said.
const (
	sayItem = iota
	sayDigest
	sayFull
	sayAsk
)

// want is something that waits for the air of a port.
type want struct {
	kind    int
	tag     Tag
	to      uint16 // 0: to all
	at      time.Time
	name    Name   // sayItem
	repair  bool   // sayItem: it was asked for
	lacking uint16 // sayItem: it was not asked for; this neighbour lacked it when that said what it holds
	spans   []span
	parting bool // sayDigest: this node is not in the group any more
	fresh   bool // sayDigest: it wants an answer
	wide    bool // sayFull
}

// Say is a frame to send. It is a digest where Body is nil.
type Say struct {
	To      uint16 // 0: to all of the port
	Body    []byte
	Tag     Tag
	Hash    uint16 // 0: the node is not in the group any more
	Fresh   bool   // it wants to know who else is
	Repairs int    // octets of Body that repair
}

func (e *Engine) port(id PortID) *port {
	for _, p := range e.ports {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Ports says which ports there are now.
func (e *Engine) Ports(now time.Time, list []Port) {
	var ports []*port
	for _, each := range list {
		p := e.port(each.ID)
		if p == nil {
			p = &port{Port: Port{ID: each.ID}, talks: map[Tag]*talk{}, spent: map[uint16]*spending{}, blame: map[uint16]*blame{}}
		}
		more := p.Down && !each.Down || slices.ContainsFunc(each.Peers, func(id uint16) bool { return !slices.Contains(p.Peers, id) })
		p.Port = each
		for _, tag := range e.tags {
			if t := p.talk(e, now, tag); more { // a neighbour that was away may lack something, or have it
				t.again(now, e.jitter(p.Trip))
				t.interval = p.base()
			}
		}
		ports = append(ports, p)
	}
	e.ports = ports
}

// Wake says that this node may speak again: it says one digest, and what it has to say of its own.
func (e *Engine) Wake(now time.Time) {
	for _, p := range e.ports {
		p.queue = slices.DeleteFunc(p.queue, func(w want) bool { return (w.kind != sayItem || w.repair) && !w.parting })
		for _, tag := range e.tags {
			t := p.talk(e, now, tag)
			t.at, t.same = now, false
		}
	}
}

// Agreed is when a neighbour last said that it holds nothing of a group which this node lacks; zero: never.
func (e *Engine) Agreed(tag Tag) (at time.Time) {
	if g := e.groups[tag]; g != nil {
		at = g.agreed
	}
	return at
}

// Check has a neighbour on each channel say whether it holds something of a group that this node lacks. Agreed tells if it does not.
func (e *Engine) Check(now time.Time, tag Tag) {
	asked := map[int]bool{}
	for _, p := range e.ports {
		in := slices.ContainsFunc(p.Peers, func(id uint16) bool { return e.members[id][tag] })
		if p.Down || !in || asked[p.Channel] || !p.Hub && e.hub(p.Channel, tag) {
			continue
		}
		asked[p.Channel] = true
		i := slices.IndexFunc(p.queue, func(w want) bool { return w.kind == sayDigest && w.tag == tag })
		if i >= 0 {
			p.queue[i].fresh = true
		} else {
			p.put(want{kind: sayDigest, tag: tag, at: now, fresh: true})
		}
	}
}

// talk is the digests of one group on one port.
type talk struct {
	at       time.Time // when the next is due
	interval time.Duration
	same     bool      // another has said since the last what this node would say
	said     time.Time // when this node said a digest, and told all that it holds
	told     time.Time
	idle     int // differences in a row that moved nothing
}

// mostInterval is between two digests while all agree.
const mostInterval = time.Hour

// base is the least between two digests of a group.
func (p *port) base() time.Duration { return max(30*time.Second, 4*p.Trip) }

func (p *port) talk(e *Engine, now time.Time, tag Tag) *talk {
	t := p.talks[tag]
	if t == nil {
		t = &talk{at: now.Add(e.jitter(p.Trip)), interval: p.base()}
		p.talks[tag] = t
	}
	return t
}

func (t *talk) again(now time.Time, after time.Duration) {
	t.at = due.Earliest(t.at, now.Add(after))
}

// changed: something of the group came.
func (p *port) changed(e *Engine, now time.Time, tag Tag) {
	t := p.talk(e, now, tag)
	t.interval, t.idle, t.same = p.base(), 0, false
	t.again(now, t.interval+e.jitter(p.spread(t.interval/4)))
}

// slower is the factor by which the time between two digests grows while all agree: where many nodes would each notice a difference, one asks
// less often.
func (p *port) slower() time.Duration {
	if p.Shared && len(p.Peers) > fewPeers {
		return 4
	}
	return 2
}

// spread is the part by chance of a time on a channel: half a round trip for each node that may say the same then, so that one is heard before
// the next speaks.
func (p *port) spread(part time.Duration) time.Duration {
	if p.Shared {
		return max(part, time.Duration(len(p.Peers))*p.Trip/2)
	}
	return part
}

func (p *port) forget(tag Tag) {
	delete(p.talks, tag)
	p.queue = slices.DeleteFunc(p.queue, func(w want) bool { return w.tag == tag })
}

// jitter is a part of d by chance.
func (e *Engine) jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(e.cfg.Rand.Int64N(int64(d)))
}

// put lets something wait for the air; where there is no room it is left to the digests.
func (p *port) put(w want) {
	if len(p.queue) < mostQueue {
		p.queue = append(p.queue, w)
	}
}

// waits says whether something of a kind waits for a group.
func (p *port) waits(kind int, tag Tag) bool {
	return slices.ContainsFunc(p.queue, func(w want) bool { return w.kind == kind && w.tag == tag })
}

// Speakers is how many gateways of a channel carry a message into it as a rule: the most stable one, and where that one is not heard, the next.
const Speakers = 2

// mostTurns bounds how many round trips a gateway lets those before it carry a message.
const mostTurns = 8

// turn is when this node passes a message on over a port, where others may do so too: the more stable nodes go first, and a node that hears one
// of them meanwhile keeps still. So a gateway behind the Speakers passes on only where both are gone or were not heard.
func (e *Engine) turn(now time.Time, p *port, may func(id uint16) bool) time.Time {
	ahead := min(e.cfg.Hearing.Ahead(now, p.Channel, may), mostTurns)
	return now.Add(time.Duration(ahead)*p.Trip + e.jitter(p.Trip/4))
}

// pass lets a message that is new here go over every port where somebody may lack it. from is the one that it came over, said by by; nil:
// it is of this node.
func (e *Engine) pass(now time.Time, from *port, it Item, by uint16) {
	if from != nil && it.Hops == 0 {
		return
	}
	in := func(id uint16) bool { return e.members[id][it.Tag] && id != by && id != it.Origin }
	for _, p := range e.ports {
		at := now
		if from != nil && from.Channel != p.Channel && !p.Spreads {
			at = e.turn(now, p, func(id uint16) bool { return in(id) && e.cfg.Hearing.On(from.Channel, id) })
		}
		switch {
		case p == from && p.Shared && !p.Down:
			e.over(now, p, it, by, in)
		case p == from, !e.listens(p, it):
		case p.Shared:
			p.put(want{kind: sayItem, tag: it.Tag, name: it.Name, at: at})
		case !p.Hub && e.hub(p.Channel, it.Tag), from != nil && from.Channel == p.Channel && !p.Spreads:
		default:
			p.put(want{kind: sayItem, tag: it.Tag, name: it.Name, at: at, to: p.Peers[0]})
		}
	}
}

// over lets a message go again over the channel on which it was said, for a neighbour that does not hear the node that said it. It is charged
// to that neighbour.
func (e *Engine) over(now time.Time, p *port, it Item, by uint16, in func(id uint16) bool) {
	h := e.cfg.Hearing
	for _, id := range h.Uncovered(now, p.Channel, by, p.Peers) {
		if !in(id) || !e.afford(now, p, id, len(it.Body)+16) {
			continue
		}
		at := e.turn(now, p, func(other uint16) bool {
			return in(other) && other != id && h.Hears(now, p.Channel, other, by) != hearing.No && h.Hears(now, p.Channel, id, other) == hearing.Yes
		})
		p.put(want{kind: sayItem, tag: it.Tag, name: it.Name, at: at})
		return
	}
}

// covers says that nobody in a group who hears this node on a port misses what a neighbour says there: the neighbour speaks for both.
func (e *Engine) covers(now time.Time, p *port, tag Tag, by uint16) bool {
	return !slices.ContainsFunc(e.cfg.Hearing.Uncovered(now, p.Channel, by, p.Peers), func(id uint16) bool { return e.members[id][tag] })
}

// hub says that a neighbour on a channel which can be reached and is in a group passes on what is said there.
func (e *Engine) hub(channel int, tag Tag) bool {
	return slices.ContainsFunc(e.ports, func(p *port) bool {
		return p.Hub && !p.Down && p.Channel == channel && len(p.Peers) > 0 && e.members[p.Peers[0]][tag]
	})
}

// listens says that somebody behind a port is in the group of a message, other than its origin.
func (e *Engine) listens(p *port, it Item) bool {
	return !p.Down && slices.ContainsFunc(p.Peers, func(id uint16) bool { return e.members[id][it.Tag] && id != it.Origin })
}

// spoken: a neighbour has said a message on the port, so the nodes that hear this neighbour have it. On a channel of links to one neighbour
// each, a neighbour that brings a message gives it to all.
func (e *Engine) spoken(now time.Time, p *port, tag Tag, n Name, from uint16) {
	covers := !p.Shared || e.covers(now, p, tag, from)
	for _, q := range e.ports {
		if q != p && (q.Shared || q.Spreads || q.Channel != p.Channel) {
			continue
		}
		q.queue = slices.DeleteFunc(q.queue, func(w want) bool {
			switch {
			case w.kind != sayItem || w.tag != tag || w.name != n:
				return false
			case q != p:
				return !w.repair
			case !p.Shared, w.to == from:
				return true
			}
			return covers && (!w.repair || w.to == 0)
		})
	}
}

// Step lets time pass.
func (e *Engine) Step(now time.Time) {
	e.expire(now)
	for _, p := range e.ports {
		for _, tag := range e.tags {
			t := p.talk(e, now, tag)
			if !due.Reached(now, t.at) {
				continue
			}
			if !t.same && !p.waits(sayDigest, tag) && (p.Hub || !e.hub(p.Channel, tag)) {
				p.put(want{kind: sayDigest, tag: tag, at: now.Add(p.Trip / 2)})
			}
			t.same, t.at = false, now.Add(t.interval+e.jitter(p.spread(t.interval/8)))
			t.interval = min(p.slower()*t.interval, mostInterval)
		}
	}
	e.askAgain(now)
}

// Due is when Step has something to do; zero: never.
func (e *Engine) Due() (at time.Time) {
	at = e.expires
	for _, p := range e.ports {
		for _, t := range p.talks {
			at = due.Earliest(at, t.at)
		}
	}
	for _, g := range e.groups {
		for _, a := range g.asks {
			at = due.Earliest(at, a.at)
		}
	}
	return at
}

// Waiting is when something may go over a port; zero: nothing waits.
func (e *Engine) Waiting(id PortID) (at time.Time) {
	if p := e.port(id); p != nil {
		for _, w := range p.queue {
			at = due.Earliest(at, w.at)
		}
	}
	return at
}

// Ride is a digest that goes with a datagram to all of a port, which goes anyway: where all of these are in the group.
func (e *Engine) Ride(now time.Time, id PortID) (s Say, ok bool) {
	p := e.port(id)
	if p == nil {
		return s, false
	}
	i := slices.IndexFunc(p.queue, func(w want) bool {
		return w.kind == sayDigest && !w.parting && !slices.ContainsFunc(p.Peers, func(id uint16) bool { return !e.members[id][w.tag] })
	})
	if i < 0 {
		return s, false
	}
	w := p.queue[i]
	p.queue = slices.Delete(p.queue, i, i+1)
	return e.digest(now, p, w), true
}

// Along is a parting that goes with something else to all of a port, or to the one there. Other digests do not: a neighbour
// that hears one before the message that it counts would take the two for different.
func (e *Engine) Along(now time.Time, id PortID) (s Say, ok bool) {
	p := e.port(id)
	i := slices.IndexFunc(p.queue, func(w want) bool { return w.parting })
	if i < 0 {
		return s, false
	}
	w := p.queue[i]
	p.queue = slices.Delete(p.queue, i, i+1)
	return e.digest(now, p, w), true
}

func (e *Engine) digest(now time.Time, p *port, w want) Say {
	s := Say{To: w.to, Tag: w.tag}
	if g := e.groups[w.tag]; g != nil && !w.parting {
		p.talk(e, now, w.tag).said = now
		s.Hash = g.digest(e.cfg.Self)
		s.Fresh = w.fresh || !slices.ContainsFunc(p.Peers, func(id uint16) bool { return e.members[id][w.tag] })
	}
	if !p.Shared && len(p.Peers) > 0 {
		s.To = p.Peers[0]
	}
	return s
}

// Next is what goes over a port now, of at most so many octets; false: nothing.
func (e *Engine) Next(now time.Time, id PortID, room int) (s Say, ok bool) {
	p := e.port(id)
	if p == nil || len(p.Peers) == 0 {
		return s, false
	}
	next := -1
	for i, w := range p.queue {
		if w.at.After(now) {
			continue
		}
		if next < 0 || p.queue[next].parting || w.kind != sayItem && !w.parting && p.queue[next].kind == sayItem { // a parting goes along
			next = i
		}
	}
	if next < 0 {
		return s, false
	}
	for i := range p.queue {
		if !p.Shared {
			p.queue[i].to = p.Peers[0]
		}
	}
	first := p.queue[next]
	if first.kind == sayDigest {
		p.queue = slices.Delete(p.queue, next, next+1)
		return e.digest(now, p, first), true
	}
	s.To = first.to
	var left []want
	for i, w := range p.queue {
		if i < next || w.kind == sayDigest || w.to != first.to || w.at.After(now) {
			left = append(left, w)
			continue
		}
		part := e.say(now, p, &w, room-len(s.Body))
		if part == nil && w.kind != sayItem || part != nil && len(s.Body)+len(part) > room {
			if len(s.Body) > 0 { // it goes next
				left = append(left, w)
			}
			continue
		}
		s.Body = append(s.Body, part...)
		if w.repair {
			s.Repairs += len(part)
		}
	}
	p.queue = left
	return s, len(s.Body) > 0
}

// say writes what a want says, of at most so many octets; nil: nothing is left of it.
func (e *Engine) say(now time.Time, p *port, w *want, room int) []byte {
	g := e.groups[w.tag]
	if g == nil {
		return nil
	}
	switch w.kind {
	case sayItem:
		if o := g.origins[w.name.Origin]; o != nil && o.items[w.name.Number] != nil {
			return appendItem(nil, now, o.items[w.name.Number])
		}
	case sayAsk:
		if spans := g.wanted(w.spans); len(spans) > 0 {
			return (&asked{tag: w.tag, spans: spans}).append(nil)
		}
	case sayFull:
		p.talk(e, now, w.tag).told = now
		return g.full(w.wide, room)
	}
	return nil
}

// wanted are spans without what has come since they were to be asked for.
func (g *group) wanted(list []span) (spans []span) {
	for _, s := range list {
		joins := false
		for i := range s.count {
			n := s.first + uint16(i)
			waits := g.asks[Name{s.origin, uint64(n)}] != nil
			switch {
			case waits && joins:
				spans[len(spans)-1].count++
			case waits:
				spans = append(spans, span{s.origin, n, 1})
			}
			joins = waits
		}
	}
	return spans
}

// full is what is held of a group, as many origins as there is room for. Which these are changes from time to time.
func (g *group) full(wide bool, room int) []byte {
	f := full{tag: g.tag, last: math.MaxUint16, wide: wide}
	ids := slices.DeleteFunc(slices.Clone(g.ids), func(id uint16) bool { return len(g.origins[id].items) == 0 })
	at := 0
	if len(ids) > 0 {
		at = g.turn % len(ids)
	}
	octets := 16
	for i := at; i < len(ids); i++ {
		n := g.origins[ids[i]].entry(ids[i])
		size := len(n.append(nil, 0, wide))
		if octets+size > room {
			f.last = ids[i] - 1
			break
		}
		octets += size
		f.entries = append(f.entries, n)
	}
	if at > 0 {
		f.first = ids[at-1] + 1
	}
	if g.turn = at + len(f.entries); g.turn >= len(ids) {
		g.turn = 0
	}
	return f.append(nil)
}

// entry is what is held of an origin.
func (o *origin) entry(id uint16) entry {
	n := entry{origin: id, top: o.held()}
	low := o.lowest()
	for n.run < back && o.items[n.top-n.run] != nil {
		n.run++
	}
	for at := uint64(1); n.top >= n.run+at && n.top-n.run-at >= low && at < back; at++ {
		i := at - 1
		for uint64(len(n.bits)*8) <= i {
			n.bits = append(n.bits, 0)
		}
		if o.items[n.top-n.run-at] != nil {
			n.bits[i/8] |= 1 << (i % 8)
		}
	}
	lacks := func(number uint64) bool { return !o.received(number) }
	if len(n.bits) > 0 { // zeros say that all between is lacked; where nothing is, less is said
		for at := n.top - n.run; at >= low && !n.below; at-- {
			n.below = lacks(at)
		}
		if !n.below {
			n.below = o.gapBelow(low)
		}
		return n
	}
	n.below = o.gapBelow(low)
	return n
}

// gapBelow says that some number before that has not been received.
func (o *origin) gapBelow(low uint64) bool {
	for at := low - 1; at > 0 && at+back > o.top; at-- {
		if !o.received(at) {
			return true
		}
	}
	return false
}
