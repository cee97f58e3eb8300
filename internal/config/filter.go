package config

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"aldis/internal/jxta"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/query"
	"aldis/internal/site"
)

var filterKeys = []string{"label", "direction", "site", "type", "root", "group", "name", "peer", "pipe", "octets_min", "octets_max", "content", "action", "rate"}

var errKind = errors.New("is an id of another kind")

// maxFilters bounds the rules: each thing is held against all of them.
const maxFilters = 1000

// readFilters reads what may cross the link. Rules with a mistake of their own are not held against the others.
func (r *reader) readFilters() {
	var sections []section
	for i, t := range r.tree.arrays["filter"] {
		s := section{r, t, "filter"}
		if i == maxFilters {
			s.r.fail(t.line, "filter", "there are more than %d rules", maxFilters)
			break
		}
		before := len(r.faults)
		rule := r.filterRule(s)
		r.cfg.Filters = append(r.cfg.Filters, rule)
		if len(r.faults) > before {
			r.cfg.Filters = r.cfg.Filters[:len(r.cfg.Filters)-1]
			continue
		}
		sections = append(sections, s)
	}
	for _, f := range filter.Check(r.cfg.Filters) {
		sections[f.Rule].fail(f.Key, "%s", f.Problem)
	}
}

func (r *reader) filterRule(s section) filter.Rule {
	rule := filter.Rule{Line: s.t.line, Label: s.printable("label", false), Name: s.text("name", false)}
	rule.Direction = map[string]site.Direction{"out": site.Out, "in": site.In}[s.choice("direction", "both", "both", "out", "in")]
	if siteID := s.text("site", false); siteID != "" {
		rule.Site = r.site(s, "site", siteID)
	}
	rule.Type = s.choice("type", "", filter.Types...)
	if rule.Root = s.text("root", false); strings.ContainsAny(rule.Root, "<>&\"' \t*") {
		s.fail("root", "must be the tag of a document's root, like \"jxta:PGA\", is %q", rule.Root)
	}
	rule.Group = filterID(s, "group", "group", jxta.KindGroup)
	rule.Peer = filterID(s, "peer", "peer", jxta.KindPeer)
	rule.Pipe = filterID(s, "pipe", "pipe", jxta.KindPipe)
	rule.Least = s.integer("octets_min", 0, 1, math.MaxInt32)
	rule.Most = s.integer("octets_max", 0, 1, math.MaxInt32)
	rule.Content = s.condition()
	if _, ok := s.get("action"); !ok {
		s.fail("action", "is missing: one of \"allow\", \"deny\", \"local\"")
	}
	rule.Action = map[string]filter.Action{"deny": filter.Deny, "local": filter.Local}[s.choice("action", "allow", "allow", "deny", "local")]
	if text := s.text("rate", false); text != "" {
		rate, err := filter.ParseRate(text)
		if err != nil {
			s.fail("rate", "%v", err)
		}
		rule.Rate = rate
	}
	return rule
}

// condition reads what the content of a message has to have.
func (s section) condition() (c query.Condition) {
	text := s.text("content", false)
	if text == "" {
		return c
	}
	c, err := query.Parse(text)
	if err != nil {
		s.fail("content", "%q %v", text, err)
	}
	return c
}

// site finds a peer by its name or number.
func (r *reader) site(s section, key, text string) uint16 {
	var names []string
	for _, p := range r.cfg.Link.Peers {
		if p.Name == text || strconv.Itoa(int(p.ID)) == text {
			return p.ID
		}
		names = append(names, p.Name)
	}
	slices.Sort(names)
	s.fail(key, "%q is neither name nor id of a [[link.peer]]%s", text, Nearest(text, names))
	return 0
}

// filterID is an id in normal form; "" after a mistake or where it is absent.
func filterID(s section, key, what string, kind byte) string {
	text := s.text(key, false)
	if text == "" {
		return ""
	}
	id, err := ParseID(text, kind)
	if err != nil {
		s.fail(key, "is no %s id, like \"urn:jxta:uuid-…%02X\"%s: %q", what, kind,
			map[byte]string{jxta.KindGroup: " or \"net\""}[kind], text)
	}
	return id
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
