package unicast

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// By the numbers of messages that HELLOs say a gateway sees that it, or the peer, was put back to an older copy of its data:
// docs/decisions/put-back.md.

// starts are this start of the gateway and those before it of which the peer has not said that it has heard, the oldest
// first. The numbers that those gave may be known there, or not; or the data were put back since, and a message that is known
// there under such a number was another one.
type starts struct {
	list  []start
	heard bool // the peer has heard of this start: the journal has nothing of them
}

// start is a start, and the first number of each queue that it gave, or would have given.
type start struct {
	incarnation uint32
	first       [frame.Queues]uint64
}

const startOctets = 4 + 8*frame.Queues

// add puts a start behind the others. One that gave no number is as if it had not been. Of more than a HELLO has room for, the
// second and the third become one: numbers of the third then count as used too early, never too late. The oldest stays, for it is
// the likeliest that the peer has heard and could not say so any more.
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

// after is the first number of each queue that a start after this one gave: what the peer has of them is not of these data.
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

// recallStarts takes what beginStart noted in an earlier start.
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

// Compare compares numbers: once in each start of a peer those that it begins with, and always what it has of ours.
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

// compareStarts looks whether the starts of the peer after the last whose numbers count, of which this HELLO tells, give numbers
// again that are taken. Then nothing of them counts until the peer begins a new stream.
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

// refuse tells the peer that nothing of it counts, with all that is here of it: so it knows which messages need not go
// again. What waits for its turn is delivered: what was before it does not come any more.
func (l *peerLink) refuse(now time.Time) {
	l.deliverHeld(now, true)
	l.receiver.Probed(now)
	l.Handshake.Owe(now)
	l.Record()
}

// deliverHeld delivers what came before its turn. Where acknowledgements for it go out yet, its places are kept.
func (l *peerLink) deliverHeld(now time.Time, keep bool) {
	for _, a := range l.reordered.TakeAll() {
		if len(a.Body) > 0 && !a.Segment { // the sender has the whole of what is not whole here
			if err := l.of.Services.Open(now, l.Peer, a.Place, a.Body); err != nil {
				l.receiver.Reject(now, a.Place) // its sender may have it yet
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

// compareSeen looks whether a HELLO lacks what the peer has acknowledged, or knows more than we have sent.
func (l *peerLink) compareSeen(now time.Time, h frame.Hello) {
	s, met := l.sender, &l.Handshake
	settled, seen := s.Settled(frame.Direct), h.Seen
	switch {
	case met.Reissued != mail.Taken: // it has said so itself
		return
	case h.HeardStream == 0: // it has heard of no stream
		seen = 0
	case int8(h.HeardStream-met.Stream) > 0 && s.Next(frame.Direct)+s.Next(frame.Bulk) > 2:
		// It knows of a later stream than we do. What it has of ours it cannot say any more.
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

// endStream stops our stream: the peer does not have what it has acknowledged. Nothing more goes until it has said what it has. Only a
// start can have put it back; without one, what has happened there is not known.
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

// named is what an acknowledgement of the peer acknowledges, and what it names although not all before that has come.
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
