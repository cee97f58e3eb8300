package mail

import (
	"cmp"
	"math"
	"slices"

	"aldis/internal/ground/share"
	"aldis/internal/link/frame"
)

// Place is where one message stands among those that wait for a peer.
type Place struct {
	ID     uint64
	Octets int // as journalled
	Rank   int
	round  uint64 // of its source's turns, by share.AheadOctets
	order  uint64
}

// Places appends the messages that wait for the peer in queues of its own and may go, in no order: one look, without sorting.
func (b *PeerQueue) Places(to []Place) []Place {
	for rank := range ranks {
		least := uint64(math.MaxUint64)
		for queue := range b.waiting {
			for _, s := range b.waiting[queue].levels[rank].sources {
				least = min(least, b.rotas[rank].Used(s.name))
			}
		}
		for queue := range frame.Queue(frame.Queues) {
			l := &b.waiting[queue].levels[rank]
			for _, e := range l.state {
				to = append(to, Place{e.ID, len(e.Full), rank, 0, e.Order})
			}
			for _, s := range l.sources {
				used := l.Used(s.name) - least
				for _, e := range s.list {
					to = append(to, Place{e.ID, len(e.Full), rank, used / share.AheadOctets, e.Order})
					used += uint64(len(e.Full))
				}
			}
		}
	}
	return to
}

// SortPlaces puts places into the order in which messages go, about: by precedence, then by the turns of their sources, as if
// each octet as journalled took one of the air, then by acceptance. It does not look at which of a source's pipes is next.
func SortPlaces(list []Place) {
	slices.SortFunc(list, func(a, b Place) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.round, b.round), cmp.Compare(a.order, b.order))
	})
}

// UnderWayOctets is how many octets, as journalled, a peer has not acknowledged.
func (b *PeerQueue) UnderWayOctets() (octets int) {
	for _, e := range b.underWay {
		octets += len(e.Full)
	}
	return octets
}

// IDs appends the messages of local peers that are in custody, in no order.
func (s *Store) IDs(to []uint64) []uint64 {
	for id, m := range s.byID {
		if m.Content.Payload != nil && len(m.to) > 0 {
			to = append(to, id)
		}
	}
	return to
}

// To is where a message goes: a pipe or topic, or an endpoint and which part of it; "" for state.
func (m *Message) To() string {
	if m.Content.Payload == nil {
		return ""
	}
	return toOf(m.Content.Payload)
}

// Went charges octets that went on the air to the source of their message. State has no source.
func (b *PeerQueue) Went(e *Entry, octets int) {
	if e.Content.Payload == nil {
		return
	}
	b.rotas[e.Rank()].Went(e.Source(), octets)
	for queue := range b.waiting {
		if s := b.waiting[queue].levels[e.Rank()].of(e.Source()); s != nil {
			s.Went(e.pipe(), octets)
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
	return r.Used(next.Source()) > r.Used(other.Source())
}
