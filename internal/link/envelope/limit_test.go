package envelope

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"aldis/internal/jxta"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// bomb deflates an envelope until deflating makes it no shorter: Pack deflates once.
func bomb(b []byte) []byte {
	var c compact.Coder
	return append([]byte{formDeflated}, c.Deflated(b)...)
}

// blankItems are n items whose documents of so many octets are deflated.
func blankItems(n, octets int) []byte {
	var m Message
	for i := range n {
		m.Items = append(m.Items, site.Item{Kind: site.Document, Scope: "jxta-NetGroup", Owner: peerA, ID: fmt.Sprintf("uuid-%08x", i),
			Doc: make([]byte, octets)})
	}
	b, err := AppendCoded(nil, m, 0, false, &Texts{Coder: &compact.Coder{NoModel: true}})
	if err != nil {
		panic(err)
	}
	return b
}

// repeated is an envelope that has a field with this value n times.
func repeated(n int, field protowire.Number, value []byte) (b []byte) {
	for range n {
		b = protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
	}
	return b
}

// The octets of a message bound everything that it expands to: items, elements, the envelope around them, or the structures
// that Protocol Buffers makes of many small fields.
func TestBombs(t *testing.T) {
	var c compact.Coder
	blank := make([]byte, 200<<10)
	stored := append([]byte{byte(compact.Deflated)}, bytes.Clone(c.Deflated(blank))...)
	var report []byte
	for i := range 400 {
		report = fmt.Appendf(report, "line %d of a report, course %d, speed %d\n", i, i*7%360, i%23)
	}
	long, codec := c.Append(nil, report)
	if !codec.ByModel() {
		t.Fatalf("a report is coded as %v", codec)
	}
	modelled := append([]byte{byte(codec)}, long...)
	shape := repeated(1, fieldDefine, repeated(5000, fieldShape, nil))
	for _, tt := range []struct {
		name string
		b    []byte
	}{
		{"items that expand", blankItems(8, 200<<10)},
		{"items that expand, in an envelope that does", bomb(blankItems(64, 200<<10))},
		{"4,096 items", bomb(repeated(4096, fieldItems, []byte{8, 2, 0x12, 1, 1, 0x1a, 1, 1}))},
		{"a million items", bomb(repeated(1<<20, fieldItems, nil))},
		{"a million elements", bomb(repeated(1<<20, fieldData, nil))},
		{"5,000 shapes", bomb(shape)},
		{"elements that deflate", bomb(append(repeated(1, fieldDefine, repeated(64, fieldShape, nil)), repeated(64, fieldCoded, stored)...))},
		{"elements of the model", bomb(append(repeated(1, fieldDefine, repeated(64, fieldShape, nil)), repeated(64, fieldCoded, modelled)...))},
		{"numbers asked for again", bomb(repeated(1, fieldAgain, make([]byte, 4*(MaxAgain+1))))},
		{"an envelope of 8 MiB", bomb(repeated(1, 99, make([]byte, 8<<20)))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c compact.Coder
			c.Append(nil, []byte("a model is made")) // memory for the model is not that of a message
			work := c.Work()

			held := allocated(func() {
				if _, _, _, err := ParseCoded(tt.b, nil, &Texts{Coder: &c}); !errors.Is(err, ErrLimit) {
					t.Errorf("%d octets are parsed: %v, want ErrLimit", len(tt.b), err)
				}
			})
			if most := uint64(MostExpanded(len(tt.b)))*12 + 1<<20; held > most {
				t.Errorf("%d octets on the link took %d of memory, at most %d wanted", len(tt.b), held, most)
			}
			if done := c.Work() - work; done > uint64(MostExpanded(len(tt.b))) {
				t.Errorf("the model expanded %d octets of %d on the link, at most %d wanted", done, len(tt.b), MostExpanded(len(tt.b)))
			}
		})
	}
}

// A sender never packs more than a receiver accepts: a message that expands further is filled up.
func TestPackedIsWithinTheLimits(t *testing.T) {
	random := make([]byte, 100<<10)
	rng := rand.New(rand.NewPCG(1, 8))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	blank := func(octets int) Message {
		return Message{Payload: &site.Message{Published: true, Scope: "jxta-NetGroup", Topic: pipeA, From: peerA,
			Parts: []jxta.Element{{Name: "picture", Type: "image/bmp", Data: make([]byte, octets)}}}}
	}
	many := blank(0)
	for range 40 {
		many.Payload.Parts = append(many.Payload.Parts, jxta.Element{Name: "tile", Data: make([]byte, 5<<10)})
	}
	texts := blank(0)
	for i := range 8 {
		text := bytes.Repeat(fmt.Appendf(nil, "line %d of a text that repeats itself; ", i), 6000)
		texts.Payload.Parts = append(texts.Payload.Parts, jxta.Element{Name: "text", Data: text[:200<<10]})
	}
	var state Message
	for i := range 8 {
		state.Items = append(state.Items, site.Item{Kind: site.Document, Scope: "jxta-NetGroup", Owner: peerA, ID: fmt.Sprintf("uuid-%08x", i),
			Doc: bytes.Repeat([]byte{byte('a' + i)}, 64<<10)})
	}
	for _, tt := range []struct {
		name string
		m    Message
		full bool // it was filled up
	}{
		{"200 octets", Message{Payload: track(200)}, false},
		{"20,000 alike", Message{Payload: track(20_000)}, false},
		{"random", Message{Payload: &site.Message{Published: true, Scope: "jxta-NetGroup", Topic: pipeA, From: peerA,
			Parts: []jxta.Element{{Name: "noise", Data: random}}}}, false},
		{"a blank picture", blank(1 << 20), true},
		{"a blank of 16 MiB", blank(16 << 20), true},
		{"forty blank tiles", many, true},
		{"more text than the model takes", texts, true},
		{"eight large documents", state, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c compact.Coder
			for _, how := range []*Texts{nil, {Coder: &c}} {
				b, err := Packed(&c, tt.m, 7, true, how)
				if err != nil {
					t.Fatal(err)
				}
				b = bytes.Clone(b)
				least := leastOctets(tt.m.Octets())
				if len(b) < least || tt.full && how != nil && len(b) > least+least/100+200 {
					t.Errorf("%d octets on the link for %d, want about %d", len(b), tt.m.Octets(), least)
				}
				got, _, _, err := ParseCoded(b, nil, &Texts{Coder: &c})
				if err != nil || !reflect.DeepEqual(normal(got), normal(tt.m)) {
					t.Errorf("%d octets on the link for %d do not come back: %v", len(b), tt.m.Octets(), err)
				}
			}
		})
	}
}

// The limit adds no octet to messages that crossed before it existed.
func TestPackedIsAppendAndPack(t *testing.T) {
	for name, m := range messages() {
		var c compact.Coder
		texts := &Texts{Coder: &c}
		b, err := AppendCoded(nil, m, 7, true, texts)
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Clone(Pack(&c, b))
		if got, err := Packed(&c, m, 7, true, texts); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v; want %x", name, got, err, want)
		}
	}
}

// allocated is how many octets f takes from the heap, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// An open message and the answer to a question have no flows of an earlier message.
func TestAFlowWithoutLookup(t *testing.T) {
	for _, b := range [][]byte{{0x08, 0x01}, {formBrief | 1, 0}} {
		if _, _, _, err := ParseCoded(b, nil, &Texts{}); !errors.Is(err, ErrUnknownFlow) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

// The names of an item are its key in the journal, which takes none of more than 32 KiB.
func TestAnItemWithALongKey(t *testing.T) {
	var coder compact.Coder
	short := append(binary.AppendUvarint([]byte{1, 0}, 40000), bytes.Repeat([]byte("a"), 40000)...)
	for _, e := range []*Envelope{
		{Short: [][]byte{short}},
		{Items: []*ItemDef{{Kind: 1, Group: []byte{0}, Peer: append([]byte{0x40}, make([]byte, 40000)...)}}},
	} {
		b := append([]byte{formDeflated}, coder.Deflated(marshal(nil, e))...)
		b = append(b, make([]byte, max(0, leastOctets(41000)-len(b)))...)
		if _, _, _, err := ParseCoded(b, nil, &Texts{Coder: &coder}); !errors.Is(err, ErrLimit) {
			t.Error(err)
		}
	}
}

// Whatever is read of a peer in its short form can be written to the journal.
func TestAPeerWithALongName(t *testing.T) {
	var coder compact.Coder
	for _, name := range []int{maxPeerName + 1, MaxDoc, MaxDoc + 5000} {
		e := &Envelope{Short: [][]byte{append(append([]byte{0, 0}, make([]byte, idOctets)...), bytes.Repeat([]byte("a"), name)...)}}
		b := append([]byte{formDeflated}, coder.Deflated(marshal(nil, e))...)
		b = append(b, make([]byte, max(0, leastOctets(name+1000)-len(b)))...)
		if m, _, _, err := ParseCoded(b, nil, &Texts{Coder: &coder}); !errors.Is(err, ErrLimit) {
			t.Errorf("a name of %d octets: %d items, %v", name, len(m.Items), err)
		}
	}
}
