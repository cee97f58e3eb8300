package group

import (
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/pmul"
)

// send seals a datagram of P_Mul: to one peer, to the group, or to every peer where there is no group's address.
func (c *Carrier) send(now time.Time, packet pmul.Packet) {
	if c.engine.Hears && packet.To != 0 && !c.Behind(uint16(packet.To)) && !apart(c, now, packet) { // all that share the channel have to know that it is in use
		packet.To, packet.Group = 0, members
	}
	if p := c.only(packet); p != nil {
		packet.To = pmul.NodeID(p.ID)
	}
	if packet.To == 0 {
		packet = c.ride(now, packet)
	}
	b, err := c.engine.Encode(nil, packet)
	if err != nil {
		c.Services.Note("error", "a P_Mul packet cannot be encoded", "error", err)
		return
	}
	body := frame.Append(nil, frame.PMul{Body: b}, true)
	to := c.Peers
	switch {
	case packet.To != 0:
		to = nil
		if p := c.peers[uint16(packet.To)]; p != nil {
			to = []*mail.Peer{p}
		}
	case c.Group.IsValid():
		long := slices.ContainsFunc(c.Peers, func(p *mail.Peer) bool { return !p.Handshake.KnowsUs && !p.Absent() })
		c.post(now, seal.Group, c.Group, long, body, packet, c.Ledger)
		c.copies(now, packet)
		return
	}
	for _, p := range to {
		if p.Addr.IsValid() {
			c.post(now, p.ID, p.Addr, !p.Handshake.KnowsUs, body, packet, &p.Ledger)
			p.Counts.DatagramsSent++
			p.LastSent = now
		}
	}
}

// proofsApart is how many octets of proofs make a datagram to all too long for an acknowledgement.
const proofsApart = 32

// apart says that a packet is nothing but acknowledgements of whole messages for one peer, and that the proofs for all others would be
// longer than it. It goes to that peer alone, though the others do not learn that the channel is in use for so short a time. Where another
// node speaks for the peer, that node has to hear the acknowledgements.
func apart(c *Carrier, now time.Time, packet pmul.Packet) bool {
	p := c.peers[uint16(packet.To)]
	if p == nil || !p.Reachable() || c.Proven() < proofsApart || c.Others.aloud(now, p.ID) {
		return false
	}
	return !slices.ContainsFunc(packet.PDUs, func(pdu pmul.PDU) bool {
		a, ok := pdu.(pmul.AckPDU)
		return !ok || slices.ContainsFunc(a.Entries, func(e pmul.AckEntry) bool { return len(e.Missing) > 0 })
	})
}

// only is the one recipient of a packet about a roster, news or other state, where the proofs for all others would be long; nil:
// there is none. The packet goes to it alone. Messages of applications go to all: all that share the channel have to know that it is in
// use. A packet for a silent peer goes to all, too, for a router may have to ask the peer for its address.
func (c *Carrier) only(packet pmul.Packet) *mail.Peer {
	if packet.To != 0 || !c.engine.Hears || c.Proven() < proofsApart || c.kindOf(packet.PDUs) == mail.Payload {
		return nil
	}
	var p *mail.Peer
	var of pmul.MessageID
	for _, pdu := range packet.PDUs {
		switch pdu := pdu.(type) {
		case pmul.AddressPDU:
			if len(pdu.Destinations) != 1 || p != nil {
				return nil
			}
			p, of = c.peers[uint16(pdu.Destinations[0].Node)], pdu.Message
			if p == nil || !p.Reachable() || c.silent[p.ID] {
				return nil
			}
		case pmul.DataPDU: // the fragment of another message may be for all
			if p == nil || pdu.Message != of {
				return nil
			}
		default:
			return nil
		}
	}
	return p
}

// ride puts acknowledgements that are owed into a datagram that goes to all anyway.
func (c *Carrier) ride(now time.Time, packet pmul.Packet) pmul.Packet {
	b, err := c.engine.Encode(nil, packet)
	if err != nil || len(b) >= c.engine.DatagramOctets {
		return packet
	}
	out := c.receiver.Step(now, pmul.Ride{Octets: c.engine.DatagramOctets - len(b)})
	c.dues[1] = out.Deadline
	for _, r := range out.Records {
		c.Services.Record(r.Bucket, r.Key, r.Value)
	}
	if len(out.Ride) > 0 {
		c.acknowledged = now
	}
	packet.PDUs = append(out.Ride, packet.PDUs...)
	return packet
}

func (c *Carrier) post(now time.Time, to uint16, addr netip.AddrPort, long bool, body []byte, packet pmul.Packet, l *mail.Ledger) {
	data, ok := c.Services.Seal(to, long, body)
	if !ok {
		return
	}
	c.aired(to, packet.PDUs)
	l.Head(mail.Sent, long)
	whose := sharesOf(c, packet.PDUs).Scaled(len(body))
	l.Charge(mail.Sent, c.kindOf(packet.PDUs), whose)
	l.Add(mail.Sent, mail.Key, len(data)-seal.Overhead(long)-len(body))
	c.Air.Sent(now, c.Profile, len(data), c.rateBps())
	lone := now.Sub(c.used) >= c.Profile.CopyAfter && now.Sub(c.loud) >= c.Profile.AckDelay // else the next message shows the loss
	silent := forSilent(c, packet.PDUs)
	if silent {
		lone = now.Sub(c.used) >= c.Profile.AckDelay
	}
	c.used = now
	if whole(packet.PDUs) && !c.fleeting(packet.PDUs) && (c.repeats == 1 || lone && c.kindOf(packet.PDUs) == mail.Payload) {
		times := c.times(packet.PDUs)
		c.Air.KeepCopy(c.Profile, addr, data, c.peers[to], l, whose, long, times, silent)
	}
	c.Services.Send(addr, data)
}

// uncopied says that no datagram is repeated where losses come in bursts: one receiver's acknowledgement tells as much as two copies, for
// less air.
func uncopied(c *Carrier) bool {
	return c.engine.Burst > 1 && (!c.engine.Hears || len(c.Peers) == 1)
}

// times is how often a datagram is repeated on idle air: where losses come in bursts, once more for each doubling of its receivers
// beyond four, so that about as few messages are still missing somewhere.
func (c *Carrier) times(pdus []pmul.PDU) int {
	switch {
	case uncopied(c):
		return 0
	case c.repeats == 1:
		return 1
	}
	most := 0
	for _, pdu := range pdus {
		a, _ := pdu.(pmul.AddressPDU)
		most = max(most, len(a.Destinations))
	}
	if most <= fewReceivers {
		return c.repeats
	}
	return 2 + bits.Len(uint(most))
}

// forSilent says that a datagram is for a peer that has announced its silence, among others.
func forSilent(c *Carrier, pdus []pmul.PDU) bool {
	return slices.ContainsFunc(pdus, func(pdu pmul.PDU) bool {
		a, _ := pdu.(pmul.AddressPDU)
		return slices.ContainsFunc(a.Destinations, func(d pmul.Destination) bool { return c.silent[uint16(d.Node)] })
	})
}

// fleeting says that a datagram has nothing but messages that are not repeated for silent peers.
func (c *Carrier) fleeting(pdus []pmul.PDU) bool {
	return !slices.ContainsFunc(pdus, func(pdu pmul.PDU) bool {
		data, ok := pdu.(pmul.DataPDU)
		if !ok {
			return false
		}
		m := c.out[data.Message] // nil for a batch, and no message that expires soon goes in a batch
		return m == nil || m.Content.Payload == nil || !m.Content.Payload.Fleeting
	})
}

// whole says that a datagram has a message with all of it: one fragment and the Address_PDU before it. A datagram that gives the turn
// is of no use later, and a message that is acknowledged at once goes again when no answer has come.
func whole(pdus []pmul.PDU) bool {
	for i, pdu := range pdus {
		if _, turn := pdu.(pmul.TurnPDU); turn {
			return false
		}
		data, ok := pdu.(pmul.DataPDU)
		if ok && slices.ContainsFunc(pdus[:i], func(before pmul.PDU) bool {
			a, ok := before.(pmul.AddressPDU)
			return ok && a.Message == data.Message && a.Total == 1 && !a.AtOnce
		}) {
			return true
		}
	}
	return false
}

// sharesOf divides a datagram among the owners of its messages, by their octets in it.
func sharesOf(c *Carrier, pdus []pmul.PDU) (s mail.Shares) {
	for _, pdu := range pdus {
		for _, part := range c.sender.Parts(pdu) {
			if m := c.out[part.Message]; m != nil {
				s.GiveTo(&m.Content, 1+part.Octets)
			}
		}
	}
	return s
}

// kindOf is the kind to which a datagram is charged: that of its message, or in a batch that of the first message unless one is an
// application's; or acknowledgement.
func (c *Carrier) kindOf(pdus []pmul.PDU) mail.Kind {
	of := func(pdu pmul.PDU) mail.Kind {
		kind := mail.Payload
		for i, part := range c.sender.Parts(pdu) {
			m := c.out[part.Message]
			if m == nil || m.Content.Payload != nil {
				return mail.Payload
			}
			if i == 0 {
				kind = mail.KindOf(m.Content.Items)
			}
		}
		return kind
	}
	for _, pdu := range pdus {
		switch pdu := pdu.(type) {
		case pmul.DataPDU:
			return of(pdu)
		case pmul.AddressPDU:
			return of(pdu)
		case pmul.ParityPDU:
			return mail.Repair
		}
	}
	return mail.Ack
}
