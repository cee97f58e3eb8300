package group

import (
	"slices"
	"time"

	"aldis/internal/due"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/life"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// Orders are what the operator may order of the messages that wait for air. One of which a part has been on the air goes
// through: its receivers hold that part, and count its place.
type Orders struct{ c *Carrier }

// Orders of the carrier.
func (c *Carrier) Orders() Orders { return Orders{c} }

// Waits says that nothing of a message has been on the air.
func (o Orders) Waits(e *mail.Entry) bool { return o.c.sender.Waits(pmul.MessageID(e.At.Number)) }

// Left is octets, as journalled, of messages to a peer that have left the radio and have no receipt yet: most of them are there, and
// receipts wait for company.
func (o Orders) Left(now time.Time, peer uint16) (octets int) {
	for id, m := range o.c.out { // in any order
		if e := m.For(peer); e != nil && pmul.HasLeft(now, o.c.sender, id, pmul.NodeID(peer)) {
			octets += len(m.Full)
		}
	}
	return octets
}

// Hold keeps a message back for all its recipients, or lets it go again.
func (o Orders) Hold(now time.Time, e *mail.Entry, on bool) {
	o.c.stepSender(now, pmul.Hold{Message: pmul.MessageID(e.At.Number), On: on})
	for _, id := range e.Recipients() {
		if other := e.For(id); other.At == e.At {
			o.c.Store.Hold(other, on)
		}
	}
}

// Whole says that a recipient may have the whole of a message.
func (o Orders) Whole(e *mail.Entry) bool {
	return pmul.AiredOf(o.c.sender, pmul.MessageID(e.At.Number)).Whole
}

// Withdraw ends a message for all its recipients. The caller has looked that none may have the whole of it.
func (o Orders) Withdraw(now time.Time, e *mail.Entry) {
	id := pmul.MessageID(e.At.Number)
	o.c.stepSender(now, pmul.Withdraw{Message: id})
}

// Precede gives a message that waits another precedence.
func (o Orders) Precede(now time.Time, e *mail.Entry, p site.Precedence) error {
	c, was, id := o.c, e.Message, pmul.MessageID(e.At.Number)
	copied, err := was.With(p)
	if err != nil {
		return err
	}
	var to []*mail.Peer
	for _, one := range was.Recipients() {
		if was.For(one).At == e.At {
			to = append(to, was.For(one).Peer)
		}
	}
	body, err := c.encode(now, to, copied, was)
	if err != nil {
		return err
	}
	c.ref++
	c.answer = pmul.Accepted{}
	priority := priorityOf(copied)
	c.audience.Unsent(uint64(id), was.Content.Payload)
	c.Store.Exchange(was, e.At, copied)
	c.out[id] = copied
	if f := c.audience.Flow(copied.Content.Payload); f != nil {
		c.audience.Sent(f, uint64(id), copied)
	}
	c.step(now, pmul.Replace{Ref: c.ref, Message: id, Payload: slices.Clone(body), Priority: &priority,
		Expires: due.Earliest(now.Add(lifetime), copied.Content.Payload.Expires)}, nil)
	return c.answer.Err
}

// priorityOf is the Priority of a message: deferred goes as routine, because 0 is the least.
func priorityOf(m *mail.Message) uint8 {
	if m.Content.Payload == nil {
		return 0
	}
	return uint8(max(0, m.Rank()-site.Routine.Rank()))
}

// Queue lists the messages of which nothing has been on the air, in the order in which they go.
func (o Orders) Queue() (list []*mail.Message) {
	for _, id := range o.c.sender.Messages() {
		if m := o.c.out[id]; m != nil && o.c.sender.Waits(id) {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b *mail.Message) int { return int(priorityOf(b)) - int(priorityOf(a)) })
	return list
}

// aired notes in the lives of messages what a datagram to all or to one peer has of them.
func (c *Carrier) aired(to uint16, pdus []pmul.PDU) {
	type part struct {
		octets int
		again  bool
	}
	parts := map[pmul.MessageID]part{}
	var order []pmul.MessageID
	note := func(id pmul.MessageID, octets int, again bool) {
		if _, seen := parts[id]; !seen {
			order = append(order, id)
		}
		p := parts[id]
		parts[id] = part{p.octets + octets, p.again || again}
	}
	for _, pdu := range pdus {
		switch pdu := pdu.(type) {
		case pmul.DataPDU:
			note(pdu.Message, len(pdu.Fragment), pdu.Number <= c.highest[pdu.Message])
			if c.out[pdu.Message] != nil {
				c.highest[pdu.Message] = max(c.highest[pdu.Message], pdu.Number)
			}
		case pmul.ParityPDU:
			note(pdu.Message, len(pdu.Shard), true)
		}
	}
	for _, id := range order {
		m := c.out[id]
		if m == nil || m.Content.Payload == nil {
			continue
		}
		for _, peer := range m.Recipients() {
			if e := m.For(peer); e.At == attempt(id) {
				e.Gone = true
				c.Store.Lives.State(m.ID, peer, life.UnderWay)
			}
		}
		c.Store.Lives.Aired(m.ID, to, parts[id].octets, len(order)-1, parts[id].again)
	}
}

// repaired notes that a recipient could not read what it had acknowledged: what goes in its place is another message.
func (c *Carrier) repaired(p *mail.Peer, of uint64) {
	c.Store.Lives.End(of, p.ID, life.Again, "the site could not read it")
}
