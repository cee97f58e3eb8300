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
	Channel int           // ports of one channel join nodes most of which reach each other
	Shared  bool          // one transmission reaches all Peers; else there is one peer
	Peers   []uint16      // that can be reached now, in order
	Down    bool          // no neighbour there answers: only digests go
	Hub     bool          // the neighbour passes on received messages to all others of the channel
	Spreads bool          // this node does so
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

// Kinds of wants, by the frame to be sent.
const (
	sayItem = iota
	sayDigest
	sayFull
	sayAsk
	sayParity
)

// want is a frame that waits for the air of a port.
type want struct {
	kind    int
	tag     Tag
	to      uint16 // 0: to all
	at      time.Time
	name    Name   // sayItem
	repair  bool   // sayItem: the message was requested, or a neighbour lacks it
	lacking uint16 // sayItem: not requested; the list of this neighbour lacked it. sayFull: the neighbour that it answers; 0: several
	hash    uint16 // sayFull: of the digest that it answers; 0: none
	spans   []span
	parting bool   // sayDigest: this node is not in the group any more
	fresh   bool   // sayDigest: it asks for an answer
	wide    bool   // sayFull
	block   *block // sayParity
}

// Say is a frame to send. It is a digest where Body is nil.
type Say struct {
	To      uint16 // 0: to all of the port
	Body    []byte
	Tag     Tag
	Hash    uint16 // 0: the node is not in the group any more
	Fresh   bool   // it asks who else is in the group
	Repairs int    // octets of Body that are repair
	// About divides the octets of Body by Item.About; those of no item count under 0.
	About map[uint8]int
}

func (e *Engine) port(id PortID) *port {
	for _, p := range e.ports {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Ports sets the present ports.
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
			if t := p.talk(e, now, tag); more { // a neighbour that was away may lack messages, or have others
				t.again(now, e.jitter(p.Trip))
				t.interval = p.base()
			}
		}
		ports = append(ports, p)
	}
	e.ports = ports
}

// Wake says that this node may speak again: it sends one digest for each group and port, and its own messages.
func (e *Engine) Wake(now time.Time) {
	for _, p := range e.ports {
		p.queue = slices.DeleteFunc(p.queue, func(w want) bool { return (w.kind != sayItem || w.repair) && !w.parting })
		for _, tag := range e.tags {
			t := p.talk(e, now, tag)
			t.at, t.same, t.block = now, false, nil
		}
	}
}

// Agreed is when a neighbour last said that it holds nothing of a group which this node lacks; zero: never, or another has shown since that
// it holds something else, and this is not settled.
func (e *Engine) Agreed(tag Tag) (at time.Time) {
	g := e.groups[tag]
	if g == nil {
		return at
	}
	for id, d := range g.doubts {
		if d.hash == 0 || d.hash != g.digest(id) {
			return at
		}
	}
	return g.agreed
}

// Check makes a neighbour on each channel say whether it holds messages of a group that this node lacks. If it holds none,
// Agreed shows it.
func (e *Engine) Check(now time.Time, tag Tag) {
	asked := map[int]bool{}
	for _, p := range e.ports {
		in := slices.ContainsFunc(p.Peers, func(id uint16) bool { return e.members[id][tag] })
		if p.Down || !in || asked[p.Channel] || !p.Hub && e.hub(p.Channel, tag) {
			continue
		}
		asked[p.Channel] = true
		if w := p.waiting(sayDigest, tag); w != nil {
			w.fresh = true
		} else {
			p.put(want{kind: sayDigest, tag: tag, at: now, fresh: true})
		}
	}
}

// talk is the state of the digests of one group on one port.
type talk struct {
	at       time.Time // when the next is due
	last     time.Time // when the last was
	interval time.Duration
	same     bool      // since the last digest, another node has sent what this node would send
	said     time.Time // when this node sent a digest, and the list of all that it holds
	told     time.Time
	idle     int // differences in a row that brought no message
	coding
}

// mostInterval is the longest time between two digests, while all agree.
const mostInterval = time.Hour

// base is the shortest time between two digests of a group.
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

// changed notes that a message of the group has come.
func (p *port) changed(e *Engine, now time.Time, tag Tag) {
	t := p.talk(e, now, tag)
	t.interval, t.idle, t.same = p.base(), 0, false
	if p.crowded() && e.groups[tag].caughtUp() { // the others have it already
		t.interval *= 4
		t.at = now.Add(t.interval)
	}
	t.again(now, t.interval+e.jitter(p.spread(t.interval/4)))
}

// next sets the time of the next digest, after one that was due.
func (p *port) next(e *Engine, now time.Time, t *talk) {
	t.same, t.last, t.at = false, now, now.Add(t.interval+e.jitter(p.spread(t.interval/8)))
	t.interval = min(p.slower()*t.interval, mostInterval)
}

// crowded says that many nodes would notice the same difference.
func (p *port) crowded() bool { return p.Shared && len(p.Peers) > fewPeers }

// slower is the factor by which the time between two digests grows while all agree. It is larger where many nodes would
// notice the same difference.
func (p *port) slower() time.Duration {
	if p.crowded() {
		return 4
	}
	return 2
}

// spread is the random part of a time on a channel. It has half a round trip for each node that may send the same then, so
// that one is heard before the next speaks.
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

// jitter is a random part of d.
func (e *Engine) jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(e.cfg.Rand.Int64N(int64(d)))
}

// put queues a want for the air; if the queue is full, the digests have to bring it about.
func (p *port) put(w want) {
	if len(p.queue) < mostQueue {
		p.queue = append(p.queue, w)
	}
}

// waiting is the want of a kind that waits for a group; nil: none does.
func (p *port) waiting(kind int, tag Tag) *want {
	i := slices.IndexFunc(p.queue, func(w want) bool { return w.kind == kind && w.tag == tag })
	if i < 0 {
		return nil
	}
	return &p.queue[i]
}

// drop takes the wants of a kind for a group out of the queue.
func (p *port) drop(kind int, tag Tag) {
	p.queue = slices.DeleteFunc(p.queue, func(w want) bool { return w.kind == kind && w.tag == tag })
}

// Speakers is how many gateways of a channel usually carry a message into it: the most stable one, and the next, where the
// first is not heard.
const Speakers = 2

// mostTurns bounds the round trips that a gateway leaves to those before it.
const mostTurns = 8

// turn is when this node passes a message on over a port where others may do so too. The more stable nodes go first, and a
// node that hears one of them meanwhile stays quiet. So a gateway after the Speakers passes it on only where both are gone
// or were not heard.
func (e *Engine) turn(now time.Time, p *port, may func(id uint16) bool) time.Time {
	ahead := min(e.cfg.Hearing.Ahead(now, p.Channel, may), mostTurns)
	return now.Add(time.Duration(ahead)*p.Trip + e.jitter(p.Trip/4))
}

// pass queues a message that is new here on every port where a neighbour may lack it. from is the port that it came over,
// by the neighbour that sent it there; from nil: it is a message of this node.
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

// over repeats a message on the channel where it was sent, for a neighbour that does not hear the node that sent it. The
// repeat is charged to that neighbour.
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

// covers says that every member of a group that hears this node on a port also hears a neighbour there: the neighbour
// speaks for both.
func (e *Engine) covers(now time.Time, p *port, tag Tag, by uint16) bool {
	return !slices.ContainsFunc(e.cfg.Hearing.Uncovered(now, p.Channel, by, p.Peers), func(id uint16) bool { return e.members[id][tag] })
}

// hub says that some neighbour on a channel that can be reached and is in a group passes on messages to the others there.
func (e *Engine) hub(channel int, tag Tag) bool {
	return slices.ContainsFunc(e.ports, func(p *port) bool {
		return p.Hub && !p.Down && p.Channel == channel && len(p.Peers) > 0 && e.members[p.Peers[0]][tag]
	})
}

// listens says that a neighbour on a port is in the group of a message, and is not its origin.
func (e *Engine) listens(p *port, it Item) bool {
	return !p.Down && slices.ContainsFunc(p.Peers, func(id uint16) bool { return e.members[id][it.Tag] && id != it.Origin })
}

// spoken notes that a neighbour has sent a message on the port, so the nodes that hear the neighbour have it. On a channel
// of links to one neighbour each, a neighbour that brings a message gives it to all.
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
			p.close(now, t)
			if !due.Reached(now, t.at) {
				continue
			}
			if !t.same && p.waiting(sayDigest, tag) == nil && p.waiting(sayFull, tag) == nil && (p.Hub || !e.hub(p.Channel, tag)) {
				p.put(want{kind: sayDigest, tag: tag, at: now.Add(p.Trip / 2)})
			}
			p.next(e, now, t)
		}
	}
	e.askAgain(now)
}

// Due is when Step has work; zero: never.
func (e *Engine) Due() (at time.Time) {
	at = e.expires
	for _, p := range e.ports {
		for _, t := range p.talks {
			at = due.Earliest(at, t.at)
			if t.block != nil {
				at = due.Earliest(at, t.block.until)
			}
		}
	}
	for _, g := range e.groups {
		for _, a := range g.asks {
			at = due.Earliest(at, a.at)
		}
	}
	return at
}

// Waiting is when a frame may go over a port; zero: none waits.
func (e *Engine) Waiting(id PortID) (at time.Time) {
	if p := e.port(id); p != nil {
		for _, w := range p.queue {
			at = due.Earliest(at, w.at)
		}
	}
	return at
}

// Ride is a digest that goes along with a datagram to all of a port, if all of them are in the group.
func (e *Engine) Ride(now time.Time, id PortID) (s Say, ok bool) {
	p := e.port(id)
	if p == nil {
		return s, false
	}
	return e.takeDigest(now, p, slices.IndexFunc(p.queue, func(w want) bool {
		return w.kind == sayDigest && !w.parting && !slices.ContainsFunc(p.Peers, func(id uint16) bool { return !e.members[id][w.tag] })
	}))
}

// Along is a parting that goes along with another datagram to all of a port, or to the one neighbour there. Other digests
// do not: a neighbour that reads a digest before the message that it counts would see a difference.
func (e *Engine) Along(now time.Time, id PortID) (s Say, ok bool) {
	p := e.port(id)
	return e.takeDigest(now, p, slices.IndexFunc(p.queue, func(w want) bool { return w.parting }))
}

// takeDigest is the digest at a place of the queue, which it takes out; false: the place is negative.
func (e *Engine) takeDigest(now time.Time, p *port, at int) (s Say, ok bool) {
	if at < 0 {
		return s, false
	}
	w := p.queue[at]
	p.queue = slices.Delete(p.queue, at, at+1)
	s.To, s.Tag = w.to, w.tag
	if g := e.groups[w.tag]; g != nil && !w.parting {
		p.talk(e, now, w.tag).said, g.shown = now, now
		s.Hash = g.digest(e.cfg.Self)
		s.Fresh = w.fresh || !slices.ContainsFunc(p.Peers, func(id uint16) bool { return e.members[id][w.tag] })
	}
	if !p.Shared && len(p.Peers) > 0 {
		s.To = p.Peers[0]
	}
	return s, true
}

// Next is the frame that goes over a port now, of at most so many octets; false: none.
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
		if next < 0 || p.queue[next].parting || w.kind != sayItem && !w.parting && p.queue[next].kind == sayItem { // a parting goes along with other frames
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
		return e.takeDigest(now, p, next)
	}
	s.To, s.About = first.to, map[uint8]int{}
	var left []want
	at := 0 // where the last part begins
	for i, w := range p.queue {
		if i < next || w.kind == sayDigest || w.to != first.to || w.at.After(now) {
			left = append(left, w)
			continue
		}
		part := e.say(now, p, &w, room-len(s.Body))
		if part == nil && w.kind != sayItem || part != nil && len(s.Body)+len(part) > room {
			if len(s.Body) > 0 { // it goes in the next frame
				left = append(left, w)
			}
			continue
		}
		if len(part) == 0 { // the message is not held any more
			continue
		}
		about := uint8(0)
		if w.kind == sayItem {
			about = e.groups[w.tag].item(w.name).About
			s.Body = e.place(now, p, &w, s.Body)
		}
		at = len(s.Body)
		s.Body = append(s.Body, part...)
		s.About[about] += len(part)
		if w.repair {
			s.Repairs += len(part)
		}
	}
	p.queue = left
	if len(s.Body) > 0 {
		s.Body = endItem(s.Body, at)
		s.Repairs = min(s.Repairs, len(s.Body))
	}
	return s, len(s.Body) > 0
}

// Count says what the octets of an item count as from now on, if it is held.
func (e *Engine) Count(tag Tag, name Name, about uint8) {
	if it := e.groups[tag].item(name); it != nil {
		it.About = about
	}
}

// say writes the frame part of a want, of at most so many octets; nil: there is nothing left to send.
func (e *Engine) say(now time.Time, p *port, w *want, room int) []byte {
	g := e.groups[w.tag]
	if g == nil {
		return nil
	}
	switch w.kind {
	case sayItem:
		if it := g.item(w.name); it != nil {
			return appendItem(nil, now, it)
		}
	case sayAsk:
		if spans := g.wanted(w.spans); len(spans) > 0 {
			return (&asked{tag: w.tag, spans: spans}).append(nil)
		}
	case sayFull:
		if w.lacking != 0 && w.hash == g.digest(w.lacking) {
			return nil
		}
		p.talk(e, now, w.tag).told = now
		return g.full(w.wide, room)
	case sayParity:
		return w.block.append(nil)
	}
	return nil
}

// wanted returns spans without the messages that have come since they were queued.
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

// full lists the messages held of a group, for as many origins as there is room for. The origins change from call to call.
func (g *group) full(wide bool, room int) []byte {
	f := full{tag: g.tag, last: math.MaxUint16, wide: wide}
	ids := slices.DeleteFunc(slices.Clone(g.ids), func(id uint16) bool { return g.origins[id].held() == 0 })
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

// entry lists the messages held of an origin.
func (o *origin) entry(id uint16) entry {
	n := entry{origin: id, top: o.held()}
	low := o.lowest((*Item).listed)
	for n.run < back && o.items[n.top-n.run].listed() {
		n.run++
	}
	for at := uint64(1); n.top >= n.run+at && n.top-n.run-at >= low && at < back; at++ {
		i := at - 1
		for uint64(len(n.bits)*8) <= i {
			n.bits = append(n.bits, 0)
		}
		if o.items[n.top-n.run-at].listed() {
			n.bits[i/8] |= 1 << (i % 8)
		}
	}
	lacks := func(number uint64) bool { return !o.received(number) }
	if len(n.bits) > 0 { // zero bits say that all messages between are lacked; without bits, below says less
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

// gapBelow says that some number below low has not been received.
func (o *origin) gapBelow(low uint64) bool {
	for at := low - 1; at > 0 && at+back > o.top; at-- {
		if !o.received(at) {
			return true
		}
	}
	return false
}
