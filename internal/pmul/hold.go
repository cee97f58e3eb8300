package pmul

import (
	"slices"
	"time"
)

// Hold holds back a message that has not been on the air, or releases it, to the place that its number gives it. The expiry
// of a held message runs on, and a Replace leaves it held. Hold does not change a message that has begun.
type Hold struct {
	Message MessageID
	On      bool
}

// flagHeld of an outgoing message's record.
const flagHeld = 2

func (m *outgoing) hold(now time.Time, s *Sender, on bool) {
	if m.in != nil {
		leave(s, m)
	}
	m.held = on
	s.out.record(bucketOutgoing, messageKey(m.id), m.encode())
	s.queue.remove(m)
	if on {
		m.pass, m.timers.pollAt = pass{}, time.Time{}
	} else {
		s.begin(now, m)
	}
	s.arm(m)
}

// Aired is how much of a message has been transmitted.
type Aired struct {
	Begun bool // some octets
	// Whole: so much that a recipient may have the whole message. How much was transmitted before a restart is unknown: any
	// transmission before it counts as the whole.
	Whole bool
}

// AiredOf is how much of an unfinished message a Sender has transmitted.
func AiredOf(s *Sender, id MessageID) (a Aired) {
	m := s.messages[id]
	if m == nil || !m.begun {
		return a
	}
	if m.in != nil {
		return Aired{true, true} // a single message of a batch is not given up
	}
	parts := len(m.parityEnd)
	for _, at := range m.sentEnd {
		if !at.IsZero() {
			parts++
		}
	}
	return Aired{true, parts >= len(m.fragments)}
}

// HasLeft says that no datagram of a message waits for the radio, as far as is known: no node has asked yet for parts that it lacks.
func HasLeft(now time.Time, s *Sender, id MessageID) bool {
	m := carrying(s, id)
	if m == nil || !m.begun {
		return false
	}
	at := m.passEnd
	switch part := s.messages[id]; {
	case part.in != nil:
		last := part.lastFragment()
		if at = m.sentEnd[last]; slices.Contains(m.numbers, uint16(last)) {
			return false
		}
	case !m.idle():
		return false
	}
	return !at.IsZero() && !at.After(now)
}
