package tak

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/site"
)

// kept holds markers, shapes, routes and alerts of all sites until they are stale, for devices that come later.
type kept struct {
	of      map[string]*keptEvent // by uid
	gone    map[string]withdrawal // by uid
	octets  int                   // of all kept events as XML
	changes float64               // most changes of a placed object that go to far sites in a minute
}

type keptEvent struct {
	site   uint16 // 0: this one
	event  *cot.Event
	octets int          // of the event as XML
	told   *cot.Event   // the event that far sites have of an object placed here; nil: none
	may    track.Budget // for changes that go to far sites
	held   bool         // a change waits for this budget
}

// withdrawal is a uid that a far site has withdrawn: an earlier event that arrives after the withdrawal is not shown.
type withdrawal struct {
	site uint16
	at   time.Time
}

const (
	mostKept = 5000
	// mostKeptOctets leaves a quarter of the queue of a stream (taklan.Config.MaxQueue) to units: a device that connects gets all at once.
	mostKeptOctets = 3 << 20
	mostGone       = 1000
)

func newKept(changes float64) kept {
	return kept{of: map[string]*keptEvent{}, gone: map[string]withdrawal{}, changes: changes}
}

func (k *kept) len() int { return len(k.of) }

// keeps says whether an event describes a state that lasts until the event is stale.
func keeps(e *cot.Event) bool {
	return e.Is("b-m") || e.Is("u") || e.Is("b-a") || e.Is("b-r") || e.Is("b-i-v")
}

// older says whether a newer event of the uid is kept.
func (k *kept) older(e *cot.Event) bool {
	old := k.of[e.UID]
	return old != nil && e.Time.Before(old.event.Time)
}

// overtaken says whether a far site has sent a later event or withdrawal of the uid, which has arrived first.
func (k *kept) overtaken(from uint16, e *cot.Event) bool {
	w, has := k.gone[e.UID]
	return k.older(e) || has && w.site == from && !e.Time.After(w.at)
}

// set keeps an event of a uid; false: there is no room.
func (k *kept) set(from uint16, e *cot.Event) bool {
	x, octets := k.of[e.UID], len(e.AppendXML(nil))
	more := octets
	if x != nil {
		more -= x.octets
	}
	if x == nil && len(k.of) >= mostKept || k.octets+more > mostKeptOctets {
		return false
	}
	if x == nil || x.site != from {
		x = &keptEvent{site: from, may: track.Budget{PerMinute: k.changes}}
		k.of[e.UID] = x
	}
	x.event, x.octets, k.octets = e, octets, k.octets+more
	return true
}

// restore keeps an event of an earlier run; far sites have it.
func (k *kept) restore(value []byte) bool {
	if len(value) < 10 {
		return false
	}
	e, err := code.Parse(value[10:], millis(value[2:]), nil)
	if err != nil || !k.set(binary.BigEndian.Uint16(value), e) {
		return false
	}
	k.of[e.UID].told = e
	return true
}

// put keeps the newest event of a uid, also across a restart.
func (k *kept) put(from uint16, e *cot.Event, remember func(string, []byte)) {
	if !k.older(e) && k.set(from, e) {
		k.write(e.UID, remember)
	}
}

// write saves the event that is kept of a uid, so that it survives a restart.
func (k *kept) write(uid string, remember func(string, []byte)) {
	x := k.of[uid]
	remember(keyKept+uid, append(appendMillis([]byte{byte(x.site >> 8), byte(x.site)}, x.event.Time), code.Append(nil, x.event, x.event.Time, nil)...))
}

// withdraw drops the event of a uid that a far site withdraws.
func (k *kept) withdraw(from uint16, uid string, at time.Time, remember func(string, []byte)) {
	if _, has := k.gone[uid]; !has && len(k.gone) >= mostGone {
		clear(k.gone)
	}
	k.gone[uid] = withdrawal{from, at}
	k.drop(uid, remember)
}

func (k *kept) drop(uid string, remember func(string, []byte)) {
	if x := k.of[uid]; x != nil {
		k.unhold(uid, remember)
		k.octets -= x.octets
		delete(k.of, uid)
		remember(keyKept+uid, nil)
	}
}

// unhold notes that far sites have the kept event, or do not need it.
func (k *kept) unhold(uid string, remember func(string, []byte)) {
	if x := k.of[uid]; x.held {
		x.held = false
		remember(keyHeld+uid, nil)
	}
}

// moves drops an object placed at a site, because it is a unit now.
func (k *kept) moves(from uint16, uid string, remember func(string, []byte)) {
	if x := k.of[uid]; x != nil && x.site == from && x.event.Is("a") {
		k.drop(uid, remember)
	}
}

// purge drops stale events.
func (k *kept) purge(now time.Time, remember func(string, []byte)) {
	for uid, e := range k.of {
		if now.After(e.event.Stale) {
			k.drop(uid, remember)
		}
	}
}

// lost drops the events of a site.
func (k *kept) lost(from uint16, remember func(string, []byte)) {
	for uid, e := range k.of {
		if e.site == from {
			k.drop(uid, remember)
		}
	}
}

// isFar says whether an event came from a far site. A server may also give an earlier event of the far site again.
func (k *kept) isFar(e *cot.Event, server bool) bool {
	old := k.of[e.UID]
	return old != nil && old.site != 0 && (old.event.Time.Equal(e.Time) && old.event.Type == e.Type || server && e.Time.Before(old.event.Time))
}

// events are all kept events that are not stale, by uid.
func (k *kept) events(now time.Time) (list []*cot.Event) {
	for _, uid := range slices.Sorted(maps.Keys(k.of)) {
		if e := k.of[uid].event; now.Before(e.Stale) {
			list = append(list, e)
		}
	}
	return list
}

// waiting is an event that waits for a device: an event of a far site, or an event of this site for a device of the mesh.
type waiting struct {
	site.FarMessage
	event *cot.Event
	dests []cot.Dest    // recipients that do not have it yet; empty: it is for all
	hands []handing     // of dests, the devices of the mesh
	here  bool          // it is of this site: its outcome is not reported to another one
	noted bool          // the journal has dests, because some of the recipients have it
	conns []site.ConnID // streams that were given it and whose devices may not have it yet
}

// done reports that an event was given to all its recipients.
func (w *waiting) done(s *step) {
	if w.forget(s); !w.here {
		s.out.Done = append(s.out.Done, w.Token)
	}
}

// note writes the recipients that do not have the event yet to the journal, if they are fewer than before.
func (w *waiting) note(s *step, before int) {
	if w.here || len(w.dests) == 0 || len(w.dests) >= before {
		return
	}
	value, err := json.Marshal(w.dests)
	if err != nil {
		panic("tak: recipients are plain texts: " + err.Error())
	}
	w.noted = true
	s.remember(keyRest+token8(w.Token), append([]byte{byte(w.Site >> 8), byte(w.Site)}, value...))
}

// forget takes the recipients out of the journal.
func (w *waiting) forget(s *step) {
	if w.noted {
		w.noted = false
		s.remember(keyRest+token8(w.Token), nil)
	}
}

func token8(token uint64) string { return string(binary.BigEndian.AppendUint64(nil, token)) }

// rest is the recipients that lack an event, some of whose recipients an earlier run has given it to.
type rest struct {
	site  uint16
	dests []cot.Dest
}

// restoreRest reads recipients that note has written.
func (d *devices) restoreRest(key string, value []byte) bool {
	if len(key) != 8 || len(value) < 2 {
		return false
	}
	r := rest{site: binary.BigEndian.Uint16(value)}
	if json.Unmarshal(value[2:], &r.dests) != nil || len(r.dests) == 0 {
		return false
	}
	d.rest[binary.BigEndian.Uint64([]byte(key))] = r
	return true
}

const mostWaiting = 1000
