package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/mark"
	"aldis/internal/rules/route"
	"aldis/internal/site"
)

// Both bearers are full of routine messages when a flash message comes: it takes the one where it arrives first, about as soon as if that
// were the only one. The cheaper of the two is the faster one, or the slower.
func TestFlashWhileBothAreFull(t *testing.T) {
	t.Parallel()
	both := map[float64][]time.Duration{} // by the price of HF, beside 1 of the satellite
	var alone []time.Duration
	for seed := range max(3, seeds(20)) { // ten flash messages of one seed are too few for a median
		alone = append(alone, flashes(t, seed+1, 2, []string{"sat"})...)
		for _, price := range []float64{0.5, 2} {
			both[price] = append(both[price], flashes(t, seed+1, price, nil)...)
		}
	}
	for price, took := range both {
		t.Logf("HF at %v: median %v and %v alone", price, median(took), median(alone))
		check.True(t, "within 1.2 of the faster alone", float64(median(took)) <= 1.2*float64(median(alone)), median(took), median(alone))
	}
}

// flashes is how long flash messages took; links are what they may take.
func flashes(t *testing.T, seed uint64, price float64, links []string) (took []time.Duration) {
	w := twoBearers(t, 2, "iridium-directip", seed, func(c *sim.Config) {
		c.Second.Price = price
		c.Configure = func(_ *sim.Node, g *gateway.Config) {
			g.Bearer, g.Messages = "sat", []mark.Rule{{Most: 100, Precedence: site.Flash}}
			g.Routes = []route.Rule{{Precedence: []site.Precedence{site.Flash}, Links: links}, {Least: 300, Links: []string{"hf"}}, {Links: []string{"sat"}}}
		}
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1)
	ship.Site.Send(w, track(2, pipeHQ, 2, 300), 1)
	w.Run(3 * time.Minute)
	for i := range 330 { // more than either carries
		for source, octets := range []int{200, 310} {
			m := track(2, pipeHQ, 10+i, octets)
			m.From = peerID(uint16(60 + source))
			w.At(time.Duration(i)*time.Second, func() { ship.Site.Send(w, m, 1) })
		}
	}
	at := map[string]time.Time{}
	for i := range 10 {
		m := track(2, pipeHQ, 5000+i, 90)
		m.From = peerID(uint16(60 + i%3)) // of a source with routine messages, too
		w.At(time.Duration(120+20*i+i%3)*time.Second, func() { at[string(m.Parts[0].Data)] = w.Now; ship.Site.Send(w, m, 1) })
	}
	w.Run(20 * time.Minute)
	for _, g := range hq.Site.Got {
		if sent, flash := at[string(g.Payload.Parts[0].Data)]; flash {
			took = append(took, g.At.Sub(sent))
		}
	}
	check.Equal(check.Fatal(t), "flash messages", len(took), 10)
	return took
}

// 300 octets a minute go for a day, and the satellite may carry 100 kB: never more, also where a gateway dies after some commits. What
// does not fit goes by HF, or waits for the next day where there is no HF. The operator is told.
func TestTheOctetsOfADay(t *testing.T) {
	t.Parallel()
	for _, hf := range []bool{true, false} {
		for seed := range seeds(20) {
			octets, err := air.Day(t.Context(), seed+1, hf, 2)
			check.NoError(t, err)
			check.True(t, fmt.Sprintf("HF %v, seed %d: octets of a day", hf, seed+1), octets <= 100_000, octets)
		}
	}
}

// Flash goes beyond the octets of the day only where a rule says so.
func TestFlashGoesBeyondTheDay(t *testing.T) {
	for _, beyond := range []bool{true, false} {
		w := world(t, 2, "iridium-directip", 1, func(c *sim.Config) {
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				if g.Messages = []mark.Rule{{Most: 100, Precedence: site.Flash}}; n.ID == 2 {
					g.PerDay = 20_000
					g.Routes = []route.Rule{{Precedence: []site.Precedence{site.Flash}, Beyond: beyond}}
				}
			}
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		tracks(w, ship, []uint16{1}, 200, 300, 10*time.Second)
		w.Run(time.Hour)
		there, under := len(hq.Site.Got), ship.GW.Status(w.Now).Peers[0].UnderWay
		check.True(t, "some wait", there > 10 && there < 190, there)
		ship.Site.Send(w, track(2, pipeHQ, 5000, 90), 1)
		w.Run(10 * time.Minute)
		flash := slices.ContainsFunc(hq.Site.Got, func(g sim.Got) bool { return len(g.Payload.Parts[0].Data) == 90 })
		check.Equal(t, "the flash message is there", flash, beyond)
		check.True(t, "at most what was under way is there besides", len(hq.Site.Got) <= there+under+1 && (beyond || len(hq.Site.Got) == there), there, under, len(hq.Site.Got))
		day := ship.GW.Status(w.Now).Bearers[0].Day
		check.True(t, "the status tells", day != nil && day.Spent && day.Most == 20_000 && (beyond || day.Octets <= day.Most+day.Most/64+1500), day)
	}
}

// The life of a message says which bearer it takes, and why.
func TestTheLifeSaysWhy(t *testing.T) {
	w := twoBearers(t, 2, "iridium-directip", 1, func(c *sim.Config) {
		c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Bearer = "sat" }
	})
	ship := w.Nodes[1]
	w.Run(time.Minute)
	ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1)
	w.Run(time.Minute)
	w.Cut(0, ship, true)
	ship.Site.Send(w, track(2, pipeHQ, 2, 200), 1)
	w.Run(3 * time.Minute)
	said := map[string]bool{}
	m := ship.GW.Messages()
	for _, id := range m.IDs() {
		row, _ := m.Row(id)
		for _, e := range row.Life {
			said[e.What+" "+e.Detail] = true
		}
	}
	check.True(t, "the first goes by satellite", said["way sat: the cheapest that is up"], said)
	check.True(t, "the other has only HF", said["way hf: the only one that it may take and that is up"] || said["moved hf"], said)
}

// The satellite is back after five minutes, and messages take it again within a minute.
func TestBackOnTheCheapBearer(t *testing.T) {
	var all []time.Duration
	for seed := range seeds(20) {
		w := twoBearers(t, 2, "iridium-directip", seed+1)
		hq, ship := w.Nodes[0], w.Nodes[1]
		up := tracks(w, ship, []uint16{1}, 90, 200, 10*time.Second)
		w.Run(time.Minute)
		w.Cut(0, ship, true)
		w.Run(5 * time.Minute)
		w.Cut(0, ship, false)
		back := w.Now
		for !ship.GW.Status(w.Now).Peers[0].Bearers[0].Used && w.Now.Sub(back) < 5*time.Minute {
			w.Run(time.Second)
		}
		all = append(all, w.Now.Sub(back))
		check.True(t, fmt.Sprintf("seed %d: back within 60 s", seed+1), w.Now.Sub(back) <= time.Minute, w.Now.Sub(back))
		w.Run(20 * time.Minute)
		onceEach(t, fmt.Sprintf("seed %d", seed+1), air.Each, w, hq.Site, 2, *up)
	}
	t.Logf("back after %v", all)
}

// A shore sends five datagrams a second to each of many ships, and the network delays them by up to 1.1 s: no ship refuses one as too old.
// The short form has sixteen ships.
func TestManyShipsRefuseNothingAsOld(t *testing.T) {
	ships := 16
	if seeds(2) == 2 {
		ships = 256
	}
	w := world(t, ships+1, "geo-satcom-128k", 1, func(c *sim.Config) {
		c.Roster, c.Profile.Up.Jitter, c.Profile.Down.Jitter, c.Profile.Reorder = true, 1100*time.Millisecond, 1100*time.Millisecond, true
	})
	hq := w.Nodes[0]
	all := make([]uint16, ships)
	for i := range all {
		all[i] = uint16(i + 2)
	}
	hq.Site.Send(w, track(1, pipeHQ, 0, 20), all...)
	w.Run(20 * time.Second)
	for i := range 100 {
		m := track(1, pipeHQ, i+1, 12)
		w.At(time.Duration(i)*200*time.Millisecond, func() { hq.Site.Send(w, m, all...) })
	}
	w.Run(2 * time.Minute)
	refused := uint64(0)
	for _, n := range w.Nodes[1:] {
		refused += n.GW.Status(w.Now).Dropped["too_old"]
		check.True(t, n.Name+": all are there", len(n.Site.Got) == 101, len(n.Site.Got))
	}
	t.Logf("%d ships: %d datagrams refused as old", ships, refused)
	check.Equal(t, "datagrams refused as old", refused, 0)
}
