package cli

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"aldis/internal/operator/control/glance"
)

// Printable is a text of which parts were chosen by others, fit for a terminal: what is not shown (glance.Shown) becomes U+FFFD.
// Ends of lines and tabs stay.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !glance.Shown(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// plainText is a writer for people: what goes through it is printable. Names are chosen by peers, and errors may have anything in
// them.
type plainText struct {
	io.Writer
	rest []byte // the beginning of a character
}

// NewPlain is a writer whose text is fit for a terminal before w has it.
func NewPlain(w io.Writer) *plainText { return &plainText{Writer: w} }

// Write writes what is whole of b and of the rest before it.
func (p *plainText) Write(b []byte) (int, error) {
	text := append(p.rest, b...)
	end := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if tail := text[len(text)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				end -= back
			}
			break
		}
	}
	p.rest = append([]byte(nil), text[end:]...)
	_, err := io.WriteString(p.Writer, Printable(string(text[:end])))
	return len(b), err
}
