package field

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// blueGame2004 is the part of published.json for the scoreboard.
type blueGame2004 struct {
	Game struct {
		Captures map[string]struct {
			Connections float64 `json:"connections"`
			TotalS      float64 `json:"total_s"`
			TotalBytes  float64 `json:"total_bytes"`
			Packets     float64 `json:"packets"`
		} `json:"captures"`
		Discovery map[string]json.RawMessage `json:"discovery_s"`
		PipeSetup map[string]float64         `json:"pipe_setup_s"`
		App       struct {
			Ratio float64 `json:"average_payload_ratio_percent"`
		} `json:"application_bytes"`
	} `json:"blue_game_2004"`
}

// column is one way of playing on the scoreboard, as text.
type column map[string]string

var rows = []struct{ key, label string }{
	{"rendezvous", "rendezvous found after"},
	{"discovery", "service discovered after"},
	{"pipe", "pipe open after"},
	{"data", "first data after"},
	{"delivered", "messages delivered"},
	{"wrong", "twice / changed / out of order"},
	{"latency", "latency median / 95 % / worst"},
	{"bytes", "link octets up / down"},
	{"packets", "link packets up / down"},
	{"tcp", "TCP connections on the link"},
	{"payload", "application octets of link octets"},
	{"background", "link octets per second, silent"},
}

// scoreboard prints the runs next to the figures of 2004.
func scoreboard(w io.Writer, res *Result) error {
	paper, err := column2004()
	if err != nil {
		return err
	}
	heads, cols := []string{"Blue Game 2004"}, []column{paper}
	for _, k := range []string{"unaided", "gateway"} {
		if r := res.Runs[k]; r != nil {
			heads, cols = append(heads, k), append(cols, r.column())
		}
	}
	fmt.Fprintf(w, "\n%s, %s over %s, %d octets each way every %g s for %g s, seed %d, %d ship(s)%s\n\n", res.Profile, res.Peers, strings.ToUpper(res.Transport), res.Size, res.RateS, res.DurationS, res.Seed, res.Ships, res.day())
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "\t%s\n", strings.Join(heads, "\t"))
	for _, row := range rows {
		fmt.Fprint(t, row.label)
		for _, c := range cols {
			fmt.Fprintf(t, "\t%s", c[row.key])
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nBlue Game 2004: JXTA over HTTP on a real Iridium link, means of five captures at the ship, messages batched\nby the application (docs/reference/published-figures.md). Here: measured at the link emulator and in the JXTA peers.\n")
	for _, k := range []string{"unaided", "gateway"} {
		if r := res.Runs[k]; r != nil {
			r.extras(w, k)
		}
	}
	return nil
}

// day lists in what the game differs from an ordinary one; "": in nothing.
func (r *Result) day() (text string) {
	if r.Shapes == ShapesStrangers {
		text = ", strangers' messages, " + r.Arrivals
	}
	if r.Reorder {
		text += ", packets overtake each other"
	}
	if r.Twice > 0 {
		text += fmt.Sprintf(", %g %% of packets twice", r.Twice)
	}
	if r.Squeezed {
		text += ", busy machine"
	}
	return text
}

func column2004() (column, error) {
	var f blueGame2004
	if err := json.Unmarshal(published, &f); err != nil {
		return nil, fmt.Errorf("lab: published.json: %w", err)
	}
	var n, conns, secs, octets, packets float64
	for name, c := range f.Game.Captures {
		if strings.HasSuffix(name, "b") { // at the Iridium peer
			n++
			conns, secs, octets, packets = conns+c.Connections, secs+c.TotalS, octets+c.TotalBytes, packets+c.Packets
		}
	}
	var average struct {
		MPA    float64 `json:"mpa"`
		Bergen float64 `json:"bergen"`
	}
	if err := json.Unmarshal(f.Game.Discovery["average"], &average); err != nil || n == 0 {
		return nil, fmt.Errorf("lab: published.json: no averages: %w", err)
	}
	return column{
		"rendezvous": "-",
		"discovery":  fmt.Sprintf("%.0f s", average.MPA),
		"pipe":       "-",
		"data":       fmt.Sprintf("%.0f s", average.MPA+f.Game.PipeSetup["average"]),
		"delivered":  "-", "wrong": "-", "latency": "-",
		"bytes":      fmt.Sprintf("%.0f kB both in %.0f s", octets/n/1000, secs/n),
		"packets":    fmt.Sprintf("%.0f both", packets/n),
		"tcp":        fmt.Sprintf("%.0f", conns/n),
		"payload":    fmt.Sprintf("%.2f %%", f.Game.App.Ratio),
		"background": "-",
	}, nil
}

func after(s *float64) string {
	if s == nil {
		return "never"
	}
	return fmt.Sprintf("%.1f s", *s)
}

func (r *Run) column() column {
	return column{
		"rendezvous": after(r.RendezvousS), "discovery": after(r.DiscoveryS), "pipe": after(r.PipeReadyS), "data": after(r.FirstDataS),
		"delivered":  fmt.Sprintf("%d of %d%s", r.MessagesDelivered, r.MessagesSent, percentOf(r.MessagesDelivered, r.MessagesSent)),
		"wrong":      fmt.Sprintf("%d / %d / %d", r.Duplicates, r.Corrupted, r.OutOfOrder),
		"latency":    fmt.Sprintf("%s / %s / %s", after(r.Latency.Median), after(r.Latency.P95), after(r.Latency.Max)),
		"bytes":      fmt.Sprintf("%d / %d", r.LinkBytes.Up, r.LinkBytes.Down),
		"packets":    fmt.Sprintf("%d / %d", r.LinkPackets.Up, r.LinkPackets.Down),
		"tcp":        fmt.Sprint(r.TCPConnections),
		"payload":    fmt.Sprintf("%.1f %%", r.PayloadRatio),
		"background": fmt.Sprintf("%.1f", r.Background),
	}
}

func percentOf(n, of int) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f %%)", 100*float64(n)/float64(of))
}

// extras prints the figures that only some games have.
func (r *Run) extras(w io.Writer, kind string) {
	say := func(format string, args ...any) {
		fmt.Fprintf(w, "%s: %s\n", kind, fmt.Sprintf(format, args...))
	}
	for _, b := range r.Bulk {
		over := "never"
		if b.OverLimit != nil {
			over = fmt.Sprintf("%.2f times the limit of %.1f s", *b.OverLimit, b.LimitS)
		}
		say("%d octets %s to %s: %s, %s; short ones meanwhile %s, else %s", b.Octets, b.From, b.To, after(b.Seconds), over, after(b.ShortMedian), after(b.OtherMedian))
	}
	if o := r.Outage; o != nil {
		say("link down for %.0f s: %d of %d sent meanwhile arrived, the last %s after its end, worst latency %s; %d local disconnects", o.ForS, o.Delivered, o.Sent, after(o.AfterS), after(o.WorstS), o.LocalDisconnects)
		if o.AnswerMS != nil {
			say("a second local peer had its answer after %.1f ms, with the link down", *o.AnswerMS)
		}
	}
	if k := r.Kill; k != nil {
		say("gateway of %s killed at %.0f s, taking connections again after %.2f s; rendezvous again after %.1f s", k.Site, k.AtS, k.DownS, k.BackS)
	}
	if d := r.Redial; d != nil {
		say("%s had another address from %.0f s on: the next message came ashore after %s, to the ship after %s", d.Site, d.AtS, after(d.UpS), after(d.DownS))
	}
	if q := r.Silence; q != nil {
		say("%s silent from %.0f s on for %.0f s: %d packets of %d octets sent; their peers saw %d of %d messages of hq as they came",
			strings.Join(q.Ships, ", "), q.FromS, q.Seconds, q.Packets, q.Bytes, q.Live, q.Sent)
	}
	if d := r.Deaf; d != nil {
		say("%s, without a listener, from %.0f s on for %.0f s: %d octets down, %d up", d.Site, d.FromS, d.Seconds, d.Bytes.Down, d.Bytes.Up)
	}
	if i := r.Idle; i != nil && i.Seconds >= 60 {
		say("silent for %.0f s: %d octets up, %d down, %.3f %% of the slower direction's rate", i.Seconds, i.Bytes.Up, i.Bytes.Down, i.Percent)
	}
	if r.LocalDisconnects > 0 {
		say("peers lost their rendezvous %d times", r.LocalDisconnects)
	}
	for i, m := range r.Missing {
		if kind == "unaided" && i == 3 {
			say("and so on")
			break
		}
		say("missing: %s to %s number %d, sent at %.1f s, %.1f s after the pipe was open", m.From, m.To, m.Seq, m.AtS, m.AfterOpen)
	}
	for _, e := range append(r.GatewayErrors, r.PeerErrors...) {
		say("%s", e)
	}
}
