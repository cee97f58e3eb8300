package frame

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

type vector struct {
	name string
	f    Frame
	last bool
	hex  string
}

var vectors = []vector{
	{"acknowledgement without gaps", Ack{Direct, 0x1234, nil}, false, "20 1234"},
	{"acknowledgement of the bulk queue, two octets of bitmap", Ack{Bulk, 1, []byte{0x02, 0x80}}, true, "32 0001 0280"},
	{"hello", Hello{0xa1b2c3d4, 3, 0x11223344, 5, 0x99aabbcc, 0x7788, 9, false, false, [Queues]uint16{0x0102, 0x0304}, 0x0506, nil, false, true, false, 0, 0, 0, [EphemeralOctets]byte{}, 0, 0}, false, "42 a1b2c3d4 03 11223344 05 99aabbcc 7788 09 0102 0304 0506"},
	{"hello that refuses", Hello{Store: 1, Stream: 2, First: [Queues]uint16{3, 4}, Seen: 5, Void: true, Known: 0x01020304}, false,
		"44 00000001 02 00000000 00 00000000 0000 00 0003 0004 0005 01020304"},
	{"hello of a start after two unheard", Hello{Store: 1, Stream: 2, First: [Queues]uint16{3, 4}, Seen: 5, Starts: []Start{{0x01020304, [Queues]uint16{1, 1}}, {0x01020309, [Queues]uint16{2, 0x104}}}, End: true}, false,
		"49 00000001 02 00000000 00 00000000 0000 00 0003 0004 0005 02 01020304 0001 0001 01020309 0002 0104"},
	{"hello with a roster", Hello{Store: 1, Stream: 2, First: [Queues]uint16{3, 4}, Seen: 5, Roster: 0x0607}, false,
		"48 00000001 02 00000000 00 00000000 0000 00 0003 0004 0005 80 0607"},
	{"hello with a roster, of a start after an unheard one", Hello{Store: 1, Stream: 2, Seen: 5, Roster: 7, Starts: []Start{{0x01020304, [Queues]uint16{1, 1}}}}, false,
		"48 00000001 02 00000000 00 00000000 0000 00 0000 0000 0005 81 0007 01020304 0001 0001"},
	{"hello with a roster and an ephemeral key, of a start after an unheard one", Hello{Store: 1, Stream: 2, Seen: 5, Roster: 7, Ephemeral: [EphemeralOctets]byte{0: 0xaa, 31: 0xbb}, HeardEphemeral: 0x0809,
		Starts: []Start{{0x01020304, [Queues]uint16{1, 1}}}}, false,
		"48 00000001 02 00000000 00 00000000 0000 00 0000 0000 0005 c1 0007 aa000000000000000000000000000000000000000000000000000000000000bb 0809 01020304 0001 0001"},
	{"hello with a roster and its mark, and an ephemeral key", Hello{Store: 1, Stream: 2, Seen: 5, Roster: 7, Mark: 0x0a0b, Ephemeral: [EphemeralOctets]byte{0: 0xaa, 31: 0xbb}}, false,
		"48 00000001 02 00000000 00 00000000 0000 00 0000 0000 0005 d0 0007 0a0b aa000000000000000000000000000000000000000000000000000000000000bb 0000"},
	{"greeting with a roster and its mark", Greeting{Store: 1, Stream: 1, Forgot: 3, Roster: 0x0102, Mark: 0x0a0b, Corpus: 4, Members: []Member{{ID: 2, Apart: true}}}, false,
		"5c 00000001 01 00000000 0000 83 0000 0000 01 24 0102 0a0b 00000004"},
	{"hello with a corpus", Hello{Store: 1, Stream: 2, First: [Queues]uint16{3, 4}, Seen: 5, Corpus: 0x08090a0b}, false,
		"48 00000001 02 00000000 00 00000000 0000 00 0003 0004 0005 20 08090a0b"},
	{"hello with a roster and a corpus, of a start after an unheard one", Hello{Store: 1, Stream: 2, Seen: 5, Roster: 7, Corpus: 8, Starts: []Start{{0x01020304, [Queues]uint16{1, 1}}}}, false,
		"48 00000001 02 00000000 00 00000000 0000 00 0000 0000 0005 a1 0007 00000008 01020304 0001 0001"},
	{"greeting with a corpus", Greeting{Store: 1, Stream: 1, Corpus: 0x01020304, Members: []Member{{ID: 2, Apart: true}}}, false,
		"58 00000001 01 00000000 0000 00 0000 0000 01 24 01020304"},
	{"greeting with a roster and a corpus", Greeting{Store: 1, Stream: 1, Roster: 0x0102, Corpus: 0x01020304, Members: []Member{{ID: 2, Apart: true}}}, false,
		"5c 00000001 01 00000000 0000 00 0000 0000 01 24 0102 01020304"},
	{"greeting with a roster", Greeting{Store: 1, Stream: 1, Roster: 0x0102, Members: []Member{{ID: 2, Apart: true}}}, false,
		"54 00000001 01 00000000 0000 00 0000 0000 01 24 0102"},
	{"greeting of one who has heard nobody", Greeting{Store: 0xa1b2c3d4, Stream: 1, Digest: 0x99aabbcc, Model: 0x7788, Forgot: 9, First: [Queues]uint16{0x0102, 0x0304}, Starts: true}, false,
		"52 a1b2c3d4 01 99aabbcc 7788 09 0102 0304 00"},
	{"greeting to members: asked, with numbers, of another digest, apart", Greeting{Store: 1, Stream: 2, First: [Queues]uint16{3, 4}, More: true, Members: []Member{
		{ID: 2, HeardIncarnation: 0x11223344, Stream: 2, HeardStream: 1, Asks: true}, {ID: 3, HeardIncarnation: 0x11223345, Stream: 7, HeardStream: 2, Seen: 0x0506},
		{ID: 300, HeardIncarnation: 5, Stream: 2, HeardStream: 1, Blank: true}, {ID: 301, Apart: true}}}, true,
		"51 00000001 02 00000000 0000 00 0003 0004 04 21 11223344 18 11223345 07 02 0506 9225 00000005 14"},
	{"greeting of one who takes numbers far ahead, and batches", Greeting{Store: 1, Stream: 1, Forgot: 9, Ahead: true, Members: []Member{{ID: 2, Apart: true}}}, false,
		"50 00000001 01 00000000 0000 49 0000 0000 01 24"},
	{"the same with the mark of a roster", Greeting{Store: 1, Stream: 1, Forgot: 0x3f, Ahead: true, Roster: 0x0102, Mark: 0x0304, Members: []Member{{ID: 2, Apart: true}}}, false,
		"54 00000001 01 00000000 0000 ff 0000 0000 01 24 0102 0304"},
	{"probe", Probe{7}, false, "60 07"},
	{"answer", Answer{7}, true, "80 07"},
	{"link_probe", LinkProbe{[]byte{1, 7, 3, 0}}, true, "70 01070300"},
	{"silence", Silence{0x6b49d200}, false, "e0 6b49d200"},
	{"talkers", Talkers{[]uint16{2, 3, 4, 6, 300}}, false, "e1 03 0203 0101 a50201"},
	{"talkers of the lowest and the highest id", Talkers{[]uint16{0, 65535}}, true, "e1 02 0001 feff0301"},
	{"beside", Beside{9, 2, Ack{Queue: Bulk, Cumulative: 7}}, false, "e2 09 02 30 0007"},
	{"digest", Digest{Tag: 0x1234, Hash: 0xabcd}, false, "e8 1234 abcd"},
	{"digest, fresh", Digest{Tag: 0x1234, Fresh: true}, true, "f8 1234 0000"},
	{"query", Query{Ref: 1, Regular: true, Body: []byte{1}}, true, "f3 01"},
	{"query in full", Query{Ref: 3, Body: []byte{1}}, true, "f6 01"},
	{"told", Told{Ref: 1, Body: []byte{}}, true, "ea"},
	{"told in short", Told{Ref: 2, Regular: true, Body: []byte{7}}, true, "ed 07"},
	{"rollup", Rollup{Number: 9, Body: []byte{1, 2}}, false, "e3 09 02 0102"},
	{"rolled", Rolled{Number: 9}, true, "e5 09"},
	{"open", Open{Body: []byte{1, 2}}, true, "e4 01 02"},
	{"open, one young message", Open{Body: []byte{0xbf, 1, 2}}, true, "9f 01 02"},
	{"open, one message that is not young", Open{Body: []byte{0x90, 1, 2}}, true, "e4 90 01 02"},
	{"open, a young message before others", Open{Body: []byte{0xaf, 1, 2, 3}}, true, "e4 af 01 02 03"},
	{"beside, with gaps", Beside{9, 2, Ack{Cumulative: 7, Bitmap: []byte{5}}}, true, "e2 09 02 21 0007 05"},
	{"data, last", Data{Number: 42, Body: []byte("hej")}, true, "a8 002a 68656a"},
	{"data, prompt, more follow", Data{Number: 42, Prompt: true, Body: []byte("hej")}, false, "ad 002a 03 68656a"},
	{"data, 8 bits of its number", Data{Number: 42, Short: true, Body: []byte("hej")}, true, "a0 2a 68656a"},
	{"data with an acknowledgement", Data{Number: 42, Short: true, Rides: true, Cumulative: 0xfe, Body: []byte("hej")}, true, "b0 2a fe 68656a"},
	{"data with an acknowledgement, more follow", Data{Number: 0x102a, Rides: true, Cumulative: 7, Body: []byte("hej")}, false, "b9 102a 07 03 68656a"},
	{"data that waits for nothing", Data{Number: 42, Short: true, Free: true, Body: []byte("hej")}, true, "a2 2a 00 68656a"},
	{"data that waits for the third before it, with an acknowledgement, more follow",
		Data{Number: 0x102a, Free: true, After: 3, Rides: true, Cumulative: 7, Body: []byte("hej")}, false, "bb 102a 03 07 03 68656a"},
	{"hello of one who understands segments", Hello{Store: 1, Stream: 2, Forgot: 9, Segments: true, First: [Queues]uint16{3, 4}, Seen: 5}, false,
		"40 00000001 02 00000000 00 00000000 0000 89 0003 0004 0005"},
	{"hello of one who takes numbers far ahead", Hello{Store: 1, Stream: 2, Forgot: 9, Segments: true, Ahead: true, First: [Queues]uint16{3, 4}, Seen: 5}, false,
		"40 00000001 02 00000000 00 00000000 0000 c9 0003 0004 0005"},
	{"acknowledgement in runs: 19 missing, 300 there, 2 missing, 1 there", Ack{Direct, 0x1234, run(19, 300, 2, 1)}, false, "88 1234 02 13 ac02 02 01"},
	{"segment, the first of 1,000 octets, last", Segment{Number: 42, Short: true, Object: 5, Total: 1000, Body: []byte("hej")}, true, "c2 2a 0b d00f 68656a"},
	{"segment, prompt, with an acknowledgement, more follow", Segment{Number: 0x102a, Prompt: true, Rides: true, Cumulative: 7, Object: 127, Body: []byte("hej")}, false,
		"df 102a 07 fe 03 68656a"},
	{"segment, the first of 1,000 octets that wait for nothing, last", Segment{Number: 42, Short: true, Object: 5, Total: 1000, Free: true, Body: []byte("hej")}, true, "c2 2a 0b d10f 68656a"},
	{"segment without body", Segment{Number: 42, Short: true, Object: 5, Body: []byte{}}, true, "c2 2a 0a"},
	{"P_Mul, last", PMul{[]byte{1, 2}}, true, "00 0102"},
	{"P_Mul, more follow", PMul{[]byte{1, 2}}, false, "01 02 0102"},
	{"NORM, last", NORM{[]byte{1, 2}}, true, "c0 0102"},
	{"NORM, more follow", NORM{[]byte{1, 2}}, false, "c1 02 0102"},
}

// run is a bitmap of so many numbers that are missing, so many that have arrived, and so on.
func run(lengths ...int) (bitmap []byte) {
	at := 0
	for i, n := range lengths {
		for range n {
			if at/8 == len(bitmap) {
				bitmap = append(bitmap, 0)
			}
			bitmap[at/8] |= byte(i%2) << (at % 8)
			at++
		}
	}
	return bitmap
}

// open is the least number of octets of a frame that runs to the end of the datagram.
func (v vector) open() int {
	switch f := v.f.(type) {
	case Data:
		if v.last {
			return 2 + btoi(!f.Short) + btoi(f.Free) + btoi(f.Rides)
		}
	case LinkProbe, Open, Query, Told:
		return 1
	case Segment:
		if v.last {
			return 3 + btoi(!f.Short) + btoi(f.Rides) + 2*btoi(f.Total > 0)
		}
	case NORM, PMul:
		if v.last {
			return 1
		}
	}
	return 1 << 10
}

func TestVectors(t *testing.T) {
	for _, tt := range vectors {
		t.Run(tt.name, func(t *testing.T) {
			want := unhex(t, tt.hex)
			if got := Append(nil, tt.f, tt.last); !bytes.Equal(got, want) {
				t.Errorf("Append = %x, want %x", got, want)
			}
			f, rest, err := Parse(append(want, 0x60, 0x01)[:len(want)])
			if err != nil || len(rest) != 0 || !reflect.DeepEqual(f, tt.f) {
				t.Errorf("Parse = %+v, %x, %v; want %+v", f, rest, err, tt.f)
			}
			for n := range want {
				if n >= tt.open() {
					break // a shorter body is a frame too
				}
				if _, _, err := Parse(want[:n]); !errors.Is(err, ErrShort) {
					t.Errorf("Parse of %d octets: %v, want ErrShort", n, err)
				}
			}
		})
	}
	for _, bad := range []string{"02", "1f", "61 00", "81 00", "c4 00", "c2 2a 0b 00", "c2 2a 0b 01", "c2 2a 0b 8000", "c2 2a 0b ffffffff7f", "e1 00000000",
		"50 00000001 02 00000000 0000 00 0003 0004 01 00 00000000", // a member without an ID
		"50 00000001 02 00000000 0000 00 0003 0004 01 808080808001 00000000",
		"50 00000001 02 00000000 0000 00 0003 0004 01 1c",       // apart, with memberTold
		"58 00000001 01 00000000 0000 00 0000 0000 00 00000000", // a corpus without a name, also in a hello
		"48 00000001 02 00000000 00 00000000 0000 00 0003 0004 0005 20 00000000",
		"48 00000001 02 00000000 00 00000000 0000 00 0003 0004 0005 00",
		"48 00000001 02 00000000 00 00000000 0000 00 0003 0004 0005 0d " + strings.Repeat("00", 13*8)} {
		if _, _, err := Parse(unhex(t, bad)); !errors.Is(err, ErrKind) {
			t.Errorf("Parse(%s): %v, want ErrKind", bad, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range vectors {
		b, _ := hex.DecodeString(strings.ReplaceAll(v.hex, " ", ""))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			fr, rest, err := Parse(b)
			if err != nil {
				return
			}
			again, left, err := Parse(Append(nil, fr, len(rest) == 0))
			if err != nil || len(left) != 0 || !reflect.DeepEqual(again, fr) {
				t.Fatalf("%+v comes back as %+v, %x, %v", fr, again, left, err)
			}
			b = rest
		}
	})
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Reach does not count numbers that an acknowledgement, in either form, has no room for.
func TestReach(t *testing.T) {
	var holes []int
	for range 200 {
		holes = append(holes, 1, 2)
	}
	for _, tt := range []struct {
		bitmap []byte
		reach  int
	}{{nil, math.MaxInt}, {run(1, 100), math.MaxInt}, {run(1, 119), 120}, {run(1, 500), math.MaxInt}, {run(holes...), 3 * maxPairs}} {
		f, _, err := Parse(Append(nil, Ack{Direct, 7, tt.bitmap}, true))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.(Ack).Reach(); got != tt.reach {
			t.Errorf("of %d octets of bitmap: a reach of %d, want %d", len(tt.bitmap), got, tt.reach)
		}
	}
}

// The Greeting of a node that takes numbers far ahead counts losses in six bits, so that one more loss is still another
// number. It says the same of it to each member, and nothing to members for which it does not hold.
func TestGreetingAhead(t *testing.T) {
	counts := map[uint8]bool{}
	for forgot := range uint8(0x80) {
		f, _, err := Parse(Append(nil, Greeting{Store: 1, Forgot: forgot, Ahead: true, Members: []Member{{ID: 2, HeardIncarnation: 7}, {ID: 3, Apart: true}}}, true))
		if err != nil {
			t.Fatal(err)
		}
		g := f.(Greeting)
		h, _, ok := g.For(2)
		if !ok || !h.Ahead || !h.Segments || h.Forgot != forgot&0x3f {
			t.Fatalf("%d losses: it says %+v, %v", forgot, h, ok)
		}
		if _, _, ok := g.For(3); ok {
			t.Error("it says something to who is apart")
		}
		counts[h.Forgot] = true
	}
	if len(counts) != 64 {
		t.Errorf("%d counts", len(counts))
	}
	f, _, err := Parse(Append(nil, Greeting{Store: 1, Forgot: 9, Members: []Member{{ID: 2, HeardIncarnation: 7}}}, true))
	if err != nil {
		t.Fatal(err)
	}
	if h, _, ok := f.(Greeting).For(2); !ok || h.Ahead || h.Segments || h.Forgot != 9 {
		t.Errorf("of who does not take them it says %+v, %v", h, ok)
	}
}
