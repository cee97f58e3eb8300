package group

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/pmul"
)

// copies sends what went to the group once more to each peer that it is for and whose roster is too old to read it. Sealed for one
// node alone it can be read there: between two nodes the roster does not matter.
func (c *Carrier) copies(now time.Time, packet pmul.Packet, body []byte) {
	for _, p := range c.Peers {
		if c.Behind(p.ID) && p.Reachable() && slices.ContainsFunc(packet.PDUs, func(pdu pmul.PDU) bool { return c.concerns(pdu, p) }) {
			c.post(now, p.ID, p.Addr, !p.Handshake.KnowsUs, body, pmul.Packet{}, &p.Ledger)
			p.Counts.DatagramsSent++
			p.LastSent = now
		}
	}
}

// concerns says that a PDU is about a message to or from a peer.
func (c *Carrier) concerns(pdu pmul.PDU, p *mail.Peer) bool {
	switch pdu := pdu.(type) {
	case pmul.DataPDU, pmul.AddressPDU, pmul.ParityPDU:
		return slices.ContainsFunc(c.sender.Parts(pdu), func(part pmul.Part) bool {
			m := c.out[part.Message]
			return m != nil && m.For(p.ID) != nil
		})
	case pmul.AckPDU:
		return slices.ContainsFunc(pdu.Entries, func(e pmul.AckEntry) bool { return e.Source == pmul.NodeID(p.ID) })
	}
	return true
}
