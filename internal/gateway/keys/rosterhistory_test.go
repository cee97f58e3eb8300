package keys

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aldis/internal/lab/check"
)

// A history has those of the newest roster and the three before it that were given to it, in whichever order; and a peer reads that from
// the word.
func TestShelf(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var s rosterHistory
		given := map[uint32]bool{}
		top := rng.Uint32N(1 << 20)
		for range 12 {
			one := 1 + top + rng.Uint32N(8)
			s, given[one] = s.with(one), true
			var newest uint32
			for g := range given {
				newest = max(newest, g)
			}
			check.Equal(t, "newest", s.newest, newest)
			for back := range uint32(6) {
				if serial := newest - back; newest > back {
					// A roster that is as old as that when it comes may be kept or not; none is there that was not given.
					if s.has(serial) && !given[serial] || back == 0 && !s.has(serial) {
						t.Fatalf("seed %d: has %d of %v: %v", seed, serial, given, s.has(serial))
					}
				}
			}
			near := newest + rng.Uint32N(4000) - 2000
			if int64(newest)+2000 < int64(near) || near == 0 || near > 1<<30 {
				near = newest
			}
			got, ok := parseShelf(s.word(), near)
			check.True(t, "the word is read", ok, s.word())
			check.Equal(t, "of the word", got, s)
		}
	}
	got := rosterHistory{}
	for _, one := range []uint32{5, 6, 9} {
		got = got.with(one)
	}
	check.True(t, "5, 6 and 9 were given", slices.Equal([]bool{got.has(9), got.has(8), got.has(7), got.has(6), got.has(5)}, []bool{true, false, false, true, false}))
	_, ok := parseShelf(0, 5)
	check.True(t, "0 says nothing", !ok)
	_, ok = parseShelf(rosterHistory{newest: 4090}.word(), 1)
	check.True(t, "no serial below 1", !ok)
}
