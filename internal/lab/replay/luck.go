package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Play is the outcome of one play. Its seed repeats it: gateway replay TRACE --profile P --seed N.
type Play struct {
	Seed      uint64  `json:"seed"`
	Verdict   string  `json:"verdict"`
	OnTime    int     `json:"on_time"`
	Late      int     `json:"late"`
	Never     int     `json:"never"`
	MedianS   float64 `json:"median_s"`
	P95S      float64 `json:"p95_s"`
	MaxS      float64 `json:"max_s"`
	Octets    int64   `json:"octets"`
	LostOnAir int64   `json:"datagrams_lost"`
	Dropped   int64   `json:"datagrams_dropped"`
}

func playOf(p *Result, deadline float64) Play {
	expired, never := late(p, deadline)
	one := Play{
		Seed: p.Seed, Verdict: Go, OnTime: p.Messages.Expected - expired, Late: expired - never, Never: never,
		MedianS: orZero(p.Latency.Median), P95S: orZero(p.Latency.P95), MaxS: orZero(p.Latency.Max),
		Octets: p.LinkBytes.Up + p.LinkBytes.Down, LostOnAir: p.Lost.Up + p.Lost.Down, Dropped: p.Dropped.Up + p.Dropped.Down,
	}
	switch {
	case never > 0:
		one.Verdict = No
	case expired > 0:
		one.Verdict = Late
	}
	return one
}

// Chance is how many of a hundred missions would go well, as far as the plays can tell: with 95 % certainty a number between the two.
type Chance struct {
	LowPct  float64 `json:"low_percent"`
	HighPct float64 `json:"high_percent"`
}

// chanceOf is Wilson's interval for the number of good plays among all.
func chanceOf(good, all int) Chance {
	const z = 1.959964 // 95 % of a normal distribution lie within
	n, p := float64(all), float64(good)/float64(all)
	mid := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return Chance{math.Max(0, math.Floor(100*(mid-half))), math.Min(100, math.Ceil(100*(mid+half)))}
}

// luck says how much of the outcome the losses decide, which differ from play to play.
func (r *Rehearsal) luck(plays []*Result, deadline float64) {
	count := map[string]int{}
	for _, p := range plays {
		one := playOf(p, deadline)
		count[one.Verdict]++
		r.Each = append(r.Each, one)
	}
	r.Chance = chanceOf(count[Go], len(plays))
	r.Luck = lucky(count, r.Chance)
	if len(count) == 1 && count[Go] == 0 && r.differs() {
		r.Luck = fmt.Sprintf("Each of %d plays ends so, but not for the same messages: the worst has %.0f of %d in time, the best %.0f.", len(plays), r.OnTime.Worst, r.Messages, r.OnTime.Best)
	}
}

// lucky is a sentence on luck for plays with these verdicts.
func lucky(count map[string]int, c Chance) string {
	n := 0
	for _, k := range count {
		n += k
	}
	switch {
	case n == 1:
		return "One play shows one way that it can go: --plays 20 shows how much is luck."
	case count[Go] == n:
		return fmt.Sprintf("All %d plays are GO. That tells that at least %.0f of 100 such missions go well; more plays (--plays) tell more.", n, c.LowPct)
	case len(count) == 1:
		return fmt.Sprintf("It is no bad luck: each of %d plays ends so.", n)
	}
	var parts []string
	for _, v := range []string{Go, Late, No} {
		if count[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[v], strings.ToUpper(v)))
		}
	}
	return fmt.Sprintf("It depends on luck: of %d plays, which differ in losses and jitter alone, are %s. Between %.0f and %.0f of 100 missions go well.", n, strings.Join(parts, ", "), c.LowPct, c.HighPct)
}

// differs says whether the plays differ in the number of messages in time.
func (r *Rehearsal) differs() bool {
	return slices.ContainsFunc(r.Each, func(p Play) bool { return p.OnTime != r.Each[0].OnTime })
}
