package gateway_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// TestHostileAir: whatever else is on the air, tracks arrive once, whole and in order, and nothing is answered.
func TestHostileAir(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var heard [][]byte
	taps := map[string]func(w *sim.World) func(from, to *sim.Node, data []byte) [][]byte{
		"truncated copies": func(*sim.World) func(_, _ *sim.Node, data []byte) [][]byte {
			return func(_, _ *sim.Node, data []byte) [][]byte {
				return [][]byte{data[:rng.IntN(len(data))], data, data[:len(data)-1]}
			}
		},
		"bits turned": func(*sim.World) func(_, _ *sim.Node, data []byte) [][]byte {
			return func(_, _ *sim.Node, data []byte) [][]byte {
				bad := slices.Clone(data)
				bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
				return [][]byte{bad, data}
			}
		},
		"everything replayed, twice and later": func(*sim.World) func(_, _ *sim.Node, data []byte) [][]byte {
			return func(_, _ *sim.Node, data []byte) [][]byte {
				heard = append(heard, data)
				return [][]byte{data, heard[rng.IntN(len(heard))], data, heard[0]}
			}
		},
		"sent back to its sender": func(w *sim.World) func(from, _ *sim.Node, data []byte) [][]byte {
			return func(from, _ *sim.Node, data []byte) [][]byte {
				w.Inject(from, data)
				return [][]byte{data}
			}
		},
	}
	for name, tap := range taps {
		t.Run(name, func(t *testing.T) {
			heard = nil
			w := world(t, 2, "iridium-directip", 3)
			w.Tap = tap(w)
			hq, ship := w.Nodes[0], w.Nodes[1]
			down := tracks(w, hq, []uint16{2}, 40, 200, 2*time.Second)
			up := tracks(w, ship, []uint16{1}, 40, 200, 2*time.Second)
			w.Run(3 * time.Minute)
			once(t, w, ship.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			if s := ship.GW.Status(w.Now); len(s.Dropped) == 0 {
				t.Error("nothing was counted as dropped")
			}
		})
	}
}

func TestReorderedDatagrams(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	w := world(t, 2, "iridium-directip", 3)
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if rng.IntN(3) > 0 {
			return [][]byte{data}
		}
		w.At(time.Duration(rng.IntN(9000))*time.Millisecond, func() { w.Late(from, to, data) })
		return nil
	}
	down := tracks(w, w.Nodes[0], []uint16{2}, 60, 200, 2*time.Second)
	w.Run(5 * time.Minute)
	once(t, w, w.Nodes[1].Site, 1, *down)
}

func TestGarbageIsNotAnswered(t *testing.T) {
	w := world(t, 2, "iridium-directip", 4)
	w.Run(time.Minute)
	hq, ship := w.Nodes[0], w.Nodes[1]
	other := seal.NewSealer(seal.Key{9, 9}, 2, seal.Incarnation{Number: 2_000_000_000})
	rng := rand.New(rand.NewPCG(4, 4))
	up, down := w.Octets(ship)
	for i := range 2000 {
		junk := make([]byte, rng.IntN(600))
		for k := range junk {
			junk[k] = byte(rng.Uint32())
		}
		if i%2 == 0 && len(junk) > 12 {
			junk[0], junk[1] = 0x10|byte(i/2%2), byte(2-i/4%2) // our version, one of the two ids
		}
		if i%5 == 0 {
			junk, _ = other.Seal(nil, 1, i%10 == 0, junk)
		}
		w.Inject(hq, junk)
		w.Inject(ship, junk)
	}
	w.Run(time.Minute)
	if up2, down2 := w.Octets(ship); up2 != up || down2 != down {
		t.Errorf("garbage was answered with %d and %d octets", up2-up, down2-down)
	}
	total := uint64(0)
	for _, n := range hq.GW.Status(w.Now).Dropped {
		total += n
	}
	if total != 2000 {
		t.Errorf("%d datagrams counted as dropped, want 2000: %v", total, hq.GW.Status(w.Now).Dropped)
	}
	if addr := hq.GW.Status(w.Now).Peers[0].Address; addr != ship.Addr().String() {
		t.Errorf("garbage moved the ship's address to %s", addr)
	}
}

func TestTwoNodesWithOneID(t *testing.T) {
	w := world(t, 2, "iridium-directip", 5)
	w.Run(time.Minute)
	hq, ship := w.Nodes[0], w.Nodes[1]
	twin := seal.NewSealer(seal.Key{1, 2, 3}, 2, seal.Incarnation{Number: ship.Incarnation() - 100, Salt: 7})
	greeting := frame.Append(nil, frame.Hello{Store: 9, Stream: 1, HeardIncarnation: hq.Incarnation(), HeardStream: 1}, true) // it lives: it has heard HQ
	hello, _ := twin.Seal(nil, 1, true, greeting)
	w.Inject(hq, hello)
	w.Run(time.Second)
	if strings.Contains(tail(w.Notes), "two nodes") {
		t.Error("one late datagram is no second node")
	}
	for range 10 { // the same one again is no second sign
		w.Inject(hq, hello)
	}
	w.Run(time.Second)
	if strings.Contains(tail(w.Notes), "two nodes") {
		t.Error("a replay is no second node")
	}
	hello, _ = twin.Seal(nil, 1, true, greeting)
	w.Inject(hq, hello)
	forged, _ := twin.Seal(nil, 1, true, nil)
	w.Inject(ship, forged)
	w.Run(time.Second)
	want := 0
	for _, n := range w.Notes {
		if strings.Contains(n, "two nodes with one id") {
			want++
		}
	}
	if want != 1 {
		t.Errorf("a second node 2 was reported %d times, want once\n%s", want, tail(w.Notes))
	}
	toShip, _ := twin.Seal(nil, 2, true, nil)
	w.Inject(ship, toShip)
	w.Run(time.Second)
	if !strings.Contains(tail(w.Notes), "sends with this node's id") {
		t.Errorf("node 2 did not notice another node 2\n%s", tail(w.Notes))
	}
}

func TestShipMovesToANewAddress(t *testing.T) {
	w := world(t, 2, "iridium-directip", 6)
	hq, ship := w.Nodes[0], w.Nodes[1]
	down := tracks(w, hq, []uint16{2}, 60, 200, 2*time.Second)
	w.At(40*time.Second, func() { w.Redial(ship) })
	ups := tracks(w, ship, []uint16{1}, 60, 200, 2*time.Second)
	w.Run(4 * time.Minute)
	once(t, w, ship.Site, 1, *down)
	once(t, w, hq.Site, 2, *ups)
}
