package replay

import (
	"strings"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/sim"
)

// seam puts the peers at the bridge's seam: what a bridge would tell and carry, without JXTA messages.
type seam struct {
	p     *player
	sides [2]*seamSide // by node id, less one
}

type seamSide struct {
	p        *player
	node     *sim.Node
	edge     bool
	pending  jxtabridge.Output
	listens  map[string][]int // pipe -> peers
	far      map[string]jxtabridge.Item
	asked    []nameOf
	messages int
}

func newSeam(p *player) *seam { return &seam{p: p} }

func (s *seam) configure(n *sim.Node, c *gateway.Config) {
	side := &seamSide{p: s.p, node: n, edge: n.ID != 1, listens: map[string][]int{}, far: map[string]jxtabridge.Item{}}
	s.sides[n.ID-1] = side
	c.Bridge = func([]jxtabridge.Memory) (gateway.Bridge, error) { return side, nil }
}

func (s *seam) output(*sim.Node, gateway.Output) {}

func (s *seam) begin(*sim.World) {
	for i, peer := range s.p.s.Peers {
		s.side(i).item(jxtabridge.Item{Kind: jxtabridge.ItemPeer, Peer: peer.ID, Doc: []byte("<Name>" + peer.Name + "</Name>")})
		s.p.r.Ready(i, s.p.at())
	}
}

func (s *seam) side(peer int) *seamSide {
	if s.p.s.Peers[peer].Edge {
		return s.sides[1]
	}
	return s.sides[0]
}

func (s *seam) do(a *Action) {
	p, side := s.p, s.side(a.Peer)
	peer := p.s.Peers[a.Peer].ID
	switch a.Do {
	case Publish:
		side.item(jxtabridge.Item{Kind: jxtabridge.ItemAdv, Peer: peer, ID: "h-" + a.Name, Sub: jxta.TypeAdv, Doc: a.Doc,
			Expires: p.w.Now.Add(2 * time.Hour).Truncate(time.Second)})
	case Query:
		p.r.Asked(a.Peer, a.Name, p.at())
		side.asked = append(side.asked, nameOf{a.Peer, a.Name})
		side.answer()
	case Open:
		p.r.Opened(a.Peer, a.Pipe, p.at())
		if a.Listen {
			pipe := p.s.Pipes[a.Pipe].ID
			side.listens[pipe] = append(side.listens[pipe], a.Peer)
			side.item(jxtabridge.Item{Kind: jxtabridge.ItemPipe, Peer: peer, ID: pipe, Sub: jxtabridge.PipePropagate})
		}
		p.r.Usable(a.Peer, a.Pipe, p.at())
	case Send:
		p.r.Sent(a.Message, p.at())
		side.pending.Carry = append(side.pending.Carry, jxtabridge.Carry{Sites: []uint16{3 - side.node.ID}, Payload: jxtabridge.Payload{
			Wire: true, Group: jxta.NetGroup, Pipe: p.s.Pipes[a.Pipe].ID, Src: peer, Elements: a.Elements}})
		side.poke()
	}
}

func (s *seamSide) item(it jxtabridge.Item) {
	it.Group = jxta.NetGroup
	s.pending.Items = append(s.pending.Items, it)
	s.poke()
}

func (s *seamSide) poke() { s.p.w.Tell(s.node, jxtabridge.Closed{}) }

// answer gives those who asked what is known.
func (s *seamSide) answer() {
	for _, q := range s.asked {
		if it, ok := s.far["h-"+strings.Trim(q.name, "*")]; ok && len(it.Doc) > 0 {
			s.p.r.Found(q.peer, q.name, s.p.at())
		}
	}
}

// Step is the gateway's view of the side.
func (s *seamSide) Step(_ time.Time, ev jxtabridge.Event) (out jxtabridge.Output) {
	out, s.pending = s.pending, jxtabridge.Output{}
	switch ev := ev.(type) {
	case jxtabridge.FarItem:
		s.far[ev.Item.ID] = ev.Item
		if ev.Item.Kind == jxtabridge.ItemPipe {
			s.known(ev.Item)
		}
		s.answer()
	case jxtabridge.FarPayload:
		out.Done = append(out.Done, ev.Token)
		for i, pipe := range s.p.s.Pipes {
			if pipe.ID == ev.Payload.Pipe {
				for _, peer := range s.listens[pipe.ID] {
					s.p.r.Got(peer, i, ev.Payload.Elements, s.p.at())
				}
			}
		}
	}
	return out
}

func (s *seamSide) known(it jxtabridge.Item) {
	for i, peer := range s.p.s.Peers {
		for j, pipe := range s.p.s.Pipes {
			if peer.ID == it.Peer && pipe.ID == it.ID {
				s.p.r.Known(i, j, s.p.at())
			}
		}
	}
}
