package config

import (
	"slices"
	"strings"
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/link/entropy"
)

// Group is a group that this gateway is in.
type Group struct {
	Line int // of the configuration
	Name string
	Life time.Duration // of the group's messages for which no rule sets one
	Hops int           // the most gateways that may take a message one after the other
	Key  bool          // messages are sealed for the members alone
}

func groupPart(c *Config) part {
	return part{name: "group", title: "groups of gateways", keys: groupKeys(&Group{}), rules: c.Groups, most: entropy.MostGroups,
		doc: "This gateway is in these groups, and in those that they are inside of, unless an order says otherwise (`gateway group`, [how](groups.md)). They need `link.roster`."}
}

func groupKeys(g *Group) []key {
	return []key{
		{"name", groupName(&g.Name).required(), "parts with `/` between them, at most 64 octets: `\"fleet/squadron/ops\"`"},
		{"lifetime", duration(&g.Life, time.Hour, time.Second, entropy.MostLife), "how long a message to it is repeated, where no `[[message]]` rule names `expires`"},
		{"hops", whole(&g.Hops, entropy.MostHops, 1, entropy.MostHops), "how many gateways may take such a message one after the other; 1: neighbours alone"},
		{"key", boolean(&g.Key), "with `true` its messages are sealed with a key of its members alone: a gateway that leaves cannot read on, one that joins cannot read back. All members must say so"},
	}
}

// groupName is the name of a group.
func groupName(name *string) slot {
	return parsed(name, "%[2]q: %[1]v", func(text string) (string, error) { return text, entropy.CheckName(text) })
}

// checkGroup reports a group that is there twice, or that lacks a roster.
func (r *reader) checkGroup(s section, g *Group) {
	if slices.ContainsFunc(r.cfg.Groups, func(other Group) bool { return other.Name == g.Name }) {
		s.fail("name", "%q is there twice", g.Name)
	}
	if r.cfg.Link.Trust.RosterFile == "" {
		s.fail("name", "a group needs link.roster: with one key for all every member could speak in another's name")
	}
	r.cfg.Groups = append(r.cfg.Groups, *g)
}

// warnGroups warns of messages for groups that the configuration does not name.
func (c *Config) warnGroups(warn func(format string, args ...any)) {
	for _, m := range c.Messages {
		in := func(g Group) bool { return g.Name == m.Open || strings.HasPrefix(g.Name, m.Open+"/") }
		if m.Open != "" && !slices.ContainsFunc(c.Groups, in) {
			warn("the [[message]] rule in line %d is for the group %q, which no [[group]] names: its messages go to sites until an order joins it", m.Line, m.Open)
		}
	}
}

// viewOfPeers is one of the choices for how much other sites learn of JXTA peers.
func viewOfPeers(view *string) slot {
	k := parsed(view, "%[1]v", func(text string) (string, error) { _, err := jxtabridge.View(text).Parts(); return text, err }).usually("complete")
	k.preset = func() { *view = "complete" }
	return k
}
