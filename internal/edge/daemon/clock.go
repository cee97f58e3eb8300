package daemon

import (
	"time"

	"aldis/internal/gateway/api"
)

const (
	// slew is the share of elapsed time by which the loop's time may run faster or slower: one in so many.
	slew = 20
	// jumpFrom is the least change of the wall clock against the monotonic one that is told.
	jumpFrom = time.Second
)

// clock makes the loop's time of the machine's two clocks.
type clock struct {
	now   time.Time     // of the last read; never goes back
	mono  time.Duration // at the last read
	ahead time.Duration // wall clock less now, at the last read

	began time.Duration // mono when it was made
	moved bool          // the wall clock was set since
	news  bool          // and the engine has not heard of that yet
	set   time.Duration // by so much, in sum
}

func newClock(mono time.Duration, wall time.Time) clock {
	return clock{now: wall, mono: mono, began: mono}
}

// read brings c to the readings of the monotonic and of the wall clock. jump is by how much the wall clock was set
// since the last read, 0 where it was not.
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

// event is what the engine hears when only time has passed: nothing, or how far the clocks are apart.
func (c *clock) event() api.Event {
	if !c.moved {
		return nil
	}
	c.news = false
	return api.Clock{Ran: c.mono - c.began, Set: c.set}
}
