package custody

import "time"

// The machines at the ends of a link may be busy. What they let lie is no loss of the link: the end that waits for an answer grants
// the delay that it has seen lately.

const (
	// mostLate is the longest that a busy machine lets something lie: a longer time is an outage of the link.
	mostLate = 10 * time.Second
	// lateFor is how long lateness is remembered, at least; at most twice as long.
	lateFor = 5 * time.Minute
)

// lateness is by how much answers have come later than the link brings them. The zero value is that of machines in time.
type lateness struct {
	granted time.Duration // to an answer, beyond the link's own time: a quarter more than the latest one, for the next may be later
	recent  time.Duration // by how much the latest one of this while was late,
	before  time.Duration // and of the one before it
	since   time.Time     // when this while began
	doubted uint8         // the probe for whose sake the link was found dead
	doubtAt time.Time     // when it went; zero: it is over
}

// Late says that this machine was late by so much. That is granted to the peer's machine as well.
func (l *lateness) Late(now time.Time, by time.Duration) { l.note(now, min(by, mostLate)) }

// note notes that an answer came later by so much than the link brings it; less than 0: it was in time.
func (l *lateness) note(now time.Time, over time.Duration) {
	if over > mostLate {
		return
	}
	if l.granted == 0 && over <= 0 {
		return
	}
	switch age := now.Sub(l.since); {
	case age >= 2*lateFor:
		l.before, l.recent, l.since = 0, 0, now
	case age >= lateFor:
		l.before, l.recent, l.since = l.recent, 0, now
	}
	l.recent = max(l.recent, over)
	worst := max(l.before, l.recent)
	l.granted = worst + worst/4
}
