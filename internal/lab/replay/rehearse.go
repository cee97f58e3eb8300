package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"aldis/internal/link/profile"
)

// The verdicts.
const (
	Go   = "go"   // everything arrives in time, in every play
	Late = "late" // everything arrives, but not all of it in time
	No   = "no"   // at least one message does not arrive at all
)

const (
	maxMissed = 1000             // messages that are listed
	hangUp    = 30 * time.Second // of silence, after which a call on demand is ended
	repaired  = 0.2              // share of repairs in a play's octets from which on a remark is due
	crowded   = 0.7              // share of the time between a message's sending and its arrival from which on the link counts as busy
)

// Judging is the conditions by which plays are judged.
type Judging struct {
	Profile  profile.Profile
	Deadline time.Duration // a message that takes longer has expired
	Tariff   Tariff
}

// Spread is a figure over several plays.
type Spread struct {
	Best    float64 `json:"best"`    // the smallest; of messages in time the largest
	Typical float64 `json:"typical"` // the median play's
	Worst   float64 `json:"worst"`   // the largest; of messages in time the smallest
}

// Missed is a message that is not there by its deadline.
type Missed struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Octets   int      `json:"octets"`
	SentS    float64  `json:"sent_s"`
	ArrivedS *float64 `json:"arrived_s"` // null: never
	Busy     bool     `json:"link_busy"` // it waited for other messages
	Cause    Cause    `json:"cause"`
}

// Waiting are messages that were sent and have not arrived, and the application's octets in them.
type Waiting struct {
	Messages int   `json:"messages"`
	Octets   int64 `json:"octets"`
}

// Overload is a direction in which more was offered than it takes.
type Overload struct {
	Direction  string  `json:"direction"`
	OfferedBps float64 `json:"offered_bps"`
	RateBps    int     `json:"rate_bps"`
}

// Cost is the carrier's units, and the money if a price is known.
type Cost struct {
	AirMinutesUp   Spread `json:"air_minutes_up"` // transmitter on, ship to shore
	AirMinutesDown Spread `json:"air_minutes_down"`
	Octets         Spread `json:"octets"` // IP octets, both directions
	Datagrams      Spread `json:"datagrams"`
	Credits        Spread `json:"sbd_credits"`     // if each datagram were one SBD message
	HeldMinutes    Spread `json:"call_minutes"`    // a call from beginning to end, started minutes
	Calls          Spread `json:"calls_on_demand"` // a call whenever there is data to send, ended after 30 s of silence
	CallMinutes    Spread `json:"call_minutes_on_demand"`
	Money          []Sum  `json:"money,omitempty"`
}

// Sum is the money for one way to pay, for the worst play.
type Sum struct {
	For      string  `json:"for"`
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// Other is the outcome on another link.
type Other struct {
	Profile string  `json:"profile"`
	Summary string  `json:"summary"`
	Verdict string  `json:"verdict"`
	WorstS  float64 `json:"worst_s"` // of the messages that arrived
	Octets  int64   `json:"octets"`
}

// Rehearsal is the expected outcome of a trace.
type Rehearsal struct {
	Source    string  `json:"source,omitempty"`
	Profile   string  `json:"profile"`
	Summary   string  `json:"summary"`
	Verdict   string  `json:"verdict"`
	Line      string  `json:"line"` // the verdict in words
	Plays     int     `json:"plays"`
	DeadlineS float64 `json:"deadline_s"`
	TraceS    float64 `json:"trace_s"`
	Messages  int     `json:"messages"` // in each play; one with two listeners counts twice
	OnTime    Spread  `json:"on_time"`
	Expired   Spread  `json:"expired"`
	Never     Spread  `json:"never_arrived"`
	MedianS   Spread  `json:"median_s"`
	P95S      Spread  `json:"p95_s"`
	MaxS      Spread  `json:"max_s"`
	Cost      Cost    `json:"cost"`

	Luck   string `json:"luck"`         // how much of the outcome the losses decide
	Chance Chance `json:"chance_of_go"` // of a mission
	Each   []Play `json:"each_play"`    // in order of seeds

	First        *Missed         `json:"first_missed"`     // of the worst play; null: none
	Causes       map[Cause]int   `json:"causes,omitempty"` // of the worst play
	Missed       []Missed        `json:"missed,omitempty"`
	WaitingAtEnd UpDown[Waiting] `json:"waiting_at_end_of_trace"` // of the worst play
	WaitingAfter UpDown[Waiting] `json:"waiting_after_all"`       // up to an hour later
	BusyPct      UpDown[Spread]  `json:"busy_percent"`
	Overload     []Overload      `json:"overload,omitempty"`
	Reasons      []string        `json:"reasons,omitempty"`
	WaysOut      []string        `json:"ways_out,omitempty"`
	Others       []Other         `json:"other_links,omitempty"`
	Notes        []string        `json:"notes,omitempty"`   // gaps of the trace that were filled in
	Remarks      []string        `json:"remarks,omitempty"` // of the worst play

	Bearers []Bearer `json:"bearers,omitempty"` // of the worst play, if there are two; time on the air and overload are those of the first
	Ways    []Way    `json:"ways,omitempty"`

	Worst *Result  `json:"-"` // the play of the missed messages
	Cuts  []string `json:"problems,omitempty"`
}

// Judge judges several plays of one trace on one link. There must be at least one.
func Judge(plays []*Result, o Judging) *Rehearsal {
	deadline := o.Deadline.Seconds()
	worst := slices.MaxFunc(plays, func(a, b *Result) int {
		ea, na := late(a, deadline)
		eb, nb := late(b, deadline)
		return cmp.Or(cmp.Compare(na, nb), cmp.Compare(ea, eb), cmp.Compare(orZero(a.Latency.Max), orZero(b.Latency.Max)))
	})
	r := &Rehearsal{
		Source: worst.Source, Profile: o.Profile.Name, Summary: o.Profile.Summary, Plays: len(plays), DeadlineS: deadline,
		TraceS: worst.Captures.Trace.TotalS, Messages: worst.Messages.Expected, Worst: worst, Notes: worst.Notes, Remarks: worst.Remarks, Bearers: worst.Bearers, Ways: worst.Ways,
		WaitingAfter: WaitingAt(worst, math.Inf(1)), WaitingAtEnd: WaitingAt(worst, worst.Captures.Trace.TotalS),
	}
	of := func(f func(p *Result) float64) Spread { return spreadOf(plays, f) }
	r.Expired = of(func(p *Result) float64 { e, _ := late(p, deadline); return float64(e) })
	r.Never = of(func(p *Result) float64 { _, n := late(p, deadline); return float64(n) })
	r.OnTime = Spread{float64(r.Messages) - r.Expired.Best, float64(r.Messages) - r.Expired.Typical, float64(r.Messages) - r.Expired.Worst}
	r.MedianS = of(func(p *Result) float64 { return orZero(p.Latency.Median) })
	r.P95S = of(func(p *Result) float64 { return orZero(p.Latency.P95) })
	r.MaxS = of(func(p *Result) float64 { return orZero(p.Latency.Max) })
	r.BusyPct = UpDown[Spread]{
		Up: of(func(p *Result) float64 { return p.BusyPct.Up }), Down: of(func(p *Result) float64 { return p.BusyPct.Down }),
	}
	r.cost(plays, o.Tariff)
	r.missed(worst, deadline, o.Profile.Shared)
	r.overloads(plays, o.Profile)
	r.luck(plays, deadline)
	r.judge(o.Profile)
	for _, p := range plays {
		for _, problem := range p.Problems {
			if !slices.Contains(r.Cuts, problem) && len(r.Cuts) < 20 {
				r.Cuts = append(r.Cuts, problem)
			}
		}
	}
	return r
}

// overload notes when octets exceed a rate over the time that the trace has for them.
func (r *Rehearsal) overload(direction string, octets int64, rate int) {
	if bps := 8 * float64(octets) / max(1, r.TraceS); rate > 0 && bps > float64(rate) {
		r.Overload = append(r.Overload, Overload{direction, math.Round(bps), rate})
	}
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// late counts the messages of a play that are not there by their deadline, and those among them that never arrive.
func late(p *Result, deadline float64) (expired, never int) {
	for _, s := range p.Samples {
		switch seconds, ok := s.Latency(); {
		case !ok:
			expired, never = expired+1, never+1
		case seconds > deadline:
			expired++
		}
	}
	return expired, never
}

func spreadOf(plays []*Result, f func(*Result) float64) Spread {
	var values []float64
	for _, p := range plays {
		values = append(values, f(p))
	}
	slices.Sort(values)
	return Spread{Best: values[0], Typical: values[(len(values)-1)/2], Worst: values[len(values)-1]}
}

// WaitingAt is the messages under way at a time of a play.
func WaitingAt(p *Result, t float64) (q UpDown[Waiting]) {
	for _, s := range p.Samples {
		if s.SentS > t || s.ArrivedS != nil && *s.ArrivedS <= t {
			continue
		}
		w := &q.Down
		if s.Up {
			w = &q.Up
		}
		w.Messages++
		w.Octets += int64(s.Octets)
	}
	return q
}

// cost counts the carrier's units.
func (r *Rehearsal) cost(plays []*Result, t Tariff) {
	of := func(f func(p *Result) float64) Spread { return spreadOf(plays, f) }
	busy := func(p *Result, way func(UpDown[float64]) float64) (s float64) {
		for _, b := range p.Bins {
			s += way(b.BusyS)
		}
		return s / 60
	}
	r.Cost = Cost{
		AirMinutesUp: of(func(p *Result) float64 {
			return busy(p, func(b UpDown[float64]) float64 { return b.Up })
		}),
		AirMinutesDown: of(func(p *Result) float64 {
			return busy(p, func(b UpDown[float64]) float64 { return b.Down })
		}),
		Octets:      of(func(p *Result) float64 { return float64(p.LinkBytes.Up + p.LinkBytes.Down) }),
		Datagrams:   of(func(p *Result) float64 { return float64(p.LinkPackets.Up + p.LinkPackets.Down) }),
		Credits:     of(func(p *Result) float64 { return float64(credits(p.Datagrams.Up) + credits(p.Datagrams.Down)) }),
		HeldMinutes: of(func(p *Result) float64 { return math.Ceil(p.Captures.Replay.TotalS / 60) }),
		Calls:       of(func(p *Result) float64 { n, _ := calls(p); return float64(n) }),
		CallMinutes: of(func(p *Result) float64 { _, m := calls(p); return float64(m) }),
	}
	add := func(name string, price, units float64) {
		if price > 0 {
			r.Cost.Money = append(r.Cost.Money, Sum{name, math.Round(100*price*units) / 100, t.Currency})
		}
	}
	add("a call from beginning to end", t.Minute, r.Cost.HeldMinutes.Worst)
	add("calls on demand", t.Minute, r.Cost.CallMinutes.Worst)
	add("SBD credits", t.Credit, r.Cost.Credits.Worst)
	add("octets", t.Megabyte, r.Cost.Octets.Worst/1e6)
}

// calls returns the number of calls, each made when there is data to send and ended after a silence, and their started minutes. It can
// tell times no finer than the play's bins.
func calls(p *Result) (n, minutes int) {
	var from, until float64 // of the current call
	open := false
	hang := func() {
		if open {
			n, minutes = n+1, minutes+int(math.Ceil((until+hangUp.Seconds()-from)/60))
		}
		open = false
	}
	for _, b := range p.Bins {
		if b.BusyS.Up+b.BusyS.Down == 0 && len(b.Octets.Up)+len(b.Octets.Down) == 0 {
			continue
		}
		if open && b.T > until+hangUp.Seconds() {
			hang()
		}
		if !open {
			open, from = true, b.T
		}
		until = b.T + p.BinS
	}
	hang()
	return n, minutes
}

func (r *Rehearsal) reason(format string, args ...any) {
	r.Reasons = append(r.Reasons, fmt.Sprintf(format, args...))
}

func (r *Rehearsal) wayOut(format string, args ...any) {
	r.WaysOut = append(r.WaysOut, fmt.Sprintf(format, args...))
}

// judge finds the verdict, its reasons and the remedies.
func (r *Rehearsal) judge(p profile.Profile) {
	worst := r.Worst
	switch {
	case r.Never.Worst > 0:
		r.Verdict = No
		r.Line = fmt.Sprintf("NO. %.0f of %d messages never arrive on %s", r.Never.Worst, r.Messages, p.Name)
	case r.Expired.Worst > 0:
		r.Verdict = Late
		r.Line = fmt.Sprintf("LATE. %.0f of %d messages miss %s on %s", r.Expired.Worst, r.Messages, Duration(r.DeadlineS), p.Name)
	default:
		r.Verdict = Go
		if worst.Jam != nil {
			r.Line = fmt.Sprintf("GO, but for what got through a jammed link alone: all %d messages of the trace arrive within %s on %s; the slowest takes %s.", r.Messages, Duration(r.DeadlineS), p.Name, Duration(r.MaxS.Worst))
			r.reason("The link that the trace was recorded on was jammed: %v. The trace has what got through, and when; a mission will want more.", *worst.Jam)
			r.wayOut("Record a trace where nothing jams: on a peer's own LAN, or between gateways.")
			break
		}
		r.Line = fmt.Sprintf("GO. All %d messages arrive within %s on %s; the slowest takes %s.", r.Messages, Duration(r.DeadlineS), p.Name, Duration(r.MaxS.Worst))
	}
	if n := worst.Kinds["repair"]; n > 0 && r.Verdict != Go && len(r.Overload) == 0 {
		if sum := worst.LinkBytes.Up + worst.LinkBytes.Down; float64(n) >= repaired*float64(sum) {
			r.reason("Repairs are %.0f %% of the octets of the worst play: what was lost was sent again. What the trace itself needs is not too much.", 100*float64(n)/float64(sum))
		}
	}
	for _, o := range r.Overload {
		by := o.OfferedBps / float64(o.RateBps)
		if r.Verdict != Go {
			r.Line += fmt.Sprintf(": %s is offered %.1f times what it takes", o.Direction, by)
		}
		r.reason("%s: %.0f bit/s are offered over the time of the trace, the link takes %d: %.1f times too much.", o.Direction, o.OfferedBps, o.RateBps, by)
		r.wayOut("Send less: of what the trace sends, at most %.0f %% fits (%s), and that without any reserve.", 100/by, o.Direction)
	}
	if r.Verdict == Go {
		return
	}
	if len(r.Overload) == 0 && r.First != nil {
		r.Line += fmt.Sprintf("; the first is the one of %s", Duration(r.First.SentS))
	}
	r.Line += "."
	if w := worst.PipeKnownS; w != nil && r.Causes[CauseNobody]+r.Causes[CauseListener] > 0 {
		r.wayOut("Let listeners open their pipes before the first message is sent: in the worst play the news of one took %s to cross.", Duration(*w))
	}
	if n := worst.Dropped.Up + worst.Dropped.Down; n > 0 {
		r.reason("%d datagrams were dropped by full queues of the link.", n)
	}
	if n := r.WaitingAtEnd.Up.Messages + r.WaitingAtEnd.Down.Messages; n > 0 {
		r.reason("When the trace ended, %d messages were not through yet.", n)
	}
	most := max(r.BusyPct.Up.Worst, r.BusyPct.Down.Worst)
	if p.Shared {
		most = r.BusyPct.Up.Worst + r.BusyPct.Down.Worst // turnarounds take additional time
	}
	if most > 60 && len(r.Overload) == 0 {
		r.reason("The link is busy %.0f %% of the time: what is lost or comes together has to wait.", most)
	}
	if r.Never.Worst == 0 {
		r.wayOut("A deadline of %s would be met by all, in each of the %d plays.", Duration(roundUp(r.MaxS.Worst)), r.Plays)
	}
	if len(r.Overload) == 0 {
		r.wayOut("gateway tune --profile %s --trace TRACE looks for better settings for such a trace.", p.Name)
	}
}

// Compare adds the outcomes on other links: first those that carry everything in time, the fewest octets first.
func (r *Rehearsal) Compare(others []Other) {
	rank := map[string]int{Go: 0, Late: 1, No: 2}
	slices.SortStableFunc(others, func(a, b Other) int {
		return cmp.Or(cmp.Compare(rank[a.Verdict], rank[b.Verdict]), cmp.Compare(a.Octets, b.Octets), cmp.Compare(a.Profile, b.Profile))
	})
	r.Others = others
	var names []string
	for _, o := range others {
		if o.Verdict == Go {
			names = append(names, fmt.Sprintf("%s (slowest %s)", o.Profile, Duration(o.WorstS)))
		}
	}
	switch {
	case len(names) > 4:
		r.wayOut("Links that would do: %s, and %d more.", list(names[:4]), len(names)-4)
	case len(names) > 0:
		r.wayOut("Links that would do: %s.", list(names))
	case len(others) > 0:
		r.wayOut("No other link that is known by name carries this in time either: send less, or give it more time.")
	}
}

func list(names []string) string {
	s := ""
	for i, n := range names {
		if i > 0 {
			s += ", "
		}
		s += n
	}
	return s
}

// roundUp is a round time that a person would set.
func roundUp(s float64) float64 {
	for _, step := range []float64{1, 5, 10, 30, 60, 300, 600, 1800, 3600} {
		if v := math.Ceil(s/step) * step; v <= 20*step {
			return v
		}
	}
	return math.Ceil(s/3600) * 3600
}

// Duration writes seconds as people write them.
func Duration(s float64) string {
	switch {
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	case s < 119.5:
		return fmt.Sprintf("%.0f s", s)
	case s < 2*3600:
		n := int(math.Round(s))
		if n%60 == 0 {
			return fmt.Sprintf("%d min", n/60)
		}
		return fmt.Sprintf("%d min %02d s", n/60, n%60)
	}
	n := int(math.Round(s / 60))
	return fmt.Sprintf("%d h %02d min", n/60, n%60)
}
