package forecast

import (
	"math"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// Reckoning compares the times that messages took with the times that were foreseen for them when they were accepted, for short and for
// long messages apart. It sends nothing of its own to find out. The zero value is ready.
type Reckoning struct {
	next  time.Time // when the next message may be noted
	ratio [2]ratios
	some  []foreseen // messages that have not been read yet, the oldest first
	load  float64    // octets a second of short messages lately
	since time.Time  // of load
}

// Bounds of what is learned.
const (
	reckonEvery = time.Second // a message is noted no more often: the work grows with the number of messages that wait
	reckonLast  = 63          // so many messages count, by their median: one that was held up says nothing of the others
	loadLasts   = 2 * time.Minute
	halfAtLeast = 0.5 // this part of the air is a long message's, since sources share it
)

// ratios are natural logarithms, for each of the last messages, of the time that it took by the time that was foreseen. Before the
// first one there is a zero.
type ratios struct {
	log [reckonLast]float64
	n   int
}

func (r *ratios) add(log float64) {
	r.n++
	r.log[r.n%reckonLast] = log
}

// middle is the median.
func (r *ratios) middle() float64 {
	list := slices.Sorted(slices.Values(r.log[:min(r.n+1, reckonLast)]))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// namesOctets is about how many octets a message has as journalled besides its content: the names of its sender, its recipient and its
// parts.
const namesOctets = 100

// About is about how many octets a message will have as journalled.
func About(m *site.Message) int {
	octets := namesOctets
	for i := range m.Parts {
		octets += len(m.Parts[i].Data)
	}
	return octets
}

// aroundOctets is about how many octets a datagram has around its message: seal, frame header, a riding acknowledgement.
const aroundOctets = 36

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

// Carried counts a message of so many octets that has arrived. sent is how many octets went on the air for it.
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

// of is the place in Reckoning.ratio for a message of so many octets: 0 for short ones, 1 for long ones.
func of(octets int) int {
	if octets > shortMost {
		return 1
	}
	return 0
}

// Ratio is by how much longer messages of so many octets take than is foreseen for them.
func (r *Reckoning) Ratio(octets int) float64 {
	return math.Exp(r.ratio[of(octets)].middle())
}

// foreseen is a message for which it was noted how long it takes.
type foreseen struct {
	place    uint64 // in the order in which messages are read
	octets   int
	accepted time.Time
	takes    time.Duration
	there    time.Time // when it and those before it were there, as far as is known
	ended    bool
}

// foreseenMost is how many of them are kept: the oldest one is forgotten, which may have ended otherwise.
const foreseenMost = 64

// Foresee notes what is foreseen for a message of so many octets that is accepted now.
func (r *Reckoning) Foresee(now time.Time, place uint64, octets int, takes time.Duration) {
	if len(r.some) == foreseenMost {
		r.some = slices.Delete(r.some, 0, 1)
	}
	r.some = append(r.some, foreseen{place: place, octets: octets, accepted: now, takes: takes})
}

// There notes when a message has arrived. inOrder: the messages behind it are not read before it.
func (r *Reckoning) There(place uint64, at time.Time, inOrder bool) {
	for i := range r.some {
		if one := &r.some[i]; one.place == place || inOrder && one.place > place {
			if one.ended = one.ended || one.place == place; at.After(one.there) {
				one.there = at
			}
		}
	}
}

// Read learns from the messages that have arrived together with all messages before them: their places are before oldest.
func (r *Reckoning) Read(oldest uint64) {
	r.some = slices.DeleteFunc(r.some, func(f foreseen) bool {
		if !f.ended || f.place >= oldest {
			return false
		}
		if took := f.there.Sub(f.accepted); took > 0 && f.takes > 0 {
			r.ratio[of(f.octets)].add(math.Log(float64(took) / float64(f.takes)))
		}
		return true
	})
}

// Quality is the quality of a way to a site: before is how many octets, as journalled, wait there.
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

// Arrived is about when a message was there whose last part of so many octets went at sent.
func (s *Site) Arrived(sent time.Time, octets int) time.Time {
	direction := s.Profile.Sending(s.Shore)
	_, bps := s.Link.Air()
	return sent.Add(direction.Delay + direction.Jitter/2 + profile.Airtime(min(octets+aroundOctets, s.Profile.Filled())+profile.IPUDPOctets+s.Profile.FrameOverhead, bps))
}
