package operator

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"aldis/internal/adapters/corpusexchange"
	"aldis/internal/edge/config"
	"aldis/internal/gateway"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

const checkAbout = `usage: gateway check [-c FILE] [--example WHAT [--json]]

Reads a configuration with its profile and key, and reports every mistake with file, line and key. If there is none, it
prints what would run, and warnings. It changes nothing, needs no link, and may run beside the gateway. FILE may also
stand without -c.

With --example it shows which [[filter]] rule takes an example, and which condition each earlier rule misses. WHAT is a
file with an advertisement, a CoT event or an XMPP stanza, or a list of file, type, root, name, group, peer, pipe, size, direction and site. A message
may also have element, mime and data, a file with its content; for a message check also shows what the [[message]] rules make of it,
of several links which one it takes to each site while all are idle, through which gateway, and why,
and what [[meet]] makes of its content for TAK devices; of a CoT event it shows what [[meet]] gives JXTA peers:
  gateway check --example adv.xml
  gateway check --example 'type=pipe,name=ship track,size=400'
  gateway check --example 'file=adv.xml,group=urn:jxta:uuid-…02,site=hq'
  gateway check --example 'type=message,element=track,mime=text/plain,size=200'
  gateway check --example 'type=message,element=trk:body,data=track.xml'
Types: peer, group, pipe, class, spec, impl, other, listener (an open input pipe), message, question.
`

func checkCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	what := fs.String("example", "", "show which filter rule takes `WHAT`")
	asJSON := fs.Bool("json", false, "with --example: answer as JSON")
	rest, code, done := cli.Parse(fs, args, 1, checkAbout, stdout, stderr)
	if done {
		return code
	}
	named := false
	fs.Visit(func(f *flag.Flag) { named = named || f.Name == "c" })
	if len(rest) == 1 && named {
		fmt.Fprintf(stderr, "gateway check: two files are named, %s and %s: which?\n", *file, rest[0])
		return cli.ExitUsage
	}
	if len(rest) == 1 {
		*file = rest[0]
	}
	if *asJSON && *what == "" {
		fmt.Fprint(stderr, "gateway check: --json goes with --example\n\n", checkAbout)
		return cli.ExitUsage
	}
	cfg, err := config.Load(*file)
	if err != nil {
		return cli.Mistakes(stderr, err)
	}
	if *what != "" {
		return explain(cfg, *what, *asJSON, stdout, stderr)
	}
	summary(stdout, cfg)
	for _, w := range cfg.Warnings() {
		fmt.Fprintf(stdout, "warning: %s\n", w)
	}
	return cli.ExitGood
}

func summary(out io.Writer, c *config.Config) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	p, end := c.Link.Profile, "terminal"
	if c.Link.Shore {
		end = "shore"
	}
	fmt.Fprintf(w, "node\t%d %q, data in %s\n", c.Node.ID, c.Node.Name, c.Node.DataDir)
	if c.Node.Silent {
		fmt.Fprintln(w, "silence\tfor ever (node.silent = true): nothing is transmitted, and no order ends that")
	}
	for _, s := range c.Silences {
		fmt.Fprintf(w, "silence\t%s\n", s)
	}
	if seeds := c.LAN.Seeds(); len(seeds) > 0 {
		fmt.Fprintf(w, "lan\tJXTA peers dial %s, at most %d connections\n", strings.Join(seeds, " or "), c.LAN.MaxConnections)
	} else {
		fmt.Fprintln(w, "lan\tno JXTA peers are served")
	}
	for _, line := range takSummary(c) {
		fmt.Fprintf(w, "tak\t%s\n", line)
	}
	for _, line := range xmppSummary(c) {
		fmt.Fprintf(w, "xmpp\t%s\n", line)
	}
	for _, line := range meetSummary(c) {
		fmt.Fprintf(w, "meet\t%s\n", line)
	}
	if c.LAN.Multicast.IsValid() {
		fmt.Fprintf(w, "\tpeers without a seed find it by multicast, %s\n", c.LAN.Multicast)
	}
	if t := c.Link.Trust; t.On() {
		fmt.Fprintf(w, "link\t%s, node key %s, roster %d of the network %s with %d nodes\n", over(c.Link), t.Own.Public().Fingerprint(), t.Roster.Serial, t.Roster.Network, len(t.Roster.Nodes))
	} else {
		fmt.Fprintf(w, "link\t%s, key %s (its fingerprint is %s at every gateway of the network)\n", over(c.Link), c.Link.KeyFile, c.Link.Key.Fingerprint())
	}
	if len(c.More) > 0 {
		fmt.Fprintf(w, "bearer\t%q, 1,000 octets at %s\n", c.Link.Name, price(c.Link))
	}
	fmt.Fprintf(w, "profile\t%s (%s), this end is the %s\n", p.Name, p.Summary, end)
	fmt.Fprintf(w, "\tup %s, down %s bit/s, datagrams of %d octets, window %d, acknowledgements ride for %v, keepalive %s\n",
		rate(p.Up.RateBps), rate(p.Down.RateBps), p.DatagramOctets, p.Window, p.AckDelay, keepalive(c))
	fmt.Fprintf(w, "carrier\t%s\n", carrier(c))
	for _, peer := range c.Link.Peers {
		fmt.Fprintf(w, "peer\t%d %q, %s\n", peer.ID, peer.Name, reachedAt(peer))
	}
	for _, n := range c.Link.Enrolled() {
		fmt.Fprintf(w, "roster\t%d %q, %s\n", n.ID, n.Name, n.Words())
	}
	if c.Node.Relay {
		fmt.Fprintln(w, "relay\tpasses on messages between other gateways, with custody")
	}
	for _, l := range c.More {
		fmt.Fprintf(w, "bearer\t%q, %s, profile %s, 1,000 octets at %s\n", l.Name, over(l), l.Profile.Name, price(l))
		for _, peer := range l.Peers {
			fmt.Fprintf(w, "peer\t%d, %s\n", peer.ID, reachedAt(peer))
		}
	}
	if c.HTTP.Listen.IsValid() {
		fmt.Fprintf(w, "http\thttp://%s/status /metrics /healthz\n", c.HTTP.Listen)
	} else {
		fmt.Fprintln(w, "http\tnone: gateway status cannot ask")
	}
	fmt.Fprintf(w, "orders\t%s\n", orders(c))
	fmt.Fprintf(w, "filters\t%s\n", filters(c))
	if n := len(c.Routes); n > 0 {
		fmt.Fprintf(w, "routes\t%d rules of links; a message that fits none takes the cheapest link on which it is in time\n", n)
	}
	if n := len(c.Messages); n > 0 {
		fmt.Fprintf(w, "messages\t%d rules of precedence, lifetime and supersession; a message that fits none is routine\n", n)
	}
	if c.Corpus.File != "" {
		fmt.Fprintf(w, "corpus\t%s, %s (the same at every gateway that codes by it)\n", c.Corpus.File, corpusexchange.Name(c.Corpus.CorpusFile))
	}
	fmt.Fprintf(w, "log\t%s, %s\n", c.Log.Level, c.Log.Format)
	w.Flush()
}

// reachedAt says at which address a peer is reached.
func reachedAt(p config.Peer) string {
	text := "address learned from its first datagram"
	if p.Address.IsValid() {
		text = "at " + p.Address.String()
	}
	if p.Via != "" {
		text += "; via " + p.Via + " when it does not answer"
	}
	return text
}

// price is the price of a bearer, as the gateway computes with it.
func price(l config.Link) string {
	text := fmt.Sprint(gateway.PriceOf(l.Price, &l.Profile))
	if l.Price == 0 && !l.Profile.Free() {
		text += " (as if)"
	}
	if l.Octets > 0 {
		text += fmt.Sprintf(", %d octets a day", l.Octets)
	}
	return text
}

// orders says who may give orders, and where.
func orders(c *config.Config) string {
	text := "over " + c.Control.Socket + ", from root and the gateway's own user"
	if c.Control.Group != "" {
		text += " and the group " + c.Control.Group
	}
	if c.HTTP.Token != "" {
		text += "; over http with the token of " + c.HTTP.TokenFile
	}
	return text
}

// filters says how many rules there are.
func filters(c *config.Config) string {
	if len(c.Filters) == 0 {
		return "no rules: what somebody uses or asks for crosses"
	}
	return fmt.Sprintf("%d rules, the first that fits decides; --example shows which", len(c.Filters))
}

// carrier says how messages travel.
func carrier(c *config.Config) string {
	switch {
	case c.Link.Profile.Transport != profile.PMul:
		return "datagrams to each peer: long messages in segments, the longest over NORM"
	case c.Link.Group.IsValid():
		return fmt.Sprintf("P_Mul, to the group %s", c.Link.Group)
	}
	return "P_Mul, a copy to each peer"
}

func rate(bps int) string {
	if bps == 0 {
		return "unlimited"
	}
	return fmt.Sprint(bps)
}

func keepalive(c *config.Config) string {
	if c.Link.Keepalive == 0 {
		return "none"
	}
	return c.Link.Keepalive.String()
}

// over says what carries the datagrams of a bearer, and at which address.
func over(l config.Link) string {
	switch {
	case !l.TLS:
		return "UDP " + l.Listen.String()
	case l.Listen.IsValid():
		return "TLS, called at " + l.Listen.String()
	case l.Proxy.IsValid():
		return "TLS, calls its peers through " + l.Proxy.String()
	}
	return "TLS, calls its peers"
}
