package gateway_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/shapes"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// strangerSeeds is how many games TestStrangers plays, and strangersFrom the first of their seeds.
var (
	strangerSeeds = flag.Uint64("strangers", 0, "number of games of TestStrangers; 0: six, and 300 with -tags long")
	strangersFrom = flag.Uint64("strangers-from", 0, "the first of their seeds")
)

// TestStrangers plays whole networks with applications of strangers, each game drawn from its seed: link, nodes, keys, messages and their times,
// packets that overtake and come twice, machines that are busy, turns of the loop that end anywhere, outages and deaths. All messages arrive
// once and unchanged, short ones of a pipe in order, and there is no false alarm.
func TestStrangers(t *testing.T) {
	n := *strangerSeeds
	if n == 0 {
		n = 6 * seeds(50)
	}
	seeds := []uint64{2115} // that found something: a HELLO that was overtaken after a start
	for seed := *strangersFrom; seed < *strangersFrom+n; seed++ {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		g := newStrangers(t, seed)
		g.play()
		if len(g.faults) > 0 {
			t.Errorf("seed %d, %s: %s\n%s", seed, g.about, strings.Join(g.faults, "\n"), tail(g.w.Notes))
		}
	}
}

// strangers is one game.
type strangers struct {
	w       *sim.World
	rng     *rand.Rand
	about   string
	healthy bool // no outage and no death: nobody may call the link down
	ordered bool // short messages come in order
	flows   []*strangerFlow
	faults  []string
}

// strangerFlow is one application that says things on a pipe of its own.
type strangerFlow struct {
	from *sim.Node
	to   []uint16
	pipe string
	sent []site.Message
	ends time.Duration // when the last is sent
}

func newStrangers(t *testing.T, seed uint64) *strangers {
	g := &strangers{rng: rand.New(rand.NewPCG(seed, 0x57)), healthy: true}
	links := []string{"iridium-directip", "iridium-dialup", "iridium-certus-100", "geo-satcom-128k", "hf-2400", "vhf-cnr-16k"}
	link := links[g.rng.IntN(len(links))]
	p := load(t, link)
	nodes := 2 + g.rng.IntN(2)
	wild := linkemu.Wild{Reorder: g.rng.IntN(4) > 0, TwicePct: float64(g.rng.IntN(3))}
	roster := g.rng.IntN(3) == 0
	g.w = world(t, nodes, link, seed, func(c *sim.Config) { c.Group, c.Roster, c.Wild = p.Shared, roster, wild })
	g.ordered = !p.Shared
	g.about = fmt.Sprintf("%s, %d nodes, roster %v, %+v", link, nodes, roster, wild)
	g.squeeze([]time.Duration{0, 0, 200 * time.Millisecond, 3 * time.Second}[g.rng.IntN(4)])
	g.w.Run(2 * time.Minute)
	g.speak(p)
	g.harm()
	return g
}

// squeeze makes a third of the turns late by up to that, and has each turn read another number of octets of its peers' messages.
func (g *strangers) squeeze(most time.Duration) {
	rng := rand.New(rand.NewPCG(g.rng.Uint64(), 0))
	g.about += fmt.Sprint(", late by up to ", most)
	g.w.Squeeze(func(n *sim.Node) time.Duration { return lateTurn(rng, n, most) })
}

// speak has one or two applications of each node say thirty things each, which take a third of the link in all.
func (g *strangers) speak(p profile.Profile) {
	const messages = 30
	rate := p.SlowerBps()
	apps := 1 + g.rng.IntN(2)
	sharing := float64(apps)
	if p.Shared {
		sharing *= float64(2 * len(g.w.Nodes))
	}
	for _, n := range g.w.Nodes {
		for k := range apps {
			f := &strangerFlow{from: n, pipe: fmt.Sprintf("uuid-59616261646162614E5047205032503300000000000000000000000000%02X%02X04", n.ID, k)}
			for _, o := range g.w.Nodes {
				if o != n && (len(f.to) == 0 || g.rng.IntN(2) == 0) {
					f.to = append(f.to, o.ID)
				}
			}
			seed := g.rng.Uint64()
			most := 64 << g.rng.IntN(11)
			most = min(most, max(64, rate/2))
			mean := 100
			for i, s := 0, shapes.New(seed, most); i < messages; i++ {
				mean += s.Next(g.w.Now).Octets() / messages
			}
			every := time.Duration(3 * sharing * float64(len(f.to)) * float64(profile.Airtime(mean, rate)))
			g.say(f, seed, most, messages, every)
			g.flows = append(g.flows, f)
		}
	}
}

func (g *strangers) say(f *strangerFlow, seed uint64, most, messages int, every time.Duration) {
	app := shapes.New(seed, most)
	next, _ := shapes.Arrivals(seed, shapes.Patterns[g.rng.IntN(len(shapes.Patterns))], every)
	at := time.Duration(0)
	for i := range messages {
		at += next()
		g.w.At(at, func() {
			m := site.Message{Published: true, Scope: "jxta-NetGroup", Topic: f.pipe, From: peerID(f.from.ID), ID: fmt.Sprint(f.pipe, i)}
			for _, e := range app.Next(g.w.Now) {
				m.Parts = append(m.Parts, site.Part{Namespace: "own", Name: e.Name, Type: e.Type, Data: e.Data})
			}
			f.sent = append(f.sent, m)
			f.from.Site.Send(g.w, m, f.to...)
		})
	}
	f.ends = at
}

// harm plans an outage now and then, and deaths of gateways.
func (g *strangers) harm() {
	span := g.span()
	any := func() time.Duration { return time.Duration(g.rng.Int64N(int64(span) + 1)) }
	if g.rng.IntN(4) == 0 {
		g.healthy = false
		n := g.w.Nodes[1+g.rng.IntN(len(g.w.Nodes)-1)]
		g.w.At(any(), func() { g.w.Outage(n, time.Minute) })
	}
	if g.rng.IntN(3) == 0 {
		g.healthy = false
		for range 1 + g.rng.IntN(5) {
			n, down := g.w.Nodes[g.rng.IntN(len(g.w.Nodes))], time.Duration(g.rng.IntN(3000))*time.Millisecond
			g.w.At(any(), func() {
				if n.GW != nil {
					g.w.Kill(n, down)
				}
			})
		}
	}
	g.about += fmt.Sprintf(", healthy %v", g.healthy)
}

// span is how long the applications speak.
func (g *strangers) span() (span time.Duration) {
	for _, f := range g.flows {
		span = max(span, f.ends)
	}
	return span
}

func (g *strangers) play() {
	g.w.Run(g.span() + time.Second)
	for waited := time.Duration(0); waited < 3*time.Hour && !g.over(); waited += time.Minute {
		g.w.Run(time.Minute)
	}
	g.w.Run(2 * time.Minute) // for messages that come twice
	for _, f := range g.flows {
		for _, to := range f.to {
			g.judge(f, g.w.Nodes[to-1])
		}
	}
	alarms := []string{"older copy", "lacks messages", "is dropped", "cannot be read", "asks for it again"}
	if g.healthy {
		alarms = append(alarms, "is down", "not match its profile")
	}
	for _, alarm := range alarms {
		if n := said(g.w, alarm); n > 0 {
			g.fault("%d times in the log: %s", n, alarm)
		}
	}
	for _, n := range g.w.Nodes {
		for _, p := range n.GW.Status(g.w.Now).Peers {
			if p.Unreadable > 0 {
				g.fault("%s cannot read %d messages of %s", n.Name, p.Unreadable, p.Name)
			}
		}
	}
}

// over says whether as many have arrived as were sent.
func (g *strangers) over() bool {
	want, got := 0, 0
	for _, f := range g.flows {
		want += len(f.sent) * len(f.to)
	}
	for _, n := range g.w.Nodes {
		got += len(n.Site.Got)
	}
	return got >= want
}

func (g *strangers) fault(format string, args ...any) {
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
}

// judge compares the messages of a flow with those that a node was handed.
func (g *strangers) judge(f *strangerFlow, at *sim.Node) {
	var got []site.Message
	for _, m := range at.Site.Got {
		if m.From == f.from.ID && m.Payload.Topic == f.pipe {
			got = append(got, m.Payload)
		}
	}
	left := map[string]int{}
	for _, m := range f.sent {
		left[content(m)]++
	}
	for i, m := range got {
		if left[content(m)]--; left[content(m)] < 0 {
			g.fault("message %d of %s at %s came twice or changed: %.60q", i, f.from.Name, at.Name, content(m))
		}
	}
	if len(got) != len(f.sent) {
		g.fault("%d of %d messages of %s arrived at %s", len(got), len(f.sent), f.from.Name, at.Name)
	}
	if a, b := short(f.sent), short(got); g.ordered && len(got) == len(f.sent) && !reflect.DeepEqual(a, b) {
		g.fault("short messages of %s came in another order at %s", f.from.Name, at.Name)
	}
}

// content is the content of a message, without its ID, which is the LAN's.
func content(m site.Message) string {
	b := fmt.Appendf(nil, "%v %q %q %q", m.Published, m.Scope, m.Topic, m.From)
	for _, p := range m.Parts {
		b = append(fmt.Appendf(b, " %q %q %q %q %d ", p.Namespace, p.Name, p.Type, p.Encoding, len(p.Data)), p.Data...)
	}
	return string(b)
}

// short are the messages that surely fit a datagram of any profile, in their order.
func short(all []site.Message) (list []string) {
	for _, m := range all {
		octets := 0
		for _, p := range m.Parts {
			octets += len(p.Name) + len(p.Type) + len(p.Data) + 16
		}
		if octets < 150 {
			list = append(list, content(m))
		}
	}
	return list
}
