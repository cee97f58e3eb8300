package tak

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/site"
)

// wants holds the events that sites want to receive, and the octets that the rules leave to them.
type wants struct {
	of      map[uint16][]rule.Want // by far site that has stated wants
	stated  bool                   // an earlier run has stated the wants of this site
	budgets map[budgetOf]*track.Budget
}

// wantItem is the item with which a site states its wants.
func wantItem(wants []rule.Want) site.Item {
	return site.Item{Kind: site.Document, Scope: scope, ID: "want", Doc: rule.AppendWants(nil, wants)}
}

const keyWant = "w" // the wants of this site, as last stated

// state sends the wants of this site to the far sites, in the first step.
func (w *wants) state(s *step) {
	it := wantItem(s.cfg.Wants)
	switch {
	case len(s.cfg.Wants) > 0:
		s.out.Items = append(s.out.Items, it)
		s.remember(keyWant, it.Doc)
	case w.stated:
		s.out.Items = append(s.out.Items, it.Withdrawal())
		s.remember(keyWant, nil)
	}
}

// farItem takes the wants of a far site.
func (f *Adapter) farItem(now time.Time, from uint16, it site.Item) {
	if f.far[from] == nil || it.Kind != site.Document || it.ID != "want" {
		return
	}
	before := f.wants.of[from]
	if err := f.wants.take(from, it); err != nil {
		f.farTrouble(now, from, err)
	}
	f.placedAgain(now, from, func(e *cot.Event) bool { return !rule.Wanted(before, e) && rule.Wanted(f.wants.of[from], e) })
	careAnew(f, now)
}

// careAnew decides anew how precisely all units are reported to each audience.
func careAnew(f *Adapter, now time.Time) {
	for _, u := range f.near.All() {
		u.Cares = f.cares(u.Event)
		for _, a := range f.audiences {
			a.Reported(now, u)
		}
	}
}

// take replaces the wants of a far site; an item that is gone or malformed leaves none.
func (w *wants) take(from uint16, it site.Item) error {
	delete(w.of, from)
	if it.Gone {
		return nil
	}
	list, err := rule.ParseWants(it.Doc)
	if err == nil && len(list) > 0 {
		w.of[from] = list
	}
	return err
}

func (w *wants) lost(from uint16) { delete(w.of, from) }

// wanted says whether one of these sites wants an event.
func (w *wants) wanted(e *cot.Event, sites ...uint16) bool {
	return slices.ContainsFunc(sites, func(id uint16) bool { return rule.Wanted(w.of[id], e) })
}

// budget is the budget of a rule for a site, in octets a minute; nil: the rule has no rate.
func (w *wants) budget(r *rule.Rule, to uint16) *track.Budget {
	if r == nil || r.Rate == 0 {
		return nil
	}
	key := budgetOf{r, to}
	if w.budgets[key] == nil {
		w.budgets[key] = &track.Budget{PerMinute: float64(r.Rate)}
	}
	return w.budgets[key]
}

type budgetOf struct {
	rule *rule.Rule
	site uint16
}
