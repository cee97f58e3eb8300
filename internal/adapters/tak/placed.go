package tak

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/site"
)

// An object placed on the map stays there. It keeps the stale time that its author gave it, and far sites receive it once, and again
// when it has changed.

const (
	// longLived is the life from which on any event counts as a placed object.
	longLived = 2 * time.Hour
	// farOff is the part of the bound from which a move of an object is sent that was not placed by hand.
	farOff = 0.3
)

// Placed says whether an Adapter of this configuration treats an event as a placed object: placed by hand or to be archived,
// with a stale time beyond the silence after which a site's units are stale, or with a life of hours; no device, and nothing that moves.
func (c Config) Placed(e *cot.Event) bool {
	if !e.Is("a") || device(e) {
		return false
	}
	if t := e.Find("track"); t != nil {
		if speed, _ := cot.Number(t.Get("speed")).Float(); speed > 0 {
			return false
		}
	}
	life := e.Stale.Sub(e.Start)
	return life >= longLived || life > track.Silence(c.withDefaults().Age) && (cot.Below(e.How, "h") || e.Find("archive") != nil)
}

// device says whether an event is a report of a device: it names its software, its team or its endpoint.
func device(e *cot.Event) bool {
	contact := e.Find("contact")
	return e.Find("takv") != nil || e.Find("__group") != nil || contact != nil && contact.Get("endpoint") != ""
}

// placed takes an object placed at this site. Its time may be long ago: servers and devices repeat objects that they keep.
func (f *Adapter) placed(now time.Time, c *client, e *cot.Event) {
	if e.Time.After(now) || !e.Stale.After(now) {
		e = f.trueTimes(now, c, e)
	}
	if u := f.near.Get(e.UID); u != nil {
		f.gone(now, u, code.Withdrawn)
	}
	if f.kept.older(e) {
		f.trouble.Count("older")
		return
	}
	if !f.kept.set(0, e) {
		f.refuse(now, "placed", c, e.UID, nil)
		return
	}
	f.tellPlaced(now, e.UID)
}

// tellPlaced sends an object placed at this site to far sites, if it is news to them and its budget allows it. Otherwise it is
// held for later.
func (f *Adapter) tellPlaced(now time.Time, uid string) {
	k := f.kept.of[uid]
	if !k.news(now, farOff*f.cfg.Bound) {
		f.kept.unhold(uid, f.remember)
		return
	}
	if !k.may.Left(now) {
		k.held = true
		f.remember(keyHeld+uid, []byte{1})
		f.kept.write(uid, f.remember)
		return
	}
	f.kept.unhold(uid, f.remember)
	turned := false
	if k.told != nil {
		k.may.Spend(1)
		turned = code.Marks(k.told) != code.Marks(k.event)
	}
	k.told = k.event
	f.kept.write(uid, f.remember)
	if turned {
		f.carryAs(now, k.event, f.cfg.Sites, site.Priority)
	} else {
		f.carryEvent(now, k.event, f.cfg.Sites)
	}
}

// turnPlaced sends objects that were held.
func (f *Adapter) turnPlaced(now time.Time) {
	var held []string
	for uid, k := range f.kept.of {
		if k.held && k.may.Left(now) {
			held = append(held, uid)
		}
	}
	slices.Sort(held)
	for _, uid := range held {
		f.tellPlaced(now, uid)
	}
}

// placedAgain sends a site the kept events of this one that which selects.
func (f *Adapter) placedAgain(now time.Time, to uint16, which func(*cot.Event) bool) {
	for _, uid := range slices.Sorted(maps.Keys(f.kept.of)) {
		if k := f.kept.of[uid]; k.site == 0 && now.Before(k.event.Stale) && which(k.event) {
			f.carryEvent(now, k.event, []uint16{to})
		}
	}
}

// news says whether far sites lack the looks or the position of an object placed here, or a stale time that is later by more
// than the life that they believe is left. metres: the position of an object not placed by hand may be wrong by so many.
func (k *keptEvent) news(now time.Time, metres float64) bool {
	if k.told == nil || k.event.Stale.Before(k.told.Stale) || k.event.Stale.Sub(k.told.Stale) > k.told.Stale.Sub(now) {
		return true
	}
	is, was := *k.event, *k.told
	if !cot.Below(is.How, "h") && code.FixOf(&is).Metres(code.FixOf(&was)) < metres {
		was.Point = is.Point
	}
	is.Time, is.Start, is.Stale = was.Time, was.Start, was.Stale
	return is.Canonical() != was.Canonical()
}
