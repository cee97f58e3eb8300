package compact

// Texts other than XML have values too: fields of lines, members of JSON. This file finds where values end, and names them.

// textRow is what is known of the current line of a text.
type textRow struct {
	n       int  // octets and delimiters
	word    bool // the line is capital letters until now, perhaps after $ or !
	slashes bool // its fields stand between slashes
}

// Octets of the first word of a line whose fields stand between slashes: CTC/... , GENTEXT/...
const (
	leastWord = 2
	mostWord  = 12
)

// put adds an octet of a value.
func (r *textRow) put(c byte) {
	r.word = (r.n == 0 || r.word) && ('A' <= c && c <= 'Z' || r.n == 0 && (c == '$' || c == '!'))
	r.n++
}

// delimits says whether a slash ends a value.
func (r *textRow) delimits() bool {
	return r.slashes || r.word && leastWord <= r.n && r.n <= mostWord
}

// ends says whether c ends the current value.
func (s *scan) ends(c byte) bool {
	if s.tokens {
		return isMark(c)
	}
	switch c {
	case ';', '=', ',', '\n', '<', '>', '"', '|', '{', '}', '[', ']':
		return true
	case ':': // after a name of JSON
		return byte(s.c4) == '"'
	case ' ': // after the colon of JSON
		return s.json && byte(s.c4) == ':'
	case '/':
		return s.row.delimits()
	}
	return false
}

// delimiter names the value that starts after c in a text: by its name, where it has one, else by the values before it in its line.
func (s *scan) delimiter(c byte) {
	octets := len(s.hist) - 1 - s.value // of the value that has ended
	first := byte(0)
	if octets > 0 {
		first = s.hist[s.value]
	}
	switch {
	case c == ':':
		s.key, s.hasName, s.json = mix32(s.side, uint32(c)), true, true
	case c == ' ':
	case c == '"' && s.json && s.hasName && octets == 0: // the value is a string
		s.key = mix32(s.key, uint32(c))
	default:
		nameColumn(s, c, first, s.row.word && s.row.n > 0 && octets == s.row.n && s.records.values <= 1)
	}
	s.open()
}

// nameColumn names the value after c. head: the value that has ended is the first word of its line.
func nameColumn(s *scan, c, first byte, head bool) {
	switch {
	case c == '=' || c == '>':
		s.key = mix32(s.side, uint32(c))
	case c == '\n':
		s.key = rowKey
	case head:
		s.key = mix32(s.side, uint32(c))
	case 'A' <= first && first <= 'Z' && !s.hasName:
		s.key = mix32(uint32(first), uint32(c))
	default:
		s.key = mix32(s.key, uint32(c))
	}
	s.hasName = c == '='
	s.row = textRow{n: s.row.n + 1, slashes: s.row.slashes || c == '/'}
	if c == '\n' {
		s.row = textRow{}
	}
	if c == '\n' || c == '{' {
		s.records.newLine()
	}
}

// rowKey names the first value of a line.
const rowKey = 2
