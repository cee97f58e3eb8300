package pmul

import (
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// urgent is how a Sender treats urgent messages while the nodes of a shared channel transmit in turns. An urgent message
// goes to the radio at once, whichever node has the floor. It goes once more in this node's own turn, unless all have
// acknowledged it: a node that has lost it does not say so at once, and another datagram for it would interrupt a turn
// again.
type urgent struct {
	leaves time.Time   // when all have left, if each interrupts a turn
	lately []*outgoing // those that may have to go again
	heard  time.Time   // when another node last sent an urgent message
	count  int         // of datagrams handed over
}

// apartMost is how many datagrams lie between an urgent message and its repetition: a burst of losses may be over.
const apartMost = 2

// handedOver notes that a datagram whose first message is m is handed over.
func (u *urgent) handedOver(now time.Time, c *Config, m *outgoing, air time.Duration) {
	u.count++
	if m.urgency() >= alarm {
		u.leaves = due.Latest(u.leaves, now).Add(air + 2*c.Turnaround)
	}
}

// mayGo is when the radio takes another urgent datagram: only as many as leave it within a turn of another node.
func (u *urgent) mayGo(c *Config) time.Time { return u.leaves.Add(-c.Hold) }

// ridesMost is how often an urgent message goes again in turns of its sender.
const ridesMost = 4

// goesAgain notes that all of an urgent message has been handed over, in a turn.
func (u *urgent) goesAgain(m *outgoing, turn uint8) {
	m.nth, m.turn = u.count, turn
	if !slices.Contains(u.lately, m) {
		u.lately = append(u.lately, m)
	}
}

// sayAgain makes urgent messages that some nodes have not acknowledged ride on the next datagram of this node's turn.
func sayAgain(s *Sender) {
	if !s.queue.inTurn(&s.cfg) {
		return
	}
	s.urgent.lately = slices.DeleteFunc(s.urgent.lately, func(m *outgoing) bool {
		again := m.idle() && s.urgent.count >= m.nth+apartMost && (m.ridden == 0 || m.turn != s.floor.number)
		if again && !m.closed && m.dests.active() > 0 {
			m.rides = true
			m.ridden++
			s.pass(m, (*destination).answers, m.all())
		}
		return again || m.closed
	})
}
