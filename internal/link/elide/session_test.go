package elide

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pair is both ends of a link with segments of 64 octets, both libnorms of generation 1.
func pair(t testing.TB) (a, b *Session) {
	t.Helper()
	cfg := Config{Self: 1, Peer: 40000, Segment: 64, GRTT: 100 * time.Millisecond}
	a, err := NewSession(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Self, cfg.Peer = cfg.Peer, cfg.Self
	if b, err = NewSession(cfg); err != nil {
		t.Fatal(err)
	}
	a.Restarted(1)
	b.Restarted(1)
	return a, b
}

// Packets of libnorm 1.5.9, captured between two children of internal/edge/norm (segment 64, GRTT 0.1 s, 35 % loss): node 1
// sends to node 40000, which answers with NACK.
var captured = []struct {
	name   string
	from   uint16
	packet string
	frame  string
	info   Info
}{
	{"marker", 1, "12080000 00000001 0001 88 00 00 05 0000 00000000 4003 000000000001 0040 10 04 00", "01 01 00 00",
		Info{Kind: Data, Generation: 1, Octets: 1, Size: 1, Marker: true, Last: true}},
	{"one segment", 1, "12080001 00000001 0001 88 00 00 05 0001 00000000 4003 00000000000e 0040 10 04" +
		"0100013030303030303031 68656a", "01 01 01 0100013030303030303031 68656a",
		Info{Kind: Data, Generation: 1, Object: 1, Octets: 14, Size: 14, Last: true}},
	{"first of two segments", 1, "12080002 00000001 0001 88 00 00 05 0002 000000 00 4003 00000000006f 0040 10 04" +
		"0100023030303030303032" + strings.Repeat("4d", 53), "02 01 02 6f 00 0100023030303030303032" + strings.Repeat("4d", 53),
		Info{Kind: Data, Generation: 1, Object: 2, Octets: 64, Size: 111}},
	{"second of two segments", 1, "12080003 00000001 0001 88 00 00 05 0002 000000 01 4003 00000000006f 0040 10 04" +
		strings.Repeat("1a", 47), "02 01 02 6f 01" + strings.Repeat("1a", 47),
		Info{Kind: Data, Generation: 1, Object: 2, Octets: 47, Size: 111, Symbol: 1, Last: true}},
	{"parity", 1, "12080005 00000001 0001 88 00 00 05 0002 000000 02 4003 00000000006f 0040 10 04" +
		strings.Repeat("e1", 64), "02 01 02 6f 02" + strings.Repeat("e1", 64),
		Info{Kind: Data, Generation: 1, Object: 2, Octets: 64, Size: 111, Symbol: 2, Repair: true}},
	{"second block", 1, "12080015 00000001 0001 88 00 00 05 0003 000001 00 4003 0000000007db 0040 10 04" +
		strings.Repeat("dd", 64), "02 01 03 db0f 20" + strings.Repeat("dd", 64),
		Info{Kind: Data, Generation: 1, Object: 3, Octets: 64, Size: 2011, Block: 1}},
	{"end of second block", 1, "12080056 00000001 0001 88 00 00 05 0003 000001 0f 4003 0000000007db 0040 10 04" +
		strings.Repeat("59", 27), "02 01 03 db0f 2f" + strings.Repeat("59", 27),
		Info{Kind: Data, Generation: 1, Object: 3, Octets: 27, Size: 2011, Block: 1, Symbol: 15, Last: true}},
	{"FLUSH of the marker", 40000, "13050001 00009c40 0001 88 00 01 05 0000 00000000", "03 01 00",
		Info{Kind: Flush, Generation: 1}},
	{"FLUSH", 1, "1305004f 00000001 0001 88 00 01 05 0009 000000 06", "04 01 09 06",
		Info{Kind: Flush, Generation: 1, Object: 9}},
	{"SQUELCH", 1, "13050046 00000001 0001 88 00 03 05 0000 00000000 0002",
		"00 13050046 00000001 0001 88 00 03 05 0000 00000000 0002", Info{Kind: Cmd, Generation: 1, Raw: true}},
	{"NACK, one item", 40000, "14060000 00009c40 00000001 0001 0000 0000000000000000 01010008 0500 0002 000000 02",
		"05 01 05 02 00 02", Info{Kind: Nack, Generation: 1}},
	{"NACK, item and range", 40000, "14060000 00009c40 00000001 0001 0000 0000000000000000" +
		"01010008 0500 0003 000000 11" + "02010010 0500 0004 000000 07 0500 0004 000000 09",
		"05 01 05 03 00 11 46 04 00 07 04 00 09", Info{Kind: Nack, Generation: 1}},
	{"NACK, two items twice", 40000, "14060000 00009c40 00000001 0001 0000 0000000000000000" +
		"01010010 0500 0009 000000 07 0500 0009 000000 08" + "01010010 0500 000a 000000 07 0500 000a 000000 08",
		"05 01 45 09 00 07 09 00 08 45 0a 00 07 0a 00 08", Info{Kind: Nack, Generation: 1}},
}

func TestCaptured(t *testing.T) {
	for _, tt := range captured {
		t.Run(tt.name, func(t *testing.T) {
			a, b := pair(t)
			if tt.from != 1 {
				a, b = b, a
			}
			packet, want := unhex(t, tt.packet), unhex(t, tt.frame)
			frame, info, err := a.Pack([]byte("before"), packet)
			check.NoError(check.Fatal(t), err)
			check.Equal(t, "string(frame[:6])", string(frame[:6]), "before")
			check.Equal(t, "frame[6:]", hex.EncodeToString(frame[6:]), hex.EncodeToString(want))
			check.Equal(t, "info", info, tt.info)
			got, back, err := b.Restore(frame[6:])
			if err != nil || back != tt.info {
				t.Fatalf("Restore = %+v, %v; want %+v", back, err, tt.info)
			}
			last := got[len(got)-1]
			copy(last[offSequence:offSource], packet[offSequence:offSource]) // its own counting
			if !bytes.Equal(last, packet) {
				t.Errorf("Restore = %x\nwant      %x", last, packet)
			}
		})
	}
}

// A packet that differs from the profile costs octets, but is still correct.
func TestPackUnusual(t *testing.T) {
	const data = "12080001 00000001 0001 88 00 00 05 0001 00000000 4003 00000000000e 0040 10 04 01000130303030303030 3168656a"
	tests := []struct {
		name, packet, frame string
		raw                 bool
	}{
		{"another GRTT", strings.Replace(data, "88", "b8", 1), "09 01 b8 01 010001303030303030303168656a", false},
		{"group size", strings.Replace(data, "88 00", "88 03", 1), "", true},
		{"NORM flag", strings.Replace(data, "00 05", "01 05", 1), "", true},
		{"instance beyond an octet", strings.Replace(data, "00000001 0001", "00000001 0101", 1), "", true},
		{"another segment size", strings.Replace(data, "0040 10", "0080 10", 1), "", true},
		{"another FEC id", strings.Replace(data, "05 0001", "81 0001", 1), "", true},
		{"no FTI", "12050001 00000001 0001 88 00 00 05 0001 00000000 68656a", "", true},
		{"INFO", "11040001 00000001 0001 88 00 00 05 0001 68656a", "", true},
		{"FLUSH with a node list", "13050001 00000001 0001 88 00 01 05 0009 00000006 00009c40", "", true},
		{"ACK of a FLUSH", "15090001 00000001 00009c40 0001 02 00 0000000000000000 0303000000000000000000 00 05000009 00000006", "", true},
		{"NACK with a GRTT response", "14060000 00000001 00009c40 0001 0000 0000000100000000 01010008 0500 0002 00000002", "", true},
		{"NACK, four items", "14060000 00000001 00009c40 0001 0000 0000000000000000 01010020" +
			"0500000200000002 0500000200000003 05000002000001ff 0500ffffffffffff",
			"05 01 c5 04 02 00 02 02 00 03 02 01 ff ffff03 ffffff07 ff", false},
		{"NACK without requests", "14060000 00000001 00009c40 0001 0000 0000000000000000", "05 01", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := pair(t)
			packet := unhex(t, tt.packet)
			frame, info, err := a.Pack(nil, packet)
			if err != nil || info.Raw != tt.raw {
				t.Fatalf("Pack = %x, %+v, %v", frame, info, err)
			}
			if want := unhex(t, tt.frame); !tt.raw && !bytes.Equal(frame, want) {
				t.Errorf("Pack = %x, want %x", frame, want)
			}
			got, _, err := b.Restore(frame)
			if err != nil {
				t.Fatal(err)
			}
			last := got[len(got)-1]
			copy(last[offSequence:offSource], packet[offSequence:offSource])
			if !bytes.Equal(last, packet) {
				t.Errorf("Restore = %x\nwant      %x", last, packet)
			}
		})
	}
}

func TestPackRefuses(t *testing.T) {
	tests := []struct {
		name, packet string
		err          error
	}{
		{"nothing", "", ErrShort},
		{"cut in source_id", "120800010000", ErrShort},
		{"version 2", "22080001 00000001 0001 88 00 00 05 0001 00000000", ErrMismatch},
		{"another source", "12050001 00000002 0001 88 00 00 05 0001 00000000", ErrMismatch},
		{"header beyond the end", "12080001 00000001 0001 88 00 00 05 0001 00000000", ErrShort},
		{"header too short for DATA", "12040001 00000001 0001 88 00 00 05 0001 00000000", ErrMismatch},
		{"type 6", "16050001 00000001 0001 88 00 00 05 0001 00000000", ErrMismatch},
		{"congestion control", "13060001 00000001 0001 88 00 04 00 0001 0000000000000000", ErrMismatch},
		{"command without flavor", "13030001 00000001 0001 88 00", ErrMismatch},
		{"NACK to another", "14060000 00000001 00000007 0001 0000 0000000000000000", ErrMismatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := pair(t)
			packet := unhex(t, tt.packet)
			var e *Error
			if out, _, err := a.Pack(nil, packet); !errors.Is(err, tt.err) || !errors.As(err, &e) || len(out) > 0 {
				t.Errorf("Pack = %x, %v; want %v", out, err, tt.err)
			}
			if out, _, err := b.Restore(append([]byte{kindRaw}, packet...)); !errors.Is(err, tt.err) || out != nil {
				t.Errorf("Restore of it raw = %x, %v; want %v", out, err, tt.err)
			}
		})
	}
}

func TestRestoreRefuses(t *testing.T) {
	full := strings.Repeat("aa", 64)
	tests := []struct {
		name, frame string
		err         error
	}{
		{"nothing", "", ErrShort},
		{"kind 6", "06 01 01 aa", ErrMismatch},
		{"flag of nobody", "11 01 01 aa", ErrMismatch},
		{"upper bits", "21 01 01 aa", ErrMismatch},
		{"GRTT flag on NACK", "0d 01 05 02 00 02", ErrMismatch},
		{"GRTT flag on raw", "08", ErrMismatch},
		{"no generation", "01", ErrShort},
		{"no object", "01 01", ErrShort},
		{"object cut", "01 01 80", ErrShort},
		{"object of 17 bits", "01 01 808004 aa", ErrTooLong},
		{"no payload", "01 01 01", ErrMismatch},
		{"payload beyond a segment", "01 01 01 aa" + full, ErrMismatch},
		{"no size", "02 01 01", ErrShort},
		{"size 0", "02 01 01 00 00 aa", ErrMismatch},
		{"size beyond the limit", "02 01 01 81808008 00 " + full, ErrTooLong},
		{"size of eleven octets", "02 01 01 8080808080808080808001 00 " + full, ErrTooLong},
		{"first segment too short", "02 01 01 8001 00 aa", ErrMismatch},
		{"last segment too long", "02 01 01 41 01 aaaa", ErrMismatch},
		{"symbol behind the parity", "02 01 01 8001 06 " + full, ErrMismatch},
		{"block behind the last", "02 01 01 8001 20 " + full, ErrMismatch},
		{"FLUSH with a rest", "03 01 01 00", ErrTooLong},
		{"FLUSH without position", "04 01 01", ErrShort},
		{"FLUSH, block of 25 bits", "04 01 01 8080808002", ErrTooLong},
		{"NACK, form 0", "05 01 04 02 00 02", ErrMismatch},
		{"NACK, item cut", "05 01 05 02 00", ErrShort},
		{"NACK, more items than octets", "05 01 c5 ff3f 02 00 02", ErrTooLong},
		{"NACK, no items", "05 01 c5 00", ErrMismatch},
		{"NACK beyond a datagram", "05 01" + strings.Repeat("05 02 00 02", 5500), ErrTooLong},
		{"NACK of another generation", "05 02 05 02 00 02", ErrStale},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, b := pair(t)
			var e *Error
			out, _, err := b.Restore(unhex(t, tt.frame))
			if !errors.Is(err, tt.err) || !errors.As(err, &e) || out != nil {
				t.Errorf("Restore = %x, %v; want %v", out, err, tt.err)
			}
		})
	}
}

// The marker comes once per generation of either end and begins after the delivered objects.
func TestMarker(t *testing.T) {
	_, b := pair(t)
	const marker = "12080000 00000001 %04x 88 00 00 05 %04x 00000000 4003 000000000001 0040 10 04 00"
	restore := func(name, frame, want string) {
		t.Helper()
		packets, _, err := b.Restore(unhex(t, frame))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if (len(packets) == 2) != (want != "") {
			t.Fatalf("%s: %d packets", name, len(packets))
		}
		if want != "" {
			packets[0][offSequence], packets[0][offSequence+1] = 0, 0
			if w := unhex(t, want); !bytes.Equal(packets[0], w) {
				t.Errorf("%s: marker %x, want %x", name, packets[0], w)
			}
		}
	}
	restore("a NACK needs none", "05 01 05 02 00 02", "")
	restore("first heard is object 7", "01 03 07 68656a", fmt.Sprintf(marker, 3, 0))
	restore("a second time", "01 03 08 68656a", "")
	for _, id := range []uint16{1, 2, 4, 5, 3, 2, 7} {
		b.Delivered(3, id)
	}
	b.Delivered(2, 6) // of a generation that is over
	if peer, last, ok := b.Progress(); peer != 3 || last != 5 || !ok {
		t.Errorf("Progress = %d, %d, %v; want 3, 5", peer, last, ok)
	}
	b.Restarted(2)
	restore("own libnorm new", "04 03 09 06", fmt.Sprintf(marker, 3, 5))
	restore("peer's libnorm new", "03 04 01", fmt.Sprintf(marker, 4, 0))
	if _, _, err := b.Restore(unhex(t, "01 03 09 68656a")); !errors.Is(err, ErrStale) {
		t.Errorf("frame of the generation before: %v", err)
	}

	_, b = pair(t)
	b.Recall(3, 65535)
	restore("after a restart of the gateway", "01 03 07 68656a", fmt.Sprintf(marker, 3, 65535))
	b.Delivered(3, 0)
	if _, last, _ := b.Progress(); last != 0 {
		t.Errorf("Progress = %d after the numbers wrapped, want 0", last)
	}
}

// An object that never comes must not make the list grow for ever.
func TestDeliveredIsBounded(t *testing.T) {
	_, b := pair(t)
	if _, _, err := b.Restore(unhex(t, "01 03 07 68656a")); err != nil {
		t.Fatal(err)
	}
	for id := range uint16(3000) {
		b.Delivered(3, id+2)
	}
	if _, last, _ := b.Progress(); last != 3001 || len(b.ahead) != 0 {
		t.Errorf("Progress = %d with %d ahead; want 3001 with 0", last, len(b.ahead))
	}
}

func TestRepairAndLast(t *testing.T) {
	a, _ := pair(t)
	at := func(generation uint8, object uint16, size int, block, symbol int) Info {
		t.Helper()
		l := LayoutOf(size, 64)
		p := appendData(nil, 1, generation, a.grtt, object, size, 64, position{block, symbol})
		_, info, err := a.Pack(nil, append(p, make([]byte, l.Payload(block, symbol))...))
		if err != nil || info.Raw {
			t.Fatalf("%+v, %v", info, err)
		}
		return info
	}
	tests := []struct {
		generation    uint8
		object        uint16
		size          int
		block, symbol int
		last, repair  bool
	}{
		{1, 65535, 64 * 17, 0, 0, false, false},
		{1, 65535, 64 * 17, 0, 8, false, false}, // 17 segments: blocks of 9 and 8
		{1, 65535, 64 * 17, 0, 9, false, true},
		{1, 65535, 64 * 17, 1, 0, false, false},
		{1, 65535, 64 * 17, 0, 7, false, true},
		{1, 65535, 64 * 17, 1, 7, true, false},
		{1, 65535, 64 * 17, 1, 7, true, true},
		{1, 0, 65, 0, 0, false, false},
		{1, 0, 65, 0, 1, true, false},
		{1, 65535, 64 * 17, 0, 0, false, true},
		{2, 0, 65, 0, 0, false, false},
	}
	for _, tt := range tests {
		if i := at(tt.generation, tt.object, tt.size, tt.block, tt.symbol); i.Last != tt.last || i.Repair != tt.repair {
			t.Errorf("%+v: last %v, repair %v", tt, i.Last, i.Repair)
		}
	}
}

func TestFlush(t *testing.T) {
	a, b := pair(t)
	a.Restarted(9)
	tests := []struct {
		object uint16
		octets int
		frame  string
	}{
		{300, 0, "03 09 ac02"},
		{1, 64 - PrefixOctets, "03 09 01"},
		{1, 65 - PrefixOctets, "04 09 01 01"},
		{1, 64*17 - PrefixOctets, "04 09 01 27"},
	}
	for _, tt := range tests {
		frame := a.Flush(nil, tt.object, tt.octets)
		if !bytes.Equal(frame, unhex(t, tt.frame)) {
			t.Errorf("Flush(%d, %d) = %x, want %s", tt.object, tt.octets, frame, tt.frame)
		}
		if _, info, err := b.Restore(frame); err != nil || info.Kind != Flush || info.Object != tt.object {
			t.Errorf("restored: %+v, %v", info, err)
		}
	}
}

// Every segment of objects of many sizes, against the rule of RFC 5740 5.1.1 written out plainly.
func TestLayout(t *testing.T) {
	for size := 1; size < 64*70; size += 7 {
		l := LayoutOf(size, 64)
		sum, segments := 0, 0
		for b := range l.blocks {
			n := l.BlockLen(b)
			must := check.Fatal(check.In(t, "size", size))
			check.True(must, "n >= 1", n >= 1, n)
			check.True(must, "n <= BlockLen", n <= BlockLen, n, BlockLen)
			check.True(must, "b <= 0 || n <= l.BlockLen(b-1)", b <= 0 || n <= l.BlockLen(b-1), b)
			check.True(must, "l.BlockLen(0)-n <= 1", l.BlockLen(0)-n <= 1, l.BlockLen(0)-n)
			for s := range n {
				if at, ok := l.Offset(b, s); !ok || at != sum {
					t.Fatalf("size %d: symbol %d of block %d is at %d, want %d", size, s, b, at, sum)
				}
				sum += l.Payload(b, s)
				segments++
			}
			for s := n; s < n+ParityLen; s++ {
				if l.Payload(b, s) != 64 {
					t.Fatalf("size %d: parity of %d octets", size, l.Payload(b, s))
				}
			}
			if l.Payload(b, n+ParityLen) != 0 {
				t.Fatalf("size %d: a symbol behind the parity", size)
			}
		}
		if sum != size || segments != (size+63)/64 || l.blocks != (segments+15)/16 {
			t.Fatalf("size %d: %d octets in %d segments of %d blocks", size, sum, segments, l.blocks)
		}
	}
}

// Values that libnorm 1.5.9 put on the wire (norm-seal 4, and the capture above), and the table's ends.
// internal/edge/norm asks the library itself.
func TestAdvertised(t *testing.T) {
	for d, want := range map[time.Duration]uint8{
		4 * time.Second: 184, 8 * time.Second: 194, 100 * time.Millisecond: 136, 0: 0, time.Microsecond: 0,
		31 * time.Microsecond: 30, 1000 * time.Second: 255, time.Hour: 255,
	} {
		if got := advertised(d); got != want {
			t.Errorf("advertised(%v) = %d, want %d", d, got, want)
		}
	}
}

func TestPrefix(t *testing.T) {
	b := append(AppendPrefix(nil, 200, 0x0102), "hej"...)
	{
		g, id, data, ok := CutPrefix(b)
		check.Equal(t, "g", g, 200)
		check.Equal(t, "id", id, 0x0102)
		check.Equal(t, "string(data)", string(data), "hej")
		check.True(t, "ok", ok)
		check.Equal(t, "len(b)", len(b), PrefixOctets+3)
	}
	if _, _, _, ok := CutPrefix([]byte{0}); ok {
		t.Error("a marker has no prefix")
	}
}

func TestNewSessionRefuses(t *testing.T) {
	good := Config{Self: 1, Peer: 2, Segment: 448, GRTT: time.Second}
	for _, change := range []func(*Config){
		func(c *Config) { c.Self = 0 }, func(c *Config) { c.Peer = 0 }, func(c *Config) { c.Peer = 1 },
		func(c *Config) { c.Segment = 0 }, func(c *Config) { c.Segment = MaxSegment + 1 },
	} {
		c := good
		change(&c)
		if _, err := NewSession(c); !errors.Is(err, ErrMismatch) {
			t.Errorf("NewSession(%+v): %v", c, err)
		}
	}
}

// A packet that Restore gives must pack to a frame that restores to the same packet.
func FuzzRestore(f *testing.F) {
	for _, c := range captured {
		f.Add(unhex(f, c.frame), c.from == 1)
	}
	f.Fuzz(func(t *testing.T, frame []byte, up bool) {
		a, b := pair(t)
		if !up {
			a, b = b, a
		}
		packets, info, err := b.Restore(frame)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || len(packets) != 0 {
				t.Fatalf("%v with %d packets", err, len(packets))
			}
			return
		}
		p := packets[len(packets)-1]
		again, second, err := a.Pack(nil, p)
		if err != nil {
			t.Fatalf("Pack(%x): %v", p, err)
		}
		if len(again) > len(frame) && !second.Raw {
			t.Fatalf("%x grew to %x", frame, again)
		}
		if second.Kind != info.Kind || second.Object != info.Object || second.Generation != info.Generation {
			t.Fatalf("%+v became %+v", info, second)
		}
		back, _, err := b.Restore(again)
		if err != nil {
			t.Fatal(err)
		}
		q := back[len(back)-1]
		copy(q[offSequence:offSource], p[offSequence:offSource])
		if !bytes.Equal(p, q) {
			t.Fatalf("%x became %x", p, q)
		}
	})
}

// Any octets from loopback give an error, or a frame that restores to the same packet.
func FuzzPack(f *testing.F) {
	for _, c := range captured {
		f.Add(unhex(f, c.packet), c.from == 1)
	}
	f.Fuzz(func(t *testing.T, packet []byte, up bool) {
		a, b := pair(t)
		if !up {
			a, b = b, a
		}
		frame, info, err := a.Pack(nil, packet)
		if err != nil {
			return
		}
		if len(frame) > len(packet)+1 {
			t.Fatalf("%x grew to %x", packet, frame)
		}
		packets, _, err := b.Restore(frame)
		if errors.Is(err, ErrStale) && (info.Kind == Nack || info.Kind == Ack) {
			return
		}
		if err != nil {
			t.Fatalf("Restore(%x): %v", frame, err)
		}
		p := packets[len(packets)-1]
		copy(p[offSequence:offSource], packet[offSequence:offSource])
		if !bytes.Equal(p, packet) {
			t.Fatalf("%x became %x", packet, p)
		}
	})
}

func benchmarkSessions(b *testing.B) (s, r *Session, packet []byte) {
	s, err := NewSession(Config{Self: 1, Peer: 2, Segment: 448, GRTT: 4 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	r, _ = NewSession(Config{Self: 2, Peer: 1, Segment: 448, GRTT: 4 * time.Second})
	packet = appendData(nil, 1, 1, s.grtt, 7, 20_003, 448, position{1, 3})
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 448 {
		packet = append(packet, byte(rnd.Uint32()))
	}
	return s, r, packet
}

func BenchmarkPack(b *testing.B) {
	s, _, packet := benchmarkSessions(b)
	var frame []byte
	b.SetBytes(int64(len(packet)))
	b.ReportAllocs()
	for b.Loop() {
		frame, _, _ = s.Pack(frame[:0], packet)
	}
	b.ReportMetric(float64(len(frame)-448), "header-octets")
}

func BenchmarkRestore(b *testing.B) {
	s, r, packet := benchmarkSessions(b)
	frame, _, _ := s.Pack(nil, packet)
	b.SetBytes(int64(len(packet)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.Restore(frame); err != nil {
			b.Fatal(err)
		}
	}
}
