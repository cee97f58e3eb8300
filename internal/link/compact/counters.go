package compact

import "slices"

// Counters stand in lines. The primed lines are packed. A model writes a line in full when it first uses it, so what it
// learns stays with it, and forgetting costs nothing.

// The table of counters has 2^primedLines lines.
const (
	primedLines = 18
	lineSlots   = 16 // counters of a line: those of the four bits of half an octet in several contexts
	packedLine  = 2 * lineSlots
	noSlot      = 1 << 31 // a slot without a counter
	noneYet     = 0x8000 << 16
	idxBits     = primedLines + 1 // of the number of a line in over: there is one more
)

// counters are the counters of a model. A counter is a probability of 16 bits, a count of 8 and a check of 8.
type counters struct {
	base string   // packed primed lines; "" for none
	over []uint32 // the lines used in this round, in full; the first belongs to no context
	at   *lineTable
	gen  uint32 // round
	used uint32 // slots of over
}

// lineTable has, for each line of the base, the round in which it was last used, and its place in over then, in lines.
type lineTable [1 << primedLines]uint32

// forget goes back to the base.
func (c *counters) forget(base string) {
	c.base = base
	if len(base) < packedLine<<primedLines {
		c.base = ""
	}
	if c.at == nil {
		c.at = new(lineTable)
		c.over = make([]uint32, 1<<12*lineSlots)
	}
	c.used = lineSlots
	c.gen++
	if c.gen == 1<<(32-idxBits) {
		clear(c.at[:])
		c.gen = 1
	}
}

// become makes c a copy of others, in the memory of a third.
func (c *counters) become(o *counters, in counters) {
	*c = counters{base: o.base, over: in.over, at: in.at, gen: o.gen, used: o.used}
	if c.at == nil {
		c.at = new(lineTable)
	}
	*c.at = *o.at
	if len(c.over) < len(o.over) {
		c.over = make([]uint32, len(o.over))
	}
	copy(c.over, o.over[:o.used])
}

// line is the first slot in over of the line that a hash selects.
func (c *counters) line(hash uint32) uint32 {
	if e := c.at[hash&(1<<primedLines-1)]; e>>idxBits == c.gen {
		return e & (1<<idxBits - 1) * lineSlots
	}
	return c.bring(hash & (1<<primedLines - 1))
}

// bring writes a line of the base in full.
func (c *counters) bring(n uint32) uint32 {
	c.room()
	line := c.used
	c.used += lineSlots
	c.unpack((*[lineSlots]uint32)(c.over[line:]), n)
	c.at[n] = c.gen<<idxBits | line/lineSlots
	return line
}

// room makes room in over for as many lines as are brought at once.
func (c *counters) room() {
	const most = (1<<primedLines + 1 + lanes) * lineSlots
	if n := len(c.over); int(c.used)+lanes*lineSlots > n {
		c.over = append(make([]uint32, 0, min(2*n, most)), c.over...)[:min(2*n, most)]
	}
}

// unpack writes line n of the base.
func (c *counters) unpack(to *[lineSlots]uint32, n uint32) {
	if c.base == "" {
		clear(to[:])
		return
	}
	packed := c.base[n*packedLine:][:packedLine]
	for i := range to {
		to[i] = states[packed[2*i]] | uint32(packed[2*i+1])
	}
}

// pack returns all lines, packed.
func (c *counters) pack() []byte {
	out := make([]byte, 0, packedLine<<primedLines)
	var line [lineSlots]uint32
	for n := range uint32(1 << primedLines) {
		if e := c.at[n]; e>>idxBits == c.gen {
			line = [lineSlots]uint32(c.over[e&(1<<idxBits-1)*lineSlots:])
		} else {
			c.unpack(&line, n)
		}
		for _, v := range line {
			s := packedState(v)
			if s == 0 {
				v = 0
			}
			out = append(out, s, byte(v))
		}
	}
	return out
}

// stateCounts are the counts that a packed counter can have. For the first three, every possible probability is kept, for
// the others stateLevels.
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

// toward is the next value of a probability that was updated count times.
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
				d = max(d, -d)
				if d < least {
					best, least = s, d
				}
			}
			break
		}
		from += n
	}
	return byte(best)
}
