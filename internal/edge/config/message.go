package config

import (
	"math"
	"slices"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// How long a far message may wait for local peers that are away.
const (
	minWait = time.Second
	maxWait = 365 * 24 * time.Hour
)

func messagePart(c *Config) part {
	return part{name: "message", title: "what goes first", keys: messageKeys(&mark.Rule{}), rules: c.Messages, most: maxFilters, live: true,
		doc: "The first match decides ([why](decisions/precedence.md))."}
}

func messageKeys(m *mark.Rule) []key {
	return []key{
		{"label", printable(&m.Label), "a name for people"},
		{"element", text(&m.Element), ""}, {"type", text(&m.Type), "patterns of one element's name and MIME type"},
		{"group", peerID(&m.Group, "group", jxta.KindGroup), ""}, {"pipe", peerID(&m.Pipe, "pipe", jxta.KindPipe), ""},
		{"peer", peerID(&m.Peer, "peer", jxta.KindPeer), ""}, {"octets_min", whole(&m.Least, 0, 1, math.MaxInt32), ""},
		{"octets_max", whole(&m.Most, 0, 1, math.MaxInt32), ""}, {"content", content(&m.Content), "as in `[[filter]]`"},
		{"precedence", choice(&m.Precedence, "routine", site.Precedences, precedences()...), "how urgent it is"},
		{"expires", duration(&m.Expires, 0, time.Second, maxWait), "a message that has waited this long is not sent"},
		{"wait", duration(&m.Wait, 0, minWait, maxWait),
			"how long a message from afar waits for local peers that are away; default: that of `[delivery]`"},
		{"last_value", text(&m.LastValue), "name of an element with a key: the message replaces a waiting one with the same key"},
		{"last_value_pattern", parsed(&m.Pattern, "%[2]q %[1]v; like \"TRK;{key};*\"", mark.ParsePattern),
			"where the key is in the element; default: all of it is the key"},
		{"links", list(&m.Links, func(_ section, _, name string) { m.Links = append(m.Links, name) }),
			"names of the `[[link]]` that the message may take, `\"harbour, hf\"`: the cheapest of them that is up; default: any"},
		{"open", groupName(&m.Open), "a published message goes to this `[[group]]`, whoever is in it, instead of to the sites that listen ([how](groups.md))"},
	}
}

// precedences are the values of site.Precedences.
func precedences() []site.Precedence {
	list := make([]site.Precedence, len(site.Precedences))
	for i, name := range site.Precedences {
		list[i], _ = site.ParsePrecedence(name)
	}
	return list
}

// readDelivery reads how long far messages wait for local peers that are away, and how many octets of them.
func (r *reader) readDelivery() {
	s, d := r.fill("delivery"), &r.cfg.Delivery
	if d.MaxOctetsOfPeer == 0 {
		d.MaxOctetsOfPeer = max(16<<10, d.MaxOctets/4)
	}
	if d.MaxOctetsOfPeer > d.MaxOctets {
		s.fail("max_octets_per_peer", "is more than delivery.max_octets, which is for all peers together: %d", d.MaxOctets)
	}
}

// checkMessage reports mistakes of a rule as a whole.
func (r *reader) checkMessage(s section, m *mark.Rule) {
	if m.Most != 0 && m.Least > m.Most {
		s.fail("octets_min", "the rule can never match: nothing has at least %d and at most %d octets", m.Least, m.Most)
	}
	if s.has("last_value_pattern") && m.LastValue == "" {
		s.fail("last_value_pattern", "needs last_value: the name of the element that it is for")
	}
	for _, name := range m.Links {
		if name != relayName && !slices.ContainsFunc(r.cfg.Bearers(), func(l Link) bool { return l.Name == name }) {
			s.fail("links", "no [[link]] has the name %q", name)
		}
	}
	for _, e := range r.cfg.Messages {
		if e.Covers(*m) {
			r.fail(m.Line, "message", "the rule can never match: that of line %d comes first and takes all that it fits", e.Line)
			break
		}
	}
	r.cfg.Messages = append(r.cfg.Messages, *m)
}
