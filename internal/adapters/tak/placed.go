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

// What was put on the map stays there. It keeps the stale time that its author gave it, and far sites are told of it once, and again
// when it has changed.

const (
	// longLived is the life from which on an event is of something placed, whoever says so.
	longLived = 2 * time.Hour
	// farOff is the part of the bound from which a thing that no hand has placed is told to be elsewhere.
	farOff = 0.3
)

// Placed says whether an Adapter of this configuration takes an event for one of something placed: by hand or to stay, with a stale time
// beyond what the silence of a site makes stale, or for hours; not of a device, nor of what moves.
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

// device says whether an event is a report of a device: it says its software, its team or where it is reached.
func device(e *cot.Event) bool {
	contact := e.Find("contact")
	return e.Find("takv") != nil || e.Find("__group") != nil || contact != nil && contact.Get("endpoint") != ""
}

// placed takes something placed at this site. Its time may be long ago: servers and devices say again what they keep.
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

// tellPlaced tells far sites of something placed at this site, where that is news to them and it may be told now. What is held is told later.
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

// turnPlaced tells what was held.
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

// placedAgain tells a site of what is kept of this one, where which says so.
func (f *Adapter) placedAgain(now time.Time, to uint16, which func(*cot.Event) bool) {
	for _, uid := range slices.Sorted(maps.Keys(f.kept.of)) {
		if k := f.kept.of[uid]; k.site == 0 && now.Before(k.event.Stale) && which(k.event) {
			f.carryEvent(now, k.event, []uint16{to})
		}
	}
}

// news says whether far sites lack what is to be known of something placed here: how it looks, where it is, or that it is good for longer
// than half of what they believe is left. metres: one that no hand has placed may be wrong by so many.
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
