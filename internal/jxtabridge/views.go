package jxtabridge

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// View is what other sites are told of the peers with a lease here. What they have been told once they are kept told of in every
// view, and each peer with an open pipe is named by that.
type View string

// Views, from all to nothing.
const (
	Complete View = "complete" // each peer
	Ask      View = "ask"      // a peer whose name or id, or a part of either, somebody there looks for
	Count    View = "count"    // how many there are in each group, and a peer whose id somebody there looks for
	Blind    View = "blind"    // a peer whose id somebody there looks for
)

// Viewed: from now on other sites are told this.
type Viewed struct{ View View }

// AdapterEvent marks Viewed as an event of a protocol adapter.
func (Viewed) AdapterEvent() {}

// The values of Item.Sub where an item of the kind site.Endpoint is no peer, but says that its site does not tell of all. It has no owner.
var viewSubs = map[View]uint8{Ask: 1, Count: 2, Blind: 3}

// views says which peers other sites are told of, and knows what they tell.
type views struct {
	*step
	outlets *outlets
	far     *far
	counted map[string]int  // what other sites were told, by group
	changed map[string]bool // groups whose number may be another now
	at      time.Time       // when they are told next; zero: nothing has changed
	before  viewMemory      // of the last run
}

// recount is how long news of a number may wait for more of it.
const recount = 30 * time.Second

// memView is the key of the memory of what other sites were told.
const memView = "view"

type viewMemory struct {
	View    View           `json:"view"`
	Counted map[string]int `json:"counted,omitempty"`
}

func newViews(s *step, o *outlets, f *far) *views {
	return &views{step: s, outlets: o, far: f, counted: map[string]int{}, changed: map[string]bool{}, before: viewMemory{View: Complete}}
}

// recall restores one memory; it reports whether m is one. What is not understood is left out.
func (v *views) recall(m site.Memory) bool {
	if m.Key != memView {
		return false
	}
	var before viewMemory
	if json.Unmarshal(m.Value, &before) == nil {
		v.before = before
		maps.Copy(v.counted, before.Counted)
	}
	return true
}

// start tells other sites after a start what they have to know. What they are to be told of a peer is in no journal.
func (v *views) start() {
	if was := v.before.View; was != Complete || v.cfg.View != Complete {
		v.turn(was, v.cfg.View)
	}
}

// set takes another view. It reaches all sites as soon as the link has room.
func (v *views) set(next View) {
	if next != v.cfg.View {
		v.turn(v.cfg.View, next)
	}
}

func (v *views) turn(was, next View) {
	v.cfg.View = next
	if was == Count && next != Count {
		for _, group := range slices.Sorted(maps.Keys(v.counted)) {
			v.announceItem(marker(Count, group).Withdrawal())
		}
		clear(v.counted)
		clear(v.changed)
		v.at = time.Time{}
	} else if was != next && was != Complete {
		v.announceItem(marker(was, jxta.NetGroup).Withdrawal())
	}
	if next == Ask || next == Blind {
		v.announceItem(marker(next, jxta.NetGroup))
	}
	for _, p := range v.outlets.sortedPeers() {
		for _, group := range slices.Sorted(maps.Keys(p.leases)) {
			v.tell(p, group)
			v.count(group)
		}
	}
	v.keep()
}

func (v *views) keep() {
	if v.cfg.View == Complete {
		v.forget(memView)
		return
	}
	v.remember(memView, viewMemory{v.cfg.View, v.counted})
}

// marker says that a site does not tell of all its peers.
func marker(view View, group string) site.Item {
	return site.Item{Kind: site.Endpoint, Sub: viewSubs[view], Scope: group}
}

// tell gives a peer to the gateway, with who is to know it.
func (v *views) tell(p *peer, group string) {
	if v.cfg.View != Complete {
		for _, n := range v.far.order {
			for _, a := range v.far.sites[n].asks {
				if v.now.Before(a.expires) && v.fits(a.question, p, group) {
					v.allow(n, a, p.leases[group])
				}
			}
		}
	}
	v.announceItem(v.outlets.peerItem(p, group))
}

// fits says whether a peer answers a question of a far site. By its id it does in every group: what is said to it names one of them.
func (v *views) fits(q advcache.Question, p *peer, group string) bool {
	switch {
	case q.Type != jxta.TypePeer:
		return false
	case byPeerID(q):
		return q.Value == jxta.URN(p.id) && (q.Group == group || p.leases[q.Group] == nil && group == p.anyGroup())
	}
	return v.cfg.View == Ask && named(q) && q.Group == group && peerMatches(p.leases[group].index, q)
}

// byPeerID says that a question is for one peer, by its id.
func byPeerID(q advcache.Question) bool {
	return q.Type == jxta.TypePeer && q.Attr == "PID" && exact(q)
}

// allow lets a site know a peer, and says whether that is new.
func (v *views) allow(n uint16, a *ask, l *lease) bool {
	if a.given >= maxGiven || slices.Contains(l.to, n) {
		return false
	}
	a.given++
	l.to = append(slices.Clone(l.to), n)
	return true
}

// farAsk tells a site of the peers that it looks for.
func (v *views) farAsk(n uint16, a *ask) {
	q := a.question
	if v.cfg.View == Complete || q.Type != jxta.TypePeer {
		return
	}
	among := v.outlets.membersOf(q.Group)
	if id, err := jxta.ParseURN(q.Value); byPeerID(q) && err == nil {
		among = nil
		if p := v.outlets.peers[id]; p != nil {
			among = []*peer{p}
		}
	}
	for _, p := range among {
		for _, group := range slices.Sorted(maps.Keys(p.leases)) {
			if v.fits(q, p, group) && v.allow(n, a, p.leases[group]) {
				v.announceItem(v.outlets.peerItem(p, group))
			}
		}
	}
}

// answered says whether some far site tells of a peer only if it is asked such a question.
func (v *views) answered(q advcache.Question) bool {
	return slices.ContainsFunc(v.far.order, func(n uint16) bool {
		s := v.far.sites[n]
		return named(q) && s.tellsAskers || byPeerID(q) && s.withholds()
	})
}

// count notes that a group may have another number of members.
func (v *views) count(group string) {
	if v.cfg.View != Count {
		return
	}
	v.changed[group] = true
	v.at = cmp.Or(v.at, v.now.Add(recount))
	v.until(v.at)
}

// sweep tells other sites of the numbers that are others.
func (v *views) sweep() {
	if !due.Reached(v.now, v.at) {
		return
	}
	for _, group := range slices.Sorted(maps.Keys(v.changed)) {
		n := len(v.outlets.membersOf(group))
		it := marker(Count, group)
		switch {
		case n == v.counted[group]:
			continue
		case n == 0:
			delete(v.counted, group)
			it.Gone = true
		default:
			v.counted[group] = n
			it.Doc = binary.AppendUvarint(nil, uint64(n))
		}
		v.announceItem(it)
	}
	clear(v.changed)
	v.at = time.Time{}
	v.keep()
}

// farView learns what a far site does not tell.
func (s *farSite) farView(it site.Item) {
	switch it.Sub {
	case viewSubs[Ask]:
		s.tellsAskers = !it.Gone
	case viewSubs[Blind]:
		s.blind = !it.Gone
	case viewSubs[Count]:
		if _, had := s.counts[it.Scope]; had {
			delete(s.counts, it.Scope)
			s.count--
		}
		if n, read := binary.Uvarint(it.Doc); !it.Gone && read > 0 && n <= maxCounted {
			s.counts[it.Scope] = int(n)
			s.count++
		}
	}
}

// maxCounted bounds what a far site may say of the number of its peers.
const maxCounted = 1 << 32

// view is what a site tells of its peers, where that is not all.
func (s *farSite) view() View {
	switch {
	case s.tellsAskers:
		return Ask
	case s.blind:
		return Blind
	case len(s.counts) > 0:
		return Count
	}
	return ""
}

// withholds says that a site does not tell of all its peers.
func (s *farSite) withholds() bool { return s.view() != "" }

// inGroup says whether a site has members of a group, as far as it tells.
func (s *farSite) inGroup(group string) bool {
	return len(s.peers[group]) > 0 || s.counts[group] > 0 || s.tellsAskers || s.blind
}
