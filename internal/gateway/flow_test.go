package gateway_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// upLimit is what the ship's link needs for a message of 200 octets and nothing else: airtime and the mean delay.
func upLimit(p profile.Profile) time.Duration {
	return profile.Airtime(200, p.Up.RateBps) + p.Up.Delay + p.Up.Jitter/2
}

// loaded offers messages of 200 random octets from the ship to HQ, at a share of the rate, for so long. It returns what each took
// of those that arrived, in the order of sending, and the share of the rate that arrived in time.
func loaded(t *testing.T, name string, seed uint64, share float64, lasting time.Duration) (took []time.Duration, goodput float64, w *sim.World) {
	t.Helper()
	w = world(t, 2, name, seed)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(2 * time.Minute)
	p := load(t, name)
	every := time.Duration(float64(profile.Airtime(200, p.Up.RateBps)) / share)
	began := w.Now
	sent := tracks(w, ship, []uint16{1}, int(lasting/every), 200, every)
	w.Run(lasting + time.Second)
	arrived := 0
	for _, g := range hq.Site.Got {
		if g.From == 2 && g.At.Sub(began) <= lasting+time.Second {
			arrived++
		}
	}
	for wait := 0; len(hq.Site.Got) < len(*sent) && wait < 60; wait++ {
		w.Run(lasting / 2)
	}
	return once(t, w, hq.Site, 2, *sent), float64(arrived) * 200 * 8 / lasting.Seconds() / float64(p.Up.RateBps), w
}

// TestFlow: what a link carries when much is offered, as a share of its rate. Seed 1; 1 to 20 with the tag long.
func TestFlow(t *testing.T) {
	for _, c := range []struct {
		link    string
		share   float64
		lasting time.Duration
		goodput float64 // at least
		over    float64 // the median, over the limit, at most; 0: not asked
	}{
		{"iridium-directip", 0.5, 3 * time.Minute, 0.3, 2},
		{"iridium-directip", 0.75, 3 * time.Minute, 0.5, 4},
		{"iridium-directip", 1, 3 * time.Minute, 0.7, 0},
		{"iridium-dialup", 1, 3 * time.Minute, 0.7, 0},
		{"iridium-certus-100", 1, 20 * time.Second, 0.7, 0},
	} {
		var over, goodputs []float64
		for seed := uint64(1); seed <= uint64(seeds(20)); seed++ {
			took, goodput, _ := loaded(t, c.link, seed, c.share, c.lasting)
			over = append(over, took[len(took)/2].Seconds()/upLimit(load(t, c.link)).Seconds())
			goodputs = append(goodputs, goodput)
		}
		slices.Sort(over)
		slices.Sort(goodputs)
		mid, last := len(over)/2, len(over)-1
		t.Logf("%s, %.0f %% offered: goodput %.0f to %.0f %% of the rate, median %.1f times the limit", c.link, 100*c.share,
			100*goodputs[0], 100*goodputs[last], over[mid])
		if goodputs[mid] < c.goodput || c.over > 0 && over[mid] > c.over {
			t.Errorf("%s, %.0f %% offered: want a goodput of %.0f %%, a median of %.1f", c.link, 100*c.share, 100*c.goodput, c.over)
		}
	}
}

// TestBurstAtOnce: 128 messages of 200 octets at once.
func TestBurstAtOnce(t *testing.T) {
	for _, c := range []struct {
		link string
		over float64
	}{{"iridium-directip", 1.5}, {"iridium-dialup", 1.5}, {"iridium-certus-100", 1.6}} {
		var over []float64
		for seed := uint64(1); seed <= uint64(seeds(20)); seed++ {
			w := world(t, 2, c.link, seed)
			hq, ship := w.Nodes[0], w.Nodes[1]
			hq.Site.Put(w, pipeItem(1, pipeHQ))
			w.Run(2 * time.Minute)
			sent := tracks(w, ship, []uint16{1}, 128, 200, 0)
			w.Run(time.Hour)
			took := once(t, w, hq.Site, 2, *sent)
			p := load(t, c.link)
			limit := profile.Airtime(128*200, p.Up.RateBps) + p.Up.Delay + p.Up.Jitter/2
			over = append(over, took[len(took)-1].Seconds()/limit.Seconds())
		}
		slices.Sort(over)
		mid, last := len(over)/2, len(over)-1
		t.Logf("%s: the last of 128 at once after %.2f to %.2f times the limit", c.link, over[0], over[last])
		if over[mid] > c.over {
			t.Errorf("%s: %.2f, want %.2f", c.link, over[mid], c.over)
		}
	}
}
