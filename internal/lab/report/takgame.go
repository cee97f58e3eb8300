package report

import (
	"fmt"
	"io"
	"strings"
)

// TAKResult is the output of `gateway lab blue-game --peers tak --json`.
type TAKResult struct {
	Gateway   string             `json:"gateway,omitempty"` // the version that the gateway under test prints
	Profile   string             `json:"profile"`
	Seed      uint64             `json:"seed"`
	DurationS float64            `json:"duration_s"`
	RateS     float64            `json:"rate_s"`  // between two reports of a device
	Devices   int                `json:"devices"` // of each site
	Ships     int                `json:"ships"`
	Server    string             `json:"hq_server"` // "taky", or "gateway" if taky is not installed
	BoundM    float64            `json:"bound_m"`
	Runs      map[string]*TAKRun `json:"runs"` // "gateway", "unaided"
}

// TAKRun is one way of playing the game. Times in seconds count from the start of the ships' devices; null is never. Octets and packets
// are those on the air at the emulator, from the start of the run until the last alert and chat had come or were given up; with several
// ships their sum.
type TAKRun struct {
	MetS       *float64 `json:"gateways_met_s,omitempty"` // from the start of the last gateway until each knew the others; the devices come then
	FirstS     *float64 `json:"first_unit_s"`             // until each site has shown a far unit
	AllS       *float64 `json:"all_units_s"`              // until each site has shown all far units
	Reports    int      `json:"reports"`
	PerReport  float64  `json:"octets_per_report"` // all octets of the link, alerts and chats included
	Compared   int      `json:"compared"`          // reports with a far map that showed their unit, 5 s later
	Wrong      int      `json:"wrong"`             // of the compared reports, those whose unit was shown farther off than the bound
	NotShown   int      `json:"not_shown"`         // reports whose unit the far map did not show 5 s later
	MedianM    *float64 `json:"median_m"`
	P95M       *float64 `json:"p95_m"`
	WorstM     *float64 `json:"worst_m"`
	Alerts     Crossed  `json:"alerts"`
	Chats      Crossed  `json:"chats"`
	Waiting    int      `json:"reports_waiting"` // not yet written to the link's connection at the end; unaided
	Bytes      UpDown   `json:"link_bytes"`
	Packets    UpDown   `json:"link_packets"`
	Dropped    UpDown   `json:"link_packets_dropped"` // by full queues
	Lost       UpDown   `json:"link_packets_lost"`    // by the medium or an outage
	LateMaxMS  float64  `json:"emulator_late_max_ms"`
	TroubledBy []string `json:"gateway_errors,omitempty"`
}

// Crossed is the results of events that each other site must be shown; an event counts once for each of these sites.
type Crossed struct {
	Sent    int     `json:"sent"`
	Came    int     `json:"came"`
	Again   int     `json:"came_again"`
	Latency Latency `json:"latency_s"`
}

// Latency is how long messages took, in seconds; null: there were none.
type Latency struct {
	Median *float64 `json:"median"`
	P95    *float64 `json:"p95"`
	Max    *float64 `json:"max"`
}

// UpDown is ship to shore, and shore to ship.
type UpDown struct {
	Up   int64 `json:"up"`
	Down int64 `json:"down"`
}

func (c Crossed) came() string { return fmt.Sprintf("%d of %d", c.Came, c.Sent) }

func (c Crossed) times() string {
	return never(c.Latency.Median) + ", " + never(c.Latency.P95) + ", " + never(c.Latency.Max)
}

func (r *TAKRun) wrong() string { return fmt.Sprintf("%d of %d", r.Wrong, r.Compared) }

func metres(v *float64) string {
	if v == nil {
		return "-"
	}
	return numberText(*v, 1) + " m"
}

// Page is the figures as a page.
func (r *TAKResult) Page() Page {
	server := "the gateway is the TAK server"
	if r.Server == "taky" {
		server = "taky, with the gateway for a client"
	}
	p := Page{
		Title: fmt.Sprintf("TAK devices of HQ and %s over %s", ships(r.Ships), clean(r.Profile)),
		Subtitle: fmt.Sprintf("%d devices at each site; each moves and reports every %s for %s. An alert of a ship every 20 s, a chat to all every 30 s, seed %d. At headquarters: %s.",
			r.Devices, secondsText(r.RateS), secondsText(r.DurationS), r.Seed, server),
		Foot: []string{
			fmt.Sprintf("Measured at the link emulator and in the devices, never in a gateway. Octets are IP octets on the air, all headers included, until the last alert and chat had come or was given up. Each report is compared with each other site's map five seconds later: wrong is more than %s m from where the unit is by it, or by one that it has made since.", numberText(r.BoundM, 0)),
			"TCP alone: the same events, as they are, through one TCP connection from each ship to headquarters, as between TAK servers that federate" + by(r.Gateway) + ".",
		},
	}
	var names []string
	var runs []*TAKRun
	if run := r.Runs["unaided"]; run != nil {
		names, runs = append(names, "TCP alone"), append(runs, run)
	}
	aided := r.Runs["gateway"]
	if aided != nil {
		names, runs = append(names, "with gateways"), append(runs, aided)
		p.Tone = toneGood
		if aided.Alerts.Came < aided.Alerts.Sent || aided.Chats.Came < aided.Chats.Sent || aided.Chats.Again > 0 {
			p.Tone = toneBad
		}
		p.Verdict = fmt.Sprintf("With gateways a report costs %s octets; %s comparisons were wrong; %s alerts and %s chats came.", numberText(aided.PerReport, 1), aided.wrong(), aided.Alerts.came(), aided.Chats.came())
	}
	t := sideBySide(names, runs, []gameRow[*TAKRun]{
		{"reports", func(r *TAKRun) string { return countText(int64(r.Reports)) }},
		{"octets on the link, up / down", func(r *TAKRun) string { return countText(r.Bytes.Up) + " / " + countText(r.Bytes.Down) }},
		{"octets a report", func(r *TAKRun) string { return numberText(r.PerReport, 1) }},
		{"reports that still wait at the end", func(r *TAKRun) string { return countText(int64(r.Waiting)) }},
		{"gateways knew each other after", func(r *TAKRun) string {
			if r != aided {
				return "-"
			}
			return never(r.MetS)
		}},
		{"first far unit shown everywhere after", func(r *TAKRun) string { return never(r.FirstS) }},
		{"all far units shown everywhere after", func(r *TAKRun) string { return never(r.AllS) }},
		{"comparisons that were wrong", (*TAKRun).wrong},
		{"off: median, 95 %, worst", func(r *TAKRun) string { return metres(r.MedianM) + ", " + metres(r.P95M) + ", " + metres(r.WorstM) }},
		{"unit not shown at all", func(r *TAKRun) string { return countText(int64(r.NotShown)) }},
		{"alerts that came", func(r *TAKRun) string { return r.Alerts.came() }},
		{"alerts: median, 95 %, worst", func(r *TAKRun) string { return r.Alerts.times() }},
		{"chats that came; twice", func(r *TAKRun) string { return fmt.Sprintf("%s; %d", r.Chats.came(), r.Chats.Again) }},
		{"chats: median, 95 %, worst", func(r *TAKRun) string { return r.Chats.times() }},
	})
	p.Sections = []section{{Title: "With gateways and without", Tables: []tableData{t}}}
	return p
}

// Board writes the page as text.
func (r *TAKResult) Board(w io.Writer) error {
	return board(w, r.Page())
}

// Faults lists the faults with gateways; "" when all is well or there was no such run.
func (r *TAKResult) Faults() string {
	run := r.Runs["gateway"]
	if run == nil {
		return ""
	}
	var list FaultList
	list.Check(run.Reports == 0, "no device could report")
	list.Check(run.Alerts.Came < run.Alerts.Sent, "%d alerts did not come", run.Alerts.Sent-run.Alerts.Came)
	list.Check(run.Chats.Came < run.Chats.Sent, "%d chats did not come", run.Chats.Sent-run.Chats.Came)
	list.Check(run.Chats.Again > 0, "%d chats came twice", run.Chats.Again)
	list.Check(len(run.TroubledBy) > 0, "%s", strings.Join(run.TroubledBy, "; "))
	return list.String()
}
