package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// lan is the edge peers of both sides, for the bridges of a World. A LAN takes no time.
type lan struct {
	p     *player
	cast  *Cast
	peers []*edge
	conns map[site.ConnID]*edge // of both sides: numbers are never used twice
}

// edge is one peer and its only connection.
type edge struct {
	index int
	peer  *edgepeer.Peer
	node  *sim.Node
	conn  site.ConnID
	due   time.Time // the next planned wake-up
}

func newLAN(p *player) *lan {
	l := &lan{p: p, conns: map[site.ConnID]*edge{}}
	p.r.WatchesCustody()
	l.cast = NewCast(p.s, p.r, func(peer int, ev edgepeer.Event) { l.step(l.peers[peer], ev) })
	return l
}

// address is the address of a gateway on its LAN.
func address(n *sim.Node) string { return fmt.Sprintf("10.20.%d.1:9701", n.ID) }

// configure gives a node the real bridge. Its peers are unsigned, so its identity needs no key.
func (l *lan) configure(n *sim.Node, c *sim.Setup) {
	parts := jxta.IDParts{Kind: jxta.KindPeer, Group: jxta.WorldUUID, UUID: [16]byte{0xa1, 0xd1, 0x50, 14: byte(n.ID >> 8), 15: byte(n.ID)}}
	cfg := sim.Bridge(c)
	cfg.Address, cfg.Identity = address(n), jxtabridge.Identity{Peer: parts.Unique()}
	c.Adapters = map[site.Adapter]func([]site.Memory) (sim.Adapter, error){
		site.JXTA: func(memories []site.Memory) (sim.Adapter, error) {
			return &watched{jxtabridge.New(cfg, memories), l}, nil
		}}
}

// watched is a bridge that reports far listeners when it learns of them, and the messages that it takes for the other side.
type watched struct {
	*jxtabridge.Bridge
	l *lan
}

func (b *watched) Step(now time.Time, ev site.Event) site.Output {
	if far, ok := ev.(site.FarItem); ok && far.Item.Kind == site.Listener && !far.Item.Gone {
		b.l.known(far.Site, far.Item)
	}
	out := b.Bridge.Step(now, ev)
	for _, c := range out.Carry {
		if c.Message.Published {
			b.l.taken(&c.Message)
		}
	}
	return out
}

func (l *lan) taken(m *site.Message) {
	var elements []jxta.Element
	for _, p := range m.Parts {
		elements = append(elements, jxta.Element{Namespace: p.Namespace, Name: p.Name, Data: p.Data})
	}
	l.p.r.Taken(m.Topic, elements, l.p.at())
}

// known notes that the other side's gateway knows of a listener. News without an owner is that of all who listen there.
func (l *lan) known(from uint16, it site.Item) {
	for _, a := range l.p.s.Actions {
		if a.Do != Open || !a.Listen || l.p.s.Pipes[a.Pipe].ID != it.ID {
			continue
		}
		if p := l.p.s.Peers[a.Peer]; it.Owner == p.ID || it.Owner == "" && l.p.node(p.Edge).ID == from {
			l.p.r.Known(a.Peer, a.Pipe, l.p.at())
		}
	}
}

// begin lets all peers dial in.
func (l *lan) begin() {
	for i, peer := range l.p.s.Peers {
		e := &edge{index: i, node: l.p.node(peer.Edge), conn: site.ConnID(i + 1)}
		e.peer = edgepeer.New(edgepeer.Config{ID: peer.ID, Name: peer.Name, Rand: rand.New(rand.NewPCG(l.p.o.Seed, uint64(i)))})
		l.peers = append(l.peers, e)
		l.conns[e.conn] = e
	}
	for i, e := range l.peers {
		local := fmt.Sprintf("10.20.%d.%d:%d", e.node.ID, 2+i%250, 4711+i/250)
		l.p.w.DeliverJXTA(e.node, jxtabridge.Opened{Conn: e.conn, Remote: local})
		l.step(e, edgepeer.Dialled{Remote: address(e.node), Local: local})
	}
}

// step gives a peer an event and carries out its output.
func (l *lan) step(e *edge, ev edgepeer.Event) {
	w := l.p.w
	out := e.peer.Step(w.Now, ev)
	if line := out.Welcome; line != nil {
		w.At(0, func() { w.DeliverJXTA(e.node, jxtabridge.Welcomed{Conn: e.conn, Welcome: *line}) })
	}
	for _, body := range out.Send {
		w.At(0, func() { w.DeliverJXTA(e.node, jxtabridge.Received{Conn: e.conn, Body: body}) })
	}
	if at := out.Deadline; !at.IsZero() && !at.Equal(e.due) {
		e.due = at
		w.At(max(0, at.Sub(w.Now)), func() {
			if e.due.Equal(at) {
				e.due = time.Time{}
				l.step(e, nil)
			}
		})
	}
	for _, n := range out.Notices {
		l.cast.Hear(l.p.at(), e.index, n)
	}
}

// output carries out a bridge's output towards its peers.
func (l *lan) output(n *sim.Node, out api.Output) {
	w := l.p.w
	for _, o := range out.LAN {
		conn, _ := o.Concerns()
		e := l.conns[conn]
		switch o := o.Order.(type) {
		case jxtabridge.Welcome:
			w.At(0, func() { l.step(e, edgepeer.Welcomed{Welcome: o.Line}) })
		case jxtabridge.Send:
			body := slices.Clone(o.Body)
			w.At(0, func() {
				l.step(e, edgepeer.Received{Body: body})
				if o.Token != 0 {
					w.DeliverJXTA(n, jxtabridge.Written{Conn: o.Conn, Token: o.Token})
				}
			})
		case jxtabridge.Close:
			w.At(0, func() {
				l.p.res.Problem("the gateway of the %s closed the connection of peer %s at %.1f s", n.Name, l.p.s.Peers[e.index].Name, l.p.at().Seconds())
				l.step(e, edgepeer.Lost{})
			})
		}
	}
}
