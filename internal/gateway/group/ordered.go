package group

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/ground/due"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// orders carries out an operator's orders about messages that wait for air. A message of which a part has been on the air goes through:
// its receivers hold that part, and count its place.
type orders struct{ c *Carrier }

// Orders of the carrier.
func (c *Carrier) Orders() mail.Orders { return orders{c} }

// goesTogether says that a message goes to its recipients under one number.
func goesTogether(e *mail.Entry) bool { return e.Queue == mail.Group && e.At.Number != 0 }

func (o orders) Together() bool { return true }

func (o orders) Waits(e *mail.Entry) bool {
	return o.c.Store.Orders().Waits(e) || goesTogether(e) && o.c.sender.Waits(pmul.MessageID(e.At.Number))
}

func (o orders) Whole(e *mail.Entry) bool {
	if !goesTogether(e) {
		return o.c.Store.Orders().Whole(e)
	}
	return pmul.AiredOf(o.c.sender, pmul.MessageID(e.At.Number)).Whole
}

func (o orders) Hold(now time.Time, e *mail.Entry, on bool) {
	if !goesTogether(e) {
		o.c.Store.Hold(e, on)
		return
	}
	o.c.stepSender(now, pmul.Hold{Message: pmul.MessageID(e.At.Number), On: on})
	for _, id := range e.Recipients() {
		if other := e.For(id); other.At == e.At {
			o.c.Store.Hold(other, on)
		}
	}
}

func (o orders) Cancel(now time.Time, e *mail.Entry) {
	if !goesTogether(e) {
		o.c.Store.End(e, mail.Cancelled)
		return
	}
	o.c.stepSender(now, pmul.Cancel{Message: pmul.MessageID(e.At.Number)})
}

func (o orders) Precede(now time.Time, e *mail.Entry, p site.Precedence) error {
	if !goesTogether(e) {
		return o.c.Store.Orders().Precede(now, e, p)
	}
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
	c.history.Unsent(uint64(id), was.Content.Payload)
	c.Store.Exchange(was, e.At, copied)
	c.out[id] = copied
	if f := c.history.Flow(copied.Content.Payload); f != nil {
		c.history.Sent(f, uint64(id), copied)
	}
	c.step(now, pmul.Replace{Ref: c.ref, Message: id, Payload: slices.Clone(body), Priority: &priority,
		Expires: due.Earliest(now.Add(lifetime), copied.Content.Payload.Expires)}, nil)
	return c.answer.Err
}

func (o orders) Queue(now time.Time, p *mail.Peer) (q mail.Queued) {
	q.Ordered = true
	waiting := 0
	for _, one := range o.unsent() {
		if e := one.On(p); e == nil || !e.OnHold {
			q.Places = append(q.Places, mail.Place{ID: one.ID, Octets: len(one.Full), Rank: one.Rank()})
			waiting += len(one.Full)
		}
	}
	q.UnderWay = max(0, p.Box.UnderWayOctets()-waiting+o.Ahead(now, p))
	return q
}

// Ahead counts the octets of messages that have left the radio and have no acknowledgement yet, as a negative number: most of them are
// there, and acknowledgements wait for company.
func (o orders) Ahead(now time.Time, p *mail.Peer) (octets int) {
	for id, m := range o.c.out { // in any order
		if e := m.On(p); e != nil && pmul.HasLeft(now, o.c.sender, id) {
			octets -= len(m.Full)
		}
	}
	return octets
}

// priorityOf is the Priority of a message: deferred goes as routine, because 0 is the least.
func priorityOf(m *mail.Message) uint8 {
	if m.Content.Payload == nil {
		return 0
	}
	return uint8(max(0, m.Rank()-site.Routine.Rank()))
}

// unsent lists the messages of which nothing has been on the air, in the order in which they go.
func (o orders) unsent() (list []*mail.Message) {
	for _, id := range o.c.sender.Messages() {
		if m := o.c.out[id]; m != nil && o.c.sender.Waits(id) {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b *mail.Message) int { return int(priorityOf(b)) - int(priorityOf(a)) })
	return list
}

// aired notes in the lives of messages that parts of them are in a datagram to all or to one peer.
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
			for _, p := range c.sender.Parts(pdu) {
				note(p.Message, p.Octets, pdu.Number <= c.highest[p.Message])
				if c.out[p.Message] != nil {
					c.highest[p.Message] = max(c.highest[p.Message], pdu.Number)
				}
			}
		case pmul.ParityPDU:
			for _, p := range c.sender.Parts(pdu) {
				note(p.Message, p.Octets, true)
			}
		}
	}
	for _, id := range order {
		m := c.out[id]
		if m == nil || m.Content.Payload == nil {
			continue
		}
		for _, peer := range m.Recipients() {
			if c.peers[peer] == nil { // it has left
				continue
			}
			if e := m.On(c.peers[peer]); e != nil && e.At == attempt(id) {
				e.Gone = true
				waitsFor(c, c.Store.Lives.Now(), c.peers[peer])
				c.Store.Lives.State(m.ID, peer, history.UnderWay)
			}
		}
		c.Store.Lives.Aired(m.ID, to, parts[id].octets, len(order)-1, parts[id].again)
	}
}

// repaired notes that a recipient could not read a message that it had acknowledged: another message goes in its place.
func (c *Carrier) repaired(p *mail.Peer, of uint64) {
	c.Store.Lives.End(of, p.ID, history.Again, "the site could not read it")
}
