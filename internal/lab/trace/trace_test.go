package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// captures are described in testdata/README.md.
var captures = []string{"jxta22-http-iridium", "jxta22-tcp", "jxta22-tcp-iridium", "jxta22-http", "jxse27-unsigned-tcp", "jxse27-tcp-iridium", "jxse27-http"}

func load(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// packets reads a capture to its end, data copied.
func packets(t testing.TB, file []byte) []Packet {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var list []Packet
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Data = bytes.Clone(p.Data)
		list = append(list, p)
	}
}

func analyse(list []Packet, opt Options) *Report {
	a := New(opt)
	for _, p := range list {
		a.Add(p)
	}
	return a.Finish()
}

// checkSums: every octet of a stream is accounted for, once.
func checkSums(t *testing.T, r *Report) {
	t.Helper()
	sum := r.WelcomeBytes + r.HTTPBytes + r.CoTBytes + r.UnreadBytes
	if r.XMPP != nil {
		sum += r.XMPP.Octets
	}
	for _, k := range r.Kinds {
		sum += k.Octets
	}
	if sum != r.StreamBytes {
		t.Errorf("octets: %d of welcome, HTTP, messages and unread; %d in the streams", sum, r.StreamBytes)
	}
}

func elements(r *Report) map[string]Tally {
	m := map[string]Tally{}
	for _, e := range r.Elements {
		m[e.Name] = e.Tally
	}
	return m
}

// The figures that tshark 4.0.17 gave for the captures; cmd/gateway compares with the tshark at hand.
func TestFigures(t *testing.T) {
	tests := []struct {
		name                                          string
		connections, packets, data, retransmissions   int64
		messages, trailers, in, out, unread, requests int64
	}{
		{"jxta22-tcp-iridium", 4, 240, 105, 28, 36, 0, 0, 2200, 1773, 0},
		{"jxse27-tcp-iridium", 2, 266, 137, 39, 40, 40, 1600, 3200, 2869, 0},
		{"jxta22-http-iridium", 15, 893, 350, 127, 77, 0, 11290, 11122, 2872, 69},
		{"jxta22-http", 6, 248, 125, 0, 29, 0, 1000, 4500, 0, 22},
		{"jxse27-http", 6, 286, 152, 1, 29, 29, 5500, 4500, 0, 18},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := analyse(packets(t, load(t, tt.name)), Options{})
			checkSums(t, r)
			got := []int64{
				r.Figures.Connections, r.Figures.Packets, r.Figures.DataPackets, r.Figures.Retransmissions,
				r.Messages, r.Trailers, r.Application.In, r.Application.Out, r.UnreadBytes, r.HTTPRequests,
			}
			want := []int64{
				tt.connections, tt.packets, tt.data, tt.retransmissions, tt.messages, tt.trailers, tt.in, tt.out, tt.unread, tt.requests,
			}
			if !slices.Equal(got, want) {
				t.Errorf("connections, packets, data, retransmissions, messages, trailers, in, out, unread, requests:\n%v, want\n%v", got, want)
			}
			if r.Partial {
				t.Errorf("partial: %v", r.Problems)
			}
		})
	}
}

// Packets that overtake or come twice on the way change no message.
func TestOrderDoesNotMatter(t *testing.T) {
	for _, name := range captures {
		list := packets(t, load(t, name))
		want := analyse(list, Options{})
		for seed := range uint64(5) {
			random := rand.New(rand.NewPCG(seed, 1))
			mixed := slices.Clone(list)
			for i := 4; i < len(mixed); i++ { // pure ACKs stay: one before its data says that the data will not come
				j := i - random.IntN(4)
				if hasData(mixed[i]) && sameFlow(mixed[j:i+1]) {
					mixed[i], mixed[j] = mixed[j], mixed[i]
				}
				if random.IntN(10) == 0 && hasData(mixed[i]) {
					mixed = slices.Insert(mixed, i, mixed[i])
					i++
				}
			}
			got := analyse(mixed, Options{})
			checkSums(t, got)
			if !reflect.DeepEqual(got.Kinds, want.Kinds) || !reflect.DeepEqual(got.Elements, want.Elements) || got.UnreadBytes != want.UnreadBytes {
				t.Errorf("%s, seed %d: messages differ:\n%v, unread %d\n%v, unread %d", name, seed, got.Kinds, got.UnreadBytes, want.Kinds, want.UnreadBytes)
			}
		}
	}
}

func hasData(p Packet) bool {
	var s tcpSegment
	return decode(p, &s) == isTransport && len(s.data) > 0 && s.flags&(flagSYN|flagFIN|flagRST) == 0
}

func sameFlow(list []Packet) bool {
	var first tcpSegment
	for i, p := range list {
		var s tcpSegment
		if decode(p, &s) != isTransport || len(s.data) == 0 || s.flags&(flagSYN|flagFIN|flagRST) != 0 {
			return false
		}
		if i == 0 {
			first = s
		} else if s.src != first.src || s.dst != first.dst {
			return false
		}
	}
	return true
}

// Missing octets cost only their messages: every octet in the capture is accounted for.
func TestGaps(t *testing.T) {
	for _, name := range captures {
		list := packets(t, load(t, name))
		whole := elements(analyse(list, Options{}))
		messages := analyse(list, Options{}).Messages
		variants := map[string]func(*rand.Rand) []Packet{
			"every 20th missing": func(r *rand.Rand) (out []Packet) {
				for _, p := range list {
					if r.IntN(20) != 0 {
						out = append(out, p)
					}
				}
				return out
			},
			"from the middle":  func(*rand.Rand) []Packet { return list[len(list)/2:] },
			"to the middle":    func(*rand.Rand) []Packet { return list[:len(list)/2] },
			"one side only":    func(*rand.Rand) []Packet { return oneSide(list, 0) },
			"other side only":  func(*rand.Rand) []Packet { return oneSide(list, 1) },
			"96 octets a time": func(*rand.Rand) []Packet { return snap(list, 96) },
			"900 octets":       func(*rand.Rand) []Packet { return snap(list, 900) },
		}
		for what, make := range variants {
			for seed := range uint64(3) {
				r := analyse(make(rand.New(rand.NewPCG(seed, 2))), Options{})
				checkSums(t, r)
				for e, n := range elements(r) {
					if n.Count > whole[e].Count || n.Octets > whole[e].Octets {
						t.Errorf("%s, %s: %d elements %q of %d octets, there are %d of %d", name, what, n.Count, e, n.Octets, whole[e].Count, whole[e].Octets)
					}
				}
				if what == "every 20th missing" && r.Messages < messages/4 {
					t.Errorf("%s, %s: %d messages of %d", name, what, r.Messages, messages)
				}
				if strings.HasSuffix(what, "side only") && r.Messages == 0 && r.StreamBytes > 10000 {
					t.Errorf("%s, %s: no message in %d octets", name, what, r.StreamBytes)
				}
				if strings.HasPrefix(what, "96") && !r.Partial {
					t.Errorf("%s, %s: not marked as partial", name, what)
				}
			}
		}
	}
}

func oneSide(list []Packet, side int) (out []Packet) {
	for _, p := range list {
		var s tcpSegment
		if decode(p, &s) == isTransport && (s.src.Compare(s.dst) < 0) == (side == 0) {
			out = append(out, p)
		}
	}
	return out
}

func snap(list []Packet, n int) []Packet {
	list = slices.Clone(list)
	for i := range list {
		list[i].Data = list[i].Data[:min(n, len(list[i].Data))]
	}
	return list
}

// asPcap writes packets in one of the formats that exist.
func asPcap(list []Packet, order binary.AppendByteOrder, nano bool) []byte {
	magic := uint32(0xa1b2c3d4)
	if nano {
		magic = 0xa1b23c4d
	}
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = order.AppendUint32(b, 262144)
	b = order.AppendUint32(b, uint32(list[0].Link))
	for _, p := range list {
		b = order.AppendUint32(b, uint32(p.At/1e9))
		frac := p.At % 1e9
		if !nano {
			frac /= 1000
		}
		b = order.AppendUint32(b, uint32(frac))
		b = order.AppendUint32(b, uint32(len(p.Data)))
		b = order.AppendUint32(b, uint32(p.Length))
		b = append(b, p.Data...)
	}
	return b
}

// asNG writes pcapng: a comment in the section's head, a time resolution of 2^-30 s or 10^-9 s, a statistics block
// between packets.
func asNG(list []Packet, order binary.AppendByteOrder, binaryTime bool) []byte {
	block := func(b []byte, kind uint32, body []byte) []byte {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		n := uint32(len(body) + 12)
		b = order.AppendUint32(b, kind)
		b = order.AppendUint32(b, n)
		b = append(b, body...)
		return order.AppendUint32(b, n)
	}
	head := order.AppendUint32(nil, 0x1a2b3c4d)
	head = order.AppendUint16(head, 1)
	head = order.AppendUint16(head, 0)
	head = order.AppendUint64(head, ^uint64(0))
	head = order.AppendUint16(head, 1)
	head = order.AppendUint16(head, 5)
	head = append(head, "hello\x00\x00\x00\x00\x00\x00\x00"...)
	b := block(nil, 0x0a0d0d0a, head)
	dev := order.AppendUint16(nil, uint16(list[0].Link))
	dev = order.AppendUint16(dev, 0)
	dev = order.AppendUint32(dev, 0)
	dev = order.AppendUint16(dev, 9)
	dev = order.AppendUint16(dev, 1)
	if binaryTime {
		dev = append(dev, 0x80|30, 0, 0, 0)
	} else {
		dev = append(dev, 9, 0, 0, 0)
	}
	b = block(b, 1, dev)
	for i, p := range list {
		units := uint64(p.At)
		if binaryTime {
			units = uint64(p.At/1e9)<<30 | (uint64(p.At%1e9)<<30+1e9-1)/1e9
		}
		body := order.AppendUint32(nil, 0)
		body = order.AppendUint32(body, uint32(units>>32))
		body = order.AppendUint32(body, uint32(units))
		body = order.AppendUint32(body, uint32(len(p.Data)))
		body = order.AppendUint32(body, uint32(p.Length))
		body = append(body, p.Data...)
		b = block(b, 6, body)
		if i == 0 {
			b = block(b, 5, make([]byte, 12))
		}
	}
	return b
}

func TestFormats(t *testing.T) {
	list := packets(t, load(t, "jxta22-http"))
	want := analyse(list, Options{})
	for name, file := range map[string][]byte{
		"pcap, big endian":     asPcap(list, binary.BigEndian, false),
		"pcap, nanoseconds":    asPcap(list, binary.LittleEndian, true),
		"pcapng":               asNG(list, binary.LittleEndian, false),
		"pcapng, big endian":   asNG(list, binary.BigEndian, false),
		"pcapng, binary time":  asNG(list, binary.LittleEndian, true),
		"two sections":         append(asNG(list[:100], binary.LittleEndian, false), asNG(list[100:], binary.BigEndian, true)...),
		"as it was, once more": load(t, "jxta22-http"),
	} {
		got := packets(t, file)
		if len(got) != len(list) {
			t.Fatalf("%s: %d packets, want %d", name, len(got), len(list))
		}
		for i := range got {
			d := got[i].At - list[i].At
			must := check.Fatal(check.In(t, name, "packet", i+1))
			check.True(must, "d >= -1", d >= -1, d)
			check.True(must, "d <= 1", d <= 1, d)
			check.True(must, "bytes.Equal(got[i].Data, list[i].Data)", bytes.Equal(got[i].Data, list[i].Data))
			check.Equal(must, "got[i].Link", got[i].Link, list[i].Link)
			check.Equal(must, "got[i].Number", got[i].Number, int64(i+1))
		}
		if r := analyse(got, Options{}); !reflect.DeepEqual(r.Kinds, want.Kinds) || r.Partial {
			t.Errorf("%s: other messages, or partial: %v", name, r.Problems)
		}
	}
}

// The same segments after every link header.
func TestLinkTypes(t *testing.T) {
	list := packets(t, load(t, "jxta22-tcp-iridium")) // raw IP
	want := analyse(list, Options{})
	ether := append(bytes.Repeat([]byte{2}, 12), 8, 0)
	tests := []struct {
		link LinkType
		head []byte
	}{
		{linkEthernet, ether},
		{linkEthernet, append(bytes.Repeat([]byte{2}, 12), 0x81, 0, 0, 7, 8, 0)},
		{linkEthernet, append(bytes.Repeat([]byte{2}, 12), 0x88, 0x64, 0x11, 0, 0, 1, 0, 40, 0, 0x21)},
		{linkSLL, append(make([]byte, 14), 8, 0)},
		{linkSLL2, append([]byte{8, 0}, make([]byte, 18)...)},
		{linkNull, []byte{2, 0, 0, 0}},
		{linkLoop, []byte{0, 0, 0, 2}},
		{linkPPP, []byte{0xff, 3, 0, 0x21}},
		{linkPPP, []byte{0x21}},
		{linkPPPHDLC, []byte{0xff, 3, 0, 0x21}},
		{linkPPPDir, []byte{1, 0xff, 3, 0, 0x21}},
		{linkIPv4, nil},
		{linkRawBSD, nil},
	}
	for _, tt := range tests {
		moved := slices.Clone(list)
		for i := range moved {
			moved[i].Link = tt.link
			moved[i].Data = append(bytes.Clone(tt.head), list[i].Data...)
			moved[i].Length += len(tt.head)
		}
		got := analyse(moved, Options{})
		if !reflect.DeepEqual(got.Kinds, want.Kinds) || got.Figures.Retransmissions != want.Figures.Retransmissions {
			t.Errorf("link type %d, % x: other figures", tt.link, tt.head)
		}
		if d := got.Figures.TotalBytes - want.Figures.TotalBytes; d != int64(len(list)*len(tt.head)) {
			t.Errorf("link type %d: %d octets more, want %d", tt.link, d, len(list)*len(tt.head))
		}
	}
	foreign := slices.Clone(list)
	for i := range foreign {
		foreign[i].Link = 105
	}
	if r := analyse(foreign, Options{}); !r.Partial || !strings.Contains(r.Problems[0], "link type 105") {
		t.Errorf("802.11: %v", r.Problems)
	}
}

// Through a proxy a request names the whole address.
func TestProxy(t *testing.T) {
	a := New(Options{})
	feed(a, 1, 1, flagSYN, nil)
	poll := "GET http://10.200.0.1:9700/uuid-59616261646162614A78746150325033F2D519D6CA8B42FB9DC7DF1066B7744E03?120000,120000 HTTP/1.1\r\nHost: x\r\n\r\n"
	feed(a, 1, 2, flagACK, []byte(poll[:9]))
	feed(a, 1, 11, flagACK, []byte(poll[9:]))
	if h := a.hosts[netip.MustParseAddr("10.0.0.0")]; h == nil || !strings.HasPrefix(h.peer, "uuid-5961") {
		t.Errorf("%+v", h)
	}
	r := a.Finish()
	checkSums(t, r)
	if r.HTTPRequests != 1 || r.UnreadBytes != 0 {
		t.Errorf("%d requests, %d octets unread", r.HTTPRequests, r.UnreadBytes)
	}
}

func TestBadFiles(t *testing.T) {
	good := load(t, "jxta22-http")
	list := packets(t, good)
	ng := asNG(list, binary.LittleEndian, false)
	big := bytes.Clone(good)
	binary.LittleEndian.PutUint32(big[24+8:], 1<<30)
	tests := []struct {
		name    string
		file    []byte
		packets int
		err     error
		text    string
	}{
		{"nothing", nil, 0, errEmpty, "empty"},
		{"three octets", []byte("abc"), 0, errForeign, "3 octets"},
		{"text", []byte("hello, this is no capture at all"), 0, errForeign, "68 65 6c 6c"},
		{"gzip", []byte{0x1f, 0x8b, 8, 0, 0, 0}, 0, errForeign, "unpack"},
		{"snoop", []byte("snoop\x00\x00\x00\x00\x00\x00\x02"), 0, errForeign, "snoop"},
		{"half a head", good[:20], 0, errTruncated, "head"},
		{"no packets", good[:24], 0, nil, ""},
		{"within a packet's head", good[:24+7], 0, errTruncated, "packet 1 "},
		{"within a packet", good[:len(good)-10], len(list) - 1, errTruncated, fmt.Sprintf("packet %d ", len(list))},
		{"a packet of 1 GiB", big, 0, errDamaged, "1073741824"},
		{"pcapng within a block", ng[:len(ng)-9], len(list) - 1, errTruncated, fmt.Sprintf("packet %d ", len(list))},
		{"pcapng, packet without interface", append(bytes.Clone(ng[:44]), ng[44+28:]...), 0, errDamaged, "interface 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			r, err := NewReader(bytes.NewReader(tt.file))
			for err == nil {
				if _, err = r.Next(); err == nil {
					n++
				}
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%q does not say %q", err, tt.text)
			}
			if n != tt.packets {
				t.Errorf("%d packets, want %d", n, tt.packets)
			}
		})
	}
}

func TestClockBackwards(t *testing.T) {
	list := packets(t, load(t, "jxta22-tcp-iridium"))
	want := analyse(list, Options{})
	for i := 100; i < 150; i++ {
		list[i].At -= 60e9
	}
	r := analyse(list, Options{})
	if r.BackwardsTime != 1 || !r.Partial || !strings.Contains(r.Problems[0], "packet 101") {
		t.Errorf("%d, %v", r.BackwardsTime, r.Problems)
	}
	if !reflect.DeepEqual(r.Kinds, want.Kinds) {
		t.Error("other messages")
	}
	list = packets(t, load(t, "jxta22-tcp-iridium"))
	list[100].At -= 400e6 // two processors
	if r := analyse(list, Options{}); r.BackwardsTime == 0 || r.Partial {
		t.Errorf("%d, %v", r.BackwardsTime, r.Problems)
	}
}

// --edge counts its own packets alone.
func TestEdge(t *testing.T) {
	list := packets(t, load(t, "jxse27-http"))
	if r := analyse(list, Options{Edge: netip.MustParseAddr("10.9.9.9")}); r.Figures.Packets != 0 || r.Application.Total != 0 {
		t.Errorf("a stranger has %d packets", r.Figures.Packets)
	}
	r := analyse(list, Options{Edge: netip.MustParseAddr("10.88.0.1")})
	if r.Application.In != 4500 || r.Application.Out != 5500 {
		t.Errorf("the relay's side: in %d, out %d", r.Application.In, r.Application.Out)
	}
}

func FuzzReader(f *testing.F) {
	list := packets(f, load(f, "jxta22-http"))[:20]
	f.Add(asPcap(list, binary.LittleEndian, false))
	f.Add(asPcap(list, binary.BigEndian, true))
	f.Add(asNG(list, binary.LittleEndian, true))
	f.Add(asNG(list, binary.BigEndian, false))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		a := New(Options{Sink: func(Event) {}})
		for {
			p, err := r.Next()
			if err != nil {
				break
			}
			if p.Length < len(p.Data) || len(p.Data) > len(b) {
				t.Fatalf("packet of %d octets, %d on the wire, in a file of %d", len(p.Data), p.Length, len(b))
			}
			a.Add(p)
		}
		checkSums(t, a.Finish())
	})
}

// FuzzStream gives a dialog any octets in any segments.
func FuzzStream(f *testing.F) {
	for _, name := range captures {
		var b []byte
		for _, p := range packets(f, load(f, name)) {
			var s tcpSegment
			if decode(p, &s) == isTransport && len(b) < 6000 {
				b = append(b, s.data...)
			}
		}
		f.Add(b, uint64(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 3))
		a := New(Options{Sink: func(Event) {}})
		seq := uint32(seed)
		ends := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1000"), netip.MustParseAddrPort("10.0.0.2:9701")}
		for len(b) > 0 {
			n := min(len(b), 1+random.IntN(1400))
			s := tcpSegment{src: ends[0], dst: ends[1], proto: protoTCP, seq: seq, flags: flagACK, data: b[:n], length: n, frame: n + 40}
			if random.IntN(16) == 0 {
				s.length += 10
			}
			if random.IntN(16) == 0 {
				seq += 5
			}
			a.totals.packets++
			a.tcp(&s)
			seq += uint32(n)
			b = b[n:]
		}
		checkSums(t, a.Finish())
		if a.held != 0 || a.bodies != 0 {
			t.Fatalf("%d and %d octets are still held", a.held, a.bodies)
		}
	})
}
