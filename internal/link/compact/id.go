package compact

import (
	"encoding/hex"
	"errors"
	"strings"
)

// ErrID is returned for octets that are no identifier in compact form.
var ErrID = errors.New("compact: malformed identifier")

// Well-known leading octets of ids (wire 1.2, 1.4), in the order of their number on the wire: 1, 2, 3.
var prefixes = [...]string{
	"59616261646162614A78746150325033",         // world group: every peer id
	"59616261646162614E50472050325033",         // net group: its pipes
	"DEADBEEFDEAFBABAFEEDBABE000000",           // module classes and specs
	"59616261646162614E50472050325033DEADBEEF", // pipes made from well-known names
}

var formats = [...]string{"uuid-", "cbid-"}

// Short ids that are texts of their own.
var words = [...]string{"", "jxta-NetGroup", "jxta-WorldGroup", "jxta-Null"}

const (
	idWord    = 0x00 // low bits: index into words
	idLiteral = 0x40 // the text follows as it is
	idHex     = 0x80 // bits 3-5: prefix number, 0 for none; bit 0: format; octets follow
)

// AppendID appends the unique value of a JXTA id ("cbid-5961…03", "jxta-NetGroup", or any text) in its shortest form.
// It does not delimit itself: the caller carries the length.
func AppendID(dst []byte, id string) []byte {
	for i, w := range words {
		if id == w {
			return append(dst, idWord|byte(i))
		}
	}
	for f, format := range formats {
		digits, ok := strings.CutPrefix(id, format)
		if !ok || len(digits)%2 != 0 || digits != strings.ToUpper(digits) {
			continue
		}
		number := byte(0)
		rest := digits
		for p, prefix := range prefixes {
			if r, ok := strings.CutPrefix(digits, prefix); ok && len(r) < len(rest) {
				number, rest = byte(p+1), r
			}
		}
		octets, err := hex.DecodeString(rest)
		if err != nil {
			break
		}
		return append(append(dst, idHex|number<<3|byte(f)), octets...)
	}
	return append(append(dst, idLiteral), id...)
}

// ParseID is the inverse of AppendID and takes all of b.
func ParseID(b []byte) (string, error) {
	if len(b) == 0 {
		return "", ErrID
	}
	switch kind, rest := b[0], b[1:]; {
	case kind == idLiteral:
		return string(rest), nil
	case kind&idHex != 0:
		f, p := int(kind&7), int(kind>>3&7)
		if kind&0x40 != 0 || f >= len(formats) || p > len(prefixes) {
			return "", ErrID
		}
		id := formats[f]
		if p > 0 {
			id += prefixes[p-1]
		}
		return id + strings.ToUpper(hex.EncodeToString(rest)), nil
	case int(kind) < len(words) && len(rest) == 0:
		return words[kind], nil
	}
	return "", ErrID
}
