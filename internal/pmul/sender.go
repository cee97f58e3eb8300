package pmul

import (
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"aldis/internal/profile"
)

// Why a Submit is refused; Accepted.Err wraps one of these.
var (
	ErrUnknownNode  = errors.New("no such node")
	ErrDestinations = errors.New("no destination, one twice, the sender itself, or too many")
	ErrExpired      = errors.New("its expiry is past or after 2106")
	ErrTooLarge     = errors.New("more than 65535 fragments")
	ErrFull         = errors.New("the store is full")
)

// SenderStats count since the start.
type SenderStats struct {
	Submitted, Passes               int
	DataSent, DataOctets            int // Data_PDUs and the octets of their datagrams' fragments
	DataAgain, AgainOctets          int // of these, not for the first time
	Polls, Repeats, AddressSent     int
	Acks, AckEntries                int
	Strangers                       int // Ack_PDUs of nodes that a message was not for
	Unknown                         int // Ack entries of messages never sent, or long over
	Late                            int // Ack entries of what had ended
	Illegal                         int // numbers that a message does not have
	Twin                            int // PDUs of others with our own Source_ID
	Rejected, PassedBy, DiscardSent int
}

// peer is what is known of another node.
type peer struct {
	sequence   uint32    // last Message_Sequence_Number
	silent     bool      // EMCON
	unanswered int       // questions since it was heard
	askedAt    time.Time // until then a further question is the same one
	probeAt    time.Time // dead: when to ask again
}

// dead after so many questions without an answer: only a rare probe is worth its air.
const dead = 3

func (p *peer) dead() bool { return p.unanswered >= dead }

// few nodes may be interrupted by a repair while they answer; of more the answers are collected first.
const few = 4

type fateID struct {
	message MessageID
	node    NodeID
}

// Sender is the sending half of a node: all its messages.
type Sender struct {
	cfg      Config
	silent   bool
	next     MessageID
	reserved MessageID
	numbered bool // next is known
	messages map[MessageID]*outgoing
	octets   int
	ready    []*outgoing // with something to send, what goes first in front
	timers   timers
	peers    map[NodeID]*peer
	fates    map[fateID]Fate
	order    []fateID // of fates, oldest first
	freeAt   time.Time
	slow     int           // the rate is divided by 2^slow: acknowledgements stay away
	late     time.Duration // by how much Ack_PDUs came after ackWait, lately
	restored bool
	stats    SenderStats
	out      Output
}

// NewSender starts from what an earlier one recorded; records of other buckets are passed by. What was on the air is
// asked for before it is sent again.
func NewSender(cfg Config, journal []Record) (*Sender, error) {
	s := &Sender{cfg: cfg, messages: map[MessageID]*outgoing{}, peers: map[NodeID]*peer{}, fates: map[fateID]Fate{}}
	if err := s.restore(journal); err != nil {
		return nil, err
	}
	s.restored = len(s.messages) > 0
	return s, nil
}

// Stats copies the counters.
func (s *Sender) Stats() SenderStats { return s.stats }

// Silent tells whether the node is under EMCON.
func (s *Sender) Silent() bool { return s.silent }

// Fate is where a message stands with a node; false when nothing is known of it, or no longer.
func (s *Sender) Fate(m MessageID, n NodeID) (State, bool) {
	if f, ok := s.fates[fateID{m, n}]; ok {
		return f.State, true
	}
	if o := s.messages[m]; o != nil && o.dest(n) != nil {
		return Waiting, true
	}
	return Waiting, false
}

// Messages are those that have not ended for everybody, in the order of their numbers.
func (s *Sender) Messages() []MessageID { return slices.Sorted(maps.Keys(s.messages)) }

// Progress is how much of a message that has not ended a node is known to have, and of how many fragments; sent is how
// many have been on the air. Fragments are 0 for a message that is not held.
func (s *Sender) Progress(id MessageID, n NodeID) (has, sent, fragments int) {
	m := s.messages[id]
	if m == nil {
		return 0, 0, 0
	}
	fragments = len(m.fragments)
	for _, at := range m.sentEnd {
		if !at.IsZero() {
			sent++
		}
	}
	if d := m.dest(n); d != nil && d.state == Delivered {
		has = fragments
	} else if d != nil && d.missing != nil {
		has = fragments - len(d.missing.numbers())
	}
	return has, sent, fragments
}

// Step brings the sender to now and applies ev.
func (s *Sender) Step(now time.Time, ev Event) Output {
	s.out = Output{}
	if s.restored {
		s.restored = false
		for _, id := range s.Messages() {
			s.resume(now, s.messages[id])
		}
	}
	switch ev := ev.(type) {
	case Submit:
		s.submit(now, ev)
	case Withdraw:
		if m := s.messages[ev.Message]; m != nil {
			s.end(now, m, Withdrawn)
		}
	case AckPDU:
		s.ack(now, ev)
	case EMCON:
		s.emcon(now, ev.Silent)
	case PeerEMCON:
		s.peerEMCON(now, ev.Node, ev.Silent)
	case RequestPDU:
		s.requested(now, ev)
	case RejectPDU:
		s.rejected(now, ev)
	case DataPDU:
		s.twin(ev.Source)
	case AddressPDU:
		s.twin(ev.Source)
	case PDU:
		s.stats.PassedBy++
	}
	for len(s.timers) > 0 && due(now, s.timers[0].wakeAt) {
		s.expire(now, s.timers[0])
	}
	s.transmit(now)
	if len(s.timers) > 0 {
		s.out.wake(s.timers[0].wakeAt)
	}
	if len(s.ready) > 0 && !s.silent {
		s.out.wake(later(s.freeAt, now.Add(time.Nanosecond)))
	}
	return s.out
}

func (s *Sender) twin(source NodeID) {
	if source == s.cfg.Self {
		s.stats.Twin++
	} else {
		s.stats.PassedBy++
	}
}

func (s *Sender) peer(n NodeID) *peer {
	p := s.peers[n]
	if p == nil {
		p = &peer{}
		s.peers[n] = p
	}
	return p
}

func (s *Sender) submit(now time.Time, ev Submit) {
	id, err := s.accept(now, ev)
	s.out.Accepted = append(s.out.Accepted, Accepted{ev.Ref, id, err})
}

// accept checks a message, gives it a number and makes it durable.
func (s *Sender) accept(now time.Time, ev Submit) (MessageID, error) {
	expiry := time.Unix(ev.Expires.Unix(), 0).UTC()
	size := s.cfg.FragmentOctets()
	seen := map[NodeID]bool{s.cfg.Self: true}
	for _, n := range ev.To {
		if !s.cfg.knows(n) {
			return 0, fmt.Errorf("pmul: to %v: %w", n, ErrUnknownNode)
		}
		if seen[n] {
			return 0, fmt.Errorf("pmul: to %v: %w", n, ErrDestinations)
		}
		seen[n] = true
	}
	switch {
	case len(ev.To) == 0 || len(ev.To) > s.cfg.Limits.Destinations:
		return 0, fmt.Errorf("pmul: to %d nodes: %w", len(ev.To), ErrDestinations)
	case !expiry.After(now) || expiry.Unix() > 1<<32-1:
		return 0, fmt.Errorf("pmul: expires %v: %w", expiry, ErrExpired)
	case len(ev.Payload) > size*(1<<16-1):
		return 0, fmt.Errorf("pmul: %d octets in fragments of %d: %w", len(ev.Payload), size, ErrTooLarge)
	case !s.room(now, ev):
		return 0, fmt.Errorf("pmul: %d messages, %d octets: %w", len(s.messages), s.octets, ErrFull)
	}
	m := &outgoing{id: s.number(now), priority: ev.Priority, expiry: expiry, group: ev.Group}
	if m.group == 0 {
		m.group = s.cfg.Group
	}
	if ev.Dynamic {
		m.dynamic = &negotiation{}
	}
	m.cut(ev.Payload, size)
	for _, n := range ev.To {
		p := s.peer(n)
		p.sequence++
		m.dests = append(m.dests, &destination{node: n, sequence: p.sequence})
		s.out.record(bucketNode, nodeKey(keySequence, n), messageKey(MessageID(p.sequence)))
	}
	s.out.record(bucketOutgoing, messageKey(m.id), m.encode())
	s.messages[m.id] = m
	s.octets += m.octets
	s.stats.Submitted++
	s.resume(now, m)
	return m.id, nil
}

// room makes room for a message, if need be by refusing one of lower priority that has not begun.
func (s *Sender) room(now time.Time, ev Submit) bool {
	fits := func() bool {
		return len(s.messages) < s.cfg.Limits.Messages && s.octets+len(ev.Payload) <= s.cfg.Limits.Octets
	}
	for !fits() {
		var least *outgoing
		for _, id := range s.Messages() {
			if m := s.messages[id]; !m.begun && m.priority < ev.Priority && (least == nil || m.priority <= least.priority) {
				least = m
			}
		}
		if least == nil {
			return false
		}
		s.end(now, least, Refused)
	}
	return true
}

// number takes the next Message_ID. What is given out lies below a mark in the journal.
func (s *Sender) number(now time.Time) MessageID {
	if !s.numbered {
		s.numbered = true
		s.next = s.cfg.FirstMessage
		if s.next == 0 {
			s.next = MessageID(now.UnixMilli() / 100) // 13 years until it comes round
		}
		s.reserved = s.next
	}
	if s.next == s.reserved {
		s.reserved += idBlock
		s.out.record(bucketNode, []byte(keyNextMessage), messageKey(s.reserved))
	}
	id := s.next
	s.next++
	return id
}

// resume starts a message, or goes on with it after a restart.
func (s *Sender) resume(now time.Time, m *outgoing) {
	switch {
	case m.begun:
		m.passEnd, m.pollAt = now, now // whatever arrived, its recipients know
		for n := range m.sentEnd {
			m.sentEnd[n] = time.Unix(0, 0)
		}
		if s.anySilent(m) {
			m.repeatAt = now
		}
	case m.dynamic != nil:
		s.negotiate(now, m)
	default:
		s.begin(now, m)
	}
	s.arm(m)
}

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
		p, numbers := m.next(&s.cfg)
		octets := s.cfg.octets(p)
		air := profile.Airtime(octets+s.cfg.Overhead, s.cfg.RateBps)
		s.freeAt = now.Add(air << s.slow)
		s.out.Send = append(s.out.Send, p)
		s.count(m, p, numbers, now.Add(air))
		if m.idle() {
			s.dequeue(m)
			s.passed(now.Add(air), m)
		}
	}
}

func (s *Sender) count(m *outgoing, p Packet, numbers []uint16, end time.Time) {
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
	m.first = false
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

// repair sends the union of what is missed, once for all.
func (s *Sender) repair(m *outgoing) {
	union := newSet(len(m.fragments))
	for _, d := range m.dests {
		if d.state == Waiting {
			for i, w := range d.lost {
				union[i] |= w
			}
			d.lost = nil
		}
	}
	m.repairAt = time.Time{}
	s.pass(m, s.waits, union.numbers())
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
	s.pass(m, func(d *destination) bool { return s.peer(d.node).silent }, union.numbers())
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
		if m.polls > 0 && len(numbers) == 0 {
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
	s.stats.Polls++
	s.pass(m, func(d *destination) bool { return asked[d.node] }, numbers)
}

// ack applies an Ack_PDU: p-mul.md 6.4 and 6.6.
func (s *Sender) ack(now time.Time, p AckPDU) {
	s.stats.Acks++
	from := s.peers[p.Source]
	if from == nil {
		s.stats.Strangers++
		return
	}
	s.slow = max(s.slow-1, 0)
	touched := map[MessageID]*outgoing{}
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
		touched[m.id] = m
	}
	if len(touched) == 0 {
		return
	}
	s.heard(now, p.Source, from)
	for _, id := range slices.Sorted(maps.Keys(touched)) {
		m := touched[id]
		if !m.passEnd.IsZero() { // how late it was: the profile may promise too much
			if over := now.Sub(m.passEnd) - s.cfg.ackWait(s.active(m)+1, m.total()); over > 0 && m.polls > 0 {
				s.late = min(max(s.late, over), 10*time.Minute)
			}
		}
		m.heard, m.polls = now, 0
		s.review(now, m)
	}
	s.late -= s.late / 64
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
}

// wakePeer sets the question for all messages that a node has not acknowledged.
func (s *Sender) wakePeer(now time.Time, n NodeID) {
	for _, id := range s.Messages() {
		m := s.messages[id]
		if d := m.dest(n); d == nil || d.state != Waiting || m.closed {
			continue
		}
		if m.begun {
			m.pollAt = now.Add(s.cfg.ackWait(1, 1) + s.late)
		} else {
			m.pollAt = now
		}
		s.arm(m)
	}
}

// apply takes one entry.
func (s *Sender) apply(now time.Time, m *outgoing, d *destination, e AckEntry) {
	d.answered = true
	if len(e.Missing) == 0 {
		s.final(now, m, d, Delivered)
		return
	}
	before := d.missing
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
			if !s.underWay(now, m, uint16(n)) {
				d.lost.add(uint16(n))
			}
		}
	}
	for n := 1; n <= len(m.fragments); n++ { // of these nothing is said
		if unsent := m.sentEnd[n].IsZero(); unsent || e.Cut && n > above && (before == nil || before.has(uint16(n))) {
			d.missing.add(uint16(n))
		}
	}
}

// underWay: it will be sent in this pass, or was so lately that the Ack_PDU cannot know of it.
func (s *Sender) underWay(now time.Time, m *outgoing, n uint16) bool {
	_, queued := slices.BinarySearch(m.numbers, n)
	return queued || m.sentEnd[n].IsZero() || now.Before(m.sentEnd[n].Add(2*s.cfg.Delay+s.cfg.queue(s.active(m))))
}

// review decides what an Ack_PDU means for a message.
func (s *Sender) review(now time.Time, m *outgoing) {
	if m.closed || s.ended(m) {
		return
	}
	if !m.idle() { // a pass is under way: what is lost goes with it
		for _, d := range m.dests {
			if d.state == Waiting {
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
		if s.active(m) > few {
			m.repairAt = now.Add(s.cfg.settle()) // too many could follow, from before it began
		}
	}
	if active := s.active(m); active > 0 {
		m.pollAt = later(m.passEnd.Add(s.cfg.ackWait(active, m.total())+s.late), now.Add(2*s.cfg.settle()))
	} else {
		m.pollAt = s.probeTime(m)
	}
	s.arm(m)
}

// ended finishes a message that waits for nobody.
func (s *Sender) ended(m *outgoing) bool {
	if slices.ContainsFunc(m.dests, func(d *destination) bool { return d.state == Waiting }) {
		return false
	}
	delivered := !slices.ContainsFunc(m.dests, func(d *destination) bool { return d.state != Delivered })
	m.address, m.numbers, m.closing = nil, nil, nil
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

// emcon: a silent sender holds everything; expiry goes on.
func (s *Sender) emcon(now time.Time, silent bool) {
	if s.silent == silent {
		return
	}
	s.silent = silent
	if silent {
		s.out.record(bucketNode, []byte(keySilentSender), []byte{1})
	} else {
		s.out.record(bucketNode, []byte(keySilentSender), nil)
	}
	for _, id := range s.Messages() {
		m := s.messages[id]
		if !silent && m.begun && m.idle() && !m.pollAt.IsZero() {
			m.pollAt = later(m.pollAt, now.Add(s.cfg.ackWait(1, 1))) // answers that waited for nobody come first
		}
		s.arm(m)
	}
}

// peerEMCON notes whether a node may transmit.
func (s *Sender) peerEMCON(now time.Time, n NodeID, silent bool) {
	p := s.peer(n)
	if p.silent == silent || !s.cfg.knows(n) {
		return
	}
	p.silent, p.unanswered = silent, 0
	if !silent {
		s.out.record(bucketNode, nodeKey(keyPeerSilent, n), nil)
		s.wakePeer(now, n)
		return
	}
	s.out.record(bucketNode, nodeKey(keyPeerSilent, n), []byte{1})
	for _, id := range s.Messages() {
		m := s.messages[id]
		if d := m.dest(n); d != nil && d.state == Waiting && m.begun && m.idle() && m.repeatAt.IsZero() {
			m.repeatAt = now.Add(s.repeatEvery(now, m))
			s.arm(m)
		}
	}
}
