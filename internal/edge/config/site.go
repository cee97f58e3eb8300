package config

import (
	"net/netip"
	"slices"
	"strings"
)

// Site is the second gateway of this site, and the witness that votes on which of the two leads. A zero Other: there is none.
type Site struct {
	Listen  netip.AddrPort
	Other   netip.AddrPort
	Witness netip.AddrPort
}

// On says whether the site has two gateways.
func (s Site) On() bool { return s.Other.IsValid() }

// Cluster is the members of a site of three machines and more. No Members: there are none.
type Cluster struct {
	Members []netip.AddrPort
	Listen  netip.AddrPort // the member that this machine is; invalid: the one with an address of this machine
}

// On says whether the site has three machines or more.
func (c Cluster) On() bool { return len(c.Members) > 0 }

func sitePart(c *Config) part {
	const named = "must be an address of one machine; %s names none"
	return part{name: "site", title: "two gateways at this site", keys: []key{
		{"listen", reached(&c.Site.Listen, named).required(), "where the other gateway of this site connects, and for `gateway site witness` both do, such as `10.20.0.1:9733`"},
		{"other", reached(&c.Site.Other, named), "`listen` of the other gateway, which has the same `[node]` and keys"},
		{"witness", reached(&c.Site.Witness, named), "`listen` of a third machine that runs `gateway site witness`. Without it the follower leads only by order"},
	}, doc: "Two machines with one `[node]`: one leads the link, the other follows its journal ([more](site.md))."}
}

func clusterPart(c *Config) part {
	member := func(s section, key, text string) {
		at, err := netip.ParseAddrPort(strings.TrimSpace(text))
		switch {
		case err != nil || at.Port() == 0 || at.Addr().IsUnspecified():
			s.fail(key, "must be IP addresses with ports, like [\"10.20.0.1:9733\", \"10.20.0.2:9733\", \"10.20.0.3:9733\"]; one is %q", text)
		case slices.Contains(c.Cluster.Members, at):
			s.fail(key, "names %s twice", at)
		default:
			c.Cluster.Members = append(c.Cluster.Members, at)
		}
	}
	return part{name: "cluster", title: "three gateways and more at this site", keys: []key{
		{"members", list(&c.Cluster.Members, member).required(), "where the members reach each other, the same list on all of them: `[\"10.20.0.1:9733\", \"10.20.0.2:9733\", \"10.20.0.3:9733\"]`"},
		{"listen", reached(&c.Cluster.Listen, "must be one of `members`; %s is none"), "which of `members` this machine is, where it has the addresses of several"},
	}, doc: "Machines with one `[node]`: one leads the link, and what is confirmed is on the disks of a majority ([more](site.md#three-machines-and-more))."}
}

// readCluster reads whether this site has three gateways or more.
func (r *reader) readCluster() {
	if r.tree.tables["cluster"] == nil {
		return
	}
	s := r.fill("cluster")
	c := &r.cfg.Cluster
	switch {
	case s.wrong():
	case len(c.Members) < 3 || len(c.Members) > 9:
		s.fail("members", "must be 3 to 9, are %d; two machines have [site]", len(c.Members))
	case c.Listen.IsValid() && !slices.Contains(c.Members, c.Listen):
		s.fail("listen", "must be one of members")
	case r.cfg.Site.On():
		s.fail("members", "stand beside [site]: a site has two machines or three and more")
	}
	slices.SortFunc(c.Members, netip.AddrPort.Compare)
}

// readSite reads whether this site has two gateways.
func (r *reader) readSite() {
	if r.tree.tables["site"] == nil {
		return
	}
	s := r.fill("site")
	c := r.cfg.Site
	switch {
	case s.wrong():
	case c.Other.IsValid() && c.Other.Addr() == c.Listen.Addr() && c.Other.Port() == c.Listen.Port():
		s.fail("other", "is this machine: it must be the address of the other one")
	case c.Witness.IsValid() && (c.Witness == c.Other || c.Witness == c.Listen):
		s.fail("witness", "is one of the two gateways: it must be a third machine")
	case c.Witness.IsValid() && !c.Other.IsValid():
		s.missing("other", ": a witness is asked where there are two gateways")
	}
}
