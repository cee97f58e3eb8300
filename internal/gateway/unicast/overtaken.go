package unicast

import (
	"aldis/internal/gateway/mail"
	"aldis/internal/link/custody"
)

// maxPassages is how many datagrams may overtake one whose short numbers are still understood.
const maxPassages = 64

// passages are the datagrams of a peer of which each was newer than all others when it came, oldest first, each with the number up to
// which the peer's direct queue had been read before.
//
// A datagram that comes late was overtaken by one of them. The messages that had been read before that one came were sent before the late
// one, or in the window in which the late one was sent: a short number of the late one is within ShortAhead of the number read.
type passages []passage

type passage struct {
	mail.Stamp
	read uint64
}

// newest notes that a frame has come of a datagram that is newer than all others.
func (p *passages) newest(at mail.Stamp, read uint64) {
	list := *p
	switch {
	case len(list) > 0 && list[len(list)-1].Incarnation != at.Incarnation:
		list = nil
	case len(list) > 0 && list[len(list)-1].Stamp == at: // a further frame of that datagram
		return
	case len(list) >= maxPassages:
		list = append(passages(nil), list[1:]...)
	}
	*p = append(list, passage{at, read})
}

// widen finds the low 16 bits of a number of which a late datagram has the low 8; false: too much has overtaken it.
func (p passages) widen(at mail.Stamp, low uint8) (uint16, bool) {
	for i := 1; i < len(p); i++ {
		if p[i].Incarnation == at.Incarnation && p[i-1].Counter < at.Counter && at.Counter < p[i].Counter {
			return custody.Near(p[i].read, low), true
		}
	}
	return 0, false
}
