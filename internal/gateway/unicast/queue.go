package unicast

import (
	"time"

	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"

	"aldis/internal/gateway/mail"
)

// Octets of a datagram that a message of the direct queue must leave free: the short form, an acknowledgement without gaps, the
// frame's own head, and how far back the message is that it waits for. To a peer that has not heard us yet the long form and
// a hello go too, as introduced counts them: a message that does not fit beside these waits for the peer's answer, or moves to the bulk
// queue.
const (
	directReserve = seal.OverheadShort + ackOctets + frame.DataOverhead + 1
	introduced    = seal.OverheadLong + frame.HelloOctets + ackOctets + frame.DataOverhead
	ackOctets     = 3
)

// MinDatagram is the smallest datagram that a profile may allow: it leaves a direct message a hundred octets.
const MinDatagram = introduced + 100

// maxModel is how many times shorter than itself a text may get.
const maxModel = 50

// maxDirect is the largest coded envelope that goes without segments.
func maxDirect(p *profile.Profile) int { return p.Filled() - directReserve }

// Accept puts a message among those that wait for each peer.
func (c *Carrier) Accept(now time.Time, to []*mail.Peer, content envelope.Message, kind mail.Kind) (refused []*mail.Peer) {
	m, err := c.Store.New(content, kind)
	if err != nil {
		c.Services.Note("warn", "a message cannot be encoded; the gateway refused it", "error", err)
		return to
	}
	for _, p := range to {
		l := c.links[p.ID]
		c.says(now, l, m)
		queue, known := queueAtOnce(c.Profile, m)
		if e := c.Store.Wait(now, p, m, queue, l.history); e != nil {
			e.Unsized = !known
			l.sender.Wanted()
			continue
		}
		refused = append(refused, p)
		if _, _, octets := p.Box.Held(frame.Direct, frame.Bulk); now.Sub(l.refused) > time.Minute {
			l.refused = now
			c.Services.Note("warn", "a message was refused: the queue for the peer is full, or the message cannot be encoded",
				"peer", p.Name, "waiting_octets", octets)
		}
	}
	return refused
}

// pack is the envelope of m as it crosses the link, valid until the coder's next use. Every message has been encoded
// before, so that no error is left.
func (s *shared) pack(m *mail.Message, flow uint32, define bool, texts *envelope.Texts) []byte {
	b, err := envelope.Packed(s.Coder, m.Content, flow, define, texts)
	if err != nil {
		panic("unicast: " + err.Error())
	}
	return b
}

// encode is the envelope of e as it goes under a number of the direct queue: with its flow by number, and spelt out too
// if this message is the first of it. gone: it has been on the air; alone: in an earlier run, or twice, so that it is coded by
// itself and can be read even if the histories of the two ends differ.
func (s *shared) encode(now time.Time, l *peerLink, at mail.TransmissionID, m *mail.Message, gone, alone bool) []byte {
	texts, f := s.work.texts(now, l, at, m, !alone && s.work.mayLearn(now, m), gone)
	if f == nil {
		return s.pack(m, 0, true, texts)
	}
	before := worked(s.Coder, texts)
	b := s.pack(m, f.Number, l.history.Spells(f, at.Number, false), texts)
	if len(m.Full) > longText {
		s.work.after.Spent(worked(s.Coder, texts)-before, 0)
	}
	return b
}

// assign gives m the next number of its queue, durably. weight is what it weighs in the window of that queue.
func (s *shared) assign(l *peerLink, at mail.TransmissionID, m *mail.Message, weight int) *mail.Entry {
	if got := l.sender.Assign(at.Queue, weight); got != at.Number {
		panic("unicast: numbers out of step")
	}
	e := s.Store.Start(l.Peer, m, at, l.history)
	e.Weight = weight
	l.Record()
	return e
}

// ack: the peer has messages of ours in its store.
func (c *Carrier) ack(now time.Time, l *peerLink, r frame.Ack, newest bool) {
	if newest && l.Handshake.KnowsUs {
		if lost := l.sender.Lacks(r); lost > 0 && l.Handshake.Reissued == mail.Taken {
			l.endStream(now, lost)
		}
		l.Handshake.Started = l.Handshake.Started && l.Handshake.Ending
	}
	if l.Handshake.Agreed { // else it may be for another stream, and mean other messages
		settle(c, now, l, r, newest)
	}
}

// settle takes an acknowledgement for our stream.
func settle(c *Carrier, now time.Time, l *peerLink, r frame.Ack, newest bool) {
	if l.Handshake.Ending && l.Handshake.Reissued == mail.Taken {
		return // it may name messages that it cannot read any more; once it has ended the stream it names those that it has read
	}
	acked, held := c.named(now, l, r, newest)
	if len(acked)+len(held) > 0 {
		l.asked.silent = 0
	}
	if newest && r.Queue == frame.Direct {
		l.sender.Back(now)
	}
	for _, at := range held { // its octets need not go again
		l.cut.noteArrived(l, at, false)
		if e := l.Box.At(at); e != nil && !e.Held {
			e.Held = true
			l.shows(now, e)
			c.Store.Arrived(e)
		}
		c.bulkAcked(l, at)
		if at.Queue == frame.Direct && at.Number >= l.question.since {
			l.answered(now, l.question.there)
		}
	}
	if air, _ := l.Air(); len(acked) > 0 && l.sender.UnderWay(frame.Direct) == 0 {
		air.Arrived(l.Peer)
	}
	for _, at := range acked {
		l.cut.noteArrived(l, at, true)
		e := l.Box.At(at)
		if e == nil {
			continue
		}
		read := e.Read()
		if !e.Held {
			l.shows(now, e)
		}
		c.Store.End(e, mail.Delivered)
		c.bulkAcked(l, at)
		if at.Queue == frame.Direct && at.Number >= l.question.since {
			l.answered(now, l.question.there)
		}
		if at.Queue == frame.Direct {
			l.history.Holds(l.Peer, at.Number, read, l.Box.Oldest(frame.Direct, l.sender.Next(frame.Direct)))
		} else if at.Queue == frame.Bulk {
			l.history.HoldsLong(read.Spoken(), at.Number)
		}
		if e.Content.Payload != nil {
			c.Services.TellFates(now)
		}
	}
}

// NewStore begins anew with a peer that knows nothing of the messages sent to it.
func (c *Carrier) NewStore(p *mail.Peer) (again []*mail.Entry) {
	l := c.links[p.ID]
	for _, e := range l.Box.UnderWay(frame.Bulk) {
		c.bulkAcked(l, e.At)
	}
	l.long.out = nil
	l.cut.clear(l)
	again = c.Store.Clear(p)
	p.Handshake.Stream = max(p.Handshake.Stream+1, 1) // 0 says: never heard
	p.Handshake.Agreed = false
	l.sender, l.starts, l.given = custody.NewSender(timing(&c.Config, l.Peer), [frame.Queues]uint64{1, 1}), starts{}, givenOf{}
	l.beginStart()
	l.history.Forget(p)
	return again
}

// Unlearn codes no more messages after those that the peer has forgotten. Messages under way were coded after them, and go again.
func (c *Carrier) Unlearn(p *mail.Peer) {
	l := c.links[p.ID]
	l.history.Unlearn(p, l.sender.Next(frame.Direct))
	isSegment := func(n uint64) bool { _, _, ok := l.cut.Repeat(n); return ok }
	for _, at := range l.sender.Resend(isSegment) {
		if e := l.Box.At(at); e != nil {
			e.Held = false
		}
	}
}
