package pmul

import "time"

// claim is how much of the channel another member has claimed since this node's last turn, while this node had messages to
// send. A member that never gives up the floor, or takes each turn, would silence all others with a few octets now and
// then.
type claim struct {
	number  uint8
	turns   int
	air     time.Duration // of the turns, as it claimed
	since   time.Time     // of the latest turn
	ignored time.Time     // until when its TurnPDUs are ignored; zero: they count
}

const (
	// fairTurns is how many turns in a row a member may have, and so many full ones, while this node waits for one: it may
	// not have heard that this node wants a turn, or this node may not have heard another node's turn between.
	fairTurns = 5
	// greedyFor is how long a member that has taken more is ignored.
	greedyFor = 30 * time.Minute
)

// heeds tells whether a TurnPDU of another member counts. waits: this node has messages to send. greedy: this is the first
// that does not count.
func (f *floor) heeds(now time.Time, c *Config, by NodeID, p TurnPDU, waits bool) (heeded, greedy bool) {
	old := f.claims[by]
	switch {
	case now.Before(old.ignored):
		return false, false
	case !waits:
		delete(f.claims, by)
		return true, false
	case p.Left == 0: // it claims no more of the channel
		return true, false
	case old.turns > 0 && p.Number == old.number && now.Sub(old.since) <= 2*c.turnMost():
		return true, false
	}
	if f.claims == nil {
		f.claims = map[NodeID]claim{}
	}
	next := claim{number: p.Number, turns: old.turns + 1, air: old.air + p.Left, since: now}
	if greedy = next.turns > fairTurns && next.air > fairTurns*c.turnMost(); greedy {
		next.ignored = now.Add(greedyFor)
		delete(f.members, by)
		if f.holder == by {
			f.end, f.next = now, 0
		}
	}
	f.claims[by] = next
	return !greedy, greedy
}

// spokeUp forgets the claims of others until now: this node has had its turn.
func (f *floor) spokeUp(now time.Time) {
	for by, old := range f.claims {
		if !now.Before(old.ignored) {
			delete(f.claims, by)
		}
	}
}

// hearTurn takes the TurnPDU of another node.
func hearTurn(now time.Time, s *Sender, p TurnPDU) {
	heeded, greedy := s.floor.heeds(now, &s.cfg, p.Source, p, len(s.queue) > 0 && s.queue.inTurn(&s.cfg) && !s.silent)
	if greedy {
		s.out.Odd = append(s.out.Odd, Odd{p.Source, TakesAllTurns})
	}
	if heeded {
		s.floor.heard(now, &s.cfg, p.Source, p, now.Add(-s.cfg.Delay))
	}
}

// unsentMost is how many entries of a member's Ack_PDUs, in half an hour, may name messages that this node has not sent: it
// may have sent them before it was put back to an older journal.
const unsentMost = 32

// unsent notes an entry about a message that this node has not sent.
func (p *peer) unsent(now time.Time, s *Sender, by NodeID) {
	s.stats.Unsent++
	if now.Sub(p.oddSince) > greedyFor {
		p.oddSince, p.odd = now, 0
	}
	if p.odd++; p.odd == unsentMost {
		s.out.Odd = append(s.out.Odd, Odd{by, AcknowledgesUnsent})
	}
}
