package filter

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/rules/query"
	"aldis/internal/site"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, value string
		want           bool
	}{
		{"a", "a", true}, {"a", "A", false}, {"*", "", true}, {"*", "x", true}, {"a*", "ab", true}, {"a*", "ba", false},
		{"*a", "ba", true}, {"*a", "ab", false}, {"a*b*c", "a1b2c", true}, {"a*b*c", "acb", false}, {"*b*", "abc", true},
		{"a*a", "a", false}, {"a**c", "ac", true}, {"", "", true},
	} {
		if got := Match(tt.pattern, tt.value); got != tt.want {
			t.Errorf("Match(%q, %q) = %v", tt.pattern, tt.value, got)
		}
	}
}

// A hostile pattern and name must not take long: matching is linear in steps.
func TestMatchIsFast(t *testing.T) {
	value := strings.Repeat("a", 1<<16)
	if Match(strings.Repeat("*a", 5000)+"b", value) {
		t.Error("matched")
	}
}

func TestFirstRuleThatFitsDecides(t *testing.T) {
	f := New([]Rule{
		{Line: 1, Type: Pipe, Name: "secret*", Action: Deny},
		{Line: 2, Type: Other, Root: "x:Chart", Least: 1000, Action: Local},
		{Line: 3, Direction: site.In, Site: 7, Action: Deny},
		{Line: 4, Group: "uuid-AA02", Action: Local},
		{Line: 5, Name: "*", Peer: "uuid-0103", Action: Deny},
	})
	for _, tt := range []struct {
		name string
		s    site.Subject
		rule int
	}{
		{"by name", site.Subject{Type: Pipe, Name: "secret lair"}, 0},
		{"name of another type", site.Subject{Type: Spec, Name: "secret lair"}, -1},
		{"large chart", site.Subject{Type: Other, Root: "x:Chart", Octets: 1000}, 1},
		{"small chart", site.Subject{Type: Other, Root: "x:Chart", Octets: 999}, -1},
		{"from a site", site.Subject{Direction: site.In, Site: 7, Type: Message}, 2},
		{"to that site", site.Subject{Direction: site.Out, Site: 7, Type: Message}, -1},
		{"the earlier of two", site.Subject{Type: Pipe, Name: "secret", Scope: "uuid-AA02"}, 0},
		{"group, whatever it is", site.Subject{Type: Message, Scope: "uuid-AA02"}, 3},
		{"any name is no name of a message", site.Subject{Type: Message, Owner: "uuid-0103"}, -1},
		{"any name", site.Subject{Type: Group, Owner: "uuid-0103"}, 4},
		{"of several, all denied", site.Subject{Type: Group, Owners: []string{"uuid-0103", "uuid-0103"}}, 4},
		{"of several, one of them not", site.Subject{Type: Group, Owners: []string{"uuid-0103", "uuid-0203", "uuid-0103"}}, -1},
	} {
		if got := f.Judge(&tt.s); got.Rule != tt.rule {
			t.Errorf("%s: rule %d, want %d", tt.name, got.Rule, tt.rule)
		}
	}
}

func TestCheck(t *testing.T) {
	r := func(r Rule, line int) Rule { r.Line = line; return r }
	for _, tt := range []struct {
		name  string
		rules []Rule
		want  string // "key: part of the problem" of the only fault; "" for none
	}{
		{"none", []Rule{{Type: Pipe}, {Type: Spec}}, ""},
		{"contradiction", []Rule{r(Rule{Name: "a*", Action: Deny}, 4), r(Rule{Name: "a*"}, 9)}, `action: "allow" contradicts the rule of line 4`},
		{"twice", []Rule{r(Rule{Name: "a*"}, 4), r(Rule{Name: "a*"}, 9)}, "action: the rule can never match: that of line 4 has the same"},
		{"wider pattern first", []Rule{r(Rule{Name: "a*"}, 4), r(Rule{Name: "a*b", Type: Pipe}, 9)}, "action: the rule can never match: that of line 4 comes first"},
		{"narrower pattern first", []Rule{{Name: "a*b"}, {Name: "a*"}}, ""},
		{"stars in the middle", []Rule{{Name: "a*c"}, {Name: "ab*c"}}, "action: the rule can never match"},
		{"not covered by a star of another place", []Rule{{Name: "ab*"}, {Name: "a*b"}}, ""},
		{"everything first", []Rule{{Line: 2}, {Type: Message, Group: "uuid-02"}}, "action: the rule can never match: that of line 2"},
		{"sizes within", []Rule{{Least: 10, Most: 100}, {Least: 20, Most: 99, Type: Other}}, "action: the rule can never match"},
		{"sizes beyond", []Rule{{Least: 10, Most: 100}, {Least: 20, Most: 101}}, ""},
		{"both directions, one each", []Rule{r(Rule{Direction: site.Out}, 3), r(Rule{Direction: site.In, Type: Pipe}, 5), r(Rule{Type: Pipe}, 7)},
			"action: the rule can never match: those of lines 3 and 5"},
		{"one direction only", []Rule{{Direction: site.Out}, {Type: Pipe}}, ""},
		{"a root is a type", []Rule{{Type: Spec}, {Root: "jxta:MSA"}}, "action: the rule can never match"},
		{"a type is a root", []Rule{{Root: "jxta:MSA"}, {Type: Spec, Name: "x"}}, "action: the rule can never match"},
		{"other roots", []Rule{{Root: "x:A"}, {Type: Other}}, ""},
		{"size", []Rule{{Least: 11, Most: 10}}, "octets_min: the rule can never match"},
		{"root against type", []Rule{{Type: Pipe, Root: "jxta:MSA"}}, `root: the rule can never match: a document jxta:MSA is of type "spec"`},
		{"name of a message", []Rule{{Type: Message, Name: "a*"}}, "name: the rule can never match"},
		{"pipe of a group", []Rule{{Type: Group, Pipe: "uuid-04"}}, "pipe: the rule can never match"},
		{"local from the link", []Rule{{Direction: site.In, Action: Local}}, `action: "local" is about what local peers offer`},
		{"rate of nothing", []Rule{{Action: Deny, Rate: Rate{1, time.Second}}}, "rate: is of no use"},
		{"an impossible one shadows nothing", []Rule{{Least: 2, Most: 1}, {Least: 2, Most: 1, Type: Pipe}}, "octets_min: 2"},
	} {
		got := Check(tt.rules)
		switch {
		case strings.HasSuffix(tt.want, ": 2"):
			if len(got) != 2 {
				t.Errorf("%s: %v", tt.name, got)
			}
		case tt.want == "" && len(got) > 0:
			t.Errorf("%s: %v", tt.name, got)
		case tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].Key+": "+got[0].Problem, tt.want)):
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
}

func TestRate(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	f := New([]Rule{{Rate: Rate{3, time.Minute}}})
	v := f.Judge(&site.Subject{})
	for i := range 3 {
		if ok, _ := f.Allow(start, v); !ok {
			t.Fatalf("%d of a full bucket refused", i)
		}
	}
	ok, at := f.Allow(start, v)
	if ok || !at.Equal(start.Add(20*time.Second)) {
		t.Fatalf("empty bucket: %v, next at %v", ok, at.Sub(start))
	}
	if ok, _ := f.Allow(at.Add(-time.Millisecond), v); ok {
		t.Error("too early")
	}
	if ok, _ := f.Allow(at, v); !ok {
		t.Error("not at the time told")
	}
	passed := 0
	for now := at; now.Before(at.Add(time.Hour)); now = now.Add(time.Second) {
		if ok, _ := f.Allow(now, v); ok {
			passed++
		}
	}
	if passed != 179 { // one each 20 s, none at the first second
		t.Errorf("%d in an hour, want 179", passed)
	}
	if ok, _ := f.Allow(at, Default); !ok {
		t.Error("no rule, no rate")
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"10/min": {10, time.Minute}, "1/s": {1, time.Second}, "5 / 90s": {5, 90 * time.Second}, "100/h": {100, time.Hour},
		"": {}, "10": {}, "0/min": {}, "-1/s": {}, "x/min": {}, "10/day": {}, "10/1ms": {}, "10000000/s": {},
	} {
		got, err := ParseRate(text)
		if got != want || (err == nil) != (want != Rate{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if again, _ := ParseRate(got.String()); err == nil && again != got {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}

// TestReplace: a rule that stays keeps its counters and its rate wherever it stands, each once; the old ones judge as before.
func TestReplace(t *testing.T) {
	now := time.Unix(0, 0)
	slow := Rule{Line: 1, Type: Spec, Rate: Rate{Count: 1, Per: time.Hour}}
	f := New([]Rule{slow, {Line: 2, Type: Peer, Action: Deny}})
	spec, peer := &site.Subject{Type: Spec}, &site.Subject{Type: Peer}
	f.Count(f.Judge(spec))
	if ok, _ := f.Allow(now, f.Judge(spec)); !ok {
		t.Fatal("the first is not let through")
	}
	slow.Line = 12
	before := f.Replace([]Rule{{Line: 3, Type: Group}, slow, slow})
	for i, want := range []uint64{0, 1, 0} {
		if got := f.Status()[i]; got.Fits != want || got.Line == 1 {
			t.Errorf("rule %d: %+v, want %d things that it took", i, got, want)
		}
	}
	if ok, at := f.Allow(now, f.Judge(spec)); ok || !at.Equal(now.Add(time.Hour)) {
		t.Errorf("the rate of the rule that moved: %v, next at %v", ok, at)
	}
	if ok, _ := f.Allow(now, Verdict{Rule: 2}); !ok {
		t.Error("the second of two equal rules took over the first one's rate")
	}
	if f.Judge(peer).Stays() || !before.Judge(peer).Stays() {
		t.Error("the rules of before and after judge alike")
	}
}

// A rule of messages may look into their elements; one of anything else cannot.
func TestContent(t *testing.T) {
	c, err := query.Parse("json:/track/class = secret*")
	check.NoError(check.Fatal(t), err)
	deny := Rule{Type: Message, Content: c, Action: Deny}
	f := New([]Rule{deny})
	for data, want := range map[string]int{`{"track":{"class":"secret-nato"}}`: 0, `{"track":{"class":"open"}}`: -1, "no JSON": -1} {
		s := site.Subject{Type: Message, Parts: []site.Part{{Data: []byte("head")}, {Data: []byte(data)}}}
		check.Equal(t, data, f.Judge(&s).Rule, want)
	}
	check.Equal(t, "why not", deny.Misses(&site.Subject{Type: Message}), "content")
	check.Equal(t, "mistakes", len(Check([]Rule{deny, {Type: Message, Action: Allow}})), 0)
	check.Equal(t, "behind a wider one", len(Check([]Rule{{Type: Message, Action: Allow}, deny})), 1)
	for _, kind := range []string{"", Pipe} {
		faults := Check([]Rule{{Type: kind, Content: c}})
		check.Equal(check.Fatal(t), "mistakes", len(faults), 1)
		check.Equal(t, "key", faults[0].Key, "content")
	}
}
