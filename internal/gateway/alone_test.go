package gateway_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// TestDeliveredWasHandedOver: a receiver is put back to a copy that holds messages behind a gap, and has lost those that they were
// coded after. Messages that it cannot read alone go again: each message that its sender calls delivered was handed over.
func TestDeliveredWasHandedOver(t *testing.T) {
	alone := 0
	for i := range 2 * seeds(50) {
		seed := 6 * i // 0 and 6 are known to have such a message
		rng := rand.New(rand.NewPCG(seed, 99))
		w := world(t, 2, "iridium-dialup", seed, func(c *sim.Config) { c.Profile.Up.LossPct, c.Profile.Down.LossPct = 10, 10 })
		hq, ship := w.Nodes[0], w.Nodes[1]
		sent := textTracks(w, ship, []uint16{1}, 60, time.Second)
		w.Run(20 * time.Second)
		copied := hq.Journal()
		for !kept(copied, "early") && w.Now.Sub(sim.Epoch) < 50*time.Second {
			w.Run(200 * time.Millisecond)
			copied = hq.Journal()
		}
		w.Run(time.Duration(rng.IntN(8000)) * time.Millisecond)
		hq.SetJournal(copied)
		w.LoseBucket(hq, "before")
		w.Kill(hq, time.Second)
		w.Run(5 * time.Minute)
		alone += said(w, "without earlier ones")
		in, says := check.In(t, "seed", seed), ship.GW.Status(w.Now).Peers[0]
		check.Equal(in, "with a fate", int(says.Delivered+says.Undeliverable), len(*sent))
		check.True(in, "handed over", len(timesOf(hq.Site)) >= int(says.Delivered), len(timesOf(hq.Site)), says.Delivered)
	}
	check.True(t, "some could not be read alone", alone > 0)
}

// kept says whether a journal has a record of a bucket.
func kept(journal map[string]api.Record, bucket string) bool {
	for _, r := range journal {
		if r.Bucket == bucket {
			return true
		}
	}
	return false
}
