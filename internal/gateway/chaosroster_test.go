package gateway_test

import (
	"aldis/internal/gateway"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestChaosRoster does the same to nodes with keys of their own. Operators give rosters meanwhile, and the liar, who is in the
// net, also sends in the others' names, to one and to all.
func TestChaosRoster(t *testing.T) {
	for seed := range plays(6, 400) {
		make := newChaosRoster
		if seed%3 == 2 {
			make = newChaosGroupRoster
		}
		if c := make(t, seed); !c.play() {
			t.Errorf("seed %d, %s: %s\n%s\n%s", seed, c.link, strings.Join(c.faults, "\n"), strings.Join(c.story, "\n"), tail(c.w.Notes))
		}
	}
}

func newChaosRoster(t *testing.T, seed uint64) *chaos {
	c := &chaos{rng: rand.New(rand.NewPCG(seed, 2026)), trust: true}
	c.link = []string{"iridium-directip", "iridium-dialup", "iridium-certus-100"}[c.rng.IntN(3)]
	c.begin(t, 2, 40_000+seed)
	return c
}

func newChaosGroupRoster(t *testing.T, seed uint64) *chaos {
	c := &chaos{rng: rand.New(rand.NewPCG(seed, 2027)), group: true, trust: true}
	c.link = []string{"vhf-cnr-16k", "hf-2400"}[c.rng.IntN(2)]
	c.begin(t, 3, 50_000+seed)
	return c
}

// insider gives the liar what a member has.
func (c *chaos) insider() {
	ring, err := roster.Ring(c.liar.ID, sim.NodeKey(c.liar.ID), c.roster)
	if err != nil {
		c.fault("%v", err)
		return
	}
	c.lies = seal.NewSealer(ring, c.liar.ID, seal.Incarnation{Number: c.liar.Incarnation() + 1 + uint32(c.roster.Serial), Salt: 7})
	c.forger = nil
	for _, n := range c.nodes {
		c.forger = append(c.forger, []*seal.Sealer{
			seal.NewSealer(ring, n.ID, seal.Incarnation{Number: n.Incarnation(), Salt: 9}), seal.NewSealer(ring, n.ID, seal.Incarnation{Number: n.Incarnation() + 1, Salt: 9})})
	}
}

// rollover has the operator of some node give it a newer roster, of now or of later.
func (c *chaos) rollover() {
	if !c.trust || c.rng.IntN(2) == 0 {
		return
	}
	var at time.Time
	if c.rng.IntN(2) == 0 {
		at = c.w.Now.Add(time.Duration(c.rng.IntN(60)) * time.Minute)
	}
	c.roster = c.w.Roster(c.roster, at, c.w.Nodes...)
	n := c.nodes[c.rng.IntN(len(c.nodes))]
	if n.GW != nil {
		c.say("%s is given roster %d", n.Name, c.roster.Serial)
		c.w.Give(n, gateway.NewRoster{Roster: c.roster})
	}
	c.insider()
	victim := c.nodes[c.rng.IntN(len(c.nodes))]
	for i, sealers := range c.forger {
		for _, s := range sealers {
			for _, to := range []uint16{victim.ID, seal.Group} {
				d, err := s.Seal(nil, to, true, frame.Append(nil, frame.Hello{Store: 9, Stream: 9, HeardIncarnation: victim.Incarnation()}, true))
				if err == nil && c.nodes[i] != victim {
					c.w.Late(c.liar, victim, d)
				}
			}
		}
	}
}
