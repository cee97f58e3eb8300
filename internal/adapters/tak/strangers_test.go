package tak_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Events from elsewhere, a file each. Without the flag, events of the other tests are used.
var eventsDir = flag.String("events", "", "`directory` with an event a file: how each comes out of two joined adapters is printed as a table")

// flat is an event that this test reads with a parser of its own: values by their places.
type flat map[string]string

// flatten reads an event.
func flatten(text []byte) (flat, error) {
	f := flat{}
	d := xml.NewDecoder(strings.NewReader(string(text)))
	path, counts := []string{""}, []map[string]int{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		at := path[len(path)-1]
		switch x := token.(type) {
		case xml.StartElement:
			name := x.Name.Space + x.Name.Local
			n := counts[len(counts)-1][name]
			counts[len(counts)-1][name]++
			f[at+"#order"] += " " + name
			inside := fmt.Sprintf("%s/%s[%d]", at, name, n)
			f[inside] = "there"
			for _, a := range x.Attr {
				f[inside+"@"+a.Name.Space+a.Name.Local] = a.Value
			}
			path, counts = append(path, inside), append(counts, map[string]int{})
		case xml.EndElement:
			path, counts = path[:len(path)-1], counts[:len(counts)-1]
		case xml.CharData:
			if strings.TrimSpace(string(x)) != "" {
				f[at+"#text"] += string(x)
			}
		}
	}
}

// ways in which an event may come out changed, as docs/tak.md lists them; unit: only for the event of a unit.
var ways = []struct {
	name string
	unit bool
	is   func(path, was, is string) bool
}{
	{"spelling of a number or a time", false, func(path, was, is string) bool {
		t1, ok1 := cot.ParseTime(was)
		t2, ok2 := cot.ParseTime(is)
		return strings.HasPrefix(path, "/event[0]/point[0]@") && (near(was, is, 0) || strings.EqualFold(was, "nan") && is == string(cot.Unknown)) ||
			times.MatchString(path) && ok1 && ok2 && t1.Equal(t2)
	}},
	{"_flow-tags_", false, func(path, _, _ string) bool { return strings.Contains(path, "/_flow-tags_[") }},
	{"address (marti)", false, func(path, _, _ string) bool { return strings.Contains(path, "/marti[0]") }},
	{"order of elements beside these", false, func(path, was, is string) bool {
		without := strings.NewReplacer(" _flow-tags_", "", " marti", "")
		return strings.HasSuffix(path, "#order") && without.Replace(was) == without.Replace(is)
	}},
	{"stale", true, func(path, _, _ string) bool { return strings.HasSuffix(path, "@stale") }},
	{"time, to the second", true, func(path, was, is string) bool {
		t1, _ := cot.ParseTime(was)
		t2, _ := cot.ParseTime(is)
		return times.MatchString(path) && t1.Sub(t2).Abs() <= time.Second
	}},
	{"start", true, func(path, _, _ string) bool { return strings.HasSuffix(path, "@start") }},
	{"place, to a millionth of a degree", true, func(path, was, is string) bool {
		return (strings.HasSuffix(path, "@lat") || strings.HasSuffix(path, "@lon")) && near(was, is, 0.6e-6)
	}},
	{goneOn, true, func(path, was, is string) bool {
		return (strings.HasSuffix(path, "@lat") || strings.HasSuffix(path, "@lon")) && near(was, is, 0.005)
	}},
	{"height, to a metre", true, func(path, was, is string) bool { return path == "/event[0]/point[0]@hae" && near(was, is, 0.51) }},
	{"errors, course and speed, to a tenth", true, func(path, was, is string) bool {
		if strings.HasSuffix(path, "@course") { // of 0 to 360
			return near(was, is, 0.051) || strings.HasPrefix(was, "-") && near(whole(was), is, 0.051)
		}
		return regexp.MustCompile(`@(ce|le|speed)$`).MatchString(path) && near(was, is, 0.051)
	}},
	{"endpoint", true, func(path, _, is string) bool { return strings.HasSuffix(path, "@endpoint") && is == "*:-1:stcp" }},
}

const goneOn = "place, gone on by course and speed"

var times = regexp.MustCompile(`^/event\[0\]@(time|start|stale)$`)

// whole is a course of 0 to 360 degrees.
func whole(text string) string {
	course, _ := strconv.ParseFloat(text, 64)
	return fmt.Sprint(math.Mod(course+360, 360))
}

// near says whether two texts are numbers with a difference of at most by.
func near(a, b string, by float64) bool {
	x, err1 := strconv.ParseFloat(strings.TrimSpace(a), 64)
	y, err2 := strconv.ParseFloat(strings.TrimSpace(b), 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) <= by
}

// otherwise returns the ways in which two events differ; unlisted: ways that no list has. live: the event of a unit.
func otherwise(was, is flat, live bool) (listed, unlisted []string) {
	speed, _ := strconv.ParseFloat(was["/event[0]/detail[0]/track[0]@speed"], 64)
	moves, paths := speed > 0, maps.Clone(was)
	maps.Copy(paths, is)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		a, has := was[path]
		b, still := is[path]
		if has && still && a == b {
			continue
		}
		way := ""
		for _, w := range ways {
			if way == "" && (!w.unit || live) && (w.name != goneOn || moves) && w.is(path, a, b) {
				way = w.name
			}
		}
		if way == "" {
			unlisted = append(unlisted, fmt.Sprintf("%s: %q (%v) became %q (%v)", path, a, has, b, still))
		} else if !slices.Contains(listed, way) {
			listed = append(listed, way)
		}
	}
	return listed, unlisted
}

var timed = regexp.MustCompile(`(\s)(time|start|stale)\s*=\s*(["'])([^"']*)["']`)

// fresh is an event as if it were sent now; false: it has no times.
func fresh(text string, now time.Time) (string, bool) {
	head, rest, _ := strings.Cut(text, ">")
	var said time.Time
	for _, m := range timed.FindAllStringSubmatch(head, -1) {
		if m[2] == "time" {
			said, _ = cot.ParseTime(m[4])
		}
	}
	if said.IsZero() {
		return text, false
	}
	ok := true
	head = timed.ReplaceAllStringFunc(head, func(s string) string {
		m := timed.FindStringSubmatch(s)
		at, valid := cot.ParseTime(m[4])
		if ok = ok && valid; m[2] == "stale" && at.Sub(said) < 10*time.Second { // otherwise it is stale before it can be compared
			at = said.Add(time.Minute)
		}
		return m[1] + m[2] + "=" + m[3] + stamp(now.Add(at.Sub(said))) + m[3]
	})
	return head + ">" + rest, ok
}

// through sends an event at one site of a new pair and returns the event that a device of the other is shown; nil and why: none.
func through(t *testing.T, text string) (was flat, is *cot.Event, why string) {
	w := newWorld(t, 2, "wire", 7)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	w.Run(10 * time.Second)
	text, ok := fresh(text, w.Now.Truncate(time.Second).Add(300*time.Millisecond))
	if !ok {
		return nil, nil, "fragment: times that are none"
	}
	if _, err := flatten([]byte(text)); err != nil {
		return nil, nil, "fragment: no XML for another parser either"
	}
	e, err := cot.ParseXML([]byte(text))
	if err != nil {
		return nil, nil, "refused: " + err.Error()
	}
	for i, dest := range e.Dests() { // its recipients are there
		u := newUnit(50 + i)
		if dest.Callsign != "" {
			u.callsign = dest.Callsign
		}
		if dest.UID != "" {
			u.uid = dest.UID
		}
		report := u.report(w.Now)
		if dest.Group != "" {
			report = strings.Replace(report, `name="Cyan"`, `name="`+dest.Group+`"`, 1)
		}
		d := hq
		if i > 0 {
			d = w.connect(w.Nodes[0])
		}
		d.say(report)
	}
	w.Run(10 * time.Second)
	before := len(hq.got)
	text, _ = fresh(text, w.Now.Truncate(time.Second).Add(300*time.Millisecond))
	was, _ = flatten([]byte(text))
	ship.say(text)
	w.Run(8 * time.Second)
	for _, g := range hq.got[before:] { // the first: a unit moves on after it
		if is == nil && g.event.UID == e.UID && g.event.Type == e.Type {
			is = g.event
		}
	}
	if is == nil {
		why = "not there: " + e.Type + " " + fmt.Sprint(w.adapters[2].Counts())
	}
	return was, is, why
}

// Events of strangers come out of two joined adapters unchanged, except for the changes that docs/tak.md lists. Text that is
// not a whole event, or an event that stays on its LAN, is named.
func TestEventsOfStrangers(t *testing.T) {
	texts := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(*eventsDir, "*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || *eventsDir == "" {
			break
		}
		texts[filepath.Base(file)] = string(text)
	}
	if *eventsDir == "" {
		w := &world{World: newWorld(t, 2, "wire", 1).World}
		u := newUnit(1)
		texts = map[string]string{"unit": u.report(w.Now), "marker": w.marker("m", "a-h-G", "M", time.Hour), "chat": w.chat(u, "All Chat Rooms", "All Chat Rooms", "m-1", "here &amp; there", ""),
			"one": w.chat(u, "FALCON 7", "ANDROID-7", "m-2", "for you", `<marti><dest callsign="FALCON 7"/></marti>`), "shape": w.event("s", "u-d-f", `<x:a xmlns:x="urn:x" x:b="1">é</x:a><_flow-tags_ a="b"/>`, time.Hour),
			"file received": strings.Replace(w.event("f", "b-f-t-a", `<ackresponse success="true"/>`, time.Minute), `hae="1" ce="2" le="3"`, `hae="NaN" ce="NaN" le="NaN"`, 1)}
	}
	kinds, listings, absent := map[string]int{}, map[string]int{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		was, e, why := through(t, texts[name])
		if e == nil {
			kind, _, _ := strings.Cut(why, ":")
			kinds[kind]++
			absent[kind] = append(absent[kind], name+" "+why)
			continue
		}
		is, err := flatten(e.AppendXML(nil))
		if err != nil {
			t.Fatal(err)
		}
		live := e.Is("a") && is["/event[0]@stale"] != was["/event[0]@stale"]
		listed, unlisted := otherwise(was, is, live)
		for _, way := range listed {
			listings[way]++
		}
		for _, u := range unlisted {
			t.Errorf("%s: %s", name, u)
		}
		switch {
		case len(unlisted) > 0:
			kinds["otherwise"]++
		case len(listed) == 0:
			kinds["equal"]++
		case live:
			kinds["a unit's, equal but for what is listed"]++
		default:
			kinds["equal but for what is listed"]++
		}
	}
	for _, m := range []map[string]int{kinds, listings} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			t.Logf("| %s | %d |", key, m[key])
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(absent)) {
		for _, name := range absent[kind] {
			t.Log(name)
		}
	}
	if *eventsDir == "" && kinds["refused"]+kinds["not there"]+kinds["fragment"] > 0 {
		t.Errorf("not all have come: %v", absent)
	}
}
