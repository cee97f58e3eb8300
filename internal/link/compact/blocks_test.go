package compact

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// blocksModel is used repeatedly, as coders use theirs.
var blocksModel = new(model)

// inBlocks codes a text in blocks of so many octets, and expands it again, both in slices.
func inBlocks(t *testing.T, text []byte, block, slice int) []byte {
	t.Helper()
	m := blocksModel
	m.prime(primed)
	e := codeBlocks(m, primed, nil, text, 2*len(text)+4096)
	e.cut.block = block
	for !e.advance(slice) {
	}
	code, ok := e.end()
	if !ok {
		t.Fatalf("%d octets in blocks of %d: no code", len(text), block)
	}
	back, err := outOfBlocks(code, len(text), slice)
	if err != nil || !bytes.Equal(back, text) {
		t.Fatalf("%d octets in blocks of %d do not come back: %v\n%.300q\n%.300q", len(text), block, err, text, back)
	}
	return code
}

func outOfBlocks(code []byte, limit, slice int) ([]byte, error) {
	m := blocksModel
	m.prime(primed)
	d := expandBlocks(m, primed, code, limit)
	for {
		done, err := d.advance(slice)
		if err != nil {
			return nil, err
		}
		if done {
			return d.end()
		}
	}
}

// Texts come back from blocks wherever the blocks are cut: in tags, in comments, in lines that end with CR LF, where the XML ends.
func TestBlocksComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 4))
	m := NewMaker(41, testWords)
	texts := [][]byte{
		m.Employees(40), m.Octets(5000), Texts([]*Track{m.Track(), m.Track()}, 6000),
		[]byte(strings.ReplaceAll(string(m.Employees(20)), "\n", "\r\n")),
		[]byte(bom + string(m.Employees(10))),
		append(m.Employees(20), m.Octets(3000)...),
		append(m.Octets(3000), m.Employees(20)...),
		append(append(m.Employees(20), m.Octets(3000)...), m.Employees(20)...),
		[]byte("<a>" + strings.Repeat("<b c='1'/>\r\n", 200) + "\n</a>"),
		[]byte("<a><!--" + strings.Repeat("no end ", 300)),
		[]byte("<a b=\"" + strings.Repeat("long ", 300) + "\"/>"),
		[]byte("<a>" + strings.Repeat("&lt;b&gt;text&lt;/b&gt;", 100) + "</a>"),
		[]byte("<a>" + strings.Repeat("A", 3000) + "</a>"),
		[]byte("<a>" + strings.Repeat("uuid-59616261646162614E50472050325033 ", 400) + "</a>"),
		[]byte("<?xml version=\"1.0\"?>\n<!DOCTYPE x>\n<x>" + strings.Repeat("<y/>", 300)),
		[]byte(strings.Repeat("<", 2000)), {'<'}, {'\r'}, []byte("<a/>"),
	}
	for _, d := range dresses() {
		texts = append(texts, d.text)
	}
	for range 25 {
		texts = append(texts, randomDocument(m, r, texts[r.IntN(len(texts))]))
	}
	for _, text := range texts {
		if len(text) == 0 {
			continue
		}
		for _, block := range []int{1, 7, 64, 1000, blockOctets} {
			if len(text)/block < 400 {
				inBlocks(t, text, block, 1+r.IntN(3000))
			}
		}
	}
}

// A text one octet longer than the model codes as one is still coded by the model, and stays XML; so is a text of several
// blocks, in slices. The history that is kept does not grow.
func TestBlocksHaveNoStep(t *testing.T) {
	text := NewMaker(7, testWords).Employees(9000)
	if len(text) < MaxModelled+2*blockOctets {
		t.Fatalf("only %d octets", len(text))
	}
	var c Coder
	whole, codec := c.Append(nil, text[:MaxModelled])
	if codec != ModelledXML {
		t.Fatalf("%d octets: %v", MaxModelled, codec)
	}
	one, codec := c.Append(nil, text[:MaxModelled+1])
	if codec != Blocks || len(one) > len(whole)+len(whole)/100 {
		t.Errorf("%d octets: %v, %d octets after %d", MaxModelled+1, codec, len(one), len(whole))
	}
	for !c.Prepare(text, 100_000) {
	}
	long, codec := c.Append(nil, text)
	if per := len(whole) * len(text) / MaxModelled; codec != Blocks || len(long) > per+per/100 {
		t.Errorf("%d octets: %v, %d octets where %d would be as before", len(text), codec, len(long), per)
	}
	var r Reading
	for slices := 0; ; slices++ {
		var back []byte
		var err error
		c.Read(&r, 100_000, func() { back, err = c.Expand(codec, long, len(text)) })
		if errors.Is(err, ErrUnfinished) {
			continue
		}
		if err != nil || !bytes.Equal(back, text) || slices < 3 {
			t.Errorf("read in %d slices: %v", slices, err)
		}
		break
	}
	if n := cap(c.beside.hist); n > 4*(keptOctets+blockOctets) {
		t.Errorf("the model keeps %d octets", n)
	}
	if _, err := c.Expand(codec, long, 10_000); !errors.Is(err, ErrTooLong) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// A code that stands for too much text, or octets that are no code, give a typed error, and take no longer than their octets allow.
func TestBlocksAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 5))
	m := NewMaker(43, testWords)
	blank := inBlocks(t, []byte("<a>"+strings.Repeat("<b/>", 60_000)+"</a>"), 20_000, 5000)
	if len(blank) < leastCode(60_000) {
		t.Errorf("a blank text is %d octets", len(blank))
	}
	codes := [][]byte{
		inBlocks(t, m.Employees(30), 1000, 1<<20), inBlocks(t, append(m.Employees(10), m.Octets(2000)...), 500, 1<<20),
		inBlocks(t, Texts([]*Track{m.Track()}, 3000), 700, 1<<20), blank[:200],
	}
	model := new(model)
	for i := range 400 {
		code := bytes.Clone(codes[i%len(codes)])
		switch r.IntN(4) {
		case 0:
			code = code[:r.IntN(len(code))]
		case 1:
			code = append(code, m.Octets(1+r.IntN(20))...)
		}
		for range r.IntN(3) {
			if len(code) > 0 {
				code[r.IntN(len(code))] = byte(r.Uint32())
			}
		}
		model.prime(primed)
		before := model.work
		text, err := expandBlocks(model, primed, code, 8000).all()
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLong) {
			t.Fatalf("%x: %v", code, err)
		}
		if len(text) > 8000 || model.work-before > uint64(mostOf(len(code))) {
			t.Fatalf("%d octets of code gave %d and took %d of work", len(code), len(text), model.work-before)
		}
	}
}

func (b *blocksDecoding) all() ([]byte, error) {
	if _, err := b.advance(atOnce); err != nil {
		return nil, err
	}
	return b.end()
}

// longRows are the costs of XML of growing length, and of the second long document of a flow of a kind that no corpus has.
func longRows(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	var c Coder
	whole := NewMaker(77, testWords).Employees(23_900)
	for _, n := range []int{256 << 10, 256<<10 + 1, 1 << 20, 1<<20 + 1, 4 << 20} {
		text := whole[:n]
		code, codec := c.Append(nil, text)
		if back, err := c.Expand(codec, code, n); err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%d octets, %v, do not come back: %v", n, codec, err)
		}
		if n%1024 == 0 {
			fmt.Fprintf(&b, "| %d | **%d** | %.1f x | %d |\n", n, 1+len(code), float64(n)/float64(1+len(code)), 1+len(c.Deflated(text)))
		}
	}
	b.WriteString("\nThe second of two documents of a flow of an unknown format, about 100 kB each (docs/decisions/blocks.md):\n\n| kind | octets | alone | second of its flow | smaller by |\n|---|---|---|---|---|\n")
	for _, s := range inventedKinds {
		h := &History{Long: true}
		h.Add(1, joined(invented(s, 1, 300)))
		text := joined(invented(s, 2, 300))
		alone, _ := c.Append(nil, text)
		second, codec := new(Coder).AppendAfter(nil, text, h, 2)
		if back, err := c.ExpandAfter(codec, second, h, 2, len(text)); err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%s, %v, does not come back: %v", s.kind, codec, err)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | **%d** | %.1f %% |\n", s.kind, len(text), 1+len(alone), 1+len(second), 100-100*float64(1+len(second))/float64(1+len(alone)))
	}
	return b.String()
}

// joined is many messages as one document of about 100 kB: XML gets one root.
func joined(messages [][]byte) (text []byte) {
	xml := bytes.HasPrefix(messages[0], []byte("<"))
	if xml {
		text = append(text, "<all>\n"...)
	}
	for _, m := range messages {
		if xml && bytes.HasPrefix(m, []byte("<?xml")) {
			_, m, _ = bytes.Cut(m, []byte("?>"))
		}
		if text = append(text, m...); len(text) > 100_000 {
			break
		}
	}
	if xml {
		text = append(text, "</all>\n"...)
	}
	return text
}
