package pmul_test

import (
	"slices"
	"testing"

	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// TestFieldsCompared: 100 kB on HF, coded as a whole in the large field, in two blocks of the small field that take turns,
// and as one block of the small field in larger datagrams; a sender that streams until all have it. The whole is never
// slower than blocks. Larger datagrams win if loss is drawn per frame, and delay a flash message twice as long.
func TestFieldsCompared(t *testing.T) {
	p := load(t, "hf-2400")
	n := int(seeds(5, 50))
	for _, receivers := range []int{4, 16, 64} {
		var over [3][]float64
		for seed := range uint64(n) {
			for i, c := range []struct{ datagram, blocks int }{{508, 1}, {508, 2}, {1000, 1}} {
				cfg := pmul.ConfigFor(p, 1, pmul.Compact, sealOctets, nil)
				cfg.DatagramOctets = c.datagram
				k := (100000 + cfg.FragmentOctets() - 1) / cfg.FragmentOctets()
				frames := 0
				for _, h := range heardBy(t, p, receivers+1, seed+1, 4*k) {
					got, whole := make([]int, c.blocks), 0
					for f := 0; whole < c.blocks; f++ {
						if b := f % c.blocks; h[f] {
							if got[b]++; got[b] == (k+c.blocks-1)/c.blocks {
								whole++
							}
						}
						frames = max(frames, f+1)
					}
				}
				took := profile.Airtime(frames*(c.datagram+cfg.Overhead), p.SlowerBps()) + p.Up.Delay
				over[i] = append(over[i], float64(took)/float64(limit(p, 100000)))
			}
		}
		for i := range over {
			slices.Sort(over[i])
		}
		t.Logf("to %2d, median and worst over the limit: whole %.2f, %.2f; two blocks %.2f, %.2f; datagrams of 1,000 %.2f, %.2f", receivers,
			over[0][n/2], over[0][n-1], over[1][n/2], over[1][n-1], over[2][n/2], over[2][n-1])
		if over[0][n/2] > over[1][n/2] {
			t.Errorf("to %d: the whole takes %.2f, blocks %.2f", receivers, over[0][n/2], over[1][n/2])
		}
	}
}
