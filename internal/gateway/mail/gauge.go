package mail

import (
	"math"
	"slices"
	"time"

	"aldis/internal/link/profile"
)

// Gauge finds out from the traffic how fast a transmitter's link is, while something waits for it all the time: the octets that
// went between two datagrams, divided by the time between their acknowledgements. It sees that a link is slower than its profile, and
// paces by that. It sees that a link is faster only where the rate changes: there it lets more go while nothing queues. The zero value
// is ready.
//
// Octets that the modem drops because its queue is full have not passed, so repeated octets are subtracted. But a radio that loses much
// looks the same. Then the pace decides: if as much is lost at a lower pace, the rate is as before, and losses no longer count.
type Gauge struct {
	octets int64 // that went on the air
	first  int64 // octets of messages that went the first time
	again  int64 // and again
	began  time.Time
	heard  time.Time // of an acknowledgement
	from   [3]int64  // octets, first and again, at began

	low      int     // samples below the pace, one after the other
	best     int     // the highest of them
	lost     float64 // the mean share lost in them
	before   float64 // the same when the pace was lowered because of losses; 0: it was not
	lossy    bool    // losses do not come from the rate
	measured int     // bits per second; 0: as the profile says, or not known
	pace     int
	since    time.Time

	wary  time.Time        // until then each sample counts, for this link's rate changes
	trip  time.Duration    // the least time to an acknowledgement in this sample
	least [2]time.Duration // and in this ten minutes, and in those before
	aged  time.Time        // when these began
}

// When a link counts as slower.
const (
	gaugeSpan  = 30 * time.Second // of a sample, at the least: the delay of two acknowledgements varies by seconds
	gaugeGap   = time.Minute      // without an acknowledgement: the link was down
	gaugeTimes = 3                // samples, one after the other
	slower     = 0.8              // of the pace
	asFast     = 0.97             // of the pace: it may go faster
	faster     = 1.05
	leastPace  = 0.125 // of the profile's rate

	// A link whose rate changes.
	wavers      = 0.4 // of the pace, with a long queue: the rate changes
	stillWavers = 0.6
	longQueue   = 10 * time.Second
	waryFor     = 10 * time.Minute // after that
	warySpan    = 6 * time.Second  // of a sample
	wider       = 1.6              // where nothing queues
	mostPace    = 2.5              // of the profile's rate
)

// Pace is the rate at which datagrams go, in bits per second: that of the profile, or less.
func (g *Gauge) Pace(rateBps int) int {
	if g.pace == 0 {
		return rateBps
	}
	return g.pace
}

// Measured is the rate of a link that is not as fast as its profile says, the pace, and since when. 0: the link is not known to differ.
func (g *Gauge) Measured() (rateBps, paceBps int, since time.Time) {
	return g.measured, g.pace, g.since
}

// Learn takes the rate of a shared channel that was learned by listening, in bits per second: slower or faster than its profile's.
func (g *Gauge) Learn(now time.Time, bps, rateBps int) {
	if g.pace == 0 {
		g.since = now
	}
	g.measured, g.pace = bps, bps
	if bps == rateBps {
		g.measured, g.pace, g.since = 0, 0, time.Time{}
	}
}

// Carried notes octets of messages that went, the first time or again.
func (g *Gauge) Carried(octets int, again bool) {
	if again {
		g.again += int64(octets)
	} else {
		g.first += int64(octets)
	}
}

// Idle says that nothing waits for the transmitter.
func (g *Gauge) Idle() { g.began = time.Time{} }

// There notes that an acknowledgement came for a datagram that went then, after so octets in all: those before it are over the link, or
// lost on it.
func (g *Gauge) There(now, went time.Time, so int64, p *profile.Profile, rateBps int) {
	jitter := p.Up.Jitter + p.Down.Jitter
	span, wary := max(gaugeSpan, 10*jitter), now.Before(g.wary)
	if wary {
		span = max(warySpan, 3*jitter)
	}
	if gap := now.Sub(g.heard) > gaugeGap; gap || !wary {
		if gap && !wary {
			g.began = time.Time{}
		}
		if g.pace > rateBps {
			g.asProfile()
		}
	}
	g.heard = now
	g.took(now, now.Sub(went))
	took := now.Sub(g.began)
	if rateBps == 0 || !g.began.IsZero() && (so <= g.from[0] || took < span) {
		return
	}
	if !g.began.IsZero() {
		first, again := float64(g.first-g.from[1]), float64(g.again-g.from[2])
		sent, lost := float64(so-g.from[0])*8/took.Seconds(), again/max(1, first+again)
		queued := g.trip - min(g.least[0], g.least[1])
		if !g.lossy && (wary || queued > longQueue && sent < wavers*float64(g.Pace(rateBps))) {
			g.follow(now, sent*(1-min(lost, 0.5)), queued, p, rateBps)
		} else {
			g.judge(now, sent, lost, rateBps)
		}
	}
	g.began, g.from, g.trip = now, [3]int64{so, g.first, g.again}, math.MaxInt64
}

// took notes how long an acknowledgement took.
func (g *Gauge) took(now time.Time, trip time.Duration) {
	if now.Sub(g.aged) > waryFor {
		before := g.least[0]
		if before == 0 {
			before = math.MaxInt64
		}
		g.least, g.aged = [2]time.Duration{math.MaxInt64, before}, now
	}
	g.trip, g.least[0] = min(g.trip, trip), min(g.least[0], trip)
}

// follow takes a sample of a link whose rate changes. queued is by how much longer than at its best the quickest acknowledgement took: as
// much waits in the modem, and the sample is the link's rate. Where little waits, the link may be faster than the pace, and even than
// its profile.
func (g *Gauge) follow(now time.Time, bps float64, queued time.Duration, p *profile.Profile, rateBps int) {
	pace := float64(g.Pace(rateBps))
	if bps < stillWavers*pace {
		g.wary = now.Add(waryFor)
	}
	little := p.Up.Jitter + p.Down.Jitter + profile.Airtime(2*p.DatagramOctets, int(pace))
	switch {
	case queued <= little && g.pace > 0:
		pace, g.measured = wider*pace, max(g.measured, int(bps))
	case queued > little && (g.pace > 0 || bps < slower*pace):
		if g.pace == 0 {
			g.since = now
		}
		pace, g.measured = slower*bps, max(1, int(bps))
	default:
		return
	}
	g.pace = int(min(max(pace, leastPace*float64(rateBps)), mostPace*float64(rateBps)))
}

// asProfile says that the link is as fast as its profile has it, or that its rate is unknown.
func (g *Gauge) asProfile() { g.pace, g.measured, g.before, g.since = 0, 0, 0, time.Time{} }

// judge takes a sample in bits per second, and the share that went again in it.
func (g *Gauge) judge(now time.Time, sent, lost float64, rateBps int) {
	pace, least := float64(g.Pace(rateBps)), leastPace*float64(rateBps)
	sample := sent
	if !g.lossy {
		sample *= 1 - min(lost, 0.5)
	}
	sample = min(sample, pace)
	if sample >= slower*pace { // octets that waited in the modem before may add to it
		g.low, g.best, g.lost = 0, 0, 0
	} else {
		g.low, g.best, g.lost = g.low+1, max(g.best, int(sample)), g.lost+lost/gaugeTimes
	}
	switch {
	case g.low >= gaugeTimes && g.before > 0 && g.lost > g.before/2 && pace > 1.1*least: // as much is lost at the lower pace
		*g = Gauge{octets: g.octets, first: g.first, again: g.again, lossy: true}
	case g.low >= gaugeTimes:
		if g.pace == 0 {
			g.since = now
		}
		g.before = 0
		if sent >= slower*pace {
			g.before = g.lost
		}
		g.measured, g.pace = max(1, g.best), max(int(least), g.best)
		g.low, g.best, g.lost = 0, 0, 0
	case g.pace == 0:
	case sample >= asFast*pace:
		g.measured = max(g.measured, int(sample))
		g.pace = int(faster * pace)
		if float64(g.pace) >= asFast*float64(rateBps) {
			g.asProfile()
		}
	case g.low == 0:
		g.measured, g.pace = max(1, int(sample)), int(max(least, (pace+sample)/2))
	}
}

// Aired is when a message went, for the carrier, which learns later when it was there.
type Aired struct {
	At    time.Time // the first time
	So    int64     // octets of the transmitter, its own datagram included; 0: unknown
	Asked bool      // an acknowledgement was wanted at once
	Alone bool      // nothing else was on its way
}

// Evidence is what the messages to a peer show of the link's loss and delay. The zero value is ready.
type Evidence struct {
	sent, again int // datagrams with messages that went first, and again
	trips       []time.Duration
}

// How much evidence is believed.
const (
	evidenceOf   = 200 // datagrams
	evidenceMost = 600 // beyond it the earlier counts are halved
	mostTrips    = 8   // round trips: the least of them counts
)

// Went notes a datagram whose messages all went first, or some again.
func (e *Evidence) Went(again bool) {
	if again {
		e.again++
	} else {
		e.sent++
	}
	if e.sent+e.again > evidenceMost {
		e.sent, e.again = e.sent/2, e.again/2
	}
}

// There notes an acknowledgement for a message that went alone and had asked for it, so long after it went the first time: longer than
// a round trip, if that datagram was lost. The least of several counts.
func (e *Evidence) There(took time.Duration) {
	e.trips = append(e.trips[max(0, len(e.trips)-mostTrips+1):], took)
}

// RoundTrip is the least of the last ones; false: there were too few.
func (e *Evidence) RoundTrip() (time.Duration, bool) {
	if len(e.trips) < mostTrips {
		return 0, false
	}
	return slices.Min(e.trips), true
}

// Loss is the share of datagrams with messages that went again, in percent, and its lower bound, which holds 97 of 100 times; false: there
// were too few.
func (e *Evidence) Loss() (pct, least float64, ok bool) {
	n := float64(e.sent + e.again)
	if n < evidenceOf {
		return 0, 0, false
	}
	const z = 1.96
	p := float64(e.again) / n
	mid := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return 100 * p, 100 * max(0, mid-half), true
}
