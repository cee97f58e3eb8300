package pmul

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// floor says which node has its turn on a shared channel on which several nodes have more to send than one datagram holds.
// Each datagram of a turn says when the turn ends and which node has the next turn (TurnPDU). So meanwhile the other nodes
// hand no datagrams to their radios, which would interrupt the turn, and no node has to find out which is next.
// docs/decisions/shared-channel.md.
type floor struct {
	holder, next NodeID
	end          time.Time            // when the holder's turn ends on the air, as far as is known; zero: no node has ever taken a turn
	until        time.Time            // the latest end of this node's own turn
	over         bool                 // no more datagrams go in this node's own turn
	rest         time.Duration        // for how long only nodes that answer to the turn transmit, if no other takes turns
	sole         bool                 // no other node has sent much for some turns: own turns are longer
	before       NodeID               // the node before which this one transmits, out of turn; 0: in turn
	number       uint8                // of the turn
	told         time.Time            // when this node last sent a TurnPDU with More
	members      map[NodeID]time.Time // the nodes that take turns, and when each last said so
	claims       map[NodeID]claim     // of the others, since this node's last turn
}

const (
	// turnHolds is how many times as long as the profile's turn a planned one may last: no datagrams wait in the other
	// radios, so these do not interrupt it.
	turnHolds = 3
	// slotFrames is how many datagrams of the next node may be lost before that node counts as absent.
	slotFrames = 2
	// memberFor is for how many rounds a node that is not heard still counts as taking turns.
	memberFor = 2
	// soleAfter is the number of turns without much from other nodes after which a node is sole.
	soleAfter = 4
)

func (c *Config) turnMost() time.Duration { return turnHolds * c.Hold }

// afterTurn is the time from the end of a turn until the next node hands over its datagram. By then all have heard the end;
// the radios are still turning around.
func (c *Config) afterTurn() time.Duration { return c.oneWay() + TurnStep }

// slot is how long the others wait for the next node.
func (c *Config) slot() time.Duration {
	return c.Turnaround + slotFrames*c.largeAir() + c.oneWay() + TurnStep
}

// turn is the longest that a turn of this node may last.
func (f *floor) turn(c *Config) time.Duration {
	if f.sole {
		return 2 * c.turnMost()
	}
	return c.turnMost()
}

// left is how long this node's turn may still last, from when its radio is free; 0: it has none.
func (f *floor) left(now time.Time, c *Config, free time.Time) time.Duration {
	if f.holder != c.Self || f.over || !f.taken(now, c) {
		return 0
	}
	return f.until.Sub(due.Latest(free, now))
}

// round is the longest time until all nodes have had a turn.
func (f *floor) round(c *Config) time.Duration {
	return time.Duration(len(f.members)+1) * (c.turnMost() + c.Turnaround)
}

// tidy forgets members that are not heard any more.
func (f *floor) tidy(now time.Time, c *Config) {
	maps.DeleteFunc(f.members, func(_ NodeID, at time.Time) bool { return now.Sub(at) > memberFor*f.round(c) })
}

// taken tells whether a node has the floor, or may take it in its turn.
func (f *floor) taken(now time.Time, c *Config) bool {
	if f.end.IsZero() {
		return false
	}
	if f.next == 0 {
		return f.end.Add(f.rest).After(now)
	}
	return now.Before(f.lapse(c))
}

// lapse is the time from which no node has the floor, because none of those whose turn it was has transmitted.
func (f *floor) lapse(c *Config) time.Time {
	return f.end.Add(c.afterTurn() + time.Duration(len(f.members)+1)*c.slot())
}

// after lists the nodes that take turns, including this one, in the order of their turns, beginning with node.
func (f *floor) after(c *Config, node NodeID) []NodeID {
	ring := append(slices.Collect(maps.Keys(f.members)), c.Self)
	slices.Sort(ring)
	i, _ := slices.BinarySearch(ring, node)
	return append(ring[i:], ring[:i]...)
}

// mayAt is when this node may hand a datagram to its radio.
func (f *floor) mayAt(now time.Time, c *Config) time.Time {
	switch {
	case !f.taken(now, c):
		return now
	case f.holder == c.Self && !f.over:
		return now
	}
	at := f.end.Add(max(f.rest, c.afterTurn()))
	if f.next == 0 || now.Sub(f.told) > f.round(c) || f.told.IsZero() { // the other nodes do not expect this one
		return at
	}
	for rank, id := range f.after(c, f.next) {
		if id == c.Self {
			return at.Add(time.Duration(rank) * c.slot())
		}
	}
	return at
}

// mine tells whether it is this node's turn, even if it has nothing to send.
func (f *floor) mine(now time.Time, c *Config) bool {
	return f.next == c.Self && f.holder != c.Self && f.taken(now, c) && !now.Before(f.end.Add(c.afterTurn()))
}

// holdTurn begins a turn, if this node has none, with a datagram that takes so much air and has left at end. A node out of
// turn, which is not expected or has an urgent message, sends only that one datagram.
func (f *floor) holdTurn(now time.Time, c *Config, end time.Time, air time.Duration) {
	if f.holder == c.Self && !f.over && f.taken(now, c) {
		return
	}
	f.before, f.until = 0, end.Add(f.turn(c)-air)
	if next := f.next; next != 0 && next != c.Self && f.taken(now, c) {
		if now.Before(f.end.Add(c.afterTurn() + c.slot())) {
			f.before, f.until = next, end
		} else { // the next node did not transmit
			delete(f.members, next)
		}
	}
	if f.before == 0 {
		f.number++
	}
	f.spokeUp(now)
	f.holder, f.over = c.Self, false
}

// turnPDU is the TurnPDU for a datagram of this node's own turn. end is when the datagram has left; some: it has messages
// in it; waits is how much air the queue needs after it.
func (f *floor) turnPDU(now time.Time, c *Config, end time.Time, some bool, waits time.Duration, silent func(NodeID) bool) TurnPDU {
	left := min(waits, f.until.Sub(end))
	if left < c.largeAir() && left < waits || left <= 0 {
		left = 0
	}
	p := TurnPDU{Source: c.Self, Number: f.number, Left: left, Next: f.before, More: some || waits > 0}
	for _, id := range f.after(c, c.Self)[1:] {
		if p.Next == 0 && !silent(id) {
			p.Next = id
		}
	}
	f.end, f.next, f.over, f.told, f.rest = end.Add(left), p.Next, left == 0, now, 0
	if f.over && f.next == 0 && waits > 0 {
		f.rest = c.afterTurn() + c.Turnaround + c.ackAir() + c.oneWay() + c.spread(1)
	}
	if !p.More {
		f.told = time.Time{}
	}
	return p
}

// heard takes another node's TurnPDU, in a datagram that ended on the air at end.
func (f *floor) heard(now time.Time, c *Config, by NodeID, p TurnPDU, end time.Time) {
	if f.members == nil {
		f.members = map[NodeID]time.Time{}
	}
	f.tidy(now, c)
	if p.More {
		f.members[by] = now
	} else {
		delete(f.members, by)
	}
	switch ahead := int8(p.Number - f.number); {
	case !f.taken(now, c) || ahead > 0: // this node has not heard the TurnPDU of the last holder
	case ahead < 0, by != f.holder && (by > f.holder || p.Left == 0):
		return // its radio has held the datagram back, or it transmits between, or it gives way to another node that took the turn as well
	}
	f.holder, f.next, f.number, f.over, f.rest = by, p.Next, p.Number, true, 0
	f.end = end.Add(p.Left)
}

// spoke notes a datagram of another node, which may put off the end of the turn; again: no node has transmitted since that
// node's last datagram.
func (f *floor) spoke(c *Config, by NodeID, end time.Time, air time.Duration, again bool) {
	switch {
	case f.end.IsZero():
	case f.holder == c.Self && f.over && f.next == 0 && end.After(f.until): // no node waits for its end, and the other may talk for long
	case by == f.holder:
		f.end = due.Latest(f.end, end)
	case f.end.After(end.Add(-air)) || f.next != 0 && by != f.next && end.Before(f.lapse(c)):
		if !again {
			air += 2 * c.Turnaround
		}
		f.end = f.end.Add(air)
	}
}

// shared says whether other nodes take turns too.
func (f *floor) shared() bool { return len(f.members) > 0 }

// inTurn tells whether the queue goes in turns: a queue of whole messages does, if they are not urgent.
func (q queue) inTurn(c *Config) bool {
	return c.Hears && (len(q) == 0 || q[0].urgency() == 0 && (q[0].total() == 1 || q[0].batch) && !q.amidLong())
}

// waits is how much air the queue needs, up to somewhat more than limit.
func (q queue) waits(c *Config, limit time.Duration) (air time.Duration) {
	room := 0
	for _, m := range q {
		if m.batch {
			air, room = air+time.Duration(len(m.numbers)+len(m.shards))*c.largeAir(), 0
			continue
		}
		n := len(m.fragments[0]) + addressHeader + 2*min(len(m.dests), few) // a longer list, as a set, takes about as much
		if n > room {
			air, room = air+c.air(0), c.DatagramOctets
		}
		room -= n
		air += c.air(n) - c.air(0)
		if air > limit {
			break
		}
	}
	return air
}

// wanted tells whether datagrams should have a TurnPDU: a node has the floor, or this node has more to send than one
// datagram holds. A single message needs no turn, except in a crowd. A message that is acknowledged at once needs none
// there either, because many nodes send such messages when they greet each other.
func (f *floor) wanted(now time.Time, c *Config, q queue, crowd bool) bool {
	return len(q) > 0 && q.inTurn(c) && (crowd && !q[0].atOnce || f.taken(now, c) || (len(q) > 1 || q[0].batch) && q.waits(c, c.turnMost()) > c.fullAir())
}

// sayTurn fills in the TurnPDU of a datagram of this node's turn; end is when the datagram has left.
func sayTurn(now time.Time, s *Sender, p *Packet, end time.Time, air time.Duration) {
	if len(p.PDUs) == 0 || p.PDUs[0].Kind() != kindTurn {
		return
	}
	s.floor.sole = !s.floor.shared() && now.Sub(s.channel.loud) > soleAfter*s.cfg.turnMost()
	s.floor.holdTurn(now, &s.cfg, end, air)
	p.PDUs[0] = s.floor.turnPDU(now, &s.cfg, end, len(p.PDUs) > 1, s.queue.waits(&s.cfg, s.floor.turn(&s.cfg)), func(n NodeID) bool {
		return s.peers[n] != nil && s.peers[n].silent
	})
}

// passOn sends a TurnPDU that ends this node's turn, when the turn has come and the node has nothing to send:
// acknowledgements ride on it.
func passOn(now time.Time, s *Sender) {
	if s.silent || !s.floor.mine(now, &s.cfg) {
		return
	}
	if sayAgain(s); len(s.queue) > 0 {
		return
	}
	p := Packet{Group: s.cfg.Group, Port: DataPort, PDUs: []PDU{TurnPDU{Source: s.cfg.Self}}}
	air := s.cfg.air(s.cfg.octets(p) + rideMost)
	sayTurn(now, s, &p, s.spoken(now, air), air)
	s.out.Send = append(s.out.Send, p)
}

// rideMost is about how many octets of acknowledgements ride on a datagram.
const rideMost = 30

// turnDue is when this node has to transmit because its turn has come; zero: no such time is known, or the turn has lapsed
// while this node was down or silent.
func turnDue(now time.Time, s *Sender) time.Time {
	if f := &s.floor; f.next != s.cfg.Self || f.holder == s.cfg.Self || s.silent || !f.taken(now, &s.cfg) {
		return time.Time{}
	}
	return s.floor.end.Add(s.cfg.afterTurn())
}

// answerBy is how long the sender waits for the answers to a short message because all nodes transmit in turns; zero: it
// does not wait for that.
func (f *floor) answerBy(now time.Time, c *Config, m *outgoing) time.Time {
	most := m.passEnd.Add(answerRounds * f.round(c))
	if f.holder == c.Self { // no node answers in this node's own turn
		most = due.Latest(most, f.lapse(c))
	}
	if !c.Hears || m.total() > 1 && !m.batch || !f.taken(now, c) || !most.After(now) {
		return time.Time{}
	}
	return due.Earliest(most, f.lapse(c))
}

// saidAgain tells whether a message that an Ack_PDU leaves out counts as lost. It does on a channel where many nodes answer
// or all transmit in turns: acknowledgements there repeat earlier ones, and asking would cost more than repeating the
// message.
func saidAgain(now time.Time, s *Sender) bool {
	return s.cfg.Hears && (len(s.cfg.Peers) > few || s.floor.taken(now, &s.cfg))
}

// answerRounds is for how many rounds the sender waits for answers: each round brings one, and some of these are lost.
const answerRounds = 2

// TurnBy is the time by which this node has its turn on a shared channel, or by which no node takes turns any more, as far
// as the sender knows; zero: no node takes turns, or this node has the turn now.
func TurnBy(now time.Time, s *Sender) time.Time {
	f, c := &s.floor, &s.cfg
	switch {
	case !c.Hears || !f.taken(now, c) || f.holder == c.Self && !f.over:
		return time.Time{}
	case f.told.IsZero() || now.Sub(f.told) > f.round(c): // no node expects it to transmit
		return f.end.Add(c.afterTurn())
	}
	return f.lapse(c)
}
