package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"aldis/internal/lab/trace"
)

const (
	maxServices = 40 // rows of table 5.8
	maxKinds    = 40 // rows of the tables of messages and elements
)

// figure is a row of tables 5.1 to 5.7: a value of a capture, and the same value of those published.
type figure struct {
	name     string
	decimals int // -1: a count
	of       func(trace.Figures) float64
}

// published are tables 5.1 to 5.7 of the report of 2004.
var published = []struct {
	number, caption string
	rows            []figure
}{
	{"5.1", "Connections", []figure{
		{"connections", -1, func(f trace.Figures) float64 { return float64(f.Connections) }},
		{"total time, s", 1, func(f trace.Figures) float64 { return f.TotalS }},
		{"connections per minute", 2, func(f trace.Figures) float64 { return ratio(60*float64(f.Connections), f.TotalS) }},
	}},
	{"5.2", "Duration of connections, seconds", []figure{
		{"least", 1, func(f trace.Figures) float64 { return f.ConnMinS }},
		{"most", 1, func(f trace.Figures) float64 { return f.ConnMaxS }},
		{"mean", 1, func(f trace.Figures) float64 { return f.ConnAvgS }},
	}},
	{"5.3", "Duration of connections, packets", []figure{
		{"least", -1, func(f trace.Figures) float64 { return float64(f.ConnMinPkts) }},
		{"most", -1, func(f trace.Figures) float64 { return float64(f.ConnMaxPkts) }},
		{"mean", 1, func(f trace.Figures) float64 { return f.ConnAvgPkts }},
		{"all", -1, func(f trace.Figures) float64 { return float64(f.Packets) }},
	}},
	{"5.4", "Setting up a connection, seconds", []figure{
		{"least", 3, func(f trace.Figures) float64 { return f.SetupMinS }},
		{"most", 3, func(f trace.Figures) float64 { return f.SetupMaxS }},
		{"mean", 3, func(f trace.Figures) float64 { return f.SetupAvgS }},
	}},
	{"5.5", "Data packets", []figure{
		{"with payload", -1, func(f trace.Figures) float64 { return float64(f.DataPackets) }},
		{"of all packets, %", 2, func(f trace.Figures) float64 { return ratio(100*float64(f.DataPackets), float64(f.Packets)) }},
	}},
	{"5.6", "Data octets, headers included", []figure{
		{"with payload", -1, func(f trace.Figures) float64 { return float64(f.DataBytes) }},
		{"without", -1, func(f trace.Figures) float64 { return float64(f.TCPBytes) }},
		{"all", -1, func(f trace.Figures) float64 { return float64(f.TotalBytes) }},
		{"with payload, %", 2, func(f trace.Figures) float64 { return ratio(100*float64(f.DataBytes), float64(f.TotalBytes)) }},
	}},
	{"5.7", "Retransmissions", []figure{
		{"packets", -1, func(f trace.Figures) float64 { return float64(f.Retransmissions) }},
		{"of all packets, %", 2, func(f trace.Figures) float64 { return ratio(100*float64(f.Retransmissions), float64(f.Packets)) }},
	}},
}

var publishedColumns = []string{"", "here", "least", "mean", "most"}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// value writes v with fixed decimals, so that the decimal points of a column are below each other; -1: a count.
func value(v float64, decimals int) string {
	if !(math.Abs(v) < 1e15) {
		return fmt.Sprintf("%.4g", v)
	}
	if decimals < 0 {
		return countText(int64(math.Round(v)))
	}
	whole, fraction, _ := strings.Cut(fmt.Sprintf("%.*f", decimals, v), ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && v >= 0 {
		whole = countText(n)
	}
	if fraction != "" {
		return whole + "." + fraction
	}
	return whole
}

// beside makes a row of a value and those of the captures of 2004. here is false when the capture has no such value.
func beside(name string, decimals int, v float64, here bool, of []float64) tableRow {
	w := within{Value: v, Least: math.Inf(1), Most: math.Inf(-1)}
	for _, o := range of {
		w.Least, w.Most, w.Mean = min(w.Least, o), max(w.Most, o), w.Mean+o/float64(len(of))
	}
	means := max(decimals, 0)
	row := tableRow{Name: name, Cells: []string{"none", value(w.Least, decimals), value(w.Mean, means), value(w.Most, decimals)}}
	if here {
		row.Cells[0], row.Within = value(v, decimals), &w
	}
	return row
}

// Analysis is the page of one capture: its octets over time, and the ten tables next to those published in 2004.
func Analysis(name string, r *trace.Report) Page {
	name = clean(name)
	p := Page{
		Title:    "What JXTA cost: " + name,
		Subtitle: fmt.Sprintf("%s packets captured in %s", countText(r.CapturedPackets), secondsText(r.Seconds())),
		Foot: []string{
			"Published: R. Haakseth, Evaluating the Performance of JXTA over SATCOM, FFI/RAPPORT-2004/02843, tables 5.1 to 5.10: five runs of the Blue Game over Iridium, captured ashore and on board.",
			"Made by gateway analyse --html. Retransmissions are what tshark 4.0 calls so. Octets are those on the wire with all headers that the capture has.",
		},
	}
	if r.Edge != "" {
		p.Subtitle += "; edge " + clean(r.Edge)
		if r.EdgeGuessed {
			p.Subtitle += " (it dialled most)"
		}
	}
	p.Verdict = sentence(r.Headline)
	p.Tone = map[trace.Condition]tone{trace.Clean: toneGood, trace.Strained: toneWarn, trace.Jammed: toneBad, trace.Unjudged: tonePlain}[r.Condition]
	if r.Partial {
		p.Verdict += " The figures are partial: the capture is incomplete or damaged."
		if p.Tone != toneBad {
			p.Tone = toneWarn
		}
	}
	for _, s := range slices.Concat(r.Problems, r.Remarks) {
		p.Notes = append(p.Notes, sentence(s))
	}
	f := r.Figures
	if f.Packets > 0 {
		p.Title = "What JXTA cost: " + name
		p.Facts = append(p.Facts,
			fact{"On the wire", countText(f.TotalBytes) + " octets", numberText(ratio(float64(f.TotalBytes)*60, f.TotalS), 0) + " octets a minute"},
			fact{"Of the application", countText(r.Application.Total) + " octets", fmt.Sprintf("%.2f %% of the data octets", r.PayloadPct)},
			fact{"Connections", countText(f.Connections), numberText(r.ConnsPerMinute, 2) + " a minute"},
			fact{"Sent again", countText(f.Retransmissions) + " packets", fmt.Sprintf("%.2f %% of all", r.RetransmitPct)},
			foundFact(r), dataFact(r),
		)
		p.Sections = append(p.Sections, jxtaOverTime(r), tenTables(r), messages(r), allPublished())
	}
	if c := r.CoT; c != nil {
		p.Facts = append(p.Facts, fact{"TAK devices", countText(c.Devices), fmt.Sprintf("and %s other units", countText(c.Units-c.Devices))},
			fact{"TAK reports", numberText(c.PerMinute, 1) + " a minute", countText(c.Octets) + " octets of events"})
		p.Sections = append(p.Sections, cotSection(c))
	}
	if x := r.XMPP; x != nil {
		p.Facts = append(p.Facts, fact{"XMPP", countText(x.Octets) + " octets", countText(x.Streams) + " streams"})
		p.Sections = append(p.Sections, section{Title: "What XMPP said", Tables: []tableData{octetsOf("Stanzas by what they are for", "kind", x.Kinds)}})
	}
	if r.Link != nil {
		if f.Packets == 0 {
			p.Title = "What gateways said: " + name
		}
		p.Facts = append(p.Facts,
			fact{"Between gateways", countText(r.Link.Octets) + " octets", countText(r.Link.Datagrams) + " datagrams"},
			fact{"Under custody", countText(r.Link.Messages) + " messages", countText(r.Link.Acked) + " with their acknowledgement in the capture"})
		if d := r.Link.AckS; d != nil && d.N > 0 {
			p.Facts = append(p.Facts, fact{"Until the acknowledgement", secondsText(d.MedianS), "median; 95 % within " + secondsText(d.P95S) + ", slowest " + secondsText(d.MaxS)})
		}
		p.Sections = append(linkSections(r.Link), p.Sections...)
	}
	return p
}

// foundFact is the time at which the edge found another peer's service.
func foundFact(r *trace.Report) fact {
	n := 0
	first := ""
	for _, d := range r.Discovery {
		if !d.Own {
			n++
			if n == 1 {
				first = secondsText(d.S)
			}
		}
	}
	switch n {
	case 0:
		return fact{"Discovery", "none", "no other peer's service was found"}
	case 1:
		return fact{"Discovery", first, "until another peer's service was found"}
	}
	return fact{"Discovery", first, fmt.Sprintf("until the first of %d services of other peers was found", n)}
}

// dataFact is the time at which another peer's data came.
func dataFact(r *trace.Report) fact {
	if r.PipeSetupS == nil {
		return fact{"First data", "never", "from another peer"}
	}
	return fact{"First data", secondsText(*r.PipeSetupS), "after another peer's service was found"}
}

// overTimeOf are the plots of a timeline.
func overTimeOf(t *trace.Timeline, title, waiting, unit string) []plot {
	if t == nil {
		return nil
	}
	s := stackPlot{Title: title, Unit: "octets", SlotS: t.SlotS, PerS: true}
	for _, series := range t.Series {
		values := make([]float64, len(series.Octets))
		for i, n := range series.Octets {
			values[i] = float64(n)
		}
		s.Series = append(s.Series, plotSeries{series.Name, values})
	}
	w := stepPlot{Title: waiting, Unit: unit, SlotS: t.SlotS}
	for _, n := range t.Waiting {
		w.Values = append(w.Values, float64(n))
	}
	return []plot{s, w}
}

func distribution(title, what, name string, d *trace.Distribution) plot {
	c := curvePlot{Title: title, What: what}
	if d != nil {
		c.Of = []sample{{name, d.Sorted}}
	}
	return c
}

func jxtaOverTime(r *trace.Report) section {
	s := section{Title: "Over time", Text: []string{
		"A message counts when it is whole. TCP/IP headers are those of all packets, empty ones included; sent again are octets that the capture had before.",
	}}
	s.Plots = overTimeOf(r.Timeline, "Octets on the wire by kind", "Queue: sent and not acknowledged, all TCP connections", "octets")
	s.Plots = append(s.Plots, distribution("Latency: setting up a connection", "connections", "from SYN to ACK", r.SetupS))
	return s
}

// tenTables are tables 5.1 to 5.10 of a capture next to those published.
func tenTables(r *trace.Report) section {
	s := section{Title: "The ten tables, beside those of 2004", Text: []string{
		"Least, mean and most are of the ten captures of 2004 (tables 5.8 to 5.10: of the five runs). The mark at the right shows where this capture is in that range; an arrow points out of it.",
	}}
	for _, t := range published {
		table := tableData{Number: t.number, Caption: t.caption, Columns: publishedColumns}
		for _, row := range t.rows {
			var of []float64
			for _, c := range trace.Captures2004 {
				of = append(of, row.of(c.Figures))
			}
			here := t.number != "5.4" || r.Setups > 0
			table.Rows = append(table.Rows, beside(row.name, row.decimals, row.of(r.Figures), here, of))
		}
		switch t.number {
		case "5.2":
			table.Foot = "The mean of 1b is 414.43 as printed in 2004; the other nine are between 142 and 246."
		case "5.4":
			table.Foot = fmt.Sprintf("Handshakes in this capture: %s seen, %s failed, %s refused, %s connections begun before it.",
				countText(r.Setups), countText(r.FailedSetups), countText(r.RefusedSetups), countText(r.MidConnections))
		}
		s.Tables = append(s.Tables, table)
	}
	s.Tables = append(s.Tables, discovery(r))
	pipe := tableData{Number: "5.9", Caption: "Pipe set-up, seconds from a foreign service's advertisement to its first data", Columns: publishedColumns}
	var seconds float64
	if r.PipeSetupS != nil {
		seconds = *r.PipeSetupS
	}
	pipe.Rows = []tableRow{beside("first data after", 1, seconds, r.PipeSetupS != nil, trace.PipeSetups2004)}
	payload := tableData{Number: "5.10", Caption: "Payload, application octets at the edge", Columns: publishedColumns}
	for _, row := range []struct {
		name     string
		decimals int
		of       func(trace.ApplicationBytes) float64
	}{
		{"in", -1, func(a trace.ApplicationBytes) float64 { return float64(a.In) }},
		{"out", -1, func(a trace.ApplicationBytes) float64 { return float64(a.Out) }},
		{"both", -1, func(a trace.ApplicationBytes) float64 { return float64(a.Total) }},
		{"of data octets, %", 2, func(a trace.ApplicationBytes) float64 { return ratio(100*float64(a.Total), float64(a.Of)) }},
	} {
		var of []float64
		for _, a := range trace.Payloads2004 {
			of = append(of, row.of(a))
		}
		payload.Rows = append(payload.Rows, beside(row.name, row.decimals, row.of(r.Application), r.Edge != "", of))
	}
	if r.EchoedBytes > 0 {
		payload.Foot = fmt.Sprintf("Of those in, %s octets are the edge's own, sent back to it.", countText(r.EchoedBytes))
	}
	s.Tables = append(s.Tables, pipe, payload)
	return s
}

func discovery(r *trace.Report) tableData {
	t := tableData{Number: "5.8", Caption: "Discovery of services, seconds from the first packet", Columns: publishedColumns}
	var foreign, own []float64
	for _, d := range trace.Discoveries2004 {
		foreign, own = append(foreign, d.MPA), append(own, d.Bergen)
	}
	for i, s := range r.Discovery {
		if i == maxServices {
			t.Foot = fmt.Sprintf("%s more are in --json.", countText(int64(len(r.Discovery)-maxServices)))
			break
		}
		if s.Own {
			t.Rows = append(t.Rows, beside(clean(s.Name)+" (its own)", 1, s.S, true, own))
		} else {
			t.Rows = append(t.Rows, beside(clean(s.Name), 1, s.S, true, foreign))
		}
	}
	if len(r.Discovery) == 0 {
		t.Rows = append(t.Rows, beside("another's service (2004: MPA)", 1, 0, false, foreign), beside("its own service (2004: Bergen)", 1, 0, false, own))
	}
	return t
}

// octetsOf is a table of names with numbers and octets, largest first.
func octetsOf(caption, column string, rows []trace.Row) tableData {
	t := tableData{Caption: caption, Columns: []string{column, "number", "octets", "mean"}}
	var number, octets int64
	for i, row := range rows {
		if i >= maxKinds {
			number, octets = number+row.Count, octets+row.Octets
			continue
		}
		t.Rows = append(t.Rows, tableRow{Name: clean(row.Name), Cells: []string{countText(row.Count), countText(row.Octets), numberText(ratio(float64(row.Octets), float64(row.Count)), 1)}})
	}
	if len(rows) > maxKinds {
		t.Foot = fmt.Sprintf("%s names more: %s, %s octets. All are in --json.", countText(int64(len(rows)-maxKinds)), countText(number), countText(octets))
	}
	return t
}

func messages(r *trace.Report) section {
	beside := tableData{Caption: "Where the octets of the streams went", Columns: []string{"", "octets"}}
	for _, row := range []struct {
		name   string
		octets int64
	}{
		{"TCP payload, each octet once", r.StreamBytes}, {"HTTP", r.HTTPBytes}, {"welcome lines", r.WelcomeBytes}, {"framing of messages", r.FramingBytes},
		{"signatures (CBJX)", r.TrailerBytes}, {"not read", r.UnreadBytes},
	} {
		beside.Rows = append(beside.Rows, tableRow{Name: row.name, Cells: []string{countText(row.octets)}})
	}
	return section{Title: "Messages", Tables: []tableData{
		octetsOf("Messages by what they are for, framing included", "kind", r.Kinds), octetsOf("Elements", "element", r.Elements), beside,
	}}
}

// allPublished are the ten captures of 2004 in full.
func allPublished() section {
	t := tableData{Caption: "Captures of 2004: runs 1 to 5, a ashore at the rendezvous and relay, b on board", Columns: []string{""}}
	for _, c := range trace.Captures2004 {
		t.Columns = append(t.Columns, c.Name)
	}
	for _, group := range published {
		for _, row := range group.rows {
			line := tableRow{Name: group.number + " " + row.name}
			for _, c := range trace.Captures2004 {
				line.Cells = append(line.Cells, value(row.of(c.Figures), row.decimals))
			}
			t.Rows = append(t.Rows, line)
		}
	}
	u := tableData{Caption: "Runs of 2004 on board", Columns: []string{"", "1", "2", "3", "4", "5"}}
	rows := []tableRow{{Name: "5.8 discovery of MPA, s"}, {Name: "5.8 discovery of Bergen, s"}, {Name: "5.9 pipe set-up, s"}, {Name: "5.10 application octets in"}, {Name: "5.10 out"}}
	for i, d := range trace.Discoveries2004 {
		a := trace.Payloads2004[i]
		for k, v := range []float64{d.MPA, d.Bergen, trace.PipeSetups2004[i], float64(a.In), float64(a.Out)} {
			rows[k].Cells = append(rows[k].Cells, countText(int64(v)))
		}
	}
	u.Rows = rows
	return section{Title: "What was published in 2004", Tables: []tableData{t, u}}
}

// cotSection is about the events of TAK devices.
func cotSection(c *trace.CoTReport) section {
	t := tableData{Caption: "Units, those that report most first", Columns: []string{"unit", "type", "reports", "a minute", "octets", "callsign"}}
	for i, u := range c.Of {
		if i == maxKinds {
			t.Foot = fmt.Sprintf("%s units more are in --json.", countText(int64(len(c.Of)-maxKinds)))
			break
		}
		t.Rows = append(t.Rows, tableRow{Name: clean(u.UID), Cells: []string{clean(u.Type), countText(u.Reports), numberText(u.PerMinute, 1), countText(u.Octets), clean(u.Callsign)}})
	}
	tables := []tableData{octetsOf("Events by what they are for, each once", "kind", c.Kinds), t}
	if len(c.Costs) > 0 {
		t := costTable("The same events through two gateways", "link", c.Costs, func(x trace.CoTCost) string { return clean(x.Profile) })
		tables = append(tables, t)
	}
	if len(c.Refused) > 0 {
		tables = append(tables, octetsOf("What could not be read", "why", c.Refused))
	}
	return section{Title: "TAK", Text: []string{fmt.Sprintf("%s events in %s, %s of them of version 1; %s copies of events that the capture had before.",
		countText(c.Events), secondsText(c.Seconds), countText(c.Proto), countText(c.Copies))}, Tables: tables}
}

// linkSections are about datagrams of gateways.
func linkSections(l *trace.LinkReport) []section {
	s := section{Title: "Between gateways, over time"}
	s.Plots = overTimeOf(l.Timeline, "Octets on the link by account of the airtime ledger", "Queue: messages under custody without an acknowledgement", "messages")
	s.Plots = append(s.Plots, distribution("Latency: from a message's first datagram to its acknowledgement", "messages", "until the acknowledgement", l.AckS))
	ledger := tableData{Caption: "Airtime ledger, IP octets", Columns: []string{"from", "to", "account", "octets"}}
	for i, row := range l.Ledger {
		if i == maxKinds {
			ledger.Foot = fmt.Sprintf("%s accounts more are in --json.", countText(int64(len(l.Ledger)-maxKinds)))
			break
		}
		ledger.Rows = append(ledger.Rows, tableRow{Name: row.From, Cells: []string{row.To, row.Kind, countText(row.Octets)}})
	}
	custody := tableData{Caption: "Custody", Columns: []string{"", ""}, Rows: []tableRow{
		{Name: "messages", Cells: []string{countText(l.Messages)}}, {Name: "frames of a message that was there before", Cells: []string{countText(l.Repeats)}},
		{Name: "messages with their acknowledgement", Cells: []string{countText(l.Acked)}}, {Name: "NORM objects put together", Cells: []string{countText(l.Objects)}},
		{Name: "messages that could not be read", Cells: []string{countText(l.Unread)}},
	}}
	tables := []tableData{ledger, octetsOf("Frames", "frame", l.Frames), octetsOf("Messages under custody, expanded", "what they hold", l.Envelopes), custody}
	if len(l.Unopened) > 0 {
		tables = append(tables, octetsOf("Datagrams that stayed closed", "why", l.Unopened))
	}
	return []section{s, {Title: "Between gateways, in figures", Tables: tables}}
}
