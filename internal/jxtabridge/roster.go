package jxtabridge

import (
	"slices"
	"strings"
	"time"

	"aldis/internal/ground/due"
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
	o.stopTimer(p)
}

// grant gives a peer a lease in a further group; revoke takes it away.
func (o *outlets) grant(p *peer, group string, l *lease) {
	p.leases[group] = l
	o.members[group] = insertPeer(o.members[group], p)
}

func (o *outlets) revoke(p *peer, group string) {
	delete(p.leases, group)
	o.members[group] = deletePeer(o.members[group], p)
	if len(o.members[group]) == 0 {
		delete(o.members, group)
	}
}

// sortedPeers are all local peers in order. The list is valid until one comes or goes.
func (o *outlets) sortedPeers() []*peer { return o.order }

// membersOf are the local peers with a lease in a group, in order. The list is valid until a lease begins or ends.
func (o *outlets) membersOf(group string) []*peer { return o.members[group] }

// peerAt asks to be woken for a peer at t at the latest.
func (o *outlets) peerAt(p *peer, t time.Time) {
	if o.peers[p.id] == p && (p.at.IsZero() || t.Before(p.at)) {
		o.setTimer(p, t)
	}
	o.until(t)
}

func (o *outlets) setTimer(p *peer, at time.Time) {
	p.at = at
	o.timers.Set(p, p.place)
}

func (o *outlets) stopTimer(p *peer) {
	o.timers.Remove(p.place)
	p.at = time.Time{}
}

// due is when something has to be done for the peer without an event; zero: never.
func (p *peer) due(now time.Time) (at time.Time) {
	for _, l := range p.leases {
		at = due.Earliest(at, l.expires)
	}
	if p.wantsNudge() {
		at = due.Earliest(at, p.nudge)
	}
	if p.absent() {
		at = due.Earliest(at, p.callAt)
	}
	at = due.Earliest(due.Earliest(at, p.jam.until), p.gap.until)
	if len(p.conns) > 0 && now.Before(p.next) && slices.ContainsFunc(p.queue, func(m *message) bool { return m.delivery != nil }) {
		at = due.Earliest(at, p.next)
	}
	return at
}

// Before and Placed are for the heap of peers by deadline.
func (p *peer) Before(q *peer) bool { return p.at.Before(q.at) }
func (p *peer) Placed(place int)    { p.place = place }

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
