package report

import (
	"fmt"
	"math"
	"strings"

	"aldis/internal/lab/replay"
)

const (
	maxLate  = 10 // messages that are listed
	maxPlays = 20 // plays that have a row
)

// Rehearsal is the page for a duty officer: the verdict, the cost, the reasons, and the remedies.
func Rehearsal(r *replay.Rehearsal) Page {
	p := Page{
		Title:    "Rehearsal: " + clean(r.Source) + " on " + r.Profile,
		Subtitle: fmt.Sprintf("%s. %s of trace, played %d times with other losses; the verdict is that of the worst play.", r.Summary, replay.Duration(r.TraceS), r.Plays),
		Verdict:  sentence(r.Line + " " + r.Luck),
		Tone:     map[string]tone{replay.Go: toneGood, replay.Late: toneWarn, replay.No: toneBad}[r.Verdict],
		Foot: []string{
			"Typical is the median of the plays, best and worst are the outermost; each line has its own, which need not be of one play. Octets are IP octets. A credit is one started 50 octets of a datagram without its IP and UDP headers, one SBD message each.",
			"A call on demand begins with the first octet and is ended after 30 s of silence; setting it up is not counted. The plays are in virtual time over an emulated link: docs/replay.md says how far that was right.",
		},
	}
	c := r.Cost
	whole := func(v float64) string { return countText(int64(math.Round(v))) }
	two := func(v float64) string { return numberText(v, 2) }
	p.Facts = []fact{
		{"In time", through(r.OnTime.Worst, r.OnTime.Best, whole) + " of " + countText(int64(r.Messages)), "within " + replay.Duration(r.DeadlineS)},
		{"Slowest", span(r.MaxS, replay.Duration), "median " + span(r.MedianS, replay.Duration) + ", 95 % within " + span(r.P95S, replay.Duration)},
		{"On the air", span(sum(c.AirMinutesUp, c.AirMinutesDown), two) + " min", span(c.AirMinutesUp, two) + " to shore, " + span(c.AirMinutesDown, two) + " to the ship"},
		{"Octets", span(c.Octets, whole), span(c.Datagrams, whole) + " datagrams"},
		{"Iridium SBD", span(c.Credits, whole) + " credits", "of 50 octets"},
		{"A call", span(c.HeldMinutes, whole) + " min", fmt.Sprintf("held throughout; on demand %s calls, %s min", span(c.Calls, whole), span(c.CallMinutes, whole))},
	}
	for _, m := range c.Money {
		p.Facts = append(p.Facts, fact{"Cost, " + m.For, clean(fmt.Sprintf("%.2f %s", m.Amount, m.Currency)), ""})
	}
	for _, problem := range r.Cuts {
		p.Notes = append(p.Notes, sentence(problem))
	}
	for _, n := range r.Notes {
		p.Notes = append(p.Notes, "not in the trace: "+sentence(n))
	}
	for _, n := range r.Remarks {
		p.Notes = append(p.Notes, "in the worst play: "+sentence(n))
	}
	if len(r.Reasons) > 0 {
		p.Sections = append(p.Sections, section{Title: "Why", Text: r.Reasons})
	}
	if len(r.WaysOut) > 0 {
		p.Sections = append(p.Sections, section{Title: "What would help", Text: r.WaysOut})
	}
	if rows := r.Worst.WayTable(); len(r.Bearers) > 0 {
		t := tableData{Caption: "Which link messages took in the worst play, by [[route]] rule", Columns: rows[0]}
		for _, row := range rows[1:] {
			t.Rows = append(t.Rows, tableRow{Name: row[0], Cells: row[1:]})
		}
		of := tableData{Caption: "What the links carried", Columns: []string{"link", "profile", "octets to shore", "octets to the ship", "money"}}
		for _, b := range r.Bearers {
			of.Rows = append(of.Rows, tableRow{Name: b.Link, Cells: []string{b.Profile, countText(b.Octets.Up), countText(b.Octets.Down), numberText(b.Money, 2)}})
		}
		p.Sections = append(p.Sections, section{Title: "Links", Tables: []tableData{t, of}})
	}
	if len(r.Missed) > 0 {
		p.Sections = append(p.Sections, missedSection(r))
	}
	p.Sections = append(p.Sections, section{Title: "Each play", Tables: []tableData{eachPlay(r)}})
	p.Sections = append(p.Sections, section{Title: "Figures", Tables: []tableData{spreads(r)}})
	if len(r.Others) > 0 {
		t := tableData{Caption: "The same trace on other links, played once", Columns: []string{"link", "verdict", "slowest", "octets", ""}}
		for _, o := range r.Others {
			t.Rows = append(t.Rows, tableRow{Name: o.Profile, Cells: []string{o.Verdict, replay.Duration(o.WorstS), countText(o.Octets), o.Summary}})
		}
		p.Sections = append(p.Sections, section{Title: "Other links", Tables: []tableData{t}})
	}
	plots := section{Title: "The worst play over time", Plots: replayPlots(r.Worst)}
	for i := range plots.Plots {
		if c, ok := plots.Plots[i].(curvePlot); ok {
			c.LimitS, c.Label = r.DeadlineS, "deadline"
			plots.Plots[i] = c
		}
	}
	p.Sections = append(p.Sections, plots)
	return p
}

// through is a figure from the least to the most, or one number if both read alike.
func through(least, most float64, show func(float64) string) string {
	if a, b := show(least), show(most); a != b {
		return a + " to " + b
	}
	return show(most)
}

// span is a figure of all plays.
func span(s replay.Spread, show func(float64) string) string { return through(s.Best, s.Worst, show) }

// sum is only approximate: the worst plays of the two directions may be different plays.
func sum(a, b replay.Spread) replay.Spread {
	return replay.Spread{Best: a.Best + b.Best, Typical: a.Typical + b.Typical, Worst: a.Worst + b.Worst}
}

// eachPlay is a row for each seed.
func eachPlay(r *replay.Rehearsal) tableData {
	t := tableData{Caption: "The plays: the same trace and link, other losses and jitter. gateway replay TRACE --profile P --seed N repeats one",
		Columns: []string{"seed", "verdict", "in time", "late", "never", "median, s", "95 %, s", "slowest, s", "octets", "lost on the air", "dropped"}}
	for i, p := range r.Each {
		if i == maxPlays {
			t.Foot = fmt.Sprintf("%d more are in --json.", len(r.Each)-maxPlays)
			break
		}
		t.Rows = append(t.Rows, tableRow{Name: fmt.Sprint(p.Seed), Cells: []string{strings.ToUpper(p.Verdict), fmt.Sprint(p.OnTime), fmt.Sprint(p.Late), fmt.Sprint(p.Never),
			numberText(p.MedianS, 2), numberText(p.P95S, 2), numberText(p.MaxS, 2), countText(p.Octets), fmt.Sprint(p.LostOnAir), fmt.Sprint(p.Dropped)}})
	}
	return t
}

func missedSection(r *replay.Rehearsal) section {
	t := tableData{Caption: "Messages that miss their deadline in the worst play, the first ones", Columns: []string{"sent after", "octets", "takes", "from", "to", "because"}}
	for _, m := range r.Missed[:min(len(r.Missed), maxLate)] {
		takes, why := "never arrives", m.Cause.String()
		if m.ArrivedS != nil {
			takes = replay.Duration(*m.ArrivedS - m.SentS)
		}
		t.Rows = append(t.Rows, tableRow{Name: replay.Duration(m.SentS), Cells: []string{countText(int64(m.Octets)), takes, clean(m.From), clean(m.To), why}})
	}
	if more := int(r.Expired.Worst) - len(t.Rows); more > 0 {
		t.Foot = fmt.Sprintf("%s more are in --json.", countText(int64(more)))
	}
	return section{Title: "What is late", Tables: []tableData{t}}
}

func spreads(r *replay.Rehearsal) tableData {
	t := tableData{Columns: []string{"", "best", "typical", "worst"}}
	row := func(name string, s replay.Spread, show func(float64) string) {
		t.Rows = append(t.Rows, tableRow{Name: name, Cells: []string{show(s.Best), show(s.Typical), show(s.Worst)}})
	}
	whole := func(v float64) string { return countText(int64(math.Round(v))) }
	two := func(v float64) string { return numberText(v, 2) }
	row("messages in time", r.OnTime, whole)
	row("late or never", r.Expired, whole)
	row("never", r.Never, whole)
	row("latency, median, s", r.MedianS, two)
	row("latency, 95 %, s", r.P95S, two)
	row("latency, slowest, s", r.MaxS, two)
	c := r.Cost
	row("on the air to shore, min", c.AirMinutesUp, two)
	row("on the air to the ship, min", c.AirMinutesDown, two)
	row("link busy to shore, %", r.BusyPct.Up, two)
	row("link busy to the ship, %", r.BusyPct.Down, two)
	row("octets", c.Octets, whole)
	row("datagrams", c.Datagrams, whole)
	row("Iridium SBD credits", c.Credits, whole)
	row("call held throughout, min", c.HeldMinutes, whole)
	row("calls on demand", c.Calls, whole)
	row("calls on demand, min", c.CallMinutes, whole)
	waiting := func(when string, q replay.UpDown[replay.Waiting]) {
		t.Rows = append(t.Rows, tableRow{Name: "messages waiting " + when, Cells: []string{"", "", countText(int64(q.Up.Messages + q.Down.Messages))}},
			tableRow{Name: "their octets", Cells: []string{"", "", countText(q.Up.Octets + q.Down.Octets)}})
	}
	waiting("when the trace ends", r.WaitingAtEnd)
	waiting("after all", r.WaitingAfter)
	return t
}

// replayPlots are octets, queue and latency of a play.
func replayPlots(res *replay.Result) []plot {
	if res == nil {
		return nil
	}
	kinds := map[string][]float64{}
	var order []string
	waiting := stepPlot{Title: "Queue: messages sent and not arrived, both directions", Unit: "messages", SlotS: res.BinS}
	for i, b := range res.Bins {
		for _, m := range []map[string]int64{b.Octets.Up, b.Octets.Down} {
			for kind, n := range m {
				if kinds[kind] == nil {
					kinds[kind] = make([]float64, len(res.Bins))
					order = append(order, kind)
				}
				kinds[kind][i] += float64(n)
			}
		}
		q := replay.WaitingAt(res, b.T+res.BinS)
		waiting.Values = append(waiting.Values, float64(q.Up.Messages+q.Down.Messages))
	}
	air := stackPlot{Title: "Airtime: octets on the link by what they were for", Unit: "octets", SlotS: res.BinS, PerS: true}
	for _, kind := range sorted(order) {
		air.Series = append(air.Series, plotSeries{kind, kinds[kind]})
	}
	if up, down := res.RateBps.Up, res.RateBps.Down; up > 0 && down > 0 {
		air.Limit, air.Label = float64(min(up, down))/8, "what the slower direction takes"
	}
	var up, down []float64
	for _, s := range res.Samples {
		if v, ok := s.Latency(); ok && s.Up {
			up = append(up, v)
		} else if ok {
			down = append(down, v)
		}
	}
	latency := curvePlot{Title: "Latency: from a message's sending to its arrival", What: "messages",
		Of: []sample{{"to shore", sorted(up)}, {"to the ship", sorted(down)}}}
	return []plot{air, waiting, latency}
}
