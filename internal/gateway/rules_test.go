package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

func specItem(i int) site.Item {
	doc := fmt.Sprintf(`<jxta:MSA><MSID>urn:jxta:uuid-%032X%032X06</MSID><Name>JXTASPEC:track service %d</Name><Crtr>aldis</Crtr>`+
		`<SURI>urn:track</SURI><Vers>1.0</Vers><jxta:PipeAdvertisement><Id>urn:jxta:uuid-59616261646162614E50472050325033%032X04</Id>`+
		`<Type>JxtaPropagate</Type><Name>track %d</Name></jxta:PipeAdvertisement></jxta:MSA>`, i*7919+1, i*104729+3, i, i*15485863+5, i)
	return site.Item{Kind: site.Document, Scope: "jxta-NetGroup", Owner: peerID(1), ID: fmt.Sprintf("uuid-%032X%032X06", i*7919+1, i*104729+3),
		Sub: 2, Doc: []byte(doc), Expires: sim.Epoch.Add(2 * time.Hour)}
}

func rules(r ...filter.Rule) func(*sim.Config) {
	return func(c *sim.Config) {
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			if n.ID == 1 {
				g.Filter = filter.New(r)
			}
		}
	}
}

// The cost of telling a ship of two hundred services that nobody uses, and of one of them that somebody asks for.
func TestWhatNobodyUsesCostsNothing(t *testing.T) {
	octets := map[string]int64{}
	for _, name := range []string{"all", "home", "asked"} {
		w := world(t, 2, "iridium-dialup", 11)
		hq, ship := w.Nodes[0], w.Nodes[1]
		for i := range 200 {
			it := specItem(i)
			it.Home = name != "all"
			hq.Site.Put(w, it)
		}
		w.Run(time.Minute)
		want := map[string]int{"all": 200, "asked": 1}[name]
		if name == "asked" {
			ship.Site.Put(w, site.Item{Kind: site.Question, Scope: "jxta-NetGroup", ID: "Name=JXTASPEC:track service 7", Sub: 2, Expires: sim.Epoch.Add(time.Hour)})
			w.Run(30 * time.Second)
			if len(hq.Site.Far[2]) != 1 {
				t.Fatal("the question has not arrived")
			}
			it := specItem(7)
			it.Home, it.To = true, []uint16{2}
			hq.Site.Put(w, it)
		}
		w.Run(9 * time.Minute)
		if got := len(ship.Site.Far[1]); got != want {
			t.Errorf("%s: the ship knows %d, want %d", name, got, want)
		}
		up, down := w.Octets(ship)
		octets[name] = up + down
	}
	t.Logf("link octets in 10 min, 200 services: told unasked %d; nobody asks %d; one is asked for %d", octets["all"], octets["home"], octets["asked"])
	if octets["home"]*20 > octets["all"] || octets["asked"]-octets["home"] > 600 {
		t.Errorf("%v", octets)
	}
}

func TestRuleKeepsItemsFromOneSite(t *testing.T) {
	w := world(t, 3, "iridium-dialup", 12, rules(filter.Rule{Direction: site.Out, Site: 2, Type: filter.Spec, Action: filter.Local}))
	hq := w.Nodes[0]
	hq.Site.Put(w, specItem(1))
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(2 * time.Minute)
	if a, b := len(w.Nodes[1].Site.Far[1]), len(w.Nodes[2].Site.Far[1]); a != 1 || b != 2 {
		t.Errorf("the sites know %d and %d items, want 1 and 2", a, b)
	}
	// Another rule at the next start takes back items that have crossed.
	w.Reconfigure(hq, func(c *gateway.Config) {
		c.Filter = filter.New([]filter.Rule{{Direction: site.Out, Site: 3, Type: filter.Spec, Action: filter.Deny}})
	})
	w.Kill(hq, time.Second)
	w.Run(5 * time.Minute)
	if a, b := len(w.Nodes[1].Site.Far[1]), len(w.Nodes[2].Site.Far[1]); a != 2 || b != 1 {
		t.Errorf("after another rule the sites know %d and %d items, want 2 and 1\n%s", a, b, tail(w.Notes))
	}
}

func TestRateOfARuleHoldsItems(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 13, rules(filter.Rule{Line: 7, Type: filter.Spec, Rate: filter.Rate{Count: 6, Per: time.Minute}}))
	hq, ship := w.Nodes[0], w.Nodes[1]
	for i := range 30 {
		hq.Site.Put(w, specItem(i))
	}
	w.Run(90 * time.Second)
	if got := len(ship.Site.Far[1]); got < 10 || got > 16 {
		t.Errorf("%d after a minute and a half, want six and then one each ten seconds", got)
	}
	changed := specItem(29) // it waits: the newer version takes its place
	changed.Doc = append([]byte(nil), changed.Doc...)
	changed.Doc[len(changed.Doc)/2] = 'X'
	hq.Site.Put(w, changed)
	w.Kill(hq, time.Second)
	w.Run(30 * time.Second)
	if got := len(ship.Site.Far[1]); got > 25 {
		t.Errorf("%d soon after a restart: the rate was forgotten", got)
	}
	w.Run(5 * time.Minute)
	if got := ship.Site.Far[1]; len(got) != 30 || string(got[changed.Key()].Doc) != string(changed.Doc) {
		t.Errorf("%d of 30 at last", len(got))
	}
	if f := hq.GW.Status(w.Now).Filters; len(f) != 1 || f[0].Waited == 0 || f[0].Line != 7 {
		t.Errorf("%+v", f)
	}
}

func TestRulesForMessages(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 14, rules(
		filter.Rule{Type: filter.Message, Pipe: pipeShip, Action: filter.Local},
		filter.Rule{Direction: site.In, Type: filter.Message, Least: 300, Action: filter.Deny},
		filter.Rule{Direction: site.Out, Type: filter.Message, Rate: filter.Rate{Count: 5, Per: time.Minute}},
	))
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(10 * time.Second)
	for i := range 20 {
		hq.Site.Send(w, track(1, pipeHQ, i, 100), 2)
	}
	hq.Site.Send(w, track(1, pipeShip, 99, 100), 2)
	for i, octets := range []int{299, 300, 301} {
		ship.Site.Send(w, track(2, pipeHQ, i, octets), 1)
	}
	w.Run(2 * time.Minute)
	if len(ship.Site.Got) != 5 || len(hq.Site.Got) != 1 {
		t.Errorf("%d and %d messages arrived, want 5 and 1", len(ship.Site.Got), len(hq.Site.Got))
	}
	s := hq.GW.Status(w.Now)
	p := s.Peers[0]
	check.Equal(t, "p.Accepted", p.Accepted, 5)
	check.Equal(t, "p.Delivered", p.Delivered, 5)
	check.Equal(t, "p.Refused", p.Refused, 16)
	check.Equal(t, `s.Dropped["filter"]`, s.Dropped["filter"], 2)
	f := s.Filters
	check.Equal(t, "f[0].Fits", f[0].Fits, 1)
	check.Equal(t, "f[1].Fits", f[1].Fits, 2)
	check.Equal(t, "f[2].Fits", f[2].Fits, 20)
	check.Equal(t, "f[2].Dropped", f[2].Dropped, 15)
}
