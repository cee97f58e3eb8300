package filter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/rules/query"
	"aldis/internal/site"
)

// Action is what happens to an item that a rule matches.
type Action uint8

const (
	Allow Action = iota // it crosses, asked for or not
	Deny                // it is neither served here nor sent
	Local               // it is served here and never sent
)

// String is the action's name in the configuration.
func (a Action) String() string { return [...]string{"allow", "deny", "local"}[a] }

// Types of filtered items: all but the last three are advertisements.
const (
	Peer     = "peer"     // a peer with a lease: told to far sites, never withheld from local ones
	Group    = "group"    // jxta:PGA
	Pipe     = "pipe"     // jxta:PipeAdvertisement
	Class    = "class"    // jxta:MCA
	Spec     = "spec"     // jxta:MSA
	Impl     = "impl"     // jxta:MIA
	Other    = "other"    // any other document
	Listener = "listener" // an open input pipe
	Message  = "message"  // an application's message on a pipe
	Question = "question" // what a peer of this site looks for, as far sites are told
)

// Types lists them all.
var Types = []string{Peer, Group, Pipe, Class, Spec, Impl, Other, Listener, Message, Question}

var roots = map[string]string{
	"jxta:PA": Peer, "jxta:PGA": Group, "jxta:PipeAdvertisement": Pipe, "jxta:MCA": Class, "jxta:MSA": Spec, "jxta:MIA": Impl,
}

// TypeOf is the type of an advertisement with this root tag.
func TypeOf(root string) string { return cmp.Or(roots[root], Other) }

// Rate is how many items may pass: Count at once, and Count more in each Per. The zero value is no limit.
type Rate struct {
	Count int
	Per   time.Duration
}

// String is the rate in the form of the configuration.
func (r Rate) String() string {
	if r.Count == 0 {
		return ""
	}
	for word, d := range perWords {
		if d == r.Per && len(word) == 1 || word == "min" && d == r.Per {
			return fmt.Sprintf("%d/%s", r.Count, word)
		}
	}
	return fmt.Sprintf("%d/%s", r.Count, r.Per)
}

var perWords = map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour}

// ParseRate reads "10/min", "1/s", "100/h" or "5/90s". Errors are for operators.
func ParseRate(text string) (Rate, error) {
	count, per, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	per = strings.TrimSpace(per)
	if !ok || err != nil || n < 1 || n > 1_000_000 {
		return Rate{}, fmt.Errorf("must be a number and a time, like \"10/min\", is %q", text)
	}
	d, ok := perWords[per]
	if !ok {
		if d, err = time.ParseDuration(per); err != nil || d < time.Second || d > 24*time.Hour {
			return Rate{}, fmt.Errorf("must be so many per s, min, h, or a time from 1s to 24h, like \"10/min\", is %q", text)
		}
	}
	return Rate{n, d}, nil
}

// Rule is one of the operator's rules. Empty conditions match everything.
type Rule struct {
	Label     string // for people; may be empty
	Line      int    // of the configuration
	Direction site.Direction
	Site      uint16
	Type      string
	Root      string // of documents of type Other
	Group     string
	Name      string // pattern: "*" stands for anything
	Peer      string
	Pipe      string
	Least     int             // octets
	Most      int             // octets, 0: any
	Content   query.Condition // of one element of a message
	Action    Action
	Rate      Rate
}

// String names the rule for operators.
func (r Rule) String() string {
	if r.Label != "" {
		return fmt.Sprintf("%q (line %d)", r.Label, r.Line)
	}
	return fmt.Sprintf("line %d", r.Line)
}

// Misses names the first condition of the rule that s does not meet, by its key in the configuration; "": the rule matches.
func (r *Rule) Misses(s *site.Subject) string {
	switch {
	case r.Direction != site.Both && r.Direction != s.Direction:
		return "direction"
	case r.Site != 0 && r.Site != s.Site:
		return "site"
	case r.Type != "" && r.Type != s.Type:
		return "type"
	case r.Root != "" && r.Root != s.Root:
		return "root"
	case r.Group != "" && r.Group != s.Scope:
		return "group"
	case r.Name != "" && (!named(s.Type) || !Match(r.Name, s.Name)):
		return "name"
	case r.Peer != "" && r.Peer != s.Owner:
		return "peer"
	case r.Pipe != "" && r.Pipe != s.Topic:
		return "pipe"
	case s.Octets < r.Least:
		return "octets_min"
	case r.Most != 0 && s.Octets > r.Most:
		return "octets_max"
	case !r.Content.Zero() && !Inside(r.Content, s.Parts):
		return "content"
	}
	return ""
}

// Inside says whether one of a message's elements meets a condition.
func Inside(c query.Condition, parts []site.Part) bool {
	return slices.ContainsFunc(parts, func(p site.Part) bool { return c.Fits(p.Data, Match) })
}

// named says whether items of a type have a name that rules may test.
func named(kind string) bool { return kind != Listener && kind != Message }

// piped says whether items of a type can have a pipe.
func piped(kind string) bool {
	return kind == "" || kind == Pipe || kind == Spec || kind == Listener || kind == Message
}

// Match says whether value matches pattern: "*" stands for anything, and case matters.
func Match(pattern, value string) bool {
	head, rest, some := strings.Cut(pattern, "*")
	if !some {
		return pattern == value
	}
	value, ok := strings.CutPrefix(value, head)
	if !ok {
		return false
	}
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(value, part)
		}
		i := strings.Index(value, part)
		if i < 0 {
			return false
		}
		value, rest = value[i+len(part):], after
	}
}
