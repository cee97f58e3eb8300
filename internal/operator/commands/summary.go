package operator

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/edge/config"
	"aldis/internal/jxta"
	"aldis/internal/operator/node"
	"aldis/internal/site"
)

// meetSummary is the part of check's output about [[meet]].
func meetSummary(c *config.Config) (lines []string) {
	for i := range c.TAK.Meets {
		r := &c.TAK.Meets[i]
		what, way := "units", "both ways"
		if r.Room != "" {
			what = fmt.Sprintf("the room %q", r.Room)
		}
		switch {
		case !r.FromTAK:
			way = "from JXTA to TAK"
		case !r.FromJXTA:
			way = "from TAK to JXTA"
		}
		if r.MUC != "" {
			lines = append(lines, fmt.Sprintf("rule %s: the room %q of TAK is the room %s of XMPP", r, r.Room, r.MUC))
		} else if r.Node != "" {
			node := map[string]string{"both ways": "units are items of the node", "from TAK to JXTA": "units are items of the node, which nobody publishes to,", "from JXTA to TAK": "units are what is published to the node"}
			lines = append(lines, fmt.Sprintf("rule %s: %s %q at %s", r, node[way], r.Node, c.XMPP.Nodes))
		}
		if r.Pipe == "" && r.Name == "" {
			continue
		}
		pipe := r.Pipe
		if pipe == "" {
			pipe = fmt.Sprintf("that is named %q", r.Name)
		}
		lines = append(lines, fmt.Sprintf("rule %s: %s and element %s of the pipe %s, %s", r, what, r.Element, pipe, way))
	}
	return lines
}

// meetsOf applies the rules of [[meet]] to an example message whose content is known.
func meetsOf(c *config.Config, s site.Subject, e jxta.Element) []interop.Verdict {
	if len(e.Data) == 0 {
		return nil
	}
	if space, name, ok := strings.Cut(e.Name, ":"); ok {
		e.Namespace, e.Name = space, name
	}
	m := site.Message{Published: true, Scope: s.Scope, Topic: s.Topic, From: cmp.Or(s.Owner, node.TAKPeer("")), ID: "example", Parts: []site.Part{e}}
	return interop.ExplainElement(c.TAK.Meets, time.Now(), &m)
}

// printMeets prints which messages adapters make of an example where they meet; those names the other adapter's clients.
func printMeets(out io.Writer, those string, list []interop.Verdict) {
	for _, v := range list {
		if v.Gives == "" {
			fmt.Fprintf(out, "meet: nothing to %s by %s: %s\n", those, ruleText(v.Label, v.Line), v.Why)
			continue
		}
		fmt.Fprintf(out, "meet: to %s by %s:\n    %s\n", those, ruleText(v.Label, v.Line), v.Gives)
	}
}

// takSummary is the part of check's output about [tak].
func takSummary(c *config.Config) (lines []string) {
	t := c.TAK
	if t.Listen.IsValid() {
		lines = append(lines, fmt.Sprintf("TAK devices connect to %s, at most %d", t.Listen, t.Conns))
	}
	if t.TLS.IsValid() {
		lines = append(lines, fmt.Sprintf("TAK devices with a certificate connect to %s over TLS (%s)", t.TLS, t.Keys))
	}
	if t.Server.IsValid() {
		lines = append(lines, fmt.Sprintf("client of the TAK server %s", t.Server))
	}
	if f := t.Files; f.URL() != "" {
		lines = append(lines, fmt.Sprintf("data packages at %s: %d octets each and %d together for %s; up to %d cross the link", f.URL(), f.MostFile, f.Most, f.Life, f.Crossing))
	}
	if t.Mesh != "" {
		lines = append(lines, fmt.Sprintf("member of the mesh at %s: %s, chats %s", t.Mesh, t.Events, t.Chats))
	}
	if t.Unicast.IsValid() {
		lines = append(lines, fmt.Sprintf("what devices of the mesh say to one unit that is not on the mesh comes to %s", t.Unicast))
	}
	if t.On() {
		lines = append(lines, fmt.Sprintf("a unit's far picture is wrong by %d m at most before it is told; %d rules", t.Bound, len(t.Rules)))
	}
	return lines
}

// where is an address with a text before it; "": there is no address.
func where(before string, at netip.AddrPort) string {
	if !at.IsValid() {
		return ""
	}
	return before + at.String()
}

// handshake says how the gateway and the LAN's server identify each other, unless they do it in the usual way of servers.
func handshake(x config.XMPP) string {
	switch {
	case !x.S2SZero:
		return ""
	case x.S2SKeys == "":
		return ", without handshake and TLS"
	}
	return ", without handshake"
}

// xmppSummary is the part of check's output about [xmpp].
func xmppSummary(c *config.Config) (lines []string) {
	if !c.XMPP.On() {
		return nil
	}
	if x := c.XMPP; x.Own() {
		var at []string
		for _, a := range []netip.AddrPort{x.Listen, x.TLS, x.WebSocket} {
			if a.IsValid() {
				at = append(at, a.String())
			}
		}
		users, _ := x.Accounts() // check has read them
		lines = append(lines, fmt.Sprintf("server of the domain %s at %s for %d users; a message waits %s for the link at most", x.Domain, strings.Join(at, ", "), len(users), x.Life))
	} else if x.Peers() {
		lines = append(lines, fmt.Sprintf("other server to the server%s of the domain %s%s%s; a message waits %s for the link at most", where(" ", x.S2SServer), x.Domain, where(", at ", x.S2S), handshake(x), x.Life))
	} else {
		lines = append(lines, fmt.Sprintf("component of the server %s of the domain %s; a message waits %s for the link at most", c.XMPP.Server, c.XMPP.Domain, c.XMPP.Life))
	}
	for _, s := range c.XMPP.Sites {
		lines = append(lines, fmt.Sprintf("%s is the domain of node %d", s.Domain, s.Site))
	}
	return lines
}
