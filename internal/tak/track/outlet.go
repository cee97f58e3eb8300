package track

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"aldis/internal/due"
	"aldis/internal/tak/code"
)

// Pace is how an Outlet speaks.
type Pace struct {
	Gather time.Duration // what is due waits for others so long
	Gap    time.Duration // between two batches, where nobody says that one has arrived; otherwise 0
	Age    time.Duration // a batch goes at least so often
	Octets int           // of a batch, about
}

// Outlet is what one audience was told of a Near, and what it is to be told.
type Outlet struct {
	pace    Pace
	slot    int  // of its Care in a unit's
	late    bool // for units with Care.Late, the others are another's
	start   uint8
	told    map[uint32]*told
	flights []flight  // batches that are under way, the oldest first
	number  uint64    // of the last
	since   time.Time // something is due; zero: nothing is
	spoke   time.Time // the last batch was made
	counted int       // reports in all batches
}

// flight is a batch of which nobody has said yet what became of it.
type flight struct {
	number uint64
	told   []uint32 // units
	gone   []uint32 // units that are no more
}

// While a batch is under way, the next one goes nextAfter it, as long as there are no more than mostFlights: a receipt may
// take longer than a batch, and where the link is down no more than these become old.
const (
	nextAfter   = 2 * time.Second
	mostFlights = 3
)

// told is what the audience knows of a unit, as far as we know.
type told struct {
	whole   bool // it has the whole event of version
	version uint8
	fix     code.Fix // of the last report, at its time
	at      time.Time
	gone    int // so often it is to be told that the unit is no more
	why     code.Gone
	sent    time.Time // when it was told last
	first   uint64    // number of the batch with the whole event
}

// NewOutlet makes one for the audience of this number, which was told nothing in this run. start counts the starts of this site.
func NewOutlet(p Pace, slot int, late bool, start uint8) *Outlet {
	return &Outlet{pace: p, slot: slot, late: late, start: start & 3, told: map[uint32]*told{}}
}

// Shown is where the audience believes a unit is; false: it was not told of it.
func (o *Outlet) Shown(now time.Time, u *Unit) (code.Fix, bool) {
	t := o.told[u.Number]
	if t == nil || !t.whole {
		return code.Fix{}, false
	}
	return t.fix.After(now.Sub(t.at)), true
}

// wrong is by how many metres the audience is wrong about a unit when it was last heard.
func (t *told) wrong(u *Unit) float64 { return t.fix.After(u.Heard.Sub(t.at)).Metres(u.Fix) }

// due says whether a unit has to be told now, and how much that matters.
func (o *Outlet) due(now time.Time, u *Unit) (matters float64) {
	care := u.Cares[o.slot]
	if care.Hidden || care.Late != o.late {
		return 0
	}
	t := o.told[u.Number]
	switch {
	case t == nil || !t.whole:
		return 4
	case care.Every > 0 && now.Sub(t.sent) < care.Every:
		return 0
	case t.version != u.Version && now.Sub(t.sent) >= o.pace.Age/4:
		return 3
	case !u.Heard.After(t.at):
		return 0
	}
	return t.wrong(u) / max(1, care.Bound)
}

// The share of its bound from which a unit is told, and from which it goes along with others.
const (
	tellFrom  = 0.3
	alongFrom = 0.1
)

// Knows says whether the audience has the whole event of a unit for sure: where receipts come, no batch with it is under way.
func (o *Outlet) Knows(number uint32) bool {
	t := o.told[number]
	return t != nil && t.whole && !slices.ContainsFunc(o.flights, func(f flight) bool { return slices.Contains(f.told, number) && t.first == f.number })
}

// Reported takes in that a unit was reported.
func (o *Outlet) Reported(now time.Time, u *Unit) {
	if o.since.IsZero() && o.due(now, u) >= tellFrom {
		o.since = now
	}
}

// Gone takes in that a unit is no more.
func (o *Outlet) Gone(now time.Time, u *Unit, why code.Gone) {
	if t := o.told[u.Number]; t != nil {
		if t.gone, t.why = 1, why; o.pace.Gap > 0 {
			t.gone = 2 // nobody says whether the first has arrived
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

// Ended takes in that the batch of this number has arrived, or never will.
func (o *Outlet) Ended(now time.Time, number uint64, arrived bool) {
	i := slices.IndexFunc(o.flights, func(f flight) bool { return f.number == number })
	if i < 0 {
		return
	}
	f := o.flights[i]
	if o.flights = slices.Delete(o.flights, i, i+1); arrived {
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

// Due is when Batch has something; zero: nobody can say.
func (o *Outlet) Due() (at time.Time) {
	if len(o.flights) >= mostFlights {
		return at
	}
	if !o.since.IsZero() {
		at = o.since.Add(o.pace.Gather)
	}
	if len(o.told) > 0 {
		at = due.Earliest(at, o.spoke.Add(o.pace.Age))
	}
	gap := o.pace.Gap
	if len(o.flights) > 0 {
		gap = nextAfter
	}
	if next := o.spoke.Add(gap); !at.IsZero() && at.Before(next) {
		at = next
	}
	return at
}

// Batch makes the batch that is due; nil: none is. Where the pace has no gap it is under way then, until Ended says what
// became of its number.
func (o *Outlet) Batch(now time.Time, n *Near) (data []byte, number uint64) {
	if at := o.Due(); at.IsZero() || now.Before(at) {
		return nil, 0
	}
	b := code.Batch{Run: n.Run, At: code.Quarters(now), Start: o.start, Promise: o.pace.Age}
	data = b.Head(nil)
	fl := flight{}
	type candidate struct {
		u       *Unit
		matters float64
	}
	var list []candidate
	for _, u := range n.All() {
		if m := o.due(now, u); m >= alongFrom {
			list = append(list, candidate{u, m})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.matters, a.matters) })
	o.since = time.Time{}
	room := func() bool {
		if len(data) < o.pace.Octets {
			return true
		}
		o.since = now.Add(-o.pace.Gather) // the rest goes next
		return false
	}
	for _, number := range slices.Sorted(maps.Keys(o.told)) {
		t := o.told[number]
		if t.gone == 0 || !room() {
			continue
		}
		if u := n.numbers[number]; u == nil || u.Event == nil {
			r := code.Record{Unit: number, Form: code.Lost, Gone: t.why}
			data = r.Append(data, b.At)
			fl.gone = append(fl.gone, number)
			if t.gone--; t.gone > 0 {
				o.since = now
				continue
			}
		}
		delete(o.told, number)
		o.counted++
	}
	said := false
	for _, c := range list {
		if c.matters < tellFrom && len(data) > o.pace.Octets*3/4 || !room() {
			break
		}
		data = o.tell(data, b.At, now, c.u)
		fl.told = append(fl.told, c.u.Number)
		said = true
	}
	if !said && len(o.told) == 0 && len(data) == headOctets {
		return nil, 0
	}
	o.spoke = now
	o.number++
	if fl.number = o.number; o.pace.Gap == 0 {
		o.flights = append(o.flights, fl)
	}
	return data, o.number
}

const headOctets = 6

// tell appends what is new of a unit.
func (o *Outlet) tell(data []byte, at, now time.Time, u *Unit) []byte {
	t := o.told[u.Number]
	if t == nil {
		t = &told{}
		o.told[u.Number] = t
	}
	r := code.Record{Unit: u.Number, Version: u.Version, Age: max(0, at.Sub(code.Quarters(u.Heard)))}
	if t.whole && t.version == u.Version && u.Fix.Sayable(t.fix) {
		r.Form, r.Fix, r.Mask = code.Moved, u.Fix, u.Fix.Changed(t.fix)
		height := t.fix.HAE
		if t.fix = u.Fix; r.Mask&code.NewHeight == 0 {
			t.fix.HAE = height
		}
	} else {
		r.Form, r.Event = code.Whole, u.Event
		t.whole, t.version, t.fix, t.first = true, u.Version, u.Fix, o.number+1
	}
	t.at, t.sent, t.gone = at.Add(-r.Age), now, 0
	o.counted++
	return r.Append(data, at)
}

// Records is how many reports went in all batches.
func (o *Outlet) Records() int { return o.counted }
