package gateway_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// otherChannel is four sites on hf-2400 whose gateways believe that profile, or for one of them the profile as believes changes it, on a
// channel as change makes it. For six minutes they send 70 % of the channel's rate, each to all.
func otherChannel(t *testing.T, seed uint64, change func(*profile.Direction), believes func(n *sim.Node, p *profile.Profile)) *sim.World {
	t.Helper()
	base := load(t, "hf-2400")
	var is profile.Profile
	w := onChannel(t, 4, seed, func(c *sim.Config) {
		change(&c.Profile.Up)
		change(&c.Profile.Down)
		is = c.Profile
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Profile = base
			if believes != nil {
				believes(n, &g.Profile)
			}
		}
	})
	n := offerAll(w, 0.7, 6*time.Minute, is)
	w.Run(6 * time.Minute)
	measured := make([]int, len(w.Nodes))
	for i, node := range w.Nodes {
		measured[i] = node.GW.Status(w.Now).Peers[0].Measured.RateBps
	}
	for wait := 0; arrived(w) < 4*3*n && wait < 300; wait++ {
		w.Run(20 * time.Second)
	}
	if got := arrived(w); got != 4*3*n {
		t.Errorf("seed %d: %d of %d arrived", seed, got, 4*3*n)
	}
	t.Logf("seed %d: after six minutes they have measured %d", seed, measured)
	return w
}

func arrived(w *sim.World) (got int) {
	for _, n := range w.Nodes {
		got += len(n.Site.Got)
	}
	return got
}

// TestChannelRateLearned: a channel of half of the profile's rate, or twice that, is noticed from the traffic of others within six minutes
// by every site, the status and one line of the log say so, and no radio's queue overflows meanwhile. A channel that is as the profile
// says causes no such report.
func TestChannelRateLearned(t *testing.T) {
	t.Parallel()
	for _, part := range []float64{0.5, 1, 2} {
		for seed := range seeds(5) {
			w := otherChannel(t, seed+1, func(d *profile.Direction) { d.RateBps = int(part * float64(d.RateBps)) }, nil)
			for _, n := range w.Nodes {
				if dropped := w.Link.Stats().Node(n.Name).Up.DroppedQueue.Frames; dropped > 0 {
					t.Errorf("%g times the rate, seed %d: the radio of %s dropped %d datagrams", part, seed+1, n.Name, dropped)
				}
				lines := 0
				for _, note := range w.Notes {
					if strings.Contains(note, n.Name+" warn: a link does not match its profile") {
						lines++
					}
				}
				for _, p := range n.GW.Status(w.Now).Peers {
					m := p.Measured
					switch is := part * 2400; {
					case part == 1 && (len(m.Differs) > 0 || lines > 0):
						t.Errorf("as its profile says, seed %d, %s: %+v, %d lines in the log", seed+1, n.Name, m, lines)
					case part != 1 && (float64(m.RateBps) < 0.9*is || float64(m.RateBps) > 1.1*is || m.PaceBps != m.RateBps || len(m.Differs) != 1 || lines != 1):
						t.Errorf("%g times the rate, seed %d, %s: %+v, %d lines in the log", part, seed+1, n.Name, m, lines)
					}
				}
			}
		}
	}
}

// TestChannelRateMisled: neither a member that sends at a quarter of the rate nor delays that vary by a second make the others believe
// in another rate.
func TestChannelRateMisled(t *testing.T) {
	same := func(*profile.Direction) {}
	for seed := range seeds(5) {
		slow := otherChannel(t, seed+1, same, func(n *sim.Node, p *profile.Profile) {
			if n.ID == 4 {
				p.Up.RateBps, p.Down.RateBps = p.Up.RateBps/4, p.Down.RateBps/4
			}
		})
		jitter := otherChannel(t, seed+1, func(d *profile.Direction) { d.Jitter = time.Second }, nil)
		for i, w := range []*sim.World{slow, jitter} {
			for _, n := range w.Nodes[:3] {
				if m := n.GW.Status(w.Now).Peers[0].Measured; m.RateBps != 0 {
					t.Errorf("world %d, seed %d, %s: %+v", i, seed+1, n.Name, m)
				}
			}
		}
	}
}
