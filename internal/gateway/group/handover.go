package group

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/pmul"
)

// Handover is the carrier's part when messages change their bearer: docs/decisions/bearers.md.
type Handover struct {
	mail.Undivided
	C *Carrier
}

// waitsFor notes that a message for a peer is on the air, where another bearer waits.
func waitsFor(c *Carrier, now time.Time, p *mail.Peer) {
	if o := c.orders[p.ID]; c.Timing.Hasty && (o.since.IsZero() || o.since.Before(p.LastHeard)) {
		o.since = now
	}
}

// missed is when a peer is asked whether it is there, since messages under way to it have no answer; zero: it is not asked.
// Acknowledgements may ride.
func missed(c *Carrier, p *mail.Peer) (at time.Time) {
	if o := c.orders[p.ID]; !o.since.IsZero() && !o.since.Before(p.LastHeard) && p.Box.UnderWayOctets() > 0 && !p.Link.Dead() && !p.Link.Listening() {
		at = o.since.Add(c.Timing.RoundTrip + c.Profile.AckDelay)
	}
	return at
}

// Adopt gives the engine an entry of another bearer.
func (h Handover) Adopt(now time.Time, e *mail.Entry) bool {
	c := h.C
	return len(submit(c, now, []*mail.Peer{e.Peer}, e.Message, nil, e.Content.Items)) == 0
}

// Room is how many octets one turn on the channel takes, less those of messages that have not begun.
func (h Handover) Room() int {
	c := h.C
	room := int(c.Profile.MaxHold.Seconds() * float64(c.rateBps()) / 8)
	if room == 0 {
		room = c.Profile.Window * c.Profile.Filled()
	}
	for id, m := range c.out {
		if c.sender.Waits(id) {
			room -= len(m.Full)
		}
	}
	return room
}

// Elsewhere ends a message for a peer that has it from another bearer. The message goes on for others. If it was for nobody else, and no
// part of it has gone, it goes empty: receivers wait for its place.
func (h Handover) Elsewhere(now time.Time, e *mail.Entry) {
	c := h.C
	id, m := pmul.MessageID(e.At.Number), e.Message
	c.history.Ended(e.At.Number, m.Content.Payload)
	c.Store.Drop(e)
	if slices.ContainsFunc(c.Peers, func(p *mail.Peer) bool { return m.On(p) != nil }) {
		return
	}
	if c.sender.Waits(id) {
		c.ref++
		c.step(now, pmul.Replace{Ref: c.ref, Message: id, Payload: mail.Nothing(), Expires: now.Add(lifetime)}, nil)
	}
	c.settle(now, id, m)
}

// Used counts a message of the peer as one that is here: the engine acknowledges it, and the messages behind it wait for it no more.
func (h Handover) Used(p *mail.Peer, at mail.TransmissionID) (read bool) {
	c, o := h.C, h.C.orders[p.ID]
	key := pmul.Key{Source: pmul.NodeID(p.ID), Message: pmul.MessageID(at.Number)}
	for _, place := range o.early.Places() {
		if a, _ := o.early.Get(place); a.Number == at.Number && len(a.Body) > 0 { // it waits here for its turn
			a.Body, o.put = nil, true
			o.early.Keep(a, true)
			return false
		}
	}
	if at.Number>>32 != 0 || pmul.Knows(c.receiver, key) {
		return at.Number>>32 == 0
	}
	c.stepReceiver(c.Store.Lives.Now(), pmul.Elsewhere{Key: key})
	return false
}
