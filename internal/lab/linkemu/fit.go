package linkemu

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/link/profile"
)

// Reasons why two captures tell nothing about a link.
var (
	ErrNothing = errors.New("fit: no packet is in both captures: are they of the two ends of one link, at one time?")
	ErrFew     = errors.New("fit: too few packets are in both captures")
)

// fewest is how many packets must have arrived in each direction.
const fewest = 20

// MaxPackets bounds a capture.
const MaxPackets = 1 << 20

// Passage is one packet of a capture, with the values by which a capture at the other end recognises it.
type Passage struct {
	At       int64 // ns since 1970 UTC
	From, To netip.Addr
	Octets   int // of the IP packet
	Sum      [16]byte
}

// Joined is the packets between two ends, by the clock of the first.
type Joined struct {
	Up, Down []Crossing    // from the first end, and to it, in the order of sending
	Offset   time.Duration // of the second end's clock at the beginning, ahead of the first's
	DriftPPM float64       // by how much the second clock runs faster; 0 if that cannot be told
	least    int           // packets that must have arrived in each direction
	Alone    int           // packets in one capture that neither end can have sent to the other, from third stations
}

// Crossing is one packet of a direction.
type Crossing struct {
	Sent, Arrived int64 // ns
	Octets        int
	Lost          bool

	nth int // place in its sender's capture: of packets sent at one time the lower went first
}

// pair is a packet with its times in the two captures; -1: it is not there.
type pair struct {
	Passage
	a, b     int64
	inA, inB int // its index in each
}

// Join matches the packets of two captures. Each capture is in order of time.
func Join(a, b []Passage) (Joined, error) { return join(a, b, fewest) }

func join(a, b []Passage, least int) (Joined, error) {
	there := map[[16]byte][]int{}
	for i, p := range b {
		there[p.Sum] = append(there[p.Sum], i)
	}
	var pairs []pair
	met := make([]bool, len(b))
	for i, p := range a {
		one := pair{Passage: p, a: p.At, b: -1, inA: i}
		if list := there[p.Sum]; len(list) > 0 {
			one.b, one.inB, met[list[0]] = b[list[0]].At, list[0], true
			there[p.Sum] = list[1:]
		}
		pairs = append(pairs, one)
	}
	for i, p := range b {
		if !met[i] {
			pairs = append(pairs, pair{Passage: p, a: -1, b: p.At, inB: i})
		}
	}
	return orient(pairs, least)
}

// bounds are the least and the greatest time from the first capture to the second.
type bounds struct {
	n           int
	least, most int64
}

// orient finds which addresses are at which end: a packet arrives after it was sent, whatever the clocks say.
func orient(pairs []pair, least int) (Joined, error) {
	by := map[netip.Addr]*bounds{}
	for _, p := range pairs {
		if p.a < 0 || p.b < 0 {
			continue
		}
		d, o := p.b-p.a, by[p.From]
		if o == nil {
			o = &bounds{least: math.MaxInt64, most: math.MinInt64}
			by[p.From] = o
		}
		o.n++
		o.least, o.most = min(o.least, d), max(o.most, d)
	}
	if len(by) == 0 {
		return Joined{}, ErrNothing
	}
	// The two busiest addresses are the two ends: the times from the first end's are greater than those from the second's.
	list := make([]netip.Addr, 0, len(by))
	for addr := range by {
		list = append(list, addr)
	}
	slices.SortFunc(list, func(x, y netip.Addr) int { return cmp.Or(by[y].n-by[x].n, x.Compare(y)) })
	if len(list) < 2 || by[list[0]].n < least || by[list[1]].n < least {
		return Joined{}, fmt.Errorf("%w: there must be %d from each end", ErrFew, least)
	}
	first, second := list[0], list[1]
	if by[first].least+by[first].most < by[second].least+by[second].most {
		first, second = second, first
	}
	c := clocks(pairs, first, second)
	j := Joined{least: least, Offset: time.Duration(c.at(c.from)), DriftPPM: c.slope * 1e6}
	for _, p := range pairs {
		s := Crossing{Octets: p.Octets, Lost: p.a < 0 || p.b < 0}
		b := p.b
		if b >= 0 {
			b -= c.at(b)
		}
		switch p.From {
		case first:
			s.Sent, s.Arrived, s.nth = p.a, b, p.inA
			if p.a < 0 {
				j.Alone++
				continue
			}
			j.Up = append(j.Up, s)
		case second:
			s.Sent, s.Arrived, s.nth = b, p.a, p.inB
			if p.b < 0 {
				j.Alone++
				continue
			}
			j.Down = append(j.Down, s)
		default:
			j.Alone++
		}
	}
	for _, list := range [][]Crossing{j.Up, j.Down} {
		slices.SortStableFunc(list, func(x, y Crossing) int { return cmp.Or(cmp.Compare(x.Sent, y.Sent), x.nth-y.nth) })
	}
	return j, nil
}

// clock is how far the second end's clock is ahead, as a line over time.
type clock struct {
	from        int64
	zero, slope float64
}

func (c clock) at(t int64) int64 { return int64(c.zero + c.slope*float64(t-c.from)) }

// clocks draws the line in the middle between the least times of both directions, window by window.
func clocks(pairs []pair, first, second netip.Addr) clock {
	const windows, enough = 12, 5
	begin, end := int64(math.MaxInt64), int64(math.MinInt64)
	for _, p := range pairs {
		if p.a >= 0 && p.b >= 0 {
			begin, end = min(begin, p.b), max(end, p.b)
		}
	}
	width := (end-begin)/windows + 1
	type window struct {
		up, down      int
		least, latest int64
	}
	all := window{least: math.MaxInt64, latest: math.MinInt64}
	list := make([]window, windows)
	for i := range list {
		list[i] = all
	}
	for _, p := range pairs {
		if p.a < 0 || p.b < 0 {
			continue
		}
		for _, w := range []*window{&all, &list[(p.b-begin)/width]} {
			switch d := p.b - p.a; p.From {
			case first:
				w.up++
				w.least = min(w.least, d)
			case second:
				w.down++
				w.latest = max(w.latest, d)
			}
		}
	}
	flat := clock{from: begin, zero: (float64(all.least) + float64(all.latest)) / 2}
	var xs, ys []float64
	for i, w := range list {
		if w.up >= enough && w.down >= enough {
			xs = append(xs, (float64(i)+0.5)*float64(width))
			ys = append(ys, (float64(w.least)+float64(w.latest))/2)
		}
	}
	if len(xs) < windows/2 {
		return flat
	}
	slope, zero, doubt := line(xs, ys)
	if math.Abs(slope) < 4*doubt { // jitter alone could cause such a slope
		return flat
	}
	return clock{begin, zero, slope}
}

// line is the straight line through points, and the standard error of its slope.
func line(xs, ys []float64) (slope, zero, doubt float64) {
	n := float64(len(xs))
	var sx, sy, sxx, sxy float64
	for i, x := range xs {
		sx, sy, sxx, sxy = sx+x, sy+ys[i], sxx+x*x, sxy+x*ys[i]
	}
	spread := sxx - sx*sx/n
	slope = (sxy - sx*sy/n) / spread
	zero = (sy - slope*sx) / n
	var rest float64
	for i, x := range xs {
		d := ys[i] - zero - slope*x
		rest += d * d
	}
	return slope, zero, math.Sqrt(rest / (n - 2) / spread)
}

// Result is the findings about a link from two captures.
type Result struct {
	Up, Down     Estimate
	Shared       bool
	Turnaround   time.Duration // shared
	TurnKnown    bool          // the packets show it
	TurnsSeen    int           // changes of talker from which it was learned
	Offset       time.Duration
	DriftPPM     float64
	Termination  time.Duration // from the first packet's sending to the last one's arrival
	OfThirdNodes int

	probed bool
}

// Fit finds out what a link does. base says whether the link is shared, and how long a talker holds it.
func Fit(j Joined, base profile.Profile) (Result, error) {
	for _, list := range [][]Crossing{j.Up, j.Down} {
		if arrived(list) < j.least {
			return Result{}, fmt.Errorf("%w: %d arrived of one direction, it takes %d", ErrFew, arrived(list), j.least)
		}
	}
	r := Result{Shared: base.Shared, Offset: j.Offset, DriftPPM: j.DriftPPM, OfThirdNodes: j.Alone}
	first, last := min(j.Up[0].Sent, j.Down[0].Sent), int64(0)
	for _, s := range slices.Concat(j.Up, j.Down) {
		if !s.Lost {
			last = max(last, s.Arrived)
		}
	}
	r.Termination = time.Duration(last - first)
	if min(len(j.Up), len(j.Down)) < fewPackets {
		return r.few(j, base), nil
	}
	if !base.Shared {
		for range 3 { // a better clock gives better rates, and they a better clock
			r.Up, r.Down = estimate(j.Up), estimate(j.Down)
			j = j.steady(r.Up.RateBps, r.Down.RateBps)
		}
		r.Up, r.Down, r.DriftPPM = estimate(j.Up), estimate(j.Down), j.DriftPPM
		r.even()
		return r, nil
	}
	return r.channel(j, base)
}

// even takes the delays of both directions to be equal, now that the packets' own times are known: for Join the delays contained those
// times.
func (r *Result) even() {
	half := (r.Up.Delay - r.Down.Delay) / 2
	r.Offset += half
	r.Up.Delay -= half
	r.Down.Delay += half
}

// misplaced is the share of the packets on either side that tells nothing: where both ends want to talk at once, the model may let the
// wrong one begin.
const misplaced = 0.1

// channel is Fit for a link that both share.
func (r Result) channel(j Joined, base profile.Profile) (Result, error) {
	type key struct {
		rate int
		turn time.Duration
	}
	tried := map[key]float64{}
	spread := func(rate int, turn time.Duration) float64 {
		k := key{rate, turn}
		if s, ok := tried[k]; ok {
			return s
		}
		up, down, _ := through(j, base, rate, turn)
		s := width(append(up, down...), misplaced)
		tried[k] = s
		return s
	}
	best := key{base.Up.RateBps, base.Turnaround}
	for _, step := range []float64{2, 1.3, 1.08, 1.02, 1.005} { // coordinate by coordinate, in smaller and smaller steps
		for moved := true; moved; {
			moved = false
			turn := time.Duration(float64(time.Second) * (step - 1) / 2)
			for _, k := range []key{{int(float64(best.rate) * step), best.turn}, {int(float64(best.rate) / step), best.turn},
				{best.rate, best.turn + turn}, {best.rate, max(0, best.turn-turn)}} {
				if k.rate >= slowest && k.rate <= fastest && spread(k.rate, k.turn) < spread(best.rate, best.turn)*(1-1e-6) {
					best, moved = k, true
				}
			}
		}
	}
	up, down, turns := through(j, base, best.rate, best.turn)
	r.Turnaround, r.TurnKnown, r.TurnsSeen = best.turn, true, turns
	for _, d := range []struct {
		e    *Estimate
		list []Crossing
		rest []float64
	}{{&r.Up, j.Up, up}, {&r.Down, j.Down, down}} {
		*d.e = counted(d.list)
		d.e.RateBps, d.e.RateFrom, d.e.RateTo, d.e.RateKnown = best.rate, best.rate, best.rate, true
		d.e.delays(d.rest, misplaced)
	}
	return r, nil
}

// through sends the packets over a shared channel without delay or loss, and returns the remaining times of those that arrived.
func through(j Joined, base profile.Profile, rate int, turn time.Duration) (up, down []float64, turns int) {
	d := profile.Direction{RateBps: rate}
	p := profile.Profile{Name: "channel", Shared: true, Up: d, Down: d, Turnaround: turn, MaxHold: base.MaxHold, KeyUp: base.KeyUp,
		FrameOverhead: base.FrameOverhead, MTU: 1 << 16}
	link, err := New(Config{Nodes: []Node{{Name: "first", Profile: p}, {Name: "second", Profile: p}}})
	if err != nil { // two nodes of one profile
		panic(err)
	}
	type sent struct {
		Crossing
		from string
		at   int
	}
	var all []sent
	for i, s := range j.Up {
		all = append(all, sent{s, "first", i})
	}
	for i, s := range j.Down {
		all = append(all, sent{s, "second", i})
	}
	slices.SortStableFunc(all, func(x, y sent) int { return cmp.Compare(x.Sent, y.Sent) })
	var order [2][]int // of each end's packets that are on their way
	take := func(out Output) {
		for _, got := range out.Deliver {
			from, list, rest := 0, j.Up, &up
			if got.Frame.From == "second" {
				from, list, rest = 1, j.Down, &down
			}
			s := list[order[from][0]]
			order[from] = order[from][1:]
			if !s.Lost {
				*rest = append(*rest, float64(s.Arrived-got.At.UnixNano()))
			}
		}
	}
	var next time.Time
	step := func(at time.Time, ev Event) {
		out, err := link.Step(at, ev)
		if err != nil { // impossible: both nodes exist
			panic(err)
		}
		take(out)
		next = out.Deadline
	}
	for _, s := range all {
		at := time.Unix(0, s.Sent)
		for !next.IsZero() && !next.After(at) {
			step(next, nil)
		}
		from := 0
		if s.from == "second" {
			from = 1
		}
		order[from] = append(order[from], s.at)
		step(at, Frame{From: s.from, Octets: s.Octets})
	}
	for !next.IsZero() {
		step(next, nil)
	}
	return up, down, int(link.Stats().Channel.Turns)
}
