package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"aldis/internal/lab/fleet"
)

// Fleet is the report of `gateway lab fleet`.
type Fleet struct{ fleet.Result }

// Page is the result as a page.
func (r *Fleet) Page() Page {
	p := Page{
		Title:    "A fleet with several bearers",
		Subtitle: fmt.Sprintf("%s: %s. %s, seed %d, peers %s, %s.", clean(r.Script), sentence(strings.TrimSuffix(r.Summary, ".")), secondsText(r.DurationS), r.Seed, strings.Join(r.Peers, ", "), clean(r.Gateway)),
		Tone:     toneGood, Verdict: "Every message has exactly one true end.",
		Foot: []string{
			"Measured at the link emulator and in the peers. Octets are IP octets on the air, all headers included, from the moment when all knew each other until the end.",
			"Told: the gateway of the sender tells of another end than delivery, and the message was not delivered. Not taken: the gateway of the sender was dead, so that the message was in nobody's custody; the peer saw its connection end, unless the machine had no power.",
			"Discovery: when the recipient's JXTA peer had discovered the sender's, after the start of the later one's process.",
			fmt.Sprintf("The emulator handled what was due at most %s ms late.", numberText(r.LateMS, 0)),
		},
	}
	if r.Upgrade != "" {
		p.Foot = append(p.Foot, "The gateway that replaced it in upgrades: "+clean(r.Upgrade)+".")
	}
	if faults := r.Faults(); faults != "" {
		p.Tone, p.Verdict = toneBad, sentence(strings.ToUpper(faults[:1])+faults[1:]+".")
	}
	t := tableData{Columns: []string{"from, to", "messages", "delivered", "told", "not taken", "sunk", "lost", "twice", "changed", "median", "95 of 100", "worst", "discovery"}}
	for _, row := range r.Rows {
		cells := []string{countText(int64(row.Sent))}
		for _, end := range []fleet.End{fleet.Delivered, fleet.Told, fleet.NotTaken, fleet.Sunk, fleet.Lost, fleet.Twice, fleet.Changed} {
			n := row.Ends[end]
			if end == fleet.Told {
				n += row.Ends[fleet.False]
			}
			cells = append(cells, countText(int64(n)))
		}
		found := ""
		if row.Found > 0 {
			found = secondsText(row.Found)
		}
		t.Rows = append(t.Rows, tableRow{Name: clean(row.From + " to " + row.To + ", " + row.Peers),
			Cells: append(cells, secondsText(row.Median), secondsText(row.P95), secondsText(row.Most), found)})
	}
	b := tableData{Columns: []string{"bearer, site", "octets", "packets"}}
	for _, a := range r.Octets {
		b.Rows = append(b.Rows, tableRow{Name: clean(a.Bearer + ", " + a.Site), Cells: []string{countText(a.Octets), countText(a.Frames)}})
	}
	e := tableData{Columns: []string{"after", "what"}}
	for _, x := range r.Events {
		e.Rows = append(e.Rows, tableRow{Name: secondsText(x.AtS), Cells: []string{sentence(x.What)}})
	}
	p.Sections = []section{{Title: "Messages", Tables: []tableData{t}}, {Title: "What the bearers carried", Tables: []tableData{b}}, {Title: "What happened", Tables: []tableData{e}}}
	if len(r.Sessions) > 0 {
		p.Sections = append(p.Sections, section{Title: "Direct sessions", Tables: []tableData{sessions(r.Sessions)}})
		p.Foot = append(p.Foot, "Direct sessions are as a gateway's status shows them once a second: octets of messages that no relay had to send once more, and beside them what each site has sent on the bearer meanwhile.")
	}
	if len(r.Takeovers) > 0 {
		p.Sections = append(p.Sections, section{Title: fmt.Sprintf("Sites of several machines: %d lost, %d twice, %d datagrams of a machine that did not lead",
			r.Ends[fleet.Lost], r.Ends[fleet.Twice], r.WrongMachine), Tables: []tableData{takeoverSums(r.Takeovers), takeovers(r.Takeovers)}})
		p.Foot = append(p.Foot, "Times of a takeover are from the accident on; where both machines lost their power, from when they have it again. Served: something that the peers say is in custody again, so that a site is seen to be served between two messages of its peers.")
	}
	if len(r.Destroyed) > 0 {
		d := tableData{Columns: []string{"destroyed, after", "open messages it had said", "somebody who lives has", "all who live have", "the last one: sites that had it then", "sites that have it now"}}
		for _, x := range r.Destroyed {
			d.Rows = append(d.Rows, tableRow{Name: clean(x.Site + ", " + secondsText(x.AtS)),
				Cells: []string{countText(int64(x.Said)), countText(int64(x.Lived)), countText(int64(x.All)), countText(int64(x.Heard)), countText(int64(x.Have))}})
		}
		p.Sections = append(p.Sections, section{Title: "What the destroyed had said", Tables: []tableData{d}})
		p.Foot = append(p.Foot, "Sunk: sender or recipient was destroyed before anybody who lives had the message. The last one: of those that somebody who lives has.")
	}
	for _, w := range append(r.Wrong, r.Errors...) {
		p.Notes = append(p.Notes, sentence(w))
	}
	return p
}

// sessions are the direct sessions, as each end of them saw it.
func sessions(list []fleet.Session) tableData {
	t := tableData{Columns: []string{"bearer, site with peer", "from", "to", "octets spared", "octets on the air"}}
	for _, s := range list {
		to := "the end"
		if s.EndS > 0 {
			to = secondsText(s.EndS)
		}
		t.Rows = append(t.Rows, tableRow{Name: clean(s.Bearer + ", " + s.Site + " with " + s.Peer), Cells: []string{secondsText(s.AtS), to, countText(s.Spared), bySite(s.Octets)}})
	}
	return t
}

// bySite is the octets of each site in words.
func bySite(octets map[string]int64) string {
	var list []string
	for _, site := range slices.Sorted(maps.Keys(octets)) {
		list = append(list, fmt.Sprintf("%s %d", site, octets[site]))
	}
	return strings.Join(list, ", ")
}

// takeovers are the accidents to machines, each with its consequences.
func takeovers(list []fleet.Takeover) tableData {
	t := tableData{Columns: []string{"after, what", "another one leads", "others hear the site", "peers are served", "octets in 30 s"}}
	span := func(s float64) string {
		if s == 0 {
			return ""
		}
		return secondsText(s)
	}
	for _, x := range list {
		var served []string
		for _, peers := range slices.Sorted(maps.Keys(x.Served)) {
			served = append(served, peers+" "+secondsText(x.Served[peers]))
		}
		what := x.What
		if x.Led {
			what += ", which led"
		}
		t.Rows = append(t.Rows, tableRow{Name: clean(secondsText(x.AtS) + ", " + what),
			Cells: []string{span(x.Leads), span(x.Heard), strings.Join(served, ", "), bySite(x.Octets)}})
	}
	return t
}

// takeoverSums is the median and the worst time of each kind of accident.
func takeoverSums(list []fleet.Takeover) tableData {
	t := tableData{Columns: []string{"median; worst", "times", "another one leads", "others hear the site", "JXTA is served", "TAK is served"}}
	kinds := map[string][]fleet.Takeover{}
	for _, x := range list {
		kind := x.Site + ", " + x.Cause + " of another machine"
		if x.Led {
			kind = x.Site + ", " + x.Cause + " of the leader"
		}
		kinds[kind] = append(kinds[kind], x)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		of := kinds[kind]
		row := tableRow{Name: clean(kind), Cells: []string{countText(int64(len(of)))}}
		for _, get := range []func(fleet.Takeover) float64{
			func(x fleet.Takeover) float64 { return x.Leads }, func(x fleet.Takeover) float64 { return x.Heard },
			func(x fleet.Takeover) float64 { return x.Served[fleet.JXTA] }, func(x fleet.Takeover) float64 { return x.Served[fleet.TAK] },
		} {
			var took []float64
			for _, x := range of {
				if s := get(x); s > 0 {
					took = append(took, s)
				}
			}
			cell := ""
			if slices.Sort(took); len(took) > 0 {
				cell = secondsText(took[(len(took)-1)/2]) + "; " + secondsText(took[len(took)-1])
			}
			row.Cells = append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Board writes the page as text.
func (r *Fleet) Board(w io.Writer) error {
	return board(w, r.Page())
}
