package trace

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// wrapped is a capture whose IP packets are put into something else.
func wrapped(list []Packet, link LinkType, wrap func(ip []byte) []byte) []Packet {
	out := slices.Clone(list)
	for i, p := range list {
		b := wrap(p.Data)
		out[i].Link, out[i].Data, out[i].Length = link, b, p.Length+len(b)-len(p.Data)
	}
	return out
}

// behind puts octets before a packet.
func behind(head ...byte) func([]byte) []byte {
	return func(ip []byte) []byte { return append(bytes.Clone(head), ip...) }
}

// inIP is an IP packet of version 4 around something.
func inIP(proto uint8, id uint16, place uint16, body []byte) []byte {
	b := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2}
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(body)))
	binary.BigEndian.PutUint16(b[4:], id)
	binary.BigEndian.PutUint16(b[6:], place)
	return append(b, body...)
}

// in6 is an IP packet of version 6 around something.
func in6(next uint8, body []byte) []byte {
	b := make([]byte, 40)
	b[0], b[6], b[7], b[23], b[39] = 0x60, next, 64, 1, 2
	binary.BigEndian.PutUint16(b[4:], uint16(len(body)))
	return append(b, body...)
}

func tunnel(proto uint8, head ...byte) func([]byte) []byte {
	return func(ip []byte) []byte { return inIP(proto, 1, 0, append(bytes.Clone(head), ip...)) }
}

func ethernet(kind uint16, tags ...byte) []byte {
	return binary.BigEndian.AppendUint16(append(bytes.Repeat([]byte{2}, 12), tags...), kind)
}

// The peers' messages are the same whatever their packets are wrapped in.
func TestWrappings(t *testing.T) {
	list := packets(t, load(t, "jxta22-tcp-iridium")) // raw IP
	want := analyse(list, Options{})
	inner := ethernet(etherIPv4)
	vxlan := func(port uint16) func([]byte) []byte {
		return func(ip []byte) []byte {
			b := append([]byte{0x80, 1, byte(port >> 8), byte(port), 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0}, append(bytes.Clone(inner), ip...)...)
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
			return inIP(protoUDP, 1, 0, b)
		}
	}
	tests := []struct {
		name string
		link LinkType
		wrap func([]byte) []byte
	}{
		{"QinQ", linkEthernet, behind(ethernet(etherIPv4, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 8)...)},
		{"old QinQ, thrice", linkEthernet, behind(ethernet(etherIPv4, 0x91, 0, 0, 7, 0x81, 0, 0, 8, 0x81, 0, 0, 9)...)},
		{"VLAN and PPPoE", linkEthernet, behind(append(ethernet(etherPPPoE, 0x81, 0, 0, 7), 0x11, 0, 0, 1, 0, 40, 0, 0x21)...)},
		{"PPPoE without Ethernet", linkPPPoE, behind(0x11, 0, 0, 1, 0, 40, 0, 0x21)},
		{"SNAP", linkEthernet, behind(append(ethernet(100), 0xaa, 0xaa, 3, 0, 0, 0, 8, 0)...)},
		{"SLL with VLAN", linkSLL, behind(append(make([]byte, 14), 0x81, 0, 0, 7, 8, 0)...)},
		{"SLL2 with VLAN", linkSLL2, behind(append(append([]byte{0x81, 0}, make([]byte, 18)...), 0, 7, 8, 0)...)},
		{"Cisco HDLC", linkCisco, behind(0x0f, 0, 8, 0)},
		{"Cisco HDLC as PPP", linkPPPHDLC, behind(0x8f, 0, 8, 0)},
		{"MPLS", linkEthernet, behind(append(ethernet(etherMPLS), 0, 1, 0x41, 64)...)},
		{"MPLS, three labels", linkEthernet, behind(append(ethernet(etherMPLS), 0, 1, 0x40, 64, 0, 2, 0x40, 64, 0, 3, 0x41, 64)...)},
		{"MPLS with Ethernet", linkEthernet, behind(append(append(ethernet(etherMPLSMany), 0, 1, 0x41, 64, 0, 0, 0, 0), inner...)...)},
		{"PPP with MPLS", linkPPP, behind(0xff, 3, 0x02, 0x81, 0, 1, 0x41, 64)},
		{"IP in IP", linkRaw, tunnel(protoIPv4)},
		{"IP in IP in IP", linkRaw, func(ip []byte) []byte { return inIP(protoIPv4, 1, 0, inIP(protoIPv4, 1, 0, ip)) }},
		{"IP in IPv6", linkRaw, func(ip []byte) []byte { return in6(protoIPv4, ip) }},
		{"authenticated", linkRaw, tunnel(protoAH, protoIPv4, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)},
		{"GRE", linkRaw, tunnel(protoGRE, 0, 0, 8, 0)},
		{"GRE with checksum, key and number", linkRaw, tunnel(protoGRE, 0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2)},
		{"GRE with Ethernet", linkRaw, tunnel(protoGRE, append([]byte{0, 0, 0x65, 0x58}, inner...)...)},
		{"PPTP", linkRaw, tunnel(protoGRE, 0x30, 0x81, 0x88, 0x0b, 0, 40, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xff, 3, 0, 0x21)},
		{"ERSPAN", linkRaw, tunnel(protoGRE, append([]byte{0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, inner...)...)},
		{"MPLS in IP", linkRaw, tunnel(protoMPLS, 0, 1, 0x41, 64)},
		{"VXLAN", linkRaw, vxlan(portVXLAN)},
		{"VXLAN of old Linux", linkRaw, vxlan(portVXLANOld)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := analyse(wrapped(list, tt.link, tt.wrap), Options{})
			checkSums(t, got)
			check.Same(t, "kinds of messages", got.Kinds, want.Kinds)
			check.Equal(t, "retransmissions", got.Figures.Retransmissions, want.Figures.Retransmissions)
			check.Equal(t, "packets", got.Figures.Packets, want.Figures.Packets)
			more := int64(len(list) * (len(tt.wrap(nil))))
			check.Equal(t, "octets", got.Figures.TotalBytes, want.Figures.TotalBytes+more)
			check.True(t, "not partial", !got.Partial, got.Problems)
		})
	}
}

// A packet of tunnels in tunnels without end costs a bounded number of steps.
func TestWrappingsEnd(t *testing.T) {
	b := []byte{}
	for range 200 {
		b = inIP(protoIPv4, 1, 0, b)
	}
	var s tcpSegment
	check.Equal(t, "IP in IP 200 times", decode(Packet{Link: linkRaw, Data: b, Length: len(b)}, &s), isBad)
	tags := ethernet(etherIPv4, bytes.Repeat([]byte{0x81, 0, 0, 1}, 1000)...)
	check.Equal(t, "1,000 tags", decode(Packet{Link: linkEthernet, Data: tags, Length: len(tags)}, &s), isBad)
	labels := append(ethernet(etherMPLS), make([]byte, 4000)...)
	check.Equal(t, "1,000 labels", decode(Packet{Link: linkEthernet, Data: labels, Length: len(labels)}, &s), isBad)
}

// inFragments cuts the IP packets of a capture for a link that takes mtu octets at a time.
func inFragments(list []Packet, mtu int, v6 bool) (out []Packet) {
	for i, p := range list {
		head, body := p.Data[:20], p.Data[20:]
		if v6 { // the packet itself goes through a tunnel of version 6
			head, body = nil, p.Data
		}
		if len(head)+len(body) <= mtu {
			out = append(out, p)
			continue
		}
		size := (mtu - 48) &^ 7
		for at := 0; at < len(body); at += size {
			end := min(at+size, len(body))
			place := uint16(at)
			var b []byte
			if v6 {
				f := []byte{protoIPv4, 0, 0, 0, 0, 0, byte(i >> 8), byte(i)}
				if end < len(body) {
					place |= 1
				}
				binary.BigEndian.PutUint16(f[2:], place)
				b = in6(44, append(f, body[at:end]...))
			} else {
				place /= 8
				if end < len(body) {
					place |= 0x2000
				}
				b = bytes.Clone(head)
				binary.BigEndian.PutUint16(b[2:], uint16(20+end-at))
				binary.BigEndian.PutUint16(b[4:], uint16(i))
				binary.BigEndian.PutUint16(b[6:], place)
				b = append(b, body[at:end]...)
			}
			f := p
			f.Data, f.Length = b, len(b)
			out = append(out, f)
		}
	}
	for i := range out {
		out[i].Number = int64(i + 1)
	}
	return out
}

// Links with a small MTU cut IP packets: they are put together, in whatever order and however often the fragments come.
func TestFragments(t *testing.T) {
	list := packets(t, load(t, "jxta22-tcp-iridium"))
	want := analyse(list, Options{})
	for _, v6 := range []bool{false, true} {
		cut := inFragments(list, 400, v6)
		shuffled := slices.Clone(cut)
		random := rand.New(rand.NewPCG(1, 2))
		for at := 0; at < len(cut); {
			end := at + 1
			for end < len(cut) && cut[end].At == cut[at].At {
				end++
			}
			part := shuffled[at:end]
			random.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			at = end
		}
		var octets int64
		for _, p := range cut {
			octets += int64(p.Length)
		}
		for name, l := range map[string][]Packet{"in order": cut, "in another order": shuffled} {
			got := analyse(l, Options{})
			checkSums(t, got)
			check.Same(t, name+": kinds of messages", got.Kinds, want.Kinds)
			check.Equal(t, name+": packets", got.Figures.Packets, want.Figures.Packets)
			check.Equal(t, name+": octets", got.Figures.TotalBytes, octets)
			check.True(t, name+": not partial", !got.Partial, got.Problems)
			check.True(t, name+": said", strings.Contains(strings.Join(got.Remarks, "\n"), "came in fragments and were put together"), got.Remarks)
			check.Equal(t, name+": incomplete", got.Fragments.Incomplete, 0)
		}
		twice := make([]Packet, 0, 2*len(cut))
		for _, p := range cut {
			twice = append(twice, p, p)
		}
		got := analyse(twice, Options{})
		check.Same(t, "each twice: kinds of messages", got.Kinds, want.Kinds)
		check.Equal(t, "each twice: incomplete", got.Fragments.Incomplete, 0)
	}
}

// The report mentions the missing part of a packet: it was lost on the way or not captured, and the packet does not count.
func TestFragmentsMissing(t *testing.T) {
	cut := inFragments(packets(t, load(t, "jxta22-tcp-iridium")), 400, false)
	var less []Packet
	n := 0
	for _, p := range cut {
		if place := binary.BigEndian.Uint16(p.Data[6:]) & 0x3fff; place != 0 && place&0x2000 == 0 {
			if n++; n%10 == 0 {
				continue
			}
		}
		less = append(less, p)
	}
	r := analyse(less, Options{})
	checkSums(t, r)
	check.Equal(t, "incomplete", r.Fragments.Incomplete, int64(n/10))
	check.True(t, "said", strings.Contains(strings.Join(r.Remarks, "\n"), "only some fragments are there"), r.Remarks)
}

// Fragments that are never completed take bounded memory, and time that does not grow with the number of waiting ones.
func TestFragmentsBounded(t *testing.T) {
	a := New(Options{})
	body := make([]byte, 1000)
	for i := range 20000 {
		b := inIP(protoTCP, uint16(i), uint16(i%8*125)|0x2000, body)
		a.Add(Packet{Number: int64(i + 1), At: int64(i), Link: linkRaw, Data: b, Length: len(b)})
		if len(a.fragments.open) > maxAssemblies || a.fragments.held > maxFragmentsAll {
			t.Fatalf("%d packets open, %d octets held", len(a.fragments.open), a.fragments.held)
		}
	}
	for i := range 8000 { // one packet in segments of eight octets
		b := inIP(protoTCP, 7, uint16(i)|0x2000, body[:8])
		a.Add(Packet{Number: int64(i + 1), At: 20000, Link: linkRaw, Data: b, Length: len(b)})
	}
	r := a.Finish()
	check.Equal(t, "held", a.fragments.held, 0)
	check.Equal(t, "open", len(a.fragments.open), 0)
	check.True(t, "incomplete are counted", r.Fragments.Incomplete >= 20000, r.Fragments)
}

// The report on a file that was declared as another link type names the right type, and the packets in place of TCP.
func TestNothingFoundSaysTheWayOut(t *testing.T) {
	raw := packets(t, load(t, "jxta22-tcp-iridium"))
	ether := packets(t, load(t, "jxta22-tcp"))
	as := func(list []Packet, link LinkType) []Packet {
		list = slices.Clone(list)
		for i := range list {
			list[i].Link = link
		}
		return list
	}
	for what, list := range map[string][]Packet{
		"They read as Ethernet, which the file does not say: editcap -T ether": as(ether, linkRaw),
		"They read as raw IP, which the file does not say: editcap -T rawip":   as(raw, linkEthernet),
		"they are 240 of IPsec ESP (encrypted). What is encrypted is in clear": wrapped(raw, linkRaw, tunnel(50)),
		"they are 240 of Ethernet type 0x1234. Capture on the interface":       wrapped(raw, linkEthernet, behind(ethernet(0x1234)...)),
		"the capture has no packets":                                           nil,
	} {
		r := analyse(list, Options{})
		all := strings.Join(r.Problems, "\n")
		check.True(t, what, r.Partial && strings.Contains(all, "nothing found") && strings.Contains(all, what), all)
	}
	stranger := wrapped(raw, linkRaw, func(ip []byte) []byte { // another port, another protocol
		b := bytes.Clone(ip)
		for i := 40; i < len(b); i++ {
			b[i] = 'x'
		}
		return b
	})
	r := analyse(stranger, Options{})
	check.True(t, "TCP without JXTA", strings.Contains(strings.Join(r.Remarks, "\n"), "no JXTA was found in"), r.Remarks)
}

// The report says once how many packets a snap length cut, and how many octets that removed.
func TestSnapLengthIsSaid(t *testing.T) {
	list := packets(t, load(t, "jxta22-tcp-iridium"))
	r := analyse(snap(list, 96), Options{})
	var cut, octets int64
	for _, p := range list {
		if hasData(p) && p.Length > 96 {
			cut, octets = cut+1, octets+int64(p.Length-96)
		}
	}
	check.Equal(t, "packets", r.NotThere.CutPackets, cut)
	check.Equal(t, "octets", r.NotThere.CutOctets, octets)
	check.Equal(t, "problems", len(r.Problems), 1)
	check.True(t, "said", r.Partial && strings.Contains(r.Problems[0], "cut by the snap length") && strings.Contains(r.Problems[0], "tcpdump -s 0"), r.Problems)
}

// Packets that the capture program reports as dropped are in the report: from interface statistics, from packets of the new form, and of
// the old.
func TestDroppedPacketsAreSaid(t *testing.T) {
	list := packets(t, load(t, "jxta22-tcp-iridium"))[:10]
	order := binary.LittleEndian
	block := func(b []byte, kind uint32, body []byte) []byte {
		n := uint32(len(body) + 12)
		b = order.AppendUint32(order.AppendUint32(b, kind), n)
		return order.AppendUint32(append(b, body...), n)
	}
	statistics := func(ifdrop, osdrop uint64) []byte {
		b := append(make([]byte, 12), 4, 0, 8, 0) // received; irrelevant here
		b = append(order.AppendUint64(b, 999), 5, 0, 8, 0)
		b = append(order.AppendUint64(b, ifdrop), 7, 0, 8, 0)
		return append(order.AppendUint64(b, osdrop), 0, 0, 0, 0)
	}
	good := asNG(list, order, false)
	counted := block(block(bytes.Clone(good), blockStatistic, statistics(1, 2)), blockStatistic, statistics(3, 40))
	var body []byte
	for _, n := range []uint32{0, 0, 0, 20, 20} {
		body = order.AppendUint32(body, n)
	}
	body = append(append(body, list[0].Data[:20]...), 4, 0, 8, 0)
	between := block(bytes.Clone(good), blockEnhanced, append(order.AppendUint64(body, 17), 0, 0, 0, 0))
	old := order.AppendUint16(order.AppendUint16(nil, 0), 5)
	for _, n := range []uint32{0, 0, 20, 20} {
		old = order.AppendUint32(old, n)
	}
	before := block(bytes.Clone(good), blockOld, append(old, list[0].Data[:20]...))
	for _, tt := range []struct {
		file []byte
		want Drops
		text string
	}{
		{counted, Drops{3, 40, 0}, "43 packets were dropped while capturing (3 by the interface, 40 by the system)"},
		{append(bytes.Clone(counted), counted...), Drops{6, 80, 0}, "86 packets were dropped"},
		{between, Drops{0, 0, 17}, "17 packets were dropped while capturing: the file says so"},
		{before, Drops{0, 0, 5}, "5 packets were dropped while capturing"},
		{good, Drops{}, ""},
	} {
		r, err := NewReader(bytes.NewReader(tt.file))
		if err != nil {
			t.Fatal(err)
		}
		a := New(Options{})
		for p, err := r.Next(); err == nil; p, err = r.Next() {
			a.Add(p)
		}
		check.Equal(t, "drops", r.Drops(), tt.want)
		a.Dropped(r.Drops())
		if text := strings.Join(a.Finish().Problems, "\n"); tt.text != "" && !strings.Contains(text, tt.text) || strings.Contains(text, "dropped") != (tt.text != "") {
			t.Errorf("%q, want %q", text, tt.text)
		}
	}
}

// FuzzWrappings gives the decoder any octets as any link type, twice, so that fragments meet.
func FuzzWrappings(f *testing.F) {
	list := packets(f, load(f, "jxta22-tcp-iridium"))[:12]
	for _, p := range append(inFragments(list, 100, false), inFragments(list, 100, true)...) {
		f.Add(uint16(linkRaw), p.Data)
	}
	for _, p := range list {
		f.Add(uint16(linkRaw), tunnel(protoGRE, 0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2)(p.Data))
		f.Add(uint16(linkEthernet), behind(append(ethernet(etherMPLS), 0, 1, 0x40, 64, 0, 3, 0x41, 64)...)(p.Data))
		f.Add(uint16(linkPPP), behind(0xff, 3, 0x02, 0x81, 0, 1, 0x41, 64)(p.Data))
	}
	f.Fuzz(func(t *testing.T, link uint16, b []byte) {
		a := New(Options{Sink: func(Event) {}})
		for i := range 4 {
			a.Add(Packet{Number: int64(i + 1), Link: LinkType(link), Data: b, Length: len(b) + i%2})
			b = append(b[len(b)/2:len(b):len(b)], b[:len(b)/2]...)
		}
		r := a.Finish()
		checkSums(t, r)
		if a.fragments.held != 0 || len(a.fragments.order) != 0 {
			t.Fatalf("%d octets and %d packets are still held", a.fragments.held, len(a.fragments.order))
		}
		var s, again tcpSegment
		if v := decode(Packet{Link: LinkType(link), Data: b, Length: len(b)}, &s); v == isTransport && (s.length < 0 || len(s.data) > s.length) {
			t.Fatalf("%d octets captured of %d", len(s.data), s.length)
		}
		decode(Packet{Link: LinkType(link), Data: b, Length: len(b)}, &again)
		if !reflect.DeepEqual(s, again) {
			t.Fatal("another time it is another segment")
		}
	})
}
