package compact

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// A flow of which the far end holds nothing yet may be like a flow of which it holds messages: a second chat partner writes
// like the first one. The messages of the new flow are then coded after those of the other, until the far end holds some of
// its own.

const (
	mostKinBack = 1 << 21 // numbers from a message back to the newest of the other flow
	kinGrams    = 14      // bits of the hashes of a message's runs
	leastKin    = 3       // one of so many runs has to be shared
	mostKinFlow = 64      // the flow's number less one takes six bits; envelope keeps no more
)

// kinCounts are the lengths of a window that two bits name.
var kinCounts = [4]int{1, 3, 10, windowMessages}

// Likeness has the runs of octets of a text. It finds the flow that a first message is most like.
type Likeness struct {
	own  grams
	runs int
}

// LikenessOf makes the Likeness of a text from its beginning.
func LikenessOf(text []byte) Likeness {
	l := Likeness{own: newGrams(kinGrams), runs: min(len(text), mostShare) - gramSize + 1}
	l.own.add(text[:min(len(text), mostShare)])
	return l
}

// To is how many runs of octets the newest message of a flow shares with the text; 0: too few, or message number cannot be
// coded after any message of the flow.
func (l Likeness) To(h *History, number uint64) int {
	if e, ok := h.newestBefore(number); ok {
		return l.With(e.text)
	}
	return 0
}

// With is how many runs of octets another text shares; 0: too few.
func (l Likeness) With(text []byte) int {
	if l.runs <= 0 {
		return 0
	}
	n := min(l.own.share(text), l.runs)
	if n*leastKin < l.runs {
		return 0
	}
	return n
}

// newestBefore is the newest message of a flow that message number, of another flow, may be coded after.
func (h *History) newestBefore(number uint64) (e entry, ok bool) {
	for i := len(h.held) - 1; i >= 0; i-- {
		e = h.held[i]
		if e.number < number {
			return e, number-e.number <= mostKinBack && h.reaches(e.number, number)
		}
	}
	return e, false
}

// kinWindow returns the messages that message number is coded after, and the 2-bit name of their count.
func (h *History) kinWindow(number uint64) (window []entry, name int, ok bool) {
	e, ok := h.newestBefore(number)
	if !ok {
		return nil, 0, false
	}
	window, _ = h.window(e.number, windowMessages)
	for name = len(kinCounts) - 1; kinCounts[name] > len(window); name-- {
	}
	return window[len(window)-kinCounts[name]:], name, true
}

// AppendKin is Append for message number of a flow of which the far end holds nothing. h is what the far end holds of
// another flow, whose number is flow, from 1 to 64.
func (c *Coder) AppendKin(dst, text []byte, h *History, flow uint32, number uint64) ([]byte, Codec) {
	plain, codec := c.remembered(text)
	plain = bytes.Clone(plain)
	window, name, ok := h.kinWindow(number)
	if !ok || c.NoModel || len(text) == 0 || len(text) > MaxLearned || flow == 0 || flow > mostKinFlow {
		return append(dst, plain...), codec
	}
	newest := window[len(window)-1]
	from := c.imageFor(newest.stream)
	code, learned := c.after(from, window, text)
	if learned != newest.codec() {
		return append(dst, plain...), codec
	}
	out := binary.AppendUvarint([]byte{byte(flow-1)<<2 | byte(name)}, number-newest.number-1)
	sum := sumAfter(c.salt(from), window, text)
	out = append(append(out, sum[:checkOctets]...), code...)
	if len(out) >= len(plain) {
		return append(dst, plain...), codec
	}
	return append(dst, out...), Kin
}

// PrepareKin is Prepare for AppendKin.
func (c *Coder) PrepareKin(text []byte, h *History, number uint64, octets int) (done bool) {
	if !c.Prepare(text, octets) {
		return false
	}
	window, _, ok := h.kinWindow(number)
	return !ok || c.NoModel || len(text) > MaxLearned || c.prepareAfter(text, window, octets)
}

// KinOf is the number of the flow that AppendKin made a code after.
func KinOf(code []byte) (flow uint32, ok bool) {
	if len(code) == 0 {
		return 0, false
	}
	return uint32(code[0]>>2) + 1, true
}

// ExpandKin undoes AppendKin; h is what this end holds of the flow that KinOf names.
func (c *Coder) ExpandKin(code []byte, h *History, number uint64, limit int) ([]byte, error) {
	if len(code) == 0 {
		return nil, ErrCorrupt
	}
	count := kinCounts[code[0]&3]
	back, n := binary.Uvarint(code[1:])
	if n <= 0 || back >= mostKinBack || back+1 >= number || len(code) < 1+n+checkOctets {
		return nil, ErrCorrupt
	}
	to := h.upTo(number - back - 1)
	if to < count {
		return nil, ErrHistory
	}
	window := h.held[to-count : to]
	code = code[1+n:]
	text, err := c.expandLearned(window[count-1].codec(), code[checkOctets:], window, [checkOctets]byte(code), limit)
	if err != nil && !errors.Is(err, ErrUnfinished) && !errors.Is(err, ErrTooLong) {
		err = ErrHistory
	}
	return text, err
}
