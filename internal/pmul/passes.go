package pmul

import (
	"container/heap"
	"slices"
	"time"

	"aldis/internal/link/profile"
)

// begin starts the first pass, unless nobody would hear it.
func (s *Sender) begin(now time.Time, m *outgoing) {
	var probe time.Time
	for _, d := range m.dests {
		p := s.peer(d.node)
		if p.silent || !p.dead() || due(now, p.probeAt) {
			probe = time.Time{}
			break
		}
		probe = earlier(probe, p.probeAt)
	}
	if !probe.IsZero() {
		m.pollAt = probe
		return
	}
	for _, d := range m.dests {
		if p := s.peer(d.node); p.dead() {
			p.probeAt = now.Add(s.probeInterval(p)) // this message is the probe
		}
	}
	all := make([]uint16, len(m.fragments))
	for i := range all {
		all[i] = uint16(i + 1)
	}
	m.first = true
	s.pass(m, func(*destination) bool { return true }, all)
}

// pass starts a pass: Address_PDUs that name some destinations, then fragments.
func (s *Sender) pass(m *outgoing, named func(*destination) bool, numbers []uint16) {
	var dests []*destination
	for _, d := range m.dests {
		d.named = d.state == Waiting && named(d)
		if d.named {
			dests = append(dests, d)
		}
	}
	if len(dests) == 0 {
		m.shards = nil
		return
	}
	if s.cfg.Coding == ACP142 { // who is not named takes it that its Ack has come
		dests = slices.DeleteFunc(slices.Clone(m.dests), func(d *destination) bool { return d.state != Waiting })
	}
	m.address, m.numbers = s.cfg.addressPDUs(m, dests), numbers
	m.askedEnd, m.passBegan, m.passEnd = m.passEnd, time.Time{}, time.Time{}
	m.repairAt, m.pollAt = time.Time{}, time.Time{}
	s.stats.Passes++
	s.enqueue(m)
}

func (s *Sender) enqueue(m *outgoing) {
	if !m.ready {
		m.ready = true
		i, _ := slices.BinarySearchFunc(s.ready, m, (*outgoing).compare)
		s.ready = slices.Insert(s.ready, i, m)
	}
}

func (s *Sender) dequeue(m *outgoing) {
	if m.ready {
		m.ready = false
		i, _ := slices.BinarySearchFunc(s.ready, m, (*outgoing).compare)
		s.ready = slices.Delete(s.ready, i, i+1)
	}
}

// arm puts the message where its next timer belongs.
func (s *Sender) arm(m *outgoing) {
	at := m.expiry
	if m.closed {
		at = time.Time{}
	} else if m.idle() && !s.silent {
		at = earlier(earlier(at, m.repairAt), earlier(m.pollAt, m.repeatAt))
	}
	m.wakeAt = at
	switch {
	case m.index >= 0 && at.IsZero():
		heap.Remove(&s.timers, m.index)
	case m.index >= 0:
		heap.Fix(&s.timers, m.index)
	case !at.IsZero():
		heap.Push(&s.timers, m)
	}
}

// transmit sends what the rate allows: a PDU of the message that goes first, then look again.
func (s *Sender) transmit(now time.Time) {
	for range 64 { // a bound for links without a rate
		if s.silent || len(s.ready) == 0 || now.Before(s.freeAt) {
			return
		}
		p, parts := s.datagram()
		octets := s.cfg.octets(p)
		air := profile.Airtime(octets+s.cfg.Overhead, s.cfg.RateBps)
		s.freeAt = now.Add(air << s.slow)
		s.out.Send = append(s.out.Send, p)
		s.airAt = later(s.airAt, now).Add(air)
		for _, part := range parts {
			m := part.m
			if m.passBegan.IsZero() {
				m.passBegan = now
			}
			s.count(m, part.pdus, part.numbers, part.parity, s.airAt)
			if m.idle() {
				s.dequeue(m)
				s.passed(s.airAt, m)
			}
		}
	}
}

// part of a datagram is of one message.
type part struct {
	m       *outgoing
	pdus    []PDU
	numbers []uint16
	parity  int
}

// bundle is of how many messages at most one datagram is.
const bundle = 8

// datagram takes what goes next: of the first message, and in the compact coding of others of its priority too, as long
// as all fits; short ones share what is around a datagram.
func (s *Sender) datagram() (Packet, []part) {
	first := s.ready[0]
	p := Packet{Group: first.group, Port: DataPort}
	var parts []part
	for _, m := range s.ready[:min(bundle, len(s.ready))] {
		if m.group != first.group || m.priority != first.priority || len(parts) > 0 && s.cfg.Coding != Compact {
			break
		}
		n := len(p.PDUs)
		numbers, parity := m.next(&s.cfg, &p)
		if len(p.PDUs) == n {
			break
		}
		parts = append(parts, part{m, p.PDUs[n:], numbers, parity})
	}
	return p, parts
}

func (s *Sender) count(m *outgoing, pdus []PDU, numbers []uint16, parity int, end time.Time) {
	if !m.begun && !m.closed && m.dynamicReady() {
		m.begun = true
		s.out.record(bucketBegun, messageKey(m.id), []byte{})
	}
	for _, n := range numbers {
		octets := len(m.fragments[n-1])
		s.stats.DataSent++
		s.stats.DataOctets += octets
		if !m.sentEnd[n].IsZero() {
			s.stats.DataAgain++
			s.stats.AgainOctets += octets
		}
		m.sentEnd[n] = end
	}
	for range parity {
		m.parityEnd = append(m.parityEnd, end)
	}
	if parity > 0 {
		s.stats.DataSent += parity
		s.stats.DataOctets += parity * m.size
		s.stats.DataAgain += parity
		s.stats.AgainOctets += parity * m.size
	}
	for _, pdu := range pdus {
		switch pdu.(type) {
		case AddressPDU:
			s.stats.AddressSent++
		case DiscardPDU:
			s.stats.DiscardSent++
		}
	}
}

// passed is the end of a pass: its last octet leaves the air at end.
func (s *Sender) passed(end time.Time, m *outgoing) {
	if m.closed {
		s.forget(m)
		return
	}
	if m.dynamic != nil && !m.dynamic.settled {
		s.arm(m) // its next step has a time
		return
	}
	if m.first {
		m.first, m.firstEnd = false, end
	}
	m.passEnd = end
	active, reported := s.active(m), 0
	for _, d := range m.dests {
		if s.waits(d) && d.named && d.missing != nil {
			reported++
		}
	}
	for _, d := range m.dests {
		if !s.waits(d) {
			continue
		}
		wait := s.cfg.ackWait(active, m.total())
		if d.named && d.missing != nil {
			wait = s.cfg.repairWait(reported)
		}
		d.dueAt = end.Add((wait + s.late) << min(max(m.polls-1, 0), 6))
	}
	if m.lost() {
		m.repairAt = end.Add(s.cfg.settle())
	}
	m.pollAt = s.pollTime(m)
	if s.anySilent(m) && m.repeatAt.IsZero() && m.repeats < s.cfg.RepeatCount {
		m.repeatAt = end.Add(s.repeatEvery(end, m))
	}
	s.arm(m)
}

// repeatEvery is EMCON_RTI: not below four times the message's own airtime, and all repetitions before it expires.
func (s *Sender) repeatEvery(now time.Time, m *outgoing) time.Duration {
	own := time.Duration(len(m.fragments)+1) * s.cfg.fullAir()
	every := max(s.cfg.RepeatEvery, 4*own)
	return min(every, m.expiry.Sub(now)/time.Duration(s.cfg.RepeatCount-m.repeats+1))
}

// waits tells whether a destination is expected to answer.
func (s *Sender) waits(d *destination) bool {
	p := s.peer(d.node)
	return d.state == Waiting && !p.silent && !p.dead()
}

func (s *Sender) active(m *outgoing) (n int) {
	for _, d := range m.dests {
		if s.waits(d) {
			n++
		}
	}
	return n
}

func (s *Sender) anySilent(m *outgoing) bool {
	return slices.ContainsFunc(m.dests, func(d *destination) bool { return d.state == Waiting && s.peer(d.node).silent })
}

func (m *outgoing) lost() bool {
	return slices.ContainsFunc(m.dests, func(d *destination) bool { return d.state == Waiting && !d.lost.empty() })
}

// pollTime is when the first answer is overdue, or a node that does not answer may be asked again.
func (s *Sender) pollTime(m *outgoing) (at time.Time) {
	for _, d := range m.dests {
		if s.waits(d) {
			at = earlier(at, d.dueAt)
		}
	}
	if at.IsZero() {
		at = s.probeTime(m)
	}
	return at
}

// probeTime is when a node that does not answer may be asked about this message.
func (s *Sender) probeTime(m *outgoing) (at time.Time) {
	for _, d := range m.dests {
		if p := s.peer(d.node); d.state == Waiting && !p.silent && p.dead() {
			at = earlier(at, p.probeAt)
		}
	}
	return at
}

func (s *Sender) probeInterval(p *peer) time.Duration {
	every := max(s.cfg.ProbeEvery, s.cfg.ackWait(1, 1))
	return every * time.Duration(1+min(p.unanswered/4, 7))
}

// expire handles the timers of one message.
func (s *Sender) expire(now time.Time, m *outgoing) {
	switch {
	case due(now, m.expiry):
		s.end(now, m, Expired)
		return
	case m.dynamic != nil && !m.dynamic.settled:
		s.negotiate(now, m)
	case !m.begun:
		m.pollAt = time.Time{}
		s.begin(now, m)
	case due(now, m.repairAt):
		s.repair(m)
	case due(now, m.repeatAt):
		s.repeat(m)
	default:
		s.poll(now, m)
	}
	s.arm(m)
}

// repair sends the union of what is missed, once for all; or, where that is less, as much parity as one of them needs.
func (s *Sender) repair(m *outgoing) {
	union, most := newSet(len(m.fragments)), 0
	for _, d := range m.dests {
		if d.state == Waiting {
			for i, w := range d.lost {
				union[i] |= w
			}
			most = max(most, d.lost.count())
			d.lost = nil
		}
	}
	m.repairAt = time.Time{}
	numbers := union.numbers()
	m.rounds++
	if parityFor(&s.cfg, len(m.fragments)) && m.takeParity(most+m.spare(most)) {
		numbers = nil
	}
	s.pass(m, s.waits, numbers)
}

// spare is how many shards more than the worst receiver lacks a repair sends: a fifth, as what was lost tells of what will
// be, and one more each round. A shard costs a fifth of the turn that it may save.
func (m *outgoing) spare(most int) int { return most/5 + min(m.rounds-1, 8) }

// repeat is blind repetition for silent nodes.
func (s *Sender) repeat(m *outgoing) {
	m.repeatAt = time.Time{}
	if m.repeats >= s.cfg.RepeatCount {
		return
	}
	m.repeats++
	s.stats.Repeats++
	union := newSet(len(m.fragments))
	for _, d := range m.dests {
		if d.state != Waiting || !s.peer(d.node).silent {
			continue
		}
		for n := uint16(1); n <= m.total(); n++ {
			if d.missing == nil || d.missing.has(n) {
				union.add(n)
			}
		}
	}
	numbers := union.numbers()
	if n := max(2, int(s.cfg.ParityShare*float64(len(m.fragments))+0.999)); parityFor(&s.cfg, len(m.fragments)) && n < len(numbers) && m.takeParity(n) {
		numbers = nil
	}
	s.pass(m, func(d *destination) bool { return s.peer(d.node).silent }, numbers)
}

// poll asks those whose answer is overdue: an Address_PDU that names them, with a little of what they may have lost
// where that is cheaper than one more turn, and after the first time in any case, for receivers that answer to nothing
// else. The rate falls.
func (s *Sender) poll(now time.Time, m *outgoing) {
	m.pollAt = time.Time{}
	asked := map[NodeID]bool{}
	send, most := newSet(len(m.fragments)), 0
	for _, d := range m.dests {
		p := s.peer(d.node)
		if d.state != Waiting || p.silent || p.dead() && !due(now, p.probeAt) || !p.dead() && now.Before(d.dueAt) {
			continue
		}
		asked[d.node] = true
		bare := m.bare || p.unanswered%2 == 1 || p.unanswered > 0 && s.cfg.Coding == Compact // what was sent along last time was lost, or its answer was: this time nothing is risked
		if !now.Before(p.askedAt) {                                                          // questions that overlap are one
			p.unanswered++
			p.askedAt = now.Add(s.cfg.ackWait(1, 1))
			if p.dead() {
				p.probeAt = now.Add(s.probeInterval(p))
			}
		}
		lacks := d.missing.numbers()
		if d.missing == nil && (m.total() == 1 || m.polls > 0) {
			lacks = []uint16{m.total()}
		}
		if len(lacks) > 1 && time.Duration(len(lacks))*s.cfg.fullAir() > s.cfg.questionAir() {
			lacks = lacks[len(lacks)-1:]
		}
		if !bare && (m.polls > 0 || m.again || s.cfg.fragmentAir(m) <= s.cfg.questionAir()) {
			for _, n := range lacks {
				send.add(n)
			}
			most = max(most, len(lacks))
		}
	}
	if len(asked) == 0 {
		m.pollAt = s.pollTime(m)
		return
	}
	if m.polls > 0 {
		s.slow = min(s.slow+1, 3)
	}
	m.polls++
	m.again, m.bare = false, false
	s.stats.Polls++
	if m.dynamic != nil { // who never said anything may not be in the group
		s.announce(m, func(d *destination) bool { return asked[d.node] && d.missing == nil })
	}
	numbers := send.numbers()
	if most > 0 && parityFor(&s.cfg, len(m.fragments)) && m.takeParity(most) {
		numbers = nil
	}
	s.pass(m, func(d *destination) bool { return asked[d.node] }, numbers)
}
