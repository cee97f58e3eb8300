package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/filter"
)

// crowdOf is a world in whose first node this many peers have come at once, with the link octets of ten minutes from then on.
func crowdOf(t *testing.T, profile string, view jxtabridge.View, n int) (w *sim.World, peers crews, octets int64) {
	t.Helper()
	w, peers = crowded(t, 2, profile, func(uint16) []filter.Rule { return nil }, view)
	before := linkOctets(w)
	for i := range n {
		peers.come(w, w.Nodes[0], 300+i, fmt.Sprint("peer ", i))
	}
	w.Run(10 * time.Minute)
	check.Equal(check.Fatal(t), "peers of the first site", len(peers.bridges[1].Status().Peers), n+1)
	return w, peers, linkOctets(w) - before
}

// linkOctets are those of both ways, with their UDP and IP headers.
func linkOctets(w *sim.World) int64 {
	up, down := w.Octets(w.Nodes[1])
	return up + down
}

// The cost on the link of a crowd that comes at once, in each view. With ask it costs nothing; one of the crowd is found when a peer of the
// ship looks for it, and that one alone crosses.
func TestCrowdInEveryView(t *testing.T) {
	for _, tt := range []struct {
		view jxtabridge.View
		most int64  // octets of the crowd
		by   string // what a peer looks for
	}{{jxtabridge.Complete, 80_000, ""}, {jxtabridge.Ask, 0, "Name"}, {jxtabridge.Count, 120, "PID"}, {jxtabridge.Blind, 0, "PID"}} {
		_, _, idle := crowdOf(t, "iridium-dialup", tt.view, 0)
		for _, n := range []int{2, 16, 128, 1000, 4000} {
			if tt.view == jxtabridge.Complete && n > 1000 {
				break // the link takes longer than ten minutes
			}
			w, peers, all := crowdOf(t, "iridium-dialup", tt.view, n)
			t.Logf("%s: %d peers come at once: %d octets, %.2f each", tt.view, n, all-idle, float64(all-idle)/float64(n))
			if all-idle > tt.most {
				t.Errorf("%s: %d peers cost %d octets, want at most %d", tt.view, n, all-idle, tt.most)
			}
			if n != 1000 || tt.by == "" {
				continue
			}
			quiet := linkOctets(w)
			w.Run(5 * time.Minute)
			quiet = linkOctets(w) - quiet
			ship, before, begun := peers.at[2][2], linkOctets(w), w.Now
			q := edgepeer.Query{Type: jxta.TypePeer, Attr: tt.by, Value: "peer 700", Threshold: 10}
			if tt.by == "PID" {
				q.Value = jxta.URN(crewID(1000))
			}
			took := ship.find(q, "peer 700", 4*time.Minute)
			w.Run(5*time.Minute - w.Now.Sub(begun))
			cost := linkOctets(w) - before - quiet
			t.Logf("%s: one that is asked for by %s: found after %v, %d octets", tt.view, tt.by, took, cost)
			if took == 0 || took > 10*time.Second || cost > 120 {
				t.Errorf("%s: found after %v, %d octets", tt.view, took, cost)
			}
			check.Equal(check.In(t, string(tt.view)), "peers of the first site that the ship knows", peers.bridges[2].Status().Far[1].Peers, 1)
		}
	}
}

// Whenever the link fails amid a question, the peer is found when it is back, and both ends agree on the items that the ship has.
func TestQuestionMeetsOutage(t *testing.T) {
	for failing := range 12 {
		in := check.In(t, fmt.Sprint("failing after ", failing, " quarters of a second"))
		w, peers, _ := crowdOf(t, "iridium-dialup", jxtabridge.Ask, 5)
		w.At(time.Duration(failing)*250*time.Millisecond, func() { w.Cut(0, w.Nodes[1], true) })
		w.At(time.Duration(failing)*250*time.Millisecond+40*time.Second, func() { w.Cut(0, w.Nodes[1], false) })
		took := peers.at[2][2].find(edgepeer.Query{Type: jxta.TypePeer, Attr: "Name", Value: "peer 3", Threshold: 10}, "peer 3", 5*time.Minute)
		check.True(in, "the peer is found", took > 0)
		w.Run(time.Minute)
		check.Equal(in, "peers of the first site that the ship knows", peers.bridges[2].Status().Far[1].Peers, 1)
		check.Equal(in, "of the first site's state at the ship", w.Nodes[0].GW.Status(w.Now).Peers[0].ItemsHeld, 1+1) // and that it tells peers that ask
	}
}

// A silent gateway does not repeat an answer that was lost before its silence.
func TestQuestionMeetsSilence(t *testing.T) {
	w, peers, _ := crowdOf(t, "iridium-dialup", jxtabridge.Ask, 5)
	hq, lost := w.Nodes[0], 0
	w.Tap = func(from, _ *sim.Node, data []byte) [][]byte {
		if from == hq && lost == 0 { // the answer
			lost++
			return nil
		}
		return [][]byte{data}
	}
	peers.at[2][2].step(edgepeer.Query{Type: jxta.TypePeer, Attr: "Name", Value: "peer 3", Threshold: 10})
	for range 100 {
		if w.Run(100 * time.Millisecond); lost > 0 {
			break
		}
	}
	check.Equal(check.Fatal(t), "answers that are lost", lost, 1)
	w.Run(time.Second)
	order(w, hq, api.Silence{On: true})
	before, _ := w.Octets(hq)
	w.Run(time.Minute)
	after, _ := w.Octets(hq)
	check.Equal(t, "octets in the silence", after-before, 0)
	order(w, hq, api.Silence{})
	took := peers.at[2][2].find(edgepeer.Query{Type: jxta.TypePeer, Attr: "Name", Value: "peer 3", Threshold: 10}, "peer 3", 5*time.Minute)
	check.True(t, "the peer is found afterwards", took > 0)
}

// A gateway that tells peers that ask starts again, and tells no more than before.
func TestRestartInViewAsk(t *testing.T) {
	w, peers, _ := crowdOf(t, "iridium-dialup", jxtabridge.Ask, 50)
	w.Kill(w.Nodes[0], time.Second)
	w.Run(5 * time.Minute)
	check.Equal(t, "peers that the gateway knows from before", len(peers.bridges[1].Status().Peers), 51)
	check.Equal(t, "peers that the ship is told of", peers.bridges[2].Status().Far[1].Peers, 0)
}

// A peer and an advertisement that no message can hold keep no other news of their site from the link.
func TestLargeDocumentHoldsUpNobody(t *testing.T) {
	for _, gateways := range []int{2, 3} {
		in := check.In(t, fmt.Sprint(gateways, " gateways"))
		w, peers := crowded(t, gateways, "hf-2400", func(uint16) []filter.Rule { return nil }, jxtabridge.Complete)
		long := strings.Repeat("x", 300<<10)
		peers.come(w, w.Nodes[0], 300, long)
		hq := peers.at[1][1]
		hq.step(edgepeer.Listen{Pipe: pipeHQ, Kind: jxta.PipeTypeUnicast})
		hq.publish(edgepeer.Specification(long, pipeHQ, jxta.PipeTypeUnicast))
		w.Run(time.Minute)
		peers.come(w, w.Nodes[0], 301, "victim")
		w.Run(15 * time.Minute)
		check.Equal(in, "peers of the first site", len(peers.bridges[1].Status().Peers), 3)
		check.Equal(in, "peers of the first site that the second knows", peers.bridges[2].Status().Far[1].Peers, 2)
		check.Equal(in, "items that were too long", w.Nodes[0].GW.Status(w.Now).Dropped["item_size"], 1)
	}
}

// The view is switched a hundred times while peers come and messages go: no message is lost, none comes twice, and at the end the ship
// knows the peers that the last view shows.
func TestViewIsSwitchedBesideTraffic(t *testing.T) {
	views := []jxtabridge.View{jxtabridge.Complete, jxtabridge.Ask, jxtabridge.Count, jxtabridge.Blind, jxtabridge.Site, jxtabridge.Ring, "random(2)", "tree(3)+count", "site+ask"}
	w, peers := crowded(t, 2, "iridium-certus-100", func(uint16) []filter.Rule { return nil }, jxtabridge.Ask)
	rng := rand.New(rand.NewPCG(31, 7))
	hq, ship := peers.at[1][1], peers.at[2][2]
	hq.step(edgepeer.Listen{Pipe: pipeHQ, Kind: jxta.PipeTypeUnicast})
	w.Run(time.Minute)
	var said []string
	now := jxtabridge.Ask
	turn := func(to jxtabridge.View) {
		w.DeliverJXTA(w.Nodes[0], jxtabridge.Viewed{View: to})
		now = to
	}
	for i := range 100 {
		turn(views[rng.IntN(len(views))])
		if i%4 == 0 {
			peers.come(w, w.Nodes[0], 300+i, fmt.Sprint("peer ", i))
		}
		said = append(said, fmt.Sprint("message ", i))
		ship.step(edgepeer.Send{Pipe: pipeHQ, Kind: jxta.PipeTypeUnicast, Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(said[i])}}})
		w.Run(time.Duration(1+rng.IntN(6)) * time.Second)
	}
	w.Run(time.Minute)
	slices.Sort(said)
	check.Same(t, "what the peer has heard", slices.Sorted(slices.Values(hq.heard)), said)
	for i, last := range views {
		turn(last)
		before := peers.bridges[2].Status().Far[1].Peers
		peers.come(w, w.Nodes[0], 500+i, fmt.Sprint("late ", i))
		w.Run(time.Minute)
		here, there := len(peers.bridges[1].Status().Peers), peers.bridges[2].Status().Far[1].Peers
		want := before
		if parts, _ := now.Parts(); slices.ContainsFunc([]jxtabridge.View{jxtabridge.Complete, jxtabridge.Ring, jxtabridge.Random, jxtabridge.Tree}, func(v jxtabridge.View) bool { _, has := parts[v]; return has }) {
			want = here
		}
		check.Equal(check.In(t, string(last)), "peers of the first site that the ship knows", there, want)
	}
}

// churned is the cost of a while of peers that come and go behind the first of 16 gateways on hf-2400.
type churned struct {
	octets int64 // of all, acknowledgements included, beyond what they send without it
	air    float64
	heap   [2]heapParts  // a quarter of the way, and at the end
	right  time.Duration // after the end, until every site knows what its view says; a minute at the least
}

// churn has 330 peers come and as many go each second behind the first of 16 gateways on one channel, in a view that all of them have. A
// minute after the end each site must know what the view says.
func churn(t *testing.T, view jxtabridge.View, lasting time.Duration) (c churned) {
	const rate = 330
	profiled(t)
	play := func(churn bool) (octets int64) {
		w, peers := crowded(t, 16, "hf-2400", func(uint16) []filter.Rule { return nil }, view)
		var pool []*seafarer
		for i := range 2 * rate {
			pool = append(pool, peers.come(w, w.Nodes[0], 300+i, fmt.Sprint("peer ", i)))
		}
		w.Run(20 * time.Minute)
		sent := func() (all int64) {
			for _, n := range w.Nodes {
				up, _ := w.Octets(n)
				all += up
			}
			return all
		}
		before, rng := sent(), rand.New(rand.NewPCG(31, 5))
		steps := int(lasting / (100 * time.Millisecond))
		for i := range steps {
			for range rate / 5 {
				if p := pool[rng.IntN(len(pool))]; churn && p.Leased("") {
					p.step(edgepeer.Leave{})
				} else if churn {
					p.step(edgepeer.Join{})
				}
			}
			w.Run(100 * time.Millisecond)
			if churn && (i == steps/4 || i == steps-1) {
				c.heap[i/(steps-1)] = heapNow()
			}
		}
		c.air = float64(sent()-before) * 8 / lasting.Seconds() / 2400
		w.Run(time.Minute)
		spent := sent() - before
		here := 0
		for _, p := range peers.bridges[1].Status().Peers {
			if len(p.Leases) > 0 {
				here++
			}
		}
		parts, _ := view.Parts()
		wrong := func() (sites int) {
			for _, n := range w.Nodes[1:] {
				far := peers.bridges[n.ID].Status().Far[1]
				_, counts := parts[jxtabridge.Count]
				_, all := parts[jxtabridge.Complete]
				if counts && far.Members != here || all && far.Peers != here || view == jxtabridge.Count && far.Peers != 0 {
					sites++
				}
			}
			return sites
		}
		check.Equal(t, "sites that are wrong a minute after", wrong(), 0)
		for c.right = time.Minute; churn && wrong() > 0 && c.right < 2*time.Hour; c.right += 10 * time.Second {
			w.Run(10 * time.Second)
		}
		return spent
	}
	idle := play(false)
	c.octets = play(true) - idle
	t.Logf("%s: %d joins and leaves a second for %v: %d octets to 15 sites, all that was sent took %.0f %% of the rate; %v later every site is right",
		view, rate, lasting, c.octets, 100*c.air, c.right)
	for i, when := range []string{"a quarter of the way", "at the end"} {
		h := c.heap[i]
		t.Logf("%s: heap %s: gateways %.1f MB, lab %.1f MB: %s", view, when, float64(h.sum(false))/1e6, float64(h.sum(true))/1e6, h)
	}
	return c
}

// Peers come and go. Their number crosses twice a minute at most, and a minute later each site knows it.
func TestChurnInViewCount(t *testing.T) {
	if c := churn(t, jxtabridge.Count, time.Minute); c.octets > 3600 {
		t.Errorf("%d octets for the churn, want at most 3,600", c.octets)
	}
}
