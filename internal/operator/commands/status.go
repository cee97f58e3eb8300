package operator

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/edge/rights"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/operator/control/glance"
)

const statusAbout = `usage: gateway status [-c FILE] [--json]

Shows the gateway that runs on this machine: its peers, what waits for them, and what the link's octets were used for.
From FILE it reads only where the gateway answers (http.listen). Exit: 0 the gateway runs and all is well, 1 not so.
`

func statusCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("status", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	asJSON := fs.Bool("json", false, "print the gateway's answer as JSON")
	if _, code, done := cli.Parse(fs, args, 0, statusAbout, stdout, stderr); done {
		return code
	}
	at, err := config.HTTPListen(*file)
	if err != nil {
		return cli.Fail(stderr, "status", err)
	}
	body, err := ask(at)
	if err != nil {
		return cli.Fail(stderr, "status", err)
	}
	var r StatusReport
	if err := json.Unmarshal(body, &r); err != nil {
		return cli.Fail(stderr, "status", fmt.Errorf("%s answers, but not like this version of the gateway: %w", at, err))
	}
	if *asJSON {
		stdout.Write(body)
	} else {
		printStatus(stdout, r, time.Now())
	}
	if r.Trouble != "" {
		return cli.ExitRefused
	}
	return cli.ExitGood
}

// StatusReport is the answer of /status, with the JXTA adapter's part decoded.
type StatusReport struct {
	control.Report
	LAN jxtabridge.Status `json:"lan"`
}

// ask fetches /status.
func ask(at netip.AddrPort) ([]byte, error) { return deskAt(at).talk("GET", "/status", nil) }

// dialable is the address at which to reach a gateway that listens at this one.
func dialable(at netip.AddrPort) netip.AddrPort {
	if !at.Addr().IsUnspecified() {
		return at
	}
	loopback := netip.IPv6Loopback()
	if at.Addr().Is4() {
		loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrPortFrom(loopback, at.Port())
}

// printStatus prints the output of gateway status for people.
func printStatus(out io.Writer, r StatusReport, now time.Time) {
	fmt.Fprintf(out, "node %d %q, version %s, up %s\n", r.ID, r.Name, r.Version, now.Sub(r.Started).Round(time.Second))
	printKeys(out, r)
	printCorpora(out, r)
	if r.Trouble != "" {
		fmt.Fprintf(out, "TROUBLE: %s\n", r.Trouble)
	}
	if r.Site != nil {
		printTwo(out, *r.Site, now)
	}
	normText := "down"
	if r.NORM.Up {
		normText = "up"
	}
	fmt.Fprintf(out, "link profile %s, this end is the %s; NORM %s, replaced %d times\n", r.Profile, r.End, normText, r.NORM.Failures)
	if r.Cell != nil && !r.Cell.Whole {
		fmt.Fprintf(out, "the NORM process is not in its whole cell; missing: %s\n", strings.Join(r.Cell.Missing, ", "))
	}
	for _, p := range r.Peers {
		if m := p.Measured; len(m.Differs) > 0 {
			fmt.Fprintf(out, "the link to %s is not as its profile says: %s", p.Name, strings.Join(m.Differs, ", "))
			if m.PaceBps > 0 {
				fmt.Fprintf(out, "; it has %d bit/s, what goes is paced at %d", m.RateBps, m.PaceBps)
			}
			fmt.Fprintln(out)
		}
	}
	if missing := rights.Missing(r.Protections); len(missing) > 0 {
		fmt.Fprintf(out, "the gateway lacks protections: %s\n", strings.Join(missing, "; "))
	}
	if r.Silence.On {
		printSilence(out, r.Silence, now)
	}
	for _, b := range r.Bearers {
		if b.Silence.On || b.Silence.Quiet && !r.Silence.On {
			fmt.Fprintf(out, "link %s: ", cmp.Or(b.Name, b.Profile))
			printSilence(out, b.Silence, now)
		}
	}
	printHolds(out, r.Holds)
	if d := r.Drain; d != nil {
		fmt.Fprintf(out, "DRAINED since %s: no messages of local peers are taken (%d refused), %d have to go out (gateway drain --off ends that)\n",
			d.Since.UTC().Format(time.RFC3339), d.Refused, d.Messages)
	}
	printSite(out, r.LAN, now)
	fmt.Fprintln(out)
	printPeerTable(out, r, now)
	printBearers(out, r, now)
	printSessions(out, r, now)
	printDistances(out, r)
	fmt.Fprintln(out)
	printLedger(out, r.Ledger)
	if len(r.Bearers) < 2 {
		printMonth(out, "", r.Month, r.Bill)
	}
	for _, b := range r.Bearers {
		if len(r.Bearers) > 1 {
			printMonth(out, " on "+b.Name, b.Month, b.Bill)
		}
	}
	printLosses(out, r)
}

// printMonth prints a bearer's traffic of this month, and its bill by the tariff.
func printMonth(out io.Writer, on string, m *api.BillMonth, bill *api.BillStatus) {
	if m != nil {
		fmt.Fprintf(out, "this month%s since %s: %d octets sent, %d received (gateway bill)\n", on, m.Since.UTC().Format(time.RFC3339), m.Total.SentOctets, m.Total.ReceivedOctets)
	}
	if bill != nil {
		fmt.Fprintf(out, "billed%s by units of %d octets: %d sent (%s used), %d received (%s used)\n", on, bill.UnitOctets,
			bill.Sent, share(bill.SentOctets, bill.Sent, bill.UnitOctets), bill.Received, share(bill.ReceivedOctets, bill.Received, bill.UnitOctets))
	}
}

// printSite prints the peers of this site.
func printSite(out io.Writer, lan jxtabridge.Status, now time.Time) {
	fmt.Fprintf(out, "this site: %d local peers, %d advertisements, %d open questions\n", len(lan.Peers), lan.Adverts, lan.Questions)
	if lan.View != jxtabridge.Complete && lan.View != "" {
		fmt.Fprintf(out, "  other sites are told of them by the view %q\n", lan.View)
	}
	if n := len(lan.Views); n > 0 {
		fmt.Fprintf(out, "  %d rules about views go before that, of which %d are orders (gateway status --json, lan.views)\n", n, lan.Ordered)
	}
	for _, p := range lan.Peers {
		name := p.Name
		if name == "" {
			name = p.Peer
		}
		fmt.Fprintf(out, "  %q (%s): %d connections, %d groups, %d pipes, %d messages wait for it\n",
			glance.Cut(name), p.Generation, p.Connections, len(p.Leases), len(p.Pipes), p.Waiting)
	}
	for _, a := range lan.Away {
		who := glance.Cut(a.Peer)
		switch {
		case a.Peer == "":
			who = "nobody that is known"
		case !a.Since.IsZero():
			who += ", away for " + now.Sub(a.Since).Round(time.Second).String()
		}
		fmt.Fprintf(out, "  %d messages (%d octets) wait for %s\n", a.Messages, a.Octets, who)
	}
}

// printPeerTable prints a line for each far gateway.
func printPeerTable(out io.Writer, r StatusReport, now time.Time) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PEER\tLINK\tHEARD\tADDRESS\tWAITING\tUNDER WAY\tNEWS\tDELIVERED\tRECEIVED\tITEMS THERE\tITEMS HERE")
	for _, p := range r.Peers {
		heard := "never"
		if t, err := time.Parse(time.RFC3339, p.LastHeard); err == nil {
			heard = now.Sub(t).Round(time.Second).String() + " ago"
		}
		address := p.Address
		if address == "" {
			address = "not known"
		}
		waiting, underWay, _ := p.Messages()
		fmt.Fprintf(w, "%d %s\t%s\t%s\t%s\t%d\t%d\t%d\t%d of %d\t%d\t%d of %d\t%d\n", p.ID, p.Name, p.Link, heard, address,
			waiting, underWay, p.NewsWaiting+p.NewsUnderWay, p.Delivered, p.Accepted, p.Received, p.ItemsHeld, r.Items, p.FarItems)
	}
	w.Flush()
}

// printLosses prints messages that have not arrived, and those that rules and errors have dropped.
func printLosses(out io.Writer, r StatusReport) {
	for _, p := range r.Peers {
		if p.Expired+p.Superseded+p.Cancelled > 0 {
			fmt.Fprintf(out, "messages for %s that were not sent: %d expired, %d replaced by newer ones, %d given up for more urgent ones\n",
				p.Name, p.Expired, p.Superseded, p.Cancelled)
		}
		if p.Undeliverable > 0 {
			fmt.Fprintf(out, "messages for %s that it had received: %d were undeliverable there\n", p.Name, p.Undeliverable)
		}
		if p.UndeliverableHere > 0 || p.Pending > 0 {
			fmt.Fprintf(out, "messages from %s: %d handed over, %d wait for local peers, %d were undeliverable here\n",
				p.Name, p.HandedOver, p.Pending, p.UndeliverableHere)
		}
	}
	for _, f := range r.Filters {
		if f.Fits > 0 {
			fmt.Fprintf(out, "%s, %s: took %d, of which %d waited and %d were dropped for its rate\n", ruleText(f.Label, f.Line), f.Action, f.Fits, f.Waited, f.Dropped)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Dropped)) {
		if n := r.Dropped[reason]; n > 0 {
			fmt.Fprintf(out, "dropped, %s: %d\n", reason, n)
		}
	}
}

// printHolds prints the orders to hold a precedence.
func printHolds(out io.Writer, holds []api.HoldStatus) {
	for _, h := range holds {
		fmt.Fprintf(out, "HELD: %s messages since %s, by %s; %d held now (gateway message release --precedence %s)\n",
			h.Precedence, h.Since.UTC().Format(time.RFC3339), plain(h.By), h.Messages, h.Precedence)
	}
}

// share is the part of the billed units that the octets have used.
func share(octets, units uint64, unit int) string {
	if units == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%d %%", 100*octets/(units*uint64(unit)))
}

// printBearers prints a table of the ways to each peer if there are several. A star marks the way that messages take.
func printBearers(out io.Writer, r StatusReport, now time.Time) {
	if len(r.Bearers) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nPEER\tBEARER\tLINK\tADDRESS\tHEARD\tWAITING\tUNDER WAY\n")
	for _, p := range r.Peers {
		for _, b := range p.Bearers {
			heard, star := "never", ""
			if at, err := time.Parse(time.RFC3339, b.LastHeard); err == nil {
				heard = now.Sub(at).Round(time.Second).String() + " ago"
			}
			if b.Used {
				star = " *"
			}
			fmt.Fprintf(w, "%s\t%s%s\t%s\t%s\t%s\t%d\t%d\n", p.Name, b.Bearer, star, b.Link, cmp.Or(b.Address, "-"), heard, b.Waiting, b.UnderWay)
		}
	}
	w.Flush()
	for _, b := range r.Bearers {
		if d := b.Day; d != nil {
			fmt.Fprintf(out, "%s has carried %d of %d octets of this day", cmp.Or(b.Name, b.Profile), d.Octets, d.Most)
			if d.Spent {
				fmt.Fprintf(out, ": it is silent until %s", d.Until.UTC().Format(time.RFC3339))
			}
			fmt.Fprintln(out)
		}
	}
}

// printSessions prints the direct sessions of each bearer that has any, and with whom none could be opened.
func printSessions(out io.Writer, r StatusReport, now time.Time) {
	for _, b := range r.Bearers {
		d := b.Direct
		if d == nil || len(d.Sessions)+len(d.Opening)+len(d.Greylist) == 0 {
			continue
		}
		fmt.Fprintf(out, "\ndirect sessions on %s: %d of at most %d\n", cmp.Or(b.Name, b.Profile), len(d.Sessions), d.Limit)
		for _, s := range d.Sessions {
			fmt.Fprintf(out, "  %s since %s: %d octets went without a relay\n", s.Peer, s.Since.UTC().Format(time.RFC3339), s.Spared)
		}
		for _, name := range d.Opening {
			fmt.Fprintf(out, "  %s is being opened\n", name)
		}
		for _, g := range d.Greylist {
			if left := g.Until.Sub(now); left > 0 {
				fmt.Fprintf(out, "  %s failed %d times in a row; the next try is in %v at the earliest\n", g.Peer, g.Failures, left.Round(time.Second))
			}
		}
	}
}

// printDistances prints a table of how long messages take on each way, according to the traffic.
func printDistances(out io.Writer, r StatusReport) {
	if len(r.Peers) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nDISTANCE\tWAY\t200 OCTETS\t20,000 OCTETS\tLOST\tPRICE\tHOPS\tSILENT UNTIL\n")
	row := func(name, way string, q api.Quality) {
		until := "-"
		if !q.SilentUntil.IsZero() {
			until = q.SilentUntil.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f s\t%.0f s\t%.1f %%\t%v\t%d %s\t%s\n", name, way, q.ShortS, q.LongS, q.LostPct, q.Price, q.Hops, q.NextHop, until)
	}
	for _, p := range r.Peers {
		for _, b := range p.Bearers {
			if b.Up || b.Used {
				row(p.Name, b.Bearer, b.Quality)
			}
		}
		if len(p.Bearers) == 0 {
			row(p.Name, r.Profile, p.Quality)
		}
	}
	w.Flush()
}

// printLedger prints a table of IP octets: a row for each peer and direction, a column for each kind.
func printLedger(out io.Writer, rows []api.LedgerRow) {
	kinds := []string{"payload", "advertisement", "state", "ack", "repair", "header", "key", "link_probe"}
	type account struct{ peer, bearer, direction string }
	var order []account
	sums := map[account]map[string]uint64{}
	for _, row := range rows {
		a := account{row.Peer, row.Bearer, row.Direction}
		if sums[a] == nil {
			sums[a] = map[string]uint64{}
			order = append(order, a)
		}
		sums[a][row.Kind] += row.Octets
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "LINK OCTETS\t\t%s\tTOTAL\t\n", strings.ToUpper(strings.Join(kinds, "\t")))
	for _, a := range order {
		var total uint64
		fmt.Fprintf(w, "%s\t%s\t", strings.TrimSpace(a.peer+" "+a.bearer), a.direction)
		for _, k := range kinds {
			total += sums[a][k]
			fmt.Fprintf(w, "%d\t", sums[a][k])
		}
		fmt.Fprintf(w, "%d\t\n", total)
	}
	w.Flush()
}

// printKeys prints the fingerprints that operators compare aloud.
func printKeys(out io.Writer, r StatusReport) {
	if r.Roster == nil {
		fmt.Fprintf(out, "network key %s\n", r.Key)
		return
	}
	fmt.Fprintf(out, "node key %s\nroster %d of the network %s, signed by %s, digest %s\n", r.Key, r.Roster.Serial, r.Roster.Network, r.Roster.Authority, strings.Join(r.Roster.Digests, " and "))
	if r.Roster.Differs {
		fmt.Fprintf(out, "TWO ROSTERS HAVE THE SERIAL %d: only nodes that both name are heard and spoken to; make the next of the right one (gateway keys roster roll) and give it (gateway keys rollover)\n", r.Roster.Serial)
	}
	for _, p := range r.Peers {
		if p.Key != "" {
			fmt.Fprintf(out, "  %q has the key %s%s%s\n", p.Name, p.Key, serialText(p), secretText(p.Forward))
		}
	}
}

// printCorpora prints which peers code with which corpus of the network, and which corpora from other sites wait for a
// decision.
func printCorpora(out io.Writer, r StatusReport) {
	for _, c := range r.Corpora.Received {
		if c.Name != r.Corpus && c.Name != r.Corpora.Accepted {
			fmt.Fprintf(out, "corpus %s was sent by site %d and is not used: gateway corpus list\n", c.Name, c.Site)
		}
	}
	if a := r.Corpora.Accepted; a != "" && a != r.Corpus {
		fmt.Fprintf(out, "corpus %s is used from the next start on\n", a)
	}
	if r.Corpus == "" {
		return
	}
	fmt.Fprintf(out, "corpus %s of the net\n", r.Corpus)
	for _, p := range r.Peers {
		switch p.Corpus {
		case r.Corpus:
			fmt.Fprintf(out, "  %q has it\n", p.Name)
		case "":
			fmt.Fprintf(out, "  %q has none, or has not said so yet\n", p.Name)
		default:
			fmt.Fprintf(out, "  %q has another, %s: what is for it is coded without\n", p.Name, p.Corpus)
		}
	}
}

// secretText says whether an attacker who later takes the keys of both nodes can read today's messages to a peer.
func secretText(forward bool) string {
	if forward {
		return ", forward secret"
	}
	return ", not forward secret"
}

func serialText(p api.PeerStatus) string {
	switch {
	case p.Roster == 0:
		return ""
	case p.RosterDiffers:
		return fmt.Sprintf(", goes by another roster %d", p.Roster)
	}
	return fmt.Sprintf(", goes by roster %d", p.Roster)
}
