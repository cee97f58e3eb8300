package gateway

import (
	"cmp"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// outlook says when what waits will be there: the most urgent goes first, at the profile's rate, and each octet of the journal
// takes as many on the air as those before it took.
type outlook struct {
	bps    int
	begins time.Time // of transmission; zero: nobody knows
	delay  time.Duration
	// ahead is what goes to any peer by the transmitter that all share, in octets on the air, by rank; nil: each has its own.
	ahead []float64
	began time.Time // of this run
}

// leastDelivered is how many octets must have been delivered before their cost says something.
const leastDelivered = 4096

func newOutlook(g *Gateway, now time.Time) outlook {
	b := g.bearers[0]
	way := b.profile.Sending(g.cfg.Shore)
	o := outlook{bps: way.RateBps, begins: now, delay: way.Delay + way.Jitter, began: g.silence.began}
	if g.silence.quiet() {
		o.begins = time.Time{}
		if !g.silence.fixed && !g.silence.until.IsZero() {
			o.begins = now.Add(g.silence.remaining(now))
		}
	}
	if g.cfg.Shore && !b.profile.Shared {
		return o
	}
	o.ahead = make([]float64, len(site.Precedences))
	for _, p := range g.peers {
		if word := linkWord(p); word == linkUp || word == linkListening {
			for _, row := range p.Box.Backlog() {
				o.ahead[row.Rank] += float64(row.Octets) * cost(p)
			}
		}
	}
	return o
}

// cost is how many octets on the air one octet of the journal has taken so far towards a peer; 1 as long as few have gone.
func cost(p *peer) float64 {
	air := uint64(0)
	for _, octets := range p.Ledger[mail.Sent] {
		air += octets
	}
	if p.Counts.DeliveredOctets < leastDelivered || air == 0 {
		return 1
	}
	return min(max(float64(air)/float64(p.Counts.DeliveredOctets), 0.02), 4)
}

// queue is what waits for a peer.
func (o *outlook) queue(now time.Time, p *peer) (rows []QueueRow) {
	word := linkWord(p)
	known := !o.begins.IsZero() && (word == linkUp || word == linkListening)
	octets := 0.0
	for _, r := range p.Box.Backlog() {
		row := QueueRow{Precedence: site.Precedences[r.Rank], Messages: r.Messages, Octets: r.Octets, Oldest: cmp.Or(r.Oldest, o.began).UTC().Round(0)}
		octets += float64(r.Octets) * cost(p)
		if known {
			row.Expected = o.begins.Add(o.delay + o.air(r.Rank, octets)).UTC().Round(time.Second)
		}
		rows = append(rows, row)
	}
	return rows
}

// air is how long it takes until all of a precedence and those above it have gone: octets to the peer alone.
func (o *outlook) air(rank int, octets float64) time.Duration {
	if o.bps == 0 {
		return 0
	}
	if o.ahead != nil {
		octets = 0
		for _, n := range o.ahead[rank:] {
			octets += n
		}
	}
	return time.Duration(octets * 8 / float64(o.bps) * float64(time.Second))
}

// linkStatus is the profile as one end sees it.
func linkStatus(p profile.Profile, shore bool) LinkStatus {
	out, in := p.Sending(shore), p.Sending(!shore)
	return LinkStatus{SendBps: out.RateBps, ReceiveBps: in.RateBps, SendLossPct: out.LossPct, ReceiveLossPct: in.LossPct,
		Shared: p.Shared, Each: shore && !p.Shared, Tariff: cmp.Or(p.Tariff, profile.TariffOctets)}
}
