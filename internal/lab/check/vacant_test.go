package check

import (
	"net"
	"testing"
)

// Addresses differ, and can be had.
func TestFreeAddresses(t *testing.T) {
	for _, network := range []string{"tcp", "udp"} {
		list, err := FreeAddresses(network, 20)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, a := range list {
			seen[a.String()] = true
		}
		if len(seen) != 20 {
			t.Errorf("%s: %d different ones of 20", network, len(seen))
		}
	}
	l, err := net.Listen("tcp", FreeAddress(t, "tcp"))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
