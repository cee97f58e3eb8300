package relay

import (
	"encoding/binary"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// endKey is the key with which one end of a way seals for the other.
type endKey = seal.EndKey

var newEndKey = seal.NewEndKey

// Journal buckets.
const (
	bucketLine  = "end"       // peer -> both streams, whether it knows this node, its model, era
	bucketSet   = "end-set"   // number -> rank, next number, recipients; 0 -> number of the next set
	bucketFlow  = "end-flow"  // set, number -> its definer, flow
	bucketOut   = "end-out"   // peer, set, number -> when the hop took it, in seconds since 1970, how often no receipt came, hop
	bucketIn    = "end-in"    // peer, set -> all up to this is here, whether the peer has to be told, key
	bucketEarly = "end-early" // peer, set, number -> a message before its turn
	bucketHop   = "end-hop"   // peer -> the hop that its last capsule came from
)

const lineOctets = 2*streamOctets + 1 + 2 + 2

func lineKey(id uint16, more ...uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, id)
	for _, n := range more {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	return b
}

// Record makes durable which streams there are.
func (l *line) Record() {
	b := l.far.append(l.own.append(nil))
	knows := byte(0)
	if l.Handshake.KnowsUs {
		knows = 1
	}
	b = binary.BigEndian.AppendUint16(append(b, knows), l.Handshake.Model)
	l.of.Services.Record(bucketLine, lineKey(l.ID), binary.BigEndian.AppendUint16(b, l.Handshake.Era))
}

func (c *Carrier) record(s *set) {
	b := binary.BigEndian.AppendUint32([]byte{byte(s.rank)}, s.next)
	for _, id := range s.to {
		b = binary.BigEndian.AppendUint16(b, id)
	}
	c.Services.Record(bucketSet, lineKey(s.number), b)
}

// recordNext makes durable which sets there have been: a recipient takes the messages of another set with the same number for earlier ones.
func (c *Carrier) recordNext() {
	c.Services.Record(bucketSet, lineKey(0), binary.BigEndian.AppendUint16(nil, c.next))
}

func (l *line) recordIn(set uint16, in *inflow) {
	news := byte(0)
	if in.news {
		news = 1
	}
	b := append(binary.BigEndian.AppendUint32(nil, in.cumulative), news)
	if in.key != nil {
		b = append(b, in.key[:]...)
	}
	l.of.Services.Record(bucketIn, lineKey(l.ID, set), b)
}

// learn makes durable the hop that a capsule of a node came from: without via this node answers by that hop, after a restart too.
func (l *line) learn(hop uint16) {
	if l.learned != hop {
		l.learned = hop
		l.of.Services.Record(bucketHop, lineKey(l.ID), lineKey(hop))
	}
}

func earlyKey(id, set uint16, n uint32) []byte {
	return binary.BigEndian.AppendUint32(lineKey(id, set), n)
}

func outKey(id uint16, at mail.TransmissionID) []byte {
	return binary.BigEndian.AppendUint64(lineKey(id), at.Number)
}

// recordOut makes durable since when the hop has a message: a restart does not prolong the wait for a receipt, and the message then goes by
// another hop.
func recordOut(l *line, at mail.TransmissionID, s *sent) {
	b := append(binary.BigEndian.AppendUint64(nil, uint64(s.passed.Unix())), byte(min(s.tries, 255)))
	l.of.Services.Record(bucketOut, outKey(l.ID, at), binary.BigEndian.AppendUint16(b, s.hop))
}

// forgetOut forgets a message that is not with the hop any more.
func forgetOut(l *line, at mail.TransmissionID) {
	if s := l.out[at]; s != nil && !s.passed.IsZero() {
		l.of.Services.Record(bucketOut, outKey(l.ID, at), nil)
	}
	delete(l.out, at)
}

// keep keeps a message that waits for its turn; empty: it was read, or will never come.
func (l *line) keep(set uint16, in *inflow, n uint32, body []byte) {
	in.early[n] = slices.Clone(body)
	l.early++
	if n != in.cumulative+1 || len(body) == 0 {
		l.of.Services.Record(bucketEarly, earlyKey(l.ID, set, n), append([]byte{}, body...))
	}
	l.recordIn(set, in)
}

func (l *line) forget(set uint16, in *inflow, n uint32) {
	if _, kept := in.early[n]; kept {
		delete(in.early, n)
		l.early--
		l.of.Services.Record(bucketEarly, earlyKey(l.ID, set, n), nil)
	}
}

// drop forgets all messages that came of a set.
func (l *line) drop(set uint16, in *inflow) {
	for n := range in.early {
		l.forget(set, in, n)
	}
	l.of.Services.Record(bucketIn, lineKey(l.ID, set), nil)
}

// Restore takes a record of the carrier's buckets. Those of sets come before those of their flows.
func (c *Carrier) Restore(r api.Record) (bool, error) {
	var id, second uint16
	if len(r.Key) >= 2 {
		id = binary.BigEndian.Uint16(r.Key)
	}
	if len(r.Key) >= 4 {
		second = binary.BigEndian.Uint16(r.Key[2:])
	}
	l := c.lines[id]
	switch v := r.Value; r.Bucket {
	case bucketLine:
		if len(r.Key) != 2 || len(v) != lineOctets {
			return true, mail.ErrRecord
		}
		if l != nil {
			l.own, l.far = parseStream(v), parseStream(v[streamOctets:])
			v = v[2*streamOctets:]
			l.Handshake.KnowsUs, l.Handshake.Model, l.Handshake.Era = v[0] != 0, binary.BigEndian.Uint16(v[1:]), binary.BigEndian.Uint16(v[3:])
			if l.Handshake.Agreed = l.Handshake.KnowsUs; l.own != (stream{}) {
				l.Handshake.Stream = l.own.short()
			}
			if l.far != (stream{}) {
				l.Handshake.Store, l.Handshake.InStream, l.Handshake.Placed = l.far.Number, l.far.short(), true
			}
		}
	case bucketSet:
		if len(r.Key) == 2 && id == 0 && len(v) == 2 {
			c.next = max(c.next, binary.BigEndian.Uint16(v))
			break
		}
		if len(r.Key) != 2 || len(v) < 7 || len(v)%2 != 1 {
			return true, mail.ErrRecord
		}
		s := c.setOf(id)
		s.rank, s.next = int(v[0]), binary.BigEndian.Uint32(v[1:])
		for v = v[5:]; len(v) > 0; v = v[2:] {
			s.to = append(s.to, binary.BigEndian.Uint16(v))
			s.told[s.to[len(s.to)-1]] = s.next > 1
		}
		s.history.Since(s.at(s.next).Number)
		c.named[setName(s.rank, s.to)] = s
	case bucketFlow:
		if len(r.Key) < 2 {
			return true, mail.ErrRecord
		}
		s := c.setOf(id)
		err := s.history.Restore(r.Key[2:], v)
		c.flows = max(c.flows, s.history.Next)
		return true, err
	case bucketOut:
		if len(r.Key) != 10 || len(v) != 9 && len(v) != 11 {
			return true, mail.ErrRecord
		}
		if l != nil {
			at := mail.TransmissionID{Queue: frame.Direct, Number: binary.BigEndian.Uint64(r.Key[2:])}
			s := &sent{passed: time.Unix(int64(binary.BigEndian.Uint64(v)), 0), tries: int(v[8])}
			if len(v) > 9 { // older journals do not name the hop
				s.hop = binary.BigEndian.Uint16(v[9:])
			}
			l.out[at] = s
		}
	case bucketIn:
		if len(r.Key) != 4 || len(v) != 5 && len(v) != 37 {
			return true, mail.ErrRecord
		}
		if l != nil {
			in := l.inflow(second)
			in.cumulative, in.news = binary.BigEndian.Uint32(v), v[4] != 0
			if len(v) > 5 {
				key := [32]byte(v[5:])
				in.key = &key
			}
		}
	case bucketHop:
		if len(r.Key) != 2 || len(v) != 2 {
			return true, mail.ErrRecord
		}
		if l != nil {
			l.learned = binary.BigEndian.Uint16(v)
		}
	case bucketEarly:
		if len(r.Key) != 8 {
			return true, mail.ErrRecord
		}
		if l != nil {
			l.inflow(second).early[binary.BigEndian.Uint32(r.Key[4:])] = v
			l.early++
		}
	default:
		return false, nil
	}
	return true, nil
}

// setOf is the set with a number that the journal names.
func (c *Carrier) setOf(number uint16) *set {
	if s := c.sets[number]; s != nil {
		return s
	}
	s := c.newSet(number, 0, nil)
	delete(c.named, setName(0, nil))
	return s
}

// Resume goes on with a message for a node.
func (c *Carrier) Resume(r mail.Restored, p *mail.Peer) bool {
	l := c.lines[p.ID]
	if l == nil {
		return false
	}
	m := c.Store.Content(r)
	if r.At.Number == 0 {
		c.Store.Resume(r, p, frame.Direct, c.setFor(m, []uint16{p.ID}).history)
		c.Replica.Sent(p.ID, m.ID, m.Content.Items)
		return true
	}
	s := c.sets[uint16(r.At.Number>>32)]
	if r.At.Queue != frame.Direct || s == nil {
		return false
	}
	s.history.Resumed(r.At.Number, m.Content.Payload)
	e := c.Store.Resume(r, p, frame.Direct, s.history)
	if l.out[e.At] == nil {
		l.out[e.At] = &sent{}
	}
	c.Replica.Sent(p.ID, e.ID, e.Content.Items)
	return true
}
