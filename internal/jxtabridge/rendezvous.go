package jxtabridge

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

// lease answers the rendezvous lease protocol, for whatever group asks (wire 5.1, ghosts 9).
func (b *Bridge) lease(in inbound) {
	if e := find(in.elements, "Connect", ""); e != nil && e.Name == "Connect" {
		b.connect(in, e.Data)
	}
	if e := find(in.elements, "Disconnect", ""); e != nil {
		b.dropLease(in.from, in.group)
		if p := in.from; p.wantsNudge() { // should it stay after all
			p.nudge = later(p.nudge, b.now.Add(firstNudge))
			b.peerAt(p, p.nudge)
		}
	}
}

func (b *Bridge) connect(in inbound, doc []byte) {
	n, err := jxta.ParseXML(doc, jxta.DefaultXML)
	if err != nil {
		b.complain(in.conn, "lease", err)
		return
	}
	adv, err := jxta.ParsePeerAdvertisement(n)
	if err != nil {
		b.complain(in.conn, "lease", err)
		return
	}
	p := in.from
	if adv.Peer != p.id {
		b.complain(in.conn, "lease", errForeign)
		return
	}
	if !isGroup(adv.Group) {
		b.complain(in.conn, "group", nil)
		return
	}
	group := adv.Group
	l := p.leases[group]
	if l == nil {
		if len(p.leases) >= b.cfg.MaxGroups {
			b.complain(in.conn, "groups", nil)
			return
		}
		l = &lease{}
		b.grant(p, group, l)
		b.inUse(useKey{true, group})
		b.note("info", "peer has a lease", "peer", p.id, "name", adv.Name, "group", group, "signed", p.signed)
	}
	l.expires = b.now.Add(b.cfg.Lease)
	b.peerAt(p, l.expires)
	if reduced := reducePeer(n); !bytes.Equal(l.doc, reduced) {
		l.doc, l.index = reduced, indexOf(reduced)
		b.tell(b.peerItem(p, group))
		b.peerKnown(p.id, group)
	}
	b.rememberPeer(p)
	b.stats.Grants++
	b.enqueue(p, b.routedHere(p, group, jxta.URN(jxta.ClassRendezvous), group, []jxta.Element{
		xmlElement("RdvAdvReply", b.ownPeerDoc(group)),
		text("ConnectedPeer", jxta.URN(b.me)),
		text("ConnectedLease", strconv.FormatInt(b.cfg.Lease.Milliseconds(), 10)),
	}))
}

func (b *Bridge) peerItem(p *peer, group string) site.Item {
	return site.Item{Kind: site.Endpoint, Scope: group, Owner: p.id, Doc: p.leases[group].doc, Variant: p.signed}
}

// dropLease forgets a peer in a group: its pipes close, what waited for it there is finished.
func (b *Bridge) dropLease(p *peer, group string) {
	if p.leases[group] == nil {
		return
	}
	for _, k := range p.pipeKeys() {
		if k.group == group {
			b.pipeDown(p, k)
		}
	}
	b.edgeGone(p, group, "")
	b.revoke(p, group)
	b.tell(site.Item{Kind: site.Endpoint, Scope: group, Owner: p.id, Gone: true})
	b.abandon(p, func(m *message) bool { return m.group == group && m.delivery != nil })
	for _, c := range p.conns {
		for i, f := range c.inflight { // handed to the socket: nothing more can be done for it
			if f.msg != nil && f.msg.group == group {
				b.finish(f.msg)
				c.inflight[i].msg = nil
			}
		}
	}
	b.questions.forget(p.id, group)
	b.rememberPeer(p)
	b.prune(p)
}

// pipeKeys are the peer's open pipes, in a stable order.
func (p *peer) pipeKeys() []pipeKey {
	keys := make([]pipeKey, 0, len(p.pipes))
	for k := range p.pipes {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b pipeKey) int {
		return strings.Compare(a.group+" "+a.pipe, b.group+" "+b.pipe)
	})
	return keys
}

const (
	tellAgain = 20 * time.Second
	// A peer that starts has its lease within 14 s of its first connection (2.2; baseline 4). One that has none later
	// got its own from a gateway that forgot it, and would say nothing until it renews, minutes later (ghosts 10).
	firstNudge = 20 * time.Second
	nudgeAgain = time.Minute
)

// expectLease sends Disconnect to a peer that talks without a lease, which makes 2.7 ask for one within two seconds
// (ghosts 10). What it said is handled all the same.
func (b *Bridge) expectLease(in inbound) {
	p := in.from
	if p.leases[in.group] != nil {
		return
	}
	if last, ok := p.told[in.group]; ok && b.now.Before(last.Add(tellAgain)) {
		return
	}
	if len(p.told) >= b.cfg.MaxGroups {
		clear(p.told)
	}
	p.told[in.group] = b.now
	b.disown(p, in.group)
}

// disown tells a peer that it has no lease in a group.
func (b *Bridge) disown(p *peer, group string) {
	b.stats.Disconnects++
	b.enqueue(p, b.routedHere(p, group, jxta.URN(jxta.ClassRendezvous), group, []jxta.Element{
		xmlElement("Disconnect", b.ownPeerDoc(group))}))
}

// relay answers a relay request that comes as a message (wire 10).
func (b *Bridge) relay(in inbound) {
	for _, e := range in.elements {
		if e.Namespace == "relay" && e.Name == "request" {
			b.relayRequest(in.conn, string(e.Data), false)
		}
	}
}

// relayRequest grants a relay lease on the connection that asked: connect,<lease ms>,<flush|keep>,<true|other>.
func (b *Bridge) relayRequest(c *conn, request string, first bool) {
	f := strings.Split(strings.TrimSpace(request), ",")
	switch f[0] {
	case "connect":
	case "disconnect":
		c.peer.relayUntil = time.Time{}
		return
	default:
		b.complain(c, "relay", nil)
		return
	}
	granted := b.cfg.RelayLease
	if len(f) > 1 {
		if ms, err := strconv.ParseInt(f[1], 10, 64); err == nil && ms > 0 && ms < granted.Milliseconds() {
			granted = time.Duration(ms) * time.Millisecond
		}
	}
	c.peer.relayUntil = b.now.Add(granted)
	relay := func(name, mime string, data []byte) jxta.Element {
		return jxta.Element{Namespace: "relay", Name: name, Type: mime, Data: data}
	}
	m := &message{source: b.me, elements: []jxta.Element{
		relay("response", mimeText, []byte("connected")),
		relay("lease", mimeText, []byte(strconv.FormatInt(granted.Milliseconds(), 10))),
	}}
	if first {
		m.elements = append(m.elements, relay("relayAdv", mimeXML, b.rdvDoc(jxta.NetGroup, jxta.ClassRelay)))
	}
	m.service, m.param = jxta.Mangle(jxta.NetGroup, jxta.ClassRelay, b.me)
	if c.quiet { // a renewal between two polls
		b.enqueue(c.peer, m)
		return
	}
	m.size = sizeOf(m.elements)
	b.transmit(c, m, false)
}

// rdvDoc is the gateway's RdvAdvertisement.
func (b *Bridge) rdvDoc(group, service string) []byte {
	return jxta.AppendDocument(nil, jxta.RdvAdvertisement{Group: group, Peer: b.me, ServiceName: service,
		Name: b.cfg.Name, Route: b.ownRoute()}.Node())
}

// peerView answers a probe of 2.2, which asks for no lease before (baseline 6). For a sub-group the probe comes
// through a propagate pipe of the net peer group and names the group itself (ghosts 9).
func (b *Bridge) peerView(in inbound) {
	var probe *jxta.Element
	for i, e := range in.elements {
		if e.Namespace == "jxta" && e.Name == "PeerView.PeerAdv" {
			probe = &in.elements[i]
		}
	}
	if probe == nil {
		return
	}
	n, err := jxta.ParseXML(probe.Data, jxta.DefaultXML)
	if err != nil {
		b.complain(in.conn, "peerview", err)
		return
	}
	adv, err := jxta.ParseRdvAdvertisement(n)
	if err != nil {
		b.complain(in.conn, "peerview", err)
		return
	}
	group := adv.Group
	if group == "" {
		group = in.group
	}
	doc := b.rdvDoc(group, jxta.URN(jxta.ClassRendezvous)+group)
	answer := []jxta.Element{xmlElement("PeerView.PeerAdv.Response", doc)}
	if in.from.stranger {
		b.shoutAnswer(in.from.id, group, svcPeerView, group, answer)
		return
	}
	b.enqueue(in.from, b.routedHere(in.from, group, svcPeerView, group, answer))
}
