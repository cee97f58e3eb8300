package pmul

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// A batch is several messages of one Sender that go out as one coded message: messages that wait for the channel, for the
// same destinations and of one Priority. Their octets fill datagrams regardless of where a message ends, parity serves all
// of them, and one entry of an Ack_PDU acknowledges all. Each message keeps its Message_ID, its Message_Sequence_Numbers,
// its expiry and its fates. Batches are for the compact coding only, and between nodes that know them.
//
// A batch is not in the journal. After a restart its messages go singly, and a receiver that had the batch recognises them.
//
// The payload of a batch is its messages, each with a head of varints: the difference of its Message_ID to that of the
// message before (for the first: of the batch to it), likewise that of the Message_Sequence_Number (for the first: to that
// of the Address_PDU), by how many seconds it expires before the batch, and its octets. A 0 in the place of the first of
// these fills up the rest.

const (
	// batchMost bounds the messages of a batch, and batchOctets its octets, to what one turn of the channel carries.
	batchMost = 256
	// batchHead is the longest head of a message in a batch.
	batchHead = 5 + 2 + 5 + 3
	// wholeMost is the most fragments of a message that goes again as a whole.
	wholeMost = 4
	// behindMost bounds the difference of the numbers of two messages of a batch.
	behindMost = 1 << 12
	// soleTurns is how many turns a batch for several nodes takes if no other node transmits.
	soleTurns = 8
	// turnOctets is the room that the fragments of a batch leave for a TurnPDU.
	turnOctets = 8
)

// Batch says whether all nodes of the channel know batches. Before the first call, no batch goes out.
func (s *Sender) Batch(on bool) { s.batches = on }

// batchOctets is the size of a batch for so many nodes: the octets that the channel carries in the rest of this node's
// turn, or in a whole one, since answers come when the turn ends. Answers of several nodes take much of the air, however
// large the batch is: if no other node transmits, the batch has the octets of several turns.
func batchOctets(s *Sender, now time.Time, nodes int) int {
	lasts := s.floor.left(now, &s.cfg, s.airAt) - s.cfg.largeAir()
	switch {
	case nodes > 1 && !s.floor.shared():
		lasts = soleTurns * s.cfg.turnMost()
	case lasts < 2*s.cfg.largeAir():
		lasts = s.floor.turn(&s.cfg)
	}
	frames := int(lasts / max(s.cfg.largeAir(), 1))
	return min(max(2, frames), smallMost) * s.cfg.fragment(s.cfg.most(true))
}

// gatherBatch makes a batch of the next messages, if they take more than one datagram.
func gatherBatch(s *Sender, now time.Time) {
	if !s.batches || !s.cfg.plans() || len(s.queue) < 2 || !s.queue[0].joins(nil) || !s.queue[0].dests.which((*destination).lacks).hears(now) {
		return
	}
	var waiting, some []*outgoing
	for _, m := range s.queue {
		if m.priority == s.queue[0].priority && m.joins(nil) {
			waiting = append(waiting, m)
		}
	}
	slices.SortFunc(waiting, func(a, b *outgoing) int { return cmp.Compare(a.id, b.id) })
	octets, limit := 0, batchOctets(s, now, len(s.queue[0].dests))
	shares := sharesOf(waiting, limit)
	for _, m := range waiting {
		n := m.octets + batchHead
		if !m.joins(some) || !shares.holds(m.source, n) {
			continue
		}
		if octets += n; octets > limit && len(some) > 0 || len(some) == batchMost {
			break
		}
		some = append(some, m)
	}
	if len(some) < 2 || octets <= s.cfg.DatagramOctets {
		return
	}
	id, reserved := s.numbers.take(now, &s.cfg)
	if reserved {
		s.out.record(bucketNode, []byte(keyNextMessage), messageKey(s.numbers.reserved))
	}
	first := some[0]
	b := &outgoing{content: content{id: id, priority: first.priority, group: first.group, batch: true}, batched: batched{parts: some}, plan: true}
	for _, m := range some {
		b.expiry = due.Latest(b.expiry, m.expiry)
		m.sequence = m.dests.which((*destination).lacks)[0].sequence
	}
	b.after = batchAfter(some)
	payload := b.encodeParts(nil, 0)
	b.cut(payload, s.cfg.cutOf(id, len(payload), s.cfg.most(len(payload) > s.cfg.most(true)))-turnOctets)
	for _, d := range first.dests.which((*destination).lacks) {
		b.dests = append(b.dests, &destination{node: d.node, peer: d.peer, sequence: d.sequence})
		d.peer.waiting[id] = b
	}
	s.messages[id] = b
	s.octets += b.octets
	for _, m := range some {
		s.queue.remove(m)
		m.pass.clear()
		m.in = b
		for _, d := range m.dests {
			delete(d.peer.waiting, m.id)
		}
		s.arm(m)
	}
	s.begin(now, b)
	s.arm(b)
}

// joins says whether a message may share a batch with some. No octet of it has been on the air, or it goes again as a
// whole; the same destinations lack it, and its sequence is greater by the same for each of them.
func (m *outgoing) joins(some []*outgoing) bool {
	if m.begun && !m.whole || m.closed || m.held || m.once || m.prompt || m.dynamic != nil || m.parts != nil || !m.passBegan.IsZero() {
		return false
	}
	dests := m.dests.which((*destination).lacks)
	if len(some) == 0 || len(dests) == 0 {
		return len(dests) > 0
	}
	last := some[len(some)-1]
	lacking := last.dests.which((*destination).lacks)
	step := dests[0].sequence - lacking[0].sequence
	if m.group != last.group || len(dests) != len(lacking) || uint32(m.id-last.id) > behindMost || step > behindMost {
		return false
	}
	for i, d := range dests {
		if o := lacking[i]; d.node != o.node || d.sequence-o.sequence != step {
			return false
		}
	}
	return true
}

// goesWhole makes a short message go again as a whole, in a batch with other messages that a node has not acknowledged
// since it was last heard. It does not if that node has said that it has a part of the message.
func goesWhole(s *Sender, m *outgoing) bool {
	if m.wakes = m.wakes && s.batches && !m.batch && len(m.fragments) <= wholeMost && !m.dests.any(func(d *destination) bool { return d.missing != nil }); m.wakes {
		m.whole = true
		s.pass(m, (*destination).lacks, m.all())
	}
	return m.wakes
}

// encodeParts appends the messages of a batch from one on, and notes where each begins and ends.
func (m *outgoing) encodeParts(b []byte, from int) []byte {
	for i := from; i < len(m.parts); i++ {
		p := m.parts[i]
		behind, step := m.id-p.id, m.skew
		if i > 0 {
			behind, step = p.id-m.parts[i-1].id, p.sequence-m.parts[i-1].sequence
		}
		p.starts = len(b)
		b = binary.AppendUvarint(b, uint64(behind))
		b = binary.AppendUvarint(b, uint64(step))
		b = binary.AppendUvarint(b, uint64(m.expiry.Sub(p.expiry)/time.Second))
		b = binary.AppendUvarint(b, uint64(p.octets))
		for _, f := range p.fragments {
			b = append(b, f...)
		}
		p.ends = len(b)
	}
	return b
}

// aired notes the messages of a batch that begin on the air with one of its PDUs.
func aired(s *Sender, pdu PDU) {
	for _, part := range s.Parts(pdu) {
		if p := s.messages[part.Message]; part.Octets > 0 && p != nil && p.in != nil && !p.begun {
			p.begun = true
			s.out.record(bucketBegun, messageKey(p.id), []byte{})
		}
	}
}

// leave takes a message that has not been on the air out of its batch. The batch keeps its number of fragments: the freed
// octets are filled up.
func leave(s *Sender, m *outgoing) {
	b := m.in
	i := slices.Index(b.parts, m)
	queued := b.ready
	s.queue.remove(b) // its place in the queue is that of its first message
	b.parts = slices.Delete(b.parts, i, i+1)
	if i == 0 && len(b.parts) > 0 { // its Address_PDUs are for the first of before
		b.skew += b.parts[0].sequence - m.sequence
	}
	if queued {
		s.queue.put(b)
	}
	payload := slices.Concat(b.fragments...)
	payload = b.encodeParts(payload[:m.starts:m.starts], i)
	payload = append(payload, make([]byte, b.octets-len(payload))...)
	for n := range b.fragments {
		b.fragments[n] = payload[n*b.size : min((n+1)*b.size, len(payload))]
	}
	b.parity, m.in = nil, nil
	for _, d := range m.dests {
		if d.lacks() {
			d.peer.waiting[m.id] = m
		}
	}
	partEnded(s, b)
}

// opening reads the messages of a batch as its fragments come.
type opening struct {
	taken uint16 // fragments whose octets are in b or have been read
	b     []byte // octets not read yet
	count int
	last  Message // the last message read
}

// next reads one more message of a batch that expires at expiry; false: not all of it has come. Its payload aliases b.
func (o *opening) next(expiry time.Time) (ok bool, err error) {
	if o.b[0] == 0 {
		o.b = nil
		return false, nil
	}
	r, m := &reader{b: o.b, pdu: "batch"}, o.last
	behind := MessageID(r.uvarint("Message_ID", 1<<32-1))
	if o.count == 0 {
		behind = -behind
	}
	m.Message += behind
	m.Sequence += uint32(r.uvarint("Message_Sequence_Number", behindMost))
	m.Expiry = expiry.Add(-time.Duration(r.uvarint("Expiry_Time", 1<<32-1)) * time.Second)
	m.Payload = r.octets("message", int(r.uvarint("length", 1<<26)))
	switch {
	case errors.Is(r.err, ErrShort):
		return false, nil
	case r.err != nil:
		return false, r.err
	case o.count == batchMost:
		return false, fmt.Errorf("pmul: batch: more than %d messages: %w", batchMost, ErrTooLong)
	}
	o.b, o.last, o.count = r.b, m, o.count+1
	return true, nil
}

// Unpack lists the messages of a batch, given as a Message with the fields of the Address_PDU and all octets as Payload. It
// is for tools that read other nodes' datagrams; Payloads alias it.
func Unpack(batch Message) (list []Message, err error) {
	o := opening{b: batch.Payload, last: batch}
	for len(o.b) > 0 {
		ok, err := o.next(batch.Expiry)
		switch {
		case err != nil:
			return list, err
		case ok:
			list = append(list, o.last)
		case len(o.b) > 0:
			return list, fmt.Errorf("pmul: batch: a message: %w", ErrShort)
		}
	}
	return list, nil
}

// Part is the part of a message in a PDU.
type Part struct {
	Message MessageID
	Octets  int
}

// Parts lists the messages of which an Address_PDU, Data_PDU or ParityPDU of this Sender has octets: for a batch its
// messages, in their order.
func (s *Sender) Parts(pdu PDU) (list []Part) {
	var id MessageID
	from, to := 0, math.MaxInt
	octets := func(n int) int { return n }
	switch pdu := pdu.(type) {
	case AddressPDU:
		id, octets = pdu.Message, func(int) int { return 0 }
	case DataPDU:
		id = pdu.Message
		if m := s.messages[id]; m != nil {
			from, to = int(pdu.Number-1)*m.size, int(pdu.Number)*m.size
		}
	case ParityPDU:
		id = pdu.Message
		if m := s.messages[id]; m != nil {
			octets = func(n int) int { return n * len(pdu.Shard) / max(m.octets, 1) }
		}
	default:
		return nil
	}
	m := s.messages[id]
	if m == nil || !m.batch {
		switch pdu := pdu.(type) {
		case DataPDU:
			return []Part{{id, len(pdu.Fragment)}}
		case ParityPDU:
			return []Part{{id, len(pdu.Shard)}}
		}
		return []Part{{id, 0}}
	}
	for _, p := range m.parts {
		if n := min(p.ends, to) - max(p.starts, from); n > 0 {
			list = append(list, Part{p.id, octets(n)})
		}
	}
	return list
}

// partsFinal gives the messages of a batch the state that the batch has with a destination.
func partsFinal(s *Sender, now time.Time, b *outgoing, n NodeID, state State) {
	for _, m := range b.parts {
		if d := m.dests.of(n); !m.closed && d != nil && d.lacks() {
			s.final(now, m, d, state)
			s.ended(m)
		}
	}
}

// partEnded ends a batch all of whose messages have ended.
func partEnded(s *Sender, b *outgoing) {
	if b.closed || slices.ContainsFunc(b.parts, func(m *outgoing) bool { return !m.closed }) {
		return
	}
	for _, d := range b.dests {
		if d.lacks() {
			d.state, d.missing, d.lost = Cancelled, nil, nil
			delete(d.peer.waiting, b.id)
		}
	}
	s.ended(b)
}

// lastFragment is the number of the fragment of its batch in which a message ends.
func (m *outgoing) lastFragment() int { return (m.ends-1)/m.in.size + 1 }

// carrying is the message that carries a message: itself, or the batch that it is part of; nil: it is not held.
func carrying(s *Sender, id MessageID) *outgoing {
	m := s.messages[id]
	if m != nil && m.in != nil {
		return m.in
	}
	return m
}

// unpack delivers the messages of a batch that are here, except those that have come singly; false: they cannot be read.
func unpack(r *Receiver, now time.Time, m *incoming) bool {
	o := &m.opened
	if o.taken == 0 {
		o.last = Message{Key: m.key, Priority: m.priority, Expiry: m.expiry, Sequence: m.sequence}
	}
	for f, here := m.fragments[o.taken+1]; here; f, here = m.fragments[o.taken+1] {
		o.b = append(o.b, f...)
		o.taken++
	}
	for len(o.b) > 0 {
		ok, err := o.next(m.expiry)
		if err != nil || ok && o.last.Key == m.key || !ok && len(o.b) > 0 && o.taken == m.total {
			r.stats.Illegal++
			return false
		}
		if !ok {
			break
		}
		d := o.last
		d.Free, d.After = m.free, m.behind
		if f := r.done[d.Key]; f != nil {
			if f.elsewhere {
				place(r, f, d.Sequence)
			}
			r.stats.Duplicates++
			continue
		}
		if one := r.in[d.Key]; one != nil {
			r.drop(one)
		}
		r.remembers(d.Source)
		f := remember(r, now, d.Key, m.expiry) // a restart reads the batch from its beginning
		f.total = 0
		r.out.record(bucketDone, keyOctets(f.key), f.encode())
		r.out.Deliver = append(r.out.Deliver, d)
		r.stats.Delivered++
	}
	return true
}
