package gateway

import (
	"fmt"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/forecast"
	"aldis/internal/site"
)

// Messages is the gateway as it stands, for an operator who asks about messages of this site. It is for one look, in the
// goroutine of the gateway; its results share nothing with the gateway.
type Messages struct {
	forecast.Messages
	sites   []forecast.Site
	orders  *orders
	bearers []*bearer
}

// Messages is for one look.
func (g *Gateway) Messages() Messages {
	sites := g.sites(g.peers...)
	return Messages{forecast.Look(g.mail, sites, g.siteName), sites, &g.orders, g.bearers}
}

// Answer is the answer to the order with this number; false: the order was not carried out yet, or was long ago.
func (m Messages) Answer(ref uint64) (MessageAnswer, bool) { return m.orders.answer(ref) }

// Holds are the standing orders, the most urgent precedence first.
func (m Messages) Holds() []api.HoldStatus { return m.orders.status(m.sites) }

// Bill is the accounts of the last months on a bearer, by its place in the list: the newest first, at most so many.
func (m Messages) Bill(bearer, most int) []api.BillMonth {
	return m.bearers[bearer].billed.months.last(most, m.orders.name)
}

// AdvertRows describes entries of an adapter's directory.
func (g *Gateway) AdvertRows(now time.Time, entries []site.Entry) []api.AdvertRow {
	a := forecast.Adverts{Filter: g.crossing.filter, Replica: g.replica, Limit: g.crossing.limited.rule, Sites: g.sites(g.peers...), Name: g.siteName}
	return a.Rows(now, entries)
}

// siteName is the name of a site, also of one that was taken out; "" for all.
func (g *Gateway) siteName(id uint16) string {
	if p := g.known(id); p != nil {
		return p.Name
	}
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("node-%d", id)
}

// sites are these peers as they stand now.
func (g *Gateway) sites(peers ...*peer) []forecast.Site {
	list := make([]forecast.Site, len(peers))
	for i, p := range peers {
		list[i] = siteOn(g, p.best(nil))
	}
	return list
}
