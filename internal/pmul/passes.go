package pmul

import (
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/link/profile"
)

// pace is when the Sender may transmit, and how the link has proved to differ from its profile.
type pace struct {
	freeAt   time.Time     // when the next datagram may go
	airAt    time.Time     // when all datagrams handed over have left, others' turns counted
	brokenAt time.Time     // when another node last transmitted between two datagrams of this one
	brokenBy NodeID        // and which node
	spaced   int           // how many messages in a row began like those of a train
	begun    time.Time     // when a message last began
	slow     int           // the rate is divided by 2^slow, because acknowledgements do not come
	late     time.Duration // by how much Ack_PDUs came after ackWait lately
}

// reserve gives a datagram its airtime and returns when its last octet leaves.
func (p *pace) reserve(now time.Time, air time.Duration) time.Time {
	p.freeAt = now.Add(air << p.slow)
	return give(p, now, air)
}

// give hands the radio a datagram, and returns when its last octet leaves.
func give(p *pace, now time.Time, air time.Duration) time.Time {
	p.airAt = due.Latest(p.airAt, now).Add(air)
	return p.airAt
}

// begin starts the first pass, unless no recipient would hear it.
func (s *Sender) begin(now time.Time, m *outgoing) {
	if m.held {
		return
	}
	if !m.dests.hears(now) {
		m.pollAt = m.dests.pollTime()
		return
	}
	for _, d := range m.dests {
		if d.peer.dead() {
			d.peer.probe(now, s) // this message is the probe
		}
	}
	m.first = true
	if n := s.unasked(m); n > 0 {
		m.takeParity(n)
	}
	s.pass(m, (*destination).lacks, m.all())
	if len(m.shards) > 0 {
		m.again = slices.Clone(m.address)
	}
}

// pass starts a pass: Address_PDUs that name some destinations, then fragments.
func (s *Sender) pass(m *outgoing, named func(*destination) bool, numbers []uint16) {
	for _, d := range m.dests {
		d.named = d.lacks() && named(d)
	}
	some := m.dests.which(func(d *destination) bool { return d.named })
	for i, d := range some {
		d.rank = i
	}
	if len(some) == 0 {
		m.shards = nil
		return
	}
	if s.cfg.Coding == ACP142 { // in ACP 142, a node that is not named concludes that its Ack has come
		some = m.dests.which((*destination).lacks)
	}
	m.address, m.numbers, m.again = m.addressPDUs(&s.cfg, some), numbers, nil
	if m.prompt {
		sayAtOnce(m)
	}
	if free(s, m) {
		for i := range m.address {
			m.address[i].After = m.after
		}
	}
	m.frames = len(numbers) + len(m.shards)
	m.askedEnd, m.passBegan, m.passEnd = m.passEnd, time.Time{}, time.Time{}
	m.asked = m.grant
	m.repairAt, m.pollAt = time.Time{}, time.Time{}
	s.stats.Passes++
	s.sources.waits(s, m)
	s.queue.put(m)
}

// arm sets the message's place among the timers.
func (s *Sender) arm(m *outgoing) {
	m.wakeAt = m.expiry
	if m.closed {
		m.wakeAt = time.Time{}
	} else if m.idle() && !s.silent {
		m.wakeAt = due.Earliest(m.expiry, m.timers.earliest())
	}
	if m.wakeAt.IsZero() {
		s.timers.Remove(m.place)
	} else {
		s.timers.Set(m, m.place)
	}
}

// transmit sends as much as the rate allows: each time the next datagram of the message that goes first.
func (s *Sender) transmit(now time.Time) {
	passOn(now, s)
	for range 64 { // a bound for links without a rate
		s.sources.takeTurns(s)
		if s.silent || len(s.queue) == 0 || now.Before(s.roomAt(now)) {
			return
		}
		gatherBatch(s, now)
		sayAgain(s)
		goAmid(s)
		var head []PDU
		if s.floor.wanted(now, &s.cfg, s.queue, s.channel.crowd(now, &s.cfg)) {
			head = []PDU{TurnPDU{Source: s.cfg.Self}}
		}
		p, parts := s.queue.datagram(&s.cfg, head...)
		octets := s.cfg.octets(p)
		air := profile.Airtime(octets+s.cfg.Overhead, s.cfg.RateBps)
		var end time.Time
		if s.cfg.Hears {
			end = s.spoken(now, air)
			s.urgent.handedOver(now, &s.cfg, parts[0].m, air)
		} else {
			end = s.reserve(now, air)
		}
		sent := len(s.out.Send)
		s.out.Send = append(s.out.Send, p)
		for _, part := range parts {
			m := part.m
			if m.passBegan.IsZero() {
				m.passBegan = now
				if m.first {
					noteLone(now, s, m)
					noteTrain(now, s, m)
				}
			}
			if m.handed == 0 {
				m.handed = s.channel.handed
			}
			if !m.begun && !m.closed && m.dynamic.ready() {
				m.begun = true
				if !m.batch {
					s.out.record(bucketBegun, messageKey(m.id), []byte{})
				}
			}
			if m.handedAll == 0 && len(m.numbers) == 0 {
				m.handedAll = s.channel.handed
			}
			for _, pdu := range part.pdus {
				aired(s, pdu)
				s.sources.went(s, pdu)
				s.stats.sent(pdu, m.left(pdu, end))
			}
			if m.idle() {
				s.queue.remove(m)
				s.passed(end, m)
			}
		}
		sayTurn(now, s, &s.out.Send[sent], end, air)
	}
}

// left notes when a PDU's last octet leaves, and tells whether the PDU is a repetition.
func (m *outgoing) left(pdu PDU, end time.Time) (again bool) {
	switch pdu := pdu.(type) {
	case DataPDU:
		again = !m.sentEnd[pdu.Number].IsZero()
		m.sentEnd[pdu.Number] = end
	case ParityPDU:
		again = !m.first // else it goes unrequested
		m.parityEnd = append(m.parityEnd, end)
	}
	return again
}

// sent counts a PDU.
func (s *SenderStats) sent(pdu PDU, again bool) {
	octets := 0
	switch pdu := pdu.(type) {
	case AddressPDU:
		s.AddressSent++
		return
	case DiscardPDU:
		s.DiscardSent++
		return
	case DataPDU:
		octets = len(pdu.Fragment)
	case ParityPDU:
		octets = len(pdu.Shard)
	}
	s.DataSent++
	s.DataOctets += octets
	if again {
		s.DataAgain++
		s.AgainOctets += octets
	}
}

// passed notes the end of a pass: its last octet leaves the air at end.
func (s *Sender) passed(end time.Time, m *outgoing) {
	if m.closed {
		s.forget(m)
		return
	}
	if !m.dynamic.ready() {
		s.arm(m) // its next step has a time
		return
	}
	if m.first {
		m.first, m.firstEnd = false, end
	}
	m.passEnd, m.putOff = end, 0
	m.wakes, m.whole = false, false
	s.await(end, m)
	if m.ridden < ridesMost && m.polls == 0 && s.cfg.Hears && m.priority >= alarm && m.total() == 1 && s.floor.taken(end, &s.cfg) {
		s.urgent.goesAgain(m, s.floor.number)
	}
	m.rides = false
	if m.dests.any((*destination).misses) {
		m.repairAt = end.Add(s.cfg.settle())
	}
	m.pollAt = m.dests.pollTime()
	if !m.once && m.dests.any((*destination).deaf) && m.repeatAt.IsZero() && m.repeats < s.cfg.RepeatCount {
		m.repeatAt = end.Add(s.cfg.repeatEvery(end, m))
		if m.alarms(end, s) {
			m.repeatAt = due.Earliest(m.repeatAt, end.Add(s.cfg.Turnaround))
		}
	}
	s.arm(m)
}

// alarm is the Priority from which a message is repeated at once for silent nodes: a node that has lost it should not learn
// of it minutes later. It is that of flash (internal/gateway/group).
const alarm = 3

// alarms says whether a message is of such Priority, has not been repeated yet, and is the only one of the last minute:
// repeats of several would fill a slow channel.
func (m *outgoing) alarms(now time.Time, s *Sender) bool {
	if m.priority < alarm || m.repeats > 0 {
		return false
	}
	for _, o := range s.messages {
		if o != m && o.priority >= alarm && now.Sub(o.firstEnd) < time.Minute {
			return false
		}
	}
	return true
}

// await sets for each destination when its answer to a pass is overdue.
func (s *Sender) await(end time.Time, m *outgoing) {
	talk := s.cfg.ownTalk(len(s.queue))
	repaired := func(d *destination) bool { return d.answers() && d.named && d.missing != nil }
	answer := s.cfg.ackWait(m.dests.active(), m.total())
	repair := s.cfg.repairWait(len(m.dests.which(repaired)))
	planned := s.cfg.plansFor(m)
	m.grant = talk
	for _, d := range m.dests {
		if !d.answers() {
			continue
		}
		wait := talk + answer
		switch {
		case planned && !d.named: // the time of its turn stays
			d.dueAt = due.Latest(d.dueAt, end.Add(talk+s.cfg.turnWait(1, 0, m.frames > 0)))
			continue
		case planned:
			wait = talk + s.cfg.turnWait(m.dests.named(), d.rank, m.frames > 0)
			m.grant = max(m.grant, wait)
		case repaired(d):
			wait = talk + repair
		case m.polls == 0 || m.amid:
			wait += m.train
		}
		if at := answeredBy(end, s, m); !at.IsZero() {
			d.dueAt = at
			continue
		}
		late := s.late
		if s.cfg.Hears { // other nodes' talk puts the question off anyway; on a channel where no node talks, waiting longer brings no answer
			late = min(late, s.cfg.Hold)
		}
		d.dueAt = end.Add((wait + late) << min(max(m.polls-1, 0), 6))
	}
}

// expire handles the timers of one message.
func (s *Sender) expire(now time.Time, m *outgoing) {
	switch {
	case due.Reached(now, m.expiry):
		s.end(now, m, Expired)
		return
	case !m.dynamic.ready():
		s.negotiate(now, m)
	case !m.begun:
		m.pollAt = time.Time{}
		s.begin(now, m)
	case due.Reached(now, m.repairAt):
		s.repair(m)
	case due.Reached(now, m.repeatAt):
		s.repeat(m)
	case stillTalks(s, now, m), goesWhole(s, m):
	default:
		s.poll(now, m)
	}
	s.arm(m)
}

// stillTalks puts off a question while answers wait for a pause of this node.
func stillTalks(s *Sender, now time.Time, m *outgoing) bool {
	if !s.cfg.waitsForPause() || m.carry != carryCheap || m.polls > 0 || m.passEnd.IsZero() {
		return false
	}
	at := s.floor.answerBy(now, &s.cfg, m)
	if len(s.queue) > 0 {
		wait := s.cfg.ackWait(m.dests.active(), m.total()) + s.late
		at = due.Latest(at, due.Earliest(now.Add(s.cfg.ownTalk(len(s.queue))+wait), m.passEnd.Add(s.cfg.ownTalk(bundle*bundle)+wait)))
	}
	if !at.After(now) {
		return false
	}
	for _, d := range m.dests {
		if d.answers() {
			d.dueAt = due.Latest(d.dueAt, at)
		}
	}
	m.pollAt = m.dests.pollTime()
	return m.pollAt.After(now)
}

// repair sends the union of the lost fragments, once for all; or, if that is less, as many shards as the worst receiver needs.
func (s *Sender) repair(m *outgoing) {
	union, most := newSet(len(m.fragments)), 0
	for _, d := range m.dests {
		if d.lacks() {
			for i, w := range d.lost {
				union[i] |= w
			}
			most = max(most, d.lost.count())
			d.lost = nil
		}
	}
	m.repairAt = time.Time{}
	m.rounds++
	// More shards than the worst receiver lacks: a fifth more, since past losses foretell future ones, and one more each
	// round. A shard costs a fifth of the turn that it may save.
	spare := most/5 + min(m.rounds-1, 8)
	if s.cfg.plansFor(m) && m.dests.active() > few && !s.floor.shared() { // one of many nodes will lose a shard again
		spare++
	}
	s.pass(m, (*destination).answers, m.orParity(&s.cfg, union.numbers(), most+spare))
}

// repeat is blind repetition for silent nodes.
func (s *Sender) repeat(m *outgoing) {
	m.repeatAt = time.Time{}
	if m.repeats >= s.cfg.RepeatCount {
		return
	}
	m.repeats++
	s.stats.Repeats++
	union, counted := newSet(len(m.fragments)), false
	for _, d := range m.dests.which((*destination).deaf) {
		counted = counted || d.missing != nil && s.cfg.plansFor(m) // it said how many fragments it lacks, not which
		for n := uint16(1); n <= m.total(); n++ {
			if d.missing == nil || d.missing.has(n) {
				union.add(n)
			}
		}
	}
	numbers := union.numbers()
	n := max(2, int(s.cfg.ParityShare*float64(len(m.fragments))+0.999))
	if counted || n < len(numbers) {
		numbers = m.orParity(&s.cfg, numbers, min(n, len(numbers)))
	}
	s.pass(m, (*destination).deaf, numbers)
}

// poll asks the recipients whose answer is overdue. An Address_PDU names them. It carries a few fragments that they may
// have lost if that is cheaper than one more turn, and after the first time in any case, for receivers that answer only to
// fragments. The rate falls.
func (s *Sender) poll(now time.Time, m *outgoing) {
	m.pollAt = time.Time{}
	asked, lone := map[*destination]bool{}, alone(now, s, m)
	send, most := newSet(len(m.fragments)), 0
	late := now
	if s.cfg.plansFor(m) { // one question serves also nodes whose turn has just passed
		late = now.Add(s.cfg.turnWait(1, 0, false))
	}
	for _, d := range m.dests {
		p := d.peer
		if !d.lacks() || p.silent || p.dead() && !due.Reached(now, p.probeAt) || !p.dead() && late.Before(d.dueAt) {
			continue
		}
		asked[d] = true
		// The fragments of the last question were lost, or its answer was: this question goes without fragments.
		again := p.unanswered%2 == 1 || p.unanswered > 0 && s.cfg.Coding == Compact
		// Among several nodes a question costs all of them two turns, and its answer may be lost as well: so it brings a
		// short message along.
		again = again && !(s.cfg.Hears && m.total() == 1 && (s.Queued() || len(s.cfg.Peers) > 1 && s.cfg.fragmentAir(m) <= s.cfg.questionAir()))
		bare := m.carry == carryNothing || m.carry != carryLost && again
		p.asked(now, s)
		if bare || m.polls == 0 && m.carry != carryLost && s.cfg.fragmentAir(m) > s.cfg.questionAir() {
			continue
		}
		lacks := d.missing.numbers()
		if d.missing == nil && (m.total() == 1 || m.polls > 0) {
			lacks = []uint16{m.total()}
		}
		if len(lacks) > 1 && time.Duration(len(lacks))*s.cfg.fullAir() > s.cfg.questionAir() {
			lacks = lacks[len(lacks)-1:]
		}
		for _, n := range lacks {
			send.add(n)
		}
		most = max(most, len(lacks))
	}
	if len(asked) == 0 {
		m.pollAt = m.dests.pollTime()
		return
	}
	if m.carry == carryLost && !send.empty() && m.train == 0 { // a node that lost it with this one would say so later; now it gets it as well
		for _, d := range m.dests {
			asked[d] = asked[d] || d.answers()
		}
	}
	if m.polls > 0 {
		s.slow = min(s.slow+1, 3)
	}
	m.polls++
	m.carry = carryCheap
	s.stats.Polls++
	if m.dynamic != nil { // a node that does not answer may not be in the group, even if it was there for another message
		s.announce(m, func(d *destination) bool { return asked[d] && (d.missing == nil || d.peer.unanswered > 1) })
	}
	s.pass(m, func(d *destination) bool { return asked[d] }, m.orParity(&s.cfg, send.numbers(), most))
	if lone || m.train > 0 && !m.amid {
		sayAtOnce(m)
	}
}
