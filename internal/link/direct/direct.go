// Package direct decides with which peers a gateway keeps direct sessions, where messages otherwise take two hops over a relay:
// docs/decisions/direct.md. It has the ageing priority, the limit, the penalty and the greylist of Schulz, Blochinger and Poths, "Orbweb",
// 2010, section 6.1, with octets in the place of stanzas.
//
// The caller says what went between this node and a peer (Carried), and what became of a session. Step says once a round with whom to
// open or end one. The package is pure: the time is an argument and never goes back. Sizes are octets.
package direct

import (
	"cmp"
	"math"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

const (
	// Round is how often priorities are reckoned anew, and the least between two decisions.
	Round = 60 * time.Second
	// age is what each round leaves of a priority, and penalty what the end of a session leaves of it.
	age, penalty = 0.7, 0.1
	// greyMost is the longest that a peer is left alone after openings that failed, and greyHalf how many of these it takes to be left
	// alone for half of that.
	greyMost, greyHalf = time.Hour, 4
	// settled is how long a session has to last until failures before it are forgotten.
	settled = 10 * time.Minute
	// mostRows bounds the peers that are known at a time.
	mostRows = 1024
)

// Config says what sessions are worth.
type Config struct {
	Limit int // sessions at most, those that are being opened included
	// Keep is what a session costs in a round while nothing is said, and Open what it takes to open one.
	Keep, Open int
}

// State is what there is with a peer.
type State uint8

// The states.
const (
	None State = iota
	Opening
	Kept
)

// Row is what is known of a peer.
type Row struct {
	ID       uint16
	State    State
	Since    time.Time // when the session was opened
	Priority float64   // octets that would have been spared, or were: those of each round before count age times as much
	Spared   int64     // octets that the session has carried, each of which a relay would have carried once more
	Fails    int       // openings and sessions that failed in a row
	Grey     time.Time // no session is opened by this node before; zero: one may be
	carried  int       // in this round
}

// Table is the peers of a bearer.
type Table struct {
	Config
	rows    map[uint16]*Row
	next    time.Time // of the next round; zero: nothing is known
	flipped bool      // in this round a session has given way to another
}

// New is a table that knows no peer.
func New(cfg Config) *Table { return &Table{Config: cfg, rows: map[uint16]*Row{}} }

// Carried notes octets of messages between this node and a peer, either way, over a relay or in a session.
func (t *Table) Carried(now time.Time, id uint16, octets int) {
	if r := t.row(now, id); r != nil {
		r.carried += octets
		if r.State == Kept {
			r.Spared += int64(octets)
		}
	}
}

// row is the row of a peer; nil: all rows are those of sessions and greylisted peers.
func (t *Table) row(now time.Time, id uint16) *Row {
	if r := t.rows[id]; r != nil {
		return r
	}
	if len(t.rows) >= mostRows {
		least := t.least(func(r *Row) bool { return r.State == None && r.Grey.IsZero() })
		if least == nil {
			return nil
		}
		delete(t.rows, least.ID)
	}
	if t.next.IsZero() {
		t.next = now.Add(Round)
	}
	t.rows[id] = &Row{ID: id}
	return t.rows[id]
}

// least is the row of the lowest priority among some; of equal ones that of the highest id. nil: there is none.
func (t *Table) least(of func(*Row) bool) (least *Row) {
	for _, r := range t.rows {
		if of(r) && (least == nil || cmp.Or(cmp.Compare(r.weight(), least.weight()), cmp.Compare(least.ID, r.ID)) < 0) {
			least = r
		}
	}
	return least
}

// weight is the priority with what this round has brought so far.
func (r *Row) weight() float64 { return r.Priority + float64(r.carried) }

// used is how many sessions there are, with those that are being opened.
func (t *Table) used() (n int) {
	for _, r := range t.rows {
		if r.State != None {
			n++
		}
	}
	return n
}

// Due is when Step has something to decide; zero: never.
func (t *Table) Due() time.Time { return t.next }

// Step ends a round that is over. It returns a peer with which a session is to be opened, and one whose session is to end; 0: none.
func (t *Table) Step(now time.Time) (open, end uint16) {
	if !due.Reached(now, t.next) {
		return 0, 0
	}
	t.next, t.flipped = now.Add(Round), false
	for id, r := range t.rows {
		r.Priority, r.carried = r.Priority*age+float64(r.carried), 0
		if !r.Grey.IsZero() && !now.Before(r.Grey.Add(greyMost)) {
			r.Grey, r.Fails = time.Time{}, 0
		}
		if r.State == None && r.Grey.IsZero() && r.Priority < 1 {
			delete(t.rows, id)
		}
	}
	if len(t.rows) == 0 {
		t.next = time.Time{}
	}
	return t.decide(now)
}

// decide is one change at the most: a session that is not worth its keep ends, the best candidate gets a free place, or that of the
// weakest session, if the candidate's priority is higher.
func (t *Table) decide(now time.Time) (open, end uint16) {
	weakest := t.least(func(r *Row) bool { return r.State == Kept })
	var best *Row
	for _, r := range t.rows {
		if r.State == None && !now.Before(r.Grey) && r.Priority >= t.floor() && (best == nil || cmp.Or(cmp.Compare(r.Priority, best.Priority), cmp.Compare(best.ID, r.ID)) > 0) {
			best = r
		}
	}
	switch {
	case best != nil && t.used() < t.Limit:
		best.State = Opening
		return best.ID, 0
	case best != nil && weakest != nil && best.Priority > weakest.Priority:
		t.flipped, best.State = true, Opening
		weakest.end()
		return best.ID, weakest.ID
	case weakest != nil && (weakest.Priority < float64(t.Keep) || t.used() > t.Limit):
		weakest.end()
		return 0, weakest.ID
	}
	return 0, 0
}

// floor is the priority from which on a session is worth its opening and its keep.
func (t *Table) floor() float64 { return float64(t.Open) + float64(t.Keep)/(1-age) }

func (r *Row) end() {
	if r.State == Kept {
		r.Priority *= penalty
	}
	r.State, r.Since = None, time.Time{}
}

// Asked says whether this node takes part in a session that a peer wants, and whose session ends for it; 0: none does.
func (t *Table) Asked(now time.Time, id uint16) (take bool, end uint16) {
	r := t.row(now, id)
	switch {
	case r == nil || t.Limit == 0:
		return false, 0
	case r.State != None || t.used() < t.Limit:
		r.State = Opening
		return true, 0
	}
	weakest := t.least(func(r *Row) bool { return r.State == Kept })
	if weakest == nil || t.flipped || r.weight() <= weakest.weight() {
		return false, 0
	}
	t.flipped, r.State = true, Opening
	weakest.end()
	return true, weakest.ID
}

// Opened says that a session is there, since when. It counts as worth its opening, whichever end wanted it.
func (t *Table) Opened(since time.Time, id uint16) {
	if r := t.row(since, id); r != nil {
		r.State, r.Since, r.Spared, r.Grey, r.Priority = Kept, since, 0, time.Time{}, max(r.Priority, t.floor())
	}
}

// Failed says that a session could not be opened, or that its peer has fallen silent: the peer is left alone until then, ever longer.
func (t *Table) Failed(now time.Time, id uint16) (until time.Time) {
	r := t.row(now, id)
	if r == nil {
		return now
	}
	if r.State == Kept && now.Sub(r.Since) >= settled {
		r.Fails = 0
	}
	r.end()
	r.Fails++
	r.Grey = now.Add(greyFor(r.Fails))
	return r.Grey
}

// greyFor grows with the failures as a sigmoid.
func greyFor(fails int) time.Duration {
	return time.Duration(float64(greyMost) / (1 + math.Exp(float64(greyHalf-fails)))).Round(time.Second)
}

// Ended says that a session, or the opening of one, has ended otherwise.
func (t *Table) Ended(id uint16) {
	if r := t.rows[id]; r != nil {
		r.end()
	}
}

// Leave forgets a peer.
func (t *Table) Leave(id uint16) { delete(t.rows, id) }

// State is what there is with a peer.
func (t *Table) State(id uint16) State {
	if r := t.rows[id]; r != nil {
		return r.State
	}
	return None
}

// Rows are copies of the rows of sessions and greylisted peers, by id.
func (t *Table) Rows() (list []Row) {
	for _, r := range t.rows {
		if r.State != None || !r.Grey.IsZero() {
			list = append(list, *r)
		}
	}
	slices.SortFunc(list, func(a, b Row) int { return int(a.ID) - int(b.ID) })
	return list
}
