package air

import (
	"fmt"
	"slices"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// Bulk sends one message of so many random octets from the ship to the shore. It returns the time until the message was there, over the time
// that its octets need. loss is the loss of the link in percent, both ways.
func Bulk(ctx Context, link string, seed uint64, octets int, loss float64) (float64, error) {
	s, err := newStage(ctx, link, 2, seed, lossy(loss))
	if err != nil {
		return 0, err
	}
	s.offer(1, 0, tracks(octets))
	took, err := s.settle(12 * time.Hour)
	if err != nil {
		return 0, err
	}
	return took[0].Seconds() / s.upLimit(octets).Seconds(), nil
}

func lossy(pct float64) func(*sim.Config) {
	return func(c *sim.Config) { c.Profile.Up.LossPct, c.Profile.Down.LossPct = pct, pct }
}

// Beside sends one long message, and meanwhile short ones of 200 random octets from another local peer, one every interval. It returns the
// time of the long one over the time that all octets sent until then need, and the median of the short ones over their limit.
func Beside(ctx Context, link string, seed uint64, octets int, every time.Duration) (long, short float64, err error) {
	const small = 200
	s, err := newStage(ctx, link, 2, seed)
	if err != nil {
		return 0, 0, err
	}
	c := crowd{s, map[uint16]map[int]time.Time{}}
	big := Track(2, Pipe, 0, octets)
	var began time.Time
	s.At(time.Second, func() {
		began = s.Now
		s.ship.Site.Send(s.World, big, s.shore.ID)
	})
	lasting := profile.Airtime(octets, s.link.Up.RateBps)
	c.talk(3, Pipe, 0, every, lasting)
	n := int(lasting / every)
	s.until(12*time.Hour, func() bool { return len(s.shore.Site.Got) > n })
	if s.err != nil {
		return 0, 0, s.err
	}
	var there time.Time
	for _, g := range s.shore.Site.Got {
		if len(g.Payload.Parts[0].Data) == octets {
			there = g.At
		}
	}
	took, arrived := c.arrived(3, s.Now)
	if there.IsZero() || arrived != n {
		return 0, 0, fmt.Errorf("%d of %d short messages arrived, the long one %v", arrived, n, there)
	}
	slices.Sort(took)
	meanwhile := min(n, int(there.Sub(began)/every))
	return there.Sub(began).Seconds() / s.upLimit(octets+meanwhile*small).Seconds(), at(took, 0.5).Seconds() / s.upLimit(small).Seconds(), nil
}

// bulkBound is the time of one message whose sender knows at once which datagrams were lost, over its limit.
func bulkBound(link string, octets int, loss float64) float64 {
	p, err := profile.Load(link, nil)
	if err != nil {
		return 0
	}
	p.Up.LossPct = loss
	delay := p.Up.Delay + p.Up.Jitter/2
	least := profile.Airtime(octets, p.Up.RateBps).Seconds() / (filled(p, octets) * (1 - loss/100))
	return (least + delay.Seconds()) / Limit(p, octets).Seconds()
}

// bulks are scenarios of one long message, alone and together with short ones.
func bulks() (list []Scenario) {
	for _, link := range []string{"iridium-directip", "iridium-dialup", "iridium-certus-100"} {
		for _, octets := range []int{20_000, 100_000, 1_000_000} {
			for _, l := range []struct{ loss, must, aim float64 }{{0, 1.12, 1.06}, {1, 1.15, 1.08}, {5, 1.22, 1.15}} {
				bulk := Scenario{Link: link,
					Rows: []Row{asked(fmt.Sprintf("%d kB alone, %s", octets/1000, sharesOf(l.loss)), flat, "1.2 to 1.3", 0.5, l.must, l.aim)},
					play: func(ctx Context, seed uint64) ([][]float64, error) {
						over, err := Bulk(ctx, link, seed, octets, l.loss)
						return one(over), err
					},
					bounds: func() []float64 { return []float64{bulkBound(link, octets, l.loss)} },
				}
				if octets == 20_000 {
					bulk.live = func(uint64) (Live, error) {
						return liveAtOnce(link, 1, 1, 1, octets, func(p *profile.Profile) { p.Up.LossPct, p.Down.LossPct = l.loss, l.loss })
					}
				}
				list = append(list, bulk)
			}
		}
		every := 5 * time.Second
		if link == "iridium-certus-100" {
			every = time.Second
		}
		list = append(list, Scenario{Link: link,
			Rows: []Row{asked(fmt.Sprintf("100 kB beside 200 octets every %.0f s: all of it", every.Seconds()), flat, "", 0.5, 1.2, 1.15),
				measured(fmt.Sprintf("100 kB beside 200 octets every %.0f s: the median of those", every.Seconds()), flat, 0.5)},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				long, short, err := Beside(ctx, link, seed, 100_000, every)
				return one(long, short), err
			}})
	}
	return list
}
