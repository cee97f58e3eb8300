package tak

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/site"
	"aldis/internal/tak/code"
	"aldis/internal/tak/cot"
)

// kept are markers, shapes, routes and alerts of all sites until they are stale: for devices that come later.
type kept struct {
	of map[string]keptEvent // by uid
}

type keptEvent struct {
	site  uint16 // 0: this one
	event *cot.Event
}

const mostKept = 5000

func newKept() kept { return kept{map[string]keptEvent{}} }

func (k *kept) len() int { return len(k.of) }

// keeps says whether an event says how something is, until it is stale.
func keeps(e *cot.Event) bool {
	return e.Is("b-m") || e.Is("u") || e.Is("b-a") || e.Is("b-r") || e.Is("b-i-v")
}

// put keeps the newest event of a uid.
func (k *kept) put(from uint16, e *cot.Event, remember func(string, []byte)) {
	if old, has := k.of[e.UID]; has && e.Time.Before(old.event.Time) || !has && len(k.of) >= mostKept {
		return
	}
	k.of[e.UID] = keptEvent{from, e}
	remember(keyKept+e.UID, append(appendMillis([]byte{byte(from >> 8), byte(from)}, e.Time), code.Append(nil, e, e.Time, nil)...))
}

func (k *kept) drop(uid string, remember func(string, []byte)) {
	if _, has := k.of[uid]; has {
		delete(k.of, uid)
		remember(keyKept+uid, nil)
	}
}

// purge drops what is stale.
func (k *kept) purge(now time.Time, remember func(string, []byte)) {
	for uid, e := range k.of {
		if now.After(e.event.Stale) {
			k.drop(uid, remember)
		}
	}
}

// lost drops what came from a site.
func (k *kept) lost(from uint16, remember func(string, []byte)) {
	for uid, e := range k.of {
		if e.site == from {
			k.drop(uid, remember)
		}
	}
}

// isFar says whether an event is one that came from a far site.
func (k *kept) isFar(e *cot.Event) bool {
	old, has := k.of[e.UID]
	return has && old.site != 0 && old.event.Time.Equal(e.Time) && old.event.Type == e.Type
}

// events are all that are true now, by uid.
func (k *kept) events(now time.Time) (list []*cot.Event) {
	for _, uid := range slices.Sorted(maps.Keys(k.of)) {
		if e := k.of[uid].event; now.Before(e.Stale) {
			list = append(list, e)
		}
	}
	return list
}

// waiting is an event that waits for a device: one of a far site, or of this one for a device of the mesh.
type waiting struct {
	site.FarMessage
	event *cot.Event
	dests []cot.Dest // that have not got it; empty: it is for all
	hands []handing  // those of them that are devices of the mesh
	here  bool       // it is of this site: nobody else has to know what becomes of it
}

// done tells that an event was given to all that it is for.
func (w *waiting) done(f *Face) {
	if !w.here {
		f.out.Done = append(f.out.Done, w.Token)
	}
}

const mostWaiting = 1000
