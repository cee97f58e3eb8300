package unicast

import (
	"encoding/binary"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// Numbers are those of the messages to and from one peer, as HELLOs tell them. By them a gateway sees that it, or the peer,
// was put back to an older copy of its data: docs/decisions/put-back.md.
type Numbers struct {
	c *Carrier
	l *line
}

// Numbers of a peer.
func (c *Carrier) Numbers(p *mail.Peer) Numbers { return Numbers{c, c.lines[p.ID]} }

// begin notes the numbers with which a start or a stream begins, until the peer has heard of it. A start of which it has not
// heard may have given numbers again that the peer has: the next one still tells where that began.
func (n Numbers) begin() {
	l := n.l
	l.began, l.unheard = n.c.Boot, true
	value := binary.BigEndian.AppendUint32(nil, l.began)
	for lane := range frame.Lane(frame.Lanes) {
		value = binary.BigEndian.AppendUint64(value, l.sender.First(lane))
	}
	n.c.Road.Record(bucketFirst, peerKey(l.ID), value)
}

// recall takes what begin noted in an earlier start.
func (n Numbers) recall(value []byte) error {
	if len(value) != 4+8*frame.Lanes {
		return mail.ErrRecord
	}
	var first [frame.Lanes]uint64
	for lane := range first {
		first[lane] = binary.BigEndian.Uint64(value[4+8*lane:])
	}
	n.l.began, n.l.unheard = binary.BigEndian.Uint32(value), true
	n.l.sender.Since(first)
	return nil
}

// Known: the peer has heard of this start, and has compared.
func (n Numbers) Known() {
	if n.l.unheard {
		n.l.began, n.l.unheard = n.c.Boot, false
		n.c.Road.Record(bucketFirst, peerKey(n.l.ID), nil)
	}
}

// Tell puts them into a HELLO to the peer.
func (n Numbers) Tell(h *frame.Hello) {
	for lane := range frame.Lane(frame.Lanes) {
		h.First[lane] = uint16(n.l.sender.First(lane))
	}
	if n.l.began != n.c.Boot {
		h.Since = n.l.began
	}
	h.Seen = uint16(n.l.receiver.Arrived(frame.Direct))
	met := &n.l.Met
	h.End, h.Ended, h.Void = met.Ending, met.Refused == mail.Ended, met.Refused == mail.Void
}

// Compare looks whether the start of the peer that this HELLO is the first of gives numbers again that are taken: then
// nothing of it counts until it begins a new stream.
func (n Numbers) Compare(h frame.Hello) {
	again, reused := 0, false
	for lane := range frame.Lane(frame.Lanes) {
		m, ok := n.l.receiver.Reused(lane, h.First[lane])
		again, reused = again+m, reused || ok
	}
	if !reused {
		return
	}
	n.l.Met.Refused = mail.Void
	n.c.Road.Note("warn", "a peer was put back to an older copy of its data and begins anew: what its local peers had given it since then and it had not sent is lost",
		"peer", n.l.Name, "of_it_arrived_since_then", again)
}

// Refuse tells the peer that nothing of it counts, with all that is here of it: so it knows which messages need not go
// again. What waits for its turn is delivered: what was before it does not come any more.
func (n Numbers) Refuse(now time.Time) {
	n.deliverHeld(now, true)
	n.l.receiver.Probed(now)
	n.l.Met.Owe(now)
	n.c.RecordPeer(n.l.Peer)
}

// deliverHeld delivers what came before its turn. Where receipts for it go out yet, its places are kept.
func (n Numbers) deliverHeld(now time.Time, keep bool) {
	l := n.l
	for _, a := range l.early.TakeAll() {
		if len(a.Body) > 0 {
			if err := n.c.Road.Open(now, l.Peer, a.Place, a.Body); err != nil {
				l.receiver.Reject(now, a.Place) // its sender may have it yet
				l.Counts.Unreadable++
				n.c.Road.Note("error", "a message of a peer cannot be read without what was before it, and is dropped unless the peer sends it again",
					"peer", l.Name, "number", a.Number, "error", err)
				continue
			}
		}
		if keep {
			l.early.Keep(mail.Arrival{Place: a.Place, Number: a.Number}, true)
		}
	}
}

// Heed looks whether a HELLO lacks what the peer has acknowledged, or knows more than we have sent.
func (n Numbers) Heed(now time.Time, h frame.Hello, boot uint32) {
	s, met := n.l.sender, &n.l.Met
	settled, seen := s.Settled(frame.Direct), h.Seen
	switch {
	case met.Anew != mail.Taken: // it has said so itself
		return
	case h.HeardStream == 0: // it has heard of no stream
		seen = 0
	case int8(h.HeardStream-met.Stream) > 0 && s.Next(frame.Direct)+s.Next(frame.Bulk) > 2:
		// It knows of a later stream than we do. What it has of ours it cannot say any more.
		met.Stream, met.Anew = h.HeardStream, mail.Void
		return
	case h.HeardStream != met.Stream:
		return
	}
	ahead := int(int16(seen - uint16(settled)))
	if ahead < 0 {
		n.end(now, -ahead)
	} else if h.HeardBoot == boot && settled+uint64(ahead) >= s.Next(frame.Direct) {
		n.end(now, 0)
	}
}

// end stops our stream: the peer does not have what it has acknowledged. Nothing more goes until it has said what it has.
func (n Numbers) end(now time.Time, lost int) {
	if n.l.Met.Ending {
		return
	}
	n.l.Met.End(now)
	n.c.Road.Note("warn", "a peer was put back to an older copy of its data: what it needs is sent anew, but not what it had acknowledged",
		"peer", n.l.Name, "it_may_have_lost", lost)
}
