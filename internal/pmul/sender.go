package pmul

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
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
	Strangers                       int // Ack_PDUs of nodes that were not recipients of the message
	Unknown                         int // Ack entries of unknown messages, or of messages long over
	Unsent                          int // Ack entries of messages that have not been sent
	Late                            int // Ack entries of messages that had ended
	Selfnamed                       int // Ack entries of a node that names itself as the sender of messages sent to it
	Misnamed                        int // the same for messages not sent to it, or not to this node's own address: ignored
	Illegal                         int // numbers that a message does not have
	Twin                            int // PDUs of others with our own Source_ID
	Rejected, PassedBy, DiscardSent int
}

// few is the most answering nodes among which a repair starts at once; with more, the Sender collects the answers first.
const few = 4

// Sender is the sending half of a node: all its messages.
type Sender struct {
	cfg      Config
	silent   bool
	batches  bool // all nodes know batches
	numbers  numbering
	messages map[MessageID]*outgoing
	octets   int
	queue    queue
	timers   due.Heap[*outgoing]
	peers    map[NodeID]*peer
	ends
	pace
	channel  turns
	floor    floor
	urgent   urgent
	sources  sources
	rejectAt time.Time // the earliest time of another Reject_PDU
	restored bool
	stats    SenderStats
	out      Output
}

// NewSender starts from the records of an earlier one; it skips records of other buckets. It asks for messages that were on
// the air before it sends them again.
func NewSender(cfg Config, journal []Record) (*Sender, error) {
	s := &Sender{cfg: cfg, messages: map[MessageID]*outgoing{}, peers: map[NodeID]*peer{}, ends: ends{fates: map[fateID]Fate{}}}
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

// Fate is the state of a message for a node; false if it is not known, or no longer.
func (s *Sender) Fate(m MessageID, n NodeID) (State, bool) {
	if f, ok := s.fates[fateID{m, n}]; ok {
		return f.State, true
	}
	if o := s.messages[m]; o != nil && o.dests.of(n) != nil {
		return Waiting, true
	}
	return Waiting, false
}

// Messages are the messages that have not ended for all recipients, in the order of their numbers.
func (s *Sender) Messages() []MessageID { return slices.Sorted(maps.Keys(s.messages)) }

// Progress is how many fragments of an unfinished message a node is known to have, and how many it has in all; sent is how
// many have been on the air. fragments is 0 for a message that is not held.
func (s *Sender) Progress(id MessageID, n NodeID) (has, sent, fragments int) {
	m := carrying(s, id)
	if m == nil {
		return 0, 0, 0
	}
	fragments = len(m.fragments)
	for _, at := range m.sentEnd {
		if !at.IsZero() {
			sent++
		}
	}
	if d := m.dests.of(n); d != nil && d.state == Delivered {
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
	case Replace:
		s.replace(now, ev)
	case Hold:
		if m := s.messages[ev.Message]; s.Waits(ev.Message) && m.held != ev.On {
			m.hold(now, s, ev.On)
		}
	case Cancel:
		if m := s.messages[ev.Message]; m != nil {
			s.end(now, m, Cancelled)
		}
	case Gone:
		ev.step(now, s)
	case AckPDU:
		s.ack(now, ev, false)
	case Told:
		s.ack(now, ev.AckPDU, true)
	case Busy:
		s.busy(now, ev)
	case TurnPDU:
		if s.cfg.Hears && ev.Source != s.cfg.Self && s.cfg.knows(ev.Source) {
			hearTurn(now, s, ev)
		}
	case EMCON:
		s.emcon(now, ev.Silent)
	case PeerEMCON:
		s.peerEMCON(now, ev.Node, ev.Silent)
	case RequestPDU:
		s.requested(now, ev)
	case RejectPDU:
		s.rejected(now, ev)
	case DataPDU:
		twin(s, ev.Source)
	case AddressPDU:
		twin(s, ev.Source)
		if ev.Priority >= alarm {
			s.urgent.heard = now
			s.floor.until = s.floor.until.Add(2 * s.cfg.Turnaround) // it interrupted this node's turn, if it has one
		}
	case PDU:
		s.stats.PassedBy++
	}
	for len(s.timers) > 0 && due.Reached(now, s.timers[0].wakeAt) {
		s.expire(now, s.timers[0])
	}
	s.transmit(now)
	if len(s.timers) > 0 {
		s.out.wake(s.timers[0].wakeAt)
	}
	if len(s.queue) > 0 && !s.silent {
		s.out.wake(due.Latest(s.roomAt(now), now.Add(time.Nanosecond)))
	} else if at := turnDue(now, s); !at.IsZero() {
		s.out.wake(due.Latest(at, now.Add(time.Nanosecond)))
	}
	return s.out
}

func twin(s *Sender, source NodeID) {
	if source == s.cfg.Self {
		s.stats.Twin++
	} else {
		s.stats.PassedBy++
	}
}

func (s *Sender) peer(n NodeID) *peer {
	p := s.peers[n]
	if p == nil {
		p = &peer{waiting: map[MessageID]*outgoing{}}
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
	id, reserved := s.numbers.take(now, &s.cfg)
	if reserved {
		s.out.record(bucketNode, []byte(keyNextMessage), messageKey(s.numbers.reserved))
	}
	m := &outgoing{content: content{id: id, priority: ev.Priority, expiry: expiry, group: cmp.Or(ev.Group, s.cfg.Group), sourced: sourced{source: ev.Source}},
		once: ev.Fleeting, held: ev.Held}
	if ev.Dynamic {
		m.dynamic = &negotiation{}
	}
	m.cut(ev.Payload, s.cfg.cutOf(m.id, len(ev.Payload), s.cfg.DatagramOctets))
	m.atOnce = ev.AtOnce
	m.prompt = ev.AtOnce && s.cfg.Hears && len(ev.To) > few && m.total() == 1 // with few recipients, acknowledgements do not wait for long
	for _, n := range ev.To {
		p := s.peer(n)
		p.sequence++
		p.waiting[m.id] = m
		m.dests = append(m.dests, &destination{node: n, peer: p, sequence: p.sequence})
		s.out.record(bucketNode, nodeKey(keySequence, n), messageKey(MessageID(p.sequence)))
	}
	follows(m)
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

// Next is the Message_ID that a message submitted now gets.
func (s *Sender) Next(now time.Time) MessageID { return s.numbers.peek(now, &s.cfg) }

// numbering gives out Message_IDs. The given ones are below a mark in the journal.
type numbering struct {
	next     MessageID
	reserved MessageID // the mark
	known    bool      // next is set
	started  bool      // next has been used in this start
}

// leap bounds the random leap of the numbers at a start, if they come from the clock: a start uses a small part of it.
const leap = 1 << 24

// peek is the next Message_ID; for a new store the first of the Config, or from the clock. If numbers come from the clock,
// each start continues with the clock if that is ahead, and leaps. For the store may have been put back to an older copy,
// the clock may have gone back too, and receivers would take a number that has been used since then for the old message
// (docs/decisions/put-back.md).
func (n *numbering) peek(now time.Time, cfg *Config) MessageID {
	clock := MessageID(now.UnixMilli() / 100) // it repeats after 13 years
	switch {
	case n.started:
	case cfg.FirstMessage != 0:
		if !n.known {
			n.next = cfg.FirstMessage
			n.reserved = n.next
		}
	default:
		if !n.known || int32(clock-n.next) > 0 {
			n.next = clock
		}
		if cfg.Rand != nil {
			n.next += MessageID(cfg.Rand.Uint32N(leap))
		}
		n.reserved = n.next
	}
	n.known, n.started = true, true
	return n.next
}

// take gives out the next Message_ID, and tells whether the mark must be recorded.
func (n *numbering) take(now time.Time, cfg *Config) (id MessageID, mark bool) {
	id = n.peek(now, cfg)
	mark = id == n.reserved
	if mark {
		n.reserved += idBlock
	}
	n.next++
	return id, mark
}

// resume starts a message, or continues it after a restart.
func (s *Sender) resume(now time.Time, m *outgoing) {
	switch {
	case m.begun:
		m.passEnd, m.pollAt = now, now // its recipients know which parts have arrived
		m.parityNext = uint16(min(s.unasked(m), shardsOf(len(m.fragments))))
		m.plan = s.cfg.plans() && s.cfg.codes(&m.content) // shards of it may have gone out
		for n := range m.sentEnd {
			m.sentEnd[n] = time.Unix(0, 0)
		}
		if !m.once && m.dests.any((*destination).deaf) {
			m.repeatAt = now
		}
	case m.dynamic != nil:
		s.negotiate(now, m)
	default:
		s.begin(now, m)
	}
	s.arm(m)
}

// emcon begins or ends silence: a silent sender holds all messages, whose expiry runs on.
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
			m.pollAt = due.Latest(m.pollAt, now.Add(s.cfg.ackWait(1, 1))) // answers that did not wait for this node come first
		}
		s.arm(m)
	}
}

// peerEMCON notes whether a node may transmit.
func (s *Sender) peerEMCON(now time.Time, n NodeID, silent bool) {
	if !s.cfg.knows(n) {
		return
	}
	p := s.peer(n)
	if p.silent == silent {
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
		if d := m.dests.of(n); d != nil && !m.once && m.in == nil && d.lacks() && m.begun && m.idle() && m.repeatAt.IsZero() {
			m.repeatAt = now // the node went silent before it could report what it lacks
			s.arm(m)
		}
	}
}
