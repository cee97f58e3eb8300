package entropy

import (
	"testing"
	"time"
)

// crowd is a fleet of 16 of which eight are on both channels, HF and UHF, after half an hour and thirty messages of one of the first.
func crowd(t *testing.T, seed uint64, loss float64, lies map[int][]int) (f *fleet, names []Name) {
	a, b := hf(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), hf(4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	b.bps, b.trip = 9600, 2*time.Second
	a.loss, b.loss = loss, loss
	f = newFleet(t, 16, seed, a, b)
	f.lies = lies
	f.ports()
	f.run(10 * time.Minute)
	for _, r := range f.radios {
		r.items = 0
	}
	for i := range 30 {
		names = append(names, f.say(i%4, 200))
		f.run(time.Duration(11+i) * time.Minute)
	}
	return f, names
}

const oneItem = 211 // octets of a frame with a message of 200

func TestTwoOfEightCarryIntoTheNextChannel(t *testing.T) {
	for loss, bound := range map[float64]float64{0: 1.02, 0.1: 1.6, 0.3: 2.2} {
		const plays = 10
		all := 0.0
		for seed := uint64(1); seed <= plays; seed++ {
			f, names := crowd(t, seed, loss, nil)
			f.run(3 * time.Hour)
			if list := f.missing(names); len(list) > 0 {
				t.Errorf("seed %d, loss %.1f: %d missing: %v", seed, loss, len(list), list[0])
			}
			all += float64(f.radios[1].items) / float64(len(names)*oneItem)
		}
		mean := all / plays
		t.Logf("loss %.1f: each message went %.2f times into the next channel", loss, mean)
		if mean > bound {
			t.Errorf("loss %.1f: each message went %.2f times into the next channel, %.2f are taken", loss, mean, bound)
		}
	}
}

// skips is an HF channel on which each node hears only its neighbours.
func skips(n int) *radio {
	r := hf()
	r.deaf = map[[2]int]bool{}
	for i := range n {
		r.nodes = append(r.nodes, i)
		for j := range n {
			if i-j > 1 || j-i > 1 {
				r.deaf[[2]int{i, j}] = true
			}
		}
	}
	return r
}

// A hears B and B hears C, but A does not hear C: B repeats A's message, within a round trip and once.
func TestOneSpeaksForWhoDoesNotHear(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		f := newFleet(t, 3, seed, skips(3))
		f.run(10 * time.Minute)
		f.radios[0].items = 0
		n := f.say(0, 200)
		f.run(10*time.Minute + 8*time.Second)
		if list := f.missing([]Name{n}); len(list) > 0 {
			t.Errorf("seed %d, after a round trip: %v", seed, list)
		}
		f.run(2 * time.Hour)
		if got := f.radios[0].items + f.radios[0].repair; got > 2*(oneItem+10) {
			t.Errorf("seed %d: %d octets of a message that two say once each", seed, got)
		}
	}
}

// In a chain of eight each message goes once over each hop, or is repaired where it was lost.
func TestAMessageGoesAlongAChain(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		r := skips(8)
		r.loss = 0.1
		f := newFleet(t, 8, seed, r)
		f.run(10 * time.Minute)
		var names []Name
		for i := range 10 {
			names = append(names, f.say(i%8, 200))
			f.run(time.Duration(12+2*i) * time.Minute)
		}
		f.run(3 * time.Hour)
		if list := f.missing(names); len(list) > 0 {
			t.Errorf("seed %d: %d missing: %v", seed, len(list), list[0])
		}
	}
}

// The most stable of the gateways that carry into the next channel goes away and comes back: meanwhile the next one carries.
func TestAnotherCarriesWhileTheFirstIsAway(t *testing.T) {
	f, _ := crowd(t, 1, 0, nil)
	carried := func(from int) (n Name, by int) {
		before := f.radios[1].items
		n = f.say(from, 200)
		start := f.now
		f.run(f.now.Sub(f.start) + 2*time.Minute)
		if list := f.missing([]Name{n}); len(list) > 0 {
			t.Errorf("said at %s: %v", start.Sub(f.start), list[0])
		}
		return n, (f.radios[1].items - before) / oneItem
	}
	for _, away := range [][]int{{4}, {4, 5}, {}} {
		f.away = map[int]bool{}
		for _, i := range away {
			f.away[i] = true
		}
		f.ports()
		f.run(f.now.Sub(f.start) + 2*time.Minute)
		n, times := carried(0)
		if times != 1 {
			t.Errorf("with %v away %v went %d times into the next channel", away, n, times)
		}
	}
	f.silenced = map[int]bool{4: true} // no node hears its transmissions, and none knows that yet
	if _, times := carried(0); times != 2 {
		t.Errorf("when the first is not heard, %d are transmitted, its own included", times)
	}
}

// Liars that claim to hear all gateways, or only one each, cost the others no message, and the air no more than one
// datagram for each message and liar.
func TestLiesAboutHearingAreBounded(t *testing.T) {
	everybody := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for what, play := range map[string]struct {
		radio func() *radio
		lies  map[int][]int
	}{
		"everybody, where HF skips":   {func() *radio { return skips(8) }, map[int][]int{2: everybody, 5: everybody}},
		"one, where all hear another": {func() *radio { return hf(everybody...) }, map[int][]int{2: {7}, 5: {0}}},
	} {
		for seed := uint64(1); seed <= 5; seed++ {
			octets := map[bool]int{}
			for _, lie := range []bool{false, true} {
				r := play.radio()
				f := newFleet(t, 8, seed, r)
				if lie {
					f.lies = play.lies
					f.ports()
				}
				f.run(10 * time.Minute)
				r.items, r.repair = 0, 0
				var names []Name
				for i := range 10 {
					names = append(names, f.say(i%8, 200))
					f.run(time.Duration(12+2*i) * time.Minute)
				}
				f.run(3 * time.Hour)
				octets[lie] = r.items + r.repair
				for i := range play.lies { // messages that liars lack are their own affair
					f.away[i] = true
				}
				if list := f.missing(names); len(list) > 0 {
					t.Errorf("%s, seed %d: %d missing: %v", what, seed, len(list), list[0])
				}
			}
			if octets[true] > octets[false]+10*len(play.lies)*oneItem {
				t.Errorf("%s, seed %d: %d octets of messages beside two liars, %d without", what, seed, octets[true], octets[false])
			}
			t.Logf("%s, seed %d: %d octets of messages beside two liars, %d without", what, seed, octets[true], octets[false])
		}
	}
}
