package envelope

import (
	"encoding/binary"
	"fmt"
)

// Moved names a message as it was sent on another bearer, before its sender gave that up: by a number of a queue in the
// stream of the sender's numbers there, or by a run of numbers if it went in segments. A receiver that has read the message
// there drops this copy. Another receiver counts the numbers as used, so that the queue goes on.
type Moved struct {
	Bearer uint8 // a number that both ends derive from the bearer's name
	Stream uint8
	Queue  uint8
	Number uint64
	More   int // further numbers of the run
}

// Rest is the part of a long message that its receiver may lack. The receiver has the first From octets of the message, as
// it was coded on the other bearer; Octets are the octets after those.
type Rest struct {
	From   int
	Octets []byte
}

// MaxMoved is how many runs of numbers one envelope may name.
const MaxMoved = 64

func joinMoved(list []Moved) (b []byte) {
	for _, m := range list {
		b = binary.AppendUvarint(append(b, m.Bearer, m.Stream, m.Queue), m.Number)
		b = binary.AppendUvarint(b, uint64(m.More))
	}
	return b
}

func splitMoved(b []byte) (list []Moved, err error) {
	for len(b) > 0 {
		if len(b) < 3 || len(list) == MaxMoved {
			return nil, fmt.Errorf("%w: %d octets behind %d names of other bearers", ErrMalformed, len(b), len(list))
		}
		m := Moved{Bearer: b[0], Stream: b[1], Queue: b[2]}
		number, n := binary.Uvarint(b[3:])
		more, w := uint64(0), 0
		if n > 0 {
			more, w = binary.Uvarint(b[3+n:])
		}
		if w <= 0 || number == 0 || more > maxRun {
			return nil, fmt.Errorf("%w: a name of another bearer", ErrMalformed)
		}
		m.Number, m.More = number, int(more)
		list, b = append(list, m), b[3+n+w:]
	}
	return list, nil
}

// maxRun is how many numbers may follow the first of a run: as many as may be under way.
const maxRun = 1 << 11

func (r *Rest) join() []byte {
	if r == nil {
		return nil
	}
	return append(binary.AppendUvarint(nil, uint64(r.From)), r.Octets...)
}

func splitRest(b []byte) (*Rest, error) {
	if len(b) == 0 {
		return nil, nil
	}
	from, n := binary.Uvarint(b)
	if n <= 0 || from > maxExpanded {
		return nil, fmt.Errorf("%w: the rest of a message", ErrMalformed)
	}
	return &Rest{From: int(from), Octets: b[n:]}, nil
}
