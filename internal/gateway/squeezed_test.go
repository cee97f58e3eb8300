package gateway_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/lab/sim"
)

// squeeze makes some of the turns of nodes late by up to three seconds.
func squeeze(w *sim.World, seed uint64, often float64, nodes ...*sim.Node) {
	rng := rand.New(rand.NewPCG(seed, 30))
	w.Squeeze(func(n *sim.Node) time.Duration {
		late := time.Duration(rng.Int64N(int64(3 * time.Second)))
		for _, busy := range nodes {
			if n == busy && rng.Float64() < often {
				return late
			}
		}
		return 0
	})
}

// A machine that is busy finds nothing wrong with a link that is well: it is neither down nor other than its profile says, and next to
// nothing goes again.
func TestBusyMachinesBlameNoLink(t *testing.T) {
	for _, tt := range []struct {
		profile string
		often   float64 // share of turns that are late
		every   time.Duration
		play    time.Duration
	}{
		{"wire", 1, time.Second, 5 * time.Minute}, {"wire", 0.1, time.Second, 10 * time.Minute},
		{"geo-satcom-128k", 1, 2 * time.Second, 5 * time.Minute}, {"iridium-certus-100", 0.1, 2 * time.Second, 5 * time.Minute},
		{"iridium-directip", 1, 10 * time.Second, 17 * time.Minute}, {"iridium-dialup", 0.1, 5 * time.Second, 10 * time.Minute},
	} {
		for seed := range seeds(40) {
			w := world(t, 2, tt.profile, seed+1, lossless)
			squeeze(w, seed, tt.often, w.Nodes...)
			n := int(tt.play / tt.every)
			there := tracks(w, w.Nodes[0], []uint16{2}, n, 64, tt.every)
			back := tracks(w, w.Nodes[1], []uint16{1}, n, 64, tt.every)
			w.Run(tt.play + 3*time.Minute)
			once(t, w, w.Nodes[1].Site, 1, *there)
			once(t, w, w.Nodes[0].Site, 2, *back)
			again := uint64(0)
			for _, n := range w.Nodes {
				again += n.GW.Status(w.Now).Peers[0].Repeated
			}
			if down, alarms := said(w, "is down"), said(w, "not match its profile"); down > 0 || alarms > 0 || again > uint64(2*n)/100 {
				t.Errorf("%s, %.0f %% of turns late, seed %d: down %d times, %d alarms, %d of %d messages went again\n%v",
					tt.profile, 100*tt.often, seed+1, down, alarms, again, 2*n, w.Notes)
			}
		}
	}
}

// A link that is truly down is called so, later than on an idle machine by as much as its machines are late.
func TestBusyMachinesFindADeadLink(t *testing.T) {
	for _, name := range []string{"wire", "iridium-certus-100", "iridium-directip"} {
		found := func(often float64, seed uint64) time.Duration {
			w := world(t, 2, name, seed, lossless)
			squeeze(w, seed, often, w.Nodes...)
			tracks(w, w.Nodes[0], []uint16{2}, 200, 64, 3*time.Second)
			w.Run(5 * time.Minute)
			if down := said(w, "is down"); down > 0 {
				t.Errorf("%s, seed %d: down %d times\n%v", name, seed, down, w.Notes)
			}
			w.Outage(w.Nodes[1], 10*time.Minute)
			began := w.Now
			for said(w, "is down: it does not answer") == 0 && w.Now.Sub(began) < 5*time.Minute {
				w.Run(100 * time.Millisecond)
			}
			return w.Now.Sub(began)
		}
		for seed := range seeds(20) {
			idle, busy := found(0, seed+1), found(1, seed+1)
			t.Logf("%s, seed %d: found dead after %v, on busy machines after %v", name, seed+1, idle, busy)
			if later := busy - idle; idle > 30*time.Second || later > 25*time.Second { // four turns, and the time granted to the answer
				t.Errorf("%s, seed %d: found dead after %v, on busy machines %v later", name, seed+1, idle, later)
			}
		}
	}
}
