package lab

import (
	"net/netip"
)

// linkAddr is the address of the i-th site on the link; 0 is HQ.
func linkAddr(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), 24)
}

// lanAddr is the host-th address of the LAN of the i-th site; the gateway's is host 1.
func lanAddr(i, host int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 20, byte(i), byte(host)}), 24)
}
