package gateway

import (
	"slices"
	"time"

	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// put takes a change of this site's state past the rules: which peers must not have it, and which get it unasked.
func (g *Gateway) put(now time.Time, it site.Item) {
	f := g.cfg.Filter
	if f.Empty() {
		g.unjudged.note(it, it)
		g.replica.Put(it)
		return
	}
	g.limited.drop(0, it.Key())
	if it.Gone {
		g.unjudged.note(it, it)
		g.replica.Put(it)
		return
	}
	asPut := it
	it, deny, v := g.judgeItem(it)
	g.unjudged.note(asPut, it)
	if v.Action == filter.Allow && f.Limited(v) && g.replica.Lacks(it, deny) {
		if ok, at := f.Take(now, v); !ok {
			g.limited.add(f, limitedItem{item: it, deny: deny, verdict: v}, at)
			return
		}
	}
	if g.replica.Put(it, deny...) {
		f.Count(v)
	}
}

// judgeItem applies the rules to an own item. The verdict is the first rule's that decided for any peer.
func (g *Gateway) judgeItem(it site.Item) (out site.Item, deny []uint16, first filter.Verdict) {
	s, first := g.faces.describeItem(it), filter.Default
	s.Direction = site.Out
	allowed := 0
	for i, p := range g.peers {
		s.Site = p.ID
		v := first
		if i == 0 || g.cfg.Filter.BySite() {
			v = g.cfg.Filter.Judge(&s)
		}
		if first.Rule < 0 {
			first = v
		}
		switch {
		case v.Stays():
			deny = append(deny, p.ID)
		case v.Rule >= 0:
			if allowed++; it.Home && !slices.Contains(it.To, p.ID) {
				it.To = append(slices.Clone(it.To), p.ID)
			}
		}
	}
	if allowed == len(g.peers) {
		it.Home = false
	}
	return it, deny, first
}

// describeItem is what the rules see of an item.
func (fs *faces) describeItem(it site.Item) site.Subject {
	if f := fs.of(it.Face); f != nil {
		return f.DescribeItem(it)
	}
	return site.Subject{Type: filter.Other, Scope: it.Scope, Owner: it.Owner, Octets: len(it.Doc)}
}

// farItem hands an item of a peer's site to its face, if the rules let it. At a start it is not news, and no rate
// holds it.
func (g *Gateway) farItem(now time.Time, from uint16, it site.Item, news bool) {
	f := g.cfg.Filter
	if !f.Empty() {
		g.limited.drop(from, it.Key())
		if !it.Gone {
			s := g.faces.describeItem(it)
			s.Direction, s.Site = site.In, from
			v := f.Judge(&s)
			f.Count(v)
			if v.Stays() {
				it = it.Withdrawal() // an earlier version may have passed
			} else if news && f.Limited(v) {
				if ok, at := f.Take(now, v); !ok {
					g.limited.add(f, limitedItem{from: from, item: it, verdict: v}, at)
					return
				}
			}
		}
	}
	g.stepFace(now, it.Face, site.FarItem{Site: from, Item: it})
}

// mayCarry says whether the rules let a message of a local peer go to a site. Those of streams were judged when the
// stream was opened.
func (g *Gateway) mayCarry(now time.Time, siteID uint16, payload *site.Message, s site.Subject) bool {
	if s.Stream || s.Ordered {
		return true
	}
	s.Direction, s.Site = site.Out, siteID
	if g.passes(now, &s) {
		return true
	}
	if p := g.byID[siteID]; p != nil {
		p.Counts.Refused++
	}
	g.faces.ended(payload, true)
	return false
}

// mayArrive is mayCarry for a message of a far peer.
func (g *Gateway) mayArrive(now time.Time, siteID uint16, payload *site.Message) bool {
	if g.cfg.Filter.Empty() {
		return true
	}
	s := g.faces.describe(payload)
	if s.Stream || s.Ordered {
		return true
	}
	s.Direction, s.Site = site.In, siteID
	return g.passes(now, &s)
}

func (g *Gateway) passes(now time.Time, s *site.Subject) bool {
	f := g.cfg.Filter
	v := f.Judge(s)
	f.Count(v)
	if v.Stays() {
		return false
	}
	ok, _ := f.Take(now, v)
	if !ok {
		f.Drops(v)
		if now.Sub(g.filtered) > time.Minute {
			g.filtered = now
			g.Note("warn", "messages are dropped: a rule's rate is used up", "rule", f.Rule(v.Rule).String(), "pipe", s.Topic, "peer", s.Owner)
		}
	}
	return ok
}

// passed: the rate of an item's rule lets it go on.
func (g *Gateway) passed(now time.Time) func(limitedItem) {
	return func(it limitedItem) {
		if it.from != 0 {
			g.stepFace(now, it.item.Face, site.FarItem{Site: it.from, Item: it.item})
		} else {
			g.replica.Put(it.item, it.deny...)
		}
	}
}
