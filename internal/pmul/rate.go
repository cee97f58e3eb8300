package pmul

import (
	"maps"
	"slices"
	"time"
)

// Rate learns by listening how fast a shared channel is: of two datagrams that one talker's radio holds at once, the second
// comes later by its airtime. A talker hands over several when its turn begins, so this also shows a channel that is faster
// than its pace. Datagrams between the two that are lost, sent by others or late make a gap longer, and only jitter makes
// it shorter: so the short gaps of a talker count. docs/decisions/shared-channel.md.
type Rate struct {
	told, bps int // bits per second: of the profile, and as heard
	span      time.Duration
	last      heard
	sample    gap
	from      time.Time // when the datagram before the sample came
	talkers   map[NodeID]*gaps
}

// heard is the last datagram heard, and what it says of the next one.
type heard struct {
	by      NodeID
	follows bool      // its talker has more to send
	message MessageID // of its last fragment
	number  uint16    // of that fragment; 0: it has none
}

// gap is how fast a datagram came after the last one.
type gap struct {
	bps, octets int
	sure        bool // the talker had it ready when the last one left
}

// gaps are the latest gaps of a talker.
type gaps struct {
	of []gap
	at time.Time // of the last
}

const (
	gapsMost  = 32               // of a talker: as many as in a turn
	gapsLeast = 4                // before a talker's gaps count
	gapsFor   = 10 * time.Minute // a talker's gaps count so long
	gapsProve = 8                // so many similar gaps show that the channel has another rate
	// gapsShort is the part of a talker's gaps, one in so many, that may be too short.
	gapsShort = 8
	gapSpan   = 200 * time.Millisecond // of a sample, at the least: timers and networks vary by less, and modems hand over blocks
	jitters   = 10                     // of the profile: a sample lasts at least so many
	rateLeast = 8                      // the profile's rate is divided by so much at the most
	rateMost  = 4                      // and multiplied by so much,
	rateStep  = 2                      // by so much at a time
	slowerBy  = 0.8                    // a heard rate differs if it is below this part of the rate,
	fasterBy  = 1.25                   // or above this
	like      = 0.05                   // rates that differ by less are the same
	gapsClear = 5                      // one gap in so many shows a rate clearly
	unlike    = 1.15                   // times the octets: gaps that depend on nothing would not be so similar
	deceivers = 3                      // one in so many talkers heard may send unlike the others
)

// NewRate begins with the rate of the profile; jitter is the profile's too.
func NewRate(bps int, jitter time.Duration) *Rate {
	return &Rate{told: bps, bps: bps, span: max(gapSpan, jitters*jitter), talkers: map[NodeID]*gaps{}}
}

// Bps is the rate in bits per second as far as it is known.
func (r *Rate) Bps() int { return r.bps }

// Heard notes a datagram of a known node, of so many octets on the air, that has just come with these PDUs. It returns
// whether the rate has changed.
func (r *Rate) Heard(now time.Time, by NodeID, octets int, pdus []PDU) (changed bool) {
	was, is, sure := r.last, heard{by: by}, r.last.follows
	for _, pdu := range pdus {
		switch pdu := pdu.(type) {
		case TurnPDU:
			is.follows = is.follows || pdu.Left > 0
		case DataPDU:
			sure = sure || was.number > 0 && pdu.Message == was.message && pdu.Number == was.number+1
			is.message, is.number = pdu.Message, pdu.Number
		}
	}
	r.last = is
	if was.by != by {
		r.from, r.sample = now, gap{sure: true}
		return false
	}
	r.sample.octets, r.sample.sure = r.sample.octets+octets, r.sample.sure && sure
	took := now.Sub(r.from)
	if took < r.span {
		return false
	}
	one := r.sample
	one.bps = int(float64(one.octets) * 8 / took.Seconds())
	r.from, r.sample = now, gap{sure: true}
	if one.bps > 2*rateMost*r.told || one.bps < r.told/(2*rateLeast) { // another cause: a network held them back, or there was nothing to send
		return false
	}
	g := r.talkers[by]
	if g == nil {
		g = &gaps{}
		r.talkers[by] = g
	}
	g.of, g.at = append(g.of[max(0, len(g.of)-gapsMost+1):], one), now
	return r.judge(now)
}

// rate is the rate of the shorter gaps, in bits per second: the channel has at least this. steady: most gaps show it.
func (g *gaps) rate() (bps int, steady bool) {
	sorted := slices.SortedFunc(slices.Values(g.of), func(a, b gap) int { return b.bps - a.bps })
	bps = sorted[len(sorted)/gapsShort].bps
	return bps, 2*len(g.near(bps)) > len(sorted)
}

// near are the gaps that show a rate.
func (g *gaps) near(bps int) (near []gap) {
	for _, one := range g.of {
		if same(one.bps, bps) {
			near = append(near, one)
		}
	}
	return near
}

func same(bps, as int) bool {
	return float64(bps) > (1-like)*float64(as) && float64(bps) < (1+like)*float64(as)
}

// judge changes the rate if the gaps show another, and tells whether it did. Of three talkers the second highest counts, of
// six the third: so one that sends unlike the others deceives nobody. A single talker cannot make the rate faster than the
// profile's.
func (r *Rate) judge(now time.Time) bool {
	maps.DeleteFunc(r.talkers, func(_ NodeID, g *gaps) bool { return now.Sub(g.at) > gapsFor })
	var least, steady []int // bits per second of each talker
	for _, g := range r.talkers {
		if len(g.of) < gapsLeast {
			continue
		}
		bps, is := g.rate()
		least = append(least, bps)
		if is {
			steady = append(steady, bps)
		}
	}
	bps, n := r.bps, len(least)
	if n == 0 {
		return false
	}
	shown := nth(least, n/deceivers)
	if len(steady) > 0 {
		slower := nth(steady, len(steady)/deceivers)
		if float64(slower) < slowerBy*float64(bps) && float64(shown) < fasterBy*float64(slower) && r.noFaster(slower) {
			bps = max(slower, r.told/rateLeast, 1)
		}
	}
	faster := min(shown, r.told)
	if n > 1 {
		if two := nth(least, max(1, n/deceivers)); two > r.told {
			shown, faster = two, two
		}
	}
	if float64(faster) > fasterBy*float64(bps) && r.fast(shown) {
		bps = min(faster, rateStep*r.bps, rateMost*r.told)
	}
	if same(bps, r.told) {
		bps = r.told
	}
	changed := bps != r.bps
	r.bps = bps
	return changed
}

// noFaster says that the channel has at most this rate: talkers that had more to send have shown no more, or the gaps that
// show it grow with the octets in them.
func (r *Rate) noFaster(bps int) bool {
	var octets []int
	sure := 0
	for _, g := range r.talkers {
		for _, one := range g.near(bps) {
			octets = append(octets, one.octets)
			if one.sure {
				sure++
			}
		}
	}
	slices.Sort(octets)
	n := len(octets)
	return n >= gapsProve && (2*sure > n || float64(octets[n-2]) > unlike*float64(octets[1]))
}

// fast says that many gaps show at least this higher rate: gaps that jitter has shortened are seldom similar.
func (r *Rate) fast(bps int) bool {
	near, all := 0, 0
	for _, g := range r.talkers {
		for _, one := range g.of {
			if all++; same(one.bps, bps) {
				near++
			}
		}
	}
	return near >= gapsProve && gapsClear*near > all
}

// nth is the n-th highest, from 0.
func nth(of []int, n int) int {
	slices.Sort(of)
	return of[len(of)-1-n]
}

// Pace sets another rate, in bits per second, in both engines of a node. The datagrams in the node's radio leave so much
// later or sooner.
func Pace(now time.Time, s *Sender, r *Receiver, bps int) {
	left := s.airAt.Sub(now)
	if bps < s.cfg.RateBps {
		left = max(left, s.channel.held(now, s.airAt, s.cfg.Hold))
	}
	if left > 0 {
		s.airAt = now.Add(time.Duration(float64(left) * float64(s.cfg.RateBps) / float64(bps)))
	}
	s.cfg.RateBps, r.cfg.RateBps = bps, bps
}
