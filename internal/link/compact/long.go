package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
)

// Messages of more than MaxLearned octets teach as well. Both ends keep the beginnings of the last few long messages of a
// flow. The flow's next long message is coded, block by block, after the newest of these that both ends surely have.
const (
	maxTaught = 32 << 10 // octets of the beginning of a long message, after which the next one is coded
	longKept  = 4        // long messages of a flow
	mayFollow = 2        // further long messages that may go out between coding a message and sending it
)

// Excerpt is the part of a message that a history keeps.
func Excerpt(text []byte) []byte {
	if len(text) > MaxLearned {
		return text[:min(len(text), maxTaught)]
	}
	return text
}

// addLong adds a long message at its place, and returns the numbers of messages that are not kept any more.
func (h *History) addLong(number uint64, text []byte) (gone []uint64) {
	at := len(h.long)
	for at > 0 && h.long[at-1].number > number {
		at--
	}
	if !h.Long || at > 0 && h.long[at-1].number == number {
		return nil
	}
	h.long = slices.Insert(h.long, at, newEntry(number, Excerpt(text)))
	if len(h.long) > longKept {
		gone = []uint64{h.long[0].number}
		h.long = slices.Delete(h.long, 0, 1)
	}
	return gone
}

// longBefore lists the long messages that are like a text and that the text, as message number, may be coded after, the
// newest first. The text is coded in advance: more is how many further long messages may go out before it.
func (h *History) longBefore(text []byte, number uint64, more int) (list []entry) {
	likeness := LikenessOf(text)
	for _, e := range slices.Backward(h.long) {
		under := int(min(number-e.number-1, longKept)) // all messages between may be long, and of this flow
		if h.tells {
			under = h.under(e.number, number)
		}
		if e.number < number && (h.Complete && !h.tells || !h.lost && under+more < longKept) && likeness.With(e.text) > 0 {
			list = append(list, e)
		}
	}
	return list
}

// appendLong is AppendAfter for a long message. A code made in advance is used even if a newer message is held by now.
func (c *Coder) appendLong(dst, text []byte, h *History, number uint64) ([]byte, Codec) {
	list := h.longBefore(text, number, 0)
	if len(list) == 0 || c.NoModel {
		return c.Append(dst, text)
	}
	for _, e := range list {
		if m, known := c.made.codes[contentOf([]entry{e}, text)]; known {
			return c.appendFollowing(dst, text, e, number, m)
		}
	}
	if _, known := c.made.codes[sha256.Sum256(text)]; known {
		return c.Append(dst, text)
	}
	var m madeCode
	t := afterLong(list[:1], text)
	if code, ok := c.code(t, len(text)-1); ok {
		m = madeCode{code, t.codec}
	}
	c.made.keep(contentOf(t.window, text), m.code, m.codec)
	return c.appendFollowing(dst, text, list[0], number, m)
}

// appendFollowing appends a code made after a long message, or another code where that is shorter.
func (c *Coder) appendFollowing(dst, text []byte, e entry, number uint64, m madeCode) ([]byte, Codec) {
	check := sumAfter(nil, []entry{e}, text)
	head := append(binary.AppendUvarint(nil, number-e.number), check[:checkOctets]...)
	if m.codec == Stored || len(head)+len(m.code) >= len(text) {
		return c.Append(dst, text)
	}
	return append(append(dst, head...), m.code...), m.codec
}

// afterLong is the try that codes a text after a long message.
func afterLong(window []entry, text []byte) *try {
	return &try{codec: Following, image: primed, stream: text, window: window}
}

// prepareLong is PrepareAfter for a long message.
func (c *Coder) prepareLong(text []byte, h *History, number uint64, octets int) (done bool) {
	list := h.longBefore(text, number, mayFollow)
	if len(list) == 0 || c.NoModel {
		return c.Prepare(text, octets)
	}
	if c.slow != nil && c.slow.follows(text, list) {
		return c.workOn(octets)
	}
	for _, e := range list {
		if _, known := c.made.codes[contentOf([]entry{e}, text)]; known {
			return true
		}
	}
	window := list[:1]
	sum := contentOf(window, text)
	c.slow = &slow{text: text, sum: sum, codec: Stored, best: text, tries: []try{*afterLong(window, text)}, after: true}
	return c.workOn(octets)
}

// follows says whether the text being prepared is this one, after one of these messages.
func (s *slow) follows(text []byte, list []entry) bool {
	return s.after && len(s.tries) > 0 && s.tries[0].codec == Following && len(s.text) == len(text) && &s.text[0] == &text[0] &&
		slices.ContainsFunc(list, func(e entry) bool { return e.number == s.tries[0].window[0].number })
}

// expandLong undoes appendLong.
func (c *Coder) expandLong(b []byte, h *History, number uint64, limit int) ([]byte, error) {
	back, n := binary.Uvarint(b)
	if n <= 0 || back == 0 || back >= number || len(b) < n+checkOctets {
		return nil, ErrCorrupt
	}
	i := slices.IndexFunc(h.long, func(e entry) bool { return e.number == number-back })
	if i < 0 {
		return nil, ErrHistory
	}
	window := h.long[i : i+1]
	text, err := c.expand(primed, window, Following, b[n+checkOctets:], limit)
	if errors.Is(err, ErrUnfinished) {
		return nil, err
	}
	if sum := sumAfter(nil, window, text); err != nil || !bytes.Equal(sum[:checkOctets], b[n:n+checkOctets]) {
		return nil, ErrHistory
	}
	return text, nil
}
