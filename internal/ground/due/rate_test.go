package due_test

import (
	"testing"
	"time"

	"aldis/internal/ground/due"
)

func TestBucketHoldsABurstAndRefills(t *testing.T) {
	now := time.Unix(1000, 0)
	var b due.Bucket
	take := func() (n int) {
		for b.Allow(now, 2, 5) {
			n++
		}
		return n
	}
	for _, c := range []struct {
		wait time.Duration
		want int
	}{{0, 5}, {0, 0}, {time.Second, 2}, {250 * time.Millisecond, 0}, {250 * time.Millisecond, 1}, {time.Hour, 5}} {
		now = now.Add(c.wait)
		if got := take(); got != c.want {
			t.Errorf("after %v: %d tokens, want %d", c.wait, got, c.want)
		}
	}
}

func TestBucketIsNotFilledByAClockThatGoesBack(t *testing.T) {
	now := time.Unix(1000, 0)
	var b due.Bucket
	b.Allow(now, 1, 1)
	if b.Allow(now.Add(-time.Hour), 1, 1) {
		t.Error("an earlier time brought a token")
	}
}

func TestIdle(t *testing.T) {
	now := time.Unix(1000, 0)
	var b due.Bucket
	b.Allow(now, 1, 1)
	if got := b.Idle(now.Add(time.Minute)); got != time.Minute {
		t.Errorf("Idle = %v, want a minute", got)
	}
}

// Keys beyond the bound have no bucket until another bucket is full again; a kept bucket stays the same.
func TestEachIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	e := due.Each[int]{Rate: 2, Burst: 4, Most: 3}
	for key := range 3 {
		if b := e.Of(now, key); b == nil || !b.Allow(now, e.Rate, e.Burst) || e.Of(now, key) != b {
			t.Fatalf("key %d: %v", key, b)
		}
	}
	for _, c := range []struct {
		after time.Duration
		room  bool
	}{{0, false}, {2 * time.Second, false}, {2*time.Second + 1, true}} {
		if b := e.Of(now.Add(c.after), 9); (b != nil) != c.room {
			t.Errorf("after %v: %v", c.after, b)
		}
		if e.Len() > e.Most {
			t.Errorf("%d are kept", e.Len())
		}
	}
}
