package gateway

import (
	"time"

	"aldis/internal/link/frame"
)

// While messages flow to a peer, news of this site gets a share of the rate (profile, state_share_percent) and half of
// the window: fifty peers that join at once must not hold up a report. Without messages the news has it all.
const stateAside = time.Minute // after the last message they still flow

// news is what has been spent on telling a peer of this site.
type news struct {
	payloadAt time.Time // of the last message sent
	debt      float64   // octets beyond the share
	paid      time.Time // debt is as of then
}

func (g *Gateway) flows(now time.Time, p *peer) bool {
	return p.first(frame.Direct) != nil || !p.news.payloadAt.IsZero() && now.Before(p.news.payloadAt.Add(stateAside))
}

// shareOf is what news may take, in octets per second; 0 is everything.
func (g *Gateway) shareOf(p *peer) float64 {
	_, rate := g.airOf(p)
	return float64(rate) / 8 * g.cfg.Profile.StateShare / 100
}

// mayTell says whether news may go to p now, and if not when (zero: when something that is under way has arrived).
func (g *Gateway) mayTell(now time.Time, p *peer) (bool, time.Time) {
	share := g.shareOf(p)
	if share == 0 || !g.flows(now, p) {
		return true, time.Time{}
	}
	flying := 0
	for id, m := range p.underWay {
		if id.Lane == frame.Direct && m.content.Payload == nil {
			flying++
		}
	}
	if flying >= max(1, g.cfg.Profile.Window/2) {
		return false, time.Time{}
	}
	left := p.news.debt - share*now.Sub(p.news.paid).Seconds()
	if left <= 0 {
		return true, time.Time{}
	}
	return false, now.Add(time.Duration(left/share*float64(time.Second)) + time.Millisecond)
}

// told notes what went to p in one datagram, in octets of frames.
func (g *Gateway) told(now time.Time, p *peer, state int, payload bool) {
	if payload {
		p.news.payloadAt = now
	}
	if share := g.shareOf(p); state > 0 && share > 0 {
		p.news.debt = max(0, p.news.debt-share*now.Sub(p.news.paid).Seconds()) + float64(state)
		p.news.paid = now
	}
}
