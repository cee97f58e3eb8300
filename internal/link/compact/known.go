package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Known has the results of models, and the last models that have learned a window, for the gateways of virtual nets: what
// one gateway has coded, expanded or learned costs the others no time. Codes, and the octets of work that a Coder counts
// for them in each slice, are the same with a Known and without. A gateway of a real net has none. The zero value is ready;
// it is for concurrent use if it has a Lock. It takes up to about 70 MB.
type Known struct {
	Lock interface {
		Lock()
		Unlock()
	}
	of     map[knownKey]outcome
	octets int
	states []learnedState // the one used last at the end
}

// learnedState is a model that has learned a window. Its work is that of learning.
type learnedState struct {
	key knownKey
	m   *model
}

// mostStates is how many models are kept, of 2 to 3 MB each.
const mostStates = 2

type knownKey [sha256.Size]byte

// mostKnown is about how many octets are kept: beyond it, all are forgotten.
const mostKnown = 64 << 20

// outcome is the result of a try: the code without its head, or the stream that a code stands for.
type outcome struct {
	out    []byte
	octets int // octets of the stream that were coded
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

// keyOf names a text, or a code, and the messages that the model has learned before it. most is the most octets of the
// code; for a code to be expanded it is -1.
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

// learn brings the coder's model into the state in which it has learned the window of a try. Messages that wait for one
// acknowledgement are coded after the same window: to copy a model takes a tenth of the time that learning takes.
func (c *Coder) learn(t *try) {
	var key knownKey
	shared := c.Known != nil && t.known == nil && len(t.window) > 0 && t.isKept()
	if shared {
		key = c.keyOf(&try{image: t.image, window: t.window}, nil, -1)
		if c.model == nil {
			c.model = new(model)
		}
		if c.Known.restore(c.model, key) {
			return
		}
	}
	c.model = t.starts(c.model)
	if octets, _ := t.learn(c.model, atOnce); shared {
		c.Known.retain(c.model, key, octets)
	}
}

// restore brings a model into the state of this key, if that is kept.
func (k *Known) restore(m *model, key knownKey) bool {
	if k.Lock != nil {
		k.Lock.Lock()
		defer k.Lock.Unlock()
	}
	i := slices.IndexFunc(k.states, func(s learnedState) bool { return s.key == key })
	if i < 0 {
		return false
	}
	s := k.states[i]
	k.states = append(slices.Delete(k.states, i, i+1), s)
	copyModel(m, s.m)
	m.work += s.m.work
	return true
}

// retain keeps a copy of a model that has learned so many octets, in place of the state that was not used for longest.
func (k *Known) retain(m *model, key knownKey, octets int) {
	if k.Lock != nil {
		k.Lock.Lock()
		defer k.Lock.Unlock()
	}
	s := learnedState{key, new(model)}
	if len(k.states) == mostStates {
		s.m = k.states[0].m
		k.states = slices.Delete(k.states, 0, 1)
	}
	copyModel(s.m, m)
	s.m.work = uint64(octets)
	k.states = append(k.states, s)
}

// isKept says whether outcomes of the try are kept. They are where the model codes the text as one: then looking up is
// cheaper than coding.
func (t *try) isKept() bool {
	return t.codec != Bulk && t.codec != Blocks && t.codec != Following
}

// recall looks up the outcome of a try.
func (c *Coder) recall(t *try, most int) {
	if c.Known != nil && t.isKept() {
		t.key = c.keyOf(t, t.stream, most-len(t.head))
		t.known = c.Known.find(t.key)
	}
}

// recallText looks up the text that a code stands for, where that text is within the limits.
func (c *Coder) recallText(t *try, code []byte, limit int) {
	if c.Known == nil || !t.isKept() {
		return
	}
	o := c.Known.find(c.keyOf(t, code, -1))
	if o != nil && o.octets <= min(mostDecoded(t.codec, limit), mostOf(len(code))) {
		t.known = o
	}
}

// note keeps the outcome of a try, and the text that its code stands for.
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
	left int // octets still to be counted as work
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

// advance is done in the same slice as a decoding: the one that has room for one octet more.
func (r *recalledText) advance(octets int) (done bool, err error) {
	left := r.left
	r.recalled.advance(octets)
	return left < octets, nil
}

func (r *recalledText) end() ([]byte, error) { return finished(r.out, r.codec, r.limit) }
