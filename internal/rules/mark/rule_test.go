package mark

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/query"
	"aldis/internal/site"
)

var now = time.Unix(1_800_000_000, 0).UTC()

func payload(name, data string) *site.Message {
	return &site.Message{Published: true, Scope: jxta.NetGroup, Topic: "uuid-AA04", From: "uuid-BB03",
		Parts: []jxta.Element{{Namespace: "trk", Name: name, Type: "text/plain;charset=UTF-8", Data: []byte(data)}}}
}

// subject is what an adapter says of a message.
func subject(m *site.Message) *site.Subject {
	s := jxtabridge.DescribeMessage(m)
	return &s
}

func TestPrecedences(t *testing.T) {
	last := -1
	for _, name := range site.Precedences {
		p, ok := site.ParsePrecedence(name)
		if !ok || p.String() != name || p.Rank() != last+1 {
			t.Errorf("%s: %d, %v, rank %d", name, p, ok, p.Rank())
		}
		last = p.Rank()
	}
	if p, _ := site.ParsePrecedence("routine"); p != 0 {
		t.Errorf("routine is %d on the link, and would cost octets", p)
	}
	if _, ok := site.ParsePrecedence("urgent"); ok {
		t.Error("a precedence that there is not")
	}
}

func TestPattern(t *testing.T) {
	for _, tt := range []struct{ pattern, data, key string }{
		{"TRK;{key};*", "TRK;A-101;seq=17;lat=68", "A-101"},
		{"*;{key};*", "TRK;A-101;seq=17", "A-101"},
		{"*<id>{key}</id>*", "<t><n>x</n><id>4711</id><id>2</id></t>", "4711"},
		{"{key};*", "A;B", "A"},
		{"*;{key}", "A;B", "B"},
		{"{key}", "all of it", "all of it"},
		{"id={key}.", "id=7.", "7"},
		{"id={key}.", "id=7.8.", ""},
		{"TRK;{key};*", "ALR;A;B", ""},
		{"TRK;{key};*", "TRK;A", ""},
		{"TRK;{key};*", "TRK;;x", ""},
		{"a*b{key}c*d", "a1b2c3d", "2"},
		{"a*b{key}c*d", "a1b2c3e", ""},
	} {
		p, err := ParsePattern(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		key, ok := p.Key([]byte(tt.data))
		in := check.In(t, tt.pattern, "of", tt.data)
		check.Equal(in, "string(key)", string(key), tt.key)
		check.True(in, `!ok || tt.key != "" || len(key) <= 0`, !ok || tt.key != "" || len(key) <= 0)
	}
	for _, bad := range []string{"", "TRK;*", "{key}{key}", "*{key};", ";{key}*", strings.Repeat("x", 300) + "{key}"} {
		if _, err := ParsePattern(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	p, _ := ParsePattern(strings.Repeat("a*", 100) + "b{key}c*")
	if _, ok := p.Key([]byte(strings.Repeat("a", 1<<20))); ok {
		t.Error("found")
	}
}

func TestMark(t *testing.T) {
	track, _ := ParsePattern("TRK;{key};*")
	rules := []Rule{
		{Element: "alarm", Precedence: site.Flash},
		{Type: "image/*", Precedence: site.Deferred, Expires: time.Hour},
		{Pipe: "uuid-AA04", Element: "body", Most: 100, Precedence: site.Priority, Expires: 10 * time.Minute, LastValue: "body", Pattern: track},
		{Least: 1000, Precedence: site.Deferred},
	}
	mark := func(p *site.Message) *site.Message { Mark(rules, now, p, subject(p)); return p }
	if p := mark(payload("alarm", "x")); site.Precedence(p.Precedence) != site.Flash || p.Key != 0 || !p.Expires.IsZero() {
		t.Errorf("%+v", p)
	}
	a, b := mark(payload("body", "TRK;A-101;1")), mark(payload("body", "TRK;A-101;2"))
	check.Equal(t, "site.Precedence(a.Precedence)", site.Precedence(a.Precedence), site.Priority)
	check.Differ(t, "a.Key", a.Key, 0)
	check.Equal(t, "a.Key", a.Key, b.Key)
	check.Equal(t, "a.Supersedes", a.LastValue, b.LastValue)
	check.True(t, "a.Expires.Equal(now.Add(10*time.Minute))", a.Expires.Equal(now.Add(10*time.Minute)), now.Add(10*time.Minute))
	if c := mark(payload("body", "TRK;A-102;1")); c.LastValue == a.LastValue {
		t.Error("another track, the same key")
	}
	other := payload("body", "TRK;A-101;1")
	other.From = "uuid-CC03"
	if mark(other); other.LastValue == a.LastValue {
		t.Error("another sender, the same key")
	}
	if p := mark(payload("body", "no track")); site.Precedence(p.Precedence) != site.Priority || p.Key != 0 {
		t.Errorf("without a key: %+v", p)
	}
	if p := mark(payload("body", "TRK;"+strings.Repeat("k", 300)+";")); p.Key != 0 {
		t.Errorf("a key of 300 octets: %+v", p)
	}
	if p := mark(payload("body", strings.Repeat("k", 1000))); site.Precedence(p.Precedence) != site.Deferred {
		t.Errorf("by size: %+v", p)
	}
	if p := mark(payload("other", "x")); p.Precedence != 0 || p.Key != 0 || !p.Expires.IsZero() {
		t.Errorf("no rule: %+v", p)
	}
	stream := payload("body", "TRK;A-101;1")
	stream.Published, stream.Topic, stream.To, stream.Service = false, "", "uuid-DD03", "jxtarel"
	if mark(stream); stream.Precedence != 0 || stream.Key != 0 {
		t.Errorf("a stream's: %+v", stream)
	}
	// After a start only the hash is known.
	back := *a
	back.LastValue = ""
	if Remark(rules, &back, subject(&back)); back.LastValue != a.LastValue {
		t.Error("the key is not found again")
	}
	if Remark(rules[:2], &back, subject(&back)); back.Key != a.Key {
		t.Error("the hash is not what was accepted")
	}
}

func TestCovers(t *testing.T) {
	for i, tt := range []struct {
		a, b Rule
		want bool
	}{
		{Rule{}, Rule{Pipe: "x"}, true},
		{Rule{Pipe: "x"}, Rule{}, false},
		{Rule{Element: "a*"}, Rule{Element: "ab"}, true},
		{Rule{Element: "a*"}, Rule{Element: "ab", Type: "text/plain"}, true},
		{Rule{Element: "a*", Type: "text/*"}, Rule{Element: "ab"}, false},
		{Rule{Most: 10}, Rule{Most: 9}, true},
		{Rule{Most: 10}, Rule{Least: 1}, false},
	} {
		if got := tt.a.Covers(tt.b); got != tt.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("TRK;{key};*", "TRK;A-101;seq=17")
	f.Add("*<id>{key}</id>*", "<t><id>4711</id></t>")
	f.Fuzz(func(t *testing.T, pattern, data string) {
		p, err := ParsePattern(pattern)
		if err != nil {
			return
		}
		key, ok := p.Key([]byte(data))
		if !ok {
			return
		}
		// The key that was found, put in the pattern's place for it, must fit the data.
		if whole := strings.Replace(pattern, "{key}", string(key), 1); !strings.Contains(string(key), "*") && !filter.Match(whole, data) {
			t.Errorf("%q of %q: %q, which does not fit", pattern, data, key)
		}
	})
}

// A rule may look into the content of an element: all that it says of one must be true of the same.
func TestContent(t *testing.T) {
	condition := func(text string) query.Condition {
		c, err := query.Parse(text)
		check.NoError(check.Fatal(t), err)
		return c
	}
	rules := []Rule{{Element: "event", Content: condition("xml:/event/@type = b-a-o-*"), Precedence: site.Flash}, {Content: condition("text: *MAYDAY*"), Precedence: site.Immediate}}
	for _, c := range []struct {
		name, data string
		want       int
	}{
		{"event", `<event type="b-a-o-tbl"/>`, 0}, {"event", `<event type="a-f-G"/>`, -1}, {"other", `<event type="b-a-o-tbl"/>`, -1}, {"other", "MAYDAY, we sink", 1},
	} {
		m := payload(c.name, c.data)
		check.Equal(t, c.name+" "+c.data, Judge(rules, m, subject(m)), c.want)
		m.Parts = append([]site.Part{{Name: "head", Data: []byte("x")}}, m.Parts...)
		check.Equal(t, "behind another element", Judge(rules, m, subject(m)), c.want)
	}
	wide := Rule{Element: "event"}
	check.True(t, "covers", wide.Covers(rules[0]) && !rules[0].Covers(wide) && rules[0].Covers(rules[0]) && !rules[1].Covers(rules[0]))
}
