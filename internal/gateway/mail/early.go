package mail

import (
	"encoding/binary"
	"slices"
	"time"

	"aldis/internal/due"
	"aldis/internal/link/frame"
)

// Early keeps what arrives before its turn in the lanes of one peer, in memory and journal.
type Early struct {
	Peer uint16
	Road Road
	of   map[Attempt]Arrival // by place in their lane
}

// Arrival is a message that waits for its turn.
type Arrival struct {
	Place  Attempt
	Number uint64    // the message's own, where its place is another
	Piece  bool      // Body is the frame of a piece of a message
	Body   []byte    // empty: it was delivered before its turn, and its place is noted
	Free   bool      // it need not wait for those before it that are missing,
	After  uint64    // but for this one, where it is not 0; both are forgotten in a restart
	At     time.Time // when it came, or when this run began
}

const (
	BucketEarly = "early" // peer, lane, place -> in lane Group the message's number; body

	flagPiece = 0x80 // of the lane in a key: it is a piece
)

// Keep puts a message by. Where durable is false its turn has come, and Take follows.
func (e *Early) Keep(a Arrival, durable bool) {
	if e.of == nil {
		e.of = map[Attempt]Arrival{}
	}
	e.of[a.Place] = a
	if durable {
		e.record(a)
	}
}

func (e *Early) record(a Arrival) {
	value := append([]byte{}, a.Body...) // never nil: that would delete
	if a.Place.Lane == Group {
		value = append(binary.BigEndian.AppendUint64(nil, a.Number), a.Body...)
	}
	e.Road.Record(BucketEarly, e.key(a), value)
}

// Get is what has this place.
func (e *Early) Get(place Attempt) (a Arrival, ok bool) {
	a, ok = e.of[place]
	return a, ok
}

// Take takes out what has this place; durable as it was kept.
func (e *Early) Take(place Attempt, durable bool) (a Arrival, ok bool) {
	a, ok = e.of[place]
	if !ok {
		return a, false
	}
	delete(e.of, place)
	if durable {
		e.Road.Record(BucketEarly, e.key(a), nil)
	}
	return a, true
}

// Has says whether another message has the place of this one.
func (e *Early) Has(a Arrival) bool {
	kept, ok := e.of[a.Place]
	return ok && kept.Number != a.Number
}

// Len counts what waits.
func (e *Early) Len() int { return len(e.of) }

// Places are those taken, in the order of their numbers as 32 bits.
func (e *Early) Places() (list []Attempt) {
	for place := range e.of {
		list = append(list, place)
	}
	slices.SortFunc(list, func(a, b Attempt) int { return int(int32(uint32(a.Number) - uint32(b.Number))) })
	return list
}

// Kept says whether a place is taken.
func (e *Early) Kept(place Attempt) bool {
	_, ok := e.of[place]
	return ok
}

// Ahead is the first of a lane that may be read before its turn, where all up to a number has been read; false: none may.
func (e *Early) Ahead(lane frame.Lane, read uint64) (a Arrival, ok bool) {
	for place, b := range e.of {
		if place.Lane != lane || !b.Free || len(b.Body) == 0 || ok && place.Number > a.Place.Number {
			continue
		}
		if before, kept := e.of[Attempt{Lane: lane, Number: b.After}]; b.After <= read || kept && len(before.Body) == 0 {
			a, ok = b, true
		}
	}
	return a, ok
}

// Before is the oldest that has a place before this number, as 32 bits.
func (e *Early) Before(number uint32) (place Attempt, ok bool) {
	for at := range e.of {
		if int32(uint32(at.Number)-number) < 0 && (!ok || int32(uint32(at.Number)-uint32(place.Number)) < 0) {
			place, ok = at, true
		}
	}
	return place, ok
}

// Restart lets what the journal kept wait anew: what is missing before it comes again after a restart, too.
func (e *Early) Restart(now time.Time) {
	for place, a := range e.of {
		a.At = now
		e.of[place] = a
	}
}

// Due is when the oldest has waited long enough; zero when none waits.
func (e *Early) Due(patience time.Duration) (at time.Time) {
	for _, a := range e.of {
		at = due.Earliest(at, a.At.Add(patience))
	}
	return at
}

// TakeAll takes out everything, in the order of Places.
func (e *Early) TakeAll() (list []Arrival) {
	for _, place := range e.Places() {
		a, _ := e.Take(place, true)
		list = append(list, a)
	}
	return list
}

func (e *Early) key(a Arrival) []byte {
	lane := byte(a.Place.Lane)
	if a.Piece {
		lane |= flagPiece
	}
	return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint16(nil, e.Peer), lane), a.Place.Number)
}

// ParseEarly reads a record of the bucket, its key without the peer.
func ParseEarly(key, value []byte) (Arrival, error) {
	if len(key) != 9 || key[0]&^flagPiece >= lanes || key[0]&flagPiece != 0 && key[0] != flagPiece|byte(frame.Direct) {
		return Arrival{}, ErrRecord
	}
	a := Arrival{Place: Attempt{Lane: frame.Lane(key[0] &^ flagPiece), Number: binary.BigEndian.Uint64(key[1:])}, Piece: key[0]&flagPiece != 0, Body: value}
	if a.Number = a.Place.Number; a.Place.Lane == Group {
		if len(value) < 8 {
			return a, ErrRecord
		}
		a.Number, a.Body = binary.BigEndian.Uint64(value), value[8:]
	}
	return a, nil
}
