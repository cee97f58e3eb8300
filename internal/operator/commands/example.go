package operator

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/edge/config"
	"aldis/internal/edge/infile"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/operator/cli"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// maxExample is the size in octets of the largest document that is read as an example.
const maxExample = 1 << 20

// exampleIn is the content of a file; nil: there is no such file, it cannot be read, or it is too large for an example.
func exampleIn(name string) []byte {
	info, err := os.Stat(name)
	if err != nil || info.IsDir() || info.Size() > maxExample {
		return nil
	}
	b, err := infile.Read(name, maxExample)
	if err != nil {
		return nil
	}
	return b
}

// verdict is the rules' decision about an example in one direction.
type verdict struct {
	Direction string `json:"direction"`
	Site      string `json:"site,omitempty"` // where the rules ask for it
	Action    string `json:"action"`
	Label     string `json:"label,omitempty"`
	Line      int    `json:"line,omitempty"` // of the rule; absent: none fits
	Rate      string `json:"rate,omitempty"`
	Meaning   string `json:"meaning"`
	// Passed are the earlier rules, each with the first of its conditions that the example does not meet.
	Passed []passed `json:"passed"`
}

type passed struct {
	Label  string `json:"label,omitempty"`
	Line   int    `json:"line"`
	Misses string `json:"misses"`
}

// ExampleReport is the rules' decision about an example, as JSON.
type ExampleReport struct {
	Type     string    `json:"type"`
	Root     string    `json:"root,omitempty"`
	Group    string    `json:"group"`
	Name     string    `json:"name,omitempty"`
	Peer     string    `json:"peer,omitempty"`
	Pipe     string    `json:"pipe,omitempty"`
	Octets   int       `json:"octets"`
	Verdicts []verdict `json:"verdicts"`
	Mark     *marking  `json:"mark,omitempty"`  // of a message that is sent
	Links    []routing `json:"links,omitempty"` // the link that a message takes to each site, where there are several
	// Meet says which messages [[meet]] makes of the example for TAK devices.
	Meet []interop.Verdict `json:"meet,omitempty"`
}

// marking is the decision of the [[message]] rules about an example.
type marking struct {
	Label      string `json:"label,omitempty"`
	Line       int    `json:"line,omitempty"` // absent: no rule fits
	Precedence string `json:"precedence"`
	Expires    string `json:"expires,omitempty"`
	Wait       string `json:"wait,omitempty"`       // how long it waits for local peers that are away, when it comes from afar
	LastValue  string `json:"last_value,omitempty"` // the element that the key is taken from
	Links      string `json:"links,omitempty"`      // the bearers that it may take

	links []string
	life  time.Duration
}

func markOf(cfg *config.Config, s site.Subject, e jxta.Element) *marking {
	if e.Data == nil {
		e.Data = make([]byte, s.Octets)
	}
	pl := site.Message{Published: true, Scope: s.Scope, Topic: s.Topic, From: s.Owner, Parts: []jxta.Element{e}}
	described := jxtabridge.DescribeMessage(&pl)
	i := mark.Judge(cfg.Messages, &pl, &described)
	if i < 0 {
		return &marking{Precedence: site.Routine.String()}
	}
	r := cfg.Messages[i]
	m := &marking{Label: r.Label, Line: r.Line, Precedence: r.Precedence.String(), LastValue: r.LastValue, Links: strings.Join(r.Links, ", "), links: r.Links, life: r.Expires}
	if r.Expires > 0 {
		m.Expires = r.Expires.String()
	}
	if r.Wait > 0 {
		m.Wait = r.Wait.String()
	}
	return m
}

// explain says which rule decides about an example.
func explain(cfg *config.Config, text string, asJSON bool, stdout, stderr io.Writer) int {
	if event := takExample(text); event != nil {
		return explainEvent(cfg, event, asJSON, stdout, stderr)
	}
	if stanza := xmppExample(text); stanza != nil {
		return explainStanza(cfg, stanza, asJSON, stdout, stderr)
	}
	var element jxta.Element
	s, err := example(cfg, text, &element)
	if err != nil {
		fmt.Fprintf(stderr, "gateway check: --example: %v\n", err)
		return cli.ExitUsage
	}
	r := ExampleReport{Type: s.Type, Root: s.Root, Group: s.Scope, Name: s.Name, Peer: s.Owner, Pipe: s.Topic, Octets: s.Octets}
	if s.Type == filter.Message && s.Direction != site.In {
		r.Mark, r.Meet = markOf(cfg, s, element), meetsOf(cfg, s, element)
		precedence, _ := site.ParsePrecedence(r.Mark.Precedence)
		r.Links = routesOf(cfg, s, r.Mark.links, site.Mark{Precedence: precedence}, r.Mark.life)
	}
	f := filter.New(cfg.Filters)
	directions := []site.Direction{site.Out, site.In}
	if s.Direction != site.Both {
		directions = []site.Direction{s.Direction}
	}
	for _, d := range directions {
		s.Direction = d
		if !f.BySite() || s.Site != 0 {
			r.Verdicts = append(r.Verdicts, judge(cfg, f, s))
			continue
		}
		for _, p := range cfg.Link.Peers {
			at := s
			at.Site = p.ID
			r.Verdicts = append(r.Verdicts, judge(cfg, f, at))
		}
	}
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		e.Encode(r)
		return cli.ExitGood
	}
	printExample(stdout, r)
	return cli.ExitGood
}

func judge(cfg *config.Config, f *filter.Filter, s site.Subject) verdict {
	v := f.Judge(&s)
	out := verdict{Direction: s.Direction.String(), Action: v.Action.String(), Passed: []passed{}}
	for _, p := range cfg.Link.Peers {
		if s.Site == p.ID {
			out.Site = p.Name
		}
	}
	last := v.Rule
	if last < 0 {
		last = len(cfg.Filters)
	}
	for _, r := range cfg.Filters[:last] {
		out.Passed = append(out.Passed, passed{r.Label, r.Line, r.Misses(&s)})
	}
	if v.Rule >= 0 {
		r := f.Rule(v.Rule)
		out.Label, out.Line, out.Rate = r.Label, r.Line, r.Rate.String()
	}
	out.Meaning = meaning(v, s, out.Rate)
	return out
}

// meaning says in words what a verdict leads to.
func meaning(v filter.Verdict, s site.Subject, rate string) string {
	out := s.Direction == site.Out
	text := ""
	switch {
	case v.Action == filter.Deny && s.Type == filter.Message && out:
		text = "dropped, for local peers too"
	case v.Action == filter.Deny && (s.Type == filter.Peer || s.Type == filter.Listener || s.Type == filter.Question) && out:
		text = "far sites are not told; local peers are served"
	case v.Action == filter.Deny && out:
		text = "refused: neither served here nor sent"
	case v.Action == filter.Deny:
		text = "dropped when it arrives"
	case v.Action == filter.Local:
		text = "served here, never sent"
	case v.Rule < 0 && out && asked(s.Type):
		text = "no rule fits: served here; sent to sites that ask for it, and to all sites while its pipe is open here or its group has members here"
	case v.Rule < 0:
		text = "no rule fits: passes"
	case out && asked(s.Type):
		text = "sent to all sites, asked for or not"
	default:
		text = "passes"
	}
	if rate == "" || v.Action != filter.Allow {
		return text
	}
	if s.Type == filter.Message {
		return text + ", " + rate + "; what is beyond that is dropped"
	}
	return text + ", " + rate + "; what is beyond that waits"
}

// asked says whether items of a type stay home until somebody uses or asks for them.
func asked(kind string) bool {
	switch kind {
	case filter.Peer, filter.Listener, filter.Message, filter.Question:
		return false
	}
	return true
}

func printExample(out io.Writer, r ExampleReport) {
	fmt.Fprintf(out, "example: %s %q, %d octets, group %s", r.Type, r.Name, r.Octets, r.Group)
	for _, part := range [][2]string{{"root", r.Root}, {"peer", r.Peer}, {"pipe", r.Pipe}} {
		if part[1] != "" {
			fmt.Fprintf(out, ", %s %s", part[0], part[1])
		}
	}
	fmt.Fprintln(out)
	if m := r.Mark; m != nil {
		text := m.Precedence + " by default"
		if m.Line != 0 {
			text = m.Precedence + " by " + ruleText(m.Label, m.Line)
		}
		if m.Expires != "" {
			text += ", not sent when it has waited " + m.Expires
		}
		if m.Wait != "" {
			text += ", waits " + m.Wait + " here for peers that are away"
		}
		if m.Links != "" {
			text += ", goes by " + m.Links + " alone"
		}
		if m.LastValue != "" {
			text += fmt.Sprintf(", replaces one that waits with the same key in element %q", m.LastValue)
		}
		fmt.Fprintln(out, "sent:", text)
	}
	printRoutes(out, r.Links)
	for _, v := range r.Verdicts {
		way := v.Direction
		if v.Site != "" {
			way += " " + map[string]string{"out": "to", "in": "from"}[v.Direction] + " " + v.Site
		}
		by := "default"
		if v.Line != 0 {
			by = ruleText(v.Label, v.Line)
		}
		fmt.Fprintf(out, "%s: %s by %s: %s\n", way, v.Action, by, v.Meaning)
		for _, p := range v.Passed {
			fmt.Fprintf(out, "    not by %s: its %s does not fit\n", ruleText(p.Label, p.Line), p.Misses)
		}
	}
	printMeets(out, "TAK devices", r.Meet)
}

func ruleText(label string, line int) string {
	if label == "" {
		return fmt.Sprintf("the rule of line %d", line)
	}
	return fmt.Sprintf("rule %q (line %d)", label, line)
}

// example is a document in a file, or a list of its properties: type=pipe,name=…,size=….
func example(cfg *config.Config, text string, e *jxta.Element) (s site.Subject, err error) {
	s.Scope = jxta.NetGroup
	if !strings.Contains(text, "=") {
		return s, exampleFile(text, &s)
	}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || value == "" {
			return s, fmt.Errorf("%q is not KEY=VALUE", part)
		}
		switch key {
		case "element":
			e.Name = value
			continue
		case "mime":
			e.Type = value
			continue
		case "data":
			if e.Data, err = cli.ReadFile(value); err != nil {
				return s, fmt.Errorf("data=%s: %w", value, err)
			}
			s.Octets, s.Parts = len(e.Data), []site.Part{{Data: e.Data}}
			continue
		}
		if err := exampleKey(cfg, &s, key, value); err != nil {
			return s, err
		}
	}
	if s.Type == "" {
		return s, fmt.Errorf("type= is missing: one of %s", strings.Join(filter.Types, ", "))
	}
	return s, nil
}

func exampleKey(cfg *config.Config, s *site.Subject, key, value string) (err error) {
	id := func(to *string, kind byte) error {
		if *to, err = config.ParseID(value, kind); err != nil {
			return fmt.Errorf("%s=%s: %w", key, value, err)
		}
		return nil
	}
	switch key {
	case "file":
		return exampleFile(value, s)
	case "type":
		s.Type = value
		for _, t := range filter.Types {
			if t == value {
				return nil
			}
		}
		return fmt.Errorf("type=%s: must be one of %s", value, strings.Join(filter.Types, ", "))
	case "root":
		s.Root, s.Type = value, filter.TypeOf(value)
	case "name":
		s.Name = value
	case "group":
		return id(&s.Scope, jxta.KindGroup)
	case "peer":
		return id(&s.Owner, jxta.KindPeer)
	case "pipe":
		return id(&s.Topic, jxta.KindPipe)
	case "size", "octets":
		if s.Octets, err = strconv.Atoi(value); err != nil || s.Octets < 0 {
			return fmt.Errorf("%s=%s: must be a number of octets", key, value)
		}
	case "direction":
		s.Direction = map[string]site.Direction{"out": site.Out, "in": site.In}[value]
		if s.Direction == site.Both {
			return fmt.Errorf("direction=%s: must be out or in", value)
		}
	case "site":
		for _, p := range cfg.Link.Peers {
			if p.Name == value || strconv.Itoa(int(p.ID)) == value {
				s.Site = p.ID
				return nil
			}
		}
		return fmt.Errorf("site=%s: is neither name nor id of a [[link.peer]]", value)
	default:
		return fmt.Errorf("there is no key %q: file, type, root, name, group, peer, pipe, size, direction, site; of a message element, mime and data, a file", key)
	}
	return nil
}

// exampleFile reads an advertisement.
func exampleFile(name string, s *site.Subject) error {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("%w (an example is a file, or like 'type=pipe,name=ship track,size=400')", err)
	}
	if info.Size() > maxExample {
		return fmt.Errorf("%s has %d octets, at most %d are read", name, info.Size(), maxExample)
	}
	doc, err := infile.Read(name, maxExample)
	if err != nil {
		return err
	}
	n, err := jxta.ParseXML(doc, jxta.DefaultXML)
	if err != nil {
		return fmt.Errorf("%s is no XML document that a peer may publish: %w", name, err)
	}
	group, siteID, direction, peer := s.Scope, s.Site, s.Direction, s.Owner
	*s = jxtabridge.Describe(n, len(jxta.AppendXML(nil, n)))
	s.Scope, s.Site, s.Direction = group, siteID, direction
	if peer != "" {
		s.Owner = peer
	}
	return nil
}
