package report

import (
	"fmt"

	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
)

// XMPPPlays is the page of one play of the stanzas of XMPP users, or of several with the verdict on them.
func XMPPPlays(source, verdict, line string, plays []trace.XMPPCost) Page {
	c := plays[0]
	p := Page{
		Title:    "Replay: " + clean(source) + " on " + clean(c.Profile),
		Subtitle: fmt.Sprintf("%d stanzas of XMPP users for the other site, played in virtual time, first seed %d", c.Stanzas, c.Seed),
		Facts: []fact{
			{"On the link", countText(c.Octets) + " octets", countText(c.Datagrams) + " datagrams"},
			{"The stanzas", countText(c.XMPP) + " octets", numberText(c.UnaidedPct, 0) + " % of the link, each once, without any header"},
			{"Busy", numberText(c.BusyPct, 1) + " %", numberText(c.AirMinutes, 2) + " min on the air"},
		},
		Foot: []string{"Everybody who says a line in a room has entered it before. What the servers answer, and who else hears a line, is not played."},
	}
	if verdict != "" {
		p.Verdict, p.Tone = sentence(line), map[string]tone{replay.Go: toneGood, replay.Late: toneWarn, replay.No: toneBad}[verdict]
	}
	t := tableData{Caption: "By kind", Columns: []string{"seed, kind", "said", "came", "refused or expired", "missing", "median, s", "slowest, s"}}
	for _, c := range plays {
		for _, k := range c.Kinds {
			t.Rows = append(t.Rows, tableRow{Name: fmt.Sprintf("%d, %s", c.Seed, k.Kind), Cells: []string{fmt.Sprint(k.Said), fmt.Sprint(k.Came), fmt.Sprint(k.Ended),
				fmt.Sprint(k.Missing), numberText(k.MedianS, 1), numberText(k.MaxS, 1)}})
		}
	}
	p.Sections = append(p.Sections, section{Title: "What became of it", Tables: []tableData{t}})
	return p
}
