package compact

import (
	"bytes"
	"slices"
)

// Counters for the places where a message may end.
const endSlots = 64

// end is the counter that says how likely the message ends here; nil where it cannot.
func (m *model) end() *uint32 {
	s := &m.scan
	n := len(s.hist) - s.start
	if s.tokens {
		if n == 0 || s.mode != inText || s.depth > 0 {
			return nil
		}
		if s.done == 0 {
			return &m.Endings[1]
		}
		return &m.Endings[32+min(len(s.hist)-s.done, 3)]
	}
	c := uint32(4 + btoi(s.lastLen == n && n > 0))
	if s.lastLen == 0 {
		c = 6
	}
	switch last := s.c4 & 0xff; {
	case last == '\n':
		c |= 8
	case last == ';' || last == '>' || last == '.' || last == '}':
		c |= 16
	case s.ends(byte(last)):
		c |= 24
	}
	if n == 0 {
		c = 0
	}
	return &m.Endings[c]
}

func learnEnd(p *uint32, bit int) {
	count := *p & 0xff
	q := int32(*p >> 16)
	q += int32((int64(int32(bit)*65535-q) * int64(rates[count])) >> 16)
	if count < 60 {
		count++
	}
	*p = uint32(max(q, 4))<<16 | count
}

// train learns a message without coding it.
func (m *model) train(text []byte, tokens bool) {
	m.begin(tokens)
	m.trainOn(text)
	m.trained()
}

// trainOn learns octets of a message that has begun.
func (m *model) trainOn(text []byte) {
	m.work += uint64(len(text))
	for i, c := range text {
		m.ahead.knows(text[i+1:])
		if p := m.end(); p != nil {
			learnEnd(p, 0)
		}
		for i := 7; i >= 0; i-- {
			m.foresee()
			m.update(int(c >> i & 1))
		}
	}
}

// trained learns that the message ends here.
func (m *model) trained() {
	if p := m.end(); p != nil {
		learnEnd(p, 1)
	}
}

// skim takes a message into the history and learns nothing of it. No match is followed in it: the next message begins with its own.
func (m *model) skim(text []byte, tokens bool) {
	m.begin(tokens)
	for _, c := range text {
		m.put(c)
		m.match.note(m.hist, m.matchHash())
	}
}

// A binary arithmetic coder: [low, high] is cut where the probability says. Octets that both bounds share are output.
type encoder struct {
	low, high uint32
	out       []byte
	base      int // where the code begins in out
}

func (e *encoder) bit(p int, bit int) {
	mid := e.low + uint32(uint64(e.high-e.low)*uint64(p)>>16)
	if bit == 1 {
		e.high = mid
	} else {
		e.low = mid + 1
	}
	for (e.low^e.high)>>24 == 0 {
		e.out = append(e.out, byte(e.high>>24))
		e.low <<= 8
		e.high = e.high<<8 | 255
	}
}

// flush ends the code with as few octets as name a number between the bounds; the decoder reads zeros after them.
func (e *encoder) flush() {
	if e.low > 0 {
		for n := 1; n <= 4; n++ {
			keep := uint32(0xffffffff) << (32 - 8*n)
			v := e.high & keep
			if v >= e.low {
				for i := range n {
					e.out = append(e.out, byte(v>>(24-8*i)))
				}
				break
			}
		}
	}
	for range mostZeros {
		if n := len(e.out); n > e.base && e.out[n-1] == 0 {
			e.out = e.out[:n-1]
		}
	}
}

type decoder struct {
	low, high, x uint32
	code, in     []byte // the whole code, and the octets of it that are not read yet
	over         int    // octets read beyond the end
	settled      int    // octets that both bounds have shared
}

func newDecoder(in []byte) decoder {
	d := decoder{high: 0xffffffff, code: in, in: in}
	for range 4 {
		d.x = d.x<<8 | d.next()
	}
	return d
}

func (d *decoder) next() uint32 {
	if len(d.in) == 0 {
		d.over++
		return 0
	}
	c := d.in[0]
	d.in = d.in[1:]
	return uint32(c)
}

func (d *decoder) bit(p int) int {
	mid := d.low + uint32(uint64(d.high-d.low)*uint64(p)>>16)
	bit := 0
	if d.x <= mid {
		bit = 1
		d.high = mid
	} else {
		d.low = mid + 1
	}
	for (d.low^d.high)>>24 == 0 {
		d.low <<= 8
		d.high = d.high<<8 | 255
		d.x = d.x<<8 | d.next()
		d.settled++
	}
	return bit
}

// rest returns the octets after the code in d.code, where the code is what the encoder would have made of the decoded text.
// ok is false where d.code begins otherwise: the decoder reads ahead, so a code with more octets, or with others at its
// end, may decode to the same text.
func (d *decoder) rest() (rest []byte, ok bool) {
	e := encoder{low: d.low, high: d.high, out: slices.Clone(d.code[:min(d.settled, len(d.code))])}
	e.out = append(e.out, make([]byte, d.settled-len(e.out))...)
	e.flush()
	return bytes.CutPrefix(d.code, e.out)
}

// encoding is a message on its way through the model.
type encoding struct {
	m      *model
	e      encoder
	dst    []byte
	text   []byte
	at     int // octets coded
	most   int
	part   bool // text is a part of a message that goes on: the code does not say where the message ends
	failed bool
}

// encoding begins to append the code of a message; the model learns it on the way.
func (m *model) encoding(dst, text []byte, tokens bool, most int) *encoding {
	m.begin(tokens)
	e := encodingPart(m, dst, text, most)
	e.part = false
	return e
}

// encodingPart begins to append the code of the next part of a message that has begun. The code does not say where the message ends.
func encodingPart(m *model, dst, text []byte, most int) *encoding {
	return &encoding{m: m, e: encoder{high: 0xffffffff, out: dst, base: len(dst)}, dst: dst, text: text, most: most, part: true}
}

// advance codes so many octets more, and says whether the text is coded.
func (c *encoding) advance(octets int) bool {
	m := c.m
	for _, o := range c.text[c.at:min(len(c.text), c.at+octets)] {
		c.at++
		m.work++
		m.ahead.knows(c.text[c.at:])
		if p := c.ending(); p != nil {
			c.e.bit(endProb(*p), 0)
			learnEnd(p, 0)
		}
		for j := 7; j >= 0; j-- {
			bit := int(o >> j & 1)
			c.e.bit(m.predict(), bit)
			m.update(bit)
		}
		n := len(c.e.out) - c.e.base
		if n > c.most || c.at >= hopeAfter && n*100 > c.at*hopeless {
			c.failed = true
			return true
		}
	}
	return c.at == len(c.text)
}

// ending is the counter that says how likely the message ends here; nil where it cannot end, or where the code does not say
// where it ends.
func (c *encoding) ending() *uint32 {
	if c.part {
		return nil
	}
	return c.m.end()
}

// end ends the code. ok is false when it would be longer than most.
func (c *encoding) end() (out []byte, ok bool) {
	if c.failed {
		return c.dst, false
	}
	if !c.part {
		p := c.m.end()
		if p == nil {
			return c.dst, false // a token stream that ends inside a token or an open element
		}
		c.e.bit(endProb(*p), 1)
		learnEnd(p, 1)
	}
	c.e.flush()
	n := len(c.e.out) - c.e.base
	return c.e.out, n <= c.most && (c.part || len(c.text) <= mostOf(n))
}

func endProb(p uint32) int { return int(min(max(p>>16, 1), 65000)) }

// Octets of text per octet of code that a decoder accepts, octets that it grants besides, and other bounds.
const (
	mostRatio = 1024
	mostExtra = 4096
	hopeAfter = 2048      // octets after which a text that does not shrink is given up,
	hopeless  = 97        // at so many percent
	mostZeros = 4         // zeros left out at the end of a code, at most
	slowExtra = 256 << 10 // octets of text beyond which a code must have
	slowRatio = 64        // one octet for each so many: a kilobyte of code cannot demand seconds of expanding
)

// mostOf is the most octets that a code of n octets stands for.
func mostOf(n int) int { return min(mostExtra+mostRatio*n, slowExtra+slowRatio*n) }

// decoding is a message on its way back through the model.
type decoding struct {
	m    *model
	d    decoder
	most int
}

// decoding begins to decode a message of so many octets at the most.
func (m *model) decoding(code []byte, tokens bool, limit int) *decoding {
	m.begin(tokens)
	return &decoding{m: m, d: newDecoder(code), most: min(limit, mostOf(len(code)))}
}

// advance decodes so many octets more, and says whether that was all.
func (c *decoding) advance(octets int) (done bool, err error) {
	m, d := c.m, c.d
	defer func() { c.d = d }()
	for ; ; octets-- {
		if octets <= 0 {
			return false, nil
		}
		if p := m.end(); p != nil {
			bit := d.bit(endProb(*p))
			learnEnd(p, bit)
			if bit == 1 {
				break
			}
		}
		if len(m.hist)-m.start >= c.most {
			return false, ErrTooLong
		}
		if d.over > 4+mostZeros {
			return false, ErrCorrupt
		}
		m.work++
		for range 8 {
			m.update(d.bit(m.predict()))
		}
	}
	if rest, ok := d.rest(); !ok || len(rest) > 0 {
		return false, ErrCorrupt
	}
	return true, nil
}

// decodingPart is the inverse of encodingPart.
type decodingPart struct {
	m    *model
	d    decoder
	left int // octets to come
}

// advance decodes so many octets more, and says whether that was all. Zeros may follow the code.
func (c *decodingPart) advance(octets int) (done bool, err error) {
	m, d := c.m, c.d
	defer func() { c.d = d }()
	for ; c.left > 0; octets-- {
		if octets <= 0 {
			return false, nil
		}
		if d.over > 4+mostZeros {
			return false, ErrCorrupt
		}
		c.left--
		m.work++
		for range 8 {
			m.update(d.bit(m.predict()))
		}
	}
	if rest, ok := d.rest(); !ok || len(bytes.TrimRight(rest, "\x00")) > 0 {
		return false, ErrCorrupt
	}
	return true, nil
}
