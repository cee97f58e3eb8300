package air

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// sixtyFour are the nodes on a star, on HF, on VHF and on another HF frequency. Two of the star are on each of the others.
var sixtyFour = [4][2][]int{
	{nil, span(0, 16)},
	{{12, 13}, span(16, 32)},
	{{10, 11}, span(32, 48)},
	{{8, 9}, span(48, 64)},
}

// span returns the numbers from one to another, without the latter.
func span(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

const rollupEvery = 5 * time.Minute

// fourChannels is 64 gateways that report their state to the first of them once a period.
func fourChannels(ctx Context, seed uint64, change ...func(*sim.Config)) (*stage, error) {
	var links [3]profile.Profile
	for i, name := range []string{"wire", "hf-2400", "vhf-cnr-16k"} {
		p, err := profile.Load(name, nil)
		if err != nil {
			return nil, err
		}
		links[i] = p
	}
	return newNet(ctx, "iridium-certus-100", 64, seed, append([]func(*sim.Config){func(c *sim.Config) {
		c.Roster = true
		c.Second = &sim.Second{Name: "hf", Profile: links[1], Wire: links[0], Group: true, Price: 2}
		c.Third = &sim.Second{Name: "vhf", Profile: links[2], Wire: links[0], Group: true, Price: 1}
		c.Fourth = &sim.Second{Name: "hf2", Profile: links[1], Wire: links[0], Group: true, Price: 2}
		c.Configure = func(n *sim.Node, g *sim.Setup) {
			on := func(channel int, id uint16) bool {
				c := sixtyFour[channel]
				return slices.Contains(c[0], int(id)-1) || slices.Contains(c[1], int(id)-1)
			}
			g.Fleet = gateway.FleetConfig{Period: rollupEvery, Version: 2}
			if n.ID > 1 {
				g.Fleet.To = []uint16{1}
			}
			for i := range g.Peers { // the configuration names all peers, and has addresses for those of the star
				if !on(0, n.ID) || !on(0, g.Peers[i].ID) {
					g.Peers[i].Addr = netip.AddrPort{}
				}
			}
			var more []gateway.BearerConfig
			for k, b := range g.More {
				for id := range b.Peers {
					if !on(k+1, n.ID) || !on(k+1, id) {
						delete(b.Peers, id)
					}
				}
				more = append(more, b)
				if on(k+1, n.ID) && !on(0, n.ID) {
					for _, head := range sixtyFour[k+1][0] {
						g.Fleet.To = append(g.Fleet.To, uint16(head)+1)
					}
				}
			}
			g.More = more
		}
	}}, change...)...)
}

// rolledUp plays the time lasting, in which eight of the 63 are off the air for half a minute of each minute and one of these is killed.
// Once a minute it checks at the headquarters how old the record of each gateway is, and whether the sum is that of the records. It
// returns the median, the 99th percentile and the worst of the ages, and how many records were missing or sums wrong.
func rolledUp(ctx Context, seed uint64, lasting time.Duration) ([][]float64, error) {
	s, err := fourChannels(ctx, seed)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 64))
	s.run(30 * time.Minute)
	var ages []float64
	wrong := 0
	for range int(lasting / time.Minute) {
		for i, at := range rng.Perm(63)[:8] {
			n := s.Nodes[at+1]
			s.At(time.Duration(rng.IntN(30))*time.Second, func() {
				for k := range s.Links {
					s.Cut(k, n, true)
				}
				if i == 0 {
					s.Kill(n, 30*time.Second)
				}
				s.At(30*time.Second, func() {
					for k := range s.Links {
						s.Cut(k, n, false)
					}
				})
			})
		}
		s.run(time.Minute)
		if s.err != nil {
			return nil, s.err
		}
		f := s.shore.GW.Status(s.Now).Fleet
		sum, gateways := map[string]int{}, 0
		for _, r := range f.Gateways {
			if r.State == "unheard" || !r.Proven {
				wrong++
				continue
			}
			ages = append(ages, r.AgeS)
			for p, n := range r.Waiting {
				sum[p] += n
			}
			gateways++
		}
		if fmt.Sprint(sum) != fmt.Sprint(f.Sum.Waiting) || gateways != f.Sum.Gateways || len(f.Gateways) != len(s.Nodes) {
			wrong++
		}
	}
	slices.Sort(ages)
	return one(at(ages, 0.5), at(ages, 0.99), ages[len(ages)-1], float64(wrong)), nil
}

// rollupCost is how many octets the roll-up takes in an hour without other traffic, for each gateway and period, headers and receipts
// included: the difference between all octets sent with it and without it.
func rollupCost(ctx Context, seed uint64) ([][]float64, error) {
	var octets [2]float64
	for with := range octets {
		s, err := fourChannels(ctx, seed, func(c *sim.Config) {
			configure := c.Configure
			c.Configure = func(n *sim.Node, g *sim.Setup) {
				if configure(n, g); with == 0 {
					g.Fleet = gateway.FleetConfig{}
				}
			}
		})
		if err != nil {
			return nil, err
		}
		s.run(time.Hour)
		_, before := repaired(s)
		s.run(time.Hour)
		_, after := repaired(s)
		if s.err != nil {
			return nil, s.err
		}
		octets[with] = after - before
	}
	return one((octets[1] - octets[0]) / 63 / float64(time.Hour/rollupEvery)), nil
}

// rollupRows are those of docs/fleet.md.
func rollupRows() []Scenario {
	const four, what = "iridium-certus-100, hf-2400 twice and vhf-cnr-16k", "64 gateways, a record each five minutes"
	played := func(lasting time.Duration, words string) Scenario {
		of := what + ", one in eight off the air for half of each minute, " + words + ": "
		return Scenario{Link: four, Rows: []Row{
			measured(of+"age of a record at the headquarters, median, s", "s", 0.5),
			asked(of+"age of a record at the headquarters, 99 of 100, s", "s", "", 0.5, 360, 320),
			measured(of+"age of a record at the headquarters, the oldest, s", "s", 0.5),
			asked(of+"records missing, or sums that are not those of the records", "times", "", 1, 0, 0)},
			play: func(ctx Context, seed uint64) ([][]float64, error) { return rolledUp(ctx, seed, lasting) }}
	}
	return []Scenario{played(time.Hour, "an hour"), played(24*time.Hour, "a day"),
		{Link: four, Rows: []Row{measured(what+", an hour in which nothing else is said: octets of a gateway and period, headers and receipts included", "octets", 0.5)}, play: rollupCost}}
}
