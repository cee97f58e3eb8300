package trace

import (
	"net/netip"
	"slices"
)

const (
	maxAssemblies   = 256     // IP packets of which fragments wait for others
	maxFragments    = 2048    // of one IP packet
	maxFragmentsAll = 4 << 20 // octets, with the cost of keeping them
	maxIPPacket     = 65535
	fragmentLife    = 60e9 // ns; a receiver waits no longer (RFC 8200 4.5, RFC 1122 3.3.2)
	remembered      = 256  // packets that were put together, so that copies of their fragments are recognised
)

// fragmentKey is the common part of the fragments of one IP packet.
type fragmentKey struct {
	src, dst netip.Addr
	id       uint32
	proto    uint8
}

// fragment is the place of a part in an IP packet.
type fragment struct {
	key  fragmentKey
	at   int // octets from the beginning of the packet's payload
	more bool
}

// fragments puts IP packets together. When a bound is exceeded it drops the oldest first.
type fragments struct {
	open  map[fragmentKey]*assembly
	order []fragmentKey // the oldest first; some are no longer open
	done  []fragmentKey // the latest
	held  int
	FragmentCounts
}

// FragmentCounts are of IP packets that came in fragments.
type FragmentCounts struct {
	Fragments  int64 `json:"fragments"`
	Whole      int64 `json:"packets_joined"`     // IP packets
	Incomplete int64 `json:"packets_incomplete"` // with fragments that are not in the capture: lost on the way, or not captured
	First      int64 `json:"-"`                  // number of a fragment of the first incomplete packet
}

// assembly is one IP packet as far as its fragments have come.
type assembly struct {
	parts  []part // in order
	total  int    // of the packet's payload; -1: unknown
	frame  int    // octets on the wire, all fragments together
	ip     int
	begun  int64 // ns
	number int64
	copied bool // a packet with this key was whole before, so that these may be copies of its fragments
}

// part is one fragment that waits.
type part struct {
	at   int
	data []byte // captured
	wire int
}

// fragment takes in a part of an IP packet, and reads the packet when it is whole.
func (d *decoder) fragment(f fragment, c excerpt) verdict {
	if f.at+c.wire > maxIPPacket || f.more && c.wire%8 != 0 || c.wire <= 0 {
		return isBad
	}
	if d.fragments == nil {
		return isFragment
	}
	d.depth++
	if d.depth > maxWraps {
		return isBad
	}
	a := d.fragments.add(f, c, d.s)
	if a == nil {
		return isFragment
	}
	d.s.frame, d.s.ip = a.frame, a.ip
	whole := excerpt{a.data(), a.total}
	if f.key.src.Is4() {
		return d.transport(f.key.proto, f.key.src, f.key.dst, whole)
	}
	return d.extended(f.key.proto, f.key.src, f.key.dst, whole)
}

// add keeps a fragment, and returns its packet when that is whole.
func (r *fragments) add(f fragment, c excerpt, s *tcpSegment) *assembly {
	r.Fragments++
	r.expire(s.at)
	a := r.open[f.key]
	if a == nil {
		if r.open == nil {
			r.open = map[fragmentKey]*assembly{}
		}
		a = &assembly{total: -1, begun: s.at, number: s.number, copied: slices.Contains(r.done, f.key)}
		r.open[f.key] = a
		r.order = append(r.order, f.key)
		r.held += a.cost()
	}
	r.held -= a.cost()
	a.put(f, c, s)
	r.held += a.cost()
	if a.whole() {
		r.close(f.key)
		r.Whole++
		r.done = append(r.done, f.key)
		if len(r.done) > remembered {
			r.done = r.done[1:]
		}
		return a
	}
	for r.held > maxFragmentsAll || len(r.open) > maxAssemblies || len(a.parts) > maxFragments {
		if len(a.parts) > maxFragments {
			r.drop(f.key)
			break
		}
		r.drop(r.order[0])
	}
	return nil
}

// put adds a fragment. Of two in the same place the later one counts, because a number may be used again.
func (a *assembly) put(f fragment, c excerpt, s *tcpSegment) {
	a.frame, a.ip = a.frame+s.frame, a.ip+s.ip
	if !f.more {
		a.total = f.at + c.wire
	}
	p := part{f.at, slices.Clone(c.data[:min(len(c.data), c.wire)]), c.wire}
	i, found := slices.BinarySearchFunc(a.parts, f.at, func(p part, at int) int { return p.at - at })
	if found {
		a.parts[i] = p
		return
	}
	a.parts = slices.Insert(a.parts, i, p)
}

// whole says whether the fragments follow one another from the first octet to the last.
func (a *assembly) whole() bool {
	if a.total < 0 {
		return false
	}
	end := 0
	for _, p := range a.parts {
		if p.at != end {
			return false
		}
		end += p.wire
	}
	return end == a.total
}

// data is the captured part of the packet, up to the first octet that was not captured.
func (a *assembly) data() (b []byte) {
	for _, p := range a.parts {
		b = append(b, p.data...)
		if len(p.data) < p.wire {
			break
		}
	}
	return b
}

func (a *assembly) cost() int {
	n := chunkCost
	for _, p := range a.parts {
		n += chunkCost + len(p.data)
	}
	return n
}

// expire gives up packets for which a receiver would no longer wait.
func (r *fragments) expire(now int64) {
	for len(r.order) > 0 {
		if a := r.open[r.order[0]]; a != nil && now-a.begun <= fragmentLife {
			return
		}
		r.drop(r.order[0])
	}
}

// drop gives a packet up.
func (r *fragments) drop(key fragmentKey) {
	if a := r.open[key]; a != nil && !a.copied {
		r.Incomplete++
		if r.First == 0 {
			r.First = a.number
		}
	}
	r.close(key)
}

// close ends a packet.
func (r *fragments) close(key fragmentKey) {
	if a := r.open[key]; a != nil {
		r.held -= a.cost()
		delete(r.open, key)
	}
	if i := slices.Index(r.order, key); i >= 0 {
		r.order = slices.Delete(r.order, i, i+1)
	}
}

// finish gives up all incomplete packets.
func (r *fragments) finish() {
	for len(r.order) > 0 {
		r.drop(r.order[0])
	}
}
