package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteText prints a result for people.
func (res *Result) WriteText(out io.Writer) error {
	w := &textWriter{w: out}
	how := "in virtual time"
	if res.Mode == "live" {
		how = "live"
	}
	w.f("%s, %s, on %s, seed %d\n\n", orElse(res.Source, "trace"), how, res.Profile, res.Seed)
	w.f("%-34s %12s %12s %12s\n", "", "trace", "replay", "published")
	pub := res.Captures.Published.TotalS > 0
	row := func(label, trace, replay, published string) {
		if !pub {
			published = ""
		}
		w.f("%s\n", strings.TrimRight(fmt.Sprintf("%-34s %12s %12s %12s", label, trace, replay, published), " "))
	}
	c := res.Captures
	row("duration, s", num(c.Trace.TotalS), num(c.Replay.TotalS), num(c.Published.TotalS))
	row("octets on the link", count(c.Trace.TotalBytes), count(c.Replay.TotalBytes), count(c.Published.DataBytes))
	row("packets", count(c.Trace.Packets), count(c.Replay.Packets), "")
	row("repeated", "", count(c.Replay.Retransmissions), "")
	for _, name := range names(res.DiscoveryS.Trace, res.DiscoveryS.Replay) {
		row("ship finds "+name+", s", at(res.DiscoveryS.Trace, name), at(res.DiscoveryS.Replay, name), at(res.DiscoveryS.Published, name))
	}
	for _, name := range names(res.ShoreFindsS.Trace, res.ShoreFindsS.Replay) {
		row("shore finds "+name+", s", at(res.ShoreFindsS.Trace, name), at(res.ShoreFindsS.Replay, name), at(res.ShoreFindsS.Published, name))
	}
	row("published and asked to found, s", "", opt(res.FindWaitS), "")
	row("pipe set-up, s", opt(res.PipeSetupS.Trace), opt(res.PipeSetupS.Replay), opt(res.PipeSetupS.Published))
	row("listener known at the other end, s", "", opt(res.PipeKnownS), "")
	a := res.Application
	row("application octets in", fmt.Sprint(a.Trace.In), fmt.Sprint(a.Replay.In), fmt.Sprint(a.Published.In))
	row("application octets out", fmt.Sprint(a.Trace.Out), fmt.Sprint(a.Replay.Out), fmt.Sprint(a.Published.Out))
	row("of the link's octets, %", "", num(res.PayloadRatio.Replay), num(res.PayloadRatio.Published))

	m := res.Messages
	w.f("\n%d of %d messages arrived, %d lost, %d twice, %d changed, %d out of order", m.Delivered, m.Expected, m.Lost, m.Duplicates, m.Corrupted, m.OutOfOrder)
	if m.Untaken > 0 {
		w.f(" (%d of those lost were never taken: nobody was known to listen)", m.Untaken)
	}
	if m.Unheard > 0 {
		w.f("; %d more had no listener", m.Unheard)
	}
	w.f("\n\n%-34s %12s %12s %12s\n", "", "both", "to shore", "to ship")
	three := func(label string, both, up, down string) {
		w.f("%s\n", strings.TrimRight(fmt.Sprintf("%-34s %12s %12s %12s", label, both, up, down), " "))
	}
	three("latency median, s", opt(res.Latency.Median), opt(res.LatencyUp.Median), opt(res.LatencyDown.Median))
	three("latency 95 %, s", opt(res.Latency.P95), opt(res.LatencyUp.P95), opt(res.LatencyDown.P95))
	three("latency worst, s", opt(res.Latency.Max), opt(res.LatencyUp.Max), opt(res.LatencyDown.Max))
	three("octets on the link", fmt.Sprint(res.LinkBytes.Up+res.LinkBytes.Down), fmt.Sprint(res.LinkBytes.Up), fmt.Sprint(res.LinkBytes.Down))
	three("packets", fmt.Sprint(res.LinkPackets.Up+res.LinkPackets.Down), fmt.Sprint(res.LinkPackets.Up), fmt.Sprint(res.LinkPackets.Down))
	three("packets lost on the air", fmt.Sprint(res.Lost.Up+res.Lost.Down), fmt.Sprint(res.Lost.Up), fmt.Sprint(res.Lost.Down))
	three("packets dropped by full queues", fmt.Sprint(res.Dropped.Up+res.Dropped.Down), fmt.Sprint(res.Dropped.Up), fmt.Sprint(res.Dropped.Down))
	three("the link is busy, % of the time", "", num(res.BusyPct.Up), num(res.BusyPct.Down))
	three("applications offer, bit/s", "", fmt.Sprintf("%.0f", res.Offered.Up), fmt.Sprintf("%.0f", res.Offered.Down))
	three("the link takes, bit/s", "", rate(res.RateBps.Up), rate(res.RateBps.Down))
	w.f("\n%-34s %12s\n", "What the octets were for", "octets")
	kinds := slices.SortedFunc(maps.Keys(res.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(res.Kinds[b], res.Kinds[a]), strings.Compare(a, b))
	})
	for _, kind := range kinds {
		w.f("%-34s %12d\n", kind, res.Kinds[kind])
	}
	if c := res.Capture; c != nil {
		w.f("\nCapture of the link: %d octets in %d datagrams; the ledgers have %d (%.2f %% off)\n", c.Octets, c.Packets, c.Ledger, c.Difference)
	}
	for _, n := range slices.Concat(res.Notes, res.Remarks) {
		w.f("\nNote: %s", n)
	}
	if len(res.Notes)+len(res.Remarks) > 0 {
		w.f("\n")
	}
	if len(res.Problems) > 0 {
		w.f("\nThe figures are partial:\n")
	}
	for _, p := range res.Problems {
		w.f("  %s\n", p)
	}
	return w.err
}

// textWriter keeps the first error.
type textWriter struct {
	w   io.Writer
	err error
}

func (w *textWriter) f(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.w, format, args...)
	}
}

func names(maps ...map[string]float64) (list []string) {
	for _, m := range maps {
		for name := range m {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func at(m map[string]float64, name string) string {
	if v, ok := m[name]; ok {
		return num(v)
	}
	return ""
}

func num(v float64) string { return fmt.Sprintf("%.2f", v) }

func opt(v *float64) string {
	if v == nil {
		return "-"
	}
	return num(*v)
}

func count(v *int64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

func rate(bps int) string {
	if bps == 0 {
		return "any"
	}
	return fmt.Sprint(bps)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
