package field

import (
	"fmt"
	"io"
	"strings"

	"aldis/internal/lab/report"
)

// Page is the figures as a page.
func (r *TAKResult) Page() report.Page {
	server := "the gateway is the TAK server"
	if r.Server == "taky" {
		server = "taky, with the gateway for a client"
	}
	g := report.TAKGame{Link: r.Profile, Gateway: r.Gateway, Server: server, Seconds: r.DurationS, Every: r.RateS, Devices: r.Devices, Ships: r.Ships, Seed: r.Seed, Bound: r.BoundM}
	for _, kind := range []string{"unaided", "gateway"} {
		run := r.Runs[kind]
		if run == nil {
			continue
		}
		g.Runs = append(g.Runs, report.TAKGameRun{Aided: kind == "gateway", Reports: run.Reports, Compared: run.Compared, Wrong: run.Wrong, Missing: run.NotShown,
			PerReport: run.PerReport, Up: run.Bytes.Up, Down: run.Bytes.Down, MetS: run.MetS, FirstS: run.FirstS, AllS: run.AllS, MedianM: run.MedianM, P95M: run.P95M, WorstM: run.WorstM,
			Alerts: run.Alerts.page(), Chats: run.Chats.page(), Waiting: run.Waiting})
	}
	return report.OfTAKGame(g)
}

func (c Crossed) page() report.TAKCrossed {
	return report.TAKCrossed{Sent: c.Sent, Came: c.Came, Again: c.Again, MedianS: c.Latency.Median, P95S: c.Latency.P95, MaxS: c.Latency.Max}
}

// board writes the page as text.
func (r *TAKResult) board(w io.Writer) error {
	fmt.Fprintln(w)
	return r.Page().Text(w)
}

// faults says what is not as it must be with gateways; empty when all is well or there was no such run.
func (r *TAKResult) faults() string {
	run := r.Runs["gateway"]
	if run == nil {
		return ""
	}
	var list []string
	check := func(bad bool, format string, args ...any) {
		if bad {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	check(run.Reports == 0, "no device could report")
	check(run.Alerts.Came < run.Alerts.Sent, "%d alerts did not come", run.Alerts.Sent-run.Alerts.Came)
	check(run.Chats.Came < run.Chats.Sent, "%d chats did not come", run.Chats.Sent-run.Chats.Came)
	check(run.Chats.Again > 0, "%d chats came twice", run.Chats.Again)
	check(len(run.TroubledBy) > 0, "%s", strings.Join(run.TroubledBy, "; "))
	return strings.Join(list, "; ")
}
