package group_test

import (
	"testing"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/replica"
	"aldis/internal/pmul"
)

// game is three nodes or more on a shared channel, of which the first speaks.
type game struct {
	*carriernet.Network
	t       *testing.T
	a, b, c *carriernet.Node
	said    int // messages that a has been given
}

type (
	config    = carriernet.Config
	direction = profile.Direction
)

// radio is a channel of HF that loses nothing.
func radio(t *testing.T) profile.Profile {
	t.Helper()
	p, err := profile.Load("hf-2400", nil)
	check.NoError(check.Fatal(t), err)
	for _, d := range []*direction{&p.Up, &p.Down} {
		d.GEp, d.GEr, d.LossPct = 0, 0, 0
	}
	return p
}

// begin makes a game and lets the nodes greet each other.
func begin(t *testing.T, cfg config) *game {
	t.Helper()
	if cfg.Nodes == 0 {
		cfg.Nodes = 3
	}
	if cfg.Profile.Name == "" {
		cfg.Profile = radio(t)
	}
	w, err := carriernet.New(cfg)
	check.NoError(check.Fatal(t), err)
	w.Run(2 * time.Minute)
	g := &game{Network: w, t: t, a: w.Nodes[0], b: w.Nodes[1]}
	if len(w.Nodes) > 2 {
		g.c = w.Nodes[2]
	}
	return g
}

// plain is a game of three whose messages are not coded.
func plain(t *testing.T) *game { return begin(t, config{Plain: true}) }

// say has a say n messages more to b and c, one every so often.
func (g *game) say(n int, every time.Duration) {
	for range n {
		id := g.a.Say(carriernet.Report(1, g.said), 2, 3)
		check.Differ(check.Fatal(g.t), "ID of a message", id, 0)
		g.said++
		g.Run(every)
	}
}

// lose has the link lose the datagrams that f chooses.
func (g *game) lose(f func(d carriernet.Datagram, to *carriernet.Node) bool) {
	g.Fate = func(d carriernet.Datagram, to *carriernet.Node) (time.Duration, bool) { return 0, f(d, to) }
}

// heard checks that b and c have heard just these of a's messages, in this order.
func (g *game) heard(want string) {
	g.t.Helper()
	check.Equal(g.t, "what node 2 has heard", g.b.Heard(1), want)
	check.Equal(g.t, "what node 3 has heard", g.c.Heard(1), want)
}

// ended checks that so many of a's messages have ended as delivered for b and for c, and that none is held.
func (g *game) ended(delivered int) {
	g.t.Helper()
	for _, to := range []uint16{2, 3} {
		in := check.In(g.t, "for node", to)
		waiting, underWay := g.a.Held(to)
		check.Equal(in, "messages delivered", g.a.Fates(to)[mail.Delivered], delivered)
		check.Equal(in, "messages that are held", waiting+underWay, 0)
	}
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

// pdus are the PDUs of one type in a datagram.
func pdus[P pmul.PDU](d carriernet.Datagram) (list []P) {
	for _, f := range carriernet.Of[frame.PMul](d) {
		all, err := pmul.ParseCompact(f.Body, pmul.NodeID(d.From), pmul.NodeID(max(d.To, 2)))
		if err != nil {
			panic(err) // a carrier has written it
		}
		for _, pdu := range all {
			if pdu, ok := pdu.(P); ok {
				list = append(list, pdu)
			}
		}
	}
	return list
}

// fragments counts the fragments of messages in datagrams.
func fragments(list []carriernet.Datagram) (n int) {
	for _, d := range list {
		n += len(pdus[pmul.DataPDU](d))
	}
	return n
}

// State that two peers lack in another order goes to both in one message.
func TestStateInAnotherOrderIsOneMessage(t *testing.T) {
	g := plain(t)
	before := g.Now
	g.a.Do(func(time.Time) {
		for i := range 16 {
			g.a.Replica.RestoreHeld(3, carriernet.Item(1, 15-i).Key(), replica.Version{})
		}
		for i := range 16 {
			g.a.Replica.Put(carriernet.Item(1, i))
		}
	})
	g.Run(time.Minute)
	check.Equal(t, "recipients", len(pdus[pmul.AddressPDU](g.since(before, g.a)[0])[0].Destinations), 2)
}
