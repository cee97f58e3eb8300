package linkemu

import (
	"math"
	"slices"
	"time"
)

// Estimate is the knowledge of one direction.
type Estimate struct {
	Packets, Lost int
	RateBps       int
	RateFrom      int // rates from here to RateTo explain the packets nearly as well
	RateTo        int
	RateKnown     bool // RateFrom and RateTo are close; otherwise the packets were too similar, or never close enough together, to show the rate
	Delay, Jitter time.Duration
	LossPct       float64
	LossFrom      float64 // 95 of 100 times LossPct lies between LossFrom and LossTo
	LossTo        float64
	Runs          int     // losses in a row count as one
	MeanRun       float64 // packets lost in each
	Overtaken     int     // packets that arrived before one that was sent before them
	Largest       int     // octets of the largest packet that arrived
	Few           bool    // so few packets that numbers come from the base unless the packets contradict them
	JitterFrom    time.Duration
	JitterTo      time.Duration // Few: nine times in ten the jitter lies between JitterFrom and JitterTo, and the rate between RateFrom and RateTo
	Waited        int           // the most octets that waited before one that arrived, at that rate
}

// Bounds of the rates that are tried.
const (
	slowest = 50
	fastest = 100_000_000
)

// alike is the largest ratio of two rates that explain the packets for either to be believed.
const alike = 1.5

// enoughForDrift is how many packets of each direction the drift needs: fewer lie closest together along any line.
const enoughForDrift = 300

// doubt, divided by the number of packets, is how much wider the remaining times may lie and still explain the packets as well: with even
// jitter, the outermost few packets decide.
const doubt = 6

func arrived(list []Crossing) (n int) {
	for _, s := range list {
		if !s.Lost {
			n++
		}
	}
	return n
}

// estimate judges one direction of a star.
func estimate(list []Crossing) Estimate {
	e := counted(list)
	spread := func(rate int) float64 { rest, _ := rests(list, rate); return width(rest, 0.001) }
	best, least := fastest, math.MaxFloat64
	look := func(from, to, step float64) {
		for rate := from; rate <= to; rate *= step {
			if s := spread(int(rate)); s < least {
				best, least = int(rate), s
			}
		}
	}
	look(slowest, fastest, 1.1)
	for _, step := range []float64{1.01, 1.001} {
		reach := math.Pow(step, 12)
		look(float64(best)/reach, float64(best)*reach, step)
	}
	e.RateBps = best
	slack := least * (1 + doubt/float64(len(list)))
	e.RateFrom, e.RateTo = best, best
	for rate := float64(best); rate >= slowest && spread(int(rate)) <= slack; rate /= 1.02 {
		e.RateFrom = int(rate)
	}
	for rate := float64(best); rate <= fastest && spread(int(rate)) <= slack; rate *= 1.02 {
		e.RateTo = int(rate)
	}
	e.RateKnown = float64(e.RateTo) <= alike*float64(e.RateFrom)
	rest, waited := rests(list, best)
	e.Waited = waited
	e.delays(rest, 0.01)
	return e
}

// rests sends the packets one after the other at a rate, and returns the remaining time of each packet that arrived.
func rests(list []Crossing, rate int) (rest []float64, waited int) {
	free := int64(math.MinInt64)
	for _, s := range list {
		begin := max(s.Sent, free)
		free = begin + int64(float64(s.Octets)*8e9/float64(rate))
		if !s.Lost {
			rest = append(rest, float64(s.Arrived-free))
			waited = max(waited, int(float64(begin-s.Sent)*float64(rate)/8e9))
		}
	}
	return rest, waited
}

// steady removes the remaining drift of the clocks: along a line with that slope the remaining times lie closest together, in both
// directions at once. Join could draw the line only through the least times.
func (j Joined) steady(up, down int) Joined {
	if min(len(j.Up), len(j.Down)) < enoughForDrift {
		return j
	}
	upRest, _ := rests(j.Up, up)
	downRest, _ := rests(j.Down, down)
	from := j.Up[0].Sent
	of := func(slope float64) float64 {
		sum := 0.0
		for _, d := range []struct {
			list []Crossing
			rest []float64
			sign float64
		}{{j.Up, upRest, -1}, {j.Down, downRest, 1}} {
			var skewed []float64
			for _, s := range d.list {
				if !s.Lost {
					skewed = append(skewed, d.rest[len(skewed)]+d.sign*slope*float64(s.Sent-from))
				}
			}
			sum += width(skewed, 0.001)
		}
		return sum
	}
	best := 0.0
	for step := 20e-6; step > 0.1e-6; step /= 2 {
		for moved := true; moved; {
			moved = false
			for _, to := range []float64{best - step, best + step} {
				if math.Abs(to) < 500e-6 && of(to) < of(best) {
					best, moved = to, true
				}
			}
		}
	}
	back := func(at int64) int64 { return at - int64(best*float64(at-from)) }
	out := j
	out.DriftPPM += best * 1e6
	out.Up, out.Down = slices.Clone(j.Up), slices.Clone(j.Down)
	for i := range out.Up {
		out.Up[i].Arrived = back(out.Up[i].Arrived)
	}
	for i := range out.Down {
		out.Down[i].Sent = back(out.Down[i].Sent)
	}
	return out
}

// width is the range of the remaining times without the outermost ones, a share of them on either side.
func width(rest []float64, without float64) float64 {
	slices.Sort(rest)
	return Between(rest, 1-without) - Between(rest, without)
}

// delays sets delay and jitter from the remaining times. It takes the jitter to be even, and a share of the times on either side to have
// other causes.
func (e *Estimate) delays(rest []float64, without float64) {
	slices.Sort(rest)
	low, high := Between(rest, without), Between(rest, 1-without)
	jitter := (high - low) / (1 - 2*without)
	e.Jitter = time.Duration(jitter).Round(time.Millisecond)
	e.Delay = max(0, time.Duration(low-without*jitter)).Round(time.Millisecond)
}

// counted counts the packets that arrived and those that did not.
func counted(list []Crossing) Estimate {
	e := Estimate{Packets: len(list)}
	latest, run := int64(math.MinInt64), false
	for _, s := range list {
		if s.Lost {
			e.Lost++
			if !run {
				e.Runs++
			}
			run = true
			continue
		}
		run = false
		if s.Arrived < latest {
			e.Overtaken++
		}
		latest = max(latest, s.Arrived)
		e.Largest = max(e.Largest, s.Octets)
	}
	if e.Runs > 0 {
		e.MeanRun = float64(e.Lost) / float64(e.Runs)
	}
	e.LossPct, e.LossFrom, e.LossTo = share(e.Lost, e.Packets)
	return e
}

// share is k of n in percent, and Wilson's interval around it.
func share(k, n int) (pct, from, to float64) {
	const z = 1.96
	p, m := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return 100 * p, 100 * max(0, mid-half), 100 * min(1, mid+half)
}
