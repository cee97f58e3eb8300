package config

import "net/netip"

// Site is the second gateway of this site, and who votes which of the two leads. A zero Other: there is none.
type Site struct {
	Listen  netip.AddrPort
	Other   netip.AddrPort
	Witness netip.AddrPort
}

// On says whether the site has two gateways.
func (s Site) On() bool { return s.Other.IsValid() }

func sitePart(c *Config) part {
	const named = "must be an address of one machine; %s names none"
	return part{name: "site", title: "two gateways at this site", keys: []key{
		{"listen", reached(&c.Site.Listen, named).required(), "where the other gateway of this site connects, and for `gateway site witness` both do, such as `10.20.0.1:9733`"},
		{"other", reached(&c.Site.Other, named), "`listen` of the other gateway, which has the same `[node]` and keys"},
		{"witness", reached(&c.Site.Witness, named), "`listen` of a third machine that runs `gateway site witness`. Without it the follower leads only by order"},
	}, doc: "Two machines with one `[node]`: one leads the link, the other follows its journal ([more](site.md))."}
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
