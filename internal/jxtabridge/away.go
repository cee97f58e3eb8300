package jxtabridge

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// away holds the peers that have listened here and do not now, and the far messages that wait for them. A peer is known on a
// pipe from the time when the pipe closed, and in the group from the end of its lease, for Config.Wait and while messages wait
// for it there.
type away struct {
	*step
	of     map[string]*absent // by peer; also of peers that are here and have closed a pipe
	least  due.Heap[byRank]   // waiting messages, first the one that is given up first
	octets int                // of waiting messages, each counted once
	purge  time.Time          // the time of the next search for peers that are away for too long
}

// absent is a peer that is away, or one of its pipes is.
type absent struct {
	id      string
	groups  map[string]time.Time  // since when it has had no lease in the group
	pipes   map[pipeKey]time.Time // since when it has not listened to the pipe
	waiting due.Heap[*parked]     // first the message that is given up first
	octets  int
	ready   []*parked // messages that it can be handed, in order
	feeding bool
}

// parked is a message that waits for a peer that is away.
type parked struct {
	*delivery
	of    *absent
	place int // in absent.waiting
}

// Before and Placed are for the heap of messages that wait for a peer.
func (w *parked) Before(o *parked) bool { return w.less(o.delivery) }
func (w *parked) Placed(place int)      { w.place = place }

// byRank orders all waiting messages.
type byRank struct{ *delivery }

// Before and Placed are for the heap of all waiting messages.
func (r byRank) Before(o byRank) bool { return r.less(o.delivery) }
func (r byRank) Placed(place int)     { r.rank = place }

// inOrder lists waiting messages in the order of their arrival.
func inOrder(list []*parked) []*parked {
	return slices.SortedFunc(slices.Values(list), func(a, b *parked) int { return cmp.Compare(a.order, b.order) })
}

func inKeyOrder[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// maxClosed is how many closed pipes of one peer are remembered.
const maxClosed = 64

// knows reports whether a peer was here lately.
func (aw *away) knows(id string) bool {
	a := aw.of[id]
	return a != nil && len(a.groups) > 0
}

// listened reports whether a peer has closed a pipe lately.
func (aw *away) listened(id string, k pipeKey) bool {
	a := aw.of[id]
	if a == nil {
		return false
	}
	_, closed := a.pipes[k]
	return closed
}

// behind reports whether a peer that is back does not have all messages yet that have waited for it.
func (aw *away) behind(id string) bool {
	a := aw.of[id]
	return a != nil && len(a.ready) > 0
}

// listeners are the peers that listened to a pipe, or were in its group, and are away.
func (aw *away) listeners(pipe bool, k pipeKey) (ids []string) {
	for id, a := range aw.of {
		_, there := a.groups[k.group]
		if pipe {
			_, there = a.pipes[k]
		}
		if there {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// find is the entry of a peer that is away, which is made if there is none.
func (aw *away) find(id string) *absent {
	a := aw.of[id]
	if a == nil {
		a = &absent{id: id, groups: map[string]time.Time{}, pipes: map[pipeKey]time.Time{}}
		aw.of[id] = a
		if aw.purge.IsZero() {
			aw.purge = aw.now.Add(purgeEvery)
			aw.until(aw.purge)
		}
	}
	return a
}

// purgeEvery is the time between two searches for peers that are away for too long.
const purgeEvery = 10 * time.Minute

// left notes that a peer has no lease in a group any more. A peer that has listened to nothing there and for which nothing
// waits is not kept: ids cost a stranger nothing.
func (aw *away) left(id, group string) {
	a := aw.of[id]
	if a == nil || len(a.waiting) == 0 && !slices.ContainsFunc(a.closedPipes(), func(k pipeKey) bool { return k.group == group }) {
		return
	}
	a.groups[group] = aw.now
	aw.save(a)
	aw.crowded(a)
}

// closed notes that a peer no longer listens to a pipe.
func (aw *away) closed(id string, k pipeKey) {
	a := aw.find(id)
	if len(a.pipes) >= maxClosed {
		delete(a.pipes, slices.MinFunc(a.closedPipes(), func(x, y pipeKey) int {
			return cmp.Or(a.pipes[x].Compare(a.pipes[y]), x.compare(y))
		}))
	}
	a.pipes[k] = aw.now
	aw.save(a)
	aw.crowded(a)
}

// returned and opened forget that a peer was away in a group, or on a pipe.
func (aw *away) returned(id, group string) {
	if a := aw.of[id]; a != nil {
		delete(a.groups, group)
		aw.save(a)
		aw.tidy(a)
	}
}

func (aw *away) opened(id string, k pipeKey) {
	if a := aw.of[id]; a != nil {
		delete(a.pipes, k)
		aw.save(a)
		aw.tidy(a)
	}
}

// crowded forgets the peers that have been away for longest and for which nothing waits, if too many are known.
func (aw *away) crowded(but *absent) {
	for len(aw.of) > aw.cfg.MaxPeers {
		var oldest *absent
		for _, a := range aw.of {
			if a != but && len(a.waiting) == 0 && (oldest == nil || cmp.Or(a.since().Compare(oldest.since()), cmp.Compare(a.id, oldest.id)) < 0) {
				oldest = a
			}
		}
		if oldest == nil {
			return // the messages that wait for the other peers are bounded
		}
		aw.drop(oldest)
	}
}

// since is when a peer was last here.
func (a *absent) since() (at time.Time) {
	for _, t := range a.groups {
		at = due.Latest(at, t)
	}
	for _, t := range a.pipes {
		at = due.Latest(at, t)
	}
	return at
}

func (a *absent) closedPipes() []pipeKey {
	return slices.SortedFunc(maps.Keys(a.pipes), pipeKey.compare)
}

func (k pipeKey) compare(o pipeKey) int {
	return cmp.Or(cmp.Compare(k.group, o.group), cmp.Compare(k.pipe, o.pipe))
}

// tidy forgets a peer when nothing of it is left.
func (aw *away) tidy(a *absent) {
	if len(a.groups)+len(a.pipes)+len(a.waiting) == 0 {
		delete(aw.of, a.id)
	}
}

func (aw *away) drop(a *absent) {
	clear(a.groups)
	clear(a.pipes)
	aw.save(a)
	aw.tidy(a)
}

// park lets a message wait for a peer.
func (aw *away) park(d *delivery, id string) *absent {
	a := aw.find(id)
	w := &parked{delivery: d, of: a}
	a.waiting.Push(w)
	a.octets += d.octets
	if len(d.parked) == 0 {
		aw.octets += d.octets
		aw.least.Push(byRank{d})
	}
	d.parked = append(d.parked, w)
	return a
}

// unpark takes out a message that waits for a peer.
func (aw *away) unpark(w *parked) {
	a, d := w.of, w.delivery
	a.waiting.Remove(w.place)
	a.octets -= d.octets
	d.parked = slices.DeleteFunc(d.parked, func(o *parked) bool { return o == w })
	if len(d.parked) == 0 {
		aw.octets -= d.octets
		aw.least.Remove(d.rank)
	}
	if !a.feeding {
		aw.tidy(a)
	}
}

// tooMuch is the message to give up if too much waits for a peer, or for all; nil: none.
func (aw *away) tooMuch(a *absent) *parked {
	switch {
	case len(a.waiting) > 0 && (a.octets > aw.cfg.MaxAwayOctetsOfPeer || len(a.waiting) > maxParked):
		return a.waiting[0]
	case aw.octets > aw.cfg.MaxAwayOctets && len(aw.least) > 0:
		return aw.least[0].parked[0]
	}
	return nil
}

// maxParked is how many messages may wait for one peer that is away.
const maxParked = 65536

// sweep forgets peers that have been away for longer than messages wait.
func (aw *away) sweep() {
	if !due.Reached(aw.now, aw.purge) {
		return
	}
	aw.purge = time.Time{}
	for _, id := range inKeyOrder(aw.of) {
		a := aw.of[id]
		needed := map[pipeKey]bool{}
		for _, w := range a.waiting {
			k, _ := pipeOf(&w.message)
			needed[k], needed[pipeKey{group: w.message.Scope}] = true, true
		}
		over := func(k pipeKey, at time.Time) bool { return !needed[k] && !aw.now.Before(at.Add(aw.cfg.Wait)) }
		before := len(a.groups) + len(a.pipes)
		maps.DeleteFunc(a.groups, func(g string, at time.Time) bool { return over(pipeKey{group: g}, at) })
		maps.DeleteFunc(a.pipes, over)
		if len(a.groups)+len(a.pipes) < before {
			aw.save(a)
		}
		aw.tidy(a)
	}
	if len(aw.of) > 0 {
		aw.purge = aw.now.Add(purgeEvery)
	}
}

// Memories of peers that are away, for a restarted gateway: where each listened, and which of them a message is still for
// when others have it.
const (
	memAway = "away/"
	memLeft = "left/"
)

type awayMemory struct {
	Group string    `json:"group"`
	Pipe  string    `json:"pipe,omitempty"` // "": the lease
	Since time.Time `json:"since"`
}

func leftKey(token uint64) string { return memLeft + strconv.FormatUint(token, 16) }

func (aw *away) save(a *absent) {
	if a.id == nobody {
		return
	}
	var list []awayMemory
	for _, g := range inKeyOrder(a.groups) {
		list = append(list, awayMemory{g, "", a.groups[g]})
	}
	for _, k := range a.closedPipes() {
		list = append(list, awayMemory{k.group, k.pipe, a.pipes[k]})
	}
	if len(list) == 0 {
		aw.forget(memAway + a.id)
		return
	}
	aw.remember(memAway+a.id, list)
}

// recall restores one memory; it reports whether m is one. Unknown entries are left out.
func (ar *arrivals) recall(m site.Memory) bool {
	if id, ok := strings.CutPrefix(m.Key, memAway); ok {
		var list []awayMemory
		if json.Unmarshal(m.Value, &list) == nil && id != nobody {
			a := ar.away.find(id)
			for _, am := range list {
				if am.Pipe == "" {
					a.groups[am.Group] = am.Since
				} else {
					a.pipes[pipeKey{am.Group, am.Pipe}] = am.Since
				}
			}
		}
		return true
	}
	s, ok := strings.CutPrefix(m.Key, memLeft)
	if !ok {
		return false
	}
	token, err := strconv.ParseUint(s, 16, 64)
	var ids []string
	if err == nil && json.Unmarshal(m.Value, &ids) == nil && len(ids) > 0 {
		ar.left[token] = ids
	}
	return true
}

// start begins the clocks of recalled peers and messages: only Step knows the time.
func (ar *arrivals) start() {
	if len(ar.left) > 0 {
		ar.recalled = ar.now.Add(time.Minute)
	}
	if len(ar.away.of) > 0 {
		ar.away.purge = ar.now.Add(time.Minute)
	}
	for _, p := range ar.outlets.sortedPeers() {
		p.gap.since = ar.now
	}
	ar.until(ar.recalled)
	ar.until(ar.away.purge)
}

// AwayStatus is a peer that is away, or has closed a pipe, and for which messages wait.
type AwayStatus struct {
	Peer     string    `json:"peer"`
	Since    time.Time `json:"since,omitzero"`
	Messages int       `json:"messages"`
	Octets   int       `json:"octets"`
}

func (aw *away) status() (list []AwayStatus) {
	for _, id := range inKeyOrder(aw.of) {
		if a := aw.of[id]; len(a.waiting) > 0 {
			list = append(list, AwayStatus{id, a.since(), len(a.waiting), a.octets})
		}
	}
	return list
}
