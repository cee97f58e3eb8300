package air

import (
	"fmt"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// Singles offers messages of 200 random octets, far enough apart that each is alone. It returns the time that each took, in ascending
// order, and the octets of the ship's leg.
func Singles(ctx Context, link string, seed uint64, n int, every time.Duration, change ...func(*sim.Config)) (took []time.Duration, octets int64, err error) {
	s, err := newStage(ctx, link, 2, seed, change...)
	if err != nil {
		return nil, 0, err
	}
	before, _ := s.Octets(s.ship)
	s.offer(n, every, tracks(200))
	s.run(time.Duration(n)*every + 5*time.Minute)
	if took, err = s.settle(time.Hour); err != nil {
		return nil, 0, err
	}
	after, _ := s.Octets(s.ship)
	return took, after - before, nil
}

const (
	outageEvery  = 5 * time.Second
	outageBefore = time.Minute // and so long afterwards
)

// outagePosts is how many messages each side sends around an outage.
func outagePosts(lasting time.Duration) int {
	return int((outageBefore + lasting + outageBefore) / outageEvery)
}

// outageShift is by how much the seed shifts the messages of a node against the outage.
func outageShift(id uint16, seed uint64) time.Duration {
	tenths := seed % 10
	if id == 1 {
		tenths = (3*seed + 4) % 10
	}
	return time.Duration(tenths) * outageEvery / 10
}

// Outage takes the ship off the air for the time lasting while both sides send a message every five seconds. It returns how long after
// the end of the outage the last message sent during it was there.
func Outage(ctx Context, link string, seed uint64, lasting time.Duration, what func(from uint16, i int) site.Message) (time.Duration, error) {
	s, err := newStage(ctx, link, 2, seed)
	if err != nil {
		return 0, err
	}
	n := outagePosts(lasting)
	sent := map[uint16][]Offered{}
	for i := range n {
		for _, x := range [][2]*sim.Node{{s.ship, s.shore}, {s.shore, s.ship}} {
			from, to := x[0], x[1]
			s.At(time.Duration(i)*outageEvery+outageShift(from.ID, seed), func() {
				m := what(from.ID, i)
				sent[from.ID] = append(sent[from.ID], Offered{s.Now, m})
				from.Site.Send(s.World, m, to.ID)
			})
		}
	}
	s.run(outageBefore)
	s.World.Outage(s.ship, lasting)
	s.run(lasting)
	end := s.Now
	s.until(time.Hour, func() bool { return len(s.shore.Site.Got) >= n && len(s.ship.Site.Got) >= n })
	if s.err != nil {
		return 0, s.err
	}
	var last time.Time // arrival of messages sent during the outage
	for _, to := range []*sim.Node{s.shore, s.ship} {
		from := s.ship.ID + s.shore.ID - to.ID
		if _, err := Once(to.Site.Got, from, sent[from]); err != nil {
			return 0, err
		}
		for i, o := range sent[from] {
			if g := to.Site.Got[i]; !o.At.After(end) && g.At.After(last) {
				last = g.At
			}
		}
	}
	return last.Sub(end), nil
}

// losses are scenarios of single messages on a lossy link.
func losses() (list []Scenario) {
	const n, every = 100, 20 * time.Second
	shared := func(seconds []time.Duration, limit time.Duration) (over []float64) {
		for _, t := range seconds {
			over = append(over, t.Seconds()/limit.Seconds())
		}
		return over
	}
	for _, l := range []struct {
		link string
		loss float64
		copy time.Duration
		p99  Row
	}{
		{"iridium-dialup", 1, 300 * time.Millisecond, asked("1 % loss, copies on idle air: 99 of 100", flat, "3.2", 0.99, 1.3, 1.2)},
		{"iridium-dialup", 1, 0, asked("1 % loss, idle air not free: 99 of 100", flat, "3.2", 0.99, 2.2, 1.8)},
		{"iridium-directip", 0, 0, measured("no loss: 99 of 100", flat, 0.99)},
		{"iridium-directip", 1, 0, asked("1 % loss: 99 of 100", flat, "3.2", 0.99, 2.2, 1.8)},
		{"iridium-directip", 5, 0, measured("5 % loss: 99 of 100", flat, 0.99)},
		{"iridium-directip", 10, 0, measured("10 % loss: 99 of 100", flat, 0.99)},
		{"iridium-directip", 20, 0, measured("20 % loss: 99 of 100", flat, 0.99)},
	} {
		change := func(c *sim.Config) {
			c.Profile.Up.LossPct, c.Profile.Down.LossPct, c.Profile.CopyAfter = l.loss, l.loss, l.copy
		}
		s := Scenario{Link: l.link, Rows: []Row{l.p99,
			measured(sharesOf(l.loss)+": median", flat, 0.5), measured(sharesOf(l.loss)+": 95 of 100", flat, 0.95), measured(sharesOf(l.loss)+": the slowest", flat, 1)},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				took, _, err := Singles(ctx, l.link, seed, n, every, change)
				if err != nil {
					return nil, err
				}
				p, err := profile.Load(l.link, nil)
				over := shared(took, Limit(p, 200))
				return [][]float64{over, over, over, over}, err
			}}
		if l.loss > 0 {
			s.bounds = func() []float64 {
				p, err := profile.Load(l.link, nil)
				if err != nil {
					return nil
				}
				c := sim.Config{Profile: p}
				change(&c)
				if l.copy > 0 { // a sender that repeats on idle air may hide every loss, but no jitter
					c.Profile.Up.LossPct = 0
				}
				return []float64{singleBound(c.Profile, 200, 0.99)}
			}
		}
		if l.link == "iridium-directip" {
			for i, curve := range []string{"99 of 100", "median", "95 of 100", "the slowest"} {
				s.Rows[i] = s.Rows[i].in("loss", curve, l.loss)
			}
		}
		list = append(list, s)
	}
	return list
}

func sharesOf(loss float64) string {
	if loss == 0 {
		return "no loss"
	}
	return fmt.Sprintf("%.0f %% loss", loss)
}

// outages are scenarios in which both sides send every five seconds, before, during and after an outage.
func outages() (list []Scenario) {
	for _, link := range []string{"iridium-directip", "iridium-dialup", "iridium-certus-100"} {
		for _, o := range []struct {
			lasting time.Duration
			before  string
		}{{time.Minute, "17.6 to 28.4 s"}, {5 * time.Minute, ""}} {
			list = append(list, Scenario{Link: link,
				Rows: []Row{
					asked(fmt.Sprintf("%.0f s, reports: the last, median", o.lasting.Seconds()), "s", o.before, 0.5, 12, 6),
					measured(fmt.Sprintf("%.0f s, reports: the last, slowest of all seeds", o.lasting.Seconds()), "s", 1),
					measured(fmt.Sprintf("%.0f s, 200 random octets each: the last, median", o.lasting.Seconds()), "s", 0.5),
				},
				play: func(ctx Context, seed uint64) ([][]float64, error) {
					text, err := Outage(ctx, link, seed, o.lasting, func(from uint16, i int) site.Message { return Line(from, Pipe, i) })
					if err != nil {
						return nil, err
					}
					random, err := Outage(ctx, link, seed, o.lasting, func(from uint16, i int) site.Message { return Track(from, Pipe, i, 200) })
					return one(text.Seconds(), text.Seconds(), random.Seconds()), err
				},
				live: func(seed uint64) (Live, error) { return liveOutage(link, seed, o.lasting) },
				bounds: func() []float64 {
					p, err := profile.Load(link, nil)
					if err != nil {
						return nil
					}
					octets := float64(o.lasting/(5*time.Second)+1) * 200 / filled(p, 200)
					return []float64{0, 0, (profile.Airtime(int(octets), p.Up.RateBps) + p.Up.Delay + p.Up.Jitter/2).Seconds()}
				},
			})
		}
	}
	return list
}
