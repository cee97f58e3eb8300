package glance

import (
	"strings"
	"unicode"
)

// mostRunes is how much of a text is shown.
const mostRunes = 240

// Plain is a text that somebody else has chosen, fit for a terminal and a page: what is not printed, moves the cursor or turns
// the direction of writing becomes U+FFFD, and what is too long is cut.
func Plain(s string) string {
	n := 0
	var b strings.Builder
	for _, r := range s {
		if n++; n > mostRunes {
			b.WriteRune('…')
			break
		}
		if !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
	}
	return b.String()
}
