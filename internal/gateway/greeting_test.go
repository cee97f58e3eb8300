package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// greeted starts sites together on one channel. It returns when each had heard of each other, when the last datagram had left,
// and the IP octets on the air.
func greeted(t *testing.T, link string, nodes int, seed uint64, change ...func(*sim.Config)) (all, quiet time.Duration, octets int64) {
	t.Helper()
	var w *sim.World
	now := func() time.Time {
		if w == nil { // it is being made
			return sim.Epoch
		}
		return w.Now
	}
	met := map[string]bool{}
	var allAt, quietAt time.Time
	w = world(t, nodes, link, seed, append([]func(*sim.Config){func(c *sim.Config) {
		c.Group = true
		c.Committed = func(n *sim.Node, out api.Output) {
			for _, note := range out.Notes {
				if key := n.Name + " " + note.Text; note.Text == "a peer has started" {
					for _, a := range note.Attrs {
						if peer, ok := a.(string); ok && (peer == "hq" || strings.HasPrefix(peer, "ship")) && !met[key+peer] {
							met[key+peer], allAt = true, now()
						}
					}
				}
			}
			if len(out.Datagrams) > 0 {
				quietAt = now()
			}
		}
	}}, change...)...)
	w.Run(3 * time.Hour)
	if len(met) != nodes*(nodes-1) {
		t.Fatalf("%s, %d sites, seed %d: %d of %d have heard of each other\n%s", link, nodes, seed, len(met), nodes*(nodes-1), tail(w.Notes))
	}
	for _, n := range w.Link.Stats().Nodes {
		octets += n.Up.OnAir.Octets
	}
	return allAt.Sub(sim.Epoch), quietAt.Sub(sim.Epoch), octets
}

// TestGreeting: sites that start together on one channel, none of which knows another; seeds 1 to 20, 1 to 3 of 64 sites. Each
// has to speak before it can be answered, and the last speaks once: so many turns no sender is below.
func TestGreeting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes int
		seeds uint64
		most  time.Duration // the median, until nobody says anything any more
	}{{4, 20, 30 * time.Second}, {16, 20, 2 * time.Minute}, {64, seeds(3), 30 * time.Minute}} {
		var all, quiet []time.Duration
		var octets []int64
		for seed := uint64(1); seed <= c.seeds; seed++ {
			a, q, o := greeted(t, "hf-2400", c.nodes, seed)
			all, quiet, octets = append(all, a), append(quiet, q), append(octets, o)
		}
		slices.Sort(all)
		slices.Sort(quiet)
		slices.Sort(octets)
		mid, last := len(all)/2, len(all)-1
		p := load(t, "hf-2400")
		empty := profile.IPUDPOctets + seal.OverheadLong + frame.GreetingOctets
		bound := p.Up.Delay
		for spoken := range 2*c.nodes - 1 {
			bound += p.Airtime(p.Up, empty+min(spoken, c.nodes-1)*frame.MemberOctets)
			if spoken > 0 {
				bound += p.Turnaround
			}
		}
		t.Logf("hf-2400, %d sites: each has heard of each other after %.0f s (worst %.0f; no sender before %.0f, where nothing is lost), quiet after %.0f s (worst %.0f), %d octets (worst %d)",
			c.nodes, all[mid].Seconds(), all[last].Seconds(), bound.Seconds(), quiet[mid].Seconds(), quiet[last].Seconds(), octets[mid], octets[last])
		if quiet[mid] > c.most {
			t.Errorf("%d sites: quiet after %v, want %v", c.nodes, quiet[mid], c.most)
		}
	}
}

// TestGreetingWithNews: one of 16 sites that start together has something to tell. All are told at once, when they have met, and
// acknowledge it at once: each of them told by itself, and acknowledgements that wait for a minute, kept the channel for 240 s. Seeds 1
// to 5; 1 to 20 with the tag long.
func TestGreetingWithNews(t *testing.T) {
	const nodes, most = 16, 170 * time.Second
	var quiet []time.Duration
	var octets []int64
	for seed := uint64(1); seed <= plays(5, 20); seed++ {
		q, o, err := air.Greeting(t.Context(), "hf-2400", seed, nodes)
		check.NoError(check.Fatal(t), err)
		quiet, octets = append(quiet, q), append(octets, o)
	}
	slices.Sort(quiet)
	slices.Sort(octets)
	mid, last := len(quiet)/2, len(quiet)-1
	t.Logf("hf-2400, 16 sites, one with news: quiet after %v (worst %v), %d octets", quiet[mid], quiet[last], octets[mid])
	check.True(t, "quiet", quiet[mid] <= most, quiet[mid], most)
}

// onChannel is a world of sites on one channel that have greeted.
func onChannel(t *testing.T, nodes int, seed uint64, change ...func(*sim.Config)) *sim.World {
	t.Helper()
	w := world(t, nodes, "hf-2400", seed, append(change, func(c *sim.Config) { c.Group = true })...)
	w.Run(10 * time.Minute)
	return w
}

// frames counts what a node has sent.
func frames(w *sim.World, n *sim.Node) (sent int64) {
	return w.Link.Stats().Node(n.Name).Up.OnAir.Frames
}

// A member that starts again is answered by each of the others once, or twice where something was lost; one that lost its store
// as well.
func TestGreetingOfOneMember(t *testing.T) {
	for _, empty := range []bool{false, true} {
		w := onChannel(t, 8, 1)
		one := w.Nodes[5]
		before := make([]int64, len(w.Nodes))
		for i, n := range w.Nodes {
			before[i] = frames(w, n)
		}
		if empty {
			w.LoseStore(one)
		}
		w.Kill(one, time.Second)
		w.Run(10 * time.Minute)
		for i, n := range w.Nodes {
			if sent := frames(w, n) - before[i]; sent > 2 && n != one || sent < 1 || sent > 4 {
				t.Errorf("store lost %v: %s sends %d datagrams", empty, n.Name, sent)
			}
			for _, p := range n.GW.Status(w.Now).Peers {
				if !p.Knows || p.Start == 0 {
					t.Errorf("store lost %v: %s and %s: knows %v, start %d", empty, n.Name, p.Name, p.Knows, p.Start)
				}
			}
		}
	}
}

// Greetings of yesterday do not count, and make a gateway say little.
func TestYesterdaysGreetings(t *testing.T) {
	var yesterday [][]byte
	var ship *sim.Node
	tap := func(from, _ *sim.Node, data []byte) [][]byte {
		if from == ship {
			yesterday = append(yesterday, data)
		}
		return [][]byte{data}
	}
	w := world(t, 2, "hf-2400", 3, func(c *sim.Config) { c.Group = true })
	hq := w.Nodes[0]
	ship = w.Nodes[1]
	w.Tap = tap
	tracks(w, ship, []uint16{1}, 10, 60, time.Minute)
	for range 20 { // each start greets
		w.Run(time.Minute)
		w.Kill(ship, time.Second)
	}
	w.Run(5 * time.Minute)
	w.Tap = func(from, _ *sim.Node, data []byte) [][]byte {
		if from == ship {
			return nil
		}
		return [][]byte{data}
	}
	w.LoseStore(hq)
	w.Kill(hq, time.Second)
	w.Run(3 * time.Minute)
	hq.Site.Got = nil
	before := frames(w, hq)
	for i, d := range yesterday {
		w.At(time.Duration(i)*2*time.Second, func() { w.Inject(hq, d) })
	}
	w.Run(time.Duration(len(yesterday))*2*time.Second + 10*time.Minute)
	p := hq.GW.Status(w.Now).Peers[0]
	t.Logf("%d captured datagrams of 21 starts: %d answered", len(yesterday), frames(w, hq)-before)
	check.Equal(t, "delivered", len(hq.Site.Got), 0)
	check.Equal(t, "start", p.Start, 0)
	check.Equal(t, "received", p.Received, 0)
	if said := frames(w, hq) - before; said > 21+12 { // one for each start, and its own questions
		t.Errorf("%d datagrams in answer", said)
	}
	w.Tap = nil
	w.Kill(ship, time.Second)
	w.Run(5 * time.Minute)
	check.Equal(t, "start when the ship is back", hq.GW.Status(w.Now).Peers[0].Start, ship.Incarnation())
}

// A silent node greets nobody, hears the others, and greets when its silence ends.
func TestGreetingOfASilentShip(t *testing.T) {
	w := world(t, 4, "hf-2400", 2, func(c *sim.Config) { c.Group = true })
	silent := w.Nodes[3]
	order(w, silent, api.Silence{On: true})
	w.Run(10 * time.Minute)
	check.Equal(t, "datagrams of the silent ship", frames(w, silent), 0)
	for _, n := range w.Nodes[:3] {
		for _, p := range n.GW.Status(w.Now).Peers {
			check.Equal(t, n.Name+" knows "+p.Name, p.Start != 0, p.Name != silent.Name)
		}
	}
	order(w, silent, api.Silence{})
	w.Run(2 * time.Minute)
	for _, n := range w.Nodes {
		for _, p := range n.GW.Status(w.Now).Peers {
			check.Equal(t, n.Name+" and "+p.Name, p.Start != 0 && p.Knows, true)
		}
	}
}
