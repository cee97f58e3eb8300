package compact

import (
	"bytes"
	"encoding/hex"
	"strings"
)

// reader turns a token stream into XML.
type reader struct {
	in      []byte
	out     []byte
	limit   int
	unit    string
	names   []string
	stack   []string
	ids     []string
	doctype int  // where the root's name goes, once known; -1 for nowhere
	open    bool // the last tag still takes attributes
	value   bool // an attribute's value goes on
	style   byte
	quote   byte    // of the attribute whose value goes on
	other   bool    // the next attribute has the other quotes
	spaced  bool    // white space has been written for what comes next in the tag
	around  []inner // documents around this one
}

// inner is a document within a document.
type inner struct {
	from int // in out
	base int // of the stack
	set  byte
}

// expandTokens is the inverse of tokenizeXML. It refuses to grow beyond limit octets.
func expandTokens(b []byte, limit int) ([]byte, error) {
	r := &reader{in: b, limit: limit, doctype: -1, unit: "\t", out: make([]byte, 0, min(limit, 4*len(b)+256))}
	if err := r.begin(); err != nil {
		return nil, err
	}
	if err := r.run(); err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return r.written()
}

// begin reads the properties of the whole document.
func (r *reader) begin() error {
	prolog := byte(0)
	if len(r.in) >= 2 && r.in[0] == tokProlog {
		prolog, r.in = r.in[1], r.in[2:]
	}
	if len(r.in) >= 2 && r.in[0] == tokStyle {
		r.style = r.in[1] &^ styleMark
		if r.in[1]&styleMark == 0 || r.style == 0 || r.style > styles {
			return ErrCorrupt
		}
		r.in = r.in[2:]
	}
	if r.style&styleBOM != 0 {
		r.out = append(r.out, bom...)
	}
	if prolog != 0 && !r.prolog(prolog) {
		return ErrCorrupt
	}
	switch {
	case len(r.in) == 0 || r.in[0] < '0' || r.in[0] > '8':
		return ErrCorrupt
	case r.in[0] > '0':
		r.unit = "        "[:r.in[0]-'0']
	}
	r.in = r.in[1:]
	return nil
}

// run writes the text of the tokens at hand.
func (r *reader) run() error {
	for len(r.in) > 0 {
		if !r.token() {
			return ErrCorrupt
		}
		if len(r.out) > r.limit {
			return ErrTooLong
		}
	}
	return nil
}

// end ends the document.
func (r *reader) end() error {
	r.content()
	if len(r.stack) > 0 || r.doctype >= 0 || len(r.around) > 0 || r.other || r.spaced {
		return ErrCorrupt
	}
	return nil
}

// written is the text that run has written, with the line ends of the document.
func (r *reader) written() ([]byte, error) {
	if r.style&styleCRLF != 0 {
		if len(r.out)+bytes.Count(r.out, []byte{'\n'}) > r.limit {
			return nil, ErrTooLong
		}
		return bytes.ReplaceAll(r.out, []byte("\n"), []byte("\r\n")), nil
	}
	if len(r.out) > r.limit {
		return nil, ErrTooLong
	}
	return r.out, nil
}

// prolog writes a known opening.
func (r *reader) prolog(number byte) bool {
	i := int(number) - 'A'
	if i < 0 || i >= len(prologs) || r.doctype >= 0 {
		return false
	}
	before, _, named := strings.Cut(prologs[i], "%s")
	r.out = append(r.out, quoted(r.style, before)...)
	if named {
		r.doctype = i
	}
	return true
}

// literal is the octets up to the next tokEnd.
func (r *reader) literal() ([]byte, bool) {
	i := bytes.IndexByte(r.in, tokEnd)
	if i < 0 {
		return nil, false
	}
	b := r.in[:i]
	r.in = r.in[i+1:]
	return b, true
}

// base is how many elements belong to documents around.
func (r *reader) base() int {
	if n := len(r.around); n > 0 {
		return r.around[n-1].base
	}
	return 0
}

// content ends the last tag, when it is still open.
func (r *reader) content() {
	r.endValue()
	if r.open {
		r.out = append(r.out, '>')
		r.open, r.spaced = false, false
	}
}

func (r *reader) endValue() {
	if r.value {
		r.out = append(r.out, r.quote)
		r.value = false
	}
}

// next returns the next n octets, or nil.
func (r *reader) next(n int) []byte {
	if len(r.in) < n {
		return nil
	}
	b := r.in[:n]
	r.in = r.in[n:]
	return b
}

func (r *reader) token() bool {
	c := r.in[0]
	if !isMark(c) {
		if !r.value {
			r.content()
		}
		r.out = append(r.out, c)
		r.in = r.in[1:]
		return true
	}
	r.in = r.in[1:]
	switch c {
	case tokOpen, tokNewTag:
		return r.startTag(c == tokNewTag)
	case tokClose:
		r.content()
		n := len(r.stack)
		if n == r.base() {
			return false
		}
		r.out = append(append(append(r.out, "</"...), r.stack[n-1]...), '>')
		r.stack = r.stack[:n-1]
	case tokEmpty:
		r.endValue()
		if !r.open {
			return false
		}
		if r.style&styleSpace != 0 && !r.spaced {
			r.out = append(r.out, ' ')
		}
		r.spaced = false
		r.out = append(r.out, "/>"...)
		r.open, r.stack = false, r.stack[:len(r.stack)-1]
	case tokAttr, tokNewAttr:
		return r.attribute(c == tokNewAttr)
	case tokQuote:
		r.endValue()
		if !r.open || r.other {
			return false
		}
		r.other = true
	case tokSpace:
		r.endValue()
		space, ok := r.literal()
		if !ok || !r.open || r.spaced {
			return false
		}
		r.out, r.spaced = append(r.out, space...), true
	case tokRaw:
		r.content()
		raw, ok := r.literal()
		if !ok || r.doctype >= 0 {
			return false
		}
		r.out = append(r.out, raw...)
	case tokCut:
		r.content()
		if len(r.around) > 0 || len(r.in) > 0 || len(r.stack) == 0 {
			return false
		}
		r.stack = nil
	case tokProlog:
		r.content()
		b := r.next(1)
		return b != nil && r.prolog(b[0])
	case tokInner:
		return r.startInner()
	case tokInnerEnd:
		return r.endInner()
	case tokEnd:
		r.content()
	case tokIndent:
		return r.indent()
	case tokID, tokBareID:
		r.content()
		if c == tokID {
			r.out = append(r.out, urnText...)
		}
		return r.id()
	case tokBase64:
		return r.base64()
	default:
		return false
	}
	return true
}

// startTag reads a start tag, whose name stands in the text or is known by number.
func (r *reader) startTag(spelt bool) bool {
	r.content()
	name, ok := r.name(spelt, knownTags[:])
	if !ok || len(r.stack) > 4*maxDepth {
		return false
	}
	if r.doctype >= 0 {
		_, after, _ := strings.Cut(prologs[r.doctype], "%s")
		r.out = append(append(r.out, name...), after...)
		r.doctype = -1
	}
	r.out = append(append(r.out, '<'), name...)
	r.stack = append(r.stack, name)
	r.open = true
	return true
}

// attribute reads the name of an attribute and the quote before its value, or one whose text is known whole.
func (r *reader) attribute(spelt bool) bool {
	r.endValue()
	if !r.open {
		return false
	}
	if !r.spaced {
		r.out = append(r.out, ' ')
	}
	r.quote = '"'
	if r.other != (r.style&styleSingle != 0) {
		r.quote = '\''
	}
	r.spaced, r.other = false, false
	if !spelt && len(r.in) > 0 && int(r.in[0]) < len(knownAttrs) {
		known := knownAttrs[r.in[0]]
		if r.quote == '\'' {
			known = strings.ReplaceAll(known, `"`, "'")
		}
		r.out = append(r.out, known...)
		r.in = r.in[1:]
		return true
	}
	name, ok := r.name(spelt, nil)
	if !ok {
		return false
	}
	r.out = append(append(append(r.out, name...), '='), r.quote)
	r.value = true
	return true
}

// startInner begins a document that stands escaped in another's text; endInner escapes it.
func (r *reader) startInner() bool {
	r.content()
	b := r.next(1)
	if b == nil || b[0]&^escapeSets != escapesMark || len(r.around) >= maxInner || r.doctype >= 0 {
		return false
	}
	r.around = append(r.around, inner{len(r.out), len(r.stack), b[0] & escapeSets})
	return true
}

func (r *reader) endInner() bool {
	r.content()
	n := len(r.around)
	if n == 0 || len(r.stack) != r.around[n-1].base || r.doctype >= 0 {
		return false
	}
	d := r.around[n-1]
	r.around = r.around[:n-1]
	r.out = append(r.out[:d.from], escapers[d.set].Replace(string(r.out[d.from:]))...)
	return true
}

// indent reads a line's end and the indent of the next, which differs from the depth by so much.
func (r *reader) indent() bool {
	r.content()
	b := r.next(1)
	if b == nil {
		return false
	}
	n := int(b[0]) - indentZero + len(r.stack) - r.base()
	if n < 0 || n > 5*maxDepth {
		return false
	}
	r.out = append(r.out, '\n')
	for range n {
		r.out = append(r.out, r.unit...)
	}
	return true
}

// base64 reads octets that stand in the text as base64.
func (r *reader) base64() bool {
	r.content()
	head := r.next(3)
	if head == nil {
		return false
	}
	octets := r.next(int(head[1])<<8 | int(head[2]))
	if octets == nil {
		return false
	}
	r.out = appendBase64(r.out, octets, int(head[0]))
	return true
}

func (r *reader) name(spelled bool, known []string) (string, bool) {
	if !spelled {
		b := r.next(1)
		if b == nil {
			return "", false
		}
		switch i := int(b[0]); {
		case i < len(known):
			return known[i], true
		case i >= localTag && i-localTag < len(r.names):
			return r.names[i-localTag], true
		}
		return "", false
	}
	for i, c := range r.in {
		if c == tokEnd {
			name := string(r.in[:i])
			r.in = r.in[i+1:]
			if len(r.names) < 256-localTag {
				r.names = append(r.names, name)
			}
			return name, name != "" && nameLen(name) == len(name)
		}
		if c < ' ' {
			break
		}
	}
	return "", false
}

func (r *reader) id() bool {
	b := r.next(1)
	if b == nil {
		return false
	}
	form := b[0]
	name := "uuid-"
	if form&formCBID != 0 {
		name = "cbid-"
	}
	ref := ""
	switch form & 0x0f {
	case formKnown, formHalf:
		b = r.next(1)
		if b == nil || int(b[0]) >= len(r.ids) {
			return false
		}
		ref = r.ids[b[0]]
	}
	digits := ""
	switch f := form &^ formCBID; f {
	case formKnown:
		r.out = append(r.out, ref...)
		return form == formKnown
	case formAny:
		b = r.next(1)
		if b == nil {
			return false
		}
		b = r.next(int(b[0]))
		if b == nil {
			return false
		}
		digits = hex.EncodeToString(b)
	case formPeer, formPipe, formClass, formNamed, formDouble, formLong, formHalf, formShort:
		typ := r.next(1)
		b = r.next(idOctets(f))
		if typ == nil || b == nil {
			return false
		}
		digits = hex.EncodeToString(b)
		switch f {
		case formPeer, formPipe, formClass, formNamed:
			digits = prefixes[f-1] + digits
		case formDouble:
			digits += digits
		case formHalf:
			if len(ref) < 5+32 {
				return false
			}
			digits = ref[5:5+32] + digits
		}
		digits += hex.EncodeToString(typ)
	default:
		return false
	}
	name += strings.ToUpper(digits)
	if len(r.ids) < countedIDs {
		r.ids = append(r.ids, name)
	}
	r.out = append(r.out, name...)
	return true
}
