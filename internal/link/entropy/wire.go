package entropy

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"
)

// ErrFormat says that octets are no frame of a group.
var ErrFormat = errors.New("entropy: not a frame of a group")

// The first octet of each part of a frame; parity.go has two more.
const (
	kindItem  = 4 << 5 // without flagLast uvarint octets of the rest; tag (2), uvarint origin, number (6), lifetime left (1), lifetime (1), body
	kindYoung = 5 << 5 // the same without the lifetime left: young; package frame joins it with flagLast to its own octet
	kindFull  = 2 << 5 // tag (2), with flagPartial uvarint first and last origin covered, uvarint octets of the entries, entries
	kindAsk   = 3 << 5 // tag (2), for each origin: uvarint difference to the one before, ranges; 0 ends them
	kindMask  = 7 << 5

	hopsMask  = MostHops - 1 // of a message: one less than the hops that are left
	flagNames = 1 << 3
	flagLast  = 1 << 4 // the message is the last part of the frame

	flagPartial = 1
	flagWide    = 2 // entries have whole numbers
)

// Life codes a lifetime, rounded down by at most a twelfth: eighths of powers of two seconds.
func Life(d time.Duration) uint8 {
	s := min(d, MostLife).Seconds()
	if s < 1 {
		return 0
	}
	return uint8(min(8*math.Log2(s)+1e-9, 255))
}

// LifeOf is the lifetime that Life codes.
func LifeOf(code uint8) time.Duration {
	return min(MostLife, time.Duration(math.Exp2(float64(code)/8)*float64(time.Second)))
}

const (
	numberOctets = 6
	mostNumber   = 1<<48 - 1
)

func appendNumber(b []byte, n uint64) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(n>>32)), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func parseNumber(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

// Signed appends the octets that the signature of a message covers before its body.
func (it *Item) Signed(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, it.Origin)
	return append(appendNumber(b, it.Number), it.Life)
}

// young is the lifetime left, coded, of a message that MostHops nodes might take and none has held for long: each has rounded
// it down. hops are those that are left.
func young(life, hops uint8) uint8 {
	nodes := MostHops + 1 - hops
	return max(life, nodes) - nodes
}

// over and what follows code the time for which a message is still held whose lifetime has ended.
const over = 132

// appendItem writes a message with the hops and lifetime that are left now.
func appendItem(b []byte, now time.Time, it *Item) []byte {
	hops := min(max(it.Hops, 1), MostHops)
	kind, left := kindItem|(hops-1), min(young(it.Life, MostHops), Life(it.Expires.Sub(now)))
	if left == young(it.Life, hops)+1 { // it goes on at the moment at which it came: no time has been rounded down
		left--
	}
	if it.Names {
		kind |= flagNames
		if !it.Expires.After(now) {
			left = over + Life(it.Until().Sub(now))
		}
	}
	head := binary.BigEndian.AppendUint16(nil, uint16(it.Tag))
	head = appendNumber(binary.AppendUvarint(head, uint64(it.Origin)), it.Number)
	if left == young(it.Life, hops) {
		kind |= kindYoung
	} else {
		head = append(head, left)
	}
	head = append(head, it.Life)
	b = binary.AppendUvarint(append(b, kind), uint64(len(head)+len(it.Body)))
	return append(append(b, head...), it.Body...)
}

// endItem leaves out the length of a message that is the last part of a frame: frame[at:].
func endItem(frame []byte, at int) []byte {
	if frame[at] < kindItem {
		return frame
	}
	_, n := binary.Uvarint(frame[at+1:])
	frame[at] |= flagLast
	return slices.Delete(frame, at+1, at+1+n)
}

// parseItem reads a message without its first octet, kind.
func parseItem(now time.Time, kind byte, b []byte) (it Item, rest []byte, err error) {
	if kind&flagLast == 0 {
		n, after, err := uvarint(b, MostBody+2+3+numberOctets+2)
		if err != nil || len(after) < int(n) {
			return it, nil, ErrFormat
		}
		b, rest = after[:n], after[n:]
	}
	if len(b) < 2 {
		return it, nil, ErrFormat
	}
	it.Tag = Tag(binary.BigEndian.Uint16(b))
	id, b, err := uvarint(b[2:], math.MaxUint16)
	if err != nil || len(b) < numberOctets+1 || id == 0 {
		return it, nil, ErrFormat
	}
	it.Origin, it.Number = uint16(id), parseNumber(b)
	b = b[numberOctets:]
	it.Hops, it.Names = kind&hopsMask+1, kind&flagNames != 0
	left := young(b[0], it.Hops)
	if kind&kindMask == kindItem {
		left, b = b[0], b[1:]
	}
	if len(b) == 0 {
		return it, nil, ErrFormat
	}
	it.Life = b[0]
	it.Expires = now.Add(LifeOf(min(left, it.Life)))
	if it.Names && left >= over {
		it.Expires = now.Add(min(LifeOf(left-over), it.beyond()) - it.beyond())
	}
	it.Body = slices.Clone(b[1:])
	if len(it.Body) > MostBody || it.Number == 0 {
		return it, nil, ErrFormat
	}
	return it, rest, nil
}

func uvarint(b []byte, most uint64) (uint64, []byte, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > most {
		return 0, nil, ErrFormat
	}
	return n, b[size:], nil
}

// full lists the messages that a node holds of a group, origin by origin.
type full struct {
	tag         Tag
	first, last uint16 // the origins that it covers
	wide        bool
	entries     []entry
}

// entry lists the messages held of one origin: top and those before it, run in all; then those whose bit is set, the first
// bit being for top-run-1. below says that the node lacks some of the numbers before these; otherwise it wants none of
// them.
type entry struct {
	origin uint16
	top    uint64 // its low 16 bits; the whole number in a wide list
	run    uint64
	bits   []byte
	below  bool
}

// The first octet of an entry has the difference to the origin before in the high three bits, 0 where it follows as a
// uvarint, and in the low five the run, or one of these values.
const (
	entryMost  = 28 // the longest run that fits there
	entryHoles = 29 // uvarint run, uvarint octets of bits and below, bits
)

func (n *entry) append(b []byte, before uint16, wide bool) []byte {
	step, holes := n.origin-before, n.below || len(n.bits) > 0 || n.run > entryMost
	form := byte(entryHoles)
	if !holes {
		form = byte(n.run)
	}
	if step < 8 {
		b = append(b, byte(step)<<5|form)
	} else {
		b = binary.AppendUvarint(append(b, form), uint64(step))
	}
	if wide {
		b = appendNumber(b, n.top)
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(n.top))
	}
	if holes {
		b = binary.AppendUvarint(b, n.run)
		more := uint64(len(n.bits)) << 1
		if n.below {
			more |= 1
		}
		b = append(binary.AppendUvarint(b, more), n.bits...)
	}
	return b
}

func parseEntry(b []byte, before uint16, wide bool) (n entry, rest []byte, err error) {
	if len(b) == 0 {
		return n, nil, ErrFormat
	}
	step, form := uint64(b[0]>>5), b[0]&31
	b = b[1:]
	if step == 0 {
		if step, b, err = uvarint(b, math.MaxUint16); err != nil || step == 0 {
			return n, nil, ErrFormat
		}
	}
	if form > entryHoles || step+uint64(before) > math.MaxUint16 {
		return n, nil, ErrFormat
	}
	n.origin, n.run = before+uint16(step), uint64(form)
	switch {
	case wide && len(b) >= numberOctets:
		n.top, b = parseNumber(b), b[numberOctets:]
	case !wide && len(b) >= 2:
		n.top, b = uint64(binary.BigEndian.Uint16(b)), b[2:]
	default:
		return n, nil, ErrFormat
	}
	if form != entryHoles {
		return n, b, nil
	}
	var more uint64
	if n.run, b, err = uvarint(b, back); err != nil {
		return n, nil, err
	}
	if more, b, err = uvarint(b, back/4+1); err != nil || len(b) < int(more>>1) {
		return n, nil, ErrFormat
	}
	n.below, n.bits = more&1 != 0, b[:more>>1]
	return n, b[more>>1:], nil
}

// holds says whether the node holds the number that is so far before its top.
func (n *entry) holds(before uint64) bool {
	if before < n.run {
		return true
	}
	at := before - n.run // bit 0 is the first that is missing
	return at > 0 && at-1 < uint64(len(n.bits)*8) && n.bits[(at-1)/8]&(1<<((at-1)%8)) != 0
}

// wants says whether the node, as far as its list shows, lacks that number and has never had it.
func (n *entry) wants(before uint64) bool {
	if n.holds(before) {
		return false
	}
	return n.below || before-n.run < 1+uint64(len(n.bits)*8) && len(n.bits) > 0
}

func (f *full) append(b []byte) []byte {
	kind := byte(kindFull)
	partial := f.first > 0 || f.last < math.MaxUint16
	if partial {
		kind |= flagPartial
	}
	if f.wide {
		kind |= flagWide
	}
	b = binary.BigEndian.AppendUint16(append(b, kind), uint16(f.tag))
	if partial {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(f.first)), uint64(f.last))
	}
	var list []byte
	before := uint16(0)
	for i := range f.entries {
		list = f.entries[i].append(list, before, f.wide)
		before = f.entries[i].origin
	}
	return append(binary.AppendUvarint(b, uint64(len(list))), list...)
}

func parseFull(flags byte, b []byte) (f full, rest []byte, err error) {
	if flags&^(flagPartial|flagWide) != 0 || len(b) < 2 {
		return f, nil, ErrFormat
	}
	f.tag, f.last, f.wide = Tag(binary.BigEndian.Uint16(b)), math.MaxUint16, flags&flagWide != 0
	b = b[2:]
	if flags&flagPartial != 0 {
		var first, last uint64
		if first, b, err = uvarint(b, math.MaxUint16); err == nil {
			last, b, err = uvarint(b, math.MaxUint16)
		}
		if err != nil || last < first {
			return f, nil, ErrFormat
		}
		f.first, f.last = uint16(first), uint16(last)
	}
	n, b, err := uvarint(b, math.MaxUint16)
	if err != nil || uint64(len(b)) < n {
		return f, nil, ErrFormat
	}
	list, rest := b[:n], b[n:]
	before := uint16(0)
	for len(list) > 0 {
		var each entry
		if each, list, err = parseEntry(list, before, f.wide); err != nil || len(f.entries) == mostOrigins || each.origin < f.first || each.origin > f.last {
			return f, nil, ErrFormat
		}
		before = each.origin
		f.entries = append(f.entries, each)
	}
	return f, rest, nil
}

// span is a range of numbers of an origin, by the low 16 bits of the first.
type span struct {
	origin uint16
	first  uint16
	count  int // 1 to mostSpan
}

const mostSpan = 128

// asked is a solicitation.
type asked struct {
	tag   Tag
	spans []span
}

// mostSpans is how many spans one solicitation has.
const mostSpans = 64

func (a *asked) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, kindAsk), uint16(a.tag))
	before := uint16(0)
	for i, s := range a.spans {
		if s.origin != before {
			b = binary.AppendUvarint(b, uint64(s.origin-before))
			before = s.origin
		}
		count := byte(s.count - 1)
		if i+1 == len(a.spans) || a.spans[i+1].origin != s.origin {
			count |= 0x80
		}
		b = append(binary.BigEndian.AppendUint16(b, s.first), count)
	}
	return append(b, 0)
}

func parseAsk(b []byte) (a asked, rest []byte, err error) {
	if len(b) < 2 {
		return a, nil, ErrFormat
	}
	a.tag, b = Tag(binary.BigEndian.Uint16(b)), b[2:]
	id := uint64(0)
	for {
		var step uint64
		if step, b, err = uvarint(b, math.MaxUint16); err != nil || id+step > math.MaxUint16 {
			return a, nil, ErrFormat
		}
		if step == 0 {
			return a, b, nil
		}
		id += step
		for last := false; !last; {
			if len(b) < 3 || len(a.spans) == mostSpans {
				return a, nil, ErrFormat
			}
			a.spans = append(a.spans, span{uint16(id), binary.BigEndian.Uint16(b), int(b[2]&0x7f) + 1})
			last, b = b[2]&0x80 != 0, b[3:]
		}
	}
}
