package rollup

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"
)

// Bounds.
const (
	// MostRecords is the most gateways that a Table knows from one neighbour: a roster has no more.
	MostRecords = 256
	// lateAfter and goneAfter are the periods without renewal after which a record is Late, and then Gone.
	lateAfter, goneAfter = 2, 4
	// silentFlag is a flag of the octet before a record: its origin has told its parent that it will be silent, and the time follows.
	silentFlag = 1 << 7
)

// Proof is the result of Config.Proves.
type Proof uint8

// Proofs of a record.
const (
	Unknown Proof = iota // only the headquarters can tell
	Proven
	Forged
	Stranger // its origin is no member
)

// Config of a Table.
type Config struct {
	Self   uint16
	Period time.Duration
	// Proves says whether a record that a neighbour passes on is of its origin. proof are the record's last ProofOctets,
	// text the octets before them.
	Proves func(origin uint16, text, proof []byte) Proof
}

// Held is a record that a Table holds.
type Held struct {
	Record
	From   uint16    // neighbour that gave it; 0: it is this node's own
	Read   time.Time // when its origin made it, as reported by the gateways on the way
	Proven bool      // it is certain that its origin made it
	// SilentUntil is the end of the silence that its origin announced to From, or in the record; zero: it is not silent;
	// forever: no end is known.
	SilentUntil time.Time

	octets []byte    // text and proof
	told   bool      // the parent has it
	at     time.Time // when it last went to the parent
	sent   uint8     // number of the batch in which it went
}

// forever is a time that does not come.
var forever = time.Unix(1<<40, 0).UTC()

// Forever says that a time has no end.
func Forever(t time.Time) bool { return t.Equal(forever) }

type key struct{ origin, from uint16 }

// Table is the records of a subtree. The zero value holds nothing.
type Table struct {
	cfg  Config
	held map[key]*Held
}

// New is an empty Table.
func New(cfg Config) *Table { return &Table{cfg: cfg, held: map[key]*Held{}} }

// Own takes this node's own record, and its proof.
func (t *Table) Own(now time.Time, r Record, proof []byte) {
	t.held[key{r.Origin, 0}] = &Held{Record: r, Read: now, Proven: true, octets: append(Append(nil, &r), proof...), SilentUntil: until(now, r.Silent)}
}

func until(now time.Time, silent time.Duration) time.Time {
	switch silent {
	case 0:
		return time.Time{}
	case Endless:
		return forever
	}
	return now.Add(silent)
}

// Restore takes a record of an earlier run, as Keep wrote it. It is not passed on.
func (t *Table) Restore(value []byte) error {
	p := parser{b: value}
	read, from, flags := int64(binary.BigEndian.Uint64(p.take(8))), p.uint16(), p.octet()
	r, rest, err := Parse(p.b)
	if p.bad || err != nil || len(rest) != ProofOctets {
		return errRecord
	}
	at := time.Unix(read, 0)
	t.held[key{r.Origin, from}] = &Held{Record: r, From: from, Read: at, Proven: flags&1 != 0, octets: p.b, told: true, SilentUntil: until(at, r.Silent)}
	return nil
}

// Keep is the form of a record that Restore reads; wall is by how much the wall clock is ahead of the time of Held.Read.
func (h *Held) Keep(wall time.Duration) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(h.Read.Add(wall).Unix()))
	b = binary.BigEndian.AppendUint16(b, h.From)
	flags := byte(0)
	if h.Proven {
		flags = 1
	}
	return append(append(b, flags), h.octets...)
}

// Taken is the result of a batch.
type Taken struct {
	New     []*Held
	Dropped []string // reasons
}

// Old is why a record is dropped when this node has the same or a later one: this is no fault.
const Old = "fleet_old"

// Other reasons why a record is dropped.
const (
	malformed = "fleet_malformed"
	forged    = "fleet_forged"
	stranger  = "fleet_stranger"
	full      = "fleet_full"
)

// Take takes a batch of a neighbour.
func (t *Table) Take(now time.Time, from uint16, batch []byte) (got Taken) {
	for len(batch) > 0 {
		p := parser{b: batch}
		head := p.octet()
		silent := time.Duration(0)
		if head&silentFlag != 0 {
			silent = silence(p.uint16())
		}
		text := p.b
		r, rest, err := Parse(text)
		if p.bad || err != nil || len(rest) < ProofOctets {
			got.Dropped = append(got.Dropped, malformed)
			return got
		}
		text, batch = text[:len(text)-len(rest)+ProofOctets], rest[ProofOctets:]
		read := now.Add(-long(head&^silentFlag, 3))
		h := &Held{Record: r, From: from, Read: read, Proven: from == r.Origin, octets: slices.Clone(text)}
		if h.SilentUntil = until(read, r.Silent); silent > 0 {
			h.SilentUntil = until(now, silent)
		}
		if why := t.take(now, h); why != "" {
			got.Dropped = append(got.Dropped, why)
		} else {
			got.New = append(got.New, h)
		}
	}
	return got
}

// take holds a record, or says why not. A known record gives Old, without any other note.
func (t *Table) take(now time.Time, h *Held) string {
	if h.Origin == t.cfg.Self {
		return Old
	}
	split := len(h.octets) - ProofOctets
	switch proof := t.cfg.Proves(h.Origin, h.octets[:split], h.octets[split:]); {
	case proof == Stranger:
		return stranger
	case h.Proven: // the datagram proves it
	case proof == Forged:
		return forged
	default:
		h.Proven = proof == Proven
	}
	was := t.held[key{h.Origin, h.From}]
	if was != nil && !Newer(h.Serial, was.Serial) {
		if h.Serial == was.Serial && !h.SilentUntil.Equal(was.SilentUntil) && !h.SilentUntil.IsZero() && (was.SilentUntil.IsZero() || h.SilentUntil.Sub(was.SilentUntil).Abs() > 2*minuteSteps) {
			was.SilentUntil, was.told = h.SilentUntil, false
		}
		return Old
	}
	if h.Proven { // only one proven record of a gateway is held, whichever neighbour brings it
		for k, other := range t.held {
			if k.origin != h.Origin {
				continue
			}
			if other.Proven && !Newer(h.Serial, other.Serial) {
				return Old
			}
			delete(t.held, k)
		}
	} else {
		n := 0
		for k, other := range t.held {
			if k.from == h.From && !other.Proven {
				n++
			}
		}
		if was == nil && n >= MostRecords {
			return full
		}
	}
	if was != nil {
		h.at = was.at
	}
	t.held[key{h.Origin, h.From}] = h
	return ""
}

// Silent notes that a gateway told this node itself that it will be silent until end; zero: it did not say until when.
// false: this was known.
func (t *Table) Silent(origin uint16, end time.Time) bool {
	h := t.held[key{origin, origin}]
	if end.IsZero() {
		end = forever
	}
	if h == nil || h.SilentUntil.Equal(end) {
		return false
	}
	h.SilentUntil, h.told, h.at = end, false, time.Time{}
	return true
}

// Passes says that other gateways give this node their records.
func (t *Table) Passes() bool {
	for k := range t.held {
		if k.from != 0 {
			return true
		}
	}
	return false
}

// Forget drops the records of gateways that are not members.
func (t *Table) Forget(member func(id uint16) bool) (gone []uint16) {
	for k := range t.held {
		if k.origin != t.cfg.Self && !member(k.origin) {
			delete(t.held, k)
			gone = append(gone, k.origin)
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}

// Next is when the next record may go to a parent, apart from those under way; zero: none will.
func (t *Table) Next(now time.Time, parent uint16) (at time.Time) {
	for _, h := range t.held {
		if h.sent == 0 && t.goes(now, h, parent) && (at.IsZero() || t.from(h).Before(at)) {
			at = t.from(h)
		}
	}
	return at
}

// goes says whether a record should go to a parent: it is not too old, and the parent is neither its origin nor the
// neighbour that gave it.
func (t *Table) goes(now time.Time, h *Held, parent uint16) bool {
	return !h.told && h.From != parent && h.Origin != parent && now.Sub(h.Read) < goneAfter*t.cfg.Period
}

// from is when a record may go: one per gateway and way in a quarter of a period, so that no gateway makes others talk.
func (t *Table) from(h *Held) time.Time {
	if h.at.IsZero() || h.sent != 0 {
		return h.Read
	}
	return h.at.Add(t.cfg.Period / 4)
}

// Batch is the records that go to the parent now, in so many octets; nil: none. number is not 0, and Acked refers to it.
func (t *Table) Batch(now time.Time, parent uint16, number uint8, room int) (batch []byte) {
	var list []*Held
	for _, h := range t.held {
		if t.goes(now, h, parent) && !t.from(h).After(now) {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b *Held) int { // proven records first, the oldest of them first
		return cmp.Or(compareBool(b.Proven, a.Proven), a.Read.Compare(b.Read), cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.From, b.From))
	})
	for _, h := range list {
		b := []byte{short(now.Sub(h.Read), 3)}
		if h.Silent == 0 && h.SilentUntil.After(now) {
			b[0] |= silentFlag
			left := Endless
			if !Forever(h.SilentUntil) {
				left = h.SilentUntil.Sub(now)
			}
			b = binary.BigEndian.AppendUint16(b, minutes(left))
		}
		if b = append(b, h.octets...); len(batch)+len(b) > room {
			continue
		}
		batch = append(batch, b...)
		h.at, h.sent = now, number
	}
	return batch
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Acked notes that the parent has the batch of this number.
func (t *Table) Acked(number uint8) {
	for _, h := range t.held {
		if h.sent == number {
			h.told, h.sent = true, 0
		}
	}
}

// Anew notes that the parent is another one. Records that are under way, or may have been lost with the last parent, go again.
func (t *Table) Anew(now time.Time) {
	for _, h := range t.held {
		if recent := now.Sub(h.at) < t.cfg.Period/4; !h.told || recent {
			h.told, h.sent, h.at = false, 0, time.Time{}
		}
	}
}

// Rows are the records by id, one of each gateway: its own unless that is late, else the newest.
func (t *Table) Rows(now time.Time) (rows []Held) {
	for _, h := range t.held {
		rows = append(rows, *h)
	}
	sure := func(h *Held) bool { return h.Proven && now.Sub(h.Read) <= lateAfter*t.cfg.Period }
	slices.SortFunc(rows, func(a, b Held) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), compareBool(sure(&b), sure(&a)), b.Read.Compare(a.Read), cmp.Compare(a.From, b.From))
	})
	return slices.CompactFunc(rows, func(a, b Held) bool { return a.Origin == b.Origin })
}

// Sum is the sum of several records.
type Sum struct {
	Gateways int
	Waiting  [Ranks]int
	Oldest   time.Duration // how long the oldest message has waited now
	Bearers  int
	Up       int
	Silent   int // gateways that are silent
}

// Total adds up records.
func Total(now time.Time, rows []Held) (s Sum) {
	for _, h := range rows {
		s.Gateways++
		for i, n := range h.Waiting {
			s.Waiting[i] += n
		}
		s.Bearers, s.Up = s.Bearers+h.Bearers, s.Up+h.Up
		if h.Waiting != [Ranks]int{} {
			s.Oldest = max(s.Oldest, h.Oldest+now.Sub(h.Read))
		}
		if h.SilentUntil.After(now) {
			s.Silent++
		}
	}
	return s
}

// State is how current a record is.
type State string

// States of a record.
const (
	Current State = "current"
	Silence State = "silent" // its origin announced a silence
	Late    State = "late"   // it was not renewed
	Gone    State = "gone"   // not renewed for long
)

// State is the state of a record.
func (h *Held) State(now time.Time, period time.Duration) State {
	switch age := now.Sub(h.Read); {
	case h.SilentUntil.After(now):
		return Silence
	case age <= lateAfter*period:
		return Current
	case age <= goneAfter*period:
		return Late
	}
	return Gone
}
