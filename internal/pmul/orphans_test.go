package pmul

import (
	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
	"os"
	"testing"
	"time"
)

// TestAddressBehindAllFragments: among 64 peers a receiver keeps the fragments of a message of 100 kB whose Address_PDU
// comes after them all, as it does again before the first shard.
func TestAddressBehindAllFragments(t *testing.T) {
	p, err := profile.Load("hf-2400", os.ReadFile)
	check.NoError(check.Fatal(t), err)
	c := ConfigFor(p, 65, Compact, 20, nil)
	c.Hears = true
	for n := range NodeID(64) {
		c.Peers = append(c.Peers, n+1)
	}
	r, err := NewReceiver(c, nil)
	check.NoError(check.Fatal(t), err)
	now, size := year2027.Add(-time.Hour), c.FragmentOctets()
	total := uint16(100_000/size + 1)
	for n := uint16(1); n <= total; n++ {
		r.Step(now, DataPDU{Number: n, Source: 1, Message: 7, Fragment: make([]byte, size)})
	}
	out := r.Step(now, AddressPDU{Total: total, Source: 1, Message: 7, Expiry: year2027, Destinations: []Destination{to(65, 1)},
		Plan: &Plan{Last: uint16(size), Follow: 0}})
	check.True(t, "it is delivered", len(out.Deliver) == 1 && len(out.Deliver[0].Payload) == int(total)*size, len(out.Deliver))
}
