package air

import (
	"slices"
	"time"

	"aldis/internal/link/profile"
)

// all is the class of every post.
const all = ""

func (p Post) in(class string) bool { return class == all || p.Class == class }

// goodputOf is the share of the rate, in percent, that arrived between two times of the load. A message counts in proportion to the receivers
// that had it by then.
func goodputOf(from, until time.Duration) func(*outcome) float64 {
	return func(o *outcome) float64 {
		octets := 0.0
		for i, p := range o.posts {
			for _, took := range o.took[i] {
				if at := p.At + took - meanDelay(o.sending(p)); at >= from && at < until {
					octets += float64(len(p.Data)) / float64(len(p.To))
				}
			}
		}
		return 100 * octets * 8 / (until - from).Seconds() / float64(o.sending(o.posts[0]).RateBps)
	}
}

// sending is the direction in which a post leaves.
func (o *outcome) sending(p Post) profile.Direction {
	return o.link.Sending(p.From == 0 && !o.link.Shared)
}

// seconds returns how long the deliveries of a class took, in ascending order.
func (o *outcome) seconds(class string) (s []float64) {
	for i, p := range o.posts {
		for _, took := range o.took[i] {
			if p.in(class) {
				s = append(s, took.Seconds())
			}
		}
	}
	slices.Sort(s)
	return s
}

// lasts returns how long the messages of a class took until their last receiver had them, in ascending order.
func (o *outcome) lasts(class string) (s []float64) {
	for i, p := range o.posts {
		if p.in(class) {
			s = append(s, slices.Max(o.took[i]).Seconds())
		}
	}
	slices.Sort(s)
	return s
}

// limits returns how long the deliveries of a class take on a link that carries payload alone, loses nothing and never idles, in ascending
// order. Each message begins when it has been sent and the one before it has ended, and one transmission serves all its receivers. A star has
// a queue for each direction of each leg. alone: as if nothing else were sent.
func (o *outcome) limits(class string, alone bool) (s []float64) {
	free := map[[2]int]time.Duration{} // when the leg is free
	for _, p := range o.posts {
		if alone && !p.in(class) {
			continue
		}
		leg := [2]int{}
		if !o.link.Shared {
			leg = [2]int{max(p.From, p.To[0]), p.From}
		}
		d := o.sending(p)
		free[leg] = max(p.At, free[leg]) + profile.Airtime(len(p.Data), d.RateBps)
		for range p.To {
			if p.in(class) {
				s = append(s, (free[leg] + meanDelay(d) - p.At).Seconds())
			}
		}
	}
	slices.Sort(s)
	return s
}

// secondsOf is a quantile of the deliveries of a class.
func secondsOf(class string, share float64) func(*outcome) float64 {
	return func(o *outcome) float64 { return at(o.seconds(class), share) }
}

// lastOf is a quantile of the time until the last receiver of a message had it.
func lastOf(class string, share float64) func(*outcome) float64 {
	return func(o *outcome) float64 { return at(o.lasts(class), share) }
}

// timesOf is a quantile of the times of a class's deliveries over the same quantile of their limits.
func timesOf(class string, share float64, alone bool) func(*outcome) float64 {
	return func(o *outcome) float64 { return at(o.seconds(class), share) / at(o.limits(class, alone), share) }
}

// octetsForOne is how many octets went on the air for each octet offered.
func octetsForOne(o *outcome) float64 {
	payload := 0
	for _, p := range o.posts {
		payload += len(p.Data)
	}
	return float64(o.octets) / float64(payload)
}

// afterOutage is how long after the last outage all messages sent before its end were there, in seconds.
func afterOutage(o *outcome) float64 {
	var last time.Duration
	for i, p := range o.posts {
		if p.At <= o.back {
			last = max(last, p.At+slices.Max(o.took[i]))
		}
	}
	return (last - o.back).Seconds()
}
