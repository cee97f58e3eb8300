package trace

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// JSON is the report in the form of the published figures: tables 5.1 to 5.7 under captures, then one member for each of tables 5.8 to
// 5.10, all by the capture's name; figures that the publication lacks are under details.
func (r *Report) JSON(name string) any {
	type byName[T any] map[string]T
	discovery := map[string]float64{}
	for _, s := range r.Discovery {
		discovery[s.Name] = s.S
	}
	return struct {
		Captures    byName[Figures]            `json:"captures"`
		Discovery   byName[map[string]float64] `json:"discovery_s"`
		PipeSetup   byName[*float64]           `json:"pipe_setup_s"`
		Application byName[ApplicationBytes]   `json:"application_bytes"`
		Ratio       byName[float64]            `json:"payload_ratio_percent"`
		Details     byName[*Report]            `json:"details"`
		Partial     bool                       `json:"partial"`
		Problems    []string                   `json:"problems,omitempty"`
	}{
		byName[Figures]{name: r.Figures}, byName[map[string]float64]{name: discovery}, byName[*float64]{name: r.PipeSetupS},
		byName[ApplicationBytes]{name: r.Application}, byName[float64]{name: r.PayloadPct}, byName[*Report]{name: r},
		r.Partial, r.Problems,
	}
}

// Writer writes text, and keeps the first error.
type Writer struct {
	W   io.Writer
	Err error
}

// F writes as fmt.Fprintf does; nothing after an error.
func (w *Writer) F(format string, args ...any) {
	if w.Err == nil {
		_, w.Err = fmt.Fprintf(w.W, format, args...)
	}
}

// WriteText prints the ten tables of the report, and the kinds of messages.
func (r *Report) WriteText(out io.Writer, name string) error {
	w := &Writer{W: out}
	f := r.Figures
	w.F("%s\n\n", sentence(r.Headline))
	w.F("%s: %d packets captured, %d of TCP", name, r.CapturedPackets, f.Packets)
	if r.Link != nil {
		w.F(", %d datagrams of gateways\n\n", r.Link.Datagrams)
		r.Link.writeText(w)
		if f.Packets == 0 {
			r.Ends.writeText(w)
			r.CoT.writeText(w)
			w.remarks(r.Remarks)
			w.problems(r.Problems)
			return w.Err
		}
		w.F("\nTCP")
	}
	if f.Packets == 0 && r.CoT != nil {
		w.F("\n")
		r.CoT.writeText(w)
		w.remarks(r.Remarks)
		w.problems(r.Problems)
		return w.Err
	}
	if r.Edge != "" {
		w.F("; edge %s", r.Edge)
		if r.EdgeGuessed {
			w.F(" (it dialled most; --edge says otherwise)")
		}
	}
	w.F("\n\n")
	r.tables(w)
	r.Ends.writeText(w)
	r.messages(w)
	r.CoT.writeText(w)
	r.XMPP.writeText(w)
	w.remarks(r.Remarks)
	w.problems(r.Problems)
	return w.Err
}

// row writes a figure after its label.
func (w *Writer) row(label, format string, args ...any) {
	w.F("       %-30s "+format+"\n", append([]any{label}, args...)...)
}

// tables writes tables 5.1 to 5.10.
func (r *Report) tables(w *Writer) {
	f, row := r.Figures, w.row
	title := func(number int, text string) { w.F("%-6s %s\n", fmt.Sprintf("5.%d", number), text) }
	title(1, "Connections")
	row("connections", "%d", f.Connections)
	row("total time", "%d min %.3f s", int(f.TotalS)/60, f.TotalS-float64(int(f.TotalS)/60*60))
	row("connections per minute", "%.2f", r.ConnsPerMinute)
	title(2, "Duration of connections, seconds")
	row("least / most / mean", "%.4f / %.4f / %.4f", f.ConnMinS, f.ConnMaxS, f.ConnAvgS)
	title(3, "Duration of connections, packets")
	row("least / most / mean", "%d / %d / %.3f", f.ConnMinPkts, f.ConnMaxPkts, f.ConnAvgPkts)
	row("all", "%d", f.Packets)
	for _, l := range r.Lengths {
		row(l.name(), "%d connections, %d data packets", l.Connections, l.DataPackets)
	}
	title(4, "Setting up a connection, seconds")
	if r.Setups > 0 {
		row("least / most / mean", "%.6f / %.6f / %.6f", f.SetupMinS, f.SetupMaxS, f.SetupAvgS)
	}
	row("seen / failed / refused / begun before", "%d / %d / %d / %d", r.Setups, r.FailedSetups, r.RefusedSetups, r.MidConnections)
	title(5, "Data packets")
	row("with payload", "%d of %d, %.2f %%", f.DataPackets, f.Packets, r.DataPacketsPct)
	title(6, "Data octets, headers included")
	row("with payload", "%d of %d, %.2f %%", f.DataBytes, f.TotalBytes, r.DataBytesPct)
	row("without", "%d", f.TCPBytes)
	title(7, "Retransmissions")
	row("packets", "%d, %.2f %%", f.Retransmissions, r.RetransmitPct)
	title(8, "Discovery of services, seconds from the first packet")
	for _, s := range r.Discovery {
		label := clean(s.Name)
		if s.Own {
			label += " (its own)"
		}
		row(label, "%.3f", s.S)
	}
	if len(r.Discovery) == 0 {
		row("none", "")
	}
	title(9, "Pipe set-up, seconds from a foreign service's advertisement to the first foreign data")
	if r.PipeSetupS != nil {
		row("first data after", "%.3f", *r.PipeSetupS)
	} else {
		row("never", "")
	}
	if d := r.PipeRTTS; d != nil {
		row("from its message to the next", "%d: median %.3f, 95th %.3f, most %.3f", d.N, d.MedianS, d.P95S, d.MaxS)
	}
	title(10, "Payload")
	row("application octets in / out", "%d / %d", r.Application.In, r.Application.Out)
	if r.EchoedBytes > 0 {
		row("of those in, its own come back", "%d", r.EchoedBytes)
	}
	row("messages in / out", "%d / %d", r.InMessages, r.OutMessages)
	row("of data octets", "%d of %d, %.2f %%", r.Application.Total, r.Application.Of, r.PayloadPct)
}

// messages writes the octets of the streams by purpose.
func (r *Report) messages(w *Writer) {
	row := w.row
	w.F("\nOctets in TCP streams: %d\n", r.StreamBytes)
	row("welcome lines", "%d", r.WelcomeBytes)
	row("HTTP around messages", "%d (%d requests)", r.HTTPBytes, r.HTTPRequests)
	row("unread", "%d", r.UnreadBytes)
	w.rows("Messages", "octets", r.Kinds)
	row("of those framing", "%d", r.FramingBytes)
	row("of those CBJX trailers", "%d (%d)", r.TrailerBytes, r.Trailers)
	w.rows("Elements", "octets of content", r.Elements)
}

func (w *Writer) remarks(list []string) {
	if len(list) > 0 {
		w.F("\nTo know of the figures:\n")
	}
	for _, s := range list {
		w.F("       %s\n", sentence(s))
	}
}

func (w *Writer) problems(list []string) {
	if len(list) > 0 {
		w.F("\nThe figures are partial:\n")
	}
	for _, p := range list {
		w.F("       %s\n", sentence(p))
	}
}

// writeText prints the traffic between gateways.
func (r *LinkReport) writeText(w *Writer) {
	w.F("Link: %d IP octets, %d of %d datagrams opened\n", r.Octets, r.Opened, r.Datagrams)
	w.rows("Not opened", "IP octets", r.Unopened)
	if len(r.Ledger) > 0 {
		w.F("\n%-37s %10s\n", "Airtime ledger", "IP octets")
	}
	var total int64
	for _, row := range r.Ledger {
		w.F("       %-30s %10d\n", row.From+" to "+row.To+", "+row.Kind, row.Octets)
		total += row.Octets
	}
	if total > 0 {
		w.F("       %-30s %10d\n", "all", total)
	}
	if len(r.Layers) > 0 {
		w.F("\n%-51s %10s %12s %14s\n", "Layers of the datagrams opened", "number", "octets", "per datagram")
		for _, row := range r.Layers {
			w.F("       %-46s %8d %12d %14.2f\n", row.Name, row.Count, row.Octets, float64(row.Octets)/float64(max(r.Opened, 1)))
		}
	}
	w.rows("Frames", "octets", r.Frames)
	w.rows("Messages under custody", "octets", r.Envelopes)
	if r.Messages > 0 {
		w.F("       %-30s %10d\n", "repeated", r.Repeats)
		w.F("       %-30s %10d, after %.2f s on average, %.2f s at worst\n", "receipted", r.Acked, r.MeanS, r.MaxS)
		w.F("       %-30s %10d\n", "NORM objects put together", r.Objects)
	}
}

// cotShown is how many units the text lists.
const cotShown = 20

// writeText prints the events of TAK devices, if there are any.
func (r *CoTReport) writeText(w *Writer) {
	if r == nil {
		return
	}
	w.F("\nTAK: %d events, %d octets, in %.0f s; %d of version 1; %d copies of them\n", r.Events, r.Octets, r.Seconds, r.Proto, r.Copies)
	w.F("       %d devices and %d other units, %.1f reports a minute; %d streams, %d datagrams of the mesh\n", r.Devices, r.Units-r.Devices, r.PerMinute, r.Streams, r.Datagrams)
	w.rows("Events", "octets", r.Kinds)
	w.rows("Not read", "octets", r.Refused)
	if len(r.Of) > 0 {
		w.F("\n%-51s %10s %12s %10s\n", "Units", "reports", "octets", "a minute")
	}
	for _, u := range r.Of[:min(len(r.Of), cotShown)] {
		name := cmp.Or(u.Callsign, u.UID) + ", " + u.Type
		if u.Device {
			name += " (device)"
		}
		w.F("       %-44s %10d %12d %10.1f\n", clean(name), u.Reports, u.Octets, u.PerMinute)
	}
	if n := len(r.Of) - cotShown; n > 0 {
		w.F("       and %d more\n", n)
	}
	r.writeCosts(w)
}

// writeCosts prints the cost of the events on links.
func (r *CoTReport) writeCosts(w *Writer) {
	if len(r.Costs) == 0 {
		return
	}
	w.F("\nThe same events through two gateways\n")
	w.F("       %-26s %10s %9s %7s %9s %10s %9s %9s %9s\n", "link", "octets", "a report", "busy", "unaided", "unit off", "in 95 %", "event", "not shown")
	for _, c := range r.Costs {
		w.F("       %-26s %10d %9.1f %5.1f %% %7.0f %% %8.0f m %7.0f m %7.1f s %9d\n", clean(c.Profile), c.Octets, c.PerReport, c.BusyPct, c.UnaidedPct, c.MedianM, c.P95M, c.P95S, c.Unshown)
	}
	w.F("       unaided: how full the events alone, without a header, make the link ship to shore. unit off: how far a unit is shown from\n" +
		"       where it is, median; in 95 %%: of all comparisons. event: 95 %% of markers, chats and the like are there by then.\n")
}

func (w *Writer) rows(title, unit string, rows []Row) {
	if len(rows) == 0 {
		return
	}
	w.F("\n%-51s %10s %12s\n", title, "number", unit)
	for _, r := range rows {
		w.F("       %-44s %10d %12d\n", clean(r.Name), r.Count, r.Octets)
	}
}

// clean makes a text from a network fit to be printed.
func clean(s string) string { return tame(s, 80) }

// sentence does the same for a line of words.
func sentence(s string) string { return tame(s, 500) }

// tame removes characters that a terminal would obey, and octets beyond most.
func tame(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xfffd {
			return '?'
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return s
}
