package air

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/lab/sim"
)

// The experiments of Schulz, Blochinger and Poths, "Orbweb: a network substrate for Peer-to-Peer Desktop Grid Computing based on open
// standards", Journal of Grid Computing 8, 2010, section 12.3, on links instead of a campus LAN.

// Sized is the cost and the time of messages of one size from one ship to another, each alone.
type Sized struct {
	Octets  float64 // on the air for a message, acknowledgements included
	Seconds float64 // the median
	Goodput float64 // octets a second of many messages sent at once, until the last is there
}

// BySize lets a ship send messages of so many octets to the peer of another ship, or with open to a group that these two gateways are in. On
// a star that is two hops, as in the experiment.
func BySize(ctx Context, link string, seed uint64, open bool, octets int) (f Sized, err error) {
	s, err := newNet(ctx, link, 3, seed, grouped, func(c *sim.Config) {
		configure := c.Configure
		c.Configure = func(n *sim.Node, g *sim.Setup) {
			if configure(n, g); n.ID == 1 {
				g.Groups, g.Messages = nil, nil
			}
		}
	})
	if err != nil {
		return f, err
	}
	s.run(20 * time.Minute)
	to := s.Nodes[2]
	send := func(i int) {
		m := Track(2, Pipe, i, octets)
		if !open {
			m.Published, m.Topic, m.To, m.Service, m.Param = false, "", Peer(3), "EndpointService:jxta-NetGroup", "PipeService/"+Pipe
		}
		s.ship.Site.Send(s.World, m, to.ID)
	}
	arrived := func(n int, most time.Duration) error {
		s.until(most, func() bool { return len(to.Site.Got) >= n })
		if s.err == nil && len(to.Site.Got) != n {
			return fmt.Errorf("%d of %d messages of %d octets arrived", len(to.Site.Got), n, octets)
		}
		return s.err
	}
	alone := 20 // messages
	if octets > 1024 {
		alone = max(1, 50_000/octets)
	}
	before, took := s.octets(), []time.Duration(nil)
	for i := range alone {
		began := s.Now
		send(i)
		s.run(20 * time.Second)
		if err := arrived(i+1, 2*time.Hour); err != nil {
			return f, err
		}
		took = append(took, to.Site.Got[i].At.Sub(began))
	}
	s.run(time.Minute) // acknowledgements
	slices.Sort(took)
	f.Octets, f.Seconds = float64(s.octets()-before)/float64(alone), at(took, 0.5).Seconds()
	many := min(max(1, 60*s.link.Up.RateBps/8/octets), 256)
	began := s.Now
	for i := range many {
		send(alone + i)
	}
	if err := arrived(alone+many, 4*time.Hour); err != nil {
		return f, err
	}
	f.Goodput = float64(many*octets) / to.Site.Got[alone+many-1].At.Sub(began).Seconds()
	return f, s.err
}

// volatility is the part of an audience that comes and goes.
type volatility int

const (
	nobody       volatility = iota
	someMembers             // an eighth of the peers behind each gateway
	someGateways            // two of the sixteen
)

const (
	audienceSites = 16
	behindEach    = 60               // peers that listen behind each gateway: 960
	comingGoing   = 30 * time.Second // off for so long, and on for so long
	audienceLasts = 5 * time.Minute
	stillThere    = 10 * time.Second // a gateway off the air within so long after a message does not count as present for it
)

// spell is a time in which a gateway or a member was off.
type spell struct{ begin, end time.Time }

func absent(spells []spell, at time.Time) bool {
	return slices.ContainsFunc(spells, func(s spell) bool { return !at.Before(s.begin) && at.Before(s.end) })
}

// comesAndGoes lets something go and come from a moment within the first minute on, until the audience ends.
func comesAndGoes(s *stage, rng *rand.Rand, off func(bool)) (spells []spell) {
	for at := time.Duration(rng.Int64N(int64(2 * comingGoing))); at+comingGoing < audienceLasts; at += 2 * comingGoing {
		s.At(at, func() { off(true) })
		s.At(at+comingGoing, func() { off(false) })
		spells = append(spells, spell{s.Now.Add(at), s.Now.Add(at + comingGoing)})
	}
	return spells
}

// listens has a peer of a site begin to listen to Pipe, or with gone stop. The site tells others of it as JXTA's adapter does.
func listens(s *stage, n *sim.Node, here jxtabridge.Listening, gone bool) {
	if it, news := here.Change("jxta-NetGroup", Pipe, gone); news {
		n.Site.Put(s.World, it)
	}
}

// audience is groupcast to 960 members behind 16 gateways, how long the messages took to the members that were present, and how long to a
// gateway that was away, from its return.
func audience(ctx Context, seed uint64, link string, every time.Duration, v volatility) ([][]float64, error) {
	s, err := newNet(ctx, link, audienceSites, seed, grouped)
	if err != nil {
		return nil, err
	}
	here := make([]jxtabridge.Listening, len(s.Nodes)) // behind each
	for i, n := range s.Nodes {
		here[i] = jxtabridge.Listening{}
		for range behindEach {
			listens(s, n, here[i], false)
		}
	}
	s.run(20 * time.Minute)
	rng := rand.New(rand.NewPCG(seed, 0x6f7262))
	members, gateways := map[uint16][][]spell{}, map[uint16][]spell{} // the spells of each member that comes and goes, and of each node
	for i, n := range s.Nodes {
		for k := range behindEach {
			if v == someMembers && (i*behindEach+k)%8 == 0 {
				members[n.ID] = append(members[n.ID], comesAndGoes(s, rng, func(off bool) { listens(s, n, here[i], off) }))
			}
		}
		if v == someGateways && i >= audienceSites-2 {
			gateways[n.ID] = comesAndGoes(s, rng, func(off bool) { s.Cut(0, n, off) })
		}
	}
	times := groupcast(s, every, audienceLasts, 10*time.Minute)
	if s.err != nil {
		return nil, s.err
	}
	var took, back []time.Duration
	for _, n := range s.Nodes {
		if n == s.ship {
			continue
		}
		there, missed, err := present(n, s.ship.ID, s.sent, gateways[n.ID], members[n.ID])
		if err != nil {
			return nil, err
		}
		took, back = append(took, there...), append(back, missed...)
	}
	slices.Sort(took)
	slices.Sort(back)
	figures := one(times, at(took, 0.5).Seconds(), at(took, 0.99).Seconds())
	if v == someGateways {
		figures = append(figures, one(at(back, 0.5).Seconds(), at(back, 0.99).Seconds())...)
	}
	return figures, nil
}

// present returns how long messages took to the members behind a node that were there all the while, and how long after its return a node had
// the messages that it missed. It is an error if a message did not reach the node exactly once.
func present(n *sim.Node, from uint16, sent []Offered, gateway []spell, volatile [][]spell) (took, back []time.Duration, err error) {
	came := map[string]time.Time{}
	for _, g := range n.Site.Got {
		key := string(g.Payload.Parts[0].Data)
		if g.From != from || !came[key].IsZero() {
			return nil, nil, fmt.Errorf("%s has a message twice, or one that nobody sent", n.Name)
		}
		came[key] = g.At
	}
	for _, o := range sent {
		at := came[string(o.Message.Parts[0].Data)]
		if at.IsZero() {
			return nil, nil, fmt.Errorf("%s lacks a message", n.Name)
		}
		if i := slices.IndexFunc(gateway, func(s spell) bool { return o.At.Before(s.end) && o.At.Add(stillThere).After(s.begin) }); i >= 0 {
			if absent(gateway, o.At) {
				back = append(back, max(0, at.Sub(gateway[i].end)))
			}
			continue
		}
		hearers := behindEach - len(volatile)
		for _, spells := range volatile {
			if !absent(spells, o.At) && !absent(spells, at) {
				hearers++
			}
		}
		took = append(took, slices.Repeat([]time.Duration{at.Sub(o.At)}, hearers)...)
	}
	return took, back, nil
}

// paperRows are the rows of the paper's experiments. Before holds the paper's figures.
func paperRows() (list []Scenario) {
	for _, link := range []string{"iridium-certus-100", "vhf-cnr-16k"} {
		for _, open := range []bool{false, true} {
			for _, octets := range []int{1, 16, 256, 1024, 16 << 10, 128 << 10} {
				list = append(list, bySize(link, open, octets))
			}
		}
	}
	for _, a := range []struct {
		link, often string
		every       time.Duration
	}{{"iridium-certus-100", "5", 200 * time.Millisecond}, {"vhf-cnr-16k", "1", time.Second}} {
		for v, who := range []string{"static", "12.5 % of the members leave for 30 s, come for 30 s", "2 of the gateways 30 s off, 30 s on"} {
			list = append(list, toAudience(a.link, a.often, a.every, volatility(v), who))
		}
	}
	return list
}

func bySize(link string, open bool, octets int) Scenario {
	curve, before := "unicast", [2]string{"1.28", "6,700,000 (512 kB)"}
	if open {
		curve, before = "groupcast", [2]string{"1.36", "6,400,000 (512 kB)"}
	}
	what, on := fmt.Sprintf("%s of %d octets: ", curve, octets), curve+", "+link
	if octets == 1 {
		what = curve + " of 1 octet: "
	}
	delay, goodput := measured(what+"median, ms", "ms", 0.5).in("paper-delay", on, float64(octets)),
		measured(what+"many at once, octets a second", "octets a second", 0.5).in("paper-goodput", on, float64(octets))
	goodput.More = true
	if octets == 1 {
		delay.Before = before[0]
	}
	if octets == 128<<10 {
		goodput.Before = before[1]
	}
	return Scenario{Link: link, Rows: []Row{measured(what+"on the air, octets", "octets", 0.5).in("paper-octets", on, float64(octets)), delay, goodput},
		play: func(ctx Context, seed uint64) ([][]float64, error) {
			f, err := BySize(ctx, link, seed, open, octets)
			return one(f.Octets, 1000*f.Seconds, f.Goodput), err
		}}
}

func toAudience(link, often string, every time.Duration, v volatility, who string) Scenario {
	what := fmt.Sprintf("256 octets to 960 members behind %d gateways, %s a second, %s: ", audienceSites, often, who)
	rates := "57; 571; 296 a second"
	if v != nobody {
		rates = "57; 222; 190 a second"
	}
	rows := []Row{
		asked(what+"octets, x one datagram of them a channel", "x", rates, 0.5, 1.3, 1.1),
		asked(what+"median of those present, s", "s", "", 0.5, 2, 2),
		asked(what+"99 of 100 of those present, s", "s", "", 0.5, 10, 5)}
	if v == someGateways {
		rows = append(rows, measured(what+"what was said meanwhile, after the return, median, s", "s", 0.5),
			measured(what+"what was said meanwhile, after the return, 99 of 100, s", "s", 0.5))
	}
	return Scenario{Link: link, Rows: rows, play: func(ctx Context, seed uint64) ([][]float64, error) { return audience(ctx, seed, link, every, v) }}
}
