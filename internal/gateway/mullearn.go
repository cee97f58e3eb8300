package gateway

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// Learning on a group: a message over P_Mul is coded after those of its flow that every one of its recipients is known
// to hold, by their Ack_PDUs. Recipients keep what is delivered, in their journals, and find the same messages by number:
// so these must follow each other at all of them. docs/decisions/flows.md.

// mulSent is a message of a flow: for whom it was, and who of them has acknowledged it.
type mulSent struct {
	id      pmul.MessageID
	to, has map[uint16]bool
	octets  int
	payload *site.Message
}

// How far back a message may be that another is coded after, and what a recipient keeps of a flow and element: more, for
// one that is late is read after some that were sent behind it.
const (
	mulBack       = 128 // messages of the flow
	mulBackOctets = 32 << 10
	mulKept       = 2 * mulBack
	mulKeptOctets = 2 * mulBackOctets
)

// learnable notes a message of a flow that goes to some peers.
func (f *mulFlow) learnable(id pmul.MessageID, to map[uint16]bool, payload *site.Message) {
	if f.number > envelope.HistoryFlows {
		return
	}
	m := &mulSent{id: id, to: maps.Clone(to), has: map[uint16]bool{}, payload: payload}
	envelope.Elements(f.number, payload, func(_ int, data []byte) { m.octets = max(m.octets, len(data)) })
	at, _ := slices.BinarySearchFunc(f.sent, id, byID) // at the end, but for one that has taken an older one's place
	f.sent = slices.Insert(f.sent, at, m)
	octets := 0
	for i := len(f.sent) - 1; i >= 0; i-- {
		if octets += f.sent[i].octets; octets > mulBackOctets || len(f.sent)-i > mulBack {
			f.sent = slices.Delete(f.sent, 0, i+1)
			break
		}
	}
}

// unlearnable: a message that was noted never goes.
func (f *mulFlow) unlearnable(id pmul.MessageID) {
	f.sent = slices.DeleteFunc(f.sent, func(m *mulSent) bool { return m.id == id })
}

// acknowledged: a peer holds a message.
func (f *mulFlow) acknowledged(id pmul.MessageID, peer uint16) {
	i, ok := slices.BinarySearchFunc(f.sent, id, byID)
	if ok {
		f.sent[i].has[peer] = true
	}
}

// unlearn: a peer holds nothing any more of what went to it.
func (f *mulFlow) unlearn(peer uint16) {
	for _, m := range f.sent {
		delete(m.has, peer)
	}
}

func byID(m *mulSent, id pmul.MessageID) int { return int(int32(m.id - id)) }

// before is what all these peers hold, newest last: messages that follow each other at every one of them.
func (f *mulFlow) before(to []*peer) (list []*mulSent) {
back:
	for _, m := range slices.Backward(f.sent) {
		sent, held := 0, 0
		for _, p := range to {
			if m.to[p.ID] {
				sent++
			}
			if m.has[p.ID] {
				held++
			}
		}
		switch {
		case sent == 0: // none of them has heard of it
		case held == len(to):
			if list = append(list, m); len(list) == compact.MostBefore {
				break back
			}
		case len(list) > 0: // some may have it, and then it stands between
			break back
		}
	}
	slices.Reverse(list)
	return list
}

// learned lets texts code message id of a flow after what all these peers hold.
func (g *Gateway) learned(texts *envelope.Texts, f *mulFlow, id pmul.MessageID, to []*peer) {
	list := slices.DeleteFunc(f.before(to), func(m *mulSent) bool { return byID(m, id) >= 0 }) // it may have taken an older one's place
	if texts == nil || len(list) == 0 {
		return
	}
	held := envelope.Histories{Complete: true}
	for _, m := range list {
		held.Add(f.number, uint64(m.id), m.payload)
	}
	held.Encode(texts, f.number, uint64(id))
}

// mulUnlearn: what a peer held before it holds no more.
func (g *Gateway) mulUnlearn(p *peer) {
	if g.mul == nil {
		return
	}
	for _, f := range g.mul.flows {
		f.unlearn(p.ID)
	}
}

// learnLate is learn for messages that may come out of order.
func (g *Gateway) learnLate(p *peer, flow uint32, number uint64, payload *site.Message) {
	envelope.Elements(flow, payload, func(element int, data []byte) {
		key := beforeKey(p.ID, flow, element)
		g.record(bucketBefore, binary.BigEndian.AppendUint64(slices.Clone(key), number), append([]byte{0}, data...))
		for _, old := range g.insertBefore(p, flow, element, number, data) {
			g.record(bucketBefore, binary.BigEndian.AppendUint64(slices.Clone(key), old), nil)
		}
	})
}

// insertBefore keeps an element of a delivered message, and returns the numbers of those that are not kept any more.
func (g *Gateway) insertBefore(p *peer, flow uint32, element int, number uint64, data []byte) []uint64 {
	gone := p.gotBefore.InsertElement(flow, element, number, data, mulKept, mulKeptOctets)
	name := string(beforeKey(p.ID, flow, element))
	kept := slices.DeleteFunc(p.gotNumbers[name], func(n uint64) bool { return slices.Contains(gone, n) })
	if !slices.Contains(gone, number) {
		kept = append(kept, number)
	}
	p.gotNumbers[name] = kept
	return gone
}

// Messages that have ended are kept for a while, for a recipient that cannot read one of them.
const (
	maxEnded       = 256
	maxEndedOctets = 1 << 20
)

type endedMessages struct {
	order    []pmul.MessageID
	payloads map[pmul.MessageID]*site.Message
	octets   int
}

func payloadOctets(p *site.Message) (n int) {
	for i := range p.Parts {
		n += len(p.Parts[i].Data)
	}
	return n
}

func (e *endedMessages) add(id pmul.MessageID, p *site.Message) {
	if p == nil || payloadOctets(p) > maxEndedOctets {
		return
	}
	if e.payloads == nil {
		e.payloads = map[pmul.MessageID]*site.Message{}
	}
	e.payloads[id] = p
	e.order = append(e.order, id)
	for e.octets += payloadOctets(p); e.octets > maxEndedOctets || len(e.order) > maxEnded; e.order = e.order[1:] {
		e.octets -= payloadOctets(e.payloads[e.order[0]])
		delete(e.payloads, e.order[0])
	}
}

// mulAgain: a peer cannot read messages of ours that it has acknowledged. They go again, to it alone and coded by
// themselves.
func (g *Gateway) mulAgain(now time.Time, p *peer, ids []uint32) {
	if g.mul == nil {
		return
	}
	for _, id := range ids {
		id := pmul.MessageID(id)
		payload := g.mul.ended.payloads[id]
		if m := g.mul.out[id]; m != nil && !m.to[p.ID] {
			payload = m.content.Payload
		}
		if payload == nil {
			g.note("error", "a peer cannot read a message that is not kept any more", "peer", p.Name, "message", id)
			continue
		}
		if f := g.mul.flows[envelope.FlowOf(payload)]; f != nil {
			f.unlearn(p.ID)
			if f.known[p.ID] {
				delete(f.known, p.ID)
				g.recordMulFlow(envelope.FlowOf(payload), f)
			}
		}
		again := *payload
		again.Token = 0 // it has been reported
		g.submit(now, []*peer{p}, envelope.Message{Payload: &again}, kindRepair)
	}
}
