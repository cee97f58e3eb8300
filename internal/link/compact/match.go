package compact

// match is the last place with the same octets before it.
type match struct {
	matchAt    int // where in the history the match goes on; 0 for nowhere
	matchLen   int
	missed     int
	matchRow   int // how good its prediction for this octet is: its entry in Match, how sure it is, and whether it is long
	matchSure  int
	matchLong  int
	matchByte  uint32 // the octet it predicts, with a leading one; 0 once it is wrong
	matchIn    int    // its entry in Match, -1 when it says nothing
	matchTable []int32
	lore       *lore
	inLore     bool // matchAt is in the lore, not in the history
}

// guessed has octets guessed from earlier values, each with a leading one and 0 once wrong, and the sources of the guesses.
type guessed struct {
	guess, guessKind, guessIn [guesses]uint32
	guessing                  bool // a guess is not wrong yet, or was not before this bit
	agreed                    int  // what guesses and match predict of the bit, as one number
}

// guesses sets the octets that the expected number and the earlier value have at this place, and contexts that tell how
// good each guess is.
func (m *model) guesses(v1, exp, next uint32, i int) {
	m.guess = [guesses]uint32{}
	common := uint32(btoi(m.exact))<<2 | uint32(btoi(m.doubt))<<1
	if c := exp & 0x1ff; c > 0 && c < valueEnds {
		near := uint32(3) // how near the next digit is to changing this one
		switch next & 0xff {
		case '0', '1', '8', '9':
			near = 2
		case '2', '7':
			near = 1
		case '3', '4', '5', '6':
			near = 0
		}
		m.guess[0] = 0x100 | (c - 1)
		m.guessKind[0] = (uint32(min(m.expN-i, 8)-1)<<3|common|exp>>9)<<2 | near
	}
	if c := v1 & 0x1ff; c > 0 && c < valueEnds {
		m.guess[1] = 0x100 | (c - 1)
		left := min(int(m.v1.to-m.v1.from)-i, 8) - 1
		m.guessKind[1] = (uint32(left)<<3|common|v1>>9)<<2 | uint32(btoi(m.expN > 0))<<1 | uint32(btoi(m.some))
	}
	if c, kind := m.sums.checksum(); c > 0 {
		m.guess[bySum], m.guessKind[bySum] = 0x100|uint32(c), kind
	}
	m.guessing = true
}

// predictGuesses sets the predictions of the guesses.
func (m *model) predictGuesses() {
	m.agreed = 0
	if !m.guessing {
		return
	}
	m.guessing = false
	for g := range guesses {
		m.agreed *= 3
		m.in[3+g] = 0
		o := m.guess[g] >> (7 - m.nth&7)
		if o>>1 != m.node {
			m.guess[g] = 0
			continue
		}
		bit := int(o & 1)
		m.guessing = true
		m.agreed += 1 + bit
		m.guessIn[g] = (m.guessKind[g]<<2 | uint32(min(m.nth>>1, 3))) & (guessSlots - 1)
		turn := int32(bit) - 1 // -1 where the guess is a zero
		m.in[3+g] = (int32(stretch(int(m.Guess[g][m.guessIn[g]]))) ^ turn) - turn
	}
	m.agreed *= 5
}

// at sets where in the history the match goes on.
func (m *match) at(at, length, missed int) {
	m.matchAt, m.matchLen, m.missed, m.inLore = at, length, missed, false
}

// next is the octet that the match predicts.
func (m *match) next(hist []byte) byte {
	if m.inLore {
		return m.lore.text[m.matchAt]
	}
	return hist[m.matchAt]
}

// follow moves the match on, or finds one in the table by the hash of the last octets.
func (m *match) follow(hist []byte, hash uint32) {
	n := len(hist)
	if m.matchAt > 0 {
		same := m.next(hist) == hist[n-1]
		if same {
			m.matchLen++
			if m.matchLen > 16 {
				m.missed = 0
			}
		} else {
			m.matchLen = 0
			m.missed++
		}
		m.matchAt++
		if m.missed > matchMiss || m.inLore && (!same || m.matchAt >= len(m.lore.text)) {
			m.at(0, 0, 0)
		}
	}
	if n < matchMin {
		return
	}
	if at := int(m.matchTable[hash>>(32-matchBits)]); m.matchLen < matchMin && at > 0 {
		l := 0
		for l < matchMost && l < at && hist[at-1-l] == hist[n-1-l] {
			l++
		}
		if l >= matchMin {
			m.at(at, l, 0)
		}
	}
	m.note(hist, hash)
}

// note records the place of the last octets.
func (m *match) note(hist []byte, hash uint32) {
	if n := len(hist); n >= matchMin {
		m.matchTable[hash>>(32-matchBits)] = int32(n)
	}
}

// weighMatch sets how much the match is worth for the next octet.
func (m *model) weighMatch() {
	n := min(m.matchLen, matchMost)
	bucket := min(n, 15)
	if n >= 16 {
		bucket = 12 + n/4 - 1
	}
	if m.missed > 0 {
		bucket = 24 + min(n, 15) + 16*btoi(m.missed > 2)
	}
	m.matchRow = (bucket*2+btoi(m.mode >= inIDOctets))&(matchSlots/2-1) + matchSlots/2*btoi(m.inLore)
	m.matchSure = 1 + min(n/6, 2)
	m.matchLong = btoi(n >= 16)
}

// predictMatch sets the prediction of the match, and returns how sure it is, from 0 to 3.
func (m *model) predictMatch() int {
	o := m.matchByte >> (7 - m.nth&7)
	if o>>1 != m.node {
		m.matchByte, m.matchIn = 0, -1
		m.in[1], m.in[2] = 0, 0
		return 0
	}
	m.matchIn = m.matchRow
	bit := int(o & 1)
	turn := int32(bit) - 1 // -1 where the match predicts a zero
	st := (int32(stretch(int(m.Match[m.matchRow]))) ^ turn) - turn
	m.in[1], m.in[2] = st, st>>1&-int32(m.matchLong)
	m.agreed += 1 + bit + 2*m.matchLong
	return m.matchSure
}
