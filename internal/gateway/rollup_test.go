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

// inRollup has all nodes report to the first one once a period, to which further peers are nearer as to says.
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

// fleetOf is the fleet as a node knows it.
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
		s.Gateways, s.Bearers, s.Up = s.Gateways+1, s.Bearers+r.Bearers, s.Up+r.Up
		if !r.Oldest.IsZero() && (s.Oldest.IsZero() || r.Oldest.Before(s.Oldest)) {
			s.Oldest = r.Oldest
		}
		for p, n := range r.Waiting {
			s.Waiting[p] += n
		}
		if r.State == "silent" {
			s.Silent++
		}
	}
	return s
}

// The record of each gateway of a chain is at the headquarters a period and a way later, and the sum is that of the parts.
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

// rowOf is a gateway as a node knows it.
func rowOf(w *sim.World, n *sim.Node, id uint16) (row api.FleetRow) {
	for _, r := range fleetOf(w, n).Gateways {
		if r.ID == id {
			row = r
		}
	}
	return row
}

// A ship of a star that cannot be called speaks by another, changes back, and counts once all the time.
func TestRollupTakesAnotherWay(t *testing.T) {
	for seed := range seeds(5) {
		w := world(t, 4, "iridium-certus-100", seed+1, inRollup(func(id uint16) []uint16 {
			if id == 3 {
				return []uint16{2}
			}
			return nil
		}))
		apart := false
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			if apart && from.ID+to.ID == 4 && from.ID != to.ID {
				return nil
			}
			return [][]byte{data}
		}
		hq := w.Nodes[0]
		for _, part := range []struct {
			apart  bool
			parent string
		}{{false, "hq"}, {true, "ship1"}, {false, "hq"}} {
			apart = part.apart
			w.Run(30 * time.Minute)
			if part.apart {
				tracks(w, hq, []uint16{3}, 1, 200, time.Second) // so that it notices
				tracks(w, w.Nodes[2], []uint16{1}, 1, 200, time.Second)
			}
			w.Run(30 * time.Minute)
			r := rowOf(w, hq, 3)
			check.Equal(t, fmt.Sprint("seed ", seed+1, ": parent"), r.Parent, part.parent)
			check.Equal(t, "proven, and current", fmt.Sprint(r.Proven, r.State), "truecurrent")
			check.Equal(t, "gateways", fleetOf(w, hq).Sum.Gateways, 4)
		}
	}
}

// A ship that says it will be silent is silent at the headquarters, also where that is two gateways away, and not gone.
func TestRollupKnowsWhoIsSilent(t *testing.T) {
	for seed := range seeds(5) {
		w := chain(t, 3, "iridium-certus-100", seed+1, inRollup(toHQ))
		w.Run(20 * time.Minute)
		until := w.Now.Add(3 * time.Hour)
		w.Give(w.Nodes[2], api.Silence{On: true, Until: until, Announce: true})
		w.Run(time.Hour)
		r := rowOf(w, w.Nodes[0], 3)
		check.Equal(t, fmt.Sprint("seed ", seed+1, ": state"), r.State, "silent")
		if off := r.SilentUntil.Sub(until).Abs(); off > 3*time.Minute {
			t.Errorf("seed %d: silent until %v, want %v", seed+1, r.SilentUntil, until)
		}
		w.Run(2*time.Hour + 2*rollupPeriod)
		check.Equal(t, "state after", rowOf(w, w.Nodes[0], 3).State, "current")
	}
}

// The headquarters knows the last record of each gateway after its restart, and takes no older one.
func TestRollupOutlivesTheHeadquarters(t *testing.T) {
	w := chain(t, 3, "iridium-certus-100", 1, inRollup(toHQ))
	w.Run(20 * time.Minute)
	hq, away := w.Nodes[0], w.Nodes[2]
	w.Kill(away, 100*time.Hour)
	w.Run(time.Minute)
	was := rowOf(w, hq, 3)
	w.Kill(hq, time.Minute)
	w.Run(2 * time.Minute)
	r := rowOf(w, hq, 3)
	check.Equal(t, "its last record", fmt.Sprint(r.Read, r.Parent, r.Proven), fmt.Sprint(was.Read, "ship1", true))
	w.Run(30 * time.Minute)
	check.Equal(t, "state", rowOf(w, hq, 3).State, "gone")
	check.Equal(t, "of who lives", rowOf(w, hq, 2).State, "current")
}

// A gateway that takes no part drops records that come, and has nothing to show.
func TestRollupWithoutFleet(t *testing.T) {
	w := world(t, 3, "iridium-certus-100", 1, inRollup(toHQ), func(c *sim.Config) {
		configure := c.Configure
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			if configure(n, g); n.ID == 1 {
				g.Fleet = gateway.FleetConfig{}
			}
		}
	})
	w.Run(20 * time.Minute)
	st := w.Nodes[0].GW.Status(w.Now)
	check.True(t, "dropped", st.Dropped["fleet_unknown"] > 0, st.Dropped)
	check.True(t, "no fleet", st.Fleet == nil, st.Fleet)
}
