package air

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// through lets the nodes for which relays is true pass on messages for others. Nodes reach each other only by the nodes that via returns;
// nil: directly.
func through(relays func(id uint16) bool, via func(id, peer uint16) []uint16) func(*sim.Config) {
	return func(c *sim.Config) {
		c.Roster = true
		c.Configure = func(n *sim.Node, g *sim.Setup) {
			g.Relay = relays(n.ID)
			for i := range g.Peers {
				if p := &g.Peers[i]; via(n.ID, p.ID) != nil {
					p.Addr, p.Via = netip.AddrPort{}, via(n.ID, p.ID)
				}
			}
		}
	}
}

func anyNode(uint16) bool { return true }

// Chain is nodes that each hear their neighbours alone, if the Tap is Neighbours. All pass on messages for others.
func Chain(c *sim.Config) {
	through(anyNode, func(id, peer uint16) []uint16 {
		switch d := int(peer) - int(id); {
		case d > 1:
			return []uint16{id + 1}
		case d < -1:
			return []uint16{id - 1}
		}
		return nil
	})(c)
	c.Group = true
}

// Neighbours is a Tap by which nodes hear only those next to them.
func Neighbours(from, to *sim.Node, data []byte) [][]byte {
	if d := int(from.ID) - int(to.ID); d > 1 || d < -1 {
		return nil
	}
	return [][]byte{data}
}

// Star is terminals that hear the shore alone, which passes on their messages to each other.
func Star(c *sim.Config) {
	through(func(id uint16) bool { return id == 1 }, func(id, peer uint16) []uint16 {
		if id != 1 && peer != 1 {
			return []uint16{1}
		}
		return nil
	})(c)
}

// Ring is nodes that all hear each other, each named as relay for every other.
func Ring(c *sim.Config) {
	c.Roster = true
	c.Configure = func(_ *sim.Node, g *sim.Setup) {
		g.Relay = true
		for i := range g.Peers {
			for _, other := range g.Peers {
				if other.ID != g.Peers[i].ID {
					g.Peers[i].Via = append(g.Peers[i].Via, other.ID)
				}
			}
		}
	}
}

// say lets a node send n messages to others, one every interval from a second on, and returns the messages that it has sent so far.
func say(s *stage, from *sim.Node, to []uint16, n, octets int, every time.Duration) *[]Offered {
	sent := &[]Offered{}
	for i := range n {
		m := Track(from.ID, Pipe, i, octets)
		s.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, Offered{s.Now, m})
			from.Site.Send(s.World, m, to...)
		})
	}
	return sent
}

// ended returns an error unless a node counts so many messages for another as delivered, and none in another final state.
func ended(s *stage, n *sim.Node, to uint16, messages int) error {
	for _, p := range n.GW.Status(s.Now).Peers {
		if p.ID == to && (p.Delivered != uint64(messages) || p.Expired+p.Cancelled+p.Undeliverable > 0) {
			return fmt.Errorf("%s counts %d messages for %d as delivered, %d expired, %d cancelled, %d undeliverable", n.Name, p.Delivered, to, p.Expired, p.Cancelled, p.Undeliverable)
		}
	}
	return nil
}

// onceEnded is Once for the messages from one node to another; the origin must also hold one final state for each.
func onceEnded(s *stage, at, from *sim.Node, sent []Offered) ([]time.Duration, error) {
	took, err := Once(at.Site.Got, from.ID, sent)
	return took, errors.Join(err, ended(s, from, at.ID, len(sent)), s.err)
}

// ChainOfFour sends 200 messages each way through a chain of four on HF whose second node dies ten times, and returns how long they took. The
// losses are those of the profile, or lossPct. It is an error if a message does not arrive exactly once, in order, with one state.
func ChainOfFour(ctx Context, seed uint64, lossPct float64) (took []float64, err error) {
	s, err := newNet(ctx, "hf-2400", 4, seed, Chain, func(c *sim.Config) {
		if lossPct > 0 {
			c.Profile.Up.LossPct, c.Profile.Down.LossPct = lossPct, lossPct
		}
	})
	if err != nil {
		return nil, err
	}
	s.Tap = Neighbours
	a, d := s.Nodes[0], s.Nodes[3]
	there, back := say(s, a, []uint16{4}, 200, 200, 30*time.Second), say(s, d, []uint16{1}, 200, 200, 30*time.Second)
	for i := range 10 {
		s.At(time.Duration(5+10*i)*time.Minute, func() { s.Kill(s.Nodes[1], 20*time.Second) })
	}
	s.run(5 * time.Hour)
	x, err := onceEnded(s, d, a, *there)
	y, err2 := onceEnded(s, a, d, *back)
	return seconds(append(x, y...)), errors.Join(err, err2)
}

// HopCost is the octets of 200 messages each way between the first and the last of three nodes, over the octets of as many between
// neighbours. way names the three by their place in a world with that change.
func HopCost(ctx Context, link string, change func(*sim.Config), way [3]int, seed uint64, size int) (float64, error) {
	play := func(ways ...[2]int) (octets float64, err error) {
		s, err := newNet(ctx, link, 3, seed, change, func(c *sim.Config) { c.Ashore = false })
		if err != nil {
			return 0, err
		}
		if way[0] == 0 {
			s.Tap = Neighbours
		}
		var list []*[]Offered
		for _, w := range ways {
			list = append(list, say(s, s.Nodes[w[0]], []uint16{s.Nodes[w[1]].ID}, 200, size, 30*time.Second))
		}
		s.run(3 * time.Hour)
		if s.err != nil {
			return 0, s.err
		}
		judge := Once
		if s.link.Transport == profile.PMul { // later messages pass one that it has waited for longer than its patience (group.order)
			judge = Each
		}
		for i, w := range ways {
			if _, err := judge(s.Nodes[w[1]].Site.Got, s.Nodes[w[0]].ID, *list[i]); err != nil {
				return 0, err
			}
		}
		return float64(octetsSent(s)), nil
	}
	a, b, c := way[0], way[1], way[2]
	relayed, err := play([2]int{a, c}, [2]int{c, a})
	direct, err2 := play([2]int{a, b}, [2]int{b, a}, [2]int{b, c}, [2]int{c, b})
	return relayed / direct, errors.Join(err, err2)
}

// octetsSent is how many octets all nodes count as sent.
func octetsSent(s *stage) (octets int64) {
	for _, n := range s.Nodes {
		for _, row := range n.GW.Status(s.Now).Ledger {
			if row.Direction == "sent" {
				octets += int64(row.Octets)
			}
		}
	}
	return octets
}

// Seven is how many octets a message of 200 octets a minute from a ship to seven others, through the shore, costs upwards on the ship's own
// leg.
func Seven(ctx Context, seed uint64) (float64, error) {
	s, err := newNet(ctx, "iridium-directip", 9, seed, Star, func(c *sim.Config) { c.Ashore = false })
	if err != nil {
		return 0, err
	}
	const n = 60
	others := []uint16{3, 4, 5, 6, 7, 8, 9}
	meet := say(s, s.ship, others, 2, 200, 10*time.Minute) // time to learn the flow
	s.run(time.Hour)
	before, _ := s.Octets(s.ship)
	all := say(s, s.ship, others, n, 200, time.Minute)
	s.run(80 * time.Minute)
	after, _ := s.Octets(s.ship)
	for _, id := range others {
		if _, err := onceEnded(s, s.Nodes[id-1], s.ship, append(*meet, *all...)); err != nil {
			return 0, err
		}
	}
	return float64(after-before) / n, s.err
}

// Rings leaves nodes that may all relay for each other idle for an hour, and returns how many octets that took. Then one sends ten messages
// to the others while a leg fails. Five nodes have two bearers.
func Rings(ctx Context, seed uint64, nodes int) (float64, error) {
	const link = "iridium-certus-100"
	change := []func(*sim.Config){Ring}
	if nodes == 5 {
		p, err := profile.Load(link, nil)
		wire, err2 := profile.Load("wire", nil)
		if err := errors.Join(err, err2); err != nil {
			return 0, err
		}
		change = append(change, func(c *sim.Config) { c.Second = &sim.Second{Name: "other", Profile: p, Wire: wire, Price: 2} })
	}
	s, err := newNet(ctx, link, nodes, seed, append(change, func(c *sim.Config) { c.Ashore = false })...)
	if err != nil {
		return 0, err
	}
	idle := func() (octets float64) {
		for hour := range 2 {
			octets = -octets
			for _, n := range s.Nodes {
				for bearer := range nodes / 2 {
					octets += s.on(bearer, n)
				}
			}
			if hour == 0 {
				s.run(time.Hour)
			}
		}
		return octets
	}
	s.run(time.Hour)
	octets := idle()
	to := []uint16{2, 3, 4, 5}[:nodes-1]
	sent := say(s, s.shore, to, 10, 200, time.Minute)
	s.At(3*time.Minute+30*time.Second, func() { s.Cut(0, s.ship, true) })
	s.At(8*time.Minute, func() { s.Cut(0, s.ship, false) })
	s.run(5 * time.Hour)
	for _, id := range to {
		if _, err := Once(s.Nodes[id-1].Site.Got, 1, *sent); err != nil {
			return 0, err
		}
	}
	return octets + idle(), s.err
}

// relayed are scenarios of messages that other gateways pass on.
func relayed() (list []Scenario) {
	const star, certus, hf = "iridium-directip", "iridium-certus-100", "hf-2400"
	figure := func(link string, r Row, play func(ctx Context, seed uint64) (float64, error)) {
		list = append(list, Scenario{Link: link, Rows: []Row{r}, play: func(ctx Context, seed uint64) ([][]float64, error) {
			f, err := play(ctx, seed)
			return one(f), err
		}})
	}
	figure(star, asked("8 ships, 200 octets to the seven others: the origin's own leg, x one copy of 281 octets", "x", "7", 0.5, 1.15, 1.05),
		func(ctx Context, seed uint64) (float64, error) {
			octets, err := Seven(ctx, seed)
			return octets / 281, err
		})
	for _, pct := range []float64{0, 30} {
		what := "a chain of four, 200 messages each way, the second killed ten times"
		if pct > 0 {
			what += fmt.Sprintf(", %.0f %% lost", pct)
		}
		list = append(list, Scenario{Link: hf, Rows: []Row{measured(what+": median", "s", 0.5)}, play: func(ctx Context, seed uint64) ([][]float64, error) {
			took, err := ChainOfFour(ctx, seed, pct)
			return [][]float64{took}, err
		}})
	}
	figure(hf, asked("a chain, 200 octets: a hop over a direct message", "x", "", 0.5, 1.1, 1.1),
		func(ctx Context, seed uint64) (float64, error) {
			return HopCost(ctx, hf, Chain, [3]int{0, 1, 2}, seed, 200)
		})
	const lies = 100_000
	figure("wire", asked("a relay with a valid key lies 100,000 times: taken, or not named", "lies", "", 1, 0, 0), func(ctx Context, seed uint64) (float64, error) { return 0, Lies(ctx, seed, lies) })
	figure(certus, asked("a ring of three: octets of an idle hour", "octets", "", 1, 0, 0), func(ctx Context, seed uint64) (float64, error) { return Rings(ctx, seed, 3) })
	figure("two of "+certus, asked("a full mesh of five: octets of an idle hour", "octets", "", 1, 0, 0), func(ctx Context, seed uint64) (float64, error) { return Rings(ctx, seed, 5) })
	return list
}
