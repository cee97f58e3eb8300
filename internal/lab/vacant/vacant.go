// Package vacant finds addresses of loopback that nobody uses now, for tests and benchmarks that start programs. Another
// program may take one before its user does.
package vacant

import (
	"net"
	"net/netip"
)

// T is what the package needs of a *testing.T.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Address is one for "tcp" or "udp".
func Address(t T, network string) string {
	t.Helper()
	return one(t, network).String()
}

// Port is the port of one.
func Port(t T, network string) int {
	t.Helper()
	return int(one(t, network).Port())
}

func one(t T, network string) netip.AddrPort {
	t.Helper()
	list, err := Addresses(network, 1)
	if err != nil {
		t.Fatalf("no address of loopback for %s: %v", network, err)
	}
	return list[0]
}

// Addresses are n different ones for "tcp" or "udp".
func Addresses(network string, n int) (list []netip.AddrPort, err error) {
	for range n {
		if network == "udp" {
			c, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			defer c.Close() // all are held until the last is found
			list = append(list, c.LocalAddr().(*net.UDPAddr).AddrPort())
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		list = append(list, l.Addr().(*net.TCPAddr).AddrPort())
	}
	return list, nil
}
