package frame

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// An acknowledgement whose bitmap is longer than MaxBitmap is written as runs: the number of pairs, one octet, and for each
// pair, as varints, how many numbers are missing and how many after them have arrived.

const (
	// MaxRuns is the most octets of a bitmap that is written as runs.
	MaxRuns = 256
	// maxPairs bounds the octets of the runs, so that they fit the smallest datagram.
	maxPairs = 40
)

// runs is the bitmap as runs; nil: the bitmap goes unchanged.
func (r Ack) runs() []byte {
	pairs, end := r.pairs()
	if r.Queue != Direct || end <= 8*MaxBitmap {
		return nil
	}
	b := []byte{byte(len(pairs))}
	for _, p := range pairs {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(p[0])), uint64(p[1]))
	}
	return b
}

// pairs are the first runs of the bitmap, missing and arrived, and how many numbers they cover.
func (r Ack) pairs() (pairs [][2]int, end int) {
	held := func(n int) bool { return r.Bitmap[n/8]>>(n%8)&1 != 0 }
	most := 8 * min(len(r.Bitmap), MaxRuns)
	for len(pairs) < maxPairs {
		from := end
		for from < most && !held(from) {
			from++
		}
		to := from
		for to < most && held(to) {
			to++
		}
		if to == from {
			break
		}
		pairs, end = append(pairs, [2]int{from - end, to - from}), to
	}
	return pairs, end
}

// Reach is how many numbers beyond Cumulative the acknowledgement would name if they had arrived.
func (r Ack) Reach() int {
	switch {
	case len(r.Bitmap) < MaxBitmap:
		return math.MaxInt
	case len(r.Bitmap) == MaxBitmap:
		return 8 * MaxBitmap
	}
	pairs, end := r.pairs()
	if len(pairs) < maxPairs {
		return math.MaxInt
	}
	return end
}

// parseRuns reads what follows the first octet.
func parseRuns(b []byte) (f Frame, rest []byte, err error) {
	if len(b) < 3 {
		return nil, nil, ErrShort
	}
	r := Ack{Cumulative: binary.BigEndian.Uint16(b)}
	count := int(b[2])
	if count == 0 || count > maxPairs {
		return nil, nil, ErrKind
	}
	b = b[3:]
	end := 0
	for i := range 2 * count {
		n, size := binary.Uvarint(b)
		switch {
		case size == 0:
			return nil, nil, ErrShort
		case size < 0 || size != (bits.Len64(n|1)+6)/7 || n > uint64(8*MaxRuns-end) || n == 0 && i > 0:
			return nil, nil, ErrKind
		}
		b = b[size:]
		from := end
		end += int(n)
		if i%2 == 0 {
			continue
		}
		r.Bitmap = append(r.Bitmap, make([]byte, (end+7)/8-len(r.Bitmap))...)
		for ; from < end; from++ {
			r.Bitmap[from/8] |= 1 << (from % 8)
		}
	}
	if end <= 8*MaxBitmap {
		return nil, nil, ErrKind
	}
	return r, b, nil
}
