package air

import (
	"fmt"
	"slices"
	"time"

	"aldis/internal/lab/sim"
)

// Fleet is the cost and the time of a message from the shore to all ships.
type Fleet struct {
	Took   []time.Duration // until it was at each ship, in ascending order
	Last   []time.Duration // of each message until it was at the last ship, in ascending order
	Octets float64         // on the air, for each receiver and message
}

// ToAll lets the shore send n messages to all ships, of so many octets, one every interval.
func ToAll(ctx Context, link string, seed uint64, ships, n, octets int, every time.Duration) (f Fleet, err error) {
	s, err := newStage(ctx, link, ships+1, seed)
	if err != nil {
		return f, err
	}
	s.until(time.Hour, s.still(time.Minute))
	before := s.octets()
	var to []uint16
	for _, n := range s.Nodes[1:] {
		to = append(to, n.ID)
	}
	var sent []Offered
	for i := range n {
		m := Track(1, Pipe, i, octets)
		s.At(time.Duration(i)*every, func() {
			sent = append(sent, Offered{s.Now, m})
			s.shore.Site.Send(s.World, m, to...)
		})
	}
	all := func() bool {
		return !slices.ContainsFunc(s.Nodes[1:], func(x *sim.Node) bool { return len(x.Site.Got) < n })
	}
	s.until(12*time.Hour, all)
	s.run(time.Minute) // time for acknowledgements
	if s.err != nil {
		return f, s.err
	}
	arrived := map[string]time.Time{} // at the last ship
	for _, x := range s.Nodes[1:] {
		for _, g := range x.Site.Got {
			if data := string(g.Payload.Parts[0].Data); g.At.After(arrived[data]) {
				arrived[data] = g.At
			}
		}
		took, err := Each(x.Site.Got, 1, sent)
		if err != nil {
			return f, err
		}
		f.Took = append(f.Took, took...)
	}
	for _, o := range sent {
		f.Last = append(f.Last, arrived[string(o.Message.Parts[0].Data)].Sub(o.At))
	}
	slices.Sort(f.Took)
	slices.Sort(f.Last)
	f.Octets = float64(s.octets()-before) / float64(n*ships)
	return f, nil
}

// seconds are durations in seconds.
func seconds(list []time.Duration) (s []float64) {
	for _, t := range list {
		s = append(s, t.Seconds())
	}
	return s
}

// octets is how many octets the ships' legs or the channel carried.
func (s *stage) octets() (octets int64) {
	for _, n := range s.Nodes {
		up, down := s.Octets(n)
		octets += up
		if !s.link.Shared && n != s.shore {
			octets += down
		}
		if !s.link.Shared && n == s.shore {
			octets -= up // a wire
		}
	}
	return octets
}

// still returns a function that says whether nothing went on the air for so long.
func (s *stage) still(quiet time.Duration) func() bool {
	last, at := s.octets(), s.Now
	return func() bool {
		if now := s.octets(); now != last {
			last, at = now, s.Now
		}
		return s.Now.Sub(at) >= quiet
	}
}

// fleets are scenarios of messages to all ships.
func fleets() (list []Scenario) {
	for _, link := range []string{"iridium-directip", "hf-2400"} {
		every := 5 * time.Second
		if link == "hf-2400" {
			every = 20 * time.Second
		}
		for _, ships := range []int{1, 3, 7, 15} {
			what := fmt.Sprintf("to %d ships", ships)
			if ships == 1 {
				what = "to 1 ship"
			}
			last := measured(what+": at the last of them, 95 of 100", "s", 0.95)
			if link == "hf-2400" && ships == 15 {
				last = asked(last.What, "s", "1,087", 0.95, 120, 60)
			}
			list = append(list, Scenario{Link: link,
				Rows: []Row{measured(what+": octets for each receiver", "octets", 0.5).in("sites", link, float64(ships+1)), measured(what+": median", "s", 0.5), last},
				play: func(ctx Context, seed uint64) ([][]float64, error) {
					f, err := ToAll(ctx, link, seed, ships, 12, 200, every)
					return [][]float64{{f.Octets}, seconds(f.Took), seconds(f.Last)}, err
				}})
		}
	}
	return list
}

// idles are scenarios of a day in which nobody sends anything to gateways that know each other.
func idles() (list []Scenario) {
	for _, link := range []string{"iridium-directip", "iridium-dialup", "iridium-certus-100"} {
		list = append(list, quietDay(link, 2))
	}
	return list
}

// quietDay is a scenario of sites that know each other and send no messages.
func quietDay(link string, sites int) Scenario {
	return Scenario{Link: link, Rows: []Row{asked(fmt.Sprintf("%d gateways, 24 h: octets", sites), "octets", "0", 1, 0, 0)},
		play: func(ctx Context, seed uint64) ([][]float64, error) {
			s, err := newStage(ctx, link, sites, seed)
			if err != nil {
				return nil, err
			}
			s.until(time.Hour, s.still(time.Minute))
			before := s.octets()
			s.run(24 * time.Hour)
			return one(float64(s.octets() - before)), s.err
		}}
}

// Greeting is how long nodes that start together transmit until all know each other and are quiet.
func Greeting(ctx Context, link string, seed uint64, nodes int) (time.Duration, int64, error) {
	s, err := newStage(ctx, link, nodes, seed)
	if err != nil {
		return 0, 0, err
	}
	const quiet = time.Minute
	s.until(6*time.Hour, s.still(quiet))
	return max(0, s.Now.Sub(sim.Epoch)-quiet), s.octets(), s.err
}

// greeting is a scenario of Greeting.
func greeting(link string, nodes int, quiet, octets Row) Scenario {
	unit := 1.0
	if octets.Unit == "kB" {
		unit = 1000
	}
	return Scenario{Link: link, Rows: []Row{quiet, octets},
		play: func(ctx Context, seed uint64) ([][]float64, error) {
			took, octets, err := Greeting(ctx, link, seed, nodes)
			return one(took.Seconds(), float64(octets)/unit), err
		}}
}
