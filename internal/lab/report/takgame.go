package report

import "fmt"

// TAKGame is a field trial with TAK devices: the same events over the same link, with gateways and without.
type TAKGame struct {
	Link, Gateway, Server string  // Server of headquarters' LAN
	Seconds, Every        float64 // the devices report; s between two reports of one
	Devices, Ships        int     // Devices of each site
	Seed                  uint64
	Bound                 float64 // metres
	Runs                  []TAKGameRun
}

// TAKGameRun is one way of playing. Times are seconds, distances metres, nil never; octets are IP octets on the air.
type TAKGameRun struct {
	Aided                             bool
	Reports, Compared, Wrong, Missing int
	PerReport                         float64
	Up, Down                          int64
	MetS, FirstS, AllS                *float64
	MedianM, P95M, WorstM             *float64
	Alerts, Chats                     TAKCrossed
	Waiting                           int
}

// TAKCrossed is what became of alerts or chats.
type TAKCrossed struct {
	Sent, Came, Again   int
	MedianS, P95S, MaxS *float64
}

func (c TAKCrossed) came() string { return fmt.Sprintf("%d of %d", c.Came, c.Sent) }

func (c TAKCrossed) times() string {
	return never(c.MedianS) + ", " + never(c.P95S) + ", " + never(c.MaxS)
}

func (r TAKGameRun) name() string {
	if r.Aided {
		return "with gateways"
	}
	return "TCP alone"
}

func (r TAKGameRun) wrong() string { return fmt.Sprintf("%d of %d", r.Wrong, r.Compared) }

func metres(v *float64) string {
	if v == nil {
		return "-"
	}
	return numberText(*v, 1) + " m"
}

// OfTAKGame is the page of a field trial with TAK devices.
func OfTAKGame(g TAKGame) Page {
	ships := "a ship"
	if g.Ships > 1 {
		ships = fmt.Sprintf("%d ships", g.Ships)
	}
	p := Page{
		Title: fmt.Sprintf("TAK devices of HQ and %s over %s", ships, clean(g.Link)),
		Subtitle: fmt.Sprintf("%d devices at each site; each moves and reports every %s for %s. An alert of a ship every 20 s, a chat to all every 30 s, seed %d. At headquarters: %s.",
			g.Devices, secondsText(g.Every), secondsText(g.Seconds), g.Seed, clean(g.Server)),
		Foot: []string{
			fmt.Sprintf("Measured at the link emulator and in the devices, never in a gateway. Octets are IP octets on the air, all headers included, until the last alert and chat had come or was given up. Each report is compared with each other site's map five seconds later: wrong is more than %s m from where the unit is by it, or by one that it has made since.", numberText(g.Bound, 0)),
			"TCP alone: the same events, as they are, through one TCP connection from each ship to headquarters, as between TAK servers that federate" + by(g.Gateway) + ".",
		},
	}
	t := tableData{Caption: "The figures", Columns: []string{""}}
	for _, r := range g.Runs {
		t.Columns = append(t.Columns, r.name())
		if r.Aided {
			p.Tone = toneGood
			if r.Alerts.Came < r.Alerts.Sent || r.Chats.Came < r.Chats.Sent || r.Chats.Again > 0 {
				p.Tone = toneBad
			}
			p.Verdict = fmt.Sprintf("With gateways a report costs %s octets; %s comparisons were wrong; %s alerts and %s chats came.", numberText(r.PerReport, 1), r.wrong(), r.Alerts.came(), r.Chats.came())
		}
	}
	for _, row := range []struct {
		name string
		of   func(TAKGameRun) string
	}{
		{"reports", func(r TAKGameRun) string { return countText(int64(r.Reports)) }},
		{"octets on the link, up / down", func(r TAKGameRun) string { return countText(r.Up) + " / " + countText(r.Down) }},
		{"octets a report", func(r TAKGameRun) string { return numberText(r.PerReport, 1) }},
		{"reports that still wait at the end", func(r TAKGameRun) string { return countText(int64(r.Waiting)) }},
		{"gateways knew each other after", func(r TAKGameRun) string {
			if !r.Aided {
				return "-"
			}
			return never(r.MetS)
		}},
		{"first far unit shown everywhere after", func(r TAKGameRun) string { return never(r.FirstS) }},
		{"all far units shown everywhere after", func(r TAKGameRun) string { return never(r.AllS) }},
		{"comparisons that were wrong", TAKGameRun.wrong},
		{"off: median, 95 %, worst", func(r TAKGameRun) string { return metres(r.MedianM) + ", " + metres(r.P95M) + ", " + metres(r.WorstM) }},
		{"unit not shown at all", func(r TAKGameRun) string { return countText(int64(r.Missing)) }},
		{"alerts that came", func(r TAKGameRun) string { return r.Alerts.came() }},
		{"alerts: median, 95 %, worst", func(r TAKGameRun) string { return r.Alerts.times() }},
		{"chats that came; twice", func(r TAKGameRun) string { return fmt.Sprintf("%s; %d", r.Chats.came(), r.Chats.Again) }},
		{"chats: median, 95 %, worst", func(r TAKGameRun) string { return r.Chats.times() }},
	} {
		line := tableRow{Name: row.name}
		for _, r := range g.Runs {
			line.Cells = append(line.Cells, row.of(r))
		}
		t.Rows = append(t.Rows, line)
	}
	p.Sections = []section{{Title: "With gateways and without", Tables: []tableData{t}}}
	return p
}
