package track

import (
	"time"

	"aldis/internal/ground/due"
)

// Due is when Batch has something to send; zero: nobody can say.
func (o *Outlet) Due() (at time.Time) {
	if len(o.flights) >= atAllFlights {
		return at
	}
	if !o.since.IsZero() {
		at = o.since.Add(o.pace.Gather)
		if o.hurry {
			at = o.since.Add(min(o.pace.Gather, hurriedGather))
		}
	}
	if len(o.told) > 0 {
		at = due.Earliest(at, o.spoke.Add(o.pace.Age))
	}
	gap := o.pace.Gap
	if o.others.Sub(o.spoke).Abs() < 2*gap && !o.calm(o.spoke) {
		gap += gap / leave
	}
	if len(o.flights) > 0 {
		gap = nextAfter
		if len(o.flights) >= mostFlights && !o.hurry {
			gap = lateAfter
		}
	} else if o.hurry {
		gap = o.pace.Gap / hurried
	}
	next := o.spoke.Add(gap)
	if !o.beside.IsZero() && o.beside.Equal(o.spoke) && !o.hurry {
		next = next.Add(o.pace.First)
	}
	if !at.IsZero() && at.Before(next) {
		at = next
	}
	if !at.IsZero() && !o.others.IsZero() && at.Before(o.others.Add(breath)) {
		at = due.Latest(at, due.Earliest(o.others.Add(breath), o.spoke.Add(2*gap)))
	}
	if !at.IsZero() && o.pace.Gap == 0 && !o.refused.IsZero() {
		at = due.Latest(at, o.refused.Add(o.pace.Age/refusedAgain))
	}
	return at
}

// refusedAgain is the part of the age after which a batch follows that was refused at once: there is no room for it, or its site was
// taken out of the configuration.
const refusedAgain = 4

// breath is how long a shared channel stays free after a batch of another site, so that an urgent message never waits for two batches. A
// site to which others leave no room waits twice its gap at most.
const breath = 2 * time.Second

// hurriedGather is how long a changed unit waits for others that change with it.
const hurriedGather = time.Second / 2

// leave is the part of the gap by which it grows if other sites speak as well and something urgent was sent: the next batch waits
// for theirs, too. Measured on hf-300 while twenty units come (60 seeds, one site of three silent, an alert each 20 s): alerts take 15.4 s
// at the 95th percentile with half, 19.2 s with a quarter.
const leave = 2

// together is how long after each other two sites make batches at most if one has to wait for the other on the air, and an urgent
// message has to wait for both. This would repeat itself unless one site waited longer than the other.
const together = 7 * time.Second

// calmAfter is how long batches stay short after something urgent: the site that has sent it may send more.
const calmAfter = 3 * time.Minute

// calm says whether nothing urgent was sent for a while.
func (o *Outlet) calm(now time.Time) bool { return now.Sub(o.urgent) > calmAfter }

// Urgent takes in that something urgent was sent, here or by another site.
func (o *Outlet) Urgent(now time.Time) { o.urgent = now }

// Others takes in that a batch of another site was heard, and when it was made.
func (o *Outlet) Others(now, made time.Time) {
	if o.pace.Gap == 0 {
		return
	}
	o.others = now
	if made.Sub(o.spoke).Abs() < together {
		o.beside = o.spoke
	}
}
