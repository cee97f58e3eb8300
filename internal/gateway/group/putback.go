package group

import (
	"encoding/binary"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/pmul"
)

// A receiver that was put back to an older copy of its data lacks messages that it has acknowledged since, and its sender keeps them
// no more. They cannot be sent again, but the log says how many they are: docs/decisions/put-back.md.

// acks is how far a peer has acknowledged messages, by Message_Sequence_Number.
type acks struct {
	highest uint32 // 0: none
	start   uint32 // the highest in the peer's present start
	before  uint32 // highest when that start began
	told    bool   // the peer has said the highest that it had then
}

// Hello says in Seen the low 16 bits of the highest Message_Sequence_Number that had come from a peer when this start began. Messages that
// have come since do not show which were lost before. It also says that this node knows batches (pmul.Sender.Batch).
func (c *Carrier) Hello(p *mail.Peer, h *frame.Hello) {
	h.Seen, h.Segments, h.Ahead = uint16(c.orders[p.ID].begun), true, true
}

// highest is the highest Message_Sequence_Number that has come.
func (o *order) highest() uint32 {
	highest := uint32(0)
	if o.next != 0 {
		highest = o.next - 1
	}
	if places := o.early.Places(); len(places) > 0 {
		if last := uint32(places[len(places)-1].Number); int32(last-highest) > 0 {
			highest = last
		}
	}
	return highest
}

// acked notes that a peer has acknowledged a message.
func (c *Carrier) acked(p *mail.Peer, sequence uint32) {
	r := &c.orders[p.ID].acks
	was := *r
	for _, highest := range []*uint32{&r.highest, &r.start} {
		if sequence != 0 && (*highest == 0 || int32(sequence-*highest) > 0) {
			*highest = sequence
		}
	}
	if *r != was {
		c.recordAcks(p)
	}
}

// Started: the peer has a new start. It says next how far it had our messages when that began. Datagrams that it sealed in the start
// before count no more.
func (c *Carrier) Started(p *mail.Peer) {
	c.Others.forget(pmul.NodeID(p.ID), false)
	r := &c.orders[p.ID].acks
	if was := *r; was.highest != 0 {
		*r = acks{highest: was.highest, before: was.highest}
		c.recordAcks(p)
	}
}

// forget: the peer has a new store. It counts anew the messages that have come.
func (o *order) forget(c *Carrier, p *mail.Peer) {
	if o.acks != (acks{}) {
		o.acks = acks{}
		c.Services.Record(bucketAcked, peerKey(p.ID), nil)
	}
}

// Compare looks whether a peer, as it says of its present start, lacks messages that it has acknowledged.
func (c *Carrier) Compare(_ time.Time, p *mail.Peer, h frame.Hello) {
	r, seen := &c.orders[p.ID].acks, h.Seen
	if h.HeardStream != p.Handshake.Stream || r.told || r.highest == 0 {
		return
	}
	r.told = true
	if lost := int(int16(uint16(r.before) - seen)); r.before != 0 && lost > 0 {
		c.Services.Note("warn", "a peer runs on an older copy of its data; messages that it acknowledged since then are not sent again",
			"peer", p.Name, "it_may_have_lost", lost)
		r.highest = r.before - uint32(lost)
		if r.start != 0 && int32(r.start-r.highest) > 0 {
			r.highest = r.start
		}
	}
	c.recordAcks(p)
}

func (c *Carrier) recordAcks(p *mail.Peer) {
	c.Services.Record(bucketAcked, peerKey(p.ID), c.orders[p.ID].acks.append(nil))
}

func (r *acks) append(b []byte) []byte {
	for _, n := range []uint32{r.highest, r.start, r.before} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	if r.told {
		return append(b, 1)
	}
	return append(b, 0)
}

// parseAcks reads them; earlier records have the highest alone.
func parseAcks(b []byte) (acks, error) {
	switch len(b) {
	case 4:
		n := binary.BigEndian.Uint32(b)
		return acks{highest: n, start: n, told: true}, nil
	case 13:
		return acks{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]), b[12] == 1}, nil
	}
	return acks{}, mail.ErrRecord
}
