package group

import (
	"encoding/binary"

	"aldis/internal/gateway/mail"
)

// A receiver that was put back to an older copy of its data lacks what it has acknowledged since, and its sender keeps that
// no more. Nothing can be sent again, but it is said how many they are: docs/decisions/put-back.md.

// Seen is the low 16 bits of the highest Message_Sequence_Number that came from a peer.
func (c *Carrier) Seen(p *mail.Peer) uint16 {
	o := c.orders[p.ID]
	highest := uint32(0)
	if o.next != 0 {
		highest = o.next - 1
	}
	if places := o.early.Places(); len(places) > 0 {
		if last := uint32(places[len(places)-1].Number); int32(last-highest) > 0 {
			highest = last
		}
	}
	return uint16(highest)
}

// acked notes that a peer has acknowledged a message.
func (c *Carrier) acked(p *mail.Peer, sequence uint32) {
	o := c.orders[p.ID]
	if sequence != 0 && (o.acked == 0 || int32(sequence-o.acked) > 0) {
		o.acked = sequence
		c.Road.Record(bucketAcked, peerKey(p.ID), binary.BigEndian.AppendUint32(nil, o.acked))
	}
}

// forget: the peer has a new store. It counts anew what has come.
func (o *order) forget(c *Carrier, p *mail.Peer) {
	if o.acked != 0 {
		o.acked = 0
		c.Road.Record(bucketAcked, peerKey(p.ID), nil)
	}
}

// Heed looks whether a peer, as its newest HELLO says, lacks what it has acknowledged.
func (c *Carrier) Heed(p *mail.Peer, seen uint16) {
	o := c.orders[p.ID]
	lost := int(int16(uint16(o.acked) - seen))
	if o.acked == 0 || lost <= 0 {
		return
	}
	c.Road.Note("warn", "a peer was put back to an older copy of its data: what it had acknowledged since then is not sent again",
		"peer", p.Name, "it_may_have_lost", lost)
	o.acked -= uint32(lost) // it is said once
	c.Road.Record(bucketAcked, peerKey(p.ID), binary.BigEndian.AppendUint32(nil, o.acked))
}
