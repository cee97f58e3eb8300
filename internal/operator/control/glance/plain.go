package glance

import (
	"strings"
	"unicode"
)

// mostRunes is how much of a text is shown.
const mostRunes = 240

// blank are letters, marks and symbols that count as printed and show nothing: fillers of Hangul, a pattern of Braille without dots,
// and joiners.
var blank = map[rune]bool{0x34f: true, 0x115f: true, 0x1160: true, 0x17b4: true, 0x17b5: true, 0x2800: true, 0x3164: true, 0xffa0: true}

// Shown says that a character is seen where it stands, on a terminal and a page: it is printed, and neither moves the cursor nor
// turns the direction of writing. dom.js has the same rule.
func Shown(r rune) bool { return unicode.IsPrint(r) && !blank[r] }

// Cut is a text of at most mostRunes characters; … stands for what is left out.
func Cut(s string) string {
	n := 0
	for i := range s {
		n++
		if n > mostRunes {
			return s[:i] + "…"
		}
	}
	return s
}

// Plain is a text that somebody else has chosen, fit for a terminal and a page: what is not shown becomes U+FFFD, and what is too
// long is cut.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !Shown(r) {
			return unicode.ReplacementChar
		}
		return r
	}, Cut(s))
}
