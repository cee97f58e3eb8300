package pmul

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// owe makes the Ack of a complete message due.
func (r *Receiver) owe(now time.Time, f *finished, nodes int, wait time.Duration) {
	f.nodes = nodes
	if r.silent {
		if !f.owed {
			f.owed = true
			r.out.record(bucketDone, keyOctets(f.key), f.encode())
		}
		return
	}
	at := due.Latest(now.Add(wait+r.jitter(nodes)), f.sent.Add(2*r.cfg.oneWay())) // a node that forges questions gets few answers
	switch {
	case f.ackAt.IsZero() || wait > 0:
		f.ackAt = at
		f.most = now.Add(mostHolds * wait)
		if wait > 0 && r.cfg.waitsForPause() {
			f.most = now.Add(mostHolds * max(wait, r.cfg.hold(nodes)))
		}
	case r.cfg.completeWait(nodes, f.total) == r.cfg.hold(nodes): // this node was asked, and no data for others follow
		f.ackAt = due.Earliest(f.ackAt, at)
	default:
		r.putOff(now, f)
	}
	r.owing[f.key] = f
}

// putOff puts off an Ack, because a re-transmission for other nodes is under way: these are heard first.
func (r *Receiver) putOff(now time.Time, f *finished) {
	if !f.ackAt.IsZero() && f.most.After(f.ackAt) {
		f.ackAt = due.Earliest(f.most, due.Latest(f.ackAt, now.Add(r.cfg.completeWait(f.nodes, f.total)+r.jitter(f.nodes))))
	}
}

// trainWait is how long a complete Ack waits in a train. It is partly random, so that the nodes interrupt the sender at
// different times.
func (r *Receiver) trainWait(nodes int) time.Duration {
	wait := r.cfg.trainHold(nodes)
	if r.cfg.Rand != nil {
		wait += time.Duration(r.cfg.Rand.Int64N(int64(wait / 2)))
	}
	return wait
}

// oneTalks tells whether only source has sent short messages lately, and this node has none to send.
func oneTalks(now time.Time, r *Receiver, source NodeID) bool {
	for n, u := range r.use {
		if n != source && now.Sub(u.came) < 2*r.cfg.AckHold {
			return false
		}
	}
	return !now.Before(r.company)
}

// amidLong tells whether more of a long message of a sender follows: an Ack would interrupt it.
func amidLong(r *Receiver, source NodeID) bool {
	for key, m := range r.in {
		if key.Source == source && !m.batch && r.planned(m.coded) && m.left > 0 {
			return true
		}
	}
	return false
}

// putOffTrain makes the Acks that are owed to a sender since before its train wait with those of the train.
func (r *Receiver) putOffTrain(until time.Time, source NodeID) {
	for key, f := range r.owing {
		if key.Source == source && f.total == 1 && !f.train {
			f.ackAt = due.Latest(f.ackAt, due.Earliest(f.most, until))
		}
	}
}

// inBurst tells whether a sender has much to send: several Acks are owed to it already.
func (r *Receiver) inBurst(source NodeID) bool {
	owed := 0
	for key := range r.owing {
		if key.Source == source {
			owed++
		}
	}
	return owed >= burstOwed && r.cfg.waitsForPause() && !r.cfg.Reorder
}

// burstOwed is how many Acks are owed in a burst: more than the one or two owed to a sender that sends now and then.
const burstOwed = 3

// talks puts off the Acks for a sender until it pauses. On a shared channel each Ack would interrupt it for a turn, and one
// at the end acknowledges as much.
func (r *Receiver) talks(now time.Time, source NodeID) {
	if !r.cfg.waitsForPause() {
		return
	}
	for key, f := range r.owing {
		if key.Source == source && !r.planned(f.coded) && f.most.After(f.ackAt) {
			f.ackAt = due.Earliest(f.most, due.Latest(f.ackAt, now.Add(r.cfg.pause())))
		}
	}
}

// settle notes that no Ack is owed.
func (r *Receiver) settle(f *finished) {
	f.ackAt = time.Time{}
	delete(r.owing, f.key)
	if f.owed {
		f.owed = false
		r.out.record(bucketDone, keyOctets(f.key), f.encode())
	}
}

// Owed counts what will be sent when silence ends: acknowledgements, their datagrams, and the octets of these on the air.
func (r *Receiver) Owed(now time.Time) (acks, datagrams, octets int) {
	all := map[NodeID][]AckEntry{}
	for _, key := range sortedKeys(r.done) {
		if f := r.done[key]; (f.owed || !f.ackAt.IsZero()) && now.Before(f.forget) {
			all[key.Source] = append(all[key.Source], AckEntry{Source: key.Source, Message: key.Message})
		}
	}
	for _, key := range sortedKeys(r.in) {
		all[key.Source] = append(all[key.Source], r.missing(r.in[key]))
	}
	var packets []Packet
	for _, node := range slices.Sorted(maps.Keys(all)) {
		acks += len(all[node])
		packets = append(packets, r.pack(node, all[node])...)
	}
	if r.cfg.AckGroup {
		packets = r.merge(packets)
	}
	for _, p := range packets {
		octets += r.cfg.octets(p) + r.cfg.Overhead
	}
	return acks, len(packets), octets
}

// acknowledge sends the Ack_PDUs that are due, joined by sender: with one that is due, those of all complete messages go.
func (r *Receiver) acknowledge(now time.Time) {
	var nodes []NodeID
	for key, f := range r.owing {
		if due.Reached(now, f.ackAt) && !now.Before(r.company) {
			nodes = append(nodes, key.Source)
		}
	}
	lists := map[NodeID][]*incoming{}
	for _, key := range sortedKeys(r.in) {
		m := r.in[key]
		if m.due(now) && !(r.planned(m.coded) && now.Before(r.company)) {
			nodes = append(nodes, key.Source)
			lists[key.Source] = append(lists[key.Source], m)
		}
	}
	r.join(now, lists)
	if len(nodes) > 0 && r.cfg.AckGroup { // one datagram to all takes along the Acks owed to other nodes
		for key := range r.owing {
			nodes = append(nodes, key.Source)
		}
	}
	slices.Sort(nodes)
	first := len(r.out.Send)
	for _, node := range slices.Compact(nodes) {
		var entries []AckEntry
		for _, key := range sortedKeys(r.owing) {
			if key.Source == node {
				entries = append(entries, AckEntry{Source: node, Message: key.Message})
				r.owing[key].sent = now
				r.settle(r.owing[key])
			}
		}
		aloud := false // the other nodes should hear it too
		for _, m := range lists[node] {
			if r.planned(m.coded) {
				if e := m.entry(); len(e.Missing) > 0 {
					entries, aloud = append(entries, e), r.cfg.AckGroup
				}
				r.noteAsked(now, m)
				continue
			}
			e := r.missing(m)
			if r.cfg.ownReturn() && !due.Reached(now, m.idleAt) && !due.Reached(now, m.askAt) { // only gaps, while more data come
				m.nackAt, m.gapsTo = time.Time{}, m.top
				e = e.below(m.top)
				if len(e.Missing) > 0 {
					entries = append(entries, e)
				}
				continue
			}
			if len(e.Missing) == 0 { // all fragments are here and cannot be joined: there is nothing to ask for
				m.nackAt, m.idleAt, m.askAt = time.Time{}, time.Time{}, time.Time{}
				continue
			}
			m.reported = e.Missing[len(e.Missing)-1].To
			m.nackAt, m.idleAt, m.askAt = time.Time{}, time.Time{}, time.Time{}
			if m.asked < 4 { // after this the sender has to ask
				m.askAt = now.Add(r.ackInterval(m)<<max(m.asked-1, 0) + r.othersTalk(now) + r.jitter(m.nodes))
				m.asked++
			}
			entries = append(entries, e)
		}
		if len(entries) == 0 {
			continue
		}
		packets := r.pack(node, entries)
		for i := range packets {
			if aloud {
				packets[i].To, packets[i].Group = 0, r.cfg.Group
			}
		}
		r.out.Send = append(r.out.Send, packets...)
		r.stats.AckEntries += len(entries)
	}
	if sent := r.out.Send[first:]; r.cfg.AckGroup && len(sent) > 1 {
		r.out.Send = append(r.out.Send[:first:first], r.merge(sent)...)
	}
	r.stats.AcksSent += len(r.out.Send) - first
}

// join adds to the lists that are due the short messages that would be due within the random delay: one turn serves all.
func (r *Receiver) join(now time.Time, lists map[NodeID][]*incoming) {
	if r.cfg.Coding != Compact || len(lists) == 0 {
		return
	}
	for _, key := range sortedKeys(r.in) {
		m, list := r.in[key], lists[key.Source]
		soon := now.Add(r.cfg.spread(m.nodes))
		if len(list) > 0 && m.total == 1 && !slices.Contains(list, m) && (due.Reached(soon, m.nackAt) || due.Reached(soon, m.idleAt)) {
			lists[key.Source] = append(list, m)
		}
	}
}

// merge joins Ack_PDUs to several nodes in datagrams to the group.
func (r *Receiver) merge(packets []Packet) (merged []Packet) {
	for _, p := range packets {
		if n := len(merged); n > 0 {
			both := Packet{Group: r.cfg.Group, Port: AckPort, PDUs: append(slices.Clone(merged[n-1].PDUs), p.PDUs...)}
			if r.cfg.octets(both) <= r.cfg.DatagramOctets {
				merged[n-1] = both
				continue
			}
		}
		merged = append(merged, p)
	}
	return merged
}

// ackInterval is ACK_PDU_TIME, after which a missing list should have been answered.
func (r *Receiver) ackInterval(m *incoming) time.Duration {
	return 2*r.cfg.oneWay() + 2*r.cfg.Turnaround + 2*r.cfg.ackAir() + 2*r.cfg.fullAir() + r.cfg.spread(m.nodes) + r.cfg.queue(m.nodes)
}

// due says whether this node should send the missing list of a message.
func (m *incoming) due(now time.Time) bool {
	return due.Reached(now, m.nackAt) || due.Reached(now, m.idleAt) || due.Reached(now, m.askAt)
}

// ride puts the waiting acknowledgements of complete messages, and the missing lists of coded ones, into Output.Ride, as
// many as fit. They need no datagram of their own.
func (r *Receiver) ride(now time.Time, room int) {
	if r.silent || r.cfg.Coding != Compact {
		return
	}
	for _, key := range sortedKeys(r.in) {
		m := r.in[key]
		if e := m.entry(); r.planned(m.coded) && m.due(now) && len(e.Missing) > 0 {
			if left := rides(r, AckPDU{Source: r.cfg.Self, Entries: []AckEntry{e}}, room); left < room {
				room = left
				r.noteAsked(now, m)
			}
		}
	}
	for owing := sortedKeys(r.owing); len(owing) > 0; {
		n := 1
		for n < len(owing) && owing[n].Source == owing[0].Source {
			n++
		}
		for _, entries := range r.lately.with(owing[:n]) {
			left := rides(r, AckPDU{Source: r.cfg.Self, Entries: entries, Runs: r.lately != nil}, room)
			if left == room {
				continue
			}
			room = left
			for _, key := range owing[:n] {
				r.settle(r.owing[key])
			}
			break
		}
		owing = owing[n:]
	}
}

// rides adds an Ack_PDU to a datagram that leaves anyway, if it fits there, and returns the room that is left.
func rides(r *Receiver, p AckPDU, room int) (left int) {
	b, err := AppendCompact(nil, r.cfg.Self, 0, p)
	if err != nil || len(b) > room {
		return room
	}
	r.out.Ride = append(r.out.Ride, p)
	r.stats.AckEntries += len(p.Entries)
	return room - len(b)
}

// below is the part of a missing list below a number, cut there: it says nothing of higher numbers.
func (e AckEntry) below(top uint16) AckEntry {
	n := 0
	for n < len(e.Missing) && e.Missing[n].To < top {
		n++
	}
	e.Missing, e.Cut = e.Missing[:n], n > 0
	return e
}

// missing is the entry of an incomplete message, as much of it as fits into a datagram.
func (r *Receiver) missing(m *incoming) AckEntry {
	e := AckEntry{Source: m.key.Source, Message: m.key.Message}
	spare := len(m.parity) // missing fragments that a shard stands for
	words := (r.cfg.DatagramOctets-ackHeader-ackEntryHeader)/2 - 1
	next := 1
	for _, have := range append(slices.Sorted(maps.Keys(m.fragments)), m.total) {
		last := int(have) - 1
		if _, end := m.fragments[m.total]; have == m.total && !end {
			last++
		}
		skip := min(spare, max(last-next+1, 0))
		spare -= skip
		for n := next + skip; n <= last; n++ {
			run := Run{uint16(n), uint16(n)}
			cost := 1
			if r.cfg.Runs && last > n {
				run.To, cost = uint16(last), 3
			}
			words -= cost
			if words < 0 && len(e.Missing) > 0 {
				e.Cut = true
				return e
			}
			e.Missing = append(e.Missing, run)
			n = int(run.To)
		}
		next = max(next, int(have)+1)
	}
	return e
}

// pack puts entries into as few Ack_PDUs as possible.
func (r *Receiver) pack(node NodeID, entries []AckEntry) (packets []Packet) {
	var cur Packet
	for len(entries) > 0 {
		n, step := 0, len(entries)
		for step > 0 { // the most entries that fit, by halving steps
			if n+step <= len(entries) {
				if p := r.ackPacket(node, entries[:n+step]); n+step == 1 || r.cfg.octets(p) <= r.cfg.DatagramOctets {
					cur, n = p, n+step
					continue
				}
			}
			step /= 2
		}
		packets = append(packets, cur)
		entries = entries[n:]
	}
	return packets
}

func (r *Receiver) ackPacket(node NodeID, entries []AckEntry) Packet {
	return Packet{To: node, Port: AckPort, PDUs: []PDU{AckPDU{Source: r.cfg.Self, Entries: entries}}}
}
