package report

import (
	"fmt"
	"io"
	"strings"
)

// XMPPResult is the output of `gateway lab blue-game --peers xmpp --json`.
type XMPPResult struct {
	Gateway   string              `json:"gateway,omitempty"` // the version that the gateway under test prints
	Profile   string              `json:"profile"`
	Seed      uint64              `json:"seed"`
	DurationS float64             `json:"duration_s"`
	RateS     float64             `json:"rate_s"`  // between two lines of a site
	Clients   int                 `json:"clients"` // of each site
	Ships     int                 `json:"ships"`
	OutageS   float64             `json:"outage_s,omitempty"`
	Kill      string              `json:"kill,omitempty"` // site whose gateway was killed
	Runs      map[string]*XMPPRun `json:"runs"`           // "gateway", "unaided"
}

// XMPPRun is one way of playing the game; null is never. Octets and packets are those on the air at the emulator, from the start of
// the run until the last line had come or was given up; with several ships their sum.
type XMPPRun struct {
	MetS        *float64 `json:"gateways_met_s,omitempty"` // until each gateway knew the others; clients enter the room then
	JoinedS     *float64 `json:"joined_s"`                 // from the first join until each client saw all others in the room, and its partner
	Room        Crossed  `json:"room"`                     // a line counts once for each client of another site
	Direct      Crossed  `json:"direct"`
	Told        int      `json:"refused"`      // of both, those that did not come and whose senders got an error
	Swapped     int      `json:"out_of_order"` // lines that came after a later one of their sender
	Statuses    int      `json:"statuses"`     // at the end: of each client, for its partner and for each other site's client in the room
	Shown       int      `json:"statuses_shown"`
	Disconnects int      `json:"client_disconnects"`
	Connections int64    `json:"tcp_connections_on_link"`
	Bytes       UpDown   `json:"link_bytes"`
	Packets     UpDown   `json:"link_packets"`
	Dropped     UpDown   `json:"link_packets_dropped"` // by full queues
	Lost        UpDown   `json:"link_packets_lost"`    // by the medium or an outage
	IdleS       float64  `json:"idle_s"`
	Idle        UpDown   `json:"idle_link_bytes"` // in the idle time, when clients only ping, ask and type
	LateMaxMS   float64  `json:"emulator_late_max_ms"`
	TroubledBy  []string `json:"gateway_errors,omitempty"`
}

// missing are lines that neither came nor were refused.
func (r *XMPPRun) missing() int {
	return r.Room.Sent + r.Direct.Sent - r.Room.Came - r.Direct.Came - r.Told
}

func (r *XMPPRun) came() string {
	return fmt.Sprintf("%d of %d", r.Room.Came+r.Direct.Came, r.Room.Sent+r.Direct.Sent)
}

// Page is the figures as a page.
func (r *XMPPResult) Page() Page {
	p := Page{
		Title: fmt.Sprintf("XMPP clients of HQ and %s over %s", ships(r.Ships), clean(r.Profile)),
		Subtitle: fmt.Sprintf("%d clients at each site, in one room and in pairs; each site says a line every %s for %s, and one of its clients changes its status every 30 s, seed %d. ejabberd at headquarters, Prosody on each ship.",
			r.Clients, secondsText(r.RateS), secondsText(r.DurationS), r.Seed),
		Foot: []string{
			"Measured at the link emulator and in the clients, never in a gateway. Octets are IP octets on the air, all headers included, until the last line had come or was given up. A line counts once for each client of another site.",
			"XMPP alone: the same servers speak to each other over the link, with dialback and without TLS. A client that the room loses enters it again within 10 s. Made by gateway lab --html" + by(r.Gateway) + ".",
		},
	}
	if r.OutageS > 0 {
		p.Subtitle += fmt.Sprintf(" The link is down for %s.", secondsText(r.OutageS))
	}
	if r.Kill != "" {
		p.Subtitle += fmt.Sprintf(" The gateway of %s is killed once.", clean(r.Kill))
	}
	var names []string
	var runs []*XMPPRun
	if run := r.Runs["unaided"]; run != nil {
		names, runs = append(names, "XMPP alone"), append(runs, run)
	}
	if aided := r.Runs["gateway"]; aided != nil {
		names, runs = append(names, "with gateways"), append(runs, aided)
		p.Tone = toneGood
		if r.Faults() != "" {
			p.Tone = toneBad
		}
		p.Verdict = fmt.Sprintf("With gateways %s lines came, for %s octets on the link.", aided.came(), countText(aided.Bytes.Up+aided.Bytes.Down))
		if alone := r.Runs["unaided"]; alone != nil {
			p.Verdict += fmt.Sprintf(" XMPP alone: %s, for %s octets.", alone.came(), countText(alone.Bytes.Up+alone.Bytes.Down))
		}
	}
	t := sideBySide(names, runs, []gameRow[*XMPPRun]{
		{"all see each other after", func(r *XMPPRun) string { return never(r.JoinedS) }},
		{"lines in the room that came", func(r *XMPPRun) string { return r.Room.came() }},
		{"median, 95 %, worst", func(r *XMPPRun) string { return r.Room.times() }},
		{"lines to one that came", func(r *XMPPRun) string { return r.Direct.came() }},
		{"median, 95 %, worst ", func(r *XMPPRun) string { return r.Direct.times() }},
		{"refused, and the sender told / lost", func(r *XMPPRun) string { return fmt.Sprintf("%d / %d", r.Told, r.missing()) }},
		{"twice / out of order", func(r *XMPPRun) string { return fmt.Sprintf("%d / %d", r.Room.Again+r.Direct.Again, r.Swapped) }},
		{"statuses shown at the end", func(r *XMPPRun) string { return fmt.Sprintf("%d of %d", r.Shown, r.Statuses) }},
		{"clients disconnected", func(r *XMPPRun) string { return fmt.Sprint(r.Disconnects) }},
		{"TCP connections on the link", func(r *XMPPRun) string { return countText(r.Connections) }},
		{"octets on the link, up / down", func(r *XMPPRun) string { return countText(r.Bytes.Up) + " / " + countText(r.Bytes.Down) }},
		{"octets while clients only ping, ask and type", func(r *XMPPRun) string {
			return fmt.Sprintf("%s in %s", countText(r.Idle.Up+r.Idle.Down), secondsText(r.IdleS))
		}},
	})
	p.Sections = []section{{Title: "With gateways and without", Tables: []tableData{t}}}
	return p
}

// Board writes the page as text.
func (r *XMPPResult) Board(w io.Writer) error {
	return board(w, r.Page())
}

// Faults lists the faults with gateways; "" when all is well or there was no such run.
func (r *XMPPResult) Faults() string {
	run := r.Runs["gateway"]
	if run == nil {
		return ""
	}
	var list FaultList
	list.Check(run.Room.Sent+run.Direct.Sent == 0, "nobody could say anything")
	list.Check(run.missing() > 0, "%d lines did not come", run.missing())
	list.Check(run.Room.Again+run.Direct.Again > 0, "%d lines came twice", run.Room.Again+run.Direct.Again)
	list.Check(run.Swapped > 0, "%d lines came out of order", run.Swapped)
	list.Check(run.Shown < run.Statuses, "%d statuses are not shown", run.Statuses-run.Shown)
	list.Check(run.Disconnects > 0, "clients were disconnected %d times", run.Disconnects)
	list.Check(len(run.TroubledBy) > 0, "%s", strings.Join(run.TroubledBy, "; "))
	return list.String()
}
