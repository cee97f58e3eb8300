package rollup_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"aldis/internal/link/rollup"
)

var start = time.Unix(1_800_000_000, 0)

const period = 5 * time.Minute

// proof is the proof of an origin that a headquarters accepts.
func proof(origin uint16) []byte { return []byte{7, 7, byte(origin >> 8), byte(origin)} }

// table is the Table of a node. root: it can check the origin of each record.
func table(self uint16, root bool) *rollup.Table {
	return rollup.New(rollup.Config{Self: self, Period: period, Proves: func(origin uint16, _, p []byte) rollup.Proof {
		switch {
		case origin > 300:
			return rollup.Stranger
		case !root:
			return rollup.Unknown
		case bytes.Equal(p, proof(origin)):
			return rollup.Proven
		}
		return rollup.Forged
	}})
}

func record(origin uint16, serial uint32, waiting int) rollup.Record {
	return rollup.Record{Origin: origin, Serial: serial, Parent: 1, Waiting: [rollup.Ranks]int{1: waiting}, Bearers: 2, Up: 1, Version: 0x0002}
}

// batch is records as a neighbour passes them on, all of this age.
func batch(age byte, list ...rollup.Record) (b []byte) {
	for _, r := range list {
		b = append(rollup.Append(append(b, age), &r), proof(r.Origin)...)
	}
	return b
}

func TestRecords(t *testing.T) {
	for _, tt := range []struct {
		name   string
		r      rollup.Record
		octets int
	}{
		{"nothing waits", rollup.Record{Origin: 7, Serial: 1 << 31, Parent: 1, Bearers: 1, Up: 1, Version: 2}, 10},
		{"two precedences", rollup.Record{Origin: 7, Serial: 5, Parent: 1, Waiting: [6]int{1: 90, 4: 3}, Oldest: 15 * time.Second, Bearers: 3, Version: 0x0102}, 13},
		{"a large fleet, and silence", rollup.Record{Origin: 255, Serial: 5, Parent: 200, Waiting: [6]int{1: 900, 2: 8, 4: 3}, Oldest: 992 * time.Second, Bearers: 3, Up: 3, Silent: time.Hour, Version: 2}, 19},
		{"all that can be", rollup.Record{Origin: 65535, Serial: 5, Parent: 65534, Waiting: [6]int{1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, rollup.MostWaiting}, Oldest: 31 << 14 * time.Second, Bearers: 15, Up: 15, Silent: rollup.Endless, Version: 65535}, 35},
	} {
		b := rollup.Append(nil, &tt.r)
		got, rest, err := rollup.Parse(append(b, 9))
		if err != nil || len(rest) != 1 || got != tt.r || len(b) != tt.octets {
			t.Errorf("%s: %d octets, %+v, %x, %v", tt.name, len(b), got, rest, err)
		}
		for i := range b {
			if _, _, err := rollup.Parse(b[:i]); err == nil {
				t.Errorf("%s: read from %d octets", tt.name, i)
			}
		}
	}
}

// Every record that parses is written back unchanged: a record has one form, so that its proof has one text.
func FuzzParse(f *testing.F) {
	r := record(300, 9, 200)
	f.Add(rollup.Append(nil, &r))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := rollup.Parse(b)
		if err != nil {
			return
		}
		if again := rollup.Append(nil, &r); !bytes.Equal(again, b[:len(b)-len(rest)]) {
			t.Errorf("%x was read as %+v, which is %x", b, r, again)
		}
	})
}

// A gateway whose record comes by two ways counts once, and the newest counts.
func TestCountedOnce(t *testing.T) {
	hq := table(1, true)
	hq.Own(start, record(1, 1, 0), proof(1))
	hq.Take(start, 2, batch(0, record(2, 10, 1), record(9, 5, 3)))
	hq.Take(start, 3, batch(0, record(3, 10, 1), record(9, 5, 3)))
	hq.Take(start, 3, batch(0, record(9, 6, 4)))
	got := hq.Take(start, 2, batch(0, record(9, 5, 3)))
	if want := []string{rollup.Old}; !slices.Equal(got.Dropped, want) {
		t.Errorf("dropped %v, want %v", got.Dropped, want)
	}
	sum := rollup.Total(start, hq.Rows(start))
	if sum.Gateways != 4 || sum.Waiting[1] != 6 || sum.Bearers != 8 {
		t.Errorf("the sum is %+v", sum)
	}
}

// All records that a table gives to its parent arrive, however small the datagrams are, and no record goes back to the
// neighbour that gave it.
func TestBatches(t *testing.T) {
	relay, hq := table(2, false), table(1, true)
	relay.Own(start, record(2, 1, 0), proof(2))
	for i := range uint16(100) {
		relay.Take(start, 20+i, batch(0, record(20+i, 4, 1)))
	}
	if relay.Next(start, 20).IsZero() || relay.Batch(start, 1, 1, 5) != nil {
		t.Error("a record fits five octets")
	}
	datagrams := 0
	for number := uint8(1); !relay.Next(start, 1).IsZero(); number++ {
		b := relay.Batch(start, 1, number, 200)
		if b == nil || len(b) > 200 {
			t.Fatalf("batch %d has %d octets", number, len(b))
		}
		if got := hq.Take(start, 2, b); len(got.Dropped) > 0 {
			t.Fatal(got.Dropped)
		}
		relay.Acked(number)
		datagrams++
	}
	if n := len(hq.Rows(start)); n != 101 || datagrams != 10 {
		t.Errorf("%d records in %d batches", n, datagrams)
	}
	if got := hq.Take(start, 2, batch(0, record(1, 9, 9))); len(got.New) > 0 {
		t.Error("the headquarters took its own record from another")
	}
}

// A member with a valid key changes the records of others, invents some, and announces serials that no gateway reaches: the
// headquarters accepts none of these, and true records still come through on the same way.
func TestLiar(t *testing.T) {
	relay, hq := table(2, false), table(1, true)
	true1 := record(9, 5, 3)
	lie := rollup.Append([]byte{0}, &rollup.Record{Origin: 9, Serial: 5 + 1<<30, Parent: 1, Waiting: [6]int{1: 900}, Bearers: 1, Version: 2})
	lie = append(lie, 1, 2, 3, 4)
	relay.Take(start, 66, lie)
	relay.Take(start, 4, batch(0, true1))
	relay.Take(start, 66, batch(0, record(301, 5, 5)))
	b := relay.Batch(start, 1, 1, 1000)
	got := hq.Take(start, 2, b)
	if !slices.Equal(got.Dropped, []string{"fleet_forged"}) || len(got.New) != 1 || got.New[0].Record != true1 {
		t.Errorf("taken %v, dropped %v", got.New, got.Dropped)
	}
}

// A liar that sends without end makes its neighbour pass on at most four records of each gateway in a period. The neighbour
// holds at most MostRecords of it, besides its own and the liar's.
func TestFloodIsBounded(t *testing.T) {
	relay := table(2, false)
	relay.Own(start, record(2, 1, 0), proof(2))
	octets, rng := 0, rand.New(rand.NewPCG(1, 1))
	now := start
	for second := range 3600 {
		now = start.Add(time.Duration(second) * time.Second)
		for i := range uint16(50) {
			r := record(1+uint16(rng.UintN(300)), uint32(second*100)+uint32(i), 5)
			relay.Take(now, 66, append(rollup.Append([]byte{0}, &r), 1, 2, 3, 4))
		}
		if b := relay.Batch(now, 1, 1, 400); b != nil {
			octets += len(b)
			relay.Acked(1)
		}
	}
	const most = 4 * 12 * rollup.MostRecords * 20 // in twelve periods
	if n := len(relay.Rows(now)); n > rollup.MostRecords+2 || octets > most {
		t.Errorf("%d records are held, %d octets went to the parent, at most %d", n, octets, most)
	}
}

// A gateway that is gone stays with its last record and its age; a silent one is distinguished from it, by its own report
// or its neighbour's.
func TestStates(t *testing.T) {
	hq := table(1, true)
	silent := record(5, 1, 0)
	silent.Silent = time.Hour
	hq.Take(start, 2, batch(10, record(4, 1, 2), silent))
	hq.Take(start, 6, batch(0, record(6, 1, 0)))
	if !hq.Silent(6, time.Time{}) || hq.Silent(6, time.Time{}) || hq.Silent(77, time.Time{}) {
		t.Error("a silence is news once, of who has a record")
	}
	for _, tt := range []struct {
		after  time.Duration
		states [3]rollup.State
	}{
		{0, [3]rollup.State{rollup.Current, rollup.Silence, rollup.Silence}},
		{2 * period, [3]rollup.State{rollup.Late, rollup.Silence, rollup.Silence}},
		{5 * period, [3]rollup.State{rollup.Gone, rollup.Silence, rollup.Silence}},
		{2 * time.Hour, [3]rollup.State{rollup.Gone, rollup.Gone, rollup.Silence}},
	} {
		now := start.Add(tt.after)
		for i, h := range hq.Rows(now) {
			if got := h.State(now, period); got != tt.states[i] {
				t.Errorf("after %v %d is %s, want %s", tt.after, h.Origin, got, tt.states[i])
			}
		}
	}
	if gone := hq.Forget(func(id uint16) bool { return id != 4 }); !slices.Equal(gone, []uint16{4}) || len(hq.Rows(start)) != 2 {
		t.Errorf("forgotten: %v", gone)
	}
}

// Ages add up on the way: a record that waited an hour on a relay is not new at the headquarters.
func TestAges(t *testing.T) {
	relay, hq := table(2, false), table(1, true)
	relay.Take(start, 9, batch(0x1c, record(9, 1, 0))) // (8+4)<<2 = 48 s
	later := start.Add(10 * time.Minute)
	hq.Take(later, 2, relay.Batch(later, 1, 1, 100))
	if age := later.Sub(hq.Rows(later)[0].Read); age < 570*time.Second || age > 650*time.Second {
		t.Errorf("it is %v old, want 648 s at 12 %%", age)
	}
}

// A headquarters that starts again knows the last record of each gateway.
func TestRestored(t *testing.T) {
	hq, again := table(1, true), table(1, true)
	for _, h := range hq.Take(start, 2, batch(0, record(4, 1, 2), record(5, 1, 7))).New {
		if err := again.Restore(h.Keep(0)); err != nil {
			t.Fatal(err)
		}
	}
	bare := func(rows []rollup.Held) (list []string) {
		for _, h := range rows {
			list = append(list, fmt.Sprint(h.Record, h.From, h.Read.Unix(), h.Proven))
		}
		return list
	}
	if a, b := bare(hq.Rows(start)), bare(again.Rows(start)); !reflect.DeepEqual(a, b) {
		t.Errorf("%v, want %v", b, a)
	}
	for _, bad := range [][]byte{nil, make([]byte, 11), {1, 2, 3}} {
		if again.Restore(bad) == nil {
			t.Errorf("%x was read", bad)
		}
	}
	if got := again.Take(start, 2, batch(0, record(4, 1, 2))); !slices.Equal(got.Dropped, []string{rollup.Old}) {
		t.Error("what is known was taken again")
	}
}

func FuzzTake(f *testing.F) {
	f.Add(batch(3, record(9, 1, 2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		hq := table(1, true)
		hq.Take(start, 2, b)
		if len(hq.Rows(start)) > rollup.MostRecords+1 {
			t.Error("too many")
		}
	})
}
