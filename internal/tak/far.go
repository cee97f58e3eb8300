package tak

import (
	"slices"
	"time"

	"aldis/internal/site"
	"aldis/internal/tak/code"
	"aldis/internal/tak/cot"
	"aldis/internal/tak/track"
)

// farMessage takes what another site said.
func (f *Face) farMessage(now time.Time, m site.FarMessage) {
	far := f.far[m.Site]
	if far == nil || len(m.Message.Parts) != 1 {
		f.undelivered(m, site.Unfit)
		return
	}
	data := m.Message.Parts[0].Data
	switch m.Message.Topic {
	case topicUnits:
		f.out.Done = append(f.out.Done, m.Token)
		b, err := code.ParseBatch(data, now)
		if err != nil {
			f.farTrouble(now, m.Site, err)
			return
		}
		news := far.Take(now, b, m.Message.Precedence == site.Deferred)
		for _, u := range news.Gone {
			f.farGone(now, m.Site, u)
		}
		for _, u := range news.Told {
			f.memory.farUnit(f, m.Site, far, u)
		}
		wordsSide{f}.retry(now)
	case topicAsk:
		f.out.Done = append(f.out.Done, m.Token)
		f.asked(now, m.Site, data)
	case topicChat:
		wordsSide{f}.farChat(now, m, data)
	case topicReceipt:
		wordsSide{f}.farReceipt(now, m, data)
	case topicEvent:
		f.farEvent(now, m, data)
	default:
		f.undelivered(m, site.Unfit)
	}
}

func (f *Face) undelivered(m site.FarMessage, why site.Why) {
	f.out.Undelivered = append(f.out.Undelivered, site.Undelivered{Token: m.Token, Why: why})
}

// farTrouble tells that a message of a far site could not be read: a gateway of another version perhaps.
func (f *Face) farTrouble(now time.Time, from uint16, err error) {
	f.trouble.count("far_unreadable")
	if f.trouble.first(now, "far unreadable") {
		f.note("warn", "a TAK message of a far site could not be read", "site", from, "error", err)
	}
}

// farEvent takes an event that is no unit's position.
func (f *Face) farEvent(now time.Time, m site.FarMessage, data []byte) {
	if len(data) < 3 {
		f.farTrouble(now, m.Site, code.ErrMalformed)
		f.undelivered(m, site.Unfit)
		return
	}
	e, err := code.Parse(data[3:], timeOf(data, now), nil)
	if err != nil {
		f.farTrouble(now, m.Site, err)
		f.undelivered(m, site.Unfit)
		return
	}
	dests := e.Dests()
	e = e.Without("marti")
	if e.Type == "t-x-d-d" {
		for _, uid := range withdrawn(e) {
			f.kept.drop(uid, f.remember)
		}
	}
	if len(dests) == 0 && keeps(e) {
		f.kept.put(m.Site, e, f.remember)
		f.spread(e)
		f.out.Done = append(f.out.Done, m.Token)
		return
	}
	f.handOrWait(waiting{FarMessage: m, event: e, dests: dests})
}

// handOrWait gives an event to the devices that it is for, or keeps it until they are here.
func (f *Face) handOrWait(w waiting) {
	if f.hand(&w) {
		f.out.Done = append(f.out.Done, w.Token)
	} else if len(f.waiting) >= mostWaiting {
		f.undelivered(w.FarMessage, site.NoRoom)
	} else {
		f.waiting = append(f.waiting, w)
	}
}

// hand gives an event to the devices that it is for; false: not all are here.
func (f *Face) hand(w *waiting) bool {
	if len(w.dests) == 0 {
		if len(f.streams.clients) == 0 && len(f.mesh.members) == 0 {
			return false
		}
		f.spread(w.event)
		return true
	}
	w.dests = slices.DeleteFunc(slices.Clone(w.dests), func(d cot.Dest) bool {
		to := f.streams.named(d)
		for _, c := range to {
			f.send(c, w.event)
		}
		return len(to) > 0
	})
	return len(w.dests) == 0
}

// release hands over what waited for a device that is here now.
func (f *Face) release(time.Time) {
	f.waiting = slices.DeleteFunc(f.waiting, func(w waiting) bool {
		if !f.hand(&w) {
			return false
		}
		f.out.Done = append(f.out.Done, w.Token)
		return true
	})
}

// giveUp ends what has waited long enough.
func (f *Face) giveUp(now time.Time) {
	over := func(m site.FarMessage) bool {
		if m.Until.IsZero() || now.Before(m.Until) {
			return false
		}
		f.undelivered(m, site.LifeOver)
		return true
	}
	f.waiting = slices.DeleteFunc(f.waiting, func(w waiting) bool { return over(w.FarMessage) })
	f.words.unread = slices.DeleteFunc(f.words.unread, over)
}

// showFar gives the devices here what is to be shown of far units.
func (f *Face) showFar(now time.Time) {
	for _, id := range f.cfg.Sites {
		events, gone := f.far[id].Show(now)
		for _, e := range events {
			if f.near.Get(e.UID) == nil { // what is heard here wins
				f.spread(e)
			}
		}
		for _, u := range gone {
			f.farGone(now, id, u)
		}
	}
	f.ask(now)
}

// farGone shows that a far unit is no more.
func (f *Face) farGone(now time.Time, from uint16, u *track.FarUnit) {
	f.memory.forget(f, from, u.Number)
	if f.near.Get(u.Event.UID) == nil {
		f.spread(u.Stale(now))
	}
}

// siteLost drops all that is known of a site.
func (f *Face) siteLost(now time.Time, id uint16) {
	if far := f.far[id]; far != nil {
		for _, u := range far.Units() {
			f.farGone(now, id, u)
		}
		f.far[id] = track.NewFar(f.cfg.Cadence)
	}
	f.kept.lost(id, f.remember)
	f.waiting = slices.DeleteFunc(f.waiting, func(w waiting) bool { return w.Site == id })
	f.words.unread = slices.DeleteFunc(f.words.unread, func(m site.FarMessage) bool { return m.Site == id })
	for _, a := range f.audiences {
		if slices.Contains(a.sites, id) {
			a.Forget(now)
		}
	}
}
