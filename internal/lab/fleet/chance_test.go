package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/fleet"
)

// A script of Chance can be played, is the same for the same seed, and soon has each kind of accident. Each machine of several loses its
// power and is upgraded before it has a second accident, and no accident hits more than one of three.
func TestChance(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(20) {
		c := fleet.Chance{Members: 2 + int(seed/2%2), ShipMembers: 1 + int(seed%2), JXTA: 10, TAK: 20, Power: fleet.Random, Profile: "hf-2400", Every: time.Second, Duration: time.Hour, Seed: seed}
		s, err := c.Script()
		check.NoError(check.Fatal(t), err)
		again, _ := c.Script()
		check.Equal(check.In(t, "seed", seed), "the script", fmt.Sprintf("%+v", s), fmt.Sprintf("%+v", again))
		check.True(t, "accidents of an hour", len(s.Accidents) > 40, len(s.Accidents))
		turns := 0
		for _, x := range s.Sites {
			if x.Several() {
				turns += 2 * x.Machines
			}
		}
		first := map[string]bool{}
		for i, a := range s.Accidents {
			kinds[a.What+" "+a.Machine]++
			if i < turns {
				first[a.Site+" "+a.What+" "+a.Machine] = a.Number() > 0
			}
			check.True(check.In(t, "seed", seed), "a majority stays", a.Machine != fleet.Both || c.Members == 2 || a.Site == "ship", a)
			check.True(check.In(t, "seed", seed), "one after the other", i == 0 || a.At.Duration > s.Accidents[i-1].At.Duration+s.Accidents[i-1].For.Duration, a)
		}
		check.Equal(check.In(t, "seed", seed), "machines that had their turn, twice", len(first), turns)
		check.Equal(check.In(t, "seed", seed), "local peers", fmt.Sprint(s.Sites[0].JXTA, s.Sites[1].JXTA, s.Sites[0].TAK, s.Sites[1].TAK), "6 4 12 8")
	}
	for _, kind := range []string{"kill ", "power leader", "power follower", "power both", "stop leader", "power 1", "upgrade 2"} {
		check.True(t, kind, kinds[kind] > 10, kinds)
	}
	calm, err := fleet.Chance{Members: 1, ShipMembers: 2, Power: fleet.None, Profile: "iridium-directip", Every: time.Second, Duration: time.Hour}.Script()
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "accidents where there are none", len(calm.Accidents), 0)
}

func TestChanceRefuses(t *testing.T) {
	good := fleet.Chance{Members: 2, ShipMembers: 2, Power: fleet.Random, Profile: "hf-2400", Every: time.Second, Duration: time.Hour}
	for _, tt := range []struct {
		change func(*fleet.Chance)
		says   string
	}{
		{func(c *fleet.Chance) { c.Members = 10 }, "10 machines"},
		{func(c *fleet.Chance) { c.TAK = 60 }, "at most 20 each"},
		{func(c *fleet.Chance) { c.Every = 0 }, "every: 0s is not from"},
		{func(c *fleet.Chance) { c.ShipMembers = 0 }, "0 machines"},
		{func(c *fleet.Chance) { c.Power = "wind" }, `power "wind"`},
		{func(c *fleet.Chance) { c.Duration = time.Minute }, "duration 1m0s"},
		{func(c *fleet.Chance) { c.Profile = "string" }, `profile "string"`},
	} {
		c := good
		tt.change(&c)
		_, err := c.Script()
		check.Contains(t, "the error", fmt.Sprint(err), tt.says)
	}
}
