package jxtabridge

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

func TestLease(t *testing.T) {
	n := newNode(t, 1)
	f := n.dial("A", "cbid", "")
	check.Equal(t, "f.greeted.Peer", f.greeted.Peer, jxta.URN(n.cfg.Identity.Peer))
	check.Equal(t, "f.greeted.Public", f.greeted.Public, "tcp://10.0.1.1:9701")
	check.Equal(t, "f.greeted.Dest", f.greeted.Dest, "tcp://"+f.addr)
	check.True(t, "a welcome that wants propagated messages", !f.greeted.NoPropagate)
	f.connect(jxta.NetGroup)
	h := f.one()
	// The routed form with a route, without which a 2.7 edge never sends anything (wire 5.1).
	must := check.Fatal(t)
	check.True(must, "a routed grant", h.erm != nil)
	check.Equal(t, "h.erm.Src", h.erm.Src, n.cfg.Identity.Peer)
	check.True(must, "a route in the grant", h.erm.Route != nil)
	check.Equal(t, "h.erm.Route.Access.Addresses[0]", h.erm.Route.Access.Addresses[0], "tcp://10.0.1.1:9701")
	check.Equal(t, "h.erm.Dest.Service", h.erm.Dest.Service, jxta.URN(jxta.ClassRendezvous))
	check.Equal(t, "h.erm.Dest.Param", h.erm.Dest.Param, jxta.NetGroup)
	if string(h.find("ConnectedLease")) != "1200000" || string(h.find("ConnectedPeer")) != jxta.URN(n.cfg.Identity.Peer) {
		t.Errorf("lease %q of %q", h.find("ConnectedLease"), h.find("ConnectedPeer"))
	}
	pa, err := jxta.ParseXML(h.find("RdvAdvReply"), jxta.DefaultXML)
	if err != nil || pa.KidValue("GID") != jxta.URN(jxta.NetGroup) || !strings.Contains(string(h.find("RdvAdvReply")), "<Rdv>true</Rdv>") {
		t.Errorf("RdvAdvReply %s, %v", h.find("RdvAdvReply"), err)
	}
	if h.trailer == nil {
		t.Error("no trailer for a signed peer")
	}
	items := n.takeItems()
	want := "<jxta:PA><PID>" + jxta.URN(f.id) + "</PID><GID>urn:jxta:jxta-NetGroup</GID><Name>A</Name><Svc><MCID>urn:jxta:uuid-0123456789ABCDEF0123456789ABCDEF05</MCID><Parm><Own>kept</Own></Parm></Svc></jxta:PA>"
	last := items[len(items)-1]
	check.Equal(t, "last.Kind", last.Kind, site.Endpoint)
	check.Equal(t, "last.Owner", last.Owner, f.id)
	check.True(t, "last.Variant, for a peer that signs", last.Variant)
	check.Equal(t, "string(last.Doc)", string(last.Doc), want)
	f.connect(jxta.NetGroup) // renewal
	f.one()
	if it := n.takeItems(); len(it) != 0 {
		t.Errorf("a renewal is no news: %+v", it)
	}
	n.pass(19 * time.Minute)
	f.connect(jxta.NetGroup)
	f.one()
	n.pass(19 * time.Minute)
	if it := n.takeItems(); len(it) != 0 {
		t.Errorf("renewed lease ended: %+v", it)
	}
	n.pass(2 * time.Minute)
	if it := n.takeItems(); len(it) != 1 || !it[0].Gone || it[0].Key() != last.Key() {
		t.Errorf("after the lease: %+v", it)
	}
	if len(n.memory) != 0 {
		t.Errorf("still remembered: %v", n.memory)
	}
}

func TestLeaseOfASubGroup(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "uuid")
	f.connect(ops)
	h := f.one()
	// Inner address mangled, outer one of the net peer group (ghosts 9).
	if h.erm.Dest.Service != "EndpointService:"+ops || h.erm.Dest.Param != jxta.URN(jxta.ClassRendezvous)+"/"+ops || h.dest.Service != "EndpointService:jxta-NetGroup" {
		t.Errorf("grant to %+v in %+v", h.erm.Dest, h.dest)
	}
	if h.trailer != nil {
		t.Error("a trailer for 2.2")
	}
	n.takeItems()
	f.pipe(ops, pipe1, jxta.PipeTypePropagate, true)
	f.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, true)
	n.pass(pipeSettles)
	f.disconnect(ops)
	it := n.takeItems()
	must := check.Fatal(t)
	check.Equal(must, "len(it)", len(it), 4)
	check.Equal(t, "it[1].ID", it[1].ID, pipe2)
	check.True(t, "the pipe of the group that was left withdrawn", it[2].Gone, it[2])
	check.Equal(t, "it[2].ID", it[2].ID, pipe1)
	check.True(t, "the peer withdrawn from the group that was left", it[3].Gone, it[3])
	check.Equal(t, "it[3].Scope", it[3].Scope, ops)
	st := n.b.Status()
	check.Equal(must, "len(st.Peers)", len(st.Peers), 1)
	check.Equal(t, "len(st.Peers[0].Leases)", len(st.Peers[0].Leases), 1)
	check.Equal(t, "len(st.Peers[0].Pipes)", len(st.Peers[0].Pipes), 1)
	check.Equal(t, "st.Peers[0].Generation", st.Peers[0].Generation, "2.2")
	check.Equal(t, "st.Peers[0].Name", st.Peers[0].Name, "A")
}

func TestRelay(t *testing.T) {
	n := newNode(t, 1)
	f := n.dial("A", "cbid", "tcp://10.0.1.1:9701/EndpointService:jxta-NetGroup/uuid-DEADBEEFDEAFBABAFEEDBABE0000000F05/connect,600000,keep,true")
	h := f.one()
	adv, err := jxta.ParseXML(h.find("relay:relayAdv"), jxta.DefaultXML)
	if err != nil || string(h.find("relay:response")) != "connected" || string(h.find("relay:lease")) != "600000" {
		t.Fatalf("answer %q, %v", h.body, err)
	}
	rdv, err := jxta.ParseRdvAdvertisement(adv)
	check.NoError(check.In(t, "relayAdv"), err)
	check.Equal(t, "rdv.Peer", rdv.Peer, n.cfg.Identity.Peer)
	check.Equal(t, "rdv.ServiceName", rdv.ServiceName, jxta.ClassRelay)
	check.True(t, "a route in relayAdv", rdv.Route != nil)
	// The client ignores an answer whose parameter is not the relay's unique value (wire 10).
	if h.dest.Service != "EndpointService:jxta-NetGroup" || h.dest.Param != jxta.ClassRelay+"/"+n.cfg.Identity.Peer {
		t.Errorf("answer to %+v", h.dest)
	}
	f.send("EndpointService:jxta-NetGroup", jxta.ClassRelay+"/"+f.id, jxta.Element{Namespace: "relay", Name: "request", Data: []byte("connect,3600000,keep,other")})
	if h = f.one(); string(h.find("relay:lease")) != "3600000" || h.find("relay:relayAdv") != nil {
		t.Errorf("renewal %q", h.body)
	}
	f.send("EndpointService:jxta-NetGroup", jxta.ClassRelay+"/"+f.id, jxta.Element{Namespace: "relay", Name: "request", Data: []byte("disconnect")})
	f.silence("disconnect")
}

func TestPeerView(t *testing.T) {
	n := newNode(t, 1)
	f := n.dial("A", "uuid", "")
	probe := func(group string) jxta.Element {
		return xmlElement("PeerView.PeerAdv", jxta.AppendDocument(nil, jxta.RdvAdvertisement{Group: group, Peer: f.id, ServiceName: "s", Name: "A"}.Node()))
	}
	answered := func(h heard, group, service, param string) {
		t.Helper()
		r, err := jxta.ParseXML(h.find("PeerView.PeerAdv.Response"), jxta.DefaultXML)
		if err != nil {
			t.Fatal(err)
		}
		adv, err := jxta.ParseRdvAdvertisement(r)
		must, in := check.Fatal(check.In(t, group)), check.In(t, group)
		check.NoError(must, err)
		check.Equal(in, "adv.Group", adv.Group, group)
		check.Equal(in, "adv.Peer", adv.Peer, n.cfg.Identity.Peer)
		check.Equal(in, "adv.ServiceName", adv.ServiceName, jxta.URN(jxta.ClassRendezvous)+group)
		check.True(must, "a routed answer", h.erm != nil)
		check.True(in, "a route in the answer", h.erm.Route != nil)
		check.Equal(in, "h.erm.Dest.Service", h.erm.Dest.Service, service)
		check.Equal(in, "h.erm.Dest.Param", h.erm.Dest.Param, param)
	}
	f.send("EndpointService:jxta-NetGroup", svcPeerView+"/jxta-NetGroup", probe(jxta.NetGroup))
	answered(f.one(), jxta.NetGroup, svcPeerView, jxta.NetGroup)
	f.connect(jxta.NetGroup)
	f.take()
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Listener, Scope: jxta.NetGroup, Owner: peerName("uuid", 900), ID: pipe1, Sub: PipePropagate}})
	f.wire(jxta.NetGroup, pipe1, "probe-1", probe(ops)) // carried by a propagate pipe (ghosts 9)
	answered(f.one(), ops, "EndpointService:"+ops, svcPeerView+"/"+ops)
	if len(n.carry) != 0 {
		t.Error("the probe crossed the link")
	}
}

// Before its first message the id decides the format, then the peer's own format (wire 2.5, ghosts 2).
func TestTrailerIsMirrored(t *testing.T) {
	n := newNode(t, 1)
	relay := "tcp://x/EndpointService:jxta-NetGroup/" + jxta.ClassRelay + "/connect,1,keep,true"
	f := n.dial("A", "cbid", relay)
	if f.one().trailer == nil {
		t.Error("cbid: no trailer before the first message")
	}
	f.signed = false // CBJX switched off, id kept
	f.connect(jxta.NetGroup)
	if f.one().trailer != nil {
		t.Error("unsigned peer got a trailer")
	}
	f.hangUp()
	f.redial(relay)
	if f.one().trailer != nil {
		t.Error("forgot how the peer speaks")
	}
	f.signed = true
	n.takeItems()
	f.connect(jxta.NetGroup)
	if f.one().trailer == nil {
		t.Error("signed again: no trailer")
	}
	if it := n.takeItems(); len(it) != 1 || !it[0].Variant {
		t.Errorf("far sites should hear of it: %+v", it)
	}
	if g := n.dial("B", "uuid", relay); g.one().trailer != nil {
		t.Error("uuid: a trailer before the first message")
	}
}

func TestMessageVersion1ForWhoAsksForIt(t *testing.T) {
	n := newNode(t, 1)
	f := n.dial("A", "uuid", "")
	n.conns++
	f.conn = n.conns
	n.peers[f.conn] = f
	n.step(Opened{Conn: f.conn, Remote: f.addr})
	n.step(Welcomed{f.conn, jxta.Welcome{Dest: "tcp://" + n.cfg.Address, Public: "tcp://" + f.addr, Peer: jxta.URN(f.id), MsgVersion: 1, Version: "3.0"}})
	f.connect(jxta.NetGroup)
	if h := f.one(); h.body[4] != 1 || h.find("ConnectedPeer") == nil {
		t.Errorf("version %d", h.body[4])
	}
}

func TestDiscovery(t *testing.T) {
	a, b := newNode(t, 1), patient(t, 2)
	fa, fb, fc := a.peer("A", "cbid"), b.peer("B", "uuid"), b.peer("C", "cbid")
	join(a, b)
	early := fb.discover(jxta.NetGroup, "ship*")
	fb.silence("nothing is known yet")
	fa.publish(jxta.NetGroup, msa("ship track"), 2*time.Hour)
	fa.silence("own advertisement")
	it := a.takeItems()
	must := check.Fatal(t)
	check.Equal(must, "len(it)", len(it), 1)
	check.Equal(must, "it[0].Kind", it[0].Kind, site.Document)
	check.Equal(must, "it[0].Sub", it[0].Sub, jxta.TypeAdv)
	check.True(must, "it[0].Expires two hours from now", it[0].Expires.Equal(t0.Add(2*time.Hour)), it[0].Expires)
	check.Equal(must, "it[0].Owner", it[0].Owner, fa.id)
	check.Prefix(must, "it[0].Doc", string(it[0].Doc), `<jxta:MSA xmlns:jxta="http://jxta.org"><MSID>urn:jxta:uuid-`)
	b.now = b.now.Add(time.Minute)
	b.step(site.FarItem{Site: 1, Item: it[0]})
	// The question is answered with its own QueryID, the peer that had not asked gets QueryID 0 (ghosts 5).
	r, d := fb.answer(fb.one(), jxta.NetGroup)
	check.Equal(t, "r.QueryID", r.QueryID, early)
	check.Equal(must, "len(d.Found)", len(d.Found), 1)
	check.Equal(t, "d.Attr", d.Attr, "Name")
	check.Equal(t, "d.Value", d.Value, "ship*")
	check.Equal(t, "d.Found[0].Life", d.Found[0].Life, 119*time.Minute)
	check.Prefix(t, "d.Found[0].Doc", d.Found[0].Doc, "<?xml")
	check.Contains(t, "d.Found[0].Doc", d.Found[0].Doc, "<Name>ship track</Name>")
	r, d = fc.answer(fc.one(), jxta.NetGroup)
	if r.QueryID != 0 || len(d.Found) != 1 || d.Attr != "" {
		t.Errorf("push %+v %+v", r, d)
	}
	b.step(site.FarItem{Site: 1, Item: it[0]})
	fb.silence("the same again")
	fc.silence("the same again")
	// From the copy, at once, and with the remaining life.
	b.now = b.now.Add(time.Hour)
	again := fc.discover(jxta.NetGroup, "ship track")
	if r, d = fc.answer(fc.one(), jxta.NetGroup); r.QueryID != again || d.Found[0].Life != 59*time.Minute {
		t.Errorf("answer %+v %+v", r, d)
	}
	b.now = b.now.Add(time.Hour)
	fc.discover(jxta.NetGroup, "ship track")
	fc.silence("a dead advertisement")
	fa.discover(jxta.NetGroup, "ship track")
	fa.silence("the asker's own advertisement")
	for _, it := range b.takeItems() {
		if it.Kind != site.Question {
			t.Errorf("something came back over the link: %+v", it)
		}
	}
	if len(b.takeCarry()) != 0 {
		t.Error("something came back over the link")
	}
}

func TestRepeatedPublicationIsCheap(t *testing.T) {
	n := patient(t, 1)
	f, g := n.peer("A", "uuid"), n.peer("B", "uuid")
	n.takeItems()
	f.publish(jxta.NetGroup, msa("x"), 2*time.Hour)
	g.one()
	if len(n.takeItems()) != 1 {
		t.Fatal("not replicated")
	}
	count := 0
	for range 60 {
		n.now = n.now.Add(time.Minute)
		f.publish(jxta.NetGroup, msa("x"), 2*time.Hour)
		count += len(n.takeItems())
	}
	if count != 2 {
		t.Errorf("%d renewals in an hour, want one per quarter of a life", count)
	}
	g.silence("an unchanged advertisement")
	f.publish(jxta.NetGroup, strings.Replace(msa("x"), "</jxta:MSA>", "<Desc>new</Desc></jxta:MSA>", 1), 2*time.Hour)
	if len(n.takeItems()) != 1 {
		t.Error("new content not replicated")
	}
	g.one()
	f.publish(jxta.NetGroup, msa("x"), 0)
	if it := n.takeItems(); len(it) != 1 || !it[0].Gone || it[0].Owner != f.id {
		t.Errorf("withdrawn: %+v", it)
	}
}

func TestWhatIsNotReplicated(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "uuid")
	n.takeItems()
	f.publish(jxta.NetGroup, string(f.advertisement(jxta.NetGroup)), time.Hour)
	f.publish(jxta.NetGroup, string(jxta.AppendDocument(nil, jxta.Route{Dest: f.id}.Node())), time.Hour)
	f.publish(jxta.NetGroup, string(jxta.AppendDocument(nil, jxta.RdvAdvertisement{Group: ops, Peer: f.id}.Node())), time.Hour)
	f.publish(jxta.NetGroup, "<not xml", time.Hour)
	if it := n.takeItems(); len(it) != 0 {
		t.Errorf("%+v", it)
	}
	// A signed document keeps its octets; a route is removed, and the signature with it.
	signed := "<?xml version=\"1.0\"?>\n<x:A>\n <Name>n</Name><XMLSignature>s</XMLSignature>\n</x:A>"
	f.publish(jxta.NetGroup, signed, time.Hour)
	f.publish(jxta.NetGroup, "<x:B><Name>n</Name><jxta:RA><Dst/></jxta:RA><XMLSignature>s</XMLSignature></x:B>", time.Hour)
	it := n.takeItems()
	if len(it) != 2 || string(it[0].Doc) != strings.TrimSpace(signed) || string(it[1].Doc) != "<x:B><Name>n</Name></x:B>" {
		t.Errorf("%+v", it)
	}
}

func TestDiscoveryOfPeers(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	fb := b.peer("B", "cbid")
	early := fb.ask(jxta.NetGroup, jxta.HandlerDiscovery, string(jxta.DiscoveryQuery{Type: jxta.TypePeer, Threshold: 3, Attr: "Name", Value: "A"}.Append(nil)))
	fb.silence("not there yet")
	fa := a.peer("A", "cbid")
	join(a, b)
	r, d := fb.answer(fb.one(), jxta.NetGroup)
	if r.QueryID != early || len(d.Found) != 1 {
		t.Fatalf("%+v %+v", r, d)
	}
	n, err := jxta.ParseXML([]byte(d.Found[0].Doc), jxta.DefaultXML)
	if err != nil {
		t.Fatal(err)
	}
	pa, err := jxta.ParsePeerAdvertisement(n)
	must := check.Fatal(t)
	check.NoError(must, err)
	check.Equal(must, "pa.Peer", pa.Peer, fa.id)
	check.Equal(must, "pa.Name", pa.Name, "A")
	check.Equal(must, "len(pa.Services)", len(pa.Services), 2)
	route, err := jxta.ParseRoute(pa.Services[1].Node.Kid("Parm").Kid("jxta:RA"))
	check.NoError(check.In(must, "the ghost's route"), err)
	check.Equal(t, "route.Dest", route.Dest, fa.id)
	check.Equal(t, "len(route.Access.Addresses)", len(route.Access.Addresses), 0)
	check.Equal(must, "len(route.Hops)", len(route.Hops), 1)
	check.Equal(t, "route.Hops[0].Peer", route.Hops[0].Peer, b.cfg.Identity.Peer)
	check.Same(t, "route.Hops[0].Addresses", route.Hops[0].Addresses, []string{"tcp://10.0.2.1:9701"})
	fb.ask(jxta.NetGroup, jxta.HandlerDiscovery, string(jxta.DiscoveryQuery{Type: jxta.TypePeer}.Append(nil)))
	if _, d = fb.answer(fb.one(), jxta.NetGroup); len(d.Found) != 2 { // A and the gateway
		t.Errorf("all peers: %+v", d)
	}
}

func TestPipes(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	fa, fb := a.peer("A", "cbid"), b.peer("B", "cbid")
	join(a, b)
	query := func(peers ...string) string {
		return string(jxta.PipeResolver{Pipe: pipe1, Type: jxta.PipeTypeUnicast, Peers: peers}.Append(nil))
	}
	answers := func(h heard, qid int, found bool) {
		t.Helper()
		r, _ := fb.answer(h, jxta.NetGroup)
		p, err := jxta.ParsePipeResolver([]byte(r.Response))
		check.NoError(check.Fatal(t), err)
		check.Equal(t, "r.QueryID", r.QueryID, qid)
		check.True(t, "an answer, no question", p.Answer)
		check.Equal(t, "p.Pipe", p.Pipe, pipe1)
		check.Equal(t, "p.Found", p.Found, found)
		check.Same(t, "p.Peers", p.Peers, []string{fa.id})
		if h.erm.Src != fa.id {
			t.Errorf("answered by %s, want the ghost", h.erm.Src)
		}
		if found && (!strings.Contains(p.PeerAdv, "tcp://10.0.2.1:9701") || !strings.Contains(p.PeerAdv, fa.id)) {
			t.Errorf("peer advertisement %s", p.PeerAdv)
		}
	}
	early := fb.ask(jxta.NetGroup, jxta.HandlerPipe, query())
	fb.silence("nobody has it")
	no := fb.ask(jxta.NetGroup, jxta.HandlerPipe, query(fa.id))
	answers(fb.one(), no, false)
	fa.pipe(jxta.NetGroup, strings.ToUpper(pipe1[:4])+pipe1[4:], jxta.PipeTypeUnicast, true) // 2.2 upper-cases
	join(a, b)
	fb.silence("it may become a stream's end")
	a.pass(pipeSettles)
	join(a, b)
	answers(fb.one(), early, true)
	now := fb.ask(jxta.NetGroup, jxta.HandlerPipe, query())
	answers(fb.one(), now, true)
	// A question routed to the ghost itself is answered in its place.
	q := jxta.ResolverQuery{Handler: jxta.HandlerPipe, QueryID: 77, Src: fb.id, Query: query()}
	fb.say(fa.id, jxta.NetGroup, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"ORes", xmlElement("jxta-NetGroupORes", q.Append(nil)))
	answers(fb.one(), 77, true)
	fa.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, false)
	join(a, b)
	fb.ask(jxta.NetGroup, jxta.HandlerPipe, query())
	fb.silence("closed")
}

func TestRouteQuery(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	fa, fb := a.peer("A", "cbid"), b.peer("B", "cbid")
	join(a, b)
	qid := fb.ask(jxta.NetGroup, jxta.HandlerRouter, string(jxta.RouteQuery{Dest: fa.id}.Append(nil)))
	r, _ := fb.answer(fb.one(), jxta.NetGroup)
	e, err := jxta.ParseRouteResponse([]byte(r.Response))
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "r.QueryID", r.QueryID, qid)
	check.Equal(t, "e.Dest.Dest", e.Dest.Dest, fa.id)
	check.Equal(t, "len(e.Dest.Access.Addresses)", len(e.Dest.Access.Addresses), 0)
	check.Equal(t, "e.Src.Dest", e.Src.Dest, b.cfg.Identity.Peer)
	check.Equal(t, "len(e.Src.Access.Addresses)", len(e.Src.Access.Addresses), 1)
	fb.ask(jxta.NetGroup, jxta.HandlerRouter, string(jxta.RouteQuery{Dest: peerName("uuid", 999)}.Append(nil)))
	fb.silence("a peer that nobody knows")
}

func TestUnicast(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	fa, fb, fc := a.peer("A", "uuid"), b.peer("B", "cbid"), b.peer("C", "uuid")
	join(a, b)
	app := []jxta.Element{body("hej"), {Namespace: "trk", Name: "att", Type: "image/png", Data: []byte{0, 1, 2}}, body("duplicate kept")}
	arrives := func(to *fake, from *fake) {
		t.Helper()
		h := to.one()
		in := check.In(t, from.name, "to", to.name)
		check.Equal(in, "h.erm.Src", h.erm.Src, from.id)
		check.Equal(in, "h.erm.Dest.Service", h.erm.Dest.Service, "PipeService")
		check.Equal(in, "h.erm.Dest.Param", h.erm.Dest.Param, jxta.URN(pipe1))
		check.True(in, "no route in the message", h.erm.Route == nil)
		check.Equal(check.Fatal(in), "len(h.elements)", len(h.elements), 3)
		check.Equal(in, "h.elements[1].Type", h.elements[1].Type, "image/png")
		check.Equal(in, "h.elements[1].Data", string(h.elements[1].Data), "\x00\x01\x02")
		check.Equal(in, "h.elements[2].Data", string(h.elements[2].Data), "duplicate kept")
		if (h.trailer != nil) != to.signed {
			t.Error("trailer")
		}
	}
	fb.say(fa.id, jxta.NetGroup, "PipeService", jxta.URN(pipe1), slices.Clone(app)...)
	a.takeCarry()
	c := b.takeCarry()
	must := check.Fatal(t)
	check.Equal(must, "len(c)", len(c), 1)
	check.Same(must, "c[0].Sites", c[0].Sites, []uint16{1})
	check.Equal(must, "c[0].Message.To", c[0].Message.To, fa.id)
	check.Equal(must, "c[0].Message.From", c[0].Message.From, fb.id)
	check.Equal(must, "c[0].Message.Service", c[0].Message.Service, "PipeService")
	check.Equal(must, "c[0].Message.Param", c[0].Message.Param, jxta.URN(pipe1))
	check.Equal(must, "len(c[0].Message.Parts)", len(c[0].Message.Parts), 3)
	a.step(site.FarMessage{Site: 2, Token: 1, Message: c[0].Message})
	arrives(fa, fb)
	if !slices.Equal(a.done, []uint64{1}) {
		t.Errorf("done %v", a.done)
	}
	fb.say(fc.id, jxta.NetGroup, "PipeService", jxta.URN(pipe1), slices.Clone(app)...) // signed to unsigned on one LAN
	arrives(fc, fb)
	fc.say(fb.id, jxta.NetGroup, "PipeService", jxta.URN(pipe1), slices.Clone(app)...)
	arrives(fb, fc)
	fa.say(fb.id, ops, "PipeService", jxta.URN(pipe1), slices.Clone(app)...)
	fa.take() // Disconnect: it has no lease there
	join(a, b)
	if h := fb.one(); h.erm.Dest.Service != "EndpointService:"+ops || h.erm.Dest.Param != "PipeService/"+jxta.URN(pipe1) {
		t.Errorf("sub-group: %+v", h.erm.Dest)
	}
	fb.say(peerName("uuid", 998), jxta.NetGroup, "PipeService", jxta.URN(pipe1), body("x"))
	if r, _ := fb.answer(fb.one(), jxta.NetGroup); r.QueryID != -1 || r.Handler != jxta.HandlerRouter {
		t.Errorf("NACK %+v", r)
	}
	if len(b.takeCarry()) != 0 {
		t.Error("local messages crossed the link")
	}
}

// BiDi and socket openings carry a peer advertisement with addresses (ghosts 6.2).
func TestRemotePeerInAnOpening(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	fa, fb := a.peer("A", "cbid"), b.peer("B", "cbid")
	join(a, b)
	fb.say(fa.id, jxta.NetGroup, "PipeService", jxta.URN(pipe1), jxta.Element{Namespace: "JXTABIP", Name: "remPeer", Data: fb.advertisement(jxta.NetGroup)})
	if c := b.carry; len(c) != 1 || bytes.Contains(c[0].Message.Parts[0].Data, []byte("RA")) {
		t.Errorf("carried %q", c[0].Message.Parts[0].Data)
	}
	join(a, b)
	if got := string(fa.one().find("JXTABIP:remPeer")); !strings.Contains(got, "<EA>tcp://10.0.1.1:9701</EA>") || !strings.Contains(got, fb.id) {
		t.Errorf("delivered %s", got)
	}
}

func TestTalkingWithoutALease(t *testing.T) {
	n := newNode(t, 1)
	f := n.dial("A", "cbid", "")
	f.discover(jxta.NetGroup, "x")
	h := f.one()
	must := check.Fatal(t)
	check.True(t, "a Disconnect", h.find("Disconnect") != nil, h.body)
	check.True(must, "a routed answer", h.erm != nil, h.body)
	check.True(t, "a route in the answer", h.erm.Route != nil, h.body)
	check.Equal(t, "h.erm.Dest.Service", h.erm.Dest.Service, jxta.URN(jxta.ClassRendezvous))
	f.discover(jxta.NetGroup, "x")
	f.silence("told once")
	n.pass(30 * time.Second)
	f.one() // said nothing: see TestIdlePeerWithoutALease
	f.discover(jxta.NetGroup, "x")
	f.one()
	f.connect(jxta.NetGroup)
	f.take()
	f.discover(jxta.NetGroup, "x")
	f.silence("has a lease")
}

// An idle peer that a gateway has forgotten says nothing for minutes: it is told that it has no lease.
func TestIdlePeerWithoutALease(t *testing.T) {
	n := newNode(t, 1)
	f := n.dial("A", "cbid", "")
	n.pass(19 * time.Second)
	f.silence("it may be starting")
	n.pass(2 * time.Second)
	if h := f.one(); h.find("Disconnect") == nil {
		t.Errorf("%q", h.body)
	}
	f.connect(jxta.NetGroup)
	f.take()
	n.pass(10 * time.Minute)
	f.silence("has a lease")
	g := n.dial("B", "cbid", "")
	g.hangUp()
	n.pass(10 * time.Minute)
}
