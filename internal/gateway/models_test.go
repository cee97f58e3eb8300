package gateway_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/sim"
)

// TestModelsBesideEachOther plays the same on a link whose losses fall on frames and on one whose losses last a time, calls
// drop and hand over: everything arrives, once, and the log has both figures. Seed 1; 1 to 20 with the tag long.
func TestModelsBesideEachOther(t *testing.T) {
	percentiles := func(l []time.Duration) [4]time.Duration {
		slices.Sort(l)
		n := len(l)
		return [4]time.Duration{l[n/2], l[n*95/100], l[n*99/100], l[n-1]}
	}
	for _, pair := range [][2]string{{"iridium-dialup", "iridium-dialup-modem"}, {"hf-2400", "hf-2400-fading"}} {
		for _, name := range pair {
			var single, burst, long []time.Duration
			for seed := uint64(1); seed <= uint64(seeds(20)); seed++ {
				single = append(single, played(t, name, seed, 100, 200, 20*time.Second)...)
				at := played(t, name, seed, 40, 200, 0)
				burst = append(burst, slices.Max(at))
				long = append(long, played(t, name, seed, 1, 20_000, 0)...)
			}
			t.Logf("%s: median, 95 %%, 99 %%, worst of single messages %v; 40 at once, the last %v; 20 kB %v", name,
				percentiles(single), percentiles(burst), percentiles(long))
		}
	}
}

// played sends messages of random octets from the ship to HQ, and returns how long each took.
func played(t *testing.T, name string, seed uint64, n, octets int, every time.Duration) []time.Duration {
	t.Helper()
	w := world(t, 2, name, seed, func(cfg *sim.Config) { cfg.Group = cfg.Profile.Shared })
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(3 * time.Minute)
	sent := tracks(w, ship, []uint16{1}, n, octets, every)
	w.Run(time.Duration(n)*every + time.Hour)
	return once(t, w, hq.Site, 2, *sent)
}
