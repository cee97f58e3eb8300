// Package share divides airtime among sources by octets: it says which source has used the least of it.
package share

// AheadOctets is how many octets more than another a source may have used while both wait: about two datagrams. Within that
// margin messages go in the order in which they came, so that nothing changes as long as nobody floods.
// docs/decisions/fairness.md.
const AheadOctets = 1 << 10

// mostSources is the number of sources whose use a Rota remembers. If there are more, somebody invents names, and all sources
// start equal again.
const mostSources = 4096

// Rota decides whose turn it is among sources whose messages are equally urgent: the source that has used the least airtime. The
// zero value is ready.
type Rota struct {
	air   map[string]uint64 // octets used, by source; for a missing source, see Used
	clock uint64            // octets that the source which sent last had used before
	waits int               // waiting sources of all queues
}

// Used is how many octets a source counts as having used. A source that begins to wait starts near the others, so that neither a
// new source nor one in a blocked queue can save up.
func (r *Rota) Used(source string) uint64 {
	return max(r.air[source], r.clock-min(r.clock, AheadOctets))
}

// Begins records that a source begins to wait in a queue. If no other source waits, all start equal.
func (r *Rota) Begins() {
	if r.waits == 0 {
		r.air, r.clock = nil, 0
	}
	r.waits++
}

// Ends records that no message of a source waits in a queue any more.
func (r *Rota) Ends() { r.waits-- }

// Went records that so many octets of a source were transmitted.
func (r *Rota) Went(source string, octets int) {
	before := r.Used(source)
	if r.air == nil || len(r.air) >= mostSources {
		r.air = map[string]uint64{}
	}
	r.air[source] = before + uint64(octets)
	if before <= r.clock {
		return
	}
	r.clock = before
	for name, air := range r.air {
		if air+AheadOctets <= r.clock {
			delete(r.air, name)
		}
	}
}
