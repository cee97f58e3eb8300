package pmul

import (
	"slices"
	"time"
)

// Hold keeps a message back of which nothing has been on the air, or lets it go, to the place that its number gives it. Its
// expiry goes on, and a Replace leaves it held. Of a message that has begun it changes nothing.
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

// Aired is how much of a message has been on the air.
type Aired struct {
	Begun bool // something
	// Whole: so much that a recipient may have all of it. Nobody knows how much was on the air before a restart: any of it
	// counts as all.
	Whole bool
}

// AiredOf is how much of a message that has not ended a Sender has had on the air.
func AiredOf(s *Sender, id MessageID) (a Aired) {
	m := s.messages[id]
	if m == nil || !m.begun {
		return a
	}
	if m.in != nil {
		return Aired{true, true} // nobody gives up one message of a batch
	}
	parts := len(m.parityEnd)
	for _, at := range m.sentEnd {
		if !at.IsZero() {
			parts++
		}
	}
	return Aired{true, parts >= len(m.fragments)}
}

// HasLeft says that nothing of a message waits for the radio, as far as is known: what a node lacks of it, it has not asked for yet.
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
