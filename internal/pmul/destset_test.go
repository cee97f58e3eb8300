package pmul

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"

	"aldis/internal/lab/check"
)

// The destinations of any Address_PDU come back unchanged, and take no more octets than one by one.
func TestDestinationsComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sets := 0
	for range 2000 {
		p := AddressPDU{Total: 2, Source: hq, Message: 5000, Expiry: year2027}
		node, least, plain := NodeID(rng.Uint32N(300)), rng.Uint32()>>rng.IntN(32), 0
		within := uint32(1) << rng.IntN(32)
		for range rng.IntN(70) {
			d := Destination{Node: node + 1, Sequence: least + rng.Uint32N(within)}
			if rng.IntN(4) == 0 {
				d.Node += NodeID(rng.Uint32N(1 << rng.IntN(20)))
			}
			node = d.Node
			p.Destinations = append(p.Destinations, d)
			plain += len(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(d.Node)), uint64(d.Sequence)))
		}
		b, err := AppendCompact(nil, hq, 0, p)
		check.NoError(check.Fatal(t), err)
		if b[0]&compactSet != 0 {
			sets++
		}
		const head = 1 + 2 + 1 + 4 + 1
		check.True(t, "no more octets than one by one", len(b) <= head+plain, p, len(b))
		got, err := ParseCompact(b, hq, ship)
		check.NoError(check.Fatal(t), err)
		check.True(check.Fatal(t), "as it was", len(got) == 1 && reflect.DeepEqual(got[0], p), got, p)
	}
	check.True(t, "some were sets", sets > 200, sets)
}

// TestMessageToFifteen: the cost of a message to fifteen, besides its octets and the seal, on average of sequences that
// differ little.
func TestMessageToFifteen(t *testing.T) {
	for _, c := range []struct {
		name     string
		sequence func(n NodeID) uint32
		most     int
	}{
		{"the same to all", func(NodeID) uint32 { return 900 }, 14},
		{"up to three more to some", func(n NodeID) uint32 { return 900 + uint32(n)%4 }, 19},
		{"up to 200 more to some", func(n NodeID) uint32 { return 900 + 13*uint32(n) }, 30},
	} {
		a := AddressPDU{Total: 1, Source: hq, Message: 5_000_000, Expiry: year2027}
		for n := NodeID(2); n <= 16; n++ {
			a.Destinations = append(a.Destinations, to(n, c.sequence(n)))
		}
		b, err := AppendCompact(nil, hq, 0, a, DataPDU{Number: 1, Source: hq, Message: 5_000_000, Fragment: make([]byte, 60)})
		check.NoError(check.Fatal(t), err)
		t.Logf("%s: %d octets", c.name, len(b)-60)
		check.True(check.In(t, c.name), "octets", len(b)-60 <= c.most, len(b)-60)
	}
}
