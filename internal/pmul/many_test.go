package pmul_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/pmul"
)

// TestManyReceivers: 20 and 100 kB to 4, 16 and 64 receivers on HF, compared with a sender that codes and learns of each
// loss at the first moment. Before shards went with the first pass and answers had their turns, the medians were 1.28, 1.98
// and 4.6, and 1.29, 2.2 and 22. The table is in docs/pmul.md.
func TestManyReceivers(t *testing.T) {
	p := load(t, "hf-2400")
	n := int(seeds(7, 100))
	for _, c := range []struct {
		octets, receivers int
		median            float64
	}{{20000, 4, 1.28}, {20000, 16, 1.5}, {20000, 64, 1.8}, {100000, 4, 1.28}, {100000, 16, 1.5}, {100000, 64, 1.8}} {
		var over [3][]float64
		acks, passes, octets := 0, 0, 0
		var known time.Duration
		for seed := range uint64(n) {
			s := setup{nodes: c.receivers + 1, p: p, coding: pmul.Compact, seed: seed + 1, change: func(c *pmul.Config) { c.AckGroup = true }}
			took, w := transfer(t, s, c.octets)
			b := boundsOf(t, w.nodes[0].cfg, p, c.receivers+1, seed+1, c.octets)
			for i, d := range []time.Duration{b.clairvoyant, b.rounds, took} {
				over[i] = append(over[i], float64(d)/float64(limit(p, c.octets)))
			}
			passes += w.nodes[0].sender.Stats().Passes
			octets += w.nodes[0].octets
			for _, n := range w.nodes[1:] {
				acks += n.acks
			}
			known += w.now.Sub(epoch)
		}
		line := ""
		for i, name := range []string{"clairvoyant", "ideal feedback", "engine"} {
			slices.Sort(over[i])
			line += fmt.Sprintf(" | %s %.2f, %.2f, %.2f", name, over[i][n/2], over[i][n*9/10], over[i][n-1])
		}
		t.Logf("%6d octets to %2d: median, 90 %%, worst over the limit%s | %.1f passes, %d octets of the sender, %.1f datagrams of answers, all known after %v", c.octets,
			c.receivers, line, float64(passes)/float64(n), octets/n, float64(acks)/float64(n), (known / time.Duration(n)).Round(time.Second))
		if over[2][n/2] > c.median {
			t.Errorf("%d octets to %d: median %.2f times the limit, want %.2f", c.octets, c.receivers, over[2][n/2], c.median)
		}
	}
}

// TestManyWithLoss: 20 kB to 16 receivers on bad channels. Before, the medians were 2.33 and 3.83.
func TestManyWithLoss(t *testing.T) {
	for _, c := range []struct{ pct, median, worst float64 }{{10, 1.6, 2}, {30, 2.4, 2.8}} {
		p := lossy(load(t, "hf-2400"), c.pct, false)
		var over []float64
		for seed := uint64(1); seed <= 5; seed++ {
			took, _ := transfer(t, setup{nodes: 17, p: p, coding: pmul.Compact, seed: seed, change: func(c *pmul.Config) { c.AckGroup = true }}, 20000)
			over = append(over, float64(took)/float64(limit(p, 20000)))
		}
		slices.Sort(over)
		t.Logf("20000 octets to 16, %.0f %% loss: median %.2f, worst %.2f times the limit", c.pct, over[2], over[4])
		if over[2] > c.median || over[4] > c.worst {
			t.Errorf("%.0f %% loss: median %.2f, worst %.2f; want %.2f and %.2f", c.pct, over[2], over[4], c.median, c.worst)
		}
	}
}
