package tak

import (
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/site"
)

// position takes a report of a unit of this site.
func (f *Adapter) position(now time.Time, c *client, e *cot.Event) {
	e = f.trueTimes(now, c, e)
	if u := f.near.Get(e.UID); u != nil && e.Time.Before(u.Event.Time) { // by a slower route
		f.trouble.Count("older")
		return
	}
	cares := f.cares(e)
	u, fresh := f.near.Report(now, e, cares)
	forgetUnits(f)
	if u == nil {
		f.refuse(now, "units", c, e.UID, nil)
		return
	}
	if fresh {
		f.rememberUnit(u)
	}
	for _, a := range f.audiences {
		a.Reported(now, u)
	}
}

// forgetUnits takes the units whose numbers were forgotten out of the journal.
func forgetUnits(f *Adapter) {
	for _, uid := range f.near.Forgotten() {
		f.remember(keyUnit+uid, nil)
	}
}

// trueTimes is the event with times by this gateway's clock, if the device's clock is too wrong: it is then as if made now.
func (f *Adapter) trueTimes(now time.Time, c *client, e *cot.Event) *cot.Event {
	off := e.Time.Sub(now)
	if off.Abs() <= f.cfg.Apart {
		return e
	}
	f.trouble.Count("clock")
	if f.trouble.May(now, "clock "+e.UID) {
		f.note("warn", "a device's clock is wrong; its events get this gateway's time", "uid", e.UID, "callsign", e.Callsign(), "remote", c.host, "off", off)
	}
	r := *e
	r.Time = now.UTC().Truncate(time.Millisecond)
	r.Start = r.Time
	r.Stale = r.Time.Add(e.Stale.Sub(e.Start))
	return &r
}

// cares says how precisely a unit is reported to each audience.
func (f *Adapter) cares(e *cot.Event) []track.Care {
	list := make([]track.Care, len(f.audiences)/2)
	for i := range list {
		to := uint16(0)
		if a := f.audiences[2*i]; len(a.sites) == 1 {
			to = a.sites[0]
		}
		if i > 0 && len(f.wants.of) == 0 && !rule.BySite(f.cfg.Rules) {
			list[i] = list[0]
			continue
		}
		list[i] = f.care(e, to)
		list[i].Hidden = list[i].Hidden || !f.wants.wanted(e, f.audiences[2*i].sites...)
	}
	return list
}

func (f *Adapter) care(e *cot.Event, to uint16) track.Care {
	c := track.Care{Bound: f.cfg.Bound}
	precedence := rule.PrecedenceOf(e.Type)
	if r := rule.Judge(f.cfg.Rules, f.subject(e, to)); r != nil {
		c.Hidden, c.Every, c.Budget = r.Action == rule.Local, r.Every, f.wants.budget(r, to)
		if r.Bound > 0 {
			c.Bound = r.Bound
		}
		if r.Precedence != nil {
			precedence = *r.Precedence
		}
	}
	c.Late = precedence == site.Deferred
	return c
}

// subject is an event as the rules see it.
func (f *Adapter) subject(e *cot.Event, to uint16) *rule.Subject {
	s := &rule.Subject{Event: e, Site: to, Where: f.where}
	if len(f.cfg.Rules) > 0 {
		s.Octets = len(e.AppendXML(nil))
	}
	return s
}

// where finds a unit of this site.
func (f *Adapter) where(uid string) (lat, lon float64, ok bool) {
	u := f.near.Get(uid)
	if u == nil {
		return 0, 0, false
	}
	return float64(u.Fix.Lat) / 1e6, float64(u.Fix.Lon) / 1e6, true
}

// checkStale takes out the units that have not reported for too long.
func (f *Adapter) checkStale(now time.Time) {
	for _, u := range f.near.Stale(now) {
		f.gone(now, u, code.Stale)
	}
}

// gone takes a unit of this site out.
func (f *Adapter) gone(now time.Time, u *track.Unit, why code.Gone) {
	f.near.Gone(u.UID)
	for _, a := range f.audiences {
		a.Gone(now, u, why)
	}
}
