package interop_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
)

// A pipe that is known by the name of its advertisement is found when a peer publishes it, here or at a far site, and again after
// a restart.
func TestPipeByName(t *testing.T) {
	rule := trackRule(t)
	rule.Pipe, rule.Name = "", "ship tracks*"
	w := newWorld(t, 2, map[uint16][]interop.Rule{2: {rule}})
	ship := w.Nodes[1]
	teller := w.join(ship, "teller", tracks)
	device := w.connect(ship)
	w.Run(time.Minute)
	teller.say(tracks, w.track("B-1", 54.1))
	w.Run(time.Minute) // JXTA's adapter holds a message that long for peers that open the pipe
	teller.do(edgepeer.Publish{Doc: edgepeer.Specification("weather", words, jxta.PipeTypePropagate)})
	teller.do(edgepeer.Publish{Doc: edgepeer.Specification("ship tracks 2", tracks, jxta.PipeTypePropagate)})
	w.Run(5 * time.Second)
	teller.say(tracks, w.track("B-2", 54.2))
	device.say(w.report("ANDROID-1", "FALCON", 54.3))
	if n := len(device.of("B-1")); n != 0 {
		t.Errorf("before the pipe was known the device was shown a unit of it")
	}
	if n := len(device.of("B-2")); n != 1 {
		t.Errorf("the device was shown the unit %d times", n)
	}
	if n := len(teller.heard("ANDROID-1")); n != 1 {
		t.Errorf("the peer heard of the device %d times", n)
	}
	w.Kill(ship, time.Second)
	w.Run(5 * time.Second)
	device.again()
	teller.dial()
	w.Run(10 * time.Second)
	teller.say(tracks, w.track("B-3", 54.3))
	if n := len(device.of("B-3")); n != 1 {
		t.Errorf("after a restart the device was shown the unit %d times", n)
	}
	w.noTrouble()
}

// A rule may have a unicast pipe: the gateway has it open for peers that look for it, and sends to peers that have it open.
func TestUnicastPipe(t *testing.T) {
	rule := trackRule(t)
	rule.Unicast = true
	w := newWorld(t, 2, map[uint16][]interop.Rule{2: {rule}})
	hq, ship := w.Nodes[0], w.Nodes[1]
	teller, listener := w.join(ship, "teller"), w.join(ship, "listener")
	near, far := w.connect(ship), w.connect(hq)
	w.Run(time.Minute)
	teller.do(edgepeer.Send{Pipe: tracks, Kind: jxta.PipeTypeUnicast, Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(w.track("B-1", 54.1))}}})
	w.Run(30 * time.Second)
	for name, d := range map[string]*device{"near": near, "far": far} {
		if n := d.times("B-1"); n != 1 {
			t.Errorf("the %s device was shown %d reports", name, n)
		}
	}
	listener.do(edgepeer.Listen{Pipe: tracks, Kind: jxta.PipeTypeUnicast})
	w.Run(5 * time.Second)
	far.say(w.report("ANDROID-1", "FALCON", 54.3))
	w.Run(30 * time.Second)
	if list := listener.heard("ANDROID-1"); len(list) != 1 {
		t.Errorf("the listener heard %q", list)
	}
	if n := len(teller.heard("ANDROID-1")); n != 0 {
		t.Error("who does not listen was told")
	}
	w.noTrouble()
}

// A CoT event in an element goes unchanged, and so does an event of a device: with everything in it.
func TestCoTElement(t *testing.T) {
	rule := trackRule(t)
	rule.CoT, rule.At, rule.Write = true, interop.At{}, interop.Template{}
	markers := rule
	markers.Pipe, markers.Fit.Type = words, "b-m"
	w := newWorld(t, 2, map[uint16][]interop.Rule{2: {rule, markers}})
	hq, ship := w.Nodes[0], w.Nodes[1]
	peer := w.join(ship, "peer", tracks, words)
	far := w.connect(hq)
	w.Run(time.Minute)
	given := strings.Replace(w.report("U-1", "UNIFORM", 54.1), "<contact", `<odd x="1">text</odd><marti><dest callsign="X"/></marti><contact`, 1)
	peer.say(tracks, given)
	peer.say(tracks, strings.Replace(given, `type="a-f-G-U-C"`, `type="t-x-d-d"`, 1))
	peer.say(tracks, strings.Replace(given, `type="a-f-G-U-C"`, `type="b-a-o-tbl"`, 1))
	w.Run(20 * time.Second)
	list := far.of("U-1")
	if far.times("U-1") != 1 || list[0].Find("odd").Inside() != "text" || list[0].Find("marti") != nil || list[0].Type != "a-f-G-U-C" {
		t.Errorf("the far device was given %v", list)
	}
	told := w.report("ANDROID-1", "FALCON", 54.3)
	far.say(told)
	marker := strings.Replace(w.report("M-1", "MIKE", 54.3), `type="a-f-G-U-C"`, `type="b-m-p-s-m"`, 1)
	far.say(marker)
	w.Run(20 * time.Second)
	for _, c := range []struct{ uid, as string }{{"ANDROID-1", told}, {"M-1", marker}} {
		list := peer.heard(`uid="` + c.uid + `"`)
		if len(list) != 1 {
			t.Fatalf("the peer heard %q of %s", list, c.uid)
		}
		e, err := cot.ParseXML([]byte(list[0]))
		want, _ := cot.ParseXML([]byte(c.as))
		if err != nil || e.Callsign() != want.Callsign() || e.Type != want.Type || e.Find("__group").Get("name") != "Cyan" {
			t.Errorf("the peer was given %s", list[0])
		}
	}
	if counts := w.meetings[2].Counts(); counts["refused type"] != 1 || counts["not_for_the_rule"] != 1 || counts["tracks_to_jxta"] != 2 {
		t.Errorf("%v", counts)
	}
}
