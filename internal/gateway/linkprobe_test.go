package gateway_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// believed is a profile that differs from its link.
func believed(p profile.Profile, rate, rest float64) profile.Profile {
	for _, d := range []*profile.Direction{&p.Up, &p.Down} {
		d.RateBps = int(float64(d.RateBps) * rate)
		d.Delay, d.Jitter = time.Duration(float64(d.Delay)*rest).Round(time.Millisecond), time.Duration(float64(d.Jitter)*rest).Round(time.Millisecond)
	}
	p.Turnaround = time.Duration(float64(p.Turnaround) * rest).Round(time.Millisecond)
	return p
}

// linkProbeOf lets a node probe the link to the other, and returns the result.
func linkProbeOf(t *testing.T, w *sim.World, n *sim.Node, budget int) *api.LinkProbeStatus {
	t.Helper()
	w.Give(n, gateway.LinkProbeOrder{Ref: 7, Peer: 3 - n.ID, Budget: budget})
	for range 3600 {
		w.Run(time.Second)
		if s := n.GW.Status(w.Now).LinkProbe; s.State != api.LinkProbeRuns {
			return s
		}
	}
	t.Fatal("the link probe has not ended after an hour")
	return nil
}

// probed is the errors of one number over the seeds, in percent of the truth.
type probed map[string][]float64

func (e probed) add(what string, got, want, least float64) {
	e[what] = append(e[what], 100*math.Abs(got-want)/math.Max(want, least))
}

// TestLinkProbe: whole gateways whose profile differs from their link find out the link's figures, in 5 kB. Each number that
// the link probe says it knows is within ten percent at half of the seeds and more. A jitter is compared with a second at the least.
func TestLinkProbe(t *testing.T) {
	untold := map[string]bool{"iridium-certus-100 down": true} // a train of 5 kB is on the air for less than half the jitter
	for _, name := range []string{"iridium-directip", "iridium-dialup", "iridium-certus-100", "vhf-cnr-16k", "hf-2400"} {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			base := believed(p, 0.7, 1.3)
			errors, most, took := probed{}, int64(0), time.Duration(0)
			for seed := range max(5, seeds(20)) {
				w := world(t, 2, name, seed+1, func(c *sim.Config) {
					c.Group = c.Profile.Shared
					c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Profile = base }
				})
				w.Run(2 * time.Minute)
				near := w.Nodes[1-seed%2]
				up, down := w.Octets(w.Nodes[1])
				hq, _ := w.Octets(w.Nodes[0])
				begin := w.Now
				s := linkProbeOf(t, w, near, 5000)
				took = max(took, w.Now.Sub(begin))
				if s.State != api.LinkProbeDone || s.Others > 0 {
					t.Fatalf("seed %d: %s %s, %d other datagrams", seed+1, s.State, s.Text, s.Others)
				}
				up2, down2 := w.Octets(w.Nodes[1])
				hq2, _ := w.Octets(w.Nodes[0])
				all := up2 - up + down2 - down
				if p.Shared {
					all = up2 - up + hq2 - hq
				}
				if most = max(most, all); all > 5000 || !p.Shared && all != int64(s.Sent+s.Received) && all < int64(s.Sent+s.Received) {
					t.Errorf("seed %d: %d octets on the air, %d and %d said", seed+1, all, s.Sent, s.Received)
				}
				r, err := linkemu.OfLinkProbe(s.Packets, base, near == w.Nodes[1])
				if err != nil {
					t.Fatalf("seed %d: %v", seed+1, err)
				}
				source, err := profile.Source(name)
				if err != nil {
					t.Fatal(err)
				}
				text, err := r.Write(source, base, "ours", nil)
				if err != nil {
					t.Fatalf("seed %d: %v", seed+1, err)
				}
				if n := strings.Count(string(text), "probed: ") + strings.Count(string(text), "choice: as before"); n < 5 {
					t.Errorf("seed %d: the profile says of %d numbers where they are from:\n%s", seed+1, n, text)
				}
				for _, d := range []struct {
					name string
					e    linkemu.Estimate
					want profile.Direction
				}{{"up", r.Up, p.Up}, {"down", r.Down, p.Down}} {
					rate := d.name + " rate"
					if !d.e.RateKnown {
						rate = d.name + " rate, not told"
					} else if untold[name+" "+d.name] {
						t.Errorf("seed %d: the rate %s is told, %d of %d", seed+1, d.name, d.e.RateBps, d.want.RateBps)
					}
					errors.add(rate, float64(d.e.RateBps), float64(d.want.RateBps), 1)
					errors.add(d.name+" delay and half the jitter", (d.e.Delay + d.e.Jitter/2).Seconds(), (d.want.Delay + d.want.Jitter/2).Seconds(), 0.1)
					errors.add(d.name+" jitter", d.e.Jitter.Seconds(), d.want.Jitter.Seconds(), 1)
					if d.e.Lost > 0 && d.want.LossPct > d.e.LossTo {
						t.Errorf("seed %d: loss %s of %.1f %% is not within %.1f to %.1f", seed+1, d.name, d.want.LossPct, d.e.LossFrom, d.e.LossTo)
					}
				}
				if r.Shared && r.TurnKnown {
					errors.add("turnaround", r.Turnaround.Seconds(), p.Turnaround.Seconds(), 0.1)
				}
			}
			t.Logf("at most %d octets, %v", most, took)
			for _, what := range slices.Sorted(maps.Keys(errors)) {
				list := errors[what]
				slices.Sort(list)
				t.Logf("%s: off by %.1f %% at half, %.1f %% at nine of ten of %d", what, linkemu.Between(list, 0.5), linkemu.Between(list, 0.9), len(list))
				if !strings.HasSuffix(what, "not told") && linkemu.Between(list, 0.5) > 10 {
					t.Errorf("%s is off by %.1f %% at half of the seeds", what, linkemu.Between(list, 0.5))
				}
			}
		})
	}
}

// TestLinkProbeBudget: where a link probe does not tell the rate it says which budget would, and at most of the seeds that one does.
func TestLinkProbeBudget(t *testing.T) {
	for _, rate := range []float64{0.7, 2} {
		told, asked := 0, 0
		for seed := range uint64(max(8, seeds(20))) {
			base := believed(load(t, "iridium-certus-100"), rate, 1.3)
			w := world(t, 2, "iridium-certus-100", seed+1, func(c *sim.Config) {
				c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Profile = base }
			})
			w.Run(2 * time.Minute)
			unknown := func(budget int) (next, directions int) {
				r, err := linkemu.OfLinkProbe(linkProbeOf(t, w, w.Nodes[1], budget).Packets, base, true)
				if err != nil {
					t.Fatal(err)
				}
				doubts := slices.DeleteFunc(r.Doubts(base, budget), func(s string) bool { return !strings.Contains(s, "do not tell the rate") })
				return r.Budget(base, budget), len(doubts)
			}
			next, before := unknown(5000)
			if before == 0 || next == 0 {
				continue
			}
			w.Run(time.Minute)
			_, after := unknown(next)
			asked, told = asked+before, told+before-after
			t.Logf("seed %d: with %d octets %d of %d directions are told", seed+1, next, before-after, before)
		}
		if asked == 0 || 2*told < asked {
			t.Errorf("profile of %.1f times the rate: with the budget that was said %d of %d rates are told", rate, told, asked)
		}
	}
}

// TestLinkProbeYields: nothing of a link probe goes while messages wait or in a silence, a second one is refused, and its octets have a
// kind of their own in the ledgers of both ends.
func TestLinkProbeYields(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 1)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	for i := range 40 {
		ship.Site.Send(w, track(ship.ID, pipeHQ, i, 200), hq.ID)
	}
	w.Give(ship, gateway.LinkProbeOrder{Ref: 1, Peer: 1, Budget: 5000})
	for ship.GW.Status(w.Now).Peers[0].Waiting > 0 {
		if s := ship.GW.Status(w.Now).LinkProbe; s.Sent > 0 {
			t.Fatalf("%d octets went before %d messages", s.Sent, ship.GW.Status(w.Now).Peers[0].Waiting)
		}
		w.Run(100 * time.Millisecond)
	}
	w.Run(20 * time.Second)
	w.Give(ship, gateway.LinkProbeOrder{Ref: 2, Peer: 1, Budget: 5000})
	if s := ship.GW.Status(w.Now).LinkProbe; s.Ref != 1 || s.State != api.LinkProbeRuns || s.Sent == 0 {
		t.Fatalf("%+v", s)
	}
	sent := func(n *sim.Node, direction string) (octets uint64) {
		for _, row := range n.GW.Status(w.Now).Ledger {
			if row.Kind == "link_probe" && row.Direction == direction {
				octets += row.Octets
			}
		}
		return octets
	}
	if sent(ship, "sent") == 0 || sent(hq, "received") == 0 || sent(hq, "sent") == 0 {
		t.Errorf("the ledgers know %d, %d and %d octets of the link probe", sent(ship, "sent"), sent(hq, "received"), sent(hq, "sent"))
	}
	w.Give(ship, api.Silence{On: true})
	w.Run(5 * time.Second)
	s := ship.GW.Status(w.Now).LinkProbe
	if s.State != api.LinkProbeFailed || !strings.Contains(s.Text, "silent") {
		t.Errorf("in a silence: %+v", s)
	}
	octets := s.Sent
	w.Run(5 * time.Minute)
	if now := ship.GW.Status(w.Now).LinkProbe; now.Sent != octets {
		t.Errorf("%d octets went in the silence", now.Sent-octets)
	}
	w.Give(ship, gateway.LinkProbeOrder{Ref: 3, Peer: 1, Budget: 5000})
	if s := ship.GW.Status(w.Now).LinkProbe; s.Ref != 3 || s.State != api.LinkProbeRefused {
		t.Errorf("in a silence: %+v", s)
	}
	w.Give(hq, gateway.LinkProbeOrder{Ref: 4, Peer: 2, Budget: 5000})
	w.Run(20 * time.Minute)
	if s := hq.GW.Status(w.Now).LinkProbe; s.State == api.LinkProbeRuns || s.State == api.LinkProbeDone || s.Sent > 2500 {
		t.Errorf("a silent peer: %+v", s)
	}
}

// TestLinkProbeOfFlash: a flash message that comes while a train goes out does not wait for the rest of the train.
func TestLinkProbeOfFlash(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 1)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	w.Give(ship, gateway.LinkProbeOrder{Ref: 1, Peer: 1, Budget: 20_000})
	sent := func() int { return ship.GW.Status(w.Now).LinkProbe.Sent }
	for before := 0; sent()-before < 200; w.Run(200 * time.Millisecond) { // two single datagrams are seconds apart
		before = sent()
	}
	m := track(ship.ID, pipeHQ, 1, 200)
	m.Precedence = site.Flash
	ship.Site.Send(w, m, hq.ID)
	for went := sent(); ship.GW.Status(w.Now).Peers[0].Waiting > 0; w.Run(10 * time.Millisecond) {
		if sent() != went {
			t.Fatalf("%d octets of a link probe went before a flash message", sent()-went)
		}
	}
	if s := ship.GW.Status(w.Now).LinkProbe; s.State != api.LinkProbeRuns || s.Sent > 9000 {
		t.Fatalf("it was not under way: %+v", s)
	}
	w.Run(10 * time.Minute)
	if s := ship.GW.Status(w.Now).LinkProbe; len(hq.Site.Got) != 1 || s.State != api.LinkProbeDone {
		t.Errorf("%d flash messages arrived, %+v", len(hq.Site.Got), s)
	}
}

// Of two bearers the one that is named is measured, at its own octets and no others; each bearer has its bill.
func TestLinkProbeOfABearer(t *testing.T) {
	w := twoBearers(t, 2, "iridium-directip", 1)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	order := gateway.LinkProbeOrder{Ref: 1, Peer: 1, Bearer: "hf", Budget: 5000}
	w.Give(ship, order)
	if s := ship.GW.Status(w.Now).LinkProbe; s.State != api.LinkProbeRefused || !strings.Contains(s.Text, "it is asked now") {
		t.Fatalf("on a bearer on which they have not met: %+v", s)
	}
	w.Run(5 * time.Minute)
	sat, hf := octetsOn(w, 0, ship), octetsOn(w, 1, ship)
	order.Ref = 2
	w.Give(ship, order)
	w.Give(ship, gateway.LinkProbeOrder{Ref: 3, Peer: 1, Budget: 5000}) // one at a time
	tracks(w, ship, []uint16{hq.ID}, 5, 200, 3*time.Second)
	w.Run(10 * time.Minute)
	s := ship.GW.Status(w.Now).LinkProbe
	if s.Ref != 2 || s.Bearer != "hf" || s.State != api.LinkProbeDone || s.Others > 0 {
		t.Errorf("%+v", s)
	}
	if went := octetsOn(w, 1, ship) - hf; went < 4000 || went > 5000 {
		t.Errorf("%d octets on hf", went)
	}
	if went := octetsOn(w, 0, ship) - sat; went > 3000 || len(hq.Site.Got) != 5 {
		t.Errorf("%d octets on the satellite with %d messages", went, len(hq.Site.Got))
	}
	for i, b := range ship.GW.Status(w.Now).Bearers {
		month := ship.GW.Messages().Bill(i, 1)
		if up, _ := w.OctetsOn(i, ship); len(month) != 1 || b.Month.Total != month[0].Total || int64(month[0].Total.SentOctets) != up {
			t.Errorf("bill of %s: %+v, status %+v; %d octets went", b.Name, month, b.Month, up)
		}
	}
}
