package gateway_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// The state of a site crosses a relay as that site's, withdrawals too, and while relay and ends die. A site that has lost its
// store gets all of it again.
func TestStateCrossesARelay(t *testing.T) {
	for _, name := range []string{"iridium-certus-100", "hf-2400"} {
		for seed := range seeds(20) {
			w := chain(t, 3, name, seed+1)
			a, b, c := w.Nodes[0], w.Nodes[1], w.Nodes[2]
			is := func(when string) {
				t.Helper()
				in := check.In(t, fmt.Sprint(name, ", seed ", seed+1, ": ", when))
				for _, pair := range [][2]*sim.Node{{a, c}, {c, a}, {b, a}, {a, b}} {
					check.True(in, fmt.Sprintf("%s knows the state of %s", pair[1].Name, pair[0].Name), reflect.DeepEqual(pair[1].Site.Far[pair[0].ID], pair[0].Site.Items), pair[1].Site.Far[pair[0].ID])
				}
			}
			for i, n := range w.Nodes {
				n.Site.Put(w, pipeItem(n.ID, pipeHQ))
				w.At(time.Duration(i)*time.Second, func() { n.Site.Put(w, pipeItem(10+n.ID, pipeShip)) })
			}
			w.Run(30 * time.Minute)
			is("at first")
			gone := pipeItem(1, pipeHQ)
			gone.Gone = true
			a.Site.Put(w, gone)
			w.At(2*time.Second, func() { w.Kill(b, 20*time.Second) })
			w.At(3*time.Second, func() { w.Kill(c, 5*time.Second); c.Site.Far = nil })
			w.Run(time.Hour)
			is("after a withdrawal, and deaths")
			c.SetJournal(map[string]api.Record{})
			w.Kill(c, time.Second)
			c.Site.Far = nil
			a.Site.Put(w, pipeItem(77, pipeHQ))
			w.Run(2 * time.Hour)
			is("after a lost store")
		}
	}
}

// An end or the relay is put back to an older copy of its data. Messages sent from then on arrive once, both ways, and are not taken
// for earlier ones.
func TestPutBackOverARelay(t *testing.T) {
	for victim := range 3 {
		for _, missed := range []int{3, 40} {
			for seed := range seeds(20) {
				name := fmt.Sprintf("node %d is put back by %d messages, seed %d", victim+1, missed, seed+1)
				w := chain(t, 3, "iridium-certus-100", seed+1)
				a, c := w.Nodes[0], w.Nodes[2]
				tracks(w, a, []uint16{3}, 20, 60, 2*time.Second)
				tracks(w, c, []uint16{1}, 20, 60, 3*time.Second)
				w.Run(20 * time.Minute)
				data := w.Nodes[victim].Journal()
				tracks(w, a, []uint16{3}, missed, 60, 2*time.Second)
				tracks(w, c, []uint16{1}, missed, 60, 3*time.Second)
				w.Run(20 * time.Minute)
				check.Equal(t, name+": messages before, each way", [2]int{len(a.Site.Got), len(c.Site.Got)}, [2]int{20 + missed, 20 + missed})
				a.Site.Got, c.Site.Got = nil, nil
				w.Nodes[victim].SetJournal(data)
				w.Kill(w.Nodes[victim], 5*time.Second)
				w.Run(6 * time.Second)
				up := tracks(w, a, []uint16{3}, 50, 200, 2*time.Second)
				down := tracks(w, c, []uint16{1}, 50, 200, 2*time.Second)
				w.Run(2 * time.Hour)
				once(t, w, c.Site, 1, *up)
				once(t, w, a.Site, 3, *down)
				for _, n := range []*sim.Node{a, c} {
					for _, p := range n.GW.Status(w.Now).Peers {
						check.Equal(t, fmt.Sprint(name, ": waiting and under way at ", n.Name, " for ", p.Name), p.Waiting+p.UnderWay, 0)
					}
				}
			}
		}
	}
}
