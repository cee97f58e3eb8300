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

const (
	protoTCP = 6
	protoUDP = 17
)

// segment is one TCP segment or UDP datagram. Data aliases the packet.
type segment struct {
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

// verdict is what became of a packet that is no whole TCP segment or UDP datagram.
type verdict uint8

const (
	isTransport verdict = iota
	isOther             // ARP, ICMP and the like
	isFragment          // of an IP packet
	isCut               // by the snap length, within the headers
	isUnknownLink
	isBad // headers contradict themselves
)

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherPPP  = 0x8864
)

// decode finds the TCP segment or UDP datagram in a packet.
func decode(p Packet, s *segment) verdict {
	b, v := network(p)
	if v != isTransport {
		return v
	}
	s.at, s.number, s.frame = p.At, p.Number, p.Length
	if len(b) == 0 {
		return isCut
	}
	switch b[0] >> 4 {
	case 4:
		return s.ipv4(b, p)
	case 6:
		return s.ipv6(b, p)
	}
	return isOther
}

// network strips the link header; what is left starts with an IP header.
func network(p Packet) ([]byte, verdict) {
	b := p.Data
	ether := func(at int) ([]byte, verdict) {
		for {
			if len(b) < at+2 {
				return nil, isCut
			}
			switch t := binary.BigEndian.Uint16(b[at:]); t {
			case etherIPv4, etherIPv6:
				return b[at+2:], isTransport
			case 0x8100, 0x88a8, 0x9100: // VLAN tags
				at += 4
			case etherPPP:
				if len(b) < at+10 {
					return nil, isCut
				}
				if t := binary.BigEndian.Uint16(b[at+8:]); t != 0x21 && t != 0x57 {
					return nil, isOther
				}
				return b[at+10:], isTransport
			default:
				return nil, isOther
			}
		}
	}
	switch p.Link {
	case linkEthernet:
		return ether(12)
	case linkSLL:
		return ether(14)
	case linkSLL2:
		if len(b) < 20 {
			return nil, isCut
		}
		switch binary.BigEndian.Uint16(b) {
		case etherIPv4, etherIPv6:
			return b[20:], isTransport
		}
		return nil, isOther
	case linkRaw, linkRawBSD, linkRawOpen, linkIPv4, linkIPv6:
		return b, isTransport
	case linkNull, linkLoop:
		if len(b) < 4 {
			return nil, isCut
		}
		return b[4:], isTransport // the IP version says what it is
	case linkPPP, linkPPPHDLC, linkPPPDir:
		if p.Link == linkPPPDir && len(b) > 0 {
			b = b[1:]
		}
		if len(b) >= 2 && b[0] == 0xff && b[1] == 0x03 { // address and control
			b = b[2:]
		}
		switch {
		case len(b) >= 1 && (b[0] == 0x21 || b[0] == 0x57): // protocol field of one octet
			return b[1:], isTransport
		case len(b) >= 2 && b[0] == 0 && (b[1] == 0x21 || b[1] == 0x57):
			return b[2:], isTransport
		}
		return nil, isOther
	}
	return nil, isUnknownLink
}

func (s *segment) ipv4(b []byte, p Packet) verdict {
	if len(b) < 20 {
		return isCut
	}
	head := int(b[0]&15) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 { // segmentation offload: the length on the wire says
		total = p.Length - (len(p.Data) - len(b))
	}
	if head < 20 || total < head {
		return isBad
	}
	if binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
		return isFragment
	}
	s.ip = total
	if len(b) < head {
		return isCut
	}
	src, dst := netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	return s.transport(b[9], src, dst, b[head:min(total, len(b))], total-head)
}

func (s *segment) ipv6(b []byte, p Packet) verdict {
	if len(b) < 40 {
		return isCut
	}
	total := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if total == 40 {
		total = p.Length - (len(p.Data) - len(b))
	}
	s.ip = total
	next, rest, left := b[6], b[40:max(40, min(total, len(b)))], total-40
	src, dst := netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	for {
		switch next {
		case 0, 43, 60: // hop-by-hop, routing, destination options
			if len(rest) < 2 {
				return isCut
			}
			n := 8 + 8*int(rest[1])
			if left < n {
				return isBad
			}
			if len(rest) < n {
				return isCut
			}
			next, rest, left = rest[0], rest[n:], left-n
		case 44:
			return isFragment
		default:
			return s.transport(next, src, dst, rest, left)
		}
	}
}

// transport reads the TCP or UDP header in b, of which length octets were on the wire.
func (s *segment) transport(proto uint8, src, dst netip.Addr, b []byte, length int) verdict {
	s.proto = proto
	switch proto {
	case protoTCP:
		if length < 20 {
			return isBad
		}
		if len(b) < 20 {
			return isCut
		}
		head := int(b[12]>>4) * 4
		if head < 20 || head > length {
			return isBad
		}
		s.seq, s.ack = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
		s.flags, s.window = b[13], binary.BigEndian.Uint16(b[14:])
		s.length = length - head
		s.data = nil
		if len(b) > head {
			s.data = b[head:]
		}
	case protoUDP:
		if length < 8 {
			return isBad
		}
		if len(b) < 8 {
			return isCut
		}
		s.length, s.data = length-8, b[8:]
		if n := int(binary.BigEndian.Uint16(b[4:])); n >= 8 && n <= length {
			s.length = n - 8
			s.data = s.data[:min(len(s.data), s.length)]
		}
	default:
		return isOther
	}
	s.src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b))
	s.dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:]))
	return isTransport
}
