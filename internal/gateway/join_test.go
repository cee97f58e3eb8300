package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/roster"
)

// byRoster lets the rosters of a world say that all are on its first bearer; no configuration names a peer.
func byRoster(later int) func(*sim.Config) {
	return func(c *sim.Config) {
		c.Roster, c.Later = true, later
		c.Ways = func(*sim.Node) ([]roster.Way, bool) { return []roster.Way{{}}, false }
		before := c.Configure
		c.Configure = func(n *sim.Node, cfg *gateway.Config) {
			cfg.Peers = nil
			if before != nil {
				before(n, cfg)
			}
		}
	}
}

// TestJoin: a 17th gateway joins 16 on hf-2400 beside a message of 200 octets every 20 s. Nobody else is restarted or told by hand.
func TestJoin(t *testing.T) {
	for seed := uint64(1); seed <= seeds(20); seed++ {
		w := mulWorld(t, 17, seed, byRoster(1))
		new := w.Nodes[16]
		w.Run(20 * time.Minute)
		idle := sentByAll(w)
		check.NoError(check.Fatal(t), w.Begin(new, w.Roster(w.First(), time.Time{}, w.Nodes...)))
		w.Run(20 * time.Minute)
		t.Logf("seed %d: octets of joining alone %d; serials %s", seed, sentByAll(w)-idle, serials(w))
		for i, n := range w.Nodes {
			s := n.GW.Status(w.Now)
			up := 0
			for _, p := range s.Peers {
				if p.Link == "up" {
					up++
				}
			}
			if up != 16 {
				t.Errorf("node %d: %d of %d peers up", i+1, up, len(s.Peers))
			}
		}
	}
}
