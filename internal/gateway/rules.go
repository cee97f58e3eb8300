package gateway

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/link/compact"
	"aldis/internal/link/replica"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// crossing applies the rules: to items of this site on their way out, to those of far sites on their way in, and to messages.
type crossing struct {
	filter   *filter.Filter // nil has no rules
	adapters *adapters      // which describe items and messages to the rules
	replica  *replica.Replica
	log      log
	sites    []uint16 // by id
	limited  limited
	unjudged awaitingRules
	filtered time.Time // when it was last said that messages are dropped
	replaced uint64    // how often the rules were replaced
}

// log takes lines for operators.
type log interface {
	Note(level, text string, attrs ...any)
}

func (c *crossing) join(id uint16) {
	at, _ := slices.BinarySearch(c.sites, id)
	c.sites = slices.Insert(c.sites, at, id)
}

// leave: a site is no more, and all that is known of it is void.
func (c *crossing) leave(id uint16) {
	c.sites = slices.DeleteFunc(c.sites, func(is uint16) bool { return is == id })
	c.limited.lost(id)
}

// put has the rules judge a change of this site's state: which peers must not have it, and which get it unasked.
func (c *crossing) put(now time.Time, it site.Item) {
	f := c.filter
	if !f.Empty() {
		c.limited.drop(0, it.Key())
	}
	if f.Empty() || it.Gone {
		c.unjudged.note(it, it)
		c.replica.Put(it)
		return
	}
	asPut := it
	it, deny, v := c.judge(it)
	c.unjudged.note(asPut, it)
	if v.Action == filter.Allow && f.Limited(v) && c.replica.Lacks(it, deny) {
		if ok, at := f.Allow(now, v); !ok {
			c.limited.add(f, limitedItem{item: it, deny: deny, verdict: v}, at)
			return
		}
	}
	if c.replica.Put(it, deny...) {
		f.Count(v)
	}
}

// judge applies the rules to an own item. The verdict is the first rule's that decided for any peer.
func (c *crossing) judge(it site.Item) (out site.Item, deny []uint16, first filter.Verdict) {
	s, first := c.adapters.describeItem(it), filter.Default
	s.Direction = site.Out
	allowed := 0
	for i, id := range c.sites {
		s.Site = id
		v := first
		if i == 0 || c.filter.BySite() {
			v = c.filter.Judge(&s)
		}
		if first.Rule < 0 {
			first = v
		}
		switch {
		case v.Stays():
			deny = append(deny, id)
		case v.Rule >= 0:
			allowed++
			if it.Home && !slices.Contains(it.To, id) {
				it.To = append(slices.Clone(it.To), id)
			}
		}
	}
	if allowed == len(c.sites) {
		it.Home = false
	}
	return it, deny, first
}

// judgeOwn has the rules judge again where each own item may go.
func (c *crossing) judgeOwn(now time.Time) {
	own := c.replica.Own()
	for _, key := range slices.Sorted(maps.Keys(own)) {
		c.put(now, c.unjudged.of(key, own[key]))
	}
}

// shows is an item of a peer's site as its adapter may see it; false: it waits. At a start it is not news, and no rate holds it.
func (c *crossing) shows(now time.Time, from uint16, it site.Item, news bool) (site.Item, bool) {
	f := c.filter
	if f.Empty() {
		return it, true
	}
	c.limited.drop(from, it.Key())
	if it.Gone {
		return it, true
	}
	v := f.Judge(c.farSubject(from, it))
	f.Count(v)
	if v.Stays() {
		return it.Withdrawal(), true // an earlier version may have passed
	}
	if news && f.Limited(v) {
		if ok, at := f.Allow(now, v); !ok {
			c.limited.add(f, limitedItem{from: from, item: it, verdict: v}, at)
			return it, false
		}
	}
	return it, true
}

func (c *crossing) farSubject(from uint16, it site.Item) *site.Subject {
	s := c.adapters.describeItem(it)
	s.Direction, s.Site, s.Owners = site.In, from, nil
	return &s
}

// carries says whether the rules let a message go to a site, or come from there. Messages of a stream were judged when the
// stream was opened.
func (c *crossing) carries(now time.Time, direction site.Direction, siteID uint16, s site.Subject) bool {
	if s.Stream || s.Ordered {
		return true
	}
	s.Direction, s.Site = direction, siteID
	f := c.filter
	v := f.Judge(&s)
	f.Count(v)
	if v.Stays() {
		return false
	}
	ok, _ := f.Allow(now, v)
	if !ok {
		f.Drops(v)
		if now.Sub(c.filtered) > time.Minute {
			c.filtered = now
			c.log.Note("warn", "messages are dropped: their sender exceeds a rule's rate", "rule", f.Rule(v.Rule).String(), "pipe", s.Topic, "peer", s.Owner)
		}
	}
	return ok
}

// step releases items that have waited for their rule's rate; show is called with those for adapters.
func (c *crossing) step(now time.Time, show func(from uint16, it site.Item)) {
	if !due.Reached(now, c.limited.due) {
		return
	}
	c.limited.step(now, c.filter, func(it limitedItem) {
		if it.from != 0 {
			show(it.from, it.item)
		} else {
			c.replica.Put(it.item, it.deny...)
		}
	})
}

// replace takes other rules. From now on an own item that may no longer cross is withdrawn from the sites that have it, and one that may
// cross now goes. far are items of other sites that waited for a rate.
func (c *crossing) replace(now time.Time, rules []filter.Rule) (before *filter.Filter, far []limitedItem) {
	before = c.filter.Replace(rules)
	c.replaced++
	waiting := c.limited.takeAll()
	c.judgeOwn(now)
	for _, w := range waiting { // last: it may be a newer version of an item that is there
		if w.from == 0 {
			c.put(now, c.unjudged.of(w.item.Key(), w.item))
		} else {
			far = append(far, w)
		}
	}
	return before, far
}

// newRules obeys the operator. A message keeps the marks of the rules under which it was accepted, and an open stream stays open.
func (g *Gateway) newRules(now time.Time, e NewRules) {
	g.cfg.Messages, g.cfg.Routes = e.Messages, e.Routes
	for _, p := range g.peers {
		p.usable |= 1 << 63 // waiting messages choose a bearer anew
	}
	g.cfg.Rules = slices.Concat(e.Compact, compact.DefaultRules)
	before, waiting := g.crossing.replace(now, e.Filter)
	for _, w := range waiting {
		g.farItem(now, w.from, w.item, true)
	}
	for _, p := range g.peers {
		for _, key := range slices.Sorted(maps.Keys(p.far.items)) {
			it := p.far.items[key]
			s := g.crossing.farSubject(p.ID, it)
			if before.Judge(s).Stays() != g.crossing.filter.Judge(s).Stays() {
				g.farItem(now, p.ID, it, true)
			}
		}
	}
}

// farItem hands an item of a peer's site to its adapter, if the rules let it.
func (g *Gateway) farItem(now time.Time, from uint16, it site.Item, news bool) {
	if it, ok := g.crossing.shows(now, from, it, news); ok {
		g.stepAdapter(now, it.Adapter, site.FarItem{Site: from, Item: it})
	}
}

// awaitingRules are own items as their adapter put them, where a rule has changed which sites they go to unasked.
type awaitingRules map[string]site.Item

// of is the item as its adapter put it; it is the item as the rules left it.
func (u awaitingRules) of(key string, it site.Item) site.Item {
	if asPut, changed := u[key]; changed {
		return asPut
	}
	return it
}

// note keeps an item if the rules have changed it, and forgets an earlier version.
func (u *awaitingRules) note(asPut, became site.Item) {
	key := asPut.Key()
	if asPut.Gone || asPut.Home == became.Home && slices.Equal(asPut.To, became.To) {
		delete(*u, key)
		return
	}
	if *u == nil {
		*u = awaitingRules{}
	}
	(*u)[key] = asPut
}
