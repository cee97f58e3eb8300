package check

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// recorder records the failure of a test instead of failing.
type recorder struct {
	T
	failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// try runs a wait in virtual time, and returns how long it took and how it failed.
func try(t *testing.T, f func(t T, begun time.Time)) (took time.Duration, failed string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, begun, done := &recorder{T: t}, time.Now(), make(chan bool)
		go func() {
			defer close(done)
			f(r, begun)
		}()
		<-done
		took, failed = time.Since(begun), r.failed
	})
	return took, failed
}

func TestWaits(t *testing.T) {
	after := func(begun time.Time, d time.Duration) bool { return time.Since(begun) >= d }
	wrong := func(begun time.Time, d time.Duration) func() string {
		return func() string {
			if after(begun, d) {
				return "it came"
			}
			return ""
		}
	}
	steps := func(begun time.Time, end time.Duration) func() int { // a count that rises each 100 ms until the end
		return func() int { return int(min(time.Since(begun), end) / (100 * time.Millisecond)) }
	}
	for _, tt := range []struct {
		name   string
		wait   func(t T, begun time.Time)
		took   time.Duration
		failed string
	}{
		{"Until that holds at once", func(t T, _ time.Time) { Until(t, 0, "x", func() bool { return true }) }, 0, ""},
		{"Until", func(t T, b time.Time) {
			Until(t, time.Second, "x", func() bool { return after(b, 500*time.Millisecond) })
		}, 500 * time.Millisecond, ""},
		{"Until in vain", func(t T, b time.Time) { Until(t, time.Second, "x", func() bool { return false }) },
			time.Second, "not within 1s: x"},
		{"Never", func(t T, b time.Time) { Never(t, time.Second, wrong(b, time.Minute)) }, time.Second, ""},
		{"Never that comes", func(t T, b time.Time) { Never(t, time.Minute, wrong(b, time.Second)) }, time.Second, "after 1s: it came"},
		{"Still", func(t T, b time.Time) { Still(t, time.Second, time.Minute, "x", steps(b, 3*time.Second)) }, 4 * time.Second, ""},
		{"Still in vain", func(t T, b time.Time) { Still(t, time.Second, time.Minute, "x", steps(b, time.Hour)) },
			time.Minute, "not within 1m0s: x stays the same for 1s"},
	} {
		if took, failed := try(t, tt.wait); took != tt.took || failed != tt.failed {
			t.Errorf("%s: after %v %q, want after %v %q", tt.name, took, failed, tt.took, tt.failed)
		}
	}
}
