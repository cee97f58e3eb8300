package track

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/ground/due"
)

// Far are the units of one far site.
type Far struct {
	Run      uint16
	Starts   [2]uint8 // of the site, modulo 4, by the last batch of each lane
	lanes    [2]lane
	units    map[uint32]*FarUnit
	uids     map[string]*FarUnit
	next     time.Time // Due, if known
	known    bool
	skew     time.Duration        // the far clock is behind ours by so much
	lacking  map[uint32]time.Time // since when
	left     map[uint32]left
	askAgain time.Time
	every    time.Duration // cadence of the local maps
	patience time.Duration // wait before asking for a unit whose Whole is missing
}

// lane is one of the two sequences of batches of a site: with the units that are Late, or with the others.
type lane struct {
	heard time.Time     // by our clock, when the last batch was made
	good  time.Duration // how long after heard its units stay good
}

// FarUnit is one unit of a far site.
type FarUnit struct {
	Number  uint32
	Version uint8
	Late    bool
	Away    bool       // it has become stale: it is shown again with its next report
	Event   *cot.Event // whole
	Fix     code.Fix   // at At
	At      time.Time  // of the last report, by our clock
	shown   time.Time
	said    uint8 // the version to which the last report belongs
	sure    bool  // reported since the site's last start
	unsure  time.Time
}

// left is a unit that is no more. Batches and chats from before that may arrive later.
type left struct {
	at    time.Time  // of the batch that said so, by our clock
	event *cot.Event // the last; nil: it is not known
}

// Bounds of a far site.
const (
	mostFar   = 10_000
	mostLeft  = 1000
	askEvery  = 20 * time.Second
	mostAsked = 64
	// showMetres is the distance after which a moving unit is shown again, within 2 s and the cadence.
	showMetres = 15
	// skewFrom is the difference between two clocks from which it counts as skew, and not as the time that a batch was on its way.
	skewFrom    = 30 * time.Second
	clocksApart = 20 * time.Minute
	slack       = 30 * time.Second // for a batch's way
	// latest is how long a batch may take on its way: one that seems to be older was made by a clock that was put back.
	latest = 10 * time.Minute
	// keepAway is how long a unit is kept that is no longer shown because its site fell silent. When the site speaks again it sends where
	// its units are, and not their whole events: it cannot know whether they were forgotten.
	keepAway = 24 * time.Hour
)

// Silence is how long the units of a silent site stay fresh, if the site was to say something at least once in age.
func Silence(age time.Duration) time.Duration { return age*3/2 + slack }

// longAgo makes a missing unit one that the site is asked for at once.
var longAgo = time.Unix(0, 0)

// NewFar makes the table of a site of which nothing is known yet. every is how often a unit that moves is shown. patience is
// how long after a report of a unit its Whole, sent before, may come by itself: nobody asks for it sooner.
func NewFar(every, patience time.Duration) *Far {
	return &Far{units: map[uint32]*FarUnit{}, uids: map[string]*FarUnit{}, lacking: map[uint32]time.Time{}, left: map[uint32]left{}, every: every,
		patience: patience}
}

// Put brings back a unit from an earlier run.
func (f *Far) Put(u *FarUnit) {
	u.sure, u.said = true, u.Version
	f.known = false
	f.units[u.Number], f.uids[u.Event.UID] = u, u
	if u.Away {
		return
	}
	if l := &f.lanes[index(u.Late)]; l.heard.Before(u.At) {
		l.heard = u.At
	}
}

// Resume keeps the units that Put has brought back valid until their site, which says something at least once in age, must have spoken.
func (f *Far) Resume(now time.Time, age time.Duration) {
	f.known = false
	for i := range f.lanes {
		if l := &f.lanes[i]; !l.heard.IsZero() {
			l.good = max(0, now.Sub(l.heard)) + Silence(age)
		}
	}
}

func index(late bool) int {
	if late {
		return 1
	}
	return 0
}

// Units are the units by number.
func (f *Far) Units() (list []*FarUnit) {
	for _, n := range slices.Sorted(maps.Keys(f.units)) {
		list = append(list, f.units[n])
	}
	return list
}

// Shown is how many units are on the map.
func (f *Far) Shown() (n int) {
	for _, u := range f.units {
		if !u.Away {
			n++
		}
	}
	return n
}

// Find is the unit with this uid; nil: there is none.
func (f *Far) Find(uid string) *FarUnit {
	return f.uids[uid]
}

// drop forgets a unit.
func (f *Far) drop(u *FarUnit) {
	delete(f.units, u.Number)
	delete(f.lacking, u.Number)
	if f.uids[u.Event.UID] == u {
		delete(f.uids, u.Event.UID)
	}
}

// leave takes in that a unit is no more since a batch of this time.
func (f *Far) leave(number uint32, at time.Time) {
	l := f.left[number]
	if u := f.units[number]; u != nil {
		l.event = u.Event
		f.drop(u)
	}
	delete(f.lacking, number)
	if _, has := f.left[number]; !has && len(f.left) >= mostLeft {
		var oldest uint32
		for n, other := range f.left {
			if o, has := f.left[oldest]; !has || other.at.Before(o.at) || other.at.Equal(o.at) && n < oldest {
				oldest = n
			}
		}
		delete(f.left, oldest)
	}
	l.at = due.Latest(l.at, at)
	f.left[number] = l
}

// longestAway is the unit among those away whose last report is the oldest; nil: none is away.
func (f *Far) longestAway() (old *FarUnit) {
	for _, n := range slices.Sorted(maps.Keys(f.units)) {
		if u := f.units[n]; u.Away && (old == nil || u.At.Before(old.At)) {
			old = u
		}
	}
	return old
}

// News is the changes that a batch has made.
type News struct {
	Made time.Time  // when the batch was made, by our clock
	Told []*FarUnit // new reports
	Back []*FarUnit // they were away; their last reports are valid again
	Gone []*FarUnit
}

// Apply takes a batch in; late is its lane.
func (f *Far) Apply(now time.Time, b *code.Batch, late bool) (n News) {
	f.known = false
	l := &f.lanes[index(late)]
	if b.Run != f.Run {
		n.Gone = f.Units()
		clear(f.units)
		clear(f.uids)
		clear(f.lacking)
		clear(f.left)
		f.Run = b.Run
	}
	f.synchronise(now, b.At)
	at := b.At.Add(f.skew)
	if at.After(now) {
		at = now
	}
	n.Made = at
	starts := &f.Starts[index(late)]
	anew := (b.Start-*starts)&3 == 1
	overtaken := at.Before(l.heard) && l.heard.Sub(at) < latest && !anew
	if at.Before(l.heard) && !overtaken { // the far clock was put back
		at = l.heard
	}
	if !overtaken { // otherwise the batch may be from before the site's last start
		if b.Start != *starts {
			for _, u := range f.units {
				if u.Late == late {
					u.sure, u.unsure = false, now
				}
			}
		}
		*starts, l.heard, l.good = b.Start, at, Silence(b.Promise)
	}
	for i := range b.Records {
		f.record(now, arrival{at, late, overtaken}, &b.Records[i], &n)
	}
	if !overtaken { // any batch confirms the earlier reports of its lane
		for _, u := range f.Units() {
			if u.Away && u.Late == late && u.sure && now.Before(f.good(u)) {
				u.Away, u.shown = false, time.Time{}
				n.Back = append(n.Back, u)
			}
		}
	}
	return n
}

// arrival describes a batch that has arrived.
type arrival struct {
	at        time.Time // when it was made, by this clock
	late      bool      // in the lane of the units that are Late
	overtaken bool      // a newer batch has come before
}

// record takes one record of a batch into the picture.
func (f *Far) record(now time.Time, a arrival, r *code.Record, news *News) {
	if l, has := f.left[r.Unit]; has && a.at.Before(l.at) {
		if r.Form == code.Whole && l.event == nil {
			l.event = r.Event
			f.left[r.Unit] = l
		}
		return
	}
	u := f.units[r.Unit]
	other := r.Form == code.Whole && u != nil && u.Late != a.late && u.Event.UID == r.Event.UID // the unit has changed its lane
	if (a.overtaken || other) && u != nil && !a.at.Add(-r.Age).After(u.At) {                    // a newer position is known
		if _, lacks := f.lacking[r.Unit]; lacks && r.Form == code.Whole && r.Version == u.said && r.Event.UID == u.Event.UID {
			u.Event, u.Version = u.Fix.Apply(r.Event), r.Version
			u.shown = time.Time{}
			delete(f.lacking, r.Unit)
			news.Told = append(news.Told, u)
		}
		return
	}
	switch {
	case r.Form == code.Lost:
		if f.leave(r.Unit, a.at); u != nil {
			news.Gone = append(news.Gone, u)
		}
		return
	case r.Form == code.Whole:
		if u == nil && len(f.units) >= mostFar {
			old := f.longestAway()
			if old == nil {
				return
			}
			f.drop(old)
			news.Gone = append(news.Gone, old)
		}
		if u != nil && u.Event.UID != r.Event.UID {
			f.drop(u)
			news.Gone = append(news.Gone, u)
			u = nil
		}
		if u == nil {
			u = &FarUnit{Number: r.Unit}
			f.units[r.Unit] = u
		}
		delete(f.left, r.Unit)
		f.uids[r.Event.UID] = u
		u.Event, u.Version, u.said, u.Late, u.Fix = r.Event, r.Version, r.Version, a.late, code.FixOf(r.Event)
		delete(f.lacking, r.Unit)
	case u == nil:
		f.lack(now, r.Unit)
		return
	default:
		u.said = r.Version
		if u.Version != r.Version {
			f.lack(now, r.Unit)
		}
		u.Fix = r.Onto(u.Fix)
		if u.Away {
			u.Event = u.Fix.Apply(u.Event)
		}
	}
	u.At, u.sure, u.Away = a.at.Add(-r.Age), true, false
	u.shown = time.Time{}
	news.Told = append(news.Told, u)
}

// synchronise finds how far the far clock is behind ours. Transit and waiting make a batch seem older, never younger.
func (f *Far) synchronise(now, at time.Time) {
	behind := now.Sub(at)
	switch {
	case behind < 0, behind-f.skew < 0:
		f.skew = behind
	case f.skew == 0 && behind > clocksApart: // no batch waits that long
		f.skew = behind
	}
	if f.skew > 0 && f.skew < skewFrom {
		f.skew = 0
	}
}

func (f *Far) lack(now time.Time, n uint32) {
	if _, known := f.lacking[n]; !known && len(f.lacking) < mostAsked {
		f.lacking[n], f.known = now, false
	}
}

// Ask returns the units for which the site is to be asked now.
func (f *Far) Ask(now time.Time) (list []uint32) {
	if at := f.askDue(); at.IsZero() || now.Before(at) {
		return nil
	}
	f.known = false
	f.askAgain = now.Add(max(askEvery, f.patience))
	for n, since := range f.lacking {
		if !now.Before(since.Add(f.patience)) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// askDue is when Ask has something; zero: never.
func (f *Far) askDue() (at time.Time) {
	for _, since := range f.lacking {
		at = due.Earliest(at, since.Add(f.patience))
	}
	if !at.IsZero() {
		at = due.Latest(at, f.askAgain)
	}
	return at
}

// good is until when the last report of a unit is valid.
func (f *Far) good(u *FarUnit) time.Time {
	l := f.lanes[index(u.Late)]
	if !u.sure { // its site has restarted and not reported it since
		if until := u.unsure.Add(l.good); until.Before(l.heard.Add(l.good)) {
			return until
		}
	}
	return l.heard.Add(l.good)
}

// Show returns the events of all units that are to be shown now: those with a new report, those that move, and those whose
// stale time is near. A unit whose last report has expired becomes Away and is shown once more, stale: away has it. A unit that
// has been Away for too long is forgotten.
func (f *Far) Show(now time.Time) (events []*cot.Event, away, forgotten []*FarUnit) {
	if next := f.Due(); next.IsZero() || now.Before(next) {
		return nil, nil, nil
	}
	f.known = false
	for _, u := range f.Units() {
		switch {
		case u.Away && now.Sub(u.At) >= keepAway:
			f.drop(u)
			forgotten = append(forgotten, u)
			continue
		case u.Away:
			continue
		case !now.Before(f.good(u)):
			u.Event, u.Away = u.Fix.Apply(u.Event), true
			away = append(away, u)
			continue
		case now.Before(f.showAt(u)):
			continue
		}
		events = append(events, f.Event(now, u))
		u.shown = now
	}
	return events, away, forgotten
}

// showAt is when a unit is to be shown next.
func (f *Far) showAt(u *FarUnit) time.Time {
	switch {
	case u.shown.IsZero():
		return time.Time{}
	case u.Fix.Moves && u.Fix.Speed >= 3: // faster than a person who stands
		way := time.Duration(showMetres * 10 / float64(u.Fix.Speed) * float64(time.Second))
		return u.shown.Add(min(f.every, max(time.Second, way)))
	}
	return u.shown.Add(f.ahead() / 2)
}

// ahead is how far after now a unit's stale time is set.
func (f *Far) ahead() time.Duration { return max(4*f.every, 20*time.Second) }

// Event is a unit as it is to be shown now. Its time is the time of the last report.
func (f *Far) Event(now time.Time, u *FarUnit) *cot.Event {
	e := *u.Fix.After(now.Sub(u.At)).Apply(u.Event)
	e.Time, e.Start = u.At.Truncate(time.Millisecond), u.At.Truncate(time.Millisecond)
	e.Stale = now.Add(f.ahead())
	if good := f.good(u); good.Before(e.Stale) {
		e.Stale = good
	}
	e.Stale = e.Stale.Truncate(time.Millisecond)
	if e.Stale.Before(e.Start) {
		e.Stale = e.Start
	}
	return &e
}

// Stale is how a unit is shown when it is no more.
func (u *FarUnit) Stale(now time.Time) *cot.Event {
	e := *u.Fix.Apply(u.Event)
	e.Time, e.Start = u.At.Truncate(time.Millisecond), u.At.Truncate(time.Millisecond)
	e.Stale = now.Truncate(time.Millisecond)
	if e.Stale.Before(e.Start) {
		e.Stale = e.Start
	}
	return &e
}

// Due is when Show or Ask has something; zero: never.
func (f *Far) Due() time.Time {
	if !f.known {
		f.next, f.known = f.dueNow(), true
	}
	return f.next
}

func (f *Far) dueNow() (at time.Time) {
	for _, u := range f.units {
		if u.Away {
			at = due.Earliest(at, u.At.Add(keepAway))
			continue
		}
		next := f.showAt(u)
		if next.IsZero() {
			next = u.At // at once
		}
		at = due.Earliest(at, due.Earliest(next, f.good(u)))
	}
	return due.Earliest(at, f.askDue())
}

// Number and Text make a Far the names of its units (code.Names).
func (f *Far) Number(string, bool) (uint32, bool) { return 0, false }

// Text is a unit's uid or callsign.
func (f *Far) Text(number uint32, callsign bool) (string, bool) {
	l, gone := f.left[number]
	if u := f.units[number]; u != nil {
		l.event = u.Event
	}
	switch {
	case l.event == nil && !gone:
		f.lack(longAgo, number) // the site that names the unit has its Whole
		return "", false
	case l.event == nil:
		return "", false
	case callsign:
		return l.event.Callsign(), true
	}
	return l.event.UID, true
}
