package probe

import (
	"encoding/binary"
	"errors"
	"time"
)

// ErrWord says that octets are not a word of a link probe.
var ErrWord = errors.New("link probe: cut short, or unknown")

// Op is the kind of a word.
type Op uint8

// The words.
const (
	Echo   Op = iota // near: answer at once with as many octets
	Shot             // near: a datagram of a train
	Train            // near: send a train
	Ask              // near: report from an event on
	Back             // far: an answer to an Echo, or a datagram of a train
	Report           // far: events
	Refuse           // far: no answer, and why
	ops
)

// Word is one datagram of a link probe.
type Word struct {
	Op  Op
	ID  uint8  // of the link probe
	Seq uint16 // of the datagram: the near end counts from 0; an answer to an Echo has its number, the far end's train counts from 32

	Small, Count, Large int // Train: so many datagrams of Small octets, and if Large is not 0 one of so many in the middle
	From                int // Ask, Report: the first event of the report
	Total               int // Report: events in all
	Events              []Event
	Why                 Reason // Refuse
}

// Reason is why a far end does not answer.
type Reason uint8

// TooMuch: it has sent as much as it may in an hour.
const TooMuch Reason = 1

// Event is one datagram as the far end saw it.
type Event struct {
	Sent bool // by the far end; otherwise it arrived there
	Seq  uint16
	At   time.Duration // since the first event
}

// unit of times on the link.
const unit = 100 * time.Microsecond

// Bounds of words that are accepted.
const (
	MostEvents = 2048 // of a link probe at one end
	mostTrain  = 1024 // datagrams
	mostSize   = 1 << 16
	longest    = 24 * time.Hour
)

// trainFrom is the first number of the far end's train. An answer to a single datagram has that datagram's number.
const trainFrom = 32

// headOctets is the size of the smallest word.
const headOctets = 3

// Append appends w, filled up with zeros to so many octets.
func Append(b []byte, w Word, octets int) []byte {
	begin := len(b)
	b = binary.AppendUvarint(append(b, byte(w.Op), w.ID), uint64(w.Seq))
	switch w.Op {
	case Train:
		for _, n := range []int{w.Small, w.Count, w.Large} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	case Ask:
		b = binary.AppendUvarint(b, uint64(w.From))
	case Report:
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(w.From)), uint64(w.Total))
		b = binary.AppendUvarint(b, uint64(len(w.Events)))
		var from written
		for _, e := range w.Events {
			b = from.append(b, e)
		}
	case Refuse:
		b = binary.AppendUvarint(b, uint64(w.Why))
	}
	for len(b)-begin < octets {
		b = append(b, 0)
	}
	return b
}

// written is the state of writing a report: an event has only its differences from the expected one.
type written struct {
	at   int64     // in units
	next [2]uint16 // seq of the next one that arrived, and that was sent
}

func (w *written) append(b []byte, e Event) []byte {
	at, which := int64(e.At/unit), 0
	head := uint64(at-w.at) << 2
	if e.Sent {
		head |= 1
		which = 1
	}
	jump := e.Seq != w.next[which]
	if jump {
		head |= 2
	}
	b = binary.AppendUvarint(b, head)
	if jump {
		b = binary.AppendUvarint(b, uint64(e.Seq))
	}
	w.at, w.next[which] = at, e.Seq+1
	return b
}

func (w *written) parse(b []byte) (e Event, rest []byte, err error) {
	head, b, err := number(b, 4*uint64(longest/unit))
	if err != nil {
		return e, nil, err
	}
	which := int(head & 1)
	seq := uint64(w.next[which])
	if head&2 != 0 {
		if seq, b, err = number(b, 1<<16-1); err != nil {
			return e, nil, err
		}
	}
	w.at += int64(head >> 2)
	if w.at > int64(longest/unit) {
		return e, nil, ErrWord
	}
	w.next[which] = uint16(seq) + 1
	return Event{which == 1, uint16(seq), time.Duration(w.at) * unit}, b, nil
}

func number(b []byte, most uint64) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > most {
		return 0, nil, ErrWord
	}
	return v, b[n:], nil
}

// Parse is the inverse of Append; it ignores the zeros that fill a word up.
func Parse(b []byte) (w Word, err error) {
	if len(b) < headOctets || Op(b[0]) >= ops {
		return w, ErrWord
	}
	w.Op, w.ID = Op(b[0]), b[1]
	b = b[2:]
	next := func(most uint64) (v int) {
		if err != nil {
			return 0
		}
		var n uint64
		n, b, err = number(b, most)
		return int(n)
	}
	w.Seq = uint16(next(1<<16 - 1))
	switch w.Op {
	case Train:
		w.Small, w.Count, w.Large = next(mostSize), next(mostTrain), next(mostSize)
	case Ask:
		w.From = next(MostEvents)
	case Report:
		w.From, w.Total = next(MostEvents), next(MostEvents)
		n := next(MostEvents)
		var at written
		for range n {
			var e Event
			if err == nil {
				e, b, err = at.parse(b)
			}
			if err != nil {
				return Word{}, err
			}
			w.Events = append(w.Events, e)
		}
		if err == nil && w.From+len(w.Events) > w.Total {
			err = ErrWord
		}
	case Refuse:
		w.Why = Reason(next(255))
	}
	if err != nil {
		return Word{}, err
	}
	return w, nil
}
