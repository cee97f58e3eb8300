package mail

import (
	"encoding/binary"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
)

// ReorderBuffer keeps messages that arrive before their turn in the queues of one peer, in memory and journal.
type ReorderBuffer struct {
	Peer     uint16
	Services Services
	of       map[TransmissionID]Arrival // by place in their queue
}

// Arrival is a message that waits for its turn.
type Arrival struct {
	Place   TransmissionID
	Number  uint64    // the message's own, where its place is another
	Segment bool      // Body is the frame of a segment of a message
	Body    []byte    // empty: it was delivered before its turn, and its place is noted
	Free    bool      // it need not wait for those before it that are missing,
	After   uint64    // but for this one, where it is not 0; both are forgotten in a restart
	At      time.Time // when it came, or when this run began
}

const (
	BucketEarly = "early" // peer, queue, place -> in queue Group the message's number; body

	flagSegment = 0x80 // of the queue in a key: it is a segment
)

// Keep puts a message by. Where durable is false its turn has come, and Remove follows.
func (e *ReorderBuffer) Keep(a Arrival, durable bool) {
	if e.of == nil {
		e.of = map[TransmissionID]Arrival{}
	}
	e.of[a.Place] = a
	if durable {
		e.record(a)
	}
}

func (e *ReorderBuffer) record(a Arrival) {
	value := append([]byte{}, a.Body...) // never nil: that would delete
	if a.Place.Queue == Group {
		value = append(binary.BigEndian.AppendUint64(nil, a.Number), a.Body...)
	}
	e.Services.Record(BucketEarly, e.key(a), value)
}

// Get is the message at this place.
func (e *ReorderBuffer) Get(place TransmissionID) (a Arrival, ok bool) {
	a, ok = e.of[place]
	return a, ok
}

// Remove takes out the message at this place; durable as it was kept.
func (e *ReorderBuffer) Remove(place TransmissionID, durable bool) (a Arrival, ok bool) {
	a, ok = e.of[place]
	if !ok {
		return a, false
	}
	delete(e.of, place)
	if durable {
		e.Services.Record(BucketEarly, e.key(a), nil)
	}
	return a, true
}

// Has says whether another message has the place of this one.
func (e *ReorderBuffer) Has(a Arrival) bool {
	kept, ok := e.of[a.Place]
	return ok && kept.Number != a.Number
}

// Len counts the messages that wait.
func (e *ReorderBuffer) Len() int { return len(e.of) }

// Places are those taken, in the order of their numbers as 32 bits.
func (e *ReorderBuffer) Places() (list []TransmissionID) {
	for place := range e.of {
		list = append(list, place)
	}
	slices.SortFunc(list, func(a, b TransmissionID) int { return int(int32(uint32(a.Number) - uint32(b.Number))) })
	return list
}

// Kept says whether a place is taken.
func (e *ReorderBuffer) Kept(place TransmissionID) bool {
	_, ok := e.of[place]
	return ok
}

// Ahead is the first of a queue that may be read before its turn, where all up to a number has been read; false: none may.
func (e *ReorderBuffer) Ahead(queue frame.Queue, read uint64) (a Arrival, ok bool) {
	if len(e.of) == 0 {
		return a, ok // most are asked often and hold nothing
	}
	for place, b := range e.of {
		if place.Queue != queue || !b.Free || len(b.Body) == 0 || ok && place.Number > a.Place.Number {
			continue
		}
		if before, kept := e.of[TransmissionID{Queue: queue, Number: b.After}]; b.After <= read || kept && len(before.Body) == 0 {
			a, ok = b, true
		}
	}
	return a, ok
}

// Before is the oldest that has a place before this number, as 32 bits.
func (e *ReorderBuffer) Before(number uint32) (place TransmissionID, ok bool) {
	for at := range e.of {
		if int32(uint32(at.Number)-number) < 0 && (!ok || int32(uint32(at.Number)-uint32(place.Number)) < 0) {
			place, ok = at, true
		}
	}
	return place, ok
}

// Restart lets the messages of the journal wait anew: those missing before them come again after a restart, too.
func (e *ReorderBuffer) Restart(now time.Time) {
	for place, a := range e.of {
		a.At = now
		e.of[place] = a
	}
}

// Due is when the oldest has waited long enough; zero when none waits. A message that was read because it need not wait shows no
// loss: those missing before it may be on their way.
func (e *ReorderBuffer) Due(patience time.Duration) (at time.Time) {
	for _, a := range e.of {
		if !a.Free || len(a.Body) > 0 {
			at = due.Earliest(at, a.At.Add(patience))
		}
	}
	return at
}

// TakeAll takes out everything, in the order of Places.
func (e *ReorderBuffer) TakeAll() (list []Arrival) {
	for _, place := range e.Places() {
		a, _ := e.Remove(place, true)
		list = append(list, a)
	}
	return list
}

func (e *ReorderBuffer) key(a Arrival) []byte {
	queue := byte(a.Place.Queue)
	if a.Segment {
		queue |= flagSegment
	}
	return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint16(nil, e.Peer), queue), a.Place.Number)
}

// ParseEarly reads a record of the bucket, its key without the peer.
func ParseEarly(key, value []byte) (Arrival, error) {
	if len(key) != 9 || key[0]&^flagSegment >= queues || key[0]&flagSegment != 0 && key[0] != flagSegment|byte(frame.Direct) {
		return Arrival{}, ErrRecord
	}
	a := Arrival{Place: TransmissionID{Queue: frame.Queue(key[0] &^ flagSegment), Number: binary.BigEndian.Uint64(key[1:])}, Segment: key[0]&flagSegment != 0, Body: value}
	a.Number = a.Place.Number
	if a.Place.Queue == Group {
		if len(value) < 8 {
			return a, ErrRecord
		}
		a.Number, a.Body = binary.BigEndian.Uint64(value), value[8:]
	}
	return a, nil
}
