package compact

import (
	"bytes"
	"crypto/sha256"
	"slices"
)

// Bounds of codes made in advance: in slices by Prepare, or a moment ago for another caller.
const (
	shortText   = 512     // texts of fewer octets are coded at once
	mostMade    = 256     // codes that are kept
	mostOctets  = 1 << 20 // of these
	longCode    = 8 << 10 // longer codes are kept apart from these: to make one anew takes long
	mostLong    = 4       // longer codes that are kept,
	longOctets  = 4 << 20 // and their octets, not counting the newest
	lightOctets = 3       // octets with few contexts that take as long as one with all contexts
)

type textSum [sha256.Size]byte

// made has the codes of the last texts.
type made struct {
	codes       map[textSum]madeCode
	short, long kept
}

// kept are sums of texts, in the order in which their codes were made.
type kept struct {
	order  []textSum
	octets int
}

type madeCode struct {
	code  []byte
	codec Codec
}

func (m *made) keep(sum textSum, code []byte, codec Codec) {
	if m.codes == nil {
		m.codes = map[textSum]madeCode{}
	}
	if _, known := m.codes[sum]; known {
		return
	}
	m.codes[sum] = madeCode{bytes.Clone(code), codec}
	k, most, octets := &m.short, mostMade, mostOctets
	if len(code) > longCode {
		k, most, octets = &m.long, mostLong, longOctets
	}
	k.order = append(k.order, sum)
	for k.octets += len(code); len(k.order) > most || k.octets > octets && len(k.order) > 1; k.order = k.order[1:] {
		k.octets -= len(m.codes[k.order[0]].code)
		delete(m.codes, k.order[0])
	}
}

// slow is a text being coded in slices, with a model of its own. The result is that of smallest.
type slow struct {
	text  []byte
	sum   textSum
	best  []byte
	codec Codec
	tries []try // those left; the first may have begun
	last  bool  // deflate comes last
	after bool  // the text is coded after others: AppendAfter compares
}

// try is one way to code a text with the model.
type try struct {
	codec   Codec
	image   *image // where the model starts
	head    []byte // octets before the code
	stream  []byte // tokens or the text; for blocks, the text itself
	tokens  bool
	window  []entry // messages learned first. How many are learned:
	learned int     // whole messages,
	at      int     // and octets of the next message
	under   coded   // nil: coding has not begun
	key     knownKey
	known   *outcome // the outcome of an equal try: it takes the same slices, and no model
}

// coded is a text being coded: advance continues, and says whether all is done. end is not ok where the code would be too
// long.
type coded interface {
	advance(octets int) (done bool)
	end() (out []byte, ok bool)
}

// Prepare codes a text in advance, about so many octets of it in this call, so that Append answers at once. It says whether
// Append can do so now. A text other than that of the last call begins anew.
func (c *Coder) Prepare(text []byte, octets int) (done bool) {
	if c.NoModel || len(text) < shortText {
		return true
	}
	if c.slow.is(text) {
		return c.workOn(octets)
	}
	sum := sha256.Sum256(text)
	if _, ok := c.made.codes[sum]; ok {
		return true
	}
	if c.slow == nil || c.slow.sum != sum {
		c.slow = c.begin(text, sum)
	}
	return c.workOn(octets)
}

// is says whether this is the text in preparation. It compares long texts by address, because hashing them takes long: a
// caller must not change a text while it is prepared.
func (s *slow) is(text []byte) bool {
	return s != nil && len(text) > MaxModelled && len(text) == len(s.text) && &text[0] == &s.text[0]
}

// workOn codes about so many octets of the text in preparation; true: all is coded.
func (c *Coder) workOn(octets int) (done bool) {
	s := c.slow
	for octets > 0 && len(s.tries) > 0 {
		octets -= c.advance(s, octets)
	}
	if len(s.tries) > 0 {
		return false
	}
	if s.after && s.codec == Stored {
		s.best = nil
	}
	if s.last && mayDeflate(len(s.text), len(s.best)) {
		c.tryDeflate(s.text, s.consider)
	}
	c.made.keep(s.sum, s.best, s.codec)
	c.slow = nil
	return true
}

func (c *Coder) begin(text []byte, sum textSum) *slow {
	s := &slow{text: text, sum: sum, best: text, codec: Stored, last: len(text) >= bulkFrom}
	if len(text) > MaxModelled {
		s.tries = []try{{codec: Blocks, image: primed, stream: text}}
		return s
	}
	s.text = bytes.Clone(text)
	s.best = s.text
	if !s.last {
		c.tryDeflate(s.text, s.consider)
	}
	if tokens, ok := tokenizeXML(s.text); ok && len(tokens) <= MaxModelled {
		s.tries = append(s.tries, c.alone(s.text, tokens, true))
	}
	s.tries = append(s.tries, c.alone(s.text, s.text, false))
	return s
}

func (s *slow) consider(codec Codec, out []byte, ok bool) {
	if ok && len(out) < len(s.best) {
		s.best, s.codec = bytes.Clone(out), codec
	}
}

// PrepareAfter is Prepare for message number, where h is what the far end holds of its flow: AppendAfter answers at once
// while that stays the same.
func (c *Coder) PrepareAfter(text []byte, h *History, number uint64, octets int) (done bool) {
	if len(text) > MaxLearned {
		return c.prepareLong(text, h, number, octets)
	}
	base, most, ok := h.base(number)
	if !ok || c.NoModel {
		return c.Prepare(text, octets)
	}
	window, _ := h.window(base, most)
	return c.prepareAfter(text, window, octets)
}

func (c *Coder) prepareAfter(text []byte, window []entry, octets int) (done bool) {
	if len(text) < shortText || slices.ContainsFunc(window, func(e entry) bool { return bytes.Equal(e.text, text) }) {
		return true
	}
	sum := contentOf(window, text)
	if _, ok := c.made.codes[sum]; ok {
		return true
	}
	if c.slow == nil || c.slow.sum != sum {
		t := afterShort(c.imageFor(window[len(window)-1].stream), slices.Clone(window), bytes.Clone(text))
		c.slow = &slow{text: text, sum: sum, codec: Stored, best: text, tries: []try{*t}, after: true}
	}
	return c.workOn(octets)
}

// learn learns about so many octets of the messages before a try, and returns how many; done: all are learned.
func (t *try) learn(m *model, octets int) (learned int, done bool) {
	from := learnedFrom(t.window)
	if t.codec == Following {
		from = 0
	}
	for ; t.learned < len(t.window); t.learned, t.at = t.learned+1, 0 {
		e := t.window[t.learned]
		if t.learned < from {
			if t.known == nil {
				m.skim(e.stream, e.tokens)
			}
			continue
		}
		if learned == octets { // the next slice would begin this message again, and get another model
			return learned, false
		}
		if t.at == 0 && t.known == nil {
			if t.codec == Following && !e.tokens {
				m.most = light
			}
			m.begin(e.tokens)
		}
		n := min(len(e.stream)-t.at, octets-learned)
		if t.known == nil {
			m.trainOn(e.stream[t.at : t.at+n])
		} else {
			m.work += uint64(n)
		}
		learned += n
		t.at += n
		if t.at < len(e.stream) {
			return learned, false
		}
		if t.known == nil {
			m.trained()
		}
	}
	return learned, true
}

// advance codes about so many octets more, and returns how many.
func (c *Coder) advance(s *slow, octets int) int {
	t := &s.tries[0]
	if t.under == nil {
		most := len(s.best) - 1
		if s.last {
			most = len(s.text) - 1
		}
		if t.learned == 0 && t.at == 0 {
			c.recall(t, most)
			c.beside = t.starts(c.beside)
		}
		if learned, done := t.learn(c.beside, octets); !done || learned >= octets {
			return max(1, learned)
		}
		t.begin(c.beside, most)
	}
	each := 1
	if t.codec == Bulk {
		each = lightOctets
	}
	before := c.beside.work
	if t.under.advance(octets * each) {
		out, ok := t.under.end()
		c.note(t, out, ok)
		s.consider(t.codec, out, ok)
		if ok { // tokens are nearly always better
			s.tries = nil
			return octets
		}
		worked := int(c.beside.work - before)
		s.tries = s.tries[1:]
		return max(1, worked/each)
	}
	return octets
}
