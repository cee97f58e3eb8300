package probe

import (
	"encoding/hex"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/link/profile"
)

const overhead = 48

func dialup(t *testing.T) profile.Profile {
	t.Helper()
	p, err := profile.Load("iridium-dialup", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWords(t *testing.T) {
	for _, v := range []struct {
		name   string
		w      Word
		octets int
		hex    string
	}{
		{"echo, filled up", Word{Op: Echo, ID: 7, Seq: 3}, 5, "00 07 03 0000"},
		{"shot", Word{Op: Shot, ID: 7, Seq: 200}, 0, "01 07 c801"},
		{"train", Word{Op: Train, ID: 7, Seq: 4, Small: 52, Count: 20, Large: 340}, 0, "02 07 04 34 14 d402"},
		{"ask", Word{Op: Ask, ID: 7, Seq: 5, From: 130}, 0, "03 07 05 8201"},
		{"back", Word{Op: Back, ID: 7, Seq: 32}, 0, "04 07 20"},
		{"report", Word{Op: Report, ID: 7, From: 1, Total: 5, Events: []Event{
			{Seq: 0}, {true, 0, 10 * time.Millisecond}, {Seq: 2, At: time.Second}}}, 0, "05 07 00 01 05 03 00 9103 b2b502 02"},
		{"refuse", Word{Op: Refuse, ID: 7, Why: TooMuch}, 0, "06 07 00 01"},
	} {
		got := Append(nil, v.w, v.octets)
		if want := strings.ReplaceAll(v.hex, " ", ""); hex.EncodeToString(got) != want {
			t.Errorf("%s: %x, want %s", v.name, got, want)
		}
		if w, err := Parse(got); err != nil || !reflect.DeepEqual(w, v.w) {
			t.Errorf("%s: %+v %v, want %+v", v.name, w, err, v.w)
		}
		for n := range len(got) - v.octets {
			if w, err := Parse(got[:n]); err == nil && reflect.DeepEqual(w, v.w) {
				t.Errorf("%s: %d octets are enough", v.name, n)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Append(nil, Word{Op: Report, ID: 7, From: 1, Total: 5, Events: []Event{{Seq: 0}, {true, 9, time.Hour}}}, 60))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := Parse(b)
		if err != nil {
			return
		}
		if again, err := Parse(Append(nil, w, len(b))); err != nil || !reflect.DeepEqual(again, w) {
			t.Errorf("%+v becomes %+v, %v", w, again, err)
		}
	})
}

// wire plays two ends whose datagrams take a second, and of which some are lost.
type wire struct {
	now      time.Time
	near     *Asker
	far      *Answerer
	lost     func() bool
	flying   []flying
	far2near int
}

type flying struct {
	at     time.Time
	up     bool
	word   []byte
	octets int
}

func (w *wire) send(up bool, word Word, octets int) {
	if !w.lost() {
		w.flying = append(w.flying, flying{w.now.Add(time.Second), up, Append(nil, word, octets-overhead), octets})
	}
}

func (w *wire) run(t *testing.T) {
	for range 1_000_000 {
		for word, n, ok := w.near.Next(w.now); ok; word, n, ok = w.near.Next(w.now) {
			w.near.Sent(w.now, n)
			w.send(true, word, n)
		}
		for word, n, ok := w.far.Next(w.now); ok; word, n, ok = w.far.Next(w.now) {
			w.far.Sent(w.now, n)
			w.far2near += n
			w.send(false, word, n)
		}
		if w.near.Over() {
			return
		}
		w.now = w.now.Add(10 * time.Millisecond)
		for len(w.flying) > 0 && !w.flying[0].at.After(w.now) {
			f := w.flying[0]
			w.flying = w.flying[1:]
			word, err := Parse(f.word)
			if err != nil {
				t.Fatal(err)
			}
			if f.up {
				w.far.Receive(w.now, word, f.octets)
			} else {
				w.near.Receive(w.now, word, f.octets)
			}
		}
	}
	t.Fatal("no end")
}

// TestBudget: whichever datagrams are lost, neither end sends more than half of the budget, and the far end no more than it
// has received.
func TestBudget(t *testing.T) {
	p := dialup(t)
	for _, budget := range []int{LeastBudget, DefaultBudget, 12_345, MostBudget} {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 1))
			plan, err := For(p, p.Up.RateBps, overhead, budget)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Unix(1_800_000_000, 0)
			w := &wire{now: now, near: NewAsker(now, 9, plan), far: NewAnswerer(p, p.Up.RateBps, overhead), lost: func() bool { return rng.Float64() < float64(seed)*0.02 }}
			w.run(t)
			sent, came := w.near.Octets()
			if sent > budget/2 || came > w.far2near || w.far2near > sent {
				t.Errorf("budget %d, seed %d: %d octets sent, %d came of %d", budget, seed, sent, came, w.far2near)
			}
			if seed == 0 && (w.near.Err() != nil || sent+came < budget*3/4) {
				t.Errorf("budget %d: %v, %d of it used", budget, w.near.Err(), sent+came)
			}
			if w.near.Err() != nil {
				continue
			}
			for _, one := range w.near.Packets() {
				if late := one.Arrived - one.Sent; one.Up && !one.Lost && seed > 0 && late < -time.Hour {
					t.Errorf("budget %d, seed %d: %+v", budget, seed, one)
				}
			}
		}
	}
	for _, budget := range []int{0, LeastBudget - 1, MostBudget + 1} {
		if _, err := For(p, p.Up.RateBps, overhead, budget); err == nil {
			t.Errorf("a budget of %d is taken", budget)
		}
	}
}

// TestHostile: an end is bounded, whatever words it receives.
func TestHostile(t *testing.T) {
	p := dialup(t)
	rng := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(1_800_000_000, 0)
	far := NewAnswerer(p, p.Up.RateBps, overhead)
	in, out := 0, 0
	for range 200_000 {
		word := Word{Op: Op(rng.IntN(int(Back))), ID: uint8(rng.IntN(2)), Seq: uint16(rng.IntN(1 << 16)), Small: 51 + rng.IntN(500), Count: rng.IntN(1024), Large: rng.IntN(600), From: rng.IntN(MostEvents)}
		n := overhead + len(Append(nil, word, 0))
		in += n
		far.Receive(now, word, n)
		for word, n, ok := far.Next(now); ok; word, n, ok = far.Next(now) {
			far.Sent(now, n)
			if out += n; len(Append(nil, word, 0)) > n-overhead {
				t.Fatalf("%+v does not fit into %d octets", word, n)
			}
		}
		now = now.Add(time.Duration(rng.IntN(10)) * time.Millisecond)
		if out > in || len(far.events) > MostEvents || len(far.echoes) > mostEchoes {
			t.Fatalf("%d octets for %d, %d events, %d echoes", out, in, len(far.events), len(far.echoes))
		}
	}
	if out > Allowance+refusals+100 {
		t.Errorf("%d octets within the hour, %d are allowed", out, Allowance)
	}
	if far.Receive(now.Add(time.Hour), Word{Op: Echo, ID: 5}, 52); !far.known || far.refusal {
		t.Error("an hour later it still refuses")
	}
	plan, err := For(p, p.Up.RateBps, overhead, DefaultBudget)
	if err != nil {
		t.Fatal(err)
	}
	near, out := NewAsker(now, 1, plan), 0
	for range 100_000 {
		near.Receive(now, Word{Op: Back + Op(rng.IntN(2)), ID: 1, Seq: uint16(rng.IntN(1 << 16)), Total: 1 + rng.IntN(MostEvents), Events: []Event{{}}}, 52)
		if _, n, ok := near.Next(now); ok {
			near.Sent(now, n)
			out += n
		}
		now = now.Add(50 * time.Millisecond)
	}
	if !near.Over() || out > plan.Own {
		t.Errorf("over: %v; %d octets for a budget of %d", near.Over(), out, plan.Budget)
	}
	near.Packets()
}

// TestNoAnswer: a far end that sends nothing ends the probe soon.
func TestNoAnswer(t *testing.T) {
	p := dialup(t)
	plan, err := For(p, p.Up.RateBps, overhead, DefaultBudget)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	w := &wire{now: now, near: NewAsker(now, 9, plan), far: NewAnswerer(p, p.Up.RateBps, overhead), lost: func() bool { return true }}
	w.run(t)
	if sent, _ := w.near.Octets(); w.near.Err() != ErrNoAnswer || sent > 5*60 {
		t.Errorf("%v after %d octets", w.near.Err(), sent)
	}
}
