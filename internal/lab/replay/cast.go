package replay

import (
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
)

// Cast moves edge peers by a Script: actions become events of edgepeer, and the peers' notices go into the Record. It is the same in
// virtual time and over sockets.
type Cast struct {
	s     *Script
	r     *Record
	do    func(peer int, ev edgepeer.Event)
	parts []part
	pipes map[string]int // unique value -> index
	// services are the published ones.
	services map[service]bool
}

// part is the state of one peer.
type part struct {
	leased  bool
	waiting []*Action // for the peer's lease
}

// NewCast is a cast that waits for its peers' leases. do gives a peer an event.
func NewCast(s *Script, r *Record, do func(peer int, ev edgepeer.Event)) *Cast {
	c := &Cast{s: s, r: r, do: do, parts: make([]part, len(s.Peers)), pipes: map[string]int{}, services: map[service]bool{}}
	for i, p := range s.Pipes {
		c.pipes[p.ID] = i
	}
	for i := range s.Actions {
		if a := &s.Actions[i]; a.Do == Publish {
			c.services[service{a.Name, s.Peers[a.Peer].Edge}] = true
		}
	}
	return c
}

// Do lets a peer act at a time of the trace, or as soon as it has a lease.
func (c *Cast) Do(at time.Duration, a *Action) {
	p := &c.parts[a.Peer]
	if !p.leased {
		p.waiting = append(p.waiting, a)
		return
	}
	pipe, kind := "", jxta.PipeTypePropagate
	if a.Pipe >= 0 {
		pipe = c.s.Pipes[a.Pipe].ID
		if c.s.Pipes[a.Pipe].Unicast {
			kind = jxta.PipeTypeUnicast
		}
	}
	switch a.Do {
	case Publish:
		c.do(a.Peer, edgepeer.Publish{Doc: string(a.Doc)})
	case Query:
		c.r.Asked(a.Peer, a.Name, at)
		c.do(a.Peer, edgepeer.Query{Type: jxta.TypeAdv, Attr: a.Attr, Value: a.Name, Threshold: mostAnswers})
	case Open:
		c.r.Opened(a.Peer, a.Pipe, at)
		switch {
		case a.Listen:
			c.do(a.Peer, edgepeer.Listen{Pipe: pipe, Kind: kind})
			c.r.Usable(a.Peer, a.Pipe, at)
		case kind == jxta.PipeTypeUnicast:
			c.do(a.Peer, edgepeer.Resolve{Pipe: pipe, Kind: kind})
		default:
			c.r.Usable(a.Peer, a.Pipe, at) // an output end of a propagate pipe needs no answer
		}
	case Send:
		c.r.Sent(a.Message, at)
		c.do(a.Peer, edgepeer.Send{Pipe: pipe, Kind: kind, Elements: a.Elements})
	}
}

// mostAnswers is how many advertisements a question requests, as JXTA applications do.
const mostAnswers = 10

// Hear records a notice for a peer's application.
func (c *Cast) Hear(at time.Duration, peer int, n edgepeer.Notice) {
	p := &c.parts[peer]
	switch n := n.(type) {
	case edgepeer.Leased:
		if p.leased {
			return
		}
		p.leased = true
		c.r.Ready(peer, at)
		waiting := p.waiting
		p.waiting = nil
		for _, a := range waiting {
			c.Do(at, a)
		}
	case edgepeer.Answer:
		found, err := n.Found()
		if err != nil {
			return
		}
		for _, f := range found {
			doc, err := jxta.ParseXML([]byte(f.Doc), jxta.DefaultXML)
			if err != nil {
				continue
			}
			if name := doc.KidValue("Name"); c.foreign(peer, name) {
				c.r.Found(peer, name, at)
			}
		}
	case edgepeer.PipeResolved:
		if i, ok := c.pipes[n.Pipe]; ok {
			c.r.Usable(peer, i, at)
		}
	case edgepeer.Message:
		if i, ok := c.pipes[n.Pipe]; ok {
			c.r.Got(peer, i, n.Elements, at)
		} else {
			c.r.strange++
		}
	case edgepeer.PipeLost:
		for range n.Waiting {
			c.r.Refused(peer, at)
		}
	}
}

// foreign says whether a peer of the other side publishes the service.
func (c *Cast) foreign(peer int, name string) bool {
	return c.services[service{name, !c.s.Peers[peer].Edge}]
}

// service is a name that a side publishes.
type service struct {
	name string
	edge bool
}
