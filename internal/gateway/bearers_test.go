package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/calendar"
	"aldis/internal/rules/mark"
)

// twoBearers is a world of two nodes or more with satellite and HF each; HF is the dearer of the two, so that messages go by satellite
// while that is up.
func twoBearers(t *testing.T, nodes int, sat string, seed uint64, change ...func(*sim.Config)) *sim.World {
	t.Helper()
	return world(t, nodes, sat, seed, append([]func(*sim.Config){func(c *sim.Config) {
		c.Second = &sim.Second{Name: "hf", Profile: load(t, "hf-2400"), Group: true, Price: 2 * gateway.UsualPrice}
	}}, change...)...)
}

// octetsOn is what a node sent and was sent on a bearer.
func octetsOn(w *sim.World, bearer int, n *sim.Node) int64 {
	up, down := w.OctetsOn(bearer, n)
	return up + down
}

// A second bearer that has nothing to carry carries nothing.
func TestABearerWithNothingToCarryIsSilent(t *testing.T) {
	for seed := range seeds(20) {
		w := twoBearers(t, 2, "iridium-directip", seed+1)
		hq, ship := w.Nodes[0], w.Nodes[1]
		down := tracks(w, hq, []uint16{2}, 60, 200, 23*time.Minute)
		up := tracks(w, ship, []uint16{1}, 60, 200, 29*time.Minute)
		w.Run(24 * time.Hour)
		once(t, w, ship.Site, 1, (*down)[:len(ship.Site.Got)])
		once(t, w, hq.Site, 2, (*up)[:len(hq.Site.Got)])
		check.True(t, "most have arrived", len(ship.Site.Got) > 58 && len(hq.Site.Got) > 45, len(ship.Site.Got), len(hq.Site.Got))
		check.Equal(t, fmt.Sprintf("seed %d: octets on the second bearer", seed+1), octetsOn(w, 1, ship), 0)
	}
}

// The satellite is cut in the middle of a long message, and HF goes on with the part that is not there yet.
func TestALongMessageGoesOnOverHF(t *testing.T) {
	for seed := range uint64(20) {
		w := twoBearers(t, 2, "iridium-directip", seed+1)
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(30 * time.Second)
		long := air.Track(2, pipeHQ, 1, 20_000)
		sent := []offered{{At: w.Now, Message: long}}
		ship.Site.Send(w, long, 1)
		w.Run(16 * time.Second)
		w.Cut(0, ship, true)
		cut, before := w.Now, octetsOn(w, 1, ship)
		first, there := time.Duration(0), received(w, hq, "payload")
		for octetsOn(w, 1, ship) == before && w.Now.Sub(cut) < time.Minute {
			w.Run(100 * time.Millisecond)
		}
		first = w.Now.Sub(cut)
		w.Run(10 * time.Minute)
		took := once(t, w, hq.Site, 2, sent)
		hf, _ := w.OctetsOn(1, ship)
		lacked := 20_000 - there
		t.Logf("seed %d: first octet on HF %v after the cut, all there after %v; %d octets lacked, %d octets on HF", seed+1, first, took[0], lacked, hf)
		check.True(t, fmt.Sprintf("seed %d: first octet on HF within 15 s", seed+1), first <= 15*time.Second, first)
		check.True(t, fmt.Sprintf("seed %d: HF carried what was lacking, with P_Mul's own octets and its losses", seed+1), float64(hf) < 1.3*float64(lacked), hf, lacked)
	}
}

// Four sites lose the satellite just after one has sent 20 kB to all: a single segment that was read, of those not known to be
// there, is not the whole message. Reports, of which some expire, go at the same time.
func TestALongMessageToSeveralChangesItsBearer(t *testing.T) {
	all := []uint64{5} // its losses leave a single segment of that kind
	if seeds(20) > 3 {
		all = []uint64{1, 2, 3, 4, 5, 6, 7, 8}
	}
	for _, seed := range all {
		w := twoBearers(t, 4, "iridium-certus-100", seed+1)
		for k, n := range w.Nodes {
			to := slices.DeleteFunc([]uint16{1, 2, 3, 4}, func(id uint16) bool { return id == n.ID })
			for i := range 15 {
				w.At(time.Duration(i)*60*time.Second+time.Duration(k)*12*time.Second+time.Duration(seed*7%60)*time.Second, func() {
					n.Site.Send(w, track(n.ID, pipeHQ, i, 200), to...)
					f := track(n.ID, pipeHQ, 1000+i, 40)
					f.From, f.Fleeting = peerID(50+n.ID), true
					w.At(time.Duration((7*seed+13*uint64(i)+5*uint64(k))%60)*time.Second, func() {
						f.Expires = w.Now.Add(135 * time.Second)
						n.Site.Send(w, f, to...)
					})
				})
			}
		}
		long := air.Track(3, pipeHQ, 500, 20_000)
		long.From = peerID(99)
		w.At(3*time.Minute+58*time.Second, func() { w.Nodes[2].Site.Send(w, long, 1, 2, 4) })
		cut := func(down bool) {
			for _, n := range w.Nodes {
				w.Cut(0, n, down)
			}
		}
		w.At(4*time.Minute, func() { cut(true) })
		w.At(6*time.Minute, func() { w.Kill(w.Nodes[3], time.Second) })
		w.At(9*time.Minute, func() { cut(false) })
		w.Run(40 * time.Minute)
		for _, n := range w.Nodes {
			short, whole := 0, 0
			for _, g := range n.Site.Got {
				switch len(g.Payload.Parts[0].Data) {
				case 200:
					short++
				case 20_000:
					whole++
				}
			}
			check.Equal(t, fmt.Sprintf("seed %d: reports at %s", seed+1, n.Name), short, 45)
			if n.ID != 3 {
				check.Equal(t, fmt.Sprintf("seed %d: long messages at %s", seed+1, n.Name), whole, 1)
			}
		}
	}
}

// A peer that is configured and away is greeted on a second bearer ever later, whatever waits for it, and however often this node looks
// whether it may go there.
func TestWhoIsAwayCostsTheSecondBearerLittle(t *testing.T) {
	for seed := range uint64(3) {
		w := twoBearers(t, 4, "iridium-certus-100", seed+1)
		away := w.Nodes[3]
		w.Kill(away, 2*time.Hour)
		for i := range 20 {
			w.At(time.Duration(i)*5*time.Second, func() {
				for _, n := range w.Nodes[:3] {
					n.Site.Put(w, pipeItem(n.ID+uint16(10*i), fmt.Sprintf("%s%02d04", pipeHQ[:len(pipeHQ)-4], i)))
					n.Site.Send(w, track(n.ID, pipeHQ, i, 200), away.ID)
				}
			})
		}
		w.Run(2 * time.Minute)
		var before, octets int64
		for _, n := range w.Nodes {
			before += octetsOn(w, 1, n)
		}
		w.Run(time.Hour)
		for _, n := range w.Nodes {
			octets += octetsOn(w, 1, n)
		}
		t.Logf("seed %d: %d octets in the first two minutes, %d in the hour after", seed+1, before, octets-before)
		check.True(t, "octets of an hour on the second bearer", octets-before < 20_000, octets-before)
	}
}

// received is how many octets of a kind a node has received.
func received(w *sim.World, n *sim.Node, kind string) (octets int) {
	for _, row := range n.GW.Status(w.Now).Ledger {
		if row.Direction == "received" && row.Kind == kind {
			octets += int(row.Octets)
		}
	}
	return octets
}

// flap takes the nodes off the first bearer for every second half minute.
func flap(w *sim.World, times int, n *sim.Node) {
	for i := range times {
		w.At(time.Duration(i)*time.Minute+30*time.Second, func() { w.Cut(0, n, true) })
		w.At(time.Duration(i)*time.Minute+60*time.Second, func() { w.Cut(0, n, false) })
	}
}

// The better bearer goes up and down every 30 s, while a message goes each way every second: each arrives once, in order. It takes
// minutes to compute an hour: the short form plays ten minutes.
func TestTheBetterBearerUpAndDown(t *testing.T) { upAndDown(t, "iridium-certus-100", once) }

// The same beside HF, which carries less than is sent: most messages wait for the better bearer. Over P_Mul messages may overtake each other.
func TestTheBetterBearerUpAndDownBesideHF(t *testing.T) {
	t.Parallel()
	upAndDown(t, "hf-2400", func(t *testing.T, w *sim.World, at *sim.Site, from uint16, sent []offered) []time.Duration {
		took, err := air.Each(at.Got, from, sent)
		check.NoError(check.Fatal(t), err)
		return took
	})
}

func upAndDown(t *testing.T, other string, judge func(*testing.T, *sim.World, *sim.Site, uint16, []offered) []time.Duration) {
	minutes := int(seeds(60))
	if minutes < 60 {
		minutes = 10
	}
	for seed := range seeds(20) {
		octets := func(flaps int) (all int64) {
			w := twoBearers(t, 2, "iridium-certus-100", seed+1, func(c *sim.Config) {
				c.Second = &sim.Second{Name: "other", Profile: load(t, other), Wire: load(t, "wire"), Group: other == "hf-2400", Price: 2 * gateway.UsualPrice}
			})
			hq, ship := w.Nodes[0], w.Nodes[1]
			down := tracks(w, hq, []uint16{2}, 60*minutes, 200, time.Second)
			up := tracks(w, ship, []uint16{1}, 60*minutes, 200, time.Second)
			flap(w, flaps, ship)
			w.Run(time.Duration(minutes)*time.Minute + 5*time.Minute)
			a, b := judge(t, w, ship.Site, 1, *down), judge(t, w, hq.Site, 2, *up)
			slices.Sort(a)
			slices.Sort(b)
			t.Logf("seed %d, %d times down: median %v and %v, worst %v and %v; %d and %d octets", seed+1, flaps, a[len(a)/2], b[len(b)/2], a[len(a)-1], b[len(b)-1],
				octetsOn(w, 0, ship), octetsOn(w, 1, ship))
			return octetsOn(w, 0, ship) + octetsOn(w, 1, ship)
		}
		alone, both := octets(0), octets(minutes)
		t.Logf("seed %d: %.3f of the better alone", seed+1, float64(both)/float64(alone))
		check.True(t, "octets beside those of the better alone", float64(both) <= 1.1*float64(alone), both, alone)
	}
}

// Both bearers come and go and both gateways die at any moment: each message arrives once, and those of a source in order. Over P_Mul
// messages may overtake each other after an outage that is longer than its patience (group.order).
func TestBearersAndGatewaysComeAndGo(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"iridium-directip", "hf-2400"} {
		for seed := range uint64(20) {
			w := twoBearers(t, 2, "iridium-certus-100", seed+1, func(c *sim.Config) {
				c.Second = &sim.Second{Name: "other", Profile: load(t, other), Wire: load(t, "wire"), Group: other == "hf-2400", Price: 2 * gateway.UsualPrice}
				c.CrashBeforeCommit, c.CrashAfterCommit, c.Roster = 0.003, 0.003, seed%2 == 0
			})
			hq, ship := w.Nodes[0], w.Nodes[1]
			rng := rand.New(rand.NewPCG(seed, 25))
			down := tracks(w, hq, []uint16{2}, 60, 120, 10*time.Second)
			up := tracks(w, ship, []uint16{1}, 60, 120, 10*time.Second)
			var long []offered
			for i := range 3 {
				m := air.Track(2, pipeShip, 1000+i, 6000)
				m.From = peerID(100 + uint16(i))
				w.At(time.Duration(100+150*i)*time.Second, func() {
					long = append(long, offered{At: w.Now, Message: m})
					ship.Site.Send(w, m, 1)
				})
			}
			for at := 20 * time.Second; at < 600*time.Second; at += time.Duration(10+rng.IntN(40)) * time.Second {
				bearer, down := rng.IntN(2), rng.IntN(2) == 0
				w.At(at, func() { w.Cut(bearer, ship, down) })
			}
			w.At(600*time.Second, func() { w.Cut(0, ship, false); w.Cut(1, ship, false); w.EndCrashes() })
			w.Run(40 * time.Minute)
			name := fmt.Sprintf("%s, seed %d", other, seed+1)
			judge := air.Once
			if other == "hf-2400" {
				judge = air.Each
			}
			onceEach(t, name, judge, w, ship.Site, 1, *down)
			onceEach(t, name, judge, w, hq.Site, 2, append(*up, long...))
		}
	}
}

// onceEach judges the messages of each source.
func onceEach(t *testing.T, name string, judge func([]sim.Got, uint16, []offered) ([]time.Duration, error), w *sim.World, at *sim.Site, site uint16, sent []offered) {
	t.Helper()
	of := map[string][]offered{}
	for _, o := range sent {
		of[o.Message.From] = append(of[o.Message.From], o)
	}
	got := map[string][]sim.Got{}
	for _, g := range at.Got {
		got[g.Payload.From] = append(got[g.Payload.From], g)
	}
	for from, list := range of {
		if _, err := judge(got[from], site, list); err != nil {
			t.Errorf("%s: %v\n%s", name, err, tail(w.Notes))
		}
	}
}

// One bearer is silent by order or by a window, and the other speaks. Messages without another way wait until the silence is over.
func TestSilenceOfOneBearer(t *testing.T) {
	for _, how := range []string{"order", "window"} {
		for seed := range uint64(3) {
			w := twoBearers(t, 2, "iridium-directip", seed+1, func(c *sim.Config) {
				c.Configure = func(n *sim.Node, g *gateway.Config) {
					if how == "window" && n.ID == 2 {
						from := sim.Epoch.Add(time.Minute)
						g.Windows = calendar.Windows{{Begins: from, Ends: from.Add(10 * time.Minute), Link: "hf"}}
					}
				}
			})
			hq, ship := w.Nodes[0], w.Nodes[1]
			if how == "order" {
				w.At(time.Minute, func() {
					w.Give(ship, api.Silence{On: true, Until: sim.Epoch.Add(11 * time.Minute), Bearer: "hf"})
				})
			}
			up := tracks(w, ship, []uint16{1}, 50, 200, 20*time.Second)
			w.At(5*time.Minute, func() { w.Cut(0, ship, true) })
			kill := 8*time.Minute + time.Duration(seed)*20*time.Second
			w.At(kill, func() { w.Kill(ship, 3*time.Second) })
			w.Run(4 * time.Minute)
			check.True(t, "the satellite speaks", len(hq.Site.Got) >= 10, len(hq.Site.Got))
			w.Run(7*time.Minute - time.Second)
			hf, _ := w.OctetsOn(1, ship)
			check.Equal(t, fmt.Sprintf("%s, seed %d: octets that the silent bearer has sent", how, seed+1), hf, 0)
			status := ship.GW.Status(w.Now)
			check.True(t, "the status says which is silent", !status.Silence.On && status.Bearers[1].Silence.On && !status.Bearers[0].Silence.On, status.Bearers)
			w.Run(20 * time.Minute)
			once(t, w, hq.Site, 2, *up)
		}
	}
}

// A ship was away for half an hour while HQ sent 36,000 messages to another: its first message is there at once, and it refuses nothing.
func TestABusyShoreRunsAheadOfNobody(t *testing.T) {
	for _, roster := range []bool{true, false} {
		for seed := range seeds(20) {
			w := world(t, 3, "iridium-certus-100", seed+1, func(c *sim.Config) { c.Roster = roster })
			hq, away, other := w.Nodes[0], w.Nodes[1], w.Nodes[2]
			away.Site.Send(w, track(2, pipeHQ, 0, 20), 1)
			hq.Site.Send(w, track(1, pipeHQ, 0, 20), 2)
			w.Run(time.Minute)
			w.Outage(away, 30*time.Minute)
			n := 36_000
			if seeds(20) == 1 { // it takes minutes: seal.TestCountersApart counts as far
				n = 2_000
			}
			for i := range n {
				m := track(1, pipeHQ, i, 12)
				w.At(time.Duration(i)*30*time.Minute/time.Duration(n), func() { hq.Site.Send(w, m, other.ID) })
			}
			w.Run(30*time.Minute + time.Second)
			check.True(t, "the other ship got them", len(other.Site.Got) > n-100, len(other.Site.Got))
			before := len(hq.Site.Got)
			sent := w.Now
			away.Site.Send(w, track(2, pipeHQ, 1, 20), 1)
			w.Run(20 * time.Second)
			check.Equal(check.Fatal(t), "messages of the ship", len(hq.Site.Got)-before, 1)
			took := hq.Site.Got[before].At.Sub(sent)
			t.Logf("roster %v, seed %d: there after %v; %v", roster, seed+1, took, away.GW.Status(w.Now).Dropped)
			check.True(t, "the first message within 3 s", took <= 3*time.Second, took)
			w.Run(2 * time.Minute)
			for _, s := range []string{"not_authentic", "too_old", "replay"} {
				check.Equal(t, fmt.Sprintf("roster %v, seed %d: refused as %s", roster, seed+1, s), int(away.GW.Status(w.Now).Dropped[s]), 0)
			}
		}
	}
}

// A rule says which bearers a message may take: the long ones wait for the satellite, also through a restart, and the others go by HF.
func TestARuleChoosesTheBearer(t *testing.T) {
	for seed := range uint64(3) {
		w := twoBearers(t, 2, "iridium-directip", seed+1, func(c *sim.Config) {
			c.Configure = func(_ *sim.Node, g *gateway.Config) {
				g.Bearer, g.Messages = "sat", []mark.Rule{{Least: 1000, Links: []string{"sat"}}}
			}
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(30 * time.Second)
		w.Cut(0, ship, true)
		short, long := track(2, pipeHQ, 1, 200), track(2, pipeHQ, 2, 3000)
		long.From = peerID(77)
		ship.Site.Send(w, short, 1)
		ship.Site.Send(w, long, 1)
		w.At(2*time.Minute, func() { w.Kill(ship, 3*time.Second) })
		w.Run(10 * time.Minute)
		check.Equal(check.Fatal(t), "messages over HF", len(hq.Site.Got), 1)
		check.Equal(t, "octets of the one that came", len(hq.Site.Got[0].Payload.Parts[0].Data), 200)
		w.Cut(0, ship, false)
		w.Run(2 * time.Minute)
		check.Equal(check.Fatal(t), "messages once the satellite is back", len(hq.Site.Got), 2)
		check.Equal(t, "octets of the other", len(hq.Site.Got[1].Payload.Parts[0].Data), 3000)
	}
}
