package air

import (
	"cmp"
	"math"
	"slices"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// The ideal sender of these bounds knows at once which datagrams were lost, repeats those alone, and asks nothing. It fills every datagram. A
// message costs it the octets of its frame and of the least envelope. It pays for the headers of IP and UDP, for the seal, and for the losses
// of the link.
const (
	frameOctets    = 2 // the head of a message's frame, with a number of 8 bits and its length
	envelopeOctets = 4 // of a message of a known flow: the flow, and the heads of its parts
)

// packed is the share of a link's rate that messages of so many octets can have upwards, if no message is cut in two.
func packed(link string, octets int) float64 {
	p, err := profile.Load(link, nil)
	if err != nil {
		return 0
	}
	return filled(p, octets) * (1 - p.Up.LossPct/100)
}

func filled(p profile.Profile, octets int) float64 {
	head, each := profile.IPUDPOctets+seal.OverheadShort+p.FrameOverhead, octets+frameOctets+envelopeOctets
	// Fragments of any message fill datagrams; where whole messages happen to fit, nothing is cut.
	room := p.Largest() - seal.OverheadShort - frameOctets
	cut := float64(octets) / float64(octets+envelopeOctets) * float64(room) / float64(head+frameOctets+room)
	n := (p.Largest() - seal.OverheadShort) / each
	return max(cut, float64(n*octets)/float64(head+n*each))
}

// burstBound is the earliest arrival of the last of n messages sent at once, over their octets and the mean delay.
func burstBound(link string, n, octets int, down bool) float64 {
	p, err := profile.Load(link, nil)
	if err != nil {
		return 0
	}
	return burstOf(p, n, octets, down)
}

func burstOf(p profile.Profile, n, octets int, down bool) float64 {
	d := p.Sending(down)
	delay := meanDelay(d)
	least := profile.Airtime(n*octets, d.RateBps).Seconds() / (filled(p, octets) * (1 - d.LossPct/100))
	return (least + delay.Seconds()) / (profile.Airtime(n*octets, d.RateBps) + delay).Seconds()
}

// singleBound is the quantile of single messages, as a multiple of the limit. A message goes once, and again if no acknowledgement comes
// within the longest round trip; the link loses its average share.
func singleBound(p profile.Profile, octets int, share float64) float64 {
	lost := p.Up.LossPct / 100
	alone := profile.Airtime(octets+profile.IPUDPOctets+seal.OverheadShort+frameOctets+envelopeOctets+p.FrameOverhead, p.Up.RateBps)
	began, left, arrive := time.Duration(0), share, 1-lost // arrive: the share that arrives of the messages that go for the k-th time
	for left > arrive {
		left -= arrive
		arrive *= lost
		began += alone + p.Up.Delay + p.Up.Jitter + p.Down.Delay + p.Down.Jitter
	}
	took := began + alone + p.Up.Delay + time.Duration(left/arrive*float64(p.Up.Jitter))
	return took.Seconds() / Limit(p, octets).Seconds()
}

// The least costs on a shared channel besides a message's octets: of a message, of a datagram and of a turn.
const (
	besideOctets  = 8                // of a message: its number, length and envelope, and its share in the head of a code
	namesOf       = 8                // members that an octet of a datagram names as receivers
	floorOctets   = 5                // once a turn: when it ends, who is next (docs/decisions/shared-channel.md)
	receiptOctets = 3                // once a turn, for each of the others who talk
	turnLasts     = 30 * time.Second // docs/decisions/shared-channel.md
)

// spoken is messages of sites that share a channel. Its bounds are those of senders that fill every datagram and know at once when the last
// receiver has enough. They code over all they send, so that any further datagram makes good any loss of a receiver.
type spoken struct {
	p                  profile.Profile
	octets             int // of a message
	receivers, talkers int
}

// room is how many octets of messages a datagram holds.
func (s spoken) room() int {
	return s.p.DatagramOctets - seal.OverheadShort - (s.receivers+namesOf)/namesOf
}

// full is the airtime of a full datagram.
func (s spoken) full() time.Duration {
	return s.p.Airtime(s.p.Up, s.p.DatagramOctets+profile.IPUDPOctets)
}

// sent is how many datagrams have to go, on average, before all receivers have k of them.
func (s spoken) sent(k int) (n float64) {
	for _, there := range s.there(k) {
		n += 1 - there
	}
	return n
}

// there is the probability that all receivers have k datagrams after 0, 1, 2... were sent, until that is certain. The losses of receivers are
// independent, in bursts as the profile says; fades are left out.
func (s spoken) there(k int) (list []float64) {
	d := s.p.Up
	keep := 1 - d.LossPct/100
	if d.LossRef > 0 {
		keep = math.Pow(keep, math.Ceil(float64(s.p.DatagramOctets+profile.IPUDPOctets)/float64(d.LossRef)))
	}
	heard := [2]float64{keep * (1 - d.GEGoodPct/100), keep * (1 - d.GEBadPct/100)}
	now := [2][]float64{make([]float64, k+1), make([]float64, k+1)} // good and bad: the chance of each count
	now[0][0] = 1
	if d.GEp > 0 {
		now[1][0] = d.GEp / (d.GEp + d.GEr)
		now[0][0] -= now[1][0]
	}
	for len(list) < 100*(k+10) {
		there := math.Pow(now[0][k]+now[1][k], float64(s.receivers))
		list = append(list, there)
		if there > 1-1e-9 {
			break
		}
		next := [2][]float64{make([]float64, k+1), make([]float64, k+1)}
		for had := range k + 1 {
			good := now[0][had]*(1-d.GEp) + now[1][had]*d.GEr
			bad := now[0][had] + now[1][had] - good
			for state, chance := range [2]float64{good, bad} {
				next[state][min(had+1, k)] += chance * heard[state]
				next[state][had] += chance * (1 - heard[state])
			}
		}
		now = next
	}
	return list
}

// wired is the share of the airtime that payload can have in so long while the talker does not change.
func (s spoken) wired(lasting time.Duration) float64 {
	k := max(1, int(lasting/s.full()))
	fill := float64(s.room()) / float64(s.p.DatagramOctets+profile.IPUDPOctets+s.p.FrameOverhead)
	return fill * float64(s.octets) / float64(s.octets+besideOctets) * float64(k) / s.sent(k)
}

// goodput is the share of the rate that payload can have, in percent, when so much is offered for so long. A single talker needs no answers
// here; several take turns.
func (s spoken) goodput(offered float64, lasting time.Duration) float64 {
	useful := s.wired(lasting)
	if s.talkers > 1 {
		head := profile.Airtime(floorOctets+receiptOctets*(s.talkers-1), s.p.Up.RateBps)
		useful *= (turnLasts - head).Seconds() / (turnLasts + s.p.Turnaround + s.p.KeyUp).Seconds()
	}
	return 100 * min(offered, useful)
}

// burst is the earliest time at which the last receiver has n messages that are sent at once, in seconds.
func (s spoken) burst(n int) float64 {
	octets := n * (s.octets + besideOctets)
	k := (octets + s.room() - 1) / s.room()
	spare := profile.Airtime(k*s.room()-octets, s.p.Up.RateBps)
	return s.sent(k)*s.full().Seconds() + (meanDelay(s.p.Up) - spare).Seconds()
}

// alone is a quantile of the time until all receivers can have a single message, which goes again and again until they have it.
func (s spoken) alone(share float64) float64 {
	s.p.DatagramOctets += s.octets + besideOctets - s.room()
	n := slices.IndexFunc(s.there(1), func(there float64) bool { return there >= share })
	return float64(n)*s.full().Seconds() + meanDelay(s.p.Up).Seconds()
}

// urgent is a quantile of the time until a receiver can have an urgent message on a channel that is never free: the message waits for the end
// of a datagram, and where another site talks, for the change of talker.
func (s spoken) urgent(share float64) float64 {
	const steps = 100
	type took struct{ seconds, chance float64 }
	var list []took
	one := s
	one.receivers = 1
	there, before := one.there(1), 0.0
	full, other := s.full().Seconds(), float64(s.talkers-1)/float64(s.talkers)
	s.p.DatagramOctets += s.octets + besideOctets - s.room()
	for n, by := range there {
		for k := range steps {
			seconds := full*(float64(k)+0.5)/steps + float64(n)*s.full().Seconds() + meanDelay(s.p.Up).Seconds()
			chance, turn := (by-before)/steps, (s.p.Turnaround + s.p.KeyUp).Seconds()
			list = append(list, took{seconds, chance * (1 - other)}, took{seconds + turn, chance * other})
		}
		before = by
	}
	slices.SortFunc(list, func(a, b took) int { return cmp.Compare(a.seconds, b.seconds) })
	for _, t := range list {
		if share -= t.chance; share <= 0 {
			return t.seconds
		}
	}
	return list[len(list)-1].seconds
}
