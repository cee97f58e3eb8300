package jxtabridge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// JXSE opens an input pipe of its own for each end of a BiDi pipe or socket and announces it like any other, some
// milliseconds before it is named in an opening or an answer. Nobody resolves such a pipe: far sites are told of a unicast
// pipe only when it has been open for a moment without becoming a stream's end.
const pipeSettles = 500 * time.Millisecond

type untoldPipe struct {
	peer string
	pipeKey
}

// Listening counts the local peers that listen to each propagate pipe. A far site gives this one a message once for all of them, so
// it is told that somebody listens, not who: with the first of them, and with the last.
type Listening map[pipeKey]int

// Change counts one listener more, or with gone one fewer. The item says whether anybody listens now; news: that has changed.
func (l Listening) Change(group, pipe string, gone bool) (it site.Item, news bool) {
	k := pipeKey{group, pipe}
	it = pipeItem("", k, PipePropagate)
	if !gone {
		l[k]++
		return it, l[k] == 1
	}
	if l[k]--; l[k] <= 0 {
		delete(l, k)
		it.Gone = true
	}
	return it, it.Gone
}

// listening notes that one more peer listens to a propagate pipe, or one fewer. Where there are rules, far sites may be told of some
// listeners and not of others, so the core judges the item anew.
func (ls *leases) listening(k pipeKey, gone bool) {
	if it, news := ls.outlets.listening.Change(k.group, k.pipe, gone); news || !ls.cfg.Filter.Empty() {
		ls.announceItem(it)
	}
}

// tellPipe tells far sites of an open pipe, a unicast one a moment later.
func (ls *leases) tellPipe(p *peer, k pipeKey, kind uint8) {
	switch kind {
	case PipePropagate:
		ls.listening(k, false)
		return
	case PipeUnicastSecure:
		ls.announceItem(pipeItem(p.id, k, kind))
		return
	}
	u := untoldPipe{p.id, k}
	if ls.streams.ends(u) {
		ls.outlets.untold[u] = time.Time{}
		return
	}
	ls.outlets.untold[u] = ls.now.Add(pipeSettles)
	ls.until(ls.outlets.untold[u])
}

// withdrawPipe tells far sites that a pipe is closed, and reports whether they knew it.
func (ls *leases) withdrawPipe(p *peer, k pipeKey, kind uint8) bool {
	if kind == PipePropagate {
		ls.listening(k, true)
		return true
	}
	u := untoldPipe{p.id, k}
	if _, ok := ls.outlets.untold[u]; ok {
		delete(ls.outlets.untold, u)
		return false
	}
	it := pipeItem(p.id, k, kind)
	it.Gone = true
	ls.announceItem(it)
	return true
}

// sweepUntold tells far sites of the pipes that turned out to be ordinary ones.
func (ls *leases) sweepUntold() {
	var settled []untoldPipe
	for u, t := range ls.outlets.untold {
		if due.Reached(ls.now, t) {
			settled = append(settled, u)
		}
	}
	slices.SortFunc(settled, func(x, y untoldPipe) int {
		return cmp.Or(cmp.Compare(x.peer, y.peer), cmp.Compare(x.group, y.group), cmp.Compare(x.pipe, y.pipe))
	})
	for _, u := range settled {
		delete(ls.outlets.untold, u)
		if p := ls.outlets.peers[u.peer]; p != nil {
			if kind, open := p.pipes[u.pipeKey]; open {
				ls.announceItem(pipeItem(u.peer, u.pipeKey, kind))
				ls.outlets.rememberPeer(p)
			}
		}
	}
}

// srdi learns which pipes a peer has open (wire 5.6). Indexes of 2.2 peers' advertisements make the gateway ask for
// those that it has not seen: these peers do not push the advertisements themselves.
func (ls *leases) srdi(in inbound, _ *jxta.Propagate, e jxta.Element) error {
	m, err := jxta.ParseResolverSRDI(e.Data)
	if err != nil {
		return err
	}
	ofPipes := m.Handler == jxta.HandlerPipe
	if !ofPipes && !strings.EqualFold(m.Handler, jxta.HandlerDiscovery) {
		return nil
	}
	s, err := jxta.ParseSRDI([]byte(m.Payload))
	if err != nil {
		return err
	}
	p := in.from
	if s.Peer != p.id {
		return errForeign
	}
	if p.leases[in.group] == nil {
		return nil // it announces the pipe again when it has a lease
	}
	if !ofPipes {
		ls.directory.indexed(p, in.group, s)
		return nil
	}
	kind, ok := pipeTypes[s.Key]
	if !ok {
		ls.stats.Refused["pipe_type"]++
		return nil
	}
	changed := false
	for _, entry := range s.Entries {
		pipe, err := jxta.ParseURN(entry.Value)
		if err != nil {
			ls.complain(in.conn, "srdi", err)
			continue
		}
		k := pipeKey{in.group, pipe}
		_, open := p.pipes[k]
		switch {
		case entry.Life == 0 && open:
			ls.pipeDown(p, k)
			changed = true
		case entry.Life > 0 && !open:
			if len(p.pipes) >= ls.cfg.MaxPipes {
				ls.complain(in.conn, "pipes", nil)
				continue
			}
			ls.pipeUp(p, k, kind)
			changed = true
		case entry.Life > 0:
			ls.arrivals.confirmed(p, k)
		}
	}
	if changed {
		ls.outlets.rememberPeer(p)
	}
	return nil
}

var pipeTypes = map[string]uint8{
	jxta.PipeTypePropagate: PipePropagate, jxta.PipeTypeUnicast: PipeUnicast, jxta.PipeTypeSecure: PipeUnicastSecure,
}

func (ls *leases) pipeUp(p *peer, k pipeKey, kind uint8) {
	p.pipes[k] = kind
	ls.tellPipe(p, k, kind)
	ls.outlets.openHere[k.pipe]++
	ls.directory.nowWanted(purpose{id: k.pipe})
	if kind != PipePropagate { // nobody has to resolve a propagate pipe
		ls.directory.pipeKnown(p.id, k)
	}
	ls.arrivals.back(p, k)
}

func (ls *leases) pipeDown(p *peer, k pipeKey) {
	told := ls.withdrawPipe(p, k, p.pipes[k])
	delete(p.pipes, k)
	ls.outlets.openHere[k.pipe]--
	if ls.outlets.openHere[k.pipe] <= 0 {
		delete(ls.outlets.openHere, k.pipe)
	}
	ls.streams.edgeGone(p, k.group, k.pipe)
	if told {
		ls.arrivals.pipeLeft(p, k)
	}
}

// restate tells far sites in the present form what an earlier version has told them: it named each listener to a propagate pipe.
func (ls *leases) restate() {
	for _, p := range ls.outlets.sortedPeers() {
		for _, k := range p.pipeKeys() {
			if u := (untoldPipe{p.id, k}); ls.outlets.named[u] {
				ls.announceItem(pipeItem("", k, PipePropagate))
				ls.announceItem(pipeItem(p.id, k, PipePropagate).Withdrawal())
				delete(ls.outlets.named, u)
				ls.outlets.rememberPeer(p)
			}
		}
	}
}

// listeners are the local peers that listen to a propagate pipe, in order.
func (o *outlets) listeners(k pipeKey) (ids []string) {
	for _, p := range o.membersOf(k.group) {
		if p.pipes[k] == PipePropagate {
			ids = append(ids, p.id)
		}
	}
	return ids
}

func pipeItem(peer string, k pipeKey, kind uint8) site.Item {
	return site.Item{Kind: site.Listener, Scope: k.group, Owner: peer, ID: k.pipe, Sub: kind}
}
