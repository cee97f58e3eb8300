package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

func replace(w *sim.World, n *sim.Node, r gateway.NewRules) {
	w.At(0, func() { w.Give(n, r) })
	w.Run(5 * time.Minute)
}

// TestNewRules: rules that are replaced while the gateway runs apply to the items that are there, in both directions, as after a
// start with them.
func TestNewRules(t *testing.T) {
	w := world(t, 3, "iridium-dialup", 31)
	hq, ship1, ship2 := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	hq.Site.Put(w, specItem(1))
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	home := specItem(2)
	home.Home = true
	hq.Site.Put(w, home)
	w.Run(2 * time.Minute)
	knows := func(n *sim.Node, want int, when string) {
		t.Helper()
		check.Equal(t, n.Name+" knows, "+when, len(n.Site.Far[1]), want)
	}
	knows(ship1, 2, "without rules")
	knows(ship2, 2, "without rules")

	replace(w, hq, gateway.NewRules{Filter: []filter.Rule{{Direction: site.Out, Site: 2, Type: filter.Spec, Action: filter.Local}}})
	knows(ship1, 1, "a rule of HQ keeps the services from it")
	knows(ship2, 2, "a rule of HQ keeps the services from the other")

	replace(w, hq, gateway.NewRules{Filter: []filter.Rule{{Direction: site.Out, Type: filter.Spec}}})
	knows(ship1, 3, "a rule of HQ sends all services unasked")
	knows(ship2, 3, "a rule of HQ sends all services unasked")

	replace(w, ship1, gateway.NewRules{Filter: []filter.Rule{{Direction: site.In, Type: filter.Spec, Action: filter.Deny}}})
	knows(ship1, 1, "a rule of its own lets no services in")

	replace(w, ship1, gateway.NewRules{})
	knows(ship1, 3, "its own rule is gone")

	_, before := w.Octets(ship2)
	replace(w, hq, gateway.NewRules{})
	knows(ship1, 3, "no rule any more: who has the service at home keeps it")
	other := specItem(4)
	other.Home = true
	hq.Site.Put(w, other)
	w.Run(5 * time.Minute)
	knows(ship2, 3, "no rule any more: another service stays at home")
	if _, after := w.Octets(ship2); after != before {
		t.Errorf("rules that change nothing for it cost the other ship %d octets", after-before)
	}
	check.Equal(t, "reloads in the status", hq.GW.Status(w.Now).Reloads, 3)
}

// TestNewRulesLetGo: items that wait for the rate of a rule go when the rule has gone, once.
func TestNewRulesLetGo(t *testing.T) {
	slow := filter.Rule{Line: 7, Type: filter.Spec, Rate: filter.Rate{Count: 1, Per: time.Hour}}
	w := world(t, 2, "iridium-dialup", 13, rules(slow))
	hq, ship := w.Nodes[0], w.Nodes[1]
	for i := range 10 {
		hq.Site.Put(w, specItem(i))
	}
	w.Run(2 * time.Minute)
	check.Equal(t, "known under the rate", len(ship.Site.Far[1]), 1)
	slow.Line = 9 // the same rule at another line has its rate used up
	replace(w, hq, gateway.NewRules{Filter: []filter.Rule{{Line: 3, Type: filter.Peer, Action: filter.Deny}, slow}})
	check.Equal(t, "known under the rate, moved", len(ship.Site.Far[1]), 1)
	check.Equal(t, "things that the rule took", hq.GW.Status(w.Now).Filters[1].Fits > 0, true)
	replace(w, hq, gateway.NewRules{})
	check.Equal(t, "known without the rule", len(ship.Site.Far[1]), 10)
}

// TestNewRulesForMessages: marks and rates count for messages that are accepted after them; none is lost or comes twice.
func TestNewRulesForMessages(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 14)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(time.Minute)
	sent := tracks(w, ship, []uint16{1}, 40, 200, time.Second)
	for i := range 8 {
		w.At(time.Duration(i)*5*time.Second, func() {
			w.Give(ship, gateway.NewRules{Messages: []mark.Rule{{Precedence: site.Routine, Expires: time.Hour}},
				Filter: []filter.Rule{{Line: i, Type: filter.Message, Most: 1000 + i}}})
		})
	}
	w.Run(3 * time.Minute)
	for i := range *sent { // the marks are the rules', not the peer's
		(*sent)[i].Message.Mark = site.Mark{}
	}
	for i := range hq.Site.Got {
		hq.Site.Got[i].Payload.Mark = site.Mark{}
	}
	once(t, w, hq.Site, 2, *sent)
	replace(w, ship, gateway.NewRules{Filter: []filter.Rule{{Type: filter.Message, Action: filter.Deny}}})
	ship.Site.Send(w, track(2, pipeHQ, 99, 200), 1)
	w.Run(time.Minute)
	check.Equal(t, "messages at HQ after a rule denies them", len(hq.Site.Got), 40)
}
