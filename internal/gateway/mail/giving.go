package mail

import "aldis/internal/link/frame"

// giving works out which messages that wait for a peer would be given up, newest first. State stays. It changes nothing in the queue.
type giving struct {
	queue  *PeerQueue
	taken  map[*Entry]bool // of those that the operator holds
	ends   map[*source]int // of each source, how many of its messages stay
	shares map[string]int  // octets that would wait, by source
}

func (b *PeerQueue) giving() *giving {
	return &giving{b, map[*Entry]bool{}, map[*source]int{}, map[string]int{}}
}

// end is how many messages of a source stay so far.
func (g *giving) end(s *source) int {
	if n, ok := g.ends[s]; ok {
		return n
	}
	return len(s.list)
}

// share is how many octets of a source stay so far.
func (g *giving) share(name string) int {
	if n, ok := g.shares[name]; ok {
		return n
	}
	return g.queue.shares[name]
}

// newest gives up the newest message of a rank, and of those that the operator holds after all others; nil: none is left.
func (g *giving) newest(rank int) *Entry {
	if e := g.give(rank, func(*source) bool { return true }); e != nil {
		return e
	}
	var newest *Entry
	for _, e := range g.queue.onHold {
		if e.Rank() == rank && !g.taken[e] && (newest == nil || e.Order > newest.Order) {
			newest = e
		}
	}
	g.taken[newest] = true
	return newest
}

// largest gives up the newest message as urgent as e of the source that has most; nil: none has more than e's will have with
// so many octets more.
func (g *giving) largest(e *Entry, octets int) *Entry {
	name, most := "", g.share(e.Source())+octets
	for queue := range g.queue.waiting {
		for _, s := range g.queue.waiting[queue].levels[e.Rank()].sources {
			if n := g.share(s.name); s.name != e.Source() && g.end(s) > 0 && n > most {
				name, most = s.name, n
			}
		}
	}
	if name == "" {
		return nil
	}
	return g.give(e.Rank(), func(s *source) bool { return s.name == name })
}

func (g *giving) give(rank int, of func(*source) bool) *Entry {
	var from *source
	var newest *Entry
	for queue := range frame.Queue(frame.Queues) {
		for _, s := range g.queue.waiting[queue].levels[rank].sources {
			if n := g.end(s); n > 0 && of(s) && (newest == nil || s.list[n-1].Order > newest.Order) {
				from, newest = s, s.list[n-1]
			}
		}
	}
	if newest != nil {
		g.ends[from] = g.end(from) - 1
		g.shares[from.name] = g.share(from.name) - len(newest.Full)
	}
	return newest
}
