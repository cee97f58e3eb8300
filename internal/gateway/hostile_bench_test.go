package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// BenchmarkHostile is a hostile datagram in a gateway's Step, whose peers share the hint of the sender's id as evenly as ids do: the
// long form, which is tried with a key made for each of them, and the short one.
func BenchmarkHostile(b *testing.B) {
	for _, nodes := range []int{2, 16, 64} {
		for _, trust := range []bool{false, true} {
			for name, first := range map[string]byte{"long": 0x30, "short": 0x20} {
				b.Run(fmt.Sprintf("%s form, %d nodes, keys of nodes %v", name, nodes, trust), func(b *testing.B) {
					p, err := profile.Load("iridium-directip", nil)
					if err != nil {
						b.Fatal(err)
					}
					wire, err := profile.Load("wire", nil)
					if err != nil {
						b.Fatal(err)
					}
					w, err := sim.New(sim.Config{Nodes: nodes, Profile: p, Wire: wire, Seed: 1, Roster: trust})
					if err != nil {
						b.Fatal(err)
					}
					w.Run(10 * time.Minute)
					rng := rand.New(rand.NewPCG(1, 1))
					d := make([]byte, 100)
					from := netip.MustParseAddrPort("192.0.2.1:9")
					gw := w.Nodes[0].GW
					for b.Loop() {
						for i := range d {
							d[i] = byte(rng.Uint32())
						}
						d[0] = first | 2
						if out := gw.Step(w.Now, api.Datagram{Addr: from, Data: d}); len(out.Datagrams) > 0 {
							b.Fatal("it is answered")
						}
					}
				})
			}
		}
	}
}
