package pmul

import (
	"container/heap"
	"slices"
	"time"

	"aldis/internal/profile"
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
		if d.state == Waiting && named(d) {
			dests = append(dests, d)
			d.answered = false
		}
	}
	if len(dests) == 0 {
		m.shards = nil
		return
	}
	m.address, m.numbers = s.cfg.addressPDUs(m, dests), numbers
	m.passEnd = time.Time{}
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
		m := s.ready[0]
		p, numbers, parity := m.next(&s.cfg)
		octets := s.cfg.octets(p)
		air := profile.Airtime(octets+s.cfg.Overhead, s.cfg.RateBps)
		s.freeAt = now.Add(air << s.slow)
		s.out.Send = append(s.out.Send, p)
		s.count(m, p, numbers, parity, now.Add(air))
		if m.idle() {
			s.dequeue(m)
			s.passed(now.Add(air), m)
		}
	}
}

func (s *Sender) count(m *outgoing, p Packet, numbers []uint16, parity int, end time.Time) {
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
	for _, pdu := range p.PDUs {
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
	if active := s.active(m); active > 0 {
		wait := s.cfg.ackWait(active, m.total()) + s.late
		m.pollAt = end.Add(wait << min(max(m.polls-1, 0), 6))
		if m.lost() {
			m.repairAt = end.Add(s.cfg.settle())
		}
	} else {
		m.pollAt = s.probeTime(m)
	}
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
	if parityFor(&s.cfg, len(m.fragments)) && m.takeParity(most) {
		numbers = nil
	}
	s.pass(m, s.waits, numbers)
}

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

// poll asks those who have not answered: an Address_PDU that names them, after the first time with a fragment, for
// receivers that answer to nothing else. The rate falls.
func (s *Sender) poll(now time.Time, m *outgoing) {
	m.pollAt = time.Time{}
	asked := map[NodeID]bool{}
	var numbers []uint16
	silence := true
	for _, d := range m.dests {
		p := s.peer(d.node)
		if d.state != Waiting || p.silent || p.dead() && !due(now, p.probeAt) {
			continue
		}
		asked[d.node] = true
		if d.answered {
			silence = false
			continue
		}
		if !now.Before(p.askedAt) { // questions that overlap are one
			p.unanswered++
			p.askedAt = now.Add(s.cfg.ackWait(1, 1))
			if p.dead() {
				p.probeAt = now.Add(s.probeInterval(p))
			}
		}
		if (m.polls > 0 || m.again) && len(numbers) == 0 {
			n := m.total()
			for d.missing != nil && n > 1 && !d.missing.has(n) {
				n--
			}
			numbers = append(numbers, n)
		}
	}
	if len(asked) == 0 {
		m.pollAt = s.probeTime(m)
		return
	}
	if silence && m.polls > 0 {
		s.slow = min(s.slow+1, 3)
	}
	m.polls++
	m.again = false
	s.stats.Polls++
	if m.dynamic != nil { // who never said anything may not be in the group
		s.announce(m, func(d *destination) bool { return asked[d.node] && d.missing == nil })
	}
	s.pass(m, func(d *destination) bool { return asked[d.node] }, numbers)
}
