package probe

import (
	"fmt"
	"time"

	"aldis/internal/link/profile"
)

// Budgets: the default, and the bounds of what an operator may set. In octets of both directions.
const (
	DefaultBudget = 5000
	LeastBudget   = 2500
	MostBudget    = 50_000
)

// Plan is what a link probe sends, at the most.
type Plan struct {
	Budget   int           // of both directions
	Overhead int           // of a datagram besides its word
	Singles  int           // of the least size, each way
	Up       Shape         // of the train from the near end
	Down     Shape         // and to it
	Own      int           // octets that the near end sends at the most: the far end sends no more than that
	Datagram int           // octets of a datagram, at most
	Gap      time.Duration // between octets of a train, which goes four times as fast as the profile
	Pause    time.Duration // before every other single datagram: by then the channel has turned by itself
	Patience time.Duration // for an answer
}

// Shape is a train: so many datagrams of Small octets, and if Large is not 0 one of so many octets in the middle.
type Shape struct{ Small, Count, Large int }

func (s Shape) octets() int { return s.Small*s.Count + s.Large }

// At is the octets of the i-th datagram; false: there is none.
func (s Shape) At(i int) (octets int, ok bool) {
	switch {
	case s.Large == 0:
		return s.Small, i < s.Count
	case i == s.Count/2:
		return s.Large, true
	}
	return s.Small, i <= s.Count
}

// fill is a train of so many octets. A quarter of it is one datagram of the profile's largest size: its arrival shows that
// such datagrams pass.
func fill(octets, small, datagram int) Shape {
	s := Shape{Small: small, Large: max(small, min(datagram, octets/4))}
	s.Count = max(0, octets-s.Large) / small
	return s
}

// Parts of each end's octets that are reserved: for requests of a train, and three of the report; and for the report, which
// may have to go twice.
const (
	asking     = 4
	reportBase = 70 // octets
	perEvent   = 2
)

// For makes a plan for a link. overhead is the octets of a datagram besides its word, rateBps the profile's rate of the
// direction in which the near end sends.
func For(p profile.Profile, rateBps, overhead, budget int) (Plan, error) {
	if budget < LeastBudget || budget > MostBudget {
		return Plan{}, fmt.Errorf("a link probe takes %d to %d octets of both directions, not %d", LeastBudget, MostBudget, budget)
	}
	small := overhead + headOctets + 1 // a number of two octets still fits
	l := Plan{Budget: budget, Overhead: overhead, Own: budget / 2, Datagram: p.DatagramOctets + profile.IPUDPOctets}
	parts := 1 + perEvent*l.Own/small/max(1, l.Datagram-overhead-reportBase)
	left := l.Own - (asking+2*(parts-1))*(small+4)
	l.Singles = min(24, max(6, left*28/100/small))
	single := l.Singles * small
	l.Up = fill(left-single, small, l.Datagram)
	events := 2*l.Singles + 2*l.Up.Count + asking
	report := 2 * (perEvent*events + reportBase*(1+perEvent*events/max(1, l.Datagram-overhead-reportBase)))
	l.Down = fill(left-single-report, small, l.Datagram)
	if rateBps > 0 {
		l.Gap = profile.Airtime(1, rateBps) / 4
	}
	if p.Shared {
		l.Pause = 3*(p.Turnaround+p.KeyUp) + time.Second
	}
	slow := p.SlowerBps()
	l.Patience = 2*p.RoundTripMax(l.Datagram) + 4*profile.Airtime(l.Up.octets(), slow) + time.Second
	return l, nil
}

// Air is how long the plan's datagrams are on the air, both directions together, at the profile's rates.
func (l Plan) Air(p profile.Profile) time.Duration {
	return p.Airtime(p.Up, l.Own) + p.Airtime(p.Down, l.Own)
}
