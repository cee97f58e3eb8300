package pmul

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// floor says which node has its turn on a shared channel on which several nodes have more to say than one datagram holds. Each
// datagram of a turn says when the turn ends and which node speaks then (TurnPDU). So the others hand nothing to their radios
// meanwhile, which would break the turn, and nobody has to find out who is next. docs/decisions/shared-channel.md.
type floor struct {
	holder, next NodeID
	end          time.Time            // when the holder's turn is over on the air, as far as is known; zero: nobody has ever taken a turn
	until        time.Time            // the longest that the own turn may last
	over         bool                 // nothing more goes in the own turn
	rest         time.Duration        // for how long only nodes that answer to the turn speak, if no other takes turns
	sole         bool                 // nobody else has had much to say for some turns: own turns are longer
	before       NodeID               // the node before which this one speaks, out of turn; 0: in turn
	number       uint8                // of the turn
	told         time.Time            // when this node last said that it takes turns
	members      map[NodeID]time.Time // the nodes that take turns, and when each last said so
	claims       map[NodeID]claim     // of the others, since this node's last turn
}

const (
	// turnHolds is how many times as long as the profile's turn a planned one may last: nothing waits in the other radios, so
	// these do not end it.
	turnHolds = 3
	// slotFrames is how many datagrams of the next in turn may be lost before it counts as absent.
	slotFrames = 2
	// memberFor is for how many rounds a node that is not heard still counts among those that take turns.
	memberFor = 2
	// soleAfter is after how many turns a node that has heard nobody else say much speaks alone.
	soleAfter = 4
)

func (c *Config) turnMost() time.Duration { return turnHolds * c.Hold }

// afterTurn is the time from the end of a turn until the next node hands its datagram over. By then all have heard the end; the
// radios are still turning around.
func (c *Config) afterTurn() time.Duration { return c.oneWay() + TurnStep }

// slot is how long the next in turn is waited for.
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

// left is how long the turn may last that this node has, from when its radio is free; 0: it has none.
func (f *floor) left(now time.Time, c *Config, free time.Time) time.Duration {
	if f.holder != c.Self || f.over || !f.taken(now, c) {
		return 0
	}
	return f.until.Sub(due.Latest(free, now))
}

// round is how long it takes until all have had a turn, at the most.
func (f *floor) round(c *Config) time.Duration {
	return time.Duration(len(f.members)+1) * (c.turnMost() + c.Turnaround)
}

// tidy forgets the members that are not heard any more.
func (f *floor) tidy(now time.Time, c *Config) {
	maps.DeleteFunc(f.members, func(_ NodeID, at time.Time) bool { return now.Sub(at) > memberFor*f.round(c) })
}

// taken tells whether somebody has the floor, or it is somebody's turn to take it.
func (f *floor) taken(now time.Time, c *Config) bool {
	if f.end.IsZero() {
		return false
	}
	if f.next == 0 {
		return f.end.Add(f.rest).After(now)
	}
	return now.Before(f.lapse(c))
}

// lapse is the time from which nobody has the floor, because none of the nodes whose turn it was has spoken.
func (f *floor) lapse(c *Config) time.Time {
	return f.end.Add(c.afterTurn() + time.Duration(len(f.members)+1)*c.slot())
}

// after lists the nodes that take turns, this one among them, in the order of their turns, beginning with a node.
func (f *floor) after(c *Config, node NodeID) []NodeID {
	ring := append(slices.Collect(maps.Keys(f.members)), c.Self)
	slices.Sort(ring)
	i, _ := slices.BinarySearch(ring, node)
	return append(ring[i:], ring[:i]...)
}

// mayAt is when this node may hand something to its radio.
func (f *floor) mayAt(now time.Time, c *Config) time.Time {
	switch {
	case !f.taken(now, c):
		return now
	case f.holder == c.Self && !f.over:
		return now
	}
	at := f.end.Add(max(f.rest, c.afterTurn()))
	if f.next == 0 || now.Sub(f.told) > f.round(c) || f.told.IsZero() { // the others do not expect this node
		return at
	}
	for rank, id := range f.after(c, f.next) {
		if id == c.Self {
			return at.Add(time.Duration(rank) * c.slot())
		}
	}
	return at
}

// mine tells whether it is this node's turn, whether it has something to say or not.
func (f *floor) mine(now time.Time, c *Config) bool {
	return f.next == c.Self && f.holder != c.Self && f.taken(now, c) && !now.Before(f.end.Add(c.afterTurn()))
}

// holdTurn begins a turn, if this node has none, with a datagram that takes so much air and has left at end. A node that speaks out of
// turn, because nobody expects it or because it has something urgent, says that one datagram and no more.
func (f *floor) holdTurn(now time.Time, c *Config, end time.Time, air time.Duration) {
	if f.holder == c.Self && !f.over && f.taken(now, c) {
		return
	}
	f.before, f.until = 0, end.Add(f.turn(c)-air)
	if next := f.next; next != 0 && next != c.Self && f.taken(now, c) {
		if now.Before(f.end.Add(c.afterTurn() + c.slot())) {
			f.before, f.until = next, end
		} else { // it did not come
			delete(f.members, next)
		}
	}
	if f.before == 0 {
		f.number++
	}
	f.spokeUp(now)
	f.holder, f.over = c.Self, false
}

// turnPDU is what a datagram of the own turn says about that turn. end is when the datagram has left; some: it has messages in it;
// waits is how much air the queue behind it needs.
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

// heard takes what another node says of its turn, in a datagram that ended on the air.
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
	case !f.taken(now, c) || ahead > 0: // nothing was heard of the node that spoke last
	case ahead < 0, by != f.holder && (by > f.holder || p.Left == 0):
		return // its radio has held that back, or it speaks between, or it gives way to another that took the turn as well
	}
	f.holder, f.next, f.number, f.over, f.rest = by, p.Next, p.Number, true, 0
	f.end = end.Add(p.Left)
}

// spoke notes a datagram of another node, which may put off the end of the turn; again: nobody has spoken since that node's last
// datagram.
func (f *floor) spoke(c *Config, by NodeID, end time.Time, air time.Duration, again bool) {
	switch {
	case f.end.IsZero():
	case f.holder == c.Self && f.over && f.next == 0 && end.After(f.until): // nobody waits for its end, and the other may talk for long
	case by == f.holder:
		f.end = due.Latest(f.end, end)
	case f.end.After(end.Add(-air)) || f.next != 0 && by != f.next && end.Before(f.lapse(c)):
		if !again {
			air += 2 * c.Turnaround
		}
		f.end = f.end.Add(air)
	}
}

// shared says that others take turns too.
func (f *floor) shared() bool { return len(f.members) > 0 }

// inTurn tells whether the queue goes in turns: that of whole messages does, if it is not urgent.
func (q queue) inTurn(c *Config) bool {
	return c.Hears && (len(q) == 0 || q[0].urgency() == 0 && (q[0].total() == 1 || q[0].batch) && !q.amidLong())
}

// waits is how much air the queue needs, or more than a limit.
func (q queue) waits(c *Config, limit time.Duration) (air time.Duration) {
	room := 0
	for _, m := range q {
		if m.batch {
			air, room = air+time.Duration(len(m.numbers)+len(m.shards))*c.largeAir(), 0
			continue
		}
		n := len(m.fragments[0]) + addressHeader + 2*min(len(m.dests), few) // a set of more takes about as much
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

// wanted tells whether datagrams say what turns there are: somebody has the floor, or this node has more to say than one holds. One
// message needs no turn, but in a crowd; what is to be acknowledged at once needs none there either, because many say so much when they
// greet each other.
func (f *floor) wanted(now time.Time, c *Config, q queue, crowd bool) bool {
	return len(q) > 0 && q.inTurn(c) && (crowd && !q[0].atOnce || f.taken(now, c) || (len(q) > 1 || q[0].batch) && q.waits(c, c.turnMost()) > c.fullAir())
}

// sayTurn fills in what a datagram says about this node's turn; end is when it has left.
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

// passOn says that this node's turn is over, when it has come and there is nothing to say: acknowledgements ride on that.
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

// turnDue is when this node has to speak because its turn has come; zero: no such time is known, or the turn has lapsed while
// this node was down or silent.
func turnDue(now time.Time, s *Sender) time.Time {
	if f := &s.floor; f.next != s.cfg.Self || f.holder == s.cfg.Self || s.silent || !f.taken(now, &s.cfg) {
		return time.Time{}
	}
	return s.floor.end.Add(s.cfg.afterTurn())
}

// answerBy is until when the answers to a short message are waited for because all speak in turns; zero: not for that.
func (f *floor) answerBy(now time.Time, c *Config, m *outgoing) time.Time {
	most := m.passEnd.Add(answerRounds * f.round(c))
	if f.holder == c.Self { // nobody answers in this node's own turn
		most = due.Latest(most, f.lapse(c))
	}
	if !c.Hears || m.total() > 1 && !m.batch || !f.taken(now, c) || !most.After(now) {
		return time.Time{}
	}
	return due.Earliest(most, f.lapse(c))
}

// saidAgain tells whether a message that an Ack_PDU leaves out counts as lost. It does on a channel where many answer or all speak
// in turns: acknowledgements there say again what earlier ones have said, and asking would cost more than repeating.
func saidAgain(now time.Time, s *Sender) bool {
	return s.cfg.Hears && (len(s.cfg.Peers) > few || s.floor.taken(now, &s.cfg))
}

// answerRounds is for how many rounds answers are waited for: each round brings one, and some of these are lost.
const answerRounds = 2

// TurnBy is the time by which this node has its turn on a shared channel, or by which nobody takes turns any more, as far as the
// sender knows; zero: nobody takes turns, or this node has the turn now.
func TurnBy(now time.Time, s *Sender) time.Time {
	f, c := &s.floor, &s.cfg
	switch {
	case !c.Hears || !f.taken(now, c) || f.holder == c.Self && !f.over:
		return time.Time{}
	case f.told.IsZero() || now.Sub(f.told) > f.round(c): // nobody expects it to speak
		return f.end.Add(c.afterTurn())
	}
	return f.lapse(c)
}
