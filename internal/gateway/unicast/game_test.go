package unicast_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// game is two or more nodes on a link, of which the first speaks.
type game struct {
	*carriernet.Network
	t    *testing.T
	a, b *carriernet.Node
	said int // messages that a has been given
}

type config = carriernet.Config

// load reads a profile that comes with the gateway.
func load(t *testing.T, name string) profile.Profile {
	t.Helper()
	p, err := profile.Load(name, nil)
	check.NoError(check.Fatal(t), err)
	return p
}

// calm is a satellite link that loses nothing and has no jitter.
func calm(t *testing.T) profile.Profile {
	p := load(t, "iridium-directip")
	for _, d := range []*profile.Direction{&p.Up, &p.Down} {
		d.LossPct, d.Jitter = 0, 0
	}
	return p
}

// begin makes a game, with node 1 ashore, and lets the nodes greet each other.
func begin(t *testing.T, cfg config) *game {
	t.Helper()
	if cfg.Nodes == 0 {
		cfg.Nodes = 2
	}
	if cfg.Profile.Name == "" {
		cfg.Profile = calm(t)
	}
	if wire := load(t, "wire"); !cfg.Profile.Shared { // the profiles of satellite links are of the whole way from a terminal to the shore
		cfg.Ashore = &wire
	}
	w, err := carriernet.New(cfg)
	check.NoError(check.Fatal(t), err)
	w.Run(time.Minute)
	return &game{Network: w, t: t, a: w.Nodes[0], b: w.Nodes[1]}
}

// plain is a game whose messages are not coded: most games are about other things.
func plain(t *testing.T) *game { return begin(t, config{Plain: true}) }

// say has a say n messages more to b, one every so often.
func (g *game) say(n int, every time.Duration) {
	for range n {
		id := g.a.Say(carriernet.Report(1, g.said), 2)
		check.Differ(check.Fatal(g.t), "ID of a message", id, 0)
		g.said++
		g.Run(every)
	}
}

// noise gives a one message of so many octets for b.
func (g *game) noise(octets int) (id uint64) {
	id = g.a.Say(carriernet.Noise(1, 0, g.said, octets), 2)
	g.said++
	return id
}

// lose has the link lose the datagrams that f chooses.
func (g *game) lose(f func(d carriernet.Datagram, to *carriernet.Node) bool) {
	g.Fate = func(d carriernet.Datagram, to *carriernet.Node) (time.Duration, bool) { return 0, f(d, to) }
}

// heard checks that b has heard just these of a's messages, in this order.
func (g *game) heard(want string) {
	g.t.Helper()
	check.Equal(g.t, "what node 2 has heard", g.b.Heard(1), want)
}

// ended checks that so many of a's messages have ended as delivered, none otherwise, and that none is held.
func (g *game) ended(delivered int) {
	g.t.Helper()
	waiting, underWay := g.a.Held(2)
	fates := g.a.Fates(2)
	check.Equal(g.t, "messages delivered", fates[mail.Delivered], delivered)
	check.True(g.t, "no other ending", fates[mail.Delivered] == total(fates), fates)
	check.Equal(g.t, "messages that wait", waiting, 0)
	check.Equal(g.t, "messages under way", underWay, 0)
}

func total(fates map[mail.Fate]int) (n int) {
	for _, of := range fates {
		n += of
	}
	return n
}

// since are the datagrams that a node has sent since a time.
func (g *game) since(at time.Time, n *carriernet.Node) (list []carriernet.Datagram) {
	for _, d := range g.Sent {
		if d.From == n.ID && !d.At.Before(at) {
			list = append(list, d)
		}
	}
	return list
}

// as is a message with another precedence.
func as(p site.Precedence, m site.Message) site.Message {
	m.Precedence = p
	return m
}

// rough is a link that loses, delays and doubles.
func rough(t *testing.T, seed uint64) config {
	p := load(t, "iridium-directip")
	p.Up.LossPct, p.Down.LossPct = 8, 8
	return config{Profile: p, Seed: seed, Plain: true}
}

// wild is a rough link on which datagrams overtake each other.
func wild(t *testing.T, seed uint64) config {
	cfg := rough(t, seed)
	cfg.Profile.Reorder = true
	cfg.Wild = linkemu.Wild{Reorder: true, TwicePct: 10}
	return cfg
}

// radio is a channel that all share, which loses nothing, with a datagram to each peer.
func radio(t *testing.T) config {
	p := load(t, "vhf-cnr-16k")
	p.Transport = profile.NORM
	for _, d := range []*profile.Direction{&p.Up, &p.Down} {
		d.LossPct, d.GEp, d.GEr = 0, 0, 0
	}
	return config{Profile: p, Plain: true}
}

// forget has a node start anew without the records of some buckets.
func (g *game) forget(n *carriernet.Node, buckets ...string) {
	g.t.Helper()
	journal := slices.DeleteFunc(n.Journal(), func(r api.Record) bool { return slices.Contains(buckets, r.Bucket) })
	check.NoError(check.Fatal(g.t), g.StartWith(n, journal))
}
