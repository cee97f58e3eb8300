package trace

import (
	"encoding/binary"
	"net/netip"
)

// TCP flags.
const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagRST = 0x04
	flagACK = 0x10
)

// Protocols in IP packets.
const (
	protoIPv4 = 4
	protoTCP  = 6
	protoUDP  = 17
	protoIPv6 = 41
	protoGRE  = 47
	protoAH   = 51
	protoMPLS = 137
)

// tcpSegment is one TCP segment or UDP datagram. Data aliases the packet.
type tcpSegment struct {
	at       int64
	number   int64
	src, dst netip.AddrPort
	proto    uint8
	seq, ack uint32
	flags    uint8
	window   uint16
	data     []byte // captured payload
	length   int    // payload on the wire
	frame    int    // octets of the whole packet on the wire, link header included
	ip       int    // octets of the IP packet
}

// verdict is the result of reading a packet.
type verdict uint8

const (
	isTransport verdict = iota
	isOther             // ARP, ICMP and the like
	isFragment          // of an IP packet that is not complete yet
	isCut               // by the snap length, within the headers
	isUnknownLink
	isBad // headers contradict themselves
)

// maxWraps is how many layers of tags, labels and tunnels are removed.
const maxWraps = 16

// excerpt is a part of a packet: its captured octets, and its length on the wire.
type excerpt struct {
	data []byte
	wire int
}

// from is the excerpt without its first n octets; false when fewer were captured.
func (c excerpt) from(n int) (excerpt, bool) {
	if n > len(c.data) {
		return excerpt{}, false
	}
	return excerpt{c.data[n:], c.wire - n}, true
}

// decoder finds the TCP segment or UDP datagram in one packet, through all its wrappings.
type decoder struct {
	s         *tcpSegment
	depth     int
	fragments *fragments // nil: fragments are not put together
	other     otherKey   // the kind of the packet, when the verdict is isOther
}

// decode finds the TCP segment or UDP datagram in a packet. Fragments are not put together.
func decode(p Packet, s *tcpSegment) verdict {
	d := decoder{s: s}
	return d.packet(p)
}

func (d *decoder) packet(p Packet) verdict {
	d.s.at, d.s.number, d.s.frame = p.At, p.Number, p.Length
	return d.link(p.Link, excerpt{p.Data, p.Length})
}

// ip reads an IP packet of either version.
func (d *decoder) ip(c excerpt) verdict {
	d.depth++
	if d.depth > maxWraps {
		return isBad
	}
	if len(c.data) == 0 {
		return isCut
	}
	switch c.data[0] >> 4 {
	case 4:
		return d.ipv4(c)
	case 6:
		return d.ipv6(c)
	}
	return d.unread(atIP, uint16(c.data[0]>>4))
}

func (d *decoder) ipv4(c excerpt) verdict {
	b := c.data
	if len(b) < 20 {
		return isCut
	}
	head := int(b[0]&15) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 { // segmentation offload: the length on the wire counts
		total = c.wire
	}
	if head < 20 || total < head {
		return isBad
	}
	d.s.ip = total
	src, dst := netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	if place := binary.BigEndian.Uint16(b[6:]); place&0x3fff != 0 {
		if len(b) < head {
			return isCut
		}
		f := fragment{fragmentKey{src, dst, uint32(binary.BigEndian.Uint16(b[4:])), b[9]}, int(place&0x1fff) * 8, place&0x2000 != 0}
		return d.fragment(f, excerpt{b[head:min(total, len(b))], total - head})
	}
	if len(b) < head {
		return isCut
	}
	return d.transport(b[9], src, dst, excerpt{b[head:min(total, len(b))], total - head})
}

func (d *decoder) ipv6(c excerpt) verdict {
	b := c.data
	if len(b) < 40 {
		return isCut
	}
	total := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if total == 40 {
		total = c.wire
	}
	d.s.ip = total
	src, dst := netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	return d.extended(b[6], src, dst, excerpt{b[40:max(40, min(total, len(b)))], total - 40})
}

// extended skips the extension headers of version 6, the first of which is next.
func (d *decoder) extended(next uint8, src, dst netip.Addr, c excerpt) verdict {
	for {
		n := 8
		switch next {
		case 0, 43, 60: // hop-by-hop, routing, destination options
			if len(c.data) < 2 {
				return isCut
			}
			n += 8 * int(c.data[1])
		case 44:
			if len(c.data) < n {
				return isCut
			}
			place := binary.BigEndian.Uint16(c.data[2:])
			if place&^6 != 0 { // a fragment that is the whole packet has offset zero and no others after it
				f := fragment{fragmentKey{src, dst, binary.BigEndian.Uint32(c.data[4:]), c.data[0]}, int(place &^ 7), place&1 != 0}
				return d.fragment(f, excerpt{c.data[n:], c.wire - n})
			}
		default:
			return d.transport(next, src, dst, c)
		}
		if c.wire < n {
			return isBad
		}
		rest, ok := c.from(n)
		if !ok {
			return isCut
		}
		next, c = c.data[0], rest
	}
}

// transport reads the payload of an IP packet: TCP, UDP, or a tunnel.
func (d *decoder) transport(proto uint8, src, dst netip.Addr, c excerpt) verdict {
	s, b := d.s, c.data
	s.proto = proto
	switch proto {
	case protoTCP:
		if c.wire < 20 {
			return isBad
		}
		if len(b) < 20 {
			return isCut
		}
		head := int(b[12]>>4) * 4
		if head < 20 || head > c.wire {
			return isBad
		}
		s.seq, s.ack = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
		s.flags, s.window = b[13], binary.BigEndian.Uint16(b[14:])
		s.length = c.wire - head
		s.data = nil
		if len(b) > head {
			s.data = b[head:]
		}
	case protoUDP:
		if c.wire < 8 {
			return isBad
		}
		if len(b) < 8 {
			return isCut
		}
		if v, ok := d.vxlan(c); ok {
			return v
		}
		s.length, s.data = c.wire-8, b[8:]
		if n := int(binary.BigEndian.Uint16(b[4:])); n >= 8 && n <= c.wire {
			s.length = n - 8
			s.data = s.data[:min(len(s.data), s.length)]
		}
	case protoIPv4, protoIPv6:
		return d.ip(c)
	case protoGRE:
		return d.gre(c)
	case protoMPLS:
		return d.mpls(c)
	case protoAH:
		return d.authenticated(src, dst, c)
	default:
		return d.unread(atTransport, uint16(proto))
	}
	s.src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b))
	s.dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:]))
	return isTransport
}
