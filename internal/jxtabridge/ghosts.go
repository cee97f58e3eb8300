package jxtabridge

import (
	"strings"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

// ghosts writes messages and documents as the gateway and as the far peers for which it stands.
type ghosts struct{ *step }

// access is the gateway's own access point, with its addresses: the only ones that are ever handed out.
func (g *ghosts) access() jxta.AccessPoint {
	a := jxta.AccessPoint{Peer: g.me}
	if g.cfg.Address != "" {
		a.Addresses = append(a.Addresses, "tcp://"+g.cfg.Address)
	}
	if g.cfg.HTTP != "" {
		a.Addresses = append(a.Addresses, "http://"+g.cfg.HTTP)
	}
	return a
}

// ownRoute is the jxta:RA without which an edge never sends anything (wire 5.1).
func (g *ghosts) ownRoute() *jxta.Route { return &jxta.Route{Dest: g.me, Access: g.access()} }

// ghostRoute leads to any other peer, far or local, through the gateway (ghosts 6.2).
func (g *ghosts) ghostRoute(peer string) jxta.Route {
	if peer == g.me {
		return *g.ownRoute()
	}
	return jxta.Route{Dest: peer, Access: jxta.AccessPoint{Peer: peer}, Hops: []jxta.AccessPoint{g.access()}}
}

// innerService names a service in the way of router messages: mangled for every group but the net peer group (ghosts 9).
func innerService(group, service, param string) (string, string) {
	if group == jxta.NetGroup {
		return service, param
	}
	return jxta.Mangle(group, service, param)
}

// routed makes a message to a local peer, from the gateway itself (src = b.me) or as a ghost. A ghost's message
// names the gateway in Rvs (ghosts 6.3), claims the ghost as its source and is signed with the gateway's key
// (ghosts 6.1, the variant without fingerprint).
func (g *ghosts) routed(p *peer, src, group, service, param string, elements []jxta.Element) *message {
	service, param = innerService(group, service, param)
	r := jxta.RouterMessage{Src: src, Dest: jxta.Address{Scheme: "jxta", Host: p.id, Service: service, Param: param}, Last: g.me}
	if src != g.me {
		r.Rvs = []jxta.AccessPoint{{Peer: g.me}}
	}
	return wrap(src, group, elements, r)
}

// routedHere is routed from the gateway itself, with its route: a peer needs it at first contact.
func (g *ghosts) routedHere(p *peer, group, service, param string, elements []jxta.Element) *message {
	service, param = innerService(group, service, param)
	return wrap(g.me, group, elements, jxta.RouterMessage{Src: g.me, Last: g.me, Route: g.ownRoute(),
		Dest: jxta.Address{Scheme: "jxta", Host: p.id, Service: service, Param: param}})
}

// wrap adds the router element.
func wrap(src, group string, elements []jxta.Element, r jxta.RouterMessage) *message {
	all := make([]jxta.Element, 0, len(elements)+1)
	all = append(all, elements...)
	all = append(all, xmlElement(elRouter, r.Append(nil)))
	return &message{elements: all, source: src, group: group}
}

// routedAnyGroup is routed for a peer that may have its lease in another group: some messages of a group come before its lease.
func (g *ghosts) routedAnyGroup(p *peer, src, group, service, param string, elements []jxta.Element) *message {
	m := g.routed(p, src, group, service, param, elements)
	if p.leases[group] == nil {
		m.group = p.anyGroup()
	}
	return m
}

// ghostMessage re-creates a routed payload for a local peer.
func (g *ghosts) ghostMessage(p *peer, m site.Message) *message {
	return g.routed(p, m.From, m.Scope, m.Service, m.Param, g.inward(m.From, m.Parts))
}

// outward takes addresses of this site out of messages that leave it: peer advertisements of BiDi and socket openings and
// the routes in resolver queries (ghosts 6.2).
func outward(elements []jxta.Element) []jxta.Element {
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
func (g *ghosts) inward(src string, elements []jxta.Element) []jxta.Element {
	out := append([]jxta.Element(nil), elements...)
	for i := range out {
		e := &out[i]
		switch {
		case carriesPeerAdv(e):
			if n, err := jxta.ParseXML(e.Data, jxta.DefaultXML); err == nil && n.Name == "jxta:PA" {
				if doc, err := g.ghostPeerDoc(e.Data); err == nil {
					e.Data = doc
				}
			}
		case carriesQuery(e):
			if q, err := jxta.ParseResolverQuery(e.Data); err == nil {
				r := g.ghostRoute(src)
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

// reducePeer is a peer advertisement reduced for far sites: no route, no certificate, no signature, no rendezvous flag.
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
func (g *ghosts) ghostPeerDoc(reduced []byte) ([]byte, error) {
	n, err := jxta.ParseXML(reduced, jxta.DefaultXML)
	if err != nil {
		return nil, err
	}
	p, err := jxta.ParsePeerAdvertisement(n)
	if err != nil {
		return nil, err
	}
	route := g.ghostRoute(p.Peer)
	p.Services = append(p.Services, jxta.Service{Class: jxta.ClassEndpoint,
		Node: jxta.ServiceNode(jxta.ClassEndpoint, route.Node())})
	return jxta.AppendDocument(nil, p.Node()), nil
}

// ownPeerDoc is the gateway's peer advertisement in a group, with only the parts that were found to be needed (baseline 6).
func (g *ghosts) ownPeerDoc(group string) []byte {
	p := jxta.PeerAdvertisement{Peer: g.me, Group: group, Name: g.cfg.Name, Services: []jxta.Service{
		{Class: jxta.ClassRendezvous, Node: jxta.ServiceNode(jxta.ClassRendezvous, jxta.Leaf("Rdv", "true"))},
		{Class: jxta.ClassEndpoint, Node: jxta.ServiceNode(jxta.ClassEndpoint, g.ownRoute().Node())},
	}}
	return jxta.AppendDocument(nil, p.Node())
}

// rdvDoc is the gateway's RdvAdvertisement.
func (g *ghosts) rdvDoc(group, service string) []byte {
	return jxta.AppendDocument(nil, jxta.RdvAdvertisement{Group: group, Peer: g.me, ServiceName: service,
		Name: g.cfg.Name, Route: g.ownRoute()}.Node())
}

// ownService is the gateway's advertisement as a rendezvous or relay, for a peer that looks for one by discovery
// (as JXSE 2.7 does without a seed); nil when it asks for something else.
func (g *ghosts) ownService(group, service string) []byte {
	for _, class := range []string{jxta.ClassRendezvous, jxta.ClassRelay} {
		for _, name := range []string{jxta.URN(class) + group, jxta.URN(class), class} {
			if strings.EqualFold(service, name) {
				return g.rdvDoc(group, service)
			}
		}
	}
	return nil
}
