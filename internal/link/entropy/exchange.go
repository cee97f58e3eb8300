package entropy

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// Digest takes the four octets of a neighbour's digest: hash is that of the messages that it holds of a group. 0: it is not
// in the group any more. fresh: it asks who is in the group.
func (e *Engine) Digest(now time.Time, id PortID, from uint16, tag Tag, hash uint16, fresh bool) {
	p := e.port(id)
	if p == nil || tag == 0 {
		return
	}
	g, known := e.groups[tag], e.members[from][tag]
	if hash == 0 {
		delete(e.members[from], tag)
		if g != nil {
			delete(g.doubts, from)
		}
		return
	}
	e.member(from, tag)
	if g == nil {
		return
	}
	t := p.talk(e, now, tag)
	if hash == g.digest(from) {
		t.idle = 0
		g.agree(now, from)
		p.queue = slices.DeleteFunc(p.queue, func(w want) bool { return w.tag == tag && w.lacking == from })
		if w := p.waiting(sayDigest, tag); w != nil { // the neighbour agrees: our digest needs no answer
			w.fresh = false
		}
		if p.Shared && !fresh && e.covers(now, p, tag, from) {
			t.same = true
			p.drop(sayDigest, tag)
			if p.crowded() && now.Sub(t.last) >= p.base()/2 { // it was for all, and all speak next after the same time
				p.next(e, now, t)
			}
		}
		if (fresh || !known) && p.waiting(sayDigest, tag) == nil && e.afford(now, p, from, answerOctets) {
			p.put(want{kind: sayDigest, tag: tag, at: due.Latest(p.soon(e, now), p.rested(t.said))})
		}
		return
	}
	g.doubt(now, p.spending(now, from), from, hash)
	if t.idle++; t.idle <= mostIdle {
		t.interval = p.base()
		t.again(now, t.interval+e.jitter(t.interval/4))
	}
	e.tell(now, p, tag, from, hash, t)
}

// doubt is a neighbour that has shown that it holds other messages than this node, perhaps more.
type doubt struct {
	at   time.Time
	hash uint16 // of its digest; 0: of its list
}

// mostDoubts is how often a neighbour causes a doubt in a fairPeriod: one that lies cannot keep this node in doubt.
const mostDoubts = 4

func (g *group) doubt(now time.Time, s *spending, from, hash uint16) {
	if s.doubts < mostDoubts {
		s.doubts++
		g.doubts[from] = doubt{now, hash}
	}
}

// caughtUp says that this node holds now what a neighbour showed that it held.
func (g *group) caughtUp() bool {
	for id, d := range g.doubts {
		if d.hash == g.digest(id) {
			return true
		}
	}
	return false
}

// agree takes the digest of a neighbour that holds the same as this node. It ends doubts about others that had time to answer: those from
// before the last digest of this node, or of another that held the same.
func (g *group) agree(now time.Time, from uint16) {
	delete(g.doubts, from)
	maps.DeleteFunc(g.doubts, func(_ uint16, d doubt) bool { return d.at.Before(g.shown) })
	g.agreed, g.shown = now, now
}

// soon is when a node answers a digest that all of a shared channel have heard. The time is partly random, and a node that
// hears the same answer meanwhile stays quiet.
func (p *port) soon(e *Engine, now time.Time) time.Time {
	if p.Shared {
		return now.Add(e.jitter(p.spread(2 * p.Trip)))
	}
	return now
}

// rested is when a node may repeat what it said at a time.
func (p *port) rested(said time.Time) time.Time {
	if said.IsZero() {
		return said
	}
	return said.Add(p.base() / 2)
}

// mostIdle is the number of differences in a row without a new message after which two nodes count as agreed until something changes.
const mostIdle = 4

// tell answers a neighbour with the list of all messages held of a group, but not too often. An answer to a digest, with this hash, does
// not go if this node holds the same meanwhile.
func (e *Engine) tell(now time.Time, p *port, tag Tag, to, hash uint16, t *talk) {
	if w := p.waiting(sayFull, tag); w != nil {
		if w.lacking != to || w.hash != hash {
			w.lacking = 0
		}
	} else if e.afford(now, p, to, answerOctets) {
		p.put(want{kind: sayFull, tag: tag, at: due.Latest(p.soon(e, now), p.rested(t.told)), wide: t.idle > 2, lacking: to, hash: hash})
	}
}

// expand is the number with these low 16 bits that is nearest to another.
func expand(low uint16, near uint64) uint64 {
	n := near&^math.MaxUint16 | uint64(low)
	switch {
	case n > near+1<<15 && n > 1<<16:
		return n - 1<<16
	case n+1<<15 < near:
		return n + 1<<16
	}
	return n
}

// number is the whole top of an entry, which may have only its low bits.
func (f *full) number(n *entry, o *origin) (top uint64) {
	if f.wide || o == nil {
		return n.top
	}
	return expand(uint16(n.top), o.top)
}

// compare takes the list of the messages that a neighbour holds of some origins of a group. Messages that this node lacks
// it requests. Messages that the neighbour lacks it gives, or lists as held.
func (e *Engine) compare(now time.Time, p *port, from uint16, f *full) {
	g := e.groups[f.tag]
	e.member(from, f.tag)
	if g == nil {
		return
	}
	theirs := map[uint16]*entry{}
	var lacks []Name
	for i := range f.entries {
		n := &f.entries[i]
		theirs[n.origin] = n
		if n.origin == e.cfg.Self {
			e.renumber(f.number(n, g.origins[e.cfg.Self]), g)
			continue
		}
		o := g.origins[n.origin]
		top := f.number(n, o)
		for before := uint64(0); before < min(top, back) && before < n.run+8*uint64(len(n.bits))+1; before++ {
			if n.holds(before) && (o == nil || !o.received(top-before)) {
				lacks = append(lacks, Name{n.origin, top - before})
			}
		}
	}
	var extra []Name
	for _, id := range g.ids {
		if id < f.first || id > f.last || id == from {
			continue
		}
		o, n := g.origins[id], theirs[id]
		for number, it := range o.items {
			// A message that ends at the neighbour is in none of its digests: if the neighbour lacks it, it asks.
			if it.Hops > 1 && it.Until().Sub(now) > 2*p.Trip && n.lacks(f, o, number) {
				extra = append(extra, Name{id, number})
			}
		}
	}
	t := p.talk(e, now, f.tag)
	whole := f.first == 0 && f.last == math.MaxUint16
	if whole { // it says more than the digest that came before it, or with it
		p.queue = slices.DeleteFunc(p.queue, func(w want) bool { return w.kind == sayFull && w.tag == f.tag && w.lacking == from })
	}
	switch {
	case len(lacks) > 0:
		g.doubt(now, p.spending(now, from), from, 0)
	case whole && len(extra) > 0: // the same list tells only that its sender has heard of another
		g.agreed = now
		delete(g.doubts, from)
	}
	if len(lacks)+len(extra) == 0 {
		if p.Shared && whole && e.covers(now, p, f.tag, from) {
			p.drop(sayFull, f.tag)
		}
		return
	}
	if len(lacks) > 0 {
		e.ask(now, now, p, g, from, lacks, false)
	}
	extra = slices.DeleteFunc(extra, func(n Name) bool { return p.comes(now, g, n) })
	if len(extra) == 0 {
		return
	}
	slices.SortFunc(extra, compareNames)
	switch {
	case !p.Shared:
		for _, n := range extra {
			e.offer(now, want{at: now}, p, g, from, n)
		}
	case len(extra) > mostUnasked || len(p.Peers) <= fewPeers || f.wide:
		e.tell(now, p, f.tag, from, 0, t)
	default:
		// One of the origins gives all at once, in one frame; if it is silent, another node does, and the nodes that hear that node do not.
		first := slices.IndexFunc(extra, func(n Name) bool { return n.Origin == e.cfg.Self || slices.Contains(p.Peers, n.Origin) })
		later := now.Add(2*p.Trip + e.jitter(8*p.Trip))
		for _, n := range extra {
			at := later
			if first >= 0 && extra[first].Origin == e.cfg.Self {
				at = now
			}
			e.offer(now, want{at: at, lacking: from}, p, g, from, n)
		}
	}
}

// mostUnasked is how many messages a neighbour of a shared channel is given at once when its list lacks them.
const mostUnasked = 4

func compareNames(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Number, b.Number))
}

// lacks says that the node of an entry has never had a message of this number; nil: that node holds nothing.
func (n *entry) lacks(f *full, o *origin, number uint64) bool {
	if n == nil {
		return true
	}
	top := f.number(n, o)
	if number > top {
		return true
	}
	return top-number < back && n.wants(top-number)
}

// renumber takes a number of this node's messages that others hold. If it is ahead of this node's own, this node has lost numbers.
func (e *Engine) renumber(top uint64, g *group) {
	o := g.origin(e.cfg.Self)
	if e.cfg.Start != 0 && top>>epochShift > uint64(e.cfg.Start)+1 { // a lie: no other number would ever be taken from this node
		e.drop("group_number")
		return
	}
	if top > o.top && top <= mostNumber {
		o.note(top)
		e.recordOrigin(g, e.cfg.Self)
	}
}

// ask is a message that a neighbour was asked for.
type ask struct {
	port  PortID
	from  uint16
	at    time.Time // when it is asked again
	tries int
	guess bool // the neighbour has not said that it holds the message
}

const (
	mostTries = 3   // of an ask
	mostAsked = 256 // of one neighbour at once
)

// blame is a neighbour that has not given a message that it said it holds.
type blame struct {
	times int
	until time.Time
}

const (
	blameFor  = 2 * time.Minute
	blameMost = time.Hour
)

// key is the name by which a message is requested: the upper bits of its number need not be known.
func (n Name) key() Name { return Name{n.Origin, n.Number & math.MaxUint16} }

// ask requests, at a time, messages from a neighbour that says it holds them, or that should hold them (guess).
func (e *Engine) ask(now, at time.Time, p *port, g *group, from uint16, lacks []Name, guess bool) {
	if b := p.blame[from]; b != nil && now.Before(b.until) {
		e.drop("group_blamed")
		t := p.talk(e, now, g.tag)
		t.at, t.same = due.Earliest(t.at, b.until), false // what it holds is still lacking then
		return
	}
	asked := 0
	for _, a := range g.asks {
		if a.from == from {
			asked++
		}
	}
	slices.SortFunc(lacks, compareNames)
	var all, names []Name
	for _, n := range lacks {
		if g.asks[n.key()] == nil && asked < mostAsked {
			a := &ask{port: p.ID, from: from, guess: guess}
			g.asks[n.key()] = a
			all = append(all, n.key())
			asked++
			if parity := g.origins[n.Origin].promised(now, n.Number); parity.IsZero() {
				names = append(names, n.key())
			} else {
				a.at = parity.Add(e.jitter(p.Trip))
				g.hasten(g.origins[n.Origin].block, n, now.Add(e.jitter(p.Trip))) // the parity restores one
			}
		}
	}
	if len(all) > 0 && e.afford(now, p, from, answerOctets) {
		e.solicit(at, p, g, from, names)
		return
	}
	for _, n := range all {
		delete(g.asks, n)
	}
}

// mostMissed is how many missing numbers before a message are requested at once. More are left to the digests.
const mostMissed = 64

// missed requests the numbers between the highest number of an origin and a later message of it that has come. It asks the
// origin, or the neighbour that passes on every message. It waits a while, since another node may ask for them too, or they
// may still be on their way to that neighbour.
func (e *Engine) missed(now time.Time, p *port, g *group, from uint16, it *Item, top uint64) {
	if top == 0 || top>>epochShift != it.Number>>epochShift || it.Number-top-1 > mostMissed || from != it.Origin && !p.Hub {
		return
	}
	var lacks []Name
	for n := top + 1; n < it.Number; n++ {
		lacks = append(lacks, Name{it.Origin, n})
	}
	at := now.Add(e.jitter(p.Trip))
	if from != it.Origin {
		at = now.Add(2 * p.Trip)
	}
	e.ask(now, at, p, g, from, lacks, true)
}

// patience is the time after which a request is repeated.
func (p *port) patience(names int) time.Duration {
	return 3*p.Trip + 10*time.Second + time.Duration(names)*time.Second*2000/time.Duration(max(p.Bps, 1))
}

// solicit queues a solicitation for its time and the air.
func (e *Engine) solicit(at time.Time, p *port, g *group, from uint16, names []Name) {
	var spans []span
	for _, n := range names {
		a := g.asks[n]
		a.at, a.tries = at.Add(p.patience(len(names))), a.tries+1
		if k := len(spans) - 1; k >= 0 && spans[k].origin == n.Origin && spans[k].first+uint16(spans[k].count) == uint16(n.Number) && spans[k].count < mostSpan {
			spans[k].count++
			continue
		}
		spans = append(spans, span{n.Origin, uint16(n.Number), 1})
	}
	for len(spans) > 0 {
		some := spans[:min(len(spans), mostSpans)]
		spans = spans[len(some):]
		p.put(want{kind: sayAsk, tag: g.tag, to: from, at: at, spans: some})
	}
}

// askAgain repeats requests that were not answered, and blames a neighbour that has said in vain that it holds the message.
func (e *Engine) askAgain(now time.Time) {
	for _, tag := range e.tags {
		g := e.groups[tag]
		again := map[PortID]map[uint16][]Name{}
		for n, a := range g.asks {
			if !due.Reached(now, a.at) {
				continue
			}
			p := e.port(a.port)
			if p == nil || a.tries >= mostTries {
				delete(g.asks, n)
				if p != nil && !a.guess && slices.Contains(p.Peers, a.from) {
					p.blamed(now, a.from)
				}
				continue
			}
			if again[p.ID] == nil {
				again[p.ID] = map[uint16][]Name{}
			}
			again[p.ID][a.from] = append(again[p.ID][a.from], n)
		}
		for _, p := range e.ports {
			for _, from := range p.Peers {
				if names := again[p.ID][from]; len(names) > 0 {
					slices.SortFunc(names, compareNames)
					e.solicit(now, p, g, from, names)
				}
				delete(again[p.ID], from)
			}
			for from, names := range again[p.ID] { // the neighbour cannot be reached
				for _, n := range names {
					delete(g.asks, n)
				}
				delete(again[p.ID], from)
			}
		}
	}
}

// blamed notes that a neighbour has not given a message that it said it holds. For a while the node requests nothing from it.
func (p *port) blamed(now time.Time, from uint16) {
	b := p.blame[from]
	if b == nil {
		b = &blame{}
		p.blame[from] = b
	}
	if now.Before(b.until) {
		return
	}
	b.until = now.Add(min(blameFor<<min(b.times, 8), blameMost))
	b.times++
}

// give queues the messages that a neighbour requests, if they are held.
func (e *Engine) give(now time.Time, p *port, from uint16, a *asked) {
	g := e.groups[a.tag]
	if g == nil {
		return
	}
	for _, s := range a.spans {
		o := g.origins[s.origin]
		if o == nil {
			continue
		}
		high := o.held()
		for i := range s.count {
			if n := expand(s.first+uint16(i), high); o.items[n].listed() && !e.offer(now, want{at: now}, p, g, from, Name{s.origin, n}) {
				return
			}
		}
	}
}

// gift is a message that was given to a neighbour.
type gift struct {
	tag Tag
	Name
}

const (
	mostGifts    = 8 // of one message to one neighbour in a period
	fairShare    = 4 // all neighbours together get one part in so many of the air for what they request and lack
	fairPeriod   = 10 * time.Minute
	fairLeast    = 4 << 10 // octets of a period, for each neighbour
	answerOctets = 100     // of an answer, about
)

// fewPeers is the largest number of peers of a shared channel for which a repair goes only to the peer that requests it.
const fewPeers = 3

// spending is how much a neighbour has been given in a period.
type spending struct {
	since  time.Time
	octets int
	doubts int
	gifts  map[gift]uint8
}

// offer queues a message, for a time, to a neighbour that lacks it; false: the neighbour has used up its share.
func (e *Engine) offer(now time.Time, w want, p *port, g *group, to uint16, n Name) bool {
	it, key := g.origins[n.Origin].items[n.Number], gift{g.tag, n}
	s := p.spending(now, to)
	if s.gifts[key] >= mostGifts {
		return true
	}
	for i := range p.queue {
		if had := &p.queue[i]; had.kind == sayItem && had.tag == g.tag && had.name == n {
			if had.to != to && p.Shared { // two neighbours lack it
				had.to = 0
			}
			if had.repair { // a message that is carried into this channel goes in its own turn
				had.at = due.Earliest(had.at, w.at)
			}
			if had.lacking != w.lacking {
				had.lacking = 0
			}
			return true
		}
	}
	if !e.afford(now, p, to, len(it.Body)+16) {
		return false
	}
	s.gifts[key]++
	if n.Origin == e.cfg.Self {
		p.talk(e, now, g.tag).lose(n.Number)
	}
	if p.crowded() { // others usually lack it as well
		to = 0
	}
	w.kind, w.tag, w.name, w.to, w.repair = sayItem, g.tag, n, to, true
	p.put(w)
	return true
}

func (p *port) spending(now time.Time, to uint16) *spending {
	s := p.spent[to]
	if s == nil || now.Sub(s.since) >= fairPeriod {
		s = &spending{since: now, gifts: map[gift]uint8{}}
		p.spent[to] = s
	}
	return s
}

// afford charges octets to a neighbour's share of the air; false: its share of this period is used up.
func (e *Engine) afford(now time.Time, p *port, to uint16, octets int) bool {
	s, fair := p.spending(now, to), p.Bps/8*int(fairPeriod/time.Second)/fairShare
	if p.Shared { // the others answer as well
		fair /= max(len(p.Peers), 1)
	}
	if s.octets+octets > max(fairLeast, fair) {
		e.drop("group_share")
		return false
	}
	s.octets += octets
	return true
}
