package gateway

import (
	"cmp"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// backlog is what waits for a peer, by precedence, and when it will be there: by the rule of Queue.Expected. While this gateway
// keeps silent the time counts from the end of that, if it has one.
func backlog(g *Gateway, now time.Time, p *peer) (rows []api.QueueRow) {
	m := MessagesOf(g)
	begins, known := now, m.stands(p) == ""
	if g.silence.on && !g.silence.fixed && !g.silence.until.IsZero() {
		begins, known = now.Add(g.silence.remaining(now)), linkWord(p) == linkUp
	}
	rate, delay := m.rate(p), p.bearer.Profile.OneWayMax(p.bearer.Profile.DatagramOctets+profile.IPUDPOctets)
	octets := p.bearer.Carrier().Orders().Ahead(now, p.Peer)
	for _, r := range p.Box.Backlog() {
		row := api.QueueRow{Precedence: site.Precedences[r.Rank], Messages: r.Messages, Octets: r.Octets, Oldest: cmp.Or(r.Oldest, g.silence.began).UTC().Round(0)}
		if octets += r.Octets + r.News; r.Messages == 0 {
			continue
		}
		if known && rate > 0 {
			row.Expected = there(begins, max(0, octets), rate, delay).UTC().Round(time.Second)
		}
		rows = append(rows, row)
	}
	return rows
}

// linkStatus is the profile as one end sees it.
func linkStatus(p profile.Profile, shore bool) api.LinkStatus {
	out, in := p.Sending(shore), p.Sending(!shore)
	return api.LinkStatus{SendBps: out.RateBps, ReceiveBps: in.RateBps, SendLossPct: out.LossPct, ReceiveLossPct: in.LossPct,
		Shared: p.Shared, Each: shore && !p.Shared, Tariff: cmp.Or(p.Tariff, profile.TariffOctets)}
}
