package tak

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/site"
)

// lately is an event of a far site that was given to all devices, but is on no map. A device whose stream was broken then gets it when it
// is back: by ATAK's own rules that takes up to half a minute.
type lately struct {
	event *cot.Event
	at    time.Time
	conns map[site.ConnID]bool // that have it
	uids  map[string]bool      // of devices that have it
}

const (
	latelyFor  = 5 * time.Minute
	mostLately = 100
)

// keepLately keeps an event that is given to all who are here.
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

// catchUp gives a device that has just said who it is what it missed.
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
