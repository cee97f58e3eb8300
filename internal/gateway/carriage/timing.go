package carriage

import (
	"time"

	"aldis/internal/gateway/unicast"
	"aldis/internal/link/custody"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// smallMessage is the size of a short message on the air, in octets. A first window has as many messages as short ones fit into two round
// trips, or as the profile's window says: messages that a dead link swallows can neither expire nor be replaced.
const smallMessage = 100

// eagerShare is how many probes are under way to a peer that does not answer, where octets cost nothing.
const eagerShare = 3

// busyTrip is how long the machines at both ends of a link that takes no time may need to answer: a turn of the loop and a commit each,
// besides other work.
const busyTrip = 500 * time.Millisecond

// TimingOf derives the timers and windows of custody from the link.
func TimingOf(p profile.Profile, shore bool) custody.Config {
	c := custody.Config{
		RoundTrip:     p.RoundTripMax(p.DatagramOctets+profile.IPUDPOctets) + p.OneWayMax(p.DatagramOctets+profile.IPUDPOctets)/2,
		Prompt:        p.RoundTripMax(p.DatagramOctets + profile.IPUDPOctets),
		AckDelay:      p.AckDelay,
		ProbeInterval: p.ProbeInterval,
	}
	c.RoundTrip, c.Prompt = max(c.RoundTrip, busyTrip), max(c.Prompt, busyTrip)
	if p.Free() {
		c.EagerInterval = max(time.Second, c.Prompt/eagerShare)
	}
	c.Window[frame.Direct], c.Most, c.Least = windows(p, shore, c.RoundTrip)
	c.Window[frame.Bulk] = unicast.BulkWindow
	if p.Reorder {
		c.GapAge, c.Reorder = p.GapAge, true
	}
	return c
}

// windows are how many octets may be under way, before the first acknowledgement (first) and at most (most), and how many a message
// counts at first, at least (least). An acknowledgement that half of them ask for is back before the other half has gone: in first after
// a mean round trip, in most after the longest.
func windows(p profile.Profile, shore bool, longest time.Duration) (first, most, least int) {
	rate := p.Sending(shore).RateBps
	if rate == 0 {
		return p.Window * p.Filled(), p.Window * p.Filled(), p.Filled()
	}
	held := func(trip time.Duration) int { return int(trip.Seconds() * float64(rate) / 8) }
	mean := held(p.Up.Delay + p.Up.Jitter/2 + p.Down.Delay + p.Down.Jitter/2)
	messages := max(p.Window, 2*mean/smallMessage)
	first = max(2*(mean+p.Filled()+profile.IPUDPOctets), messages*smallMessage)
	return first, max(first, 2*held(longest)), first / messages
}
