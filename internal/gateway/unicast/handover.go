package unicast

import (
	"math"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/segment"
)

// Handover is the carrier as messages change their bearer: docs/decisions/bearers.md.
type Handover struct{ C *Carrier }

// Adopt puts an entry of another bearer among those that wait.
func (h Handover) Adopt(now time.Time, e *mail.Entry) bool {
	c := h.C
	l := c.links[e.Peer.ID]
	c.says(now, l, e.Message)
	queue, known := queueAtOnce(c.Profile, e.Message)
	if e.Content.Rest != nil { // all of it may have to go in its place
		queue, known = frame.Bulk, true
	}
	c.Store.Seat(e, queue, l.history)
	e.Unsized = !known
	l.sender.Wanted()
	return true
}

// Room is no bound: what waits here can go elsewhere.
func (h Handover) Room() int { return math.MaxInt }

// Rest is what is behind the segments of a long message that the peer has read, and the numbers of those that it is not known to have.
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

// Elsewhere empties a message under way: the peer has it. Its number is waited for.
func (h Handover) Elsewhere(_ time.Time, e *mail.Entry) {
	c := h.C
	l := c.links[e.Peer.ID]
	c.bulkAcked(l, e.At)
	l.cut.strays = l.cut.strays || e.At.Queue == frame.Bulk
	c.Store.Void(e)
}

// Beside is what has come from a peer, for a HELLO on another bearer.
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

// Acked takes such an acknowledgement of our messages on this bearer.
func (h Handover) Acked(now time.Time, p *mail.Peer, f frame.Beside) {
	c := h.C
	if l := c.links[p.ID]; f.Stream == p.Handshake.Stream {
		c.settle(now, l, f.Ack, false)
	}
}

// Used counts a number of the peer as used. What is here of it and was not read is not needed any more.
func (h Handover) Used(p *mail.Peer, at mail.TransmissionID) (read bool) {
	c := h.C
	l := c.links[p.ID]
	a, kept := l.reordered.Get(at)
	if at.Number <= l.receiver.Cumulative(at.Queue) || kept && len(a.Body) == 0 {
		return true
	}
	if !l.receiver.Restore(at) {
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

// Whole is a message of which the segments before the rest have been read.
func (h Handover) Whole(p *mail.Peer, at mail.TransmissionID, rest *envelope.Rest) []byte {
	c := h.C
	l := c.links[p.ID]
	if at.Queue != frame.Bulk || rest.From+len(rest.Octets) > segment.MaxObject {
		return nil
	}
	return l.joiner.Complete(at.Number, rest.From, rest.Octets)
}
