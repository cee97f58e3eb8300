package pmul

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Buckets of the journal. Keys and values are octets in the order written below, big-endian.
const (
	bucketIncoming = "pmul-in"    // source, message: priority, total, expiry, sequence, destinations named, of coded ones the octets of the last fragment, of batches 1
	bucketFragment = "pmul-frag"  // source, message, number: the fragment
	bucketParity   = "pmul-fec"   // source, message, index: octets of the last fragment, the shard
	bucketDone     = "pmul-done"  // source, message: total, destinations named, forget, owed
	bucketOutgoing = "pmul-out"   // message: priority, flags, cut, group, expiry, destinations and their sequence, payload
	bucketBegun    = "pmul-begun" // message: it has been on the air
	bucketFate     = "pmul-fate"  // message, destination: state, at
	bucketNode     = "pmul-node"  // see below

	keySilentReceiver = "silent-receiver"
	keySilentSender   = "silent-sender"
	keyNextMessage    = "next-message" // all lower Message_IDs may have been used
	keySequence       = "seq"          // followed by a destination: its last Message_Sequence_Number
	keyPeerSilent     = "peer"         // followed by a node: the operator says that it is silent
)

// ErrJournal is wrapped when a record cannot be read.
var ErrJournal = errors.New("pmul: broken record in the journal")

func keyOctets(k Key) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(k.Source)), uint32(k.Message))
}

func fragmentKey(k Key, n uint16) []byte { return binary.BigEndian.AppendUint16(keyOctets(k), n) }

func messageKey(m MessageID) []byte { return binary.BigEndian.AppendUint32(nil, uint32(m)) }

func nodeKey(prefix string, n NodeID) []byte {
	return binary.BigEndian.AppendUint32([]byte(prefix), uint32(n))
}

func fateKey(m MessageID, n NodeID) []byte {
	return binary.BigEndian.AppendUint32(messageKey(m), uint32(n))
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixNano()))
}

func timeAt(b []byte) time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC() }

func (m *incoming) encode() []byte {
	b := binary.BigEndian.AppendUint16([]byte{m.priority}, m.total)
	b = appendTime(b, m.expiry)
	b = binary.BigEndian.AppendUint32(b, m.sequence)
	b = binary.BigEndian.AppendUint16(b, uint16(min(m.nodes, 1<<16-1)))
	if m.coded || m.batch {
		b = binary.BigEndian.AppendUint16(b, uint16(m.last))
	}
	if m.batch {
		return append(b, 1)
	}
	return b
}

func (f *finished) encode() []byte {
	b := binary.BigEndian.AppendUint16(nil, f.total)
	b = binary.BigEndian.AppendUint16(b, uint16(min(f.nodes, 1<<16-1)))
	b = appendTime(b, f.forget)
	flags := byte(0)
	if f.owed {
		flags = 1
	}
	if f.elsewhere {
		flags |= 2
	}
	return append(b, flags)
}

// restore reads the records of an earlier Receiver. It does not send an Ack that was due then: the sender asks.
func (r *Receiver) restore(journal []Record) error {
	var fragments []Record
	for _, rec := range journal {
		bad := fmt.Errorf("%w: bucket %s, key %x", ErrJournal, rec.Bucket, rec.Key)
		k, v := rec.Key, rec.Value
		switch rec.Bucket {
		case bucketIncoming:
			if len(k) != 8 || len(v) != 17 && len(v) != 19 && (len(v) != 20 || v[19] != 1) { // in version 0.1 all have 17
				return bad
			}
			m := &incoming{key: keyAt(k), priority: v[0], total: binary.BigEndian.Uint16(v[1:]), expiry: timeAt(v[3:]),
				sequence: binary.BigEndian.Uint32(v[11:]), nodes: int(binary.BigEndian.Uint16(v[15:])), fragments: map[uint16][]byte{}, parity: map[uint16][]byte{}}
			if len(v) >= 19 {
				m.last = int(binary.BigEndian.Uint16(v[17:]))
				m.coded, m.batch = m.last > 0, len(v) == 20
			}
			r.in[m.key] = m
			r.used(m.key.Source).incoming++
		case bucketFragment, bucketParity:
			if len(k) != 10 || rec.Bucket == bucketParity && len(v) < 2 {
				return bad
			}
			fragments = append(fragments, rec)
		case bucketDone:
			if len(k) != 8 || len(v) != 13 {
				return bad
			}
			f := &finished{key: keyAt(k), total: binary.BigEndian.Uint16(v), nodes: int(binary.BigEndian.Uint16(v[2:])),
				forget: timeAt(v[4:]), owed: v[12]&1 != 0, elsewhere: v[12]&2 != 0}
			r.done[f.key] = f
			r.used(f.key.Source).remembered++
		case bucketNode:
			if string(k) == keySilentReceiver {
				r.silent = true
			}
		}
	}
	for _, rec := range fragments {
		m := r.in[keyAt(rec.Key)]
		if m == nil {
			return fmt.Errorf("%w: bucket %s, key %x: its message is unknown", ErrJournal, rec.Bucket, rec.Key)
		}
		held, value := m.fragments, rec.Value
		if rec.Bucket == bucketParity {
			if m.last == 0 { // written by version 0.1
				m.last = int(binary.BigEndian.Uint16(value))
			}
			held, value = m.parity, value[2:]
		}
		held[binary.BigEndian.Uint16(rec.Key[8:])] = append([]byte{}, value...)
		m.octets += len(value)
		r.hold(r.used(m.key.Source), len(value))
	}
	if !r.silent { // silence ended, and the crash came before its Ack_PDUs left
		for key, f := range r.done {
			if f.owed {
				f.ackAt = time.Unix(0, 0)
				r.owing[key] = f
			}
		}
		for _, m := range r.in {
			m.idleAt = time.Unix(0, 0) // report which fragments are held
		}
	}
	return nil
}

func keyAt(b []byte) Key {
	return Key{NodeID(binary.BigEndian.Uint32(b)), MessageID(binary.BigEndian.Uint32(b[4:]))}
}

const flagDynamic, flagOnce = 1, 4

func (m *outgoing) encode() []byte {
	var flags byte
	if m.dynamic != nil {
		flags = flagDynamic
	}
	if m.held {
		flags |= flagHeld
	}
	if m.once {
		flags |= flagOnce
	}
	b := binary.BigEndian.AppendUint16([]byte{m.priority, flags}, uint16(m.size))
	b = binary.BigEndian.AppendUint32(b, uint32(m.group))
	b = binary.BigEndian.AppendUint32(b, uint32(m.expiry.Unix()))
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.dests)))
	for _, d := range m.dests {
		b = binary.BigEndian.AppendUint32(b, uint32(d.node))
		b = binary.BigEndian.AppendUint32(b, d.sequence)
	}
	for _, f := range m.fragments {
		b = append(b, f...)
	}
	return b
}

// restore reads the records of an earlier Sender.
func (s *Sender) restore(journal []Record) error {
	begun := map[MessageID]bool{}
	for _, rec := range journal {
		bad := fmt.Errorf("%w: bucket %s, key %x", ErrJournal, rec.Bucket, rec.Key)
		k, v := rec.Key, rec.Value
		switch rec.Bucket {
		case bucketOutgoing:
			if len(k) != 4 || len(v) < 14 {
				return bad
			}
			count, size := int(binary.BigEndian.Uint16(v[12:])), int(binary.BigEndian.Uint16(v[2:]))
			if size == 0 || len(v) < 14+8*count || count == 0 {
				return bad
			}
			m := &outgoing{content: content{id: MessageID(binary.BigEndian.Uint32(k)), priority: v[0], group: GroupAddr(binary.BigEndian.Uint32(v[4:])),
				expiry: time.Unix(int64(binary.BigEndian.Uint32(v[8:])), 0).UTC()}}
			if v[1]&flagDynamic != 0 {
				m.dynamic = &negotiation{}
			}
			m.held, m.once = v[1]&flagHeld != 0, v[1]&flagOnce != 0
			for v = v[14:]; count > 0; count, v = count-1, v[8:] {
				n := NodeID(binary.BigEndian.Uint32(v))
				m.dests = append(m.dests, &destination{node: n, peer: s.peer(n), sequence: binary.BigEndian.Uint32(v[4:])})
			}
			m.cut(append([]byte{}, v...), size) // as before: receivers hold fragments of this size
			s.messages[m.id] = m
			s.octets += m.octets
		case bucketBegun:
			if len(k) != 4 {
				return bad
			}
			begun[MessageID(binary.BigEndian.Uint32(k))] = true
		case bucketFate:
			if len(k) != 8 || len(v) != 9 || v[0] == 0 || State(v[0]) > Cancelled {
				return bad
			}
			f := Fate{MessageID(binary.BigEndian.Uint32(k)), NodeID(binary.BigEndian.Uint32(k[4:])), State(v[0]), timeAt(v[1:]), 0}
			s.ends.keep(f)
		case bucketNode:
			switch key := string(k); {
			case key == keySilentSender:
				s.silent = true
			case key == keyNextMessage && len(v) == 4:
				next := MessageID(binary.BigEndian.Uint32(v))
				s.numbers = numbering{next: next, reserved: next, known: true}
			case len(k) == len(keySequence)+4 && key[:len(keySequence)] == keySequence && len(v) == 4:
				s.peer(NodeID(binary.BigEndian.Uint32(k[len(keySequence):]))).sequence = binary.BigEndian.Uint32(v)
			case len(k) == len(keyPeerSilent)+4 && key[:len(keyPeerSilent)] == keyPeerSilent:
				s.peer(NodeID(binary.BigEndian.Uint32(k[len(keyPeerSilent):]))).silent = true
			}
		}
	}
	for f, state := range s.fates {
		if m := s.messages[f.message]; m != nil {
			if d := m.dests.of(f.node); d != nil {
				d.state = state.State
			}
		}
	}
	for _, m := range s.messages {
		for _, d := range m.dests {
			if d.lacks() {
				d.peer.waiting[m.id] = m
			}
		}
	}
	for id := range begun {
		m := s.messages[id]
		if m == nil {
			return fmt.Errorf("%w: bucket %s: message %d is unknown", ErrJournal, bucketBegun, id)
		}
		m.begun = true
	}
	return nil
}
