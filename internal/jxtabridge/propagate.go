package jxtabridge

import (
	"fmt"
	"strings"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

const (
	elPropagate = "RendezVousPropagate" // + group
	elIncarn    = "RdvIncarn"           // + group; 2.2 repeats it when it was given one
	elWire      = "JxtaWireHeader"
)

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
	if h.TTL <= 0 || !b.fresh(in.from, "p"+in.group+" "+h.MessageID) {
		b.stats.Refused["propagated_before"]++
		return
	}
	for _, visited := range h.Path {
		if visited == b.me {
			b.stats.Refused["propagated_before"]++
			return
		}
	}
	switch {
	case h.Service == svcWire:
		b.wire(in, &h)
	case serviceIs(h.Service, jxta.ClassResolver):
		b.resolver(in, &h)
	case h.Service == svcPeerView:
		b.peerView(in)
	default:
		b.groupMessage(in, &h)
	}
}

// wire handles a propagate pipe's message: to every other local peer of the group at once, to the sites that have
// the pipe open, and for a while to those that open it now.
func (b *Bridge) wire(in inbound, h *jxta.Propagate) {
	e := find(in.elements, elWire, "")
	if e == nil {
		b.complain(in.conn, "wire", nil)
		return
	}
	w, err := jxta.ParseWireHeader(e.Data)
	if err != nil {
		b.complain(in.conn, "wire", err)
		return
	}
	if find(in.elements, "PeerView.PeerAdv", "") != nil {
		b.peerView(in) // 2.2 looking for rendezvous of a sub-group; not for other sites (ghosts 9)
		return
	}
	if w.TTL <= 0 || !b.fresh(in.from, "w"+in.group+" "+w.Pipe+" "+w.MsgID) {
		b.stats.Refused["propagated_before"]++
		return
	}
	b.stats.WireIn++
	src := w.Src
	if src == "" {
		src = in.from.id
	}
	elements := keep(application(in.elements))
	if b.deniesMessage(&site.Message{Published: true, Scope: in.group, Topic: w.Pipe, From: src, Parts: elements}) {
		return
	}
	if h == nil {
		h = &jxta.Propagate{MessageID: w.MsgID, Service: svcWire, Param: in.group}
	}
	w.Src = src
	b.fanOut(in.group, elements, &w, *h, func(p *peer) bool { return p.id != in.from.id && p.id != src }, nil)
	if !in.from.stranger { // whoever has no lease has heard a stranger itself
		b.shoutPropagated(in.group, elements, &w, *h)
	}
	if !b.mayCarry(in.from) {
		return
	}
	b.carryWire(site.Message{Published: true, Scope: in.group, Topic: w.Pipe, From: src, ID: w.MsgID, Parts: elements})
}

// application takes out what the far gateway makes anew.
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

// fanOut sends a propagated message to every peer with a lease in the group that to accepts, and answers how many.
// The form (ghosts 4): TTL 1, the gateway in the path, the gateway as sender.
func (b *Bridge) fanOut(group string, elements []jxta.Element, w *jxta.WireHeader, h jxta.Propagate, to func(*peer) bool, d *delivery) int {
	var all []jxta.Element
	count := 0
	for _, p := range b.membersOf(group) {
		if !to(p) {
			continue
		}
		if all == nil {
			all = b.propagatedElements(group, elements, w, h)
		}
		count++
		m := b.routed(p, b.me, group, svcPropagate, group, all)
		if m.delivery = d; d != nil {
			d.waiting++
		} else {
			b.stats.LocalFanOut++
		}
		b.enqueue(p, m)
	}
	return count
}

func (b *Bridge) propagatedElements(group string, elements []jxta.Element, w *jxta.WireHeader, h jxta.Propagate) []jxta.Element {
	all := append([]jxta.Element(nil), elements...)
	if w != nil {
		all = append(all, xmlElement(elWire, w.Append(nil)))
	}
	h.TTL = 1
	h.Path = append(append([]string(nil), h.Path...), b.me)
	return append(all, xmlElement(elPropagate+group, h.Append(nil)))
}

// shoutPropagated is fanOut for those that have no lease, where there are some.
func (b *Bridge) shoutPropagated(group string, elements []jxta.Element, w *jxta.WireHeader, h jxta.Propagate) {
	if b.listened(group) {
		b.shout(group, svcPropagate, group, b.propagatedElements(group, elements, w, h))
	}
}

// groupMessage passes on what some other service propagates in its group. Payload.Dst stays empty.
func (b *Bridge) groupMessage(in inbound, h *jxta.Propagate) {
	elements := b.outward(keep(application(in.elements)))
	pl := site.Message{Scope: in.group, From: in.from.id, Service: h.Service, Param: h.Param, ID: h.MessageID, Parts: elements}
	b.fanOut(in.group, b.inward(pl.From, elements), nil, *h, func(p *peer) bool { return p.id != in.from.id }, nil)
	if !b.mayCarry(in.from) {
		return
	}
	if sites := b.sitesWithGroup(in.group); len(sites) > 0 {
		b.carry(sites, pl)
	}
}

// held is a propagate pipe's message that waits for sites to open the pipe.
type held struct {
	until   time.Time
	size    int
	sites   []uint16 // that have it
	payload site.Message
}

// carryWire gives a message to the sites that listen and holds it for those that will: the news of an opened pipe
// may still be under way.
func (b *Bridge) carryWire(pl site.Message) {
	sites := b.sitesWithPipe(pl.Scope, pl.Topic)
	if len(sites) > 0 {
		b.carry(sites, pl)
	}
	h := held{b.now.Add(b.cfg.Hold), sizeOf(pl.Parts), sites, pl}
	if h.size > b.cfg.MaxHeldOctets {
		return
	}
	b.held = append(b.held, h)
	b.heldSize += h.size
	b.until(h.until)
	for len(b.held) > b.cfg.MaxHeld || b.heldSize > b.cfg.MaxHeldOctets {
		b.unhold()
	}
}

func (b *Bridge) unhold() {
	b.heldSize -= b.held[0].size
	b.held[0] = held{}
	b.held = b.held[1:]
}

// release carries what is held for a pipe to a site that has just opened it.
func (b *Bridge) release(siteID uint16, group, pipe string) {
	for i := range b.held {
		h := &b.held[i]
		if h.payload.Scope != group || h.payload.Topic != pipe || !b.now.Before(h.until) {
			continue
		}
		had := false
		for _, s := range h.sites {
			had = had || s == siteID
		}
		if had {
			continue
		}
		h.sites = append(h.sites[:len(h.sites):len(h.sites)], siteID)
		b.stats.CarriedLate++
		b.carry([]uint16{siteID}, h.payload)
	}
}

// farPayload re-creates a far peer's message for the local peers that wait for it.
func (b *Bridge) farPayload(ev site.FarMessage) {
	if b.waiting[ev.Token] != nil {
		return // handed in again, and still under way
	}
	b.stats.FarPayloads++
	pl := ev.Message
	if pl.Service == svcStream && !pl.Published && pl.To != "" {
		b.farStream(ev)
		return
	}
	if pl.Service == svcTLS && !pl.Published && pl.To != "" {
		b.farTLS(ev)
		return
	}
	d := &delivery{token: ev.Token}
	if pl.To != "" && !pl.Published {
		if p := b.peers[pl.To]; p != nil && len(p.leases) > 0 {
			m := b.ghostMessage(p, pl)
			if p.leases[pl.Scope] == nil { // some messages of a group come before its lease: keep them for the peer
				m.group = p.anyGroup()
			}
			m.delivery, d.waiting = d, 1
			b.waiting[d.token] = d
			b.enqueue(p, m)
			return
		}
		b.stats.FarUndeliverable++
		b.done(ev.Token)
		return
	}
	id := pl.ID
	if id == "" {
		id = fmt.Sprintf("%08x-%04x-4000-8000-%012x", ev.Token>>32, ev.Site, ev.Token&0xffffffff)
	}
	b.waiting[d.token] = d
	d.waiting++ // so that it is not done before all have it
	var count int
	if pl.Published {
		w := &jxta.WireHeader{Src: pl.From, Pipe: pl.Topic, MsgID: id, TTL: 200}
		h := jxta.Propagate{MessageID: id, Service: svcWire, Param: pl.Scope}
		listens := func(p *peer) bool { _, ok := p.pipes[pipeKey{pl.Scope, pl.Topic}]; return ok }
		count = b.fanOut(pl.Scope, pl.Parts, w, h, listens, d)
		b.shoutPropagated(pl.Scope, pl.Parts, w, h)
	} else {
		h := jxta.Propagate{MessageID: id, Service: pl.Service, Param: pl.Param}
		count = b.fanOut(pl.Scope, b.inward(pl.From, pl.Parts), nil, h, func(*peer) bool { return true }, d)
	}
	if count == 0 {
		b.stats.FarUndeliverable++
	}
	b.finish(&message{delivery: d})
}

// anyGroup is the group of the peer's longest lease.
func (p *peer) anyGroup() string {
	best := ""
	for g, l := range p.leases {
		if best == "" || l.expires.After(p.leases[best].expires) || l.expires.Equal(p.leases[best].expires) && g < best {
			best = g
		}
	}
	return best
}
