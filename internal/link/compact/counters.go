package compact

import "slices"

// Counters stand in lines. A model reads those that it was primed with, packed, and keeps those that it has asked for in
// full: what it learns stays with it, and to forget it costs nothing.

// The table of counters has 2^primedLines lines.
const (
	primedLines = 17
	lineSlots   = 16 // counters of a line: those of the four bits of half an octet in several contexts
	packedLine  = 2 * lineSlots
	noSlot      = 1 << 31 // stands for a slot of no counter
	noneYet     = 0x8000 << 16
	idxBits     = primedLines
)

// counters are those of a model. A counter is a probability of 16 bits, a count of 8 and a check of 8.
type counters struct {
	base string   // packed lines; "" for none
	over []uint32 // counters of the lines asked for,
	own  []uint16 // by line: which of them are not the base's any more
	at   []uint32 // by line of the base: in which round it was asked for, and which line of over it is then
	gen  uint32   // round
	used uint32   // lines of over
}

// forget goes back to the base.
func (c *counters) forget(base string) {
	c.base = base
	if c.at == nil {
		c.at = make([]uint32, 1<<primedLines)
	}
	c.used = 0
	if c.gen++; c.gen == 1<<(32-idxBits) {
		clear(c.at)
		c.gen = 1
	}
}

// line is which line of the counters' own a line of the base is now, and which of the base.
func (c *counters) line(hash uint32) (own, base uint32) {
	base = hash & (1<<primedLines - 1)
	if e := c.at[base]; e>>idxBits == c.gen {
		return e & (1<<idxBits - 1), base
	}
	if int(c.used) == len(c.own) {
		c.own = append(c.own, make([]uint16, max(1<<12, len(c.own)))...)
		c.over = append(c.over, make([]uint32, len(c.own)*lineSlots-len(c.over))...)
	}
	own = c.used
	c.used++
	c.own[own] = 0
	c.at[base] = c.gen<<idxBits | own
	return own, base
}

// read is counter i of a line.
func (c *counters) read(own, base, i uint32) uint32 {
	if c.own[own]>>i&1 > 0 {
		return c.over[own*lineSlots+i]
	}
	return c.primed(base, i)
}

func (c *counters) primed(base, i uint32) uint32 {
	at := int(base*packedLine + 2*i)
	if at+1 >= len(c.base) {
		return 0
	}
	return states[c.base[at]] | uint32(c.base[at+1])
}

// write sets a counter of an own line, both in one number: line times lineSlots and which.
func (c *counters) write(slot, v uint32) {
	c.over[slot] = v
	c.own[slot/lineSlots] |= 1 << (slot % lineSlots)
}

// pack returns all lines, packed.
func (c *counters) pack() []byte {
	out := make([]byte, 0, packedLine<<primedLines)
	for n := range uint32(1 << primedLines) {
		e := c.at[n]
		for i := range uint32(lineSlots) {
			v := c.primed(n, i)
			if e>>idxBits == c.gen {
				v = c.read(e&(1<<idxBits-1), n, i)
			}
			s := packedState(v)
			if s == 0 {
				v = 0
			}
			out = append(out, s, byte(v))
		}
	}
	return out
}

// stateCounts are the counts that a packed counter can have. Of the first three every probability that there can be is
// kept, of the others stateLevels.
var stateCounts = [...]uint32{1, 2, 3, 4, 7, 12, 20, 30}

const stateLevels = 48

// states are the counters, without their checks, that one octet stands for: 0 for none.
var states = makeStates()

func makeStates() (list [256]uint32) {
	n := 1
	for _, count := range stateCounts {
		var levels []uint32
		if count <= 3 {
			levels = []uint32{0x8000}
			for c := range count {
				var next []uint32
				for _, p := range levels {
					next = append(next, uint32(toward(int32(p), 0, c)), uint32(toward(int32(p), 65535, c)))
				}
				levels = next
			}
			slices.Sort(levels)
		} else {
			for i := range stateLevels {
				levels = append(levels, uint32(squash((2*i-stateLevels+1)*stretchMax/stateLevels)))
			}
		}
		for _, p := range levels {
			list[n] = p<<16 | count<<8
			n++
		}
	}
	return list
}

// toward is where a probability goes that was count times updated.
func toward(p, target int32, count uint32) int32 {
	return p + int32(int64(target-p)*int64(rates[count])>>16)
}

// packedState is the octet that comes nearest to a counter.
func packedState(v uint32) byte {
	count := v >> 8 & 0xff
	if count == 0 {
		return 0
	}
	best, least := 0, 1<<30
	from := 1
	for i, c := range stateCounts {
		n := stateLevels
		if c <= 3 {
			n = 1 << c
		}
		if i+1 == len(stateCounts) || count < stateCounts[i+1] {
			for s := from; s < from+n; s++ {
				d := stretch(int(states[s]>>16)) - stretch(int(v>>16))
				if d = max(d, -d); d < least {
					best, least = s, d
				}
			}
			break
		}
		from += n
	}
	return byte(best)
}
