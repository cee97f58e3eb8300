package air

import (
	"errors"
	"fmt"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// newFleet is a stage whose gateways have a second bearer, over a link of another kind. The second bearer is the dearer one, unless dear is
// false.
func newFleet(ctx Context, first, second string, nodes int, seed uint64, dear bool, change ...func(*sim.Config)) (*stage, error) {
	p, err := profile.Load(second, nil)
	if err != nil {
		return nil, err
	}
	wire, err := profile.Load("wire", nil)
	if err != nil {
		return nil, err
	}
	price := 0.5
	if dear {
		price = 2
	}
	return newStage(ctx, first, nodes, seed, append(change, func(c *sim.Config) {
		c.Second = &sim.Second{Name: "second", Profile: p, Wire: wire, Group: p.Shared && p.Transport == profile.PMul, Price: price}
	})...)
}

// on is how many octets a node sent and received on a bearer.
func (s *stage) on(bearer int, n *sim.Node) float64 {
	up, down := s.OctetsOn(bearer, n)
	return float64(up + down)
}

// ledger is how many octets of one kind a node sent or received on a bearer since its start.
func (s *stage) ledger(n *sim.Node, bearer, direction, kind string) (octets float64) {
	if n.GW == nil {
		return 0
	}
	for _, row := range n.GW.Status(s.Now).Ledger {
		if row.Bearer == bearer && row.Direction == direction && row.Kind == kind {
			octets += float64(row.Octets)
		}
	}
	return octets
}

// idleBearer is how many octets a second bearer carries in a day on which the first one carries all messages.
func idleBearer(ctx Context, seed uint64) ([][]float64, error) {
	s, err := newFleet(ctx, "iridium-directip", "hf-2400", 2, seed, true)
	if err != nil {
		return nil, err
	}
	s.offer(48, 30*time.Minute, tracks(200))
	s.run(24 * time.Hour)
	if _, err := s.settle(time.Hour); err != nil {
		return nil, err
	}
	return one(s.on(1, s.ship)), nil
}

// cutAmid cuts the satellite in the middle of 20 kB and kills a gateway at that moment (0 the shore's, 1 the ship's, -1 none). It returns how
// many octets of messages the shore has read in all, and when HF carried its first octet.
func cutAmid(ctx Context, seed uint64, kill int) (read, first float64, err error) {
	const octets, lasting = 20_000, 20 * time.Minute
	s, err := newFleet(ctx, "iridium-directip", "hf-2400", 2, seed, true)
	if err != nil {
		return 0, 0, err
	}
	s.due = 1
	m := Track(2, Pipe, 1, octets)
	s.sent = []Offered{{s.Now, m}}
	s.ship.Site.Send(s.World, m, s.shore.ID)
	s.run(16 * time.Second)
	there := s.ledger(s.shore, "", "received", "payload")
	s.Cut(0, s.ship, true)
	if kill >= 0 {
		s.Kill(s.Nodes[kill], 3*time.Second)
	}
	cut, before := s.Now, s.on(1, s.ship)
	for s.on(1, s.ship) == before && s.Now.Sub(cut) < lasting && s.err == nil {
		s.run(100 * time.Millisecond)
	}
	first = s.Now.Sub(cut).Seconds()
	if _, err := s.settle(lasting); err != nil {
		return 0, 0, err
	}
	s.run(time.Minute) // time for duplicates to come
	if len(s.shore.Site.Got) > 1 {
		return 0, 0, errors.New("it came twice")
	}
	return there + s.ledger(s.shore, "second", "received", "payload"), first, s.err
}

// flapping lets the better bearer go up and down every 30 s for an hour, with 200 octets a second each way. It returns the octets on both
// bearers, over those on the better one alone when it stays up.
func flapping(ctx Context, seed uint64, lasting time.Duration) ([][]float64, error) {
	var octets [2]float64
	for flaps := range octets {
		s, err := newFleet(ctx, "iridium-certus-100", "iridium-certus-100", 2, seed, true, func(c *sim.Config) { c.Configure = plain })
		if err != nil {
			return nil, err
		}
		before := s.on(0, s.ship) + s.on(1, s.ship)
		n := int(lasting / time.Second)
		s.offer(n, time.Second, tracks(200))
		var down []Offered
		for i := range n {
			m := Track(1, Pipe, i, 200)
			s.At(time.Duration(i)*time.Second, func() {
				down = append(down, Offered{s.Now, m})
				s.shore.Site.Send(s.World, m, s.ship.ID)
			})
		}
		for at := time.Duration(0); flaps == 1 && at < lasting; at += time.Minute {
			s.At(at+30*time.Second, func() { s.Cut(0, s.ship, true) })
			s.At(at+time.Minute, func() { s.Cut(0, s.ship, false) })
		}
		s.run(lasting)
		if _, err := s.settle(10 * time.Minute); err != nil {
			return nil, err
		}
		s.run(time.Minute)
		if _, err := Once(s.ship.Site.Got, s.shore.ID, down); err != nil {
			return nil, err
		}
		octets[flaps] = s.on(0, s.ship) + s.on(1, s.ship) - before
	}
	return one(octets[1] / octets[0]), nil
}

// back cuts the cheaper bearer for five minutes while a report goes every five seconds, and returns how long the next report takes after the
// bearer's return.
func back(ctx Context, seed uint64) ([][]float64, error) {
	s, err := newFleet(ctx, "iridium-directip", "hf-2400", 2, seed, true)
	if err != nil {
		return nil, err
	}
	s.offer(180, 5*time.Second, tracks(200))
	s.run(time.Minute)
	s.Cut(0, s.ship, true)
	s.run(5 * time.Minute)
	s.Cut(0, s.ship, false)
	returned, before := s.Now, s.ledger(s.ship, "", "sent", "payload")
	for s.ledger(s.ship, "", "sent", "payload") == before && s.Now.Sub(returned) < 10*time.Minute && s.err == nil {
		s.run(100 * time.Millisecond)
	}
	took := s.Now.Sub(returned).Seconds()
	_, err = s.settle(time.Hour)
	return one(took), err
}

// flashBesideFull fills two bearers, of which the cheaper is the faster one. It returns the median time of a flash over the same on the
// faster bearer alone.
func flashBesideFull(ctx Context, seed uint64) ([][]float64, error) {
	const lasting, every = 10 * time.Minute, 15 * time.Second
	rates := map[string]int{"": 4800, "second": 2400}
	var medians [2]float64
	for both := range medians {
		s, err := newFleet(ctx, "iridium-directip", "iridium-dialup", 2, seed, true)
		if err != nil {
			return nil, err
		}
		if both == 0 {
			s.Cut(1, s.ship, true)
		}
		c := crowd{stage: s, sent: map[uint16]map[int]time.Time{}}
		for k, name := range []string{"", "second"} {
			if name != "" && both == 0 {
				continue
			}
			gap := time.Duration(float64(200*8) / float64(rates[name]) * float64(time.Second))
			for i := range int(lasting / gap) {
				m := Track(uint16(100+k), Pipe, i, 200)
				m.Links = name
				s.At(time.Duration(i)*gap, func() { s.ship.Site.Send(s.World, m, s.shore.ID) })
			}
		}
		c.talk(7, Pipe, site.Flash, every, lasting)
		s.run(lasting + time.Minute)
		took, n := c.arrived(7, s.Now)
		if n < int(lasting/every) || s.err != nil {
			return nil, errors.Join(fmt.Errorf("%d flash messages arrived", n), s.err)
		}
		medians[both] = at(took, 0.5).Seconds()
	}
	return one(medians[1] / medians[0]), nil
}

// away takes a ship off the air for half an hour, in which the shore sends 36,000 messages to another ship. It returns how long the first
// message of the ship takes afterwards, and how many datagrams the ship refuses.
func away(ctx Context, seed uint64) ([][]float64, error) {
	s, err := newStage(ctx, "iridium-certus-100", 3, seed, func(c *sim.Config) { c.Roster = true })
	if err != nil {
		return nil, err
	}
	const n, lasting = 36_000, 30 * time.Minute
	other := s.Nodes[2]
	s.ship.Site.Send(s.World, Track(2, Pipe, 0, 20), s.shore.ID)
	s.shore.Site.Send(s.World, Track(1, Pipe, 0, 20), s.ship.ID)
	s.run(time.Minute)
	s.Outage(s.ship, lasting)
	for i := range n {
		m := Track(1, Pipe, i, 12)
		s.At(time.Duration(i)*lasting/n, func() { s.shore.Site.Send(s.World, m, other.ID) })
	}
	s.run(lasting + time.Second)
	sent, before := s.Now, len(s.shore.Site.Got)
	s.ship.Site.Send(s.World, Track(2, Pipe, 1, 20), s.shore.ID)
	s.until(time.Hour, func() bool { return len(s.shore.Site.Got) > before })
	if s.err != nil || len(s.shore.Site.Got) == before {
		return nil, errors.Join(errors.New("the first message did not arrive"), s.err)
	}
	took := s.shore.Site.Got[before].At.Sub(sent).Seconds()
	s.run(2 * time.Minute)
	return one(took, float64(dropped(s, s.ship))), nil
}

// bearers are scenarios of gateways that have several bearers.
func bearers() (list []Scenario) {
	const both, cut = "iridium-directip and hf-2400", "the first cut amid 20 kB: "
	return []Scenario{
		{Link: both, Rows: []Row{asked("a second bearer that has nothing to carry, 24 h: octets", "octets", "", 1, 0, 0)}, play: idleBearer},
		{Link: both, Rows: []Row{
			asked(cut+"sent again, %", "%", "anew", 0.5, 5, 1),
			asked(cut+"first octet on the second, s", "s", "", 0.5, 15, 5),
			asked(cut+"the recipient's gateway killed then: sent again, %", "%", "", 0.5, 5, 1),
			asked(cut+"the recipient's gateway killed then: first octet on the second, s", "s", "", 0.5, 15, 5),
			asked(cut+"the sender's gateway killed then: sent again, %", "%", "", 0.5, 5, 1),
			asked(cut+"the sender's gateway killed then: first octet on the second, s", "s", "", 0.5, 15, 5)},
			play: func(ctx Context, seed uint64) (samples [][]float64, err error) {
				for _, kill := range []int{-1, 0, 1} {
					read, first, err := cutAmid(ctx, seed, kill)
					if err != nil {
						return nil, err
					}
					samples = append(samples, one(100*max(0, read-20_000)/20_000, first)...)
				}
				return samples, nil
			}},
		{Link: "two of iridium-certus-100", Rows: []Row{asked("the first up and down every 30 s for an hour, 200 octets a second each way: octets, x those of the first alone", "x", "", 0.5, 1.1, 1.03)},
			play: func(ctx Context, seed uint64) ([][]float64, error) { return flapping(ctx, seed, time.Hour) }},
		{Link: both, Rows: []Row{asked("the first back after 5 min: the next report takes it after, s", "s", "", 0.5, 60, 20)}, play: back},
		{Link: "iridium-directip and iridium-dialup", Rows: []Row{asked("both full: a flash, median, x that on the first alone, full", "x", "", 0.5, 1.2, 1.2)}, play: flashBesideFull},
		{Link: "iridium-certus-100", Rows: []Row{
			asked("a ship away for 30 min, 36,000 messages to another: its first message, s", "s", "31", 0.5, 3, 1),
			asked("a ship away for 30 min, 36,000 messages to another: datagrams refused", "datagrams", "7", 1, 0, 0)}, play: away},
	}
}
