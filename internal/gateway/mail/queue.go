package mail

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"

	"aldis/internal/ground/share"
	"aldis/internal/site"
)

// ranks is how many precedences there are.
const ranks = int(site.Deferred) + 1

// queue has the messages that wait in one queue for a peer. The most urgent go first. Among equally urgent ones the local sources
// take turns, and within a source its pipes, each in its own order. State of this site has no source: it goes in the order of acceptance.
type queue struct {
	levels [ranks]level
	n      int
}

// level has the entries of one precedence.
type level struct {
	*share.Rota
	state   []*Entry
	sources []*source // with something that waits
}

// source is one local peer.
type source struct {
	name       string
	list       []*Entry // by Order
	share.Rota          // of its pipes
	pipes      []*pipe  // with something that waits
}

// pipe has the messages of a source to the same place, which Message.pipe names.
type pipe struct {
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

// Line names the messages with which a message is read in order, its flow among them: all of its source, or, where the site itself is
// the sender, as for the TAK adapter, all on its topic; "" for state.
func (m *Message) Line() string {
	p := m.Content.Payload
	if p == nil || p.From != "" {
		return m.Source()
	}
	return "\x00" + p.Scope + "\x00" + p.Topic
}

// mostPipes bounds the pipes of a source that take turns: further ones share these. So a peer that invents pipes costs no time.
const mostPipes = 64

// pipe names where a message goes, among mostPipes.
func (m *Message) pipe() string {
	h := fnv.New32a()
	p := m.Content.Payload
	for _, s := range []string{p.Scope, p.Topic, p.To, p.Service, p.Param} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return string(rune(h.Sum32() % mostPipes))
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

// head is the next to go of a source: of the pipes that have used least of the air, the oldest.
func (s *source) head() *Entry {
	if len(s.pipes) == 1 {
		return s.list[0]
	}
	var next *Entry
	least := uint64(math.MaxUint64 - share.AheadOctets)
	for _, p := range s.pipes {
		least = min(least, s.Used(p.name))
	}
	for _, p := range s.pipes {
		if e := p.list[0]; s.Used(p.name) <= least+share.AheadOctets && (next == nil || e.Order < next.Order) {
			next = e
		}
	}
	return next
}

func (s *source) push(e *Entry) {
	insert(&s.list, e)
	name := e.pipe()
	at := slices.IndexFunc(s.pipes, func(p *pipe) bool { return p.name == name })
	if at < 0 {
		at = len(s.pipes)
		s.Begins()
		s.pipes = append(s.pipes, &pipe{name: name})
	}
	insert(&s.pipes[at].list, e)
}

func (s *source) pull(e *Entry) bool {
	if !remove(&s.list, e) {
		return false
	}
	name := e.pipe()
	at := slices.IndexFunc(s.pipes, func(p *pipe) bool { return p.name == name })
	remove(&s.pipes[at].list, e)
	if len(s.pipes[at].list) == 0 {
		s.pipes = slices.Delete(s.pipes, at, at+1)
		s.Ends()
	}
	return true
}

// insert and remove keep a list by Order.
func insert(list *[]*Entry, e *Entry) {
	at, _ := slices.BinarySearchFunc(*list, e, byOrder)
	*list = slices.Insert(*list, at, e)
}

func remove(list *[]*Entry, e *Entry) bool {
	at, there := slices.BinarySearchFunc(*list, e, byOrder)
	if !there || (*list)[at] != e {
		return false
	}
	*list = slices.Delete(*list, at, at+1)
	return true
}

// push puts an entry behind those of its source that came before it: Order differs from the order of arrival where it was
// taken over from an older message.
func (q *queue) push(e *Entry) {
	q.n++
	l := &q.levels[e.Rank()]
	if e.Content.Payload == nil {
		insert(&l.state, e)
		return
	}
	s := l.of(e.Source())
	if s == nil {
		l.Begins()
		s = &source{name: e.Source()}
		l.sources = append(l.sources, s)
	}
	s.push(e)
}

// pull takes an entry out; false: it does not wait here.
func (q *queue) pull(e *Entry) (waited bool) {
	l := &q.levels[e.Rank()]
	if e.Content.Payload == nil {
		waited = remove(&l.state, e)
	} else if s := l.of(e.Source()); s != nil {
		waited = s.pull(e)
		if len(s.list) == 0 {
			l.idle(s.name)
		}
	}
	if waited {
		q.n--
	}
	return waited
}

// idle forgets a source of which nothing waits any more.
func (l *level) idle(name string) {
	at := slices.IndexFunc(l.sources, func(s *source) bool { return s.name == name && len(s.list) == 0 })
	if at >= 0 {
		l.sources = slices.Delete(l.sources, at, at+1)
		l.Ends()
	}
}

// first is the next to go; nil: nothing waits. Without unsized, a source whose next message is unsized sits out.
func (q *queue) first(unsized bool) *Entry {
	if q.n == 0 {
		return nil
	}
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
			if e := s.head(); some(s) && !e.Unsized && !e.Behind && (of == nil || cmp.Or(cmp.Compare(l.Used(s.name), l.Used(of.name)), byOrder(e, next)) < 0) {
				of, next = s, e
			}
		}
		if of != nil {
			return next
		}
	}
	return nil
}

func (l *level) first(unsized bool) (next *Entry) {
	goes := func(e *Entry) bool { return !e.Behind && (unsized || !e.Unsized) }
	least := uint64(math.MaxUint64 - share.AheadOctets)
	for _, s := range l.sources {
		if goes(s.head()) {
			least = min(least, l.Used(s.name))
		}
	}
	for _, s := range l.sources {
		if e := s.head(); goes(e) && l.Used(s.name) <= least+share.AheadOctets && (next == nil || e.Order < next.Order) {
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
