package cli

import (
	"bytes"
	"testing"
	"unicode"

	"aldis/internal/lab/check"
)

// evil is a name that clears the screen, sets colours with one octet of C1, and turns the direction of writing.
const evil = "a\x1b[2J\u009b31m\u202eb\x7f\r"

// harmless checks that a text has no control characters that a terminal obeys.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			t.Errorf("%s has %U:\n%q", what, r, text)
			return
		}
	}
}

// Text that is written octet by octet becomes as harmless as text written at once.
func TestPlainOctets(t *testing.T) {
	var b bytes.Buffer
	p := NewPlain(&b)
	for _, octet := range []byte("Süd " + evil + " 🚢\xff") {
		p.Write([]byte{octet})
	}
	harmless(t, "what came octet by octet", b.String())
	check.Contains(t, "what came octet by octet", b.String(), "Süd a\uFFFD[2J\uFFFD31m\uFFFDb\uFFFD\uFFFD 🚢")
}
