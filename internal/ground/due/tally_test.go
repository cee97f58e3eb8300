package due_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/lab/check"
)

func TestTally(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	tally := due.NewTally()
	tally.Count("a")
	tally.Count("a")
	check.Equal(t, "a", tally.Of["a"], 2)
	check.True(t, "the first time", tally.May(now, "a"))
	check.True(t, "not within a minute", !tally.May(now.Add(time.Minute-1), "a"))
	check.True(t, "after a minute", tally.May(now.Add(time.Minute), "a"))
	for i := range 255 {
		check.True(t, "another", tally.May(now.Add(time.Minute), fmt.Sprint(i)))
	}
	check.True(t, "one too many", !tally.May(now.Add(time.Minute), "last"))
}
