package envelope

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Direct is a word about a direct session between two gateways that a relay introduces to each other: docs/decisions/direct.md. Gateways
// that know nothing of such sessions read an empty message.
type Direct struct {
	Bearer uint8  // mark of the bearer that the session is on, or is to be on
	Peer   uint16 // to a relay, the gateway with which its sender wants a session; from a relay, the one that is at Addr; 0: the session with the sender is over
	Addr   netip.AddrPort
}

// The bearer, the peer, and, where there is one, the port and the address.
const directOctets = 3

func (d *Direct) join() []byte {
	b := binary.BigEndian.AppendUint16([]byte{d.Bearer}, d.Peer)
	if d.Addr.IsValid() {
		b = binary.BigEndian.AppendUint16(b, d.Addr.Port())
		b = append(b, d.Addr.Addr().Unmap().AsSlice()...)
	}
	return b
}

func splitDirect(b []byte) (*Direct, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < directOctets {
		return nil, fmt.Errorf("%w: %d octets of a session", ErrMalformed, len(b))
	}
	d := &Direct{Bearer: b[0], Peer: binary.BigEndian.Uint16(b[1:])}
	if b = b[directOctets:]; len(b) == 0 {
		return d, nil
	}
	if len(b) < 2 {
		return nil, fmt.Errorf("%w: an address of %d octets", ErrMalformed, len(b))
	}
	addr, ok := netip.AddrFromSlice(b[2:])
	if !ok {
		return nil, fmt.Errorf("%w: an address of %d octets", ErrMalformed, len(b))
	}
	d.Addr = netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(b))
	return d, nil
}
