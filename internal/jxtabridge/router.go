package jxtabridge

import (
	"slices"
	"strings"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// resolver handles queries, responses and SRDI, propagated (h set), sent to the gateway, or directed to a peer of
// another site. The gateway answers in the place of that peer (wire 6).
func (b *Bridge) resolver(in inbound, h *jxta.Propagate) {
	for _, e := range in.elements {
		if e.Namespace != "jxta" {
			continue
		}
		what, handle := "", b.query
		switch {
		case strings.HasSuffix(e.Name, "ORes"):
			what = "query"
		case strings.HasSuffix(e.Name, "IRes"):
			what, handle = "response", b.response
		case strings.HasSuffix(e.Name, "Srdi"):
			what, handle = "srdi", b.leases.srdi
		default:
			continue
		}
		if err := handle(in, h, e); err != nil {
			b.complain(in.conn, what, err)
		}
		return
	}
	b.complain(in.conn, "resolver", nil)
}

func (b *Bridge) query(in inbound, h *jxta.Propagate, e jxta.Element) error {
	data, err := jxta.Gunzip(e.Data)
	if err != nil {
		return err
	}
	q, err := jxta.ParseResolverQuery(data)
	switch {
	case err != nil:
		return err
	case q.Src != in.from.id:
		return errForeign
	case strings.EqualFold(q.Handler, jxta.HandlerDiscovery):
		return b.directory.discoveryQuery(in, q)
	case q.Handler == jxta.HandlerPipe:
		return b.directory.pipeQuery(in, q)
	case q.Handler == jxta.HandlerRouter:
		return b.routeQuery(in, q)
	case serviceIs(q.Handler, jxta.ClassPeerInfo): // optional, and useless to far peers (wire 11.1)
	default:
		b.foreignHandler(in, h)
	}
	return nil
}

// foreignHandler passes on a message of an application's own resolver handler.
func (b *Bridge) foreignHandler(in inbound, h *jxta.Propagate) {
	switch {
	case in.dest != "":
		b.unicast(in)
	case h != nil:
		b.propagation.group(in, h)
	}
}

func (b *Bridge) response(in inbound, h *jxta.Propagate, e jxta.Element) error {
	data, err := jxta.Gunzip(e.Data)
	if err != nil {
		return err
	}
	r, err := jxta.ParseResolverResponse(data)
	switch {
	case err != nil:
		return err
	case strings.EqualFold(r.Handler, jxta.HandlerDiscovery) && in.dest != "":
		b.unicast(in)
	case strings.EqualFold(r.Handler, jxta.HandlerDiscovery):
		d, err := jxta.ParseDiscoveryResponse([]byte(r.Response))
		if err != nil {
			return err
		}
		b.directory.publish(in, d, r.QueryID != 0)
	case r.Handler == jxta.HandlerPipe && in.dest == "", r.Handler == jxta.HandlerRouter:
		// Pipes are known from SRDI and routes all lead here.
	default:
		b.foreignHandler(in, h)
	}
	return nil
}

// routeQuery answers how to reach a peer: always through the gateway (wire 4.6).
func (b *Bridge) routeQuery(in inbound, rq jxta.ResolverQuery) error {
	q, err := jxta.ParseRouteQuery([]byte(rq.Query))
	if err != nil {
		return err
	}
	b.stats.RouteQueries++
	switch {
	case q.Dest == in.from.id:
	case b.far.knows(q.Dest):
		b.directory.routeAnswer(in.from, in.group, q.Dest, rq.QueryID)
	case b.directory.seek(in.from, in.group, q.Dest):
		b.directory.await(question{queryID: rq.QueryID, wish: wish{peer: in.from.id, group: in.group, handler: jxta.HandlerRouter,
			ask: advcache.Question{Peer: q.Dest}}})
	}
	return nil
}

// knows reports whether a peer can be reached from here.
func (f *far) knows(peer string) bool {
	p := f.outlets.peers[peer]
	return peer == f.me || p != nil && len(p.leases) > 0 || f.home(peer) != 0
}

// forward handles a message that is routed to another peer: here, at another site, or unknown.
func (b *Bridge) forward(in inbound) {
	far := b.far.home(in.dest)
	local := b.outlets.peers[in.dest]
	if local != nil && len(local.leases) == 0 && len(local.conns) == 0 {
		local = nil
	}
	st := b.streams.at[streamAddr{in.from.id, in.dest, in.param}]
	switch {
	case local == in.from:
		b.stats.Refused["own_message"]++
	case local == nil && far == 0 && st != nil && in.service == svcPipe: // the far peer has left, and not all its blocks have arrived yet
		b.streams.fromEdge(st, in)
	case local == nil && far == 0:
		if !b.directory.seek(in.from, in.group, in.dest) {
			b.complain(in.conn, "unknown_destination", nil)
		}
		b.unreachable(in)
	case serviceIs(in.service, jxta.ClassResolver):
		b.leases.expect(in)
		b.resolver(in, nil)
	default:
		b.leases.expect(in)
		b.unicast(in)
	}
}

// unicast passes a message on as it is, to a local peer or into custody for the far site.
func (b *Bridge) unicast(in inbound) {
	far := b.far.home(in.dest)
	// A peer that has moved from here to another site may still have its lease here.
	p := b.outlets.peers[in.dest]
	local := p != nil && (len(p.conns) > 0 || far == 0)
	if !local && (b.streams.handle(in, far) || b.secure.handle(in, far)) {
		return
	}
	m := site.Message{Scope: in.group, From: in.from.id, To: in.dest, Service: in.service, Param: in.param,
		Parts: outward(in.kept())}
	if b.rules.deniesMessage(&m) {
		return
	}
	if local {
		b.stats.LocalFanOut++
		b.outlets.enqueue(p, b.ghosts.ghostMessage(p, m))
		return
	}
	b.carry([]uint16{far}, m)
}

// unreachable tells the sender that the route is bad (wire 4.6, NACK), so that it asks again instead of waiting.
func (b *Bridge) unreachable(in inbound) {
	bad := b.ghosts.ghostRoute(in.dest)
	doc := jxta.RouteResponse{Dest: bad, Src: jxta.Route{Dest: b.me, Access: jxta.AccessPoint{Peer: b.me}}}.Append(nil)
	b.multicast.respond(in.from, b.me, in.group, jxta.ResolverResponse{Handler: jxta.HandlerRouter, QueryID: -1, Response: string(doc)})
}

// propagated handles a message with a propagation header: resolver traffic, propagate pipes, anything else that is
// for a whole group (wire 5.3).
func (b *Bridge) propagated(in inbound) {
	e := find(in.elements, elPropagate, "")
	if e == nil {
		b.complain(in.conn, "propagate", nil)
		return
	}
	h, err := jxta.ParsePropagate(e.Data)
	if err != nil {
		b.complain(in.conn, "propagate", err)
		return
	}
	if h.TTL <= 0 || !b.multicast.fresh(in.from, "p"+in.group+" "+h.MessageID) || slices.Contains(h.Path, b.me) {
		b.stats.Refused["propagated_before"]++
		return
	}
	switch {
	case h.Service == svcWire:
		b.propagation.wire(in, &h)
	case serviceIs(h.Service, jxta.ClassResolver):
		b.resolver(in, &h)
	case h.Service == svcPeerView:
		b.leases.peerView(in)
	default:
		b.propagation.group(in, &h)
	}
}

// farItem learns an item of another site.
func (b *Bridge) farItem(ev site.FarItem) {
	it := ev.Item
	if ev.Site == 0 {
		return
	}
	s := b.far.siteOf(ev.Site)
	if !it.Gone && s.count >= b.cfg.MaxFarItems && it.Kind != site.Document && it.Kind != site.Question {
		b.stats.Refused["far_items"]++
		return
	}
	switch it.Kind {
	case site.Endpoint:
		if it.Sub != 0 {
			if s.farView(it, b.cfg.Site) {
				b.directory.views.turn(false)
			}
			return
		}
		s.farPeer(it, b.directory.asked, b.now)
		if !it.Gone {
			b.directory.peerKnown(it.Owner, it.Scope)
		}
	case site.Listener:
		switch known := s.farPipe(it); {
		case known && it.Sub == PipePropagate:
			b.propagation.release(ev.Site, it.Scope, it.ID)
		case known: // nobody has to resolve a propagate pipe
			b.directory.pipeKnown(it.Owner, pipeKey{it.Scope, it.ID})
		}
	case site.Document:
		b.directory.learn(ev.Site, it)
	case site.Question:
		b.directory.farAsk(ev.Site, s, it)
	}
}

// siteLost forgets a site.
func (b *Bridge) siteLost(n uint16) {
	b.streams.siteLost(n)
	s := b.far.sites[n]
	b.far.lose(n)
	b.directory.cache.RemoveSite(n)
	if s != nil && len(s.wants) > 0 {
		b.directory.views.turn(false)
	}
}

// farMessage re-creates a message of another site for its local receivers.
func (b *Bridge) farMessage(ev site.FarMessage) {
	if b.outlets.waiting[ev.Token] != nil {
		return // handed in again, and still under way
	}
	b.stats.FarPayloads++
	switch m := &ev.Message; {
	case m.Published || m.To == "" || !ofStream(m):
		b.arrivals.hear(ev)
	case m.Service == svcStream:
		b.streams.hear(ev)
	default:
		b.secure.hear(ev)
	}
}
