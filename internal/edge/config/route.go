package config

import (
	"math"
	"slices"
	"strings"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/rules/route"
	"aldis/internal/site"
)

func routePart(c *Config) part {
	return part{name: "route", title: "which link a message takes", keys: routeKeys(&route.Rule{}), rules: c.Routes, most: maxFilters, live: true,
		doc: "For gateways with several `[[link]]`. The first match decides, for each site that a message goes to " +
			"([why](decisions/bearers.md)). Without a match a message takes the cheapest link on which it arrives before it expires, " +
			"and from `flash` on the one where it arrives first."}
}

func routeKeys(m *route.Rule) []key {
	return []key{
		{"label", printable(&m.Label), "a name for people"},
		{"precedence", list(&m.Precedence, func(s section, key, name string) {
			p, ok := site.ParsePrecedence(name)
			if !ok {
				s.fail(key, "%q is no precedence: they are %s", name, strings.Join(site.Precedences, ", "))
			}
			m.Precedence = append(m.Precedence, p)
		}), "of the message: `\"flash, override\"`; default: any"},
		{"octets_min", whole(&m.Least, 0, 1, math.MaxInt32), ""},
		{"octets_max", whole(&m.Most, 0, 1, math.MaxInt32), "octets of its elements"},
		{"expires_max", duration(&m.Longest, 0, time.Second, maxWait), "the longest lifetime, as a `[[message]]` rule gives it; default: any"},
		{"sites", list(&m.Sites, func(s section, key, text string) { m.Sites = append(m.Sites, s.r.site(s, key, text)) }),
			"where it goes: `[[link.peer]]` by name or id; default: any"},
		{"links", list(&m.Links, func(_ section, _, name string) { m.Links = append(m.Links, name) }),
			"names of the `[[link]]` that the message may take; default: any"},
		{"within", duration(&m.Within, 0, time.Second, maxWait), "so soon it should be there: it takes the cheapest link on which the forecast says so, or else the one where it arrives first"},
		{"beyond_day", boolean(&m.Beyond), "`true`: it goes also where `octets_per_day` or `money_per_day` are used up"},
	}
}

// checkRoute reports mistakes of a rule as a whole.
func (r *reader) checkRoute(s section, m *route.Rule) {
	if m.Most != 0 && m.Least > m.Most {
		s.fail("octets_min", "the rule can never match: nothing has at least %d and at most %d octets", m.Least, m.Most)
	}
	known := true
	for _, name := range m.Links {
		if !slices.ContainsFunc(r.cfg.Bearers(), func(l Link) bool { return l.Name == name }) {
			s.fail("links", "no [[link]] has the name %q", name)
			known = false
		}
	}
	for _, p := range r.cfg.Link.Peers {
		if known && slices.Contains(m.Sites, p.ID) && !r.cfg.reaches(m.Links, p.ID) {
			s.fail("links", "no link that it names reaches %s", p.Name)
		}
	}
	if i := slices.IndexFunc(r.cfg.Routes, func(e route.Rule) bool { return e.Covers(m) }); i >= 0 {
		r.fail(m.Line, "route", "the rule can never match: that of line %d comes first and takes all that it fits", r.cfg.Routes[i].Line)
	}
	r.cfg.Routes = append(r.cfg.Routes, *m)
}

// reaches says whether one of these links has the peer; nil means all links.
func (c *Config) reaches(links []string, peer uint16) bool {
	return slices.ContainsFunc(c.Bearers(), func(l Link) bool {
		return (links == nil || slices.Contains(links, l.Name)) && slices.ContainsFunc(l.Peers, func(p Peer) bool { return p.ID == peer })
	})
}

// DefaultDirect is how many direct sessions a link has at most, where the configuration says nothing.
const DefaultDirect = 4

// direct checks the bound of a link's direct sessions, where it is written.
func (s section) direct(l *Link) {
	if _, written := s.get("direct"); !written || l.Direct == 0 {
		return
	}
	switch {
	case l.Keepalive == 0:
		s.fail("direct", "needs link.keepalive: without datagrams an address translation closes")
	case l.TLS || l.Profile.Transport == profile.PMul:
		s.fail("direct", "is for links over UDP whose channel nobody shares")
	}
}

// perDay reads a link's bound of a day, and turns money into octets by their price.
func (s section) perDay(l *Link) {
	switch {
	case l.Money > 0 && l.Octets > 0:
		s.fail("money_per_day", "stands beside octets_per_day: one bound is enough")
	case l.Money > 0 && l.Price == 0:
		s.fail("money_per_day", "needs link.price: without a price nothing costs money")
	case l.Money > 0:
		l.Octets = int64(l.Money / l.Price * 1000)
	}
	if least := 10 * l.Profile.DatagramOctets; l.Profile.Name != "" && (l.Octets > 0 || l.Money > 0 && l.Price > 0) && l.Octets < int64(least) {
		s.fail("octets_per_day", "%d octets are fewer than ten datagrams of profile %s, %d", l.Octets, l.Profile.Name, least)
	}
}
