package air

import (
	"errors"
	"math/rand/v2"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// TakenOver is the cost, in IP octets, of a change of leader at a site of two machines. There is no other traffic.
type TakenOver struct {
	Channel float64 // of a channel of 16: all octets sent
	Leg     float64 // of a star of HQ and 15 ships: the leg of the ship whose leader changes
	HQ      float64 // of such a star when HQ's leader changes: the leg of the ship that pays most
}

// takeoverTime is the time from the loss of the leader to the start of the gateway on the other machine.
const takeoverTime = 3 * time.Second

// Takeover plays the cases of TakenOver: a gateway starts from the records of the lost one.
func Takeover(ctx Context, seed uint64) (t TakenOver, err error) {
	s, err := newNet(ctx, "hf-2400", 16, seed, overPMul)
	if err != nil {
		return t, err
	}
	s.run(20 * time.Minute)
	idle := s.octets()
	takeOver(s, s.Nodes[4])
	s.run(20 * time.Minute)
	t.Channel = float64(s.octets() - idle)
	err = errors.Join(met(s, s.Nodes[4], 15), s.err)
	for _, hq := range []bool{false, true} {
		octets, err2 := takeoverLeg(ctx, seed, hq)
		if err = errors.Join(err, err2); hq {
			t.HQ = octets
		} else {
			t.Leg = octets
		}
	}
	return t, err
}

// takeOver loses the leader of a site.
func takeOver(s *stage, n *sim.Node) {
	s.Reconfigure(n, func(c *gateway.Config) { c.TakesOver = true })
	s.Kill(n, takeoverTime)
}

// takeoverLeg is the octets of the leg that pays most.
func takeoverLeg(ctx Context, seed uint64, hq bool) (most float64, err error) {
	legs := map[uint16]float64{}
	var s *stage
	s, err = newNet(ctx, "iridium-directip", 16, seed, Star, func(c *sim.Config) {
		c.Committed = func(n *sim.Node, out api.Output) {
			for _, d := range out.Datagrams {
				if s == nil {
					continue
				}
				for _, ship := range s.Nodes[1:] {
					if n == ship || n.ID == 1 && d.Addr == ship.Addr() {
						legs[ship.ID] += float64(len(d.Data) + profile.IPUDPOctets)
					}
				}
			}
		}
	})
	if err != nil {
		return 0, err
	}
	s.run(20 * time.Minute)
	clear(legs)
	victim := s.Nodes[5]
	if hq {
		victim = s.Nodes[0]
	}
	takeOver(s, victim)
	s.run(20 * time.Minute)
	for _, octets := range legs {
		most = max(most, octets)
	}
	return most, errors.Join(met(s, s.shore, 15), s.err)
}

// Survived is the result of a site of two machines and a far site that send each other a message every loadedEvery, on geo-satcom-128k,
// while machines of the first die at random moments: before a commit, or after it and before the first site's messages go out.
type Survived struct {
	Said, Lost, Twice int
	Deaths            map[string]int // of the leader, the follower, or both
	Slowest           time.Duration  // of a message
}

const (
	loadedEvery = 20 * time.Millisecond
	loadedSize  = 40
	aloneAfter  = time.Second      // a leader without its follower commits nothing until it has a new epoch
	powerless   = 10 * time.Second // both machines
)

// Survive plays so many deaths. The next leader continues from the records on both disks.
func Survive(ctx Context, seed uint64, deaths int) (l Survived, err error) {
	l.Deaths = map[string]int{}
	rng := rand.New(rand.NewPCG(seed, 28))
	var armed, early bool
	var stalled time.Time
	var down time.Duration
	var s *stage
	s, err = newNet(ctx, "geo-satcom-128k", 2, seed, func(c *sim.Config) {
		c.Configure = plain
		c.Downs = func() time.Duration { return down }
		c.Crash = func(n *sim.Node, _ int) (before, after bool) {
			if !armed || n.ID != 2 {
				return false, false
			}
			armed = false
			return early, !early
		}
		c.Late = func(n *sim.Node) time.Duration {
			if s == nil || n.ID != 2 {
				return 0
			}
			return max(0, stalled.Sub(s.Now))
		}
	})
	if err != nil {
		return l, err
	}
	for _, n := range s.Nodes {
		n.Site.Listen(s.World, Peer(n.ID), Pipe)
	}
	s.run(acquaintance)
	s.Reconfigure(s.ship, func(c *gateway.Config) { c.TakesOver = true })
	at := map[string]time.Time{}
	talking := true
	for i, n := range s.Nodes {
		var say func()
		said := 0
		say = func() {
			if !talking {
				return
			}
			m := Track(n.ID, Pipe, said, loadedSize)
			at[string(m.Parts[0].Data)] = s.Now
			n.Site.Send(s.World, m, s.Nodes[1-i].ID)
			said++
			s.At(loadedEvery, say)
		}
		s.At(time.Duration(i)*loadedEvery/2, say)
	}
	for range deaths {
		s.run(2*time.Second + time.Duration(rng.Int64N(int64(4*time.Second))))
		early = rng.IntN(2) == 0
		what := "leader"
		down = takeoverTime
		switch rng.IntN(5) {
		case 0:
			what = "follower"
			stalled = s.Now.Add(aloneAfter)
		case 1:
			what, down = "both", powerless
			fallthrough
		default:
			armed = true
		}
		l.Deaths[what]++
		s.run(down + time.Second)
	}
	talking = false
	s.until(10*time.Minute, func() bool { return len(s.shore.Site.Got)+len(s.ship.Site.Got) >= len(at) })
	s.run(time.Minute) // time for duplicates to come
	came := map[string]int{}
	for _, n := range s.Nodes {
		for _, g := range n.Site.Got {
			text := string(g.Payload.Parts[0].Data)
			l.Slowest = max(l.Slowest, g.At.Sub(at[text]))
			if came[text]++; came[text] > 1 {
				l.Twice++
			}
		}
	}
	l.Said, l.Lost = len(at), len(at)-len(came)
	return l, s.err
}

// takeovers: a site of two machines.
func takeovers() []Scenario {
	const what = "the other machine of a site leads: "
	return []Scenario{{Link: "hf-2400 and iridium-directip", Rows: []Row{
		asked(what+"octets of a channel of 16", "octets", "", 0.5, 2000, 1000),
		asked(what+"octets of a ship's own leg", "octets", "", 0.5, 260, 110),
		asked(what+"HQ of 15 ships: octets of the leg that it costs most", "octets", "", 0.5, 260, 110)},
		play: func(ctx Context, seed uint64) ([][]float64, error) {
			t, err := Takeover(ctx, seed)
			return one(t.Channel, t.Leg, t.HQ), err
		}}}
}
