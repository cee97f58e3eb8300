package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/sim"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
)

// wandering is a profile whose rate upwards is the mean of 2004, and rates that wander for an hour, one every ten seconds.
func wandering(t *testing.T, seed uint64) (p profile.Profile, rates []int, mean int) {
	t.Helper()
	p = load(t, "iridium-directip")
	p.Up.RateBps = 9300
	rates = linkemu.Wander(seed, 800, 21_400, 360)
	for _, r := range rates {
		mean += r
	}
	return p, rates, mean / len(rates)
}

// limit is how long the messages would take if the link were known: one after the other, at the rate of the moment, and the mean delay.
func limit(rates []int, at []time.Duration, octets int, delay time.Duration) (took []time.Duration) {
	const tick = 10 * time.Millisecond
	free, sent := time.Duration(0), 0.0
	for _, came := range at {
		free = max(free, came)
		for sent = float64(octets * 8); sent > 0; free += tick {
			sent -= float64(rates[min(int(free/(10*time.Second)), len(rates)-1)]) * tick.Seconds()
		}
		took = append(took, free-came+delay)
	}
	return took
}

func median(list []time.Duration) time.Duration {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}

// The rate wanders as in 2004, and 60 % of its mean is offered for an hour: with the modem's word nearly all of it arrives soon, and
// without it most.
func TestARateThatWanders(t *testing.T) {
	const octets = 400
	for seed := range max(3, seeds(20)) {
		for _, told := range []bool{true, false} {
			p, rates, mean := wandering(t, seed+1)
			w := world(t, 2, "iridium-directip", seed+1, func(c *sim.Config) {
				c.Profile = p
				c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Rules = []compact.Rule{{Effort: compact.None}} } // chance does not get smaller
			})
			hq, ship := w.Nodes[0], w.Nodes[1]
			for i, bps := range rates {
				w.At(time.Duration(i)*10*time.Second, func() {
					w.SetRate(0, ship, bps)
					if told {
						w.Give(ship, api.Modem{RateBps: bps})
					}
				})
			}
			rng := rand.New(rand.NewPCG(seed, 4))
			var sent []offered
			var at []time.Duration
			for when := 10 * time.Second; when < time.Hour; when += time.Duration(rng.ExpFloat64() * octets * 8 / (0.6 * float64(mean)) * float64(time.Second)) {
				m := track(2, pipeHQ, len(at), octets)
				for i := range m.Parts[0].Data {
					m.Parts[0].Data[i] = byte(rng.Uint32())
				}
				at = append(at, when)
				w.At(when, func() {
					sent = append(sent, offered{At: w.Now, Message: m})
					ship.Site.Send(w, m, 1)
				})
			}
			w.Run(time.Hour)
			in := len(hq.Site.Got)
			w.Run(30 * time.Minute)
			took := once(t, w, hq.Site, 2, sent)
			best := median(limit(rates, at, octets, p.Up.Delay+p.Up.Jitter/2))
			share, times := float64(in)/float64(len(sent)), median(took).Seconds()/best.Seconds()
			t.Logf("seed %d, told %v: mean rate %d bit/s, %d messages; %.1f %% in the hour, median %v, limit %v, %.2f times", seed+1, told, mean, len(sent), 100*share, median(took), best, times)
			least, most := 0.75, 6.0
			if told {
				least, most = 0.90, 3
			}
			check.True(t, fmt.Sprintf("seed %d, told %v: share of what was offered", seed+1, told), share >= least, share)
			check.True(t, fmt.Sprintf("seed %d, told %v: median beside the limit", seed+1, told), times <= most, times)
		}
	}
}
