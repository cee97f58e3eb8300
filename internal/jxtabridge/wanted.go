package jxtabridge

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// Advertisements stay home until somebody needs them (docs/decisions/asked-for.md): those of a pipe that is open here, and
// of a group that has members here, are told to all far sites; what nobody uses, to the sites whose peers look for it.
// What those look for travels as ItemAsk.

// useKey is what makes an advertisement useful: an open pipe, or a group with members.
type useKey struct {
	group bool
	id    string // unique value
}

// ask is what peers of a far site look for.
type ask struct {
	question advcache.Question
	expires  time.Time
	given    int // advertisements told because of it
}

// maxGiven is how many advertisements one ask gets: far peers are answered with 50 at a time.
const maxGiven = 4 * maxAnswers

// ownAsk is a question that far sites were told of.
type ownAsk struct {
	peer    string
	expires time.Time
}

type wanted struct {
	uses     map[advcache.Key]useKey // of local advertisements
	usedAs   map[useKey]keySet
	toAll    map[advcache.Key]bool     // told to all sites
	to       map[advcache.Key][]uint16 // told to those that asked
	openHere map[string]int            // local peers that have a pipe open
	asked    map[string]ownAsk         // by Item.Key
	later    map[string]laterAsk       // by Item.Key
	restated bool
}

func newWanted() wanted {
	return wanted{uses: map[advcache.Key]useKey{}, usedAs: map[useKey]keySet{}, toAll: map[advcache.Key]bool{},
		to: map[advcache.Key][]uint16{}, openHere: map[string]int{}, asked: map[string]ownAsk{}, later: map[string]laterAsk{}}
}

// keySet is a set of keys, nearly always of one: a map for each advertisement would take more than the advertisement.
type keySet struct {
	one  advcache.Key
	more map[advcache.Key]bool // nil: one is the only member
}

func (s *keySet) add(k advcache.Key) {
	switch {
	case s.more != nil:
		s.more[k] = true
	case s.one == advcache.Key{}:
		s.one = k
	case s.one != k:
		s.more = map[advcache.Key]bool{s.one: true, k: true}
	}
}

func (s *keySet) remove(k advcache.Key) {
	if s.more != nil {
		delete(s.more, k)
	} else if s.one == k {
		s.one = advcache.Key{}
	}
}

func (s *keySet) count() int {
	if s.more == nil && s.one != (advcache.Key{}) {
		return 1
	}
	return len(s.more)
}

func (s keySet) all() map[advcache.Key]bool {
	if s.more == nil && s.one != (advcache.Key{}) {
		return map[advcache.Key]bool{s.one: true}
	}
	return s.more
}

// usedBy notes what would make a local advertisement useful.
func (b *Bridge) usedBy(n *jxta.Node, e *advcache.Entry) {
	u := useKey{id: PipeOf(n)}
	if e.Type == jxta.TypeGroup {
		u = useKey{true, e.ID}
	}
	if old, ok := b.uses[e.Key]; ok && old != u {
		b.unuse(e.Key, old)
	}
	if u.id == "" {
		return
	}
	if u.id == e.ID {
		u.id = e.ID // the same octets
	}
	b.uses[e.Key] = u
	s := b.usedAs[u]
	s.add(e.Key)
	b.usedAs[u] = s
}

func (b *Bridge) unuse(k advcache.Key, u useKey) {
	delete(b.uses, k)
	s := b.usedAs[u]
	if s.remove(k); s.count() == 0 {
		delete(b.usedAs, u)
	} else {
		b.usedAs[u] = s
	}
}

// unused forgets an advertisement that is gone.
func (b *Bridge) unused(k advcache.Key) {
	b.unuse(k, b.uses[k])
	delete(b.toAll, k)
	delete(b.to, k)
}

func (b *Bridge) isUsed(u useKey) bool {
	if !u.group {
		return u.id != "" && b.openHere[u.id] > 0
	}
	return len(b.members[u.id]) > 0
}

// inUse tells all sites of the advertisements that have just become useful.
func (b *Bridge) inUse(u useKey) {
	for _, k := range sortedKeys(b.usedAs[u].all()) {
		if e := b.cache.Get(b.now, k); e != nil && !b.toAll[k] {
			b.tellAdv(e)
		}
	}
}

func sortedKeys(keys map[advcache.Key]bool) []advcache.Key {
	return slices.SortedFunc(maps.Keys(keys), func(x, y advcache.Key) int {
		return strings.Compare(advKey(x), advKey(y))
	})
}

// restateUsed says after a start which of the advertisements that are known from before are useful.
func (b *Bridge) restateUsed() {
	if b.restated {
		return
	}
	b.restated = true
	used := map[advcache.Key]bool{}
	for u, keys := range b.usedAs {
		if b.isUsed(u) {
			maps.Copy(used, keys.all())
		}
	}
	for _, k := range sortedKeys(used) {
		if e := b.cache.Get(b.now, k); e != nil {
			b.tellAdv(e)
		}
	}
}

// tellAdv gives a local advertisement to the gateway, with who is to have it.
func (b *Bridge) tellAdv(e *advcache.Entry) {
	if b.toAll[e.Key] || b.isUsed(b.uses[e.Key]) {
		b.toAll[e.Key] = true
		delete(b.to, e.Key)
	} else {
		for _, n := range b.sortedSites() {
			for _, a := range b.far[n].asks {
				if b.now.Before(a.expires) && a.question.Matches(e) {
					b.allow(n, a, e)
				}
			}
		}
	}
	b.tell(b.advItem(e))
}

// allow lets a site have what it asked for, and says whether that is new.
func (b *Bridge) allow(siteID uint16, a *ask, e *advcache.Entry) bool {
	if a.given >= maxGiven || slices.Contains(b.to[e.Key], siteID) {
		return false
	}
	a.given++
	b.to[e.Key] = append(slices.Clone(b.to[e.Key]), siteID)
	return true
}

// advItem is a local advertisement as it was told last.
func (b *Bridge) advItem(e *advcache.Entry) site.Item {
	it := site.Item{Kind: site.Document, Scope: e.Group, Owner: e.Peer, ID: e.ID, Sub: e.Type, Doc: e.Doc, Expires: e.Expires}
	if last, ok := b.sent[e.Key]; ok {
		it.Owner, it.Expires = last.peer, last.expires // whoever published it first stays its owner
	}
	it.Home, it.To = !b.toAll[e.Key], b.to[e.Key]
	return it
}

// farAsk learns what peers of a site look for, and tells it what is here.
func (b *Bridge) farAsk(n uint16, s *farSite, it site.Item) {
	key := it.Key()
	if it.Gone || !it.Expires.IsZero() && !b.now.Before(it.Expires) {
		delete(s.asks, key)
		return
	}
	a := s.asks[key]
	if a == nil {
		if len(s.asks) >= b.cfg.MaxAsks {
			maps.DeleteFunc(s.asks, func(_ string, a *ask) bool { return !b.now.Before(a.expires) })
		}
		if len(s.asks) >= b.cfg.MaxAsks {
			b.stats.Refused["far_asks"]++
			return
		}
		a = &ask{question: questionOf(it)}
		s.asks[key] = a
	}
	if a.expires = it.Expires; a.expires.IsZero() || a.expires.After(b.now.Add(2*b.cfg.Ask)) {
		a.expires = b.now.Add(b.cfg.Ask)
	}
	for _, e := range b.cache.Find(b.now, a.question, maxGiven) {
		if e.Site == 0 && !b.toAll[e.Key] && b.allow(n, a, e) {
			b.tell(b.advItem(e))
		}
	}
}

// questionOf reads an ItemAsk: attribute and pattern, or the id that the attribute must have in Peer.
func questionOf(it site.Item) advcache.Question {
	q := advcache.Question{Group: it.Scope, Type: it.Sub}
	q.Attr, q.Value, _ = strings.Cut(it.ID, "=")
	if it.Owner != "" {
		q.Value = jxta.URN(it.Owner)
	}
	return q
}

// maxAskText bounds, in octets, what an attribute and a pattern may cost on the link.
const maxAskText = 200

// laterAsk is a question that far sites will be told of, unless the answer comes by itself: what is in use there is told
// unasked.
type laterAsk struct {
	due      time.Time
	peer     string
	item     site.Item
	question advcache.Question
}

// askFar notes what a local peer looks for and did not find, or asked for with a pattern, which may fit more elsewhere.
func (b *Bridge) askFar(p *peer, q *question, found int) {
	if q.threshold <= 0 || found >= q.threshold || q.ask.Type == jxta.TypePeer || q.ask.Peer != "" || found > 0 && exact(q.ask) {
		return
	}
	it := site.Item{Kind: site.Question, Scope: q.group, Sub: q.ask.Type}
	if q.ask.Attr != "" {
		it.ID = q.ask.Attr + "=" + q.ask.Value
	}
	if id, err := jxta.ParseURN(q.ask.Value); err == nil && exact(q.ask) {
		it.ID, it.Owner = q.ask.Attr+"=", id
	}
	switch {
	case strings.HasPrefix(q.ask.Attr, "Rdv"), q.ask.Attr == "DstPID": // routes and rendezvous of other sites are of no use here
		return
	case len(it.ID) > maxAskText || strings.Contains(it.ID, "\x00") || !utf8.ValidString(it.ID):
		b.stats.Refused["ask"]++
		return
	}
	key := it.Key()
	if a, ok := b.asked[key]; ok && a.expires.Sub(b.now) > b.cfg.Ask/2 {
		return
	}
	if _, ok := b.later[key]; ok {
		return
	}
	asker := p.id
	if p.stranger {
		asker = everyStranger
	}
	if !b.roomToAsk(asker) || !b.mayCarry(p) {
		b.stats.Refused["asks"]++
		return
	}
	b.later[key] = laterAsk{b.now.Add(b.cfg.AskAfter), asker, it, q.ask}
	b.until(b.later[key].due)
}

// exact says that a question is for one name or id.
func exact(q advcache.Question) bool { return q.Attr != "" && !strings.Contains(q.Value, "*") }

// sweepAsks tells far sites the questions that nothing has answered by itself.
func (b *Bridge) sweepAsks() {
	for _, key := range slices.Sorted(maps.Keys(b.later)) {
		a := b.later[key]
		if b.now.Before(a.due) {
			b.until(a.due)
			continue
		}
		delete(b.later, key)
		if exact(a.question) && len(b.cache.Find(b.now, a.question, 1)) > 0 {
			continue
		}
		a.item.Expires = b.now.Add(b.cfg.Ask)
		b.asked[key] = ownAsk{a.peer, a.item.Expires}
		b.stats.Asked++
		b.tell(a.item)
	}
}

// roomToAsk says whether far sites may be told of one more question, of a certain peer.
func (b *Bridge) roomToAsk(peer string) bool {
	mine, waiting := 0, 0
	for _, a := range b.later {
		if waiting++; a.peer == peer {
			mine++
		}
	}
	for key, a := range b.asked {
		if !b.now.Before(a.expires) {
			delete(b.asked, key)
		} else if a.peer == peer {
			mine++
		}
	}
	return len(b.asked)+waiting < b.cfg.MaxAsks && mine < max(1, b.cfg.MaxAsks/8)
}
