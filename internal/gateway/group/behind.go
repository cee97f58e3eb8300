package group

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/pmul"
)

// copies sends a datagram to the group once more to each peer whose roster is too old to read it, with only those PDUs that concern the
// peer. Sealed for one node alone it can be read there: between two nodes the roster does not matter.
func (c *Carrier) copies(now time.Time, packet pmul.Packet) {
	for _, p := range c.Peers {
		if !c.Behind(p.ID) || !p.Reachable() {
			continue
		}
		its := slices.DeleteFunc(slices.Clone(packet.PDUs), func(pdu pmul.PDU) bool { return !c.concerns(pdu, p) })
		if len(its) == 0 {
			continue
		}
		b, err := c.engine.Encode(nil, pmul.Packet{To: pmul.NodeID(p.ID), PDUs: its})
		if err != nil {
			c.Services.Note("error", "a P_Mul packet cannot be encoded", "error", err)
			continue
		}
		c.post(now, p.ID, p.Addr, !p.Handshake.KnowsUs, frame.Append(nil, frame.PMul{Body: b}, true), pmul.Packet{}, &p.Ledger)
		p.Counts.DatagramsSent++
		p.LastSent = now
	}
}

// concerns says that a PDU is about a message to or from a peer, or gives it the turn.
func (c *Carrier) concerns(pdu pmul.PDU, p *mail.Peer) bool {
	switch pdu := pdu.(type) {
	case pmul.DataPDU, pmul.AddressPDU, pmul.ParityPDU:
		return slices.ContainsFunc(c.sender.Parts(pdu), func(part pmul.Part) bool {
			m := c.out[part.Message]
			return m != nil && m.For(p.ID) != nil
		})
	case pmul.AckPDU:
		return slices.ContainsFunc(pdu.Entries, func(e pmul.AckEntry) bool { return e.Source == pmul.NodeID(p.ID) })
	case pmul.TurnPDU:
		return pdu.Next == pmul.NodeID(p.ID)
	}
	return true
}
