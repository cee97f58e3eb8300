package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// channelLoad lets sites on hf-2400 offer messages of 200 random octets, each to all others, together at a share of the rate
// for so long. It returns the share of the rate that had arrived by then, counting a message that has reached all once, in parts
// by how many it has reached, and how long after the load the last arrived.
func channelLoad(t *testing.T, nodes int, seed uint64, share float64, lasting time.Duration) (goodput float64, drain time.Duration, w *sim.World) {
	t.Helper()
	w = onChannel(t, nodes, seed)
	p := load(t, "hf-2400")
	every := time.Duration(float64(profile.Airtime(200, p.Up.RateBps)) / share * float64(nodes))
	n := int(lasting / every)
	began := w.Now
	for _, from := range w.Nodes {
		var to []uint16
		for _, o := range w.Nodes {
			if o != from {
				to = append(to, o.ID)
			}
		}
		w.At(every*time.Duration(from.ID-1)/time.Duration(nodes), func() { tracks(w, from, to, n, 200, every) })
	}
	w.Run(lasting + time.Second)
	all := func() (got int) {
		for _, n := range w.Nodes {
			got += len(n.Site.Got)
		}
		return got
	}
	goodput = float64(all()) * 200 * 8 / float64(nodes-1) / lasting.Seconds() / float64(p.Up.RateBps)
	for wait := 0; all() < nodes*(nodes-1)*n && wait < 600; wait++ {
		w.Run(20 * time.Second)
	}
	if got := all(); got != nodes*(nodes-1)*n {
		t.Errorf("%d sites, seed %d, %.0f %%: %d of %d arrived", nodes, seed, 100*share, got, nodes*(nodes-1)*n)
	}
	var last time.Time
	for _, n := range w.Nodes {
		for _, g := range n.Site.Got {
			if g.At.After(last) {
				last = g.At
			}
		}
	}
	return goodput, last.Sub(began.Add(lasting)), w
}

func TestChannelFlow(t *testing.T) {
	for _, c := range []struct {
		share, goodput float64
	}{{0.5, 0.4}, {1, 0.6}, {3, 0.6}} {
		var goodputs []float64
		var drains []time.Duration
		dropped := int64(0)
		stats := ""
		for seed := uint64(1); seed <= seeds(20); seed++ {
			goodput, drain, w := channelLoad(t, 4, seed, c.share, 10*time.Minute)
			goodputs, drains = append(goodputs, goodput), append(drains, drain)
			var octets, air int64
			for _, n := range w.Link.Stats().Nodes {
				dropped += n.Up.DroppedQueue.Frames
				octets += n.Up.OnAir.Octets
				air += n.Up.OnAir.Frames
			}
			st := w.Link.Stats().Channel
			stats = fmt.Sprintf("frames %d octets %d busy %v turnaround %v turns %d", air, octets, st.Busy, st.Turnaround, st.Turns)
		}
		slices.Sort(goodputs)
		slices.Sort(drains)
		mid, last := len(goodputs)/2, len(goodputs)-1
		t.Logf("hf-2400, 4 sites, %.0f %% offered: goodput %.0f to %.0f %% of the rate, the rest after %.0f s (worst %.0f), %d frames dropped by the senders' own queues; %s", 100*c.share,
			100*goodputs[0], 100*goodputs[last], drains[mid].Seconds(), drains[last].Seconds(), dropped, stats)
		if goodputs[mid] < c.goodput || dropped > 0 {
			t.Errorf("%.0f %% offered: want a goodput of %.0f %%, and nothing dropped", 100*c.share, 100*c.goodput)
		}
	}
}

// TestMessageToAll: one site tells all others something every 20 s.
func TestMessageToAll(t *testing.T) {
	for _, nodes := range []int{4, 16} {
		var lasts []time.Duration
		octets := int64(0)
		for seed := uint64(1); seed <= seeds(20); seed++ {
			w := onChannel(t, nodes, seed)
			before := int64(0)
			for _, n := range w.Link.Stats().Nodes {
				before += n.Up.OnAir.Octets
			}
			var to []uint16
			for _, n := range w.Nodes[1:] {
				to = append(to, n.ID)
			}
			sent := tracks(w, w.Nodes[0], to, 60, 200, 20*time.Second)
			w.Run(3 * time.Hour)
			late := make([]time.Duration, 60)
			for _, n := range w.Nodes[1:] {
				if len(n.Site.Got) != 60 {
					t.Fatalf("%d of 60 at %s", len(n.Site.Got), n.Name)
				}
				for i, g := range n.Site.Got {
					late[i] = max(late[i], g.At.Sub((*sent)[i].at))
				}
			}
			lasts = append(lasts, late...)
			for _, n := range w.Link.Stats().Nodes {
				octets += n.Up.OnAir.Octets
			}
			octets -= before
		}
		slices.Sort(lasts)
		t.Logf("hf-2400, %d sites: the last receiver of a message after %.1f s at the median, 95 %% %.1f s, worst %.1f s; %d octets a message", nodes,
			lasts[len(lasts)/2].Seconds(), lasts[len(lasts)*95/100].Seconds(), lasts[len(lasts)-1].Seconds(), octets/int64(len(lasts)))
	}
}
