package pmul

import (
	"container/heap"
	"maps"
	"slices"
	"time"
)

// ack applies an Ack_PDU (p-mul 6.4, 6.6).
func (s *Sender) ack(now time.Time, p AckPDU) {
	s.stats.Acks++
	from := s.peers[p.Source]
	if from == nil {
		s.stats.Strangers++
		return
	}
	s.slow = max(s.slow-1, 0)
	s.interrupted(now)
	touched := map[MessageID]*outgoing{}
	var proof time.Time // what was sent to it before this has arrived or is lost
	for _, e := range p.Entries {
		s.stats.AckEntries++
		m := s.messages[e.Message]
		_, over := s.fates[fateID{e.Message, p.Source}]
		switch {
		case e.Source != s.cfg.Self:
			s.stats.PassedBy++ // of several sources, and the others are not us
			continue
		case over:
			s.stats.Late++
			continue
		case m == nil || !m.begun:
			s.stats.Unknown++
			continue
		}
		d := m.dest(p.Source)
		if d == nil {
			s.stats.Strangers++
			continue
		}
		s.apply(now, m, d, e)
		if d.state == Delivered {
			proof = later(proof, m.firstEnd)
		}
		touched[m.id] = m
	}
	if len(touched) == 0 {
		return
	}
	s.heard(now, p.Source, from)
	for _, id := range slices.Sorted(maps.Keys(touched)) {
		m := touched[id]
		s.learnLate(now, m)
		m.heard, m.polls = now, 0
		s.review(now, m)
	}
	s.late -= s.late / 256
	s.passedBy(now, p.Source, from, proof)
}

// learnLate: how much later than it should an Ack_PDU came, if we have asked in vain meanwhile: others use the channel too,
// and the profile may promise too much. One that comes sooner than the question could bring it answers what was before.
func (s *Sender) learnLate(now time.Time, m *outgoing) {
	if m.polls == 0 || m.askedEnd.IsZero() || !m.passEnd.IsZero() && now.After(m.passEnd.Add(2*s.cfg.Delay+s.cfg.ackAir())) {
		return
	}
	if over := now.Sub(m.askedEnd) - s.cfg.ackWait(s.active(m)+1, m.total()); over > 0 {
		s.late = min(max(s.late, over+over/4+s.cfg.slack()), 10*time.Minute)
	}
}

// interrupted: an Ack_PDU came while we should be talking. On a shared channel its node has had a turn then, and what we
// have handed to the radio leaves later than we thought.
func (s *Sender) interrupted(now time.Time) {
	began := now.Add(-s.cfg.oneWay() - s.cfg.ackAir())
	if s.cfg.Turnaround == 0 || !s.airAt.After(began) {
		return
	}
	shift := 2*s.cfg.Turnaround + s.cfg.ackAir()
	if began.Sub(s.brokenAt) < shift { // the same interruption
		shift = s.cfg.Turnaround + s.cfg.ackAir()
	}
	s.brokenAt = now
	move := func(at *time.Time) {
		if at.After(began) {
			*at = at.Add(shift)
		}
	}
	move(&s.airAt)
	for _, id := range s.Messages() {
		m := s.messages[id]
		if m.closed || !m.begun || m.passEnd.Before(began) && m.idle() {
			continue
		}
		for n := range m.sentEnd {
			move(&m.sentEnd[n])
		}
		for i := range m.parityEnd {
			move(&m.parityEnd[i])
		}
		move(&m.passEnd)
		move(&m.pollAt)
		for _, d := range m.dests {
			move(&d.dueAt)
		}
		s.arm(m)
	}
}

// passedBy: a node acknowledges all that is complete, so short messages that it got before the one it acknowledges, and
// does not name, are lost, or their Ack was. They go again, or are asked for, without waiting for a timer.
func (s *Sender) passedBy(now time.Time, node NodeID, from *peer, proof time.Time) {
	if s.cfg.Reorder || s.cfg.Coding != Compact {
		return
	}
	for _, m := range from.waiting { // in any order: the timers put it right
		if m.total() == 1 && m.idle() && !m.passEnd.IsZero() && m.passEnd.Before(proof) && m.pollAt.After(now) {
			// Long ago: an Ack of its own must have come since, and more likely that was lost.
			m.pollAt, m.again, m.dest(node).dueAt = now, now.Sub(m.passEnd) < s.cfg.ackWait(1, 1), now
			m.bare = !m.again
			s.arm(m)
		}
	}
}

// heard: a node that answers is neither dead nor silent. What else was sent to it is asked for soon.
func (s *Sender) heard(now time.Time, n NodeID, p *peer) {
	again := p.silent || p.dead()
	p.unanswered, p.probeAt = 0, time.Time{}
	if p.silent {
		s.peerEMCON(now, n, false)
	} else if again {
		s.wakePeer(now, n)
	}
	if again || now.Before(p.burst) {
		p.burst = now.Add(s.cfg.settle() + 2*s.cfg.fullAir())
		for _, m := range p.waiting { // in any order: nothing is asked while answers come
			if d := m.dest(n); m.begun && m.idle() && d.dueAt.Before(p.burst) {
				d.dueAt = p.burst
				m.pollAt = later(m.pollAt, s.pollTime(m))
				s.arm(m)
			}
		}
	}
}

// wakePeer sets the question for all messages that a node has not acknowledged.
func (s *Sender) wakePeer(now time.Time, n NodeID) {
	for _, id := range slices.Sorted(maps.Keys(s.peer(n).waiting)) {
		m := s.messages[id]
		if m.begun {
			m.pollAt = now.Add(s.cfg.ackWait(1, 1) + s.late)
			m.dest(n).dueAt = m.pollAt
		} else {
			m.pollAt = now
		}
		s.arm(m)
	}
}

// apply takes one entry.
func (s *Sender) apply(now time.Time, m *outgoing, d *destination, e AckEntry) {
	if len(e.Missing) == 0 {
		s.final(now, m, d, Delivered)
		return
	}
	d.dueAt = now.Add(s.cfg.repairWait(1))
	before := d.missing
	heard := s.heardOf(m, d, e)
	d.missing, d.lost = newSet(len(m.fragments)), newSet(len(m.fragments))
	var above int
	for _, r := range e.Missing {
		above = int(r.To)
		for n := int(r.From); n <= int(r.To); n++ {
			if n > len(m.fragments) {
				s.stats.Illegal++
				break
			}
			d.missing.add(uint16(n))
			if stale := !m.idle() && !m.first && s.cfg.Turnaround > 0 && m.sentEnd[n].After(later(m.passBegan, heard)); !stale && !s.underWay(now, m, uint16(n)) {
				d.lost.add(uint16(n))
			}
		}
	}
	for i := len(m.parityEnd) - 1; i >= 0 && now.Before(m.parityEnd[i].Add(s.unheard(m))); i-- {
		if n := d.lost.numbers(); len(n) > 0 { // a shard under way stands for any
			d.lost.remove(n[0])
		}
	}
	for n := 1; n <= len(m.fragments); n++ { // of these nothing is said
		if unsent := m.sentEnd[n].IsZero(); unsent || e.Cut && n > above && (before == nil || before.has(uint16(n))) {
			d.missing.add(uint16(n))
		}
	}
}

// heardOf is the last transmission that an Ack_PDU knows of, by what its node said before that it misses and has now. On
// a shared channel it may have waited for its turn since before the pass under way, and know nothing of that.
func (s *Sender) heardOf(m *outgoing, d *destination, e AckEntry) (at time.Time) {
	listed := newSet(len(m.fragments))
	for _, r := range e.Missing {
		for n := int(r.From); n <= min(int(r.To), len(m.fragments)); n++ {
			listed.add(uint16(n))
		}
	}
	for _, n := range d.missing.numbers() {
		if !listed.has(n) {
			at = later(at, m.sentEnd[n])
		}
	}
	return at
}

// underWay: it will be sent in this pass, or was so lately that the Ack_PDU cannot know of it.
func (s *Sender) underWay(now time.Time, m *outgoing, n uint16) bool {
	_, queued := slices.BinarySearch(m.numbers, n)
	return queued || m.sentEnd[n].IsZero() || now.Before(m.sentEnd[n].Add(s.unheard(m)))
}

// unheard is how long after a transmission an Ack_PDU cannot know of it.
func (s *Sender) unheard(m *outgoing) time.Duration { return 2*s.cfg.Delay + s.cfg.queue(s.active(m)) }

// review decides what an Ack_PDU means for a message.
func (s *Sender) review(now time.Time, m *outgoing) {
	if m.closed || s.ended(m) {
		return
	}
	if !m.idle() { // a pass is under way: what is lost goes with it
		for _, d := range m.dests {
			if d.state == Waiting {
				if len(m.shards) > 0 { // parity: it serves all, if it is enough
					if more := d.lost.count() - len(m.shards); more <= 0 || m.takeParity(more) {
						d.lost = nil
						continue
					}
				}
				for _, n := range d.lost.numbers() {
					if i, queued := slices.BinarySearch(m.numbers, n); !queued {
						m.numbers = slices.Insert(slices.Clone(m.numbers), i, n)
					}
				}
				d.lost = nil
			}
		}
		return
	}
	if m.passEnd.IsZero() {
		return
	}
	if m.lost() {
		m.repairAt = now // answers that follow while it runs add to it
		if s.cfg.Turnaround > 0 {
			m.repairAt = now.Add(2 * s.cfg.ackAir()) // what waited for its turn may have company that knows more
		}
		if s.active(m) > few {
			m.repairAt = now.Add(s.cfg.settle()) // too many could follow, from before it began
		}
	}
	for _, d := range m.dests {
		if !s.waits(d) {
			continue
		}
		d.dueAt = later(d.dueAt, now.Add(s.cfg.settle()+s.cfg.slack())) // others may wait for their turn
	}
	m.pollAt = s.pollTime(m)
	s.arm(m)
}

// ended finishes a message that waits for nobody.
func (s *Sender) ended(m *outgoing) bool {
	if slices.ContainsFunc(m.dests, func(d *destination) bool { return d.state == Waiting }) {
		return false
	}
	delivered := !slices.ContainsFunc(m.dests, func(d *destination) bool { return d.state != Delivered })
	m.address, m.numbers, m.shards, m.closing = nil, nil, nil, nil
	switch {
	case !m.begun:
	case delivered && s.cfg.AckAck:
		m.closing = append(m.closing, AddressPDU{Priority: m.priority, Total: m.total(), Source: s.cfg.Self, Message: m.id, Expiry: m.expiry})
	case !delivered:
		m.closing = append(m.closing, DiscardPDU{m.priority, s.cfg.Self, m.id})
	}
	s.out.record(bucketOutgoing, messageKey(m.id), nil)
	if m.begun {
		s.out.record(bucketBegun, messageKey(m.id), nil)
	}
	m.closed = true
	s.release(m)
	if m.idle() || s.silent { // what a silent node would have said is of no use later
		s.dequeue(m)
		s.forget(m)
		return true
	}
	s.enqueue(m)
	s.arm(m)
	return true
}

// forget lets go of a message that has ended.
func (s *Sender) forget(m *outgoing) {
	if m.index >= 0 {
		heap.Remove(&s.timers, m.index)
	}
	if s.messages[m.id] == m {
		delete(s.messages, m.id)
		s.octets -= m.octets
	}
}

// end gives all who wait the same fate.
func (s *Sender) end(now time.Time, m *outgoing, state State) {
	if m.closed {
		return
	}
	for _, d := range m.dests {
		if d.state == Waiting {
			s.final(now, m, d, state)
		}
	}
	s.dequeue(m)
	s.ended(m)
}

// final gives a destination its one final state.
func (s *Sender) final(now time.Time, m *outgoing, d *destination, state State) {
	d.state, d.missing, d.lost = state, nil, nil
	delete(s.peer(d.node).waiting, m.id)
	f := Fate{m.id, d.node, state, now}
	s.out.Fates = append(s.out.Fates, f)
	s.out.record(bucketFate, fateKey(f.Message, f.To), appendTime([]byte{byte(state)}, now))
	s.keepFate(f)
	for len(s.order) > s.cfg.Limits.Fates {
		old := s.order[0]
		s.order = s.order[1:]
		delete(s.fates, old)
		s.out.record(bucketFate, fateKey(old.message, old.node), nil)
	}
}

func (s *Sender) keepFate(f Fate) {
	id := fateID{f.Message, f.To}
	s.fates[id] = f
	s.order = append(s.order, id)
}
