package tak

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/site"
)

// kept are markers, shapes, routes and alerts of all sites until they are stale: for devices that come later.
type kept struct {
	of      map[string]*keptEvent // by uid
	gone    map[string]withdrawal // by uid
	changes float64               // of something placed that far sites are told in a minute
}

type keptEvent struct {
	site  uint16 // 0: this one
	event *cot.Event
	told  *cot.Event   // what far sites know of something placed here; nil: nothing
	may   track.Budget // changes of it that they are told
	held  bool         // what they are to be told waits for that
}

// withdrawal is what a far site has taken back: an earlier event that it overtook is not shown any more.
type withdrawal struct {
	site uint16
	at   time.Time
}

const (
	mostKept = 5000
	mostGone = 1000
)

func newKept(changes float64) kept {
	return kept{map[string]*keptEvent{}, map[string]withdrawal{}, changes}
}

func (k *kept) len() int { return len(k.of) }

// keeps says whether an event says how something is, until it is stale.
func keeps(e *cot.Event) bool {
	return e.Is("b-m") || e.Is("u") || e.Is("b-a") || e.Is("b-r") || e.Is("b-i-v")
}

// older says whether a newer event of the uid is kept.
func (k *kept) older(e *cot.Event) bool {
	old := k.of[e.UID]
	return old != nil && e.Time.Before(old.event.Time)
}

// overtaken says whether an event of a far site comes behind one that the site has said later of the uid.
func (k *kept) overtaken(from uint16, e *cot.Event) bool {
	w, has := k.gone[e.UID]
	return k.older(e) || has && w.site == from && !e.Time.After(w.at)
}

// set keeps an event of a uid; false: there is no room.
func (k *kept) set(from uint16, e *cot.Event) bool {
	x := k.of[e.UID]
	if x == nil && len(k.of) >= mostKept {
		return false
	}
	if x == nil || x.site != from {
		x = &keptEvent{site: from, may: track.Budget{PerMinute: k.changes}}
		k.of[e.UID] = x
	}
	x.event = e
	return true
}

// restore keeps an event of an earlier run; far sites know of it.
func (k *kept) restore(value []byte) bool {
	if len(value) < 10 {
		return false
	}
	e, err := code.Parse(value[10:], millis(value[2:]), nil)
	if err != nil {
		return false
	}
	if k.set(binary.BigEndian.Uint16(value), e) {
		k.of[e.UID].told = e
	}
	return true
}

// put keeps the newest event of a uid, also over a restart.
func (k *kept) put(from uint16, e *cot.Event, remember func(string, []byte)) {
	if !k.older(e) && k.set(from, e) {
		k.write(e.UID, remember)
	}
}

// write has what is kept of a uid outlive a restart.
func (k *kept) write(uid string, remember func(string, []byte)) {
	x := k.of[uid]
	remember(keyKept+uid, append(appendMillis([]byte{byte(x.site >> 8), byte(x.site)}, x.event.Time), code.Append(nil, x.event, x.event.Time, nil)...))
}

// withdraw drops what a far site takes back.
func (k *kept) withdraw(from uint16, uid string, at time.Time, remember func(string, []byte)) {
	if _, has := k.gone[uid]; !has && len(k.gone) >= mostGone {
		clear(k.gone)
	}
	k.gone[uid] = withdrawal{from, at}
	k.drop(uid, remember)
}

func (k *kept) drop(uid string, remember func(string, []byte)) {
	if k.of[uid] != nil {
		k.unhold(uid, remember)
		delete(k.of, uid)
		remember(keyKept+uid, nil)
	}
}

// unhold notes that far sites know of what is kept, or need not.
func (k *kept) unhold(uid string, remember func(string, []byte)) {
	if x := k.of[uid]; x.held {
		x.held = false
		remember(keyHeld+uid, nil)
	}
}

// moves drops what was placed at a site, because it is a unit now.
func (k *kept) moves(from uint16, uid string, remember func(string, []byte)) {
	if x := k.of[uid]; x != nil && x.site == from && x.event.Is("a") {
		k.drop(uid, remember)
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

// isFar says whether an event is one that came from a far site. A server may give again one that was there before.
func (k *kept) isFar(e *cot.Event, server bool) bool {
	old := k.of[e.UID]
	return old != nil && old.site != 0 && (old.event.Time.Equal(e.Time) && old.event.Type == e.Type || server && e.Time.Before(old.event.Time))
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
func (w *waiting) done(s *step) {
	if !w.here {
		s.out.Done = append(s.out.Done, w.Token)
	}
}

const mostWaiting = 1000
