package carriage

import (
	"time"

	"aldis/internal/gateway/unicast"
	"aldis/internal/link/custody"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// smallMessage is the octets of a short message on the air: a window of so many fills twice what the link holds.
const smallMessage = 100

// eagerShare is how many probes are under way to a peer that does not answer, where octets cost nothing.
const eagerShare = 3

// busyTrip is what the machines at both ends of a link that takes no time may need to answer: a turn of the loop and a commit each,
// beside other work.
const busyTrip = 500 * time.Millisecond

// TimingOf derives the timers and windows of custody from the link. While acknowledgements come, two round trips of short messages may
// be under way: an acknowledgement that half a window asks for is back before the other half has gone.
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
	held := int(c.RoundTrip.Seconds() * float64(p.Sending(shore).RateBps) / 8)
	c.Window[frame.Direct] = firstWindow(p, shore)
	c.Most = max(c.Window[frame.Direct], min(2*held/smallMessage, custody.ShortAhead))
	c.Window[frame.Bulk] = unicast.BulkWindow
	if p.Reorder {
		c.GapAge, c.Reorder = p.GapAge, true
	}
	return c
}

// firstWindow is how many messages may be under way before the first acknowledgement: the profile's window, or more where full datagrams of
// so many have gone before the acknowledgement that half of them ask for is back after a mean round trip.
func firstWindow(p profile.Profile, shore bool) int {
	rate := p.Sending(shore).RateBps
	if rate == 0 {
		return p.Window
	}
	trip := p.Up.Delay + p.Up.Jitter/2 + p.Down.Delay + p.Down.Jitter/2
	full := profile.Airtime(p.DatagramOctets+profile.IPUDPOctets, rate)
	half := int((trip + full - 1) / full)
	return max(p.Window, min(2*half, custody.ShortAhead))
}
