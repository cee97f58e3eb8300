package compact

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
)

// ErrHistory is returned for a code that needs messages which this end does not hold, or holds differently. The code cannot
// be expanded here; the sender has to code the message anew.
var ErrHistory = errors.New("compact: coded after messages not held here")

// MaxLearned is the most octets of a message that both ends learn from whole.
const MaxLearned = 8 << 10

// MostBefore is the most messages after which one message is coded.
const MostBefore = windowMessages

// Bounds of a history, the same at both ends.
const (
	maxBack        = shortBack + 256                // numbers from a message back to the newest that it may be coded after
	shortBack      = 31                             // 5 bits of one octet; a longer way back takes another octet
	maxHeld        = shortBack + 1 + windowMessages // messages of a flow: the window, and those sent since that may be under way
	windowMessages = 32                             // messages after which a code is made, at most
	windowOctets   = 16 << 10                       // of text or tokens in the window, at most, not counting the newest
	learnedOctets  = 800                            // of the messages learned from; in the older ones the model only finds numbers and repeats
	learnedAlone   = 6 << 10                        // of the newest message, if it is the only one
	checkOctets    = 2
)

// History is what both ends of one flow are known to hold, by number. The flow is the messages of one source on one pipe,
// so each message is like the one before. There are two safe ways to keep it:
//
//   - The receiver opens messages in order of number, and keeps its history as safely as its messages (Add says what has to
//     be recorded and forgotten; after a restart the messages are added again). Then a message may be coded after any
//     message with a lower number, acknowledged or not: the sender adds each message when it gets its number.
//   - The receiver opens messages as they come, or its history does not survive a restart, or a group listens. Then the
//     sender adds a message once all receivers have acknowledged it, in order, and resets its history when a listener has
//     restarted or joined. A message that was sent before without an acknowledgement goes without a history (Append), so
//     that it can be read even if the histories differ.
//
// A code says which messages it was made after, and carries a hash of those and of the text itself: it does not expand
// without the same messages. A sender that lost its history starts with an empty one: codes are longer then, never wrong.
// The zero value is ready. A History takes at most 64 times 16 kB. Package envelope keeps one for each element of each
// flow.
type History struct {
	// Complete says that every message of the flow is added as soon as it has its number: then a message may be coded after
	// the last one, however far back that is. Otherwise messages between the two may be under way, and the receiver keeps
	// only so many. The sender reports these with Sent; without that, it codes a message only after those of the 32 numbers
	// before it. Both serve the sender; a receiver needs neither.
	Complete bool
	// Long: messages of more than MaxLearned octets are kept too, by their beginnings (long.go). Both ends set it alike.
	Long bool

	held  []entry
	long  []entry  // messages of more than MaxLearned octets
	sent  []uint64 // numbers of messages of the flow that are not added yet
	tells bool     // Sent is called for each message
	lost  bool     // sent had no room for all
}

type entry struct {
	number uint64
	text   []byte
	stream []byte // tokens, or text itself
	tokens bool
}

// Add adds the next message, and returns the numbers of messages that are not needed any more. The history starts again
// with a message out of order, or with one so far on that it could not be coded after the last. Of a message of more than
// MaxLearned octets, Add keeps the Excerpt if Long is set, else nothing.
func (h *History) Add(number uint64, text []byte) (gone []uint64) {
	if n := len(h.held); n > 0 && (number <= h.held[n-1].number || number-h.held[n-1].number > maxBack) {
		gone = entryNumbers(h.held)
		h.held = nil
	}
	if n := len(h.long); n > 0 && number <= h.long[n-1].number {
		gone = append(gone, entryNumbers(h.long)...)
		h.long = nil
	}
	h.sent = slices.DeleteFunc(h.sent, func(n uint64) bool { return n <= number })
	if len(text) > MaxLearned {
		return append(gone, h.addLong(number, text)...)
	}
	h.held = append(h.held, newEntry(number, text))
	if drop := len(h.held) - maxHeld; drop > 0 {
		for _, e := range h.held[:drop] {
			gone = append(gone, e.number)
		}
		h.held = slices.Delete(h.held, 0, drop)
	}
	return gone
}

// Insert adds a message that both ends hold, at its place by number: for flows whose messages come out of order. It keeps
// the newest messages, keep messages and about so many octets at most, and returns the numbers of those that are not kept
// any more. Base and window of a code must then be messages that follow each other at both ends.
func (h *History) Insert(number uint64, text []byte, keep, octets int) (gone []uint64) {
	if len(text) > MaxLearned {
		return h.addLong(number, text)
	}
	at, held := slices.BinarySearchFunc(h.held, number, func(e entry, n uint64) int { return cmp.Compare(e.number, n) })
	if held {
		return nil
	}
	h.held = slices.Insert(h.held, at, newEntry(number, text))
	for i := len(h.held) - 1; i >= 0; i-- {
		octets -= len(h.held[i].text)
		if (octets < 0 || len(h.held)-i > keep) && i < len(h.held)-windowMessages {
			for _, e := range h.held[:i+1] {
				gone = append(gone, e.number)
			}
			h.held = slices.Delete(h.held, 0, i+1)
			break
		}
	}
	return gone
}

func newEntry(number uint64, text []byte) entry {
	e := entry{number: number, text: bytes.Clone(text)}
	e.stream, e.tokens = tokenizeXML(e.text)
	if !e.tokens {
		e.stream = e.text
	}
	return e
}

// Sent tells the sender's history that the next message of the flow has its number. After the first call, it must be called
// for every message, in order.
func (h *History) Sent(number uint64) {
	h.tells = true
	if n := len(h.sent); n >= maxBack || n > 0 && h.sent[n-1] >= number {
		h.lost = true
		return
	}
	h.sent = append(h.sent, number)
}

// under counts the messages of the flow between two numbers that may be under way.
func (h *History) under(base, number uint64) (n int) {
	for _, s := range h.sent {
		if base < s && s < number {
			n++
		}
	}
	return n
}

// Holds says whether the message of this number is kept.
func (h *History) Holds(number uint64) bool {
	return h.upTo(number) > 0 || slices.ContainsFunc(h.long, func(e entry) bool { return e.number == number })
}

// Reset forgets everything and returns the numbers of the messages.
func (h *History) Reset() (gone []uint64) {
	gone = append(entryNumbers(h.held), entryNumbers(h.long)...)
	h.held, h.long, h.sent, h.lost = nil, nil, nil, false
	return gone
}

func entryNumbers(entries []entry) (list []uint64) {
	for _, e := range entries {
		list = append(list, e.number)
	}
	return list
}

// Octets is the memory that the messages take.
func (h *History) Octets() int {
	n := 0
	for _, e := range slices.Concat(h.held, h.long) {
		n += len(e.text)
		if e.tokens {
			n += len(e.stream)
		}
	}
	return n
}

// upTo returns how many messages are held up to and including number base, or 0 when base is not held.
func (h *History) upTo(base uint64) int {
	to := len(h.held)
	for to > 0 && h.held[to-1].number > base {
		to--
	}
	if to == 0 || h.held[to-1].number != base {
		return 0
	}
	return to
}

// windowCounts are the lengths of a window that 3 bits name.
var windowCounts = [8]int{1, 2, 3, 4, 6, 10, 18, windowMessages}

// window returns the messages that a code after message base is made after, most at the most, and the 3-bit name of their count.
func (h *History) window(base uint64, most int) (window []entry, name int) {
	to := h.upTo(base)
	if to == 0 {
		return nil, 0
	}
	from, octets := to-1, len(h.held[to-1].stream)
	for from > 0 && octets+len(h.held[from-1].stream) <= windowOctets {
		from--
		octets += len(h.held[from].stream)
	}
	for name = len(windowCounts) - 1; windowCounts[name] > min(to-from, most); name-- {
	}
	return h.held[to-windowCounts[name] : to], name
}

// sumAfter hashes the messages that a code was made after, and the text. The code carries its first octets.
func sumAfter(salt []byte, window []entry, text []byte) textSum {
	return hashOf(salt, window, text, true)
}

// hashOf hashes a text and the messages that it is coded after, with their numbers or without.
func hashOf(salt []byte, window []entry, text []byte, numbers bool) textSum {
	h := sha256.New()
	h.Write(salt)
	var b [16]byte
	for _, e := range window {
		head := binary.BigEndian.AppendUint64(b[:0], uint64(len(e.text)))
		if numbers {
			head = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b[:0], e.number), uint64(len(e.text)))
		}
		h.Write(head)
		h.Write(e.text)
	}
	h.Write(text)
	return textSum(h.Sum(nil))
}

// base returns the newest message that message number may be coded after, and the most messages of a window that ends
// there. The receiver keeps maxHeld messages: the more are under way after base, the fewer of those before it are still
// there.
func (h *History) base(number uint64) (base uint64, most int, ok bool) {
	for i := len(h.held) - 1; i >= 0; i-- {
		n := h.held[i].number
		switch {
		case n >= number:
			continue
		case number-n > maxBack:
			return 0, 0, false
		case h.reaches(n, number):
			return n, windowMessages, true
		case !h.tells || h.lost:
			return 0, 0, false
		}
		most = min(windowMessages, maxHeld-1-h.under(n, number))
		return n, most, most > 0
	}
	return 0, 0, false
}

// reaches says whether the far end still keeps message n, and a whole window up to it, when it reads message number.
func (h *History) reaches(n, number uint64) bool {
	return number-n <= shortBack+1 || h.Complete || h.tells && !h.lost && h.under(n, number) <= shortBack
}

// Serves says whether the message of this number is coded after others of its flow.
func (h *History) Serves(number uint64) bool {
	_, _, ok := h.base(number)
	return ok
}

// AppendAfter is Append for message number, where h is what the far end holds of its flow.
func (c *Coder) AppendAfter(dst, text []byte, h *History, number uint64) ([]byte, Codec) {
	if len(text) > MaxLearned {
		return c.appendLong(dst, text, h, number)
	}
	base, most, ok := h.base(number)
	if !ok || c.NoModel || len(text) == 0 {
		return c.Append(dst, text)
	}
	window, name := h.window(base, most)
	back := number - base
	head := []byte{byte(min(back-1, shortBack))<<3 | byte(name)}
	if back > shortBack {
		head = append(head, byte(back-shortBack-1))
	}
	sum := sumAfter(nil, window, text) // a repeat takes no model
	head = append(head, sum[:checkOctets]...)
	for i := len(window) - 1; i >= 0; i-- {
		if bytes.Equal(window[i].text, text) && len(head) < len(text) {
			dst = append(dst, head...)
			if back := len(window) - 1 - i; back > 0 {
				dst = append(dst, byte(back))
			}
			return dst, Repeated
		}
	}
	from := c.imageFor(window[len(window)-1].stream)
	sum = sumAfter(c.salt(from), window, text)
	copy(head[len(head)-checkOctets:], sum[:])
	code, codec := c.after(from, window, text)
	ok = codec != Stored && len(code) <= len(text)-len(head)-1
	out := append(head, code...)
	plain, plainCodec := c.smallestWithout(text, ok, len(out))
	if !ok || len(plain) <= len(out) {
		return append(dst, plain...), plainCodec
	}
	return append(dst, out...), codec
}

// after codes text after a window, Stored where that is not shorter. It remembers recent codes: the same message may go to
// many peers that hold the same history, and a text may be coded once only to learn its length.
func (c *Coder) after(from *image, window []entry, text []byte) ([]byte, Codec) {
	sum := contentOf(window, text)
	if m, known := c.made.codes[sum]; known {
		return m.code, m.codec
	}
	t := afterShort(from, window, text)
	code, ok := c.code(t, len(text)-1-checkOctets-1)
	codec := t.codec
	if !ok {
		code, codec = nil, Stored
	}
	c.made.keep(sum, code, codec)
	return code, codec
}

// afterShort is the try that codes a text after a window.
func afterShort(from *image, window []entry, text []byte) *try {
	t := &try{codec: LearnedXML, image: from, window: window}
	t.stream, t.tokens = tokenizeXML(text)
	if !t.tokens {
		t.codec, t.stream = Learned, text
	}
	return t
}

// contentOf names a text and the window that it is coded after. Numbers are not part of it: they do not change the code.
func contentOf(window []entry, text []byte) textSum {
	sum := hashOf(nil, window, text, false)
	sum[0] = ^sum[0] // otherwise a text could be made that has this sum
	return sum
}

// smallestWithout is smallest, unless a learned code of that many octets makes the search pointless: without the earlier
// messages the primed model hardly ever does better.
func (c *Coder) smallestWithout(text []byte, ok bool, octets int) ([]byte, Codec) {
	if ok && octets*2 < len(text) {
		return text, Stored
	}
	return c.remembered(text)
}

// learnedFrom is the index of the first message of a window that is learned from; the model only sees those before it.
func learnedFrom(window []entry) (from int) {
	from, octets := len(window), 0
	for from > 0 {
		octets += len(window[from-1].stream)
		if octets > learnedOctets && (from < len(window) || octets > learnedAlone) {
			break
		}
		from--
	}
	return from
}

// cutHead reads from a code how far back the newest message is that it was made after, and how many messages those are;
// code begins with the check.
func cutHead(b []byte) (back uint64, count int, code []byte, ok bool) {
	if len(b) < 1+checkOctets {
		return 0, 0, nil, false
	}
	back, count, code = uint64(b[0]>>3)+1, windowCounts[b[0]&7], b[1:]
	if back > shortBack {
		back += uint64(code[0])
		code = code[1:]
	}
	return back, count, code, len(code) >= checkOctets
}

// codec is the codec of a message like e.
func (e entry) codec() Codec {
	if e.tokens {
		return LearnedXML
	}
	return Learned
}

// Alike says whether a code that AppendAfter made of message number expands as Alike too.
func (h *History) Alike(codec Codec, b []byte, number uint64) bool {
	if codec != Learned && codec != LearnedXML {
		return false
	}
	back, _, _, ok := cutHead(b)
	to := 0
	if ok && back < number {
		to = h.upTo(number - back)
	}
	return to > 0 && h.held[to-1].codec() == codec
}

// ExpandAfter undoes AppendAfter. h is what this end holds of the flow; messages newer than the code do not matter.
func (c *Coder) ExpandAfter(codec Codec, b []byte, h *History, number uint64, limit int) ([]byte, error) {
	switch codec {
	case Learned, LearnedXML, Repeated, Alike:
	case Following:
		return c.expandLong(b, h, number, limit)
	default:
		return c.Expand(codec, b, limit)
	}
	back, count, code, ok := cutHead(b)
	if !ok || back >= number {
		return nil, ErrCorrupt
	}
	sum := [checkOctets]byte(code)
	code = code[checkOctets:]
	to := h.upTo(number - back)
	if to < count {
		return nil, ErrHistory
	}
	window := h.held[to-count : to]
	if codec == Alike {
		codec = window[count-1].codec()
	}
	var text []byte
	if codec == Repeated {
		i := len(window) - 1
		if len(code) == 1 {
			i -= int(code[0])
		}
		if len(code) > 1 || i < 0 {
			return nil, ErrHistory
		}
		text = bytes.Clone(window[i].text)
		if len(text) > limit {
			return nil, ErrTooLong
		}
		if got := sumAfter(nil, window, text); [checkOctets]byte(got[:]) != sum {
			return nil, ErrHistory
		}
		return text, nil
	}
	return c.expandLearned(codec, code, window, sum, limit)
}

// expandLearned tries each image that a code may have been made from: where a network has a corpus of its own, the sender
// may not know yet that this gateway has it too.
func (c *Coder) expandLearned(codec Codec, code []byte, window []entry, sum [checkOctets]byte, limit int) ([]byte, error) {
	images := []*image{c.imageFor(window[len(window)-1].stream)}
	if c.Network != nil {
		if other := c.Network.taught; images[0] != other {
			images = append(images, other)
		} else {
			images = append(images, primed)
		}
	}
	failed := ErrHistory
	for _, from := range images {
		text, err := c.expand(from, window, codec, code, min(limit, MaxLearned))
		switch {
		case errors.Is(err, ErrUnfinished):
			return nil, err
		case errors.Is(err, ErrTooLong) && limit < MaxLearned:
			failed = err
		case err == nil:
			if got := sumAfter(c.salt(from), window, text); [checkOctets]byte(got[:]) == sum {
				return text, nil
			}
		}
	}
	return nil, failed
}
