package check

import "time"

// pollEvery is how often a condition is checked. Until, Never and Still wait for a condition instead of a time: limits are wall-clock
// time, and the condition is evaluated in the caller's goroutine, which must be the test's.
const pollEvery = 5 * time.Millisecond

// Until returns when ok returns true. It fails the test when that takes longer than limit; what names the condition.
func Until(t T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	if !poll(limit, ok) {
		t.Fatalf("not within %v: %s", limit, what)
	}
}

// Never watches for as long as d, and fails the test at once when wrong returns a text that says what happened and must not.
func Never(t T, d time.Duration, wrong func() string) {
	t.Helper()
	begun := time.Now()
	why := ""
	if poll(d, func() bool { why = wrong(); return why != "" }) {
		t.Fatalf("after %v: %s", time.Since(begun).Round(time.Millisecond), why)
	}
}

// Still returns when value has not changed for as long as d. It fails the test when that takes longer than limit; what
// names the value.
func Still(t T, d, limit time.Duration, what string, value func() int) {
	t.Helper()
	last, since := value(), time.Now()
	Until(t, limit, what+" stays the same for "+d.String(), func() bool {
		if v := value(); v != last {
			last, since = v, time.Now()
		}
		return time.Since(since) >= d
	})
}

// poll says whether ok returned true before the limit; it calls ok at least once.
func poll(limit time.Duration, ok func() bool) bool {
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !ok() {
		select {
		case <-end.C:
			return ok()
		case <-tick.C:
		}
	}
	return true
}
