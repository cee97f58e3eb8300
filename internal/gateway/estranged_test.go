package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/shapes"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// estranged makes the existing games those of strangers: their messages have more elements, their links reorder and duplicate, turns
// of their loops end anywhere and are late now and then. nil changes nothing.
type estranged struct {
	rng  *rand.Rand
	apps map[string]*shapes.Stranger
	said map[string][]shapes.Message
	late uint64 // seed of the lateness of each world: worlds that a test compares have the same
}

// strange now changes all worlds of this process; nil: they are as their tests say.
var strange *estranged

func newEstranged(seed uint64) *estranged {
	rng := rand.New(rand.NewPCG(seed, 0x65))
	return &estranged{rng, map[string]*shapes.Stranger{}, map[string][]shapes.Message{}, rng.Uint64()}
}

// add gives a message the elements of the application that speaks on its pipe, in its i-th message always the same.
func (e *estranged) add(m site.Message, i int) site.Message {
	if e == nil {
		return m
	}
	key := m.Topic + m.From
	if e.apps[key] == nil {
		e.apps[key] = shapes.New(e.rng.Uint64(), 40)
	}
	for len(e.said[key]) <= i {
		e.said[key] = append(e.said[key], e.apps[key].Next(sim.Epoch.Add(time.Duration(len(e.said[key]))*time.Second)))
	}
	for _, x := range e.said[key][i] {
		m.Parts = append(m.Parts, site.Part{Namespace: "own", Name: x.Name, Type: x.Type, Data: x.Data})
	}
	return m
}

// link makes a world's link wild and its loops those of busy machines.
func (e *estranged) link(cfg *sim.Config) {
	if e == nil {
		return
	}
	cfg.Wild = linkemu.Wild{Reorder: true, TwicePct: 1}
	rng := rand.New(rand.NewPCG(e.late, 0))
	cfg.Late = func(n *sim.Node) time.Duration { return lateTurn(rng, n, 200*time.Millisecond) }
}

// lateTurn has the next turn of a node read another number of octets of its peers' messages, and makes a third of its turns late by up
// to that.
func lateTurn(rng *rand.Rand, n *sim.Node, most time.Duration) time.Duration {
	gateway.Slices(n.GW, 1+rng.IntN(8<<rng.IntN(9)))
	if most == 0 || rng.IntN(3) > 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(most)))
}

// TestStandingGames plays games of other tests once more, with all that strangers add.
func TestStandingGames(t *testing.T) {
	t.Cleanup(func() { strange = nil })
	for seed := range seeds(20) {
		for _, game := range []struct {
			name string
			play func(*testing.T)
			long bool // it computes for seconds
		}{
			{"three ships", TestThreeShips, false}, {"an outage", TestOutageOfAMinute, false}, {"two adapters", TestTwoAdapters, false},
			{"an adapter after a kill", TestAdapterAfterAKill, false}, {"P_Mul", TestMulGroup, false}, {"P_Mul crashes", TestMulCrashes, false},
			{"P_Mul and a lost store", TestMulLostStore, false}, {"a silent ship", TestMulSilentShip, false},
			{"reordered", TestReorderedDatagrams, false}, {"a forgotten history", TestForgottenHistory, false},
			{"any one datagram", TestAnyOneDatagramLost, true}, {"tracks", TestTracksOverIridium, true},
			{"learning", TestLearningSurvivesEverything, true}, {"kin", TestKinSurvivesEverything, true},
			{"long documents", TestLongLearningSurvivesEverything, true}, {"learning over P_Mul", TestMulLearningSurvivesEverything, true},
			{"forward secrecy", TestForwardRestarts, true}, {"rollovers", TestDeathsInRollovers, true},
			{"hostile air", TestNeverMoreOutThanIn, true}, {"everything bad", TestChaos, true}, {"everything bad over P_Mul", TestChaosGroup, true}, {"with a roster", TestChaosRoster, true},
		} {
			if game.long && seeds(2) == 1 {
				continue
			}
			strange = newEstranged(seed)
			t.Run(fmt.Sprintf("%s, seed %d", game.name, seed), game.play)
		}
	}
}
