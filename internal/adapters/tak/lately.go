package tak

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/site"
)

// lately is an event of a far site that was given to all devices, but is on no map. A device whose stream was broken at that
// time gets it when it is back: ATAK takes up to half a minute to reconnect.
type lately struct {
	event *cot.Event
	at    time.Time
	conns map[site.ConnID]bool // connections that have it
	uids  map[string]bool      // of the devices that have it
}

const (
	latelyFor  = 5 * time.Minute
	mostLately = 100
)

// keepLately keeps an event that is given to all devices that are here.
func (d *devices) keepLately(now time.Time, e *cot.Event) {
	l := lately{e, now, map[site.ConnID]bool{}, map[string]bool{}}
	for _, c := range d.clients {
		l.conns[c.conn] = true
		if c.uid != "" {
			l.uids[c.uid] = true
		}
	}
	if d.lately = append(d.lately, l); len(d.lately) > mostLately {
		d.lately = slices.Clone(d.lately[1:])
	}
}

// catchUp gives a device that has just identified itself the events that it missed.
func (d *devices) catchUp(now time.Time, c *client) {
	d.lately = slices.DeleteFunc(d.lately, func(l lately) bool { return now.Sub(l.at) > latelyFor })
	for _, l := range d.lately {
		if !l.uids[c.uid] && !l.conns[c.conn] {
			d.send(c, l.event)
			d.trouble.Count("caught_up")
		}
		l.uids[c.uid] = true
	}
}
