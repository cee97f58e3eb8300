package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"

	"aldis/internal/lab/linkemu"
)

// known is how many octets after the IP header identify a packet: a seal's counter and the octets after it, or a TCP header and the
// beginning of its data. Captures may be cut after them.
const known = 64

// PassageOf is the identity of a packet; false if it is no TCP segment or UDP datagram.
func PassageOf(p Packet) (linkemu.Passage, bool) {
	var s tcpSegment
	if decode(p, &s) != isTransport {
		return linkemu.Passage{}, false
	}
	h := sha256.New()
	for _, end := range []netip.AddrPort{s.src, s.dst} {
		b, _ := end.MarshalBinary() // an address read from a packet
		h.Write(b)
	}
	b := binary.BigEndian.AppendUint32([]byte{s.proto, s.flags}, uint32(s.length))
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, s.seq), s.ack)
	h.Write(append(b, s.data[:min(len(s.data), known)]...))
	return linkemu.Passage{At: p.At, From: s.src.Addr(), To: s.dst.Addr(), Octets: s.ip, Sum: [16]byte(h.Sum(nil))}, true
}
