// Package share divides the air among sources by octets: it says which has used least of it.
package share

// AheadOctets is how much more than another a source may have used of the air while both wait: two datagrams or so. Within it
// messages go in the order in which they came, so that nothing changes where nobody floods. docs/decisions/fairness.md.
const AheadOctets = 1 << 10

// mostSources is the number of sources whose use a Rota remembers. Beyond that somebody invents names, and all are equal
// again.
const mostSources = 4096

// Rota decides whose turn it is among sources whose messages are as urgent as each other: that of the source that has used least of
// the air. The zero value is ready.
type Rota struct {
	air   map[string]uint64 // octets used, by source; for a source that is not here, see Used
	clock uint64            // what the source that last went had used before
	waits int               // sources that wait, in each queue
}

// Used is how many octets of the air a source has used. A source that begins to wait starts near the others, so that nobody saves
// up, and neither does a source in a queue that stands still.
func (r *Rota) Used(source string) uint64 {
	return max(r.air[source], r.clock-min(r.clock, AheadOctets))
}

// Begins notes that a source begins to wait in a queue. While nobody else does all are equal.
func (r *Rota) Begins() {
	if r.waits == 0 {
		r.air, r.clock = nil, 0
	}
	r.waits++
}

// Ends notes that nothing more of a source waits in a queue.
func (r *Rota) Ends() { r.waits-- }

// Went notes that so many octets of a source went on the air.
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
