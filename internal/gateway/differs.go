package gateway

import (
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// Bounds beyond which a link differs.
const (
	lossTimes = 2                      // times the loss of the profile, in percent,
	lossMore  = 3.0                    // plus so much
	tripTimes = 1.1                    // times the longest round trip of the profile, plus so much
	tripMore  = 500 * time.Millisecond // for a far end that has other things to send
)

// measured is the link to a peer as measured, and where it differs from its profile.
func measured(p *leg, shore bool) (m api.LinkMeasured) {
	pr := &p.bearer.Profile
	air, _ := p.Link.Air()
	m.RateBps, m.PaceBps, m.Since = air.Gauge.Measured()
	if m.RateBps > 0 {
		m.Since = m.Since.UTC().Round(0)
		m.Differs = append(m.Differs, api.DiffersRate)
	}
	if p.bearer.Carrier().Orders().Together() {
		return m
	}
	if trip, ok := p.Shows.RoundTrip(); ok {
		m.RoundTripS = trip.Seconds()
		longest := pr.RoundTripMax(pr.DatagramOctets+profile.IPUDPOctets) + pr.Bundle
		if trip > time.Duration(tripTimes*float64(longest))+tripMore || trip < (pr.Up.Delay+pr.Down.Delay)/2 {
			m.Differs = append(m.Differs, api.DiffersDelay)
		}
	}
	if pct, least, ok := p.Shows.Loss(); ok {
		m.LossPct = pct
		if least > lossTimes*pr.Sending(shore).MeanLossPct()+lossMore {
			m.Differs = append(m.Differs, api.DiffersLoss)
		}
	}
	return m
}

// differs is the last report to the operator on how a link differs from its profile.
type differs struct {
	said []string
	next time.Time // when the link is checked again
}

// looksEvery is how often a link is checked: the figures change in half minutes.
const looksEvery = 5 * time.Second

// check says what has changed.
func (d *differs) check(now time.Time, p *leg, shore bool) (notes site.Notes) {
	if now.Before(d.next) {
		return nil
	}
	d.next = now.Add(looksEvery)
	m := measured(p, shore)
	if slices.Equal(m.Differs, d.said) {
		return nil
	}
	for _, what := range api.Differences {
		if p.Link.Together() && p.Peer != p.bearer.Common.Peers[0] { // one channel for all: one line
			break
		}
		switch is, was := slices.Contains(m.Differs, what), slices.Contains(d.said, what); {
		case is && !was:
			notes.Note("warn", "a link does not match its profile",
				append(p.named(), append([]any{"profile", p.bearer.Profile.Name, "in", what}, found(m, what, p, shore)...)...)...)
		case was && !is:
			notes.Note("info", "a link matches its profile again", append(p.named(), "in", what)...)
		}
	}
	d.said = m.Differs
	return notes
}

// found is the measured figure beside the profile's.
func found(m api.LinkMeasured, what string, p *leg, shore bool) []any {
	pr := &p.bearer.Profile
	switch what {
	case api.DiffersRate:
		return []any{"rate_bps", m.RateBps, "profile_bps", pr.Sending(shore).RateBps, "pace_bps", m.PaceBps}
	case api.DiffersDelay:
		return []any{"round_trip_s", m.RoundTripS, "profile_at_most_s", pr.RoundTripMax(pr.DatagramOctets + profile.IPUDPOctets).Seconds()}
	}
	return []any{"again_percent", fmt.Sprintf("%.1f", m.LossPct), "profile_percent", fmt.Sprintf("%.1f", pr.Sending(shore).MeanLossPct())}
}
