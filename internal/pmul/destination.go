package pmul

import (
	"math/bits"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// peer is the state of another node.
type peer struct {
	sequence   uint32    // last Message_Sequence_Number
	silent     bool      // EMCON
	unanswered int       // questions since it was heard
	askedAt    time.Time // further questions until then count as the same one
	probeAt    time.Time // when a dead node is asked again
	burst      time.Time // it is sending all Ack_PDUs that it owed; the next of these arrives by then
	loss       float64   // share of frames that it loses
	measured   bool      // loss has been measured
	odd        int       // entries about messages not sent yet, since oddSince
	oddSince   time.Time
	waiting    map[MessageID]*outgoing
	last       map[string]uint32 // Message_Sequence_Number of the last message of each source
	before     uint32            // the highest when last was begun
}

// dead is the number of unanswered questions after which a node is probed only now and then.
const dead = 3

func (p *peer) dead() bool { return p.unanswered >= dead }

// Answers says whether an acknowledgement of a node is expected: it is neither silent nor dead.
func (s *Sender) Answers(n NodeID) bool {
	p := s.peers[n]
	return p == nil || !p.silent && !p.dead()
}

// asked counts a question to the node. Questions that overlap are one.
func (p *peer) asked(now time.Time, s *Sender) {
	if now.Before(p.askedAt) {
		return
	}
	p.unanswered++
	p.askedAt = now.Add(s.cfg.ackWait(1, 1))
	if p.dead() {
		p.probe(now, s)
	}
}

// probe sets the time of the next question to a dead node: the more unanswered questions, the later. If no node answers at
// all, this node's radio may have failed, and questions take air that nobody needs: they become rarer only after
// outageProbes.
func (p *peer) probe(now time.Time, s *Sender) {
	unanswered := p.unanswered
	if s.cfg.Hears && !slices.ContainsFunc(s.cfg.Peers, func(n NodeID) bool { return s.peers[n] == nil || !s.peers[n].dead() }) {
		unanswered = max(0, unanswered-outageProbes)
	}
	p.probeAt = now.Add(max(s.cfg.ProbeEvery, s.cfg.ackWait(1, 1)) * time.Duration(1+min(unanswered/8, 7)))
}

// outageProbes is how many questions go in an outage before they become rarer: as many as in about an hour on HF.
const outageProbes = 120

// destination is one recipient of a message.
type destination struct {
	node     NodeID
	peer     *peer
	sequence uint32
	state    State
	named    bool      // in the last pass
	rank     int       // its place among the named nodes
	dueAt    time.Time // when it is asked, unless its answer has come
	missing  set       // numbers that it has not acknowledged; nil: it has sent no list
	lost     set       // numbers that it reported missing and that are not being sent again
}

// answers tells whether an answer is expected of it.
func (d *destination) answers() bool { return d.lacks() && !d.peer.silent && !d.peer.dead() }

// lacks tells whether it does not have the message yet, and may still get it.
func (d *destination) lacks() bool { return d.state == Waiting }

// deaf tells whether it needs the message and is silent.
func (d *destination) deaf() bool { return d.lacks() && d.peer.silent }

// misses tells whether it has reported lost fragments.
func (d *destination) misses() bool { return d.lacks() && !d.lost.empty() }

// dests are all recipients of a message.
type dests []*destination

func (l dests) of(n NodeID) *destination {
	if i := slices.IndexFunc(l, func(d *destination) bool { return d.node == n }); i >= 0 {
		return l[i]
	}
	return nil
}

func (l dests) any(is func(*destination) bool) bool { return slices.ContainsFunc(l, is) }

// which are the recipients for which is holds.
func (l dests) which(is func(*destination) bool) (some dests) {
	for _, d := range l {
		if is(d) {
			some = append(some, d)
		}
	}
	return some
}

// named counts the nodes that the last pass named.
func (l dests) named() int {
	return len(l.which(func(d *destination) bool { return d.named }))
}

// hears says whether some recipient may hear a datagram sent now.
func (l dests) hears(now time.Time) bool {
	return l.any(func(d *destination) bool {
		return d.peer.silent || !d.peer.dead() || due.Reached(now, d.peer.probeAt)
	})
}

// active counts the recipients from which an answer is expected.
func (l dests) active() (n int) {
	for _, d := range l {
		if d.answers() {
			n++
		}
	}
	return n
}

// pollTime is when the first answer is overdue, or a node that does not answer may be asked again.
func (l dests) pollTime() (at time.Time) {
	for _, d := range l {
		if d.answers() {
			at = due.Earliest(at, d.dueAt)
		}
	}
	if at.IsZero() {
		for _, d := range l {
			if d.lacks() && !d.peer.silent && d.peer.dead() {
				at = due.Earliest(at, d.peer.probeAt)
			}
		}
	}
	return at
}

// set of Sequence_Numbers.
type set []uint64

func newSet(most int) set       { return make(set, most/64+1) }
func (s set) has(n uint16) bool { return s != nil && s[n/64]>>(n%64)&1 != 0 }
func (s set) add(n uint16)      { s[n/64] |= 1 << (n % 64) }
func (s set) remove(n uint16)   { s[n/64] &^= 1 << (n % 64) }
func (s set) empty() bool       { return !slices.ContainsFunc(s, func(w uint64) bool { return w != 0 }) }
func (s set) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}
func (s set) numbers() (n []uint16) {
	for i := range len(s) * 64 {
		if s.has(uint16(i)) {
			n = append(n, uint16(i))
		}
	}
	return n
}
