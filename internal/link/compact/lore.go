package compact

// lore is the corpus as the model has read it. A text without a match in the history may have one here. Nothing changes the
// lore once the model is primed.
type lore struct {
	text  string
	table []int32
}

const (
	loreBits = 17
	loreMin  = 6 // octets that a match in the lore must have before it
)

func newLore(text string) *lore {
	l := &lore{table: make([]int32, 1<<loreBits)}
	l.append(text)
	return l
}

// append adds text that the model has read.
func (l *lore) append(text string) {
	from := len(l.text)
	l.text += text
	var c4, c8 uint32
	for i := range len(text) {
		c8 = c8<<8 | c4>>24
		c4 = c4<<8 | uint32(text[i])
		if i+1 >= loreMin {
			l.table[loreHash(c4, c8)] = int32(from + i + 1)
		}
	}
}

func loreHash(c4, c8 uint32) uint32 { return mix32(c4, c8&0xffff) >> (32 - loreBits) }

// recall finds the place in the lore with the same octets as the end of a text, and how many agree; 0: no place.
func (l *lore) recall(text []byte, hash uint32) (at, length int) {
	at = int(l.table[hash])
	for length < matchMost && length < at && length < len(text) && l.text[at-1-length] == text[len(text)-1-length] {
		length++
	}
	if length < loreMin || at >= len(l.text) {
		return 0, 0
	}
	return at, length
}
