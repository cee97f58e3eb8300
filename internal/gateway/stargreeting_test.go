package gateway_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

func ashore(c *sim.Config) { c.Ashore = true }

// noLoss takes chance off the link.
func noLoss(c *sim.Config) { c.Profile.Up.LossPct, c.Profile.Down.LossPct = 0, 0 }

// linkTo is a peer in a node's status.
func linkTo(w *sim.World, n *sim.Node, peer uint16) (p api.PeerStatus) {
	for _, p = range n.GW.Status(w.Now).Peers {
		if p.ID == peer {
			return p
		}
	}
	return api.PeerStatus{}
}

// TestStarGreeting: sixteen ships that start together greet their shore and not each other, and say nothing in the day after. Nobody
// takes the others for lost.
func TestStarGreeting(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		_, octets, err := air.Greeting(context.Background(), "iridium-directip", seed, 17)
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("seed %d: %d octets", seed, octets); octets > 8000 {
			t.Errorf("seed %d: %d octets, want at most 8,000", seed, octets)
		}
	}
	w := world(t, 17, "iridium-directip", 1, ashore)
	w.Run(time.Hour)
	before := sentByAll(w)
	w.Run(24 * time.Hour)
	check.Equal(t, "octets in a day", sentByAll(w)-before, 0)
	for _, n := range w.Nodes {
		for _, p := range n.GW.Status(w.Now).Peers {
			want := "unmet"
			if n.ID == 1 || p.ID == 1 {
				want = "up"
			}
			check.Equal(t, "link of "+n.Name+" to "+p.Name, p.Link, want)
		}
	}
}

// TestFirstMessageOfAPair: two ships that have never met. The first message takes one round trip more than between ships that have, and
// the greeting costs no other pair anything; then all is as between others. A ship that does not answer is asked, and then said to be missing.
func TestFirstMessageOfAPair(t *testing.T) {
	const octets = 200
	for _, link := range []string{"iridium-directip", "iridium-dialup", "iridium-certus-100", "geo-satcom-128k"} {
		var took [2]time.Duration
		var sent [2]int64
		for i, change := range []func(*sim.Config){func(*sim.Config) {}, ashore} {
			w := world(t, 4, link, 70, change, noLoss)
			ship, other := w.Nodes[1], w.Nodes[2]
			w.Run(5 * time.Minute)
			before := sentByAll(w)
			first := tracks(w, ship, []uint16{3}, 1, octets, time.Second)
			w.Run(5 * time.Minute)
			took[i] = once(t, w, other.Site, 2, *first)[0]
			sent[i] = sentByAll(w) - before
			check.Equal(t, link+": the link", linkTo(w, ship, 3).Link, "up")
			more := tracks(w, other, []uint16{2}, 5, octets, 10*time.Second)
			w.Run(5 * time.Minute)
			once(t, w, ship.Site, 3, *more)
			if i == 1 {
				check.Equal(t, link+": the link to the one who had no part", linkTo(w, ship, 4).Link, "unmet")
			}
		}
		p := load(t, link)
		trip := 2 * (p.Up.Delay + p.Up.Jitter + p.Down.Delay + p.Down.Jitter + p.Bundle + p.Airtime(p.Up, octets) + p.Airtime(p.Down, octets))
		t.Logf("%s: %v and %d octets, %v and %d between ships that have met; a round trip takes up to %v", link, took[1], sent[1], took[0], sent[0], trip)
		if took[1] > took[0]+trip {
			t.Errorf("%s: the first message took %v, want at most %v and a round trip, %v", link, took[1], took[0], trip)
		}
		if sent[1] > sent[0]+500 {
			t.Errorf("%s: the first message cost %d octets, want at most 500 more than %d", link, sent[1], sent[0])
		}
	}
	w := world(t, 3, "iridium-directip", 71, ashore)
	w.Kill(w.Nodes[2], time.Hour)
	w.Run(5 * time.Minute)
	first := tracks(w, w.Nodes[1], []uint16{3}, 1, octets, time.Second)
	w.Run(20 * time.Minute)
	check.Equal(t, "the link to one that is off", linkTo(w, w.Nodes[1], 3).Link, "silent")
	w.Run(time.Hour)
	once(t, w, w.Nodes[2].Site, 2, *first)
}

// TestQuietShipsInARollover: two ships that have nothing to say to each other go by the newest roster, for all too, whoever was given it.
func TestQuietShipsInARollover(t *testing.T) {
	for given := range 2 {
		w := world(t, 4, "iridium-directip", 72, ashore, withRoster)
		w.Run(5 * time.Minute)
		w.Give(w.Nodes[given], gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes...)})
		w.Run(10 * time.Minute)
		check.Equal(t, "by which, and for all", serials(w), same(4, "2/2"))
		first := tracks(w, w.Nodes[2], []uint16{4}, 1, 200, time.Second)
		w.Run(time.Minute)
		once(t, w, w.Nodes[3].Site, 3, *first)
	}
}

// TestStarTellsWhoHasSpoken: a ship with an empty store cannot know that it has met others, and what they hold it to know. Its shore
// names those that have spoken, and it asks them. A ship that comes late finds those that have something for it as fast.
func TestStarTellsWhoHasSpoken(t *testing.T) {
	for _, roster := range []bool{false, true} {
		in := check.In(t, fmt.Sprintf("roster %v", roster))
		w := world(t, 4, "iridium-directip", 73, ashore, func(c *sim.Config) { c.Roster = roster })
		ship, talker, late := w.Nodes[1], w.Nodes[2], w.Nodes[3]
		w.Kill(late, 3*time.Hour)
		talker.Site.Put(w, pipeItem(3, pipeShip))
		w.Run(time.Hour)
		check.Equal(in, "items of the talker at the ship", linkTo(w, ship, 3).FarItems, 1)
		w.LoseStore(ship)
		w.Kill(ship, time.Second)
		w.Run(time.Minute)
		check.Equal(in, "items of the talker at the ship that has lost its store", linkTo(w, ship, 3).FarItems, 1)
		check.Equal(in, "its link to the one who has said nothing", linkTo(w, ship, 4).Link, "unmet")
		w.Run(2 * time.Hour)
		check.Equal(in, "items of the talker at the late ship", linkTo(w, late, 3).FarItems, 1)
	}
}

// TestAnotherShore: a reload that names another shore has it greeted.
func TestAnotherShore(t *testing.T) {
	w := world(t, 3, "iridium-directip", 74, ashore)
	ship, other := w.Nodes[1], w.Nodes[2]
	w.Run(5 * time.Minute)
	check.Equal(t, "the link before", linkTo(w, ship, 3).Link, "unmet")
	peers := peersBut(w, ship, 3)
	w.Give(ship, gateway.NewLink{Peers: append(peers, gateway.PeerConfig{ID: 3, Name: "ship2", Addr: other.Addr(), Shore: true})})
	w.Run(time.Minute)
	check.Equal(t, "the link after", linkTo(w, ship, 3).Link, "up")
}

// TestUnmetInASilence: a silent ship takes nothing of one that it has not met, for it cannot ask whether that is a recording. The
// message is there soon after the silence. A ship that was met before is heard during it.
func TestUnmetInASilence(t *testing.T) {
	for _, met := range []bool{false, true} {
		in := check.In(t, fmt.Sprintf("met %v", met))
		w := world(t, 3, "iridium-directip", 75, ashore)
		ship, quiet := w.Nodes[1], w.Nodes[2]
		w.Run(5 * time.Minute)
		if met {
			tracks(w, quiet, []uint16{2}, 1, 200, time.Second)
			w.Run(5 * time.Minute)
		}
		before := sentByAll(w)
		order(w, quiet, api.Silence{On: true, Announce: true, Until: w.Now.Add(2 * time.Hour)})
		w.Run(time.Minute)
		told, _ := w.Octets(quiet)
		first := tracks(w, ship, []uint16{3}, 1, 200, time.Second)
		w.Run(time.Hour)
		check.Equal(in, "messages in the silence", len(quiet.Site.Got), map[bool]int{true: 1}[met])
		up, _ := w.Octets(quiet)
		check.Equal(in, "octets of the silent ship", up-told, 0)
		w.Run(time.Hour + time.Minute)
		once(t, w, quiet.Site, 2, *first)
		t.Logf("met %v: %d octets", met, sentByAll(w)-before)
	}
}
