package interop

import (
	"fmt"
	"strings"
	"time"

	"aldis/internal/adapters/tak/rule"
	"aldis/internal/rules/query"
)

// Rule says which messages of a JXTA pipe become which events of TAK and the other way round: tracks of units, or lines of a chat room.
type Rule struct {
	Label string
	Line  int // of the configuration

	// JXTA's side.
	Group   string // unique value
	Pipe    string // unique value; "": it is found by Name
	Name    string // of the pipe's advertisement, a pattern
	Unicast bool   // it is a unicast pipe; otherwise it is a propagate pipe
	Space   string // namespace of the element; "": any is read, and none is written
	Element string // its name
	MIME    string // type of elements that are written

	FromJXTA, FromTAK bool // the direction: both may be set

	// CoT says that the element is a CoT event. Otherwise At says where to look in it, and Write what to write.
	CoT   bool
	At    At
	Write Template // zero: nothing can be written
	Speed float64  // factor that turns a speed in the element into metres a second; 0: 1

	MUC  string        // bare JID of an XMPP room that is one room with Room; "": none. With it the pipe may be left out
	Node string        // XMPP node that has the units as items; "": none. With it the pipe may be left out
	Room string        // of a chat; "": the rule is for units
	Unit Template      // makes the name of a unit that JXTA peers report; zero: its id as it is
	As   string        // type of a unit if the element has none
	Life time.Duration // of a report
	// Every is the shortest time between two reports of one unit to JXTA peers; 0: whenever it is shown.
	Every time.Duration
	// Fit has the conditions on which the rule takes an event; its other fields do not count. Without a Type the rule is for units.
	Fit rule.Rule
}

// At says where values are in an element. A zero condition: the element has no such value.
type At struct {
	ID, Callsign, Type, Lat, Lon, Time, Course, Speed query.Condition
	From, Text                                        query.Condition // of a chat
}

// String names the rule for operators.
func (r *Rule) String() string {
	if r.Label != "" {
		return fmt.Sprintf("%q (line %d)", r.Label, r.Line)
	}
	return fmt.Sprintf("line %d", r.Line)
}

func (r *Rule) speed() float64 {
	if r.Speed == 0 {
		return 1
	}
	return r.Speed
}

// Template is a text with places for values, such as {lat}. The zero Template writes nothing.
type Template struct {
	text   []string // before each place, and after the last
	places []string
	form   byte // '<': XML, '{': JSON
}

// Words of a Template for units, for lines of a chat, and for names of units.
var (
	TrackWords = []string{"id", "callsign", "type", "lat", "lon", "time", "unix", "stale", "course", "speed"}
	LineWords  = []string{"id", "room", "from", "text", "time", "unix"}
	UnitWords  = []string{"id", "callsign"}
)

// ParseTemplate reads a Template. A text that begins with < is XML and one that begins with { or [ is JSON: values are escaped
// accordingly. Errors are for operators.
func ParseTemplate(text string, words []string) (t Template, err error) {
	known := map[string]bool{}
	for _, w := range words {
		known[w] = true
	}
	switch text := strings.TrimSpace(text); {
	case strings.HasPrefix(text, "<"):
		t.form = '<'
	case strings.HasPrefix(text, "{\"") || strings.HasPrefix(text, "{ ") || strings.HasPrefix(text, "{\n") || strings.HasPrefix(text, "["):
		t.form = '{'
	}
	before := ""
	for rest := text; ; {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			t.text = append(t.text, before+rest)
			return t, nil
		}
		word := rest[open+1:]
		word = word[:len(word)-len(strings.TrimLeft(word, "abcdefghijklmnopqrstuvwxyz"))]
		if after := rest[open+1+len(word):]; word == "" || !strings.HasPrefix(after, "}") {
			before, rest = before+rest[:open+1], rest[open+1:]
			continue
		}
		if !known[word] {
			return Template{}, fmt.Errorf("has {%s}: it may have {%s}", word, strings.Join(words, "}, {"))
		}
		t.text, t.places = append(t.text, before+rest[:open]), append(t.places, word)
		before, rest = "", rest[open+len(word)+2:]
	}
}

// Zero says that the template writes nothing.
func (t Template) Zero() bool { return len(t.text) == 0 }

func (t Template) escape(text string) string {
	switch t.form {
	case '<':
		return escapeXML(text)
	case '{':
		return escapeJSON(text)
	}
	return text
}

// Fill writes the template with these values.
func (t Template) Fill(values map[string]string) string {
	var b strings.Builder
	for i, text := range t.text {
		b.WriteString(text)
		if i < len(t.places) {
			b.WriteString(t.escape(values[t.places[i]]))
		}
	}
	return b.String()
}
