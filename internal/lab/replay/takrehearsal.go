package replay

import (
	"fmt"
	"slices"
	"time"

	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// Picture is the expected outcome of a trace of TAK devices.
type Picture struct {
	Source    string          `json:"source,omitempty"`
	Profile   string          `json:"profile"`
	Summary   string          `json:"summary"`
	Verdict   string          `json:"verdict"`
	Line      string          `json:"line"` // the verdict in words
	Luck      string          `json:"luck"`
	Chance    Chance          `json:"chance_of_go"`
	DeadlineS float64         `json:"deadline_s"` // of markers, chats and similar events
	BoundM    float64         `json:"bound_m"`    // metres within which 95 of 100 reports must be shown
	Plays     []trace.CoTCost `json:"plays"`      // in order of seeds
	WaysOut   []string        `json:"ways_out,omitempty"`
}

// JudgePicture judges several plays of the events of TAK devices. There must be at least one. bound is in metres.
func JudgePicture(plays []trace.CoTCost, p profile.Profile, deadline time.Duration, bound float64) *Picture {
	r := &Picture{Profile: p.Name, Summary: p.Summary, DeadlineS: deadline.Seconds(), BoundM: bound, Plays: plays}
	count := map[string]int{}
	rank := map[string]int{Go: 0, Late: 1, No: 2}
	worst := 0
	for i, c := range plays {
		v := r.PlayVerdict(c)
		count[v]++
		if rank[v] > rank[r.PlayVerdict(plays[worst])] {
			worst = i
		}
	}
	c := plays[worst]
	r.Verdict = r.PlayVerdict(c)
	r.Chance = chanceOf(count[Go], len(plays))
	r.Luck = lucky(count, r.Chance)
	off := slices.MaxFunc(plays, func(a, b trace.CoTCost) int { return int(1e3 * (a.P95M - b.P95M)) }).P95M
	slow := slices.MaxFunc(plays, func(a, b trace.CoTCost) int { return int(1e3 * (a.MaxS - b.MaxS)) }).MaxS
	switch {
	case r.Verdict == No && c.Unshown > 0:
		r.Line = fmt.Sprintf("NO. %d of %d markers, chats and the like never arrive on %s.", c.Unshown, c.Unshown+c.Shown, p.Name)
	case r.Verdict == No:
		r.Line = fmt.Sprintf("NO. %d of %d reports are of units that the far map does not show on %s.", c.Missing, c.Reports, p.Name)
	case r.Verdict == Late && c.MaxS > r.DeadlineS:
		r.Line = fmt.Sprintf("LATE. A marker, chat or the like takes %s on %s, more than %s.", Duration(c.MaxS), p.Name, Duration(r.DeadlineS))
	case r.Verdict == Late:
		r.Line = fmt.Sprintf("LATE. Units are shown up to %.0f m off in 95 of 100 reports on %s, more than %.0f m.", c.P95M, p.Name, bound)
	default:
		r.Line = fmt.Sprintf("GO. 95 of 100 reports are shown within %.0f m on %s", off, p.Name)
		if c.Shown > 0 {
			r.Line += fmt.Sprintf(", and markers, chats and the like within %s", Duration(slow))
		}
		r.Line += "."
	}
	if c.BusyPct > 100*crowded {
		r.WaysOut = append(r.WaysOut, fmt.Sprintf("The link is busy %.0f %% of the time: a larger bound in [tak], or [[tak.rule]] for fewer units, takes less.", c.BusyPct))
	}
	if r.Verdict == Late && c.MaxS > r.DeadlineS {
		r.WaysOut = append(r.WaysOut, fmt.Sprintf("A deadline of %s would be met in each play.", Duration(roundUp(slow))))
	}
	return r
}

// PlayVerdict is the verdict of one play.
func (r *Picture) PlayVerdict(c trace.CoTCost) string {
	switch {
	case c.Unshown > 0, c.Reports > 0 && 20*c.Missing > c.Reports:
		return No
	case c.MaxS > r.DeadlineS, c.P95M > r.BoundM:
		return Late
	}
	return Go
}
