package interop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
)

// Unreadable elements are refused by name, counted and logged once; the true picture stays.
func TestBadElements(t *testing.T) {
	w := newWorld(t, 2, map[uint16][]interop.Rule{1: {trackRule(t), chatRule(t)}})
	teller := w.join(w.Nodes[0], "teller", tracks, words)
	device := w.connect(w.Nodes[0])
	w.Run(time.Minute)
	teller.say(tracks, w.track("B-7", 54.5))
	for _, bad := range []string{
		w.track("", 54.5), w.track("B-7", 94.5), strings.Replace(w.track("B-7", 54.5), `lat="54.5"`, `lat="NaN"`, 1),
		strings.Replace(w.track("B-7", 54.5), `lat="54.5"`, "", 1), strings.Replace(w.track("B-7", 54.5), `time="20`, `time="x20`, 1),
		w.track(strings.Repeat("B", 10_000), 54.5), w.track("B-\xff", 54.5), w.track("B-7", 54.5) + strings.Repeat(" ", 70_000), "no XML at all", "",
		strings.Repeat("<track>", 5_000),
	} {
		for range 3 {
			teller.say(tracks, bad)
		}
	}
	for _, bad := range []string{`<say by="x"></say>`, "<say>" + strings.Repeat("a", 9000) + "</say>", `<say by="` + strings.Repeat("x", 200) + `">hi</say>`} {
		teller.say(words, bad)
	}
	teller.do(edgepeer.Send{Pipe: tracks, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Namespace: "trk", Name: "other", Data: []byte("x")}}})
	w.Run(time.Minute)
	counts := w.meetings[1].Counts()
	for what, n := range map[string]int{"no_id": 3 + 3 + 3 + 3 + 3, "nowhere": 6, "number": 3, "time": 3, "too_long": 3 + 3 + 2, "no_text": 1, "no_element": 1} {
		if got := counts["refused "+what]; got != n {
			t.Errorf("%s was counted %d times, want %d, in %v", what, got, n, counts)
		}
	}
	told := 0
	for _, n := range w.Notes {
		if strings.Contains(n, "cannot be translated to TAK") {
			told++
		}
	}
	if told > 20 {
		t.Errorf("the log was told %d times", told)
	}
	for _, e := range device.got {
		if e.Is("a") && e.UID != "B-7" {
			t.Errorf("the device was shown %s", e.Canonical())
		}
	}
	if n := device.times("B-7"); n != 1 {
		t.Errorf("the device was shown %d reports of the true unit", n)
	}
}

// A clock that is a day off does not remove the unit: its report is not older than earlier ones, and later ones are not older than it.
func TestWrongClock(t *testing.T) {
	w := newWorld(t, 2, map[uint16][]interop.Rule{1: {trackRule(t)}})
	teller := w.join(w.Nodes[0], "teller", tracks)
	device := w.connect(w.Nodes[0])
	w.Run(time.Minute)
	for i, off := range []time.Duration{0, 24 * time.Hour, -24 * time.Hour, 0} {
		lat := 54 + float64(i)/10
		text := strings.Replace(w.track("B-7", lat), stamp(w.Now), stamp(w.Now.Add(off)), 1)
		teller.say(tracks, text)
		w.Run(10 * time.Second)
		list := device.of("B-7")
		if len(list) != i+1 {
			t.Fatalf("%d reports were shown of %d", len(list), i+1)
		}
		if e := list[i]; e.Time.Sub(w.Now).Abs() > time.Minute || e.Stale.Sub(w.Now) > 6*time.Minute || e.Stale.Before(w.Now) {
			t.Errorf("with a clock off by %v it is shown as of %v until %v, now %v", off, e.Time, e.Stale, w.Now)
		}
	}
	if n := w.meetings[1].Counts()["clock"]; n != 2 {
		t.Errorf("a wrong clock was counted %d times", n)
	}
}

// A storm of one peer is bounded, and counted; a meeting's memory does not grow with names that nobody needs any more.
func TestStorm(t *testing.T) {
	w := newWorld(t, 2, map[uint16][]interop.Rule{1: {trackRule(t)}})
	teller := w.join(w.Nodes[0], "teller", tracks)
	device := w.connect(w.Nodes[0])
	w.Run(time.Minute)
	for i := range 5000 {
		teller.do(edgepeer.Send{Pipe: tracks, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(w.track(fmt.Sprint("U-", i), 54.5))}}})
	}
	w.Run(time.Second)
	counts := w.meetings[1].Counts()
	if taken := counts["tracks_to_tak"]; taken < 100 || taken > 700 || counts["refused rate"] < 4000 {
		t.Errorf("of 5000 at once %v", counts)
	}
	if len(device.got) > 700 {
		t.Errorf("the device was given %d events", len(device.got))
	}
}

// FuzzElement: whatever an element holds, other programs can read the event that is made of it, and no octet of it ends a value.
func FuzzElement(f *testing.F) {
	f.Add(`<track id="B-7" lat="54.5" lon="10.2" time="2026-11-23T05:19:56Z"><name>n</name><course>90</course><speed>10</speed></track>`)
	f.Add(`<track id="&quot;/&gt;&lt;x" lat="1e1" lon="-180"/>`)
	f.Add(`<say by="a">t</say>`)
	f.Add(`<event version="2.0" uid="u" type="a-f-G" time="2026-11-23T05:19:56Z" start="2026-11-23T05:19:56Z" stale="2026-11-23T05:29:56Z" how="m-g"><point lat="1" lon="2" hae="3" ce="4" le="5"/></event>`)
	rules := []interop.Rule{trackRule(f), chatRule(f), {CoT: true, FromJXTA: true, FromTAK: true, Element: "body", Group: jxta.NetGroup}}
	f.Fuzz(func(t *testing.T, text string) {
		now := time.Unix(1_800_000_000, 0).UTC()
		for _, v := range interop.ExplainElement(rules, now, message(text)) {
			if v.Gives == "" {
				continue
			}
			e, err := cot.ParseXML([]byte(v.Gives))
			if err != nil {
				t.Fatalf("%q makes %q: %v", text, v.Gives, err)
			}
			for _, back := range interop.ExplainEvent(rules, e) {
				if back.Gives != "" {
					t.Fatalf("%q is bridged back: %q", text, back.Gives)
				}
			}
		}
	})
}
