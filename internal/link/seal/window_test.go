package seal

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// The replay window against a plain set, with re-ordering, loss and repeats around all its edges.
func TestWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 142))
	for round := range 50 {
		var p PeerState
		seen := map[uint32]bool{}
		next := uint32(1)
		if round%2 == 1 {
			next = math.MaxUint32 - 40_000 // close to the end
		}
		for range 4000 {
			var c uint32
			switch r.IntN(10) {
			case 0:
				next += uint32(r.IntN(3 * windowLen)) // a silence
				fallthrough
			case 1, 2, 3, 4, 5:
				next++
				c = next
			case 6:
				c = next - windowLen + uint32(r.IntN(3)) - 1 // the far edge
			default:
				c = next - uint32(r.IntN(2*windowLen))
			}
			if c == 0 || c > math.MaxUint32-10_000 && c < 10 {
				continue
			}
			if next > math.MaxUint32-10_000 || c > next {
				break
			}
			var want error
			switch {
			case c <= p.highest && p.highest-c >= windowLen:
				want = ErrTooOld
			case seen[c]:
				want = ErrReplay
			}
			if got := p.check(c); !errors.Is(got, want) {
				t.Fatalf("round %d: check(%d) with highest %d = %v, want %v", round, c, p.highest, got, want)
			}
			if want == nil {
				p.mark(c)
				seen[c] = true
			}
			back, err := ParsePeerState(p.Append(nil))
			if err != nil || back != p {
				t.Fatalf("round trip of the state: %v", err)
			}
		}
	}
}

// After a gap of any width exactly the counters in the gap are new.
func TestWindowAfterGap(t *testing.T) {
	const last = 3 * windowLen
	var full PeerState
	for c := uint32(1); c <= last; c++ {
		full.mark(c)
	}
	for gap := uint32(1); gap <= windowLen+3; gap++ {
		p := full
		p.mark(last + gap)
		for c := p.highest - windowLen + 1; c <= p.highest; c++ {
			var want error
			if c <= last || c == p.highest {
				want = ErrReplay
			}
			if got := p.check(c); !errors.Is(got, want) {
				t.Fatalf("gap %d: check(%d) = %v, want %v", gap, c, got, want)
			}
		}
		if got := p.check(p.highest - windowLen); !errors.Is(got, ErrTooOld) {
			t.Fatalf("gap %d: below the window: %v", gap, got)
		}
	}
}

func TestExpand(t *testing.T) {
	for _, tt := range []struct {
		highest uint32
		low     uint16
		want    uint32
	}{
		{0, 1, 1},
		{0, 0, 0},
		{0, 0xffff, 0xffff},
		{0xa82f30ea & 0xffffffff, 0x9b32, 0xa82f9b32}, // RFC 9000 A.3
		{0xffff, 0, 0x10000},
		{0x10000, 0xffff, 0xffff},
		{0x10005, 0xfffe, 0xfffe},
		{0x17fff, 0xffff, 0x1ffff},
		{0x17ffe, 0x0000, 0x10000},
		{0x17fff, 0x0000, 0x20000}, // as far either way: RFC 9000 takes the higher
		{0x18001, 0x0000, 0x20000},
		{math.MaxUint32 - 1, 0xffff, math.MaxUint32},
		{math.MaxUint32 - 1, 0x0000, 0xffff0000}, // nothing above the end
		{math.MaxUint32, 0x0000, 0},              // none follows
		{math.MaxUint32, 0x8001, 0xffff8001},
	} {
		if got := (&window{highest: tt.highest}).expand(tt.low); got != tt.want {
			t.Errorf("expand(%#x, %#x) = %#x, want %#x", tt.highest, tt.low, got, tt.want)
		}
	}
}
