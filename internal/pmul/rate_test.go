package pmul_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// ear is a node that listens to talkers on a channel.
type ear struct {
	*pmul.Rate
	now time.Time
	rng *rand.Rand
}

// turn is a talker's turn: so many datagrams of 60 to 540 octets, each after a gap; the first comes half a minute after the
// last turn.
func (e *ear) turn(by pmul.NodeID, datagrams int, gap func(i, octets int) time.Duration, pdus ...pmul.PDU) {
	e.now = e.now.Add(30 * time.Second)
	for i := range datagrams {
		octets := 60 + e.rng.IntN(480)
		if i > 0 {
			e.now = e.now.Add(gap(i, octets))
		}
		e.Heard(e.now, by, octets, pdus)
	}
}

// at is the gap between datagrams on a channel of this rate.
func at(bps int) func(_, octets int) time.Duration {
	return func(_, octets int) time.Duration { return profile.Airtime(octets, bps) }
}

// TestRate: the rate that a node learns from the datagrams that it hears, if the profile says 2,400 bit/s.
func TestRate(t *testing.T) {
	const told = 2400
	rounds := func(n int, talkers ...func(e *ear, by pmul.NodeID)) func(*ear) {
		return func(e *ear) {
			for range n {
				for i, talk := range talkers {
					talk(e, pmul.NodeID(i+1))
				}
			}
		}
	}
	talks := func(gap func(i, octets int) time.Duration) func(*ear, pmul.NodeID) {
		return func(e *ear, by pmul.NodeID) { e.turn(by, 12, gap) }
	}
	paced := func(bps, pace int) func(i, octets int) time.Duration { // four at once, then as one radio drains and another fills it
		return func(i, octets int) time.Duration {
			if i < 6 {
				return profile.Airtime(octets, bps)
			}
			return profile.Airtime(octets, pace)
		}
	}
	lossy := func(e *ear, by pmul.NodeID) {
		e.turn(by, 12, func(_, octets int) time.Duration {
			gap := profile.Airtime(octets, told)
			for e.rng.Float64() < 0.3 {
				gap += profile.Airtime(508, told)
			}
			return gap
		})
	}
	jittery := func(bps int, most time.Duration) func(*ear, pmul.NodeID) {
		return func(e *ear, by pmul.NodeID) {
			last := time.Duration(0)
			e.turn(by, 12, func(_, octets int) time.Duration {
				late := time.Duration(e.rng.Int64N(int64(most)))
				gap := profile.Airtime(octets, bps) + late - last
				last = late
				if gap < 0 {
					last, gap = last-gap, 0
				}
				return gap
			})
		}
	}
	blocks := func(bps int) func(*ear, pmul.NodeID) { // two at a time
		return func(e *ear, by pmul.NodeID) {
			held := time.Duration(0)
			e.turn(by, 12, func(i, octets int) time.Duration {
				held += profile.Airtime(octets, bps)
				if i%2 == 1 {
					return 0
				}
				gap := held
				held = 0
				return gap
			})
		}
	}
	every := func(gap time.Duration, octets int, sure bool) func(*ear, pmul.NodeID) {
		return func(e *ear, by pmul.NodeID) {
			for range 12 {
				e.now = e.now.Add(gap)
				var pdus []pmul.PDU
				if sure {
					pdus = []pmul.PDU{pmul.TurnPDU{Source: by, Left: time.Second}}
				}
				e.Heard(e.now, by, octets, pdus)
			}
		}
	}
	file := func(e *ear, by pmul.NodeID) {
		e.now = e.now.Add(time.Minute)
		for n := uint16(1); n <= 20; n++ {
			e.now = e.now.Add(profile.Airtime(536, told/2))
			e.Heard(e.now, by, 536, []pmul.PDU{pmul.DataPDU{Source: by, Message: 7, Number: n}})
		}
	}
	full, half, twice := talks(at(told)), talks(at(told/2)), talks(at(2*told))
	for _, tt := range []struct {
		name        string
		what        func(*ear)
		jitter      time.Duration
		least, most int
	}{
		{"as the profile says", rounds(20, full, full, full), 0, told, told},
		{"half of it", rounds(2, half, half, half), 0, told / 2, told / 2},
		{"half of it, from one talker", rounds(2, half), 0, told / 2, told / 2},
		{"twice as much", rounds(3, twice, twice, twice), 0, 2 * told, 2 * told},
		{"twice as much, paced by the profile", rounds(6, talks(paced(2*told, told)), talks(paced(2*told, told)), talks(paced(2*told, told))), 0, 2 * told, 2 * told},
		{"twice as much, from one talker", rounds(20, twice), 0, told, told},
		{"three times as much, in steps", rounds(6, talks(at(3*told)), talks(at(3*told))), 0, 3*told - 1, 3 * told},
		{"ten times as much", rounds(20, talks(at(10*told)), talks(at(10*told))), 0, told, told},
		{"five times as much", rounds(20, talks(at(5*told)), talks(at(5*told))), 0, 4 * told, 4 * told},
		{"a twelfth", rounds(20, talks(at(told/12)), talks(at(told/12))), 0, told / 8, told / 8},
		{"half of it, then as the profile says", func(e *ear) { rounds(3, half, half)(e); rounds(6, full, full)(e) }, 0, told, told},
		{"half of it, then as the profile says from one", func(e *ear) { rounds(3, half, half)(e); e.now = e.now.Add(time.Hour); rounds(6, full)(e) }, 0, told, told},
		{"twice as much, then as the profile says", func(e *ear) { rounds(6, twice, twice)(e); rounds(6, full, full)(e) }, 0, told, told},
		{"a tenth less", rounds(20, talks(at(told*9/10)), talks(at(told*9/10))), 0, told, told},
		{"a third is lost", rounds(20, lossy, lossy, lossy), 0, told, told},
		{"one sends slowly", rounds(20, full, full, talks(at(told/4))), 0, told, told},
		{"one of two sends slowly", rounds(20, full, talks(at(told/4))), 0, told, told},
		{"one seems fast", rounds(20, full, full, talks(at(4*told))), 0, told, told},
		{"one of two seems fast", rounds(20, full, talks(at(4*told))), 0, told, told},
		{"half of it, and one seems fast", rounds(20, half, half, talks(at(4*told))), 0, told / 2, told / 2},
		{"half of it, one sends slowly", rounds(20, half, half, talks(at(told/8))), 0, told / 2, told / 2},
		{"reports of one size every five seconds", rounds(20, every(5*time.Second, 276, false), every(5*time.Second, 276, false)), 0, told, told},
		{"one size, the talker has more to say", rounds(2, every(2*time.Second, 300, true), every(2*time.Second, 300, true)), 0, told / 2, told / 2},
		{"a file at half of it", rounds(1, file), 0, told / 2, told / 2},
		{"jitter that the profile has", rounds(40, jittery(told, time.Second), jittery(told, time.Second), jittery(told, time.Second)), time.Second, told, told},
		{"half of it, and jitter that the profile has", rounds(20, jittery(told/2, time.Second), jittery(told/2, time.Second)), time.Second, told / 2 * 9 / 10, told / 2 * 11 / 10},
		{"jitter that the profile has not", rounds(40, jittery(told, time.Second), jittery(told, time.Second), jittery(told, time.Second)), 0, told, told},
		{"a modem that hands over two at a time", rounds(20, blocks(told), blocks(told)), 0, told, told},
		{"half of it, two at a time", rounds(3, blocks(told/2), blocks(told/2)), 0, told / 2, told / 2},
	} {
		for seed := range uint64(10) {
			e := &ear{Rate: pmul.NewRate(told, tt.jitter), now: epoch, rng: rand.New(rand.NewPCG(seed, 24))}
			tt.what(e)
			if bps := e.Bps(); bps < tt.least*99/100 || bps > tt.most*101/100 {
				t.Errorf("%s, seed %d: %d bit/s, want %d to %d", tt.name, seed, bps, tt.least, tt.most)
			}
		}
	}
}

// TestRateOfChance: occasional datagrams of any length show no rate.
func TestRateOfChance(t *testing.T) {
	for seed := range uint64(20) {
		e := &ear{Rate: pmul.NewRate(2400, 0), now: epoch, rng: rand.New(rand.NewPCG(seed, 24))}
		for range 5000 {
			by, octets := pmul.NodeID(e.rng.IntN(3)+1), 60+e.rng.IntN(480)
			e.now = e.now.Add(profile.Airtime(octets, 2400) + time.Duration(e.rng.ExpFloat64()*float64(5*time.Second)))
			if e.Heard(e.now, by, octets, nil) {
				t.Errorf("seed %d: %d bit/s", seed, e.Bps())
			}
		}
	}
}
