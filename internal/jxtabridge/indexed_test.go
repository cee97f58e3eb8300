package jxtabridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

func pipeNamed(name, pipe string) string {
	return fmt.Sprintf("<jxta:PipeAdvertisement><Id>%s</Id><Type>JxtaUnicast</Type><Name>%s</Name></jxta:PipeAdvertisement>", jxta.URN(pipe), name)
}

// indexes pushes an index of names to the rendezvous, like 2.2 for advertisements in its own cache.
func (f *fake) indexes(names ...string) {
	f.n.Helper()
	s := jxta.SRDI{Peer: f.id, Key: "Adv"}
	for _, name := range names {
		s.Entries = append(s.Entries, jxta.SRDIEntry{Key: "Name", Value: name, Life: time.Hour})
	}
	r := jxta.ResolverSRDI{Handler: jxta.HandlerDiscovery, Payload: string(s.Append(nil))}
	f.propagate(jxta.NetGroup, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"Srdi", xmlElement("jxta-NetGroupSrdi", r.Append(nil)))
}

// asked are the discovery questions that the peer has heard since the last time.
func (f *fake) asked() (list []jxta.DiscoveryQuery) {
	f.n.Helper()
	for _, h := range f.take() {
		e := h.find("jxta-NetGroupORes")
		if e == nil {
			continue
		}
		rq, err := jxta.ParseResolverQuery(e)
		if err != nil {
			f.n.Fatal(err)
		}
		q, err := jxta.ParseDiscoveryQuery([]byte(rq.Query))
		if err != nil {
			f.n.Fatal(err)
		}
		list = append(list, q)
	}
	return list
}

// answers gives the gateway documents in answer to a question of its own.
func (f *fake) answers(docs ...string) {
	f.n.Helper()
	d := jxta.DiscoveryResponse{Type: jxta.TypeAdv}
	for _, doc := range docs {
		d.Found = append(d.Found, jxta.Found{Life: time.Hour, Doc: doc})
	}
	r := jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, QueryID: 7, Response: string(d.Append(nil))}
	f.say(f.n.cfg.Identity.Peer, jxta.NetGroup, jxta.URN(jxta.ClassResolver), "jxta-NetGroupIRes", xmlElement("jxta-NetGroupIRes", r.Append(nil)))
}

// wants gives a gateway a question of peers of a far site for a name.
func (n *node) wants(from uint16, name string) {
	n.Helper()
	it := site.Item{Kind: site.Question, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, Expires: n.now.Add(time.Hour)}
	if name != "" {
		it.ID = "Name=" + name
	}
	n.step(site.FarItem{Site: from, Item: it})
}

// Like the shell's talk: the user's pipe is published at home and only indexed, and looked for by name and by pattern.
func TestIndexedPipeIsFoundAcross(t *testing.T) {
	for _, pattern := range []string{"JxtaTalkUserName.bob", "JxtaTalkUserName.*"} {
		a, b := newNode(t, 1), newNode(t, 2)
		bob, alice := a.peer("bob", "uuid"), b.peer("alice", "uuid")
		join(a, b)
		bob.indexes("JXTATALKUSERNAME.BOB")
		if got := bob.asked(); len(got) != 1 || got[0].Threshold != maxAnswers {
			t.Fatalf("%s: the gateway asked %+v for what it does not know", pattern, got)
		}
		bob.answers(pipeNamed("JxtaTalkUserName.bob", pipe1))
		bob.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, true)
		if got := crossed(a.takeItems(), 2); got != nil {
			t.Errorf("%s: nobody has asked, and yet it goes: %v", pattern, got)
		}
		alice.take()
		alice.discover(jxta.NetGroup, pattern)
		b.pass(5 * time.Second)
		join(a, b)
		if _, d := alice.answer(alice.one(), jxta.NetGroup); len(d.Found) != 1 || !strings.Contains(d.Found[0].Doc, pipeNamed("JxtaTalkUserName.bob", pipe1)) {
			t.Errorf("%s: alice is answered %+v", pattern, d.Found)
		}
		bob.indexes("JXTATALKUSERNAME.BOB")
		for _, q := range bob.asked() {
			if q.Attr == "" {
				t.Errorf("%s: asked again for what is known: %+v", pattern, q)
			}
		}
	}
}

// JXSE 2.7 pushes no index: peers that may have an advertisement are asked when a far site looks for it, and again while none has it.
func TestLocalPeersAreAskedForAFarSite(t *testing.T) {
	n := newNode(t, 1)
	f, g := n.peer("A", "cbid"), n.peer("B", "cbid")
	n.takeItems()
	f.take()
	g.take()
	n.wants(2, "hidden")
	for _, p := range []*fake{f, g} {
		want := jxta.DiscoveryQuery{Type: jxta.TypeAdv, Threshold: maxAnswers, Attr: "Name", Value: "hidden"}
		if got := p.asked(); len(got) != 1 || got[0].Attr != want.Attr || got[0].Value != want.Value || got[0].Type != want.Type {
			t.Errorf("%s is asked %+v", p.name, got)
		}
	}
	n.pass(10 * time.Minute)
	if got := f.asked(); len(got) != 5 { // after 15, 45, 105, 225 and 465 s
		t.Errorf("asked %d times more in ten minutes", len(got))
	}
	f.answers(pipeNamed("hidden", pipe1))
	items := n.takeItems()
	if got := crossed(items, 2); !slices.Equal(got, []string{"hidden"}) {
		t.Errorf("to who asked: %v", got)
	}
	if got := crossed(items, 3); got != nil {
		t.Errorf("to who did not ask: %v", got)
	}
	n.pass(40 * time.Minute)
	if got := f.asked(); len(got) != 0 {
		t.Errorf("asked %d times more for what is known", len(got))
	}
}

// An advertisement that is only indexed costs the link no more than a published one.
func TestIndexedPipeCostsNothingUnasked(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	f.answers(pipeNamed("track", pipe1), specOf("track", pipe1), pipeNamed("alone", pipe2))
	n.wants(2, "")
	n.wants(3, "*")
	n.wants(4, "track")
	n.wants(5, "al*")
	items := n.takeItems()
	for siteID, want := range map[uint16][]string{2: {"track"}, 3: {"track"}, 4: {"track"}, 5: {"alone"}} {
		if got := slices.Compact(crossed(items, siteID)); !slices.Equal(got, want) {
			t.Errorf("site %d has %v, want %v", siteID, got, want)
		}
	}
	for _, it := range items {
		if it.Kind == site.Document && string(it.Doc) == pipeNamed("track", pipe1) {
			t.Errorf("the pipe beside its specification: %s", it.Doc)
		}
	}
	f.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, true)
	if got := crossed(n.takeItems(), 2); got != nil {
		t.Errorf("open, and yet nobody asked: %v", got)
	}
	n.restart()
	n.step(nil)
	if got := crossed(n.takeItems(), 2); got != nil {
		t.Errorf("after a restart: %v", got)
	}
	n.wants(6, "alone")
	if got := crossed(n.takeItems(), 6); !slices.Equal(got, []string{"alone"}) {
		t.Errorf("after a restart, asked: %v", got)
	}
	f.redial("")
	f.publish(jxta.NetGroup, pipeNamed("alone", pipe2), time.Hour)
	if got := crossed(n.takeItems(), 2); !slices.Equal(got, []string{"alone"}) {
		t.Errorf("open, and published now: %v", got)
	}
}

// Far questions make a bounded number of messages here, and do not hold up advertisements that are handed out.
func TestHostileQuestionsForLocalPeers(t *testing.T) {
	n := newNode(t, 1)
	for i := range 20 {
		n.peer(fmt.Sprint("p", i), "uuid")
	}
	for i := range 1000 {
		n.wants(2, fmt.Sprintf("nothing%d", i))
		if got := len(n.b.directory.pushes.queue); got > maxHere {
			t.Fatalf("%d wait", got)
		}
	}
	n.pass(time.Minute)
	if s := n.b.Stats(); s.AskedHere > 3*256 || s.Unpushed != 0 || len(n.b.directory.pushes.queue) != 0 {
		t.Errorf("%d questions handed out, %d given up, %d wait", s.AskedHere, s.Unpushed, len(n.b.directory.pushes.queue))
	}
}

// Names and types that are too long to find anything by are not kept.
func TestLongNameInAnIndex(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "uuid")
	for _, name := range []string{"x", "y", "z"} {
		f.indexes(strings.Repeat(name, 300<<10))
	}
	check.Equal(t, "keys that are kept, each of a message", n.b.multicast.seen.Len(), 3)
	check.Equal(t, "questions to the peer", len(f.asked()), 0)
	f.ask(jxta.NetGroup, jxta.HandlerPipe, string(jxta.PipeResolver{Pipe: pipe1, Type: strings.Repeat("x", 300<<10)}.Append(nil)))
	check.Equal(t, "questions that wait", n.b.Status().Questions, 0)
}
