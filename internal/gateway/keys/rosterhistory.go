package keys

import "aldis/internal/link/seal"

// rosterHistory is which rosters a node keeps: the newest, and of the three before it those that it was given. A node that was off the air
// for one of them lacks it, and cannot read datagrams that are sealed for all with it.
type rosterHistory struct {
	newest uint32
	before uint8  // bit i: it has newest-1-i
	mark   uint16 // of the newest (roster.Mark); 0: not known
}

const (
	shelfBefore = seal.MaxEpochs - 1
	shelfSays   = 1 << shelfBefore // of the word: a node with a roster says never 0
	shelfBits   = shelfBefore + 1  // of the word, below the serial
)

// has says that the node keeps the roster of a serial.
func (s rosterHistory) has(serial uint32) bool {
	switch d := s.newest - serial; {
	case serial == 0 || serial > s.newest:
		return false
	case d == 0:
		return true
	default:
		return d <= shelfBefore && s.before>>(d-1)&1 == 1
	}
}

// with is the history with one roster more.
func (s rosterHistory) with(serial uint32) rosterHistory {
	switch {
	case s.newest == 0:
		return rosterHistory{newest: serial}
	case serial > s.newest:
		d := serial - s.newest
		if d > shelfBefore {
			return rosterHistory{newest: serial}
		}
		return rosterHistory{newest: serial, before: (s.before<<d | 1<<(d-1)) & (1<<shelfBefore - 1)}
	case serial < s.newest && s.newest-serial <= shelfBefore:
		s.before |= 1 << (s.newest - serial - 1)
	}
	return s
}

// word is the history as a HELLO says it: the low twelve bits of the newest serial, a one, and before.
func (s rosterHistory) word() uint16 {
	if s.newest == 0 {
		return 0
	}
	return uint16(s.newest)<<shelfBits | shelfSays | uint16(s.before)
}

// parseShelf reads a word of a peer whose newest serial is within 2,047 of near. Zero says nothing.
func parseShelf(word uint16, near uint32) (s rosterHistory, ok bool) {
	if word&shelfSays == 0 {
		return s, false
	}
	ahead := int16(word&^(1<<shelfBits-1)-uint16(near)<<shelfBits) >> shelfBits
	serial := int64(near) + int64(ahead)
	if serial <= 0 || serial > int64(^uint32(0)) {
		return s, false
	}
	return rosterHistory{newest: uint32(serial), before: uint8(word) & (shelfSays - 1)}, true
}
