package jxtabridge

import (
	"slices"
	"strings"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

const (
	elPropagate = "RendezVousPropagate" // + group
	elIncarn    = "RdvIncarn"           // + group; 2.2 repeats it if it was given one
	elWire      = "JxtaWireHeader"
)

// propagation passes on messages for a whole group or for all listeners of a propagate pipe.
type propagation struct {
	*step
	outlets   *outlets
	ghosts    *ghosts
	far       *far
	multicast *multicast
	rules     *rules
	leases    *leases
	held      []heldMessage
	heldSize  int
}

// wire handles a propagate pipe's message: to every other local peer of the group at once, to the sites that have
// the pipe open, and for a while also to sites that open it later.
func (pr *propagation) wire(in inbound, h *jxta.Propagate) {
	e := find(in.elements, elWire, "")
	if e == nil {
		pr.complain(in.conn, "wire", nil)
		return
	}
	w, err := jxta.ParseWireHeader(e.Data)
	if err != nil {
		pr.complain(in.conn, "wire", err)
		return
	}
	if find(in.elements, "PeerView.PeerAdv", "") != nil {
		pr.leases.peerView(in) // 2.2 looks for rendezvous of a sub-group; not for other sites (ghosts 9)
		return
	}
	if w.Src != "" && w.Src != in.from.id { // nobody else relays on this LAN
		pr.complain(in.conn, "wire_source", errForeign)
		return
	}
	if w.TTL <= 0 || !pr.multicast.fresh(in.from, "w"+in.group+" "+w.Pipe+" "+w.MsgID) {
		pr.stats.Refused["propagated_before"]++
		return
	}
	pr.stats.WireIn++
	src := in.from.id
	elements := keep(application(in.elements))
	if pr.rules.deniesMessage(&site.Message{Published: true, Scope: in.group, Topic: w.Pipe, From: src, Parts: elements}) {
		return
	}
	if h == nil {
		h = &jxta.Propagate{MessageID: w.MsgID, Service: svcWire, Param: in.group}
	}
	w.Src = src
	pr.fanOut(in.group, elements, &w, *h, func(p *peer) bool { return p.id != src })
	if !in.from.stranger { // peers without a lease have heard a stranger's datagram themselves
		pr.shoutPropagated(in.group, elements, &w, *h)
	}
	if !pr.multicast.mayCarry(in.from) {
		return
	}
	pr.carryWire(site.Message{Published: true, Scope: in.group, Topic: w.Pipe, From: src, ID: w.MsgID, Parts: elements})
}

// application takes out the elements that the far gateway makes itself.
func application(elements []jxta.Element) []jxta.Element {
	out := make([]jxta.Element, 0, len(elements))
	for _, e := range elements {
		if e.Namespace == "jxta" && (e.Name == elWire || strings.HasPrefix(e.Name, elPropagate) || strings.HasPrefix(e.Name, elIncarn)) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// fanOut sends a local peer's propagated message to every peer with a lease in the group that to accepts. The form
// (ghosts 4): TTL 1, the gateway in the path, the gateway as sender.
func (pr *propagation) fanOut(group string, elements []jxta.Element, w *jxta.WireHeader, h jxta.Propagate, to func(*peer) bool) {
	var all []jxta.Element
	for _, p := range pr.outlets.membersOf(group) {
		if !to(p) {
			continue
		}
		if all == nil {
			all = pr.propagatedElements(group, elements, w, h)
		}
		pr.stats.LocalFanOut++
		pr.outlets.enqueue(p, pr.ghosts.routed(p, pr.me, group, svcPropagate, group, all))
	}
}

func (pr *propagation) propagatedElements(group string, elements []jxta.Element, w *jxta.WireHeader, h jxta.Propagate) []jxta.Element {
	all := append([]jxta.Element(nil), elements...)
	if w != nil {
		all = append(all, xmlElement(elWire, w.Append(nil)))
	}
	h.TTL = 1
	h.Path = append(append([]string(nil), h.Path...), pr.me)
	return append(all, xmlElement(elPropagate+group, h.Append(nil)))
}

// shoutPropagated is fanOut for peers without a lease, if there are any.
func (pr *propagation) shoutPropagated(group string, elements []jxta.Element, w *jxta.WireHeader, h jxta.Propagate) {
	if pr.multicast.listened(group) {
		pr.multicast.shout(group, svcPropagate, group, pr.propagatedElements(group, elements, w, h))
	}
}

// group passes on a message that another service propagates in its group. Message.To stays empty.
func (pr *propagation) group(in inbound, h *jxta.Propagate) {
	elements := outward(keep(application(in.elements)))
	m := site.Message{Scope: in.group, From: in.from.id, Service: h.Service, Param: h.Param, ID: h.MessageID, Parts: elements}
	pr.fanOut(in.group, pr.ghosts.inward(m.From, elements), nil, *h, func(p *peer) bool { return p.id != in.from.id })
	if !pr.multicast.mayCarry(in.from) {
		return
	}
	if sites := pr.far.withGroup(in.group); len(sites) > 0 {
		pr.carry(sites, m)
	}
}

// heldMessage is a propagate pipe's message that waits for sites to open the pipe.
type heldMessage struct {
	until   time.Time
	size    int
	sites   []uint16 // that have it
	message site.Message
}

// carryWire gives a message to the sites that listen. It holds the message for others: the news that a peer there has
// opened the pipe may still be under way.
func (pr *propagation) carryWire(m site.Message) {
	sites := pr.far.withPipe(m.Scope, m.Topic)
	if len(sites) > 0 {
		pr.carry(sites, m)
	}
	h := heldMessage{pr.now.Add(pr.cfg.Hold), sizeOf(m.Parts), sites, m}
	if h.size > pr.cfg.MaxHeldOctets {
		return
	}
	pr.held = append(pr.held, h)
	pr.heldSize += h.size
	pr.until(h.until)
	for len(pr.held) > pr.cfg.MaxHeld || pr.heldSize > pr.cfg.MaxHeldOctets {
		pr.unhold()
	}
}

// sweep drops messages that were held for long enough.
func (pr *propagation) sweep() {
	for len(pr.held) > 0 && !pr.now.Before(pr.held[0].until) {
		pr.unhold()
	}
}

func (pr *propagation) unhold() {
	pr.heldSize -= pr.held[0].size
	if len(pr.held[0].sites) == 0 {
		pr.stats.Unheard++
	}
	pr.held[0] = heldMessage{}
	pr.held = pr.held[1:]
}

// release carries messages held for a pipe to a site that has just opened it.
func (pr *propagation) release(siteID uint16, group, pipe string) {
	for i := range pr.held {
		h := &pr.held[i]
		if h.message.Scope != group || h.message.Topic != pipe || !pr.now.Before(h.until) || slices.Contains(h.sites, siteID) {
			continue
		}
		pr.stats.CarriedLate++
		pr.carry([]uint16{siteID}, h.message)
		pr.out.Carry[len(pr.out.Carry)-1].Again = len(h.sites) > 0
		h.sites = append(h.sites[:len(h.sites):len(h.sites)], siteID)
	}
}
