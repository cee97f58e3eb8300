package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// inCustody has every node in a group, while what peers publish stays in custody.
func inCustody(c *sim.Config) {
	inGroup(c)
	c.Profile.Transport, c.Group = profile.PMul, true
	c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Groups = []gateway.GroupConfig{{Name: ops}} }
}

// A ship is destroyed when one of those whom it has told has its messages. The others get them all the same, and once.
func TestCustodyOfASunkenShipIsRepairedByANeighbour(t *testing.T) {
	for _, p := range []string{"hf-2400", "vhf-cnr-16k"} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprint(p, " ", seed+1), func(t *testing.T) {
				t.Parallel()
				w := world(t, 5, p, seed+1, inCustody)
				w.Run(10 * time.Minute)
				ship, near := w.Nodes[1], w.Nodes[2]
				heard := map[*sim.Node]bool{near: true}
				w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
					if from == ship && !heard[to] {
						return nil
					}
					return [][]byte{data}
				}
				for i, octets := range []int{200, 900} {
					ship.Site.Send(w, track(2, pipeHQ, i, octets), 1, 3, 4, 5)
				}
				for len(near.Site.Got) < 2 {
					w.Run(time.Second)
				}
				w.Kill(ship, 1000*time.Hour)
				w.Run(time.Hour)
				for _, n := range w.Nodes {
					if n != ship {
						check.Equal(t, "messages at "+n.Name, len(n.Site.Got), 2)
					}
				}
				before := sentByAll(w)
				w.Run(3 * time.Hour)
				t.Logf("%d octets in three hours after all have them", sentByAll(w)-before)
				for _, n := range w.Nodes {
					if n != ship {
						check.Equal(t, "messages at "+n.Name+" later", len(n.Site.Got), 2)
					}
				}
			})
		}
	}
}

// A ship falls silent whose messages all have, though most of them have told it alone. What the others say then is bounded: some acknowledgements are lost.
func TestWhatAllHaveHardlyGoesAgain(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			t.Parallel()
			w := world(t, 12, "hf-2400", seed+1, inCustody)
			w.Run(20 * time.Minute)
			ship := w.Nodes[1]
			to := []uint16{1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
			again := 0
			w.Tap = func(_, to *sim.Node, data []byte) [][]byte {
				if _, is := seal.Original(data); is && to == ship {
					again++
				}
				return [][]byte{data}
			}
			for i := range 12 {
				ship.Site.Send(w, track(2, pipeHQ, i, 200), to...)
				w.Run(time.Minute)
			}
			w.Run(10 * time.Minute)
			w.Kill(ship, 1000*time.Hour)
			before := sentByAll(w)
			w.Run(4 * time.Hour)
			for _, n := range w.Nodes {
				if n != ship {
					check.Equal(t, "messages at "+n.Name, len(n.Site.Got), 12)
				}
			}
			t.Logf("%d datagrams again, %d octets of all in four hours", again, sentByAll(w)-before)
			check.True(t, "no more goes again than two datagrams for each message", again <= 2*12)
		})
	}
}

// What was recorded and is transmitted again much later is acknowledged and not read again, and a net without groups transmits nothing of
// others.
func TestWhatGoesAgainIsReadOnce(t *testing.T) {
	for _, groups := range []bool{true, false} {
		w := world(t, 3, "vhf-cnr-16k", 3, inCustody, func(c *sim.Config) {
			if !groups {
				c.Configure = nil
			}
		})
		w.Run(10 * time.Minute)
		ship, other := w.Nodes[1], w.Nodes[2]
		var recorded [][]byte
		again := 0
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			_, is := seal.Original(data)
			if is && to == ship {
				again++
			}
			if from == ship && to == other && !is {
				recorded = append(recorded, data)
			}
			if from == ship && to == w.Nodes[0] && len(ship.Site.Got) == 0 {
				return nil
			}
			return [][]byte{data}
		}
		ship.Site.Send(w, track(2, pipeHQ, 0, 200), 1, 3)
		for len(other.Site.Got) == 0 {
			w.Run(time.Second)
		}
		w.Kill(ship, 1000*time.Hour)
		w.Run(time.Hour)
		check.Equal(t, "datagrams again, with groups or without", again > 0, groups)
		check.Equal(t, "messages at who had not heard it", len(w.Nodes[0].Site.Got) == 1, groups)
		for range 3 {
			for _, data := range recorded {
				w.Inject(other, seal.Again(data))
			}
			w.Run(13 * time.Hour)
		}
		check.Equal(t, "messages at who had", len(other.Site.Got), 1)
	}
}
