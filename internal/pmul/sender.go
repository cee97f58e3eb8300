package pmul

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
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
	burst      time.Time // it says all that it owed: until then the next Ack_PDU of that must come
	waiting    map[MessageID]*outgoing
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
	airAt    time.Time     // when what was handed over has left, others' turns counted
	brokenAt time.Time     // when others last spoke between two datagrams of ours
	slow     int           // the rate is divided by 2^slow: acknowledgements stay away
	late     time.Duration // by how much Ack_PDUs came after ackWait, lately
	rejectAt time.Time     // not before it another Reject_PDU
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
	case Replace:
		s.replace(now, ev)
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
		p.waiting[m.id] = m
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

// Next is the Message_ID that a message submitted now gets.
func (s *Sender) Next(now time.Time) MessageID {
	s.firstNumber(now)
	return s.next
}

// firstNumber sets the first Message_ID.
func (s *Sender) firstNumber(now time.Time) {
	if !s.numbered {
		s.numbered = true
		s.next = s.cfg.FirstMessage
		if s.next == 0 {
			s.next = MessageID(now.UnixMilli() / 100) // 13 years until it comes round
		}
		s.reserved = s.next
	}
}

// number takes the next Message_ID. What is given out lies below a mark in the journal.
func (s *Sender) number(now time.Time) MessageID {
	s.firstNumber(now)
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
		if d := m.dest(n); d != nil && d.state == Waiting && m.begun && m.idle() && m.repeatAt.IsZero() {
			m.repeatAt = now.Add(s.repeatEvery(now, m))
			s.arm(m)
		}
	}
}
