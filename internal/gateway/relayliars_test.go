package gateway_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// A relay with a valid key changes, invents and replays messages and receipts as fast as it can. None is taken, each kind is counted and
// its relay named, and everything arrives, by another relay or when the lies have ended.
func TestARelayLies(t *testing.T) {
	lies := 3000
	if seeds(2) > 1 {
		lies = 100_000
	}
	for seed := range seeds(20) {
		check.NoError(t, air.Lies(t.Context(), seed+1, lies))
	}
}

// A relay that takes messages and drops them is recognised by that: they stay under way with its name, and go by the next.
func TestARelayDrops(t *testing.T) {
	for seed := range seeds(20) {
		w := world(t, 4, "wire", seed+1, func(c *sim.Config) {
			c.Roster = true
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				g.Relay = n.ID == 4
				for i := range g.Peers {
					if p := &g.Peers[i]; (n.ID + p.ID) == 4 {
						p.Addr, p.Via = netip.AddrPort{}, []uint16{2, 4}
					}
				}
			}
		})
		drops := false
		w.Reconfigure(w.Nodes[1], func(g *gateway.Config) { g.Relay = true })
		w.Kill(w.Nodes[1], time.Second)
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			if from.ID+to.ID == 4 {
				return nil
			}
			return [][]byte{data}
		}
		a, b, c := w.Nodes[0], w.Nodes[1], w.Nodes[2]
		there := tracks(w, a, []uint16{3}, 30, 200, 20*time.Second)
		w.At(5*time.Minute, func() { // from now on it takes and drops
			drops = true
			w.Reconfigure(b, func(g *gateway.Config) { g.Relay = false })
			w.Kill(b, time.Second)
		})
		w.Run(12 * time.Minute)
		check.True(t, "it drops", drops && len(c.Site.Got) < 30, len(c.Site.Got))
		shown := false
		list := a.GW.Messages()
		for _, id := range list.IDs() {
			if row, ok := list.Row(id); ok && row.State == "under_way" {
				shown = slices.ContainsFunc(row.Life, func(l api.LifeRow) bool { return l.What == "passed" && l.Detail == "ship1" && !l.At.IsZero() })
			}
		}
		check.True(t, "the message is under way, and its life says that the relay has it", shown)
		w.Run(3 * time.Hour)
		once(t, w, c.Site, 1, *there)
		ends(t, w, a, 3, 30)
	}
}

// Origin, relay and recipient die at any commit: nothing is lost, nothing comes twice.
func TestARelayAndItsEndsDie(t *testing.T) {
	for seed := range seeds(20) {
		for _, name := range []string{"iridium-certus-100", "hf-2400"} {
			w := chain(t, 3, name, seed+1, func(c *sim.Config) { c.CrashBeforeCommit, c.CrashAfterCommit = 0.02, 0.02 })
			a, c := w.Nodes[0], w.Nodes[2]
			there, back := tracks(w, a, []uint16{3}, 40, 200, 20*time.Second), tracks(w, c, []uint16{1}, 40, 200, 20*time.Second)
			w.Run(time.Hour)
			w.EndCrashes()
			w.Run(9 * time.Hour)
			once(t, w, c.Site, 1, *there)
			once(t, w, a.Site, 3, *back)
		}
	}
}

// The via keys of two relays name each other: a message for a third goes round once at the most, one line says so, and it waits for its
// recipient, which one of them hears later.
func TestARelayCircle(t *testing.T) {
	w := world(t, 4, "wire", 1, func(c *sim.Config) {
		c.Roster = true
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Relay = true
			for i := range g.Peers {
				if p := &g.Peers[i]; p.ID == 4 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{map[uint16]uint16{1: 2, 2: 3, 3: 2}[n.ID]}
				} else if n.ID+p.ID == 4 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{2}
				} else if n.ID == 4 && p.ID != 3 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{3}
				}
			}
		}
	})
	apart := true
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if apart && from.ID+to.ID >= 5 && (from.ID == 4 || to.ID == 4) || from.ID+to.ID == 4 {
			return nil
		}
		return [][]byte{data}
	}
	sent := tracks(w, w.Nodes[0], []uint16{4}, 1, 200, time.Minute)
	w.Run(30 * time.Minute)
	dropped := w.Nodes[2].GW.Status(w.Now).Dropped
	log := strings.Join(w.Notes, "\n")
	check.True(t, "it is told", strings.Contains(log, "ship2 warn: a message would go back to where it came from"), log)
	check.True(t, "it goes round no more than its origin sends", dropped["relay_back"] <= 12, dropped)
	apart = false
	w.Run(5 * time.Hour)
	once(t, w, w.Nodes[3].Site, 1, *sent)
}
