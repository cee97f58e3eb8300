package trace

import (
	"encoding/binary"
	"net/netip"
)

// Ethernet's types of payload.
const (
	etherIPv4     = 0x0800
	etherERSPAN   = 0x88be
	etherBridged  = 0x6558 // a whole Ethernet frame
	etherVLAN     = 0x8100
	etherIPv6     = 0x86dd
	etherPPP      = 0x880b // PPP in GRE
	etherMPLS     = 0x8847
	etherMPLSMany = 0x8848 // to several receivers
	etherPPPoE    = 0x8864
	etherQinQ     = 0x88a8
	etherQinQOld  = 0x9100
	maxLength     = 1500 // an Ethernet type up to here is the frame's length
)

// Ports of VXLAN: the assigned one, and the one that Linux used before.
const (
	portVXLAN    = 4789
	portVXLANOld = 8472
)

// link strips the header of this link type from a packet.
func (d *decoder) link(link LinkType, c excerpt) verdict {
	switch link {
	case linkEthernet:
		return d.ether(c, 12)
	case linkSLL:
		return d.ether(c, 14)
	case linkSLL2:
		rest, ok := c.from(20)
		if !ok {
			return isCut
		}
		return d.typed(binary.BigEndian.Uint16(c.data), rest)
	case linkRaw, linkRawBSD, linkRawOpen, linkIPv4, linkIPv6:
		return d.ip(c)
	case linkNull, linkLoop: // the IP version decides
		rest, ok := c.from(4)
		if !ok {
			return isCut
		}
		return d.ip(rest)
	case linkPPPDir:
		rest, ok := c.from(1)
		if !ok {
			return isCut
		}
		return d.ppp(rest)
	case linkPPPHDLC, linkCisco:
		if len(c.data) >= 4 && (c.data[0] == 0x0f || c.data[0] == 0x8f) { // Cisco's own framing
			return d.ether(c, 2)
		}
		return d.ppp(c)
	case linkPPP:
		return d.ppp(c)
	case linkPPPoE:
		return d.pppoe(c)
	}
	return isUnknownLink
}

// ether reads a frame whose type is at an octet.
func (d *decoder) ether(c excerpt, at int) verdict {
	rest, ok := c.from(at + 2)
	if !ok {
		return isCut
	}
	return d.typed(binary.BigEndian.Uint16(c.data[at:]), rest)
}

// typed reads the payload of an Ethernet type.
func (d *decoder) typed(kind uint16, c excerpt) verdict {
	d.depth++
	if d.depth > maxWraps {
		return isBad
	}
	switch kind {
	case etherIPv4, etherIPv6:
		return d.ip(c)
	case etherVLAN, etherQinQ, etherQinQOld:
		return d.ether(c, 2)
	case etherPPPoE:
		return d.pppoe(c)
	case etherMPLS, etherMPLSMany:
		return d.mpls(c)
	case etherBridged:
		return d.ether(c, 12)
	case etherPPP:
		return d.ppp(c)
	}
	if kind <= maxLength && len(c.data) >= 8 && c.data[0] == 0xaa && c.data[1] == 0xaa && c.data[2] == 3 { // LLC with SNAP
		return d.ether(c, 6)
	}
	return d.unread(atEther, kind)
}

func (d *decoder) pppoe(c excerpt) verdict {
	rest, ok := c.from(6)
	if !ok {
		return isCut
	}
	return d.ppp(rest)
}

// ppp reads a PPP frame, with or without address and control, its protocol in one octet or two (RFC 1661).
func (d *decoder) ppp(c excerpt) verdict {
	b := c.data
	if len(b) >= 2 && b[0] == 0xff && b[1] == 0x03 {
		c, _ = c.from(2)
		b = c.data
	}
	if len(b) < 2 {
		return isCut
	}
	kind, head := binary.BigEndian.Uint16(b), 2
	if b[0]&1 != 0 {
		kind, head = uint16(b[0]), 1
	}
	c, _ = c.from(head)
	switch kind {
	case 0x21, 0x57:
		return d.ip(c)
	case 0x281, 0x283:
		return d.mpls(c)
	}
	return d.unread(atPPP, kind)
}

// mpls skips labels (RFC 3032). No field gives the type of the payload: an IP packet shows its version. Any other payload is an Ethernet
// frame, after a control word if that begins with zeros (RFC 4385).
func (d *decoder) mpls(c excerpt) verdict {
	for range maxWraps {
		last := len(c.data) >= 4 && c.data[2]&1 != 0
		rest, ok := c.from(4)
		if !ok {
			return isCut
		}
		c = rest
		if !last {
			continue
		}
		switch {
		case len(c.data) == 0:
			return isCut
		case c.data[0]>>4 == 4, c.data[0]>>4 == 6:
			return d.ip(c)
		case c.data[0]>>4 == 0:
			if c, ok = c.from(4); !ok {
				return isCut
			}
		}
		return d.typed(etherBridged, c)
	}
	return isBad
}

// gre reads GRE (RFC 2784 and 2890), and its version 1, which carries PPP (RFC 2637).
func (d *decoder) gre(c excerpt) verdict {
	if len(c.data) < 4 {
		return isCut
	}
	flags, kind, head := binary.BigEndian.Uint16(c.data), binary.BigEndian.Uint16(c.data[2:]), 4
	for _, with := range []uint16{0x8000, 0x2000, 0x1000} { // checksum, key, number
		if flags&with != 0 {
			head += 4
		}
	}
	switch {
	case flags&7 == 1 && flags&0x80 != 0: // acknowledgement
		head += 4
	case flags&7 > 1 || flags&0x4000 != 0:
		return d.unread(atTransport, protoGRE)
	}
	rest, ok := c.from(head)
	if !ok {
		return isCut
	}
	if kind != etherERSPAN {
		return d.typed(kind, rest)
	}
	if flags&0x1000 != 0 { // the mirror's own head is there when packets are numbered
		if rest, ok = rest.from(8); !ok {
			return isCut
		}
	}
	return d.typed(etherBridged, rest)
}

// authenticated skips an authentication header (RFC 4302), which hides nothing.
func (d *decoder) authenticated(src, dst netip.Addr, c excerpt) verdict {
	d.depth++
	if d.depth > maxWraps {
		return isBad
	}
	if len(c.data) < 2 {
		return isCut
	}
	rest, ok := c.from(4 * (int(c.data[1]) + 2))
	if !ok {
		return isCut
	}
	return d.transport(c.data[0], src, dst, rest)
}

// vxlan reads the contents of a datagram of VXLAN (RFC 7348); false: there is no segment in it, and it counts as an ordinary datagram.
func (d *decoder) vxlan(c excerpt) (verdict, bool) {
	b := c.data
	if port := binary.BigEndian.Uint16(b[2:]); port != portVXLAN && port != portVXLANOld || len(b) < 16 || b[8] != 8 || b[15] != 0 {
		return isOther, false
	}
	inner := decoder{s: &tcpSegment{at: d.s.at, number: d.s.number, frame: d.s.frame}, depth: d.depth, fragments: d.fragments}
	rest, _ := c.from(16)
	v := inner.typed(etherBridged, rest)
	if v != isTransport && v != isFragment {
		return isOther, false
	}
	*d.s = *inner.s
	return v, true
}
