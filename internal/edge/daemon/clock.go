package daemon

import (
	"time"

	"aldis/internal/gateway/api"
)

const (
	// slew is the share of elapsed time by which the loop's time may run faster or slower: one part in slew.
	slew = 20
	// jumpFrom is the least change of the wall clock against the monotonic one that is reported.
	jumpFrom = time.Second
)

// clock derives the loop's time from the machine's two clocks.
type clock struct {
	now   time.Time     // of the last read; never goes back
	mono  time.Duration // at the last read
	ahead time.Duration // wall clock less now, at the last read

	began time.Duration // mono when the clock was made
	moved bool          // the wall clock was set since
	news  bool          // and the engine has not received that news yet
	set   time.Duration // the sum of all jumps
}

func newClock(mono time.Duration, wall time.Time) clock {
	return clock{now: wall, mono: mono, began: mono}
}

// read brings c to the readings of the monotonic and the wall clock. jump is how far the wall clock was set since the last
// read, 0 if it was not.
func (c *clock) read(mono time.Duration, wall time.Time) (now time.Time, jump time.Duration) {
	step := max(mono-c.mono, 0)
	c.mono += step
	ahead := wall.Sub(c.now.Add(step))
	if d := ahead - c.ahead; d >= jumpFrom || d <= -jumpFrom {
		jump = d
		c.moved, c.news = true, true
		c.set += d
	}
	mend := min(max(ahead, -step/slew), step/slew)
	c.now = c.now.Add(step + mend)
	c.ahead = ahead - mend
	return c.now, jump
}

// event is the event for the engine when only time has passed: an empty one, or how far the clocks are apart.
func (c *clock) event() api.Event {
	if !c.moved {
		return nil
	}
	c.news = false
	return api.Clock{Ran: c.mono - c.began, Set: c.set}
}
