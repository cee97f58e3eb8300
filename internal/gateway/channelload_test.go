package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// channelLoad lets sites on hf-2400 offer messages of 200 random octets, each to all others, together at a share of the rate
// for so long. It returns the share of the rate that had arrived by then, a message counted in parts by how many it has reached,
// and how long after the load the last arrived.
func channelLoad(t *testing.T, nodes int, seed uint64, share float64, lasting time.Duration) (goodput float64, drain time.Duration, w *sim.World) {
	t.Helper()
	w = onChannel(t, nodes, seed)
	p := load(t, "hf-2400")
	began := w.Now
	n := offerAll(w, share, lasting, p)
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

// offerAll lets each site offer its part of that, and returns how many messages each offers.
func offerAll(w *sim.World, share float64, lasting time.Duration, p profile.Profile) int {
	nodes := len(w.Nodes)
	every := time.Duration(float64(profile.Airtime(200, p.Up.RateBps)) / share * float64(nodes))
	n := int(lasting / every)
	for _, from := range w.Nodes {
		var to []uint16
		for _, o := range w.Nodes {
			if o != from {
				to = append(to, o.ID)
			}
		}
		w.At(every*time.Duration(from.ID-1)/time.Duration(nodes), func() { tracks(w, from, to, n, 200, every) })
	}
	return n
}

// channelBound is the share of the rate that no sender passes while others talk too, in turns of so long. It knows at once what was
// lost and codes perfectly, so that it sends as much more as one receiver loses; it acknowledges with nothing; and its messages fill
// datagrams without a gap, whichever message a fragment is of. It pays for IP, UDP, the seal, the heads of frames, and for each
// message the least envelope and the names of its receivers.
func channelBound(t *testing.T, p profile.Profile, receivers int, turn time.Duration) float64 {
	t.Helper()
	const lost, envelope = 0.03, 4
	address := pmul.AddressPDU{Total: 1, Source: 1, Message: 1 << 31, Expiry: sim.Epoch}
	for n := range receivers {
		address.Destinations = append(address.Destinations, pmul.Destination{Node: pmul.NodeID(n + 2), Sequence: 100})
	}
	message := make([]byte, 200+envelope)
	two, err := pmul.AppendCompact(nil, 1, 0, address, pmul.DataPDU{Source: 1, Message: 1 << 31, Number: 1, Fragment: message}, address)
	if err != nil {
		t.Fatal(err)
	}
	one, err := pmul.AppendCompact(nil, 1, 0, address)
	if err != nil {
		t.Fatal(err)
	}
	body := float64(p.DatagramOctets-seal.OverheadShort-1) / float64(p.DatagramOctets+profile.IPUDPOctets+p.FrameOverhead)
	return 200 / float64(len(two)-len(one)) * body * turn.Seconds() / (turn + p.Turnaround).Seconds() * (1 - lost)
}

// TestChannelFlow: what a shared channel carries when all have much to say, as a share of its rate; the radios drop nothing. The
// median of seeds 1 to 3; 1 to 20 with the tag long.
func TestChannelFlow(t *testing.T) {
	t.Parallel()
	p := load(t, "hf-2400")
	bound := func(holds time.Duration) float64 { return 100 * channelBound(t, p, 3, holds*p.MaxHold) }
	for _, c := range []struct {
		share, goodput float64 // what is offered, and what arrives at least, in parts of the rate
	}{{0.5, 0.45}, {1, 0.58}, {3, 0.58}} {
		var goodputs []float64
		var drains []time.Duration
		var dropped int64
		for seed := uint64(1); seed <= max(3, seeds(20)); seed++ {
			goodput, drain, w := channelLoad(t, 4, seed, c.share, 10*time.Minute)
			goodputs, drains = append(goodputs, goodput), append(drains, drain)
			for _, n := range w.Link.Stats().Nodes {
				dropped += n.Up.DroppedQueue.Frames
			}
		}
		slices.Sort(goodputs)
		slices.Sort(drains)
		mid, last := len(goodputs)/2, len(goodputs)-1
		t.Logf("hf-2400, 4 sites, %.0f %% offered for 10 min: goodput %.0f %% of the rate, %.0f to %.0f (no sender passes %.0f in turns of 30 s, %.0f in turns of 15 s); the rest after %.0f s (worst %.0f); %d frames dropped by the radios",
			100*c.share, 100*goodputs[mid], 100*goodputs[0], 100*goodputs[last], bound(2), bound(1),
			drains[mid].Seconds(), drains[last].Seconds(), dropped)
		if goodputs[mid] < c.goodput || dropped > 0 {
			t.Errorf("%.0f %% offered: want a goodput of %.0f %%, and nothing dropped", 100*c.share, 100*c.goodput)
		}
		if c.share == 1 && drains[mid] > 10*time.Minute { // receivers ask for the rest soon when nobody talks any more
			t.Errorf("100 %% offered: the rest came after %v", drains[mid])
		}
	}
}

// TestMessageToAll: one site tells all others something every 20 s, and the last of them has it. Seeds 1 to 4; 1 to 20 with the tag long.
func TestMessageToAll(t *testing.T) {
	t.Parallel()
	const messages = 60
	for _, c := range []struct {
		nodes int
		most  time.Duration // of 95 in 100 messages
	}{{4, time.Minute}, {16, 2 * time.Minute}} {
		var lasts []time.Duration
		var octets int64
		for seed := uint64(1); seed <= max(4, seeds(20)); seed++ {
			w := onChannel(t, c.nodes, seed)
			onAir := func() (sum int64) {
				for _, n := range w.Link.Stats().Nodes {
					sum += n.Up.OnAir.Octets
				}
				return sum
			}
			before := onAir()
			var to []uint16
			for _, n := range w.Nodes[1:] {
				to = append(to, n.ID)
			}
			sent := tracks(w, w.Nodes[0], to, messages, 200, 20*time.Second)
			w.Run(3 * time.Hour)
			late := make([]time.Duration, messages)
			for _, n := range w.Nodes[1:] {
				if len(n.Site.Got) != messages {
					t.Fatalf("%d of %d at %s\n%s", len(n.Site.Got), messages, n.Name, tail(w.Notes))
				}
				for _, g := range n.Site.Got { // one that is very late has been passed by
					var from, i int
					if _, err := fmt.Sscanf(string(g.Payload.Parts[0].Data[:8]), "%d;%d;", &from, &i); err != nil {
						t.Fatal(err)
					}
					late[i] = max(late[i], g.At.Sub((*sent)[i].At))
				}
			}
			lasts = append(lasts, late...)
			octets += onAir() - before
		}
		slices.Sort(lasts)
		p95 := lasts[len(lasts)*95/100]
		t.Logf("hf-2400, %d sites: the last receiver has a message after %.1f s at the median, %.1f s for 95 %%, worst %.1f s; %d octets a message", c.nodes,
			lasts[len(lasts)/2].Seconds(), p95.Seconds(), lasts[len(lasts)-1].Seconds(), octets/int64(len(lasts)))
		if p95 > c.most {
			t.Errorf("%d sites: 95 %% after %v, want %v", c.nodes, p95, c.most)
		}
	}
}

// TestFlashOnAFullChannel: sites that offer all that the channel has send a flash now and then as well. It comes soon, one that is lost
// comes late, and what the channel carries of all is not much less. Seeds 1 and 2; 1 to 20 with the tag long.
func TestFlashOnAFullChannel(t *testing.T) {
	t.Parallel()
	const lasting, flashes = 10 * time.Minute, 36
	var took []time.Duration
	var goodput float64
	last := max(2, seeds(20))
	for seed := uint64(1); seed <= last; seed++ {
		w := onChannel(t, 4, seed)
		p := load(t, "hf-2400")
		offerAll(w, 1, lasting, p)
		sent := map[string]time.Time{}
		for i := range flashes {
			from := w.Nodes[i*7%4]
			m := track(from.ID+100, pipeHQ, i, 100)
			m.Precedence = site.Flash
			var to []uint16
			for _, n := range w.Nodes {
				if n != from {
					to = append(to, n.ID)
				}
			}
			w.At(time.Duration(i)*lasting/flashes, func() {
				sent[string(m.Parts[0].Data)] = w.Now
				from.Site.Send(w, m, to...)
			})
		}
		w.Run(lasting)
		octets := 0
		for _, n := range w.Nodes {
			for _, g := range n.Site.Got {
				octets += len(g.Payload.Parts[0].Data)
			}
		}
		goodput += float64(octets*8) / 3 / lasting.Seconds() / float64(p.Up.RateBps) / float64(last)
		w.Run(10 * time.Minute)
		for _, n := range w.Nodes {
			for _, g := range n.Site.Got {
				if at, flash := sent[string(g.Payload.Parts[0].Data)]; flash {
					took = append(took, g.At.Sub(at))
				}
			}
		}
	}
	slices.Sort(took)
	if len(took) != 3*flashes*int(last) {
		t.Fatalf("%d flashes arrived", len(took))
	}
	middle, most := took[len(took)/2], took[len(took)*95/100]
	t.Logf("4 sites, 100 %% routine and %d flashes in 10 min: flash after %.1f s at the median, %.1f s for 95 %%, worst %.1f s; goodput of all %.0f %%",
		flashes, middle.Seconds(), most.Seconds(), took[len(took)-1].Seconds(), 100*goodput)
	if middle > 9*time.Second || most > 40*time.Second || goodput < 0.46 {
		t.Errorf("want 9 s, 40 s and 46 %%")
	}
}
