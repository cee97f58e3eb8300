package air

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// crowd is the local peers of a ship that send to the shore. It records which of their messages arrived, and when.
type crowd struct {
	*stage
	sent map[uint16]map[int]time.Time
}

// talk lets a local peer send one message of 200 octets every interval for the time lasting.
func (c *crowd) talk(who uint16, pipe string, precedence site.Precedence, every, lasting time.Duration) {
	if c.sent[who] == nil {
		c.sent[who] = map[int]time.Time{}
	}
	for i := range int(lasting / every) {
		c.At(time.Duration(i)*every, func() {
			n := len(c.sent[who])
			c.sent[who][n] = c.Now
			m := Track(who, pipe, n, 200)
			m.Precedence = precedence
			c.ship.Site.Send(c.World, m, c.shore.ID)
		})
	}
}

// arrived returns the times that the messages of a local peer took, and how many arrived by a deadline.
func (c *crowd) arrived(who uint16, until time.Time) (took []time.Duration, n int) {
	for _, g := range c.shore.Site.Got {
		var from uint16
		var i int
		if _, err := fmt.Sscanf(string(g.Payload.Parts[0].Data), "%d;%d;", &from, &i); err != nil || from != who {
			continue
		}
		took = append(took, g.At.Sub(c.sent[who][i]))
		if !g.At.After(until) {
			n++
		}
	}
	slices.Sort(took)
	return took, n
}

const otherPipe = "uuid-59616261646162614E504720503250337B1F8E4DA2F95C6D9E3F2A4B5C6D7E8F04"

// Quiet is the median of a quiet local peer's messages, over the limit, while another one sends three times as much as the link carries.
// same: both are pipes of one peer.
func Quiet(ctx Context, link string, seed uint64, lasting time.Duration, same bool) (float64, error) {
	s, err := newStage(ctx, link, 2, seed)
	if err != nil {
		return 0, err
	}
	c := crowd{s, map[uint16]map[int]time.Time{}}
	const chatty, quiet = 7, 8
	c.talk(chatty, otherPipe, site.Routine, profile.Airtime(200, s.link.Up.RateBps)/3, lasting)
	c.At(20*time.Second, func() {
		for i := range int(lasting/(10*time.Second)) - 4 {
			c.At(time.Duration(i)*10*time.Second, func() {
				if c.sent[quiet] == nil {
					c.sent[quiet] = map[int]time.Time{}
				}
				c.sent[quiet][i] = c.Now
				m := Track(quiet, Pipe, i, 200)
				if same {
					m.From = Peer(chatty)
				}
				s.ship.Site.Send(c.World, m, s.shore.ID)
			})
		}
	})
	c.run(lasting)
	if c.err != nil {
		return 0, c.err
	}
	took, _ := c.arrived(quiet, c.Now)
	for missing := len(c.sent[quiet]) - len(took); missing > 0; missing-- {
		took = append(took, lasting) // at least so long; the median counts all messages sent
	}
	return at(took, 0.5).Seconds() / s.upLimit(200).Seconds(), nil
}

// Overload is the result of a load of three times what the link carries.
type Overload struct {
	Flash   []time.Duration // of the flash messages that arrived, in ascending order
	Never   int             // flash messages that did not
	Evenly  float64         // the routine peer that got the smallest share, over the one that got the largest
	Goodput float64         // share of the rate during the load
	Waiting float64         // the most octets that waited, over the bound
	Missing int             // messages neither delivered nor counted as dropped
	Dropped int             // given up or refused, as counted
	Told    int             // lines of the log about dropped messages
}

// Overloaded offers a link three times what it carries, in equal parts from three local peers, and a flash message of a fourth peer every ten
// seconds. The queue for the shore is bounded so that it is full after a third of the time. look is called before the load and at its end; it
// may be nil.
func Overloaded(ctx Context, link string, seed uint64, lasting time.Duration, look func()) (o Overload, err error) {
	var most int
	s, err := newStage(ctx, link, 2, seed, func(c *sim.Config) {
		most = int(lasting.Seconds()/3*2) * c.Profile.Up.RateBps / 8
		c.Configure = func(_ *sim.Node, g *sim.Setup) { g.MaxWaiting = most }
	})
	if err != nil {
		return o, err
	}
	if look == nil {
		look = func() {}
	}
	look()
	c := crowd{s, map[uint16]map[int]time.Time{}}
	every := profile.Airtime(200, s.link.Up.RateBps)
	for who := uint16(7); who < 10; who++ {
		c.talk(who, otherPipe, site.Routine, every, lasting)
	}
	c.talk(10, Pipe, site.Flash, 10*time.Second, lasting-time.Minute)
	for range int(lasting / time.Second) {
		s.run(time.Second)
		o.Waiting = max(o.Waiting, float64(s.ship.GW.Status(s.Now).Peers[0].WaitingOctets)/float64(most))
	}
	end := s.Now
	look()
	s.until(4*lasting, func() bool { p := s.ship.GW.Status(s.Now).Peers[0]; return p.Waiting+p.UnderWay == 0 })
	if s.err != nil {
		return o, s.err
	}
	offered, arrived := 0, 0
	var shares []int
	for who := uint16(7); who <= 10; who++ {
		took, n := c.arrived(who, end)
		offered += len(c.sent[who])
		arrived += len(took)
		o.Goodput += float64(n*200*8) / lasting.Seconds() / float64(s.link.Up.RateBps)
		if who < 10 {
			shares = append(shares, n)
		} else {
			o.Flash, o.Never = took, len(c.sent[who])-len(took)
		}
	}
	o.Evenly = float64(slices.Min(shares)) / float64(slices.Max(shares))
	p := s.ship.GW.Status(s.Now).Peers[0]
	o.Dropped = int(p.Refused + p.Cancelled + p.Expired)
	o.Missing = offered - arrived - o.Dropped
	for _, n := range s.Notes {
		if strings.Contains(n, "cancelled") || strings.Contains(n, "refused") {
			o.Told++
		}
	}
	return o, nil
}

// crowds are scenarios of several local peers that want more than the link has.
func crowds() (list []Scenario) {
	const link, lasting = "iridium-directip", 10 * time.Minute
	exactly := func(what, unit string, want float64) Row { return asked(what, unit, "", 1, want, want) }
	list = append(list, Scenario{Link: link,
		Rows: []Row{
			asked("flash messages beside 300 %: 95 of 100", flat, "", 0.95, 2, 1.5),
			asked("flash messages beside 300 %: the slowest", flat, "490 of 4,302 in time", 1, 2, 1.5),
			exactly("flash messages that never came", "", 0),
			asked("routine: who got least over who got most", "", "", 0.5, 0.9, 0.97),
			asked("goodput at 300 %", ofRate, "27", 0.5, 75, 80),
			asked("the most that waits, over what may", "", "", 1, 1, 0.99),
			exactly("messages neither delivered nor counted", "", 0),
			measured("messages given up or refused, as counted", "", 0.5),
			measured("lines of the log about them", "", 0.5),
		},
		play: func(ctx Context, seed uint64) ([][]float64, error) {
			o, err := Overloaded(ctx, link, seed, lasting, nil)
			if err != nil {
				return nil, err
			}
			p, err := profile.Load(link, nil)
			var flash []float64
			for _, t := range o.Flash {
				flash = append(flash, t.Seconds()/Limit(p, 200).Seconds())
			}
			s := one(0, 0, float64(o.Never), o.Evenly, 100*o.Goodput, o.Waiting, float64(o.Missing), float64(o.Dropped), float64(o.Told))
			s[0], s[1] = flash, flash
			return s, err
		},
	})
	for _, same := range []bool{false, true} {
		what := "a quiet peer beside one at 300 %: its median"
		if same {
			what = "a quiet pipe of a peer that sends 300 % over another: its median"
		}
		list = append(list, Scenario{Link: link, Rows: []Row{asked(what, flat, "2,334 s", 0.5, 3, 1.5)},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				over, err := Quiet(ctx, link, seed, lasting, same)
				return one(over), err
			}})
	}
	return list
}
