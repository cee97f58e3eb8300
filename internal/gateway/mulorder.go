package gateway

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"aldis/internal/pmul"
)

// mulOrder puts the P_Mul messages of one peer into the order of their Message_Sequence_Number, which counts what that
// peer has sent to us. A message before its turn is kept in the journal, for a while: what is missing may have expired.
type mulOrder struct {
	next uint32 // 0: nothing heard yet, the first sets it
	held map[uint32]mulHeld
}

type mulHeld struct {
	at      time.Time // zero after a restart: it has waited
	message pmul.MessageID
	payload []byte
}

const (
	bucketMulNext  = "mul-next"  // peer -> next Message_Sequence_Number
	bucketMulEarly = "mul-early" // peer, Message_Sequence_Number -> Message_ID, payload

	maxMulHeld = 1024 // more than that before their turn: what is missing is waited for no more
)

// mulPatience is how long a gap is waited for: time enough for a sender to find a loss, by receipts that ride, and repair it.
func (g *Gateway) mulPatience() time.Duration {
	return 4*g.custody.RoundTrip + 3*g.cfg.Profile.AckDelay
}

// due is when the oldest message has waited long enough; zero when none waits.
func (o *mulOrder) due(patience time.Duration) (due time.Time) {
	for _, h := range o.held {
		due = earlier(due, h.at.Add(patience))
	}
	return due
}

func earlyKey(peer uint16, sequence uint32) []byte {
	return binary.BigEndian.AppendUint32(peerKey(peer, nil), sequence)
}

// mulInOrder delivers d if its turn has come, and what follows it; otherwise it is kept.
func (g *Gateway) mulInOrder(now time.Time, p *peer, d pmul.Message) {
	o := &p.order
	if o.next == 0 {
		o.next = d.Sequence
	}
	ahead := int32(d.Sequence - o.next)
	if ahead > 0 && d.Priority > 0 && len(o.held) < maxMulHeld { // urgent: it waits for nothing, and its place is noted
		if o.held == nil {
			o.held = map[uint32]mulHeld{}
		}
		o.held[d.Sequence] = mulHeld{at: now, message: d.Message}
		g.record(bucketMulEarly, earlyKey(p.ID, d.Sequence), binary.BigEndian.AppendUint32(nil, uint32(d.Message)))
		g.mulOpen(now, p, d.Message, d.Payload)
		return
	}
	switch {
	case ahead > 0 && len(o.held) < maxMulHeld:
		if o.held == nil {
			o.held = map[uint32]mulHeld{}
		}
		o.held[d.Sequence] = mulHeld{now, d.Message, d.Payload}
		value := append(binary.BigEndian.AppendUint32(nil, uint32(d.Message)), d.Payload...)
		g.record(bucketMulEarly, earlyKey(p.ID, d.Sequence), value)
		return
	case ahead > 0: // those that wait have waited enough
		g.mulSkip(now, p)
		g.mulInOrder(now, p, d)
		return
	case ahead < 0: // its turn is over
		g.mulOpen(now, p, d.Message, d.Payload)
		return
	}
	g.mulOpen(now, p, d.Message, d.Payload)
	o.next++
	g.mulDrain(now, p)
}

// mulDrain delivers what is in order now, and notes how far that is.
func (g *Gateway) mulDrain(now time.Time, p *peer) {
	o := &p.order
	for {
		h, ok := o.held[o.next]
		if !ok {
			break
		}
		delete(o.held, o.next)
		g.record(bucketMulEarly, earlyKey(p.ID, o.next), nil)
		if len(h.payload) > 0 { // otherwise it was delivered before its turn
			g.mulOpen(now, p, h.message, h.payload)
		}
		o.next++
	}
	g.record(bucketMulNext, peerKey(p.ID, nil), binary.BigEndian.AppendUint32(nil, o.next))
}

// mulSkip gives up waiting for what is missing before the first message that waits.
func (g *Gateway) mulSkip(now time.Time, p *peer) {
	o := &p.order
	first := o.next
	for i, sequence := range slices.Sorted(maps.Keys(o.held)) {
		if i == 0 || int32(sequence-first) < 0 {
			first = sequence
		}
	}
	o.next = first
	g.mulDrain(now, p)
}

// forgetOrder: the peer counts from 1 again.
func (g *Gateway) forgetOrder(p *peer) {
	for sequence := range p.order.held {
		g.record(bucketMulEarly, earlyKey(p.ID, sequence), nil)
	}
	if p.order.next != 0 {
		g.record(bucketMulNext, peerKey(p.ID, nil), nil)
	}
	p.order = mulOrder{}
}

func (g *Gateway) restoreOrder(r Record) error {
	bad := fmt.Errorf("%w: %s %x", errRecord, r.Bucket, r.Key)
	if len(r.Key) < 2 || len(r.Value) < 4 {
		return bad
	}
	p := g.byID[binary.BigEndian.Uint16(r.Key)]
	if p == nil {
		return nil
	}
	if r.Bucket == bucketMulNext {
		p.order.next = binary.BigEndian.Uint32(r.Value)
		return nil
	}
	if len(r.Key) != 6 {
		return bad
	}
	if p.order.held == nil {
		p.order.held = map[uint32]mulHeld{}
	}
	p.order.held[binary.BigEndian.Uint32(r.Key[2:])] = mulHeld{
		message: pmul.MessageID(binary.BigEndian.Uint32(r.Value)), payload: slices.Clone(r.Value[4:])}
	return nil
}
