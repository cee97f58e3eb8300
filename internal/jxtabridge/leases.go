package jxtabridge

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// leases is the rendezvous and relay towards local peers: which peers have a lease, and which pipes are open.
type leases struct {
	*step
	outlets   *outlets
	ghosts    *ghosts
	multicast *multicast
	directory *directory
	streams   *streams
	arrivals  *arrivals
}

// lease answers the rendezvous lease protocol, for any group (wire 5.1, ghosts 9).
func (ls *leases) lease(in inbound) {
	if e := find(in.elements, "Connect", ""); e != nil && e.Name == "Connect" {
		ls.connect(in, e.Data)
	}
	if e := find(in.elements, "Disconnect", ""); e != nil {
		ls.end(in.from, in.group)
		if p := in.from; p.wantsNudge() { // if it stays after all
			p.nudge = due.Latest(p.nudge, ls.now.Add(firstNudge))
			ls.outlets.peerAt(p, p.nudge)
		}
	}
}

// maxPeerDoc bounds, in octets, the reduced advertisement of a peer: each change of a peer writes those of all its groups to the journal.
const maxPeerDoc = 16 << 10

func (ls *leases) connect(in inbound, doc []byte) {
	p := in.from
	n, err := jxta.ParseXML(doc, jxta.DefaultXML)
	var adv jxta.PeerAdvertisement
	if err == nil {
		adv, err = jxta.ParsePeerAdvertisement(n)
	}
	if err == nil && adv.Peer != p.id {
		err = errForeign
	}
	if err != nil {
		ls.complain(in.conn, "lease", err)
		return
	}
	if !isGroup(adv.Group) {
		ls.complain(in.conn, "group", nil)
		return
	}
	reduced := reducePeer(n)
	if len(reduced) > maxPeerDoc {
		ls.complain(in.conn, "lease_size", nil)
		return
	}
	group := adv.Group
	l := p.leases[group]
	if l == nil {
		if len(p.leases) >= ls.cfg.MaxGroups {
			ls.complain(in.conn, "groups", nil)
			return
		}
		l = &lease{}
		ls.outlets.grant(p, group, l)
		ls.directory.nowWanted(purpose{true, group})
		ls.directory.views.count(group)
		ls.note("info", "peer has a lease", "peer", p.id, "name", adv.Name, "group", group, "signed", p.signed)
	}
	l.expires = ls.now.Add(ls.cfg.Lease)
	ls.outlets.peerAt(p, l.expires)
	ls.arrivals.back(p, pipeKey{group: group})
	if !bytes.Equal(l.doc, reduced) {
		l.doc, l.index = reduced, indexOf(reduced)
		ls.directory.views.tell(p, group)
		ls.directory.peerKnown(p.id, group)
	}
	ls.outlets.rememberPeer(p)
	ls.stats.Grants++
	ls.outlets.enqueue(p, ls.ghosts.routedHere(p, group, jxta.URN(jxta.ClassRendezvous), group, []jxta.Element{
		xmlElement("RdvAdvReply", ls.ghosts.ownPeerDoc(group)),
		text("ConnectedPeer", jxta.URN(ls.me)),
		text("ConnectedLease", strconv.FormatInt(ls.cfg.Lease.Milliseconds(), 10)),
	}))
}

func (o *outlets) peerItem(p *peer, group string) site.Item {
	return site.Item{Kind: site.Endpoint, Scope: group, Owner: p.id, Doc: p.leases[group].doc, Variant: p.signed,
		Home: o.withheld(group), To: p.leases[group].to}
}

// end forgets a peer in a group: its pipes close, and messages for it there wait until it is back. Messages that its sockets were
// given count as handed over when the sockets have taken them.
func (ls *leases) end(p *peer, group string) {
	if p.leases[group] == nil {
		return
	}
	for _, k := range p.pipeKeys() {
		if k.group == group {
			ls.pipeDown(p, k)
		}
	}
	ls.streams.edgeGone(p, group, "")
	ls.outlets.revoke(p, group)
	ls.directory.views.count(group)
	ls.announceItem(site.Item{Kind: site.Endpoint, Scope: group, Owner: p.id, Gone: true})
	ls.arrivals.groupLeft(p, group)
	ls.directory.questions.forget(p.id, group)
	ls.outlets.rememberPeer(p)
	ls.outlets.prune(p)
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
	// A peer that starts has its lease within 14 s of its first connection (2.2; baseline 4). A peer that has none later
	// has a lease from a gateway that has forgotten it, and would say nothing until it renews, minutes later (ghosts 10).
	firstNudge = 20 * time.Second
	nudgeAgain = time.Minute
)

// expect sends Disconnect to a peer that talks without a lease, which makes 2.7 ask for a lease within two seconds
// (ghosts 10). Its message is handled all the same.
func (ls *leases) expect(in inbound) {
	p := in.from
	if p.leases[in.group] != nil {
		return
	}
	if last, ok := p.told[in.group]; ok && ls.now.Before(last.Add(tellAgain)) {
		return
	}
	if len(p.told) >= ls.cfg.MaxGroups {
		clear(p.told)
	}
	p.told[in.group] = ls.now
	ls.disown(p, in.group)
}

// disown tells a peer that it has no lease in a group.
func (ls *leases) disown(p *peer, group string) {
	ls.stats.Disconnects++
	ls.outlets.enqueue(p, ls.ghosts.routedHere(p, group, jxta.URN(jxta.ClassRendezvous), group, []jxta.Element{
		xmlElement("Disconnect", ls.ghosts.ownPeerDoc(group))}))
}

// relay answers a relay request that comes as a message (wire 10).
func (ls *leases) relay(in inbound) {
	for _, e := range in.elements {
		if e.Namespace == "relay" && e.Name == "request" {
			ls.relayRequest(in.conn, string(e.Data), false)
		}
	}
}

// relayRequest grants a relay lease on the connection that asked: connect,<lease ms>,<flush|keep>,<true|other>.
func (ls *leases) relayRequest(c *conn, request string, first bool) {
	f := strings.Split(strings.TrimSpace(request), ",")
	switch f[0] {
	case "connect":
	case "disconnect":
		c.peer.relayUntil = time.Time{}
		return
	default:
		ls.complain(c, "relay", nil)
		return
	}
	granted := ls.cfg.RelayLease
	if len(f) > 1 {
		if ms, err := strconv.ParseInt(f[1], 10, 64); err == nil && ms > 0 && ms < granted.Milliseconds() {
			granted = time.Duration(ms) * time.Millisecond
		}
	}
	c.peer.relayUntil = ls.now.Add(granted)
	relay := func(name, mime string, data []byte) jxta.Element {
		return jxta.Element{Namespace: "relay", Name: name, Type: mime, Data: data}
	}
	m := &message{source: ls.me, elements: []jxta.Element{
		relay("response", mimeText, []byte("connected")),
		relay("lease", mimeText, []byte(strconv.FormatInt(granted.Milliseconds(), 10))),
	}}
	if first {
		m.elements = append(m.elements, relay("relayAdv", mimeXML, ls.ghosts.rdvDoc(jxta.NetGroup, jxta.ClassRelay)))
	}
	m.service, m.param = jxta.Mangle(jxta.NetGroup, jxta.ClassRelay, ls.me)
	if c.quiet { // a renewal between two polls
		ls.outlets.enqueue(c.peer, m)
		return
	}
	m.size = sizeOf(m.elements)
	ls.outlets.transmit(c, m, false)
}

// peerView answers a probe of 2.2, which asks for no lease before the answer (baseline 6). For a sub-group the probe comes
// through a propagate pipe of the net peer group and names the group itself (ghosts 9).
func (ls *leases) peerView(in inbound) {
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
	var adv jxta.RdvAdvertisement
	if err == nil {
		adv, err = jxta.ParseRdvAdvertisement(n)
	}
	if err != nil {
		ls.complain(in.conn, "peerview", err)
		return
	}
	group := adv.Group
	if group == "" {
		group = in.group
	}
	doc := ls.ghosts.rdvDoc(group, jxta.URN(jxta.ClassRendezvous)+group)
	answer := []jxta.Element{xmlElement("PeerView.PeerAdv.Response", doc)}
	if in.from.stranger {
		ls.multicast.shoutAnswer(in.from.id, group, svcPeerView, group, answer)
		return
	}
	ls.outlets.enqueue(in.from, ls.ghosts.routedHere(in.from, group, svcPeerView, group, answer))
}

// endAll ends all leases of a peer.
func (ls *leases) endAll(p *peer) {
	for _, g := range slices.Sorted(maps.Keys(p.leases)) {
		ls.end(p, g)
	}
}

// nameIn is the name in a peer's advertisement; "" if there is none.
func nameIn(doc []byte) string {
	n, err := jxta.ParseXML(doc, jxta.DefaultXML)
	if err != nil {
		return ""
	}
	return n.KidValue("Name")
}

// sweep does what is due for peers.
func (ls *leases) sweep() {
	var ready []*peer
	for len(ls.outlets.timers) > 0 && !ls.now.Before(ls.outlets.timers[0].at) {
		ready = append(ready, ls.outlets.timers[0])
		ls.outlets.stopTimer(ls.outlets.timers[0])
	}
	slices.SortFunc(ready, func(x, y *peer) int { return strings.Compare(x.id, y.id) })
	for _, p := range ready {
		for _, g := range slices.Sorted(maps.Keys(p.leases)) {
			if !ls.now.Before(p.leases[g].expires) {
				ls.note("info", "lease ended", "peer", p.id, "name", nameIn(p.leases[g].doc), "group", g)
				ls.end(p, g)
			}
		}
		if p.wantsNudge() && !ls.now.Before(p.nudge) {
			p.nudge = ls.now.Add(nudgeAgain)
			ls.disown(p, jxta.NetGroup)
		}
		ls.arrivals.trust(p)
		ls.outlets.pump(p)
		ls.arrivals.feed(p)
		ls.outlets.callBack(p)
		ls.outlets.jammed(p)
		ls.outlets.prune(p)
		if at := p.due(ls.now); !at.IsZero() && ls.outlets.peers[p.id] == p {
			ls.outlets.setTimer(p, at)
		}
	}
}
