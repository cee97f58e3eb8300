package gateway_test

import (
	"fmt"
	"net/netip"
	"strings"
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

// Two that hear a relay alone, and have nothing to say to each other, know what each has: their peers discover each other.
func TestStateCrossesARelayUnasked(t *testing.T) {
	for seed := range seeds(20) {
		w := star(t, 3, "iridium-directip", seed+1)
		w.Run(time.Minute)
		ends := w.Nodes[1:]
		for _, n := range ends {
			n.Site.Put(w, pipeItem(1, pipeHQ))
		}
		w.Run(6 * time.Second)
		for i, n := range ends {
			check.Equal(t, fmt.Sprint("seed ", seed+1, ": items of the other at ", n.Name), linkTo(w, n, ends[1-i].ID).FarItems, 1)
		}
	}
}

// Two that hear each other again take what they say back from the relay at once: nothing waits for receipts of what it brought.
func TestBackFromARelay(t *testing.T) {
	for seed := range seeds(20) {
		w := world(t, 3, "iridium-certus-100", seed+1, func(c *sim.Config) {
			c.Roster = true
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				g.Relay = n.ID == 1
				for i := range g.Peers {
					if p := &g.Peers[i]; n.ID != 1 && p.ID != 1 {
						p.Via = []uint16{1}
					}
				}
			}
		})
		cut := false
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			if cut && from.ID != 1 && to.ID != 1 {
				return nil
			}
			return [][]byte{data}
		}
		a, b := w.Nodes[1], w.Nodes[2]
		sent := tracks(w, a, []uint16{3}, 90, 200, 10*time.Second)
		w.At(3*time.Minute, func() { cut = true })
		w.At(8*time.Minute, func() { cut = false })
		begin := w.Now
		w.Run(30 * time.Minute)
		in := check.In(t, fmt.Sprint("seed ", seed+1))
		list, lost := took([]*sim.Node{b}, 2, *sent, begin.Add(7*time.Minute), w.Now)
		check.Equal(in, "lost", lost, 0)
		check.True(in, "at most 60 s late around the return", list[len(list)-1] <= time.Minute, list[len(list)-1])
		once(t, w, b.Site, 2, *sent)
	}
}

// lossy makes the losses of a profile's link so many percent.
func lossy(pct float64) func(*sim.Config) {
	return func(c *sim.Config) {
		if pct > 0 {
			c.Profile.Up.LossPct, c.Profile.Down.LossPct = pct, pct
		}
	}
}

// A chain of four on HF: 200 messages each way, and the second dies ten times. All arrive once, in order, and each has one end.
func TestAChainOfFourRelays(t *testing.T) {
	for _, pct := range []float64{0, 30} {
		for seed := range seeds(20) {
			w := chain(t, 4, "hf-2400", seed+1, lossy(pct))
			a, b, d := w.Nodes[0], w.Nodes[1], w.Nodes[3]
			there := tracks(w, a, []uint16{4}, 200, 200, 30*time.Second)
			back := tracks(w, d, []uint16{1}, 200, 200, 30*time.Second)
			for i := range 10 {
				w.At(time.Duration(5+10*i)*time.Minute, func() { w.Kill(b, 20*time.Second) })
			}
			w.Run(5 * time.Hour)
			took, returned := once(t, w, d.Site, 1, *there), once(t, w, a.Site, 4, *back)
			up, down := w.Octets(d)
			t.Logf("loss %v, seed %d: median %v and %v, worst %v and %v; %d and %d octets at the last hop", pct, seed+1, took[100], returned[100], took[199], returned[199], up, down)
			ends(t, w, a, 4, 200)
			ends(t, w, d, 1, 200)
		}
	}
}

// ends holds that a node counts so many messages for another as delivered, and nothing else.
func ends(t *testing.T, w *sim.World, n *sim.Node, to uint16, messages uint64) {
	t.Helper()
	for _, p := range n.GW.Status(w.Now).Peers {
		if p.ID == to {
			check.Equal(t, n.Name+": delivered", p.Delivered, messages)
			check.Equal(t, n.Name+": expired, cancelled, undeliverable", [3]uint64{p.Expired, p.Cancelled, p.Undeliverable}, [3]uint64{})
		}
	}
}

// What a relayed message costs on each hop is what a direct one between the same two costs, and a tenth more at the most.
func TestARelayedMessageCostsWhatADirectOneDoes(t *testing.T) {
	for seed := range seeds(20) {
		for _, size := range []int{12, 200} {
			ratio := hopCost(t, func() *sim.World { return chain(t, 3, "hf-2400", seed+1) }, []int{0, 1, 2}, size)
			t.Logf("seed %d, %d octets on hf-2400: %.3f", seed+1, size, ratio)
			check.True(t, "a hop over that of a direct message", size < 200 || ratio <= 1.1, ratio)
			ratio = hopCost(t, func() *sim.World { return star(t, 3, "iridium-certus-100", seed+1) }, []int{1, 0, 2}, size)
			t.Logf("seed %d, %d octets on iridium-certus-100: %.3f", seed+1, size, ratio)
			check.True(t, "a hop over that of a direct message", size < 200 || ratio <= 1.1, ratio)
		}
	}
}

// hopCost is the octets of 200 messages each way between the first and the last of three nodes, over those of as many from each to the next.
func hopCost(t *testing.T, make func() *sim.World, nodes []int, size int) float64 {
	t.Helper()
	play := func(ways [][2]int) (octets float64) {
		w := make()
		var list []*[]offered
		for _, way := range ways {
			list = append(list, tracks(w, w.Nodes[way[0]], []uint16{w.Nodes[way[1]].ID}, 200, size, 30*time.Second))
		}
		w.Run(3 * time.Hour)
		for i, way := range ways {
			once(t, w, w.Nodes[way[1]].Site, w.Nodes[way[0]].ID, *list[i])
		}
		for _, n := range w.Nodes {
			for _, row := range n.GW.Status(w.Now).Ledger {
				if row.Direction == "sent" {
					octets += float64(row.Octets)
				}
			}
		}
		return octets
	}
	a, b, c := nodes[0], nodes[1], nodes[2]
	return play([][2]int{{a, c}, {c, a}}) / play([][2]int{{a, b}, {b, a}, {b, c}, {c, b}})
}

// star is terminals that hear the shore alone, which passes on what they say to each other.
func star(t *testing.T, nodes int, name string, seed uint64, change ...func(*sim.Config)) *sim.World {
	t.Helper()
	return world(t, nodes, name, seed, append([]func(*sim.Config){func(c *sim.Config) {
		c.Roster = true
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Relay = n.ID == 1
			for i := range g.Peers {
				if p := &g.Peers[i]; n.ID != 1 && p.ID != 1 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{1}
				}
			}
		}
	}}, change...)...)
}

// A ship tells seven others the same through their shore: its own leg carries that once.
func TestARelayTellsSevenForOne(t *testing.T) {
	others := []uint16{3, 4, 5, 6, 7, 8, 9}
	for seed := range seeds(20) {
		play := func(to []uint16, nodes int) (up, down float64) {
			w := star(t, nodes, "iridium-directip", seed+1)
			ship := w.Nodes[1]
			all := tracks(w, ship, to, 2, 200, 10*time.Minute) // they meet, and the flow is told
			w.Run(time.Hour)
			u, d := w.Octets(ship)
			more := 60
			for i := range more {
				p := track(ship.ID, pipeHQ, 2+i, 200)
				w.At(time.Duration(i)*time.Minute, func() {
					*all = append(*all, offered{At: w.Now, Message: p})
					ship.Site.Send(w, p, to...)
				})
			}
			w.Run(80 * time.Minute)
			for _, id := range to {
				once(t, w, w.Nodes[id-1].Site, 2, *all)
				ends(t, w, ship, id, uint64(len(*all)))
			}
			u2, d2 := w.Octets(ship)
			return float64(u2-u) / float64(more), float64(d2-d) / float64(more)
		}
		directUp, directDown := play([]uint16{1}, 2)
		up, down := play(others, 9)
		t.Logf("seed %d: to seven %.0f octets up and %.0f down a message; one copy to the shore %.0f and %.0f: %.3f up", seed+1, up, down, directUp, directDown, up/directUp)
		check.True(t, "octets of the origin's leg a message, of one copy of 281", up <= 1.15*281, up)
	}
}

// What is not worth sending any more, and had begun, goes again ever later while the relay does not take it: not each second.
func TestWhatExpiresOnTheWayToARelay(t *testing.T) {
	for seed := range seeds(20) {
		w := chain(t, 3, "hf-2400", seed+1)
		a := w.Nodes[0]
		tracks(w, a, []uint16{3}, 5, 200, 20*time.Second) // they meet
		w.Run(20 * time.Minute)
		w.Cut(0, w.Nodes[1], true)
		for i := range 30 {
			w.At(time.Duration(i)*5*time.Second, func() {
				m := track(1, pipeHQ, 100+i, 100)
				m.Expires = w.Now.Add(20 * time.Second)
				a.Site.Send(w, m, 3)
			})
		}
		w.At(10*time.Minute, func() { w.Cut(0, w.Nodes[1], false) })
		w.Run(2 * time.Hour)
		in := check.In(t, fmt.Sprint("seed ", seed+1))
		ended := strings.Count(strings.Join(w.Notes, "\n"), "hq warn: a message has not reached a peer [peer ship1")
		check.True(in, "capsules that ended on the way in ten minutes", ended <= 7*30, ended)
		for _, p := range a.GW.Status(w.Now).Peers {
			check.Equal(in, "held for "+p.Name, p.UnderWay+p.Waiting, 0)
		}
	}
}

// What a relay has to hold beyond its life makes no gap: what comes after it to a node that was away does not wait for its repetition.
func TestWhatExpiresAtARelayMakesNoGap(t *testing.T) {
	for seed := range seeds(20) {
		w := chain(t, 3, "hf-2400", seed+1)
		a, c := w.Nodes[0], w.Nodes[2]
		begin := w.Now
		sent := tracks(w, a, []uint16{3}, 60, 200, 20*time.Second)
		for i := range 60 {
			w.At(time.Duration(i)*20*time.Second+7*time.Second, func() {
				m := track(1, pipeHQ, 1000+i, 100)
				m.Expires = w.Now.Add(20 * time.Second)
				a.Site.Send(w, m, 3)
			})
		}
		w.At(5*time.Minute, func() { w.Cut(0, c, true) })
		w.At(7*time.Minute, func() { w.Cut(0, c, false) })
		w.Run(time.Hour)
		list, lost := took([]*sim.Node{c}, 1, *sent, begin, w.Now)
		in := check.In(t, fmt.Sprint("seed ", seed+1))
		check.Equal(in, "lost", lost, 0)
		check.True(in, "at most five minutes late", list[len(list)-1] <= 5*time.Minute, list[len(list)-1])
	}
}
