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

func TestPropagatePipe(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	fa, fc := a.peer("A", "cbid"), a.peer("C", "uuid")
	fb, fd := b.peer("B", "cbid"), b.peer("D", "uuid")
	fb.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	join(a, b)
	fa.wire(jxta.NetGroup, pipe1, "m-1", body("one"), jxta.Element{Namespace: "jxta", Name: "RdvIncarnjxta-NetGroup", Data: []byte("x")})
	fa.silence("no echo")
	h := fc.one()
	w, err := jxta.ParseWireHeader(h.find(elWire))
	here, there := check.In(t, "the copy on this LAN"), check.In(t, "the copy on the far LAN")
	check.NoError(check.Fatal(here), err)
	check.Equal(here, "w.MsgID", w.MsgID, "m-1")
	check.Equal(here, "w.Src", w.Src, fa.id)
	check.Equal(here, "w.Pipe", w.Pipe, pipe1)
	p, err := jxta.ParsePropagate(h.find("RendezVousPropagatejxta-NetGroup"))
	check.NoError(check.Fatal(here), err)
	check.Equal(here, "p.TTL", p.TTL, 1)
	check.Same(here, "p.Path", p.Path, []string{fa.id, a.cfg.Identity.Peer})
	check.Equal(here, "p.Service", p.Service, svcWire)
	check.True(here, "no RdvIncarnjxta-NetGroup", h.find("RdvIncarnjxta-NetGroup") == nil)
	check.Equal(here, "h.erm.Dest.Service", h.erm.Dest.Service, svcPropagate)
	check.Equal(here, "h.erm.Dest.Param", h.erm.Dest.Param, jxta.NetGroup)
	check.Equal(here, "trk:body", string(h.find("trk:body")), "one")
	c := a.takeCarry()
	if len(c) != 1 || !slices.Equal(c[0].Sites, []uint16{2}) {
		t.Fatalf("carry %+v", c)
	}
	pl := c[0].Message
	check.True(t, "pl.Published", pl.Published)
	check.Equal(t, "pl.Scope", pl.Scope, jxta.NetGroup)
	check.Equal(t, "pl.Topic", pl.Topic, pipe1)
	check.Equal(t, "pl.From", pl.From, fa.id)
	check.Equal(t, "pl.ID", pl.ID, "m-1")
	check.Equal(check.Fatal(t), "len(pl.Parts)", len(pl.Parts), 1)
	check.Equal(t, "pl.Parts[0].Name", pl.Parts[0].Name, "body")
	pl.ID = "5e0c1b1e-0000-4000-8000-000000000001"
	b.step(site.FarMessage{Site: 1, Token: 41, Message: pl})
	h = fb.one()
	w, err = jxta.ParseWireHeader(h.find(elWire))
	check.NoError(check.Fatal(there), err)
	check.Equal(there, "w.MsgID", w.MsgID, pl.ID)
	check.Equal(there, "w.Src", w.Src, fa.id)
	check.Equal(there, "w.Pipe", w.Pipe, pipe1)
	check.True(there, "w.TTL >= 1", w.TTL >= 1, w.TTL)
	if p, err = jxta.ParsePropagate(h.find("RendezVousPropagatejxta-NetGroup")); err != nil || p.TTL != 1 || !slices.Equal(p.Path, []string{b.cfg.Identity.Peer}) {
		t.Errorf("propagation header there %+v, %v", p, err)
	}
	fd.silence("does not listen")
	if !slices.Equal(b.done, []uint64{41}) {
		t.Errorf("done %v", b.done)
	}
	// The same message again, by itself or inside another envelope, is dropped.
	fa.wire(jxta.NetGroup, pipe1, "m-1", body("one"))
	fc.silence("seen before")
	if len(a.takeCarry())+len(b.takeCarry()) != 0 {
		t.Error("a repeat crossed the link")
	}
}

func TestHeldForAListenerThatIsComing(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	up := func(siteID uint16, pipe string) {
		n.step(site.FarItem{Site: siteID, Item: site.Item{Kind: site.Listener, Scope: jxta.NetGroup, Owner: peerName("cbid", 800+int(siteID)), ID: pipe, Sub: PipePropagate}})
	}
	texts := func() (out []string) {
		for _, c := range n.takeCarry() {
			out = append(out, fmt.Sprintf("%v %s", c.Sites, c.Message.Parts[0].Data))
		}
		return out
	}
	f.wire(jxta.NetGroup, pipe1, "m-1", body("one"))
	n.pass(5 * time.Second)
	f.wire(jxta.NetGroup, pipe1, "m-2", body("two"))
	f.wire(jxta.NetGroup, pipe2, "m-3", body("other"))
	if got := texts(); got != nil {
		t.Fatalf("nobody listens: %q", got)
	}
	n.pass(8 * time.Second)
	up(2, pipe1)
	if got := texts(); !slices.Equal(got, []string{"[2] one", "[2] two"}) {
		t.Errorf("held: %q", got)
	}
	f.wire(jxta.NetGroup, pipe1, "m-4", body("four"))
	n.pass(4 * time.Second) // "one" is 17 s old
	up(3, pipe1)
	up(2, pipe1)
	if got := texts(); !slices.Equal(got, []string{"[2] four", "[3] two", "[3] four"}) {
		t.Errorf("a second site: %q", got)
	}
	n.pass(20 * time.Second)
	up(2, pipe2)
	if got := texts(); got != nil || n.b.Status().Held != 0 {
		t.Errorf("too late: %q, %d held", got, n.b.Status().Held)
	}
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Listener, Scope: jxta.NetGroup, Owner: peerName("cbid", 802), ID: pipe1, Sub: PipePropagate, Gone: true}})
	f.wire(jxta.NetGroup, pipe1, "m-5", body("five"))
	if got := texts(); !slices.Equal(got, []string{"[3] five"}) {
		t.Errorf("a site that closed the pipe: %q", got)
	}
	n.step(site.SiteLost{Site: 3})
	f.wire(jxta.NetGroup, pipe1, "m-6", body("six"))
	if got := texts(); got != nil {
		t.Errorf("no site left: %q", got)
	}
	up(3, pipe1)
	if got := texts(); !slices.Equal(got, []string{"[3] six"}) { // "five" is in custody for site 3, and custody sends it again
		t.Errorf("a site that came back: %q", got)
	}
}

func TestHeldIsBounded(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.MaxHeld, n.cfg.MaxHeldOctets = 10, 20_000
	n.b = New(n.cfg, nil)
	f := n.peer("A", "cbid")
	for i := range 30 {
		f.wire(jxta.NetGroup, pipe1, fmt.Sprint("m-", i), body(strings.Repeat("x", 100)))
	}
	if h := n.b.Status().Held; h != 10 {
		t.Errorf("%d held, want 10", h)
	}
	for i := range 5 {
		f.wire(jxta.NetGroup, pipe1, fmt.Sprint("n-", i), body(strings.Repeat("x", 9000)))
	}
	if n.b.propagation.heldSize > 20_000 || len(n.b.propagation.held) != 2 {
		t.Errorf("%d held, %d octets", len(n.b.propagation.held), n.b.propagation.heldSize)
	}
	f.wire(jxta.NetGroup, pipe1, "huge", body(strings.Repeat("x", 30_000)))
	if len(n.b.propagation.held) != 2 {
		t.Error("what is larger than the whole store put everything out")
	}
}

// farWire is a payload for pipe1 from a far peer.
func farWire(token uint64, s string) site.FarMessage {
	return site.FarMessage{Site: 2, Token: token, Message: site.Message{Published: true, Scope: jxta.NetGroup, Topic: pipe1, From: peerName("cbid", 777),
		ID: fmt.Sprintf("00000000-0000-4000-8000-%012x", token), Parts: []jxta.Element{body(s)}}}
}

func TestListenerThatIsRedialling(t *testing.T) {
	n := newNode(t, 1)
	f, g := n.peer("A", "cbid"), n.peer("B", "uuid")
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	g.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	f.hangUp()
	for i := range 5 {
		n.step(farWire(uint64(i+1), fmt.Sprint(i)))
		n.pass(200 * time.Millisecond)
	}
	if got := g.bodies(); len(got) != 5 || len(n.done) != 0 {
		t.Errorf("the other heard %q, done %v", got, n.done)
	}
	n.step(farWire(3, "again")) // the gateway hands it in twice
	n.pass(time.Second)
	g.silence("under way already")
	f.redial("")
	n.pass(time.Second)
	if got := f.bodies(); !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) || !slices.Equal(n.done, []uint64{1, 2, 3, 4, 5}) {
		t.Errorf("heard %q, done %v", got, n.done)
	}
	n.step(farWire(6, "6"))
	n.pass(time.Second)
	if got := f.bodies(); !slices.Equal(got, []string{"6"}) || len(n.done) != 6 {
		t.Errorf("heard %q, done %v", got, n.done)
	}
}

func TestConnectionThatBreaksBeforeItWasWritten(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.stuck = true
	for i := range 3 {
		n.step(farWire(uint64(i+1), fmt.Sprint(i)))
		n.pass(time.Second)
	}
	if got := f.bodies(); len(got) != 3 || len(n.done) != 0 {
		t.Fatalf("heard %q, done %v", got, n.done)
	}
	check.True(t, "nothing is acknowledged", !n.b.AllAcknowledged())
	n.step(Written{f.conn, n.b.outlets.conns[f.conn].inflight[0].token})
	if !slices.Equal(n.done, []uint64{1}) {
		t.Errorf("done %v", n.done)
	}
	f.hangUp()
	n.step(farWire(4, "3"))
	n.stuck = false
	f.redial("")
	n.pass(time.Second)
	if got := f.bodies(); !slices.Equal(got, []string{"1", "2", "3"}) || len(n.done) != 4 {
		t.Errorf("heard %q, done %v", got, n.done)
	}
	check.True(t, "all is acknowledged", n.b.AllAcknowledged())
}

// Two far payloads keep their distance; an answer overtakes them.
func TestPace(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Document, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, ID: "uuid-0A06", Doc: []byte("<x:A><Name>x</Name></x:A>"), Expires: t0.Add(time.Hour)}})
	f.take()
	for i := range 50 {
		n.step(farWire(uint64(i+1), fmt.Sprint(i)))
	}
	f.discover(jxta.NetGroup, "x")
	if got := f.take(); len(got) != 2 || got[0].find("trk:body") == nil || got[1].find("jxta-NetGroupIRes") == nil {
		t.Fatalf("at once: %s", describe(got))
	}
	n.pass(340 * time.Millisecond)
	got := f.bodies()
	if len(got) < 15 || len(got) > 36 { // 10 ms each, until sixteen are left: these take 150 ms each
		t.Errorf("%d after 340 ms", len(got))
	}
	n.pass(8 * 150 * time.Millisecond)
	got = append(got, f.bodies()...)
	if len(got) < 38 || len(got) > 44 {
		t.Errorf("%d after a second and a half", len(got))
	}
	n.pass(2 * time.Second)
	got = append(got, f.bodies()...)
	for i := range got {
		if got[i] != fmt.Sprint(i+1) {
			t.Fatalf("order %q", got)
		}
	}
	if len(got) != 49 || len(n.done) != 50 {
		t.Errorf("%d later, %d done", len(got), len(n.done))
	}
}

// Messages under way to a peer when the gateway died go again, and the log says how many.
func TestUnderWayGoesAgain(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "uuid")
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.stuck = true // its machine acknowledges nothing
	for i := range 3 {
		n.step(farWire(uint64(i+1), fmt.Sprint(i+1)))
		n.pass(time.Second)
	}
	check.Equal(t, "heard before", len(f.bodies()), 3)
	n.restart()
	n.stuck, n.notes = false, nil
	for i := range 3 {
		n.step(farWire(uint64(i+1), fmt.Sprint(i+1)))
	}
	f.redial("")
	n.pass(time.Minute)
	check.Equal(t, "heard again", fmt.Sprint(f.bodies()), "[1 2 3]")
	said := slices.DeleteFunc(n.notes, func(x site.Note) bool { return !strings.Contains(x.Text, "had not acknowledged") })
	check.Equal(t, "what the log says", fmt.Sprint(said), fmt.Sprintf("[{info a local peer gets messages again that it had not acknowledged when the gateway stopped [peer %s messages 3]}]", f.id))
}

func TestWindowAndQueueAreBounded(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.Window, n.cfg.MaxQueueOctets, n.cfg.MaxQueue = 50_000, 200_000, 1000
	n.b = New(n.cfg, nil)
	f := n.peer("A", "uuid")
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.stuck = true
	for i := range 60 {
		n.step(farWire(uint64(i+1), strings.Repeat("x", 9000)))
		n.pass(100 * time.Millisecond)
	}
	p := n.b.outlets.peers[f.id]
	if p.out.octets > 70_000 || p.queued > 200_000 {
		t.Errorf("%d octets under way, %d wait", p.out.octets, p.queued)
	}
	if st := n.b.Stats(); st.Abandoned == 0 || int(st.Abandoned) != len(n.lost) || len(n.done) != 0 {
		t.Errorf("%d given up, %d told, %d done", st.Abandoned, len(n.lost), len(n.done))
	}
	if !slices.ContainsFunc(n.notes, func(x site.Note) bool { return x.Level == "warn" }) {
		t.Error("the operator is not told")
	}
}

func TestRestart(t *testing.T) {
	n := patient(t, 1)
	f, g := n.peer("A", "cbid"), n.peer("B", "uuid")
	f.connect(ops)
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	f.pipe(ops, pipe2, jxta.PipeTypeUnicast, true)
	g.publish(jxta.NetGroup, msa("b-svc"), time.Hour)
	n.pass(pipeSettles)
	want := n.b.Items()
	if len(want) != 6 {
		t.Fatalf("%d items: %+v", len(want), want)
	}
	f.take()
	g.take()
	n.now = n.now.Add(time.Minute)
	n.items = nil
	n.restart()
	if got := n.b.Items(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("remembers %+v\nwant %+v", got, want)
	}
	n.step(farWire(1, "while it was away"))
	if len(n.done) != 0 {
		t.Error("given up")
	}
	f.redial("")
	h := f.one()
	if string(h.find("trk:body")) != "while it was away" || h.trailer == nil || len(n.done) != 1 {
		t.Errorf("delivered %q, done %v", h.body, n.done)
	}
	f.discover(jxta.NetGroup, "b-svc")
	if _, d := f.answer(f.one(), jxta.NetGroup); len(d.Found) != 1 || d.Found[0].Life != 59*time.Minute-pipeSettles {
		t.Errorf("advertisement after the restart: %+v", d)
	}
	if len(n.items) != 0 {
		t.Errorf("news for far sites: %+v", n.items)
	}
	n.pass(25*time.Hour + n.b.cfg.Wait) // the gateway knows for that long which peers listened
	if st := n.b.Status(); st.Adverts != 0 || len(st.Groups) != 0 || len(n.memory) != 0 {
		t.Errorf("two days later %+v, memory %v", st, n.memory)
	}
	b := New(n.cfg, []site.Memory{{Key: "peer/x", Value: []byte("{")}, {Key: "adv/2/x", Value: nil}, {Key: "adv/2/g/i", Value: []byte("{}")}, {Key: "", Value: nil}, {Key: "other", Value: nil}})
	if len(b.Items()) != 0 {
		t.Error("nonsense remembered")
	}
}

func TestSubGroupMeets(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	fa, fb := a.peer("A", "cbid"), b.peer("B", "uuid")
	fa.connect(ops)
	fb.connect(ops)
	fa.pipe(ops, pipe1, jxta.PipeTypePropagate, true)
	join(a, b)
	fa.take()
	fb.take()
	fb.wire(ops, pipe1, "m-1", body("in the group"))
	join(a, b)
	h := fa.one()
	if h.erm.Dest.Service != "EndpointService:"+ops || h.erm.Dest.Param != "JxtaPropagate/"+ops || h.find("RendezVousPropagate"+ops) == nil {
		t.Errorf("%+v", h.erm)
	}
	fb.wire(jxta.NetGroup, pipe1, "m-2", body("elsewhere"))
	join(a, b)
	fa.silence("the pipe is open in another group")
	fa.publish(ops, msa("x"), time.Hour)
	join(a, b)
	fb.silence("nobody has asked for it")
	asked := fb.discover(ops, "x")
	b.pass(time.Minute)
	join(a, b)
	if r, d := fb.answer(fb.one(), ops); r.QueryID != asked || len(d.Found) != 1 {
		t.Errorf("%+v %+v", r, d)
	}
	fb.discover(jxta.NetGroup, "x")
	fb.silence("published in another group")
}

// An application's own resolver handler and its own group-wide service are passed on, without addresses.
func TestForeignServices(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	fa, fb := a.peer("A", "cbid"), b.peer("B", "cbid")
	join(a, b)
	fa.ask(jxta.NetGroup, "my.handler", "<q/>")
	join(a, b)
	h := fb.one()
	q, err := jxta.ParseResolverQuery(h.find("jxta-NetGroupORes"))
	must := check.Fatal(t)
	check.NoError(must, err)
	check.Equal(t, "q.Handler", q.Handler, "my.handler")
	check.Equal(t, "q.Src", q.Src, fa.id)
	check.Equal(t, "q.Query", q.Query, "<q/>")
	check.True(must, "a route in the query", q.Route != nil)
	check.Equal(t, "q.Route.Hops[0].Peer", q.Route.Hops[0].Peer, b.cfg.Identity.Peer)
	r := jxta.ResolverResponse{Handler: "my.handler", QueryID: q.QueryID, Response: "<r/>"}
	fb.say(fa.id, jxta.NetGroup, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"IRes", xmlElement("jxta-NetGroupIRes", r.Append(nil)))
	join(a, b)
	if h = fa.one(); h.erm.Src != fb.id || h.find("jxta-NetGroupIRes") == nil {
		t.Errorf("%+v", h.erm)
	}
	fa.propagate(jxta.NetGroup, "my.service", "p", body("for all"))
	join(a, b)
	b.pass(time.Second)
	h = fb.one()
	p, err := jxta.ParsePropagate(h.find("RendezVousPropagatejxta-NetGroup"))
	check.NoError(must, err)
	check.Equal(t, "p.Service", p.Service, "my.service")
	check.Equal(t, "p.Param", p.Param, "p")
	check.Equal(t, "trk:body", string(h.find("trk:body")), "for all")
}

// 2.2 pushes an index, not its advertisements: the gateway asks for them (wire 0.8: 2.7 only).
func TestIndexOf22IsFollowed(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "uuid")
	n.takeItems()
	index := func() {
		s := jxta.SRDI{Peer: f.id, Key: "Adv", Entries: []jxta.SRDIEntry{{Key: "Name", Value: "X", Life: time.Hour}}}
		r := jxta.ResolverSRDI{Handler: jxta.HandlerDiscovery, Payload: string(s.Append(nil))}
		f.propagate(jxta.NetGroup, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"Srdi", xmlElement("jxta-NetGroupSrdi", r.Append(nil)))
	}
	// An advertisement that it found at another site is in its index, too: it is no news, and does not go back.
	far := site.Item{Kind: site.Document, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, ID: "uuid-0A06", Doc: []byte("<x:A><Name>x</Name></x:A>"), Expires: t0.Add(time.Hour)}
	n.step(site.FarItem{Site: 2, Item: far})
	f.take()
	index()
	f.silence("known from afar")
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Document, Scope: far.Scope, Sub: far.Sub, ID: far.ID, Gone: true}})
	index()
	h := f.one()
	q, err := jxta.ParseResolverQuery(h.find("jxta-NetGroupORes"))
	must := check.Fatal(t)
	check.NoError(must, err)
	check.Equal(must, "q.Src", q.Src, n.cfg.Identity.Peer)
	check.Differ(must, "q.QueryID", q.QueryID, 0)
	check.True(must, "a route in the query", q.Route != nil)
	d := jxta.DiscoveryResponse{Type: jxta.TypeAdv, Found: []jxta.Found{{Life: time.Hour, Doc: msa("x")},
		{Life: time.Hour, Doc: "<jxta:PipeAdvertisement><Id>" + jxta.URN(pipe1) + "</Id></jxta:PipeAdvertisement>"}}}
	r := jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, QueryID: q.QueryID, Response: string(d.Append(nil))}
	f.say(n.cfg.Identity.Peer, jxta.NetGroup, jxta.URN(jxta.ClassResolver), "jxta-NetGroupIRes", xmlElement("jxta-NetGroupIRes", r.Append(nil)))
	if it := n.takeItems(); len(it) != 1 || it[0].Kind != site.Document {
		t.Errorf("%+v", it)
	}
	index()
	f.silence("known by now")
}

// A peer that publishes what it got from another site does not send it back there.
func TestSplitHorizon(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	fa, fb := a.peer("A", "cbid"), b.peer("B", "cbid")
	join(a, b)
	fa.publish(jxta.NetGroup, msa("x"), time.Hour)
	fb.discover(jxta.NetGroup, "x")
	b.pass(time.Minute)
	join(a, b)
	_, d := fb.answer(fb.one(), jxta.NetGroup)
	fb.publish(jxta.NetGroup, d.Found[0].Doc, time.Hour)
	if it := b.takeItems(); len(it) != 0 {
		t.Errorf("goes back: %+v", it)
	}
	changed := strings.Replace(d.Found[0].Doc, "</jxta:MSA>", "<Desc>mine</Desc></jxta:MSA>", 1)
	fb.publish(jxta.NetGroup, changed, time.Hour)
	if it := b.takeItems(); len(it) != 1 {
		t.Errorf("a version of its own: %+v", it)
	}
}
