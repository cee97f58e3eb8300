package gateway

import (
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// Queue is what waits for a peer and how fast it goes, at one moment. It shares nothing with the gateway.
type Queue struct {
	Site    string
	Places  []mail.Place // in no order until Sort; of messages that go to several at once in their order
	grouped bool

	Why string // why nothing can be said of when a message will be there; "": it can

	now      time.Time
	rate     float64       // octets as journalled a second
	delay    time.Duration // beside that
	underWay int           // octets before all that waits
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

// Expected is when a message that waits behind so many octets will be there; zero: nobody can say. The rule: what is under
// way and has no receipt (over P_Mul, where receipts wait for company: what has not left the radio), what goes before it, and
// the message itself go at the pace at which messages were acknowledged by that peer lately while others waited. Before that
// is known, they go uncoded at the rate of the profile, shared with the other peers for whom something waits. What comes
// later and is more urgent is not foreseen, nor is an outage.
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

// Queue copies what waits for a peer. It takes one look at each message.
func (m Messages) Queue(now time.Time, peer uint16) (q Queue) {
	p := m.g.byID[peer]
	if p == nil {
		return q
	}
	b := p.bearer
	q = Queue{Site: p.Name, Why: m.stands(p), now: now, delay: b.Profile.OneWayMax(b.Profile.DatagramOctets + profile.IPUDPOctets)}
	waits := b.Carrier().Orders().Queue(now, p.Peer)
	q.Places, q.grouped, q.underWay = waits.Places, waits.Ordered, waits.UnderWay
	if q.rate = m.rate(p); q.rate <= 0 {
		q.rate, q.Why = 0, "the link has no rate"
	}
	return q
}

// rate is octets as journalled a second towards a peer, measured or else of the profile.
func (m Messages) rate(p *peer) float64 {
	if rate, ok := p.Pace.Rate(); ok {
		return rate
	}
	bps := p.bearer.Profile.Sending(m.g.cfg.Shore).RateBps
	if bps == 0 {
		bps = 1e8 // unlimited: the delay decides
	}
	share := 1
	for _, other := range m.g.peers {
		if other != p && other.bearer == p.bearer && !m.g.cfg.Shore && !p.bearer.Carrier().Orders().Together() {
			if waiting, _, _ := other.Box.Held(frame.Direct, frame.Bulk); waiting > 0 {
				share++
			}
		}
	}
	return float64(bps) / 8 / float64(share)
}

// stands says why messages do not go to a peer now; "": they do.
func (m Messages) stands(p *peer) string {
	switch {
	case m.g.silence.quiet():
		return "this gateway is silent"
	case p.LastHeard.IsZero():
		return "the site was not heard in this run"
	case p.Link.Dead():
		return "the link is down"
	case p.Link.Listening():
		return "the site is silent"
	}
	return ""
}
