package interop_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/jxtabridge"
)

// A unit that a JXTA peer on the ship reports is shown to TAK devices there and ashore, as one unit, and to JXTA peers ashore only by
// JXTA.
func TestTrackOfJXTA(t *testing.T) {
	rules := []interop.Rule{trackRule(t)}
	w := newWorld(t, 2, map[uint16][]interop.Rule{1: rules, 2: rules})
	hq, ship := w.Nodes[0], w.Nodes[1]
	teller, beside, ashore := w.join(ship, "teller", tracks), w.join(ship, "beside", tracks), w.join(hq, "ashore", tracks)
	near, far := w.connect(ship), w.connect(hq)
	w.Run(time.Minute)
	teller.say(tracks, w.track("B-7", 54.5))
	w.Run(30 * time.Second)
	for name, d := range map[string]*device{"aboard": near, "ashore": far} {
		if n := d.times("B-7"); n != 1 {
			t.Fatalf("the device %s was shown %d reports of the unit", name, n)
		}
		e := d.of("B-7")[0]
		if lat, _ := e.Point.Lat.Float(); math.Abs(lat-54.5) > 1e-5 || e.Callsign() != "boat B-7" || e.Type != "a-f-S" {
			t.Errorf("the device %s was shown %s", name, e.Canonical())
		}
		if speed := e.Find("track").Get("speed"); speed != "5.14" && speed != "5.1" {
			t.Errorf("ten knots are shown as %s m/s", speed)
		}
	}
	for name, p := range map[string]*peer{"teller": teller, "beside": beside, "ashore": ashore} {
		want := 1
		if p == teller {
			want = 0
		}
		if n := len(p.heard("B-7")); n != want {
			t.Errorf("the peer %s heard of the unit %d times, want %d", name, n, want)
		}
	}
	w.noTrouble()
}

// A unit of a TAK device ashore is sent to the JXTA peers of the ship, once for each report; nothing of this crosses back.
func TestTrackOfTAK(t *testing.T) {
	rules := []interop.Rule{trackRule(t)}
	w := newWorld(t, 2, map[uint16][]interop.Rule{1: rules, 2: rules})
	hq, ship := w.Nodes[0], w.Nodes[1]
	aboard, ashore := w.join(ship, "aboard", tracks), w.join(hq, "ashore", tracks)
	far, near := w.connect(hq), w.connect(ship)
	w.Run(time.Minute)
	far.say(w.report("ANDROID-1", "FALCON", 54.3))
	w.Run(30 * time.Second)
	want := `<track id="ANDROID-1" lat="54.3" lon="10.1" time="`
	for name, p := range map[string]*peer{"aboard": aboard, "ashore": ashore} {
		list := p.heard("ANDROID-1")
		if len(list) != 1 || !strings.HasPrefix(list[0], want) || !strings.HasSuffix(list[0], `"><name>FALCON</name><course>0</course><speed>0</speed></track>`) {
			t.Errorf("the peer %s heard %q", name, list)
		}
	}
	if n := near.times("ANDROID-1"); n != 1 {
		t.Errorf("the device aboard was shown %d reports", n)
	}
	if n := far.times("ANDROID-1"); n != 0 {
		t.Errorf("the device was told of itself %d times", n)
	}
	for id, r := range w.meetings {
		if n := r.Counts()["tracks_to_tak"]; n != 0 {
			t.Errorf("node %d made %d events of what it had made", id, n)
		}
	}
	w.noTrouble()
}

// A unit that both adapters report is one unit: everybody sees the newest report, and an older one goes nowhere.
func TestOneUnit(t *testing.T) {
	rule := trackRule(t)
	w := newWorld(t, 2, map[uint16][]interop.Rule{2: {rule}})
	hq, ship := w.Nodes[0], w.Nodes[1]
	teller, beside := w.join(ship, "teller", tracks), w.join(ship, "beside", tracks)
	own, near, far := w.connect(ship), w.connect(ship), w.connect(hq)
	w.Run(time.Minute)
	own.say(w.report("X-1", "XRAY", 54.1))
	late := w.track("X-1", 54.2)
	w.Run(10 * time.Second)
	own.say(w.report("X-1", "XRAY", 54.3))
	teller.say(tracks, late)
	w.Run(20 * time.Second)
	for name, d := range map[string]*device{"near": near, "far": far} {
		list := d.of("X-1")
		if lat, _ := list[len(list)-1].Point.Lat.Float(); lat != 54.3 {
			t.Errorf("the %s device shows the unit at %v after an older report", name, lat)
		}
	}
	teller.say(tracks, w.track("X-1", 54.4))
	w.Run(20 * time.Second)
	for name, d := range map[string]*device{"own": own, "near": near, "far": far} {
		list := d.of("X-1")
		if len(list) == 0 {
			t.Fatalf("the %s device has not got the unit", name)
		}
		if lat, _ := list[len(list)-1].Point.Lat.Float(); math.Abs(lat-54.4) > 1e-5 {
			t.Errorf("the %s device shows the unit at %v", name, lat)
		}
	}
	if got := len(beside.heard("X-1")); got != 4 { // two of TAK, two of the teller
		t.Errorf("the peer beside heard of it %d times", got)
	}
	if got := len(teller.heard("X-1")); got != 2 {
		t.Errorf("the teller heard of it %d times", got)
	}
	if got := w.meetings[2].Counts(); got["older"] != 1 || got["tracks_to_tak"] != 1 || got["tracks_to_jxta"] != 2 {
		t.Errorf("%v", got)
	}
	w.noTrouble()
}

// A pipe on the ship and a chat room ashore are one room: each line is there once, wherever it was sent.
func TestOneRoom(t *testing.T) {
	rules := []interop.Rule{chatRule(t)}
	w := newWorld(t, 2, map[uint16][]interop.Rule{1: rules, 2: rules})
	hq, ship := w.Nodes[0], w.Nodes[1]
	anna, bert, carl := w.join(ship, "anna", words), w.join(ship, "bert", words), w.join(hq, "carl", words)
	near, far, beside := w.connect(ship), w.connect(hq), w.connect(hq)
	w.Run(time.Minute)
	anna.say(words, `<say by="anna">boat &lt;ready&gt;</say>`)
	bert.say(words, `<say>who is who?</say>`)
	w.Run(30 * time.Second)
	far.say(w.chat("ANDROID-1", "FALCON", "All Chat Rooms", "m-1", "come &amp; see"))
	far.say(w.chat("ANDROID-1", "FALCON", "Blue", "m-2", "for another room"))
	w.Run(30 * time.Second)
	for name, d := range map[string]*device{"near": near, "far": far, "beside": beside} {
		if list := d.lines("boat <ready>"); len(list) != 1 || list[0].Find("__chat").Get("senderCallsign") != "anna" {
			t.Errorf("the %s device was given anna's line %d times", name, len(list))
		}
		if list := d.lines("who is who?"); len(list) != 1 || list[0].Find("__chat").Get("senderCallsign") != "bert" {
			t.Errorf("the %s device was given bert's line %d times", name, len(list))
		}
		want := 1
		if d == far {
			want = 0
		}
		if n := len(d.lines("come & see")); n != want {
			t.Errorf("the %s device was given FALCON's line %d times", name, n)
		}
	}
	for name, p := range map[string]*peer{"anna": anna, "bert": bert, "carl": carl} {
		if list := p.heard("come"); len(list) != 1 || list[0] != `<say by="FALCON">come &amp; see</say>` {
			t.Errorf("%s heard %q", name, list)
		}
		if n := len(p.heard("another room")); n != 0 {
			t.Errorf("%s heard what was said in another room", name)
		}
		want := 1
		if p == anna {
			want = 0
		}
		if n := len(p.heard("boat")); n != want {
			t.Errorf("%s heard anna's line %d times, want %d", name, n, want)
		}
	}
	if c := w.adapters[2].Counts(); c["chats"] != 2 {
		t.Errorf("the ship's lines crossed otherwise than as chats: %v", c)
	}
	w.noTrouble()
}

// A line waits for a JXTA peer where no TAK device is, and is there once after a kill of both gateways.
func TestLinesOverAKill(t *testing.T) {
	w := newWorld(t, 2, map[uint16][]interop.Rule{2: {chatRule(t)}})
	hq, ship := w.Nodes[0], w.Nodes[1]
	far := w.connect(hq)
	w.Run(time.Minute)
	far.say(w.chat("ANDROID-1", "FALCON", "All Chat Rooms", "m-1", "before anybody is here"))
	far.say(w.chat("ANDROID-1", "FALCON", "Blue", "m-0", "for TAK devices alone"))
	w.Run(30 * time.Second)
	anna := w.join(ship, "anna", words)
	w.Run(10 * time.Second)
	if n := len(w.connect(ship).lines("for TAK devices alone")); n != 1 {
		t.Errorf("what no peer hears came %d times to the device that it waited for", n)
	}
	w.devices = w.devices[:1]
	if n := len(anna.heard("before anybody")); n != 1 {
		t.Errorf("the line that waited came %d times", n)
	}
	// While she has her lease and no connection, messages for her wait, through a kill of each gateway.
	w.DeliverJXTA(ship, jxtabridge.Closed{Conn: anna.conn})
	anna.conn = 1 << 40
	far.say(w.chat("ANDROID-1", "FALCON", "All Chat Rooms", "m-2", "while she is away"))
	w.Run(20 * time.Second)
	w.Kill(ship, time.Second)
	w.Run(10 * time.Second)
	w.Kill(hq, time.Second)
	w.Run(10 * time.Second)
	far.again()
	anna.conn = 1
	anna.dial()
	w.Run(time.Minute)
	if n := len(anna.heard("while she is away")); n != 1 {
		t.Errorf("the line that was said while she was away came %d times", n)
	}
	w.Kill(ship, time.Second)
	w.Run(10 * time.Second)
	anna.dial()
	w.Run(time.Minute)
	if n := len(anna.heard("while she is away")) + len(anna.heard("before anybody")); n != 2 {
		t.Errorf("after a kill lines were handed over again: %d", n)
	}
	anna.say(words, `<say by="anna">here I am</say>`)
	w.Run(20 * time.Second)
	if n := len(far.lines("here I am")); n != 1 {
		t.Errorf("her line came %d times", n)
	}
	w.noTrouble()
}

// JXTA peers get the extrapolated position of a far unit that moves, with its time, as often as the rule says and not more often.
func TestMovingUnit(t *testing.T) {
	rule := trackRule(t)
	rule.Every = 20 * time.Second
	w := newWorld(t, 2, map[uint16][]interop.Rule{2: {rule}})
	hq, ship := w.Nodes[0], w.Nodes[1]
	aboard := w.join(ship, "aboard", tracks)
	far := w.connect(hq)
	w.Run(time.Minute)
	far.say(strings.Replace(w.report("ANDROID-1", "FALCON", 54.3), `course="0" speed="0"`, `course="0" speed="10"`, 1))
	w.Run(2 * time.Minute)
	list := aboard.heard("ANDROID-1")
	if len(list) < 5 || len(list) > 7 {
		t.Fatalf("in two minutes the peer heard of the unit %d times", len(list))
	}
	last := list[len(list)-1]
	lat, err := strconv.ParseFloat(between(last, `lat="`, `"`), 64)
	when, ok := cot.ParseTime(between(last, `time="`, `"`))
	if err != nil || !ok {
		t.Fatal(last)
	}
	begun := w.Now.Add(-2*time.Minute - time.Second)
	if off := (lat-54.3)*111_195 - 10*when.Sub(begun).Seconds(); math.Abs(off) > 15 {
		t.Errorf("at %v the unit is told %.0f m off", when, off)
	}
	w.noTrouble()
}

// A far unit that stands is sent once, however long nothing more is heard of it, and its report does not become newer.
func TestStandingUnit(t *testing.T) {
	w := newWorld(t, 2, map[uint16][]interop.Rule{2: {trackRule(t)}})
	hq, ship := w.Nodes[0], w.Nodes[1]
	aboard := w.join(ship, "aboard", tracks)
	far, near := w.connect(hq), w.connect(ship)
	w.Run(time.Minute)
	said := stamp(w.Now)
	far.say(strings.Replace(w.report("X-1", "XRAY", 54.3), stamp(w.Now.Add(5*time.Minute)), stamp(w.Now.Add(time.Hour)), 1))
	w.Run(20 * time.Minute)
	list := aboard.heard("X-1")
	if len(list) != 1 {
		t.Fatalf("in twenty minutes the peer heard of the unit %d times", len(list))
	}
	if when, ok := cot.ParseTime(between(list[0], `time="`, `"`)); !ok || stamp(when)[:18] != said[:18] {
		t.Errorf("the report of %s is told as of %s", said, list[0])
	}
	if n := len(near.of("X-1")); n < 10 {
		t.Errorf("the map beside was shown it %d times", n)
	}
	if n := w.meetings[2].Counts()["clock"]; n != 0 {
		t.Errorf("its clock was not believed %d times", n)
	}
	w.noTrouble()
}

// If a unit reports more often than the rule allows, its newest report is sent when its turn comes; a report of the other
// adapter replaces the waiting one.
func TestNewestWaits(t *testing.T) {
	rule := trackRule(t)
	rule.Every = 30 * time.Second
	w := newWorld(t, 2, map[uint16][]interop.Rule{2: {rule}})
	ship := w.Nodes[1]
	teller, beside := w.join(ship, "teller", tracks), w.join(ship, "beside", tracks)
	device := w.connect(ship)
	w.Run(time.Minute)
	for i := range 20 {
		device.say(w.report("X-1", "XRAY", 54+float64(i)/100))
	}
	if list := beside.heard("X-1"); len(list) != 1 {
		t.Errorf("at first the peer heard %q", list)
	}
	w.Run(15 * time.Second)
	if list := beside.heard("X-1"); len(list) != 2 || between(list[1], `lat="`, `"`) != "54.19" {
		t.Errorf("at its turn the peer heard %q", list)
	}
	device.say(w.report("X-1", "XRAY", 54.5))
	teller.say(tracks, w.track("X-1", 54.6))
	w.Run(time.Minute)
	if list := beside.heard("X-1"); len(list) != 3 || between(list[2], `lat="`, `"`) != "54.6" {
		t.Errorf("after the teller's the peer heard %q", list)
	}
	w.noTrouble()
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
