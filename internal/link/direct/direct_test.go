package direct

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

var begun = time.Unix(1_800_000_000, 0)

// play is a table in virtual time whose peers all answer at once, and what it has done.
type play struct {
	*Table
	now         time.Time
	kept        []uint16
	opens, ends []time.Time
	most        int // sessions at a time
}

func newPlay(cfg Config) *play { return &play{Table: New(cfg), now: begun} }

// round lets a round pass.
func (p *play) round() {
	p.now = p.now.Add(Round)
	p.did(p.Step(p.now))
}

// did carries out a decision.
func (p *play) did(open, end uint16) {
	if end != 0 {
		p.ends = append(p.ends, p.now)
		p.kept = slices.DeleteFunc(p.kept, func(id uint16) bool { return id == end })
	}
	if open != 0 {
		p.opens = append(p.opens, p.now)
		p.Opened(p.now, open)
		p.kept = append(p.kept, open)
	}
	p.most = max(p.most, len(p.kept))
}

var usual = Config{Limit: 4, Keep: 200, Open: 1500}

// A thousand pairs that each speak once, however much: sessions at most the limit, and in each round one gives way to another at most.
func TestAThousandPairsThatSpeakOnce(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := newPlay(usual)
		order := rng.Perm(1000)
		for _, i := range order {
			p.Carried(p.now, uint16(i+1), 200+rng.IntN(100_000))
			if rng.IntN(3) == 0 {
				p.round()
			}
		}
		for range 100 {
			p.round()
		}
		in := check.In(t, fmt.Sprint("seed ", seed))
		check.True(in, "sessions at a time, at most the limit", p.most <= usual.Limit, p.most)
		for _, list := range [][]time.Time{p.opens, p.ends} {
			for i := 1; i < len(list); i++ {
				check.True(in, "at most one change a round", list[i].Sub(list[i-1]) >= Round, list[i])
			}
		}
		check.True(in, "some sessions were opened: the test shows something", len(p.opens) > usual.Limit, len(p.opens))
		check.Equal(in, "sessions in the end", len(p.kept), 0)
		check.Equal(in, "rows in the end", len(p.rows), 0)
		check.True(in, "and nothing is due", p.Due().IsZero(), p.Due())
	}
}

// A busy pair gets a session beside a thousand others that speak once, and keeps it while it is busy.
func TestABusyPairKeepsItsSession(t *testing.T) {
	p := newPlay(usual)
	for i := range uint16(1000) {
		p.Carried(p.now, 5000, 20_000)
		p.Carried(p.now, i+1, 30_000)
		p.round()
		if i > 20 {
			check.Equal(t, fmt.Sprint("round ", i, ": the busy pair"), p.State(5000), Kept)
		}
	}
}

// A little traffic is worth no session, and a session over which little goes ends. It leaves a tenth of its priority, so that it does not
// come back at once.
func TestASessionIsWorthItsKeep(t *testing.T) {
	p := newPlay(usual)
	for range 100 {
		p.Carried(p.now, 1, 300)
		p.round()
	}
	check.Equal(t, "sessions of a quiet pair", len(p.opens), 0)
	for range 10 {
		p.Carried(p.now, 1, 3000)
		p.round()
	}
	check.Equal(t, "sessions of a busy pair", len(p.kept), 1)
	before := p.rows[1].Priority
	rounds := 0
	for ; len(p.kept) > 0 && rounds < 100; rounds++ {
		p.round()
	}
	check.True(t, "rounds until an idle session ends", rounds > 3 && rounds < 20, rounds)
	check.True(t, "what is left of its priority", p.rows[1] == nil || p.rows[1].Priority < before*penalty, p.rows[1])
}

// Two candidates of nearly the same traffic do not take the only place from each other round for round.
func TestEqualsDoNotFlip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	p := newPlay(Config{Limit: 1, Keep: 200, Open: 1500})
	for range 1000 {
		for id := uint16(1); id <= 2; id++ {
			p.Carried(p.now, id, 4000+rng.IntN(2000))
		}
		p.round()
	}
	check.True(t, "changes in a thousand rounds", len(p.opens) < 300, len(p.opens))
}

// The greylist grows as a sigmoid to an hour, and a session that has lasted begins it anew.
func TestGreylist(t *testing.T) {
	p := newPlay(usual)
	last := time.Duration(0)
	for i := range 20 {
		p.Carried(p.now, 1, 50_000)
		p.now = p.now.Add(Round)
		open, _ := p.Step(p.now)
		if open == 0 {
			t.Fatalf("opening %d: none", i)
		}
		p.Failed(p.now, 1)
		grey := p.Rows()[0].Grey.Sub(p.now)
		check.True(t, "it grows", grey >= last && grey <= time.Hour, grey)
		for last = grey; p.now.Add(Round).Before(p.Rows()[0].Grey); {
			p.Carried(p.now, 1, 50_000)
			p.now = p.now.Add(Round)
			open, _ := p.Step(p.now)
			check.Equal(t, "opened while greylisted", open, uint16(0))
		}
	}
	check.Equal(t, "after twenty failures", last, time.Hour)
	p.Carried(p.now, 1, 50_000)
	p.round()
	p.round()
	check.Equal(t, "session", p.State(1), Kept)
	p.now = p.now.Add(settled)
	p.Failed(p.now, 1)
	check.Equal(t, "after a session that lasted", p.Rows()[0].Grey.Sub(p.now), greyFor(1))
}

// A peer that asks gets a free place, or that of the weakest, once a round; nobody gets more than the limit.
func TestAsked(t *testing.T) {
	p := newPlay(Config{Limit: 2, Keep: 200, Open: 1500})
	for id := uint16(1); id <= 10; id++ {
		p.Carried(p.now, id, 1000*int(id))
	}
	for _, want := range []struct {
		id   uint16
		take bool
		end  uint16
	}{{1, true, 0}, {2, true, 0}, {9, true, 1}, {10, false, 0}, {9, true, 0}} {
		take, end := p.Asked(p.now, want.id)
		check.Equal(t, fmt.Sprint(want.id, " asks: taken"), take, want.take)
		check.Equal(t, fmt.Sprint(want.id, " asks: ended for it"), end, want.end)
		if take {
			p.Opened(p.now, want.id)
		}
		if want.id == 1 { // the floor that an opened session has is above the traffic of the first two
			p.rows[1].Priority = 0
		}
	}
	check.Equal(t, "limit 0", func() bool { take, _ := New(Config{}).Asked(begun, 1); return take }(), false)
}

// Memory is bounded: peers without a session give way to new ones, those of sessions and greylisted ones stay.
func TestRowsAreBounded(t *testing.T) {
	p := newPlay(usual)
	p.Opened(p.now, 60000)
	p.Failed(p.now, 60001)
	for i := range uint16(5000) {
		p.Carried(p.now, i+1, int(i)+1)
	}
	check.Equal(t, "rows", len(p.rows), mostRows)
	check.Equal(t, "the session", p.State(60000), Kept)
	check.True(t, "the greylisted", p.rows[60001] != nil, "is forgotten")
	check.True(t, "the busiest", p.rows[5000] != nil && p.rows[1] == nil, "is forgotten")
}
