package mail

import (
	"cmp"
	"math"
	"slices"

	"aldis/internal/site"
)

// ranks is how many precedences there are.
const ranks = int(site.Deferred) + 1

// queue is what waits in one lane for a peer. The most urgent goes first. Of as urgent ones the local sources take turns,
// each in its own order. State of this site is nobody's: it goes in the order of acceptance.
type queue struct {
	levels [ranks]level
	n      int
}

// level is what is as urgent as each other.
type level struct {
	*rota
	state   []*Entry
	sources []*source // with something that waits
}

// source is one local peer.
type source struct {
	name string
	list []*Entry // by Order
}

// Source is whose message it is; "" for state.
func (m *Message) Source() string {
	if m.Content.Payload == nil {
		return ""
	}
	return m.Content.Payload.From
}

func byOrder(a, b *Entry) int { return cmp.Compare(a.Order, b.Order) }

func byUrgency(a, b *Entry) int { return cmp.Or(cmp.Compare(b.Rank(), a.Rank()), byOrder(a, b)) }

// of is the source with this name; nil where nothing of it waits.
func (l *level) of(name string) *source {
	for _, s := range l.sources {
		if s.name == name {
			return s
		}
	}
	return nil
}

// listOf is where an entry belongs.
func (l *level) listOf(e *Entry) *[]*Entry {
	if e.Content.Payload == nil {
		return &l.state
	}
	s := l.of(e.Source())
	if s == nil {
		return nil
	}
	return &s.list
}

// push puts an entry behind those of its source that came before it: Order differs from the order of arrival where it was
// taken over from an older one.
func (q *queue) push(e *Entry) {
	l := &q.levels[e.Rank()]
	list := l.listOf(e)
	if list == nil {
		l.begins()
		s := &source{name: e.Source()}
		l.sources = append(l.sources, s)
		list = &s.list
	}
	at, _ := slices.BinarySearchFunc(*list, e, byOrder)
	*list = slices.Insert(*list, at, e)
	q.n++
}

// pull takes an entry out; false: it does not wait here.
func (q *queue) pull(e *Entry) bool {
	l := &q.levels[e.Rank()]
	list := l.listOf(e)
	if list == nil {
		return false
	}
	at, there := slices.BinarySearchFunc(*list, e, byOrder)
	if !there || (*list)[at] != e {
		return false
	}
	*list = slices.Delete(*list, at, at+1)
	q.n--
	if len(*list) == 0 {
		l.idle(e.Source())
	}
	return true
}

// idle forgets a source of which nothing waits any more.
func (l *level) idle(name string) {
	at := slices.IndexFunc(l.sources, func(s *source) bool { return s.name == name && len(s.list) == 0 })
	if at >= 0 {
		l.sources = slices.Delete(l.sources, at, at+1)
		l.ends()
	}
}

// first is the next to go; nil: nothing waits. Without unsized, a source whose turn that of an unsized one is sits out.
func (q *queue) first(unsized bool) *Entry {
	for rank := range slices.Backward(q.levels[:]) {
		if e := q.levels[rank].first(unsized); e != nil {
			return e
		}
	}
	return nil
}

// firstUnsized is the most urgent and oldest that is not sized; nil: all are.
func (q *queue) firstUnsized() (next *Entry) {
	for rank := range slices.Backward(q.levels[:]) {
		look := func(list []*Entry) {
			at := slices.IndexFunc(list, func(e *Entry) bool { return e.Unsized })
			if at >= 0 && (next == nil || list[at].Order < next.Order) {
				next = list[at]
			}
		}
		look(q.levels[rank].state)
		for _, s := range q.levels[rank].sources {
			look(s.list)
		}
		if next != nil {
			return next
		}
	}
	return nil
}

// firstOf is the next to go of some sources; nil: nothing of them waits.
func (q *queue) firstOf(some func(*source) bool) (next *Entry) {
	for rank := range slices.Backward(q.levels[:]) {
		l, of := &q.levels[rank], (*source)(nil)
		for _, s := range l.sources {
			if some(s) && !s.list[0].Unsized && (of == nil || cmp.Or(cmp.Compare(l.used(s.name), l.used(of.name)), byOrder(s.list[0], of.list[0])) < 0) {
				of = s
			}
		}
		if of != nil {
			return of.list[0]
		}
	}
	return nil
}

func (l *level) first(unsized bool) (next *Entry) {
	goes := func(e *Entry) bool { return unsized || !e.Unsized }
	least := uint64(math.MaxUint64 - aheadOctets)
	for _, s := range l.sources {
		if goes(s.list[0]) {
			least = min(least, l.used(s.name))
		}
	}
	for _, s := range l.sources {
		if e := s.list[0]; goes(e) && l.used(s.name) <= least+aheadOctets && (next == nil || e.Order < next.Order) {
			next = e
		}
	}
	if len(l.state) > 0 && goes(l.state[0]) && (next == nil || l.state[0].Order < next.Order) {
		next = l.state[0]
	}
	return next
}

// state calls f with all state that waits.
func (q *queue) state(f func(*Entry)) {
	for i := range q.levels {
		for _, e := range q.levels[i].state {
			f(e)
		}
	}
}

// each calls f with every source that waits, once for each precedence.
func (q *queue) each(f func(*source)) {
	for i := range q.levels {
		for _, s := range q.levels[i].sources {
			f(s)
		}
	}
}

// all calls f with everything that waits, in no order.
func (q *queue) all(f func(*Entry)) {
	q.state(f)
	q.each(func(s *source) {
		for _, e := range s.list {
			f(e)
		}
	})
}

// list is everything that waits, the most urgent first, each precedence in the order of acceptance.
func (q *queue) list() (list []*Entry) {
	q.all(func(e *Entry) { list = append(list, e) })
	slices.SortFunc(list, byUrgency)
	return list
}
