package gateway

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// obey replaces the rules. What crosses differs from now on: an item that may not cross any more is withdrawn where it is,
// and one that may goes. A message keeps what the rules said when it was accepted, and an open stream stays open.
func (e NewRules) obey(g *Gateway, now time.Time) {
	if g.cfg.Filter == nil {
		g.cfg.Filter = filter.New(nil)
	}
	f := g.cfg.Filter
	before := f.Replace(e.Filter)
	g.cfg.Messages = e.Messages
	g.cfg.Rules = slices.Concat(e.Compact, compact.DefaultRules)
	g.rulesReplaced++

	waiting := g.limited.takeAll()
	judgeOwn(g, now)
	for _, w := range waiting { // last: it may be a newer version of what is there
		if w.from == 0 {
			g.put(now, g.unjudged.of(w.item.Key(), w.item))
		} else {
			g.farItem(now, w.from, w.item, true)
		}
	}
	for _, p := range g.peers {
		for _, key := range slices.Sorted(maps.Keys(p.far.items)) {
			it := p.far.items[key]
			s := g.faces.describeItem(it)
			s.Direction, s.Site = site.In, p.ID
			if before.Judge(&s).Stays() != f.Judge(&s).Stays() {
				g.farItem(now, p.ID, it, true)
			}
		}
	}
}

// judgeOwn has the rules say again of each own item where it may go.
func judgeOwn(g *Gateway, now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(g.replica.Own())) {
		g.put(now, g.unjudged.of(key, g.replica.Own()[key]))
	}
}

// unjudged are own items as their face put them, where a rule has changed whom they go to unasked.
type unjudged map[string]site.Item

// of is the item as its face put it; it is what became of it.
func (u unjudged) of(key string, it site.Item) site.Item {
	if asPut, changed := u[key]; changed {
		return asPut
	}
	return it
}

// note keeps an item if the rules have changed it, and forgets an earlier version.
func (u *unjudged) note(asPut, became site.Item) {
	key := asPut.Key()
	if asPut.Gone || asPut.Home == became.Home && slices.Equal(asPut.To, became.To) {
		delete(*u, key)
		return
	}
	if *u == nil {
		*u = unjudged{}
	}
	(*u)[key] = asPut
}
