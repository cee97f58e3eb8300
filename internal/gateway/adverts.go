package gateway

import (
	"fmt"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/replica"
	"aldis/internal/site"
)

// AdvertRows describes entries of a face's directory.
func (g *Gateway) AdvertRows(now time.Time, entries []site.Entry) []api.AdvertRow {
	rows := make([]api.AdvertRow, len(entries))
	for i, a := range entries {
		s := a.Subject
		rows[i] = api.AdvertRow{Origin: "local", Group: a.Scope, Type: s.Type, Root: s.Root, Name: s.Name, ID: a.ID, Peer: s.Owner, Pipe: s.Topic,
			Octets: s.Octets, Signed: a.Signed, LifetimeS: int64(a.Expires.Sub(now) / time.Second), Sites: []api.Travel{}}
		if a.Site != 0 {
			rows[i].Origin = fmt.Sprintf("node-%d", a.Site)
			if p := g.byID[a.Site]; p != nil {
				rows[i].Origin = p.Name
			}
			continue
		}
		s.Direction = site.Out
		for _, p := range g.peers {
			s.Site = p.ID
			rows[i].Sites = append(rows[i].Sites, g.travel(p, a.Item.Key(), &s))
		}
	}
	return rows
}

// travel says where an own item is, seen from one peer, and why it is not there.
func (g *Gateway) travel(p *peer, key string, s *site.Subject) api.Travel {
	t := api.Travel{Site: p.Name, State: "waits"}
	v := g.cfg.Filter.Judge(s)
	place, older := g.replica.PlaceOf(p.ID, key)
	waits := g.limited.rule(key)
	switch {
	case v.Stays():
		t.State, t.Why = "stays", fmt.Sprintf("rule %s: %s", g.cfg.Filter.Rule(v.Rule), v.Action)
	case waits >= 0:
		t.Why = fmt.Sprintf("the rate of rule %s", g.cfg.Filter.Rule(waits))
	case place == replica.There:
		t.State = "held"
	case place == replica.UnderWay:
		t.State = "under way"
	case place == replica.Stays:
		t.State, t.Why = "stays", "not asked for, and not in use here"
	case place == replica.Denied:
		t.State, t.Why = "stays", "a rule"
	case g.silence.quiet():
		t.Why = "this gateway is silent"
	case p.LastHeard.IsZero():
		t.Why = "the site was not heard in this run"
	case p.Link.Dead():
		t.Why = "the link is down"
	case p.Link.Listening():
		t.Why = "the site is silent"
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
