package jxtabridge

import (
	"strings"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

// access is the gateway's own access point, with its addresses: the only ones that are ever handed out.
func (b *Bridge) access() jxta.AccessPoint {
	a := jxta.AccessPoint{Peer: b.me}
	if b.cfg.Address != "" {
		a.Addresses = append(a.Addresses, "tcp://"+b.cfg.Address)
	}
	if b.cfg.HTTP != "" {
		a.Addresses = append(a.Addresses, "http://"+b.cfg.HTTP)
	}
	return a
}

// ownRoute is the jxta:RA without which an edge never sends anything (wire 5.1).
func (b *Bridge) ownRoute() *jxta.Route { return &jxta.Route{Dest: b.me, Access: b.access()} }

// ghostRoute leads to any other peer, far or local, through the gateway (ghosts 6.2).
func (b *Bridge) ghostRoute(peer string) jxta.Route {
	if peer == b.me {
		return *b.ownRoute()
	}
	return jxta.Route{Dest: peer, Access: jxta.AccessPoint{Peer: peer}, Hops: []jxta.AccessPoint{b.access()}}
}

// innerService names a service as router messages do: mangled for every group but the net peer group (ghosts 9).
func innerService(group, service, param string) (string, string) {
	if group == jxta.NetGroup {
		return service, param
	}
	return jxta.Mangle(group, service, param)
}

// routed makes a message to a local peer, from the gateway itself (src = b.me) or as a ghost. A ghost's message
// names the gateway in Rvs (ghosts 6.3), claims the ghost as its source and is signed with the gateway's key
// (ghosts 6.1, the variant without fingerprint).
func (b *Bridge) routed(p *peer, src, group, service, param string, elements []jxta.Element) *message {
	service, param = innerService(group, service, param)
	r := jxta.RouterMessage{Src: src, Dest: jxta.Address{Scheme: "jxta", Host: p.id, Service: service, Param: param}, Last: b.me}
	if src != b.me {
		r.Rvs = []jxta.AccessPoint{{Peer: b.me}}
	}
	return b.seal(src, group, elements, r)
}

// routedHere is routed from the gateway itself, with its route: what a peer needs at first contact.
func (b *Bridge) routedHere(p *peer, group, service, param string, elements []jxta.Element) *message {
	service, param = innerService(group, service, param)
	return b.seal(b.me, group, elements, jxta.RouterMessage{Src: b.me, Last: b.me, Route: b.ownRoute(),
		Dest: jxta.Address{Scheme: "jxta", Host: p.id, Service: service, Param: param}})
}

func (b *Bridge) seal(src, group string, elements []jxta.Element, r jxta.RouterMessage) *message {
	all := make([]jxta.Element, 0, len(elements)+1)
	all = append(all, elements...)
	all = append(all, xmlElement(elRouter, r.Append(nil)))
	return &message{elements: all, source: src, group: group}
}

// forward handles what is routed to another peer: here, on another site, or nowhere.
func (b *Bridge) forward(in inbound) {
	far := b.farSite(in.dest)
	local := b.peers[in.dest]
	if local != nil && len(local.leases) == 0 && len(local.conns) == 0 {
		local = nil
	}
	st := b.streamAt[streamAddr{in.from.id, in.dest, in.param}]
	switch {
	case local == in.from:
		b.stats.Refused["own_message"]++
	case local == nil && far == 0 && st != nil && in.service == svcPipe: // it has left, what it sent before has not all arrived
		b.fromEdge(st, in)
	case local == nil && far == 0:
		b.complain(in.conn, "unknown_destination", nil)
		b.unreachable(in)
	case serviceIs(in.service, jxta.ClassResolver):
		b.expectLease(in)
		b.resolver(in, nil)
	default:
		b.expectLease(in)
		b.unicast(in)
	}
}

// unicast passes a message on as it is, to a local peer or into custody for the far site.
func (b *Bridge) unicast(in inbound) {
	far := b.farSite(in.dest)
	// A peer that went from here to another site may still have its lease here.
	p := b.peers[in.dest]
	local := p != nil && (len(p.conns) > 0 || far == 0)
	if !local && (b.stream(in, far) || b.tls(in, far)) {
		return
	}
	pl := site.Message{Scope: in.group, From: in.from.id, To: in.dest, Service: in.service, Param: in.param,
		Parts: b.outward(keep(in.elements))}
	if b.deniesMessage(&pl) {
		return
	}
	if local {
		b.stats.LocalFanOut++
		b.enqueue(p, b.ghostMessage(p, pl))
		return
	}
	b.carry([]uint16{far}, pl)
}

// ghostMessage re-creates a routed payload for a local peer.
func (b *Bridge) ghostMessage(p *peer, pl site.Message) *message {
	return b.routed(p, pl.From, pl.Scope, pl.Service, pl.Param, b.inward(pl.From, pl.Parts))
}

// outward takes addresses of this site out of what leaves it: peer advertisements of BiDi and socket openings and
// the routes in resolver queries (ghosts 6.2).
func (b *Bridge) outward(elements []jxta.Element) []jxta.Element {
	for i := range elements {
		e := &elements[i]
		switch {
		case carriesPeerAdv(e):
			if n, err := jxta.ParseXML(e.Data, jxta.DefaultXML); err == nil && n.Name == "jxta:PA" {
				e.Data = reducePeer(n)
			}
		case carriesQuery(e):
			if q, err := jxta.ParseResolverQuery(e.Data); err == nil {
				q.Route = nil
				e.Data = q.Append(nil)
			}
		}
	}
	return elements
}

// inward puts the gateway's route where outward took one out.
func (b *Bridge) inward(src string, elements []jxta.Element) []jxta.Element {
	out := append([]jxta.Element(nil), elements...)
	for i := range out {
		e := &out[i]
		switch {
		case carriesPeerAdv(e):
			if n, err := jxta.ParseXML(e.Data, jxta.DefaultXML); err == nil && n.Name == "jxta:PA" {
				if doc, err := b.ghostPeerDoc(e.Data); err == nil {
					e.Data = doc
				}
			}
		case carriesQuery(e):
			if q, err := jxta.ParseResolverQuery(e.Data); err == nil {
				r := b.ghostRoute(src)
				q.Route = &r
				e.Data = q.Append(nil)
			}
		}
	}
	return out
}

func carriesPeerAdv(e *jxta.Element) bool {
	return e.Name == "remPeer" && (e.Namespace == "JXTABIP" || e.Namespace == "JXTASOC")
}

func carriesQuery(e *jxta.Element) bool {
	return e.Namespace == "jxta" && strings.HasSuffix(e.Name, "ORes")
}

// unreachable tells the sender that the route is bad (wire 4.6, NACK), so that it asks again instead of waiting.
func (b *Bridge) unreachable(in inbound) {
	bad := b.ghostRoute(in.dest)
	doc := jxta.RouteResponse{Dest: bad, Src: jxta.Route{Dest: b.me, Access: jxta.AccessPoint{Peer: b.me}}}.Append(nil)
	b.respond(in.from, b.me, in.group, jxta.ResolverResponse{Handler: jxta.HandlerRouter, QueryID: -1, Response: string(doc)})
}

// reducePeer is what far sites have to know of a peer: no route, no certificate, no signature, no rendezvous flag.
func reducePeer(n *jxta.Node) []byte {
	c := &jxta.Node{Name: n.Name}
	for _, k := range n.Kids {
		switch k.Name {
		case "XMLSignature", "XMLSignatureInfo", "":
			continue
		case "Svc":
			class, err := jxta.ParseURN(k.KidValue("MCID"))
			if err != nil || class == jxta.ClassEndpoint || class == jxta.ClassPeerGroup || class == jxta.ClassRendezvous {
				continue
			}
			k = withoutRoutes(k)
		}
		c.Kids = append(c.Kids, k)
	}
	return jxta.AppendXML(nil, c)
}

// withoutRoutes copies n without any jxta:RA or jxta:APA below.
func withoutRoutes(n *jxta.Node) *jxta.Node {
	if n.Name == "" {
		return n
	}
	c := &jxta.Node{Name: n.Name, Attr: n.Attr}
	for _, k := range n.Kids {
		if k.Name == "jxta:RA" || k.Name == "jxta:APA" {
			continue
		}
		c.Kids = append(c.Kids, withoutRoutes(k))
	}
	return c
}

// ghostPeerDoc rebuilds a whole peer advertisement from a reduced one, routed through this gateway.
func (b *Bridge) ghostPeerDoc(reduced []byte) ([]byte, error) {
	n, err := jxta.ParseXML(reduced, jxta.DefaultXML)
	if err != nil {
		return nil, err
	}
	p, err := jxta.ParsePeerAdvertisement(n)
	if err != nil {
		return nil, err
	}
	route := b.ghostRoute(p.Peer)
	p.Services = append(p.Services, jxta.Service{Class: jxta.ClassEndpoint,
		Node: jxta.ServiceNode(jxta.ClassEndpoint, route.Node())})
	return jxta.AppendDocument(nil, p.Node()), nil
}

// ownPeerDoc is the gateway's peer advertisement in a group: what was found to be needed (baseline 6), no more.
func (b *Bridge) ownPeerDoc(group string) []byte {
	p := jxta.PeerAdvertisement{Peer: b.me, Group: group, Name: b.cfg.Name, Services: []jxta.Service{
		{Class: jxta.ClassRendezvous, Node: jxta.ServiceNode(jxta.ClassRendezvous, jxta.Leaf("Rdv", "true"))},
		{Class: jxta.ClassEndpoint, Node: jxta.ServiceNode(jxta.ClassEndpoint, b.ownRoute().Node())},
	}}
	return jxta.AppendDocument(nil, p.Node())
}
