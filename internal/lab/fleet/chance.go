package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Chance is HQ and a ship with accidents at random moments.
type Chance struct {
	Members     int           // machines of HQ, 1 to 9
	ShipMembers int           // of the ship
	JXTA, TAK   int           // peers and devices of both sites together; 0: one at each site
	Power       string        // Random: machines lose their power, or stop and wake, and are upgraded; None: there are no accidents
	Profile     string        // of the bearer
	Every       time.Duration // between two messages of the peers that talk
	Duration    time.Duration // from 5 minutes to 7 days
	Seed        uint64        // equal seeds make equal scripts
}

// Values of Chance.Power.
const (
	Random = "random"
	None   = "none"
)

const (
	leastChance = 5 * time.Minute
	chanceQuiet = time.Minute      // without accidents, at the beginning and at the end
	chanceEvery = 80 * time.Second // between two accidents, so that the site is whole again before the next
	chanceLeast = 40 * time.Second // the least such time, if each machine needs it to have its turn
)

// Script makes the script, which Read would accept. The error says what cannot be played.
func (c Chance) Script() (*Script, error) {
	for _, n := range []int{c.Members, c.ShipMembers} {
		if n < 1 || n > maxMachines {
			return nil, fmt.Errorf("%d machines of a site: 1 to %d can be played", n, maxMachines)
		}
	}
	if c.Power != Random && c.Power != None {
		return nil, fmt.Errorf("power %q: %s or %s", c.Power, Random, None)
	}
	if c.Duration < leastChance || c.Duration > mostSpan {
		return nil, fmt.Errorf("duration %v is not from %v to %v", c.Duration, leastChance, mostSpan)
	}
	s := &Script{Summary: fmt.Sprintf("HQ of %d and a ship of %d, power %s", c.Members, c.ShipMembers, c.Power), Duration: Span{c.Duration}, Drain: Span{defaultDrain},
		Bearers: []Bearer{{Name: "link", Profile: c.Profile}},
		Sites: []Site{{Name: "hq", Ashore: true, Machines: c.Members, JXTA: c.JXTA - c.JXTA*2/5, TAK: c.TAK - c.TAK*2/5},
			{Name: "ship", Machines: c.ShipMembers, JXTA: c.JXTA * 2 / 5, TAK: c.TAK * 2 / 5}},
		Talks: []Talk{{Peers: JXTA, Every: Span{c.Every}, Octets: 200}, {Peers: TAK, Every: Span{c.Every}, Octets: 80}}}
	if c.Power == Random {
		c.happens(s)
	}
	var bad error
	s.check(func(ok bool, format string, args ...any) {
		if !ok && bad == nil {
			bad = fmt.Errorf(format, args...)
		}
	})
	return s, bad
}

// happens adds the accidents.
func (c Chance) happens(s *Script) {
	rng := rand.New(rand.NewPCG(c.Seed, 28))
	turns := c.turns(rng, s)
	span := c.Duration - 2*chanceQuiet
	every := min(chanceEvery, max(chanceLeast, span/time.Duration(max(1, len(turns)))))
	for at := chanceQuiet; at+every <= c.Duration-chanceQuiet; at += every {
		a := c.accident(rng, s)
		lasts := every/8 + time.Duration(rng.Int64N(int64(every/2-every/8)))
		if len(turns) > 0 {
			a, turns = turns[0], turns[1:]
		}
		if a.What == Upgrade {
			lasts = time.Second + time.Duration(rng.Int64N(int64(4*time.Second)))
		}
		a.At, a.For = Span{(at + time.Duration(rng.Int64N(int64(every/2)))).Round(time.Millisecond)}, Span{lasts.Round(time.Millisecond)}
		s.Accidents = append(s.Accidents, a)
	}
}

// turns are the first accidents. Each machine of a site of several loses its power once, in any order, and is upgraded once, in the order
// of numbers: until the last upgrade the site runs two programs.
func (c Chance) turns(rng *rand.Rand, s *Script) (list []Accident) {
	var next [][]Accident // each in its order
	for _, x := range s.Sites {
		if !x.Several() {
			continue
		}
		var power, upgrades []Accident
		for i, n := range rng.Perm(x.Machines) {
			power = append(power, Accident{Site: x.Name, What: Power, Machine: strconv.Itoa(1 + n)})
			upgrades = append(upgrades, Accident{Site: x.Name, What: Upgrade, Machine: strconv.Itoa(1 + i)})
		}
		next = append(next, power, upgrades)
	}
	for {
		next = slices.DeleteFunc(next, func(l []Accident) bool { return len(l) == 0 })
		if len(next) == 0 {
			return list
		}
		i := rng.IntN(len(next))
		list, next[i] = append(list, next[i][0]), next[i][1:]
	}
}

// accident is an accident of any kind that leaves a majority of three machines or more. At a site of one machine the gateway is killed.
func (c Chance) accident(rng *rand.Rand, s *Script) Accident {
	x := s.Sites[rng.IntN(len(s.Sites))]
	a := Accident{Site: x.Name, What: Kill}
	if !x.Several() {
		return a
	}
	a.What, a.Machine = Power, []string{Leader, Leader, Follower, Both}[rng.IntN(4)]
	if a.Machine == Both && x.Machines > 2 {
		a.Machine = Leader
	}
	if a.Machine == Leader && rng.IntN(3) == 0 {
		a.What = Stop
	}
	return a
}
