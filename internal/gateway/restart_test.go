package gateway_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

func TestCrashesLoseNothingAndRepeatNothing(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := world(t, 2, "iridium-directip", seed, func(c *sim.Config) { c.CrashAfterCommit, c.CrashBeforeCommit = 0.02, 0.02 })
			hq, ship := w.Nodes[0], w.Nodes[1]
			hq.Site.Put(w, pipeItem(1, pipeHQ))
			down := tracks(w, hq, []uint16{2}, 50, 200, 5*time.Second)
			up := tracks(w, ship, []uint16{1}, 50, 1500, 15*time.Second)
			w.Run(20 * time.Minute)
			w.EndCrashes()
			w.Run(10 * time.Minute)
			once(t, w, ship.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			if !reflect.DeepEqual(ship.Site.Far[1], hq.Site.Items) {
				t.Errorf("the ship knows %v of HQ, want %v", ship.Site.Far[1], hq.Site.Items)
			}
		})
	}
}

func TestHandedOverAfterARestart(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1)
	hq, ship := w.Nodes[0], w.Nodes[1]
	ship.Site.Keep = true // its peers are away
	down := tracks(w, hq, []uint16{2}, 5, 200, time.Second)
	w.Run(time.Minute)
	w.Kill(ship, time.Second)
	w.Run(time.Minute)
	once(t, w, ship.Site, 1, *down)
	if n := ship.GW.Status(w.Now).Peers[0].Pending; n != 5 {
		t.Errorf("%d messages wait for local peers after the restart, want 5", n)
	}
	ship.Site.Release(w)
	w.Run(time.Second)
	w.Kill(ship, time.Second)
	w.Run(time.Minute)
	if n := ship.GW.Status(w.Now).Peers[0].Pending; n != 0 {
		t.Errorf("%d messages wait after all were handed over, want none", n)
	}
}

func TestLostStore(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := world(t, 2, "iridium-directip", seed)
			hq, ship := w.Nodes[0], w.Nodes[1]
			hq.Site.Put(w, pipeItem(1, pipeHQ))
			ship.Site.Put(w, pipeItem(2, pipeShip))
			tracks(w, hq, []uint16{2}, 20, 200, time.Second)
			w.Run(40 * time.Second)
			lost := w.Nodes[seed%2]
			w.LoseStore(lost)
			w.Kill(lost, time.Second)
			w.Run(30 * time.Second)
			hq.Site.Got, ship.Site.Got = nil, nil
			down := tracks(w, hq, []uint16{2}, 20, 200, time.Second)
			up := tracks(w, ship, []uint16{1}, 20, 200, time.Second)
			w.Run(3 * time.Minute)
			once(t, w, ship.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			if len(ship.Site.Far[1]) != 1 || len(hq.Site.Far[2]) != 1 {
				t.Errorf("after a lost store: %d and %d items known, want one each", len(ship.Site.Far[1]), len(hq.Site.Far[2]))
			}
		})
	}
}

// Gateways that crash at any commit: every message ends once, each precedence stays in order, the newest of each track
// arrives, and messages that expire do not arrive.
func TestCrashesOfTheQueue(t *testing.T) {
	for seed := range uint64(4) {
		w := world(t, 2, "iridium-dialup", 300+seed, urgency(t), func(c *sim.Config) { c.CrashBeforeCommit, c.CrashAfterCommit = 0.01, 0.01 })
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.At(2*time.Minute, func() { w.Outage(ship, 4*time.Minute) })
		for i := range 300 {
			w.At(time.Duration(i)*1500*time.Millisecond, func() {
				switch i % 4 {
				case 0:
					ship.Site.Send(w, named("track", fmt.Sprintf("TRK;T-%d;update=%03d;", i%20, i), 80), 1)
				case 1:
					ship.Site.Send(w, named("old", fmt.Sprintf("OLD;%03d;", i), 80), 1)
				case 2:
					ship.Site.Send(w, named("low", fmt.Sprintf("LOW;%03d;", i), 80), 1)
				case 3:
					ship.Site.Send(w, track(2, pipeShip, i, 60), 1)
				}
			})
		}
		w.Run(40 * time.Minute)
		last, count := map[string]int{}, map[string]int{} // of each kind, and of each track
		for _, g := range hq.Site.Got {
			e := g.Payload.Parts[0]
			fields := strings.Split(string(e.Data), ";")
			what, number := e.Name, fields[1]
			if e.Name == "track" {
				what, number = fields[1], strings.TrimPrefix(fields[2], "update=")
			}
			i, err := strconv.Atoi(number)
			if before, ok := last[what]; err != nil || ok && before >= i {
				t.Errorf("seed %d: %s %q behind %d", seed, what, number, before)
			}
			last[what] = i
			count[e.Name]++
		}
		for id, want := range map[string]int{"T-0": 280, "T-4": 284, "T-8": 288, "T-12": 292, "T-16": 296} {
			if got := last[id]; got != want {
				t.Errorf("seed %d: track %s ends with %d, want %d", seed, id, got, want)
			}
		}
		in := check.In(t, "seed", seed)
		check.Equal(in, `count["low"]`, count["low"], 75)
		check.Equal(in, `count["body"]`, count["body"], 75)
		check.True(in, `count["old"] < 75`, count["old"] < 75, count["old"])
		check.True(in, `count["old"] >= 20`, count["old"] >= 20, count["old"])
		if s := ship.GW.Status(w.Now).Peers[0]; s.Waiting+s.UnderWay > 0 {
			t.Errorf("seed %d: %d waiting, %d under way at last", seed, s.Waiting, s.UnderWay)
		}
	}
}
