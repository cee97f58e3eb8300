package replay

import (
	"cmp"
	"fmt"
	"slices"

	"aldis/internal/link/profile"
)

// Cause says why a message is late or never arrives.
type Cause string

// The causes, in the order in which they are checked.
const (
	CauseNobody   Cause = "nobody_listened"  // the sender's gateway knew of no listener while it kept the message, and never took it
	CauseListener Cause = "listener_unknown" // for most of the time the gateway waited for news of a listener
	CauseRule     Cause = "rule"             // the gateways' rules no longer allowed it to be carried
	CauseBusy     Cause = "link_busy"        // it waited for other messages
	CauseDropped  Cause = "dropped"          // a full queue of the link dropped datagrams of its direction
	CauseAir      Cause = "lost_on_the_air"  // datagrams of either direction were lost, itself or its acknowledgement among them or before it
	CauseTurn     Cause = "waited_to_speak"  // nothing was lost and the link was not busy: the other side had the turn, or nothing was due yet
)

// String is the cause in a table.
func (c Cause) String() string {
	switch c {
	case CauseNobody:
		return "nobody was known to listen"
	case CauseListener:
		return "waited for news of a listener"
	case CauseRule:
		return "given up by a rule"
	case CauseBusy:
		return "the link was busy"
	case CauseDropped:
		return "dropped by a full queue"
	case CauseAir:
		return "lost on the air"
	}
	return "waited to speak"
}

// reason is the cause as a sentence about n messages of a play.
func (c Cause) reason(n int) string {
	was, text := "were", ""
	if n == 1 {
		was = "was"
	}
	switch c {
	case CauseNobody:
		return fmt.Sprintf("%d %s never taken: at the time of sending the gateway knew of nobody who listens on the other side. The news of the listener had not crossed yet.", n, was)
	case CauseListener:
		text = "waited for news that somebody listens on the other side"
	case CauseRule:
		return fmt.Sprintf("%d %s not carried by rule: expired, replaced, given up for more urgent ones, or kept out by a filter.", n, was)
	case CauseBusy:
		text = "waited for others: the link was busy"
	case CauseDropped:
		text = "waited while full queues of the link dropped datagrams"
	case CauseAir:
		text = "waited while datagrams were lost on the air and sent again"
	default:
		text = "waited for a turn to speak; nothing was lost meanwhile"
	}
	return fmt.Sprintf("%d %s.", n, text)
}

// causes are all causes.
var causes = []Cause{CauseNobody, CauseListener, CauseRule, CauseBusy, CauseDropped, CauseAir, CauseTurn}

// inquiry finds causes in one play.
type inquiry struct {
	play     *Result
	deadline float64
	shared   bool
	byRule   int // messages dropped by rules that no sample accounts for yet
}

func newInquiry(p *Result, deadline float64, shared bool) *inquiry {
	m := p.Messages
	return &inquiry{p, deadline, shared, m.Expired + m.Superseded + m.Cancelled + m.Refused + m.Stopped}
}

// cause says why a missed message was missed.
func (q *inquiry) cause(s Sample) Cause {
	until := s.SentS + q.deadline
	if s.ArrivedS != nil {
		until = *s.ArrivedS
	}
	switch {
	case s.Untaken:
		return CauseNobody
	case s.TakenS != nil && 2*(*s.TakenS-s.SentS) >= until-s.SentS:
		return CauseListener
	case s.ArrivedS == nil && q.byRule > 0:
		q.byRule--
		return CauseRule
	}
	var busy, span float64
	var lost, dropped int64
	for _, b := range q.play.Bins {
		if b.T+q.play.BinS <= s.SentS || b.T >= until {
			continue
		}
		span += q.play.BinS
		lost += b.Lost.Up + b.Lost.Down // losses in the acknowledgement's direction count as well
		if s.Up || q.shared {
			busy += b.BusyS.Up
			dropped += b.Drops.Up
		}
		if !s.Up || q.shared {
			busy += b.BusyS.Down
			dropped += b.Drops.Down
		}
	}
	switch {
	case span > 0 && busy/span >= crowded:
		return CauseBusy
	case dropped > 0:
		return CauseDropped
	case lost > 0:
		return CauseAir
	}
	return CauseTurn
}

// missed lists the messages of a play that are late, with the causes.
func (r *Rehearsal) missed(p *Result, deadline float64, shared bool) {
	var list []Missed
	q := newInquiry(p, deadline, shared)
	for _, s := range p.Samples {
		if seconds, ok := s.Latency(); ok && seconds <= deadline {
			continue
		}
		why := q.cause(s)
		list = append(list, Missed{s.From, s.To, s.Octets, s.SentS, s.ArrivedS, why == CauseBusy, why})
	}
	slices.SortStableFunc(list, func(a, b Missed) int { return cmp.Compare(a.SentS, b.SentS) })
	if len(list) > 0 {
		first := list[0]
		r.First = &first
	}
	r.Causes = map[Cause]int{}
	for _, m := range list {
		r.Causes[m.Cause]++
	}
	if len(list) > 0 && r.Causes[CauseBusy] == 0 && r.Causes[CauseNobody] < len(list) {
		r.reason("The link was not full.")
	}
	for _, c := range causes {
		switch n := r.Causes[c]; {
		case n > 0 && n == len(list) && c == CauseBusy:
			r.reason("The link was busy: each of the %d waited for others to be sent.", n)
		case n > 0:
			r.reason("%s", c.reason(n))
		}
	}
	r.Missed = list[:min(len(list), maxMissed)]
}

// demand is how many octets a direction has to carry for the trace: the least of the plays that delivered most messages. Octets that a
// play sent again are luck, not demand.
func demand(plays []*Result, way func(UpDown[int64]) int64) int64 {
	most := slices.MaxFunc(plays, func(a, b *Result) int { return cmp.Compare(a.Messages.Delivered, b.Messages.Delivered) }).Messages.Delivered
	least := int64(-1)
	for _, p := range plays {
		if n := way(p.Demand); p.Messages.Delivered == most && (least < 0 || n < least) {
			least = n
		}
	}
	return least
}

// overloads notes directions in which more is offered than the link takes in the time of the trace.
func (r *Rehearsal) overloads(plays []*Result, p profile.Profile) {
	rate := r.Worst.RateBps
	up := func(d UpDown[int64]) int64 { return d.Up }
	down := func(d UpDown[int64]) int64 { return d.Down }
	if p.Shared {
		both := func(d UpDown[int64]) int64 { return d.Up + d.Down }
		r.overload("the channel", demand(plays, both), rate.Up)
		return
	}
	r.overload("ship to shore", demand(plays, up), rate.Up)
	r.overload("shore to ship", demand(plays, down), rate.Down)
}
