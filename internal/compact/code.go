package compact

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"errors"
	"fmt"
	"io"
)

// ErrTooLong is returned when expanding would exceed the caller's limit.
var ErrTooLong = errors.New("compact: expands beyond the limit")

// ErrCode is returned for a codec number that this version does not know.
var ErrCode = errors.New("compact: unknown codec")

// Codec is how a text was coded. It is one octet on the wire.
type Codec byte

const (
	Stored   Codec = 0 // as it is
	Deflated Codec = 1 // RFC 1951 with the dictionary of dictionary.txt
	Tokens   Codec = 2 // ids replaced, then deflated likewise
)

//go:embed dictionary.txt
var dictionary []byte

// Coder keeps the compressor's tables between calls; it is not for concurrent use. The zero value is ready.
type Coder struct {
	w   *flate.Writer
	buf bytes.Buffer
}

// Append appends text in its smallest coding and says which that was. What it appends is never longer than text.
func (c *Coder) Append(dst, text []byte) ([]byte, Codec) {
	best, codec := text, Stored
	if out := c.deflate(text); len(out) < len(best) {
		best, codec = bytes.Clone(out), Deflated
	}
	if tokens, ok := tokenize(text); ok && len(tokens) < len(text) {
		if out := c.deflate(tokens); len(out) < len(best) {
			best, codec = out, Tokens
		}
	}
	return append(dst, best...), codec
}

// Deflate returns text deflated with the dictionary, or text itself where that is not shorter. A deflated result is
// valid until the next call. It is for octets that are no XML.
func (c *Coder) Deflate(text []byte) (coded []byte, deflated bool) {
	if out := c.deflate(text); len(out) < len(text) {
		return out, true
	}
	return text, false
}

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

// Expand undoes Append; limit bounds the octets of the result.
func Expand(codec Codec, b []byte, limit int) ([]byte, error) {
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
			return nil, fmt.Errorf("compact: %w", err)
		}
		if len(text) > limit {
			return nil, ErrTooLong
		}
		if codec == Tokens {
			return detokenize(text, limit)
		}
		return text, nil
	}
	return nil, ErrCode
}
