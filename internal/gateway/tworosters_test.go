package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/keys"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
)

// disputes says which nodes have named two rosters of one serial in their log.
func disputes(w *sim.World) string {
	var names []string
	for _, n := range w.Nodes {
		for _, text := range []string{"the authority signed two rosters with one serial", "a peer has another roster with the same serial"} {
			if strings.Contains(strings.Join(w.Notes, "\n"), n.Name+" error: "+text) {
				names = append(names, n.Name)
				break
			}
		}
	}
	return strings.Join(names, " ")
}

// split gives one half of a network a roster without the last node, and the other half one of the same serial that names all, while the
// two halves do not hear each other. byHand: the second is put in the place of the configuration's instead.
func split(w *sim.World, byHand bool) {
	hq, other := w.Nodes[0], w.Nodes[1]
	w.Outage(other, 5*time.Minute)
	one := w.Roster(w.First(), time.Time{}, w.Nodes[:len(w.Nodes)-1]...)
	two := w.Roster(w.First(), time.Time{}, w.Nodes...)
	w.Give(hq, gateway.NewRoster{Roster: one})
	if !byHand {
		w.Give(other, gateway.NewRoster{Roster: two})
	} else {
		startWith(w, other, two)
	}
	w.Run(5*time.Minute - time.Second)
}

// startWith kills a node and starts it again with another roster in its configuration.
func startWith(w *sim.World, n *sim.Node, r *roster.Roster) {
	w.Reconfigure(n, func(c *gateway.Config) {
		trust := *c.Trust
		trust.Roster = r
		c.Trust = &trust
	})
	w.Kill(n, time.Second)
}

// rostersOf are how many rosters of a serial a node's journal has.
func rostersOf(n *sim.Node, serial uint32) (count int) {
	for _, r := range n.Journal() {
		if is, err := roster.Parse(r.Value); r.Bucket == keys.BucketRoster && err == nil && is.Serial == serial {
			count++
		}
	}
	return count
}

// Two rosters of one serial are named at every gateway when they hear of each other. A node that a roster has taken out is not heard
// any more by anybody. A higher serial ends it.
func TestTwoRostersOfOneSerial(t *testing.T) {
	for _, group := range []bool{false, true} {
		for _, byHand := range []bool{false, true} {
			in := check.In(t, fmt.Sprint("group ", group, ", by hand ", byHand))
			var w *sim.World
			if group {
				w = mulWorld(t, 4, 1, withRoster)
			} else {
				w = world(t, 4, "iridium-directip", 1, withRoster)
			}
			hq, other, bad := w.Nodes[0], w.Nodes[1], w.Nodes[3]
			w.Run(10 * time.Minute)
			split(w, byHand)
			if w.Run(5 * time.Minute); group && byHand { // a node that begins with a roster alone is greeted alone after three greetings
				w.Run(40 * time.Minute)
			}
			check.True(in, "every node that both name says it", strings.HasPrefix(disputes(w), "hq ship1 ship2"), disputes(w))
			got := len(other.Site.Got)
			tracks(w, bad, []uint16{1, 2, 3}, 5, 200, 10*time.Second)
			sent := tracks(w, hq, []uint16{2, 3}, 5, 200, 10*time.Second)
			w.Run(20 * time.Minute)
			once(t, w, w.Nodes[2].Site, 1, *sent)
			once(t, w, other.Site, 1, *sent)
			check.Equal(in, "messages of the one that is out", len(other.Site.Got), got+len(*sent))
			for _, n := range w.Nodes[:3] {
				s := n.GW.Status(w.Now)
				check.True(in, n.Name+" shows two digests", s.Roster.Differs && len(s.Roster.Digests) == 2, s.Roster)
				check.Equal(in, n.Name+" shows the link to the one that is out", s.Peers[2].Link, "gone")
			}
			w.Kill(other, time.Second)
			w.Run(10 * time.Minute)
			check.True(in, "after a restart too", len(other.GW.Status(w.Now).Roster.Digests) == 2)
			next := w.Roster(w.Roster(w.First(), time.Time{}, w.Nodes[:3]...), time.Time{}, w.Nodes[:3]...)
			if byHand {
				w.Give(other, gateway.NewRoster{Roster: next})
			} else {
				w.Give(hq, gateway.NewRoster{Roster: next})
			}
			if w.Run(time.Minute); group {
				w.Run(time.Hour)
			}
			for _, n := range w.Nodes[:3] {
				s := n.GW.Status(w.Now).Roster
				check.True(in, n.Name+" goes by the third", s.Serial == 3 && len(s.Digests) == 1 && !s.Differs, s)
			}
			for _, left := range []int{2, 2, 1, 0} { // of the two in the journals, while newer rosters push them out
				check.Equal(in, "rosters of serial 2 that hq has", rostersOf(hq, 2), left)
				next = w.Roster(next, time.Time{}, w.Nodes[:3]...)
				w.Give(hq, gateway.NewRoster{Roster: next})
				w.Run(time.Minute)
			}
		}
	}
}

// A node that one of the two has taken out talks all the time. From the moment at which a gateway knows of both rosters it hears
// nothing more of it, and it knows both within seconds of the first datagram between the two halves.
func TestTwoRostersEndWhoIsOut(t *testing.T) {
	for seed := range uint64(5) {
		in := check.In(t, fmt.Sprint("seed ", seed))
		w := world(t, 4, "iridium-directip", seed, withRoster)
		hq, other, bad := w.Nodes[0], w.Nodes[1], w.Nodes[3]
		w.Run(10 * time.Minute)
		cut := true
		var joined, knew time.Time
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			if from.ID%2 == to.ID%2 { // of one half
				return [][]byte{data}
			}
			if cut {
				return nil
			}
			if to == other && joined.IsZero() {
				joined = w.Now
			}
			return [][]byte{data}
		}
		tracks(w, bad, []uint16{2}, 600, 200, time.Second)
		w.Give(hq, gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes[:3]...)})
		w.Give(other, gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes...)})
		w.Run(5 * time.Minute)
		cut = false
		heard := func() int { return len(other.Site.Got) }
		check.True(in, "it is heard until then", heard() > 100, heard())
		for knew.IsZero() {
			w.Run(100 * time.Millisecond)
			if s := other.GW.Status(w.Now).Roster; len(s.Digests) == 2 {
				knew = w.Now
			}
			check.True(check.Fatal(t), "it is known within a minute", joined.IsZero() || w.Now.Sub(joined) < time.Minute)
		}
		before := heard()
		w.Run(5 * time.Minute)
		t.Logf("seed %d: %d messages heard before, both rosters known %v after the first datagram between the halves", seed, before, knew.Sub(joined))
		check.Equal(in, "heard since", heard(), before)
	}
}

// Gateways that were given the two rosters by hand say so with their first greetings, and tell the third.
func TestTwoRostersWithinAGreeting(t *testing.T) {
	w := world(t, 3, "iridium-directip", 1, withRoster, func(c *sim.Config) {
		for _, d := range []*profile.Direction{&c.Profile.Up, &c.Profile.Down, &c.Wire.Up, &c.Wire.Down} {
			d.LossPct, d.Fades = 0, profile.Fades{}
		}
	})
	rosters := []*roster.Roster{w.Roster(nil, time.Time{}, w.Nodes...), w.Roster(nil, time.Time{}, w.Nodes...)}
	for i, n := range w.Nodes[:2] {
		startWith(w, n, rosters[i])
	}
	w.Run(15 * time.Second)
	check.Equal(t, "who names it", disputes(w), "hq ship1 ship2")
}

// A gateway that has gone on to the next serial while it was cut off tells it as a change of a roster that the other has not: the
// whole follows at once.
func TestTwoRostersThenTheNext(t *testing.T) {
	w := world(t, 3, "iridium-directip", 1, withRoster)
	w.Run(10 * time.Minute)
	hq, other := w.Nodes[0], w.Nodes[1]
	w.Outage(other, 5*time.Minute)
	one := w.Roster(w.First(), time.Time{}, w.Nodes...)
	w.Give(hq, gateway.NewRoster{Roster: one})
	w.Give(other, gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes[:2]...)})
	w.Run(time.Minute)
	startWith(w, hq, w.Roster(one, time.Time{}, w.Nodes...))
	w.Run(6 * time.Minute)
	for _, n := range w.Nodes {
		s := n.GW.Status(w.Now).Roster
		check.True(t, n.Name+" goes by the third", s.Serial == 3 && !s.Differs, s)
	}
}
