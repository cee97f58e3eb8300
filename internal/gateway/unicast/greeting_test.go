package unicast_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/unicast"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// shared is a radio channel of so many nodes with an address for all, which loses nothing.
func shared(t *testing.T, nodes int) config {
	cfg := radio(t)
	cfg.Nodes, cfg.Profile.Transport = nodes, profile.PMul
	return cfg
}

// greetings are the datagrams since a time that have a greeting to all.
func (g *game) greetings(at time.Time) (list []carriernet.Datagram) {
	for _, d := range g.Sent {
		if !d.At.Before(at) && carriernet.Has[frame.Greeting](d) {
			list = append(list, d)
		}
	}
	return list
}

// acquainted checks that every node knows every other.
func (g *game) acquainted() {
	g.t.Helper()
	for _, n := range g.Nodes {
		for _, p := range n.Peers {
			check.True(g.t, n.Name+" and "+p.Name+" know each other", p.Handshake.KnowsUs, p.Handshake)
		}
	}
}

// All start at once: each greets once in its turn, and answers once, instead of a HELLO to each other.
func TestAllStartAtOnce(t *testing.T) {
	g := begin(t, shared(t, 5))
	g.acquainted()
	greetings := g.greetings(carriernet.Epoch)
	check.True(t, "greetings of five", len(greetings) >= 5 && len(greetings) <= 12, len(greetings))
	var ids []uint16
	for _, d := range greetings[:5] {
		ids = append(ids, d.From)
		check.Equal(t, "it goes to all", d.To, 0)
	}
	check.Same(t, "who greets in turn", ids, []uint16{1, 2, 3, 4, 5})
	hellos := 0
	for _, d := range g.Sent {
		hellos += len(carriernet.Of[frame.Hello](d))
	}
	check.Equal(t, "HELLOs to one", hellos, 0)
	for i := range greetings[1:5] {
		check.True(t, "one after the other", greetings[i+1].At.Sub(greetings[i].At) > 100*time.Millisecond, greetings[i+1].At)
	}
}

// One that starts later greets, and is answered by all.
func TestOneStartsLater(t *testing.T) {
	g := begin(t, shared(t, 4))
	before := g.Now
	g.Kill(g.Nodes[2], time.Second)
	g.Run(2 * time.Minute)
	g.acquainted()
	greetings := g.greetings(before)
	check.True(t, "greetings", len(greetings) >= 4 && len(greetings) <= 6, len(greetings))
	check.Equal(t, "who greets first", greetings[0].From, 3)
	check.Equal(t, "it says that it starts", carriernet.Of[frame.Greeting](greetings[0])[0].Starts, true)
}

// The other machine of a site begins: a member that knows it answers at once, and says nothing to the others.
func TestTakeoverOnAChannel(t *testing.T) {
	cfg := shared(t, 5)
	second := false
	cfg.Bearer = func(n *carriernet.Node, c *carriage.Config) { c.TakesOver = second && n.ID == 3 }
	g := begin(t, cfg)
	before := g.Now
	second = true
	g.Kill(g.Nodes[2], time.Second)
	g.Run(2 * time.Minute)
	g.acquainted()
	greetings := g.greetings(before)
	check.Equal(check.Fatal(t), "greetings", len(greetings), 5)
	check.Equal(t, "it asks for short answers", carriernet.Of[frame.Greeting](greetings[0])[0].Brief(3), true)
	for _, d := range greetings[1:] {
		f := carriernet.Of[frame.Greeting](d)[0]
		check.True(check.In(t, d.From), "it answers the one that begins, alone", f.More && len(f.Members) == 1 && f.Members[0].ID == 3, f)
	}
	before = g.Now
	g.Kill(g.Nodes[0], time.Second)
	g.Run(2 * time.Minute)
	g.acquainted()
	for _, d := range g.greetings(before)[1:] {
		f := carriernet.Of[frame.Greeting](d)[0]
		check.Equal(check.In(t, d.From), "members that it names", len(f.Members), map[bool]int{true: 1, false: 4}[d.From == 3])
	}
}

// The other machine of a site begins, on a link of its own: the peer answers at once, although nothing waits there for a ride.
func TestTakeoverIsAnsweredAtOnce(t *testing.T) {
	for _, takes := range []bool{false, true} {
		second := false
		g := begin(t, config{Plain: true, Bearer: func(n *carriernet.Node, c *carriage.Config) { c.TakesOver = second && takes && n.ID == 1 }})
		g.Run(time.Minute)
		before := g.Now
		second = true
		g.Kill(g.a, time.Second)
		g.Run(5 * time.Minute)
		g.acquainted()
		list := g.since(before, g.b)
		check.True(check.Fatal(t), "it answers", len(list) > 0)
		early := list[0].At.Sub(before) < time.Second+carriage.TimingOf(calm(t), false).Prompt
		check.Equal(check.In(t, "takes over", takes), "before the greeting goes again", early, takes)
		check.Equal(check.In(t, "takes over", takes), "HELLOs of the one that begins", len(g.since(before, g.a)), map[bool]int{true: 1, false: 2}[takes])
	}
}

// A greeting that is lost goes again to the members that have not answered.
func TestLostGreeting(t *testing.T) {
	cfg := shared(t, 3)
	w, err := carriernet.New(cfg)
	check.NoError(check.Fatal(t), err)
	g := &game{Network: w, t: t, a: w.Nodes[0], b: w.Nodes[1]}
	n := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		n++
		return n <= 6
	})
	g.Run(3 * time.Minute)
	g.acquainted()
}

// A member that has to be told something else than most gets a HELLO of its own: here one that was put back behind starts that it
// cannot know of.
func TestMemberApart(t *testing.T) {
	g := begin(t, shared(t, 4))
	g.Outage(g.b, 3*time.Minute)
	for range 2 {
		g.a.Say(carriernet.Report(1, g.said), 3, 4)
		g.said++
		g.Run(20 * time.Second)
		g.Kill(g.a, time.Second)
		g.Run(20 * time.Second)
	}
	g.Run(10 * time.Minute)
	g.acquainted()
	check.Equal(t, "what node 3 has heard", g.Nodes[2].Heard(1), "0..1")
}

// A peer whose roster is older than the others' gets HELLOs of its own, for it cannot read datagrams to all.
func TestMemberBehind(t *testing.T) {
	cfg := shared(t, 4)
	cfg.Bearer = func(n *carriernet.Node, c *carriage.Config) {
		if n.ID == 1 {
			c.Behind = func(peer uint16) bool { return peer == 3 }
		}
	}
	g := begin(t, cfg)
	g.Run(2 * time.Minute)
	g.acquainted()
	to := map[uint16]int{}
	for _, d := range g.since(carriernet.Epoch, g.a) {
		if carriernet.Has[frame.Hello](d) {
			to[d.To]++
		}
	}
	check.True(t, "HELLOs to node 3 alone", to[3] > 0 && len(to) == 1, to)
	said := carriernet.Of[frame.Greeting](g.greetings(carriernet.Epoch)[0])[0]
	for _, m := range said.Members {
		check.Equal(check.In(t, m), "apart", m.Apart, m.ID == 3)
	}
}

// Many members do not fit one datagram: the greeting goes in several.
func TestGreetingOfMany(t *testing.T) {
	cfg := shared(t, 32)
	cfg.Profile.DatagramOctets = unicast.MinDatagram
	w, err := carriernet.New(cfg)
	check.NoError(check.Fatal(t), err)
	w.Run(14 * time.Second)
	g := &game{Network: w, t: t}
	more := 0
	for _, d := range g.greetings(carriernet.Epoch) {
		for _, f := range carriernet.Of[frame.Greeting](d) {
			if f.More {
				more++
			}
		}
	}
	check.True(t, "greetings in several datagrams", more > 1, more)
}

// Two nodes on a shared channel greet each other with HELLOs, which say as much in less.
func TestTwoGreetWithHellos(t *testing.T) {
	g := begin(t, shared(t, 2))
	g.acquainted()
	check.Equal(t, "greetings", len(g.greetings(carriernet.Epoch)), 0)
	check.Equal(t, "greeted together", g.a.Peer(2).Link.Together(), false)
}

// Restarts on a channel that loses: all know each other in the end, and all messages arrive.
func TestGreetingsOnALossyChannel(t *testing.T) {
	for seed := range uint64(3) {
		cfg := shared(t, 4)
		cfg.Profile, cfg.Seed = load(t, "hf-2400"), seed
		g := begin(t, cfg)
		g.Run(2 * time.Minute)
		for i := range 4 {
			g.Kill(g.Nodes[i], time.Second)
			g.Run(30 * time.Second)
		}
		g.Run(20 * time.Minute)
		g.acquainted()
		log := strings.Join(g.Notes, "\n")
		check.Lacks(check.In(t, "seed", seed), "the log", log, "older copy")
	}
}

// Where each peer has a channel of its own, a bearer greets each peer by itself.
func TestStarIsNotGreetedTogether(t *testing.T) {
	g := begin(t, config{Nodes: 3, Plain: true})
	check.Equal(t, "greeted together", g.a.Peer(2).Link.Together(), false)
	check.Equal(t, "greetings", len(g.greetings(carriernet.Epoch)), 0)
	g.acquainted()
}
