package sim

import (
	"time"

	"aldis/internal/gateway"
	"aldis/internal/jxtabridge"
)

// Got is a message that a Site was handed.
type Got struct {
	At      time.Time
	From    uint16
	Payload jxtabridge.Payload
}

// Site is the LAN side of a Node: its items, what it wants carried, what it was told and handed. It outlives crashes
// of the gateway, as peers do.
type Site struct {
	Node  *Node
	Items map[string]jxtabridge.Item            // what this site has
	Far   map[uint16]map[string]jxtabridge.Item // what it was told of others
	Got   []Got
	// Keep holds back Done: the messages wait for local peers until Release.
	Keep bool

	restated bool
	pending  jxtabridge.Output
	news     []Got // handed over by a Step that is not committed
	offered  jxtabridge.Output
	kept     []uint64
}

// Put changes an item of the site.
func (s *Site) Put(w *World, it jxtabridge.Item) {
	if s.Items == nil {
		s.Items = map[string]jxtabridge.Item{}
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
func (s *Site) Send(w *World, p jxtabridge.Payload, sites ...uint16) {
	s.pending.Carry = append(s.pending.Carry, jxtabridge.Carry{Sites: sites, Payload: p})
	s.poke(w)
}

// Release lets go of what Keep held.
func (s *Site) Release(w *World) {
	s.Keep = false
	s.pending.Done = append(s.pending.Done, s.kept...)
	s.kept = nil
	s.poke(w)
}

func (s *Site) poke(w *World) {
	w.At(0, func() { w.step(s.Node, gateway.LAN{Event: jxtabridge.Closed{}}) })
}

// Step is the gateway's view of the site.
func (s *Site) Step(now time.Time, ev jxtabridge.Event) (out jxtabridge.Output) {
	out, s.pending = s.pending, jxtabridge.Output{}
	s.offered.Carry = append(s.offered.Carry, out.Carry...)
	if !s.restated {
		s.restated = true
		out.Items = nil
		for _, it := range s.Items {
			out.Items = append(out.Items, it)
		}
	}
	switch ev := ev.(type) {
	case jxtabridge.FarPayload:
		s.news = append(s.news, Got{now, ev.Site, ev.Payload})
		if s.Keep {
			s.kept = append(s.kept, ev.Token)
		} else {
			out.Done = append(out.Done, ev.Token)
		}
	case jxtabridge.FarItem:
		if s.Far == nil {
			s.Far = map[uint16]map[string]jxtabridge.Item{}
		}
		if s.Far[ev.Site] == nil {
			s.Far[ev.Site] = map[string]jxtabridge.Item{}
		}
		if ev.Item.Gone {
			delete(s.Far[ev.Site], ev.Item.Key())
		} else {
			s.Far[ev.Site][ev.Item.Key()] = ev.Item
		}
	case jxtabridge.SiteLost:
		delete(s.Far, ev.Site)
	}
	return out
}

// commit: what the last Step did is durable.
func (s *Site) commit() {
	if !s.Keep {
		s.Got = append(s.Got, s.news...)
	} else {
		for _, g := range s.news { // handed over once each, however often the gateway restarts
			if !s.has(g.Payload.MsgID) {
				s.Got = append(s.Got, g)
			}
		}
	}
	s.news, s.offered = nil, jxtabridge.Output{}
}

func (s *Site) has(id string) bool {
	for _, g := range s.Got {
		if g.Payload.MsgID == id {
			return true
		}
	}
	return false
}

// forget: the last Step never happened; the local peers offer again what they offered.
func (s *Site) forget() {
	s.pending.Carry = append(s.offered.Carry, s.pending.Carry...)
	s.news, s.offered, s.kept = nil, jxtabridge.Output{}, nil
}
