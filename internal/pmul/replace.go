package pmul

import (
	"errors"
	"fmt"
	"time"
)

// Replace replaces the payload of a message that has not been on the air. The message keeps its Message_ID, its
// Message_Sequence_Numbers and its destinations. Output.Accepted has the answer under the same Ref.
type Replace struct {
	Ref     uint64
	Message MessageID
	Payload []byte // kept like that of Submit
	// Priority is the new one; nil: the message keeps its own.
	Priority *uint8
	Expires  time.Time // rounded down to a second
}

// ErrBegun says that a message cannot be replaced any more.
var ErrBegun = errors.New("it has ended, or has been on the air")

// Waits says whether a message has not been on the air yet, so that it may be replaced.
func (s *Sender) Waits(id MessageID) bool {
	m := s.messages[id]
	return m != nil && !m.begun && !m.closed && m.dynamic == nil
}

func (s *Sender) replace(now time.Time, ev Replace) {
	s.out.Accepted = append(s.out.Accepted, Accepted{ev.Ref, ev.Message, s.exchange(now, ev)})
}

// exchange checks a payload as accept does, and starts the message with it.
func (s *Sender) exchange(now time.Time, ev Replace) error {
	m := s.messages[ev.Message]
	expiry := time.Unix(ev.Expires.Unix(), 0).UTC()
	switch size := s.cfg.FragmentOctets(); {
	case !s.Waits(ev.Message):
		return fmt.Errorf("pmul: message %v: %w", ev.Message, ErrBegun)
	case !expiry.After(now) || expiry.Unix() > 1<<32-1:
		return fmt.Errorf("pmul: expires %v: %w", expiry, ErrExpired)
	case len(ev.Payload) > size*(1<<16-1):
		return fmt.Errorf("pmul: %d octets in fragments of %d: %w", len(ev.Payload), size, ErrTooLarge)
	case s.octets-m.octets+len(ev.Payload) > s.cfg.Limits.Octets:
		return fmt.Errorf("pmul: %d octets: %w", s.octets, ErrFull)
	default:
		if m.in != nil {
			leave(s, m)
		}
		s.queue.remove(m)
		s.octets -= m.octets
		m.cut(ev.Payload, s.cfg.cutOf(m.id, len(ev.Payload), s.cfg.DatagramOctets))
		m.expiry = expiry
		if ev.Priority != nil {
			m.priority = *ev.Priority
		}
	}
	s.octets += m.octets
	s.out.record(bucketOutgoing, messageKey(m.id), m.encode())
	s.begin(now, m)
	s.arm(m)
	return nil
}
