package frame

import (
	"encoding/binary"
	"math"
)

const (
	segmentFirst  = 1 << 0 // of the octet with a segment's object: the total follows
	segmentObject = 1      // the object is above this bit
)

func appendSegment(b []byte, f Segment, last bool) []byte {
	kind := kindNORM | flagSegment | flag(f.Prompt, flagPrompt) | flag(!f.Short, flagWide) | flag(f.Rides, flagRides)
	var head []byte
	if !f.Short {
		head = append(head, byte(f.Number>>8))
	}
	head = append(head, byte(f.Number))
	if f.Rides {
		head = append(head, f.Cumulative)
	}
	head = append(head, f.Object<<segmentObject|flag(f.Total > 0, segmentFirst))
	if f.Total > 0 {
		head = binary.AppendUvarint(head, segmentTotal(f))
	}
	return appendBody(b, kind, last, head, f.Body)
}

func segmentTotal(f Segment) uint64 { return uint64(f.Total)<<1 | uint64(flag(f.Free, 1)) }

// SegmentTotal is how many octets the first segment of an object takes more than the others.
func SegmentTotal(f Segment) int { return len(binary.AppendUvarint(nil, segmentTotal(f))) }

func parseSegment(flags byte, b []byte) (f Frame, rest []byte, err error) {
	p := Segment{Short: flags&flagWide == 0, Prompt: flags&flagPrompt != 0, Rides: flags&flagRides != 0}
	if len(b) < 2+btoi(!p.Short)+btoi(p.Rides) {
		return nil, nil, ErrShort
	}
	if !p.Short {
		p.Number, b = uint16(b[0])<<8, b[1:]
	}
	p.Number, b = p.Number|uint16(b[0]), b[1:]
	if p.Rides {
		p.Cumulative, b = b[0], b[1:]
	}
	first := b[0]&segmentFirst != 0
	p.Object, b = b[0]>>segmentObject, b[1:]
	if first {
		total, n := binary.Uvarint(b)
		switch {
		case n == 0:
			return nil, nil, ErrShort
		case n < 0 || n != len(binary.AppendUvarint(nil, total)) || total>>1 == 0 || total>>1 > math.MaxInt32:
			return nil, nil, ErrKind
		}
		p.Total, p.Free, b = int(total>>1), total&1 != 0, b[n:]
	}
	p.Body, rest, err = body(b, flags)
	return p, rest, err
}
