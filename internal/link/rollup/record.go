// Package rollup carries the records of a fleet's gateways along a tree to their headquarters: docs/decisions/rollup.md.
//
// Each gateway makes one Record a period. A Table holds the newest record of each gateway, and says which of them go on to
// the parent. Records are not added up on the way, so the sum over a Table equals its parts. Config.Proves says which
// gateway made a record: on the way only a neighbour's own record is proven, and at the headquarters each is.
//
// A Table holds at most MostRecords for each neighbour that passes them on. The package is pure. Times are the caller's.
// Input is from an authentic datagram of a neighbour, which may lie; no input makes it panic.
//
// Read record.go first, then table.go.
package rollup

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"time"
)

// Ranks is the number of precedences, the lowest first.
const Ranks = 6

// Record is a gateway's report on itself.
type Record struct {
	Origin  uint16 // node id
	Serial  uint32 // higher in each later record of the origin, also after a start; see Newer
	Parent  uint16 // to which the origin gives it; 0: to none, for the origin is the headquarters
	Waiting [Ranks]int
	Oldest  time.Duration // how long the oldest waiting message has waited
	Bearers int           // of the origin, 15 at the most
	Up      int           // of these, with a peer that answers
	Version uint16        // major and minor, an octet each
	// Silent: the origin transmits nothing for so long from the reading on; Endless: until it is told otherwise; 0: it transmits.
	Silent time.Duration
}

// Endless is a silence that has no end yet.
const Endless = time.Duration(1<<63 - 1)

// MostWaiting is the most waiting messages of a precedence in a record.
const MostWaiting = 1<<21 - 1

// ProofOctets follow each record, and are for the headquarters alone.
const ProofOctets = 4

// Bits of the octet that says which fields follow.
const (
	silentBit   = 1 << 6
	minuteSteps = time.Minute
	noEnd       = 1<<16 - 1
)

var errRecord = errors.New("rollup: no record")

// Newer says whether a serial is of a later record than another.
func Newer(serial, than uint32) bool { return int32(serial-than) > 0 }

// Append appends a record, without its proof. It takes 12 to 32 octets: 16 with two precedences and ids under 128.
func Append(b []byte, r *Record) []byte {
	b = binary.AppendUvarint(b, uint64(r.Origin))
	b = binary.BigEndian.AppendUint32(b, r.Serial)
	b = binary.AppendUvarint(b, uint64(r.Parent))
	mask, at := byte(0), len(b)
	b = append(b, 0)
	for i, n := range r.Waiting {
		if n > 0 {
			mask |= 1 << i
			b = binary.AppendUvarint(b, uint64(min(n, MostWaiting)))
		}
	}
	if mask != 0 {
		b = append(b, short(r.Oldest, 4))
	}
	b = append(b, byte(min(r.Bearers, 15)<<4|min(r.Up, 15)))
	b = binary.BigEndian.AppendUint16(b, r.Version)
	if r.Silent > 0 {
		mask |= silentBit
		b = binary.BigEndian.AppendUint16(b, minutes(r.Silent))
	}
	b[at] = mask
	return b
}

// minutes is a silence as written on the link: whole minutes, rounded up, or noEnd.
func minutes(d time.Duration) uint16 {
	if d == Endless {
		return noEnd
	}
	return uint16(min((d+minuteSteps-1)/minuteSteps, noEnd-1))
}

func silence(n uint16) time.Duration {
	if n == noEnd {
		return Endless
	}
	return time.Duration(n) * minuteSteps
}

// Parse takes a record off b.
func Parse(b []byte) (r Record, rest []byte, err error) {
	p := parser{b: b}
	r.Origin, r.Serial, r.Parent = p.id(), p.uint32(), p.id()
	mask := p.octet()
	for i := range r.Waiting {
		if mask>>i&1 != 0 {
			n := p.varint()
			if n == 0 || n > MostWaiting {
				p.bad = true
			}
			r.Waiting[i] = int(n)
		}
	}
	if mask&(1<<Ranks-1) != 0 {
		r.Oldest = long(p.octet(), 4)
	}
	bearers := p.octet()
	r.Bearers, r.Up = int(bearers>>4), int(bearers&15)
	r.Version = p.uint16()
	if mask&silentBit != 0 {
		n := p.uint16()
		r.Silent = silence(n)
		p.bad = p.bad || n == 0
	}
	if p.bad || r.Origin == 0 || r.Up > r.Bearers || mask > 1<<Ranks-1|silentBit {
		return Record{}, nil, errRecord
	}
	return r, p.b, nil
}

// parser reads fields; bad: one was not there.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) take(n int) []byte {
	if len(p.b) < n {
		p.b, p.bad = nil, true
		return make([]byte, n)
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *parser) octet() byte    { return p.take(1)[0] }
func (p *parser) uint16() uint16 { return binary.BigEndian.Uint16(p.take(2)) }
func (p *parser) uint32() uint32 { return binary.BigEndian.Uint32(p.take(4)) }

func (p *parser) varint() uint64 {
	n, size := binary.Uvarint(p.b)
	if size <= 0 || size > 1 && p.b[size-1] == 0 { // each number has only one form
		p.b, p.bad = nil, true
		return 0
	}
	p.b = p.b[size:]
	return n
}

func (p *parser) id() uint16 {
	n := p.varint()
	if n > 1<<16-1 {
		p.bad = true
	}
	return uint16(n)
}

// short is a time of whole seconds in a few bits: an exponent of four bits, and so many bits of the number. It is rounded
// down, and at most as long as these bits can express: 2.8 days with three bits, 5.9 days with four.
func short(d time.Duration, wide int) byte {
	n, whole := uint64(max(d, 0)/time.Second), uint64(1)<<wide
	if n < whole {
		return byte(n)
	}
	e := bits.Len64(n) - wide // 1 for the first numbers that have an exponent
	if e > 15 {
		return byte(16*whole - 1)
	}
	return byte(uint64(e)<<wide | n>>(e-1)&(whole-1))
}

func long(b byte, wide int) time.Duration {
	e, n, whole := int(b)>>wide, uint64(b)&(1<<wide-1), uint64(1)<<wide
	if e == 0 {
		return time.Duration(n) * time.Second
	}
	return time.Duration((whole+n)<<(e-1)) * time.Second
}
