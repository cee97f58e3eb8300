package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
)

// ErrCorpus is returned for octets that are no corpus of a network, or a damaged one.
var ErrCorpus = errors.New("compact: no corpus of a net, or damaged")

// Bounds of a network's own corpus.
const (
	MaxCorpus         = 128 << 10 // octets of its messages together
	MaxCorpusMessage  = bulkFrom - 1
	MaxCorpusMessages = 4096
	MaxCorpusFile     = MaxCorpus + 3*MaxCorpusMessages + 64 // octets of a file
)

const (
	corpusMark  = "aldis corpus 1\n"
	corpusCheck = 8
	networkRate = 14 // of the mixers while they learn the corpus, as with the built-in corpus
)

// CorpusFile has the messages that a network teaches its gateways.
type CorpusFile struct {
	Messages [][]byte
	Hash     [sha256.Size]byte
}

// NetworkCorpus is what a coder has learned from a CorpusFile, in addition to the primed model. Gateways with the same one
// code texts like its messages shorter. It does not change, and several coders may use it at once.
type NetworkCorpus struct {
	hash   [sha256.Size]byte
	taught *image
	own    grams // runs of the corpus,
	primed grams // and of the built-in corpus
}

// AppendCorpus appends the file of a corpus of these messages, in this order. The error is ErrCorpus beyond the bounds.
func AppendCorpus(dst []byte, messages [][]byte) ([]byte, error) {
	from, octets := len(dst), 0
	dst = binary.AppendUvarint(append(dst, corpusMark...), uint64(len(messages)))
	for _, m := range messages {
		octets += len(m)
		if len(m) == 0 || len(m) > MaxCorpusMessage {
			return dst[:from], ErrCorpus
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(m))), m...)
	}
	if octets == 0 || octets > MaxCorpus || len(messages) > MaxCorpusMessages {
		return dst[:from], ErrCorpus
	}
	sum := sha256.Sum256(dst[from:])
	return append(dst, sum[:corpusCheck]...), nil
}

// ReadCorpus reads a file that AppendCorpus has made. The error is ErrCorpus.
func ReadCorpus(b []byte) (*CorpusFile, error) {
	rest, ok := bytes.CutPrefix(b, []byte(corpusMark))
	if !ok || len(b) > MaxCorpusFile || len(rest) < corpusCheck {
		return nil, ErrCorpus
	}
	sum := sha256.Sum256(b[:len(b)-corpusCheck])
	if !bytes.Equal(sum[:corpusCheck], b[len(b)-corpusCheck:]) {
		return nil, ErrCorpus
	}
	f := &CorpusFile{Hash: sha256.Sum256(b)}
	rest = rest[:len(rest)-corpusCheck]
	number := func() (v int, ok bool) {
		u, size := binary.Uvarint(rest)
		if size <= 0 || u > MaxCorpus {
			return 0, false
		}
		rest = rest[size:]
		return int(u), true
	}
	count, ok := number()
	if !ok || count == 0 || count > MaxCorpusMessages {
		return nil, ErrCorpus
	}
	octets := 0
	for range count {
		size, ok := number()
		octets += size
		if !ok || size == 0 || size > MaxCorpusMessage || size > len(rest) || octets > MaxCorpus {
			return nil, ErrCorpus
		}
		f.Messages = append(f.Messages, bytes.Clone(rest[:size]))
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return nil, ErrCorpus
	}
	return f, nil
}

// Name is the first octets of the hash, as gateways send it to each other; nil's is 0, and no other is.
func (n *NetworkCorpus) Name() uint32 {
	if n == nil {
		return 0
	}
	return max(binary.BigEndian.Uint32(n.hash[:]), 1)
}

// Learn learns the messages: about 5 us an octet, up to a second. It takes 11 MB of memory.
func (f *CorpusFile) Learn() *NetworkCorpus {
	n := &NetworkCorpus{hash: f.Hash, own: newGrams(networkGrams), primed: newGrams(loreGrams)}
	n.primed.add([]byte(primed.lore.text))
	m := new(model)
	m.prime(primed)
	m.steps, m.rate = stepsPriming, networkRate
	m.lore = newLore(primed.lore.text)
	for _, text := range f.Messages {
		m.forget()
		if tokens, ok := tokenizeXML(text); ok {
			m.train(tokens, true)
		} else {
			m.train(text, false)
		}
		m.lore.append(string(m.hist))
		n.own.add(m.hist)
	}
	tables := m.tables
	n.taught = &image{lines: string(m.counters.pack()), tables: &tables, lore: m.lore}
	return n
}

// imageFor returns the image for coding after a text, or after the tokens of one. It is the network's, which includes the
// built-in corpus, if the text shares more than half as many runs with the network's corpus as with the built-in one. Both
// ends call it with a message that both have.
func (c *Coder) imageFor(stream []byte) *image {
	if c.Network != nil && 2*c.Network.own.share(stream) > c.Network.primed.share(stream) {
		return c.Network.taught
	}
	return primed
}

// imageAlone returns the image for coding a text, or the tokens of one, without earlier messages: the one that makes the
// shorter code of its beginning. The network's image is not tried where its corpus hardly shares runs with the text.
func (c *Coder) imageAlone(stream []byte, tokens bool) *image {
	if c.Network == nil || c.Network.own.share(stream)*leastShared < min(len(stream), mostShare) {
		return primed
	}
	stream = stream[:min(len(stream), mostTried)]
	octets := func(i *image) int {
		m := c.from(i)
		m.begin(tokens)
		e := encodingPart(m, nil, stream, atOnce)
		e.advance(len(stream))
		code, _ := e.end()
		return len(code)
	}
	if octets(c.Network.taught)+checkOctets < octets(primed) {
		return c.Network.taught
	}
	return primed
}

// salt is hashed first in the checks of codes made from an image, so codes made with different corpora of a network never
// pass for each other.
func (c *Coder) salt(from *image) []byte {
	if from == primed {
		return nil
	}
	return c.Network.hash[:]
}

// checkOf is the check of a code made from an image without earlier messages.
func (c *Coder) checkOf(from *image, text []byte) (check []byte) {
	if from == primed {
		return nil
	}
	sum := hashOf(c.salt(from), nil, text, false)
	return slices.Clip(sum[:checkOctets])
}

// grams are the runs of five octets of a text, by their hashes.
type grams []uint64

const (
	networkGrams = 20 // bits of the hashes
	loreGrams    = 22
	gramSize     = 5
	mostShare    = 2 << 10 // octets of a text that are compared

	leastShared = 16            // one run per so many octets has to be in the corpus of the network
	mostTried   = hopeAfter - 1 // octets of a text that are coded to find which corpus is better
)

func newGrams(bits int) grams { return make(grams, 1<<bits/64) }

func (g grams) each(text []byte, f func(at *uint64, bit uint64)) {
	var last uint64
	for i, c := range text {
		last = last<<8 | uint64(c)
		if i+1 >= gramSize {
			h := mix32(uint32(last), uint32(last>>32)&0xff) & uint32(64*len(g)-1)
			f(&g[h/64], 1<<(h%64))
		}
	}
}

func (g grams) add(text []byte) { g.each(text, func(at *uint64, bit uint64) { *at |= bit }) }

// share is how many of the runs at the beginning of a text are in g.
func (g grams) share(text []byte) (n int) {
	g.each(text[:min(len(text), mostShare)], func(at *uint64, bit uint64) { n += btoi(*at&bit > 0) })
	return n
}
