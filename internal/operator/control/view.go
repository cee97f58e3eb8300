package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/operator/control/glance"
	"aldis/internal/site"
)

// ViewOrder is the body of POST /views: how much other sites learn of JXTA peers, or may tell here. Group is the unique value of a JXTA
// group, or "" for all; Site is a name or id and Link a name, or "" for any. View "" cancels the earlier order for the same group, site and
// link. The answer is the views in force.
type ViewOrder struct {
	Group string          `json:"group,omitempty"`
	Site  string          `json:"site,omitempty"`
	Link  string          `json:"link,omitempty"`
	In    bool            `json:"in,omitempty"`
	View  jxtabridge.View `json:"view"`
}

// String is the order in words, for the log.
func (o ViewOrder) String() string {
	text := fmt.Sprintf("view %q", o.View)
	for _, part := range [][2]string{{"group", o.Group}, {"site", o.Site}, {"link", o.Link}} {
		if part[1] != "" {
			text += fmt.Sprintf(", %s %q", part[0], part[1])
		}
	}
	if o.In {
		text += ", in"
	}
	return text
}

// ViewList is the answer: View applies if none of the Rules matches. The first Ordered rules come from orders.
type ViewList struct {
	View    jxtabridge.View       `json:"view"`
	Rules   []jxtabridge.ViewRule `json:"rules,omitempty"`
	Ordered int                   `json:"ordered"`
}

// view gives the gateway the order, and waits until its status shows it.
func (s Source) view(ctx context.Context, order ViewOrder) (any, error) {
	if _, err := order.View.Parts(); order.View != "" && err != nil {
		return nil, Refusal{http.StatusBadRequest, err.Error()}
	}
	now, err := s.Snapshot(ctx)
	if err != nil {
		return nil, Refusal{http.StatusServiceUnavailable, err.Error()}
	}
	rule := jxtabridge.ViewRule{Group: order.Group, Bearer: order.Link, In: order.In, View: order.View}
	if order.Site != "" {
		sites, _, err := sitesOf(now.Gateway.Peers, []string{order.Site})
		if err != nil || len(sites) != 1 {
			return nil, Refusal{http.StatusNotFound, fmt.Sprintf("there is no peer %q", order.Site)}
		}
		rule.Site = sites[0]
	}
	lan, _ := now.LAN.(jxtabridge.Status)
	switch {
	case order.View == "" && !slices.ContainsFunc(lan.Views[:lan.Ordered], rule.Like):
		return nil, Refusal{http.StatusNotFound, "there is no order for that"}
	case order.View != "" && lan.Ordered >= jxtabridge.MostViewOrders:
		return nil, Refusal{http.StatusConflict, "there are as many orders about views as there may be: end one (the view configured), or write [[view]]"}
	}
	s.Order(api.LAN{Adapter: site.JXTA, Event: jxtabridge.ViewOrder{ViewRule: rule}})
	var got ViewList
	err = Obeyed(ctx, func() (bool, error) {
		now, err := s.Snapshot(ctx)
		lan, _ := now.LAN.(jxtabridge.Status)
		got = ViewList{lan.View, lan.Views, lan.Ordered}
		orders := lan.Views[:lan.Ordered]
		return slices.ContainsFunc(orders, rule.Like) == (rule.View != "") && (rule.View == "" || slices.Contains(orders, rule)), err
	})
	if err == nil && s.Durable != nil {
		err = s.Durable(ctx)
	}
	return got, err
}

// viewsOf are the views between this site and each far one; nil: the gateway has no JXTA adapter.
func viewsOf(lan any) map[uint16]glance.Views {
	of, is := lan.(jxtabridge.Status)
	if !is {
		return nil
	}
	all, left := map[uint16]glance.Views{}, glance.MostEntries
	for _, id := range slices.Sorted(maps.Keys(of.Far)) {
		far := of.Far[id]
		v := glance.Views{There: string(cmp.Or(far.Told, jxtabridge.Complete)), Wants: string(far.Wants), Here: string(cmp.Or(far.View, jxtabridge.Complete))}
		v.More = max(len(far.Entries)-left, 0)
		for i, e := range far.Entries {
			if i < len(far.Entries)-v.More {
				v.Entries = append(v.Entries, glance.Entry{Name: glance.Plain(cmp.Or(e.Name, e.Peer)), By: strings.Join(e.By, ", ")})
			}
			if v.By == nil {
				v.By = map[string]int{}
			}
			for _, part := range e.By {
				v.By[part]++
			}
		}
		left -= len(v.Entries)
		all[id] = v
	}
	return all
}
