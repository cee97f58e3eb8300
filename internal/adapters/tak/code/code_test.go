package code_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
)

var base = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

func event(t testing.TB, text string) *cot.Event {
	t.Helper()
	e, err := cot.ParseXML([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return e
}

// sa is a position in the form in which ATAK reports it.
func sa(uid, callsign string, lat, lon, course, speed float64, at time.Time) string {
	f := at.Format(cot.TimeFormat)
	return fmt.Sprintf(`<event version="2.0" uid="%s" type="a-f-G-U-C" time="%s" start="%s" stale="%s" how="m-g"><point lat="%.7f" lon="%.7f" hae="22.958679722315807" ce="4.7" le="9999999.0"/><detail><takv os="29" version="4.5.1.13 (55e727de)" device="SAMSUNG SM-G970U" platform="ATAK-CIV"/><contact endpoint="*:-1:stcp" callsign="%s"/><uid Droid="%s"/><precisionlocation altsrc="GPS" geopointsrc="GPS"/><__group role="Team Member" name="Cyan"/><status battery="88"/><track course="%v" speed="%v"/></detail></event>`,
		uid, f, f, at.Add(75*time.Second).Format(cot.TimeFormat), lat, lon, callsign, callsign, course, speed)
}

const strange = `<event version="2.0" uid="x.y" type="z-q" time="2026-05-01T10:00:00.123Z" start="2026-05-01T09:00:00Z" stale="2026-05-02T10:00:00Z" how="h-e" qos="1-r-c" access="Undefined" caveat="c" releasableTo="USA" foo="bar"><point lat="-1.5" lon="0.00000001" hae="-12" ce="0" le="1" note="n"/><detail><a b="" c="0012" d="-0" e="1e5" f="4.50" g="2026-05-01T10:00:00.100Z" h="2026-05-01T10:00:01Z" i="DEADBEEF01" j="deadbeef01" k="F7F71666-8B28-4B57-9FBB-E38E61D33B79" l="1,2.5,x" m="a.b.c.d.a-f-G" n="ANDROID-ab"><b>t<c/>u</b></a><contact callsign="x" extra="y"/><track speed="1"/><remarks>some words about nothing</remarks><n:o xmlns:n="urn:n" xmlns:p="urn:p" p:q="&#233;&lt;"/></detail><other>z</other></event>`

// Every event comes back unchanged.
func TestComesBack(t *testing.T) {
	for _, text := range []string{strange, sa("ANDROID-359975090666199a", "FALCON 6", 54.3233, 10.1394, 31.253471374511719, 7.5, base),
		strings.Replace(strange, "<detail>", "<detail>"+strings.Repeat("<e>", 25)+strings.Repeat("</e>", 25), 1),
		`<event version="2.0" uid="x.y" type="z-q" time="2026-05-01T10:00:00Z" start="2026-05-01T10:00:00Z" stale="2026-05-02T10:00:00Z" how="h-e" access=""><point lat="0" lon="0" hae="NaN" ce="0" le="1"/></event>`,
		`<event version="2.0" uid="x.y" type="z-q" time="2026-05-01T10:00:00Z" start="2026-05-01T10:00:00Z" stale="2026-05-02T10:00:00Z" how="h-e"><detail><a/></detail><point lat="0" lon="0" hae="1" ce="0" le="1"/></event>`} {
		e := event(t, text)
		b := code.Append(nil, e, base.Add(3*time.Second), nil)
		back, err := code.Parse(b, base.Add(3*time.Second), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := back.Canonical(), e.Canonical(); got != want {
			t.Errorf("came back as\n%s\nwant\n%s", got, want)
		}
		t.Logf("%d octets of %d", len(b), len(text))
	}
}

type names map[uint32][2]string

func (n names) Number(text string, callsign bool) (uint32, bool) {
	for i, v := range n {
		if callsign && v[1] == text || !callsign && v[0] == text {
			return i, true
		}
	}
	return 0, false
}

func (n names) Text(i uint32, callsign bool) (string, bool) {
	v, ok := n[i]
	if callsign {
		return v[1], ok
	}
	return v[0], ok
}

// Units that both sides know are numbers; a site that does not know one notices.
func TestNames(t *testing.T) {
	e := event(t, sa("ANDROID-359975090666199a", "FALCON 6", 54, 10, 0, 0, base))
	known := names{3: {"ANDROID-359975090666199a", "FALCON 6"}}
	b := code.Append(nil, e, base, known)
	alone := code.Append(nil, e, base, nil)
	if len(b) > len(alone)-12 {
		t.Errorf("%d octets with names, %d without", len(b), len(alone))
	}
	back, err := code.Parse(b, base, known)
	if err != nil || back.Canonical() != e.Canonical() {
		t.Errorf("%v", err)
	}
	if _, err := code.Parse(b, base, names{}); !errors.Is(err, code.ErrNames) {
		t.Errorf("without the names: %v", err)
	}
}

// A Fix moves on by its course and speed, and comes back through a Moved from a place nearby.
func TestFix(t *testing.T) {
	e := event(t, sa("u", "c", 54.3, 179.9999, 90, 15, base))
	f := code.FixOf(e)
	g := f.After(20 * time.Second)
	if d := g.Metres(f); math.Abs(d-300) > 1 {
		t.Errorf("%f m in 20 s at 15 m/s", d)
	}
	if g.Lon > 0 {
		t.Errorf("east of 180 degrees it is at %d", g.Lon)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		known := code.Fix{Lat: int32(rng.IntN(160e6) - 80e6), Lon: int32(rng.IntN(358e6) - 179e6), Moves: true}
		is := known
		is.Lat += int32(rng.IntN(2*code.Near-1) - code.Near + 1)
		is.Lon += int32(rng.IntN(2*code.Near-1) - code.Near + 1)
		is.Course, is.Speed, is.HAE, is.Battery = uint16(rng.IntN(3600)), uint16(rng.IntN(4096)), int32(rng.IntN(10000)), uint8(rng.IntN(101))
		known.HAE, known.Battery = 5, 5
		if !is.Sayable(known) {
			t.Fatalf("%+v cannot be told to who knows %+v", is, known)
		}
		at := code.Quarters(base)
		b := code.Batch{Run: 7, At: at}
		rec := code.Record{Unit: 200, Version: 1, Form: code.Moved, Age: 3 * code.Quarter, Mask: is.Changed(known), Fix: is}
		got, err := code.ParseBatch(rec.Append(b.Head(nil), at), at.Add(time.Hour))
		if err != nil || len(got.Records) != 1 || !got.At.Equal(at) || got.Run != 7 {
			t.Fatalf("%v %+v", err, got)
		}
		r := got.Records[0]
		if r.Unit != 200 || r.Version != 1 || r.Age != 3*code.Quarter {
			t.Errorf("%+v", r)
		}
		to := r.Onto(known)
		if rec.Mask&code.NewHeight == 0 {
			to.HAE = is.HAE
		}
		if to != is {
			t.Fatalf("%+v came as %+v", is, to)
		}
	}
}

// The first report of a unit takes at most 90 octets and a later one at most 24; ten units in one datagram of 350, of which
// the headers of IP, UDP, seal, frame and envelope take 52.
func TestSizes(t *testing.T) {
	at := code.Quarters(base)
	b := code.Batch{Run: 1, At: at}
	first := code.Record{Unit: 1, Form: code.Whole, Event: code.Round(event(t, sa("ANDROID-359975090666199a", "FALCON 6", 54.3233, 10.1394, 31.253471374511719, 7.5123, base)))}
	n := len(first.Append(b.Head(nil), at))
	t.Logf("first %d", n)
	if n > 90 {
		t.Errorf("the first report takes %d octets", n)
	}
	one := code.Record{Unit: 1, Form: code.Moved, Age: 2 * time.Second, Mask: code.NewPlace | code.NewMotion}
	if n := len(one.Append(b.Head(nil), at)); n > 22 {
		t.Errorf("a later report alone takes %d octets", n)
	}
	data := b.Head(nil)
	for i := range 10 {
		r := one
		r.Unit = uint32(i)
		data = r.Append(data, at)
	}
	t.Logf("ten %d", len(data))
	if len(data) > 350-52 {
		t.Errorf("ten units take %d octets", len(data))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(code.Append(nil, event(f, strange), base, nil))
	f.Add(code.Append(nil, event(f, sa("ANDROID-359975090666199a", "FALCON 6", 54.3, 10.1, 3, 4, base)), base, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := code.Parse(b, base, names{1: {"u", "c"}})
		if err != nil {
			return
		}
		x, err := cot.ParseXML(e.AppendXML(nil))
		if err != nil { // longer than events may be
			return
		}
		again, err := code.Parse(code.Append(nil, x, base, nil), base, nil)
		if err != nil || again.Canonical() != x.Canonical() {
			t.Errorf("%v\n%s\n%s", err, again.Canonical(), x.Canonical())
		}
	})
}

func FuzzBatch(f *testing.F) {
	at := code.Quarters(base)
	b := code.Batch{Run: 1, At: at}
	r := code.Record{Unit: 1, Form: code.Whole, Event: event(f, strange)}
	m := code.Record{Unit: 2, Form: code.Moved, Mask: 15}
	f.Add(m.Append(r.Append(b.Head(nil), at), at))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := code.ParseBatch(data, base)
		if err != nil {
			return
		}
		for _, r := range b.Records {
			r.Onto(code.Fix{})
		}
	})
}

// chatText is a chat for all in the form in which ATAK sends it.
func chatText(sender, callsign, room, id, message, text string, at time.Time, more string) string {
	f := at.Format(cot.TimeFormat)
	return fmt.Sprintf(`<event version="2.0" uid="GeoChat.%s.%s.%s" type="b-t-f" time="%s" start="%s" stale="%s" how="h-g-i-g-o"><point lat="54.323312" lon="10.139411" hae="9999999.0" ce="9999999.0" le="9999999.0"/><detail><__chat parent="RootContactGroup" groupOwner="false" messageId="%s" chatroom="%s" id="%s" senderCallsign="%s"><chatgrp uid0="%s" uid1="%s" id="%s"/></__chat><link uid="%s" type="a-f-G-U-C" relation="p-p"/><remarks source="BAO.F.ATAK.%s" to="%s" time="%s">%s</remarks>%s</detail></event>`,
		sender, id, message, f, f, at.Add(24*time.Hour).Format(cot.TimeFormat), message, room, id, callsign, sender, id, id, sender, sender, id, f, text, more)
}

// Chats in the usual form take at most 40 octets besides their text, and come back unchanged.
func TestChat(t *testing.T) {
	const sender, text = "ANDROID-359975090666199a", "at the buoy, all well"
	known := names{3: {sender, "FALCON 6"}}
	for name, c := range map[string]struct {
		xml  string
		most int
	}{
		"to all": {chatText(sender, "FALCON 6", "All Chat Rooms", "All Chat Rooms", "5b7a1d3e-0f2c-4d8e-9a51-6f2b8c7d9e10", text, base.Add(123*time.Millisecond), ""), 40},
		"to one": {chatText(sender, "FALCON 6", "HQ", "ANDROID-359975090666199b", "5b7a1d3e-0f2c-4d8e-9a51-6f2b8c7d9e10", text, base, `<marti><dest callsign="HQ"/></marti>`), 60},
	} {
		e := event(t, c.xml)
		chat, ok := code.ChatOf(e)
		if !ok {
			t.Fatalf("%s: no chat in %s", name, e.Canonical())
		}
		chat.Number = 7
		b := chat.Append(nil, base, known, true)
		t.Logf("%s: %d octets beside the text, of %d", name, len(b)-len(text), len(c.xml))
		if len(b) > c.most+len(text) {
			t.Errorf("%s: %d octets beside the text", name, len(b)-len(text))
		}
		back, ids, err := code.ParseChat(b, base, known)
		if err != nil || back.Number != 7 || back.Event(ids).Canonical() != e.Canonical() {
			t.Errorf("%s: %v\n%s", name, err, back.Event(ids).Canonical())
		}
	}
	// A place that the short form would change is spelt out.
	short := `lat="54.323312" lon="10.139411" hae="21" ce="4.7"`
	for _, place := range []string{short, `lat="54.3233124" lon="10.1394117" hae="21.4" ce="4.7"`, `lat="54.323312444" lon="10.13" hae="22.958679722315807" ce="4.7"`, `lat="0" lon="0" hae="0.5" ce="4.7"`} {
		e := event(t, strings.Replace(chatText(sender, "FALCON 6", "All Chat Rooms", "All Chat Rooms", "5b7a1d3e-0f2c-4d8e-9a51-6f2b8c7d9e10", text, base, ""),
			`lat="54.323312" lon="10.139411" hae="9999999.0" ce="9999999.0"`, place, 1))
		chat, ok := code.ChatOf(e)
		if !ok {
			t.Fatalf("no chat in %s", e.Canonical())
		}
		b := chat.Append(nil, base, known, true)
		t.Logf("at %s: %d octets beside the text", place, len(b)-len(text))
		back, ids, err := code.ParseChat(b, base, known)
		if err != nil || back.Event(ids).Canonical() != e.Canonical() {
			t.Errorf("%v\n%s\nwant\n%s", err, back.Event(ids).Canonical(), e.Canonical())
		}
	}
	if _, ok := code.ChatOf(event(t, strings.Replace(chatText(sender, "F", "R", "R", "m", text, base, ""), "<link ", `<other/><link `, 1))); ok {
		t.Error("a chat with something unknown counts as usual")
	}
}

func FuzzChat(f *testing.F) {
	c, _ := code.ChatOf(event(f, chatText("ANDROID-359975090666199a", "F", "HQ", "x", "m", "text", base, `<marti><dest callsign="HQ"/></marti>`)))
	f.Add(c.Append(nil, base, nil, true))
	for _, year := range []int{1966, 2210} { // no event is of these years
		c.Time = time.Date(year, 8, 8, 0, 0, 0, 0, time.UTC)
		f.Add(c.Append(nil, base, nil, true))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ids, err := code.ParseChat(b, base, names{3: {"u", "c"}})
		if err != nil {
			return
		}
		if _, err := cot.ParseXML(c.Event(ids).AppendXML(nil)); err != nil {
			t.Errorf("%v\n%s", err, c.Event(ids).AppendXML(nil))
		}
	})
}

// An event that its device may send is read again, however long its lists are, and however deep its elements.
func TestLongListsAreReadAgain(t *testing.T) {
	lists, rng := "", rand.New(rand.NewPCG(1, 1))
	for range 20 {
		words := ""
		for range 255 {
			words += fmt.Sprintf(",%016x%016x", rng.Uint64(), rng.Uint64())
		}
		lists += fmt.Sprintf(`<a b="%s"/>`, words[1:])
	}
	for name, text := range map[string]string{
		"lists":    strings.Replace(strange, "<detail>", "<detail>"+lists, 1),
		"callsign": strings.Replace(strange, `callsign="x"`, `callsign="`+strings.Repeat("x?", 70_000)+`"`, 1),
		"depth":    strings.Replace(strange, "<other>", "<other>"+strings.Repeat("<e>", 30)+"text"+strings.Repeat("</e>", 30), 1),
	} {
		e := event(t, text)
		back, err := code.Parse(code.Append(nil, e, base, nil), base, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if back.Canonical() != e.Canonical() {
			t.Errorf("%s: it came back otherwise", name)
		}
	}
}
