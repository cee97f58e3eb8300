package trace

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// level is the layer at which reading a packet ended.
type level uint8

const (
	atEther     level = iota // an Ethernet type
	atPPP                    // a PPP protocol
	atIP                     // not an IP packet where one should be: it has another version
	atTransport              // an IP protocol
	atUDP                    // a port
)

// otherKey is the kind of a packet without TCP.
type otherKey struct {
	level level
	code  uint16
}

const (
	maxOthers = 256 // kinds of packets, addresses
	maxTried  = 32  // packets that are tried as another link type
	triedSize = 128 // octets of each
	namedMost = 4   // kinds and addresses that a sentence lists
)

// unread notes the kind of a packet that has no TCP or UDP, as far as it was read.
func (d *decoder) unread(l level, code uint16) verdict {
	d.other = otherKey{l, code}
	return isOther
}

// strangers are the packets that do not count, so that a report without figures can describe them.
type strangers struct {
	kinds   map[otherKey]int64
	ends    map[netip.Addr]int64 // of packets that are not of the requested edge
	samples []Packet
}

// kind notes the kind of a packet.
func (o *strangers) kind(k otherKey) {
	if o.kinds == nil {
		o.kinds = map[otherKey]int64{}
	}
	if _, ok := o.kinds[k]; ok || len(o.kinds) < maxOthers {
		o.kinds[k]++
	}
}

// sample keeps the beginning of one of the first packets that could not be read.
func (o *strangers) sample(p Packet) {
	if len(o.samples) < maxTried {
		p.Data = slices.Clone(p.Data[:min(len(p.Data), triedSize)])
		o.samples = append(o.samples, p)
	}
}

// end notes an address that is not the requested edge.
func (o *strangers) end(addr netip.Addr) {
	if o.ends == nil {
		o.ends = map[netip.Addr]int64{}
	}
	if _, ok := o.ends[addr]; ok || len(o.ends) < maxOthers {
		o.ends[addr]++
	}
}

// names of kinds that are often found in place of TCP.
var names = map[otherKey]string{
	{atEther, 0x0806}: "ARP", {atEther, 0x88cc}: "LLDP", {atEther, 0x888e}: "802.1X", {atEther, 0x88e5}: "MACsec (encrypted)", {atEther, 0x8863}: "PPPoE discovery",
	{atPPP, 0xc021}: "PPP LCP", {atPPP, 0x8021}: "PPP IPCP", {atPPP, 0x2d}: "PPP with compressed TCP headers", {atPPP, 0x2f}: "PPP with compressed TCP headers",
	{atPPP, 0xfd}:    "PPP that is compressed",
	{atTransport, 1}: "ICMP", {atTransport, 2}: "IGMP", {atTransport, 50}: "IPsec ESP (encrypted)", {atTransport, 58}: "ICMPv6", {atTransport, 89}: "OSPF",
	{atTransport, 103}: "PIM", {atTransport, 132}: "SCTP",
	{atUDP, 51820}: "WireGuard (encrypted)", {atUDP, 4500}: "IPsec over UDP (encrypted)", {atUDP, 1194}: "OpenVPN (encrypted)",
	{atUDP, 53}: "DNS", {atUDP, 5353}: "mDNS", {atUDP, 123}: "NTP", {atUDP, 67}: "DHCP", {atUDP, 1900}: "SSDP",
}

func (k otherKey) String() string {
	if s, ok := names[k]; ok {
		return s
	}
	switch k.level {
	case atEther:
		return fmt.Sprintf("Ethernet type 0x%04x", k.code)
	case atPPP:
		return fmt.Sprintf("PPP protocol 0x%04x", k.code)
	case atIP:
		return fmt.Sprintf("IP version %d", k.code)
	case atUDP:
		return fmt.Sprintf("UDP port %d", k.code)
	}
	return fmt.Sprintf("IP protocol %d", k.code)
}

// top are the largest of a tally by name, the largest first.
func top[K interface {
	comparable
	fmt.Stringer
}](tally map[K]int64, format func(name string, n int64) string) string {
	type row struct {
		name string
		n    int64
	}
	var rows []row
	for k, n := range tally {
		rows = append(rows, row{k.String(), n})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name)) })
	var parts []string
	for _, r := range rows[:min(len(rows), namedMost)] {
		parts = append(parts, format(r.name, r.n))
	}
	return strings.Join(parts, ", ")
}

// were says what kinds of packets there were, and what the user can do.
func (o *strangers) were() (s string) {
	if len(o.kinds) > 0 {
		s = "; they are " + top(o.kinds, func(name string, n int64) string { return fmt.Sprintf("%d of %s", n, name) })
	}
	return s + ". " + o.wayOut()
}

// wayOut is a remedy for a capture without anything to read.
func (o *strangers) wayOut() string {
	if link, flag, n := o.looksLike(); n > 0 {
		return fmt.Sprintf("They read as %s, which the file does not say: editcap -T %s FILE OTHER corrects it", link, flag)
	}
	for k := range o.kinds {
		if strings.HasSuffix(k.String(), "(encrypted)") {
			return "What is encrypted is in clear on the tunnel's own interface: capture there"
		}
	}
	return "Capture on the interface that the peers use, with no other filter than their addresses"
}

// looksLike returns the link type as which most of the samples would have TCP or UDP in them, by its name and by editcap's.
func (o *strangers) looksLike() (name, flag string, n int) {
	for _, c := range []struct {
		link       LinkType
		name, flag string
	}{
		{linkEthernet, "Ethernet", "ether"}, {linkRaw, "raw IP", "rawip"}, {linkSLL, "Linux cooked", "linux-sll"}, {linkSLL2, "Linux cooked 2", "linux-sll2"},
		{linkPPP, "PPP", "ppp"}, {linkNull, "BSD loopback", "null"}, {linkCisco, "Cisco HDLC", "chdlc"},
	} {
		good := 0
		for _, p := range o.samples {
			var s tcpSegment
			p.Link = c.link
			if decode(p, &s) == isTransport {
				good++
			}
		}
		if 2*good > len(o.samples) && good > n {
			name, flag, n = c.name, c.flag, good
		}
	}
	return name, flag, n
}
