package air

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/sim"
	"aldis/internal/link/compact"
)

// limit is how long messages would take that come at these times, if the rates, one every ten seconds, were known: each waits for the one
// before and goes at the rate of the moment, with the mean delay. The result is ascending.
func limit(rates []int, at []time.Duration, octets int, delay time.Duration) (took []time.Duration) {
	const tick = 10 * time.Millisecond
	free := time.Duration(0)
	for _, came := range at {
		free = max(free, came)
		for left := float64(octets * 8); left > 0; free += tick {
			left -= float64(rates[min(int(free/(10*time.Second)), len(rates)-1)]) * tick.Seconds()
		}
		took = append(took, free-came+delay)
	}
	slices.Sort(took)
	return took
}

// plain turns compression off: the payload is random, and coding it would take most of the computing time of a play.
func plain(_ *sim.Node, g *sim.Setup) { g.Rules = []compact.Rule{{Effort: compact.None}} }

// Wandering lets a link's rate wander for an hour between 0.8 and 21.4 kbit/s, as in 2004, and offers 60 % of the mean. It returns the share
// of this load that arrives within the hour, in percent, and the median over that of a sender that knows the rates. told: the modem reports
// its rate.
func Wandering(ctx Context, seed uint64, told bool) (share, times float64, err error) {
	const octets = 400
	rates, mean := linkemu.Wander(seed, 800, 21_400, 360), 0
	for _, r := range rates {
		mean += r
	}
	mean /= len(rates)
	s, err := newNet(ctx, "iridium-directip", 2, seed, func(c *sim.Config) {
		c.Ashore = false
		c.Profile.Up.RateBps = 9300 // the mean of 2004
		c.Configure = plain
	})
	if err != nil {
		return 0, 0, err
	}
	for i, bps := range rates {
		s.At(time.Duration(i)*10*time.Second, func() {
			if s.SetRate(0, s.ship, bps); told {
				s.Give(s.ship, api.Modem{RateBps: bps})
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed-1, 4))
	var at []time.Duration
	for when := 10 * time.Second; when < time.Hour; when += time.Duration(rng.ExpFloat64() * octets * 8 / (0.6 * float64(mean)) * float64(time.Second)) {
		m := Track(2, Pipe, len(at), octets)
		at = append(at, when)
		s.At(when, func() {
			s.sent = append(s.sent, Offered{s.Now, m})
			s.ship.Site.Send(s.World, m, 1)
		})
	}
	s.run(time.Hour)
	in := len(s.shore.Site.Got)
	s.until(2*time.Hour, func() bool { return len(s.shore.Site.Got) >= len(s.sent) })
	took, err := Each(s.shore.Site.Got, 2, s.sent) // while their flow is spelt out they count as long messages, which have an order of their own
	if err = errors.Join(err, s.err); err != nil {
		return 0, 0, err
	}
	best := limit(rates, at, octets, meanDelay(s.link.Up))
	return 100 * float64(in) / float64(len(took)), float64(middle(took)) / float64(middle(best)), nil
}

// middle is the median of sorted values.
func middle[T any](sorted []T) T { return at(sorted, 0.5) }

// allowed is how many octets a day the satellite of Day may carry.
const allowed = 100_000

// Day offers 300 octets a minute for a day to a satellite that may carry 100 kB a day, and returns the octets of the busiest day. A gateway
// dies after some commits (dies: 2 the ship's, 1 HQ's). It is an error if a message is lost, or if the operator is not warned.
func Day(ctx Context, seed uint64, hf bool, dies uint16) (most float64, err error) {
	var s *stage
	change := func(c *sim.Config) {
		rng := rand.New(rand.NewPCG(seed-1, 26))
		c.Committed = func(n *sim.Node, out api.Output) {
			if s != nil && n.ID == dies && len(out.Records) > 0 && rng.IntN(1000) == 0 {
				s.At(0, func() { s.Kill(n, 3*time.Second) })
			}
		}
		c.Ashore = false
		c.Configure = func(n *sim.Node, g *sim.Setup) {
			if g.Bearer = "sat"; n.ID == 2 {
				g.PerDay = allowed
			}
		}
	}
	if hf {
		s, err = newFleet(ctx, "iridium-directip", "hf-2400", 2, seed, true, change)
	} else {
		s, err = newNet(ctx, "iridium-directip", 2, seed, change)
	}
	if err != nil {
		return 0, err
	}
	sent := say(s, s.ship, []uint16{1}, 24*60, 300, time.Minute)
	days, before := map[int64]float64{}, 0.0
	for range 40 * 60 { // the day ends after 16 hours
		s.run(time.Minute)
		octets := s.on(0, s.ship)
		days[(s.Now.Unix()-1)/86400] += octets - before
		before = octets
	}
	s.run(24 * time.Hour)
	for _, octets := range days {
		most = max(most, octets)
	}
	if !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "has used its octets of the day") }) {
		err = errors.New("the operator is not told")
	}
	judge, there := Each, len(*sent)
	if !hf {
		judge, there = Once, len(s.shore.Site.Got)
	}
	_, err2 := judge(s.shore.Site.Got, 2, (*sent)[:there])
	return most, errors.Join(err, err2, s.err)
}

// Distances returns a ship's forecast of the time that each of eight messages will take, and the time that each takes, in seconds. Other
// messages fill the share busy of the rate.
func Distances(ctx Context, link string, busy float64, octets int, seed uint64) (said, took []float64, err error) {
	s, err := newNet(ctx, link, 2, seed, func(c *sim.Config) {
		c.Ashore = false
		c.Configure = plain
	})
	if err != nil {
		return nil, nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 9))
	s.ship.Site.Send(s.World, Track(2, Pipe, 0, 200), 1)
	s.run(3 * time.Minute)
	mean := time.Duration(float64(time.Second) * 300 * 8 / max(busy, 1e-9) / float64(s.link.Up.RateBps))
	i := 1
	var next func()
	next = func() {
		s.ship.Site.Send(s.World, Track(2, Pipe, i, 200), 1)
		i++
		s.At(time.Duration(rng.ExpFloat64()*float64(mean)), next)
	}
	if busy > 0 {
		s.At(0, next)
	}
	s.run(5 * time.Minute)
	for n := range 8 {
		m := Track(2, Pipe, 100_000+n, octets)
		m.From = Peer(77)
		q := s.ship.GW.Status(s.Now).Peers[0].Quality
		if octets == 200 {
			said = append(said, q.ShortS)
		} else {
			said = append(said, q.LongS)
		}
		sent := s.Now
		s.ship.Site.Send(s.World, m, 1)
		for end := sent.Add(30 * time.Minute); s.err == nil && s.Now.Before(end) && len(took) == n; {
			s.run(time.Second)
			for _, g := range s.shore.Site.Got {
				if string(g.Payload.Parts[0].Data) == string(m.Parts[0].Data) {
					took = append(took, g.At.Sub(sent).Seconds())
					break
				}
			}
		}
		if len(took) == n {
			return nil, nil, errors.Join(s.err, fmt.Errorf("message %d of %d octets did not come", n, octets))
		}
		s.run(time.Duration(10+rng.IntN(30)) * time.Second)
	}
	return said, took, s.err
}

// distance measures how far the forecasts of Distances are off, in percent of the time that each message took.
func distance(link string, octets int) Scenario {
	loads := []float64{0, 0.4, 0.8}
	what := fmt.Sprintf("/distance for %d octets, ", octets)
	s := Scenario{Link: link, play: func(ctx Context, seed uint64) ([][]float64, error) {
		samples := make([][]float64, len(loads)+1)
		for i, busy := range loads {
			said, took, err := Distances(ctx, link, busy, octets, seed)
			if err != nil {
				return nil, err
			}
			for k := range said {
				off := 100 * math.Abs(said[k]/took[k]-1)
				samples[i], samples[len(loads)] = append(samples[i], off), append(samples[len(loads)], off)
			}
		}
		return samples, nil
	}}
	for _, busy := range loads {
		s.Rows = append(s.Rows, asked(fmt.Sprintf("%sload %.0f %%: off by, %%", what, 100*busy), "%", "", 0.5, 25, 10))
	}
	s.Rows = append(s.Rows, measured(what+"all loads: off by, 90 of 100, %", "%", 0.9))
	return s
}

// refused counts the datagrams that 255 ships refuse as old while HQ sends each five messages a second and delays differ by 1.1 s.
func refused(ctx Context, seed uint64) ([][]float64, error) {
	const ships, n, every = 255, 20, time.Second / 5 // a roster has 256 nodes at most; four seconds are far longer than the jitter
	s, err := newNet(ctx, "iridium-certus-100", ships+1, seed, func(c *sim.Config) {
		c.Roster = true
		c.Profile.Down.Jitter = 1100 * time.Millisecond
		c.Configure = func(n *sim.Node, g *sim.Setup) {
			if plain(n, g); n.ID > 1 { // a ship knows HQ alone
				g.Peers = g.Peers[:1]
			}
		}
	})
	if err != nil {
		return nil, err
	}
	s.run(5 * time.Minute)
	for i := range n {
		for k, ship := range s.Nodes[1:] {
			m := Track(1, Pipe, i, 12)
			s.At(time.Duration(i)*every+time.Duration(k)*every/ships, func() { s.shore.Site.Send(s.World, m, ship.ID) })
		}
	}
	s.run(n*every + 2*time.Minute)
	old := 0
	for _, ship := range s.Nodes[1:] {
		if len(ship.Site.Got) != n {
			return nil, errors.Join(s.err, fmt.Errorf("%d messages at %s", len(ship.Site.Got), ship.Name))
		}
		old += dropped(s, ship)
	}
	return one(float64(old)), s.err
}

// dropped is how many datagrams a node has refused as old or not authentic.
func dropped(s *stage, n *sim.Node) (datagrams int) {
	for _, why := range []string{"not_authentic", "too_old", "replay"} {
		datagrams += int(n.GW.Status(s.Now).Dropped[why])
	}
	return datagrams
}

// changing are scenarios of links whose rate or use changes, of the forecasts for them, and of many ships.
func changing() (list []Scenario) {
	const directip = "iridium-directip"
	for _, told := range []bool{true, false} {
		what := "the rate wanders between 0.8 and 21.4 kbit/s, 60 % offered for an hour, with the modem's word: "
		goods, times := [2]float64{90, 95}, [2]float64{3, 2}
		if !told {
			what, goods, times = strings.Replace(what, "with ", "without ", 1), [2]float64{75, 95}, [2]float64{6, 2}
		}
		list = append(list, Scenario{Link: directip, Rows: []Row{
			asked(what+"goodput, % of what is offered", "%", "", 0.5, goods[0], goods[1]),
			asked(what+"median", flat, "", 0.5, times[0], times[1])},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				share, times, err := Wandering(ctx, seed, told)
				return one(share, times), err
			}})
	}
	for i, who := range []string{"HQ", "the ship"} {
		list = append(list, Scenario{Link: directip + " and hf-2400",
			Rows: []Row{asked("300 octets a minute for a day, 100 kB allowed on the first, "+who+" killed at times: octets of a day there", "octets", "", 1, allowed, allowed)},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				most, err := Day(ctx, seed, true, uint16(i+1))
				return one(most), err
			}})
	}
	for _, link := range []string{directip, "iridium-certus-100", "iridium-dialup", "vhf-cnr-16k", "hf-2400"} {
		for _, octets := range []int{200, 20_000} {
			list = append(list, distance(link, octets))
		}
	}
	return append(list, Scenario{Link: "iridium-certus-100", Rows: []Row{asked("255 ships (a roster's most) at 5 datagrams a second from HQ, jitter 1.1 s: refused as old", "datagrams", "", 1, 0, 0)}, play: refused})
}
