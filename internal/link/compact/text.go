package compact

import (
	"bytes"
	"strings"
)

// In a document, the text of an id is written as idMark, one octet of length, and AppendID's octets. Texts that contain the
// mark itself are left alone: XML 1.0 does not allow it.
const idMark = 0x01

var urn = []byte("urn:jxta:")

// tokenize replaces the ids in an XML text. ok is false when the text has to travel unchanged.
func tokenize(text []byte) (out []byte, ok bool) {
	if bytes.IndexByte(text, idMark) >= 0 {
		return nil, false
	}
	out = make([]byte, 0, len(text))
	for {
		at := bytes.Index(text, urn)
		if at < 0 {
			return append(out, text...), true
		}
		end := at + len(urn)
		for end < len(text) && idOctet(text[end]) {
			end++
		}
		id := AppendID(nil, string(text[at+len(urn):end]))
		out = append(out, text[:at]...)
		if id[0] == idLiteral || len(id) > 127 {
			out = append(out, text[at:end]...)
		} else {
			out = append(append(out, idMark, byte(len(id))), id...)
		}
		text = text[end:]
	}
}

// idOctet says whether c may stand in an id's unique value.
func idOctet(c byte) bool {
	return c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// detokenize undoes tokenize; it refuses to grow beyond limit octets.
func detokenize(b []byte, limit int) ([]byte, error) {
	var out strings.Builder
	for {
		at := bytes.IndexByte(b, idMark)
		if at < 0 {
			at = len(b)
		}
		if out.Len()+at > limit {
			return nil, ErrTooLong
		}
		out.Write(b[:at])
		if at == len(b) {
			return []byte(out.String()), nil
		}
		b = b[at+1:]
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return nil, ErrID
		}
		id, err := ParseID(b[1 : 1+int(b[0])])
		if err != nil {
			return nil, err
		}
		out.Write(urn)
		out.WriteString(id)
		b = b[1+int(b[0]):]
	}
}
