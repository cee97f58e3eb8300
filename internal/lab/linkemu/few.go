package linkemu

import (
	"cmp"
	"math"
	"slices"
	"time"

	"aldis/internal/link/profile"
)

// fewPackets is the number of packets of a direction from which the extreme ones alone suffice. With fewer, all are used: the jitter is
// taken to be even, and a packet that arrives together with the one before it is taken to have waited for that one.
const fewPackets = 300

// Bounds for the belief in few packets: nine times in ten a number lies between those of an Estimate.
const (
	within    = 0.05
	closeRate = 1.25 // RateTo over RateFrom, at most, for the rate to be known
)

// tick is the time that clocks and loops of real gateways may add: packets that arrive within it arrive together.
const tick = float64(time.Millisecond)

// cell is a rate and a least delay, and how well the packets fit them.
type cell struct {
	rate, delay, jitter float64 // ns
	log, weight         float64
}

// estimateFew judges one direction of a star by few packets.
func estimateFew(list []Crossing) Estimate {
	e := counted(list)
	e.Few = true
	cells := likely(list, slowest, fastest, 400)
	low, high := math.Inf(1), 0.0
	for _, c := range cells {
		if c.weight > 1e-6 {
			low, high = min(low, c.rate), max(high, c.rate)
		}
	}
	cells = likely(list, max(slowest, low/1.05), min(fastest, high*1.05), 200)
	rate := spreadOf(cells, func(c cell) float64 { return c.rate })
	jitter := spreadOf(cells, func(c cell) float64 { return c.jitter })
	middle := spreadOf(cells, func(c cell) float64 { return c.delay + c.jitter/2 })
	e.RateFrom, e.RateBps, e.RateTo = int(rate[0]), int(rate[1]), int(rate[2])
	e.RateKnown = rate[2] <= closeRate*rate[0]
	milli := func(ns float64) time.Duration { return time.Duration(ns).Round(time.Millisecond) }
	e.JitterFrom, e.Jitter, e.JitterTo = milli(jitter[0]), milli(jitter[1]), milli(jitter[2])
	e.Delay = max(0, milli(middle[1]-jitter[1]/2))
	_, e.Waited = rests(list, e.RateBps)
	return e
}

// likely tries so many rates, each with the least delays that are possible.
func likely(list []Crossing, from, to float64, rates int) (cells []cell) {
	const delays = 60
	best := math.Inf(-1)
	for i := range rates {
		rate := from * math.Pow(to/from, float64(i)/float64(rates-1))
		alone, together := apart(list, int(rate))
		least, most := math.Inf(1), math.Inf(-1)
		for _, y := range alone {
			least, most = min(least, y), max(most, y)
		}
		for _, y := range together {
			least = min(least, y)
		}
		n := float64(len(alone) + len(together))
		reach := 2 * (most - least + 2*tick)
		step := func(k int) float64 { return reach * math.Pow(float64(k)/delays, 3) }
		for k := range delays {
			delay := least - step(k)
			log := math.Log(step(k+1)-step(k)) - n*math.Log(most-delay+tick)
			for _, y := range together {
				log += math.Log(y - delay + tick)
			}
			best = max(best, log)
			cells = append(cells, cell{rate: rate, delay: delay, jitter: (most - delay) * n / (n - 1), log: log})
		}
	}
	sum := 0.0
	for i := range cells {
		cells[i].weight = math.Exp(cells[i].log - best)
		sum += cells[i].weight
	}
	for i := range cells {
		cells[i].weight /= sum
	}
	return cells
}

// apart returns the remaining times of the packets that arrived, at a rate: first of those that arrived by themselves, then of those that
// may have waited for the one before.
func apart(list []Crossing, rate int) (alone, together []float64) {
	rest, _ := rests(list, rate)
	i, before := 0, int64(math.MinInt64/2)
	for _, s := range list {
		if s.Lost {
			continue
		}
		if float64(s.Arrived-before) < tick {
			together = append(together, rest[i])
		} else {
			alone = append(alone, rest[i])
		}
		i, before = i+1, s.Arrived
	}
	return alone, together
}

// spreadOf returns three values of a number of the cells: those below which it lies five, fifty and ninety-five times in a hundred.
func spreadOf(cells []cell, of func(cell) float64) (q [3]float64) {
	list := slices.Clone(cells)
	slices.SortFunc(list, func(a, b cell) int { return cmp.Compare(of(a), of(b)) })
	sum, k := 0.0, 0
	for _, c := range list {
		sum += c.weight
		for k < len(q) && sum >= [...]float64{within, 0.5, 1 - within - 1e-9}[k] {
			q[k] = of(c)
			k++
		}
	}
	return q
}

// few is Fit for few packets.
func (r Result) few(j Joined, base profile.Profile) Result {
	if base.Shared {
		return r.channelFew(j, base)
	}
	r.Up, r.Down = estimateFew(j.Up), estimateFew(j.Down)
	r.even()
	return r
}

// odd is the share of a channel's packets on either side that tells nothing, for few packets that take turns as arranged.
const odd = 0.02

// guess is possible values of a channel, and by how much the second clock is ahead of Join's result.
type guess struct {
	rate        int
	turn, ahead time.Duration
}

// channelFew is Fit for few packets on a link that both share, where both directions take as long. The change of talker and the
// difference of the clocks show in the same packets, so it looks for both at once.
func (r Result) channelFew(j Joined, base profile.Profile) Result {
	tried := map[guess]float64{}
	spread := func(g guess) float64 {
		s, ok := tried[g]
		if !ok {
			up, down, _ := through(j.later(g.ahead), base, g.rate, g.turn)
			s = width(append(up, down...), odd)
			tried[g] = s
		}
		return s
	}
	best := closest(guess{rate: base.Up.RateBps, turn: base.Turnaround}, spread)
	for _, rate := range []int{base.Up.RateBps / 2, base.Up.RateBps, 2 * base.Up.RateBps} { // the way to the best guess may lead over worse ones
		for _, turn := range []time.Duration{0, base.Turnaround, 2 * base.Turnaround} {
			for _, ahead := range []time.Duration{0, -base.Turnaround, base.Turnaround} {
				if one := closest(guess{rate, turn, ahead}, spread); spread(one) < spread(best) {
					best = one
				}
			}
		}
	}
	r.TurnKnown = true
	for _, turn := range []time.Duration{best.turn * 4 / 5, best.turn * 6 / 5} {
		if spread(guess{best.rate, turn, best.ahead}) < spread(best)+2*tick {
			r.TurnKnown = false // if the delay is longer, the channel has turned before an answer goes
		}
	}
	j = j.later(best.ahead)
	r.Offset += best.ahead
	up, down, turns := through(j, base, best.rate, best.turn)
	r.Turnaround, r.TurnsSeen = best.turn, turns
	r.Up, r.Down = counted(j.Up), counted(j.Down)
	var both Estimate
	both.delays(append(up, down...), odd)
	for _, e := range []*Estimate{&r.Up, &r.Down} {
		e.Few, e.RateBps, e.RateFrom, e.RateTo, e.RateKnown = true, best.rate, best.rate, best.rate, true
		e.Delay, e.Jitter = both.Delay, both.Jitter
	}
	return r
}

// closest goes from a guess to better ones, in smaller and smaller steps.
func closest(best guess, spread func(guess) float64) guess {
	for _, step := range []float64{2, 1.3, 1.08, 1.02, 1.005} {
		d := time.Duration(float64(time.Second) * (step - 1) / 2)
		for moved := true; moved; {
			moved = false
			for _, g := range []guess{
				{int(float64(best.rate) * step), best.turn, best.ahead}, {int(float64(best.rate) / step), best.turn, best.ahead},
				{best.rate, best.turn + d, best.ahead}, {best.rate, best.turn - d, best.ahead},
				{best.rate, best.turn, best.ahead + d}, {best.rate, best.turn, best.ahead - d},
				{best.rate, best.turn + d, best.ahead + d}, {best.rate, best.turn - d, best.ahead - d},
				{best.rate, best.turn + d, best.ahead - d}, {best.rate, best.turn - d, best.ahead + d},
			} {
				if g.rate >= slowest && g.rate <= fastest && g.turn >= 0 && spread(g) < spread(best)*(1-1e-6) {
					best, moved = g, true
				}
			}
		}
	}
	return best
}

// later sets the second clock back.
func (j Joined) later(by time.Duration) Joined {
	j.Up, j.Down = slices.Clone(j.Up), slices.Clone(j.Down)
	for i := range j.Up {
		j.Up[i].Arrived -= int64(by)
	}
	for i := range j.Down {
		j.Down[i].Sent -= int64(by)
	}
	return j
}
