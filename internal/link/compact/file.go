package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// ErrFile is returned for octets that are no coded file.
var ErrFile = errors.New("compact: no coded file")

// fileMark begins every coded file. checkedOctets of SHA-256 of the text follow it: on the link the seal (package seal)
// ensures that a code arrives as it was sent, but a file has no seal.
const (
	fileMark      = "\xa1dis1"
	checkedOctets = 8
)

// AppendFile appends text in its smallest coding as a file keeps it: a mark, the codec, the text's length, 8 octets of its
// hash, and the code. It is at most 24 octets longer than text.
func (c *Coder) AppendFile(dst, text []byte) []byte {
	code, codec := c.Append(nil, text)
	sum := sha256.Sum256(text)
	dst = append(append(dst, fileMark...), byte(codec))
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(append(dst, sum[:checkedOctets]...), code...)
}

// ExpandFile undoes AppendFile; limit bounds the octets of the result. It returns ErrFile for octets that are no
// coded file, ErrModel for a file of another version of the model, ErrTooLong beyond the limit, and ErrCorrupt for a damaged
// file. It never returns another text than the one that was coded, except that one of 2^64 damaged files may pass.
func (c *Coder) ExpandFile(b []byte, limit int) ([]byte, error) {
	rest, ok := bytes.CutPrefix(b, []byte(fileMark))
	if !ok || len(rest) == 0 {
		return nil, ErrFile
	}
	codec := Codec(rest[0])
	size, n := binary.Uvarint(rest[1:])
	if n <= 0 || len(rest) < 1+n+checkedOctets {
		return nil, ErrCorrupt
	}
	if size > uint64(max(limit, 0)) {
		return nil, ErrTooLong
	}
	sum, code := rest[1+n:][:checkedOctets], rest[1+n+checkedOctets:]
	text, err := c.Expand(codec, code, int(size))
	if _, is := codings[codec].(deflated); is && err == nil {
		if _, behind, _ := inflated(code, int(size)); len(behind) > 0 {
			return nil, ErrCorrupt
		}
	}
	switch {
	case errors.Is(err, ErrModel):
		return nil, err
	case err != nil:
		return nil, ErrCorrupt
	}
	if got := sha256.Sum256(text); uint64(len(text)) != size || !bytes.Equal(got[:checkedOctets], sum) {
		return nil, ErrCorrupt
	}
	return text, nil
}
