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

// Advertisements stay at their site until somebody needs them (docs/decisions/asked-for.md). All far sites are told of
// the advertisement of a pipe that is open here or of a group that has members here. Any other advertisement only goes to
// sites whose peers look for it. Their questions travel as items of the kind site.Question.

// purpose is what makes an advertisement useful: an open pipe, or a group with members.
type purpose struct {
	group bool
	id    string // unique value
}

// ask is a question of peers of a far site.
type ask struct {
	question advcache.Question
	expires  time.Time
	given    int           // advertisements sent because of it
	here     time.Time     // when local peers are asked again; zero: never
	pause    time.Duration // the wait before that
}

// maxGiven is how many advertisements one ask gets: far peers get 50 in one answer.
const maxGiven = 4 * maxAnswers

// asker is the peer that asks far sites; host is its host, "" of strangers.
type asker struct{ peer, host string }

// ownAsk is a question that went to far sites.
type ownAsk struct {
	asker
	expires  time.Time
	question advcache.Question
}

// keySet is a set of keys, nearly always of one: a map for each advertisement would take more memory than the advertisement.
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

// assign notes what would make a local advertisement useful.
func (dir *directory) assign(n *jxta.Node, e *advcache.Entry) {
	u := purpose{id: PipeOf(n)}
	if e.Type == jxta.TypeGroup {
		u = purpose{true, e.ID}
	}
	if old, ok := dir.purposes[e.Key]; ok && old != u {
		dir.unassign(e.Key, old)
	}
	if u.id == "" {
		return
	}
	if u.id == e.ID {
		u.id = e.ID // shares the memory of the entry's string
	}
	dir.purposes[e.Key] = u
	s := dir.serving[u]
	s.add(e.Key)
	dir.serving[u] = s
}

// unassign takes back the purpose of an advertisement.
func (dir *directory) unassign(k advcache.Key, u purpose) {
	delete(dir.purposes, k)
	s := dir.serving[u]
	s.remove(k)
	if s.count() == 0 {
		delete(dir.serving, u)
	} else {
		dir.serving[u] = s
	}
}

// removed forgets an advertisement that is gone.
func (dir *directory) removed(k advcache.Key) {
	dir.unassign(k, dir.purposes[k])
	delete(dir.toAll, k)
	delete(dir.to, k)
	delete(dir.index, k)
}

// wanted reports whether the pipe is open here, or the group has members here.
func (dir *directory) wanted(u purpose) bool {
	if !u.group {
		return u.id != "" && dir.outlets.openHere[u.id] > 0
	}
	return len(dir.outlets.members[u.id]) > 0
}

// nowWanted tells all sites of the advertisements that have just become useful.
func (dir *directory) nowWanted(u purpose) {
	for _, k := range sortedKeys(dir.serving[u].all()) {
		if e := dir.cache.Get(dir.now, k); e != nil && !dir.toAll[k] {
			dir.publishFar(e)
		}
	}
}

func sortedKeys(keys map[advcache.Key]bool) []advcache.Key {
	return slices.SortedFunc(maps.Keys(keys), func(x, y advcache.Key) int {
		return strings.Compare(advKey(x), advKey(y))
	})
}

// restate finds out after a start which of the recalled advertisements are useful, and tells far sites.
func (dir *directory) restate() {
	used := map[advcache.Key]bool{}
	for u, keys := range dir.serving {
		if dir.wanted(u) {
			maps.Copy(used, keys.all())
		}
	}
	for _, k := range sortedKeys(used) {
		if e := dir.cache.Get(dir.now, k); e != nil {
			dir.publishFar(e)
		}
	}
}

// publishFar gives a local advertisement to the gateway, with the sites that are to have it.
func (dir *directory) publishFar(e *advcache.Entry) {
	if dir.toAll[e.Key] || dir.wanted(dir.purposes[e.Key]) {
		dir.toAll[e.Key] = true
		delete(dir.to, e.Key)
	} else {
		for _, n := range dir.far.order {
			for _, a := range dir.far.sites[n].asks {
				if dir.now.Before(a.expires) && dir.fits(a.question, e) {
					dir.allow(n, a, e)
				}
			}
		}
	}
	if !dir.unasked(e.Key) {
		dir.announceItem(dir.item(e))
	}
}

// unasked says whether an advertisement is only indexed, and no far site has asked for it: then not even a rule sends it.
func (dir *directory) unasked(k advcache.Key) bool { return dir.index[k] && len(dir.to[k]) == 0 }

// allow lets a site have an advertisement that it asked for, and says whether that is new.
func (dir *directory) allow(siteID uint16, a *ask, e *advcache.Entry) bool {
	if a.given >= maxGiven || slices.Contains(dir.to[e.Key], siteID) {
		return false
	}
	a.given++
	dir.to[e.Key] = append(slices.Clone(dir.to[e.Key]), siteID)
	return true
}

// item is a local advertisement in the form in which it was sent last.
func (dir *directory) item(e *advcache.Entry) site.Item {
	it := site.Item{Kind: site.Document, Scope: e.Group, Owner: e.Peer, ID: e.ID, Sub: e.Type, Doc: e.Doc, Expires: e.Expires}
	if last, ok := dir.sent[e.Key]; ok {
		it.Owner, it.Expires = last.peer, last.expires // the peer that published it first stays its owner
	}
	it.Home, it.To = !dir.toAll[e.Key], dir.to[e.Key]
	return it
}

// farAsk learns a question of a far site's peers, and sends the site the answers that are here.
func (dir *directory) farAsk(n uint16, s *farSite, it site.Item) {
	key := it.Key()
	if it.Gone || !it.Expires.IsZero() && !dir.now.Before(it.Expires) {
		delete(s.asks, key)
		return
	}
	a := s.asks[key]
	if a == nil {
		if len(s.asks) >= dir.cfg.MaxAsks {
			maps.DeleteFunc(s.asks, func(_ string, a *ask) bool { return !dir.now.Before(a.expires) })
		}
		if len(s.asks) >= dir.cfg.MaxAsks {
			dir.stats.Refused["far_asks"]++
			return
		}
		a = &ask{question: questionOf(it)}
		s.asks[key] = a
	}
	a.expires = it.Expires
	if a.expires.IsZero() || a.expires.After(dir.now.Add(2*dir.cfg.Ask)) {
		a.expires = dir.now.Add(dir.cfg.Ask)
	}
	for _, e := range dir.cache.Find(dir.now, a.question, maxGiven+min(len(dir.index), maxPassed)) {
		if e.Site == 0 && !dir.toAll[e.Key] && dir.fits(a.question, e) && dir.allow(n, a, e) {
			dir.announceItem(dir.item(e))
		}
	}
	dir.views.farAsk(n, a)
	if a.here.IsZero() {
		dir.askHere(a)
	}
}

// maxPassed is how many advertisements that are only indexed are passed over in search of answers to a question.
const maxPassed = 4096

// questionOf reads an item of the kind site.Question: attribute and pattern, or the id that the attribute must have in Peer.
func questionOf(it site.Item) advcache.Question {
	q := advcache.Question{Group: it.Scope, Type: it.Sub}
	q.Attr, q.Value, _ = strings.Cut(it.ID, "=")
	if it.Owner != "" {
		q.Value = jxta.URN(it.Owner)
	}
	return q
}

// maxAskText bounds, in octets, an attribute and a pattern on the link.
const maxAskText = 200

// laterAsk is a question that will go to far sites, unless the answer comes first: they send unasked the advertisements that are useful
// there.
type laterAsk struct {
	due time.Time
	asker
	item     site.Item
	question advcache.Question
}

// askFar plans to ask far sites a question that found too little here. A pattern is asked in any case: it may fit more.
func (dir *directory) askFar(p *peer, q *question, found int) {
	peers := q.ask.Type == jxta.TypePeer
	if q.threshold <= 0 || found >= q.threshold || peers && !dir.views.answered(q.ask) || q.ask.Peer != "" || found > 0 && exact(q.ask) {
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
	case strings.HasPrefix(q.ask.Attr, "Rdv"), q.ask.Attr == "DstPID": // routes and rendezvous of other sites are useless here
		return
	case len(it.ID) > maxAskText || strings.Contains(it.ID, "\x00") || !utf8.ValidString(it.ID):
		dir.stats.Refused["ask"]++
		return
	}
	key := it.Key()
	if a, ok := dir.asked[key]; ok && a.expires.Sub(dir.now) > dir.cfg.Ask/2 {
		return
	}
	if _, ok := dir.asking[key]; ok {
		return
	}
	from := asker{p.id, p.identity.host}
	if p.stranger {
		from = asker{peer: everyStranger}
	}
	if !dir.roomToAsk(from) || !dir.multicast.mayCarry(p) {
		dir.stats.Refused["asks"]++
		return
	}
	due := dir.now
	if !peers { // a peer that is withheld does not come by itself
		due = due.Add(dir.cfg.AskAfter)
	}
	dir.asking[key] = laterAsk{due, from, it, q.ask}
	dir.until(dir.asking[key].due)
}

// seek asks far sites for a peer that is unknown here, if some of them do not tell of all their peers; false: all do.
func (dir *directory) seek(p *peer, group, id string) bool {
	q := question{threshold: 1, wish: wish{group: group, ask: advcache.Question{Group: group, Type: jxta.TypePeer, Attr: "PID", Value: jxta.URN(id)}}}
	if jxta.IDKind(id) != jxta.KindPeer || !dir.views.answered(q.ask) {
		return false
	}
	dir.askFar(p, &q, 0)
	return true
}

// exact says whether a question is for one name or id.
func exact(q advcache.Question) bool { return q.Attr != "" && !strings.Contains(q.Value, "*") }

// sweepAsks sends far sites the questions that were not answered in time.
func (dir *directory) sweepAsks() {
	for _, key := range slices.Sorted(maps.Keys(dir.asking)) {
		a := dir.asking[key]
		if dir.now.Before(a.due) {
			dir.until(a.due)
			continue
		}
		delete(dir.asking, key)
		if exact(a.question) && len(dir.cache.Find(dir.now, a.question, 1)) > 0 {
			continue
		}
		a.item.Expires = dir.now.Add(dir.cfg.Ask)
		dir.asked[key] = ownAsk{a.asker, a.item.Expires, a.question}
		dir.stats.Asked++
		dir.announceItem(a.item)
	}
}

// roomToAsk says whether one more question of a peer may go to far sites.
func (dir *directory) roomToAsk(of asker) bool {
	mine, near := 0, 0 // of the peer, and of its host
	count := func(a asker) {
		if a.peer == of.peer {
			mine++
		}
		if a.host == of.host {
			near++
		}
	}
	for _, a := range dir.asking {
		count(a.asker)
	}
	for key, a := range dir.asked {
		if !dir.now.Before(a.expires) {
			delete(dir.asked, key)
		} else {
			count(a.asker)
		}
	}
	most := dir.cfg.MaxAsks
	return len(dir.asked)+len(dir.asking) < most && mine < max(1, most/8) && near < max(1, most/2)
}
