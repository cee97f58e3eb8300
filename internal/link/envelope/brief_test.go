package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// A message of a known flow costs its flow's number, and for each element one octet of codec and the code.
func TestBrief(t *testing.T) {
	var coder compact.Coder
	texts := &Texts{Coder: &coder}
	random := make([]byte, 200)
	for i := range random {
		random[i] = byte(i*i*7 + i>>3*91)
	}
	two := track(100)
	two.Parts = append(two.Parts, jxta.Element{Namespace: "trk", Name: "more", Data: random}, jxta.Element{Namespace: "trk", Name: "none", Data: []byte{}})
	noise := track(200)
	noise.Parts[0].Data = random
	for _, tt := range []struct {
		name   string
		p      *site.Message
		number uint32
		first  byte
		most   int
	}{
		{"random octets", noise, 7, 0x87, 202},
		{"62", noise, 62, 0xbe, 202},
		{"63", noise, 63, 0xbf, 203},
		{"a large number", noise, 1 << 31, 0xbf, 207},
		{"three elements", two, 9, 0x89, 230},
	} {
		m := Message{Payload: tt.p}
		b, err := AppendCoded(nil, m, tt.number, false, texts)
		if err != nil || b[0] != tt.first || len(b) > tt.most {
			t.Errorf("%s: %d octets from %#x on, %v; want at most %d from %#x on", tt.name, len(b), b[0], err, tt.most, tt.first)
		}
		lookup := func(n uint32) (Flow, bool) { return FlowOf(tt.p), n == tt.number }
		got, number, defined, err := ParseCoded(b, lookup, texts)
		in := check.In(t, tt.name)
		check.NoError(check.Fatal(in), err)
		check.Equal(in, "number", number, tt.number)
		check.Equal(in, "defined", defined, "")
		check.Same(in, "normal(got)", normal(got), normal(m))
		if _, _, _, err := ParseCoded(b, func(uint32) (Flow, bool) { return "", false }, texts); !errors.Is(err, ErrUnknownFlow) {
			t.Errorf("%s: of no known flow: %v", tt.name, err)
		}
		for n := 1; n < len(b)-1; n++ { // any text from a code cut short is allowed, but reading ends
			ParseCoded(b[:n], lookup, texts)
		}
		if with, _ := AppendCoded(nil, m, tt.number, true, texts); with[0]&formBrief != 0 {
			t.Errorf("%s: a definer in brief form", tt.name)
		}
		if plain, _ := Append(nil, m, tt.number, false); plain[0]&formBrief != 0 {
			t.Errorf("%s: the journal's form is brief", tt.name)
		}
	}
}

// The flow of a message tells, in each form and without expanding an element, whether the message is of use only now.
func TestFleeting(t *testing.T) {
	var coder compact.Coder
	texts := &Texts{Coder: &coder}
	now, any := track(100), track(100)
	now.Fleeting = true
	if FlowOf(now) == FlowOf(any) {
		t.Fatal("both are of one flow")
	}
	for name, p := range map[string]*site.Message{"fleeting": now, "any": any} {
		lookup := func(n uint32) (Flow, bool) { return FlowOf(p), n == 63 }
		for _, define := range []bool{false, true} {
			b, err := Packed(&coder, Message{Payload: p}, 63, define, texts)
			if err != nil {
				t.Fatal(err)
			}
			plain, _ := Append(nil, Message{Payload: p}, 63, define)
			for form, b := range map[string][]byte{"packed": b, "plain": plain, "deflated": append([]byte{formDeflated}, coder.Deflated(plain)...)} {
				if got := Fleeting(b, lookup); got != p.Fleeting {
					t.Errorf("%s, %s, its flow spelt out %v: fleeting %v", name, form, define, got)
				}
				for n := range b { // no cut makes it fail
					Fleeting(b[:n], lookup)
				}
			}
			if m, _, _, err := ParseCoded(b, lookup, texts); err != nil || m.Payload.Fleeting != p.Fleeting {
				t.Errorf("%s, its flow spelt out %v: read as %+v, %v", name, define, m.Payload, err)
			}
		}
		unknown, _ := Packed(&coder, Message{Payload: p}, 7, false, texts)
		if Fleeting(unknown, lookup) {
			t.Errorf("%s: of a flow that nobody knows", name)
		}
	}
	long, _ := Append(nil, Message{Payload: func() *site.Message { p := track(2 * mostFleeting); p.Fleeting = true; return p }()}, 7, true)
	if Fleeting(long, nil) {
		t.Error("a long one was looked at")
	}
}

func TestBriefMalformed(t *testing.T) {
	one, three := track(1), track(1)
	three.Parts = append(three.Parts, jxta.Element{Name: "b"}, jxta.Element{Name: "c"})
	lookup := func(n uint32) (Flow, bool) {
		switch n {
		case 1:
			return FlowOf(one), true
		case 3:
			return FlowOf(three), true
		}
		return Flow("\xff"), n == 4
	}
	for _, tt := range []struct {
		name string
		b    []byte
		want error
	}{
		{"flow 0", []byte{0xc0, 0, 'x'}, ErrUnknownFlow},
		{"a pair without a flow", []byte{0x80, 0, 1, 'a', 1, 'b', 0, 'x'}, ErrMalformed},
		{"a pair of a flow above 32 bits", []byte{0x80, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 'a', 1, 'b', 0, 'x'}, ErrMalformed},
		{"a pair from nobody", []byte{0x80, 5, 0, 1, 'b', 0, 'x'}, ErrMalformed},
		{"a pair cut short", []byte{0x80, 5, 1, 'a', 9, 'b', 0}, ErrMalformed},
		{"a pair with nothing to say", []byte{0x80, 5, 1, 'a', 1, 'b'}, ErrMalformed},
		{"a pair alone", []byte{0x80}, ErrMalformed},
		{"no flow number", []byte{0xbf}, ErrMalformed},
		{"a flow number without end", bytes.Repeat([]byte{0xbf}, 12), ErrMalformed},
		{"a flow number above 32 bits", []byte{0xbf, 0xff, 0xff, 0xff, 0xff, 0x7f}, ErrMalformed},
		{"a small number in the long form", []byte{0xbf, 1, 0, 'x'}, ErrMalformed},
		{"a definition that is none", []byte{0x84, 0}, ErrMalformed},
		{"no codec", []byte{0x81}, ErrMalformed},
		{"an element without length", []byte{0x83}, ErrMalformed},
		{"an element longer than all", []byte{0x83, 9, 0, 'x'}, ErrMalformed},
		{"deflated twice", append([]byte{0}, deflated(t, append([]byte{0}, deflated(t, []byte(strings.Repeat("abc", 50)))...))...), ErrMalformed},
		{"no deflate", []byte{0, 0xff, 0xff}, ErrMalformed},
	} {
		if _, _, _, err := ParseCoded(tt.b, lookup, nil); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, _, _, err := ParseCoded([]byte{0x81, 0, 'x'}, nil, nil); !errors.Is(err, ErrUnknownFlow) {
		t.Errorf("without flows: %v", err)
	}
}

func deflated(t *testing.T, b []byte) []byte {
	t.Helper()
	var c compact.Coder
	out, ok := c.Deflate(b)
	if !ok {
		return b
	}
	return bytes.Clone(out)
}

func TestPack(t *testing.T) {
	var c compact.Coder
	m := Message{Payload: track(200)}
	plain, err := Append(nil, m, 7, true)
	if err != nil {
		t.Fatal(err)
	}
	packed := bytes.Clone(Pack(&c, plain))
	if packed[0] != formDeflated || len(packed) > len(plain)/2 {
		t.Fatalf("%d octets of %d, from %#x on", len(packed), len(plain), packed[0])
	}
	got, _, _, err := ParseCoded(packed, nil, nil)
	if err != nil || !reflect.DeepEqual(normal(got), normal(m)) {
		t.Errorf("comes back as %+v, %v", got, err)
	}
	if got := Pack(&c, []byte{0x81, 0, 'x'}); got[0] != 0x81 {
		t.Errorf("a brief one is packed: %x", got)
	}
	// A brief message that no model has shortened is no longer than one with its flow spelt out.
	brief, err := AppendCoded(nil, m, 7, false, &Texts{Coder: &c, Rules: []compact.Rule{{Effort: compact.None}}})
	if err != nil || brief[0]&formBrief == 0 {
		t.Fatalf("%v: begins with %#x", err, brief[0])
	}
	if got := Pack(&c, brief); len(got) > len(packed) || got[0] != formDeflated {
		t.Errorf("a brief one has %d octets, spelt out it has %d", len(got), len(packed))
	}
}

// Messages like the ones before do not name their coding; another message does.
func TestBriefAlike(t *testing.T) {
	var coder compact.Coder
	var sender, receiver Histories
	lookup := func(uint32) (Flow, bool) { return FlowOf(track(1)), true }
	for n := uint64(1); n < 30; n++ {
		p := track(1)
		p.Parts[0].Data = fmt.Appendf(nil, "<track><id>7</id><lat>%d.5</lat></track>", 50+n)
		if n%10 == 9 {
			p.Parts[0].Data = fmt.Appendf(nil, "no XML this time, %d, as it happens", n)
		}
		texts := &Texts{Coder: &coder}
		sender.Encode(texts, 5, n)
		b, err := AppendCoded(nil, Message{Payload: p}, 5, false, texts)
		if err != nil {
			t.Fatal(err)
		}
		if alike := b[0]&formAlike != 0; n > 1 && alike == (n%10 == 9 || n%10 == 0) {
			t.Errorf("message %d begins with %#x", n, b[0])
		}
		texts = &Texts{Coder: &coder, Decode: receiver.Decode(&coder, n)}
		got, _, _, err := ParseCoded(b, lookup, texts)
		if err != nil || !bytes.Equal(got.Payload.Parts[0].Data, p.Parts[0].Data) {
			t.Fatalf("message %d: %v", n, err)
		}
		sender.Add(5, n, p)
		receiver.Add(5, n, p)
	}
	if _, _, _, err := ParseCoded([]byte{0xc5, 0, 1, 2, 3}, lookup, nil); err == nil {
		t.Error("a code made after others is read without them")
	}
}
