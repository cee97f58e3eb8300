package compact

import (
	"encoding/binary"
	"slices"
)

// The code of a long text is that of its blocks (cut.go). Each block begins with an unsigned varint: four times the octets
// of its stream, plus its kind. Where the model has coded the block, another varint gives the octets of its code. The model
// goes on from a block to the next one of the same kind. After a stored block, and after the last block of tokens, it
// begins anew.
const (
	blockText = iota
	blockTokens
	blockStored // octets of the text as they are
	blockStoredTokens

	keptOctets = 512 << 10 // of earlier blocks, in which the model still finds matches
)

// slide forgets the history except its last octets, and the values in the forgotten part.
func slide(m *model, keep int) {
	n := len(m.hist) - keep
	if n <= 0 {
		return
	}
	copy(m.hist, m.hist[n:])
	m.hist = m.hist[:keep]
	for i, at := range m.matchTable {
		m.matchTable[i] = max(at-int32(n), 0)
	}
	if !m.inLore && m.matchAt <= n {
		m.match.at(0, 0, 0)
	} else if !m.inLore {
		m.matchAt -= n
	}
	slideValues(&m.scan, n)
}

// slideValues moves the places in the history that the scan knows.
func slideValues(s *scan, n int) {
	s.start, s.value, s.done = max(s.start-n, 0), max(s.value-n, 0), max(s.done-n, 0)
	s.now = s.now[:0]
	for i := range s.past {
		s.past[i] = s.past[i][:0]
	}
	for i, v := range s.recent {
		s.recent[i] = (span{v.from - int32(n), v.to - int32(n)})
		if int(v.from) < n {
			s.recent[i] = span{}
		}
	}
	s.records.chain, s.records.slots = s.records.chain[:0], [valueSlots]int32{}
	s.outlook.clear()
}

// blocksEncoding is a long text on its way through the model.
type blocksEncoding struct {
	m      *model
	from   *image
	cut    *cutter
	out    []byte
	base   int // where the code begins in out
	most   int
	octets int // of the streams until now
	kind   int // of the last block
	begun  bool
	stream []byte
	under  *encoding
}

// codeBlocks begins to append the code of a long text, by a model that has learned the messages that the text is coded after.
func codeBlocks(m *model, from *image, dst, text []byte, most int) *blocksEncoding {
	return &blocksEncoding{m: m, from: from, cut: newCutter(text), out: dst, base: len(dst), most: most, kind: -1}
}

// advance codes about so many octets more, and says whether the whole text is coded.
func (b *blocksEncoding) advance(octets int) (done bool) {
	for {
		if b.under == nil {
			if b.cut.at == len(b.cut.text) || len(b.out)-b.base > b.most {
				return true
			}
			b.begin()
		}
		n := octets
		if b.m.most == light {
			n *= lightOctets
		}
		before := b.under.at
		if !b.under.advance(n) {
			return false
		}
		octets -= max(1, (b.under.at-before)*octets/max(n, 1))
		b.finish()
		if octets <= 0 {
			return false
		}
	}
}

// begin begins the next block.
func (b *blocksEncoding) begin() {
	stream, tokens := b.cut.next()
	b.stream = stream
	goOn(b.m, b.from, &b.kind, &b.begun, blockText+btoi(tokens))
	b.under = encodingPart(b.m, nil, stream, len(stream)-1)
}

// goOn makes the model ready for a block of a kind.
func goOn(m *model, from *image, last *int, begun *bool, kind int) {
	if *last == kind {
		slide(m, keptOctets)
		return
	}
	if *begun {
		m.prime(from)
	}
	*last, *begun = kind, true
	m.most = contexts
	if kind == blockText {
		m.most = light
	}
	m.begin(kind == blockTokens)
}

// finish ends a block.
func (b *blocksEncoding) finish() {
	code, ok := b.under.end()
	b.octets += len(b.stream)
	if !ok {
		b.out = binary.AppendUvarint(b.out, uint64(len(b.stream))<<2|uint64(blockStored+b.kind))
		b.out = append(b.out, b.stream...)
		b.kind = -1
	} else {
		head := binary.AppendUvarint(nil, uint64(len(b.stream))<<2|uint64(b.kind))
		if lack := leastCode(b.octets) - (len(b.out) - b.base + len(head) + 1 + len(code)); lack > 0 { // the text would be too long for the code: zeros fill it up
			code = append(code, make([]byte, lack)...)
		}
		b.out = append(b.out, head...)
		b.out = binary.AppendUvarint(b.out, uint64(len(code)))
		b.out = append(b.out, code...)
	}
	b.under, b.stream = nil, nil
}

// leastCode is the least octets of a code that may stand for so many octets.
func leastCode(octets int) int {
	return max((octets-mostExtra+mostRatio-1)/mostRatio, (octets-slowExtra+slowRatio-1)/slowRatio, 0)
}

// end ends the code. ok is false when it would be longer than most.
func (b *blocksEncoding) end() (out []byte, ok bool) {
	return b.out, b.cut.at == len(b.cut.text) && len(b.out)-b.base <= b.most
}

// blocksDecoding is a long text on its way back.
type blocksDecoding struct {
	m      *model
	from   *image
	code   []byte // the rest, not read yet
	size   int    // octets of the whole code
	limit  int
	text   []byte
	joiner joiner
	octets int // of the streams until now
	kind   int
	begun  bool
	this   int // octets of the block's stream
	under  *decodingPart
}

// expandBlocks begins to expand the code of a long text, by a model that has learned the messages that the text was coded after.
func expandBlocks(m *model, from *image, code []byte, limit int) *blocksDecoding {
	return &blocksDecoding{m: m, from: from, code: code, size: len(code), limit: limit, kind: -1, joiner: newJoiner()}
}

// advance expands about so many octets more, and says whether the whole text is expanded.
func (b *blocksDecoding) advance(octets int) (done bool, err error) {
	for octets > 0 {
		if b.under == nil {
			if len(b.code) == 0 {
				return true, nil
			}
			if err := b.begin(); err != nil {
				return false, err
			}
			if b.under == nil { // it was stored
				octets--
				continue
			}
		}
		n := octets
		if b.m.most == light {
			n *= lightOctets
		}
		before := b.under.left
		done, err := b.under.advance(n)
		if err != nil {
			return false, err
		}
		if !done {
			return false, nil
		}
		octets -= max(1, (before-b.under.left)*octets/n)
		b.under = nil
		if err := b.join(b.m.hist[len(b.m.hist)-b.this:], b.kind == blockTokens); err != nil {
			return false, err
		}
	}
	return b.under == nil && len(b.code) == 0, nil
}

// begin begins the next block. A stored block is taken whole.
func (b *blocksDecoding) begin() error {
	head, ok := b.number()
	if !ok || head>>2 > mostBlock || head>>2 == 0 {
		return ErrCorrupt
	}
	kind, octets := int(head&3), int(head>>2)
	b.this = octets
	b.octets += octets
	if b.octets > 2*b.limit+64 {
		return ErrTooLong
	}
	if kind >= blockStored {
		if octets > len(b.code) {
			return ErrCorrupt
		}
		stream := b.code[:octets]
		b.code, b.kind, b.begun = b.code[octets:], -1, true
		return b.join(stream, kind == blockStoredTokens)
	}
	size, ok := b.number()
	if !ok || size > uint64(len(b.code)) {
		return ErrCorrupt
	}
	code := b.code[:size]
	b.code = b.code[size:]
	if b.octets > mostOf(b.size-len(b.code)) {
		return ErrTooLong
	}
	goOn(b.m, b.from, &b.kind, &b.begun, kind)
	b.under = &decodingPart{m: b.m, d: newDecoder(code), left: octets}
	return nil
}

func (b *blocksDecoding) number() (u uint64, ok bool) {
	u, n := binary.Uvarint(b.code)
	if n <= 0 {
		return 0, false
	}
	b.code = b.code[n:]
	return u, true
}

// join makes text of a block.
func (b *blocksDecoding) join(stream []byte, tokens bool) (err error) {
	room := b.limit - len(b.text)
	if tokens {
		if b.joiner.reader == nil { // octets came before it
			return ErrCorrupt
		}
		b.text, err = b.joiner.tokens(b.text, stream, len(b.code) == 0, room)
		return err
	}
	if b.text, err = b.joiner.stop(b.text, room); err != nil {
		return err
	}
	if len(stream) > b.limit-len(b.text) {
		return ErrTooLong
	}
	b.text = append(b.text, stream...)
	return nil
}

// end is the text.
func (b *blocksDecoding) end() ([]byte, error) { return slices.Clip(b.text), nil }
