package tak

import (
	"slices"
	"time"

	"aldis/internal/site"
	"aldis/internal/tak/cot"
	"aldis/internal/tak/rule"
	"aldis/internal/tak/track"
)

// wantsSide is the Face as far as it deals with what sites want to be told.
type wantsSide struct{ of *Face }

// wantItem is the item with which a site states it.
func wantItem(wants []rule.Want) site.Item {
	return site.Item{Kind: site.Document, Scope: scope, ID: "want", Doc: rule.AppendWants(nil, wants)}
}

const keyWant = "w" // what was stated

// state tells the far sites what this one wants, in the first step.
func (side wantsSide) state() {
	f := side.of
	it := wantItem(f.cfg.Wants)
	switch {
	case len(f.cfg.Wants) > 0:
		f.out.Items = append(f.out.Items, it)
		f.remember(keyWant, it.Doc)
	case f.stated:
		f.out.Items = append(f.out.Items, it.Withdrawal())
		f.remember(keyWant, nil)
	}
}

// farItem takes what a far site wants.
func (side wantsSide) farItem(now time.Time, from uint16, it site.Item) {
	f := side.of
	if f.far[from] == nil || it.Kind != site.Document || it.ID != "want" {
		return
	}
	before := f.wants[from]
	delete(f.wants, from)
	if !it.Gone {
		wants, err := rule.ParseWants(it.Doc)
		if err != nil {
			f.farTrouble(now, from, err)
		} else if len(wants) > 0 {
			f.wants[from] = wants
		}
	}
	placedSide{f}.again(now, from, func(e *cot.Event) bool { return !rule.Wanted(before, e) && rule.Wanted(f.wants[from], e) })
	for _, u := range f.near.All() {
		u.Cares = f.cares(u.Event)
		for _, a := range f.audiences {
			a.Reported(now, u)
		}
	}
}

// wanted says whether one of these sites wants an event.
func (side wantsSide) wanted(e *cot.Event, sites ...uint16) bool {
	return slices.ContainsFunc(sites, func(id uint16) bool { return rule.Wanted(side.of.wants[id], e) })
}

// budget is what is left of a rule's octets a minute for a site; nil: it has no such bound.
func (side wantsSide) budget(r *rule.Rule, to uint16) *track.Budget {
	if r == nil || r.Rate == 0 {
		return nil
	}
	f := side.of
	key := budgetOf{r, to}
	if f.budgets[key] == nil {
		f.budgets[key] = &track.Budget{PerMinute: float64(r.Rate)}
	}
	return f.budgets[key]
}

type budgetOf struct {
	rule *rule.Rule
	site uint16
}
