package filter

import (
	"aldis/internal/site"
	"fmt"
)

// Fault is a mistake in the rules: the index of the rule, the key of the configuration, and the reason.
type Fault struct {
	Rule    int
	Key     string
	Problem string
}

// Check finds rules that can never match, and rules that contradict an earlier one. It compares with one earlier rule at a
// time: a rule that only several earlier ones cover together is not found, except by a rule for each direction.
func Check(rules []Rule) (faults []Fault) {
	for i, r := range rules {
		if f := impossible(r); f.Problem != "" {
			f.Rule = i
			faults = append(faults, f)
			continue
		}
		if f, ok := shadowed(rules[:i], r); ok {
			f.Rule = i
			faults = append(faults, f)
		}
	}
	return faults
}

// impossible says why nothing can meet the rule's own conditions.
func impossible(r Rule) Fault {
	can := func(key, format string, args ...any) Fault {
		return Fault{Key: key, Problem: "the rule can never match: " + fmt.Sprintf(format, args...)}
	}
	switch {
	case r.Most != 0 && r.Least > r.Most:
		return can("octets_min", "nothing has at least %d and at most %d octets", r.Least, r.Most)
	case r.Root != "" && r.Type != "" && r.Type != TypeOf(r.Root):
		return can("root", "a document %s is of type %q, not %q", r.Root, TypeOf(r.Root), r.Type)
	case r.Name != "" && !named(r.Type):
		return can("name", "a %s has no name: ask for its pipe", r.Type)
	case r.Pipe != "" && !piped(r.Type):
		return can("pipe", "only type pipe, spec, listener and message have one, not %q", r.Type)
	case r.Pipe != "" && r.Root != "" && !piped(TypeOf(r.Root)):
		return can("pipe", "a document %s has none", r.Root)
	case r.Pipe != "" && r.Name != "" && r.Type == "" && r.Root == "":
		return Fault{}
	case r.Least > 0 && (r.Type == Listener || r.Type == Question):
		return can("octets_min", "a %s has no size", r.Type)
	case !r.Content.Zero() && r.Type != Message:
		return Fault{Key: "content", Problem: "is of messages alone: it needs type = \"message\""}
	case r.Action == Local && r.Direction == site.In:
		return Fault{Key: "action", Problem: "\"local\" is about what local peers offer; what comes in is served here and goes no further: write \"allow\" or \"deny\""}
	case r.Rate.Count != 0 && r.Action != Allow:
		return Fault{Key: "rate", Problem: fmt.Sprintf("is of no use with action %q: nothing passes", r.Action)}
	}
	return Fault{}
}

// shadowed names the earlier rule that takes everything that r matches.
func shadowed(earlier []Rule, r Rule) (Fault, bool) {
	for _, e := range earlier {
		if impossible(e).Problem != "" {
			continue
		}
		switch {
		case e.covers(r) && r.covers(e) && e.Action != r.Action:
			return Fault{Key: "action", Problem: fmt.Sprintf("%q contradicts the rule of line %d, which has the same conditions and action %q",
				r.Action, e.Line, e.Action)}, true
		case e.covers(r) && r.covers(e):
			return Fault{Key: "action", Problem: fmt.Sprintf("the rule can never match: that of line %d has the same conditions", e.Line)}, true
		case e.covers(r):
			return Fault{Key: "action", Problem: fmt.Sprintf("the rule can never match: that of line %d comes first and takes all that it fits", e.Line)}, true
		}
	}
	if r.Direction != site.Both {
		return Fault{}, false
	}
	var lines []int
	for _, d := range []site.Direction{site.Out, site.In} {
		half := r
		half.Direction = d
		for _, e := range earlier {
			if impossible(e).Problem == "" && e.covers(half) {
				lines = append(lines, e.Line)
				break
			}
		}
	}
	if len(lines) < 2 {
		return Fault{}, false
	}
	return Fault{Key: "action", Problem: fmt.Sprintf("the rule can never match: those of lines %d and %d come first and take all that it fits",
		lines[0], lines[1])}, true
}

// covers says that r matches everything that n matches.
func (r Rule) covers(n Rule) bool {
	r, n = r.plain(), n.plain()
	within := func(wide, narrow string) bool { return wide == "" || wide == narrow }
	return (r.Direction == site.Both || r.Direction == n.Direction) && (r.Site == 0 || r.Site == n.Site) &&
		within(r.Type, n.Type) && within(r.Root, n.Root) && within(r.Group, n.Group) && within(r.Peer, n.Peer) && within(r.Pipe, n.Pipe) &&
		(r.Name == "" || n.Name != "" && PatternCovers(r.Name, n.Name)) &&
		r.Least <= n.Least && (r.Most == 0 || n.Most != 0 && n.Most <= r.Most) && (r.Content.Zero() || r.Content == n.Content)
}

// plain replaces the root of a document that has a type of its own with that type.
func (r Rule) plain() Rule {
	if r.Root != "" {
		r.Type = TypeOf(r.Root)
		if r.Type != Other {
			r.Root = ""
		}
	}
	return r
}

// PatternCovers says that wide matches everything that narrow matches: it treats narrow's "*" as an octet that only a "*"
// matches.
func PatternCovers(wide, narrow string) bool {
	const star = "\x00"
	text := ""
	for _, c := range narrow {
		if c == '*' {
			text += star
		} else {
			text += string(c)
		}
	}
	return Match(wide, text)
}
