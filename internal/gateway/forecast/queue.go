package forecast

import (
	"cmp"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/site"
)

// Queue has the messages that wait for a peer, and how fast they go, at one moment. It shares nothing with the gateway.
type Queue struct {
	Site    string
	Places  []mail.Place // in no order until Sort; those of messages that go to several peers at once are in order
	grouped bool

	Why string // why nobody can say when a message will be there; "": Expected can

	now      time.Time
	rate     float64       // octets as journalled a second
	delay    time.Duration // of the link, which comes on top
	underWay int           // octets that go before all that wait
}

// Sort puts the places into the order in which messages go, and says by ID what goes before each.
func (q *Queue) Sort() map[uint64]api.Behind {
	if !q.grouped {
		mail.SortPlaces(q.Places)
	}
	behind, sum := make(map[uint64]api.Behind, len(q.Places)), api.Behind{}
	for _, p := range q.Places {
		behind[p.ID] = sum
		sum.Messages++
		sum.Octets += p.Octets
	}
	return behind
}

// Expected is when a message that waits behind so many octets will be there; zero: nobody can say. The rule: the messages under way
// without an acknowledgement (over P_Mul, where acknowledgements wait for company: those that have not left the radio), the messages that
// go before it, and the message itself go at the pace at which that peer acknowledged messages lately while others waited. Before this
// pace is known, they go uncoded at the rate of the profile, shared with the other peers for whom something waits. More urgent messages
// that come later are not foreseen, nor is an outage.
func (q *Queue) Expected(behind, own int) time.Time {
	if q.Why != "" || q.rate <= 0 {
		return time.Time{}
	}
	octets := q.underWay + behind + own
	if float64(octets)/q.rate > (30 * 24 * time.Hour).Seconds() {
		return time.Time{}
	}
	return there(q.now, octets, q.rate, q.delay)
}

// there is when octets that begin to go at a time have all arrived. The rate is octets a second, the delay that of the link.
func there(begins time.Time, octets int, rate float64, delay time.Duration) time.Time {
	return begins.Add(time.Duration(float64(octets)/rate*float64(time.Second)) + delay)
}

// Queue copies the messages that wait for a site. It takes one look at each.
func (s *Site) Queue(now time.Time) Queue {
	q := Queue{Site: s.Name, Why: s.why(), now: now, delay: s.delay()}
	waits := s.Orders.Queue(now, s.Peer)
	q.Places, q.grouped, q.underWay = waits.Places, waits.Ordered, waits.UnderWay
	q.rate = s.rate()
	if q.rate <= 0 {
		q.rate, q.Why = 0, "the link has no rate"
	}
	return q
}

// ExpectedUnderWay is when a message that is under way will be there: when its last datagram has had its time, or, if that time is
// over and nothing was heard, a round trip from now. A long message goes at the queue's pace.
func (q *Queue) ExpectedUnderWay(r api.RecipientRow, octets int) time.Time {
	switch {
	case q.Why != "" || q.rate <= 0:
		return time.Time{}
	case r.Long || r.SentAt.IsZero():
		return there(q.now, min(octets, q.underWay), q.rate, q.delay)
	}
	at := r.SentAt.Add(q.delay)
	if at.Before(q.now) {
		at = q.now.Add(2 * q.delay)
	}
	return at
}

// Backlog counts the messages that wait for a site, by precedence, and says when they will be there, by the rule of Queue.Expected. While
// this gateway is silent, the time counts from ends, when its silence ends; ends is zero if the gateway is not silent or nobody knows when
// it ends. began is when this run began.
func (s *Site) Backlog(now, ends, began time.Time) (rows []api.QueueRow) {
	begins, known := now, s.why() == ""
	if !ends.IsZero() {
		begins, known = ends, s.Up
	}
	rate, delay := s.rate(), s.delay()
	octets := s.Orders.Ahead(now, s.Peer)
	for _, r := range s.Box.Backlog() {
		row := api.QueueRow{Precedence: site.Precedences[r.Rank], Messages: r.Messages, Octets: r.Octets, Oldest: cmp.Or(r.Oldest, began).UTC().Round(0)}
		octets += r.Octets + r.News
		if r.Messages == 0 {
			continue
		}
		if known && rate > 0 {
			row.Expected = there(begins, max(0, octets), rate, delay).UTC().Round(time.Second)
		}
		rows = append(rows, row)
	}
	return rows
}
