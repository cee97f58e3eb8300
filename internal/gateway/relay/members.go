package relay

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
)

// NewStore begins anew with a node that knows nothing of the messages sent to it: its messages get other sets.
func (c *Carrier) NewStore(p *mail.Peer) (again []*mail.Entry) {
	l := c.lines[p.ID]
	again = c.Store.Clear(p)
	for at := range l.out {
		forgetOut(l, at)
	}
	for _, number := range slices.Sorted(maps.Keys(c.sets)) {
		s := c.sets[number]
		if !slices.Contains(s.to, p.ID) {
			continue
		}
		delete(c.named, setName(s.rank, s.to))
		if len(s.to) == 1 {
			c.drop(s)
		}
	}
	return again
}

// NewNumbers forgets the messages that came of a node.
func (c *Carrier) NewNumbers(_ time.Time, p *mail.Peer) {
	l := c.lines[p.ID]
	for number, in := range l.in {
		l.drop(number, in)
	}
	l.in, l.early = map[uint16]*inflow{}, 0
}

// Unlearn codes no more messages after those that a node has forgotten.
func (c *Carrier) Unlearn(p *mail.Peer) {
	l := c.lines[p.ID]
	for _, s := range c.sets {
		if slices.Contains(s.to, p.ID) {
			s.history.Unlearn(p, s.at(s.next).Number)
		}
	}
	for _, s := range l.out {
		s.again = true
	}
}

// Join takes a node in while the gateway runs, and Leave takes one out. If one comes back in this run, its messages that came before still
// count: it may not know yet that they have come.
func (c *Carrier) Join(_ time.Time, p *mail.Peer) error {
	c.add(p)
	return nil
}

// Leave cancels the messages held for a node.
func (c *Carrier) Leave(_ time.Time, p *mail.Peer, why string) {
	c.Store.Cancel(p, why)
	c.NewStore(p)
	c.away[p.ID] = c.lines[p.ID]
	delete(c.lines, p.ID)
	c.order = slices.DeleteFunc(c.order, func(l *line) bool { return l.ID == p.ID })
}
