package pmul

import "time"

// orphan has the Data_PDUs of a message whose Address_PDU has not come.
type orphan struct {
	fragments map[uint16][]byte
	shards    map[uint16][]byte // by index
	octets    int
	until     time.Time
}

// orphaned keeps a fragment or shard that came before its Address_PDU.
func (r *Receiver) orphaned(now time.Time, key Key, shard bool, n uint16, b []byte) {
	r.stats.Orphans++
	u, lim := r.used(key.Source), r.cfg.Limits
	o := r.orphans[key]
	switch {
	case o != nil && o.held(shard)[n] != nil:
		return
	case r.loose >= lim.Orphans || u.orphans >= r.share(lim.Orphans) || !r.fits(u, len(b)):
		r.stats.Full++
		return
	case o == nil:
		o = &orphan{fragments: map[uint16][]byte{}, shards: map[uint16][]byte{}, until: now.Add(r.cfg.OrphanFor)}
		r.orphans[key] = o
	}
	o.held(shard)[n] = append([]byte{}, b...) // never nil: the packet is the caller's
	o.octets += len(b)
	r.hold(u, len(b))
	u.orphans++
	r.loose++
}

// held returns the fragments, or the shards.
func (o *orphan) held(shards bool) map[uint16][]byte {
	if shards {
		return o.shards
	}
	return o.fragments
}

func (r *Receiver) dropOrphans(key Key) {
	if o := r.orphans[key]; o != nil {
		r.loosen(key, o)
	}
}

// loosen takes orphans out of the accounts.
func (r *Receiver) loosen(key Key, o *orphan) {
	u := r.used(key.Source)
	r.hold(u, -o.octets)
	n := len(o.fragments) + len(o.shards)
	u.orphans -= n
	r.loose -= n
	delete(r.orphans, key)
}
