package gateway_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
)

// A game in which a gateway cannot read messages, from one moment on, because its memory of earlier ones is spoiled.
type parting struct {
	profile string
	every   time.Duration
	busy    bool // turns of both loops are late
	kills   int
}

// play returns the longest time that a message took each way.
func (p parting) play(t *testing.T, seed uint64, parts int) (longest time.Duration) {
	t.Helper()
	const messages = 150
	rng := rand.New(rand.NewPCG(seed, 31))
	w := world(t, 2, p.profile, seed+1, lossless)
	hq, ship := w.Nodes[0], w.Nodes[1]
	if p.busy {
		squeeze(w, seed, 0.3, w.Nodes...)
	}
	w.Run(time.Minute)
	down := textTracks(w, hq, []uint16{2}, messages, p.every)
	up := textTracks(w, ship, []uint16{1}, messages, p.every)
	span := time.Duration(messages) * p.every
	for range parts {
		w.At(span/4+time.Duration(rng.Int64N(int64(span/2))), func() {
			if hq.GW != nil {
				gateway.Part(hq.GW, 2)
			}
		})
	}
	for range p.kills {
		w.At(span/4+time.Duration(rng.Int64N(int64(span*3/4))), func() {
			if hq.GW != nil {
				w.Kill(hq, time.Duration(rng.Int64N(int64(2*time.Second))))
			}
		})
	}
	w.Run(span + 10*time.Minute)
	in := check.In(t, p.profile)
	for _, took := range append(once(t, w, ship.Site, 1, *down), once(t, w, hq.Site, 2, *up)...) {
		longest = max(longest, took)
	}
	for _, alarm := range []string{"older copy", "lacks messages", "is dropped", "cannot be read"} {
		check.Equal(in, alarm, said(w, alarm), 0)
	}
	if parts > 0 && p.kills == 0 && !p.busy {
		check.True(in, "the sender was asked", said(w, "asks for it again") > 0)
	}
	for _, n := range w.Nodes {
		for _, ps := range n.GW.Status(w.Now).Peers {
			check.Equal(in, "unreadable", ps.Unreadable, 0)
		}
	}
	return longest
}

// TestPartingIsMendedInOneRoundTrip: memory that is spoiled costs a round trip, whatever is under way, and no message.
func TestPartingIsMendedInOneRoundTrip(t *testing.T) {
	for _, p := range []parting{
		{"iridium-directip", 600 * time.Millisecond, false, 0},
		{"iridium-dialup", 1500 * time.Millisecond, false, 0},
		{"iridium-certus-100", 100 * time.Millisecond, false, 0},
		{"geo-satcom-128k", 50 * time.Millisecond, false, 0},
	} {
		t.Run(p.profile, func(t *testing.T) {
			t.Parallel()
			link := load(t, p.profile)
			trip := link.RoundTripMax(link.DatagramOctets + profile.IPUDPOctets)
			t.Logf("a round trip is %v", trip)
			for seed := range 2 * seeds(125) {
				before, after := p.play(t, seed, 0), p.play(t, seed, 1)
				if after > before+trip+time.Second {
					t.Errorf("seed %d: the longest takes %v, with a parting %v: a round trip is %v", seed, before, after, trip)
				}
				t.Logf("seed %d: the longest takes %v, with a parting %v", seed, before, after)
			}
		})
	}
}

// TestPartingsAndKills: the same on busy machines, and where the receiver dies again and again.
func TestPartingsAndKills(t *testing.T) {
	for name, p := range map[string]parting{
		"busy":           {"iridium-directip", 600 * time.Millisecond, true, 0},
		"killed":         {"iridium-directip", 600 * time.Millisecond, false, 15},
		"busy, killed":   {"iridium-directip", 600 * time.Millisecond, true, 15},
		"faster, killed": {"geo-satcom-128k", 20 * time.Millisecond, true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range 2 * seeds(125) {
				p.play(t, seed, 3)
			}
		})
	}
}
