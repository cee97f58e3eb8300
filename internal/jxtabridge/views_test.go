package jxtabridge

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// viewRules are the properties of each view in the conformance test.
var viewRules = []viewRule{{Complete, true, true, 0}, {Ask, false, true, 0}, {Count, false, false, 5}, {Blind, false, false, 0}, {Site, false, false, -1},
	{Ring, true, true, 0}, {"random(2)", true, true, 0}, {"tree(3)", true, true, 0},
	{"count+ask", false, true, 5}, {"site+ask", false, true, -1}, {"ring+count+ask", true, true, 5}}

type viewRule struct {
	view   View
	joined bool // the one other site knows a peer from its lease on
	named  bool // it is told of a peer whose name somebody there looks for
	counts int  // members that it knows of, of five; -1: it knows that there are some; 0: it knows of none
}

// withholds says whether a view does not tell of all peers.
func (v View) withholds() bool { return !partsOf(v).has(Complete) }

// viewed is a pair of nodes, the first of which has this view.
func viewed(t *testing.T, view View) (a, b *node) {
	a, b = patient(t, 1), patient(t, 2)
	a.cfg.View = view
	a.restart()
	a.step(nil)
	b.step(nil)
	join(a, b)
	return a, b
}

// saidHow is each place where a view on the peers of the first node may be set: all other places have another view. The
// conformance test demands the same of each view at each place.
var saidHow = map[string]func(a, b *node, view View){
	"configuration": func(a, _ *node, view View) { a.cfg.View = view },
	"group": func(a, _ *node, view View) {
		a.cfg.View, a.cfg.Views = Blind, []ViewRule{{Group: jxta.NetGroup, View: view}}
	},
	"site": func(a, _ *node, view View) { a.cfg.Views = []ViewRule{{Site: 3, View: Blind}, {Site: 2, View: view}} },
	"bearer": func(a, _ *node, view View) {
		a.cfg.View, a.cfg.Views = Blind, []ViewRule{{Bearer: "sat", View: Count}, {Bearer: "hf", View: view}}
	},
	"order": func(a, _ *node, view View) {
		a.cfg.Views = []ViewRule{{View: Blind}}
		a.step(ViewOrder{ViewRule{Site: 2, View: view}})
	},
	"in": func(_, b *node, view View) { b.cfg.Views = []ViewRule{{In: true, Site: 1, View: view}} },
}

// viewedHow is viewed with another place where the view is set.
func viewedHow(t *testing.T, how string, view View) (a, b *node) {
	a, b = patient(t, 1), patient(t, 2)
	saidHow[how](a, b, view)
	for _, n := range []*node{a, b} {
		n.restart()
		n.step(nil)
		n.step(site.Way{Site: 3 - n.site, Bearer: "hf"})
	}
	join(a, b)
	return a, b
}

// toldPeers lists the owners of the items of the kind site.Endpoint that a site is told.
func toldPeers(items []site.Item, siteID uint16) (owners []string) {
	for _, it := range items {
		if it.Kind == site.Endpoint && !it.Gone && (!it.Home || slices.Contains(it.To, siteID)) {
			owners = append(owners, it.Owner)
		}
	}
	return owners
}

func (f *fake) lookFor(attr, value string) int {
	return f.ask(jxta.NetGroup, jxta.HandlerDiscovery, string(jxta.DiscoveryQuery{Type: jxta.TypePeer, Threshold: 5, Attr: attr, Value: value}.Append(nil)))
}

func TestEveryView(t *testing.T) {
	for _, rule := range viewRules {
		for _, how := range slices.Sorted(maps.Keys(saidHow)) {
			rule := rule
			if how == "in" {
				rule.counts = 0 // a site that may tell of all its peers has no number for others
			}
			t.Run(string(rule.view)+"/"+how, func(t *testing.T) { keepsView(t, rule, how) })
		}
	}
}

// keepsView checks that a pair of nodes, the first of which has a view, keeps to it.
func keepsView(t *testing.T, rule viewRule, how string) {
	a, b := viewedHow(t, how, rule.view)
	fb := b.peer("Berta", "cbid")
	join(a, b)
	var crowd []*fake
	for i := range 5 {
		crowd = append(crowd, a.peer(fmt.Sprint("Alfa ", i), "uuid"))
	}
	want := 0
	if rule.joined {
		want = len(crowd)
	}
	check.Equal(t, "peers told of at their leases", len(toldPeers(a.items, 2)), want)
	join(a, b)
	a.pass(recount)
	want = 0
	if rule.counts != 0 {
		want = 1
	}
	check.Equal(t, "news half a minute later", len(toldPeers(a.items, 2)), want)
	join(a, b)
	if s := b.b.far.sites[1]; s != nil || rule.counts != 0 {
		if n, some := s.counts[jxta.NetGroup]; some != (rule.counts != 0) || n != max(0, rule.counts) {
			t.Errorf("members that the far site knows of: %d, %v", n, some)
		}
	}

	// Messages for the whole group cross in every view.
	fb.propagate(jxta.NetGroup, "some.service", "p", body("all hands"))
	join(a, b)
	for _, f := range crowd {
		check.Same(t, "what the group hears", f.bodies(), []string{"all hands"})
	}
	fb.take()

	// A name, a part of one, and an id.
	look := func(attr, value string) (found int) {
		fb.lookFor(attr, value)
		for range 3 {
			b.pass(time.Second)
			join(a, b)
		}
		for _, h := range fb.take() {
			_, d := fb.answer(h, jxta.NetGroup)
			found += len(d.Found)
		}
		return found
	}
	want = 0
	if rule.named {
		want = 1
	}
	check.Equal(t, "found by name", look("Name", "Alfa 1"), want)
	check.Equal(t, "found by an id", look("PID", jxta.URN(crowd[2].id)), 1)
	check.Equal(t, "found by an id again", look("PID", jxta.URN(crowd[2].id)), 1)
	check.Equal(t, "found by an id that nobody has", look("PID", jxta.URN(peerName("uuid", 1<<30))), 0)

	// A message to an unknown peer: its sender is told to look again, and finds the route.
	fb.say(crowd[3].id, jxta.NetGroup, "PipeService", jxta.URN(pipe1), body("one"))
	qid := fb.ask(jxta.NetGroup, jxta.HandlerRouter, string(jxta.RouteQuery{Dest: crowd[3].id}.Append(nil)))
	b.pass(time.Second)
	join(a, b)
	routed := slices.ContainsFunc(fb.take(), func(h heard) bool {
		r, _ := fb.answer(h, jxta.NetGroup)
		return r.QueryID == qid && r.Handler == jxta.HandlerRouter
	})
	check.True(t, "the question for a route is answered", routed)
	a.pass(time.Second)
	fb.say(crowd[3].id, jxta.NetGroup, "PipeService", jxta.URN(pipe1), body("two"))
	join(a, b)
	a.pass(time.Second)
	heard := crowd[3].bodies()
	if len(heard) == 0 {
		t.Fatal("the peer hears nothing")
	}
	check.Equal(t, "the last that the peer hears", heard[len(heard)-1], "two")

	// A peer that leaves is gone there, too.
	for _, f := range crowd {
		f.disconnect(jxta.NetGroup)
	}
	a.pass(recount)
	join(a, b)
	check.Equal(t, "peers of the site", b.b.Status().Far[1].Peers, 0)
	check.True(t, "where the peer is", b.b.far.home(crowd[2].id) == 0)
}

// A listener's peer is reached in every view, although nobody has asked for it.
func TestListenersAreKnownInEveryView(t *testing.T) {
	for _, rule := range viewRules {
		a, b := viewed(t, rule.view)
		fa, fb := a.peer("A", "uuid"), b.peer("B", "cbid")
		fa.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, true)
		a.pass(recount)
		join(a, b)
		fb.say(fa.id, jxta.NetGroup, "PipeService", jxta.URN(pipe1), body("hej"))
		fa.take()
		join(a, b)
		check.Same(check.In(t, string(rule.view)), "what the listener hears", fa.bodies(), []string{"hej"})
		fa.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, false)
		fa.disconnect(jxta.NetGroup)
		join(a, b)
		check.True(check.In(t, string(rule.view)), "the peer is nowhere", b.b.far.home(fa.id) == 0)
	}
}

// After a switch from each view to each other, while the gateway runs or while it is down, the pictures are right.
func TestViewsAreSwitched(t *testing.T) {
	for _, from := range viewRules {
		for _, to := range viewRules {
			for _, live := range []bool{true, false} {
				in := check.In(t, string(from.view), "to", string(to.view), "live", fmt.Sprint(live))
				a, b := viewed(t, from.view)
				b.peer("Berta", "cbid")
				join(a, b)
				early := a.peer("early", "uuid")
				a.pass(recount)
				join(a, b)
				if live {
					a.step(Viewed{View: to.view})
				} else {
					a.cfg.View = to.view
					a.restart()
					a.step(nil)
					early.redial("")
				}
				b.peer("Bravo", "cbid")
				join(a, b)
				late := a.peer("late", "uuid")
				a.pass(recount)
				join(a, b)
				s := b.b.far.sites[1]
				knows := func(f *fake) bool { return s != nil && s.ids[f.id] > 0 }
				check.Equal(in, "the far site knows who came before", knows(early), from.joined || to.joined)
				check.Equal(in, "the far site knows who came after", knows(late), to.joined)
				if s != nil {
					check.Equal(in, "it knows that it is not told of all", s.viewOf("").withholds(), to.view.withholds())
					check.Equal(in, "it knows that it may ask by name", partsOf(s.viewOf("")).has(Ask), partsOf(to.view).has(Ask))
					check.Equal(in, "members that it knows of", s.counts[jxta.NetGroup] == 2, to.counts > 0)
				}
			}
		}
	}
}

// However many sites there are, each peer is told to as many as the view says, and all sites are told of about as many peers.
func TestNeighboursOfAView(t *testing.T) {
	sites := func(n int) (list []uint16) {
		for i := range n {
			list = append(list, uint16(i+2))
		}
		return list
	}
	for _, tt := range []struct {
		view        View
		least, most int
	}{{Ring, 2, 2}, {"random(1)", 1, 1}, {"random(4)", 4, 4}, {"tree(3)", 1, 3}, {"tree(1)", 1, 1}, {"tree(6)", 1, 6}, {"ring+random(2)", 2, 4}, {Blind, 0, 0}, {"count+ask", 0, 0}} {
		for _, n := range []int{0, 1, 2, 15, 63} {
			told := map[uint16]int{}
			for i := range 400 {
				list := partsOf(tt.view).neighbours(sites(n), peerName("uuid", i), jxta.NetGroup)
				if len(list) < min(tt.least, n) || len(list) > min(tt.most, n) {
					t.Fatalf("%s of %d sites: peer %d is told to %v", tt.view, n, i, list)
				}
				for _, id := range list {
					told[id]++
				}
			}
			if n == 15 && tt.least > 0 && tt.view != Ring && len(told) < n {
				t.Errorf("%s: only %d of %d sites are told of any", tt.view, len(told), n)
			}
		}
	}
	for _, bad := range []View{"", "all", "ring(3)", "random", "tree()", "tree(0)", "tree(65)", "random(3", "ask+ask", "ring+", "complete+tree"} {
		if _, err := bad.Parts(); err == nil {
			t.Errorf("%q is a view", bad)
		}
	}
}

// A new site is told of the peers that the view shows it.
func TestRingTakesInANewSite(t *testing.T) {
	a, b := viewed(t, Ring)
	for i := range 3 {
		a.peer(fmt.Sprint("Alfa ", i), "uuid")
	}
	join(a, b)
	check.Equal(t, "peers told of while nobody is there", b.b.Status().Far[1].Peers, 0)
	b.peer("Berta", "cbid")
	join(a, b)
	join(a, b)
	check.Equal(t, "peers told of then", b.b.Status().Far[1].Peers, 3)
}

// met tells a node of one peer at each of so many far sites.
func (n *node) met(sites int) {
	n.Helper()
	for i := range sites {
		id := peerName("uuid", 20_000+i)
		n.step(site.FarItem{Site: uint16(i + 2), Item: site.Item{Kind: site.Endpoint, Scope: jxta.NetGroup, Owner: id, Doc: n.b.far.peerDoc(id, jxta.NetGroup)}})
	}
}

// After a restart far sites become known one by one; a peer is told to as many as before, and to the same.
func TestRestartChoosesTheSameNeighbours(t *testing.T) {
	for _, tt := range []struct {
		view View
		want int
	}{{Ring, 2}, {"random(3)", 3}} {
		n := patient(t, 1)
		n.cfg.View = tt.view
		n.restart()
		n.step(nil)
		n.met(15)
		n.pass(time.Second)
		f := n.peer("A", "uuid")
		to := func() []uint16 { return slices.Sorted(slices.Values(n.b.outlets.peers[f.id].leases[jxta.NetGroup].to)) }
		before := to()
		check.Equal(t, "sites that are told", len(before), tt.want)
		n.restart()
		n.step(nil)
		n.met(15)
		check.Same(t, "sites that are told after the restart", to(), before)
	}
}

// numbered are the numbers among items: "2 to [3]", "gone".
func numbered(items []site.Item) (list []string) {
	for _, it := range items {
		if it.Kind == site.Endpoint && it.Sub == viewSubs[Count] {
			text := fmt.Sprintf("%d to %v", slices.Concat(it.Doc, []byte{0})[0], it.To)
			if it.Gone {
				text = "gone"
			}
			list = append(list, text)
		}
	}
	return list
}

// A number of a group that empties shortly before an order or a kill is withdrawn.
func TestNumberOfAGroupThatEmptiesBesideAnOrder(t *testing.T) {
	for _, kill := range []bool{false, true} {
		n := patient(t, 1)
		n.cfg.View, n.cfg.Views = Count, []ViewRule{{Site: 3, View: Blind}}
		n.restart()
		n.step(nil)
		n.met(2)
		f := n.peer("A", "uuid")
		n.pass(recount)
		check.Same(t, "numbers", numbered(n.takeItems()), []string{"1 to [2]"})
		f.disconnect(jxta.NetGroup)
		if n.pass(time.Second); kill {
			n.restart()
			n.step(nil)
			n.met(2)
		} else {
			n.step(ViewOrder{ViewRule{Site: 4, View: Ask}})
		}
		n.pass(recount)
		numbers := numbered(n.takeItems())
		check.True(check.Fatal(t), "a number", len(numbers) > 0)
		check.Equal(t, "the last of it", numbers[len(numbers)-1], "gone")
		check.Equal(t, "numbers that are told", len(n.b.directory.views.counted), 0)
	}
}

// A restart does not withdraw a number, although only some sites have it.
func TestRestartKeepsANumber(t *testing.T) {
	n := patient(t, 1)
	n.cfg.View, n.cfg.Views = Count, []ViewRule{{Site: 3, View: Blind}}
	n.restart()
	n.step(nil)
	n.met(2)
	n.peer("A", "uuid")
	n.pass(recount)
	n.takeItems()
	n.restart()
	n.step(nil)
	n.met(2)
	check.Same(t, "numbers at the start", numbered(n.takeItems()), []string{"1 to []", "1 to [2]"})
	n.pass(2 * recount)
	check.Equal(t, "numbers later", len(numbered(n.takeItems())), 0)
	n.step(ViewOrder{ViewRule{View: Blind}})
	check.Same(t, "numbers after an order", numbered(n.takeItems()), []string{"gone"})
}

// A site that is lost wants nothing any more: the others are told of all peers again.
func TestLostSiteWantsNothing(t *testing.T) {
	n := patient(t, 1)
	n.step(nil)
	n.met(2)
	f := n.peer("A", "uuid")
	n.step(site.FarItem{Site: 3, Item: site.Item{Kind: site.Endpoint, Sub: subWants, Scope: jxta.NetGroup, Doc: []byte(Blind)}})
	toAll := func() (list []bool) {
		for _, it := range n.takeItems() {
			if it.Owner == f.id {
				list = append(list, !it.Home)
			}
		}
		return list
	}
	check.Same(t, "whether each item of the peer is for all", toAll(), []bool{true, false})
	n.step(site.SiteLost{Site: 3})
	check.Same(t, "whether its items are for all then", toAll(), []bool{true})
}

// A site may ask for much: it gets the answers to one question, and never all peers at once.
func TestHostileQuestionsForPeers(t *testing.T) {
	a, _ := viewed(t, Ask)
	for i := range maxGiven + 20 {
		a.peer(fmt.Sprint("p", i), "uuid")
	}
	a.takeItems()
	ask := func(id string) int {
		a.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Question, Scope: jxta.NetGroup, Sub: jxta.TypePeer, ID: id, Expires: a.now.Add(1000 * time.Hour)}})
		return len(toldPeers(a.takeItems(), 2))
	}
	check.Equal(t, "told of all", ask(""), 0)
	check.Equal(t, "told by a pattern for all", ask("Name=*"), 0)
	check.Equal(t, "told by one for many", ask("Name=p*"), maxGiven)
	check.Equal(t, "told by the same", ask("Name=p*"), 0)
	b := newNode(t, 3)
	fb := b.peer("B", "cbid")
	for _, doc := range [][]byte{nil, {0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}} {
		b.step(site.FarItem{Site: 1, Item: site.Item{Kind: site.Endpoint, Sub: 2, Scope: jxta.NetGroup, Doc: doc}})
		b.step(site.FarItem{Site: 1, Item: site.Item{Kind: site.Endpoint, Sub: 200, Scope: jxta.NetGroup, Doc: doc}})
	}
	check.Equal(t, "peers of a site that says nonsense", b.b.far.sites[1].count, 0)
	b.takeItems()
	fb.lookFor("Name", "x")
	b.pass(time.Minute)
	check.Equal(t, "questions to sites that tell of all", len(b.takeItems()), 0)
}

// One peer comes and goes among many, while each of 16 far sites looks for 16 others.
func BenchmarkJoinInEveryView(b *testing.B) {
	for _, rule := range viewRules {
		for _, members := range []int{2, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", rule.view, members), func(b *testing.B) {
				n := newNode(&testing.T{}, 1)
				n.cfg.View, n.cfg.MaxPeers = rule.view, 20_000
				n.restart()
				n.step(nil)
				doc := []byte("<jxta:PA><Name>one of many</Name></jxta:PA>")
				for i := range members {
					p := newPeer(peerName("uuid", 100_000+i))
					n.b.outlets.addPeer(p)
					n.b.outlets.grant(p, jxta.NetGroup, &lease{expires: t0.Add(time.Hour), doc: doc, index: indexOf(doc)})
				}
				for i := range 16 * 16 {
					n.step(site.FarItem{Site: uint16(2 + i%16), Item: site.Item{Kind: site.Question, Scope: jxta.NetGroup, Sub: jxta.TypePeer, ID: fmt.Sprint("Name=absent ", i), Expires: t0.Add(time.Hour)}})
				}
				var said []Received
				n.record = func(r Received) { said = append(said, Received{r.Conn, slices.Clone(r.Body)}) }
				f := n.dial("newcomer", "uuid", "")
				f.connect(jxta.NetGroup)
				f.disconnect(jxta.NetGroup)
				b.ResetTimer()
				for b.Loop() {
					for _, r := range said {
						n.b.Step(n.now, r)
					}
				}
				if n.b.Stats().Grants < uint64(b.N) || len(n.b.outlets.membersOf(jxta.NetGroup)) != members {
					b.Fatal("the peer did not come and go")
				}
			})
		}
	}
}
