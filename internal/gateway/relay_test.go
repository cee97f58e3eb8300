package gateway_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// chain is nodes of which each hears its neighbours alone; all but the last two of those between pass on what is for others.
func chain(t *testing.T, nodes int, name string, seed uint64, change ...func(*sim.Config)) *sim.World {
	t.Helper()
	w := world(t, nodes, name, seed, append([]func(*sim.Config){func(c *sim.Config) {
		c.Roster, c.Group = true, true
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Relay = true
			for i := range g.Peers {
				p := &g.Peers[i]
				if d := int(p.ID) - int(n.ID); d > 1 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{n.ID + 1}
				} else if d < -1 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{n.ID - 1}
				}
			}
		}
	}}, change...)...)
	w.Tap = neighbours
	return w
}

// neighbours lets nodes hear those beside them alone.
func neighbours(from, to *sim.Node, data []byte) [][]byte {
	if d := int(from.ID) - int(to.ID); d > 1 || d < -1 {
		return nil
	}
	return [][]byte{data}
}

// A hears B, and B hears C: what A and C say to each other goes by B.
func TestMessagesPassARelay(t *testing.T) {
	for _, name := range []string{"wire", "iridium-certus-100", "hf-2400"} {
		for seed := range seeds(20) {
			w := chain(t, 3, name, seed+1)
			a, c := w.Nodes[0], w.Nodes[2]
			there := tracks(w, a, []uint16{3}, 20, 200, 20*time.Second)
			back := tracks(w, c, []uint16{1}, 20, 200, 20*time.Second)
			w.Run(time.Hour)
			t.Log(tail(w.Notes), len(c.Site.Got), len(a.Site.Got), len(*there))
			check.Equal(t, fmt.Sprint(name, " there"), len(once(t, w, c.Site, 1, *there)), 20)
			check.Equal(t, fmt.Sprint(name, " back"), len(once(t, w, a.Site, 3, *back)), 20)
			for _, p := range a.GW.Status(w.Now).Peers {
				if p.ID == 3 {
					check.Equal(t, "delivered", p.Delivered, uint64(20))
				}
			}
		}
	}
}
