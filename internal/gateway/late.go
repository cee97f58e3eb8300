package gateway

import (
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/ground/due"
)

// linkWait is when the link wants a Step: most of what local peers say to the gateway and to each other, and what strangers send on the
// link, changes nothing there.
type linkWait struct {
	due     time.Time // as the last Step found that looked at the link
	looked  bool      // at it, in any Step
	touched bool      // in this Step something was done that concerns it
}

// idle says that an event has left the link as it was, and that nothing is due there.
func (l *linkWait) idle(now time.Time) bool {
	return l.looked && !l.touched && !due.Reached(now, l.due)
}

// leastLate is what every machine may be late by.
const leastLate = 50 * time.Millisecond

// late is by how much this Step is late: something was due before, or what comes has lain here; 0: it is not. A gateway on a busy
// machine wakes late and finds what has come meanwhile. What it learns from its own lateness is not the link's.
func (l *linkWait) late(now time.Time, ev api.Event) time.Duration {
	by := time.Duration(0)
	if l.looked && !l.due.IsZero() {
		by = now.Sub(l.due)
	}
	if d, ok := ev.(api.Datagram); ok {
		by = max(by, d.Waited)
	}
	if by < leastLate {
		return 0
	}
	return by
}
