package compact

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
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

	// Alike is Learned or LearnedXML, whichever the newest message has that the code was made after. No coder answers
	// it: it is for those who need not tell which of the two (Alike of History).
	Alike Codec = 0xff
)

const (
	modelled Codec = 3 + iota
	modelledXML
	learned
	learnedXML
	repeated
	bulk
)

func (c Codec) String() string {
	switch c {
	case Stored:
		return "stored"
	case Deflated:
		return "deflated"
	case Tokens:
		return "tokens"
	case Modelled:
		return "modelled"
	case ModelledXML:
		return "modelled-xml"
	case Learned:
		return "learned"
	case LearnedXML:
		return "learned-xml"
	case Repeated:
		return "repeated"
	case Bulk:
		return "bulk"
	}
	return fmt.Sprintf("codec-%d", byte(c))
}

// MaxModelled is the most octets that the model is asked for, in one message: it takes about a microsecond for each. The
// texts of a message on the link have no more either (package envelope).
const MaxModelled = 1 << 20

// MaxDeflated is the most octets that are tried at all; more are stored.
const MaxDeflated = 32 << 20

// bulkFrom is the size of texts, tokens apart, that are coded with fewer contexts.
const bulkFrom = 16 << 10

//go:embed dictionary.txt
var dictionary []byte

// Coder keeps the compressor's tables between calls; it is not for concurrent use. The zero value is ready.
type Coder struct {
	NoModel bool // the far end has another model (ModelHash): deflate alone

	w     *flate.Writer
	buf   bytes.Buffer
	model *model

	made   made   // codes of the last texts
	slow   *slow  // the text that Prepare codes
	beside *model // with this

	reading *Reading // whose texts are expanded in slices; nil: at once
	left    int      // octets of this slice
	spare   []*model // of readings that have ended
	read    uint64   // octets that readings have taken
}

// Stage is what one codec made of a text.
type Stage struct {
	Codec  Codec
	Octets int // -1 where the codec does not apply, or was given up for being longer than the text
}

// Append appends text in its smallest coding and says which that was. What it appends is never longer than text.
func (c *Coder) Append(dst, text []byte) ([]byte, Codec) {
	best, codec := c.remembered(text)
	return append(dst, best...), codec
}

// rememberedFrom is how long a text is at least whose code is remembered.
const rememberedFrom = 32

// remembered is smallest, which is not asked again for what it was asked a moment ago.
func (c *Coder) remembered(text []byte) ([]byte, Codec) {
	if c.NoModel || len(text) < rememberedFrom || len(text) > MaxModelled {
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

// Stages says what each codec makes of text.
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
	if len(text) > MaxDeflated {
		return best, codec
	}
	if !c.NoModel && len(text) >= bulkFrom && len(text) <= MaxModelled { // deflate takes its time, and hardly ever wins
		c.tryModel(text, len(text)-1, note != nil, try)
		if note == nil && len(best) < len(text)/4*3 {
			return best, codec
		}
		c.tryDeflate(text, try)
		return best, codec
	}
	c.tryDeflate(text, try)
	if !c.NoModel && len(text) <= MaxModelled {
		most := len(best) - 1
		if note != nil {
			most = len(text) - 1
		}
		c.tryModel(text, most, note != nil, try)
	}
	return best, codec
}

func (c *Coder) tryDeflate(text []byte, try func(k Codec, out []byte, ok bool)) {
	try(Deflated, bytes.Clone(c.deflate(text)), true)
	if tokens, ok := tokenize(text); ok && len(tokens) < len(text) {
		try(Tokens, bytes.Clone(c.deflate(tokens)), true)
	}
}

// tryModel tries the tokens of a document, and the text itself where there are none or all is asked for: tokens are
// nearly always the better way.
func (c *Coder) tryModel(text []byte, most int, all bool, try func(k Codec, out []byte, ok bool)) {
	done := false
	if tokens, ok := tokenizeXML(text); ok && len(tokens) <= MaxModelled {
		out, ok := c.primed().encode(nil, tokens, true, most)
		try(ModelledXML, out, ok)
		done = ok
	}
	if done && !all {
		return
	}
	codec, m := Modelled, c.primed()
	if len(text) >= bulkFrom {
		codec, m.used = Bulk, light
	}
	out, ok := m.encode(nil, text, false, most)
	try(codec, out, ok)
}

// primed returns the model as both ends start from it.
func (c *Coder) primed() *model {
	if c.model == nil {
		c.model = new(model)
	}
	c.model.prime(primed)
	return c.model
}

// Work is how many octets the model has coded, expanded or learned since the Coder was made: what it does costs a few
// microseconds for each, and nothing else here costs as much.
func (c *Coder) Work() uint64 {
	work := c.read
	for _, m := range []*model{c.model, c.beside} {
		if m != nil {
			work += m.work
		}
	}
	return work
}

// ByModel says whether expanding a code takes the model, which is slow.
func (c Codec) ByModel() bool {
	switch c {
	case Modelled, ModelledXML, Learned, LearnedXML, Bulk, Alike:
		return true
	}
	return false
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

// Expand undoes Append; limit bounds the octets of the result. It costs at most about a third of a second besides:
// see MaxModelled. Many codes are cheaper with one Coder's Expand.
func Expand(codec Codec, b []byte, limit int) ([]byte, error) {
	var c Coder
	return c.Expand(codec, b, limit)
}

// Expand undoes Append; limit bounds the octets of the result, which is the caller's to keep except that a stored one
// is b.
func (c *Coder) Expand(codec Codec, b []byte, limit int) ([]byte, error) {
	switch codec {
	case Stored:
		if len(b) > limit {
			return nil, ErrTooLong
		}
		return b, nil
	case Deflated, Tokens:
		r := io.LimitReader(flate.NewReaderDict(bytes.NewReader(b), dictionary), int64(limit)+1)
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrCorrupt, err)
		}
		if len(text) > limit {
			return nil, ErrTooLong
		}
		if codec == Tokens {
			return detokenize(text, limit)
		}
		return text, nil
	case Modelled, ModelledXML:
		return c.expand(nil, codec, b, limit)
	case Bulk:
		return c.expand(nil, codec, b, limit)
	case Learned, LearnedXML, Repeated:
		return nil, ErrHistory
	}
	if low := codec & 0x0f; codec>>4 != 0 && codec>>4 != ModelVersion && modelled <= low && low <= bulk {
		return nil, ErrModel
	}
	return nil, ErrCode
}

// tokens says whether the model coded tokens.
func (c Codec) tokens() bool { return c == ModelledXML || c == LearnedXML }

// expand decodes what the model has coded after a window and, for tokens, writes the XML.
func (c *Coder) expand(window []entry, codec Codec, b []byte, limit int) ([]byte, error) {
	if c.reading != nil {
		return c.reading.expand(c, window, codec, b, limit)
	}
	m := c.learned(window)
	if codec == Bulk {
		m.used = light
	}
	out, err := m.decode(b, codec.tokens(), mostDecoded(codec, limit))
	if err != nil {
		return nil, err
	}
	return finished(out, codec, limit)
}

// mostDecoded is the most octets that the model is asked for where the text may have limit.
func mostDecoded(codec Codec, limit int) int {
	if codec.tokens() { // a document is never shorter than half its tokens; what is, no tokenizer made
		return min(2*limit+64, MaxModelled)
	}
	return min(limit, MaxModelled)
}

// finished makes a text of what was decoded.
func finished(out []byte, codec Codec, limit int) ([]byte, error) {
	if codec.tokens() {
		return expandTokens(out, limit)
	}
	return bytes.Clone(out), nil
}
