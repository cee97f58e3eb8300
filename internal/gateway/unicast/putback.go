package unicast

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// From the numbers of messages in HELLOs a gateway sees that it, or the peer, was put back to an older copy of its data:
// docs/decisions/put-back.md.

// starts are this start of the gateway and the starts before it that the peer has not said to have heard of, the oldest
// first. The peer may know the numbers that those starts gave, or not; or the data were put back since, and the peer knows another
// message by such a number.
type starts struct {
	list  []start
	heard bool // the peer has heard of this start: the journal has no starts
}

// start is one start, with the first number of each queue that it gave, or would have given.
type start struct {
	incarnation uint32
	first       [frame.Queues]uint64
}

const startOctets = 4 + 8*frame.Queues

// add puts a start behind the others. It drops the last one if that gave no number. If there are more than a HELLO has room for, the
// second and the third become one: numbers of the third then count as used too early, never too late. The oldest stays: the peer is
// likeliest to have heard of that one without being able to say so.
func (s *starts) add(next start) {
	if n := len(s.list); n > 0 && s.list[n-1].first == next.first {
		s.list = s.list[:n-1]
	}
	s.list = append(s.list, next)
	if len(s.list) > frame.MaxStarts+1 {
		s.list[2].first = s.list[1].first
		s.list = slices.Delete(s.list, 1, 2)
	}
}

// after is the first number of each queue that a start after this one gave: messages that the peer has by such numbers are not of these
// data.
func (s *starts) after(incarnation uint32) [frame.Queues]uint64 {
	for _, one := range s.list {
		if one.incarnation > incarnation {
			return one.first
		}
	}
	return s.list[len(s.list)-1].first
}

// beginStart notes the numbers with which this start begins, until the peer has heard of it.
func (l *peerLink) beginStart() {
	next := start{incarnation: l.of.Incarnation}
	for queue := range next.first {
		next.first[queue] = l.sender.First(frame.Queue(queue))
	}
	l.starts.add(next)
	l.starts.heard = false
	var value []byte
	for _, one := range l.starts.list {
		value = binary.BigEndian.AppendUint32(value, one.incarnation)
		for _, first := range one.first {
			value = binary.BigEndian.AppendUint64(value, first)
		}
	}
	l.of.Services.Record(bucketFirst, peerKey(l.ID), value)
}

// recallStarts takes the starts that beginStart noted in an earlier one.
func (l *peerLink) recallStarts(value []byte) error {
	if len(value) == 0 || len(value)%startOctets != 0 {
		return mail.ErrRecord
	}
	for ; len(value) > 0; value = value[startOctets:] {
		one := start{incarnation: binary.BigEndian.Uint32(value)}
		for queue := range one.first {
			one.first[queue] = binary.BigEndian.Uint64(value[4+8*queue:])
		}
		l.starts.add(one)
	}
	return nil
}

// startKnown: the peer has heard of this start, and has compared.
func (l *peerLink) startKnown() {
	if s := &l.starts; !s.heard {
		s.list, s.heard = s.list[len(s.list)-1:], true
		l.of.Services.Record(bucketFirst, peerKey(l.ID), nil)
	}
}

// Hello says which numbers this node and the peer have, and whether segments of long messages may be cut again.
func (l *peerLink) Hello(h *frame.Hello) {
	h.Segments, h.Ahead = l.of.Messages, l.of.Messages
	for queue := range frame.Queue(frame.Queues) {
		h.First[queue] = uint16(l.sender.First(queue))
	}
	for _, one := range l.starts.list[:len(l.starts.list)-1] {
		earlier := frame.Start{Incarnation: one.incarnation}
		for queue, first := range one.first {
			earlier.First[queue] = uint16(first)
		}
		h.Starts = append(h.Starts, earlier)
	}
	h.Seen = uint16(l.receiver.Cumulative(frame.Direct))
	met := &l.Handshake
	h.End, h.Ended, h.Void = met.Ending, met.Refused == mail.Ended, met.Refused == mail.Void
	if h.Void {
		h.Known = met.Compared
	}
}

// Compare compares numbers: once in each start of a peer those that it begins with, and always those of our messages that it has.
func (l *peerLink) Compare(now time.Time, h frame.Hello, incarnation uint32) {
	l.of.Greeting.answered(now)
	met := &l.Handshake
	l.sender.Ahead(met.Ahead)
	l.compareStarts(h, incarnation)
	if h.End && h.Stream == met.InStream && met.Refused == mail.Taken {
		met.Refused = mail.Ended
		l.Record()
	}
	if met.Refused != mail.Taken { // also when that was said before: the peer may not have heard it
		l.refuse(now)
	}
	if met.KnowsUs {
		l.startKnown()
	}
	if l.of.Messages {
		l.compareSeen(now, h)
	}
}

// compareStarts looks at the starts of the peer that this HELLO names and that are later than the last one whose numbers count. If they
// give numbers again that are taken, no message of theirs counts until the peer begins a new stream.
func (l *peerLink) compareStarts(h frame.Hello, incarnation uint32) {
	met := &l.Handshake
	if met.Compared == incarnation || met.Refused == mail.Void {
		return
	}
	first := h.First
	for _, one := range h.Starts {
		if one.Incarnation > met.Compared {
			first = one.First
			break
		}
	}
	again, reused := 0, false
	for queue := range frame.Queue(frame.Queues) {
		m, ok := l.receiver.Reused(queue, first[queue], h.Ahead)
		again, reused = again+m, reused || ok
	}
	if !reused {
		met.Compared = incarnation
		l.Record()
		return
	}
	met.Refused = mail.Void
	l.Record()
	l.of.Services.Note("warn", "a peer runs on an older copy of its data; messages that its local peers had submitted since then and that were not yet sent are lost",
		"peer", l.Name, "of_it_arrived_since_then", again)
}

// refuse tells the peer that its messages do not count, and which of them are here: so it knows which need not go again. Messages
// that wait for their turn are delivered, since those before them do not come any more.
func (l *peerLink) refuse(now time.Time) {
	l.deliverHeld(now, true)
	l.receiver.Probed(now)
	l.Handshake.Owe(now)
	l.Record()
}

// deliverHeld delivers the messages that came before their turn. keep: their places are kept, since acknowledgements for them still go
// out.
func (l *peerLink) deliverHeld(now time.Time, keep bool) {
	for _, a := range l.reordered.TakeAll() {
		if len(a.Body) > 0 && !a.Segment { // of a message in segments the sender has the whole
			if err := l.of.Services.Open(now, l.Peer, a.Place, a.Body); err != nil {
				l.receiver.Reject(now, a.Place) // its sender may still have it
				l.Counts.Unreadable++
				l.of.Services.Note("error", "a message of a peer cannot be read without earlier ones; the gateway drops it unless the peer sends it again",
					"peer", l.Name, "number", a.Number, "error", err)
				continue
			}
		}
		if keep {
			l.reordered.Keep(mail.Arrival{Place: a.Place, Number: a.Number}, true)
		}
	}
}

// compareSeen looks whether a HELLO names fewer messages than the peer has acknowledged, or more than we have sent.
func (l *peerLink) compareSeen(now time.Time, h frame.Hello) {
	s, met := l.sender, &l.Handshake
	settled, seen := s.Settled(frame.Direct), h.Seen
	switch {
	case met.Reissued != mail.Taken: // it has said so itself
		return
	case h.HeardStream == 0: // it has heard of no stream
		seen = 0
	case int8(h.HeardStream-met.Stream) > 0 && s.Next(frame.Direct)+s.Next(frame.Bulk) > 2:
		// It knows of a later stream than we do. It can no longer say which of our messages it has.
		met.Stream, met.Reissued = h.HeardStream, mail.Void
		return
	case h.HeardStream != met.Stream:
		return
	}
	ahead := int(int16(seen - uint16(settled)))
	if ahead < 0 {
		l.endStream(now, -ahead)
	} else if h.HeardIncarnation == l.of.Incarnation && settled+uint64(ahead) >= s.Next(frame.Direct) {
		l.endStream(now, 0)
	}
}

// endStream stops our stream: the peer lacks messages that it has acknowledged. No more messages go until it has said which it has. Only
// with a start can it have been put back; without one, nobody knows what has happened there.
func (l *peerLink) endStream(now time.Time, lost int) {
	if l.Handshake.Ending {
		return
	}
	l.Handshake.End(now)
	if l.Handshake.Started {
		l.of.Services.Note("warn", "a peer runs on an older copy of its data; the gateway resends what it needs, but not messages that it had acknowledged",
			"peer", l.Name, "it_may_have_lost", lost)
		return
	}
	l.of.Services.Note("warn", "a peer lacks messages that it acknowledged; the gateway resends what it needs, but not those messages",
		"peer", l.Name, "it_may_have_lost", lost)
}

// named lists the messages that an acknowledgement of the peer acknowledges, and those that it names although others before them have not
// come.
func (c *Carrier) named(now time.Time, l *peerLink, r frame.Ack, newest bool) (acked, held []mail.TransmissionID) {
	s, met := l.sender, &l.Handshake
	switch {
	case met.Reissued == mail.Void:
		return s.Last(r, l.starts.after(met.Known)), nil
	case met.Reissued == mail.Ended:
		return s.Last(r, [frame.Queues]uint64{math.MaxUint64, math.MaxUint64}), nil
	}
	if met.KnowsUs && newest {
		for _, at := range s.Dropped(r) {
			c.sendAgain(now, l, at)
		}
	}
	acked, held = s.Earlier(r, l.starts.list[0].first)
	if met.KnowsUs {
		a, h := s.Ack(now, r)
		acked, held = append(acked, a...), append(held, h...)
	}
	return acked, held
}

// sendAgain: the peer had a message, and could not read it when its turn came.
func (c *Carrier) sendAgain(now time.Time, l *peerLink, at mail.TransmissionID) {
	e := l.Box.At(at)
	if e == nil {
		return
	}
	e.Held = false
	c.Store.Whole(e)
	if at.Queue == frame.Bulk {
		l.cut.beginLong(l, now, e)
	}
}
