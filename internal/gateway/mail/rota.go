package mail

// aheadOctets is how much more than another a source may have used of the air while both wait: two datagrams or so. Within it
// messages go in the order in which they came, so that nothing changes where nobody floods. docs/decisions/fairness.md.
const aheadOctets = 1 << 10

// mostSources is of how many sources a rota knows what they have used. Beyond that somebody invents names, and all are equal
// again.
const mostSources = 4096

// rota decides whose turn it is among the local sources whose messages for a peer are as urgent as each other, whatever queue
// they wait in: that of who has used least of the air. Among the pipes of one source it is the same, in each queue. The zero value
// is ready.
type rota struct {
	air   map[string]uint64 // octets used, by source; of who is not here, what used says
	clock uint64            // what the source that last went had used before
	waits int               // sources that wait, in each queue
}

// used is how much of the air a source has used. Who begins to wait starts near the others, so that nobody saves up, and
// neither does who waits in a queue that stands still.
func (r *rota) used(source string) uint64 {
	return max(r.air[source], r.clock-min(r.clock, aheadOctets))
}

// begins notes that a source begins to wait in a queue. While nobody else does all are equal.
func (r *rota) begins() {
	if r.waits == 0 {
		r.air, r.clock = nil, 0
	}
	r.waits++
}

// ends notes that nothing more of a source waits in a queue.
func (r *rota) ends() { r.waits-- }

// went notes that so many octets of a source went on the air.
func (r *rota) went(source string, octets int) {
	before := r.used(source)
	if r.air == nil || len(r.air) >= mostSources {
		r.air = map[string]uint64{}
	}
	r.air[source] = before + uint64(octets)
	if before <= r.clock {
		return
	}
	r.clock = before
	for name, air := range r.air {
		if air+aheadOctets <= r.clock {
			delete(r.air, name)
		}
	}
}

// Went charges what went on the air to the source of the message that it was for. State is nobody's.
func (b *PeerQueue) Went(e *Entry, octets int) {
	if e.Content.Payload == nil {
		return
	}
	b.rotas[e.Rank()].went(e.Source(), octets)
	for queue := range b.waiting {
		if s := b.waiting[queue].levels[e.Rank()].of(e.Source()); s != nil {
			s.went(e.pipe(), octets)
		}
	}
}

// Yields says whether the message that is next in one queue leaves the air to one of another queue: it is as urgent, and its
// source has used more.
func (b *PeerQueue) Yields(next, other *Entry) bool {
	if next.Content.Payload == nil || other.Content.Payload == nil || next.Rank() != other.Rank() {
		return false
	}
	r := &b.rotas[next.Rank()]
	return r.used(next.Source()) > r.used(other.Source())
}
