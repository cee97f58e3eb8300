package compact

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	_ "embed"
	"errors"
	"slices"
)

// ErrTooLong is returned when expanding would exceed the caller's limit.
var ErrTooLong = errors.New("compact: expands beyond the limit")

// ErrCode is returned for a codec number that this version does not know.
var ErrCode = errors.New("compact: unknown codec")

// ErrModel is returned for a codec that needs a model of another version.
var ErrModel = errors.New("compact: model of another version")

// ErrCorrupt is returned for a code that no coder of this version made.
var ErrCorrupt = errors.New("compact: corrupt")

// Codec is how a text was coded. It is one octet on the wire. Its high half is the model's version, 0 for none.
type Codec byte

const (
	Stored   Codec = 0 // as it is
	Deflated Codec = 1 // RFC 1951 with the dictionary of dictionary.txt
	Tokens   Codec = 2 // ids replaced, then deflated likewise

	Modelled    = modelled + ModelVersion<<4    // by the primed model, octet by octet
	ModelledXML = modelledXML + ModelVersion<<4 // the tokens of an XML document, likewise
	Learned     = learned + ModelVersion<<4     // as Modelled, after the messages before (history.go)
	LearnedXML  = learnedXML + ModelVersion<<4
	Repeated    = repeated + ModelVersion<<4 // a message of the history, once more
	Bulk        = bulk + ModelVersion<<4     // as Modelled, with fewer contexts: for long texts
	Taught      = taught + ModelVersion<<4   // as Modelled, by a model that has read the network's own corpus (netcorpus.go)
	TaughtXML   = taughtXML + ModelVersion<<4
	Kin         = kin + ModelVersion<<4       // as Learned or LearnedXML, after messages of another flow (kin.go)
	Blocks      = blocks + ModelVersion<<4    // by the primed model, block by block (blocks.go): for texts beyond MaxModelled
	Following   = following + ModelVersion<<4 // likewise, after a long message of the flow (long.go)

	// Alike is Learned or LearnedXML: the one of the newest message that the code was made after. No coder returns it. It
	// serves callers that need not say which of the two it is (Alike of History).
	Alike Codec = 0xff
)

const (
	modelled Codec = 3 + iota
	modelledXML
	learned
	learnedXML
	repeated
	bulk
	taught
	taughtXML
	kin
	blocks
	following
)

// MaxModelled is the most octets that the model codes as one text: it takes about a microsecond for each. Longer texts go
// block by block (Blocks).
const MaxModelled = 1 << 20

// MaxDeflated is the most octets that deflate is given.
const MaxDeflated = 32 << 20

// bulkFrom is the size of texts, tokens apart, that are coded with fewer contexts.
const bulkFrom = 16 << 10

//go:embed dictionary.txt
var dictionary []byte

// Coder keeps the compressor's tables between calls; it is not for concurrent use. The zero value is ready.
type Coder struct {
	NoModel bool // the far end has another model (ModelHash): deflate alone
	// Network is the corpus of the network that both ends have. Nil: there is none, and codes made with a corpus give ErrModel.
	Network *NetworkCorpus
	Known   *Known // results of other coders, to be reused; nil: none

	w     *flate.Writer
	buf   bytes.Buffer
	model *model

	made   made   // codes of the last texts
	slow   *slow  // the text that Prepare codes
	beside *model // the model that codes it

	reading *Reading // whose texts are expanded in slices; nil: at once
	left    int      // octets of this slice
	spare   []*model // of readings that have ended
	read    uint64   // octets that readings have taken
}

// Stage is the result of one codec for a text.
type Stage struct {
	Codec  Codec
	Octets int // -1 where the codec does not apply, or was given up for being longer than the text
}

// Append appends text in its smallest coding and returns the codec. The appended octets are never more than those of text.
func (c *Coder) Append(dst, text []byte) ([]byte, Codec) {
	best, codec := c.remembered(text)
	return append(dst, best...), codec
}

// rememberedFrom is the least length of a text whose code is remembered.
const rememberedFrom = 32

// remembered is smallest, with the codes of the last texts remembered.
func (c *Coder) remembered(text []byte) ([]byte, Codec) {
	if c.NoModel || len(text) < rememberedFrom {
		return c.smallest(text, nil)
	}
	sum := sha256.Sum256(text)
	if m, ok := c.made.codes[sum]; ok {
		return m.code, m.codec
	}
	best, codec := c.smallest(text, nil)
	c.made.keep(sum, best, codec)
	return best, codec
}

// Stages returns the result of each codec for text.
func (c *Coder) Stages(text []byte) []Stage {
	var stages []Stage
	c.smallest(text, func(s Stage) { stages = append(stages, s) })
	return stages
}

// smallest returns the smallest coding of text, valid until the next call, and reports each to note.
func (c *Coder) smallest(text []byte, note func(Stage)) ([]byte, Codec) {
	best, codec := text, Stored
	try := func(k Codec, out []byte, ok bool) {
		if !ok {
			out = nil
		}
		if note != nil {
			n := len(out)
			if !ok {
				n = -1
			}
			note(Stage{k, n})
		}
		if ok && len(out) < len(best) {
			best, codec = out, k
		}
	}
	try(Stored, text, true)
	if len(text) == 0 {
		return best, codec
	}
	if !c.NoModel && len(text) >= bulkFrom {
		if len(text) > MaxModelled && len(text) <= MaxDeflated {
			if out := c.deflate(text); len(out) <= leastCode(len(text))/4 { // the blocks' code would be filled up to leastCode, that of tokens to less
				try(Deflated, bytes.Clone(out), true)
				return best, codec
			}
		}
		c.tryModel(text, len(text)-1, note != nil, try)
		if note != nil || mayDeflate(len(text), len(best)) {
			c.tryDeflate(text, try)
		}
		return best, codec
	}
	c.tryDeflate(text, try)
	if !c.NoModel {
		most := len(best) - 1
		if note != nil {
			most = len(text) - 1
		}
		c.tryModel(text, most, note != nil, try)
	}
	return best, codec
}

// mayDeflate says whether deflate may do better than so many octets. Deflate takes time, and hardly ever does better unless
// the model saved little or its blocks have to be filled up.
func mayDeflate(octets, best int) bool {
	return best >= octets/4*3 || octets > MaxModelled && best < octets/slowRatio*2
}

func (c *Coder) tryDeflate(text []byte, try func(k Codec, out []byte, ok bool)) {
	if len(text) > MaxDeflated {
		return
	}
	try(Deflated, bytes.Clone(c.deflate(text)), true)
	if tokens, ok := tokenize(text); ok && len(tokens) < len(text) {
		try(Tokens, bytes.Clone(c.deflate(tokens)), true)
	}
}

// tryModel tries the tokens of a document. It tries the text itself where there are no tokens, or where all is true: tokens
// are nearly always better.
func (c *Coder) tryModel(text []byte, most int, all bool, note func(k Codec, out []byte, ok bool)) {
	if len(text) > MaxModelled {
		w := try{codec: Blocks, image: primed, stream: text}
		out, ok := c.code(&w, most)
		note(w.codec, out, ok)
		return
	}
	done := false
	if tokens, ok := tokenizeXML(text); ok && len(tokens) <= MaxModelled {
		w := c.alone(text, tokens, true)
		out, ok := c.code(&w, most)
		note(w.codec, out, ok)
		done = ok
	}
	if done && !all {
		return
	}
	w := c.alone(text, text, false)
	out, ok := c.code(&w, most)
	note(w.codec, out, ok)
}

// alone is how the model codes a text, or its tokens, without messages before it.
func (c *Coder) alone(text, stream []byte, tokens bool) try {
	if !tokens && len(stream) >= bulkFrom {
		return try{codec: Bulk, image: primed, stream: stream}
	}
	t := try{codec: Modelled, image: c.imageAlone(stream, tokens), stream: stream, tokens: tokens}
	t.head = c.checkOf(t.image, text)
	switch taught := t.image != primed; {
	case taught && tokens:
		t.codec = TaughtXML
	case taught:
		t.codec = Taught
	case tokens:
		t.codec = ModelledXML
	}
	return t
}

// code codes a try at once.
func (c *Coder) code(t *try, most int) ([]byte, bool) {
	c.recall(t, most)
	c.learn(t)
	t.begin(c.model, most)
	t.under.advance(atOnce)
	out, ok := t.under.end()
	c.note(t, out, ok)
	return out, ok
}

// starts returns a model in the state of the try's image. Where the outcome of the try is known, the model stays as it is.
func (t *try) starts(m *model) *model {
	if m == nil {
		m = new(model)
	}
	if t.known == nil {
		m.prime(t.image)
	}
	return m
}

// atOnce is more octets than any text has.
const atOnce = 1 << 40

// begin begins to code a try, after its head.
func (t *try) begin(m *model, most int) {
	most -= len(t.head)
	if t.known != nil {
		t.under = &recalled{t.known, m, slices.Clone(t.head), t.known.octets}
		return
	}
	if t.codec == Blocks || t.codec == Following {
		t.under = codeBlocks(m, t.image, slices.Clone(t.head), t.stream, most)
		return
	}
	if t.codec == Bulk {
		m.most = light
	}
	t.under = m.encoding(slices.Clone(t.head), t.stream, t.tokens, most)
}

// from returns the model, set to the state of an image: both ends start from there.
func (c *Coder) from(i *image) *model {
	if c.model == nil {
		c.model = new(model)
	}
	c.model.prime(i)
	return c.model
}

// Work is how many octets the model has coded, expanded or learned since the Coder was made. Each costs a few microseconds,
// and nothing else in this package costs as much.
func (c *Coder) Work() uint64 {
	work := c.read
	for _, m := range []*model{c.model, c.beside} {
		if m != nil {
			work += m.work
		}
	}
	return work
}

// Deflate returns text deflated with the dictionary, or text itself where that is not shorter. A deflated result is
// valid until the next call. It is for octets that are no XML.
func (c *Coder) Deflate(text []byte) (coded []byte, deflated bool) {
	if len(text) <= MaxDeflated {
		if out := c.deflate(text); len(out) < len(text) {
			return out, true
		}
	}
	return text, false
}

// Deflated returns text deflated with the dictionary, whether that is shorter or not. It is valid until the next call.
func (c *Coder) Deflated(text []byte) []byte { return c.deflate(text) }

// deflate's result is valid until the next call.
func (c *Coder) deflate(text []byte) []byte {
	c.buf.Reset()
	if c.w == nil {
		w, err := flate.NewWriterDict(&c.buf, flate.BestCompression, dictionary)
		if err != nil {
			panic("compact: " + err.Error()) // only for a level out of range
		}
		c.w = w
	} else {
		c.w.Reset(&c.buf)
	}
	c.w.Write(text) // a bytes.Buffer takes all
	c.w.Close()
	return c.buf.Bytes()
}

// Expand undoes Append; limit bounds the octets of the result. Each call sets up a Coder, which costs at most about a third
// of a second: see MaxModelled. Many codes are cheaper with one Coder's Expand.
func Expand(codec Codec, b []byte, limit int) ([]byte, error) {
	var c Coder
	return c.Expand(codec, b, limit)
}

// Expand undoes Append; limit bounds the octets of the result, which is the caller's to keep except that a stored one
// is b.
func (c *Coder) Expand(codec Codec, b []byte, limit int) ([]byte, error) {
	if k, known := codings[codec]; known {
		return k.expand(c, b, limit)
	}
	if low := codec & 0x0f; codec>>4 != 0 && codec>>4 != ModelVersion && modelled <= low && low <= following {
		return nil, ErrModel
	}
	return nil, ErrCode
}

// expandTaught expands a code made with the corpus of the network. ErrModel: this end has another corpus, or the code is damaged.
func (c *Coder) expandTaught(codec Codec, b []byte, limit int) ([]byte, error) {
	if c.Network == nil {
		return nil, ErrModel
	}
	if len(b) < checkOctets {
		return nil, ErrCorrupt
	}
	from := c.Network.taught
	text, err := c.expand(from, nil, codec, b[checkOctets:], min(limit, MaxModelled))
	switch {
	case errors.Is(err, ErrUnfinished):
		return nil, err
	case err != nil || !bytes.Equal(c.checkOf(from, text), b[:checkOctets]):
		return nil, ErrModel
	}
	return text, nil
}

// expand decodes a code that the model made from an image and after a window and, for tokens, writes the XML. Outside Read,
// one slice does the whole.
func (c *Coder) expand(from *image, window []entry, codec Codec, b []byte, limit int) ([]byte, error) {
	r := c.reading
	if r == nil {
		r, c.left = new(Reading), atOnce
	}
	return r.expand(c, from, window, codec, b, limit)
}

// expanding is a text on its way back: advance goes on with it, end returns it.
type expanding interface {
	advance(octets int) (done bool, err error)
	end() ([]byte, error)
}

// expandWith begins to expand a code, with a model that has learned the window.
func (t *try) expandWith(m *model, b []byte, limit int) expanding {
	switch {
	case t.known != nil:
		return &recalledText{recalled{t.known, m, nil, t.known.octets}, t.codec, limit}
	case t.codec == Blocks || t.codec == Following:
		return expandBlocks(m, t.image, b, limit)
	case t.codec == Bulk:
		m.most = light
	}
	return &whole{m.decoding(b, t.codec.tokens(), mostDecoded(t.codec, limit)), t.codec, limit}
}

// whole is a text that is coded as one.
type whole struct {
	*decoding
	codec Codec
	limit int
}

func (w *whole) end() ([]byte, error) { return finished(w.m.hist[w.m.start:], w.codec, w.limit) }

// mostDecoded is the most octets that the model decodes where the text may have limit octets.
func mostDecoded(codec Codec, limit int) int {
	if codec.tokens() { // a document is never shorter than half its tokens: no tokenizer made a longer stream
		return min(2*limit+64, MaxModelled)
	}
	return min(limit, MaxModelled)
}

// finished makes the text from the decoded octets.
func finished(out []byte, codec Codec, limit int) ([]byte, error) {
	if codec.tokens() {
		return expandTokens(out, limit)
	}
	return bytes.Clone(out), nil
}
