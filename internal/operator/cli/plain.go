package cli

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"aldis/internal/operator/control/glance"
)

// Printable makes a text safe for a terminal, though others have chosen parts of it: characters that are not visible
// (glance.Shown) become U+FFFD. Line ends and tabs stay.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !glance.Shown(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// plainText is a writer for people: its output is printable. Peers choose their names, and errors may contain anything.
type plainText struct {
	io.Writer
	rest []byte // the beginning of a character
}

// NewPlain returns a writer that makes text safe for a terminal before w gets it.
func NewPlain(w io.Writer) *plainText { return &plainText{Writer: w} }

// Write writes the whole characters of the kept rest and of b, and keeps the rest.
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
