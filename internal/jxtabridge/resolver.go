package jxtabridge

import (
	"slices"
	"strings"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

// resolver handles queries, responses and SRDI, propagated (h set), sent to the gateway, or directed to a peer of
// another site in whose place the gateway answers (wire 6).
func (b *Bridge) resolver(in inbound, h *jxta.Propagate) {
	for _, e := range in.elements {
		if e.Namespace != "jxta" {
			continue
		}
		switch {
		case strings.HasSuffix(e.Name, "ORes"):
			b.query(in, h, e)
		case strings.HasSuffix(e.Name, "IRes"):
			b.response(in, h, e)
		case strings.HasSuffix(e.Name, "Srdi"):
			b.srdi(in, e)
		default:
			continue
		}
		return
	}
	b.complain(in.conn, "resolver", nil)
}

func (b *Bridge) query(in inbound, h *jxta.Propagate, e jxta.Element) {
	data, err := jxta.Gunzip(e.Data)
	if err != nil {
		b.complain(in.conn, "query", err)
		return
	}
	q, err := jxta.ParseResolverQuery(data)
	if err == nil && q.Src != in.from.id {
		err = errForeign
	}
	if err != nil {
		b.complain(in.conn, "query", err)
		return
	}
	switch {
	case strings.EqualFold(q.Handler, jxta.HandlerDiscovery):
		err = b.discoveryQuery(in, q)
	case q.Handler == jxta.HandlerPipe:
		err = b.pipeQuery(in, q)
	case q.Handler == jxta.HandlerRouter:
		err = b.routeQuery(in, q)
	case serviceIs(q.Handler, jxta.ClassPeerInfo): // optional, and about nothing that a far peer needs (wire 11.1)
	default:
		b.foreignHandler(in, h)
	}
	if err != nil {
		b.complain(in.conn, "query", err)
	}
}

// foreignHandler passes on what an application's own resolver handler says.
func (b *Bridge) foreignHandler(in inbound, h *jxta.Propagate) {
	switch {
	case in.dest != "":
		b.unicast(in)
	case h != nil:
		b.groupMessage(in, h)
	}
}

func (b *Bridge) response(in inbound, h *jxta.Propagate, e jxta.Element) {
	data, err := jxta.Gunzip(e.Data)
	if err != nil {
		b.complain(in.conn, "response", err)
		return
	}
	r, err := jxta.ParseResolverResponse(data)
	if err != nil {
		b.complain(in.conn, "response", err)
		return
	}
	switch {
	case strings.EqualFold(r.Handler, jxta.HandlerDiscovery):
		if in.dest != "" {
			b.unicast(in)
			return
		}
		d, err := jxta.ParseDiscoveryResponse([]byte(r.Response))
		if err != nil {
			b.complain(in.conn, "response", err)
			return
		}
		b.publish(in, d, r.QueryID != 0)
	case r.Handler == jxta.HandlerPipe && in.dest == "", r.Handler == jxta.HandlerRouter:
		// Pipes are known from SRDI and routes all lead here.
	default:
		b.foreignHandler(in, h)
	}
}

// respond sends a resolver response to a local peer, from the gateway or as a ghost.
func (b *Bridge) respond(p *peer, src, group string, r jxta.ResolverResponse) {
	if p.stranger {
		b.shoutResponse(p.id, group, r)
		return
	}
	e := []jxta.Element{xmlElement(group+"IRes", r.Append(nil))}
	b.enqueue(p, b.routed(p, src, group, jxta.URN(jxta.ClassResolver), group+"IRes", e))
}

// srdi learns which pipes a peer has open (wire 5.6). Indexes of 2.2 peers' advertisements make the gateway ask for
// what it has not seen: those peers do not push the advertisements themselves.
func (b *Bridge) srdi(in inbound, e jxta.Element) {
	m, err := jxta.ParseResolverSRDI(e.Data)
	if err != nil {
		b.complain(in.conn, "srdi", err)
		return
	}
	switch {
	case m.Handler == jxta.HandlerPipe:
	case strings.EqualFold(m.Handler, jxta.HandlerDiscovery):
	default:
		return
	}
	s, err := jxta.ParseSRDI([]byte(m.Payload))
	if err == nil && s.Peer != in.from.id {
		err = errForeign
	}
	if err != nil {
		b.complain(in.conn, "srdi", err)
		return
	}
	p := in.from
	if p.leases[in.group] == nil {
		return // it will say so again when it has a lease
	}
	if m.Handler != jxta.HandlerPipe {
		b.indexed(p, in.group, s)
		return
	}
	kind, ok := pipeTypes[s.Key]
	if !ok {
		b.stats.Refused["pipe_type"]++
		return
	}
	changed := false
	for _, entry := range s.Entries {
		pipe, err := jxta.ParseURN(entry.Value)
		if err != nil {
			b.complain(in.conn, "srdi", err)
			continue
		}
		k := pipeKey{in.group, pipe}
		_, open := p.pipes[k]
		switch {
		case entry.Life == 0 && open:
			b.pipeDown(p, k)
			changed = true
		case entry.Life > 0 && !open:
			if len(p.pipes) >= b.cfg.MaxPipes {
				b.complain(in.conn, "pipes", nil)
				continue
			}
			b.pipeUp(p, k, kind)
			changed = true
		}
	}
	if changed {
		b.rememberPeer(p)
	}
}

var pipeTypes = map[string]uint8{
	jxta.PipeTypePropagate: PipePropagate, jxta.PipeTypeUnicast: PipeUnicast, jxta.PipeTypeSecure: PipeUnicastSecure,
}

func (b *Bridge) pipeUp(p *peer, k pipeKey, kind uint8) {
	p.pipes[k] = kind
	b.tellPipe(p, k, kind)
	b.openHere[k.pipe]++
	b.inUse(useKey{id: k.pipe})
	b.pipeKnown(p.id, k, kind)
}

func (b *Bridge) pipeDown(p *peer, k pipeKey) {
	b.withdrawPipe(p, k, p.pipes[k])
	delete(p.pipes, k)
	if b.openHere[k.pipe]--; b.openHere[k.pipe] <= 0 {
		delete(b.openHere, k.pipe)
	}
	b.edgeGone(p, k.group, k.pipe)
}

func pipeItem(peer string, k pipeKey, kind uint8) site.Item {
	return site.Item{Kind: site.Listener, Scope: k.group, Owner: peer, ID: k.pipe, Sub: kind}
}

// pipeQuery answers who has a pipe open, in the owner's place (wire 8.2, ghosts 6.1).
func (b *Bridge) pipeQuery(in inbound, rq jxta.ResolverQuery) error {
	q, err := jxta.ParsePipeResolver([]byte(rq.Query))
	if err != nil || q.Answer {
		return err
	}
	b.stats.PipeQueries++
	only := q.Peers
	if in.dest != "" {
		only = []string{in.dest}
	}
	owners := b.pipeOwners(in.group, q.Pipe, in.from.id, only)
	for _, o := range owners {
		b.pipeAnswer(in.from, o, in.group, rq.QueryID, q)
	}
	switch {
	case len(owners) > 0:
	case len(only) > 0: // a directed question gets a no (wire 8.2), if it is about somebody we speak for
		for _, peer := range only {
			if peer != in.from.id && b.knows(peer) {
				b.pipeRefusal(in.from, peer, in.group, rq.QueryID, q)
			}
		}
	default:
		b.rememberQuestion(question{queryID: rq.QueryID, kind: q.Type,
			wish: wish{peer: in.from.id, group: in.group, handler: jxta.HandlerPipe, pipe: q.Pipe}})
	}
	return nil
}

const maxOwners = 8 // answers to one pipe query

// pipeOwners are the peers other than the asker that have the pipe open, local ones first; only restricts them.
func (b *Bridge) pipeOwners(group, pipe, asker string, only []string) []string {
	k := pipeKey{group, pipe}
	var owners []string
	add := func(peer string) {
		if peer != asker && len(owners) < maxOwners && !slices.Contains(owners, peer) && (len(only) == 0 || slices.Contains(only, peer)) {
			owners = append(owners, peer)
		}
	}
	for _, p := range b.sortedPeers() {
		if _, open := p.pipes[k]; open {
			add(p.id)
		}
	}
	for _, s := range b.sortedSites() {
		for _, peer := range b.far[s].pipeOwners(k) {
			add(peer)
		}
	}
	return owners
}

func (b *Bridge) pipeAnswer(asker *peer, owner, group string, queryID int, q jxta.PipeResolver) {
	a := jxta.PipeResolver{Answer: true, Pipe: q.Pipe, Type: q.Type, Peers: []string{owner}, Found: true}
	if doc, err := b.ghostPeerDoc(b.peerDoc(owner, group)); err == nil {
		a.PeerAdv = string(doc)
	}
	b.respond(asker, owner, group, jxta.ResolverResponse{Handler: jxta.HandlerPipe, QueryID: queryID, Response: string(a.Append(nil))})
}

func (b *Bridge) pipeRefusal(asker *peer, owner, group string, queryID int, q jxta.PipeResolver) {
	a := jxta.PipeResolver{Answer: true, Pipe: q.Pipe, Type: q.Type, Peers: []string{owner}}
	b.respond(asker, owner, group, jxta.ResolverResponse{Handler: jxta.HandlerPipe, QueryID: queryID, Response: string(a.Append(nil))})
}

// pipeKnown answers the questions that waited for this pipe.
func (b *Bridge) pipeKnown(owner string, k pipeKey, kind uint8) {
	if kind == PipePropagate {
		return // nobody has to resolve one
	}
	b.questions.answer(func(q *question) bool {
		if q.handler != jxta.HandlerPipe || q.group != k.group || q.pipe != k.pipe || q.peer == owner {
			return false
		}
		if asker := b.peers[q.peer]; asker != nil && b.now.Before(q.until) {
			b.stats.LateAnswers++
			b.pipeAnswer(asker, owner, q.group, q.queryID, jxta.PipeResolver{Pipe: q.pipe, Type: q.kind})
		}
		return true
	})
}

// routeQuery answers how to reach a peer: always through the gateway (wire 4.6).
func (b *Bridge) routeQuery(in inbound, rq jxta.ResolverQuery) error {
	q, err := jxta.ParseRouteQuery([]byte(rq.Query))
	if err != nil {
		return err
	}
	b.stats.RouteQueries++
	if q.Dest == in.from.id || !b.knows(q.Dest) {
		return nil
	}
	dest := b.ghostRoute(q.Dest)
	dest.Hops = nil // the asker makes "via the answering peer" of it
	doc := jxta.RouteResponse{Dest: dest, Src: *b.ownRoute()}.Append(nil)
	b.respond(in.from, b.me, in.group, jxta.ResolverResponse{Handler: jxta.HandlerRouter, QueryID: rq.QueryID, Response: string(doc)})
	return nil
}

// knows reports whether a peer can be reached from here.
func (b *Bridge) knows(peer string) bool {
	p := b.peers[peer]
	return peer == b.me || p != nil && len(p.leases) > 0 || b.farSite(peer) != 0
}
