package compact

import (
	"bytes"
	"strings"
)

// A long text goes block by block, so that the work at hand is bounded and the text is not. Each block is tokens or octets
// of the text. The tokenizer and the reader of tokens continue from block to block.

const (
	blockOctets = 256 << 10       // of a text, in a block
	mostBlock   = 4 * blockOctets // octets or tokens of one block: the last may be of twice as much text
)

// cutter cuts a text into blocks: of tokens as long as the tokens give back the same XML, of octets from there on.
type cutter struct {
	text   []byte
	block  int        // octets of it in a block
	at     int        // octets of text that are cut
	xml    *tokenizer // nil: octets
	joiner joiner     // the text that the far end makes of the tokens,
	seen   int        // and how many octets of the text these are
}

func newCutter(text []byte) *cutter {
	return &cutter{text: text, block: blockOctets, xml: &tokenizer{}, joiner: newJoiner()}
}

// next is the next block, valid until the one after it.
func (c *cutter) next() (stream []byte, tokens bool) {
	if c.xml != nil {
		if stream, ok := c.tokens(); ok {
			return stream, true
		}
		c.xml, c.joiner = nil, joiner{}
	}
	n := min(len(c.text)-c.at, c.block)
	c.at += n
	return c.text[c.at-n : c.at], false
}

// tokens is the next block as tokens. ok is false where the tokens do not give back the text.
func (c *cutter) tokens() (stream []byte, ok bool) {
	rest := c.text[c.at:]
	window := rest[:min(len(rest), 2*c.block)]
	last := len(window) == len(rest)
	if n := len(window); !last && window[n-1] == '\r' { // a line feed may follow it
		window = window[:n-1]
	}
	t := c.xml
	first := c.at == 0
	skip, ok := t.load(window, first)
	if !ok {
		return nil, false
	}
	t.out, t.never = t.out[:0], [len(rawKinds)]bool{}
	begun := t.in
	if first {
		if !strings.HasPrefix(strings.TrimLeft(t.in, " \n\t"), "<") {
			return nil, false
		}
		t.begin()
	}
	for len(t.in) > 0 && (last || len(begun)-len(t.in) < c.block) {
		t.item()
	}
	if last && len(t.stack) > 0 {
		t.out = append(t.out, tokCut)
	}
	took := skip + len(begun) - len(t.in)
	if t.style&styleCRLF != 0 {
		took += strings.Count(begun[:len(begun)-len(t.in)], "\n")
	}
	t.in = ""
	back, err := c.joiner.tokens(nil, t.out, last, len(c.text)-c.seen)
	if err != nil || !t.elements || len(t.out) > mostBlock || !bytes.HasPrefix(c.text[c.seen:], back) {
		return nil, false
	}
	c.at, c.seen = c.at+took, c.seen+len(back)
	if string(c.text[c.seen:c.at]) != c.joiner.pending() {
		c.at -= took
		return nil, false
	}
	return t.out, true
}

// load sets the text to be tokenised next, with its line ends as line feeds, and returns how many octets are skipped before
// it. ok is false where the text has octets that XML does not allow, or other line ends than it began with.
func (t *tokenizer) load(window []byte, first bool) (skip int, ok bool) {
	lf, crlf, ok := lineEnds(window)
	if !ok {
		return 0, false
	}
	if first && lf > 0 && crlf == lf {
		t.style |= styleCRLF
	}
	t.in = string(window)
	if t.style&styleCRLF != 0 {
		if lf != crlf {
			return 0, false
		}
		t.in = strings.ReplaceAll(t.in, "\r\n", "\n")
	}
	if rest, marked := strings.CutPrefix(t.in, bom); first && marked {
		t.style |= styleBOM
		t.in, skip = rest, len(bom)
	}
	return skip, true
}

// joiner makes text of blocks of tokens.
type joiner struct {
	reader *reader
	begun  bool
}

func newJoiner() joiner { return joiner{reader: &reader{doctype: -1, unit: "\t"}} }

// tokens appends the text of a block, limit octets at the most.
func (j *joiner) tokens(dst, stream []byte, last bool, limit int) ([]byte, error) {
	r := j.reader
	r.in, r.out, r.limit = stream, r.out[:0], limit
	if !j.begun {
		j.begun = true
		if err := r.begin(); err != nil {
			return dst, err
		}
	}
	if err := r.run(); err != nil {
		return dst, err
	}
	if len(r.around) > 0 { // a document within the document is in one block
		return dst, ErrCorrupt
	}
	if last {
		if err := r.end(); err != nil {
			return dst, err
		}
	}
	return j.written(dst)
}

// written appends the text written since the last call.
func (j *joiner) written(dst []byte) ([]byte, error) {
	text, err := j.reader.written()
	if err != nil {
		return dst, err
	}
	j.reader.out = j.reader.out[:0]
	return append(dst, text...), nil
}

// pending is the text that still has to close an open tag, before anything but an attribute.
func (j *joiner) pending() (s string) {
	r := *j.reader
	r.out = nil
	r.content()
	return string(r.out)
}

// stop ends the tokens where a block of octets follows, and appends the text still pending.
func (j *joiner) stop(dst []byte, limit int) ([]byte, error) {
	if j.reader == nil {
		return dst, nil
	}
	if j.begun {
		j.reader.limit = limit
		j.reader.content()
		var err error
		if dst, err = j.written(dst); err != nil {
			return dst, err
		}
	}
	j.reader = nil
	return dst, nil
}
