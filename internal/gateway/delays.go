package gateway

import "time"

// DelayBounds are the upper bounds of Delays in seconds.
var DelayBounds = [...]float64{0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400}

// Delays counts messages by how long they took from custody here to the receipt of the far gateway. Those are not counted of
// which nobody knows when they came.
type Delays struct {
	Counts [len(DelayBounds)]uint64 `json:"counts"` // at most so long as the bound, and longer than the one before
	Count  uint64                   `json:"count"`
	SumS   float64                  `json:"sum_s"`
}

// took counts a message that was accepted then.
func (d *Delays) took(now, since time.Time) {
	if since.IsZero() {
		return
	}
	s := max(now.Sub(since).Seconds(), 0)
	d.Count++
	d.SumS += s
	for i, bound := range DelayBounds {
		if s <= bound {
			d.Counts[i]++
			return
		}
	}
}
