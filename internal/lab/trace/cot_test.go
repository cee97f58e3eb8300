package trace

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/check"
)

var cotStart = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// position is a report of a unit at a second.
func position(unit, second int) *cot.Event {
	at := cotStart.Add(time.Duration(second) * time.Second)
	return &cot.Event{
		Version: "2.0", UID: fmt.Sprintf("ANDROID-%d", unit), Type: "a-f-G-U-C", How: "m-g", Time: at, Start: at, Stale: at.Add(time.Minute),
		Point: cot.Point{Lat: cot.NumberOf(60 + float64(second)/1e4), Lon: "5.3", HAE: "12.5", CE: "9.9", LE: "9999999.0"},
		Detail: []cot.Node{{Name: "contact", Attrs: []cot.Attr{{Name: "callsign", Value: fmt.Sprintf("UNIT %d", unit)}, {Name: "endpoint", Value: "*:-1:stcp"}}},
			{Name: "takv", Attrs: []cot.Attr{{Name: "device", Value: "X"}, {Name: "platform", Value: "ATAK"}, {Name: "os", Value: "1"}, {Name: "version", Value: "4"}}},
			{Name: "track", Attrs: []cot.Attr{{Name: "speed", Value: "3.5"}, {Name: "course", Value: "90"}}}},
	}
}

// other is an event of another type.
func other(kind, uid string, second int) *cot.Event {
	e := position(0, second)
	e.Type, e.UID, e.Detail = kind, uid, nil
	return e
}

// talk puts payloads of one direction into packets of TCP.
type talk struct {
	list     []Packet
	src, dst netip.AddrPort
	seq      uint32
}

func (k *talk) say(second float64, b []byte) {
	p := make([]byte, 20, 20+len(b))
	binary.BigEndian.PutUint16(p, k.src.Port())
	binary.BigEndian.PutUint16(p[2:], k.dst.Port())
	binary.BigEndian.PutUint32(p[4:], k.seq)
	binary.BigEndian.PutUint32(p[8:], 1)
	p[12], p[13], p[14] = 5<<4, flagACK, 255
	k.seq += uint32(len(b))
	k.put(second, protoTCP, append(p, b...))
}

func (k *talk) put(second float64, proto uint8, body []byte) {
	ip := inIP(proto, 1, 0, body)
	src, dst := k.src.Addr().As4(), k.dst.Addr().As4()
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	k.list = append(k.list, Packet{Number: int64(len(k.list) + 1), At: cotStart.UnixNano() + int64(second*1e9), Link: linkRaw, Data: ip, Length: len(ip)})
}

// shout sends a datagram.
func (k *talk) shout(second float64, b []byte) {
	u := make([]byte, 8, 8+len(b))
	binary.BigEndian.PutUint16(u, k.src.Port())
	binary.BigEndian.PutUint16(u[2:], k.dst.Port())
	binary.BigEndian.PutUint16(u[4:], uint16(8+len(b)))
	k.put(second, protoUDP, append(u, b...))
}

func ends(src, dst string) (a, b netip.AddrPort) {
	return netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst)
}

// Streams of XML and of version 1 to a TAK server are read whatever their segments, and each event counts once, however often
// a server passes it on.
func TestCoTStreams(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		random := rand.New(rand.NewPCG(seed, 1))
		var all []Packet
		var octets int64
		for unit := 1; unit <= 3; unit++ {
			k := &talk{seq: 77}
			k.src, k.dst = ends(fmt.Sprintf("10.0.0.%d:40000", unit), "10.0.0.100:8087")
			var stream []byte
			for second := 0; second < 120; second += 10 {
				e := position(unit, second)
				before := len(stream)
				if unit == 3 {
					stream = e.AppendFrame(stream)
				} else {
					stream = e.AppendXML(stream)
				}
				octets += int64(len(stream) - before)
				if unit == 1 {
					stream = append(stream, '\n')
				}
			}
			chat := other("b-t-f", fmt.Sprintf("GeoChat.%d", unit), 60).AppendXML(nil)
			octets += int64(len(chat))
			stream = append(stream, chat...)
			for i := 0; len(stream) > 0; i++ {
				n := min(len(stream), 1+random.IntN(1400))
				k.say(float64(unit)+float64(i)/1000, stream[:n])
				stream = stream[n:]
			}
			all = append(all, k.list...)
		}
		back := &talk{seq: 5} // the server passes on the events of unit 1
		back.src, back.dst = ends("10.0.0.100:8087", "10.0.0.2:40000")
		for second := 0; second < 120; second += 10 {
			back.say(120, position(1, second).AppendXML(nil))
		}
		all = append(all, back.list...)
		var told []CoT
		r := analyse(all, Options{CoT: func(c CoT) {
			c.XML = bytes.Clone(c.XML)
			told = append(told, c)
		}})
		checkSums(t, r)
		c := r.CoT
		if c == nil {
			t.Fatal("no CoT")
		}
		check.Equal(t, "events", c.Events, 39)
		check.Equal(t, "copies", c.Copies, 12)
		check.Equal(t, "of version 1", c.Proto, 12)
		check.Equal(t, "octets", c.Octets, octets)
		check.Equal(t, "devices", c.Devices, 3)
		check.Equal(t, "units", c.Units, 3)
		check.Equal(t, "streams", c.Streams, 4)
		check.Equal(t, "reports of the first", c.Of[0].Reports, 12)
		check.Equal(t, "its name", c.Of[0].Callsign, "UNIT 1")
		check.True(t, "not partial", !r.Partial, r.Problems)
		check.Equal(t, "what was told", len(told), 51)
		for _, x := range told {
			e, err := cot.ParseXML(x.XML)
			if err != nil || e.Canonical() != x.Event.Canonical() {
				t.Fatalf("%s: %v", x.XML, err)
			}
		}
		var text bytes.Buffer
		if err := r.WriteText(&text, "x"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"3 TAK devices and 0 other units made", "TAK: 39 events", "position", "chat", "UNIT 1, a-f-G-U-C (device)"} {
			check.Contains(t, "the text", text.String(), want)
		}
		_, err := json.Marshal(r.JSON("x"))
		check.True(t, "JSON", err == nil, err)
	}
}

// The mesh speaks XML and version 1 in datagrams, which are no datagrams of gateways.
func TestCoTMesh(t *testing.T) {
	k := &talk{}
	k.src, k.dst = ends("10.0.0.7:50000", "239.2.3.1:6969")
	for second := 0; second < 60; second += 10 {
		k.shout(float64(second), position(7, second).AppendXML(nil))
		k.shout(float64(second), position(8, second).AppendDatagram(nil, nil))
	}
	k.src, k.dst = ends("10.0.0.7:50000", "224.10.10.1:17012")
	k.shout(61, other("b-t-f", "GeoChat.x", 61).AppendXML(nil))
	k.shout(62, []byte("<event version='2.0' uid='half'"))
	k.shout(63, append([]byte{cotMark, 1, cotMark}, bytes.Repeat([]byte{0xff}, 40)...))
	r := analyse(k.list, Options{})
	c := r.CoT
	if c == nil {
		t.Fatal("no CoT")
	}
	check.Equal(t, "events", c.Events, 13)
	check.Equal(t, "of version 1", c.Proto, 6)
	check.Equal(t, "datagrams", c.Datagrams, 15)
	check.Equal(t, "devices", c.Devices, 2)
	check.Equal(t, "refused", len(c.Refused), 1)
	check.True(t, "no datagrams of gateways", r.Link == nil, r.Link)
	check.True(t, "not partial", !r.Partial, r.Problems)
	check.Contains(t, "headline", r.Headline, "2 TAK devices and 0 other units made")
	check.Equal(t, "seconds", r.Seconds(), 63)
}

// A capture that begins in the middle of a stream, or misses a part of it, is picked up at the next event. XML that is no CoT is not
// taken for it.
func TestCoTPickedUp(t *testing.T) {
	k := &talk{seq: 9}
	k.src, k.dst = ends("10.0.0.1:40000", "10.0.0.100:8087")
	first := position(1, 0).AppendXML(nil)
	k.say(0, first[len(first)/2:])
	for second := 10; second < 100; second += 10 {
		if second == 50 {
			k.seq += 700 // not captured
		}
		k.say(float64(second), position(1, second).AppendXML(nil))
	}
	r := analyse(k.list, Options{})
	checkSums(t, r)
	check.True(t, "events", r.CoT != nil && r.CoT.Events >= 8, r.CoT)
	xmpp := &talk{seq: 9}
	xmpp.src, xmpp.dst = ends("10.0.0.1:40000", "10.0.0.100:5222")
	xmpp.say(0, []byte("<?xml version='1.0'?><stream:stream to='x' xmlns='jabber:client'>"))
	xmpp.say(1, bytes.Repeat([]byte("<message><body>hello</body></message>"), 10000))
	r = analyse(xmpp.list, Options{})
	checkSums(t, r)
	check.True(t, "XMPP is no CoT", r.CoT == nil && !r.Partial, r.Problems)
	torn := &talk{seq: 9}
	torn.src, torn.dst = ends("10.0.0.1:40000", "10.0.0.100:8087")
	torn.say(0, []byte("<event "))
	for range 300 {
		torn.say(1, bytes.Repeat([]byte("x"), 1400))
	}
	r = analyse(torn.list, Options{})
	checkSums(t, r)
	check.True(t, "an event without end is said", r.Partial && strings.Contains(strings.Join(r.Problems, "\n"), "CoT"), r.Problems)
}

// Many units and events take bounded memory.
func TestCoTBounded(t *testing.T) {
	a := New(Options{})
	w := a.cotWatch(1)
	for i := range maxTold + maxUnits + 10 {
		e := position(i, i)
		w.note(a, int64(i), "10.0.0.1", []byte("x"), e, nil, nil, true)
	}
	check.Equal(t, "units", len(w.units), maxUnits)
	check.Equal(t, "events known again", w.told.Len(), maxTold)
}

// FuzzCoT gives the Analyser any octets as a stream and as datagrams of TAK.
func FuzzCoT(f *testing.F) {
	f.Add(position(1, 0).AppendXML(nil), uint64(1))
	f.Add(position(1, 0).AppendFrame(position(2, 0).AppendFrame(nil)), uint64(2))
	f.Add(position(1, 0).AppendDatagram(nil, &cot.Control{Most: 1, UID: "x"}), uint64(3))
	f.Add([]byte("<?xml version='1.0'?> <event "), uint64(4))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 3))
		k := &talk{seq: uint32(seed)}
		k.src, k.dst = ends("10.0.0.1:40000", "10.0.0.100:8087")
		k.shout(0, b[:min(len(b), 60000)])
		for rest := b; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(1400))
			k.say(1, rest[:n])
			if rest = rest[n:]; random.IntN(16) == 0 {
				k.seq += 5
			}
		}
		a := New(Options{Sink: func(Event) {}, CoT: func(c CoT) {
			if c.Event == nil || c.Event.Check() != nil {
				t.Fatalf("%+v", c)
			}
		}})
		for _, p := range k.list {
			a.Add(p)
		}
		checkSums(t, a.Finish())
		if a.held != 0 || a.bodies != 0 {
			t.Fatalf("%d and %d octets are still held", a.held, a.bodies)
		}
	})
}
