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
	until time.Time            // it is not given after that; zero: its sender has set no end
	conns map[site.ConnID]bool // connections that have it
	uids  map[string]bool      // of the devices that have it
}

const (
	latelyFor  = 5 * time.Minute
	mostLately = 100 // withdrawals, and as many others
)

func (l *lately) withdraws() bool { return l.event.Type == "t-x-d-d" }

// keepLately keeps an event that is given to all devices that are here.
func (d *devices) keepLately(now, until time.Time, e *cot.Event) {
	l := lately{e, now, until, map[site.ConnID]bool{}, map[string]bool{}}
	for _, c := range d.clients {
		l.conns[c.conn] = true
		if c.uid != "" {
			l.uids[c.uid] = true
		}
	}
	like, first := 0, -1
	for i := range d.lately {
		if d.lately[i].withdraws() == l.withdraws() {
			if like++; first < 0 {
				first = i
			}
		}
	}
	if like >= mostLately {
		d.lately = slices.Delete(d.lately, first, first+1)
	}
	d.lately = append(d.lately, l)
}

// back says whether something that an event withdraws is on the map again.
func (d *devices) back(e *cot.Event) bool { return slices.ContainsFunc(withdrawn(e), d.onMap) }

// catchUp gives a device that has just identified itself the events that it missed. The objects on the map it has been given before: a
// withdrawal is for those that the device kept itself.
func (d *devices) catchUp(now time.Time, c *client) {
	d.lately = slices.DeleteFunc(d.lately, func(l lately) bool {
		return now.Sub(l.at) > latelyFor || !l.until.IsZero() && !now.Before(l.until) || l.withdraws() && d.back(l.event)
	})
	for _, l := range d.lately {
		if !l.uids[c.uid] && !l.conns[c.conn] {
			d.send(c, l.event)
			d.trouble.Count("caught_up")
		}
		l.uids[c.uid] = true
	}
}
