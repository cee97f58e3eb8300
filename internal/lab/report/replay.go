package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"aldis/internal/lab/replay"
)

func sorted[T cmp.Ordered](list []T) []T { return slices.Sorted(slices.Values(list)) }

// Replay is the page of one replay: the trace's own figures, the replay's and the published ones side by side.
func Replay(res *replay.Result) Page {
	how := "in virtual time"
	if res.Mode != "sim" {
		how = "live"
	}
	m := res.Messages
	p := Page{
		Title:    "Replay: " + clean(cmp.Or(res.Source, "trace")) + " on " + clean(res.Profile),
		Subtitle: fmt.Sprintf("played %s, seed %d", how, res.Seed),
		Foot:     []string{"Made by gateway replay --html. Octets are IP octets. Published: FFI/RAPPORT-2004/02843, captures on board."},
	}
	if res.Partial {
		p.Tone, p.Verdict = toneWarn, "The figures are partial."
		for _, problem := range res.Problems {
			p.Notes = append(p.Notes, sentence(problem))
		}
	}
	for _, n := range res.Notes {
		p.Notes = append(p.Notes, "not in the trace: "+sentence(n))
	}
	for _, n := range res.Remarks {
		p.Notes = append(p.Notes, sentence(n))
	}
	octets := res.LinkBytes.Up + res.LinkBytes.Down
	p.Facts = []fact{
		{"On the link", countText(octets) + " octets", countText(res.LinkPackets.Up+res.LinkPackets.Down) + " datagrams"},
		{"Arrived", fmt.Sprintf("%d of %d", m.Delivered, m.Expected), fmt.Sprintf("%d twice, %d changed, %d out of order", m.Duplicates, m.Corrupted, m.OutOfOrder)},
		{"Latency, median", seconds(res.Latency.Median), "95 % within " + seconds(res.Latency.P95) + ", slowest " + seconds(res.Latency.Max)},
		{"Busy", fmt.Sprintf("%.2f %%", max(res.BusyPct.Up, res.BusyPct.Down)), "of the time, the busier direction"},
	}
	p.Sections = []section{
		{Title: "Over time", Plots: replayPlots(res)},
		{Title: "Beside the trace and what was published", Tables: []tableData{besideTable(res)}},
		{Title: "The link", Tables: []tableData{bothWays(res), kindsTable(res)}},
	}
	return p
}

func seconds(v *float64) string {
	if v == nil {
		return "none"
	}
	return secondsText(*v)
}

func besideTable(res *replay.Result) tableData {
	t := tableData{Caption: "The same run", Columns: []string{"", "trace", "replay", "published"}}
	pub := res.Captures.Published.TotalS > 0
	row := func(name, trace, replay, published string) {
		if !pub {
			published = ""
		}
		t.Rows = append(t.Rows, tableRow{Name: name, Cells: []string{trace, replay, published}})
	}
	count := func(v *int64) string {
		if v == nil {
			return ""
		}
		return countText(*v)
	}
	one := func(v float64) string { return value(v, 2) }
	opt := func(v *float64) string {
		if v == nil {
			return ""
		}
		return one(*v)
	}
	c := res.Captures
	row("duration, s", one(c.Trace.TotalS), one(c.Replay.TotalS), one(c.Published.TotalS))
	row("octets on the link", count(c.Trace.TotalBytes), count(c.Replay.TotalBytes), count(c.Published.DataBytes))
	row("packets", count(c.Trace.Packets), count(c.Replay.Packets), "")
	row("sent again", count(c.Trace.Retransmissions), count(c.Replay.Retransmissions), "")
	found := func(of string, b replay.Beside[map[string]float64]) {
		names := sorted(slices.Collect(maps.Keys(b.Replay)))
		for name := range b.Trace {
			if _, ok := b.Replay[name]; !ok {
				names = append(names, name)
			}
		}
		at := func(m map[string]float64, name string) string {
			if v, ok := m[name]; ok {
				return one(v)
			}
			return ""
		}
		slices.Sort(names)
		for i, name := range names {
			if i == maxServices {
				t.Foot = fmt.Sprintf("%d services more are in --json.", len(names)-maxServices)
				break
			}
			row(of+" finds "+clean(name)+", s", at(b.Trace, name), at(b.Replay, name), at(b.Published, name))
		}
	}
	found("ship", res.DiscoveryS)
	found("shore", res.ShoreFindsS)
	row("pipe set-up, s", opt(res.PipeSetupS.Trace), opt(res.PipeSetupS.Replay), opt(res.PipeSetupS.Published))
	a := res.Application
	row("application octets in", countText(a.Trace.In), countText(a.Replay.In), countText(a.Published.In))
	row("application octets out", countText(a.Trace.Out), countText(a.Replay.Out), countText(a.Published.Out))
	row("of the link's octets, %", "", one(res.PayloadRatio.Replay), one(res.PayloadRatio.Published))
	return t
}

func bothWays(res *replay.Result) tableData {
	t := tableData{Caption: "By direction", Columns: []string{"", "to shore", "to the ship"}}
	row := func(name, up, down string) { t.Rows = append(t.Rows, tableRow{Name: name, Cells: []string{up, down}}) }
	rate := func(bps int) string {
		if bps == 0 {
			return "any"
		}
		return countText(int64(bps))
	}
	row("octets", countText(res.LinkBytes.Up), countText(res.LinkBytes.Down))
	row("datagrams", countText(res.LinkPackets.Up), countText(res.LinkPackets.Down))
	row("lost on the air", countText(res.Lost.Up), countText(res.Lost.Down))
	row("dropped by full queues", countText(res.Dropped.Up), countText(res.Dropped.Down))
	row("busy, % of the time", value(res.BusyPct.Up, 2), value(res.BusyPct.Down, 2))
	row("applications offer, bit/s", numberText(res.Offered.Up, 0), numberText(res.Offered.Down, 0))
	row("the link takes, bit/s", rate(res.RateBps.Up), rate(res.RateBps.Down))
	return t
}

func kindsTable(res *replay.Result) tableData {
	t := tableData{Caption: "What the octets were for", Columns: []string{"", "octets"}}
	kinds := slices.SortedFunc(maps.Keys(res.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(res.Kinds[b], res.Kinds[a]), cmp.Compare(a, b))
	})
	for _, kind := range kinds {
		t.Rows = append(t.Rows, tableRow{Name: clean(kind), Cells: []string{countText(res.Kinds[kind])}})
	}
	return t
}
