//go:build long

package commands

import (
	"testing"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

// TestPMULOverHF: 20 kB to four receivers over hf-2400 as it is, real processes, five seeds, compared with
// others (transport 3.2): the time at the last receiver over the limit, and all octets on the air.
func TestPMULOverHF(t *testing.T) {
	source, err := profile.Source("hf-2400")
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(1); seed <= 5; seed++ {
		func() {
			n := newPMULNet(t, 5, seed, string(source))
			name, want := n.pmulPayload(t, 20000)
			var receivers []*pmulReceiver
			for i := 1; i < 5; i++ {
				receivers = append(receivers, n.receive(t, i))
			}
			began := time.Now()
			last := make(chan time.Duration, 4)
			for _, r := range receivers {
				go func() {
					for j := range r.lines {
						if j.Event == "received" && j.Octets == len(want) {
							last <- time.Since(began)
							return
						}
					}
					last <- 0
				}()
			}
			code, j := n.send(t, 20*time.Minute, "--to", "10.77.0.2,10.77.0.3,10.77.0.4,10.77.0.5", name)
			if code != cli.ExitGood {
				t.Fatalf("seed %d: exit %d: %+v", seed, code, j)
			}
			var took time.Duration
			for range receivers {
				took = max(took, <-last)
			}
			limit := profile.Airtime(len(want), n.p.Up.RateBps) + n.p.Up.Delay
			stats := n.hub.Stats()
			data, back := stats.Link.Node("node0").Up.OnAir.Octets, int64(0)
			for _, name := range []string{"node1", "node2", "node3", "node4"} {
				back += stats.Link.Node(name).Up.OnAir.Octets
			}
			over := float64(took) / float64(limit)
			t.Logf("seed %d: last receiver after %v, %.2f of the limit %v; sender %d octets, receivers %d; all known after %.1f s",
				seed, took.Round(time.Second/10), over, limit.Round(time.Second/10), data, back, j.Seconds)
			if over > 2 {
				t.Errorf("seed %d: %.2f of the limit, want 2.0 or less", seed, over)
			}
			n.tshark(t, 0, "0", "1", "2")
			for _, r := range receivers {
				r.cmd.Process.Kill()
			}
		}()
	}
}
