package daemon

import (
	"time"

	"aldis/internal/gateway/api"
)

// A busy machine wakes its gateway late. Datagrams that have come meanwhile are heard before timers run: one of them may be the
// answer that the engine waits for, and a late wake-up is no proof of silence.

// heard is a datagram and its monotonic time of arrival at this machine.
type heard struct {
	api.Datagram
	at time.Duration
}

// unheardMost is how many successive turns may leave datagrams for the next turn: as many as a full inbox fills. A sender that
// floods the link can put off due work for that long.
const unheardMost = airInbox / batchMax

// hear puts the datagrams of this turn before its other events, and marks those after which more have come.
func (d *Daemon) hear(now time.Time, mono time.Duration) {
	if due := !d.deadline.IsZero() && !now.Before(d.deadline); due && d.parts.Gather != nil {
		d.parts.Gather(cap(d.air) - len(d.air))
		d.drain()
	}
	if len(d.aired) == 0 {
		return
	}
	if more := len(d.air) > 0; more && d.unheard < unheardMost {
		d.unheard++
	} else {
		d.unheard = 0
	}
	events := make([]api.Event, 0, len(d.aired)+len(d.events))
	for i, h := range d.aired {
		h.Waited, h.More = max(0, mono-h.at), i+1 < len(d.aired) || d.unheard > 0
		events = append(events, h.Datagram)
	}
	d.events = append(events, d.events...)
}
