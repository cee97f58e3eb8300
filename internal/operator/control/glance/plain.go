package glance

import (
	"strings"
	"unicode"
)

// mostRunes is the most characters of a text that are shown.
const mostRunes = 240

// blank are letters, marks and symbols that count as printable but show nothing: fillers of Hangul, a Braille pattern without dots,
// and joiners.
var blank = map[rune]bool{0x34f: true, 0x115f: true, 0x1160: true, 0x17b4: true, 0x17b5: true, 0x2800: true, 0x3164: true, 0xffa0: true}

// Shown says that a character is visible at its place, on a terminal and on a page: it is printable, and neither moves the
// cursor nor turns the direction of writing. dom.js has the same rule.
func Shown(r rune) bool { return unicode.IsPrint(r) && !blank[r] }

// Cut is a text cut to at most mostRunes characters; … replaces the rest.
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

// Plain makes a text that somebody else has chosen safe for a terminal and a page: characters that are not visible become U+FFFD,
// and a text that is too long is cut.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !Shown(r) {
			return unicode.ReplacementChar
		}
		return r
	}, Cut(s))
}
