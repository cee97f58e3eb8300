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
		starts := far.Starts
		news := far.Take(now, b, m.Message.Precedence == site.Deferred)
		for _, a := range f.audiences {
			a.Others(now, news.Made)
		}
		if far.Starts != starts {
			f.remember(keyStart+string([]byte{byte(m.Site >> 8), byte(m.Site)}), far.Starts[:])
		}
		for _, u := range news.Gone {
			f.farGone(now, m.Site, u)
		}
		for _, u := range news.Told {
			f.kept.moves(m.Site, u.Event.UID, f.remember)
		}
		for _, u := range slices.Concat(news.Told, news.Back) {
			f.memory.farUnit(f, m.Site, far, u)
		}
		wordsSide{f}.retry(now)
	case topicAsk:
		f.out.Done = append(f.out.Done, m.Token)
		f.asked(now, m.Site, data)
	case topicChat:
		wordsSide{f}.farChat(now, m, data)
	case topicWant:
		filesSide{f}.want(now, m, data)
	case topicPart:
		filesSide{f}.part(now, m, data)
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
	f.trouble.Count("far_unreadable")
	if f.trouble.May(now, "far unreadable") {
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
	far := f.far[m.Site]
	e, err := code.Parse(data[3:], timeOf(data, now), nil)
	if err != nil {
		f.farTrouble(now, m.Site, err)
		f.undelivered(m, site.Unfit)
		return
	}
	f.heardUrgent(now, m.Message.Precedence)
	dests := e.Dests()
	if e = (filesSide{f}).offered(now, m.Site, e.Without("marti")); e == nil { // it is on the list alone
		f.out.Done = append(f.out.Done, m.Token)
		return
	}
	if e.Type == "t-x-d-d" {
		for _, uid := range withdrawn(e) {
			f.kept.withdraw(m.Site, uid, e.Time, f.remember)
		}
	}
	shown := keeps(e) || e.Is("a") // until it is stale
	if u := far.Find(e.UID); shown && f.kept.overtaken(m.Site, e) || e.Is("a") && u != nil && u.At.After(e.Time) {
		f.trouble.Count("overtaken")
		f.out.Done = append(f.out.Done, m.Token)
		return
	}
	if len(dests) == 0 && shown {
		f.kept.put(m.Site, e, f.remember)
		f.spread(e)
		f.out.Done = append(f.out.Done, m.Token)
		return
	}
	f.handOrWait(now, waiting{FarMessage: m, event: e, dests: dests})
}

// handOrWait gives an event to the devices that it is for, or keeps it until they are here.
func (f *Face) handOrWait(now time.Time, w waiting) {
	if f.hand(now, &w) {
		w.done(f)
	} else if len(f.waiting) >= mostWaiting {
		f.undelivered(w.FarMessage, site.NoRoom)
	} else {
		f.waiting = append(f.waiting, w)
	}
}

// hand gives an event to the devices that it is for; false: not all have it.
func (f *Face) hand(now time.Time, w *waiting) bool {
	if len(w.dests) == 0 {
		if len(f.streams.clients) == 0 && len(f.mesh.members) == 0 && !(metSide{f}).hears(w.event) {
			return false
		}
		f.spread(w.event)
		return true
	}
	w.dests = slices.DeleteFunc(addressSide{f}.members(w.dests), func(d cot.Dest) bool {
		to := f.streams.named(d)
		for _, c := range to {
			f.send(c, w.event)
		}
		return len(to) > 0 || unicastSide{f}.hand(now, w, d) || (addressSide{f}).served(w.event, d)
	})
	return len(w.dests) == 0
}

// release hands over what waited for a device that is here now.
func (f *Face) release(now time.Time) {
	list := f.waiting
	f.waiting = nil
	for _, w := range list {
		if f.hand(now, &w) {
			w.done(f)
		} else {
			f.waiting = append(f.waiting, w)
		}
	}
}

// giveUp ends what has waited long enough.
func (f *Face) giveUp(now time.Time) {
	over := func(m site.FarMessage) bool { return !m.Until.IsZero() && !now.Before(m.Until) }
	f.waiting = slices.DeleteFunc(f.waiting, func(w waiting) bool {
		switch {
		case !over(w.FarMessage):
			return false
		case w.here:
			f.trouble.Count("unicast_given_up")
		default:
			f.undelivered(w.FarMessage, site.LifeOver)
		}
		return true
	})
	f.words.unread = slices.DeleteFunc(f.words.unread, func(m site.FarMessage) bool {
		if over(m) {
			f.undelivered(m, site.LifeOver)
		}
		return over(m)
	})
}

// showFar gives the devices here what is to be shown of far units.
func (f *Face) showFar(now time.Time) {
	for _, id := range f.cfg.Sites {
		events, away, forgotten := f.far[id].Show(now)
		for _, e := range events {
			if f.near.Get(e.UID) == nil { // what is heard here wins
				f.spread(reached(e, streamed))
				metSide{f}.reckoned()
			}
		}
		for _, u := range away {
			f.memory.farUnit(f, id, f.far[id], u)
			f.showStale(now, u)
		}
		for _, u := range forgotten {
			f.memory.forget(f, id, u.Number)
		}
	}
	f.ask(now)
}

// farGone takes in that a far unit is no more.
func (f *Face) farGone(now time.Time, from uint16, u *track.FarUnit) {
	f.memory.forget(f, from, u.Number)
	if !u.Away && f.kept.of[u.Event.UID] == nil { // else it is placed now
		f.showStale(now, u)
	}
}

// showStale shows that a far unit's time is over.
func (f *Face) showStale(now time.Time, u *track.FarUnit) {
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
		f.far[id] = track.NewFar(f.cfg.Cadence, f.cfg.patience())
	}
	f.kept.lost(id, f.remember)
	delete(f.wants, id)
	filesSide{f}.lost(id)
	f.waiting = slices.DeleteFunc(f.waiting, func(w waiting) bool { return !w.here && w.Site == id })
	f.words.unread = slices.DeleteFunc(f.words.unread, func(m site.FarMessage) bool { return m.Site == id })
	for _, a := range f.audiences {
		if slices.Contains(a.sites, id) {
			a.Forget(now)
		}
	}
	if f.far[id] != nil {
		placedSide{f}.again(now, id, func(*cot.Event) bool { return true })
	}
}
