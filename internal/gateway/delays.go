package gateway

import (
	"aldis/internal/gateway/api"
	"time"
)

// took counts a message that was accepted then.
func took(d *api.Delays, now, since time.Time) {
	if since.IsZero() {
		return
	}
	s := max(now.Sub(since).Seconds(), 0)
	d.Count++
	d.SumS += s
	for i, bound := range api.DelayBounds {
		if s <= bound {
			d.Counts[i]++
			return
		}
	}
}
