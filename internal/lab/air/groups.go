package air

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/rules/mark"
)

// opsGroup is the group of these plays.
const opsGroup = "fleet/ops"

// grouped puts all nodes into a group, and sends the publications of their peers to it.
func grouped(c *sim.Config) {
	before := c.Configure
	c.Roster = true
	c.Configure = func(n *sim.Node, g *sim.Setup) {
		if before != nil {
			before(n, g)
		}
		g.Groups = []gateway.GroupConfig{{Name: opsGroup, Life: 12 * time.Hour}}
		g.Messages = []mark.Rule{{Open: opsGroup}}
	}
}

// losesBursts has a channel lose 30 % of its frames, in bursts of five.
func losesBursts(p *profile.Profile) {
	for _, d := range []*profile.Direction{&p.Up, &p.Down} {
		d.LossPct, d.GEp, d.GEr, d.GEBadPct, d.GEGoodPct = 0, 0.0857, 0.2, 100, 0
	}
}

// members are the nodes on a star, on HF and on VHF. Four nodes are on two of these.
var members = [3][]int{{0, 1, 2, 3, 4, 5}, {4, 5, 6, 7, 8, 9, 10}, {9, 10, 11, 12, 13, 14, 15}}

// threeChannels is sixteen gateways on a star, an HF channel and a VHF channel.
func threeChannels(ctx Context, seed uint64, lossy bool) (*stage, error) {
	var links [3]profile.Profile
	for i, name := range []string{"wire", "hf-2400", "vhf-cnr-16k"} {
		p, err := profile.Load(name, nil)
		if err != nil {
			return nil, err
		}
		links[i] = p
	}
	return newNet(ctx, "iridium-certus-100", 16, seed, func(c *sim.Config) {
		for i := range links[1:] {
			if lossy {
				losesBursts(&links[i+1])
			}
		}
		if lossy {
			losesBursts(&c.Profile)
		}
		c.Second = &sim.Second{Name: "hf", Profile: links[1], Wire: links[0], Group: true, Price: 2}
		c.Third = &sim.Second{Name: "vhf", Profile: links[2], Wire: links[0], Group: true, Price: 1}
		c.Configure = func(n *sim.Node, g *sim.Setup) {
			at := int(n.ID) - 1
			on := func(channel int) bool { return slices.Contains(members[channel], at) }
			for i := range g.Peers { // the configuration names all, and has addresses for those of the star
				if other := int(g.Peers[i].ID) - 1; !on(0) || !slices.Contains(members[0], other) {
					g.Peers[i].Addr = netip.AddrPort{}
				}
			}
			var more []gateway.BearerConfig
			for k, b := range g.More {
				for id := range b.Peers {
					if !on(k+1) || !slices.Contains(members[k+1], int(id)-1) {
						delete(b.Peers, id)
					}
				}
				more = append(more, b)
			}
			g.More = more
		}
	}, grouped)
}

// said is an open message, and how many nodes lacked it after a minute.
type said struct {
	from    *sim.Node
	data    string
	lacking int // nodes that lacked it after a minute
}

// has returns how many copies of a message a node's peers have.
func (m *said) has(n *sim.Node) (times int) {
	for _, g := range n.Site.Got {
		if g.From == m.from.ID && string(g.Payload.Parts[0].Data) == m.data {
			times++
		}
	}
	return times
}

// repaired returns the octets of repair on all bearers, and all octets.
func repaired(s *stage) (repair, all float64) {
	for _, n := range s.Nodes {
		for bearer, link := range s.Links {
			if link != nil {
				up, _ := s.OctetsOn(bearer, n)
				all += float64(up)
			}
		}
		if n.GW == nil {
			continue
		}
		for _, row := range n.GW.Status(s.Now).Ledger {
			if row.Direction == "sent" && row.Kind == "repair" {
				repair += float64(row.Octets)
			}
		}
	}
	return repair, all
}

// destroyed lets four nodes of three channels send 20 messages in an hour while one node is away. A fifth sends one too, and is destroyed
// when one neighbour has it. Two hours after the return of the absent node, when each node has sent two digests at least, destroyed counts
// the messages missing at the living nodes and those that came twice, the octets of repair, and the time until the absent node had all
// messages.
func destroyed(ctx Context, seed uint64) ([][]float64, error) {
	s, err := threeChannels(ctx, seed, true)
	if err != nil {
		return nil, err
	}
	s.run(10 * time.Minute)
	_, begun := repaired(s)
	away, flagship := s.Nodes[14], s.Nodes[7]
	for bearer := range s.Links {
		s.Cut(bearer, away, true)
	}
	var all []*said
	say := func(from *sim.Node, i int) *said {
		m := Track(from.ID, Pipe, i, 200)
		one := &said{from: from, data: string(m.Parts[0].Data)}
		all = append(all, one)
		from.Site.Send(s.World, m, neighbourOf(from))
		s.At(time.Minute, func() {
			for _, n := range s.Nodes {
				if n.GW != nil && n != from && one.has(n) == 0 {
					one.lacking++
				}
			}
		})
		return one
	}
	for i := range 20 {
		say(s.Nodes[[]int{2, 6, 8, 12}[i%4]], i)
		s.run(2 * time.Minute)
	}
	last := say(flagship, 99)
	for tries := 0; s.err == nil && !slices.ContainsFunc(s.Nodes, func(n *sim.Node) bool { return last.has(n) > 0 }); tries++ {
		if tries > 36_000 {
			return nil, errors.New("the flagship's message reached nobody")
		}
		s.World.Run(100 * time.Millisecond)
		s.err = s.ctx.Err()
	}
	s.Kill(flagship, 1000*time.Hour)
	s.run(20 * time.Minute)
	for bearer := range s.Links {
		s.Cut(bearer, away, false)
	}
	returned := s.Now
	missing := func() (list int) {
		for _, m := range all {
			for _, n := range s.Nodes {
				if n != m.from && n != flagship && m.has(n) == 0 {
					list++
				}
			}
		}
		return list
	}
	s.until(2*time.Hour, func() bool { return missing() == 0 })
	took := s.Now.Sub(returned).Seconds()
	s.run(10 * time.Minute)
	twice, lacked := 0, 0.0
	const head = 16 // the head of a message in a frame
	group := s.Nodes[2].GW.Status(s.Now).Groups[1]
	for _, m := range all {
		lacked += float64(m.lacking) * (head + float64(group.Octets)/float64(max(group.Held, 1)))
		for _, n := range s.Nodes {
			twice += max(0, m.has(n)-1)
		}
	}
	repair, octets := repaired(s)
	return one(float64(missing()), float64(twice), took, repair/max(lacked, 1), (octets-begun)/1000), s.err
}

// neighbourOf is a site that shares a channel with a node.
func neighbourOf(n *sim.Node) uint16 {
	for _, channel := range members {
		if i := slices.Index(channel, int(n.ID)-1); i >= 0 {
			return uint16(channel[(i+1)%len(channel)] + 1)
		}
	}
	return 1
}

// idleGroup is how many octets the fullest channel carries in an hour after all members agree, as a share of its capacity.
func idleGroup(ctx Context, seed uint64) ([][]float64, error) {
	s, err := threeChannels(ctx, seed, false)
	if err != nil {
		return nil, err
	}
	s.run(10 * time.Minute)
	m := Track(3, Pipe, 1, 200)
	s.Nodes[2].Site.Send(s.World, m, 1)
	s.run(4 * time.Hour)
	one1 := said{from: s.Nodes[2], data: string(m.Parts[0].Data)}
	for _, n := range s.Nodes {
		if n != one1.from && one1.has(n) != 1 {
			return nil, fmt.Errorf("%s has the message %d times", n.Name, one1.has(n))
		}
	}
	before := sentOn(s)
	s.run(time.Hour)
	most := 0.0
	for k, octets := range sentOn(s) {
		carries := []float64{88_000 * 6, 2400, 16_000}[k] / 8 * 3600 // of the star each terminal has its own leg
		most = max(most, 100*(octets-before[k])/carries)
	}
	return one(most), s.err
}

// sentOn returns the octets that the members of each channel have sent on it.
func sentOn(s *stage) (octets [3]float64) {
	for k, channel := range members {
		for _, i := range channel {
			up, _ := s.OctetsOn(k, s.Nodes[i])
			octets[k] += float64(up)
		}
	}
	return octets
}

// groupcast lets the ship send 256 octets to its group every interval for the time lasting, and plays for so much longer. It returns the octets
// on the air, as a multiple of one datagram of these octets to each member that needs its own copy.
func groupcast(s *stage, every, lasting, longer time.Duration) float64 {
	_, before := repaired(s)
	n := int(lasting / every)
	offerAfter(s, 0, n, every, tracks(256))
	s.run(lasting + longer)
	_, after := repaired(s)
	copies := 1
	if !s.link.Shared {
		copies = len(s.Nodes) - 1 // one up, and one to each other ship
	}
	const datagram = 256 + profile.IPUDPOctets + 19
	return (after - before) / float64(n*copies*datagram)
}

// cast is groupcast to sixteen, and the time that the messages took.
func cast(ctx Context, seed uint64, link string, every, lasting time.Duration) ([][]float64, error) {
	s, err := newNet(ctx, link, 16, seed, grouped)
	if err != nil {
		return nil, err
	}
	s.run(10 * time.Minute)
	times := groupcast(s, every, lasting, 5*time.Minute)
	others := slices.DeleteFunc(slices.Clone(s.Nodes), func(n *sim.Node) bool { return n == s.ship })
	took, lost := between(others, s.ship.ID, s.sent, s.sent[0].At, s.Now)
	if lost > 0 {
		return nil, fmt.Errorf("%d of %d deliveries did not come, or came twice", lost, s.due*len(others))
	}
	slices.Sort(took)
	return one(times, at(took, 0.5).Seconds(), at(took, 0.99).Seconds()), s.err
}

// opsKey is the key with which a node would seal a message for opsGroup now; sure is false if it would seal none.
func opsKey(s *stage, n *sim.Node) (key string, sure bool) {
	for _, g := range n.GW.Status(s.Now).Groups {
		if g.Name == opsGroup {
			return g.Key, g.Sure
		}
	}
	return "", false
}

// rekeying is how long a change of key is observed.
const rekeying = 30 * time.Minute

// rekeyed has one of 17 members leave a group with a key. It returns how many messages that member could read if each other member sent one
// in each of the next ten minutes, the extra octets of the change over an equal time without one, and the time until all 16 had the new key.
func rekeyed(ctx Context, seed uint64) ([][]float64, error) {
	s, err := newNet(ctx, "hf-2400", 17, seed, grouped, func(c *sim.Config) {
		configure := c.Configure
		c.Configure = func(n *sim.Node, g *sim.Setup) {
			configure(n, g)
			g.Groups[0].Key = true
		}
	})
	if err != nil {
		return nil, err
	}
	s.run(3 * time.Hour) // digests have become rare
	_, before := repaired(s)
	s.run(rekeying)
	_, idle := repaired(s)
	leaver := s.Nodes[16]
	old, _ := opsKey(s, leaver)
	for _, n := range s.Nodes {
		if key, _ := opsKey(s, n); s.err == nil && (old == "" || key != old) {
			return nil, fmt.Errorf("%s seals with the key %q, the others with %q", n.Name, key, old)
		}
	}
	s.Give(leaver, gateway.GroupOrder{Name: opsGroup})
	left, others, took, reads := s.Now, s.Nodes[:16], time.Duration(0), 0
	for all := false; s.err == nil && s.Now.Sub(left) < rekeying; {
		step := time.Second
		if all {
			step = time.Minute - s.Now.Sub(left)%time.Minute
		}
		s.run(step)
		readable, in := 0, map[string]bool{} // whether a message that a member sends now could be read
		for _, n := range others {
			key, sure := opsKey(s, n)
			if in[key] = true; key == old && sure {
				readable++
			}
		}
		if since := s.Now.Sub(left); since%time.Minute == 0 && since <= 10*time.Minute {
			reads += readable
		}
		if all = len(in) == 1 && !in[old] && !in[""]; !all {
			took = s.Now.Sub(left)
		}
	}
	_, after := repaired(s)
	return one(float64(reads), after-idle-(idle-before), took.Seconds()), s.err
}

// groupRows are the rows of docs/groups.md.
func groupRows() []Scenario {
	const three, dead = "iridium-certus-100, hf-2400 and vhf-cnr-16k", "16 gateways, 30 % lost in bursts, one away an hour, the origin destroyed: "
	const toGroup = "256 octets to a group of 16, "
	casts := func(link, often string, every, lasting time.Duration) Scenario {
		return Scenario{Link: link, Rows: []Row{
			asked(toGroup+often+": octets, x one datagram of them a channel", "x", "", 0.5, 1.3, 1.1),
			asked(toGroup+often+": median, s", "s", "", 0.5, 2, 2),
			asked(toGroup+often+": 99 of 100, s", "s", "", 0.5, 10, 5)},
			play: func(ctx Context, seed uint64) ([][]float64, error) { return cast(ctx, seed, link, every, lasting) }}
	}
	return []Scenario{
		{Link: three, Rows: []Row{
			asked(dead+"missing at those who live two hours later", "messages", "", 1, 0, 0),
			asked(dead+"came twice", "messages", "", 1, 0, 0),
			measured(dead+"the one that was away has all after, s", "s", 0.5),
			asked(dead+"repaired octets, x the messages that somebody lacked a minute after", "x", "", 0.5, 1.3, 1.15),
			measured(dead+"octets of all on the three channels, kB", "kB", 0.5)}, play: destroyed},
		{Link: three, Rows: []Row{asked("16 gateways: an idle hour after all agree, the fullest channel, % of its rate", "%", "", 1, 0.1, 0)}, play: idleGroup},
		{Link: "hf-2400", Rows: []Row{
			asked("group key of 16, and one that leaves: messages that it reads, one of each member in each of ten minutes", "messages", "", 1, 0, 0),
			asked("group key of 16, and one that leaves: octets of the new key in half an hour, acknowledgements included", "octets", "1,333 for a roster", 0.5, 1400, 900),
			measured("group key of 16, and one that leaves: all 16 have the new one after, s", "s", 0.5)}, play: rekeyed},
		casts("iridium-certus-100", "5 a second for a minute", 200*time.Millisecond, time.Minute),
		casts("vhf-cnr-16k", "1 a second for two minutes", time.Second, 2*time.Minute),
	}
}
