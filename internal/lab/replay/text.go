package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"aldis/internal/lab/trace"
)

// WriteText prints a result for people.
func (res *Result) WriteText(out io.Writer) error {
	w := &trace.Writer{W: out}
	how := "in virtual time"
	if res.Mode == "live" {
		how = "live"
	}
	w.F("%s, %s, on %s, seed %d\n\n", orElse(res.Source, "trace"), how, res.Profile, res.Seed)
	w.F("%-34s %12s %12s %12s\n", "", "trace", "replay", "published")
	pub := res.Captures.Published.TotalS > 0
	three := func(label, first, second, third string) {
		w.F("%s\n", strings.TrimRight(fmt.Sprintf("%-34s %12s %12s %12s", label, first, second, third), " "))
	}
	row := func(label, traced, replay, published string) {
		if !pub {
			published = ""
		}
		three(label, traced, replay, published)
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
	w.F("\n%d of %d messages arrived, %d lost, %d twice, %d changed, %d out of order", m.Delivered, m.Expected, m.Lost, m.Duplicates, m.Corrupted, m.OutOfOrder)
	if m.Untaken > 0 {
		w.F(" (%d of those lost were never taken: nobody was known to listen)", m.Untaken)
	}
	if m.Unheard > 0 {
		w.F("; %d more had no listener", m.Unheard)
	}
	w.F("\n\n%-34s %12s %12s %12s\n", "", "both", "to shore", "to ship")
	three("latency median, s", opt(res.Latency.Median), opt(res.LatencyUp.Median), opt(res.LatencyDown.Median))
	three("latency 95 %, s", opt(res.Latency.P95), opt(res.LatencyUp.P95), opt(res.LatencyDown.P95))
	three("latency worst, s", opt(res.Latency.Max), opt(res.LatencyUp.Max), opt(res.LatencyDown.Max))
	counts := func(label string, n UpDown[int64]) {
		three(label, fmt.Sprint(n.Up+n.Down), fmt.Sprint(n.Up), fmt.Sprint(n.Down))
	}
	counts("octets on the link", res.LinkBytes)
	counts("packets", res.LinkPackets)
	counts("packets lost on the air", res.Lost)
	counts("packets dropped by full queues", res.Dropped)
	three("the link is busy, % of the time", "", num(res.BusyPct.Up), num(res.BusyPct.Down))
	three("applications offer, bit/s", "", fmt.Sprintf("%.0f", res.Offered.Up), fmt.Sprintf("%.0f", res.Offered.Down))
	three("the link takes, bit/s", "", rate(res.RateBps.Up), rate(res.RateBps.Down))
	for i, b := range res.Bearers {
		if i == 0 {
			w.F("\n%-34s %12s %12s %12s\n", "Octets by link", "to shore", "to ship", "money")
		}
		three(fmt.Sprintf("%s, %s", b.Link, b.Profile), fmt.Sprint(b.Octets.Up), fmt.Sprint(b.Octets.Down), num(b.Money))
	}
	for i, row := range res.WayTable() {
		if i == 0 {
			w.F("\nWhich link messages took\n")
		}
		for _, cell := range row {
			w.F("%-12s ", cell)
		}
		w.F("\n")
	}
	w.F("\n%-34s %12s\n", "What the octets were for", "octets")
	kinds := slices.SortedFunc(maps.Keys(res.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(res.Kinds[b], res.Kinds[a]), strings.Compare(a, b))
	})
	for _, kind := range kinds {
		w.F("%-34s %12d\n", kind, res.Kinds[kind])
	}
	if c := res.Capture; c != nil {
		w.F("\nCapture of the link: %d octets in %d datagrams; the ledgers have %d (%.2f %% off)\n", c.Octets, c.Packets, c.Ledger, c.Difference)
	}
	for _, n := range slices.Concat(res.Notes, res.Remarks) {
		w.F("\nNote: %s", n)
	}
	if len(res.Notes)+len(res.Remarks) > 0 {
		w.F("\n")
	}
	if len(res.Problems) > 0 {
		w.F("\nThe figures are partial:\n")
	}
	for _, p := range res.Problems {
		w.F("  %s\n", p)
	}
	return w.Err
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
