package gateway

import (
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/ground/due"
)

// linkWait is when the link wants a Step: most messages of local peers to the gateway and to each other, and datagrams of strangers on the
// link, change nothing there.
type linkWait struct {
	due     time.Time // as found by the last Step that looked at the link
	looked  bool      // at it, in any Step
	touched bool      // this Step did something that concerns it
}

// idle says that an event has left the link as it was, and that nothing is due there.
func (l *linkWait) idle(now time.Time) bool {
	return l.looked && !l.touched && !due.Reached(now, l.due)
}

// leastLate is how late any machine may be.
const leastLate = 50 * time.Millisecond

// late is by how much this Step is late: something was due before, or the datagram has waited here; 0: it is not. A gateway on a busy
// machine wakes late and finds datagrams that have come meanwhile. It must not blame the link for its own lateness.
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
