package pmul

import (
	"maps"
	"slices"
	"time"
)

// Gone ends all messages that a node does not have yet, for this node alone: it gets nothing more. For their other recipients
// they continue.
type Gone struct{ Node NodeID }

func (g Gone) step(now time.Time, s *Sender) {
	p := s.peers[g.Node]
	if p == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(p.waiting)) {
		m := p.waiting[id]
		d := m.dests.of(g.Node)
		if d == nil || !d.lacks() {
			continue
		}
		s.final(now, m, d, Refused)
		switch {
		case !m.dests.any((*destination).lacks):
			s.ended(m)
		case m.begun:
			s.review(now, m)
		}
	}
}
