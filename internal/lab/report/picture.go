package report

import (
	"fmt"
	"strings"

	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
)

// costTable is a row for each play of events of TAK devices. name returns the name by which a play is known.
func costTable(caption, column string, list []trace.CoTCost, name func(trace.CoTCost) string) tableData {
	t := tableData{Caption: caption, Columns: []string{column, "octets", "a report", "busy, %", "unaided, %", "unit off, m", "95 %, m", "event 95 %, s", "slowest, s", "not shown"},
		Foot: "Unaided: how full the events alone, without a header, make the link ship to shore. Unit off: how far a unit is shown from where it is. Event: markers, chats and the like."}
	for _, x := range list {
		t.Rows = append(t.Rows, tableRow{Name: name(x), Cells: []string{countText(x.Octets), numberText(x.PerReport, 1), numberText(x.BusyPct, 1), numberText(x.UnaidedPct, 0),
			numberText(x.MedianM, 0), numberText(x.P95M, 0), numberText(x.P95S, 1), numberText(x.MaxS, 1), fmt.Sprint(x.Unshown)}})
	}
	return t
}

// Picture is the page of a rehearsal with TAK devices.
func Picture(r *replay.Picture) Page {
	p := Page{
		Title:    "Rehearsal: " + clean(r.Source) + " on " + clean(r.Profile),
		Subtitle: clean(r.Summary) + fmt.Sprintf(". %d events of TAK devices, played %d times with other losses; the verdict is that of the worst play.", r.Plays[0].Events, len(r.Plays)),
		Verdict:  sentence(r.Line + " " + r.Luck),
		Tone:     map[string]tone{replay.Go: toneGood, replay.Late: toneWarn, replay.No: toneBad}[r.Verdict],
		Foot:     []string{"All devices are on the ship's side, with the defaults of [tak]. Each report is compared with the far map five seconds later."},
	}
	if len(r.WaysOut) > 0 {
		p.Sections = append(p.Sections, section{Title: "What would help", Text: r.WaysOut})
	}
	t := costTable("The plays: gateway replay TRACE --profile P --seed N repeats one", "seed", r.Plays,
		func(c trace.CoTCost) string { return fmt.Sprintf("%d, %s", c.Seed, strings.ToUpper(r.PlayVerdict(c))) })
	p.Sections = append(p.Sections, section{Title: "Each play", Tables: []tableData{t}})
	return p
}

// TAKReplay is the page of one play of events of TAK devices; how is the way in which they were played.
func TAKReplay(source, how string, c *trace.CoTCost) Page {
	return Page{
		Title:    "Replay: " + clean(source) + " on " + clean(c.Profile),
		Subtitle: fmt.Sprintf("%d events of TAK devices, %d of them reports of units, played %s, seed %d", c.Events, c.Reports, how, c.Seed),
		Facts: []fact{
			{"On the link", countText(c.Octets) + " octets", countText(c.Datagrams) + " datagrams, " + numberText(c.PerReport, 1) + " octets a report"},
			{"The events", countText(c.CoT) + " octets", numberText(c.UnaidedPct, 0) + " % of the link, without any header"},
			{"Busy", numberText(c.BusyPct, 1) + " %", numberText(c.AirMinutes, 2) + " min on the air"},
			{"Unit off", numberText(c.MedianM, 0) + " m", numberText(c.P95M, 0) + " m in 95 of 100 reports"},
			{"Events shown", fmt.Sprintf("%d of %d", c.Shown, c.Shown+c.Unshown), "median " + secondsText(c.MedianS) + ", slowest " + secondsText(c.MaxS)},
			{"Not on the map", countText(int64(c.Missing)), "reports of units that the far map did not show yet"},
		},
		Foot: []string{"All devices are on the ship's side, with the defaults of [tak]. Events are markers, chats and the like; a report is compared with the far map five seconds later."},
	}
}
