// Package forecast answers operators: where messages and advertisements of this site are, and when they will be there. It
// goes by a snapshot of the other sites (Site), by custody and by the lives of messages that are kept, and changes nothing but
// these lives.
//
// Read forecast.go first, then queue.go (when waiting messages will be there), late.go (messages that will expire before),
// messages.go and adverts.go (where they are).
package forecast

import (
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/profile"
)

// Site is another site as it stands at one moment.
type Site struct {
	*mail.Peer             // to be read
	Orders     mail.Orders // of the carrier that takes messages for it
	Profile    *profile.Profile
	Shore      bool    // this end of the link is ashore
	Up         bool    // the link is
	Silent     bool    // this gateway is
	Spent      bool    // the link has used its octets of the day
	Share      int     // how many sites share the rate now, at least 1
	Load       float64 // octets a second that short messages to it have taken lately
}

// why says why messages do not go there now; "": they do.
func (s *Site) why() string {
	switch {
	case s.Spent:
		return "the link has used its octets of the day"
	case s.Silent:
		return "this gateway is silent"
	case s.LastHeard.IsZero():
		return "the site was not heard in this run"
	case s.Link.Dead():
		return "the link is down"
	case s.Link.Listening():
		return "the site is silent"
	}
	return ""
}

// rate is octets as journalled a second towards a site, measured or else of the profile; at most 0: the link has none.
func (s *Site) rate() float64 {
	if rate, ok := s.Pace.Rate(); ok {
		return rate
	}
	bps := s.Profile.Sending(s.Shore).RateBps
	if bps == 0 {
		bps = 1e8 // unlimited: the delay decides
	}
	rate := float64(bps) / 8 / float64(s.Share)
	if s.Profile.Shared { // messages that wait together go in large datagrams, of which headers are a smaller part
		rate *= s.filled(s.Profile.Largest()) / s.filled(s.Profile.DatagramOctets)
	}
	return rate
}

// filled is the part that so many octets are of their datagram with its headers.
func (s *Site) filled(octets int) float64 {
	return float64(octets) / float64(octets+profile.IPUDPOctets+s.Profile.FrameOverhead)
}

// Takes is how long a message of so many octets, as journalled, takes until it is there, if so many go before it.
func (s *Site) Takes(now time.Time, before, octets int) time.Duration {
	direction := s.Profile.Sending(s.Shore)
	air, bps := s.Link.Air()
	took := direction.Delay + direction.Jitter/2
	if s.Profile.Shared { // if another one has just spoken, it is not this node's turn yet
		took += s.Profile.KeyUp + max(0, s.Profile.Turnaround-direction.Delay-now.Sub(s.LastHeard))
	}
	took += max(0, air.Free.Sub(now))
	if rate := s.rate(); before > 0 && rate > 0 {
		took += time.Duration(float64(before) / rate * float64(time.Second))
	}
	datagrams, pace := 1+octets/max(1, s.Profile.Filled()), air.Gauge.Pace(bps)
	own := profile.Airtime(octets+datagrams*(profile.IPUDPOctets+s.Profile.FrameOverhead), pace)
	if datagrams > 1 && pace > 0 { // other messages go between its datagrams
		own = time.Duration(float64(own) / max(halfAtLeast, 1-s.Load*8/float64(pace)))
	}
	return took + own
}

func (s *Site) delay() time.Duration {
	return s.Profile.OneWayMax(s.Profile.DatagramOctets + profile.IPUDPOctets)
}
