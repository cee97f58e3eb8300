package pmul

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// ours says whether an entry of an Ack_PDU is about a message of this node, and counts entries that name the acknowledging
// node itself (p-mul 2.3). told: the Ack_PDU came to this node's own address.
func ours(s *Sender, p *AckPDU, e *AckEntry, told bool) bool {
	if e.Source != p.Source || p.Source == s.cfg.Self {
		return e.Source == s.cfg.Self
	}
	m := s.messages[e.Message]
	_, over := s.fates[fateID{e.Message, p.Source}]
	if told && (over || m != nil && m.begun && m.dests.of(p.Source) != nil) {
		s.stats.Selfnamed++
		return true
	}
	s.stats.Misnamed++
	return false
}

// ack applies an Ack_PDU (p-mul 6.4, 6.6).
func (s *Sender) ack(now time.Time, p AckPDU, told bool) {
	s.stats.Acks++
	from := s.peers[p.Source]
	if from == nil {
		s.stats.Strangers++
		return
	}
	s.slow = max(s.slow-1, 0)
	if !s.cfg.Hears {
		s.interrupted(now, p.Source)
	}
	touched := map[MessageID]*outgoing{}
	var proof time.Time // messages that ended before it have arrived at this node, or are lost
	for _, e := range p.Entries {
		s.stats.AckEntries++
		m := s.messages[e.Message]
		_, over := s.fates[fateID{e.Message, p.Source}]
		switch {
		case !ours(s, &p, &e, told):
			s.stats.PassedBy++ // the Ack_PDU has entries of several sources, and this source is another
			continue
		case over:
			s.stats.Late++
			continue
		case m != nil && !m.begun:
			from.unsent(now, s, p.Source)
			continue
		case m == nil:
			s.stats.Unknown++
			continue
		}
		d := m.dests.of(p.Source)
		if d == nil {
			s.stats.Strangers++
			continue
		}
		s.apply(now, m, d, e)
		s.channel.proved(m, d.state == Delivered)
		if d.state == Delivered {
			proof = due.Latest(proof, m.firstEnd)
		}
		touched[m.id] = m
	}
	if len(touched) == 0 {
		return
	}
	s.heard(now, p.Source, from)
	decay := time.Duration(256)
	for _, id := range slices.Sorted(maps.Keys(touched)) {
		m := touched[id]
		s.learnLate(now, m)
		if m.polls == 0 && !m.passEnd.IsZero() && !now.After(m.passEnd.Add(granted(s, m, m.grant))) {
			decay = 8 // the answer came in time
		}
		m.polls = 0
		s.review(now, m)
	}
	s.late -= s.late / decay
	if !s.cfg.Reorder && s.cfg.Coding == Compact {
		s.passedBy(now, p.Source, from, proof)
	}
}

// learnLate measures by how much an Ack_PDU came too late, if the Sender has asked in vain meanwhile: other nodes use the
// channel too, or the profile promises too much. An Ack_PDU that comes too soon to answer the last question answers the one
// before.
func (s *Sender) learnLate(now time.Time, m *outgoing) {
	if m.polls == 0 || m.askedEnd.IsZero() || !m.passEnd.IsZero() && now.After(m.passEnd.Add(2*s.cfg.Delay+s.cfg.ackAir())) {
		return
	}
	if over := now.Sub(m.askedEnd) - granted(s, m, m.asked); over > 0 {
		s.late = min(max(s.late, over+over/4+s.cfg.slack()), 10*time.Minute)
	}
}

// granted is how long the last answer to a pass may take: by its turn, or after this node has talked for so long.
func granted(s *Sender, m *outgoing, grant time.Duration) time.Duration {
	if s.cfg.plansFor(m) {
		return grant
	}
	return grant + s.cfg.ackWait(m.dests.active()+1, m.total()) + m.train
}

// interrupted notes that an Ack_PDU came while the Sender was transmitting. On a shared channel its node has had a turn
// then, and the datagrams in the radio leave later than expected.
func (s *Sender) interrupted(now time.Time, by NodeID) {
	began := now.Add(-s.cfg.oneWay() - s.cfg.ackAir())
	if s.cfg.Turnaround == 0 || !s.airAt.After(began) {
		return
	}
	shift := 2*s.cfg.Turnaround + s.cfg.ackAir()
	if began.Sub(s.brokenAt) < shift { // the same interruption
		shift = s.cfg.Turnaround + s.cfg.ackAir()
		if by == s.brokenBy { // and the same turn
			shift = s.cfg.ackAir()
		}
	}
	s.brokenAt, s.brokenBy = now, by
	leavesLater(s, began, shift)
}

// leavesLater puts off the datagrams that the radio has held since a time, and the answers to them.
func leavesLater(s *Sender, since time.Time, by time.Duration) {
	s.airAt = s.airAt.Add(by)
	for _, id := range s.Messages() {
		if m := s.messages[id]; !m.closed && m.begun && (!m.idle() || !m.passEnd.Before(since)) {
			m.shift(since, by)
			s.arm(m)
		}
	}
}

// passedBy finds messages that an Ack_PDU leaves out. A node acknowledges all messages that are complete. So if a short
// message was sent before one that the node acknowledges, and is not named, it is lost, or its Ack_PDU is. The Sender
// repeats it, or asks for it, without waiting for a timer.
func (s *Sender) passedBy(now time.Time, node NodeID, from *peer, proof time.Time) {
	for _, m := range from.waiting { // in any order: the timers put it right
		if m.total() == 1 && m.idle() && !m.passEnd.IsZero() && m.passEnd.Before(proof) && m.pollAt.After(now) {
			m.pollAt, m.dests.of(node).dueAt = now, now
			m.carry = carryLost
			if m.train == 0 && !saidAgain(now, s) && now.Sub(m.passEnd) >= s.cfg.ackWait(1, 1) { // an Ack_PDU of its own must have been sent since then
				m.carry = carryNothing
			}
			s.arm(m)
		}
	}
}

// heard notes that a node answers: it is neither dead nor silent, and is soon asked about its other messages.
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
		for _, m := range p.waiting { // in any order: no question goes while answers come
			if d := m.dests.of(n); m.begun && m.idle() && d.dueAt.Before(p.burst) {
				d.dueAt = p.burst
				m.pollAt = due.Latest(m.pollAt, m.dests.pollTime())
				s.arm(m)
			}
		}
	}
}

// wakePeer sets the time of a question for all messages that a node has not acknowledged.
func (s *Sender) wakePeer(now time.Time, n NodeID) {
	for _, id := range slices.Sorted(maps.Keys(s.peer(n).waiting)) {
		m := s.messages[id]
		m.wakes = true
		if m.begun {
			m.pollAt = now.Add(s.cfg.ackWait(1, 1) + s.late)
			m.dests.of(n).dueAt = m.pollAt
		} else {
			m.pollAt = now
		}
		s.arm(m)
	}
}

// apply applies one entry.
func (s *Sender) apply(now time.Time, m *outgoing, d *destination, e AckEntry) {
	if len(e.Missing) == 0 {
		d.measure(&s.cfg, m, 0)
		s.final(now, m, d, Delivered)
		return
	}
	d.measure(&s.cfg, m, e.count())
	if s.cfg.plansFor(m) {
		s.lacking(now, m, d, e)
		return
	}
	d.dueAt = now.Add(s.cfg.repairWait(1))
	before := d.missing
	heard := m.heardBy(d, e)
	unheard := s.cfg.unheard(m.dests.active())
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
			if stale := !m.idle() && !m.first && s.cfg.Turnaround > 0 && m.sentEnd[n].After(due.Latest(m.passBegan, heard)); !stale && !m.underWay(now, uint16(n), unheard) {
				d.lost.add(uint16(n))
			}
		}
	}
	for i := len(m.parityEnd) - 1; i >= 0 && now.Before(m.parityEnd[i].Add(unheard)); i-- {
		if n := d.lost.numbers(); len(n) > 0 { // a shard under way can replace any fragment
			d.lost.remove(n[0])
		}
	}
	for n := 1; n <= len(m.fragments); n++ { // the entry says nothing of these
		if unsent := m.sentEnd[n].IsZero(); unsent || e.Cut && n > above && (before == nil || before.has(uint16(n))) {
			d.missing.add(uint16(n))
		}
	}
}

// heardBy is the last transmission that an Ack_PDU can know of, judged by the numbers that its node lacked before and has
// now. On a shared channel the Ack_PDU may have waited for its turn since before the pass under way, and not know of that
// pass.
func (m *outgoing) heardBy(d *destination, e AckEntry) (at time.Time) {
	listed := newSet(len(m.fragments))
	for _, r := range e.Missing {
		for n := int(r.From); n <= min(int(r.To), len(m.fragments)); n++ {
			listed.add(uint16(n))
		}
	}
	for _, n := range d.missing.numbers() {
		if !listed.has(n) {
			at = due.Latest(at, m.sentEnd[n])
		}
	}
	return at
}

// underWay says whether a fragment will be sent in this pass, or was sent so lately that the Ack_PDU cannot know of it.
func (m *outgoing) underWay(now time.Time, n uint16, unheard time.Duration) bool {
	_, queued := slices.BinarySearch(m.numbers, n)
	return queued || m.sentEnd[n].IsZero() || now.Before(m.sentEnd[n].Add(unheard))
}

// review decides what an Ack_PDU means for a message.
func (s *Sender) review(now time.Time, m *outgoing) {
	if m.closed || s.ended(m) {
		return
	}
	if !m.idle() {
		if s.cfg.plansFor(m) {
			m.lengthen()
		} else {
			m.extend()
		}
		return
	}
	if m.passEnd.IsZero() {
		return
	}
	if m.dests.any((*destination).misses) {
		m.repairAt = now // answers that follow during the repair add to it
		if s.cfg.Turnaround > 0 {
			m.repairAt = now.Add(2 * s.cfg.ackAir()) // an Ack_PDU that waited for its turn may have company that knows more
		}
		if m.dests.active() > few && !s.cfg.plansFor(m) {
			m.repairAt = now.Add(s.cfg.settle()) // too many Ack_PDUs from before the repair began could follow
		}
	}
	rest := answeredBy(m.passEnd, s, m)
	for _, d := range m.dests {
		if d.answers() {
			if !rest.IsZero() {
				d.dueAt = due.Earliest(d.dueAt, rest)
			}
			d.dueAt = due.Latest(d.dueAt, now.Add(s.cfg.settle()+s.cfg.slack())) // other nodes may wait for their turn
		}
	}
	m.pollAt = m.dests.pollTime()
	s.arm(m)
}

// extend puts lost fragments into the pass under way. Parity serves all nodes, if it is enough.
func (m *outgoing) extend() {
	for _, d := range m.dests {
		if !d.lacks() {
			continue
		}
		lost := d.lost
		d.lost = nil
		if more := lost.count() - len(m.shards); len(m.shards) > 0 && (more <= 0 || m.takeParity(more)) {
			continue
		}
		for _, n := range lost.numbers() {
			m.pass.add(n)
		}
	}
}

// ended finishes a message for which no answer is awaited.
func (s *Sender) ended(m *outgoing) bool {
	if m.closed {
		return true
	}
	if m.dests.any((*destination).lacks) {
		return false
	}
	delivered := !m.dests.any(func(d *destination) bool { return d.state != Delivered })
	m.pass.clear()
	switch {
	case !m.begun || m.in != nil: // no node holds a message of a batch apart from the batch
	case delivered && s.cfg.AckAck:
		m.closing = append(m.closing, m.addressPDU(s.cfg.Self))
	case !delivered && !m.once: // a node drops its fragments of an unrepeated message when the message expires
		m.closing = append(m.closing, DiscardPDU{m.priority, s.cfg.Self, m.id})
	}
	if m.parts == nil {
		s.out.record(bucketOutgoing, messageKey(m.id), nil)
	}
	if m.begun && m.parts == nil {
		s.out.record(bucketBegun, messageKey(m.id), nil)
	}
	m.closed = true
	s.release(m)
	if m.idle() || s.silent { // closing PDUs that a silent node could not send are of no use later
		s.queue.remove(m)
		s.forget(m)
		if m.in != nil {
			partEnded(s, m.in)
		}
		return true
	}
	s.queue.put(m)
	s.arm(m)
	return true
}

// forget drops a message that has ended.
func (s *Sender) forget(m *outgoing) {
	s.timers.Remove(m.place)
	if s.messages[m.id] == m {
		delete(s.messages, m.id)
		s.octets -= m.octets
	}
}

// end gives the same fate to all recipients that still wait.
func (s *Sender) end(now time.Time, m *outgoing, state State) {
	if m.closed {
		return
	}
	if m.in != nil && !m.begun {
		leave(s, m)
	}
	for _, d := range m.dests {
		if d.lacks() {
			s.final(now, m, d, state)
		}
	}
	s.ended(m)
}

// final gives a destination its one final state.
func (s *Sender) final(now time.Time, m *outgoing, d *destination, state State) {
	d.state, d.missing, d.lost = state, nil, nil
	delete(d.peer.waiting, m.id)
	if m.parts != nil {
		partsFinal(s, now, m, d.node, state)
		return
	}
	f := Fate{m.id, d.node, state, now, d.sequence}
	s.out.Fates = append(s.out.Fates, f)
	s.out.record(bucketFate, fateKey(f.Message, f.To), appendTime([]byte{byte(state)}, now))
	s.ends.keep(f)
	for len(s.order) > s.cfg.Limits.Fates {
		old := s.order[0]
		s.order = s.order[1:]
		delete(s.fates, old)
		s.out.record(bucketFate, fateKey(old.message, old.node), nil)
	}
}

// ends are the fates that can be looked up.
type ends struct {
	fates map[fateID]Fate
	order []fateID // oldest first
}

type fateID struct {
	message MessageID
	node    NodeID
}

func (e *ends) keep(f Fate) {
	id := fateID{f.Message, f.To}
	e.fates[id] = f
	e.order = append(e.order, id)
}
