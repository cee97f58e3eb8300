package config

import (
	"slices"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
)

// View is a rule about what other sites learn of JXTA peers.
type View struct {
	Line int // of the configuration
	jxtabridge.ViewRule
}

func viewPart(c *Config) part {
	return part{name: "view", title: "what other sites are told of JXTA peers, by group, site and link", keys: viewKeys(&View{}), rules: c.Views, most: maxFilters, live: true,
		doc: "The first match decides, for each group and site; orders (`gateway group view`) go before, `lan.view` comes after ([more](groups.md#views-of-peers))."}
}

func viewKeys(v *View) []key {
	view := viewOfPeers((*string)(&v.View)).required()
	view.preset, view.absent = nil, ""
	return []key{
		{"group", peerID(&v.Group, "group", jxta.KindGroup), "a JXTA group's id, or `\"net\"`; default: any"},
		{"site", slot{to: &v.Site, quoted: true, read: func(s section, key string) { v.Site = s.r.site(s, key, s.text(key)) }},
			"a `[[link.peer]]` by name or id; default: any"},
		{"link", printable(&v.Bearer), "name of the `[[link]]` that messages to the site take at the moment; default: any"},
		{"direction", choice(&v.In, "out", []string{"out", "in"}, false, true), "`out`: what the site is told; `in`: what it may tell here. A site is told what both ends tell"},
		{"view", view, "as `lan.view`"},
	}
}

// checkView reports mistakes of a rule as a whole.
func (r *reader) checkView(s section, v *View) {
	if v.Bearer != "" && !slices.ContainsFunc(r.cfg.Bearers(), func(l Link) bool { return l.Name == v.Bearer }) {
		s.fail("link", "no [[link]] has the name %q", v.Bearer)
	}
	if i := slices.IndexFunc(r.cfg.Views, func(e View) bool { return e.Covers(v.ViewRule) }); i >= 0 {
		r.fail(v.Line, "view", "the rule can never match: that of line %d comes first and takes all that it fits", r.cfg.Views[i].Line)
	}
	r.cfg.Views = append(r.cfg.Views, *v)
}

// ViewRules are the rules in the form that the JXTA adapter takes.
func (c *Config) ViewRules() (list []jxtabridge.ViewRule) {
	for _, v := range c.Views {
		list = append(list, v.ViewRule)
	}
	return list
}
