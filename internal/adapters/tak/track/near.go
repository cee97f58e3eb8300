package track

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
)

// Care is how precisely, and how urgently, a unit is reported to an audience.
type Care struct {
	Bound  float64       // metres that the far picture may be wrong by
	Every  time.Duration // least time between two reports; 0: no bound
	Late   bool          // it is reported after the units that are not Late
	Hidden bool          // it is not reported at all
	Budget *Budget       // octets that its reports may take; nil: any
}

// Unit is one unit of this site.
type Unit struct {
	Number  uint32
	UID     string
	Event   *cot.Event // the last report, rounded (code.Round), its times by this gateway's clock
	Fix     code.Fix
	Heard   time.Time // the last report
	Stale   time.Time
	Version uint8
	Cares   []Care    // for each audience
	Turned  time.Time // when its marks changed last
	looks   string
	marks   string // code.Marks
}

// Near are the units of this site.
type Near struct {
	Run     uint16
	most    int
	next    uint32
	units   map[string]*Unit // by uid
	numbers map[uint32]*Unit
	forgot  []string // uids of units whose numbers were forgotten
}

// NewNear makes an empty table of at most so many units.
func NewNear(run uint16, most int) *Near {
	return &Near{Run: run, most: most, next: 1, units: map[string]*Unit{}, numbers: map[uint32]*Unit{}}
}

// Known brings back a unit that an earlier run has numbered: it keeps its number, and its next Whole has another version.
func (n *Near) Known(uid, callsign string, number uint32, version uint8) {
	u := &Unit{Number: number, UID: uid, Version: version}
	u.looks = callsign // never equal to a unit's looks, so the next report is a new version
	n.units[uid], n.numbers[number] = u, u
	n.next = max(n.next, number+1)
	if len(n.units) > n.most {
		n.makeRoom()
	}
}

// Renew forgets all units if their numbers might not last until the next start; the caller then gives the table another Run.
func (n *Near) Renew() bool {
	if n.next <= code.MostUnits/2 {
		return false
	}
	for uid := range n.units {
		n.forgot = append(n.forgot, uid)
	}
	clear(n.units)
	clear(n.numbers)
	n.next = 1
	return true
}

// Forgotten returns the units whose numbers were forgotten since the last call, by uid.
func (n *Near) Forgotten() (uids []string) {
	uids, n.forgot = n.forgot, nil
	slices.Sort(uids)
	return uids
}

// Get is a unit that is here now; nil: it is not.
func (n *Near) Get(uid string) *Unit {
	if u := n.units[uid]; u != nil && u.Event != nil {
		return u
	}
	return nil
}

// Empty says whether no unit is here now.
func (n *Near) Empty() bool {
	for _, u := range n.units {
		if u.Event != nil {
			return false
		}
	}
	return true
}

// All are the units that are here now, by number.
func (n *Near) All() (list []*Unit) {
	for _, u := range n.units {
		if u.Event != nil {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b *Unit) int { return int(a.Number) - int(b.Number) })
	return list
}

// Report takes in a report of a unit, its times by this gateway's clock, with the care of each audience (Outlet.slot). fresh:
// the unit is new or looks otherwise than before. nil: there is no room for another unit.
func (n *Near) Report(now time.Time, e *cot.Event, cares []Care) (u *Unit, fresh bool) {
	u = n.units[e.UID]
	if u == nil {
		if n.next >= code.MostUnits || len(n.units) >= n.most && !n.makeRoom() {
			return nil, false
		}
		u = &Unit{Number: n.next, UID: e.UID}
		n.next++
		n.units[e.UID], n.numbers[u.Number] = u, u
		fresh = true
	}
	u.Event, u.Heard, u.Stale, u.Cares = code.Round(e), now, e.Stale, cares
	u.Fix = code.FixOf(u.Event)
	if looks := code.Looks(u.Event); looks != u.looks {
		u.Version, u.looks, fresh = u.Version^1, looks, true
	}
	if marks := code.Marks(u.Event); marks != u.marks {
		if u.marks != "" {
			u.Turned = now
		}
		u.marks = marks
	}
	return u, fresh
}

// makeRoom forgets a unit that is not here any more.
func (n *Near) makeRoom() bool {
	var oldest *Unit
	for _, u := range n.units {
		if u.Event == nil && (oldest == nil || u.Number < oldest.Number) {
			oldest = u
		}
	}
	if oldest == nil {
		return false
	}
	delete(n.units, oldest.UID)
	delete(n.numbers, oldest.Number)
	n.forgot = append(n.forgot, oldest.UID)
	return true
}

// Gone takes a unit out; no other unit gets its number.
func (n *Near) Gone(uid string) *Unit {
	u := n.Get(uid)
	if u != nil {
		u.Event = nil
	}
	return u
}

// Left says whether no unit of this number is here, nor may be back soon after a restart.
func (n *Near) Left(number uint32) bool {
	u := n.numbers[number]
	return u == nil || u.Event == nil && !u.Heard.IsZero()
}

// Stale returns the units whose stale time has passed.
func (n *Near) Stale(now time.Time) (list []*Unit) {
	for _, u := range n.All() {
		if now.After(u.Stale) {
			list = append(list, u)
		}
	}
	return list
}

// Number and Text make a Near the names of its units (code.Names).
func (n *Near) Number(text string, callsign bool) (uint32, bool) {
	if !callsign {
		if u := n.Get(text); u != nil {
			return u.Number, true
		}
	}
	return 0, false
}

// Text is a unit's uid or callsign.
func (n *Near) Text(number uint32, callsign bool) (string, bool) {
	u := n.numbers[number]
	switch {
	case u == nil || callsign && u.Event == nil:
		return "", false
	case callsign:
		return u.Event.Callsign(), true
	}
	return u.UID, true
}
