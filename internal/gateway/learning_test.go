package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/sim"
)

// TestTracksCostWhatChanged: a track like the last one costs little more than the datagram around it.
func TestTracksCostWhatChanged(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	up0, down0 := w.Octets(ship)
	down := textTracks(w, hq, []uint16{2}, 60, 5*time.Second)
	up := textTracks(w, ship, []uint16{1}, 60, 5*time.Second)
	w.Run(330 * time.Second)
	once(t, w, ship.Site, 1, *down)
	once(t, w, hq.Site, 2, *up)
	up1, down1 := w.Octets(ship)
	each := (up1 - up0 + down1 - down0) / 120
	t.Logf("%d octets up, %d down, %d for each message of %d with IP, UDP, seal and receipts", up1-up0, down1-down0, each, len((*up)[5].Message.Parts[0].Data))
	if each > 100 {
		t.Errorf("%d octets for each message, want at most 100", each)
	}
}

// TestLearningSurvivesEverything: losses, restarts and lost stores never make a message unreadable.
func TestLearningSurvivesEverything(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := world(t, 2, "iridium-certus-100", seed, func(c *sim.Config) { c.CrashAfterCommit, c.CrashBeforeCommit = 0.01, 0.01 })
			hq, ship := w.Nodes[0], w.Nodes[1]
			rng := 0
			w.Tap = func(_, _ *sim.Node, data []byte) [][]byte {
				if rng++; rng%9 == 0 {
					return nil
				}
				return [][]byte{data}
			}
			down := textTracks(w, hq, []uint16{2}, 100, 2*time.Second)
			up := textTracks(w, ship, []uint16{1}, 100, 2*time.Second)
			w.Run(20 * time.Minute)
			w.EndCrashes()
			w.Run(10 * time.Minute)
			once(t, w, ship.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			w.LoseStore(ship)
			w.Kill(ship, time.Second)
			w.Run(time.Minute)
			hq.Site.Got, ship.Site.Got = nil, nil
			down = textTracks(w, hq, []uint16{2}, 20, time.Second)
			up = textTracks(w, ship, []uint16{1}, 20, time.Second)
			w.Run(3 * time.Minute)
			once(t, w, ship.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			for _, n := range w.Nodes {
				if u := n.GW.Status(w.Now).Peers[0].Unreadable; u != 0 {
					t.Errorf("%s could not read %d messages\n%s", n.Name, u, tail(w.Notes))
				}
			}
		})
	}
}

// TestForgottenHistory: what was coded after messages that the receiver has lost is asked for again, and coded by itself; and
// so is what names a flow by a number that it has lost.
func TestForgottenHistory(t *testing.T) {
	for _, bucket := range []string{"before", "inflow"} {
		w := world(t, 2, "iridium-directip", 2)
		hq, ship := w.Nodes[0], w.Nodes[1]
		down := textTracks(w, hq, []uint16{2}, 30, 4*time.Second)
		w.Run(62 * time.Second)
		w.LoseBucket(ship, bucket)
		w.Kill(ship, 100*time.Millisecond)
		w.Run(3 * time.Minute)
		once(t, w, ship.Site, 1, *down)
		if !strings.Contains(strings.Join(w.Notes, "\n"), "asked for again") {
			t.Errorf("without %s nothing was asked for again: the test shows nothing", bucket)
		}
		if n := ship.GW.Status(w.Now).Peers[0].Unreadable; n != 0 {
			t.Errorf("without %s %d messages could not be read", bucket, n)
		}
	}
}
