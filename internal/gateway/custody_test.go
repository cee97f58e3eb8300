package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/sim"
)

func TestTracksOverIridium(t *testing.T) {
	for _, tt := range []struct {
		profile string
		median  time.Duration
	}{{"iridium-directip", 3500 * time.Millisecond}, {"iridium-dialup", 5 * time.Second}} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(tt.profile, seed), func(t *testing.T) {
				w := world(t, 2, tt.profile, seed+1)
				hq, ship := w.Nodes[0], w.Nodes[1]
				hq.Site.Put(w, pipeItem(1, pipeHQ))
				ship.Site.Put(w, pipeItem(2, pipeShip))
				down := tracks(w, hq, []uint16{2}, 60, 200, 5*time.Second)
				up := tracks(w, ship, []uint16{1}, 60, 200, 5*time.Second)
				w.Run(330 * time.Second)
				a, b := once(t, w, ship.Site, 1, *down), once(t, w, hq.Site, 2, *up)
				octUp, octDown := w.Octets(ship)
				ratio := 100 * 24000 / float64(octUp+octDown)
				t.Logf("median %v down, %v up; worst %v, %v; %d + %d octets, ratio %.1f %%",
					a[30], b[30], a[59], b[59], octUp, octDown, ratio)
				if a[30] > tt.median || b[30] > tt.median {
					t.Errorf("median latency %v and %v, want at most %v", a[30], b[30], tt.median)
				}
				if ratio < 60 {
					t.Errorf("application octets %.1f %% of the link's, want 60", ratio)
				}
				if far := len(ship.Site.Far[1]); far != 1 {
					t.Errorf("the ship knows %d items of HQ, want 1", far)
				}
			})
		}
	}
}

func TestOutageOfAMinute(t *testing.T) {
	for seed := range uint64(5) {
		w := world(t, 2, "iridium-directip", seed)
		hq, ship := w.Nodes[0], w.Nodes[1]
		down := tracks(w, hq, []uint16{2}, 40, 200, 5*time.Second)
		up := tracks(w, ship, []uint16{1}, 40, 200, 5*time.Second)
		w.At(60*time.Second, func() { w.Outage(ship, 60*time.Second) })
		w.Run(300 * time.Second)
		a, b := once(t, w, ship.Site, 1, *down), once(t, w, hq.Site, 2, *up)
		t.Logf("seed %d: worst %v down, %v up", seed, a[39], b[39])
		if a[39] > 90*time.Second || b[39] > 90*time.Second {
			t.Errorf("seed %d: worst latency %v, %v over an outage of 60 s", seed, a[39], b[39])
		}
	}
}

func TestThreeShips(t *testing.T) {
	w := world(t, 4, "iridium-directip", 7)
	hq := w.Nodes[0]
	w.Run(30 * time.Second) // first words
	_, quiet := w.Octets(w.Nodes[3])
	down := tracks(w, hq, []uint16{2, 3}, 20, 200, 5*time.Second)
	w.Run(150 * time.Second)
	once(t, w, w.Nodes[1].Site, 1, *down)
	once(t, w, w.Nodes[2].Site, 1, *down)
	if _, now := w.Octets(w.Nodes[3]); now != quiet {
		t.Errorf("%d octets crossed to a ship without a listener", now-quiet)
	}
}

// TestAnyOneDatagramLost: whichever one or two datagrams are lost, all messages arrive, the flow's definition included.
func TestAnyOneDatagramLost(t *testing.T) {
	for first := range 12 {
		for second := first; second < 12; second++ {
			w := world(t, 2, "iridium-certus-100", 2)
			n := 0
			w.Tap = func(from, _ *sim.Node, data []byte) [][]byte {
				if from.ID == 1 {
					if n++; n-1 == first || n-1 == second {
						return nil
					}
				}
				return [][]byte{data}
			}
			down := tracks(w, w.Nodes[0], []uint16{2}, 10, 200, 400*time.Millisecond)
			w.Run(2 * time.Minute)
			once(t, w, w.Nodes[1].Site, 1, *down)
			if u := w.Nodes[1].GW.Status(w.Now).Peers[0].Unreadable; u != 0 {
				t.Fatalf("%d and %d lost: %d messages unreadable", first, second, u)
			}
		}
	}
}
