package interop_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"aldis/internal/adapters/interop"
)

// A unit that a JXTA peer reports every 20 s crosses as an event in fewer octets than as the message in which it came.
func TestCost(t *testing.T) {
	event := costOf(t, false)
	both := costOf(t, true)
	t.Logf("octets a report over iridium-dialup, both ways, all headers and acknowledgements: %.1f as an event, %.1f more as a message", event, both-event)
	if event > 60 {
		t.Errorf("as an event a report takes %.1f octets", event)
	}
	if both-event < event {
		t.Errorf("as a message a report takes %.1f octets, as an event %.1f", both-event, event)
	}
}

// costOf is how many octets a report takes, with or without JXTA peers ashore that listen.
func costOf(t *testing.T, ashore bool) float64 {
	w := newWorld(t, 2, map[uint16][]interop.Rule{2: {trackRule(t)}})
	hq, ship := w.Nodes[0], w.Nodes[1]
	teller := w.join(ship, "teller", tracks)
	if ashore {
		w.join(hq, "listener", tracks)
	}
	device := w.connect(hq)
	w.Run(5 * time.Minute)
	up, down := w.Octets(ship)
	const reports, perDegree = 180, 111_195
	lat, lon, course := 54.0, 10.0, 0.0
	for i := range reports {
		teller.say(tracks, fmt.Sprintf(`<track id="B-7" lat="%.6f" lon="%.6f" time="%s"><name>boat seven</name><course>%.1f</course><speed>10</speed></track>`, lat, lon, stamp(w.Now), course))
		w.Run(19 * time.Second)
		way := 20 * 1852.0 / 360
		lat += way * math.Cos(course*math.Pi/180) / perDegree
		lon += way * math.Sin(course*math.Pi/180) / perDegree / math.Cos(lat*math.Pi/180)
		if i%10 == 9 {
			course = math.Mod(course+70, 360)
		}
	}
	if n := device.times("B-7"); n < reports/10 {
		t.Errorf("the device ashore was shown %d reports", n)
	}
	moreUp, moreDown := w.Octets(ship)
	return float64(moreUp+moreDown-up-down) / reports
}
