package report

import (
	"fmt"
	"slices"

	"aldis/internal/lab/air"
)

// Air is the page on how full links get: a table for each scenario, and its plots.
func Air(r air.Report) Page {
	missed, asked := r.Missed()
	p := Page{
		Title:    "How full a link gets",
		Subtitle: fmt.Sprintf("Whole gateways over emulated links in virtual time, %s, %s.", seedsText(r.Seeds), r.Version),
		Tone:     toneGood,
		Verdict:  fmt.Sprintf("%d of %d rows hold what was asked.", asked-missed, asked),
		Foot: []string{
			"The limit is the octets of a message at the rate of the link and the mean delay one way, and nothing else. Bound: what no sender can beat, where it is computed (internal/lab/air, bound.go): it knows at once what was lost, fills every datagram, and pays headers, seal and loss. Where two bounds stand, the second has datagrams of the size that suits best.",
			"Before: version 0.1; in the tables channel and star commit 51151a2, measured by others. Of a message that did not arrive counts the time until the end of the play.",
			"A row is judged by the median of the seeds, or by what its name says. \"bound\" misses what was asked and is within 5 % of what is possible.",
		},
	}
	if r.Live {
		p.Subtitle = fmt.Sprintf("Gateways as processes in network namespaces, the link emulator between them, in real time, %s, %s.", seedsText(r.Seeds), r.Version)
		p.Foot = append(p.Foot, "Virtual: the median of the same seeds in virtual time. Real gateways share the seed's losses and delays, not the moments at which packets meet them.",
			fmt.Sprintf("The emulator handled what was due at most %.0f ms late. A second and more means that the machine was too busy for these figures.", 1000*r.LateS))
	}
	if missed > 0 {
		p.Tone = toneWarn
	}
	names, about := air.Names()
	for i, name := range names {
		t := tableData{Caption: about[i], Columns: []string{"", "before", "must; aim", "measured", "median", "least to most", "bound", "", "unit"}}
		if r.Live {
			t.Columns = append(t.Columns, "virtual")
		}
		for _, result := range r.Results {
			if result.Table != name {
				continue
			}
			for _, row := range result.Rows {
				cells := slices.Insert(airCells(row), 3, numberText(row.Median, 2))
				if r.Live {
					cells = append(cells, numberText(row.Virtual, 2))
				}
				what := result.Link + ": " + row.What
				if fate := airFate(row); fate != "" {
					what += " (" + fate + ")"
				}
				t.Rows = append(t.Rows, tableRow{Name: what, Cells: cells})
			}
		}
		if len(t.Rows) > 0 {
			p.Sections = append(p.Sections, section{Title: name, Tables: []tableData{t}})
		}
	}
	if plots := airPlots(r); len(plots) > 0 {
		p.Sections = append(p.Sections, section{Title: "Plots", Plots: plots})
	}
	return p
}

func airCells(row air.Row) []string {
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	figure := func(v float64) string { return numberText(v, 2) }
	goals, bound := "", ""
	switch {
	case row.Asked && row.Aim > row.Must && !row.More:
		goals = "-; " + figure(row.Aim)
	case row.Asked:
		goals = figure(row.Must) + "; " + figure(row.Aim)
	}
	if row.Bound > 0 {
		bound = figure(row.Bound)
	}
	if row.Best > 0 && figure(row.Best) != bound {
		bound += "; " + figure(row.Best)
	}
	return []string{dash(row.Before), dash(goals), figure(row.Value), figure(row.Least) + " to " + figure(row.Most), dash(bound), dash(row.Verdict()), dash(row.Unit)}
}

func seedsText(seeds []uint64) string {
	switch n := len(seeds); {
	case n == 1:
		return fmt.Sprintf("seed %d", seeds[0])
	case n > 1 && seeds[n-1]-seeds[0] == uint64(n-1):
		return fmt.Sprintf("seeds %d to %d", seeds[0], seeds[n-1])
	}
	return fmt.Sprintf("%d seeds", len(seeds))
}

// airPlots are the plots with the rows that belong into them.
func airPlots(r air.Report) (list []plot) {
	for _, kind := range []xyPlot{ // of the paper, only its text has numbers; its curves were printed as pictures
		{name: "load", Title: "Load against latency", X: "offered, % of the rate", Y: "median, times the limit", LogY: true},
		{name: "goodput", Title: "Load against goodput", X: "offered, % of the rate", Y: "goodput, % of the rate"},
		{name: "sites", Title: "Sites against octets", X: "sites", Y: "octets for each receiver"},
		{name: "receivers", Title: "Receivers against time, hf-2400", X: "receivers", Y: "until all have it, times the limit"},
		{name: "paper-delay", Title: "Size against time, the paper's beside ours", X: "octets", Y: "median, ms", LogX: true, LogY: true, Of: []xyCurve{
			{"unicast, the paper, campus LAN", [][2]float64{{1, 1.28}}}, {"groupcast, the paper, campus LAN", [][2]float64{{1, 1.36}}}}},
		{name: "paper-octets", Title: "Size against octets on the air", X: "octets", Y: "octets on the air of a message", LogX: true, LogY: true},
		{name: "paper-goodput", Title: "Size against goodput, the paper's beside ours", X: "octets", Y: "octets a second", LogX: true, LogY: true, Of: []xyCurve{
			{"unicast, the paper, campus LAN", [][2]float64{{512 << 10, 6.7e6}}}, {"groupcast, the paper, campus LAN", [][2]float64{{512 << 10, 6.4e6}}}}},
		{name: "loss", Title: "Loss against percentiles of single messages, iridium-directip", X: "loss, %", Y: "times the limit", LogY: true},
	} {
		published := len(kind.Of)
		for _, result := range r.Results {
			for _, row := range result.Rows {
				if row.Plot == nil || row.Plot.Plot != kind.name || row.N == 0 {
					continue
				}
				at := slices.IndexFunc(kind.Of, func(c xyCurve) bool { return c.Name == row.Plot.Curve })
				if at < 0 {
					at = len(kind.Of)
					kind.Of = append(kind.Of, xyCurve{Name: row.Plot.Curve})
				}
				kind.Of[at].Points = append(kind.Of[at].Points, [2]float64{row.Plot.X, row.Value})
			}
		}
		if len(kind.Of) > published {
			list = append(list, kind)
		}
	}
	return list
}
