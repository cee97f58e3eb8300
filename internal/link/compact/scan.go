package compact

// Octets below space are not XML text; a token stream (tokens.go) uses them as marks. Tab and line feed stay text.
const (
	tokID      = 0x01 // "urn:jxta:", then as tokBareID
	tokOpen    = 0x02 // tag number
	tokClose   = 0x03
	tokNewTag  = 0x04 // name, tokEnd: opens it and gives it the next number
	tokAttr    = 0x05 // number of a known attribute with its value, or of a name of the document's own, then the value
	tokNewAttr = 0x06 // name, tokEnd, value
	tokEnd     = 0x07 // ends a name; ends an attribute's value before text
	tokEmpty   = 0x08 // the element opened last is empty: />
	tokBase64  = 0x0e // line width, two octets of length, octets
	tokIndent  = 0x0f // line feed and indentation, relative to the depth
	tokBareID  = 0x10 // form, type octet, octets
	tokProlog  = 0x11 // number of a known prolog

	tokRaw      = 0x12 // markup as it is, tokEnd
	tokSpace    = 0x13 // unusual white space in a tag, tokEnd
	tokQuote    = 0x14 // the next attribute has the other quotes
	tokCut      = 0x15 // the text ends, and the open elements stay open
	tokInner    = 0x16 // a document within the document: the characters that it escapes
	tokInnerEnd = 0x17 // its end
	tokStyle    = 0x18 // properties of the whole document

	localTag   = 0x80 // tag numbers from here on are the document's own
	indentZero = 0x40 // indentation of the depth itself

	// Bounds of what is followed: beyond them, only predictions get worse.
	maxDepth     = 64
	maxValues    = 4096 // of a message
	valueSlots   = 4096 // values remembered by key
	maxExpected  = 24   // characters of a number
	pastMessages = 8    // messages from whose numbers the next is extrapolated
)

// Meanings of the octets of the stream, for the model.
const (
	inText = iota
	inArg  // the octet after a mark
	inName // up to tokEnd
	inIDForm
	inIDType
	inIDOctets
	inWidth  // of lines of base64
	inLength // of base64, or of an id of any length
	inDER    // the octets that base64 stood for: a certificate, most likely
	inIDRef  // which of the earlier ids
	inFrame  // an octet of a message that is not text
)

// span is a value in the history.
type span struct{ from, to int32 }

// scan follows the structure of the stream, octet by octet, and keeps the data that contexts are made of. Only the
// plaintext drives it, so both ends are in the same state. No input can make it fail.
type scan struct {
	tokens bool // a token stream; else text
	alone  bool // a long text with nothing before it: records and checksums are not followed
	hist   []byte
	start  int // where this message begins in hist
	tail
	run
	elements
	frame
	row  textRow
	json bool // the text has names of JSON

	value   int    // where the value begins in hist
	key     uint32 // names the value: its tag, or the text before '='
	hasName bool   // the value has a name before it: name=value
	field   uint32 // hash of the value so far
	side    uint32 // hash of the value before
	outlook

	now     []span               // values of this message, by their place
	past    [pastMessages][]span // and of earlier messages, the last one first
	recent  [valueSlots]span
	lastLen int // of the message before
	sums    sums
	records records
}

// tail is the last octets of the stream.
type tail struct {
	c4, c8     uint32
	word, last uint32 // hashes of this word and of the one before
	sep        byte
}

// run is the meaning of the octets that come next.
type run struct {
	mode  int
	left  int // octets of the binary run to come
	at    int // octets of the run done
	mark  byte
	form  byte
	noise int // octets to come in a certificate that are practically random
}

// elements are the open elements of a document.
type elements struct {
	stack  [maxDepth]uint32
	depth  int
	local  []uint32 // keys of the document's own tags
	attr   uint32
	inAttr bool // the value is an attribute's
	done   int  // where in hist the root was closed; 0 before
}

// scanMemory is what a scan has allocated, emptied.
type scanMemory struct {
	hist  []byte
	now   []span
	past  [pastMessages][]span
	local []uint32
	chain []said
}

func memoryOf(s *scan) scanMemory {
	past := s.past
	for i := range past {
		past[i] = past[i][:0]
	}
	return scanMemory{s.hist[:0], s.now[:0], past, s.local[:0], s.records.chain[:0]}
}

func (s *scan) reset() {
	m := memoryOf(s)
	*s = scan{hist: m.hist, now: m.now, past: m.past, elements: elements{local: m.local}}
	s.records.chain = m.chain
}

// take lets s hold a copy of its lists in this memory, and no longer share them with the scan that it was copied from.
func (m scanMemory) take(s *scan) {
	s.hist, s.now, s.local, s.records.chain = append(m.hist, s.hist...), append(m.now, s.now...), append(m.local, s.local...), append(m.chain, s.records.chain...)
	for i := range s.past {
		s.past[i] = append(m.past[i], s.past[i]...)
	}
}

// begin starts a message after those in the history.
func (s *scan) begin(tokens bool) {
	if len(s.now) > 0 || s.start < len(s.hist) {
		s.lastLen = len(s.hist) - s.start
	}
	spare := s.past[pastMessages-1][:0]
	copy(s.past[1:], s.past[:pastMessages-1])
	s.past[0], s.now = s.now, spare
	s.sums.begin(s.hist[s.start:])
	s.tokens = tokens
	s.start = len(s.hist)
	s.tail, s.side = tail{}, 0
	s.mode, s.left, s.depth, s.done, s.mark, s.noise = inText, 0, 0, 0, 0, 0
	s.local = s.local[:0]
	s.records.begin()
	s.inAttr = false
	s.key = 1
	s.row, s.json = textRow{}, false
	s.frame = frame{begins: s.start}
	s.open()
}

// frame is the record of a message that is not text. It begins with the message, and again where the first two octets recur.
type frame struct {
	octets bool   // there was an octet that no text has
	begins int    // where in hist
	head   uint32 // its first four octets
}

// put takes octet n of the message, the last of c4.
func (f *frame) put(c4 uint32, n, end int, first []byte) {
	c := byte(c4)
	f.octets = f.octets || c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f || c >= 0xf5
	if n > 4 && byte(c4>>8) == first[0] && c == first[1] {
		f.begins = end - 2
	}
	if end-f.begins <= 4 {
		f.head = mix32(f.head*uint32(btoi(end-f.begins > 2)), uint32(c))
	}
}

func mix32(a, b uint32) uint32 {
	h := a*0x9e3779b1 ^ b*0x85ebca6b
	h ^= h >> 15
	h *= 0x2c1b3c6d
	return h ^ h>>13
}

// open starts a value at the end of the history.
func (s *scan) open() {
	s.value = len(s.hist)
	s.field = 0
	s.outlook.clear()
	s.v2 = s.recent[s.key%valueSlots]
	at := s.known()
	if at > 0 {
		s.v2 = s.records.chain[at-1].span
	}
	if n := len(s.now); n < len(s.past[0]) {
		s.v1 = s.past[0][n]
		if at == 0 || s.v2 == s.v1 {
			s.extrapolate(n)
		}
	}
	if at > 0 && s.expN == 0 && s.v2 != s.v1 {
		if y, decimals, ok := s.forecast(at); ok {
			s.expected(y, decimals, s.hist[s.v2.from:s.v2.to])
		}
	}
	s.v1OK, s.v2OK, s.expOK = s.v1.to > s.v1.from, s.v2.to > s.v2.from, s.expN > 0
}

// shut ends the value and starts the next.
func (s *scan) shut() {
	v := span{int32(s.value), int32(len(s.hist))}
	if len(s.now) < maxValues {
		s.now = append(s.now, v)
	}
	if v.to > v.from {
		s.rememberValue(v)
		s.recent[s.key%valueSlots] = v
		s.side = s.field
	}
}

func letter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

// number reads a decimal of at most 13 digits, perhaps after a letter: its value without the point, and how many decimals it has.
func (s *scan) number(v span) (value int64, decimals int, ok bool) {
	b := s.hist[v.from:v.to]
	if len(b) == 0 || len(b) > 17 {
		return 0, 0, false
	}
	if letter(b[0]) {
		b = b[1:]
	}
	neg := len(b) > 0 && b[0] == '-'
	if neg || len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	digits := 0
	point := -1
	for i, c := range b {
		switch {
		case '0' <= c && c <= '9':
			value = value*10 + int64(c-'0')
			digits++
		case c == '.' && point < 0:
			point = i
		default:
			return 0, 0, false
		}
	}
	if point >= 0 {
		decimals = len(b) - 1 - point
	}
	if neg {
		value = -value
	}
	return value, decimals, 0 < digits && digits <= 13
}

// firstOfThree is the lowest octet that begins a character of three octets in UTF-8.
const firstOfThree = 0xe0

// put adds the octet c.
func (t *tail) put(c byte) {
	t.c8 = t.c8<<8 | t.c4>>24
	t.c4 = t.c4<<8 | uint32(c)
	if c >= firstOfThree { // scripts without spaces: a character is a word
		t.last, t.word = t.word, 0
	}
	switch {
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= 0x80:
		t.word = mix32(t.word, uint32(c))
	default:
		if t.word != 0 {
			t.last, t.word = t.word, 0
		}
		t.sep = c
	}
}

// put adds the octet c.
func (s *scan) put(c byte) {
	ends := s.mode == inText && s.ends(c)
	if ends {
		s.shut()
	}
	s.follow(s.hist, len(s.hist)-s.value, c)
	s.hist = append(s.hist, c)
	s.tail.put(c)
	if !s.tokens && !s.alone {
		s.sums.put(c)
		s.frame.put(s.c4, len(s.hist)-s.start, len(s.hist), s.hist[s.start:])
	}
	s.field = mix32(s.field, uint32(c)+1)
	switch s.mode {
	case inText:
		if s.tokens && isMark(c) {
			s.token(c)
		} else if ends {
			s.delimiter(c)
		} else if !s.tokens {
			s.row.put(c)
		}
	case inArg:
		s.mode = inText
		s.argument(c)
	case inName:
		if c == tokEnd {
			s.named()
		} else {
			s.attr = mix32(s.attr, uint32(c))
		}
	case inIDForm:
		s.form, s.at = c, 0
		switch c & 0x0f {
		case formKnown:
			s.mode = inIDRef
			s.left = -2
		case formHalf:
			s.mode = inIDRef
		case formAny:
			s.mode, s.left = inLength, -1
		default:
			s.mode = inIDType
		}
	case inIDRef:
		s.mode = inIDType
		if s.left == -2 {
			s.text()
		}
	case inIDType:
		s.mode, s.left = inIDOctets, idOctets(s.form)
		if s.left == 0 {
			s.text()
		}
	case inWidth:
		s.mode, s.left, s.at = inLength, 0, 0
	case inLength:
		if s.left < 0 {
			s.left, s.mode = int(c), inIDOctets
		} else if s.at++; s.at == 1 {
			s.left = int(c) << 8
			return
		} else {
			s.left, s.at, s.mode = s.left|int(c), 0, inDER
		}
		if s.left == 0 {
			s.text()
		}
	case inIDOctets, inDER:
		if s.noise > 0 {
			s.noise--
		} else if s.mode == inDER {
			s.noise = keyOctets(s.c8, s.c4)
			if s.at == 0 && c != 0x30 { // not a certificate: keys, hashes, sealed data
				s.noise = s.left
			}
		}
		s.at++
		if s.at >= s.left {
			s.noise = 0
			s.text()
		}
	}
}

// isMark says whether an octet of a token stream is a mark rather than text.
func isMark(c byte) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' }

// text returns to text after a binary run or a mark.
func (s *scan) text() {
	s.mode, s.at, s.left = inText, 0, 0
	s.shut()
	s.open()
}

func (s *scan) token(c byte) {
	s.mark, s.inAttr = c, false
	switch c {
	case tokOpen, tokAttr, tokIndent, tokProlog, tokInner, tokStyle:
		s.mode = inArg
	case tokRaw:
		s.key = mix32(s.parent(), tokRaw)
		s.open()
	case tokCut:
		s.depth = 1
		s.pop()
		s.open()
	case tokInnerEnd:
		s.pop()
		s.open()
	case tokNewTag, tokNewAttr:
		s.mode, s.attr = inName, 0
	case tokID, tokBareID:
		s.mode = inIDForm
	case tokBase64:
		s.mode = inWidth
	case tokClose, tokEmpty:
		s.pop()
		s.open()
	default:
		s.open()
	}
	if s.mode != inText {
		s.value = len(s.hist)
		s.outlook.clear()
		if c == tokID || c == tokBareID || c == tokBase64 {
			s.open()
		}
	}
}

func (e *elements) parent() uint32 {
	if e.depth == 0 {
		return 0
	}
	return e.stack[min(e.depth, maxDepth)-1]
}

// name is the tag's or attribute's name that an octet stands for, and whether it is the document's own.
func (e *elements) name(c byte) (name uint32, own bool) {
	own = c >= localTag
	if own && int(c-localTag) < len(e.local) {
		return e.local[c-localTag], true
	}
	return uint32(c), own
}

func (s *scan) push(tag uint32) {
	key := mix32(s.parent(), tag)
	if s.depth < maxDepth {
		s.stack[s.depth] = key
	}
	s.depth++
	s.key = key
	if s.depth <= maxDepth {
		s.records.names[s.depth] = 0
	}
	s.inAttr = false
}

func (s *scan) pop() {
	closed := s.parent()
	if s.depth > 0 {
		s.depth--
	}
	if s.depth == 0 {
		s.done = len(s.hist)
	}
	s.key = mix32(s.parent(), closed^0x5bd1e995)
}

func (s *scan) argument(c byte) {
	switch s.mark {
	case tokInner:
		s.push(tokInner)
		if s.depth <= maxDepth { // the inner document looks to the model as it does alone
			s.stack[s.depth-1] = 0
		}
		s.key = 1
	case tokOpen:
		tag, _ := s.name(c)
		s.push(tag)
	case tokAttr:
		s.attr, s.inAttr = s.name(c)
		s.key = mix32(s.parent(), s.attr|1<<31)
	}
	s.open()
}

// named ends a name that is spelled out.
func (s *scan) named() {
	s.mode = inText
	if len(s.local) < 256-localTag {
		s.local = append(s.local, s.attr)
	}
	if s.mark == tokNewTag {
		s.push(s.attr)
	} else {
		s.key = mix32(s.parent(), s.attr|1<<31)
		s.inAttr = true
	}
	s.open()
}

// keyOctets is how many octets of an RSA modulus or signature follow these octets of a certificate.
func keyOctets(c8, c4 uint32) int {
	switch {
	case c4 == 0x02818100 || c4 == 0x03818100:
		return 128
	case c4 == 0x82010100 && (c8&0xff == 2 || c8&0xff == 3):
		return 256
	}
	return 0
}
