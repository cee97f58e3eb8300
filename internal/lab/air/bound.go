package air

import (
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// A sender that nobody beats here knows at once what was lost, repeats that alone, and asks nothing. It fills every datagram, and a
// message costs it the octets of its frame and of the least envelope. What it has to pay are the headers of IP and UDP, the seal,
// and what the link loses.
const (
	frameOctets    = 2 // the head of a message's frame, with a number of 8 bits and its length
	envelopeOctets = 4 // of a message of a known flow: its flow, and the heads of its parts
)

// packed is the share of a link's rate that messages of so many octets can have upwards, where nothing is cut in two.
func packed(link string, octets int) float64 {
	p, err := profile.Load(link, nil)
	if err != nil {
		return 0
	}
	return filled(p, octets) * (1 - p.Up.LossPct/100)
}

func filled(p profile.Profile, octets int) float64 {
	head, each := profile.IPUDPOctets+seal.OverheadShort+p.FrameOverhead, octets+frameOctets+envelopeOctets
	if n := (p.DatagramOctets - seal.OverheadShort) / each; n > 0 {
		return float64(n*octets) / float64(head+n*each)
	}
	// Fragments fill datagrams, whichever message they are of.
	room := p.DatagramOctets - seal.OverheadShort - frameOctets
	return float64(octets) / float64(octets+envelopeOctets) * float64(room) / float64(head+frameOctets+room)
}

// burstBound is when the last of n messages at once can be there, over their octets and the mean delay.
func burstBound(link string, n, octets int, down bool) float64 {
	p, err := profile.Load(link, nil)
	if err != nil {
		return 0
	}
	d := p.Up
	if down {
		d = p.Down
	}
	delay := d.Delay + d.Jitter/2
	least := profile.Airtime(n*octets, d.RateBps).Seconds() / (filled(p, octets) * (1 - d.LossPct/100))
	return (least + delay.Seconds()) / (profile.Airtime(n*octets, d.RateBps) + delay).Seconds()
}

// singleBound is the quantile of single messages that go once and, when they are lost, again as soon as the longest round trip
// has brought no acknowledgement: in times of the limit, if as many are lost as the link loses on average.
func singleBound(p profile.Profile, octets int, share float64) float64 {
	lost := p.Up.LossPct / 100
	alone := profile.Airtime(octets+profile.IPUDPOctets+seal.OverheadShort+frameOctets+envelopeOctets+p.FrameOverhead, p.Up.RateBps)
	began, left, arrive := time.Duration(0), share, 1-lost // of those that go for the k-th time so many arrive
	for left > arrive {
		left -= arrive
		arrive *= lost
		began += alone + p.Up.Delay + p.Up.Jitter + p.Down.Delay + p.Down.Jitter
	}
	took := began + alone + p.Up.Delay + time.Duration(left/arrive*float64(p.Up.Jitter))
	return took.Seconds() / Limit(p, octets).Seconds()
}
