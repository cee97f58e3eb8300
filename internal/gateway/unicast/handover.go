package unicast

import (
	"math"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/segment"
)

// Handover is the carrier's part when messages change their bearer: docs/decisions/bearers.md.
type Handover struct{ C *Carrier }

// Adopt puts an entry of another bearer among those that wait.
func (h Handover) Adopt(now time.Time, e *mail.Entry) bool {
	c := h.C
	l := c.links[e.Peer.ID]
	c.says(now, l, e.Message)
	queue, known := queueAtOnce(c.Profile, e.Message)
	if e.Content.Rest != nil { // the whole message may have to go in the place of its rest
		queue, known = frame.Bulk, true
	}
	c.Store.Seat(e, queue, l.history)
	e.Unsized = !known
	l.sender.Wanted()
	return true
}

// Room sets no bound: messages that wait here can go by another bearer.
func (h Handover) Room() int { return math.MaxInt }

// Rest is the part of a long message behind the segments that the peer has read, and the numbers of the segments that it is not known to
// have.
func (h Handover) Rest(e *mail.Entry) (marks []envelope.Moved, rest *envelope.Rest) {
	c := h.C
	l := c.links[e.Peer.ID]
	if e.At.Queue != frame.Bulk || len(e.Content.Moved) > 0 {
		return nil, nil
	}
	from, body, numbers := l.cut.Behind(e.At.Number)
	for _, n := range numbers {
		if last := len(marks) - 1; last >= 0 && marks[last].Number+uint64(marks[last].More)+1 == n {
			marks[last].More++
			continue
		}
		m := e.Mark()
		m.Queue, m.Number = uint8(frame.Direct), n
		marks = append(marks, m)
	}
	if len(marks) >= envelope.MaxMoved {
		marks = nil
	}
	if from == 0 {
		return marks, nil
	}
	return marks, &envelope.Rest{From: from, Octets: body}
}

// Elsewhere empties a message under way, since the peer has it from another bearer. The peer still waits for its number.
func (h Handover) Elsewhere(_ time.Time, e *mail.Entry) {
	c := h.C
	l := c.links[e.Peer.ID]
	c.bulkAcked(l, e.At)
	l.cut.strays = l.cut.strays || e.At.Queue == frame.Bulk
	c.Store.Void(e)
}

// Beside has the acknowledgements for a peer's messages on this bearer, for a HELLO on another one.
func (h Handover) Beside(p *mail.Peer) (list []frame.Beside) {
	c := h.C
	l := c.links[p.ID]
	for queue := range frame.Queue(frame.Queues) {
		if l.Handshake.InStream != 0 && l.receiver.Cumulative(queue) > 0 {
			list = append(list, frame.Beside{Bearer: p.Bearer.Mark, Stream: p.Handshake.InStream, Ack: l.receiver.Ack(queue)})
		}
	}
	return list
}

// Acked takes an acknowledgement for our messages on this bearer, from a HELLO on another one.
func (h Handover) Acked(now time.Time, p *mail.Peer, f frame.Beside) {
	c := h.C
	if l := c.links[p.ID]; f.Stream == p.Handshake.Stream {
		settle(c, now, l, f.Ack, false)
	}
}

// Used counts a number of the peer as used. A message or segments under this number that were not read are not needed any more.
func (h Handover) Used(p *mail.Peer, at mail.TransmissionID) (read bool) {
	c := h.C
	l := c.links[p.ID]
	a, kept := l.reordered.Get(at)
	if at.Number <= l.receiver.Cumulative(at.Queue) || kept && len(a.Body) == 0 {
		return true
	}
	if !l.receiver.Mark(at) {
		return false // nobody sends so far ahead
	}
	if kept {
		l.reordered.Remove(at, true)
	}
	l.reordered.Keep(mail.Arrival{Place: at, Number: at.Number}, true)
	if at.Queue == frame.Bulk {
		for _, n := range l.joiner.Forget(at.Number) {
			l.of.Services.Record(bucketSegment, l.cut.key(l, n), nil)
		}
	}
	return false
}

// Whole makes a message of its rest and the segments before that, which have been read.
func (h Handover) Whole(p *mail.Peer, at mail.TransmissionID, rest *envelope.Rest) []byte {
	c := h.C
	l := c.links[p.ID]
	if at.Queue != frame.Bulk || rest.From+len(rest.Octets) > segment.MaxObject {
		return nil
	}
	return l.joiner.Complete(at.Number, rest.From, rest.Octets)
}
