package group

import (
	"cmp"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/pmul"
)

// know begins with a peer of which the engines know.
func know(c *Carrier, p *mail.Peer) {
	c.peers[p.ID] = p
	if c.orders[p.ID] == nil {
		c.orders[p.ID] = &order{early: mail.ReorderBuffer{Peer: p.ID, Services: c.Services}}
	}
}

// Members is the Carrier as its peers come and go (mail.Members).
type Members struct{ C *Carrier }

// Join takes a peer in while P_Mul works, one that has left too.
func (m Members) Join(_ time.Time, p *mail.Peer) error {
	c := m.C
	know(c, p)
	at, _ := slices.BinarySearchFunc(c.Peers, p.ID, func(q *mail.Peer, id uint16) int { return cmp.Compare(q.ID, id) })
	c.Peers = slices.Insert(slices.Clone(c.Peers), at, p)
	tellMembers(c)
	return nil
}

// Leave takes a peer out. The messages held for it are cancelled.
func (m Members) Leave(now time.Time, p *mail.Peer, _ string) {
	c := m.C
	c.leaving = p
	c.stepSender(now, pmul.Gone{Node: pmul.NodeID(p.ID)})
	c.leaving = nil
	c.Others.forget(pmul.NodeID(p.ID), true)
	c.NewStore(p)
	delete(c.peers, p.ID)
	delete(c.silent, p.ID)
	c.Peers = slices.DeleteFunc(slices.Clone(c.Peers), func(q *mail.Peer) bool { return q == p })
	tellMembers(c)
}

// tellMembers tells the engines which peers there are.
func tellMembers(c *Carrier) {
	list := []pmul.NodeID{}
	for _, p := range c.Peers {
		list = append(list, pmul.NodeID(p.ID))
	}
	c.engine.Peers = list
	pmul.Members(list, c.sender, c.receiver)
}
