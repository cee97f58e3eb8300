package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// TestDeathsInRollovers kills gateways again and again, one every second, while rosters follow one another on a link that delays,
// reorders and repeats datagrams; the last ship is off the air for whole rollovers. Each message comes once and in order, nobody
// takes a death for data that were put back, and all go by the last roster in the end.
func TestDeathsInRollovers(t *testing.T) {
	for seed := range seeds(20) {
		for _, group := range []bool{false, true} {
			t.Run(fmt.Sprintf("group %v, seed %d", group, seed+3), func(t *testing.T) { dieInRollovers(t, seed+3, group, false) })
		}
		t.Run(fmt.Sprintf("ashore, seed %d", seed+3), func(t *testing.T) { dieInRollovers(t, seed+3, false, true) })
	}
}

func dieInRollovers(t *testing.T, seed uint64, group, ashore bool) {
	rng := rand.New(rand.NewPCG(seed, 31))
	w := world(t, 4, "geo-satcom-128k", seed, withRoster, func(c *sim.Config) {
		c.Group, c.Ashore, c.Down = group, ashore, 100*time.Millisecond
		p := &c.Profile
		for _, d := range []*profile.Direction{&p.Up, &p.Down} {
			*d = profile.Direction{RateBps: 2_000_000, Delay: 20 * time.Millisecond, QueueOctets: 1 << 18, LossPct: 2}
		}
		p.AckDelay, p.ProbeInterval, p.GapAge, p.GRTT, p.Bundle = 200*time.Millisecond, time.Second, 300*time.Millisecond, 200*time.Millisecond, 5*time.Millisecond
		if group {
			p.Transport, p.Shared, p.Tariff = profile.PMul, true, profile.TariffNone
			p.Turnaround, p.MaxHold, p.CopyAfter = 20*time.Millisecond, time.Second, 300*time.Millisecond
		}
	})
	lost := w.Nodes[3]
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if rng.IntN(3) == 0 {
			w.At(time.Duration(rng.IntN(900))*time.Millisecond, func() { w.Late(from, to, data) })
			if rng.IntN(5) > 0 {
				return nil
			}
		}
		return [][]byte{data}
	}
	w.Run(20 * time.Second)
	const deaths = 100
	var all []*[]offered
	for _, n := range w.Nodes {
		var to []uint16
		for _, other := range w.Nodes {
			if other != n {
				to = append(to, other.ID)
			}
		}
		all = append(all, tracks(w, n, to, deaths, 100, time.Second))
	}
	newest := w.First()
	for i := range deaths {
		w.Run(time.Duration(rng.IntN(2000)) * time.Millisecond)
		if i%6 == 0 {
			if i%30 == 6 {
				w.Outage(lost, 12*time.Second)
			}
			newest = w.Roster(newest, time.Time{}, w.Nodes...)
			if rng.IntN(3) == 0 {
				newest = w.Roster(newest, w.Now.Add(time.Duration(rng.IntN(4))*time.Second), w.Nodes...)
			}
			for given := false; !given; w.Run(50 * time.Millisecond) {
				if n := w.Nodes[rng.IntN(3)]; n.GW != nil {
					w.Give(n, gateway.NewRoster{Roster: newest})
					given = true
				}
			}
		}
		n := w.Nodes[rng.IntN(len(w.Nodes))]
		if n.GW != nil {
			w.Kill(n, time.Duration(rng.IntN(100))*time.Millisecond)
		}
	}
	w.Run(30 * time.Minute)
	w.Nodes[0].Site.Send(w, track(1, pipeHQ, 5000, 100), 2, 3, 4)
	*all[0] = append(*all[0], offered{})
	w.Run(time.Minute)
	in := check.In(t, strings.TrimSpace(tail(w.Notes)))
	check.Equal(in, "by which, and for all", serials(w), same(4, fmt.Sprintf("%d/%d", newest.Serial, newest.Serial)))
	log := strings.Join(w.Notes, "\n")
	check.Equal(t, "data that were put back", strings.Count(log, "older copy"), 0)
	for i, n := range w.Nodes {
		for j, other := range w.Nodes {
			if i != j {
				got := 0
				seen := map[string]int{}
				for _, g := range n.Site.Got {
					if g.From == other.ID {
						got++
						seen[head(g.Payload.Parts[0].Data)]++
					}
				}
				check.Equal(t, fmt.Sprintf("messages of %s at %s, and different ones", other.Name, n.Name), fmt.Sprint(got, len(seen)), fmt.Sprint(len(*all[j]), len(*all[j])))
			}
		}
	}
}
