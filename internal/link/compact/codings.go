package compact

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
)

// coding is one way to make a text small. The table below has the codings by number. A developer who adds one gives it a
// number that was never used, and says in Coder.smallest, AppendAfter or AppendKin when it is tried.
type coding interface {
	// String is its name for people.
	String() string
	// expand gives the text that a code stands for, of at most limit octets; the caller may keep it. ErrHistory: it needs
	// the messages that the code was made after.
	expand(c *Coder, code []byte, limit int) ([]byte, error)
}

// codings are all codings that this version knows.
var codings = map[Codec]coding{
	Stored:      stored{},
	Deflated:    deflated{"deflated", false},
	Tokens:      deflated{"tokens", true},
	Modelled:    modelCoding{name: "modelled", number: Modelled},
	ModelledXML: modelCoding{name: "modelled-xml", number: ModelledXML, tokens: true},
	Bulk:        modelCoding{name: "bulk", number: Bulk},
	Blocks:      modelCoding{name: "blocks", number: Blocks},
	Taught:      taughtCoding{modelCoding{name: "taught", number: Taught}},
	TaughtXML:   taughtCoding{modelCoding{name: "taught-xml", number: TaughtXML, tokens: true}},
	Learned:     learnedCoding{modelCoding{name: "learned", head: 1 + checkOctets}},
	LearnedXML:  learnedCoding{modelCoding{name: "learned-xml", head: 1 + checkOctets, tokens: true}},
	Repeated:    repeatedCoding{},
	Kin:         learnedCoding{modelCoding{name: "kin", head: 2 + checkOctets}},
	Following:   learnedCoding{modelCoding{name: "following", head: 1 + checkOctets}},
	Alike:       alikeCoding{learnedCoding{modelCoding{name: "alike", head: 1 + checkOctets}}},
}

// String is the codec's name for operators.
func (c Codec) String() string {
	if k, known := codings[c]; known {
		return k.String()
	}
	return fmt.Sprintf("codec-%d", byte(c))
}

// ofModel is the model's part of a coding; false: it takes no model.
func (c Codec) ofModel() (modelCoding, bool) {
	m, ok := codings[c].(interface{ model() modelCoding })
	if !ok {
		return modelCoding{}, false
	}
	return m.model(), true
}

// ByModel says whether expanding a code takes the model, which is slow.
func (c Codec) ByModel() bool {
	_, ok := c.ofModel()
	return ok
}

// tokens says whether the model coded tokens.
func (c Codec) tokens() bool {
	m, _ := c.ofModel()
	return m.tokens
}

// HeadOctets is the least number of octets of a code that name the messages it was made after.
func HeadOctets(codec Codec) int {
	if codec == Repeated {
		return 1 + checkOctets
	}
	m, _ := codec.ofModel()
	return m.head
}

// stored is the text as it is.
type stored struct{}

func (stored) String() string { return "stored" }

func (stored) expand(_ *Coder, code []byte, limit int) ([]byte, error) {
	if len(code) > limit {
		return nil, ErrTooLong
	}
	return code, nil
}

// deflated is RFC 1951 with the dictionary, of the text or of the text with ids replaced.
type deflated struct {
	name string
	ids  bool
}

func (d deflated) String() string { return d.name }

// expand accepts zeros after the code: package envelope appends them to a code that would otherwise expand too much for its length.
func (d deflated) expand(_ *Coder, code []byte, limit int) ([]byte, error) {
	text, behind, err := inflated(code, limit)
	switch {
	case err != nil:
		return nil, err
	case len(bytes.TrimRight(behind, "\x00")) > 0:
		return nil, ErrCorrupt
	case d.ids:
		return detokenize(text, limit)
	}
	return text, nil
}

// inflated returns the text that deflate has coded, of at most limit octets, and the octets after the code.
func inflated(code []byte, limit int) (text, behind []byte, err error) {
	in := bytes.NewReader(code) // a bytes.Reader is read octet by octet: the octets after the code are left in it
	text, err = io.ReadAll(io.LimitReader(flate.NewReaderDict(in, dictionary), int64(limit)+1))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	if len(text) > limit {
		return nil, nil, ErrTooLong
	}
	return text, code[len(code)-in.Len():], nil
}

// modelCoding is by the model that is built in.
type modelCoding struct {
	name   string
	number Codec
	tokens bool // of an XML document
	head   int  // least number of octets of a code that name the messages it was made after
}

func (m modelCoding) String() string     { return m.name }
func (m modelCoding) model() modelCoding { return m }

func (m modelCoding) expand(c *Coder, code []byte, limit int) ([]byte, error) {
	return c.expand(primed, nil, m.number, code, limit)
}

// taughtCoding is by a model that has read the corpus of the network.
type taughtCoding struct{ modelCoding }

func (m taughtCoding) expand(c *Coder, code []byte, limit int) ([]byte, error) {
	return c.expandTaught(m.number, code, limit)
}

// learnedCoding is the model's, after messages that both ends hold: ExpandAfter and ExpandKin.
type learnedCoding struct{ modelCoding }

func (learnedCoding) expand(*Coder, []byte, int) ([]byte, error) { return nil, ErrHistory }

// repeatedCoding is a message of the history once more. It takes no model.
type repeatedCoding struct{}

func (repeatedCoding) String() string                             { return "repeated" }
func (repeatedCoding) expand(*Coder, []byte, int) ([]byte, error) { return nil, ErrHistory }

// alikeCoding is no coding of its own: it says that the coding is that of the message before.
type alikeCoding struct{ learnedCoding }

func (alikeCoding) expand(*Coder, []byte, int) ([]byte, error) { return nil, ErrCode }
