package envelope

import (
	"encoding/binary"
	"fmt"

	"aldis/internal/site"
)

// Lost reports messages of the receiver that the sender's site has acknowledged and could not hand to all their recipients.
// Numbers are the receiver's: of a queue, in a stream of its numbers, ascending. If the receiver has begun these numbers
// anew since, or has lost them with its store, only Count is given.
type Lost struct {
	Why     site.Why
	Bearer  uint8 // on which they came, as in Moved; 0: the bearer without a name
	Stream  uint8
	Queue   uint8
	Numbers []uint64
	Count   int // Numbers is empty then
}

// One Lost is an octet (why in the low four bits, the queue above), the bearer if it has a name, the stream and the count.
// Where messages are named, runs of numbers follow: an unsigned varint each for the numbers left out since the last run,
// and for the run's length less one.
const (
	lostWhy   = 0x0f
	lostQueue = 0x30
	lostNamed = 0x40
	lostOn    = 0x80 // a bearer with a name
)

// MaxLost is how many messages one envelope may name.
const MaxLost = 4096

func joinLost(list []Lost) (b []byte) {
	for _, l := range list {
		head := byte(l.Why)&lostWhy | l.Queue<<4&lostQueue
		if len(l.Numbers) == 0 {
			b = binary.AppendUvarint(append(b, head, l.Stream), uint64(l.Count))
			continue
		}
		b = append(b, head|lostNamed)
		if l.Bearer != 0 {
			b[len(b)-1] |= lostOn
			b = append(b, l.Bearer)
		}
		b = binary.AppendUvarint(append(b, l.Stream), uint64(len(l.Numbers)))
		next := uint64(0)
		for i := 0; i < len(l.Numbers); {
			j := i + 1
			for j < len(l.Numbers) && l.Numbers[j] == l.Numbers[i]+uint64(j-i) {
				j++
			}
			b = binary.AppendUvarint(b, l.Numbers[i]-next)
			b = binary.AppendUvarint(b, uint64(j-i-1))
			next = l.Numbers[j-1] + 1
			i = j
		}
	}
	return b
}

func splitLost(b []byte) (list []Lost, err error) {
	bad := fmt.Errorf("%w: %d octets about undeliverable messages", ErrMalformed, len(b))
	number := func() (n uint64) {
		n, w := binary.Uvarint(b)
		if w <= 0 {
			err = bad
			return 0
		}
		b = b[w:]
		return n
	}
	for named := 0; len(b) > 0; {
		if len(b) < 2 {
			return nil, bad
		}
		head, bearer := b[0], uint8(0)
		if head&lostOn != 0 {
			bearer, b = b[1], b[1:]
			if len(b) < 2 {
				return nil, bad
			}
		}
		l := Lost{Why: site.Why(head & lostWhy), Bearer: bearer, Queue: head & lostQueue >> 4, Stream: b[1]}
		b = b[2:]
		count := number()
		if head&lostNamed == 0 {
			l.Count = int(count)
			if count == 0 || count > 1<<31-1 {
				return nil, bad
			}
			list = append(list, l)
			continue
		}
		named += int(min(count, MaxLost+1))
		if named > MaxLost {
			return nil, fmt.Errorf("%w: more than %d undeliverable messages", ErrLimit, MaxLost)
		}
		for next := uint64(0); uint64(len(l.Numbers)) < count; {
			first, more := number(), number()
			if err != nil || more >= count-uint64(len(l.Numbers)) || next+first < next || next+first+more+1 < next+first {
				return nil, bad
			}
			for n := next + first; n <= next+first+more; n++ {
				l.Numbers = append(l.Numbers, n)
			}
			next += first + more + 1
		}
		if err != nil || len(l.Numbers) == 0 {
			return nil, bad
		}
		list = append(list, l)
	}
	return list, nil
}
