package air

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
)

// ByRoster lets the rosters of a world name all nodes on its first bearer, except the last ones, which come later. No configuration names a
// peer. On a star only the shore has an address.
func ByRoster(later int) func(*sim.Config) {
	return func(c *sim.Config) {
		c.Roster, c.Later = true, later
		c.Ways = func(n *sim.Node) (ways []roster.Way, relay bool) {
			w := roster.Way{}
			if n.ID == 1 && !c.Group {
				w.Addr = n.Addr()
			}
			ways = []roster.Way{w}
			if c.Second != nil {
				ways = append(ways, roster.Way{Bearer: c.Second.Name})
			}
			return ways, false
		}
		c.Configure = func(_ *sim.Node, cfg *sim.Setup) {
			cfg.Peers = nil
			for i := range cfg.More {
				cfg.More[i].Peers = map[uint16]netip.AddrPort{}
			}
		}
	}
}

// joins starts a node with the next roster, which names these nodes.
func joins(s *stage, old *roster.Roster, n *sim.Node, nodes ...*sim.Node) *roster.Roster {
	r := s.Roster(old, time.Time{}, nodes...)
	s.err = errors.Join(s.err, s.Begin(n, r))
	return r
}

// met returns an error unless so many peers of a node answer.
func met(s *stage, n *sim.Node, peers int) error {
	up := 0
	for _, p := range n.GW.Status(s.Now).Peers {
		if p.Link == "up" {
			up++
		}
	}
	if up != peers {
		return fmt.Errorf("%d peers of %s answer, not %d", up, n.Name, peers)
	}
	return nil
}

// between returns how long the messages sent between two times took, at all receivers; lost counts those that did not come.
func between(nodes []*sim.Node, from uint16, sent []Offered, begin, end time.Time) (list []time.Duration, lost int) {
	for _, n := range nodes {
		at := map[string]time.Time{}
		for _, g := range n.Site.Got {
			if key := string(g.Payload.Parts[0].Data); g.From == from {
				if !at[key].IsZero() {
					lost += 1 << 16 // it came twice
				}
				at[key] = g.At
			}
		}
		for _, o := range sent {
			if o.At.Before(begin) || !o.At.Before(end) {
				continue
			}
			if came := at[string(o.Message.Parts[0].Data)]; came.IsZero() {
				lost++
			} else {
				list = append(list, came.Sub(o.At))
			}
		}
	}
	slices.Sort(list)
	return list, lost
}

// Joined is the cost of a 17th gateway that joins 16 on hf-2400.
type Joined struct {
	Alone, Beside float64 // IP octets: without other traffic, and during a message of 200 octets to all every 20 s
	LatePct       float64 // of these messages: later than the 95th percentile before
}

// Join plays the case of Joined. Nobody restarts the other nodes or configures them by hand. It is an error if a message is lost or comes
// twice.
func Join(ctx Context, seed uint64) (j Joined, err error) {
	s, err := newNet(ctx, "hf-2400", 17, seed, ByRoster(1), overPMul)
	if err != nil {
		return j, err
	}
	s.run(20 * time.Minute)
	idle := s.octets()
	joins(s, s.First(), s.Nodes[16], s.Nodes...)
	s.run(20 * time.Minute)
	j.Alone = float64(s.octets() - idle)
	for _, n := range s.Nodes {
		err = errors.Join(err, met(s, n, 16))
	}
	s.Nodes[16].Site.Send(s.World, Track(17, Pipe, 1, 200), 1, 5)
	s.Nodes[4].Site.Send(s.World, Track(5, Pipe, 1, 200), 17)
	s.run(5 * time.Minute)
	if len(s.Nodes[0].Site.Got) != 1 || len(s.Nodes[4].Site.Got) != 1 || len(s.Nodes[16].Site.Got) != 1 {
		err = errors.Join(err, errors.New("it is not heard, or not told"))
	}
	for _, comes := range []bool{false, true} {
		octets, late, err2 := joinBeside(ctx, seed+100, comes)
		if err = errors.Join(err, err2); comes {
			j.Beside, j.LatePct = octets, late
		} else if octets > 0 {
			err = errors.Join(err, fmt.Errorf("%v octets are counted without it", octets))
		}
	}
	return j, errors.Join(err, s.err)
}

func overPMul(c *sim.Config) { c.Profile.Transport, c.Group = profile.PMul, true }

// joinBeside is the second half of Join, or with comes false the same without the 17th gateway.
func joinBeside(ctx Context, seed uint64, comes bool) (octets, latePct float64, err error) {
	var s *stage
	counts := false
	s, err = newNet(ctx, "hf-2400", 17, seed, ByRoster(1), overPMul, func(c *sim.Config) {
		c.Committed = func(n *sim.Node, out api.Output) {
			for _, d := range out.Datagrams { // introductions, greetings and HELLOs, and all datagrams from it or for it alone
				if counts && (n.ID == 17 || d.Addr == s.Nodes[16].Addr() || d.Data[0]&0x10 != 0 && len(d.Data) < 250) {
					octets += float64(len(d.Data) + profile.IPUDPOctets)
				}
			}
		}
	})
	if err != nil {
		return 0, 0, err
	}
	s.run(20 * time.Minute)
	var to []uint16
	for id := uint16(2); id <= 16; id++ {
		to = append(to, id)
	}
	begin := s.Now
	sent := say(s, s.shore, to, 150, 200, 20*time.Second)
	s.run(30 * time.Minute)
	if counts = true; comes {
		joins(s, s.First(), s.Nodes[16], s.Nodes...)
	}
	joined := s.Now
	s.run(20 * time.Minute)
	counts = false
	s.run(20 * time.Minute)
	was, lost := between(s.Nodes[1:16], 1, *sent, begin, joined)
	is, more := between(s.Nodes[1:16], 1, *sent, joined, joined.Add(19*time.Minute))
	if s.err != nil || lost+more > 0 {
		return 0, 0, errors.Join(s.err, fmt.Errorf("%d messages are lost or came twice", lost+more))
	}
	late, _ := slices.BinarySearch(is, was[len(was)*95/100]+1)
	if comes {
		err = met(s, s.Nodes[16], 16)
	}
	return octets, 100 * float64(len(is)-late) / float64(len(is)), err
}

// BackAgain is the cost of a member's return after 30 days, until its first message is there.
type BackAgain struct {
	From, To int     // datagrams from it and to it, the message included
	Octets   float64 // IP octets of ten minutes
}

// Away takes a member off the air for 30 days while three nodes join and one is revoked. Nobody is restarted.
func Away(ctx Context, seed uint64) (b BackAgain, err error) {
	counts := map[uint16]int{}
	var s *stage
	s, err = newNet(ctx, "iridium-directip", 7, seed, ByRoster(3), func(c *sim.Config) {
		c.Ashore = false
		for _, d := range []*profile.Direction{&c.Profile.Up, &c.Profile.Down, &c.Wire.Up, &c.Wire.Down} {
			d.LossPct, d.Fades = 0, profile.Fades{}
		}
		c.Committed = func(n *sim.Node, out api.Output) {
			for _, d := range out.Datagrams {
				if s != nil && (n.ID == 4 || n.ID == 1 && d.Addr == s.Nodes[3].Addr()) {
					counts[n.ID]++
					b.Octets += float64(len(d.Data) + profile.IPUDPOctets)
				}
			}
		}
	})
	if err != nil {
		return b, err
	}
	hq, away := s.Nodes[0], s.Nodes[3]
	s.run(10 * time.Minute)
	s.Kill(away, 30*24*time.Hour)
	r, nodes := s.First(), slices.Clone(s.Nodes[:4])
	for _, n := range s.Nodes[4:] {
		nodes = append(nodes, n)
		s.run(5 * 24 * time.Hour)
		r = joins(s, r, n, nodes...)
		s.run(time.Hour)
		err = errors.Join(err, met(s, n, 1))
	}
	r = s.Roster(r, time.Time{}, slices.Delete(nodes, 2, 3)...)
	s.Give(hq, gateway.NewRoster{Roster: r})
	s.run(30*24*time.Hour - s.Now.Sub(sim.Epoch) + 10*time.Minute - time.Second)
	clear(counts)
	b.Octets = 0
	away.Site.Send(s.World, Track(4, Pipe, 1, 200), 1)
	for i := 0; i < 1200 && len(hq.Site.Got) == 0; i++ {
		s.run(100 * time.Millisecond)
	}
	b.From, b.To = counts[4], counts[1]
	s.run(10 * time.Minute)
	if len(hq.Site.Got) != 1 || away.GW.Status(s.Now).Roster.Serial != r.Serial {
		err = errors.Join(err, errors.New("its message or its roster is missing"))
	}
	return b, errors.Join(err, met(s, hq, 5), s.err)
}

// joining are scenarios of nets whose members change.
func joining() []Scenario {
	const what, back = "a 17th joins 16: ", "a member back after 30 days, three joined, one revoked: "
	return []Scenario{
		{Link: "hf-2400", Rows: []Row{
			asked(what+"octets", "octets", "16 edits, 16 restarts", 0.5, 4000, 2500),
			asked(what+"octets beside a message to all every 20 s", "octets", "", 0.5, 4000, 2500),
			asked(what+"of these messages, later than the 95th percentile before, %", "%", "", 0.5, 5, 5)},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				j, err := Join(ctx, seed)
				return one(j.Alone, j.Beside, j.LatePct), err
			}},
		{Link: "iridium-directip", Rows: []Row{
			asked(back+"datagrams from it until its first message is there, that included", "datagrams", "a restart elsewhere", 0.5, 3, 3),
			asked(back+"datagrams to it until then", "datagrams", "", 0.5, 2, 2),
			asked(back+"octets of ten minutes", "octets", "", 0.5, 2000, 2000)},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				b, err := Away(ctx, seed)
				return one(float64(b.From), float64(b.To), b.Octets), err
			}},
	}
}
