package gateway

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// limited queues items held back by a rule's rate: ours on their way out, and remote ones not yet shown to local peers.
type limited struct {
	queues map[int]*limitedQueue // by rule
	due    time.Time
}

type limitedQueue struct {
	order []string // keys, oldest first; some may be gone from items
	items map[string]limitedItem
	next  time.Time
}

type limitedItem struct {
	from    uint16 // 0: of this site
	item    site.Item
	deny    []uint16
	verdict filter.Verdict
}

func limitedKey(from uint16, key string) string { return string(peerKey(from, []byte(key))) }

// add puts an item off until its rule's rate lets it pass, not before at.
func (l *limited) add(f *filter.Filter, it limitedItem, at time.Time) {
	q := l.queues[it.verdict.Rule]
	if q == nil {
		q = &limitedQueue{items: map[string]limitedItem{}}
		if l.queues == nil {
			l.queues = map[int]*limitedQueue{}
		}
		l.queues[it.verdict.Rule] = q
	}
	f.Count(it.verdict)
	f.Waits(it.verdict)
	key := limitedKey(it.from, it.item.Key())
	q.order = append(q.order, key)
	q.items[key] = it
	if q.next.IsZero() {
		q.next = at
	}
	l.due = due.Earliest(l.due, q.next)
}

// drop forgets an item that waits, because a newer version is there.
func (l *limited) drop(from uint16, itemKey string) {
	key := limitedKey(from, itemKey)
	for _, q := range l.queues {
		delete(q.items, key)
		if len(q.order) > 2*len(q.items)+16 {
			q.order = slices.DeleteFunc(q.order, func(k string) bool { _, ok := q.items[k]; return !ok })
		}
	}
}

// takeAll returns the items that wait, oldest of each rule first, and forgets them: the rules have changed.
func (l *limited) takeAll() (all []limitedItem) {
	for _, rule := range slices.Sorted(maps.Keys(l.queues)) {
		q := l.queues[rule]
		for _, key := range q.order {
			if it, ok := q.items[key]; ok {
				delete(q.items, key)
				all = append(all, it)
			}
		}
	}
	*l = limited{}
	return all
}

// lost: all that is known of a site is void.
func (l *limited) lost(siteID uint16) {
	for _, q := range l.queues {
		for key, it := range q.items {
			if it.from == siteID {
				delete(q.items, key)
			}
		}
	}
}

// step lets items pass that have waited for their rule's rate.
func (l *limited) step(now time.Time, f *filter.Filter, pass func(limitedItem)) {
	if !due.Reached(now, l.due) {
		return
	}
	l.due = time.Time{}
	for rule := range f.Len() { // in a fixed order
		q := l.queues[rule]
		if q == nil {
			continue
		}
		q.next = time.Time{}
		for len(q.order) > 0 {
			key := q.order[0]
			it, ok := q.items[key]
			if ok {
				if may, at := f.Allow(now, it.verdict); !may {
					q.next = at
					break
				}
			}
			delete(q.items, key)
			q.order = q.order[1:] // before pass, which may make drop tidy the order up
			if ok {
				pass(it)
			}
		}
		l.due = due.Earliest(l.due, q.next)
	}
}

// rule is the rule whose rate an item of this site waits for; -1 when it does not.
func (l *limited) rule(itemKey string) int {
	key := limitedKey(0, itemKey)
	for rule, q := range l.queues {
		if _, ok := q.items[key]; ok {
			return rule
		}
	}
	return -1
}
