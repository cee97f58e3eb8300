package gateway

import (
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/unicast"
	"aldis/internal/link/profile"
)

// How a link differs from its profile.
const (
	DiffersRate  = "rate"  // it is slower: what goes is paced by what was measured
	DiffersDelay = "delay" // a round trip takes longer than the longest of the profile, or less than half of the shortest
	DiffersLoss  = "loss"  // messages go again much more often than the profile's losses ask for
)

// Differences are all of them.
var Differences = []string{DiffersRate, DiffersDelay, DiffersLoss}

// LinkMeasured is what the messages to a peer show of the link. Zero: nothing yet. Over P_Mul nothing is learned.
type LinkMeasured struct {
	RateBps    int       `json:"rate_bps,omitempty"`     // away from here, where it is slower than the profile says
	PaceBps    int       `json:"pace_bps,omitempty"`     // at which datagrams go then: a quarter of the profile's rate at the least
	Since      time.Time `json:"since,omitzero"`         // of that
	RoundTripS float64   `json:"round_trip_s,omitempty"` // the least of the last ones of single messages
	LossPct    float64   `json:"loss_percent,omitempty"` // messages that went again, of all that went
	Differs    []string  `json:"differs,omitempty"`      // of Differences: those in which the link is not as the profile says
}

// Bounds beyond which a link differs.
const (
	lossTimes = 2                      // of the profile's, in percent,
	lossMore  = 3.0                    // and so much
	tripTimes = 1.1                    // the longest of the profile, and so much
	tripMore  = 500 * time.Millisecond // for a far end that has other things to send
)

// measured is what is known of the link to a peer.
func measured(p *peer, shore bool) (m LinkMeasured) {
	pr := &p.bearer.profile
	if p.bearer.several != nil {
		return m
	}
	air, _ := unicast.AirOf(p.bearer.lines, p.Peer)
	if m.RateBps, m.PaceBps, m.Since = air.Gauge.Measured(); m.RateBps > 0 {
		m.Since = m.Since.UTC().Round(0)
		m.Differs = append(m.Differs, DiffersRate)
	}
	if trip, ok := p.Shows.RoundTrip(); ok {
		m.RoundTripS = trip.Seconds()
		longest := pr.RoundTripMax(pr.DatagramOctets+profile.IPUDPOctets) + pr.Bundle
		if trip > time.Duration(tripTimes*float64(longest))+tripMore || trip < (pr.Up.Delay+pr.Down.Delay)/2 {
			m.Differs = append(m.Differs, DiffersDelay)
		}
	}
	if pct, least, ok := p.Shows.Loss(); ok {
		m.LossPct = pct
		if least > lossTimes*pr.Sending(shore).MeanLossPct()+lossMore {
			m.Differs = append(m.Differs, DiffersLoss)
		}
	}
	return m
}

// differs is what the operator was told of a link that is not as its profile says.
type differs struct {
	said []string
	next time.Time // when it is looked at again
}

// looksEvery is how often it is looked: what it goes by changes in half minutes.
const looksEvery = 5 * time.Second

// look says in the log what has changed.
func (d *differs) look(g *Gateway, now time.Time, p *peer) {
	if now.Before(d.next) {
		return
	}
	d.next = now.Add(looksEvery)
	m := measured(p, g.cfg.Shore)
	if slices.Equal(m.Differs, d.said) {
		return
	}
	for _, what := range Differences {
		switch is, was := slices.Contains(m.Differs, what), slices.Contains(d.said, what); {
		case is && !was:
			g.Note("warn", "a link is not as its profile says", append([]any{"peer", p.Name, "profile", p.bearer.profile.Name, "in", what}, m.found(what, p, g.cfg.Shore)...)...)
		case was && !is:
			g.Note("info", "a link is as its profile says again", "peer", p.Name, "in", what)
		}
	}
	d.said = m.Differs
}

// found is what was measured beside what the profile says.
func (m LinkMeasured) found(what string, p *peer, shore bool) []any {
	pr := &p.bearer.profile
	switch what {
	case DiffersRate:
		return []any{"rate_bps", m.RateBps, "profile_bps", pr.Sending(shore).RateBps, "pace_bps", m.PaceBps}
	case DiffersDelay:
		return []any{"round_trip_s", m.RoundTripS, "profile_at_most_s", pr.RoundTripMax(pr.DatagramOctets + profile.IPUDPOctets).Seconds()}
	}
	return []any{"again_percent", fmt.Sprintf("%.1f", m.LossPct), "profile_percent", fmt.Sprintf("%.1f", pr.Sending(shore).MeanLossPct())}
}
