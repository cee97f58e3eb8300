package cot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"aldis/internal/adapters/tak/cot"
)

const position = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<event version="2.0" uid="ANDROID-359975090666199a" type="a-f-G-U-C" time="2026-05-01T10:11:12.345Z" start="2026-05-01T10:11:12.345Z" stale="2026-05-01T10:17:27.345Z" how="m-g"><point lat="54.3233001" lon="10.1394" hae="12.50" ce="4.7" le="9999999.0"/><detail><takv os="29" version="4.5.1.13" device="SAMSUNG SM-G970U" platform="ATAK-CIV"/><contact endpoint="*:-1:stcp" callsign="FALCON &amp; 6"/><uid Droid="FALCON &amp; 6"/><precisionlocation altsrc="GPS" geopointsrc="GPS"/><__group role="Team Member" name="Cyan"/><status battery="88"/><track course="31.25" speed="7.5"/><remarks>a &lt;b&gt;
 c</remarks><strange xmlns:x='urn:x' x:y='1' z="&#233;"><inner/> t <![CDATA[<raw>]]></strange></detail></event>`

func parse(t *testing.T, text string) *cot.Event {
	t.Helper()
	e, err := cot.ParseXML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// An event comes back from XML and from Protocol Buffers unchanged, with all unknown elements and attributes.
func TestBothVersions(t *testing.T) {
	e := parse(t, position)
	if got := e.Callsign(); got != "FALCON & 6" {
		t.Errorf("callsign %q", got)
	}
	if got, want := string(e.Point.HAE), "12.5"; got != want {
		t.Errorf("hae %q, want %q", got, want)
	}
	if got, want := e.Find("remarks").Inside(), "a <b>\n c"; got != want {
		t.Errorf("remarks %q, want %q", got, want)
	}
	again := parse(t, string(e.AppendXML(nil)))
	if got, want := again.Canonical(), e.Canonical(); got != want {
		t.Errorf("from XML\n%s\nwant\n%s", got, want)
	}
	frame := e.AppendFrame(nil)
	back, _, err := cot.ParseFrame(frame)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ordered(back), ordered(e); got != want {
		t.Errorf("from version 1\n%s\nwant\n%s", got, want)
	}
	mesh, c, err := cot.ParseDatagram(e.AppendDatagram(nil, &cot.Control{Least: 1, Most: 1, UID: "me"}))
	if err != nil {
		t.Fatal(err)
	}
	if ordered(mesh) != ordered(e) {
		t.Error("the mesh's form says something else")
	}
	if *c != (cot.Control{Least: 1, Most: 1, UID: "me"}) {
		t.Errorf("versions %+v", *c)
	}
}

// ordered is Canonical without the order of elements, which version 1 does not keep.
func ordered(e *cot.Event) string {
	lines := strings.Split(strings.ReplaceAll(e.Canonical(), "><", ">\n<"), "\n")
	n := map[string]int{}
	for _, l := range lines {
		n[l]++
	}
	return fmt.Sprint(n)
}

// A stream gives each event once, however its octets are split.
func TestSplit(t *testing.T) {
	e := parse(t, position)
	var stream []byte
	for range 3 {
		stream = append(e.AppendXML(stream), '\n')
		stream = e.AppendFrame(stream)
	}
	for _, step := range []int{1, 7, 64, len(stream)} {
		var s cot.Splitter
		got := 0
		for rest := stream; len(rest) > 0; {
			n := min(step, len(rest))
			if err := s.Feed(rest[:n], func(frame []byte) {
				back, _, err := cot.ParseFrame(frame)
				if err != nil || back.UID != e.UID {
					t.Errorf("step %d: %v", step, err)
				}
				got++
			}); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got != 6 {
			t.Errorf("%d events with %d octets at a time, want 6", got, step)
		}
		if s.Open() {
			t.Errorf("something is left with %d octets at a time", step)
		}
	}
}

// The login that a device sends first is cut off before its first event, and is not an event; an element of that name inside
// of an event is an ordinary detail.
func TestSplitAuth(t *testing.T) {
	const auth = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<auth><cot username="anna" password="secret" uid="ANDROID-1"/></auth>`
	first, second := event(times, point), event(times, point+`<detail><auth>x</auth></detail>`)
	stream := []byte(auth + first + auth[strings.Index(auth, "<auth"):] + second)
	for _, step := range []int{1, 5, len(stream)} {
		var s cot.Splitter
		var got []string
		for rest := stream; len(rest) > 0; {
			n := min(step, len(rest))
			if err := s.Feed(rest[:n], func(frame []byte) {
				e, c, err := cot.ParseFrame(frame)
				if err != nil || c != nil {
					t.Errorf("step %d: %v, %v of %q", step, c, err, frame)
				}
				if e != nil {
					got = append(got, string(frame))
				}
			}); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if len(got) != 2 || got[0] != first || got[1] != second {
			t.Errorf("step %d: %q", step, got)
		}
	}
}

func event(attrs, inside string) string {
	return `<event version="2.0" uid="u" type="a-f-G" how="m-g" ` + attrs + `>` + inside + `</event>`
}

const (
	times = `time="2026-05-01T10:00:00Z" start="2026-05-01T10:00:00Z" stale="2026-05-01T10:05:00Z"`
	point = `<point lat="1" lon="2" hae="3" ce="4" le="5"/>`
)

// Bad input is refused with its reason, in bounded time and memory.
func TestBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want cot.Reason
	}{
		"no time":             {event(`start="2026-05-01T10:00:00Z" stale="2026-05-01T10:05:00Z"`, point), cot.NoTime},
		"no such time":        {event(`time="yesterday" start="2026-05-01T10:00:00Z" stale="2026-05-01T10:05:00Z"`, point), cot.NoTime},
		"stale before start":  {event(`time="2026-05-01T10:00:00Z" start="2026-05-01T10:00:00Z" stale="2026-05-01T09:00:00Z"`, point), cot.StaleFirst},
		"no point":            {event(times, ""), cot.Nowhere},
		"outside":             {event(times, `<point lat="91" lon="2" hae="3" ce="4" le="5"/>`), cot.Nowhere},
		"NaN":                 {event(times, `<point lat="NaN" lon="2" hae="3" ce="4" le="5"/>`), cot.Nowhere},
		"no number":           {event(times, `<point lat="1" lon="2" hae="high" ce="4" le="5"/>`), cot.Nowhere},
		"infinite":            {event(times, `<point lat="1" lon="2" hae="1e999" ce="4" le="5"/>`), cot.Nowhere},
		"long uid":            {strings.Replace(event(times, point), `uid="u"`, `uid="`+strings.Repeat("u", 10_000)+`"`, 1), cot.NoName},
		"no uid":              {strings.Replace(event(times, point), `uid="u"`, ``, 1), cot.NoName},
		"deep":                {event(times, point+"<detail>"+strings.Repeat("<a>", 10_000)+strings.Repeat("</a>", 10_000)+"</detail>"), cot.TooDeep},
		"many":                {event(times, point+"<detail>"+strings.Repeat("<a/>", 60_000)+"</detail>"), cot.TooDeep},
		"long":                {event(times, point+"<detail>"+strings.Repeat("x", cot.MaxEvent)+"</detail>"), cot.TooLong},
		"entity bomb":         {`<!DOCTYPE e [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]>` + event(times, point), cot.Doctype},
		"own entity":          {event(times, point+"<detail>&lol;</detail>"), cot.Doctype},
		"two events":          {event(times, point) + event(times, point), cot.Syntax},
		"cut":                 {event(times, point)[:60], cot.Syntax},
		"crossed":             {event(times, point+"<detail><a><b></a></b></detail>"), cot.Syntax},
		"not UTF-8":           {event(times, point+"<detail>\xff</detail>"), cot.Syntax},
		"control":             {event(times, point+"<detail>&#1;</detail>"), cot.Syntax},
		"twice":               {event(times, point+`<detail><a b="1" b="2"/></detail>`), cot.Syntax},
		"no namespace":        {event(times, point+`<detail><a:b/></detail>`), cot.Syntax},
		"another's namespace": {event(times, point+`<detail><x xmlns:a="u"/><y a:b="1"/></detail>`), cot.Syntax},
		"strange name":        {event(times, point+`<detail><×/></detail>`), cot.Syntax},
		"not an event":        {"<auth/>", cot.Syntax},
	} {
		_, err := cot.ParseXML([]byte(c.text))
		var f *cot.Fault
		if !errors.As(err, &f) {
			t.Errorf("%s: %v", name, err)
		} else if f.Reason != c.want {
			t.Errorf("%s: reason %s, want %s", name, f.Reason, c.want)
		}
	}
}

// Messages of version 1 with wrong lengths and kinds are refused.
func TestBadProto(t *testing.T) {
	good := parse(t, position).AppendProto(nil, nil)
	for i := range len(good) {
		cot.ParseProto(good[:i])
		bad := bytes.Clone(good)
		bad[i] ^= 0xff
		cot.ParseProto(bad)
	}
	for name, b := range map[string][]byte{
		"length beyond the end": {0x12, 0x7f, 0x01},
		"length of 2^63":        {0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"group":                 {0x0b, 0x0c},
		"field 0":               {0x00, 0x01},
		"nothing":               {},
		"event without a uid":   {0x12, 0x02, 0x0a, 0x00},
	} {
		if _, _, err := cot.ParseProto(b); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	var s cot.Splitter
	if err := s.Feed([]byte{0xBF, 0xff, 0xff, 0xff, 0xff, 0x0f}, nil); err == nil {
		t.Error("a frame of 4 GB is awaited")
	}
}

// A message of version 1 that is much longer as XML than XML may be is refused: doubles of nine octets become numbers of 326 digits.
func TestLongAsXML(t *testing.T) {
	track := append([]byte{7<<3 | 2, 18}, []byte{1<<3 | 1, 1, 0, 0, 0, 0, 0, 0, 0, 2<<3 | 1, 1, 0, 0, 0, 0, 0, 0, 0}...)
	message := func(tracks int) []byte {
		good := parse(t, `<event version="2.0" uid="u" type="a-f-G" time="2026-05-01T10:00:00Z" start="2026-05-01T10:00:00Z" stale="2026-05-01T10:01:00Z" how="m-g"><point lat="1" lon="1" hae="0" ce="1" le="1"/></event>`).AppendProto(nil, nil)
		_, n := binary.Uvarint(good[1:])
		detail := bytes.Repeat(track, tracks)
		body := append(binary.AppendUvarint(append(bytes.Clone(good[1+n:]), 15<<3|2), uint64(len(detail))), detail...)
		return append(binary.AppendUvarint([]byte{2<<3 | 2}, uint64(len(body))), body...)
	}
	for tracks, most := range map[int]int{1: cot.MaxEvent, 200: cot.MaxEvent, 13_000: 0} {
		e, _, err := cot.ParseProto(message(tracks))
		octets := 0
		if err == nil {
			octets = len(e.AppendXML(nil))
		}
		if octets > most || (err == nil) != (most > 0) {
			t.Errorf("%d tracks: %d octets as XML, %v", tracks, octets, err)
		}
	}
}

// An event that never ends takes no more memory than the largest event.
func TestEndless(t *testing.T) {
	var s cot.Splitter
	if err := s.Feed([]byte("<event "), nil); err != nil {
		t.Fatal(err)
	}
	var err error
	octets := 0
	for ; err == nil && octets < 10*cot.MaxEvent; octets += 4096 {
		err = s.Feed(bytes.Repeat([]byte{'a'}, 4096), nil)
	}
	if err == nil || octets > cot.MaxEvent+8192 {
		t.Errorf("%v after %d octets", err, octets)
	}
}

// Numbers have one form, with the same value.
func TestNumbers(t *testing.T) {
	for in, want := range map[string]string{"9999999.0": "9999999", "+1.50": "1.5", "-0.0": "0", "1e3": "1000", ".5": "0.5",
		"007": "7", "-12.345": "-12.345", "1.25e-7": "0.000000125"} {
		e := parse(t, event(times, `<point lat="1" lon="2" hae="`+in+`" ce="4" le="5"/>`))
		if got := string(e.Point.HAE); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// A height or an error that is not a number is unknown, however a device writes it. A place that is not a number is refused.
func TestNoNumber(t *testing.T) {
	for _, none := range []string{"NaN", "nan", " NaN ", "-nan", "+NAN", "nan(0x8000)", "-nan(ind)", "1.#QNAN", "-1.#IND", "1.#QNAN0", "-1.#IND00"} {
		e := parse(t, event(times, `<point lat="0" lon="0" hae="`+none+`" ce="`+none+`" le="`+none+`"/>`))
		if p := e.Point; p.HAE != cot.Unknown || p.CE != cot.Unknown || p.LE != cot.Unknown {
			t.Errorf("%s became %v", none, p)
		}
		if _, err := cot.ParseXML([]byte(event(times, `<point lat="`+none+`" lon="0" hae="0" ce="0" le="0"/>`))); err == nil {
			t.Errorf("a latitude of %s was taken", none)
		}
	}
	e := parse(t, event(times, point))
	e.Point.HAE, e.Point.LE = "NaN", "NaN"
	if back, _, err := cot.ParseProto(e.AppendProto(nil, nil)); err != nil || back.Point.HAE != cot.Unknown || back.Point.LE != cot.Unknown {
		t.Errorf("from version 1 %v, %v", back, err)
	}
	for _, bad := range []string{"nano", "1.#INF", "1.#QNANx", "inf", ""} {
		if _, err := cot.ParseXML([]byte(event(times, `<point lat="0" lon="0" hae="`+bad+`" ce="0" le="0"/>`))); err == nil {
			t.Errorf("a height of %q was taken", bad)
		}
	}
}

// Attributes that an event has but leaves empty, those that it lacks, and the order of its two elements stay unchanged.
func TestAsItWas(t *testing.T) {
	head := `<event version="2.0" uid="u" type="t" how="m-g" ` + strings.ReplaceAll(times, `Z"`, `.000Z"`)
	for _, text := range []string{head + `><point lat="1" lon="2" hae="3" ce="4" le="5"/></event>`,
		head + ` access="" qos=""><point lat="1" lon="2" hae="3" ce="4" le="5"/><detail></detail></event>`,
		head + `><detail><a/></detail><point lat="1" lon="2" hae="3" ce="4" le="5"/></event>`} {
		if got := string(parse(t, text).AppendXML(nil)); got != cot.Header+text {
			t.Errorf("became\n%s\nwant\n%s", got, text)
		}
	}
	for _, again := range []string{`access="x" access=""`, `access="" access=""`, `access="" access="x"`} {
		if _, err := cot.ParseXML([]byte(event(times+" "+again, point))); err == nil {
			t.Errorf("%s was taken", again)
		}
	}
}

func FuzzFrame(f *testing.F) {
	e, err := cot.ParseXML([]byte(position))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(position))
	f.Add(e.AppendFrame(nil))
	f.Add([]byte(event(times, point+"<detail><a b='c'>d</a></detail>")))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, _, err := cot.ParseFrame(b)
		if err != nil || e == nil {
			return
		}
		again, err := cot.ParseXML(e.AppendXML(nil))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, e.AppendXML(nil))
		}
		if got, want := again.Canonical(), e.Canonical(); got != want {
			t.Errorf("read again\n%s\nwant\n%s", got, want)
		}
		if _, _, err := cot.ParseProto(e.AppendProto(nil, nil)); err != nil {
			t.Errorf("in version 1: %v", err)
		}
	})
}

func FuzzDatagram(f *testing.F) {
	e, err := cot.ParseXML([]byte(position))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(e.AppendDatagram(nil, &cot.Control{Least: 1, Most: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		cot.ParseDatagram(b)
		var s cot.Splitter
		s.Feed(b, func([]byte) {})
	})
}
