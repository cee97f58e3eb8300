package pmul

import (
	"maps"
	"slices"
	"time"
)

// address takes an Address_PDU (p-mul 7).
func (r *Receiver) address(now time.Time, p AddressPDU) {
	if p.FEC != nil || p.Extra {
		r.stats.PassedBy++
		return
	}
	key := Key{p.Source, p.Message}
	mine := slices.IndexFunc(p.Destinations, func(d Destination) bool { return d.Node == r.cfg.Self })
	if f := r.done[key]; f != nil {
		if f.elsewhere && mine >= 0 {
			place(r, f, p.Destinations[mine].Sequence)
		}
		if f.total == 0 {
			f.total = p.Total
		}
		if p.Total != f.total {
			r.stats.Changed++
		}
		switch {
		case p.Plan != nil && r.cfg.plans() && !r.silent:
			r.replan(now, f, p, mine)
		case mine >= 0 && len(p.Destinations) > 1 && f.total == 1 && !p.AtOnce && f.train: // the message goes again for another node
			if f.ackAt.IsZero() {
				r.owe(now, f, len(p.Destinations), r.trainWait(len(p.Destinations)))
			}
		case mine >= 0:
			r.owe(now, f, len(p.Destinations), 0)
		case p.MAP == 0 && r.cfg.Coding == ACP142: // the sender has this node's Ack; the compact coding names only the nodes that it asks
			r.settle(f)
		}
		return
	}
	if m := r.in[key]; m != nil {
		r.addressAgain(now, m, p, mine)
		return
	}
	if mine < 0 {
		if p.MAP == 0 && r.cfg.Coding == ACP142 { // the compact coding names only the nodes that it asks
			r.dropOrphans(key)
		}
		return
	}
	u := r.used(p.Source)
	lim := r.cfg.Limits
	switch {
	case p.Total == 0:
		r.stats.Illegal++
		return
	case r.cfg.Coding == ACP142 && now.After(p.Expiry.Add(r.cfg.ClockError)):
		r.stats.Expired++
		r.dropOrphans(key)
		return
	case len(r.in) >= lim.Incoming || u.incoming >= lim.IncomingSource || !r.remembers(p.Source):
		r.stats.Full++
		return
	}
	m := &incoming{key: key, atOnce: p.AtOnce, priority: p.Priority, total: p.Total, expiry: p.Expiry, sequence: p.Destinations[mine].Sequence,
		nodes: len(p.Destinations), batch: p.Batch, fragments: map[uint16][]byte{}, parity: map[uint16][]byte{}, until: r.cfg.over(now, p.Expiry)}
	m.reads(p, mine)
	if p.Plan != nil {
		m.plan(&r.cfg, p, mine)
	}
	r.in[key] = m
	u.incoming++
	r.out.record(bucketIncoming, keyOctets(key), m.encode())
	m.idleAt = now.Add(r.cfg.idle(int(m.total)) + r.jitter(m.nodes))
	if o := r.orphans[key]; o != nil {
		r.loosen(key, o)
		for _, n := range slices.Sorted(maps.Keys(o.fragments)) {
			if r.in[key] == m {
				r.fragment(now, m, n, o.fragments[n])
			}
		}
		for _, i := range slices.Sorted(maps.Keys(o.shards)) {
			if r.in[key] == m {
				r.shard(now, m, i, o.shards[i])
			}
		}
	}
	if r.in[key] == m && r.planned(m.coded) {
		r.follow(now, m, int(p.Plan.Follow))
	}
}

// reads notes after which earlier message this message is read.
func (m *incoming) reads(p AddressPDU, mine int) {
	if mine >= 0 && p.After > 0 && p.After <= m.sequence {
		m.free, m.behind = true, m.sequence-p.After
	}
}

// addressAgain takes a further Address_PDU of an incomplete message. mine is this node's place in it; negative: it is not named.
func (r *Receiver) addressAgain(now time.Time, m *incoming, p AddressPDU, mine int) {
	if p.Total != m.total || !p.Expiry.Equal(m.expiry) || p.Plan != nil && m.last > 0 && int(p.Plan.Last) != m.last {
		r.stats.Changed++ // the first counts: the fragments held belong to it
	}
	m.reads(p, mine)
	if p.Plan != nil && p.Total == m.total && m.plan(&r.cfg, p, mine) {
		r.out.record(bucketIncoming, keyOctets(m.key), m.encode())
		if r.recovered(m) { // shards received before could not be used until now
			r.complete(now, m, 0)
			r.address(now, p)
			return
		}
	}
	switch {
	case p.Plan != nil && r.planned(m.coded):
		if mine >= 0 || p.Plan.Follow > 0 {
			r.follow(now, m, int(p.Plan.Follow))
		}
		if mine >= 0 && p.Plan.Follow == 0 {
			m.idleAt = now.Add(r.cfg.ackTurn(m.nodes, m.rank, false))
		}
	case mine >= 0:
		m.nodes = len(p.Destinations)
		m.idleAt = now.Add(r.cfg.idle(2) + r.jitter(m.nodes)) // a question, unless data follow at once
		m.nackAt, m.askAt = time.Time{}, time.Time{}
	}
}
