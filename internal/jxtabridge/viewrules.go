package jxtabridge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"aldis/internal/site"
)

// ViewRule gives some groups and sites a view. The first rule that fits decides: rules of orders, the latest first, then rules of
// Config.Views. If none fits, sites are told Config.View, and they may tell all. Zero fields fit everything.
type ViewRule struct {
	Group  string `json:"group,omitempty"`  // unique value of a JXTA group
	Site   uint16 `json:"site,omitempty"`   // far site
	Bearer string `json:"bearer,omitempty"` // the bearer that messages to the site take now
	In     bool   `json:"in,omitempty"`     // the view that the site gives here; otherwise the view that it gets
	View   View   `json:"view,omitempty"`   // empty in a ViewOrder: the earlier order ends
}

// fits says whether a rule holds for a direction, a group and a site; group "" stands for all groups that no rule names.
func (r ViewRule) fits(in bool, group string, way site.Way) bool {
	return r.In == in && (r.Group == "" || r.Group == group) && (r.Site == 0 || r.Site == way.Site) && (r.Bearer == "" || r.Bearer == way.Bearer)
}

// Covers says whether a rule before another one fits everything that the later one fits.
func (r ViewRule) Covers(later ViewRule) bool {
	return r.In == later.In && (r.Group == "" || r.Group == later.Group) && (r.Site == 0 || r.Site == later.Site) && (r.Bearer == "" || r.Bearer == later.Bearer)
}

// Like says whether two rules have the same conditions.
func (r ViewRule) Like(other ViewRule) bool {
	r.View = other.View
	return r == other
}

// Viewed: from now on the configuration has these views.
type Viewed struct {
	View  View
	Rules []ViewRule
}

// ViewOrder: from now on this rule goes before the configuration, and before earlier orders. It survives a restart.
type ViewOrder struct{ ViewRule }

// AdapterEvent marks Viewed as an event of a protocol adapter.
func (Viewed) AdapterEvent() {}

// AdapterEvent marks ViewOrder as an event of a protocol adapter.
func (ViewOrder) AdapterEvent() {}

// MostViewOrders bounds the orders in force.
const MostViewOrders = 256

// viewChoice says which view holds.
type viewChoice struct {
	*step
	far    *far
	orders []ViewRule
	ways   map[uint16]site.Way
	known  map[View]viewParts
}

func newViewChoice(s *step, f *far) *viewChoice {
	return &viewChoice{step: s, far: f, ways: map[uint16]site.Way{}, known: map[View]viewParts{}}
}

// rules are all rules, in the order in which they count.
func (v *viewChoice) rules() []ViewRule {
	if len(v.orders) == 0 {
		return v.cfg.Views
	}
	return slices.Concat(v.orders, v.cfg.Views)
}

// order takes an order.
func (v *viewChoice) order(r ViewRule) {
	v.orders = slices.DeleteFunc(v.orders, r.Like)
	if r.View != "" {
		v.orders = slices.Insert(v.orders, 0, r)[:min(len(v.orders)+1, MostViewOrders)]
	}
}

// partsOf are the parts of a view. Far sites name views too, so the memory of them is bounded.
func (v *viewChoice) partsOf(view View) viewParts {
	parts, known := v.known[view]
	if !known {
		if len(v.known) >= 256 {
			clear(v.known)
		}
		parts = partsOf(view)
		v.known[view] = parts
	}
	return parts
}

// rule is the view that this gateway's rules give for a group and a site; site 0 stands for an unknown site.
func (v *viewChoice) rule(in bool, group string, n uint16) View {
	view, way := v.cfg.View, v.ways[n]
	way.Site = n
	if in {
		view = Complete
	}
	all := v.rules()
	if i := slices.IndexFunc(all, func(r ViewRule) bool { return r.fits(in, group, way) }); i >= 0 {
		view = all[i].View
	}
	switch {
	case view != ByBearer:
		return view
	case !way.Fast:
		return Ask
	}
	return Complete
}

// uniform says whether one view holds for all groups and sites.
func (v *viewChoice) uniform() bool {
	return v.cfg.View != ByBearer && len(v.rules()) == 0 && !slices.ContainsFunc(v.far.order, func(n uint16) bool { return len(v.far.sites[n].wants) > 0 })
}

// lets is the view that a site may get on a group (out), and the view that it wants (in): it is told what both views tell.
func (v *viewChoice) lets(n uint16, group string) (out, in View) {
	in = Complete
	if s := v.far.sites[n]; s != nil && len(s.wants) > 0 {
		in = s.wantsOf(group)
	}
	return v.rule(false, group, n), in
}

// limit is the view that a site may give here on a group; Complete: it may tell all.
func (v *viewChoice) limit(group string, n uint16) View {
	if len(v.cfg.Views)+len(v.orders) == 0 {
		return Complete
	}
	return v.rule(true, group, n)
}

// sites are the far sites that are known, or named in a rule.
func (v *viewChoice) sites() []uint16 {
	list := slices.AppendSeq(slices.Clone(v.far.order), maps.Keys(v.ways))
	for _, r := range v.rules() {
		if r.Site != 0 {
			list = append(list, r.Site)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// withheld says whether some sites are not told of all peers in a group.
func (v *viewChoice) withheld(group string) bool {
	all := func(view View) bool { return v.partsOf(view).has(Complete) }
	return !all(v.rule(false, group, 0)) || !v.uniform() && slices.ContainsFunc(v.sites(), func(n uint16) bool {
		out, in := v.lets(n, group)
		return !all(out) || !all(in)
	})
}

// scopes are "", for all groups, and the groups that a rule of this direction names.
func (v *viewChoice) scopes(in bool) []string {
	list := []string{""}
	for _, r := range v.rules() {
		if r.In == in && r.Group != "" {
			list = append(list, r.Group)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// spread is the view of a group in words: the view of an unknown site, and behind it "site=view" for each site with another view.
func (v *viewChoice) spread(in bool, group string) string {
	base := v.rule(in, group, 0)
	text := string(base)
	if v.uniform() {
		return text
	}
	for _, n := range v.sites() {
		if view := v.rule(in, group, n); view != base {
			text += fmt.Sprintf(" %d=%s", n, view)
		}
	}
	return text
}

// ofSpread is the view for a site in a text of spread.
func ofSpread(text string, n uint16) View {
	head, rest, _ := strings.Cut(text, " ")
	for each := range strings.SplitSeq(rest, " ") {
		if digits, view, is := strings.Cut(each, "="); is && digits == strconv.Itoa(int(n)) {
			return View(view)
		}
	}
	return View(head)
}
