package sim

import (
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

// Got is a message that was delivered to a Site.
type Got struct {
	At      time.Time
	From    uint16
	Payload site.Message
}

// Site is the LAN side of a Node: its items, the messages that it sends, and the items and messages that it receives. It outlives crashes
// of the gateway, as peers do.
type Site struct {
	Node  *Node
	Items map[string]site.Item            // the items of this site
	Far   map[uint16]map[string]site.Item // the items of others that it received
	Got   []Got
	// Keep holds back Done: the messages wait for local peers until Release.
	Keep bool

	restated bool
	pending  site.Output
	news     []Got // delivered by a Step that is not committed
	offered  site.Output
	kept     []uint64
}

// Listen has a peer of the site listen to a propagate pipe.
func (s *Site) Listen(w *World, peer, pipe string) {
	s.Put(w, site.Item{Kind: site.Listener, Scope: "jxta-NetGroup", Owner: peer, ID: pipe, Sub: jxtabridge.PipePropagate})
}

// Put changes an item of the site.
func (s *Site) Put(w *World, it site.Item) {
	if s.Items == nil {
		s.Items = map[string]site.Item{}
	}
	if it.Gone {
		delete(s.Items, it.Key())
	} else {
		s.Items[it.Key()] = it
	}
	s.pending.Items = append(s.pending.Items, it)
	s.poke(w)
}

// Send hands the gateway a message for other sites. Until the gateway has it durably, the peer offers it again.
func (s *Site) Send(w *World, p site.Message, sites ...uint16) {
	s.Carry(w, site.Carry{Sites: sites, Message: p})
}

// Carry is Send for a message in an adapter's form.
func (s *Site) Carry(w *World, c site.Carry) {
	s.pending.Carry = append(s.pending.Carry, c)
	s.poke(w)
}

// Release confirms the messages that Keep held.
func (s *Site) Release(w *World) {
	s.Keep = false
	s.pending.Done = append(s.pending.Done, s.kept...)
	s.kept = nil
	s.poke(w)
}

// GiveUp ends the messages that Keep held: no peer here will get them.
func (s *Site) GiveUp(w *World) {
	for _, token := range s.kept {
		s.pending.Undelivered = append(s.pending.Undelivered, site.Undelivered{Token: token, Why: site.LifeOver})
	}
	s.Keep, s.kept = false, nil
	s.poke(w)
}

func (s *Site) poke(w *World) {
	w.At(0, func() { w.DeliverJXTA(s.Node, poked{}) })
}

// poked: the site has messages or items to offer.
type poked struct{}

func (poked) AdapterEvent() {}

// DescribeItem describes an item for the rules as JXTA's bridge does, because a Site's items are like those of JXTA peers.
func (s *Site) DescribeItem(it site.Item) site.Subject { return jxtabridge.DescribeItem(it) }

// DescribeMessage describes a message for the rules.
func (s *Site) DescribeMessage(m *site.Message) site.Subject { return jxtabridge.DescribeMessage(m) }

// Step is the gateway's view of the site.
func (s *Site) Step(now time.Time, ev site.Event) (out site.Output) {
	out, s.pending = s.pending, site.Output{}
	s.offered.Carry = append(s.offered.Carry, out.Carry...)
	if !s.restated {
		s.restated = true
		out.Items = nil
		for _, it := range s.Items {
			out.Items = append(out.Items, it)
		}
	}
	switch ev := ev.(type) {
	case site.FarMessage:
		s.news = append(s.news, Got{now, ev.Site, ev.Message})
		if s.Keep {
			s.kept = append(s.kept, ev.Token)
		} else {
			out.Done = append(out.Done, ev.Token)
		}
	case site.FarItem:
		if s.Far == nil {
			s.Far = map[uint16]map[string]site.Item{}
		}
		if s.Far[ev.Site] == nil {
			s.Far[ev.Site] = map[string]site.Item{}
		}
		if ev.Item.Gone {
			delete(s.Far[ev.Site], ev.Item.Key())
		} else {
			s.Far[ev.Site][ev.Item.Key()] = ev.Item
		}
	case site.SiteLost:
		delete(s.Far, ev.Site)
	}
	return out
}

// commit makes the changes of the last Step durable.
func (s *Site) commit() {
	if !s.Keep {
		s.Got = append(s.Got, s.news...)
	} else {
		for _, g := range s.news { // delivered once each, however often the gateway restarts
			if !s.has(g.Payload.ID) {
				s.Got = append(s.Got, g)
			}
		}
	}
	s.news, s.offered = nil, site.Output{}
}

func (s *Site) has(id string) bool {
	for _, g := range s.Got {
		if g.Payload.ID == id {
			return true
		}
	}
	return false
}

// forget undoes the last Step; the local peers offer their messages again.
func (s *Site) forget() {
	s.pending.Carry = append(s.offered.Carry, s.pending.Carry...)
	s.news, s.offered, s.kept = nil, site.Output{}, nil
}
