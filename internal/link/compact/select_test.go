package compact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestCodecNumbers(t *testing.T) {
	for _, c := range []struct {
		codec Codec
		octet byte
		name  string
	}{
		{Stored, 0, "stored"}, {Deflated, 1, "deflated"}, {Tokens, 2, "tokens"}, {Modelled, 0x53, "modelled"}, {ModelledXML, 0x54, "modelled-xml"},
		{Learned, 0x55, "learned"}, {LearnedXML, 0x56, "learned-xml"}, {Repeated, 0x57, "repeated"}, {Bulk, 0x58, "bulk"}, {Blocks, 0x5c, "blocks"},
		{Following, 0x5d, "following"}, {9, 9, "codec-9"},
	} {
		if byte(c.codec) != c.octet || c.codec.String() != c.name {
			t.Errorf("%v is octet %#x, want %s %#x", c.codec, byte(c.codec), c.name, c.octet)
		}
	}
	for codec, want := range map[Codec]error{
		3: ErrCode, 9: ErrCode, 0x10: ErrCode, 0x11: ErrCode, 0x5e: ErrCode, 0x3c: ErrModel, 0x39: ErrModel, 0x1f: ErrCode, 0x21: ErrCode,
		0x13: ErrModel, 0x14: ErrModel, 0x23: ErrModel, 0x28: ErrModel, 0x17: ErrModel, 0xf8: ErrModel, Learned: ErrHistory, LearnedXML: ErrHistory, Repeated: ErrHistory,
		Following: ErrHistory,
	} {
		if _, err := Expand(codec, []byte{1, 2, 3}, 100); !errors.Is(err, want) {
			t.Errorf("codec %#x: %v, want %v", byte(codec), err, want)
		}
	}
}

// No code is ever longer than its text, and every text comes back.
func TestNeverLonger(t *testing.T) {
	random := NewMaker(5, testWords)
	texts := map[string][]byte{
		"nothing": nil, "one octet": {0}, "zeros": make([]byte, 3000), "random": random.Octets(5000), "ff": bytes.Repeat([]byte{0xff}, 70000),
		"invalid UTF-8":           []byte("<a>\xff\xfe\xc0\x80</a>"),
		"controls":                []byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11"),
		"DTD":                     []byte("<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY x \"y\">]>\n<a>&x;</a>"),
		"comment":                 []byte("<a><!-- no -- ><b/></a>"),
		"CDATA":                   []byte("<a><![CDATA[<b>]]></a>"),
		"instruction":             []byte("<a><?x y?></a>"),
		"tag never closed":        []byte("<a><b></a>"),
		"quotes":                  []byte("<a x='1' y = \"2\"/>"),
		"carriage returns":        []byte("<a>\r\n<b>1</b>\r\n</a>\r\n"),
		"deep":                    []byte(strings.Repeat("<a>", 3000) + strings.Repeat("</a>", 3000)),
		"less deep":               []byte(strings.Repeat("<a>\n", 200) + strings.Repeat("</a>\n", 200)),
		"many names":              manyNames(400),
		"many ids":                manyIDs(400),
		"many attributes":         []byte("<a" + strings.Repeat(` b="c"`, 500) + ">x</a>"),
		"attribute, then text":    []byte(`<a b="c">text<d e="">` + "\n\t</d></a>"),
		"empty elements":          []byte(`<a><b/><c d="e"/><jxta:PA/></a>`),
		"names cut":               []byte(`<a:b.c-d_e xmlns:a="x">1</a:b.c-d_e>`),
		"numbers at their limits": []byte("seq=9999999999999;lat=-0.0000000000001;x=+99999999999999999999;y=..;z=1.2.3;w=-;v=\n"),
		"lines":                   []byte(strings.Repeat("\n", 500) + strings.Repeat("\n\t\t\t\n   ", 50)),
		"base64 of odd lines":     []byte("<a>" + strings.Repeat("QUJD\n", 40) + base64.StdEncoding.EncodeToString(random.Octets(100)) + "\n" + base64.StdEncoding.EncodeToString(random.Octets(3)) + "</a>"),
		"base64 of one line":      []byte("<a>" + base64.StdEncoding.EncodeToString(random.Octets(1001)) + "</a>"),
		"base64 of many lines":    []byte("<a>" + string(appendBase64(nil, random.Octets(3000), 76)) + "</a>"),
		"base64 with a tail":      []byte("<a>" + string(appendBase64(nil, random.Octets(300), 64)) + "=</a>"),
		"hex that is no id":       []byte("<a>uuid-0102 cbid-01 urn:jxta:uuid-0102 uuid-XY urn:jxta: cbid-" + strings.Repeat("0", 600) + "</a>"),
		"text alone":              []byte("no tag at all, uuid-0102\n"),
	}
	var c Coder
	for name, text := range texts {
		coded, codec := c.Append([]byte("before"), text)
		if coded, ok := bytes.CutPrefix(coded, []byte("before")); !ok || len(coded) > len(text) {
			t.Errorf("%s: %d octets for %d", name, len(coded), len(text))
		} else if back, err := c.Expand(codec, coded, len(text)); err != nil || !bytes.Equal(back, text) {
			t.Errorf("%s, %v: comes back otherwise, %v", name, codec, err)
		} else if len(text) > 0 {
			if _, err := c.Expand(codec, coded, len(text)-1); !errors.Is(err, ErrTooLong) {
				t.Errorf("%s, %v: over the limit: %v", name, codec, err)
			}
		}
	}
}

func manyNames(n int) []byte {
	var b strings.Builder
	b.WriteString("<root>")
	for i := range n {
		fmt.Fprintf(&b, "<n%d a%d=\"%d\">%d</n%d>", i, i, i, i, i)
	}
	return []byte(b.String() + "</root>")
}

func manyIDs(n int) []byte {
	m := NewMaker(11, testWords)
	var b strings.Builder
	b.WriteString("<root>")
	for i := range n {
		id := m.PeerID(i % Layouts)
		fmt.Fprintf(&b, "<id>%s</id><again>%s</again><half>%s</half>", id, id, id[:len("urn:jxta:uuid-")+32]+m.Hex(16)+"04")
	}
	return []byte(b.String() + "</root>")
}

// Every codec that the selection may choose is tried in turn, and the smallest taken.
func TestStages(t *testing.T) {
	var c Coder
	for name, text := range map[string][]byte{"xml": []byte(msa), "text": benchmarkText(300), "bulk": benchmarkText(20000), "octets": NewMaker(3, testWords).Octets(100)} {
		stages := c.Stages(text)
		coded, codec := c.Append(nil, text)
		best := stages[0]
		for _, s := range stages {
			if s.Octets >= 0 && s.Octets < best.Octets {
				best = s
			}
		}
		if best.Codec != codec || best.Octets != len(coded) {
			t.Errorf("%s: stages %v, chosen %v with %d", name, stages, codec, len(coded))
		}
	}
}

// Much text that hardly shrinks, or that repeats itself, takes hardly any time: the model gives up the first soon, and
// deflate does better than blocks that are filled up.
func TestHugeText(t *testing.T) {
	c := Coder{NoModel: true}
	text := bytes.Repeat(benchmarkText(1<<20), 4)
	coded, codec := c.Append(nil, text)
	if codec != Deflated {
		t.Errorf("coded as %v", codec)
	}
	if _, err := c.Expand(codec, coded, 1<<20); !errors.Is(err, ErrTooLong) {
		t.Errorf("over the limit: %v", err)
	}
	c = Coder{}
	random := NewMaker(8, testWords).Octets(8 << 20)
	if _, codec := c.Append(nil, random); codec != Stored || c.Work() > uint64(len(random)/50) {
		t.Errorf("random octets: %v, %d octets of work for %d", codec, c.Work(), len(random))
	}
	if coded, codec := c.Append(nil, bytes.Repeat([]byte("all is well\n"), 100_000)); codec != Deflated {
		t.Errorf("always the same: %v, %d octets", codec, len(coded))
	}
}

// Texts made to be scanned repeatedly: every tokenizer's work stays in proportion to their length.
func TestTokenizerIsLinear(t *testing.T) {
	for name, text := range map[string]string{
		"no base64":       strings.Repeat("A", MaxModelled-11),
		"lines":           strings.Repeat(strings.Repeat("A", 63)+"\n", MaxModelled/64-1),
		"lines of base64": strings.Repeat(strings.Repeat("A", 64)+"\n", MaxModelled/65-1) + "=",
		"ids":             strings.Repeat("uuid-", MaxModelled/5-3),
		"one long id":     "uuid-" + strings.Repeat("0", MaxModelled-20),
		"many ids":        strings.Repeat("uuid-0102 ", MaxModelled/10-3),
		"indentation":     strings.Repeat("\n"+strings.Repeat("\t", 200), MaxModelled/201-1),
		"open tags":       strings.Repeat("<a>", MaxModelled/3-4),
		"quotes":          strings.Repeat("<a b=\"", MaxModelled/6-2),
		"many empty":      strings.Repeat("<a/>", MaxModelled/4-4),
	} {
		start := busy()
		tokenizeXML([]byte("<x>" + text + "</x>"))
		if d := busy() - start; d > 5*time.Second { // some milliseconds; minutes if every octet were compared with all others
			t.Errorf("%s: %v", name, d)
		}
	}
}

// More than MaxDeflated is stored at once where there is no model.
func TestTooMuchText(t *testing.T) {
	c := Coder{NoModel: true}
	text := make([]byte, MaxDeflated+1)
	if coded, codec := c.Append(nil, text); codec != Stored || len(coded) != len(text) {
		t.Errorf("%d octets %v", len(coded), codec)
	}
	if _, deflated := c.Deflate(text); deflated {
		t.Error("Deflate took it")
	}
}

// A far end with another model gets deflate.
func TestNoModel(t *testing.T) {
	c := Coder{NoModel: true}
	m := NewMaker(6, testWords)
	doc := m.Spec(Compact)
	var h History
	h.Add(1, doc)
	for _, text := range [][]byte{m.Spec(Compact), m.Track().XML(), benchmarkText(50_000), doc} {
		for range 2 {
			coded, codec := c.AppendAfter(nil, text, &h, 2)
			if codec != Deflated && codec != Tokens {
				t.Errorf("coded as %v", codec)
			}
			if back, err := Expand(codec, coded, len(text)); err != nil || !bytes.Equal(back, text) {
				t.Errorf("%v: %v", codec, err)
			}
		}
	}
}

// A hostile kilobyte expands to no more than the limit and MaxModelled, which also bounds the work.
func TestHostileCodes(t *testing.T) {
	var c Coder
	r := rand.New(rand.NewPCG(1, 2))
	codes := [][]byte{make([]byte, 1000), bytes.Repeat([]byte{0xff}, 1000), {}, {0}, {1, 2, 3}}
	for range 20 {
		b := make([]byte, r.IntN(60))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		codes = append(codes, b)
	}
	for _, code := range codes {
		for _, codec := range []Codec{Modelled, ModelledXML, Bulk} {
			text, err := c.Expand(codec, code, 20_000)
			if err == nil && len(text) > 20_000 {
				t.Errorf("%v of %x: %d octets", codec, code[:min(len(code), 8)], len(text))
			}
			if err != nil && !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v: %v", codec, err)
			}
		}
	}
}

// A code that was cut or changed gives an error or another text, in bounds; never a panic.
func TestDamagedCodes(t *testing.T) {
	var c Coder
	text := NewMaker(2, testWords).Peer(Compact, -1, true)
	coded, codec := c.Append(nil, text)
	coded = bytes.Clone(coded)
	for i := 0; i < len(coded); i += 7 {
		if back, err := c.Expand(codec, coded[:i], 4000); err == nil && bytes.Equal(back, text) {
			t.Errorf("cut at %d it is still whole", i)
		}
		coded[i] ^= 0x10
		if back, err := c.Expand(codec, coded, 4000); err == nil && bytes.Equal(back, text) {
			t.Errorf("changed at %d it is the same", i)
		}
		coded[i] ^= 0x10
	}
}

// Tokens that no tokenizer makes give an error, and never more than the limit.
func TestExpandTokensRefuses(t *testing.T) {
	for _, s := range []string{
		"", "x", "9", "\x11", "\x11Z0", "0\x02", "0\x02\x7f", "0\x02\x80", "0\x03", "0\x02\x00", "0\x04ab", "0\x04\x07", "0\x04a b\x07\x03",
		"0\x04a\x07\x05\x80", "0\x04a\x07\x05\x70\x03", "0\x04a\x07x\x06b\x07y\x03", "0\x08", "0\x0f", "0\x0f\x00", "0\x01", "0\x01\x00", "0\x01\x00\x00",
		"0\x01\x07\x00", "0\x01\x0f", "0\x01\x09\x05ab", "0\x01\x01\x03abc", "0\x0e\x40\x00", "0\x0e\x40\x00\x05ab", "0\x0b", "\x11A0",
		"0\x04a\x07", "0\x01\x20\x01",
	} {
		if out, err := expandTokens([]byte(s), 1000); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q gives %q, %v", s, out, err)
		}
	}
	indent := "0\x04a\x07" + strings.Repeat("\x0f\x7f", 400) + "\x03"
	if _, err := expandTokens([]byte(indent), 5000); !errors.Is(err, ErrTooLong) {
		t.Errorf("indentation: %v", err)
	}
}

func FuzzTokens(f *testing.F) {
	m := NewMaker(4, testWords)
	for layout := range Layouts {
		f.Add(m.Peer(layout, 70, true))
		f.Add(m.Spec(layout))
	}
	f.Add(m.Employees(2))
	f.Add([]byte("<a b=\"c\">d<e/>\n  <f/></a>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if tokens, ok := tokenizeXML(text); ok {
			back, err := expandTokens(tokens, len(text))
			if err != nil || !bytes.Equal(back, text) {
				t.Fatalf("%q comes back as %q, %v", text, back, err)
			}
		}
		expandTokens(text, 1<<16)
	})
}

// The model may learn from any octets.
func FuzzModel(f *testing.F) {
	m := NewMaker(4, testWords)
	tokens, _ := tokenizeXML(m.Peer(Bare, 70, true))
	f.Add(tokens, true)
	f.Add(m.Track().XML(), false)
	f.Add(benchmarkText(300), false)
	var c Coder
	f.Fuzz(func(t *testing.T, text []byte, tokens bool) {
		if len(text) > 400 {
			return
		}
		m := c.from(primed)
		m.train(text, tokens)
		e := m.encoding(nil, text, tokens, 1<<20)
		e.advance(len(text))
		code, ok := e.end()
		if !ok {
			return
		}
		m = c.from(primed)
		m.train(text, tokens)
		d := m.decoding(code, tokens, len(text)+1)
		_, err := d.advance(len(text) + 2)
		back := m.hist[m.start:]
		if err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%q comes back as %q, %v", text, back, err)
		}
	})
}

// The cost of a text has no step where the model once gave up: a document that is one octet longer costs about one more.
func TestNoStepInLength(t *testing.T) {
	var c Coder
	m := NewMaker(41, testWords)
	xml, text := m.Employees(1600), Texts([]*Track{m.Track(), m.Track(), m.Track()}, 300<<10)
	for name, text := range map[string][]byte{"XML": xml, "text": text} {
		if len(text) < 256<<10+1 {
			t.Fatalf("%s: only %d octets", name, len(text))
		}
		at, _ := c.Append(nil, text[:256<<10])
		beyond, codec := c.Append(nil, text[:256<<10+1])
		if len(beyond) > len(at)+8 {
			t.Errorf("%s: 256 KiB cost %d, one octet more %d", name, len(at), len(beyond))
		}
		if back, err := c.Expand(codec, beyond, 256<<10+1); err != nil || !bytes.Equal(back, text[:256<<10+1]) {
			t.Errorf("%s does not come back: %v", name, err)
		}
	}
}

// An invented code of a kilobyte expands to 320 KiB at most, whatever the limit is.
func TestShortCodesExpandLittle(t *testing.T) {
	var c Coder
	code := bytes.Repeat([]byte{0xff}, 1024)
	work := c.Work()
	if _, err := c.Expand(Modelled, code, 32<<20); err == nil {
		t.Error("expands")
	}
	if n := c.Work() - work; n > 320<<10 {
		t.Errorf("the model was asked for %d octets", n)
	}
}
