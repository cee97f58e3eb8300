package sim

import (
	"time"

	"aldis/internal/gateway/api"
)

// slew is the share of elapsed time by which a running gateway's time follows its machine's wall clock: one part in so many, as in
// internal/edge/daemon.
const slew = 20

// clock is a machine's wall clock, and the time that the loop of its gateway derives from it: that time never jumps while the loop runs,
// and begins with the wall clock at a start.
type clock struct {
	wrong time.Duration // wall clock less the World's time

	started time.Time // of this run, in the World's time
	read    time.Time // the World's time when now was read
	now     time.Time
	set     time.Duration // the sum by which the wall clock was set in this run
	moved   bool          // the wall clock was set
	news    bool          // the gateway has not learned of that yet
}

// begin is the start of a run.
func (c *clock) begin(world time.Time) {
	*c = clock{wrong: c.wrong, started: world, read: world, now: world.Add(c.wrong)}
}

// advance returns the loop's time.
func (c *clock) advance(world time.Time) time.Time {
	step := world.Sub(c.read)
	c.read = world
	mend := world.Add(c.wrong).Sub(c.now.Add(step))
	c.now = c.now.Add(step + min(max(mend, -step/slew), step/slew))
	return c.now
}

// wake is when, in the World's time, the loop checks whether work is due; zero: not by itself.
func (c *clock) wake(due time.Time) time.Time {
	if due.IsZero() {
		return due
	}
	return c.read.Add(due.Sub(c.now))
}

// event is the gateway's event when only time has passed.
func (c *clock) event(world time.Time) api.Event {
	if !c.moved {
		return nil
	}
	c.news = false
	return api.Clock{Ran: world.Sub(c.started), Set: c.set}
}

// SetClock sets a node's wall clock forward by so much. A running gateway follows slowly, the next start at once.
func (w *World) SetClock(n *Node, by time.Duration) {
	n.clock.wrong += by
	n.clock.set += by
	n.clock.moved, n.clock.news = true, true
	w.At(0, func() { w.step(n, nil) })
}

// Clock is a node's time as its gateway knows it.
func (w *World) Clock(n *Node) time.Time { return n.clock.advance(w.Now) }

// Wrong is how far a node's wall clock is ahead of the World's time.
func (w *World) Wrong(n *Node) time.Duration { return n.clock.wrong }
