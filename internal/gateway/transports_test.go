package gateway_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// TestTransportsCompared prints the figures of each transport for the same traffic on each shared channel; the profiles name
// the one that did better (docs/decisions/pmul-carrier.md).
func TestTransportsCompared(t *testing.T) {
	for _, name := range []string{"hf-300", "hf-2400", "vhf-cnr-16k"} {
		every := 20 * time.Second
		if name == "hf-300" {
			every = 2 * time.Minute
		}
		for _, ships := range []int{1, 3} {
			for _, transport := range []string{profile.NORM, profile.PMul} {
				var octets int64
				var latency []time.Duration
				const n = 30
				for seed := range seeds(3) {
					w := world(t, ships+1, name, seed, func(c *sim.Config) {
						c.Profile.Transport, c.Group = transport, transport == profile.PMul
					})
					hq := w.Nodes[0]
					w.Run(5 * time.Minute)
					sum := func() (s int64) {
						for _, n := range w.Nodes {
							up, _ := w.Octets(n)
							s += up
						}
						return s
					}
					before := sum()
					var to []uint16
					for _, s := range w.Nodes[1:] {
						to = append(to, s.ID)
					}
					down := tracks(w, hq, to, n, 150, every)
					up := tracks(w, w.Nodes[1], []uint16{1}, n, 150, every)
					w.Run(n*every + time.Hour)
					for _, s := range w.Nodes[1:] {
						latency = append(latency, once(t, w, s.Site, 1, *down)...)
					}
					latency = append(latency, once(t, w, hq.Site, 2, *up)...)
					octets += sum() - before
				}
				slices.Sort(latency)
				at := func(q float64) float64 { return latency[int(q*float64(len(latency)-1))].Seconds() }
				t.Logf("%-12s %d ships %-5s: %6d octets a run; latency median %5.1f s, 95 %% %5.1f s, worst %6.1f s",
					name, ships, transport, octets/int64(seeds(3)), at(.5), at(.95), at(1))
			}
		}
	}
}
