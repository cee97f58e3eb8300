package pmul

import "time"

// claim is what another member has claimed of the channel since this node spoke last, though this node has something to say: a member
// that never gives the floor up, or takes each turn, would silence all others with a few octets now and then.
type claim struct {
	number  uint8
	turns   int
	air     time.Duration // of the turns, as it said
	since   time.Time     // of the latest turn
	ignored time.Time     // until when what it says of turns counts for nothing; zero: it counts
}

const (
	// fairTurns is how many turns in a row a member may have, and so many full ones, while this node waits for one: it may not have heard
	// that this node wants one, or this node may not have heard another have a turn between.
	fairTurns = 5
	// greedyFor is how long a member that has taken more is not heeded.
	greedyFor = 30 * time.Minute
)

// heeds tells whether what another member says of its turn counts. waits: this node has something to say. greedy: this is
// the first that does not.
func (f *floor) heeds(now time.Time, c *Config, by NodeID, p TurnPDU, waits bool) (heeded, greedy bool) {
	old := f.claims[by]
	switch {
	case now.Before(old.ignored):
		return false, false
	case !waits:
		delete(f.claims, by)
		return true, false
	case p.Left == 0: // it claims nothing
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

// spokeUp forgets what others claimed until now: this node has had its turn.
func (f *floor) spokeUp(now time.Time) {
	for by, old := range f.claims {
		if !now.Before(old.ignored) {
			delete(f.claims, by)
		}
	}
}

// hearTurn takes what another node says of its turn.
func hearTurn(now time.Time, s *Sender, p TurnPDU) {
	heeded, greedy := s.floor.heeds(now, &s.cfg, p.Source, p, len(s.queue) > 0 && s.queue.inTurn(&s.cfg) && !s.silent)
	if greedy {
		s.out.Odd = append(s.out.Odd, Odd{p.Source, TakesAllTurns})
	}
	if heeded {
		s.floor.heard(now, &s.cfg, p.Source, p, now.Add(-s.cfg.Delay))
	}
}

// unsentMost is how many entries of Ack_PDUs of a member, in half an hour, may name messages that this node has not sent: after a start
// from an older journal it may have sent them.
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
