package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

const rollupPeriod = 5 * time.Minute

// inRollup has all nodes say what they are to the first one once a period, to which further peers are nearer as to says.
func inRollup(to func(id uint16) []uint16) func(*sim.Config) {
	return func(c *sim.Config) {
		before := c.Configure
		c.Roster = true
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			if before != nil {
				before(n, g)
			}
			g.Fleet = gateway.FleetConfig{Period: rollupPeriod, Version: 2}
			if n.ID != 1 {
				g.Fleet.To = append([]uint16{1}, to(n.ID)...)
			}
		}
	}
}

func toHQ(uint16) []uint16 { return nil }

// fleetOf is what a node knows of the fleet.
func fleetOf(w *sim.World, n *sim.Node) api.FleetStatus {
	if f := n.GW.Status(w.Now).Fleet; f != nil {
		return *f
	}
	return api.FleetStatus{}
}

// sumOf adds up the rows that have a record.
func sumOf(f api.FleetStatus) (s api.FleetSum) {
	s.Waiting = map[string]int{}
	for _, r := range f.Gateways {
		if r.State == "unheard" {
			continue
		}
		s.Gateways, s.Bearers, s.Up, s.OldestS = s.Gateways+1, s.Bearers+r.Bearers, s.Up+r.Up, max(s.OldestS, r.OldestS)
		for p, n := range r.Waiting {
			s.Waiting[p] += n
		}
		if r.State == "silent" {
			s.Silent++
		}
	}
	return s
}

// What each gateway of a chain says of itself is at the headquarters a period and a way later, and the sum is that of the parts.
func TestRollupClimbsAChain(t *testing.T) {
	for _, name := range []string{"iridium-certus-100", "hf-2400"} {
		for seed := range seeds(5) {
			w := chain(t, 5, name, seed+1, inRollup(toHQ))
			w.Run(20 * time.Minute)
			for range 12 {
				w.Run(time.Minute)
				f := fleetOf(w, w.Nodes[0])
				check.Equal(t, fmt.Sprint(name, ", seed ", seed+1, ": the sum"), fmt.Sprint(f.Sum), fmt.Sprint(sumOf(f)))
				check.Equal(t, "gateways", f.Sum.Gateways, 5)
				for i, r := range f.Gateways {
					if most := rollupPeriod + time.Duration(i+1)*rollupPeriod/8; r.State != "current" || !r.Proven || r.AgeS > most.Seconds() {
						t.Errorf("%s, seed %d: %s is %s, proven %v, %.0f s old", name, seed+1, r.Site, r.State, r.Proven, r.AgeS)
					}
					if i > 0 {
						check.Equal(t, "parent of "+r.Site, r.Parent, w.Nodes[i-1].Name)
					}
				}
			}
		}
	}
}

// The counts of a record are those of the gateway's own status.
func TestRollupSaysWhatWaits(t *testing.T) {
	w := world(t, 3, "iridium-certus-100", 1, inRollup(toHQ))
	w.Run(10 * time.Minute)
	away := w.Nodes[2]
	w.Cut(0, away, true)
	tracks(w, w.Nodes[0], []uint16{3}, 7, 200, time.Second)
	w.Run(10 * time.Minute)
	f := fleetOf(w, w.Nodes[0])
	own := f.Gateways[slices.IndexFunc(f.Gateways, func(r api.FleetRow) bool { return r.ID == 1 })]
	waiting, underWay, _ := w.Nodes[0].GW.Status(w.Now).Peers[1].Messages()
	check.Equal(t, "routine messages", own.Waiting["routine"], waiting)
	check.Equal(t, "of the seven", waiting+underWay, 7)
	check.Equal(t, "in the sum", f.Sum.Waiting["routine"], waiting)
	w.Run(15 * time.Minute)
	f = fleetOf(w, w.Nodes[0])
	row := f.Gateways[2]
	check.Equal(t, "state of who is away", row.State, "gone")
	check.Equal(t, "its last record is there", row.AgeS > 1500 && f.Sum.Gateways == 3, true)
	w.Cut(0, away, false)
	w.Run(rollupPeriod + time.Minute)
	check.Equal(t, "state when it is back", fleetOf(w, w.Nodes[0]).Gateways[2].State, "current")
}
