package tak

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/site"
)

// giving is a message of a far site whose event was ordered for devices. It stays in custody until their machines have it: if this
// machine loses its power first, the next run gives the event again.
type giving struct {
	waiting
	at time.Time
}

// mostGiving is how long a message stays in custody for a device that reads slowly, or is gone and has not closed its stream.
const mostGiving = 5 * time.Second

// askTaken makes the LAN room say when devices have the event of the last orders.
func (d *devices) askTaken(w *waiting, orders int) {
	if !d.cfg.Taken || w.here {
		return
	}
	for i := len(d.out.Orders) - orders; i < len(d.out.Orders); i++ {
		switch o := d.out.Orders[i].(type) {
		case Send:
			o.Token = w.Token
			d.out.Orders[i] = o
		case Spread:
			o.Token = w.Token
			d.out.Orders[i] = o
		}
	}
}

// given ends the custody of an event that was ordered for all its recipients, now or when their machines have it.
func (d *devices) given(now time.Time, w *waiting) {
	if !d.cfg.Taken || w.here || len(w.conns) == 0 || len(d.giving) >= mostWaiting {
		w.done(d.step)
		return
	}
	d.giving[w.Token] = &giving{*w, now}
}

// settle waits no longer for a connection: the device's machine has the event, or the stream has closed.
func (d *devices) settle(token uint64, conn site.ConnID) {
	g := d.giving[token]
	if g == nil {
		return
	}
	g.conns = slices.DeleteFunc(g.conns, func(c site.ConnID) bool { return c == conn })
	if len(g.conns) == 0 {
		delete(d.giving, token)
		g.finish(d.step)
	}
}

// finish ends the custody, once.
func (g *giving) finish(s *step) {
	if !g.at.IsZero() {
		g.at = time.Time{}
		g.done(s)
	}
}

// broke: a stream has closed. Its device may not have the events that it was just given, and gets them when it is back.
func (d *devices) broke(c *client) {
	if c == nil {
		return
	}
	for _, token := range slices.Sorted(maps.Keys(d.giving)) {
		g := d.giving[token]
		if !slices.Contains(g.conns, c.conn) {
			continue
		}
		for i := range d.lately {
			if l := &d.lately[i]; l.event == g.event {
				delete(l.conns, c.conn)
				if c.uid != "" && !slices.ContainsFunc(d.streams(c), func(o site.ConnID) bool { return l.conns[o] }) {
					delete(l.uids, c.uid)
				}
			}
		}
		d.settle(token, c.conn)
	}
}

// hurry ends the custody of events for which a device takes too long. Whether its stream breaks is still noticed.
func (d *devices) hurry(now time.Time) {
	for _, token := range slices.Sorted(maps.Keys(d.giving)) {
		g := d.giving[token]
		if now.Sub(g.at) > mostGiving {
			g.finish(d.step)
		}
	}
}
