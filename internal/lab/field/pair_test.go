package field

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// Peers of a site of several begin at its machines in turn, and know all of them.
func TestTurned(t *testing.T) {
	for n, want := range []string{"[a b c]", "[b c a]", "[c a b]", "[a b c]"} {
		check.Equal(t, "seeds", fmt.Sprint(turned([]string{"a", "b", "c"}, n)), want)
	}
}

// The leader at a time is the machine of the newest epoch that had begun by then.
func TestLeaderAt(t *testing.T) {
	zero := time.Unix(1_800_000_000, 0)
	at := func(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }
	led := []leadership{{0, 1, at(10)}, {1, 4, at(30)}, {0, 6, at(50)}, {1, 5, at(55)}}
	for s, want := range map[int]int{9: -1, 10: 0, 29: 0, 30: 1, 49: 1, 50: 0, 60: 0} {
		check.Equal(t, "leader", leaderAt(led, at(s)), want)
	}
}
