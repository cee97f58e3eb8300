package group

import (
	"cmp"
	"math"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/envelope"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// submitOneState submits one message with state: items that one peer lacks, to it and to all others that lack one of these. Peers take turns.
func (c *Carrier) submitOneState(now time.Time) bool {
	for i := range c.Peers {
		p := c.Peers[(c.turn+i)%len(c.Peers)]
		if p.Handshake.Store == 0 || p.Gone || !tells(c, p) || !c.Met(now, p) { // never heard: it may not exist
			continue
		}
		items := c.Replica.Next(now, p.ID, 8)
		if len(items) == 0 {
			continue
		}
		to := []*mail.Peer{p}
		for _, q := range c.Peers {
			if q != p && q.Handshake.Store != 0 && !q.Gone && tells(c, q) && c.Met(now, q) && c.Replica.Joins(now, q.ID, items) {
				to = append(to, q)
			}
		}
		slices.SortFunc(to, func(a, b *mail.Peer) int { return cmp.Compare(a.ID, b.ID) })
		c.turn = (c.turn + i + 1) % len(c.Peers)
		m, ok := message(c, news(c, to, items), mail.KindOf(items))
		return ok && len(submit(c, now, to, m, nil, items)) == 0
	}
	return false
}

// news is the message that tells these peers of items. A withdrawn item goes as the hash of the version that all of them hold.
func news(c *Carrier, to []*mail.Peer, items []site.Item) (m envelope.Message) {
	for _, it := range items {
		held, has := c.Replica.Holds(to[0].ID, it.Key())
		for _, p := range to[1:] {
			other, also := c.Replica.Holds(p.ID, it.Key())
			has = has && also && other.Hash == held.Hash
		}
		if it.Gone && has && it.Adapter == site.XMPP {
			m.Void = append(m.Void, held.Hash)
		} else {
			m.Items = append(m.Items, it)
		}
	}
	return m
}

func tells(c *Carrier, p *mail.Peer) bool { return c.Tells == nil || c.Tells(p.ID) }

// Accept hands a message to P_Mul for all these peers at once. Where it is refused, the log says why.
func (c *Carrier) Accept(now time.Time, to []*mail.Peer, content envelope.Message, kind mail.Kind) (refused []*mail.Peer) {
	m, ok := message(c, content, kind)
	if !ok {
		return to
	}
	return submit(c, now, to, m, c.older(m, to), content.Items)
}

func message(c *Carrier, content envelope.Message, kind mail.Kind) (m *mail.Message, ok bool) {
	m, err := c.Store.New(content, kind)
	if err != nil {
		c.Services.Note("warn", "a message cannot be encoded; the gateway refused it", "error", err)
	}
	return m, err == nil
}

// submit gives the engine a message that is new or comes from another bearer. It takes the place of old if that is not nil. told are the
// items that it tells of.
func submit(c *Carrier, now time.Time, to []*mail.Peer, m, old *mail.Message, told []site.Item) (refused []*mail.Peer) {
	content := m.Content
	body, err := c.encode(now, to, m, old)
	if err != nil {
		c.Services.Note("warn", "a message cannot be encoded; the gateway refused it", "error", err)
		return to
	}
	expires, priority := now.Add(lifetime), priorityOf(m)
	if pl := content.Payload; pl != nil {
		expires = due.Earliest(expires, pl.Expires)
	}
	packed := slices.Clone(body)
	c.ref++
	c.answer = pmul.Accepted{}
	s := &submission{Message: m, to: to, old: old, told: told}
	if old != nil {
		id := numberOf(old, to)
		c.step(now, pmul.Replace{Ref: c.ref, Message: id, Payload: packed, Expires: expires}, s)
		c.stepSender(now, pmul.Hold{Message: id}) // only the older text was held
	} else {
		nodes := make([]pmul.NodeID, len(to))
		for i, p := range to {
			nodes[i] = pmul.NodeID(p.ID)
		}
		c.step(now, pmul.Submit{Ref: c.ref, Payload: packed, To: nodes, Expires: expires, Priority: priority, Source: m.Line(), AtOnce: len(told) > 0,
			Fleeting: content.Payload != nil && content.Payload.Fleeting,
			Held:     content.Payload != nil && c.Holds(content.Payload)}, s)
	}
	if c.answer.Ref != c.ref || c.answer.Err != nil {
		if now.Sub(c.refused) > time.Minute {
			c.refused = now
			c.Services.Note("warn", "a message was refused by P_Mul", "error", c.answer.Err)
		}
		return to
	}
	return nil
}

// submission is a message that the engine is being given, for whom, and the one whose place it takes.
type submission struct {
	*mail.Message
	to   []*mail.Peer
	old  *mail.Message
	told []site.Item
}

// older is the message that m takes the place of: one of which nothing has been on the air.
func (c *Carrier) older(m *mail.Message, to []*mail.Peer) *mail.Message {
	old := c.history.Older(m, to)
	if old == nil || !c.sender.Waits(numberOf(old, to)) {
		return nil
	}
	return old
}

func numberOf(m *mail.Message, to []*mail.Peer) pmul.MessageID {
	return pmul.MessageID(m.For(to[0].ID).At.Number)
}

// encode is the envelope of m as it crosses the link, valid until the coder's next use. m notes whether its flow is spelt out.
func (c *Carrier) encode(now time.Time, to []*mail.Peer, m, old *mail.Message) ([]byte, error) {
	texts := c.Services.Texts(to...)
	if texts != nil {
		texts.Whole = true
	}
	f := c.history.Flow(m.Spoken())
	if f == nil {
		return envelope.Packed(c.Coder, m.Content, 0, false, texts)
	}
	var err error
	if m.Ended() { // it is new
		if m.Full, err = envelope.Append(nil, m.Content, f.Number, true); err != nil { // by its number, as version 0.1 counts it
			return nil, err
		}
	}
	id := c.sender.Next(now)
	if old != nil {
		id = numberOf(old, to)
	}
	silent := slices.DeleteFunc(slices.Clone(to), func(p *mail.Peer) bool { return !c.silent[p.ID] }) // it cannot ask for the messages that it lost
	m.Defines = c.history.Spells(f, uint64(id), priorityOf(m) > 0, to...) || c.history.Spells(f, uint64(id), true, silent...)
	c.history.Encode(texts, f, uint64(id), func() uint64 { return oldest(c) }, m.Content.Payload, to...)
	return envelope.Packed(c.Coder, m.Content, f.Number, m.Defines, texts)
}

// oldest is the lowest number under way.
func oldest(c *Carrier) uint64 {
	least := uint64(math.MaxUint64)
	for id := range c.out {
		least = min(least, uint64(id))
	}
	return least
}

// keep takes a message that the engine has accepted into custody, before anything of it is sent.
func (c *Carrier) keep(s *submission, id pmul.MessageID) {
	if s.old != nil {
		c.history.Unsent(uint64(id), s.old.Content.Payload)
		for _, p := range s.to {
			c.Store.End(s.old.For(p.ID), mail.Superseded)
		}
	}
	for _, p := range s.to {
		c.Store.Start(p, s.Message, attempt(id), c.history)
		c.Replica.Sent(p.ID, s.ID, s.told)
	}
	if f := c.history.Flow(s.Spoken()); f != nil {
		c.history.Sent(f, uint64(id), s.Message)
	}
	c.history.Newest(s.Message)
	c.hold(s.Message, id)
}

func (c *Carrier) hold(m *mail.Message, id pmul.MessageID) {
	c.out[id] = m
	if m.Content.Payload == nil {
		c.telling++
	}
}
