package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// otherLink is a world of two whose gateways believe the named profile, and whose link is what change makes of it.
func otherLink(t *testing.T, name string, seed uint64, change func(*profile.Direction)) *sim.World {
	base := load(t, name)
	return world(t, 2, name, seed, func(c *sim.Config) {
		change(&c.Profile.Up)
		change(&c.Profile.Down)
		c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Profile = base }
	})
}

// noted is how many lines of the log a node has of a link that differs, or does so no more.
func noted(w *sim.World, text, in string) (n int) {
	for _, note := range w.Notes {
		if strings.Contains(note, text) && strings.Contains(note, "in "+in) {
			n++
		}
	}
	return n
}

// TestSlowerLink: a link that has half of the rate of its profile is noticed from its traffic within eight minutes, and what goes is
// paced by what was measured. When it is as the profile says nothing is noticed, though it is full.
func TestSlowerLink(t *testing.T) {
	t.Parallel()
	links := []string{"iridium-directip", "iridium-dialup", "iridium-certus-100"} // the last one takes 25,000 messages each time
	for _, name := range links[:max(2, min(3, seeds(20)))] {
		for seed := range seeds(20) {
			for _, part := range []float64{1, 0.5} {
				w := otherLink(t, name, seed+1, func(d *profile.Direction) { d.RateBps = int(part * float64(d.RateBps)) })
				shore := (seed+uint64(len(name)))%2 == 1 // each way somewhere
				from, to := w.Nodes[1], w.Nodes[0]
				if shore {
					from, to = to, from
				}
				rate := part * float64(load(t, name).Sending(shore).RateBps)
				every := time.Duration(200 * 8 / rate * float64(time.Second))
				tracks(w, from, []uint16{to.ID}, int(8*time.Minute/every), 200, every)
				w.Run(8 * time.Minute)
				m := from.GW.Status(w.Now).Peers[0].Measured
				switch slow := slices.Contains(m.Differs, api.DiffersRate); {
				case part == 1 && len(m.Differs) > 0:
					t.Errorf("%s, seed %d, as its profile says: %+v", name, seed+1, m)
				case part == 1:
				case !slow || noted(w, "a link does not match its profile", "rate") != 1:
					t.Errorf("%s, seed %d, half as fast: %+v, %d lines in the log", name, seed+1, m, noted(w, "a link does not match its profile", "rate"))
				case float64(m.RateBps) < 0.75*rate || float64(m.RateBps) > 1.3*rate || float64(m.PaceBps) < 0.75*rate || float64(m.PaceBps) > 1.3*rate:
					t.Errorf("%s, seed %d: measured %d, paced by %d, the link has %.0f bit/s", name, seed+1, m.RateBps, m.PaceBps, rate)
				}
				if lines := noted(w, "a link does not match", "rate"); lines > 1 {
					t.Errorf("%s, seed %d: %d lines in the log", name, seed+1, lines)
				}
			}
		}
	}
}

// TestPaceBounded: a link of a twentieth of its profile's rate is paced at an eighth, and one that loses a quarter of all at its
// profile's rate goes on at that: it loses as much at a lower one.
func TestPaceBounded(t *testing.T) {
	t.Parallel()
	for seed := range seeds(20) {
		w := otherLink(t, "iridium-directip", seed+1, func(d *profile.Direction) { d.RateBps /= 20 })
		tracks(w, w.Nodes[1], []uint16{1}, 600, 200, time.Second)
		least := 4800
		for range 60 {
			w.Run(15 * time.Second)
			if m := w.Nodes[1].GW.Status(w.Now).Peers[0].Measured; m.PaceBps > 0 {
				least = min(least, m.PaceBps)
			}
		}
		if least != 600 {
			t.Errorf("seed %d: paced at %d bit/s at the least, an eighth is 600", seed+1, least)
		}
		w = otherLink(t, "iridium-directip", seed+1, func(d *profile.Direction) { d.LossPct = 25 })
		sent := tracks(w, w.Nodes[1], []uint16{1}, 3000, 200, 300*time.Millisecond)
		w.Run(15*time.Minute + time.Second)
		m := w.Nodes[1].GW.Status(w.Now).Peers[0].Measured
		if !slices.Equal(m.Differs, []string{api.DiffersLoss}) || m.LossPct < 15 || m.LossPct > 35 {
			t.Errorf("seed %d, a quarter is lost: %+v", seed+1, m)
		}
		if len(*sent) != 3000 {
			t.Errorf("%d were sent", len(*sent))
		}
	}
}

// TestLongerDelay: a round trip that takes twice as long as the profile has it is noticed from single messages that ask for
// their acknowledgements.
func TestLongerDelay(t *testing.T) {
	for _, times := range []time.Duration{1, 3} {
		w := otherLink(t, "iridium-certus-100", 1, func(d *profile.Direction) { d.Delay *= times; d.Jitter *= times })
		ship := w.Nodes[1]
		for i := range 20 {
			w.At(time.Duration(i+1)*30*time.Second, func() {
				ship.Site.Put(w, site.Item{Kind: site.Listener, Scope: "jxta-NetGroup", Owner: peerID(2), ID: fmt.Sprintf("uuid-59616261646162614E504720503250330000000000000000000000000000%04X04", i), Sub: jxtabridge.PipePropagate})
			})
		}
		w.Run(15 * time.Minute)
		m := ship.GW.Status(w.Now).Peers[0].Measured
		if differs := slices.Contains(m.Differs, api.DiffersDelay); differs != (times > 1) || m.RoundTripS == 0 {
			t.Errorf("%d times the delay: %+v", times, m)
		}
	}
}
