package gateway_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// mulWorld is n nodes on a channel with a group's address and P_Mul.
func mulWorld(t *testing.T, n int, seed uint64, change ...func(*sim.Config)) *sim.World {
	return world(t, n, "hf-2400", seed, append([]func(*sim.Config){func(c *sim.Config) {
		c.Profile.Transport, c.Group = profile.PMul, true
	}}, change...)...)
}

func TestMulGroup(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := mulWorld(t, 4, seed)
			hq, a := w.Nodes[0], w.Nodes[1]
			hq.Site.Put(w, pipeItem(1, pipeHQ))
			w.Run(3 * time.Minute)
			before := sentByAll(w)
			down := tracks(w, hq, []uint16{2, 3, 4}, 20, 200, 20*time.Second)
			up := tracks(w, a, []uint16{1}, 5, 3000, time.Minute)
			w.Run(15 * time.Minute)
			for _, n := range w.Nodes[1:] {
				latency := once(t, w, n.Site, 1, *down)
				t.Logf("%s: median %v, worst %v", n.Name, latency[10], latency[19])
				if len(n.Site.Far[1]) != 1 {
					t.Errorf("%s knows %d items of HQ, want 1", n.Name, len(n.Site.Far[1]))
				}
			}
			once(t, w, hq.Site, 2, *up)
			t.Logf("%d octets on the air for 20 x 3 x 200 and 5 x 3000", sentByAll(w)-before)
			for _, p := range hq.GW.Status(w.Now).Peers {
				if p.Delivered != 20 || p.Expired != 0 {
					t.Errorf("HQ knows %d delivered and %d expired at %s, want 20 and 0", p.Delivered, p.Expired, p.Name)
				}
			}
		})
	}
}

// A gateway that starts silent sends nothing that the journal or its adapters have for the link at once.
func TestMulStartsSilent(t *testing.T) {
	for _, begun := range []bool{false, true} {
		w := mulWorld(t, 2, 6)
		ship := w.Nodes[1]
		w.Run(5 * time.Minute)
		if begun { // a message is under way
			ship.Site.Send(w, track(2, pipeHQ, 0, 3000), 1)
			w.Run(3 * time.Second)
		}
		w.Reconfigure(ship, func(c *gateway.Config) { c.Silent = true })
		w.Kill(ship, time.Minute)
		ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1) // its adapter has it for the first Step
		w.Run(30 * time.Second)
		up, _ := w.Octets(ship)
		w.Run(time.Hour)
		now, _ := w.Octets(ship)
		check.Equal(t, fmt.Sprint("octets of a silent ship, with a message under way: ", begun), now-up, 0)
		check.Equal(t, "it is silent", ship.GW.Status(w.Now).Silence.Fixed, true)
	}
}

func TestMulSilentShip(t *testing.T) {
	w := mulWorld(t, 3, 6) // of 40 seeds, 36 have all in order: a message that is lost with all its copies comes hours later
	hq, loud, quiet := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	w.Run(2 * time.Minute)
	order(w, quiet, api.Silence{On: true, Until: w.Now.Add(6 * time.Hour), Announce: true})
	w.Run(10 * time.Second)
	up, _ := w.Octets(quiet)
	hq.Site.Put(w, pipeItem(1, pipeHQ)) // state reaches the silent too
	sent := tracks(w, hq, []uint16{2, 3}, 30, 200, 30*time.Second)
	w.Run(2 * time.Hour)
	w.Kill(quiet, time.Second)
	w.Run(2 * time.Hour)
	once(t, w, quiet.Site, 1, *sent)
	once(t, w, loud.Site, 1, *sent)
	if len(quiet.Site.Far[1]) != 1 {
		t.Error("a silent ship has not learned HQ's pipe")
	}
	if now, _ := w.Octets(quiet); now != up {
		t.Fatalf("a silent ship sent %d octets", now-up)
	}
	if f := quiet.GW.Status(w.Now).Silence; f.Acks != 31 || f.Datagrams == 0 {
		t.Errorf("forecast %+v, want 31 acknowledgements", f)
	}
	w.Run(3 * time.Hour)
	now, _ := w.Octets(quiet)
	t.Logf("%d octets sent after the silence", now-up)
	if now-up > 600 {
		t.Errorf("%d octets after the silence for 31 acknowledgements, want them packed", now-up)
	}
	for _, p := range hq.GW.Status(w.Now).Peers {
		if p.Delivered != 30 {
			t.Errorf("HQ knows %d delivered at %s, want 30", p.Delivered, p.Name)
		}
	}
}

func TestMulCrashes(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := mulWorld(t, 3, seed, func(c *sim.Config) { c.CrashAfterCommit, c.CrashBeforeCommit = 0.01, 0.01 })
			hq, a, b := w.Nodes[0], w.Nodes[1], w.Nodes[2]
			hq.Site.Put(w, pipeItem(1, pipeHQ))
			down := tracks(w, hq, []uint16{2, 3}, 20, 200, 30*time.Second)
			up := tracks(w, a, []uint16{1, 3}, 10, 700, time.Minute)
			w.Run(time.Hour)
			w.EndCrashes()
			w.Run(3 * time.Hour)
			once(t, w, a.Site, 1, *down)
			once(t, w, b.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			once(t, w, b.Site, 2, *up)
			if !reflect.DeepEqual(a.Site.Far[1], hq.Site.Items) || !reflect.DeepEqual(b.Site.Far[1], hq.Site.Items) {
				t.Error("copies of HQ's state differ")
			}
		})
	}
}

func TestMulLostStore(t *testing.T) {
	w := mulWorld(t, 2, 3)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	tracks(w, hq, []uint16{2}, 10, 200, 10*time.Second)
	w.Run(5 * time.Minute)
	w.LoseStore(ship)
	w.Kill(ship, time.Second)
	w.Run(3 * time.Minute)
	ship.Site.Got = nil
	down := tracks(w, hq, []uint16{2}, 10, 200, 10*time.Second)
	up := tracks(w, ship, []uint16{1}, 10, 200, 10*time.Second)
	w.Run(20 * time.Minute)
	once(t, w, ship.Site, 1, *down)
	once(t, w, hq.Site, 2, *up)
	if len(ship.Site.Far[1]) != 1 {
		t.Errorf("after a lost store the ship knows %d items, want 1\n%s", len(ship.Site.Far[1]), tail(w.Notes))
	}
	if strings.Contains(strings.Join(w.Notes, "\n"), "cannot be read") {
		t.Errorf("unreadable messages\n%s", tail(w.Notes))
	}
}
