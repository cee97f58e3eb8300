package jxtabridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// specOf is a module specification that names a pipe.
func specOf(name, pipe string) string {
	return fmt.Sprintf(`<jxta:MSA><MSID>urn:jxta:uuid-%032X%032X06</MSID><Name>%s</Name><jxta:PipeAdvertisement><Id>%s</Id><Type>JxtaPropagate</Type><Name>%[3]s</Name></jxta:PipeAdvertisement></jxta:MSA>`,
		7, len(name), name, jxta.URN(pipe))
}

// crossed are the advertisements and questions among items that go to a site.
func crossed(items []site.Item, siteID uint16) (names []string) {
	for _, it := range items {
		if it.Gone || it.Home && !slices.Contains(it.To, siteID) {
			continue
		}
		switch it.Kind {
		case site.Question:
			names = append(names, "?"+it.ID)
		case site.Document:
			_, rest, _ := strings.Cut(string(it.Doc), "<Name>")
			name, _, _ := strings.Cut(rest, "<")
			names = append(names, name)
		}
	}
	return names
}

func TestWhatNobodyUsesStaysHome(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	n.takeItems()
	f.publish(jxta.NetGroup, specOf("track", pipe1), time.Hour)
	f.publish(jxta.NetGroup, "<x:Chart><Name>coast</Name></x:Chart>", time.Hour)
	f.publish(jxta.NetGroup, "<jxta:PGA><GID>"+jxta.URN(ops)+"</GID><Name>ops</Name></jxta:PGA>", time.Hour)
	if got := crossed(n.takeItems(), 2); got != nil {
		t.Errorf("nobody uses it, and yet it goes: %v", got)
	}
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	if got := crossed(n.takeItems(), 2); !slices.Equal(got, []string{"track"}) {
		t.Errorf("the pipe is open: %v", got)
	}
	f.connect(ops)
	if got := crossed(n.takeItems(), 2); !slices.Equal(got, []string{"ops"}) {
		t.Errorf("the group has a member: %v", got)
	}
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, false)
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	if got := crossed(n.takeItems(), 2); got != nil {
		t.Errorf("told twice: %v", got)
	}
	// A restart sends again the advertisements in use; a peer that comes later asks for the rest.
	n.restart()
	n.step(nil)
	if got := crossed(n.takeItems(), 2); !slices.Equal(got, []string{"ops", "track"}) {
		t.Errorf("after a restart: %v", got)
	}
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Question, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, ID: "Name=co*", Expires: n.now.Add(time.Hour)}})
	items := n.takeItems()
	if got := crossed(items, 2); !slices.Equal(got, []string{"coast"}) {
		t.Errorf("asked for: %v", got)
	}
	if got := crossed(items, 3); got != nil {
		t.Errorf("another site did not ask: %v", got)
	}
	f.redial("")
	f.publish(jxta.NetGroup, "<x:Chart><Name>cove</Name></x:Chart>", time.Hour)
	if got := crossed(n.takeItems(), 2); !slices.Equal(got, []string{"cove"}) {
		t.Errorf("published after it was asked for: %v", got)
	}
	n.now = n.now.Add(61 * time.Minute)
	f.publish(jxta.NetGroup, "<x:Chart><Name>coat</Name></x:Chart>", time.Hour)
	if got := crossed(n.takeItems(), 2); got != nil {
		t.Errorf("published when nobody asks any more: %v", got)
	}
}

func TestAsking(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.MaxAsks = 16 // two of one peer
	n.restart()
	f := n.peer("A", "cbid")
	n.takeItems()
	asked := func(after time.Duration) []string {
		t.Helper()
		n.pass(after)
		return crossed(n.takeItems(), 2)
	}
	f.discover(jxta.NetGroup, "track")
	if got := asked(3 * time.Second); got != nil {
		t.Errorf("an answer may come by itself: %v", got)
	}
	f.discover(jxta.NetGroup, "track")
	if got := asked(2 * time.Second); !slices.Equal(got, []string{"?Name=track"}) {
		t.Errorf("asked %v", got)
	}
	for range 5 {
		f.discover(jxta.NetGroup, "track")
		if got := asked(5 * time.Minute); got != nil {
			t.Errorf("asked again: %v", got)
		}
	}
	n.pass(10 * time.Minute)
	f.discover(jxta.NetGroup, "track")
	if got := asked(5 * time.Second); len(got) != 1 {
		t.Errorf("still looked for after half an hour: %v", got)
	}
	f.discover(jxta.NetGroup, "a*")
	f.discover(jxta.NetGroup, "b*")
	f.discover(jxta.NetGroup, "c*")
	if got := asked(time.Minute); !slices.Equal(got, []string{"?Name=a*"}) || n.b.Stats().Refused["asks"] != 2 {
		t.Errorf("one peer may have two: %v, %v", got, n.b.Stats().Refused)
	}
	f.discover(jxta.NetGroup, strings.Repeat("x", 300)+"*")
	if got := asked(time.Minute); got != nil || n.b.Stats().Refused["ask"] != 1 {
		t.Errorf("a long one: %v", got)
	}
}

// Far sites are not asked for advertisements that are known here or come by themselves.
func TestNotAsked(t *testing.T) {
	n := newNode(t, 1)
	f, g := n.peer("A", "cbid"), n.peer("B", "cbid")
	g.publish(jxta.NetGroup, "<x:Chart><Name>coast</Name></x:Chart>", time.Hour)
	n.takeItems()
	f.discover(jxta.NetGroup, "coast")
	f.discover(jxta.NetGroup, "track")
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Document, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, ID: "uuid-0A06", Doc: []byte(specOf("track", pipe1)), Expires: n.now.Add(time.Hour)}})
	n.pass(time.Minute)
	if got := crossed(n.takeItems(), 2); got != nil {
		t.Errorf("asked %v", got)
	}
}

// The memory and the answers that a far site can cause here are bounded.
func TestHostileAsks(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	for i := range 300 {
		f.publish(jxta.NetGroup, fmt.Sprintf("<x:Chart><Name>c%d</Name></x:Chart>", i), time.Hour)
	}
	n.takeItems()
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Question, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, Expires: n.now.Add(1000 * time.Hour)}})
	if got := crossed(n.takeItems(), 2); len(got) != maxGiven {
		t.Errorf("%d given for one question, want %d", len(got), maxGiven)
	}
	for i := range 1000 {
		n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Question, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, ID: fmt.Sprintf("a=%d", i)}})
	}
	if got := len(n.b.far.sites[2].asks); got != 256 || n.b.Stats().Refused["far_asks"] != 745 {
		t.Errorf("%d questions kept, %v", got, n.b.Stats().Refused)
	}
	n.pass(2 * time.Hour)
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Question, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, ID: "late=1", Expires: n.now.Add(time.Hour)}})
	if got := len(n.b.far.sites[2].asks); got != 1 {
		t.Errorf("%d questions kept when their time is over", got)
	}
}

func TestDenied(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.Filter = filter.New([]filter.Rule{{Root: "x:Chart", Action: filter.Deny}, {Type: filter.Message, Pipe: pipe1, Action: filter.Deny},
		{Type: filter.Message, Pipe: pipe2, Action: filter.Local}})
	n.restart()
	f, g := n.peer("A", "cbid"), n.peer("B", "cbid")
	for _, p := range []string{pipe1, pipe2} {
		g.pipe(jxta.NetGroup, p, jxta.PipeTypePropagate, true)
	}
	n.takeItems()
	g.take()
	f.publish(jxta.NetGroup, "<x:Chart><Name>coast</Name></x:Chart>", time.Hour)
	f.wire(jxta.NetGroup, pipe1, "m-1", body("denied"))
	g.silence("denied")
	f.wire(jxta.NetGroup, pipe2, "m-2", body("here"))
	if h := g.one(); string(h.find("trk:body")) != "here" {
		t.Errorf("served here: %s", h.body)
	}
	if it := n.takeItems(); len(it) != 0 || n.b.Status().Adverts != 0 || n.b.Stats().Refused["filter"] != 2 {
		t.Errorf("%+v, %v", it, n.b.Stats().Refused)
	}
}

// A peer that comes costs little beside many other peers, and many questions for peers that it does not answer.
func TestPeerComesBesideManyQuestions(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "uuid")
	come := func(i int) {
		id := peerName("uuid", 10_000+i)
		doc := jxta.AppendXML(nil, jxta.PeerAdvertisement{Peer: id, Group: jxta.NetGroup, Name: fmt.Sprint("peer ", i)}.Node())
		n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Endpoint, Scope: jxta.NetGroup, Owner: id, Doc: doc}})
	}
	for i := range 500 {
		come(i)
	}
	for i := range 256 {
		f.lookFor("Name", fmt.Sprint("peer ", 1000+i))
	}
	check.Equal(t, "questions that wait", n.b.Status().Questions, 256)
	i := 500
	if allocs := testing.AllocsPerRun(5, func() { come(i); i++ }); allocs > 1000 {
		t.Errorf("%.0f allocations for a peer that comes, want at most 1,000", allocs)
	}
	f.take()
	come(1007)
	_, d := f.answer(f.one(), jxta.NetGroup)
	check.Equal(t, "peers in the answer", len(d.Found), 1)
	check.Equal(t, "questions that wait", n.b.Status().Questions, 255)
}

// However many ids a host invents, half of the questions to far sites are for others.
func TestInventedIDsLeaveHalf(t *testing.T) {
	n := newNode(t, 1)
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Endpoint, Scope: jxta.NetGroup, Owner: peerName("uuid", 30_000), Doc: []byte("<jxta:PA/>")}})
	for i := range 8 {
		f := &fake{n: n, name: "fake", id: peerName("uuid", 31_000+i), addr: fmt.Sprintf("10.66.1.1:%d", 9000+i)}
		f.redial("")
		f.connect(jxta.NetGroup)
		for k := range 32 {
			f.discover(jxta.NetGroup, fmt.Sprintf("fake %d %d", i, k))
		}
	}
	n.pass(n.b.cfg.AskAfter)
	check.Equal(t, "questions of one host to far sites", len(crossed(n.takeItems(), 2)), n.b.cfg.MaxAsks/2)
	f := n.peer("honest", "uuid")
	f.discover(jxta.NetGroup, "track")
	n.pass(n.b.cfg.AskAfter)
	check.Same(t, "what another host asks", crossed(n.takeItems(), 2), []string{"?Name=track"})
}

// Questions of one host that wait push out each other, not those of others.
func TestInventedIDsPushOutNobody(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.MaxQuestions = 64
	n.b = New(n.cfg, nil)
	honest := n.peer("honest", "uuid")
	honest.discover(jxta.NetGroup, "track")
	for i := range 16 {
		f := &fake{n: n, name: "fake", id: peerName("uuid", 31_000+i), addr: fmt.Sprintf("10.66.1.1:%d", 9000+i)}
		f.redial("")
		f.connect(jxta.NetGroup)
		for k := range 8 {
			f.discover(jxta.NetGroup, fmt.Sprintf("fake %d %d", i, k))
		}
	}
	check.Equal(t, "questions that wait", n.b.Status().Questions, 33)
	check.Equal(t, "of these, honest ones", n.b.directory.questions.byPeer[honest.id].Len(), 1)
}
