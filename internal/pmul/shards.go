package pmul

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// parity takes a shard.
func (r *Receiver) parity(now time.Time, p ParityPDU) {
	key := Key{p.Source, p.Message}
	m := r.in[key]
	switch f := r.done[key]; {
	case f != nil:
		r.stats.Duplicates++
		r.turnOf(now, f, int(p.Left), true)
	case len(p.Shard) == 0:
		r.stats.Illegal++
	case m == nil:
		r.orphaned(now, key, true, p.Index, p.Shard)
	default:
		m.left = int(p.Left)
		r.shard(now, m, p.Index, p.Shard)
	}
}

// shard stores a shard of erasure coding: each can replace any missing fragment.
func (r *Receiver) shard(now time.Time, m *incoming, index uint16, b []byte) {
	key := m.key
	if m.total < 2 || m.total > codedMost || int(index) >= shardsOf(int(m.total)) || m.last > len(b) {
		r.stats.Illegal++
		return
	}
	u := r.used(key.Source)
	if _, known := m.parity[index]; known {
		r.stats.Duplicates++
	} else {
		if !r.fits(u, len(b)) {
			r.stats.Full++
			return
		}
		shard := append([]byte{}, b...)
		m.parity[index] = shard
		m.octets += len(shard)
		r.hold(u, len(shard))
		if r.recovered(m) {
			delete(m.parity, index) // it is not in the journal
			r.complete(now, m, 0)
			return
		}
		r.out.record(bucketParity, fragmentKey(key, index), append(binary.BigEndian.AppendUint16(nil, uint16(m.last)), shard...))
	}
	if r.planned(m.coded) {
		r.follow(now, m, m.left)
		return
	}
	m.asked, m.askAt, m.nackAt = 0, time.Time{}, time.Time{}
	m.idleAt = now.Add(r.cfg.idle(m.need()) + r.jitter(m.nodes))
}

// Restore makes the missing fragments of a coded message of total fragments from parity shards; fragments are by number,
// shards by index. last is how many octets the last fragment has, as in a Plan; 0: unknown. false: there are too few, or
// they do not fit together. It is for programs that only watch, such as the analyser of captures: a Receiver restores by
// itself.
func Restore(total uint16, last int, fragments, parity map[uint16][]byte) bool {
	m := incoming{total: total, last: last, fragments: fragments, parity: parity}
	if total < 2 || total > codedMost || len(parity) == 0 || m.need() > 0 || last == 0 && fragments[total] == nil {
		return false
	}
	for n := range fragments {
		if n == 0 || n > total {
			return false
		}
	}
	for i := range parity {
		if int(i) >= shardsOf(int(total)) {
			return false
		}
	}
	return m.recover()
}

// need is how many more fragments or shards are needed for the message.
func (m *incoming) need() int { return max(int(m.total)-len(m.fragments)-len(m.parity), 0) }

// recovered tells whether the fragments and shards held give the message, and fills it in. Shards that do not fit are dropped.
func (r *Receiver) recovered(m *incoming) bool {
	if len(m.parity) == 0 || m.need() > 0 || m.last == 0 && m.fragments[m.total] == nil {
		return false
	}
	held := maps.Clone(m.fragments)
	if !m.recover() {
		r.stats.Conflict++
		m.fragments = held
		for _, i := range slices.Sorted(maps.Keys(m.parity)) {
			n := len(m.parity[i])
			m.octets -= n
			r.hold(r.used(m.key.Source), -n)
			delete(m.parity, i)
			r.out.record(bucketParity, fragmentKey(m.key, i), nil)
		}
		return false
	}
	return true
}
