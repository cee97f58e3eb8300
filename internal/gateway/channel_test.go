package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// Three nodes on one half-duplex HF channel, without P_Mul: slower, but all of it arrives, long messages too.
func TestSharedChannel(t *testing.T) {
	w := world(t, 3, "hf-2400", 4, func(c *sim.Config) { c.Profile.Transport = profile.NORM })
	hq, a, b := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	short := tracks(w, hq, []uint16{2, 3}, 20, 200, 20*time.Second)
	up := tracks(w, a, []uint16{1}, 20, 200, 20*time.Second)
	long := tracks(w, b, []uint16{1}, 2, 3000, 2*time.Minute)
	w.Run(20 * time.Minute)
	once(t, w, a.Site, 1, *short)
	once(t, w, b.Site, 1, *short)
	once(t, w, hq.Site, 2, *up)
	once(t, w, hq.Site, 3, *long)
	if len(a.Site.Far[1]) != 1 || len(b.Site.Far[1]) != 1 {
		t.Errorf("HQ's item is known %d and %d times, want once at each", len(a.Site.Far[1]), len(b.Site.Far[1]))
	}
}
