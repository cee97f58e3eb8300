package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"aldis/internal/jxta"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/query"
	"aldis/internal/site"
)

var errKind = errors.New("is an id of another kind")

// maxFilters bounds the rules of a kind: each item or message is compared with all of them.
const maxFilters = 1000

func filterPart(c *Config) part {
	return part{name: "filter", title: "what may cross", keys: filterKeys(&filter.Rule{}), rules: c.Filters, most: maxFilters, live: true,
		doc: "The first rule that matches an item or message decides. If none matches, messages cross, and advertisements that are in use or asked for ([why](decisions/asked-for.md))."}
}

func filterKeys(f *filter.Rule) []key {
	return []key{
		{"label", printable(&f.Label), "a name for people"},
		{"direction", choice(&f.Direction, "both", []string{"both", "out", "in"}, site.Both, site.Out, site.In), "which way it goes"},
		{"site", far(&f.Site), "the other site: a `[[link.peer]]`, by name or id"},
		{"type", word(&f.Type, "", filter.Types...), "what it is"},
		{"root", text(&f.Root).also(func(s section, key string) {
			if strings.ContainsAny(f.Root, "<>&\"' \t*") {
				s.fail(key, "must be the tag of a document's root, like \"jxta:PGA\", is %q", f.Root)
			}
		}), "tag of the document's root"},
		{"group", peerID(&f.Group, "group", jxta.KindGroup), ""}, {"peer", peerID(&f.Peer, "peer", jxta.KindPeer), ""},
		{"pipe", peerID(&f.Pipe, "pipe", jxta.KindPipe), "ids, `urn:jxta:uuid-…`; `net` is the net peer group"},
		{"name", text(&f.Name), "pattern of its name; `*` stands for anything"},
		{"octets_min", whole(&f.Least, 0, 1, math.MaxInt32), ""}, {"octets_max", whole(&f.Most, 0, 1, math.MaxInt32), "its size"},
		{"content", content(&f.Content), "what is in a message ([how](#content))"},
		{"action", choice(&f.Action, "", []string{"allow", "deny", "local"}, filter.Allow, filter.Deny, filter.Local).required(),
			"`allow`: crosses at once, asked for or not; `deny`: neither served here nor sent, and dropped on arrival; " +
				"`local`: served here, never sent"},
		{"rate", parsed(&f.Rate, "%[1]v", filter.ParseRate), "the most that crosses: `\"10/min\"`; messages beyond it are dropped, other items wait"},
	}
}

// readFilters reads the rules for what may cross the link. A rule with a mistake of its own is not compared with the others.
func (r *reader) readFilters() {
	var sections []section
	readRules(r, "filter", filterKeys, func(s section, f *filter.Rule) {
		if !s.wrong() {
			sections, r.cfg.Filters = append(sections, s), append(r.cfg.Filters, *f)
		}
	})
	for _, f := range filter.Check(r.cfg.Filters) {
		sections[f.Rule].fail(f.Key, "%s", f.Problem)
	}
}

// content is a condition on the content of a message.
func content(to *query.Condition) slot { return parsed(to, "%[2]q %[1]v", query.Parse) }

// site finds a peer by its name or id.
func (r *reader) site(s section, key, text string) uint16 {
	var names []string
	for _, p := range r.cfg.Link.Peers {
		if p.Name == text || strconv.Itoa(int(p.ID)) == text {
			return p.ID
		}
		names = append(names, p.Name)
	}
	for _, n := range r.cfg.Link.Enrolled() {
		if n.Name == text || strconv.Itoa(int(n.ID)) == text {
			return n.ID
		}
		names = append(names, n.Name)
	}
	slices.Sort(names)
	s.fail(key, "%q is neither name nor id of a [[link.peer]]%s", text, Nearest(text, names))
	return 0
}

// peerID is an id in normal form.
func peerID(to *string, what string, kind byte) slot {
	network := map[byte]string{jxta.KindGroup: " or \"net\""}[kind]
	return parsed(to, fmt.Sprintf("is no %s id, like \"urn:jxta:uuid-…%02X\"%s: %%[2]q", what, kind, network), func(text string) (string, error) {
		return ParseID(text, kind)
	})
}

// ParseID reads an id of a kind as operators write it: with or without "urn:jxta:", for the net peer group "net".
func ParseID(text string, kind byte) (string, error) {
	if kind == jxta.KindGroup && text == "net" {
		return jxta.NetGroup, nil
	}
	id, err := jxta.Normalize(strings.TrimPrefix(strings.TrimSpace(text), "urn:jxta:"))
	switch {
	case err != nil:
		return "", err
	case id == jxta.NetGroup || id == jxta.WorldGroup:
		if kind != jxta.KindGroup {
			return "", errKind
		}
	case jxta.IDKind(id) != kind:
		return "", errKind
	}
	return id, nil
}
