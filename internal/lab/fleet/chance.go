package fleet

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Chance is HQ and a ship with accidents at random moments.
type Chance struct {
	Members     int           // machines of HQ, 1 or 2
	ShipMembers int           // of the ship
	Power       string        // Random: machines lose their power, or stop and wake; None: nothing happens
	Profile     string        // of the bearer
	Duration    time.Duration // from 5 minutes to 7 days
	Seed        uint64        // the same one makes the same script
}

// What Chance.Power may be.
const (
	Random = "random"
	None   = "none"
)

const (
	leastChance = 5 * time.Minute
	chanceQuiet = time.Minute      // nothing happens so long at the beginning and at the end
	chanceEvery = 80 * time.Second // one accident in each such time, so that the site is whole again before the next
	chanceMost  = 40 * time.Second // the longest one
)

// Script makes a script of it, which Read would take. The error says what cannot be played.
func (c Chance) Script() (*Script, error) {
	for _, n := range []int{c.Members, c.ShipMembers} {
		if n != 1 && n != 2 {
			return nil, fmt.Errorf("%d machines of a site: 1 or 2 can be played", n)
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
		Sites:   []Site{{Name: "hq", Ashore: true, Machines: c.Members}, {Name: "ship", Machines: c.ShipMembers}},
		Talks:   []Talk{{Peers: JXTA, Every: Span{8 * time.Second}, Octets: 200}, {Peers: TAK, Every: Span{8 * time.Second}, Octets: 80}}}
	rng := rand.New(rand.NewPCG(c.Seed, 28))
	for at := chanceQuiet; c.Power == Random && at+chanceEvery <= c.Duration-chanceQuiet; at += chanceEvery {
		s.Accidents = append(s.Accidents, c.accident(rng, s, at))
	}
	var bad error
	s.check(func(ok bool, format string, args ...any) {
		if !ok && bad == nil {
			bad = fmt.Errorf(format, args...)
		}
	})
	return s, bad
}

// accident is one that begins and ends in the time from at on. A site of one machine has a gateway that is killed.
func (c Chance) accident(rng *rand.Rand, s *Script, at time.Duration) Accident {
	lasts := 10*time.Second + time.Duration(rng.Int64N(int64(chanceMost-10*time.Second)))
	x := s.Sites[rng.IntN(len(s.Sites))]
	a := Accident{At: Span{(at + time.Duration(rng.Int64N(int64(chanceEvery-chanceMost)))).Round(time.Millisecond)}, For: Span{lasts.Round(time.Millisecond)}, Site: x.Name, What: Kill}
	if !x.Two() {
		return a
	}
	a.What, a.Machine = Power, []string{Leader, Leader, Follower, Both}[rng.IntN(4)]
	if a.Machine == Leader && rng.IntN(3) == 0 {
		a.What = Stop
	}
	return a
}
