package forecast

import (
	"fmt"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/replica"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// Adverts has the parts of the gateway that decide where advertisements of this site go.
type Adverts struct {
	Filter  *filter.Filter
	Replica *replica.Replica
	// Limit is the rule whose rate an item waits for; -1: it waits for none.
	Limit func(key string) int
	Sites []Site
	Name  func(uint16) string
}

// Rows describes entries of an adapter's directory.
func (a *Adverts) Rows(now time.Time, entries []site.Entry) []api.AdvertRow {
	rows := make([]api.AdvertRow, len(entries))
	for i, one := range entries {
		s := one.Subject
		rows[i] = api.AdvertRow{Origin: "local", Group: one.Scope, Type: s.Type, Root: s.Root, Name: s.Name, ID: one.ID, Peer: s.Owner, Pipe: s.Topic,
			Octets: s.Octets, Signed: one.Signed, LifetimeS: int64(one.Expires.Sub(now) / time.Second), Sites: []api.Travel{}}
		if one.Site != 0 {
			rows[i].Origin = a.Name(one.Site)
			continue
		}
		s.Direction = site.Out
		for j := range a.Sites {
			s.Site = a.Sites[j].ID
			rows[i].Sites = append(rows[i].Sites, a.travel(&a.Sites[j], one.Item.Key(), &s))
		}
	}
	return rows
}

// travel says how far an item of this site is on its way to one peer, and why it is not there.
func (a *Adverts) travel(to *Site, key string, s *site.Subject) api.Travel {
	t := api.Travel{Site: to.Name, State: "waits"}
	v := a.Filter.Judge(s)
	place, older := a.Replica.PlaceOf(to.ID, key)
	waits := a.Limit(key)
	switch {
	case v.Stays():
		t.State, t.Why = "stays", fmt.Sprintf("rule %s: %s", a.Filter.Rule(v.Rule), v.Action)
	case waits >= 0:
		t.Why = fmt.Sprintf("the rate of rule %s", a.Filter.Rule(waits))
	case place == replica.There:
		t.State = "held"
	case place == replica.UnderWay:
		t.State = "under way"
	case place == replica.Stays:
		t.State, t.Why = "stays", "not asked for, and not in use here"
	case place == replica.Denied:
		t.State, t.Why = "stays", "a rule"
	case to.why() != "":
		t.Why = to.why()
	default:
		t.Why = "others go first"
	}
	if older && t.State != "held" {
		if t.Why != "" {
			t.Why += "; "
		}
		t.Why += "an older version is there"
	}
	return t
}
