package forecast

import (
	"math"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/profile"
)

// Reckoning is how far what messages took differs from what was foreseen for them when they were accepted, of short and of long ones. It
// goes by the traffic that is there. The zero value is ready.
type Reckoning struct {
	next  time.Time  // of the next that is noted
	log   [2]float64 // natural logarithm of what they took, by what was foreseen
	load  float64    // octets a second of short messages lately
	since time.Time  // of load
}

// Of what is learned.
const (
	reckonEvery = time.Second // at most: what it takes grows with what waits
	reckonStep  = 0.15        // that one message may change the logarithm: one that was held up does not tell of the others
	reckonMost  = 1.5         // of the logarithm
	loadLasts   = 2 * time.Minute
	halfAtLeast = 0.5 // of the air is a long message's, for sources share it
)

// namesOctets is what a message has as journalled besides its content, about: who says it, to whom, and what its parts are called.
const namesOctets = 130

// Two sizes for which operators are told how long a message takes, in octets.
const (
	ShortOctets = 200
	LongOctets  = 20_000
)

// Due says that it is time to note what is foreseen for a message.
func (r *Reckoning) Due(now time.Time) bool {
	if now.Before(r.next) {
		return false
	}
	r.next = now.Add(reckonEvery)
	return true
}

// Carried counts a message that has arrived, of so many octets, for which so many went.
func (r *Reckoning) Carried(now time.Time, octets, sent int) {
	if octets <= shortMost {
		r.load, r.since = r.Load(now)+float64(sent+profile.IPUDPOctets)/loadLasts.Seconds(), now
	}
}

// Load is how many octets a second short messages have taken lately.
func (r *Reckoning) Load(now time.Time) float64 {
	return r.load * math.Exp(-float64(now.Sub(r.since))/float64(loadLasts))
}

// shortMost is the longest message that counts as short.
const shortMost = 4 * ShortOctets

// of is which of both a message of so many octets is.
func of(octets int) int {
	if octets > shortMost {
		return 1
	}
	return 0
}

// Ratio is by how much longer messages of so many octets take than is foreseen for them.
func (r *Reckoning) Ratio(octets int) float64 {
	return math.Exp(r.log[of(octets)])
}

// Learn takes what a message was foreseen to take, and what it took.
func (r *Reckoning) Learn(octets int, foreseen, took time.Duration) {
	if foreseen <= 0 || took <= 0 {
		return
	}
	i := of(octets)
	by := math.Log(float64(took)/float64(foreseen)) - r.log[i]
	r.log[i] = min(max(r.log[i]+min(max(by, -reckonStep), reckonStep), -reckonMost), reckonMost)
}

// Quality is what is known of a way to a site: before is what waits there, in octets as journalled.
func (s *Site) Quality(now time.Time, before int, r *Reckoning) (q api.Quality) {
	seconds := func(octets int) float64 {
		return r.Ratio(octets) * s.Takes(now, before, octets+namesOctets).Seconds()
	}
	q.ShortS, q.LongS = seconds(ShortOctets), seconds(LongOctets)
	q.LostPct = s.Profile.Sending(s.Shore).MeanLossPct()
	if pct, _, ok := s.Shows.Loss(); ok {
		q.LostPct = pct
	}
	return q
}

// Arrived is when what went last of a message was there, about.
func (s *Site) Arrived(sent time.Time, octets int) time.Time {
	direction := s.Profile.Sending(s.Shore)
	_, bps := s.Link.Air()
	return sent.Add(direction.Delay + direction.Jitter/2 + profile.Airtime(min(octets, s.Profile.Filled())+profile.IPUDPOctets+s.Profile.FrameOverhead, bps))
}
