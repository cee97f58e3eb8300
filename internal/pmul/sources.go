package pmul

import (
	"maps"
	"math"
	"slices"

	"aldis/internal/ground/share"
)

// sources share the air of one Sender by octets, among messages of one Priority: the source that has used least of it goes
// next, even in the middle of a long message of another source. docs/decisions/fairness.md.
type sources struct {
	rota    share.Rota
	first   string      // the source that waited first since the queue was last empty
	several bool        // other sources have waited since then
	lead    *outgoing   // the message that goes next, if that is not the oldest
	amid    []*outgoing // short messages that interrupted a long one, and go once more with the next
}

// sourced says of which source a message is.
type sourced struct {
	source string
	leads  bool
	amid   bool // it interrupted a long message of another source
	// after is by how much lower the Message_Sequence_Number of the last message of its source is; 0: that differs among
	// its destinations.
	after uint32
}

// waits notes that a message is in the queue.
func (u *sources) waits(s *Sender, m *outgoing) {
	if len(s.queue) == 0 {
		*u = sources{first: m.source}
	}
	u.several = u.several || m.parts == nil && m.source != u.first
}

// went charges a PDU to the sources of the messages whose octets it has.
func (u *sources) went(s *Sender, pdu PDU) {
	for _, p := range s.Parts(pdu) {
		if m := s.messages[p.Message]; m != nil && p.Octets > 0 {
			u.rota.Went(m.source, p.Octets)
		}
	}
}

// used is how much of the air the source of a message has used; for a batch, the least of its sources.
func (u *sources) used(m *outgoing) uint64 {
	if m.parts == nil {
		return u.rota.Used(m.source)
	}
	least := uint64(math.MaxUint64)
	for _, p := range m.parts {
		if !p.closed {
			least = min(least, u.rota.Used(p.source))
		}
	}
	return least
}

// takeTurns puts the message whose source goes next in front of the queue.
func (u *sources) takeTurns(s *Sender) {
	if m := u.lead; m != nil {
		queued := m.ready
		s.queue.remove(m)
		m.leads, u.lead = false, nil
		if queued {
			s.queue.put(m)
		}
	}
	if !u.several || len(s.queue) < 2 {
		return
	}
	first, least := s.queue[0], uint64(math.MaxUint64-share.AheadOctets)
	for _, m := range s.queue {
		if m.rank() != first.rank() {
			break
		}
		least = min(least, u.used(m))
	}
	for _, m := range s.queue {
		if u.used(m) <= least+share.AheadOctets {
			if m != first && m.rank() == first.rank() {
				s.queue.remove(m)
				m.leads, u.lead = true, m
				s.queue.put(m)
			}
			return
		}
	}
}

const (
	// amidHolds is how many times as long as in a train the acknowledgements of short messages wait amid a long one.
	amidHolds = 4
	// amidCopies is how often such a message goes again: of three datagrams some seconds apart, a burst of losses leaves one.
	amidCopies = 2
)

// amidLong says that the next message is a short one that interrupts a long one of another source, perhaps after some that
// go again with it.
func (q queue) amidLong() bool {
	for len(q) > 1 && q[0].rides {
		q = q[1:]
	}
	return len(q) > 1 && q[0].leads && q[0].total() == 1 && q[1].begun && q[1].total() > 1 && !q[1].batch
}

// goAmid makes the last short messages that interrupted a long one go again with the present one: no receiver asks for a
// message that the next datagram brings, because a question interrupts the long one.
func goAmid(s *Sender) {
	if !s.queue.amidLong() {
		return
	}
	lead := s.sources.lead
	for _, m := range s.sources.amid {
		if m.idle() && !m.closed && m.dests.active() > 0 {
			m.rides = true
			s.pass(m, (*destination).answers, m.all())
		}
	}
	lead.train = amidHolds*s.cfg.trainHold(len(lead.dests))*3/2 - s.cfg.hold(len(lead.dests))
	lead.amid = true
	s.sources.amid = append(s.sources.amid, lead)
	s.sources.amid = s.sources.amid[max(0, len(s.sources.amid)-amidCopies):]
}

// follows notes after which message of its source a new message is read.
func follows(m *outgoing) {
	for i, d := range m.dests {
		if d.peer.last == nil || len(d.peer.last) >= mostSources {
			d.peer.before, d.peer.last = d.sequence-1, map[string]uint32{}
		}
		last, known := d.peer.last[m.source]
		if !known {
			last = d.peer.before
		}
		switch after := d.sequence - max(last, d.peer.last[""]); { // all later messages wait for the site's state
		case i == 0:
			m.after = after
		case after != m.after:
			m.after = 0
		}
		d.peer.last[m.source] = d.sequence
	}
}

// mostSources is the most sources whose last messages are remembered.
const mostSources = 4096

// batchAfter is the same for a batch of messages that follow each other; 0: one of them has to wait for a message between them.
func batchAfter(some []*outgoing) (after uint32) {
	first := some[0].sequence
	for i, m := range some {
		switch before := m.sequence - m.after; {
		case m.after == 0:
			return 0
		case before < first:
			after = max(after, before)
		case !slices.ContainsFunc(some[:i], func(o *outgoing) bool { return o.sequence == before }):
			return 0
		}
	}
	return first - after
}

// free says whether a message should be read although messages of other sources are missing before it: many octets of these
// are under way.
func free(s *Sender, m *outgoing) bool {
	if !s.batches || m.after == 0 || m.priority > 0 {
		return false
	}
	own, others := 0, 0
	for _, o := range s.messages {
		switch {
		case o.closed || o.batch || int32(o.id-m.order()) >= 0:
		case o.source == m.source:
			own += o.octets
		default:
			others += o.octets
		}
	}
	return others > max(own, share.AheadOctets)
}

// shares are how many octets of a batch each source may still fill.
type shares struct {
	each int
	left map[string]int // of sources that have filled some
}

// sharesOf divides a batch of so many octets among the sources of the waiting messages: each gets as much as it has to
// send, but not more than another source that gets less than it has to send.
func sharesOf(waiting []*outgoing, limit int) *shares {
	says := map[string]int{}
	for _, m := range waiting {
		says[m.source] += m.octets + batchHead
	}
	some := slices.Sorted(maps.Values(says))
	for i, n := range some {
		if each := limit / (len(some) - i); n > each {
			return &shares{each, map[string]int{}}
		}
		limit -= n
	}
	return &shares{math.MaxInt, map[string]int{}}
}

// holds takes so many octets of a source's share. The source's first message may be longer than the share. Once a message
// has no room, no later one of that source has.
func (h *shares) holds(source string, octets int) bool {
	left, begun := h.left[source]
	if !begun {
		left = max(h.each, octets)
	}
	if left < octets {
		h.left[source] = 0
		return false
	}
	h.left[source] = left - octets
	return true
}
