package jxtabridge

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// Values of Item.Sub for items of the kind site.Endpoint that are not peers, but state the view of their site on its peers.
// They have no owner. Doc, if any, is a text of viewChoice.spread. With ofGroup an item is only for the group in Scope;
// without, Scope is the net peer group and the item is for all groups.
var viewSubs = map[View]uint8{Ask: 1, Count: 2, Blind: 3, Site: 4, Complete: 5}

const (
	subWants uint8 = 6 // the view that the site wants
	ofGroup  uint8 = 16
)

// views decides of which peers other sites are told, and knows their views.
type views struct {
	*viewChoice
	outlets *outlets
	counted map[string]int    // numbers that other sites were told, by numberKey
	heard   map[string]string // by numberKey: the sites that were told the number in this run
	changed map[string]bool   // groups whose number may have changed
	at      time.Time         // when changed numbers are told; zero: none has changed
	born    time.Time         // the moment of the start, in which the far sites of the journal become known one by one; zero: it is over
	before  viewMemory        // of the last run
	said    map[string]string // by Sub and group: the Doc of the views that other sites were told
	order   []uint16          // the far sites from which neighbours were chosen
}

// recount is how long a changed number may wait for further changes.
const recount = 30 * time.Second

// memView is the key of the memory of the views and numbers that other sites were told.
const memView = "view"

type viewMemory struct {
	View    View              `json:"view"` // of an earlier version, which has no Said
	Counted map[string]int    `json:"counted,omitempty"`
	Said    map[string]string `json:"said,omitempty"`
	Orders  []ViewRule        `json:"orders,omitempty"`
}

func newViews(s *step, o *outlets, f *far) *views {
	v := &views{viewChoice: newViewChoice(s, f), outlets: o, counted: map[string]int{}, heard: map[string]string{}, changed: map[string]bool{},
		before: viewMemory{View: Complete}, said: map[string]string{}}
	o.withheld, f.limit, f.known = v.withheld, v.limit, v.sites
	return v
}

// recall restores one memory; it reports whether m is one. An unreadable one is left out.
func (v *views) recall(m site.Memory) bool {
	if m.Key != memView {
		return false
	}
	var before viewMemory
	if json.Unmarshal(m.Value, &before) != nil {
		return true
	}
	v.before, v.orders = before, before.Orders
	maps.Copy(v.said, before.Said)
	parts := partsOf(before.View)
	if mark := parts.marks(); before.Said == nil && mark != "" {
		v.said[saidKey(viewSubs[mark], "")] = ""
	}
	for key, n := range before.Counted {
		if !strings.Contains(key, " ") {
			key = numberKey(parts.numbers(), key)
		}
		v.counted[key] = n
	}
	return true
}

// start tells other sites the views and peers after a start: the journal does not have the sites of each peer.
func (v *views) start() {
	v.born = v.now
	if v.before.View != Complete || v.cfg.View != Complete || len(v.rules()) > 0 || len(v.said) > 0 {
		v.turn(true)
	}
}

// set takes the views of a new configuration. They reach all sites as soon as the link has room.
func (v *views) set(next Viewed) {
	if next.View != v.cfg.View || !slices.Equal(next.Rules, v.cfg.Views) {
		v.cfg.View, v.cfg.Views, v.born = next.View, next.Rules, time.Time{}
		v.turn(false)
	}
}

// obey takes an order.
func (v *views) obey(r ViewRule) {
	if _, err := r.View.Parts(); err == nil || r.View == "" {
		v.viewChoice.order(r)
		v.born = time.Time{}
		v.turn(false)
	}
}

// reached notes by which bearer a site is reached.
func (v *views) reached(w site.Way) {
	uniform := v.cfg.View != ByBearer && len(v.rules()) == 0
	v.ways[w.Site] = w
	if !uniform {
		v.turn(false)
	}
}

// starts says whether the far sites of the journal are still becoming known.
func (v *views) starts() bool { return v.now.Equal(v.born) }

// turn tells other sites everything that follows from changed rules.
func (v *views) turn(begun bool) {
	for _, key := range slices.Sorted(maps.Keys(v.counted)) {
		kind, group := ofNumberKey(key)
		sites, all := v.audience(kind, group)
		heard, none := fmt.Sprint(sites, all), len(sites) == 0 && !all
		switch was := v.heard[key]; {
		case v.starts() && !(none && v.uniform()): // the journal does not have the sites that get the number
			if v.heard[key] = heard; was != heard && !(begun && all) {
				v.announceItem(v.number(kind, group, v.counted[key], sites, all))
			}
		case none, was != heard:
			v.withdraw(kind, group)
		}
	}
	clear(v.changed)
	v.at = time.Time{}
	for key := range v.counted { // some may have changed, or have no audience
		_, group := ofNumberKey(key)
		v.countAgain(group)
	}
	v.say(begun)
	v.retell()
	v.keep()
}

// say tells other sites the views that have changed; after a start, all that they need.
func (v *views) say(begun bool) {
	next := map[string]string{}
	all, base, differs := v.mark("")
	if differs {
		next[saidKey(all, "")] = base
	}
	for _, group := range v.scopes(false)[1:] {
		if v.spread(false, group) != v.spread(false, "") {
			sub, _, _ := v.mark(group)
			next[saidKey(sub+ofGroup, group)] = v.spread(false, group)
		}
	}
	for _, group := range v.scopes(true) {
		text, key := v.spread(true, group), saidKey(subWants, "")
		if group != "" {
			key = saidKey(subWants+ofGroup, group)
		}
		if group == "" && text != string(Complete) || group != "" && text != v.spread(true, "") {
			next[key] = text
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v.said)) {
		if _, stays := next[key]; !stays {
			v.announceItem(ofSaidKey(key).Withdrawal())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		if was, had := v.said[key]; begun || !had || was != next[key] {
			it := ofSaidKey(key)
			it.Doc = []byte(next[key])
			v.announceItem(it)
		}
	}
	v.said = next
}

// mark is the item that tells other sites the view on a group, and whether they need it.
func (v *views) mark(group string) (sub uint8, doc string, needed bool) {
	base, text := v.rule(false, group, 0), v.spread(false, group)
	parts := v.partsOf(base)
	sub = cmp.Or(viewSubs[parts.marks()], viewSubs[Complete])
	if text != string(base) || len(parts) > 1 || parts.near() {
		return sub, text, true
	}
	return sub, "", sub != viewSubs[Complete]
}

// saidKey names an item of viewSubs or subWants; group "" is all.
func saidKey(sub uint8, group string) string { return string(rune(sub)) + group }

func ofSaidKey(key string) site.Item {
	return marker(key[0], cmp.Or(key[1:], jxta.NetGroup))
}

// met looks whether the sites have changed from which neighbours are chosen.
func (v *views) met() {
	switch near := v.partsOf(v.cfg.View).near(); {
	case slices.Equal(v.order, v.far.order):
	case !v.uniform():
		v.turn(false)
	case near:
		v.retell()
	}
}

// retell gives the gateway each peer again, with the sites that are to know it.
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
	if v.cfg.View == Complete && len(v.said)+len(v.counted)+len(v.orders) == 0 {
		v.forget(memView)
		return
	}
	v.remember(memView, viewMemory{v.cfg.View, v.counted, v.said, v.orders})
}

// marker is an item about the view of a site, or about a number.
func marker(sub uint8, group string) site.Item {
	return site.Item{Kind: site.Endpoint, Sub: sub, Scope: group}
}

// tell gives a peer to the gateway, with the sites that are to know it.
func (v *views) tell(p *peer, group string) {
	l := p.leases[group]
	if v.withheld(group) {
		if v.starts() {
			l.to = slices.DeleteFunc(slices.Clone(l.to), func(n uint16) bool { return slices.Contains(l.near, n) })
			l.near = nil
		}
		chosen := map[View][]uint16{}
		for _, n := range v.sites() {
			told := func(view View) bool {
				parts := v.partsOf(view)
				if _, is := chosen[view]; !is {
					chosen[view] = parts.neighbours(v.far.order, p.id, group)
				}
				return parts.has(Complete) || slices.Contains(chosen[view], n)
			}
			if out, in := v.lets(n, group); !slices.Contains(l.to, n) && told(out) && told(in) {
				l.to, l.near = append(slices.Clone(l.to), n), append(l.near, n)
			}
		}
		for _, n := range v.far.order {
			for _, a := range v.far.sites[n].asks {
				if v.now.Before(a.expires) && v.fits(n, a.question, p, group) {
					v.allow(n, a, l)
				}
			}
		}
	}
	v.announceItem(v.outlets.peerItem(p, group))
}

// fits says whether a peer answers a question of a far site. It answers a question for its id in any group, because a message
// to it names a group.
func (v *views) fits(n uint16, q advcache.Question, p *peer, group string) bool {
	switch {
	case q.Type != jxta.TypePeer:
		return false
	case byPeerID(q):
		return q.Value == jxta.URN(p.id) && (q.Group == group || p.leases[q.Group] == nil && group == p.anyGroup())
	}
	out, in := v.lets(n, group)
	return v.partsOf(out).answers() && v.partsOf(in).answers() && named(q) && q.Group == group && peerMatches(p.leases[group].index, q)
}

// byPeerID says whether a question is for one peer, by its id.
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
	if q.Type != jxta.TypePeer {
		return
	}
	among := v.outlets.membersOf(q.Group)
	if id, err := jxta.ParseURN(q.Value); byPeerID(q) && err == nil {
		among = nil
		if p := v.outlets.peers[id]; p != nil {
			among = []*peer{p}
		}
	}
	withheld := map[string]bool{}
	for _, p := range among {
		for _, group := range slices.Sorted(maps.Keys(p.leases)) {
			if _, looked := withheld[group]; !looked {
				withheld[group] = v.withheld(group)
			}
			if withheld[group] && v.fits(n, q, p, group) && v.allow(n, a, p.leases[group]) {
				v.announceItem(v.outlets.peerItem(p, group))
			}
		}
	}
}

// answered says whether some far site only tells of a peer if it is asked such a question.
func (v *views) answered(q advcache.Question) bool {
	return slices.ContainsFunc(v.sites(), func(n uint16) bool {
		theirs, ours := v.partsOf(v.far.sites[n].viewOf(q.Group)), v.partsOf(v.limit(q.Group, n))
		withholds := !theirs.has(Complete) || !ours.has(Complete)
		return withholds && (byPeerID(q) || named(q) && theirs.answers() && ours.answers())
	})
}

// count notes that the number of members of a group may have changed.
func (v *views) count(group string) {
	if v.uniform() && v.partsOf(v.cfg.View).numbers() == "" {
		return
	}
	v.countAgain(group)
}

// countAgain has the number of members of a group told anew, if it has changed.
func (v *views) countAgain(group string) {
	v.changed[group] = true
	v.at = cmp.Or(v.at, v.now.Add(recount))
	v.until(v.at)
}

// numbers is the number of a group that a site is told: Count, Site, or "".
func (v *views) numbers(group string, n uint16) View {
	out, in := v.lets(n, group)
	kind, wants := v.partsOf(out).numbers(), v.partsOf(in)
	if wants.has(Complete) || wants.numbers() == kind {
		return kind
	}
	return ""
}

// audience are the sites that are told one kind of number of a group; all: every site, also one that is not known yet.
func (v *views) audience(kind View, group string) (sites []uint16, all bool) {
	all = v.partsOf(v.rule(false, group, 0)).numbers() == kind
	if v.uniform() {
		return nil, all
	}
	for _, n := range v.sites() {
		if v.numbers(group, n) == kind {
			sites = append(sites, n)
		} else {
			all = false
		}
	}
	if all {
		sites = nil
	}
	return sites, all
}

func numberKey(kind View, group string) string { return string(kind) + " " + group }

func ofNumberKey(key string) (kind View, group string) {
	head, group, _ := strings.Cut(key, " ")
	return View(head), group
}

// number is the item that tells a number.
func (v *views) number(kind View, group string, n int, sites []uint16, all bool) site.Item {
	it := marker(viewSubs[kind], group)
	it.Home, it.To = !all, sites
	if kind == Count {
		it.Doc = binary.AppendUvarint(nil, uint64(n))
	}
	return it
}

// withdraw takes back a number that other sites were told.
func (v *views) withdraw(kind View, group string) {
	v.announceItem(marker(viewSubs[kind], group).Withdrawal())
	delete(v.counted, numberKey(kind, group))
	delete(v.heard, numberKey(kind, group))
}

// sweep tells other sites the numbers that have changed.
func (v *views) sweep() {
	if !due.Reached(v.now, v.at) {
		return
	}
	for _, group := range slices.Sorted(maps.Keys(v.changed)) {
		for _, kind := range []View{Count, Site} {
			n, key := len(v.outlets.membersOf(group)), numberKey(kind, group)
			if kind == Site {
				n = min(n, 1)
			}
			sites, all := v.audience(kind, group)
			if len(sites) == 0 && !all {
				n = 0
			}
			switch {
			case n == v.counted[key]:
				continue
			case n == 0:
				v.withdraw(kind, group)
			default:
				v.counted[key], v.heard[key] = n, fmt.Sprint(sites, all)
				v.announceItem(v.number(kind, group, n, sites, all))
			}
		}
	}
	clear(v.changed)
	v.at = time.Time{}
	v.keep()
}
