package gateway_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// What a gateway says of the time that a message takes, beside what the next one took, from no load to four fifths of the rate.
func TestDistanceAgainstTheNextMessage(t *testing.T) {
	t.Parallel()
	for _, name := range distanceProfiles() {
		for _, load := range []float64{0, 0.4, 0.8} {
			for _, octets := range []int{200, 20_000} {
				var said, took []float64
				for seed := range seeds(20) {
					a, b := distances(t, name, load, octets, seed+1)
					said, took = append(said, a...), append(took, b...)
				}
				a, b := median(said), median(took)
				var off []float64
				for i := range said {
					off = append(off, math.Abs(math.Log(said[i]/took[i])))
				}
				t.Logf("%s, load %.0f %%, %d octets: said %.2f s, took %.2f s, %+.0f %%; single ones off by %.0f %%", name, 100*load, octets, a, b, 100*(a/b-1), 100*(math.Exp(median(off))-1))
				check.True(t, "within 25 %", a/b < 1.25 && b/a < 1.25, a, b)
			}
		}
	}
}

// distanceProfiles are those whose carrier sends to each peer: over P_Mul what is said is further off (docs/limits.md). It takes minutes to
// compute them all: the short form has one.
func distanceProfiles() []string {
	list := []string{"iridium-directip", "iridium-certus-100", "geo-satcom-128k", "iridium-dialup"}
	return list[:min(int(seeds(4)), len(list))]
}

func median[T cmp.Ordered](list []T) T {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// distances is what a ship says before each of some messages, and what they took, in seconds.
func distances(t *testing.T, name string, busy float64, octets int, seed uint64) (said, took []float64) {
	w := world(t, 2, name, seed, func(c *sim.Config) { c.Group = c.Profile.Transport == profile.PMul })
	hq, ship := w.Nodes[0], w.Nodes[1]
	rng := rand.New(rand.NewPCG(seed, 9))
	p := load(t, name)
	ship.Site.Send(w, track(2, pipeHQ, 0, 200), 1)
	w.Run(3 * time.Minute)
	mean := time.Duration(float64(time.Second) * 300 * 8 / max(busy, 1e-9) / float64(p.Up.RateBps))
	i := 1
	var next func()
	next = func() {
		ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
		i++
		w.At(time.Duration(rng.ExpFloat64()*float64(mean)), next)
	}
	if busy > 0 {
		w.At(0, next)
	}
	w.Run(5 * time.Minute)
	at := map[string]int{}
	var sent []time.Time
	for range 8 {
		m := track(2, pipeHQ, 100_000+len(sent), octets)
		m.From = peerID(77)
		q := ship.GW.Status(w.Now).Peers[0].Quality
		if octets == 200 {
			said = append(said, q.ShortS)
		} else {
			said = append(said, q.LongS)
		}
		at[string(m.Parts[0].Data)] = len(sent)
		sent = append(sent, w.Now)
		ship.Site.Send(w, m, 1)
		before := len(took)
		for end := w.Now.Add(30 * time.Minute); w.Now.Before(end) && len(took) == before; {
			w.Run(time.Second)
			for _, g := range hq.Site.Got {
				if n, mine := at[string(g.Payload.Parts[0].Data)]; mine && n == before {
					took = append(took, g.At.Sub(sent[n]).Seconds())
					break
				}
			}
		}
		w.Run(time.Duration(10+rng.IntN(30)) * time.Second)
	}
	check.Equal(check.Fatal(t), "messages there", len(took), len(said))
	return said, took
}
