package jxtabridge

import (
	"container/heap"
	"slices"
	"strings"
	"time"
)

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

func (o *outlets) addPeer(p *peer) {
	o.peers[p.id] = p
	o.order = insertPeer(o.order, p)
}

func (o *outlets) removePeer(p *peer) {
	delete(o.peers, p.id)
	o.order = deletePeer(o.order, p)
	o.timers.stop(p)
}

// grant gives a peer a lease in a further group; revoke takes it away.
func (o *outlets) grant(p *peer, group string, l *lease) {
	p.leases[group] = l
	o.members[group] = insertPeer(o.members[group], p)
}

func (o *outlets) revoke(p *peer, group string) {
	delete(p.leases, group)
	if o.members[group] = deletePeer(o.members[group], p); len(o.members[group]) == 0 {
		delete(o.members, group)
	}
}

// sortedPeers are all local peers in order. It is good until one comes or goes.
func (o *outlets) sortedPeers() []*peer { return o.order }

// membersOf are the local peers with a lease in a group, in order. It is good until a lease begins or ends.
func (o *outlets) membersOf(group string) []*peer { return o.members[group] }

// peerAt asks to be woken for a peer at t at the latest.
func (o *outlets) peerAt(p *peer, t time.Time) {
	if o.peers[p.id] == p && (p.at.IsZero() || t.Before(p.at)) {
		o.timers.set(p, t)
	}
	o.until(t)
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

func (p *peer) wantsNudge() bool { return len(p.leases) == 0 && len(p.conns) > 0 && !p.nudge.IsZero() }
