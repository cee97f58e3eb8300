package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/calendar"
)

// order gives a node's gateway an order of its operator.
func order(w *sim.World, n *sim.Node, s api.Event) {
	w.At(0, func() { w.Give(n, s) })
	w.Run(time.Millisecond)
}

// TestSilentWithALoss: a message that was lost just before the ship went silent comes once more, without being asked for.
func TestSilentWithALoss(t *testing.T) {
	for _, link := range []string{"iridium-directip", "vhf-cnr-16k"} {
		w := world(t, 3, link, 8, func(cfg *sim.Config) {
			cfg.Profile.Up.LossPct, cfg.Profile.Down.LossPct, cfg.Profile.CopyAfter = 0, 0, 0
			cfg.Group = cfg.Profile.Shared
		})
		hq, ship := w.Nodes[0], w.Nodes[2]
		ship.Site.Put(w, pipeItem(3, pipeHQ))
		w.Run(5 * time.Minute)
		before := tracks(w, hq, []uint16{3}, 3, 200, 10*time.Second)
		w.Run(40 * time.Second)
		w.Outage(ship, 3*time.Second)
		lost := track(hq.ID, pipeHQ, 3, 200)
		*before = append(*before, offered{At: w.Now, Message: lost})
		hq.Site.Send(w, lost, 3)
		w.Run(3 * time.Second)
		order(w, ship, api.Silence{On: true, Announce: true})
		w.Run(10 * time.Second)
		after := tracks(w, hq, []uint16{3}, 3, 200, 10*time.Second)
		w.Run(40 * time.Second)
		if !ship.GW.Status(w.Now).Silence.On {
			t.Fatalf("%s: the ship is not silent", link)
		}
		once(t, w, ship.Site, 1, append(*before, *after...))
	}
}

func TestSilentShip(t *testing.T) {
	for _, announced := range []bool{true, false} {
		w := world(t, 2, "iridium-directip", 8)
		hq, ship := w.Nodes[0], w.Nodes[1]
		hq.Site.Put(w, pipeItem(1, pipeHQ))
		w.Run(time.Minute)
		order(w, ship, api.Silence{On: true, Until: w.Now.Add(6 * time.Hour), Announce: announced})
		w.Run(10 * time.Second)
		up, down := w.Octets(ship)
		sent := tracks(w, hq, []uint16{2}, 60, 200, 5*time.Second)
		late := tracks(w, ship, []uint16{1}, 5, 200, time.Minute) // its own peers go on
		w.Run(30 * time.Minute)
		w.Kill(ship, time.Second) // silence survives a restart
		w.Run(5*time.Hour + 28*time.Minute)
		if now, _ := w.Octets(ship); now != up {
			t.Fatalf("announced %v: a silent ship sent %d octets", announced, now-up)
		}
		_, down2 := w.Octets(ship)
		t.Logf("announced %v: %d octets to the silent ship, %d of 60 messages there", announced, down2-down, len(ship.Site.Got))
		if announced && (len(ship.Site.Got) < 50 || down2-down > 60*330) {
			t.Errorf("%d messages there in %d octets; want most of 60, each sent once", len(ship.Site.Got), down2-down)
		}
		f := ship.GW.Status(w.Now).Silence
		check.True(t, "f.On", f.On)
		check.Equal(t, "f.Receipts", f.Acks, 1)
		check.Equal(t, "f.Messages", f.Messages, 5)
		check.True(t, "f.AirtimeS > 0", f.AirtimeS > 0, f.AirtimeS)
		w.Run(10 * time.Minute)
		once(t, w, ship.Site, 1, *sent)
		once(t, w, hq.Site, 2, *late)
		up2, _ := w.Octets(ship)
		if spent := up2 - up; spent > 2500 {
			t.Errorf("announced %v: the ship spent %d octets after its silence, want few datagrams", announced, spent)
		}
		if !announced {
			continue
		}
		notes := strings.Join(w.Notes, "\n")
		for _, want := range []string{"a peer goes silent", "a peer has ended its silence"} {
			if strings.Count(notes, want) != 1 {
				t.Errorf("%q was noted %d times, want once", want, strings.Count(notes, want))
			}
		}
	}
}

func TestSilenceOrderedOnAndOff(t *testing.T) {
	w := world(t, 2, "iridium-directip", 9)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	order(w, ship, api.Silence{On: true, Until: w.Now.Add(-time.Second)})
	if ship.GW.Status(w.Now).Silence.On {
		t.Error("a silence that has ended already was begun")
	}
	order(w, ship, api.Silence{On: true})
	sent := tracks(w, ship, []uint16{1}, 3, 200, time.Second)
	w.Run(time.Hour)
	if len(hq.Site.Got) != 0 {
		t.Error("a silent ship was heard")
	}
	order(w, ship, api.Silence{})
	w.Run(time.Minute)
	once(t, w, hq.Site, 2, *sent)
}

// A silence that was announced into a dead link and is over is not announced when the link is back.
func TestSilenceAnnouncedIntoADeadLink(t *testing.T) {
	w := world(t, 2, "iridium-directip", 10)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	w.Outage(ship, 5*time.Minute)
	sent := tracks(w, ship, []uint16{1}, 3, 200, time.Second)
	w.Run(2 * time.Minute)
	if link := ship.GW.Status(w.Now).Peers[0].Link; link != "silent" {
		t.Fatalf("the link is %q, want it dead", link)
	}
	order(w, ship, api.Silence{On: true, Announce: true})
	w.Run(time.Minute)
	order(w, ship, api.Silence{})
	w.Run(5 * time.Minute)
	once(t, w, hq.Site, 2, *sent)
	if notes := strings.Join(w.Notes, "\n"); strings.Contains(notes, "a peer goes silent") {
		t.Errorf("HQ was told of a silence that was over\n%s", tail(w.Notes))
	}
}

// The edge is told of each silence that begins, by an order and by a window, on all bearers: datagrams of earlier Steps that still wait there
// for a commit are not to leave.
func TestTheEdgeLearnsOfASilence(t *testing.T) {
	l := newLone(t)
	l.cfg.Windows = calendar.Windows{calendar.Window{Begins: noon.Add(10 * time.Minute), Ends: noon.Add(20 * time.Minute)}}
	l.start(noon, 0)
	for _, c := range []struct {
		after time.Duration
		ev    api.Event
		told  bool
	}{
		{1 * time.Minute, nil, false},
		{2 * time.Minute, api.Silence{On: true}, true},
		{3 * time.Minute, api.Silence{On: true, Until: noon.Add(time.Hour)}, false}, // it is silent already
		{4 * time.Minute, api.Silence{}, false},
		{5 * time.Minute, api.Silence{On: true, Until: noon.Add(6 * time.Minute)}, true},
		{7 * time.Minute, nil, false},
		{10 * time.Minute, nil, true},
		{21 * time.Minute, nil, false},
	} {
		out := l.gw.Step(noon.Add(c.after), c.ev)
		check.Equal(t, "told after "+c.after.String(), slices.Equal(out.Silent, []int{0}), c.told)
	}
}
