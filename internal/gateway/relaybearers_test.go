package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// TestARelayWithTwoBearersDies: HQ has two bearers to a relay, which dies again and again while it has something under way. All of it
// arrives once, whichever bearers it was on meanwhile.
func TestARelayWithTwoBearersDies(t *testing.T) {
	for seed := range seeds(20) {
		w := world(t, 3, "iridium-certus-100", seed+1, func(c *sim.Config) {
			c.Roster = true
			c.Second = &sim.Second{Name: "land", Profile: load(t, "tls-443"), Wire: load(t, "wire"), Price: gateway.UsualPrice / 10}
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				g.Relay = n.ID == 1
				for i := range g.Peers {
					if p := &g.Peers[i]; n.ID != 1 && p.ID != 1 {
						p.Via = []uint16{1}
					}
				}
			}
		})
		relay, hq, ship := w.Nodes[0], w.Nodes[1], w.Nodes[2]
		there := tracks(w, hq, []uint16{1, 3}, 400, 200, 7*time.Second)
		back := tracks(w, ship, []uint16{1, 2}, 400, 200, 11*time.Second)
		for i := range 12 {
			at := time.Duration(i+1) * 3 * time.Minute
			w.At(at-20*time.Second, func() { w.Cut(1, relay, true) })
			w.At(at, func() { w.Kill(relay, 10*time.Second) })
			w.At(at+9*time.Second, func() { w.Cut(0, relay, true); w.Cut(1, relay, false) })
			w.At(at+time.Minute, func() { w.Cut(0, relay, false) })
		}
		w.Run(time.Hour)
		each(t, w, relay.Site, 2, *there)
		each(t, w, ship.Site, 2, *there)
		each(t, w, relay.Site, 3, *back)
		each(t, w, hq.Site, 3, *back)
	}
}

// A ship that was never heard on HF is reached through a relay while the satellite is cut, and then heard: messages that had gone over the
// satellite and wait for the relay go on over HF as one attempt.
func TestHFIsMetWhileARelayPassesOn(t *testing.T) {
	for seed := range max(4, seeds(20)) {
		w := world(t, 3, "iridium-certus-100", seed+1, func(c *sim.Config) {
			c.Roster = true
			c.Second = &sim.Second{Name: "hf", Profile: load(t, "hf-2400"), Wire: load(t, "wire"), Price: 2 * gateway.UsualPrice, Group: true}
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				g.Relay = n.ID == 1
				for i := range g.Peers {
					if p := &g.Peers[i]; n.ID != 1 && p.ID != 1 {
						p.Via = []uint16{1}
					}
				}
			}
		})
		late, ship := w.Nodes[1], w.Nodes[2]
		w.Cut(1, ship, true)
		sent := tracks(w, late, []uint16{1, 3}, 400, 200, 5*time.Second)
		for i := range 8 {
			at := time.Duration(4*i+2) * time.Minute
			w.At(at, func() {
				for _, n := range w.Nodes {
					w.Cut(0, n, true)
				}
			})
			w.At(at+20*time.Second, func() { w.Kill(ship, time.Duration(5+5*i)*time.Second) })
			w.At(at+time.Duration(30+11*i)*time.Second, func() { w.Cut(1, ship, false) })
			w.At(at+3*time.Minute, func() {
				for _, n := range w.Nodes {
					w.Cut(0, n, false)
				}
				w.Cut(1, ship, i%2 == 0)
			})
		}
		w.Run(2 * time.Hour)
		each(t, w, w.Nodes[0].Site, 2, *sent)
		each(t, w, ship.Site, 2, *sent)
	}
}

// TestAGapBehindARelayHoldsUpNothing: HQ reaches three ships over a satellite, or through a relay on HF. The satellite is cut again and
// again, and a ship and HQ die. Numbers left out for a ship because their messages are for others, and lost reports of
// that, hold up its messages for a quarter of an hour at most.
func TestAGapBehindARelayHoldsUpNothing(t *testing.T) {
	t.Parallel()
	list := []uint64{8, 20}
	for seed := uint64(1); seed <= seeds(40) && seeds(40) > 1; seed++ {
		list = append(list, seed)
	}
	for _, seed := range list {
		w := world(t, 5, "iridium-certus-100", seed, func(c *sim.Config) {
			c.Roster = true
			c.Second = &sim.Second{Name: "hf", Profile: load(t, "hf-2400"), Wire: load(t, "wire"), Price: 2 * gateway.UsualPrice, Group: true}
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				if g.Relay = n.ID == 1; n.ID == 2 {
					g.More = nil
				} else {
					delete(g.More[0].Peers, 2)
				}
				for i := range g.Peers {
					if p := &g.Peers[i]; n.ID != 1 && p.ID != 1 {
						p.Via = []uint16{1}
					}
				}
			}
		})
		hq, ships, random := w.Nodes[1], w.Nodes[2:], rand.New(rand.NewPCG(seed-1, 7))
		sent := map[uint16]*[]offered{2: tracks(w, hq, []uint16{1, 3, 4, 5}, 60, 200, time.Minute)}
		for i, n := range ships {
			var to []uint16
			for id := uint16(1); id <= 5; id++ {
				if id != n.ID {
					to = append(to, id)
				}
			}
			sent[n.ID] = tracks(w, n, to, 60, 200, []time.Duration{61, 59, 58}[i]*time.Second)
		}
		cut := func(on bool) {
			for _, n := range ships {
				w.Cut(0, n, on)
			}
		}
		for i := range 4 {
			at := time.Duration(10+13*i) * time.Minute
			w.At(at, func() { cut(true) })
			w.At(at+time.Duration(random.IntN(300))*time.Second, func() { w.Kill(ships[1], time.Duration(random.IntN(3))*time.Second) })
			w.At(at+5*time.Minute, func() { cut(false) })
			w.At(at+time.Duration(300+random.IntN(300))*time.Second, func() { w.Kill(hq, 2*time.Second) })
		}
		w.Run(80 * time.Minute)
		for _, n := range w.Nodes {
			for from, list := range sent {
				if from == n.ID {
					continue
				}
				took, err := air.Each(n.Site.Got, from, *list)
				if err != nil {
					t.Fatalf("seed %d, %s: %v\n%v", seed, n.Name, err, tail(w.Notes))
				}
				check.True(t, fmt.Sprintf("seed %d, node %d to %s: the last is late", seed, from, n.Name), slices.Max(took) < 15*time.Minute, slices.Max(took))
			}
		}
	}
}
