package gateway

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// Octets of a datagram that a message of the direct lane must leave free: the long form, a hello, a receipt without
// holes, and the frame's own head.
const directReserve = seal.OverheadLong + 18 + 3 + frame.DataOverhead

// minDatagram leaves a direct message a hundred octets.
const minDatagram = directReserve + 100

// maxDirect is the largest coded envelope that goes without segments.
func (g *Gateway) maxDirect() int { return g.cfg.Profile.DatagramOctets - directReserve }

// accept takes a payload into custody for a site.
func (g *Gateway) accept(now time.Time, siteID uint16, payload *site.Message) {
	p := g.byID[siteID]
	if p == nil {
		return
	}
	m := &message{content: envelope.Message{Payload: payload}, kind: kindPayload}
	if !g.enqueue(p, m) {
		p.count.Refused++
		g.ended(payload, true)
		if now.Sub(p.complain) > time.Minute {
			p.complain = now
			g.note("warn", "a message was refused: what waits for the peer is at its bound, or the message cannot be encoded",
				"peer", p.Name, "waiting_octets", p.octets)
		}
		return
	}
	p.count.Accepted++
}

// enqueue puts a message behind those that wait for p; false when there is no room or no encoding for it.
func (g *Gateway) enqueue(p *peer, m *message) bool {
	if g.mul != nil {
		return g.submit(g.now, []*peer{p}, m.content, m.kind)
	}
	full, err := envelope.Append(nil, m.content, 0, true)
	if err != nil {
		return false
	}
	older := p.latest[m.supersedes()]
	octets := len(full)
	if older != nil {
		octets -= len(older.full)
	}
	if !g.makeRoom(g.now, p, m, octets) {
		return false
	}
	if older = p.latest[m.supersedes()]; older != nil { // it may have made room
		// The newer one takes its place, and keeps it after a restart: otherwise what changes often would never go.
		m.seq = older.seq
		g.drop(p, older)
		p.count.Superseded++
	} else {
		g.seq++
		m.seq = g.seq
	}
	m.full = full
	m.lane = g.laneOf(p, m)
	g.record(bucketWaiting, seqKey(p.ID, m.seq), full)
	p.push(m)
	return true
}

// laneOf says how a message travels, by its size with its flow spelt out and nothing before it: as the later ones of its
// flow only get shorter.
func (g *Gateway) laneOf(p *peer, m *message) frame.Lane {
	const number = 1 << 20 // as long as a flow's number ever gets
	if len(m.full)+4 <= g.maxDirect() {
		return frame.Direct
	}
	if len(m.full) > maxModel*g.maxDirect() { // no model makes that fit
		return frame.Bulk
	}
	full := g.append(m.content, number, true, g.texts(p))
	if len(envelope.Pack(&g.coder, full)) <= g.maxDirect() {
		return frame.Direct
	}
	return frame.Bulk
}

// encode is the envelope of m as it goes to p under a number of the direct lane: with its flow by number, and spelt out
// too if this message is the first of it.
func (g *Gateway) encode(p *peer, id custody.ID, m *message) []byte {
	texts := g.texts(p)
	if p.model == 0 && !m.gone { // it has not said yet: most likely ours. If not, it refuses and says so
		texts = &envelope.Texts{Coder: &g.coder, Rules: g.cfg.Rules}
	}
	if m.content.Payload == nil {
		return envelope.Pack(&g.coder, g.append(m.content, 0, true, texts))
	}
	name := envelope.FlowOf(m.content.Payload)
	f := p.flows[name]
	if f == nil {
		f = &flow{number: p.nextFlow}
		p.nextFlow++
		p.flows[name] = f
	}
	if !m.gone && texts != nil { // one that goes again is coded by itself: should the ends differ, it arrives
		p.sentBefore.Encode(texts, f.number, id.Number)
	}
	return envelope.Pack(&g.coder, g.append(m.content, f.number, f.definer == 0 || f.definer == id.Number, texts))
}

// modelOf is what a HELLO says of the compaction model.
func modelOf() uint16 {
	h := compact.ModelHash()
	return binary.BigEndian.Uint16(h[:])
}

// texts codes for peers that have our model; nil for others, who get what deflate makes of it.
func (g *Gateway) texts(to ...*peer) *envelope.Texts {
	for _, p := range to {
		if p.model != modelOf() {
			return nil
		}
	}
	return &envelope.Texts{Coder: &g.coder, Rules: g.cfg.Rules}
}

// append encodes what has been encoded before, so that no error is left.
func (g *Gateway) append(content envelope.Message, number uint32, define bool, texts *envelope.Texts) []byte {
	b, err := envelope.AppendCoded(nil, content, number, define, texts)
	if err != nil {
		panic("gateway: " + err.Error())
	}
	return b
}

// maxModel is how many times shorter than itself a text may get.
const maxModel = 50

// define makes m, which has just got its number, the definer of its flow if that has none, and lets those after it know
// that it is under way.
func (g *Gateway) define(p *peer, id custody.ID, m *message) {
	if m.content.Payload == nil {
		return
	}
	name := envelope.FlowOf(m.content.Payload)
	f := p.flows[name]
	p.sentBefore.Sent(f.number, id.Number, m.content.Payload)
	if f.definer == 0 {
		f.definer = id.Number
		g.record(bucketFlow, flowKey(p.ID, f.number), append(binary.BigEndian.AppendUint64(nil, f.definer), name...))
	}
}

// settle notes that the peer holds m, and lets later messages be coded after all that it holds without a gap.
func (g *Gateway) settle(p *peer, id custody.ID, m *message) {
	if id.Lane != frame.Direct {
		return
	}
	p.settled[id.Number] = m
	oldest := p.sender.Next(frame.Direct)
	for other := range p.underWay {
		if other.Lane == frame.Direct {
			oldest = min(oldest, other.Number)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(p.settled)) {
		if number >= oldest {
			return
		}
		if payload := p.settled[number].content.Payload; payload != nil && number >= p.learnFrom {
			if f := p.flows[envelope.FlowOf(payload)]; f != nil {
				p.sentBefore.Add(f.number, number, payload)
			}
		}
		delete(p.settled, number)
	}
}

// mostBefore is how many messages of a flow the journal keeps to read later ones after: no code needs more.
const mostBefore = 64

// learn keeps what later messages of the flow may be coded after.
func (g *Gateway) learn(p *peer, flow uint32, number uint64, payload *site.Message) {
	envelope.Elements(flow, payload, func(element int, data []byte) {
		p.gotBefore.AddElement(flow, element, number, data)
		key := beforeKey(p.ID, flow, element)
		g.record(bucketBefore, binary.BigEndian.AppendUint64(slices.Clone(key), number), append([]byte{0}, data...))
		numbers := append(p.gotNumbers[string(key)], number)
		for len(numbers) > mostBefore {
			g.record(bucketBefore, binary.BigEndian.AppendUint64(slices.Clone(key), numbers[0]), nil)
			numbers = numbers[1:]
		}
		p.gotNumbers[string(key)] = numbers
	})
}

// forgetBefore: the peer's numbers begin anew.
func (g *Gateway) forgetBefore(p *peer) {
	for key, numbers := range p.gotNumbers {
		for _, number := range numbers {
			g.record(bucketBefore, binary.BigEndian.AppendUint64([]byte(key), number), nil)
		}
	}
	p.gotBefore, p.gotNumbers = envelope.Histories{}, map[string][]uint64{}
}

func beforeKey(peer uint16, flow uint32, element int) []byte {
	return append(flowKey(peer, flow), byte(element))
}
