package track

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"aldis/internal/adapters/tak/code"
)

// Pace is how an Outlet speaks.
type Pace struct {
	Gather time.Duration // how long a due unit waits for others
	Gap    time.Duration // between two batches, where nobody confirms that one has arrived; otherwise 0
	First  time.Duration // a new unit waits longer by this, and so does a site whose batch collides with that of another; differs by site
	Age    time.Duration // longest time between two batches
	Octets int           // of a batch, about; with a Gap no more, unless one report alone is longer
	Calm   int           // the same with a Gap, if nothing urgent was sent for a while and there are newcomers
}

// Outlet holds the reports of a Near that one audience has received, and makes the next batches for it.
type Outlet struct {
	pace    Pace
	slot    int  // of its Care among the Cares of a unit
	late    bool // for units with Care.Late; another Outlet has the others
	start   uint8
	told    map[uint32]*told
	flights []flight  // batches that are under way, the oldest first
	number  uint64    // of the last
	since   time.Time // something is due; zero: nothing is
	spoke   time.Time // the last batch was made
	counted int       // reports in all batches
	defined bool      // the last batch had a whole event of a unit that the audience knew
	urgent  time.Time // when something urgent was sent last, here or by another site
	others  time.Time // when another site's batch was heard last, where all share a channel
	beside  time.Time // when this Outlet made a batch at about the same time as another site
	hurry   bool      // a unit whose marks have changed is due
	hurries Budget    // batches that may hurry, where all share a channel
	refused time.Time // a batch was refused at once
}

// flight is a batch whose outcome is not known yet.
type flight struct {
	number uint64
	told   []uint32 // units
	gone   []uint32 // units that are no more
}

// While a batch is under way, the next one goes nextAfter it, as long as fewer than mostFlights are under way: a receipt may
// take longer than a batch, and while the link is down no more than these become old. A lost receipt comes many seconds
// later, although the batches have arrived: so one more goes each lateAfter, up to atAllFlights.
const (
	nextAfter    = time.Second
	mostFlights  = 4
	lateAfter    = 4 * time.Second
	atAllFlights = 7
)

// told is what the audience knows about a unit, as far as we know.
type told struct {
	whole   bool // it has the whole event of version, with these looks and marks
	version uint8
	looks   string
	marks   string
	changes Budget    // of marks that may be sent at once
	turned  time.Time // of the marks that were sent (Unit.Turned)
	repeat  int       // how many times the marks are still to be sent again, because nobody confirms that they have arrived
	fix     code.Fix  // of the last report, at its time
	at      time.Time
	gone    int // how many times it is still to be reported that the unit is no more
	why     code.Gone
	sent    time.Time // when it was reported last
	defined time.Time // when its whole event was sent last
	brief   bool      // the whole event that it has lacks details
	fresh   bool      // it was reported once, because it mattered
	first   uint64    // number of the batch with the whole event
}

// NewOutlet makes an Outlet for the audience of this number, which has received no report in this run. start counts the starts
// of this site.
func NewOutlet(p Pace, slot int, late bool, start uint8) *Outlet {
	return &Outlet{pace: p, slot: slot, late: late, start: start & 3, told: map[uint32]*told{}, hurries: Budget{PerMinute: mostHurries}}
}

// Shown is where the audience believes a unit is; false: it does not know the unit.
func (o *Outlet) Shown(now time.Time, u *Unit) (code.Fix, bool) {
	t := o.told[u.Number]
	if t == nil || !t.whole {
		return code.Fix{}, false
	}
	return t.fix.After(now.Sub(t.at)), true
}

// wrong is by how many metres the audience is wrong about a unit: at its last report, or half of the error at soon after it, if the
// unit keeps its course and speed. So a boat that has stopped or turned is reported before the far map shows it elsewhere.
func (t *told) wrong(u *Unit) float64 {
	later := u.Heard.Sub(t.at) + soon
	return max(t.fix.After(later-soon).Metres(u.Fix), t.fix.After(later).Metres(u.Fix.After(soon))/2)
}

// due says how much it matters to report a unit now; 0: not at all. details: its whole event may be sent again (spells).
func (o *Outlet) due(now time.Time, u *Unit, details bool) (matters float64) {
	care := u.Cares[o.slot]
	if care.Hidden || care.Late != o.late {
		return 0
	}
	t := o.told[u.Number]
	switch {
	case t == nil || !t.whole:
		if !care.Budget.Left(now) {
			return 0
		}
		switch {
		case o.pace.Gap == 0:
			return 4
		case t != nil: // a site that asks for the unit knows that it exists
			return newcomer - 1
		}
		return newcomer
	case !care.Budget.Left(now):
		return 0
	case care.Every > 0 && now.Sub(t.sent) < care.Every:
		return 0
	case t.repeat > 0, o.turned(now, t, u):
		return turned
	case o.changed(now, t, u):
		return 3
	case !u.Heard.After(t.at):
		return 0
	}
	return max(t.wrong(u)/max(1, care.Bound), o.repeatWeight(now, t, details))
}

// turned says whether the marks of a unit are to be sent again at once: some changes in a row, and then one in a quarter of the age.
func (o *Outlet) turned(now time.Time, t *told, u *Unit) bool {
	return t.marks != u.marks && t.changes.Left(now)
}

// changed says whether the looks of a unit are to be sent again.
func (o *Outlet) changed(now time.Time, t *told, u *Unit) bool {
	return t.looks != u.looks && (now.Sub(t.defined) >= o.pace.Age/4 || o.turned(now, t, u))
}

// repeatWeight is how much it matters to report a unit that has no news, where nobody confirms what has arrived: its details
// after everything that is more urgent, and its position within the age of a picture, because a silent site may have lost it.
func (o *Outlet) repeatWeight(now time.Time, t *told, details bool) float64 {
	since, first := now.Sub(t.sent), o.pace.Age*2/5
	if !o.calm(now) { // batches are half empty, and a position that bursts destroy twice would come after the age
		first = o.pace.Age * 3 / 10
	}
	switch {
	case o.pace.Gap == 0:
		return 0
	case since >= first: // it has waited for others that move faster; the unit that has waited longest goes first
		return newcomer * (1 - float64(o.pace.Age)/float64(o.pace.Age+since))
	case details && o.spells(now, t):
		if now.Sub(t.defined) >= o.pace.Age*2/5 {
			return newcomer / 4
		}
		return detailed
	case since >= o.pace.Age/3: // if it is lost once or twice, it still comes within the age
		return tellFrom
	case t.fresh || since >= o.pace.Age/5:
		return alongFrom
	}
	return 0
}

// along returns up to how many octets a batch also takes units that need no report yet, and from which weight a unit needs one.
// On a slow channel an urgent message waits for the batch that is on the air. While one may come, units that are shown within
// their bound fill less of a batch.
func (o *Outlet) along(now time.Time) (octets int, must float64) {
	if o.pace.Gap > 0 && !o.calm(now) {
		return o.pace.Octets / 2, 1
	}
	return o.pace.Octets * 3 / 4, tellFrom
}

// spells says whether the whole event of a unit is to be sent again, where nobody confirms what has arrived. It is as long as
// the positions of seven units, so a batch with a whole event is followed by a batch without (spelt): otherwise ten of them
// would hold up all positions for minutes.
func (o *Outlet) spells(now time.Time, t *told) bool {
	return o.pace.Gap > 0 && (t.brief || now.Sub(t.defined) >= wholeEvery*o.pace.Age)
}

// detailed is how much the details of a unit matter that is shown without them. Its first report may have been lost, so they
// are its second chance, too. When they have waited as long as a position may, they go before positions that are wrong.
const detailed = 2

// newcomer is how much a unit matters on a slow channel that the audience does not show yet: more than one that it shows in a
// wrong place.
const newcomer = 1000

// turned is how much a unit matters whose marks have changed: it goes first, and turnedAgain times more where nobody confirms
// what has arrived.
const (
	turned      = 2 * newcomer
	turnedAgain = 2
)

// On a shared channel a batch that hurries goes a part of the gap after the batch before it, when that one has left the air,
// mostHurries times a minute.
const (
	hurried     = 4
	mostHurries = 6
)

// soon is how far wrong looks ahead: it covers a report, the next report of a fast unit, and the transit of a batch.
const soon = 10 * time.Second

// The share of its bound from which a unit is reported, and from which it goes along with others.
const (
	tellFrom  = 0.3
	alongFrom = 0.1
)

// Knows says whether the audience surely has the whole event of a unit: where receipts come, the batch with the event is not
// under way any more.
func (o *Outlet) Knows(number uint32) bool {
	t := o.told[number]
	return t != nil && t.whole && !slices.ContainsFunc(o.flights, func(f flight) bool { return slices.Contains(f.told, number) && t.first == f.number })
}

// Reported takes in that a unit was reported here. A unit that the audience may not see any more is taken from its map.
func (o *Outlet) Reported(now time.Time, u *Unit) {
	if t := o.told[u.Number]; t != nil && t.gone == 0 && u.Cares[o.slot].Hidden {
		o.Gone(now, u, code.Stale)
		return
	}
	if t := o.told[u.Number]; t != nil && u.Cares[o.slot].Late != o.late { // the Outlet of the other lane sends its looks now
		t.looks, t.marks = "", ""
	}
	if o.due(now, u, !o.defined) < tellFrom {
		return
	}
	if u.Turned.Equal(now) {
		o.hasten(now)
	}
	at := now
	if t := o.told[u.Number]; t == nil && !u.Turned.Equal(now) {
		at = now.Add(o.pace.First)
	}
	if o.since.IsZero() || at.Before(o.since) {
		o.since = at
	}
}

// hasten makes the next batch hurry.
func (o *Outlet) hasten(now time.Time) {
	if !o.hurry && (o.pace.Gap == 0 || o.hurries.Left(now)) {
		o.hurry = true
		o.hurries.Spend(1)
	}
}

// Gone takes in that a unit is no more.
func (o *Outlet) Gone(now time.Time, u *Unit, why code.Gone) {
	if t := o.told[u.Number]; t != nil {
		t.gone, t.why = 1, why
		if o.pace.Gap > 0 {
			t.gone = 2 // nobody confirms that the first has arrived
		}
		if o.since.IsZero() {
			o.since = now
		}
	}
}

// Forget takes in that the audience lacks these units; all of them where none is named.
func (o *Outlet) Forget(now time.Time, numbers ...uint32) {
	if len(numbers) == 0 {
		numbers = slices.Collect(maps.Keys(o.told))
	}
	for _, n := range numbers {
		if t := o.told[n]; t != nil {
			t.whole = false
			if o.since.IsZero() {
				o.since = now
			}
		}
	}
}

// Deny makes the next batch say that a unit is no more for which the audience has asked.
func (o *Outlet) Deny(now time.Time, number uint32) {
	if o.told[number] == nil {
		o.told[number] = &told{gone: 1}
		if o.since.IsZero() {
			o.since = now
		}
	}
}

// Ended takes in that the batch of this number has arrived, or never will.
func (o *Outlet) Ended(now time.Time, number uint64, arrived bool) {
	i := slices.IndexFunc(o.flights, func(f flight) bool { return f.number == number })
	if i < 0 {
		return
	}
	f := o.flights[i]
	o.flights = slices.Delete(o.flights, i, i+1)
	if arrived {
		return
	}
	for _, number := range f.gone {
		if o.told[number] == nil {
			o.told[number] = &told{gone: 1}
			o.since = now
		}
	}
	if len(f.told) > 0 {
		o.Forget(now, f.told...)
	}
}

// Refused takes in that the batch of this number will never arrive. One of this moment was not even taken: the next waits.
func (o *Outlet) Refused(now time.Time, number uint64) {
	if now.Equal(o.spoke) {
		o.refused = now
	}
	o.Ended(now, number, false)
}

// Batch makes the batch that is due; nil: none is. Where the pace has no gap, the batch is then under way until Ended reports
// its outcome. matters: without it the audience would be wrong about a unit.
func (o *Outlet) Batch(now time.Time, n *Near) (data []byte, number uint64, matters bool) {
	if at := o.Due(); at.IsZero() || now.Before(at) {
		return nil, 0, false
	}
	b := code.Batch{Run: n.Run, At: code.Quarters(now), Start: o.start, Promise: o.pace.Age}
	data = b.Head(nil)
	fl := flight{}
	list := o.candidates(now, n)
	o.since, o.hurry = time.Time{}, false
	most := o.pace.Octets
	if slices.ContainsFunc(list, func(c candidate) bool { return c.matters == newcomer }) && o.calm(now) {
		most = max(most, o.pace.Calm)
	}
	room := func(more int) bool {
		if o.pace.Gap > 0 && len(data)+more <= max(most, headOctets+more) || o.pace.Gap == 0 && len(data) < o.pace.Octets {
			return true
		}
		o.since = now.Add(-o.pace.Gather) // the rest goes next
		return false
	}
	for _, number := range slices.Sorted(maps.Keys(o.told)) {
		t := o.told[number]
		if t.gone == 0 || !room(lostOctets) {
			continue
		}
		if u := n.numbers[number]; u == nil || u.Event == nil || u.Cares[o.slot].Hidden {
			r := code.Record{Unit: number, Form: code.Lost, Gone: t.why}
			data = r.Append(data, b.At)
			fl.gone = append(fl.gone, number)
			t.gone--
			if t.gone > 0 {
				o.since = now
				continue
			}
		}
		delete(o.told, number)
		o.counted++
	}
	said, spelt, crowded := false, false, false
	along, must := o.along(now)
	for _, c := range list {
		if crowded && c.matters < newcomer-1 { // newcomers wait: the air is theirs
			break
		}
		r := o.record(b.At, now, c.u, !o.defined)
		text := r.Append(nil, b.At)
		if c.matters < must && len(data) > along {
			break
		}
		if !room(len(text)) {
			if o.pace.Gap == 0 {
				break
			}
			crowded = c.matters >= newcomer-1
			r = o.record(b.At, now, c.u, false)
			if r.Form == code.Whole { // another may be shorter
				continue
			}
			c.matters = o.due(now, c.u, false)
			if c.matters < alongFrom || c.matters < must && len(data) > along {
				continue
			}
			text = r.Append(nil, b.At)
			if !room(len(text)) {
				break
			}
		}
		if !c.u.Cares[o.slot].Budget.Left(now) { // the units before it have taken the rest
			continue
		}
		data = append(data, text...)
		c.u.Cares[o.slot].Budget.Spend(len(text))
		spelt = spelt || r.Form == code.Whole && o.Knows(c.u.Number)
		o.noteSent(b.At, now, c.u, r, c.matters)
		fl.told = append(fl.told, c.u.Number)
		said = true
	}
	if !said && len(o.told) == 0 && len(data) == headOctets {
		return nil, 0, false
	}
	o.spoke, o.defined = now, spelt
	o.number++
	fl.number = o.number
	if o.pace.Gap == 0 {
		o.flights = append(o.flights, fl)
	}
	return data, o.number, len(list) > 0 && list[0].matters >= tellFrom
}

// candidate is a unit that a batch should report, and how much that matters.
type candidate struct {
	u       *Unit
	matters float64
}

// candidates are the units that matter enough to be reported, the most urgent first.
func (o *Outlet) candidates(now time.Time, n *Near) (list []candidate) {
	for _, u := range n.All() {
		if m := o.due(now, u, !o.defined); m >= alongFrom {
			list = append(list, candidate{u, m})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.matters, a.matters) })
	return list
}

// Octets of the head of a batch, and at most of the record of a unit that is no more.
const headOctets, lostOctets = 6, 6

// record is the news about a unit for a batch made at a time. details: its whole event may be sent again (spells).
func (o *Outlet) record(at, now time.Time, u *Unit, details bool) code.Record {
	r := code.Record{Unit: u.Number, Version: u.Version, Age: max(0, at.Sub(code.Quarters(u.Heard)))}
	t, alone := o.told[u.Number], o.pace.Gap == 0
	known := t != nil && t.whole && t.repeat == 0 && !o.changed(now, t, u) && u.Fix.Sayable(t.fix)
	if known && !(details && o.spells(now, t)) {
		r.Form, r.Fix, r.Mask, r.Version = code.Moved, u.Fix, u.Fix.Changed(t.fix), t.version
		if !alone || o.flies(u.Number) { // earlier reports may be lost, or come later
			r.Mask |= code.NewPlace
			if u.Fix.Moves {
				r.Mask |= code.NewMotion
			}
		}
		return r
	}
	r.Form, r.Event = code.Whole, u.Event
	switch {
	case alone || known:
	case !u.Turned.IsZero(): // the audience shows it with its team
		r.Event = code.Brief(u.Event, "__group")
	default:
		r.Event = code.Brief(u.Event)
	}
	return r
}

// flies says whether a batch with a unit in it is under way.
func (o *Outlet) flies(number uint32) bool {
	return slices.ContainsFunc(o.flights, func(f flight) bool { return slices.Contains(f.told, number) })
}

// wholeEvery is after how many ages of a picture a whole event is sent again, because a site may have lost it.
const wholeEvery = 3

// noteSent notes that a record of a unit is sent.
func (o *Outlet) noteSent(at, now time.Time, u *Unit, r code.Record, matters float64) {
	t := o.told[u.Number]
	if t == nil {
		t = &told{changes: Budget{PerMinute: Changes(o.pace.Age)}}
		o.told[u.Number] = t
	}
	if height := t.fix.HAE; r.Form == code.Moved {
		t.fix = u.Fix
		if r.Mask&code.NewHeight == 0 {
			t.fix.HAE = height
		}
	} else {
		if t.whole && t.marks != u.marks {
			t.changes.Spend(1)
		}
		t.whole, t.version, t.fix, t.first = true, u.Version, u.Fix, o.number+1
		t.looks, t.marks = u.looks, u.marks
		if t.repeat > 0 {
			t.repeat--
		} else if o.pace.Gap > 0 && u.Turned.After(t.turned) {
			t.repeat = turnedAgain
		}
		t.turned = u.Turned
		if t.repeat > 0 {
			o.since = now
			o.hasten(now)
		}
		t.defined, t.brief = now, r.Event != u.Event
	}
	t.at, t.sent, t.gone, t.fresh = at.Add(-r.Age), now, 0, matters > tellFrom
	o.counted++
}

// Records is how many reports all batches had.
func (o *Outlet) Records() int { return o.counted }
