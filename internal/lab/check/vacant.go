package check

import (
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
)

// FreeAddress is an address of loopback that is free now, for "tcp" or "udp"; another program may take it before the caller does.
func FreeAddress(t T, network string) string {
	t.Helper()
	return one(t, network).String()
}

// FreePort is the port of a FreeAddress.
func FreePort(t T, network string) int {
	t.Helper()
	return int(one(t, network).Port())
}

func one(t T, network string) netip.AddrPort {
	t.Helper()
	list, err := FreeAddresses(network, 1)
	if err != nil {
		t.Fatalf("no address of loopback for %s: %v", network, err)
	}
	return list[0]
}

// given are the addresses that this process has handed out, by network: none is handed out twice while others are free.
var given struct {
	sync.Mutex
	was map[string]map[netip.AddrPort]bool
}

// mostTries bounds how many addresses are tried to find one that was not handed out yet.
const mostTries = 64

// fresh says that an address was not handed out before, and notes that it is now.
func fresh(network string, at netip.AddrPort) bool {
	given.Lock()
	defer given.Unlock()
	if given.was == nil {
		given.was = map[string]map[netip.AddrPort]bool{"tcp": {}, "udp": {}}
	}
	if given.was[network][at] {
		return false
	}
	given.was[network][at] = true
	return true
}

// FreeAddresses are n different free addresses for "tcp" or "udp".
func FreeAddresses(network string, n int) (list []netip.AddrPort, err error) {
	for tries := n + mostTries; len(list) < n; tries-- {
		at, closer, err := open(network)
		if err != nil {
			return nil, err
		}
		defer closer.Close() // all are held until the last is found
		if fresh(network, at) || tries <= n {
			list = append(list, at)
		}
	}
	return list, nil
}

// Ports below those that Linux gives to dialling sockets, 32768 and more (ip_local_port_range): a free port stays free until a test
// listens there, or its gateway starts again.
const firstPort, lastPort = 10240, 32767

// open listens at an address of loopback with a random port.
func open(network string) (at netip.AddrPort, closer io.Closer, err error) {
	for range mostTries {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstPort+rand.IntN(lastPort-firstPort+1)))
		if network == "udp" {
			closer, err = net.ListenPacket("udp", at.String())
		} else {
			closer, err = net.Listen("tcp", at.String())
		}
		if err == nil {
			return at, closer, nil
		}
	}
	return at, nil, err
}
