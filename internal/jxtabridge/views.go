package jxtabridge

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// View is what other sites are told of the peers with a lease here. What they have been told once they are kept told of in every
// view, and each peer with an open pipe is named by that.
type View string

// Views, from all to nothing. In each but the first a peer whose id somebody there looks for. Several with + between them tell what each of
// them tells.
const (
	Complete View = "complete" // each peer
	Tree     View = "tree"     // tree(v): to v sites at the most that a tree of all names, of which each knows v others
	Random   View = "random"   // random(k): to k sites
	Ring     View = "ring"     // to the two sites beside the peer on a ring of all
	Ask      View = "ask"      // a peer whose name, or a part of it, somebody there looks for
	Count    View = "count"    // how many there are in each group
	Site     View = "site"     // whether there are any in each group
	Blind    View = "blind"    // nothing
)

// Bounds of random(k) and tree(v).
const (
	LeastSize = 1
	MostSize  = 64
)

// Parts are what a view is made of; the error says why it is none.
func (v View) Parts() (parts map[View]int, err error) {
	parts = map[View]int{}
	for _, each := range strings.Split(string(v), "+") {
		name, size := each, 0
		if head, rest, sized := strings.Cut(each, "("); sized {
			digits, closed := strings.CutSuffix(rest, ")")
			n, err := strconv.Atoi(digits)
			if err != nil || !closed || n < LeastSize || n > MostSize {
				return nil, fmt.Errorf("%q: a view has a size of %d to %d in parentheses: random(3)", each, LeastSize, MostSize)
			}
			name, size = head, n
		}
		view := View(name)
		if !slices.Contains([]View{Complete, Tree, Random, Ring, Ask, Count, Site, Blind}, view) || (view == Tree || view == Random) != (size > 0) {
			return nil, fmt.Errorf("%q is no view: complete, ask, count, site, blind, ring, random(k), tree(v), or some of them with + between them", each)
		}
		if _, twice := parts[view]; twice {
			return nil, fmt.Errorf("%q is in the view twice", name)
		}
		parts[view] = size
	}
	return parts, nil
}

// viewParts are what a view is made of. One that is none is blind.
type viewParts map[View]int

func partsOf(v View) viewParts {
	parts, err := v.Parts()
	if err != nil {
		return viewParts{Blind: 0}
	}
	return parts
}

func (p viewParts) has(v View) bool { _, has := p[v]; return has }

// marks is what else of the kind site.Endpoint says that a site does not tell of all: "" nothing, as its counts or bits say it.
func (p viewParts) marks() View {
	switch {
	case p.has(Complete), !p.has(Ask) && p.numbers() != "":
		return ""
	case p.has(Ask):
		return Ask
	}
	return Blind
}

// numbers is which of Count and Site is told.
func (p viewParts) numbers() View {
	switch {
	case p.has(Count):
		return Count
	case p.has(Site):
		return Site
	}
	return ""
}

// near says that some sites are told of a peer from its lease on, and which.
func (p viewParts) near() bool { return p.has(Ring) || p.has(Random) || p.has(Tree) }

// spot is where something is on a circle of hashes; all gateways reckon it alike.
func spot(of ...string) uint64 {
	h := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return binary.BigEndian.Uint64(h[:])
}

// neighbours are the sites that are told of a peer in a group from its lease on, of these.
func (p viewParts) neighbours(sites []uint16, peer, group string) (told []uint16) {
	if !p.near() || len(sites) == 0 {
		return nil
	}
	ringed := slices.Clone(sites)
	slices.SortFunc(ringed, func(a, b uint16) int {
		return cmp.Compare(spot("site", strconv.Itoa(int(a)), group), spot("site", strconv.Itoa(int(b)), group))
	})
	n, at := len(ringed), spot("peer", peer, group)
	if p.has(Ring) {
		next := sort.Search(n, func(i int) bool { return spot("site", strconv.Itoa(int(ringed[i])), group) >= at })
		told = append(told, ringed[next%n], ringed[(next+n-1)%n])
	}
	if v := p[Tree]; p.has(Tree) { // a heap, of which each has one above it and v-1 below; of the one where the peer hangs
		i, below := int(at%uint64(n)), max(v-1, 1)
		near := []int{i, (i - 1) / below}
		for k := range below {
			near = append(near, below*i+1+k)
		}
		for _, k := range near[:min(v, len(near))] {
			if k >= 0 && k < n {
				told = append(told, ringed[k])
			}
		}
	}
	if k := p[Random]; p.has(Random) {
		slices.SortFunc(ringed, func(a, b uint16) int {
			return cmp.Compare(spot(strconv.Itoa(int(a)), peer, group), spot(strconv.Itoa(int(b)), peer, group))
		})
		told = append(told, ringed[:min(k, n)]...)
	}
	slices.Sort(told)
	return slices.Compact(told)
}

// Viewed: from now on other sites are told this.
type Viewed struct{ View View }

// AdapterEvent marks Viewed as an event of a protocol adapter.
func (Viewed) AdapterEvent() {}

// The values of Item.Sub where an item of the kind site.Endpoint is no peer, but says that its site does not tell of all. It has no owner.
var viewSubs = map[View]uint8{Ask: 1, Count: 2, Blind: 3, Site: 4}

// views says which peers other sites are told of, and knows what they tell.
type views struct {
	*step
	outlets *outlets
	far     *far
	counted map[string]int  // what other sites were told, by group
	changed map[string]bool // groups whose number may be another now
	at      time.Time       // when they are told next; zero: nothing has changed
	before  viewMemory      // of the last run
	parts   viewParts
	order   []uint16 // the far sites of which neighbours were chosen
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
	return &views{step: s, outlets: o, far: f, counted: map[string]int{}, changed: map[string]bool{}, before: viewMemory{View: Complete}, parts: partsOf(s.cfg.View)}
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
	before, parts := partsOf(was), partsOf(next)
	v.parts = parts
	if kind := before.numbers(); kind != "" && kind != parts.numbers() {
		for _, group := range slices.Sorted(maps.Keys(v.counted)) {
			v.announceItem(marker(kind, group).Withdrawal())
		}
		clear(v.counted)
		clear(v.changed)
		v.at = time.Time{}
	}
	if mark := before.marks(); mark != "" && mark != parts.marks() {
		v.announceItem(marker(mark, jxta.NetGroup).Withdrawal())
	}
	if mark := parts.marks(); mark != "" {
		v.announceItem(marker(mark, jxta.NetGroup))
	}
	v.retell()
	v.keep()
}

// met looks whether there are other sites than before, of whom neighbours are chosen.
func (v *views) met() {
	if v.parts.near() && !slices.Equal(v.order, v.far.order) {
		v.retell()
	}
}

// retell says again who is to know each peer.
func (v *views) retell() {
	v.order = slices.Clone(v.far.order)
	for _, p := range v.outlets.sortedPeers() {
		for _, group := range slices.Sorted(maps.Keys(p.leases)) {
			v.tell(p, group)
			v.count(group)
		}
	}
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
	if !v.parts.has(Complete) {
		l := p.leases[group]
		for _, n := range v.parts.neighbours(v.far.order, p.id, group) {
			if !slices.Contains(l.to, n) {
				l.to = append(slices.Clone(l.to), n)
			}
		}
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
	return v.parts.has(Ask) && named(q) && q.Group == group && peerMatches(p.leases[group].index, q)
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
	if v.parts.has(Complete) || q.Type != jxta.TypePeer {
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
	if v.parts.numbers() == "" {
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
		if v.parts.numbers() == Site {
			n = min(n, 1)
		}
		it := marker(v.parts.numbers(), group)
		switch {
		case n == v.counted[group]:
			continue
		case n == 0:
			delete(v.counted, group)
			it.Gone = true
		default:
			if v.counted[group] = n; it.Sub == viewSubs[Site] {
				break
			}
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
	case viewSubs[Site]:
		s.counted(it.Scope, 0, !it.Gone)
	case viewSubs[Count]:
		n, read := binary.Uvarint(it.Doc)
		s.counted(it.Scope, int(min(n, maxCounted)), !it.Gone && read > 0 && n > 0 && n <= maxCounted)
	}
}

// counted notes how many members of a group a site tells of; 0: some.
func (s *farSite) counted(group string, n int, some bool) {
	if _, had := s.counts[group]; had {
		delete(s.counts, group)
		s.count--
	}
	if some {
		s.counts[group] = n
		s.count++
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
	}
	for _, n := range s.counts {
		if n == 0 {
			return Site
		}
		return Count
	}
	return ""
}

// withholds says that a site does not tell of all its peers.
func (s *farSite) withholds() bool { return s.view() != "" }

// inGroup says whether a site has members of a group, as far as it tells.
func (s *farSite) inGroup(group string) bool {
	_, some := s.counts[group]
	return len(s.peers[group]) > 0 || some || s.tellsAskers || s.blind
}
