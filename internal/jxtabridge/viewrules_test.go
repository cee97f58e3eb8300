package jxtabridge

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// The first rule that fits decides: orders, the latest first, then rules of the configuration, then the view for all.
func TestWhichViewHolds(t *testing.T) {
	const other = "uuid-0102"
	n := newNode(t, 1)
	n.cfg.View = Count
	n.cfg.Views = []ViewRule{{Group: other, Site: 2, View: Ring}, {Group: other, View: Ask}, {Bearer: "hf", View: Blind}, {Bearer: "fibre", View: ByBearer},
		{In: true, Site: 4, View: Site}}
	n.restart()
	n.step(nil)
	holds := func(what string, in bool, group string, siteID uint16, want View) {
		check.Equal(t, what, n.b.directory.views.rule(in, group, siteID), want)
	}
	holds("no rule fits", false, jxta.NetGroup, 2, Count)
	holds("group and site", false, other, 2, Ring)
	holds("group", false, other, 3, Ask)
	holds("a site of which nothing is known", false, other, 0, Ask)
	n.step(site.Way{Site: 3, Bearer: "hf"})
	holds("bearer", false, jxta.NetGroup, 3, Blind)
	holds("a rule before that of the bearer", false, other, 3, Ask)
	n.step(site.Way{Site: 3, Bearer: "fibre"})
	holds("another bearer, thin", false, jxta.NetGroup, 3, Ask)
	n.step(site.Way{Site: 3, Bearer: "fibre", Fast: true})
	holds("another bearer, fast", false, jxta.NetGroup, 3, Complete)
	holds("in: no rule fits", true, jxta.NetGroup, 2, Complete)
	holds("in", true, jxta.NetGroup, 4, Site)
	n.step(ViewOrder{ViewRule{Site: 3, View: "ring+ask"}})
	n.step(ViewOrder{ViewRule{Group: other, View: Complete}})
	n.step(ViewOrder{ViewRule{Group: other, View: "nonsense"}})
	holds("order", false, jxta.NetGroup, 3, "ring+ask")
	holds("later order", false, other, 3, Complete)
	n.restart()
	n.step(nil)
	holds("order after a restart", false, other, 3, Complete)
	n.step(ViewOrder{ViewRule{Group: other}})
	holds("the order has ended", false, other, 2, Ring)
	check.Equal(t, "orders in force", n.b.Status().Ordered, 1)
	for i := range 2 * MostViewOrders {
		n.step(ViewOrder{ViewRule{Site: uint16(i + 1), View: Ask}})
	}
	check.Equal(t, "orders at the most", n.b.Status().Ordered, MostViewOrders)
}

// A view for each of two groups and two sites: each site knows of each group the peers that the rules allow, and may ask where it helps.
func TestViewsOfGroupsAndSites(t *testing.T) {
	ops := jxta.IDParts{Kind: jxta.KindGroup, UUID: [16]byte{7}}.Unique()
	a, b, c := patient(t, 1), patient(t, 2), patient(t, 3)
	a.cfg.View = Ask
	a.cfg.Views = []ViewRule{{Group: ops, Site: 2, View: Complete}, {Group: ops, View: Blind}}
	nodes := []*node{a, b, c}
	meet := func() {
		items := a.takeItems()
		for _, n := range nodes[1:] {
			a.items = slices.Clone(items)
			join(a, n)
			items = append(items, a.takeItems()...)
		}
	}
	for _, n := range nodes {
		n.restart()
		n.step(nil)
	}
	for _, n := range nodes[1:] {
		a.step(site.Way{Site: n.site, Bearer: "hf"})
	}
	meet()
	f := a.peer("Alfa", "uuid")
	f.connect(ops)
	meet()
	sees := func(in string, n *node, group string, want bool) {
		t.Helper()
		_, is := n.b.far.sites[1].peers[group][f.id]
		check.Equal(t, fmt.Sprintf("%s: site %d knows the peer in %s", in, n.site, group), is, want)
	}
	says := func(in string, n *node, group string, want View) {
		t.Helper()
		check.Equal(t, fmt.Sprintf("%s: what site %d is told of %s", in, n.site, group), n.b.far.sites[1].viewOf(group), want)
	}
	for _, n := range nodes[1:] {
		sees("at the start", n, jxta.NetGroup, false)
		sees("at the start", n, ops, n.site == 2)
		says("at the start", n, jxta.NetGroup, Ask)
	}
	says("at the start", b, ops, Complete)
	says("at the start", c, ops, Blind)

	// While the gateway runs, and back.
	a.step(ViewOrder{ViewRule{Group: ops, View: Ask}})
	meet()
	says("an order", b, ops, Ask)
	says("an order", c, ops, Ask)
	a.step(ViewOrder{ViewRule{Site: 3, View: Complete}})
	meet()
	says("an order for a site", c, ops, Complete)
	says("an order for a site", c, jxta.NetGroup, Complete)
	says("an order for a site", b, jxta.NetGroup, Ask)
	sees("an order for a site", c, jxta.NetGroup, true)
	sees("an order for a site", b, jxta.NetGroup, false)
	for _, r := range []ViewRule{{Site: 3}, {Group: ops}} {
		a.step(ViewOrder{r})
	}
	meet()
	says("the orders have ended", b, ops, Complete)
	says("the orders have ended", c, ops, Blind)
	says("the orders have ended", c, jxta.NetGroup, Ask)
}

// Over a thin bearer a site asks, over a fast one it is told; when the bearer changes, it is told at once.
func TestViewFollowsTheBearer(t *testing.T) {
	a, b := patient(t, 1), patient(t, 2)
	a.cfg.View = ByBearer
	a.restart()
	a.step(nil)
	b.step(nil)
	knows := func(f *fake) bool { return b.b.far.sites[1] != nil && b.b.far.sites[1].ids[f.id] > 0 }
	b.peer("Berta", "cbid")
	join(a, b)
	first := a.peer("first", "uuid")
	join(a, b)
	check.Equal(t, "a peer is known before the bearer is", knows(first), false)
	a.step(site.Way{Site: 2, Bearer: "fibre", Fast: true})
	join(a, b)
	check.Equal(t, "over the fast one", knows(first), true)
	check.Equal(t, "what it is told there", b.b.far.sites[1].viewOf(""), Complete)
	a.step(site.Way{Site: 2, Bearer: "hf"})
	second := a.peer("second", "uuid")
	join(a, b)
	check.Equal(t, "over the thin one", knows(second), false)
	check.Equal(t, "what it is told there", b.b.far.sites[1].viewOf(""), Ask)
}

// Entries of a union say by which part they are here.
func TestEntriesSayWhy(t *testing.T) {
	a, b := viewed(t, "ring+ask")
	b.peer("Berta", "cbid")
	join(a, b)
	a.peer("Alfa", "uuid")
	join(a, b)
	by := func(want ...string) {
		t.Helper()
		list := b.b.Status().Far[1].Entries
		if len(list) != 1 {
			t.Fatalf("%d entries, want one", len(list))
		}
		check.Same(t, "why the entry is here", list[0].By, want)
	}
	by("ring")
	a.step(Viewed{View: Ask})
	join(a, b)
	by("before") // nobody has asked for it
	check.Equal(t, "who is told of the peer", fmt.Sprint(a.b.Status().Peers[0].Told), "[2]")

	a, b = viewed(t, "count+ask")
	fb := b.peer("Berta", "cbid")
	join(a, b)
	f := a.peer("Alfa", "uuid")
	join(a, b)
	fb.lookFor("Name", "Alf*")
	b.pass(time.Second)
	join(a, b)
	by("ask")
	fb.lookFor("PID", jxta.URN(f.id))
	b.pass(time.Second)
	join(a, b)
	by("ask")
}

// A far site sends malformed views: none is taken, and it gets no more than the view here gives.
func TestHostileViews(t *testing.T) {
	a, _ := viewed(t, Ask)
	a.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Endpoint, Sub: subWants, Scope: jxta.NetGroup, Doc: []byte("complete")}})
	a.peer("Alfa", "uuid")
	check.Equal(t, "told of a peer who wants all", len(toldPeers(a.takeItems(), 2)), 0)
	for _, doc := range []string{"", "all", "bearer", "complete 1=", "=", " ", "ask 1=nonsense", "tree(65)"} {
		for _, sub := range []uint8{1, 3, 5, 6, 17, 19, 21, 22, 23, 255} {
			for _, gone := range []bool{false, true} {
				a.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Endpoint, Sub: sub, Scope: "uuid-0102", Doc: []byte(doc), Gone: gone}})
			}
		}
	}
	check.Equal(t, "what is left of it", len(a.b.far.sites[2].says)+len(a.b.far.sites[2].wants), 0)
	for i := range 10_000 {
		a.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Endpoint, Sub: 17, Scope: fmt.Sprint("g", i)}})
	}
	if n := len(a.b.far.sites[2].says); n > maxSaid {
		t.Errorf("%d groups of which a site says something, want at most %d", n, maxSaid)
	}
}
