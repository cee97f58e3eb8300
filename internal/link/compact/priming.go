package compact

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
)

// part is messages of a corpus, each of which follows the one before, as on one flow.
type part struct {
	name     string
	messages [][]byte
}

var (
	errText    = errors.New("compact: no text of a corpus")
	errVectors = errors.New("compact: no vectors")
)

// readParts reads a corpus from text. A line before each message names its kind, says whether it follows the message before
// on its flow, and how many octets it has.
func readParts(text []byte) (parts []part, err error) {
	for len(text) > 0 {
		head, rest, _ := bytes.Cut(text, []byte("\n"))
		var name, follows string
		var octets int
		if _, err := fmt.Sscanf(string(head), "== %s %s %d", &name, &follows, &octets); err != nil || octets < 0 || octets >= len(rest) {
			return nil, fmt.Errorf("%w: %.80q", errText, head)
		}
		if follows == "first" {
			parts = append(parts, part{name: name})
		} else if len(parts) == 0 {
			return nil, fmt.Errorf("%w: %.80q", errText, head)
		}
		last := &parts[len(parts)-1]
		last.messages = append(last.messages, rest[:octets:octets])
		text = rest[octets+1:]
	}
	return parts, nil
}

// census finds the contexts that occur in at least two parts of the corpus. Only those get a counter when the model is
// primed. Contexts of one part alone, most of all numbers and names, would take the room of contexts that will occur again.
type census struct {
	part   uint16
	counts bool     // the first pass: occurrences are counted
	first  []uint16 // by a context's hash, the part that had it first, or inTwoParts
}

const (
	censusBits = 25
	inTwoParts = 0xffff
)

// common counts an occurrence of a context; in the second pass it says whether the context occurs in two parts. The first
// bits are those of the octet's first half, once that is known.
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
func prime(parts []part) *model {
	c := &census{counts: true, first: make([]uint16, 1<<censusBits)}
	all := primeWith(parts, c)
	c.counts = false
	m := primeWith(parts, c)
	m.tables, m.census = all.tables, nil
	return m
}

func primeWith(parts []part, c *census) *model {
	m := newModel()
	m.steps, m.rate = stepsPriming, 14
	m.lore = newLore("")
	told := map[string]int{}
	m.census = c
	for i, p := range parts {
		c.part = uint16(i + 1)
		m.forget()
		for _, text := range p.messages {
			if tokens, ok := tokenizeXML(text); ok {
				m.train(tokens, true)
			} else {
				m.train(text, false)
			}
		}
		told[p.name] += len(m.hist)
		if told[p.name] <= mostLore {
			m.lore.append(string(m.hist))
		}
	}
	m.forget()
	return m
}

// mostLore is the most octets of a kind that the model keeps as they are.
const mostLore = 24 << 10

// BuildModel primes a model with the text of a corpus (internal/lab/primer) and returns it in the form of model.bin. The
// error has the first line that is not readable.
func BuildModel(text []byte) (image []byte, err error) {
	parts, err := readParts(text)
	if err != nil {
		return nil, err
	}
	return prime(parts).image(), nil
}

// Vectors makes the known codes anew, for another version of the model. They serve developers who port the coder. Each text
// has four lines, its name, the codec's octet, the code and the text, the last two in hexadecimal, and an empty line.
func Vectors(old []byte) (b []byte, err error) {
	var c Coder
	for block := range bytes.SplitSeq(bytes.TrimSpace(old), []byte("\n\n")) {
		line := bytes.Split(block, []byte("\n"))
		if len(line) != 4 {
			return nil, errVectors
		}
		text, err := hex.DecodeString(string(line[3]))
		if err != nil {
			return nil, errVectors
		}
		code, codec := c.Append(nil, text)
		b = fmt.Appendf(b, "%s\n%02x\n%x\n%x\n\n", line[0], byte(codec), code, text)
	}
	return b, nil
}
