package tak

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/site"
)

// farMessage takes a message from another site.
func (f *Adapter) farMessage(now time.Time, m site.FarMessage) {
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
		news := far.Apply(now, b, m.Message.Precedence == site.Deferred)
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
			f.rememberFar(m.Site, far, u)
		}
		for _, m := range f.words.again() {
			f.farMessage(now, m)
		}
	case topicAsk:
		f.out.Done = append(f.out.Done, m.Token)
		f.asked(now, m.Site, data)
	case topicChat:
		f.words.farChat(now, m, data, far)
	case files.TopicWant:
		f.files.Want(now, m, data)
	case files.TopicPart:
		f.files.Part(now, m, data)
	case topicReceipt:
		f.words.farReceipt(now, m, data, far)
	case topicEvent:
		f.farEvent(now, m, data)
	default:
		f.undelivered(m, site.Unfit)
	}
}

// farEvent takes an event that is not a unit's position.
func (f *Adapter) farEvent(now time.Time, m site.FarMessage, data []byte) {
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
	e = f.files.offered(now, m.Site, e.Without("marti"))
	if e == nil { // it is only for the list of files
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
		f.devices.spread(e)
		f.out.Done = append(f.out.Done, m.Token)
		return
	}
	f.devices.handOrWait(now, waiting{FarMessage: m, event: e, dests: dests})
}

// handOrWait gives an event to the devices that it is for, or keeps it until they are here.
func (d *devices) handOrWait(now time.Time, w waiting) {
	if r, has := d.rest[w.Token]; has && !w.here {
		w.dests, w.noted = r.dests, true
		delete(d.rest, w.Token)
	}
	if d.hand(now, &w) {
		d.given(now, &w)
	} else if len(d.waiting) >= mostWaiting {
		w.forget(d.step)
		d.undelivered(w.FarMessage, site.NoRoom)
	} else {
		d.waiting = append(d.waiting, w)
	}
}

// hand gives an event to the devices that it is for; false: not all have it.
func (d *devices) hand(now time.Time, w *waiting) bool {
	w.conns = nil
	if len(w.dests) == 0 {
		if len(d.clients) == 0 && len(d.mesh.members) == 0 && !d.hears(w.event) {
			return false
		}
		d.spread(w.event)
		for _, c := range d.list() {
			w.conns = append(w.conns, c.conn)
		}
		d.askTaken(w, 1)
		d.keepLately(now, w.Until, w.event)
		return true
	}
	list := d.members(w.dests)
	before := len(list)
	w.dests = slices.DeleteFunc(list, func(name cot.Dest) bool {
		to := d.named(name)
		for _, c := range to {
			d.send(c, w.event)
			w.conns = append(w.conns, c.conn)
		}
		d.askTaken(w, len(to))
		return len(to) > 0 || d.handTo(now, w, name) || d.served(w.event, name)
	})
	w.note(d.step, before)
	return len(w.dests) == 0
}

// release hands over the events that waited for a device that is here now.
func (d *devices) release(now time.Time) {
	list := d.waiting
	d.waiting = nil
	for _, w := range list {
		if d.hand(now, &w) {
			d.given(now, &w)
		} else {
			d.waiting = append(d.waiting, w)
		}
	}
}

// giveUp drops the events that have waited long enough.
func (d *devices) giveUp(now time.Time) {
	d.waiting = slices.DeleteFunc(d.waiting, func(w waiting) bool {
		switch {
		case !over(now, w.FarMessage):
			return false
		case w.here:
			d.trouble.Count("unicast_given_up")
		default:
			w.forget(d.step)
			d.undelivered(w.FarMessage, site.LifeOver)
		}
		return true
	})
}

// lost drops the waiting events of a site.
func (d *devices) lost(id uint16) {
	d.waiting = slices.DeleteFunc(d.waiting, func(w waiting) bool {
		if w.here || w.Site != id {
			return false
		}
		w.forget(d.step)
		return true
	})
	maps.DeleteFunc(d.giving, func(_ uint64, g *giving) bool { return g.Site == id })
	for token, r := range d.rest {
		if r.site == id {
			delete(d.rest, token)
			d.remember(keyRest+token8(token), nil)
		}
	}
}

// over says whether a far message has expired.
func over(now time.Time, m site.FarMessage) bool { return !m.Until.IsZero() && !now.Before(m.Until) }

// showFar gives the devices here the events of far units that are to be shown now.
func (f *Adapter) showFar(now time.Time) {
	for _, id := range f.cfg.Sites {
		events, away, forgotten := f.far[id].Show(now)
		for _, e := range events {
			if f.near.Get(e.UID) == nil { // a unit that is heard here has precedence
				f.devices.spread(reached(e, streamed))
				f.devices.reckoned()
			}
		}
		for _, u := range away {
			f.rememberFar(id, f.far[id], u)
			f.showStale(now, u)
		}
		for _, u := range forgotten {
			f.forgetFar(id, u.Number)
		}
	}
	f.ask(now)
}

// farGone takes in that a far unit is no more.
func (f *Adapter) farGone(now time.Time, from uint16, u *track.FarUnit) {
	f.forgetFar(from, u.Number)
	if !u.Away && f.kept.of[u.Event.UID] == nil { // otherwise the unit is a placed object now
		f.showStale(now, u)
	}
}

// showStale shows a far unit as stale.
func (f *Adapter) showStale(now time.Time, u *track.FarUnit) {
	if f.near.Get(u.Event.UID) == nil {
		f.devices.spread(u.Stale(now))
	}
}

// siteLost drops all that is known of a site.
func (f *Adapter) siteLost(now time.Time, id uint16) {
	f.lost[id] = true
	if far := f.far[id]; far != nil {
		for _, u := range far.Units() {
			f.farGone(now, id, u)
		}
		f.far[id] = track.NewFar(f.cfg.Cadence, f.cfg.patience())
	}
	f.kept.lost(id, f.remember)
	f.wants.lost(id)
	f.files.Lost(id)
	f.devices.lost(id)
	f.words.lost(id)
	for _, a := range f.audiences {
		if slices.Contains(a.sites, id) {
			a.Forget(now)
		}
	}
	if f.far[id] != nil {
		f.placedAgain(now, id, func(*cot.Event) bool { return true })
	}
}
