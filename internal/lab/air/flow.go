package air

import (
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// Loaded is the result of Load.
type Loaded struct {
	Took    []time.Duration // of each message, in ascending order
	Goodput float64         // share of the rate that arrived in time
}

// Load offers messages of 200 random octets from the ship to the shore, at a share of the rate, for the time lasting, and then waits for all
// of them.
func Load(ctx Context, link string, seed uint64, share float64, lasting time.Duration) (l Loaded, err error) {
	const octets = 200
	s, err := newStage(ctx, link, 2, seed)
	if err != nil {
		return l, err
	}
	every := time.Duration(float64(profile.Airtime(octets, s.link.Up.RateBps)) / share)
	began := s.Now
	s.offer(int(lasting/every), every, tracks(octets))
	s.run(lasting + time.Second)
	arrived := 0
	for _, g := range s.shore.Site.Got {
		if g.At.Sub(began) <= lasting+time.Second {
			arrived++
		}
	}
	l.Goodput = float64(arrived*octets*8) / lasting.Seconds() / float64(s.link.Up.RateBps)
	l.Took, err = s.settle(30 * lasting)
	return l, err
}

// Burst offers n messages of so many octets at once. It returns the time until the last of them was there, over the time that their octets
// need. down: they go from the shore.
func Burst(ctx Context, link string, seed uint64, n, octets int, down bool) (float64, error) {
	s, err := newStage(ctx, link, 2, seed)
	if err != nil {
		return 0, err
	}
	limit := s.upLimit(n * octets)
	if down {
		s.shore, s.ship = s.ship, s.shore
		limit += profile.Airtime(n*octets, s.link.Down.RateBps) - profile.Airtime(n*octets, s.link.Up.RateBps)
	}
	s.offer(n, 0, func(i int) site.Message { return Track(2, Pipe, i, octets) })
	took, err := s.settle(12 * time.Hour)
	if err != nil {
		return 0, err
	}
	return took[len(took)-1].Seconds() / limit.Seconds(), nil
}

const flat = "x the limit"

// loads are scenarios of a terminal's link under a growing load.
func loads() (list []Scenario) {
	for _, l := range []struct {
		link    string
		share   float64 // of the rate
		lasting time.Duration
		goodput Row
		median  Row
	}{
		{"iridium-directip", 0.25, 3 * time.Minute, goodput("25"), median("25")},
		{"iridium-directip", 0.5, 3 * time.Minute, goodput("50"), asked("50 % offered: median", flat, "140 s", 0.5, 2, 1.3)},
		{"iridium-directip", 0.75, 3 * time.Minute, goodput("75"), asked("75 % offered: median", flat, "358 s", 0.5, 4, 2)},
		{"iridium-directip", 1, 3 * time.Minute, asked("100 % offered: goodput", ofRate, "34", 0.5, 75, 80), median("100")},
		{"iridium-directip", 1.5, 3 * time.Minute, goodput("150"), median("150")},
		{"iridium-dialup", 0.5, 3 * time.Minute, goodput("50"), median("50")},
		{"iridium-dialup", 0.75, 3 * time.Minute, goodput("75"), median("75")},
		{"iridium-dialup", 1, 3 * time.Minute, asked("100 % offered: goodput", ofRate, "", 0.5, 75, 80), median("100")},
		{"iridium-certus-100", 0.5, time.Minute, goodput("50"), median("50")},
		{"iridium-certus-100", 0.75, time.Minute, goodput("75"), median("75")},
		{"iridium-certus-100", 1, time.Minute, asked("100 % offered: goodput", ofRate, "", 0.5, 85, 92), median("100")},
	} {
		x := 100 * l.share
		list = append(list, Scenario{Link: l.link,
			Rows: []Row{l.goodput.in("goodput", l.link, x), l.median.in("load", l.link, x)},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				got, err := Load(ctx, l.link, seed, l.share, l.lasting)
				if err != nil {
					return nil, err
				}
				p, err := profile.Load(l.link, nil)
				return one(100*got.Goodput, at(got.Took, 0.5).Seconds()/Limit(p, 200).Seconds()), err
			},
			bounds: func() []float64 { return []float64{100 * packed(l.link, 200)} },
		})
	}
	return list
}

func goodput(share string) Row {
	r := measured(share+" % offered: goodput", ofRate, 0.5)
	r.More = true
	return r
}
func median(share string) Row { return measured(share+" % offered: median", flat, 0.5) }

// bursts are scenarios of many messages at once.
func bursts() (list []Scenario) {
	for _, b := range []struct {
		link      string
		n, octets int
		down      bool
		row       Row
	}{
		{"iridium-directip", 128, 200, false, asked("128 of 200 octets: the last", flat, "7.0", 0.5, 1.5, 1.2)},
		{"iridium-dialup", 128, 200, false, asked("128 of 200 octets: the last", flat, "2.0", 0.5, 1.3, 1.15)},
		{"iridium-certus-100", 128, 200, false, asked("128 of 200 octets: the last", flat, "5.6", 0.5, 1.4, 1.2)},
		{"iridium-directip", 100, 400, false, asked("100 of 400 octets: the last", flat, "3.2", 0.5, 1.15, 1.1)},
		{"iridium-directip", 100, 400, true, asked("100 of 400 octets, to the ship: the last", flat, "5.4", 0.5, 1.15, 1.1)},
		{"iridium-directip", 100, 600, false, asked("100 of 600 octets: the last", flat, "2.3", 0.5, 1.15, 1.1)},
		{"iridium-directip", 100, 1000, false, asked("100 of 1,000 octets: the last", flat, "1.6", 0.5, 1.15, 1.1)},
		{"iridium-directip", 100, 1000, true, asked("100 of 1,000 octets, to the ship: the last", flat, "2.5", 0.5, 1.15, 1.1)},
		{"iridium-directip", 100, 2000, false, asked("100 of 2,000 octets: the last", flat, "1.3", 0.5, 1.15, 1.1)},
	} {
		s := Scenario{Link: b.link, Rows: []Row{b.row},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				over, err := Burst(ctx, b.link, seed, b.n, b.octets, b.down)
				return one(over), err
			},
			bounds: func() []float64 { return []float64{burstBound(b.link, b.n, b.octets, b.down)} },
		}
		if b.octets == 200 {
			s.live = func(uint64) (Live, error) { return liveAtOnce(b.link, 1, 1, b.n, b.octets, nil) }
		}
		list = append(list, s)
	}
	return list
}
