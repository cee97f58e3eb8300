package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// chain is nodes of which each hears its neighbours alone; all pass on messages for others.
func chain(t *testing.T, nodes int, name string, seed uint64, change ...func(*sim.Config)) *sim.World {
	t.Helper()
	w := world(t, nodes, name, seed, append([]func(*sim.Config){air.Chain}, change...)...)
	w.Tap = air.Neighbours
	return w
}

// A hears B, and B hears C: messages between A and C go by B.
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

// Two sites that hear a relay alone, and have no messages for each other, know each other's items: their peers discover each other.
func TestStateCrossesARelayUnasked(t *testing.T) {
	for seed := range seeds(20) {
		w := world(t, 3, "iridium-directip", seed+1, air.Star)
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

// Two sites that hear each other again take their messages back from the relay at once: nothing waits for receipts of those that it
// brought.
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
		w.Run(30 * time.Minute)
		slowest := slices.Max(once(t, w, b.Site, 2, *sent))
		check.True(check.In(t, fmt.Sprint("seed ", seed+1)), "at most 60 s late", slowest <= time.Minute, slowest)
	}
}

// A chain of four on HF: 200 messages each way, and the second dies ten times. All arrive once, in order, and each has one end.
func TestAChainOfFourRelays(t *testing.T) {
	for _, pct := range []float64{0, 30} {
		for seed := range seeds(20) {
			_, err := air.ChainOfFour(t.Context(), seed+1, pct)
			check.NoError(check.In(t, fmt.Sprintf("loss %v, seed %d", pct, seed+1)), err)
		}
	}
}

// ends checks that a node counts so many messages for another as delivered, and nothing else.
func ends(t *testing.T, w *sim.World, n *sim.Node, to uint16, messages uint64) {
	t.Helper()
	for _, p := range n.GW.Status(w.Now).Peers {
		if p.ID == to {
			check.Equal(t, n.Name+": delivered", p.Delivered, messages)
			check.Equal(t, n.Name+": expired, cancelled, undeliverable", [3]uint64{p.Expired, p.Cancelled, p.Undeliverable}, [3]uint64{})
		}
	}
}

// A relayed message costs on each hop at most a tenth more than a direct one between the same two nodes.
func TestARelayedMessageCostsWhatADirectOneDoes(t *testing.T) {
	for seed := range seeds(20) {
		for link, way := range map[string][3]int{"hf-2400": {0, 1, 2}, "iridium-certus-100": {1, 0, 2}} {
			change := air.Chain
			if way[0] == 1 {
				change = air.Star
			}
			ratio, err := air.HopCost(t.Context(), link, change, way, seed+1, 200)
			in := check.In(t, link, ", seed ", seed+1)
			check.NoError(in, err)
			check.True(in, "a hop over that of a direct message", ratio <= 1.1, ratio)
		}
	}
}

// A ship tells seven others the same through their shore: its own leg carries that once.
func TestARelayTellsSevenForOne(t *testing.T) {
	for seed := range seeds(20) {
		up, err := air.Seven(t.Context(), seed+1)
		check.NoError(t, err)
		check.True(t, "octets of the origin's leg a message, of one copy of 281", up <= 1.15*281, up)
	}
}

// A ring of three, and a full mesh of five with two bearers, cost nothing while idle, and a message arrives once, also while links fail.
func TestARelayRing(t *testing.T) {
	for seed := range seeds(20) {
		for _, nodes := range []int{3, 5} {
			octets, err := air.Rings(t.Context(), seed+1, nodes)
			check.NoError(t, err)
			check.Equal(t, fmt.Sprintf("%d nodes: octets of idle hours", nodes), octets, 0.0)
		}
	}
}

// A message that is no longer worth sending, and had begun, goes again ever later while the relay does not take it: not each second.
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

// A message that a relay has to hold beyond its life makes no gap: later messages to a node that was away do not wait for its repetition.
func TestWhatExpiresAtARelayMakesNoGap(t *testing.T) {
	for seed := range seeds(20) {
		w := chain(t, 3, "hf-2400", seed+1)
		a, c := w.Nodes[0], w.Nodes[2]
		sent := tracks(w, a, []uint16{3}, 60, 200, 20*time.Second)
		expiring := peerID(98)
		for i := range 60 {
			w.At(time.Duration(i)*20*time.Second+7*time.Second, func() {
				m := track(1, pipeHQ, 1000+i, 100)
				m.From, m.Expires = expiring, w.Now.Add(20*time.Second)
				a.Site.Send(w, m, 3)
			})
		}
		w.At(5*time.Minute, func() { w.Cut(0, c, true) })
		w.At(7*time.Minute, func() { w.Cut(0, c, false) })
		w.Run(time.Hour)
		got := slices.DeleteFunc(c.Site.Got, func(g sim.Got) bool { return g.Payload.From == expiring })
		list, err := air.Once(got, 1, *sent)
		in := check.In(t, fmt.Sprint("seed ", seed+1))
		check.NoError(in, err)
		check.True(in, "at most five minutes late", slices.Max(list) <= 5*time.Minute, slices.Max(list))
	}
}

// A message that a relay lost goes again a quarter of an hour after the relay took it, however often its origin restarts meanwhile.
func TestRestartsDoNotProlongTheWaitForARelay(t *testing.T) {
	for seed := range seeds(20) {
		w := world(t, 3, "iridium-directip", seed+1, air.Star)
		shore, a, c := w.Nodes[0], w.Nodes[1], w.Nodes[2]
		sent := tracks(w, a, []uint16{3}, 5, 200, 20*time.Second) // they meet
		w.Run(20 * time.Minute)
		w.Cut(0, c, true)
		more := tracks(w, a, []uint16{3}, 1, 201, time.Second)
		w.At(time.Minute, func() { w.LoseStore(shore); w.Kill(shore, time.Second) })
		w.At(2*time.Minute, func() { w.Cut(0, c, false) })
		for _, at := range []time.Duration{3, 8, 13} {
			w.At(at*time.Minute, func() { w.Kill(a, time.Second) })
		}
		w.Run(17 * time.Minute)
		once(t, w, c.Site, 2, append(*sent, *more...))
	}
}
