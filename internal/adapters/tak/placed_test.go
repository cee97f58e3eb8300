package tak_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/gateway/api"
)

// marker is an object placed by hand, in the form in which ATAK sends it.
func (w *world) marker(uid, kind, callsign string, life time.Duration) string {
	return fmt.Sprintf(`<event version="2.0" uid="%s" type="%s" time="%s" start="%s" stale="%s" how="h-g-i-g-o"><point lat="54.3233124" lon="10.1394117" hae="21.4" ce="9999999.0" le="9999999.0"/><detail><status readiness="true"/><archive/><contact callsign="%s"/><remarks>seen twice</remarks><link uid="ANDROID-1" production_time="2026-05-01T10:00:00.000Z" type="a-f-G-U-C" parent_callsign="FALCON 1" relation="p-p"/><color argb="-1"/><precisionlocation altsrc="DTED0"/></detail></event>`,
		uid, kind, stamp(w.Now), stamp(w.Now), stamp(w.Now.Add(life)), callsign)
}

// Placed objects cross unchanged, once. An outage of ten minutes, kills and a day make none of them stale before its author's time, and
// cost no octet; a device that comes is given them; their author can withdraw them.
func TestPlacedStays(t *testing.T) {
	const markers = 50
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	w.Run(time.Minute)
	said := map[string]*cot.Event{}
	for i := range markers {
		text := w.marker(fmt.Sprint("placed-", i), "a-h-G-E-V-A-T", fmt.Sprint("T", i), 24*time.Hour)
		e, err := cot.ParseXML([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		ship.say(text)
		said[e.UID] = e
	}
	w.Run(10 * time.Minute)
	early := func(when string) {
		t.Helper()
		for uid, want := range said {
			if list := hq.of(uid); len(list) != 1 || list[0].event.Canonical() != want.Canonical() {
				t.Fatalf("%s: %s was told %d times, last as\n%s\nwant\n%s", when, uid, len(list), hq.newest(uid).Canonical(), want.Canonical())
			}
		}
	}
	early("at first")
	shown := len(hq.got)
	begun, _ := w.Octets(w.Nodes[1])
	w.Run(10 * time.Minute)
	rest, _ := w.Octets(w.Nodes[1])
	w.Outage(w.Nodes[1], 10*time.Minute)
	w.Run(10 * time.Minute)
	early("in the outage")
	before, _ := w.Octets(w.Nodes[1])
	w.Run(10 * time.Minute)
	early("after the outage")
	after, _ := w.Octets(w.Nodes[1])
	t.Logf("octets of the ship in ten minutes: %d at rest before the outage, %d after it; %d events were given to the far device", rest-begun, after-before, len(hq.got)-shown)
	if len(hq.got) != shown {
		t.Errorf("at rest and over the outage the far device was given %d events", len(hq.got)-shown)
	}
	for i, d := range []*device{ship, hq} {
		w.Kill(w.Nodes[1-i], time.Second)
		w.Run(5 * time.Second)
		d.again()
	}
	w.Run(10 * time.Minute)
	late := w.connect(w.Nodes[0])
	for uid, want := range said {
		if e := late.newest(uid); e == nil || e.Canonical() != want.Canonical() {
			t.Fatalf("a device that comes later is shown %v", e)
		}
	}
	for i := range 3 { // its device sends it again, unchanged
		w.Run(time.Minute)
		for uid := range said {
			ship.say(w.marker(uid, "a-h-G-E-V-A-T", "T"+strings.TrimPrefix(uid, "placed-"), 24*time.Hour-time.Duration(i+1)*time.Minute))
		}
	}
	if got := w.adapters[2].Counts()["carried"]; got > 0 {
		t.Errorf("what is said again as it was has crossed: %d events", got)
	}
	w.Kill(w.Nodes[0], time.Second)
	w.LoseStore(w.Nodes[0])
	w.Run(5 * time.Minute)
	if again := w.connect(w.Nodes[0]); again.newest("placed-7") == nil {
		t.Error("a site that has lost its journal is not told again what was placed")
	}
	ship.say(w.event("x", "t-x-d-d", `<link uid="placed-7" relation="none" type="none"/><__forcedelete/>`, time.Minute))
	w.Run(time.Minute)
	if late := w.connect(w.Nodes[0]); late.newest("placed-7") != nil || late.newest("placed-8") == nil {
		t.Error("what was taken away is still there, or more")
	}
	w.Run(25 * time.Hour)
	if late := w.connect(w.Nodes[0]); late.newest("placed-8") != nil {
		t.Error("what is stale is given")
	}
}

// Markers cost far devices and the link nothing while they do not change.
func TestPlacedRest(t *testing.T) { rest(t, 200) }

func rest(t *testing.T, markers int) {
	w := newWorld(t, 2, "wire", 7)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	w.Run(time.Minute)
	for i := range markers {
		ship.say(w.marker(fmt.Sprint("placed-", i), "a-h-G-E-V-A-T", fmt.Sprint("T", i), 24*time.Hour))
		w.Run(50 * time.Millisecond)
	}
	w.Run(time.Minute)
	if len(hq.got) != markers {
		t.Errorf("the far device was given %d events", len(hq.got))
	}
	before, _ := w.Octets(w.Nodes[1])
	w.Run(10 * time.Minute)
	if after, _ := w.Octets(w.Nodes[1]); len(hq.got) != markers || after-before > 2000 {
		t.Errorf("in ten minutes of rest the far device was given %d events, and the link %d octets", len(hq.got)-markers, after-before)
	}
}

// A changed marker is shown at once. A marker that changes all the time is sent now and then, and in the end shown as it is;
// others are not held up.
func TestPlacedTurns(t *testing.T) {
	for _, turn := range turns {
		w := newWorld(t, 2+min(1, turn.quiet), turn.link, 3)
		ship := w.connect(w.Nodes[1])
		w.Run(5 * time.Minute)
		watchers := []*device{w.connect(w.Nodes[0])}
		if turn.quiet > 0 {
			w.Give(w.Nodes[turn.quiet], api.Silence{On: true, Announce: true})
			watchers = append(watchers, w.connect(w.Nodes[turn.quiet]))
			w.Run(time.Minute)
		}
		kinds := []string{"a-u-G", "a-s-G", "a-h-G", "a-f-G"}
		for i, kind := range kinds {
			text, begun := w.marker("m", kind, fmt.Sprint("M", i), 12*time.Hour), w.Now
			ship.say(text)
			want, _ := cot.ParseXML([]byte(text))
			for n, d := range watchers {
				took := w.until(d, "m", begun, 2*turn.most, func(e *cot.Event) bool { return code.Marks(e) == code.Marks(want) })
				t.Logf("%s, watcher %d: %s is shown after %v", turn.link, n, kind, took)
				if i > 0 && took > turn.most {
					t.Errorf("%s, watcher %d: %s is shown after %v", turn.link, n, kind, took)
				}
			}
			w.Run(time.Minute)
		}
		before := w.adapters[2].Counts()["carried"]
		for i := range 600 {
			ship.say(w.marker("m", kinds[i%3], "M", 12*time.Hour))
			w.Run(time.Second)
		}
		if got := w.adapters[2].Counts()["carried"] - before; got > 4+4*10+1 {
			t.Errorf("%s: a marker that changes each second was told %d times in ten minutes", turn.link, got)
		}
		ship.say(w.marker("m", "a-n-G", "M", 12*time.Hour))
		ship.say(w.marker("m2", "a-n-G", "M2", 12*time.Hour))
		ended := w.Now
		w.Kill(w.Nodes[1], time.Second) // a change that waits is sent by the next run
		w.Run(turn.most + 10*time.Second)
		if hq := watchers[0]; hq.newest("m2") == nil {
			t.Errorf("%s: a marker beside one that flips was held up", turn.link)
		}
		for n, d := range watchers {
			if took := w.until(d, "m", ended, 5*time.Minute, func(e *cot.Event) bool { return e.Type == "a-n-G" }); took > 3*time.Minute {
				t.Errorf("%s, watcher %d: in the end it is shown as it is after %v", turn.link, n, took)
			}
		}
	}
}
