package group

import (
	"encoding/binary"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// Messages that have ended are kept for a while, in the journal too, for a recipient that cannot read one of them. It acknowledges a
// message before it reads it, and this node may start again before it hears that the message is asked for.
const (
	maxEnded       = 1024
	maxEndedOctets = 1 << 20

	bucketEnded = "mul-ended" // Message_ID -> the message
)

type endedMessages struct {
	order    []pmul.MessageID
	payloads map[pmul.MessageID]said
	octets   int
	peers    map[pmul.MessageID]map[uint16]*outcome // also of those that have not ended for all
}

// said is the content of a message, and its numbers on other bearers by which it went before: a peer that cannot read it may have had it
// there.
type said struct {
	*site.Message
	moved []envelope.Moved
}

// outcome is what became of a message for one peer.
type outcome struct {
	delivered bool           // it has acknowledged it
	repair    pmul.MessageID // the message that was sent in its place; 0: none
}

// of is the outcome of a message for a peer; the caller's changes in it stay.
func (e *endedMessages) of(id pmul.MessageID, peer uint16) *outcome {
	if e.peers == nil {
		e.peers = map[pmul.MessageID]map[uint16]*outcome{}
	}
	if e.peers[id] == nil {
		e.peers[id] = map[uint16]*outcome{}
	}
	if e.peers[id][peer] == nil {
		e.peers[id][peer] = &outcome{}
	}
	return e.peers[id][peer]
}

// unacknowledge takes back that a peer has acknowledged a message; false: it was not noted.
func (e *endedMessages) unacknowledge(id pmul.MessageID, peer uint16) bool {
	o := e.peers[id][peer]
	if o == nil || !o.delivered {
		return false
	}
	o.delivered = false
	return true
}

// latest is the message that a peer was sent last in the place of another; a peer that was put back asks for that other one again.
func (e *endedMessages) latest(id pmul.MessageID, peer uint16) pmul.MessageID {
	for o := e.peers[id][peer]; o != nil && o.repair != 0; o = e.peers[id][peer] {
		id = o.repair
	}
	return id
}

func payloadOctets(p *site.Message) (n int) {
	for i := range p.Parts {
		n += len(p.Parts[i].Data)
	}
	return n
}

// add keeps the content of a message that has ended for all; false: it is not kept. over are those that are no longer kept.
func (e *endedMessages) add(id pmul.MessageID, m *envelope.Message) (kept bool, over []pmul.MessageID) {
	p := m.Payload
	if p == nil || payloadOctets(p) > maxEndedOctets {
		delete(e.peers, id)
		return false, nil
	}
	if e.payloads == nil {
		e.payloads = map[pmul.MessageID]said{}
	}
	e.payloads[id] = said{p, m.Moved}
	e.order = append(e.order, id)
	for e.octets += payloadOctets(p); e.octets > maxEndedOctets || len(e.order) > maxEnded; e.order = e.order[1:] {
		e.octets -= payloadOctets(e.payloads[e.order[0]].Message)
		delete(e.payloads, e.order[0])
		delete(e.peers, e.order[0])
		over = append(over, e.order[0])
	}
	return true, over
}

// recall takes a message that had ended in an earlier run.
func (e *endedMessages) recall(key, full []byte) error {
	m, _, _, err := envelope.Parse(full, nil)
	if err != nil || len(key) != 4 || m.Payload == nil {
		return mail.ErrRecord
	}
	e.add(pmul.MessageID(binary.BigEndian.Uint32(key)), &m)
	return nil
}

func endedKey(id pmul.MessageID) []byte { return binary.BigEndian.AppendUint32(nil, uint32(id)) }

// fate: a message of ours has ended for one peer.
func (c *Carrier) fate(now time.Time, f pmul.Fate) {
	p, m := c.peers[uint16(f.To)], c.out[f.Message]
	if p == nil || m == nil || m.On(p) == nil {
		return
	}
	if f.State == pmul.Delivered {
		c.history.Holds(p, uint64(f.Message), m.On(p).Read(), 0)
		c.ended.of(f.Message, p.ID).delivered = true
		c.acked(p, f.Sequence)
		c.Store.End(m.On(p), mail.Delivered)
	} else if c.history.Ended(uint64(f.Message), m.Content.Payload); f.State == pmul.Refused && p.Gone {
		if m.Content.Payload != nil {
			p.Counts.Cancelled++
		}
		c.Store.End(m.On(p), mail.Refused)
	} else if f.State == pmul.Refused && c.leaving == p {
		c.Store.End(m.On(p), mail.Cancelled)
	} else if f.State == pmul.Cancelled {
		c.Store.End(m.On(p), mail.Cancelled)
	} else {
		c.Store.End(m.On(p), mail.Expired)
		if m.Content.Payload == nil || !m.Content.Payload.Fleeting {
			c.Services.Note("warn", "a message has not reached a peer", "peer", p.Name, "message", f.Message, "state", f.State)
		}
	}
	c.settle(now, f.Message, m)
}

// settle forgets a message that has ended for all, but for its content.
func (c *Carrier) settle(now time.Time, id pmul.MessageID, m *mail.Message) {
	if !m.Ended() {
		return
	}
	if m.Content.Payload == nil {
		c.telling--
	}
	kept, over := c.ended.add(id, &m.Content)
	if kept {
		c.Services.Record(bucketEnded, endedKey(id), m.Full)
	}
	for _, old := range over {
		c.Services.Record(bucketEnded, endedKey(old), nil)
	}
	delete(c.out, id)
	delete(c.highest, id)
	if len(c.out) == 0 {
		c.Air.Needless()
	}
	c.Services.TellFates(now)
}

// Resend sends messages to a peer that has acknowledged them and cannot read them: to it alone and coded by themselves.
func (c *Carrier) Resend(now time.Time, p *mail.Peer, numbers []uint32) {
	for _, number := range numbers {
		c.resendOne(now, p, pmul.MessageID(number))
	}
}

func (c *Carrier) resendOne(now time.Time, p *mail.Peer, asked pmul.MessageID) {
	id := c.ended.latest(asked, p.ID)
	payload, moved := c.ended.payloads[id].Message, c.ended.payloads[id].moved
	m := c.out[id]
	if m != nil { // its acknowledgement may still be on its way
		if id != asked && m.On(p) != nil {
			return // the message in its place is under way too
		}
		payload, moved = m.Content.Payload, m.Content.Moved
	}
	if payload == nil {
		c.Services.Gone(now, p, attempt(id))
		c.Services.Note("error", "a peer asks for a message that this node no longer has; the message is undeliverable there", "peer", p.Name, "message", id)
		return
	}
	c.history.Misread(p, payload)
	repair := *payload
	repair.Token = 0                                               // it has been reported
	if c.ended.unacknowledge(id, p.ID) && p.Counts.Delivered > 0 { // it was not
		p.Counts.Delivered--
	}
	if len(c.Accept(now, []*mail.Peer{p}, envelope.Message{Payload: &repair, Moved: moved}, mail.Repair)) == 0 {
		c.ended.of(id, p.ID).repair = c.answer.Message
	}
	if m != nil && m.On(p) != nil {
		c.repaired(p, m.ID)
		c.Store.End(m.On(p), mail.Reissued)
		c.settle(now, id, m)
	}
}
