package compact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// id writes an id at the front of s, and returns its length in s.
func (t *tokenizer) id(s string) int {
	rest, urn := strings.CutPrefix(s, urnText)
	form := byte(0)
	if !strings.HasPrefix(rest, "uuid-") {
		if !strings.HasPrefix(rest, "cbid-") {
			return 0
		}
		form = formCBID
	}
	n := 5
	for n < len(rest) && ('0' <= rest[n] && rest[n] <= '9' || 'A' <= rest[n] && rest[n] <= 'F') {
		n++
	}
	digits := rest[5:n]
	if len(digits) < 4 || len(digits)%2 != 0 || len(digits) > 510 {
		return 0
	}
	whole := rest[:n]
	if urn {
		t.out = append(t.out, tokID)
		n += len(urnText)
	} else {
		t.out = append(t.out, tokBareID)
	}
	if i := index(t.ids, whole); i >= 0 {
		t.out = append(t.out, formKnown, byte(i))
		return n
	}
	t.out = appendIDForm(t.out, digits, form, t.ids)
	if len(t.ids) < countedIDs {
		t.ids = append(t.ids, whole)
	}
	return n
}

func appendIDForm(out []byte, digits string, form byte, ids []string) []byte {
	b, err := hex.DecodeString(digits)
	if err != nil {
		panic("compact: " + err.Error()) // only hexadecimal digits come here
	}
	last := len(b) - 1
	put := func(f byte, from int) []byte {
		return append(append(out, form|f, b[last]), b[from:last]...)
	}
	for f := formNamed; f >= formPeer; f-- {
		if from := len(prefixes[f-1]) / 2; strings.HasPrefix(digits, prefixes[f-1]) && last-from == idOctets(byte(f)) {
			return put(byte(f), from)
		}
	}
	switch {
	case last == 32 && bytes.Equal(b[:16], b[16:32]):
		return put(formDouble, 16)
	case last == 32:
		for i, id := range ids {
			if len(id) >= 5+32 && id[5:5+32] == digits[:32] {
				return append(append(out, form|formHalf, byte(i), b[last]), b[16:last]...)
			}
		}
		return put(formLong, 0)
	case last == 16:
		return put(formShort, 0)
	}
	return append(append(out, form|formAny, byte(len(b))), b...)
}

// base64 writes a base64 text at the front of s, and returns its length in s: up to the end, or to white space that no
// further line of base64 follows. Where ok is false, n octets need not be tried again.
func (t *tokenizer) base64(s string) (n int, ok bool) {
	first := base64Len(s)
	if first < minBase64-4 || first > 0x7f && first < len(s) && s[first] == '\n' {
		return max(first, 1), false
	}
	width := 0
	n = first
	if n < len(s) && s[n] == '\n' && first%4 == 0 {
		for n < len(s) && s[n] == '\n' {
			line := base64Len(s[n+1:])
			if line == 0 || line > first {
				break
			}
			n += 1 + line
			width = first
			if line < first {
				break
			}
		}
	}
	text := s[:n]
	octets, err := base64.StdEncoding.Strict().DecodeString(text) // accepts line feeds
	if err != nil || len(octets) > 0xffff || n < minBase64 {
		return n, false
	}
	if string(appendBase64(nil, octets, width)) != text {
		return n, false
	}
	t.out = append(t.out, tokBase64, byte(width), byte(len(octets)>>8), byte(len(octets)))
	t.out = append(t.out, octets...)
	return n, true
}

func base64Len(s string) int {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '=') {
			return i
		}
	}
	return len(s)
}

// appendBase64 writes lines of width characters, or one line when width is 0.
func appendBase64(dst, octets []byte, width int) []byte {
	text := base64.StdEncoding.EncodeToString(octets)
	for width > 0 && len(text) > width {
		dst = append(append(dst, text[:width]...), '\n')
		text = text[width:]
	}
	return append(dst, text...)
}
