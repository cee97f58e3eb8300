package frame

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Talkers is written as runs of ids: the number of runs, one octet, and for each run, as varints, how many ids are skipped,
// counted from 0, and how many ids follow.

// runs is the runs of the first ids, at most MaxMembers ids in maxPairs runs.
func (f Talkers) runs() []byte {
	b, count, next := []byte{0}, 0, 0
	ids := f.IDs[:min(len(f.IDs), MaxMembers)]
	for at := 0; at < len(ids) && count < maxPairs; count++ {
		from := at
		for at++; at < len(ids) && ids[at] == ids[at-1]+1; at++ {
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(int(ids[from])-next)), uint64(at-from))
		next = int(ids[from]) + at - from
	}
	b[0] = byte(count)
	return b
}

// parseTalkers reads what follows the first octet.
func parseTalkers(b []byte) (f Frame, rest []byte, err error) {
	if len(b) < 1 {
		return nil, nil, ErrShort
	}
	count := int(b[0])
	if count == 0 || count > maxPairs {
		return nil, nil, ErrKind
	}
	b = b[1:]
	var t Talkers
	next := uint64(0)
	for i := range 2 * count {
		n, size := binary.Uvarint(b)
		switch {
		case size == 0:
			return nil, nil, ErrShort
		case size < 0 || size != (bits.Len64(n|1)+6)/7 || n > math.MaxUint16+1-next || n == 0 && i > 0 || i%2 == 1 && n > uint64(MaxMembers-len(t.IDs)):
			return nil, nil, ErrKind
		}
		b = b[size:]
		if i%2 == 1 {
			for id := next; id < next+n; id++ {
				t.IDs = append(t.IDs, uint16(id))
			}
		}
		next += n
	}
	return t, b, nil
}

// parseBeside reads what follows the first octet.
func parseBeside(b []byte) (f Frame, rest []byte, err error) {
	if len(b) < 3 {
		return nil, nil, ErrShort
	}
	inner, rest, err := Parse(b[2:])
	ack, ok := inner.(Ack)
	if err == nil && !ok {
		err = ErrKind
	}
	return Beside{b[0], b[1], ack}, rest, err
}
