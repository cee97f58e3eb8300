package replay

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// aPlay is a play with messages to shore of 100 octets every 10 s that take these times; a negative time is never.
func aPlay(latencies ...float64) *Result {
	p := &Result{BinS: 10, RateBps: UpDown[int]{Up: 100, Down: 100}, Messages: Messages{Expected: len(latencies)}}
	p.Captures.Trace.TotalS = 10 * float64(len(latencies))
	p.Captures.Replay.TotalS = p.Captures.Trace.TotalS
	most := 0.0
	for i, l := range latencies {
		s := Sample{From: "a", To: "b", Up: true, Octets: 100, SentS: 10 * float64(i)}
		if l >= 0 {
			at := s.SentS + l
			s.ArrivedS = &at
		}
		most = max(most, l)
		p.Samples = append(p.Samples, s)
		p.Bins = append(p.Bins, Bin{T: s.SentS})
	}
	p.Latency.Max = &most
	return p
}

func judge(shared bool, plays ...*Result) *Rehearsal {
	return Judge(plays, Judging{Profile: profile.Profile{Name: "p", Shared: shared}, Deadline: time.Minute})
}

func TestVerdicts(t *testing.T) {
	tests := []struct {
		name             string
		plays            []*Result
		verdict, line    string
		onTime, expired  float64
		first            float64 // -1: none is missed
		waiting, waitEnd int
		help             string
	}{
		{"all in time", []*Result{aPlay(1, 2, 3), aPlay(1, 60, 1)}, Go, "GO. All 3 messages arrive within 60 s on p; the slowest takes 60 s.", 3, 0, -1, 0, 1, ""},
		{"one late in one play of three", []*Result{aPlay(1, 2, 3), aPlay(1, 61, 1), aPlay(1, 2, 3)}, Late, "LATE. 1 of 3 messages miss 60 s on p; the first is the one of 10 s.", 2, 1, 10, 0, 1, "A deadline of 65 s would be met by all, in each of the 3 plays."},
		{"one never", []*Result{aPlay(1, 70, 70), aPlay(-1, 2, 3)}, No, "NO. 1 of 3 messages never arrive on p; the first is the one of 0.0 s.", 1, 2, 0, 1, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := judge(false, tt.plays...)
			check.Equal(t, "r.Verdict", r.Verdict, tt.verdict)
			check.Equal(t, "r.Line", r.Line, tt.line)
			check.Equal(t, "r.OnTime.Worst", r.OnTime.Worst, tt.onTime)
			check.Equal(t, "r.Expired.Worst", r.Expired.Worst, tt.expired)
			if (r.First == nil) != (tt.first < 0) || r.First != nil && r.First.SentS != tt.first {
				t.Errorf("first missed %+v", r.First)
			}
			if r.WaitingAfter.Up.Messages != tt.waiting || r.WaitingAtEnd.Up.Messages != tt.waitEnd && tt.verdict == No {
				t.Errorf("waiting %+v, at the end of the trace %+v", r.WaitingAfter, r.WaitingAtEnd)
			}
			if tt.help != "" && !strings.Contains(strings.Join(r.WaysOut, "\n"), tt.help) {
				t.Errorf("ways out %q", r.WaysOut)
			}
		})
	}
}

// The verdict says by how much a link is too thin, and that messages waited for it.
func TestOverload(t *testing.T) {
	p := aPlay(1, 300, 300)
	p.Demand = UpDown[int64]{Up: 750, Down: 375} // in 30 s: 200 and 100 bit/s of 100
	for i := range p.Bins {
		p.Bins[i].BusyS.Up = 10
	}
	r := judge(false, p)
	if len(r.Overload) != 1 || r.Overload[0] != (Overload{"ship to shore", 200, 100}) || !strings.HasSuffix(r.Line, ": ship to shore is offered 2.0 times what it takes.") {
		t.Errorf("%+v, %q", r.Overload, r.Line)
	}
	if all := strings.Join(append(r.Reasons, r.WaysOut...), "\n"); !strings.Contains(all, "each of the 2 waited") || !strings.Contains(all, "at most 50 % fits (ship to shore)") {
		t.Errorf("%s", all)
	}
	if r := judge(true, p); len(r.Overload) != 1 || r.Overload[0].OfferedBps != 300 {
		t.Errorf("a shared channel: %+v", r.Overload)
	}
	if r := judge(false, aPlay(1, 300)); len(r.Overload) != 0 || !strings.Contains(r.Reasons[0], "not full") {
		t.Errorf("%+v %q", r.Overload, r.Reasons)
	}
}

// Octets that a play sent again are no demand: the least of the plays that delivered most messages counts. An unlucky play is told from a
// link that is too thin.
func TestOverloadIsOfTheDemand(t *testing.T) {
	lucky, unlucky, torn := aPlay(1, 20, 20), aPlay(1, 300, 300), aPlay(1, -1, -1)
	lucky.Demand.Up, unlucky.Demand.Up, torn.Demand.Up = 300, 750, 50 // 80, 200, 13 bit/s of 100
	lucky.Messages.Delivered, unlucky.Messages.Delivered, torn.Messages.Delivered = 3, 3, 1
	unlucky.LinkBytes.Up, unlucky.Kinds = 1000, map[string]int64{"repair": 500, "payload": 500}
	r := judge(false, lucky, unlucky)
	check.Equal(t, "overloads", len(r.Overload), 0)
	check.True(t, "repairs are named", strings.Contains(strings.Join(r.Reasons, "\n"), "Repairs are 50 % of the octets of the worst play"), r.Reasons)
	lucky.Demand.Up = 450 // 120 bit/s
	r = judge(false, lucky, unlucky, torn)
	check.Same(t, "overloads", r.Overload, []Overload{{"ship to shore", 120, 100}})
}

// Each missed message has its own cause.
func TestCauses(t *testing.T) {
	at := func(v float64) *float64 { return &v }
	p := aPlay(-1, 100, -1, 90, 90, 90, 90)
	p.Samples[0].Untaken = true
	p.Samples[1].TakenS = at(90) // sent at 10 s, there at 110 s
	p.Samples[2].TakenS = at(20)
	p.Messages.Untaken, p.Messages.Expired = 1, 1
	for i, want := range []Cause{CauseNobody, CauseListener, CauseRule} {
		check.Equal(t, "cause", newInquiry(p, 60, false).cause(p.Samples[i]), want)
	}
	for _, tt := range []struct {
		want Cause
		bin  Bin
	}{
		{CauseTurn, Bin{}},
		{CauseTurn, Bin{BusyS: UpDown[float64]{Down: 9}}}, // the other direction's
		{CauseAir, Bin{Lost: UpDown[int64]{Up: 1}}},
		{CauseAir, Bin{Lost: UpDown[int64]{Down: 1}}}, // an acknowledgement
		{CauseDropped, Bin{Drops: UpDown[int64]{Up: 1}, Lost: UpDown[int64]{Up: 1}}},
		{CauseBusy, Bin{BusyS: UpDown[float64]{Up: 9}, Drops: UpDown[int64]{Up: 1}}},
	} {
		p.Bins = slices.Repeat([]Bin{tt.bin}, 20)
		for i := range p.Bins {
			p.Bins[i].T = p.BinS * float64(i)
		}
		check.Equal(t, "cause", newInquiry(p, 60, false).cause(p.Samples[3]), tt.want)
	}
	r := judge(false, aPlay(1, -1))
	check.Same(t, "causes", r.Causes, map[Cause]int{CauseTurn: 1})
	nobody := aPlay(-1, 1)
	nobody.Samples[0].Untaken, nobody.PipeKnownS = true, at(42)
	r = judge(false, nobody)
	all := strings.Join(append(r.Reasons, r.WaysOut...), "\n")
	check.True(t, "the reason", strings.Contains(all, "1 was never taken: at the time of sending the gateway knew of nobody who listens"), all)
	check.True(t, "no full link", !strings.Contains(all, "The link was"), all)
	check.True(t, "the way out", strings.Contains(all, "the news of one took 42 s to cross"), all)
}

// All plays are shown, and how much of the outcome is luck.
func TestLuck(t *testing.T) {
	good, late, never := aPlay(1, 2), aPlay(1, 99), aPlay(1, -1)
	good.Seed, late.Seed, never.Seed = 7, 8, 9
	for _, tt := range []struct {
		plays []*Result
		luck  string
		low   float64
		high  float64
	}{
		{[]*Result{good}, "One play shows one way that it can go: --plays 20 shows how much is luck.", 20, 100},
		{[]*Result{good, good, good, good, good}, "All 5 plays are GO. That tells that at least 56 of 100 such missions go well; more plays (--plays) tell more.", 56, 100},
		{[]*Result{late, late}, "It is no bad luck: each of 2 plays ends so.", 0, 66},
		{[]*Result{aPlay(99, 99), late}, "Each of 2 plays ends so, but not for the same messages: the worst has 0 of 2 in time, the best 1.", 0, 66},
		{[]*Result{good, late, never}, "It depends on luck: of 3 plays, which differ in losses and jitter alone, are 1 GO, 1 LATE, 1 NO. Between 6 and 80 of 100 missions go well.", 6, 80},
	} {
		r := judge(false, tt.plays...)
		check.Equal(t, "luck", r.Luck, tt.luck)
		check.Equal(t, "chance", r.Chance, Chance{tt.low, tt.high})
		check.Equal(t, "plays", len(r.Each), len(tt.plays))
	}
	r := judge(false, good, late, never)
	check.Same(t, "in time", r.OnTime, Spread{Best: 2, Typical: 1, Worst: 1})
	check.Same(t, "slowest", r.MaxS, Spread{Best: 1, Typical: 2, Worst: 99})
	check.Same(t, "each", []Play{r.Each[0], r.Each[2]}, []Play{
		{Seed: 7, Verdict: Go, OnTime: 2, MaxS: 2}, {Seed: 9, Verdict: No, OnTime: 1, Never: 1, MaxS: 1}})
}

// A GO on the trace of a jammed link covers only the traffic that got through, and says so.
func TestJammedTrace(t *testing.T) {
	p := aPlay(1, 2, 3)
	p.Jam = &trace.Jam{RetransmitPct: 30, Setups: 7, FailedSetups: 11}
	r := judge(false, p)
	check.Equal(t, "the verdict", r.Verdict, Go)
	check.Equal(t, "the line", r.Line, "GO, but for what got through a jammed link alone: all 3 messages of the trace arrive within 60 s on p; the slowest takes 3.0 s.")
	check.True(t, "why", len(r.Reasons) == 1 && strings.Contains(r.Reasons[0], "11 of 18 connections were never set up. The trace has what got through"), r.Reasons)
	check.True(t, "the way out", len(r.WaysOut) == 1 && strings.HasPrefix(r.WaysOut[0], "Record a trace where nothing jams"), r.WaysOut)
}

func TestCost(t *testing.T) {
	p := aPlay(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	p.LinkBytes.Up = 2_000_000
	p.Datagrams.Up, p.Datagrams.Down = map[int]int64{1: 1, 50: 1, 51: 2}, map[int]int64{0: 1, 500: 3}
	for _, i := range []int{0, 1, 3, 9} { // calls: 0 to 40 s and its silence, 90 to 100 s and its silence
		p.Bins[i].BusyS.Up = 6
	}
	r := Judge([]*Result{p}, Judging{Profile: profile.Profile{Name: "p"}, Deadline: time.Minute, Tariff: Tariff{Currency: "EUR", Minute: 2, Credit: 0.1, Megabyte: 7}})
	c := r.Cost
	check.Equal(t, "c.Credits.Worst", c.Credits.Worst, 37)
	check.Equal(t, "c.HeldMinutes.Worst", c.HeldMinutes.Worst, 2)
	check.Equal(t, "c.Calls.Worst", c.Calls.Worst, 2)
	check.Equal(t, "c.CallMinutes.Worst", c.CallMinutes.Worst, 3)
	check.Equal(t, "c.AirMinutesUp.Worst", c.AirMinutesUp.Worst, 0.4)
	want := []Sum{{"a call from beginning to end", 4, "EUR"}, {"calls on demand", 6, "EUR"}, {"SBD credits", 3.7, "EUR"}, {"octets", 14, "EUR"}}
	if len(c.Money) != len(want) {
		t.Fatalf("%+v", c.Money)
	}
	for i := range want {
		if c.Money[i] != want[i] {
			t.Errorf("%+v, want %+v", c.Money[i], want[i])
		}
	}
}

func TestParseTariff(t *testing.T) {
	got, err := ParseTariff(" minute=1.1, credit=0.05,megabyte=7,currency=€ ")
	if err != nil || got != (Tariff{"€", 1.1, 0.05, 7}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseTariff(""); err != nil || got != (Tariff{}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, s := range []string{"minute", "minute=", "minute=-1", "minute=NaN", "minute=1e99", "hour=3", "currency=", "currency=<b>", "currency=moneymoney"} {
		var te *TariffError
		if _, err := ParseTariff(s); !errors.As(err, &te) || te.Part != s {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestCompare(t *testing.T) {
	r := judge(false, aPlay(99))
	r.Compare([]Other{{Profile: "slow", Verdict: Late, Octets: 1}, {Profile: "dear", Verdict: Go, Octets: 9}, {Profile: "cheap", Verdict: Go, Octets: 5, WorstS: 3}})
	if r.Others[0].Profile != "cheap" || r.Others[2].Profile != "slow" || r.WaysOut[len(r.WaysOut)-1] != "Links that would do: cheap (slowest 3.0 s), dear (slowest 0.0 s)." {
		t.Errorf("%+v %q", r.Others, r.WaysOut)
	}
}
