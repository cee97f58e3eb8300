package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// Known is what models have made of texts, for the gateways of virtual nets: what one of them has coded or expanded costs the
// others no time. Codes, and how many octets of work a Coder counts for them and in which slice, are the same with it and without.
// A gateway of a real net has none. The zero value is ready; it is for concurrent use where it has a Lock.
type Known struct {
	Lock interface {
		Lock()
		Unlock()
	}
	of     map[knownKey]outcome
	octets int
}

type knownKey [sha256.Size]byte

// mostKnown is the octets that are kept, about: all are forgotten then.
const mostKnown = 64 << 20

// outcome is what came of a try: the code without its head, or the stream that a code stands for.
type outcome struct {
	out    []byte
	octets int // of the stream that were coded
	ok     bool
}

func (k *Known) find(key knownKey) *outcome {
	if k.Lock != nil {
		k.Lock.Lock()
		defer k.Lock.Unlock()
	}
	if o, known := k.of[key]; known {
		return &o
	}
	return nil
}

func (k *Known) keep(key knownKey, o outcome) {
	if k.Lock != nil {
		k.Lock.Lock()
		defer k.Lock.Unlock()
	}
	if k.octets += len(o.out) + 2*len(key); k.of == nil || k.octets > mostKnown {
		k.of, k.octets = map[knownKey]outcome{}, 0
	}
	k.of[key] = o
}

// keyOf names a text, or a code, and what the model has learned before. Most is the most octets of the code; of a code to be expanded
// it is -1.
func (c *Coder) keyOf(t *try, octets []byte, most int) (key knownKey) {
	h := sha256.New()
	var b [16]byte
	part := func(octets []byte, tokens bool) {
		h.Write(binary.BigEndian.AppendUint64(b[:0], uint64(len(octets))<<1|uint64(btoi(tokens))))
		h.Write(octets)
	}
	part(c.salt(t.image), false)
	for _, e := range t.window {
		part(e.stream, e.tokens)
	}
	part(octets, t.tokens)
	h.Write(binary.BigEndian.AppendUint64(b[:0], uint64(most)))
	h.Sum(key[:0])
	return key
}

// isKept says that the model codes as one what is remembered: texts for which it is cheaper to remember than to code.
func (t *try) isKept() bool {
	return t.codec != Bulk && t.codec != Blocks && t.codec != Following
}

// recall looks up what is known of a try.
func (c *Coder) recall(t *try, most int) {
	if c.Known != nil && t.isKept() {
		t.key = c.keyOf(t, t.stream, most-len(t.head))
		t.known = c.Known.find(t.key)
	}
}

// recallText looks up what a code stands for, where it may stand for so much.
func (c *Coder) recallText(t *try, code []byte, limit int) {
	if c.Known == nil || !t.isKept() {
		return
	}
	o := c.Known.find(c.keyOf(t, code, -1))
	if o != nil && o.octets <= min(mostDecoded(t.codec, limit), mostOf(len(code))) {
		t.known = o
	}
}

// note keeps what came of a try, and of a code what it stands for.
func (c *Coder) note(t *try, out []byte, ok bool) {
	coded, one := t.under.(*encoding)
	if c.Known == nil || t.known != nil || !one || !t.isKept() {
		return
	}
	if !ok {
		c.Known.keep(t.key, outcome{octets: coded.at})
		return
	}
	code := out[len(t.head):len(out):len(out)]
	c.Known.keep(t.key, outcome{code, coded.at, true})
	c.Known.keep(c.keyOf(t, code, -1), outcome{bytes.Clone(t.stream), len(t.stream), true})
}

// recalled is a try whose outcome is known.
type recalled struct {
	*outcome
	m    *model
	head []byte
	left int // octets to be counted still
}

func (r *recalled) advance(octets int) (done bool) {
	n := min(octets, r.left)
	r.left -= n
	r.m.work += uint64(n)
	return r.left == 0
}

func (r *recalled) end() ([]byte, bool) { return append(r.head, r.out...), r.ok }

// recalledText is a text on its way back whose octets are known.
type recalledText struct {
	recalled
	codec Codec
	limit int
}

// advance is done where a decoding would be: in a slice that has room for one octet more.
func (r *recalledText) advance(octets int) (done bool, err error) {
	left := r.left
	r.recalled.advance(octets)
	return left < octets, nil
}

func (r *recalledText) end() ([]byte, error) { return finished(r.out, r.codec, r.limit) }
