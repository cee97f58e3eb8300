package air

import (
	"testing"

	"aldis/internal/lab/check"
)

// Machines of a site of two die at random moments, while 50 messages a second go each way: each message comes once.
func TestDeathsUnderLoad(t *testing.T) {
	sum := map[string]int{}
	for seed := uint64(1); seed <= deathSeeds; seed++ {
		l, err := Survive(t.Context(), seed, deathsOfSeed)
		check.NoError(check.Fatal(t), err)
		in := check.In(t, "seed", seed, l)
		check.True(in, "messages", l.Said > 100*deathsOfSeed, l.Said)
		check.Equal(in, "lost", l.Lost, 0)
		check.Equal(in, "twice", l.Twice, 0)
		for what, n := range l.Deaths {
			sum[what] += n
		}
		t.Logf("seed %d: %+v", seed, l)
	}
	check.True(t, "deaths of each kind", sum["leader"] > 0 && sum["follower"] > 0 && sum["both"] > 0, sum)
}
