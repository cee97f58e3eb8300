package jxtabridge

import (
	"container/heap"
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/jxta"
)

// roster keeps the local peers in order of their ids, so that runs with the same events have the same order, and knows
// which of them is due next: with a thousand peers a Step must touch those alone that it is about.
type roster struct {
	order   []*peer            // all
	members map[string][]*peer // those with a lease, by group
	timers  timers             // those with a deadline
}

func byID(p *peer, id string) int { return strings.Compare(p.id, id) }

func insertPeer(list []*peer, p *peer) []*peer {
	at, _ := slices.BinarySearchFunc(list, p.id, byID)
	return slices.Insert(list, at, p)
}

func deletePeer(list []*peer, p *peer) []*peer {
	if at, ok := slices.BinarySearchFunc(list, p.id, byID); ok {
		return slices.Delete(list, at, at+1)
	}
	return list
}

func (b *Bridge) addPeer(p *peer) {
	b.peers[p.id] = p
	b.order = insertPeer(b.order, p)
}

func (b *Bridge) removePeer(p *peer) {
	delete(b.peers, p.id)
	b.order = deletePeer(b.order, p)
	b.timers.stop(p)
}

// grant gives a peer a lease in a further group; revoke takes it away.
func (b *Bridge) grant(p *peer, group string, l *lease) {
	p.leases[group] = l
	b.members[group] = insertPeer(b.members[group], p)
}

func (b *Bridge) revoke(p *peer, group string) {
	delete(p.leases, group)
	if b.members[group] = deletePeer(b.members[group], p); len(b.members[group]) == 0 {
		delete(b.members, group)
	}
}

// sortedPeers are all local peers in order. It is good until one comes or goes.
func (b *Bridge) sortedPeers() []*peer { return b.order }

// membersOf are the local peers with a lease in a group, in order. It is good until a lease begins or ends.
func (b *Bridge) membersOf(group string) []*peer { return b.members[group] }

// peerAt asks to be woken for a peer at t at the latest.
func (b *Bridge) peerAt(p *peer, t time.Time) {
	if b.peers[p.id] == p && (p.at.IsZero() || t.Before(p.at)) {
		b.timers.set(p, t)
	}
	b.until(t)
}

// due is when the peer wants something to be done by itself; zero: never.
func (p *peer) due(now time.Time) (at time.Time) {
	first := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, l := range p.leases {
		first(l.expires)
	}
	if p.wantsNudge() {
		first(p.nudge)
	}
	if p.absent() && !p.callAt.IsZero() {
		first(p.callAt)
	}
	if !p.jam.until.IsZero() {
		first(p.jam.until)
	}
	if len(p.conns) > 0 && now.Before(p.next) && slices.ContainsFunc(p.queue, func(m *message) bool { return m.delivery != nil }) {
		first(p.next)
	}
	return at
}

// sweepPeers does what is due for peers.
func (b *Bridge) sweepPeers() {
	var due []*peer
	for len(b.timers) > 0 && !b.now.Before(b.timers[0].at) {
		due = append(due, b.timers[0])
		b.timers.stop(b.timers[0])
	}
	slices.SortFunc(due, func(x, y *peer) int { return strings.Compare(x.id, y.id) })
	for _, p := range due {
		for _, g := range slices.Sorted(maps.Keys(p.leases)) {
			if !b.now.Before(p.leases[g].expires) {
				b.note("info", "lease ended", "peer", p.id, "group", g)
				b.dropLease(p, g)
			}
		}
		if p.wantsNudge() && !b.now.Before(p.nudge) {
			p.nudge = b.now.Add(nudgeAgain)
			b.disown(p, jxta.NetGroup)
		}
		b.pump(p)
		b.callBack(p)
		b.jammed(p)
		b.prune(p)
		if at := p.due(b.now); !at.IsZero() && b.peers[p.id] == p {
			b.timers.set(p, at)
		}
	}
}

// timers is a heap of peers by deadline.
type timers []*peer

func (t *timers) set(p *peer, at time.Time) {
	if p.at.IsZero() {
		p.at = at
		heap.Push(t, p)
		return
	}
	p.at = at
	heap.Fix(t, p.place)
}

func (t *timers) stop(p *peer) {
	if !p.at.IsZero() {
		heap.Remove(t, p.place)
		p.at = time.Time{}
	}
}

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}
func (t *timers) Push(x any) {
	p := x.(*peer)
	p.place = len(*t)
	*t = append(*t, p)
}
func (t *timers) Pop() any {
	old := *t
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	return p
}
