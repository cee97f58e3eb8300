package report

import (
	"fmt"
	"math"

	"aldis/internal/lab/trace"
)

// Game is a field trial: the same peers over the same link, with gateways and without.
type Game struct {
	Link, Gateway, Peers string
	Seconds              float64 // for which the peers send
	Every                float64 // s between two messages of a peer
	Octets               int     // of a message
	Ships                int
	Seed                 uint64
	Runs                 []GameRun
}

// GameRun is one way of playing. Times are seconds, nil never; octets are IP octets on the air.
type GameRun struct {
	Aided                  bool // with gateways
	Sent, Delivered, Wrong int  // messages; wrong ones came twice or changed
	Up, Down               int64
	DiscoveryS, FirstS     *float64
	MedianS, P95S, MostS   *float64
	Idle                   float64 // octets per second while no peer sends
	PayloadPct             float64
	Octets                 [][2]float64 // so far, by time
	Latencies              []float64    // in ascending order
	Capture                *trace.Report
}

func (r GameRun) name() string {
	if r.Aided {
		return "with gateways"
	}
	return "JXTA alone"
}

func (r GameRun) octets() int64 { return r.Up + r.Down }

func (r GameRun) arrived() string { return fmt.Sprintf("%d of %d", r.Delivered, r.Sent) }

// OfGame is the page of a field trial, which a newcomer reads after the demonstration.
func OfGame(g Game) Page {
	p := Page{
		Title: fmt.Sprintf("HQ and %s over %s", ships(g.Ships), clean(g.Link)),
		Subtitle: fmt.Sprintf("Unmodified JXTA peers (%s): %d octets each way every %s for %s, seed %d.", clean(g.Peers), g.Octets, secondsText(g.Every),
			secondsText(g.Seconds), g.Seed),
		Foot: []string{
			"Measured at the link emulator and in the peers, never in a gateway. Messages count from when the far end had its pipe open. Octets are IP octets on the air, until the last message had arrived or was given up.",
			"What crossed by kind is what the capture at the first ship's interface has: frames lost on their way to it are missing there. Made by gateway lab --html" + by(g.Gateway) + ".",
		},
	}
	var aided, alone *GameRun
	for i := range g.Runs {
		if g.Runs[i].Aided {
			aided = &g.Runs[i]
		} else {
			alone = &g.Runs[i]
		}
	}
	if aided != nil {
		p.Tone, p.Verdict = toneGood, fmt.Sprintf("With gateways %s messages arrived, for %s octets on the link.", aided.arrived(), countText(aided.octets()))
		if aided.Delivered < aided.Sent || aided.Wrong > 0 || aided.Sent == 0 {
			p.Tone = toneBad
		}
		if alone != nil {
			p.Verdict += fmt.Sprintf(" JXTA alone: %s, for %s octets.", alone.arrived(), countText(alone.octets()))
		}
	}
	both := func(label string, of func(*GameRun) string) {
		f := fact{Label: label}
		switch {
		case aided != nil:
			f.Value = of(aided)
			if alone != nil {
				f.Note = "JXTA alone: " + of(alone)
			}
		case alone != nil:
			f.Value, f.Note = of(alone), "JXTA alone"
		}
		p.Facts = append(p.Facts, f)
	}
	both("Octets on the link", func(r *GameRun) string { return countText(r.octets()) })
	both("Messages that arrived", func(r *GameRun) string { return r.arrived() })
	both("Latency, median", func(r *GameRun) string { return seconds(r.MedianS) })
	both("Service discovered after", func(r *GameRun) string { return never(r.DiscoveryS) })
	p.Sections = append(p.Sections, gameOverTime(g), gameTable(g))
	for _, r := range g.Runs {
		if s, ok := gameKinds(r); ok {
			p.Sections = append(p.Sections, s)
		}
	}
	return p
}

func by(gateway string) string {
	if gateway == "" {
		return ""
	}
	return ", " + clean(gateway)
}

func never(s *float64) string {
	if s == nil {
		return "never"
	}
	return secondsText(*s)
}

// gameOverTime are the plots that have all runs in them.
func gameOverTime(g Game) section {
	octets := xyPlot{Title: "Octets on the link so far", X: "seconds from the start of the ship's peer", Y: "octets", Line: true}
	latency := curvePlot{Title: "Latency: from the sending of a message to the listener", What: "messages that arrived"}
	for _, r := range g.Runs {
		octets.Of = append(octets.Of, xyCurve{fmt.Sprintf("%s: %s octets", r.name(), countText(r.octets())), r.Octets})
		latency.Of = append(latency.Of, sample{r.name(), r.Latencies})
	}
	return section{Title: "With gateways and without", Plots: []plot{octets, latency}}
}

// ships is a number of ships, in words.
func ships(n int) string {
	if n > 1 {
		return fmt.Sprintf("%d ships", n)
	}
	return "a ship"
}

// gameRow is a row of a table that has a column for each run.
type gameRow[R any] struct {
	name string
	of   func(R) string
}

// sideBySide is a table of such rows.
func sideBySide[R any](names []string, runs []R, figures []gameRow[R]) tableData {
	t := tableData{Caption: "The figures", Columns: append([]string{""}, names...)}
	for _, f := range figures {
		line := tableRow{Name: f.name}
		for _, r := range runs {
			line.Cells = append(line.Cells, f.of(r))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// gameTable is the scoreboard.
func gameTable(g Game) section {
	var names []string
	for _, r := range g.Runs {
		names = append(names, r.name())
	}
	t := sideBySide(names, g.Runs, []gameRow[GameRun]{
		{"messages that arrived", GameRun.arrived},
		{"came twice or changed", func(r GameRun) string { return fmt.Sprint(r.Wrong) }},
		{"service discovered after", func(r GameRun) string { return never(r.DiscoveryS) }},
		{"first data after", func(r GameRun) string { return never(r.FirstS) }},
		{"latency, median", func(r GameRun) string { return seconds(r.MedianS) }},
		{"latency, 95 % within", func(r GameRun) string { return seconds(r.P95S) }},
		{"latency, slowest", func(r GameRun) string { return seconds(r.MostS) }},
		{"octets to shore", func(r GameRun) string { return countText(r.Up) }},
		{"octets to the ship", func(r GameRun) string { return countText(r.Down) }},
		{"application octets of these", func(r GameRun) string { return numberText(r.PayloadPct, 1) + " %" }},
		{"octets a minute when nothing is said", func(r GameRun) string { return countText(int64(math.Round(60 * r.Idle))) }},
	})
	return section{Title: "Side by side", Tables: []tableData{t}}
}

// gameKinds is a section of the traffic by purpose: JXTA's messages, or the accounts of the airtime ledger.
func gameKinds(r GameRun) (section, bool) {
	if r.Capture == nil {
		return section{}, false
	}
	s := section{Title: "What crossed, by kind: " + r.name()}
	t, kinds := r.Capture.Timeline, tableData{Caption: "What the octets were for", Columns: []string{"", "octets"}}
	if r.Aided {
		if r.Capture.Link == nil {
			return section{}, false
		}
		t = r.Capture.Link.Timeline
		s.Text = []string{"Accounts of the airtime ledger: what each octet that gateways sent was for, headers included."}
	} else {
		s.Text = []string{"JXTA's messages count when they are whole. TCP/IP headers are those of all packets; sent again are octets that had crossed before."}
	}
	plots := overTimeOf(t, "Octets on the link by kind, from its first packet on", "", "")
	if len(plots) == 0 {
		return section{}, false
	}
	s.Plots = plots[:1]
	for _, series := range t.Series {
		var sum int64
		for _, n := range series.Octets {
			sum += n
		}
		kinds.Rows = append(kinds.Rows, tableRow{Name: clean(series.Name), Cells: []string{countText(sum)}})
	}
	if len(kinds.Rows) > maxKinds {
		kinds.Foot = fmt.Sprintf("%d kinds more.", len(kinds.Rows)-maxKinds)
		kinds.Rows = kinds.Rows[:maxKinds]
	}
	s.Tables = []tableData{kinds}
	return s, true
}
