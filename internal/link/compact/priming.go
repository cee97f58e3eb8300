package compact

import (
	"aldis/internal/link/compact/corpus"
	"fmt"
)

// census finds the contexts that occur in two parts of the corpus at least. Only those get a counter when the model is
// primed: what occurs in one part alone, numbers and names most of all, would take the room of what will occur again.
type census struct {
	part   uint16
	counts bool     // occurrences are counted still
	first  []uint16 // the part that had a context first, by its hash; common for two
}

const (
	censusBits = 25
	inTwoParts = 0xffff
)

// common counts an occurrence, or says whether there were some in two parts. The first bits of the octet are those of its
// first half, once that is known.
func (c *census) common(h, first uint32, context int) bool {
	at := &c.first[mix32(mix32(h, first), uint32(context))>>(32-censusBits)]
	if c.counts {
		switch *at {
		case 0:
			*at = c.part
		case c.part:
		default:
			*at = inTwoParts
		}
		return true
	}
	return *at == inTwoParts
}

// prime returns the model that both ends start from.
func prime(parts []corpus.Part) *model {
	c := &census{counts: true, first: make([]uint16, 1<<censusBits)}
	all := primeWith(parts, c)
	c.counts = false
	m := primeWith(parts, c)
	m.tables, m.census = all.tables, nil
	return m
}

func primeWith(parts []corpus.Part, c *census) *model {
	m := newModel()
	m.steps, m.rate = stepsPriming, 14
	m.lore = newLore("")
	told := map[string]int{}
	m.census = c
	for i, p := range parts {
		c.part = uint16(i + 1)
		m.forget()
		for _, text := range p.Messages {
			if tokens, ok := tokenizeXML(text); ok {
				m.train(tokens, true)
			} else {
				m.train(text, false)
			}
		}
		if told[p.Name] += len(m.hist); told[p.Name] <= mostLore {
			m.lore.tell(string(m.hist))
		}
	}
	m.forget()
	return m
}

// mostLore is the most octets of a kind that the model keeps as they are.
const mostLore = 24 << 10

// BuildModel primes a model with a corpus and returns it as model.bin keeps it.
func BuildModel(parts []corpus.Part) []byte { return prime(parts).image() }

// Vectors are known codes of texts, for those who port the coder: a name, the codec's octet, the code and the text, both in
// hexadecimal, one line each. Each part has one text.
func Vectors(parts []corpus.Part) (b []byte) {
	var c Coder
	for _, p := range parts {
		code, codec := c.Append(nil, p.Messages[0])
		b = fmt.Appendf(b, "%s\n%02x\n%x\n%x\n\n", p.Name, byte(codec), code, p.Messages[0])
	}
	return b
}
