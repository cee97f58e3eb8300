package replay

import (
	"slices"

	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
)

// Judgement compares two profiles over the same plays; percents are of the second against the first.
type Judgement struct {
	Plays     int     `json:"plays"`
	Messages  int     `json:"messages"`
	Octets    float64 `json:"octets"` // of the first, mean of the plays; latencies are over the messages of all plays
	MedianS   float64 `json:"median_s"`
	P95S      float64 `json:"p95_s"`
	MeanS     float64 `json:"mean_s"`
	TailS     float64 `json:"tail_s"` // mean of the slowest twentieth
	OctetsPct float64 `json:"octets_percent"`
	MedianPct float64 `json:"median_percent"`
	P95Pct    float64 `json:"p95_percent"`
	MeanPct   float64 `json:"mean_percent"`
	TailPct   float64 `json:"tail_percent"`
	Lost      int     `json:"lost_more"` // deliveries that the second lacks
}

// compare compares profile b with a over n variants; variants that were not played with both are left out.
func (s *Search) compare(a, b profile.Profile, from Number, n int) Judgement {
	return s.over(s.plays(a, from, n), b)
}

// over compares b with the profiles of the trials.
func (s *Search) over(trials []Trial, b profile.Profile) (j Judgement) {
	var octets float64
	var first, second []float64
	for _, t := range trials {
		x, okx := s.played[playKey{t.Profile, t.Trace, t.Variant}]
		y, oky := s.played[playKey{b, t.Trace, t.Variant}]
		if !okx || !oky {
			continue
		}
		j.Plays++
		j.Octets += float64(x.Octets)
		octets += float64(y.Octets)
		first, second = append(first, x.Times...), append(second, y.Times...)
		j.Lost += max(0, x.Delivered-y.Delivered) + max(0, y.Wrong-x.Wrong)
		if y.Err != "" {
			j.Lost += y.Expected + 1
		}
	}
	slices.Sort(first)
	slices.Sort(second)
	j.Messages, j.MedianS, j.P95S, j.MeanS, j.TailS = len(first), linkemu.Quantile(first, 0.5), linkemu.Quantile(first, 0.95), mean(first), tail(first)
	j.OctetsPct, j.MedianPct, j.P95Pct = change(j.Octets, octets), change(j.MedianS, linkemu.Quantile(second, 0.5)), change(j.P95S, linkemu.Quantile(second, 0.95))
	j.MeanPct, j.TailPct = change(j.MeanS, mean(second)), change(j.TailS, tail(second))
	j.Octets /= float64(max(1, j.Plays))
	return j
}

func change(from, to float64) float64 {
	if from == 0 {
		return 0
	}
	return 100 * (to - from) / from
}

// acceptable says whether nothing is lost, and nothing is worse than the rules allow.
func acceptable(j Judgement) bool {
	return j.Plays > 0 && j.Lost == 0 && j.OctetsPct <= 100*slack && j.P95Pct <= 100*slack &&
		j.MeanPct <= 100*meanSlack && j.TailPct <= 100*tailSlack
}

// worth is half of the savings in octets and in p95, as parts of one.
func worth(j Judgement) float64 { return -(j.OctetsPct + j.P95Pct) / 200 }

// promise is worth at first sight: in a single play p95 depends on chance losses, the median does not.
func promise(j Judgement) float64 { return -(j.OctetsPct + j.MedianPct) / 200 }

// mostly says whether a profile is no worse than the current one in most of the plays taken one by one.
func (s *Search) mostly(p profile.Profile) bool {
	n, good := 0, 0
	for _, t := range s.plays(p, 0, decisions) {
		x, y := s.played[playKey{s.current, t.Trace, t.Variant}], s.played[playKey{p, t.Trace, t.Variant}]
		n++
		if change(float64(x.Octets), float64(y.Octets))+change(linkemu.Quantile(x.Times, 0.95), linkemu.Quantile(y.Times, 0.95)) <= 0 {
			good++
		}
	}
	return float64(good) >= most*float64(n)
}

// same says whether a change of profile changed nothing in any play.
func (s *Search) same(a, b profile.Profile, n int) bool {
	for _, t := range s.plays(a, 0, n) {
		x, y := s.played[playKey{a, t.Trace, t.Variant}], s.played[playKey{b, t.Trace, t.Variant}]
		if x.Octets != y.Octets || x.Delivered != y.Delivered || x.Wrong != y.Wrong || x.Err != y.Err || !slices.Equal(x.Times, y.Times) {
			return false
		}
	}
	return true
}
