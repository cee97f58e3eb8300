package custody

import "time"

// The machines at the ends of a link may be busy. A message that waits at a busy machine is not lost on the link. So the
// end that waits for an answer grants the delay that it has seen lately.

const (
	// mostLate is the longest that a busy machine delays an answer: a longer delay is an outage of the link.
	mostLate = 10 * time.Second
	// lateFor is how long lateness is remembered, at least; at most twice as long.
	lateFor = 5 * time.Minute
)

// lateness records by how much answers have come later than the link brings them. The zero value means that the machines
// were in time.
type lateness struct {
	granted time.Duration // to an answer, beyond the link's own time: a quarter more than the most delayed answer needed, since the next may be later still
	recent  time.Duration // by how much the most delayed answer of this period was late,
	before  time.Duration // and that of the period before
	since   time.Time     // when this period began
	doubted uint8         // the unanswered probe after which the link was taken for dead
	doubtAt time.Time     // when that probe went; zero: its answer has come
}

// Late says that this machine was late by so much. The peer's machine is granted the same.
func (l *lateness) Late(now time.Time, by time.Duration) { l.note(now, min(by, mostLate)) }

// note notes that an answer came so much later than the link brings it; 0 or less: it was in time.
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
