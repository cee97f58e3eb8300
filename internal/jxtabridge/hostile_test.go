package jxtabridge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// captured is a message of a real peer to a gateway whose id was gateway.
func captured(t testing.TB, name string) (body []byte, peer, gateway string) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "jxta", "testdata", name+".msg"))
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := jxta.ParseMessage(body, jxta.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if e := m.Find("jxta", elRouter); e != nil {
		r, err := jxta.ParseRouterMessage(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		return body, r.Src, r.Dest.Host
	}
	return body, "", ""
}

// The conversation of real peers with a gateway, replayed from captures.
func TestCapturedConversation(t *testing.T) {
	for _, gen := range []string{"jxse27", "jxta22"} {
		t.Run(gen, func(t *testing.T) {
			n := newNode(t, 1)
			_, peer, gateway := captured(t, gen+"-connect")
			n.cfg.Identity.Peer = gateway
			n.b = New(n.cfg, nil)
			f := &fake{n: n, id: peer, name: "A", addr: "10.228.1.2:9702"}
			f.redial("")
			hear := func(name string) []heard {
				b, _, _ := captured(t, name)
				n.step(Received{f.conn, b})
				return f.take()
			}
			if gen == "jxta22" {
				if g := hear("jxta22-peerview"); len(g) != 1 || g[0].find("PeerView.PeerAdv.Response") == nil {
					t.Fatalf("no answer to the probe: %s", describe(g))
				}
			}
			g := hear(gen + "-connect")
			if len(g) != 1 || g[0].find("ConnectedLease") == nil || (g[0].trailer != nil) != (gen == "jxse27") {
				t.Fatalf("no lease: %s", describe(g))
			}
			it := n.takeItems()
			check.True(check.Fatal(t), "an item of the peer", len(it) > 0)
			doc := string(it[0].Doc)
			check.Equal(t, "it[0].Kind", it[0].Kind, site.Endpoint)
			check.Lacks(t, "it[0].Doc", doc, "tcp://")
			check.Lacks(t, "it[0].Doc", doc, "RootCert")
			check.True(t, "len(it[0].Doc) <= 900", len(doc) <= 900, len(doc))
			for _, srdi := range map[string][]string{"jxse27": {"jxse27-srdi"}, "jxta22": {"jxta22-srdi-pipe"}}[gen] {
				hear(srdi)
				n.pass(pipeSettles)
				if it := n.takeItems(); len(it) != 1 || it[0].Kind != site.Listener {
					t.Errorf("%s: %+v", srdi, it)
				}
			}
			if g = hear(gen + "-query"); len(g) != 0 || n.b.Status().Questions != 1 {
				t.Errorf("a question without an answer: %s", describe(g))
			}
			hear(gen + "-publish")
			if it := n.takeItems(); len(it) != 1 || it[0].Kind != site.Document || !bytes.HasPrefix(it[0].Doc, []byte("<jxta:MSA ")) {
				t.Errorf("published %+v", it)
			}
			if g = hear(gen + "-pipe-query"); len(g) != 0 || n.b.Status().Questions != 2 {
				t.Errorf("pipe query: %s", describe(g))
			}
			hear(gen + "-wire")
			if n.b.Status().Held != 1 || n.b.propagation.held[0].message.From != peer || len(n.b.propagation.held[0].message.Parts) != 1 {
				t.Errorf("wire message %+v", n.b.propagation.held)
			}
			b, _, dest := captured(t, gen+"-unicast")
			n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Endpoint, Scope: jxta.NetGroup, Owner: dest, Doc: []byte("<jxta:PA/>")}})
			n.step(Received{f.conn, b})
			c := n.takeCarry()
			check.Equal(check.Fatal(t), "len(c)", len(c), 1)
			check.Equal(t, "c[0].Message.To", c[0].Message.To, dest)
			check.Equal(t, "c[0].Message.Service", c[0].Message.Service, "PipeService")
			check.Equal(t, "len(c[0].Message.Parts)", len(c[0].Message.Parts), 5)
			if g = hear(gen + "-relay"); len(g) > 1 {
				t.Errorf("relay: %s", describe(g))
			}
			if st := n.b.Stats(); st.BadMessages != 0 || len(st.Refused) != 0 {
				t.Errorf("refused %+v", st)
			}
		})
	}
}

func TestHostileMessages(t *testing.T) {
	n := newNode(t, 1)
	n.step(Received{99, []byte("no such connection")})
	n.step(Written{99, 1})
	n.step(Closed{99})
	n.step(Welcomed{99, jxta.Welcome{Peer: "urn:jxta:uuid-0103"}})
	n.conns++
	n.peers[n.conns] = &fake{n: n, conn: n.conns}
	n.step(Opened{Conn: n.conns, Remote: "10.9.9.9:1"})
	n.step(Received{n.conns, []byte("before the welcome")})
	for _, id := range []string{n.cfg.Identity.Peer, "jxta-NetGroup", pipe1, "nonsense"} {
		n.step(Welcomed{n.conns, jxta.Welcome{Dest: "x", Peer: jxta.URN(id)}})
		if len(n.closed) == 0 || n.b.outlets.conns[n.conns].peer != nil {
			t.Errorf("%s was taken for a peer", id)
		}
		n.closed = nil
	}
	f, g := n.peer("A", "cbid"), n.peer("B", "cbid")
	n.takeItems()
	deep := xmlElement("Connect", []byte(strings.Repeat("<a>", 10_000)))
	bomb := xmlElement("Connect", []byte(`<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]><lolz>&lol2;</lolz>`))
	lease := "EndpointService:jxta-NetGroup"
	param := jxta.URN(jxta.ClassRendezvous) + "/jxta-NetGroup"
	f.send(lease, param, deep)
	f.send(lease, param, bomb)
	f.send(lease, param, xmlElement("Connect", g.advertisement(jxta.NetGroup))) // in another's name
	f.send(lease, param, xmlElement("Connect", nil))
	spoof := jxta.RouterMessage{Src: g.id, Dest: jxta.Address{Scheme: "jxta", Host: n.cfg.Identity.Peer, Service: svcPropagate}, Last: g.id}
	f.send(lease, svcRouter, xmlElement(elRouter, spoof.Append(nil)))
	f.send("", "")
	f.send("EndpointService:jxta-NetGroup", "nobody/home")
	f.say(n.cfg.Identity.Peer, jxta.NetGroup, svcPropagate, jxta.NetGroup)
	f.propagate(jxta.NetGroup, svcWire, jxta.NetGroup)
	f.propagate(jxta.NetGroup, jxta.URN(jxta.ClassResolver), "x")
	for _, name := range []string{"ORes", "IRes", "Srdi"} {
		for _, doc := range []string{"", "<", "\x1f\x8b\x08", "<a/>", string(jxta.ResolverQuery{Handler: jxta.HandlerDiscovery, Src: f.id, Query: "<"}.Append(nil)),
			string(jxta.ResolverQuery{Handler: jxta.HandlerPipe, Src: g.id}.Append(nil)),
			string(jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, Response: "<"}.Append(nil)),
			string(jxta.ResolverSRDI{Handler: jxta.HandlerPipe, Payload: string(jxta.SRDI{Peer: g.id, Key: jxta.PipeTypePropagate}.Append(nil))}.Append(nil)),
			string(jxta.ResolverSRDI{Handler: jxta.HandlerPipe, Payload: string(jxta.SRDI{Peer: f.id, Key: "x"}.Append(nil))}.Append(nil))} {
			f.propagate(jxta.NetGroup, jxta.URN(jxta.ClassResolver), "x", xmlElement("jxta-NetGroup"+name, []byte(doc)))
		}
	}
	many := []byte("jxmg\x00\x00\x00")
	n.step(Received{f.conn, binary.BigEndian.AppendUint16(many, 65535)})
	n.step(Received{f.conn, nil})
	whole, _, _ := captured(t, "jxse27-connect")
	whole[len(whole)-1] ^= 1
	n.step(Received{f.conn, whole}) // signature wrong
	if len(n.takeItems()) != 0 || len(n.takeCarry()) != 0 {
		t.Error("something of it went on")
	}
	st := n.b.Stats()
	check.Equal(t, "st.BadMessages", st.BadMessages, 3)
	check.Equal(t, `st.Refused["lease"]`, st.Refused["lease"], 4)
	check.Equal(t, `st.Refused["address"]`, st.Refused["address"], 2)
	check.Equal(t, `st.Refused["service"]`, st.Refused["service"], 1)
	check.Differ(t, `st.Refused["query"]`, st.Refused["query"], 0)
	check.Differ(t, `st.Refused["response"]`, st.Refused["response"], 0)
	check.Differ(t, `st.Refused["srdi"]`, st.Refused["srdi"], 0)
	check.Equal(t, `st.Refused["wire"]`, st.Refused["wire"], 1)
	if warned := len(slices.DeleteFunc(n.notes, func(x site.Note) bool { return x.Level != "warn" })); warned > 5+4 {
		t.Errorf("%d warnings for one connection: a flood", warned)
	}
	f.take()
	g.silence("nothing of it reaches others")
	f.connect(jxta.NetGroup)
	f.one() // and the peer is served as before
}

// An id that is not a group's: there is no lease in it, no address in it is accepted, and nothing of it crosses the link.
func TestGroupThatIsNone(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "uuid")
	n.takeItems()
	for _, group := range []string{f.id, pipe1, "uuid-0105", "nonsense", "", strings.Repeat("uuid-", 1000)} {
		before := n.b.Stats()
		doc := jxta.AppendDocument(nil, jxta.PeerAdvertisement{Peer: f.id, Group: group, Name: "A"}.Node())
		f.send("EndpointService:jxta-NetGroup", jxta.URN(jxta.ClassRendezvous)+"/jxta-NetGroup", xmlElement("Connect", doc))
		f.connect(group)
		f.pipe(group, pipe1, jxta.PipeTypePropagate, true)
		f.wire(group, pipe1, "m-"+group, body("x"))
		f.publish(group, msa("x"), time.Hour)
		after := n.b.Stats()
		refused := 0
		for reason, count := range after.Refused {
			refused += int(count - before.Refused[reason])
		}
		if leases := len(n.b.outlets.peers[f.id].leases); leases != 1 || len(n.b.outlets.peers[f.id].pipes) != 0 || after.Grants != before.Grants {
			t.Errorf("%.40q: %d leases, %d grants", group, leases, after.Grants-before.Grants)
		}
		if it, c := n.takeItems(), n.takeCarry(); len(it)+len(c) != 0 {
			t.Errorf("%.40q: items %+v, carried %+v", group, it, c)
		}
		if group != "" && refused < 2 {
			t.Errorf("%.40q: %d refusals counted: %v", group, refused, after.Refused)
		}
	}
	f.take()
	f.connect(ops)
	if f.one(); len(n.b.outlets.peers[f.id].leases) != 2 {
		t.Error("a group that is one has no lease")
	}
}

func TestTablesAreBounded(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.MaxPeers, n.cfg.MaxPipes, n.cfg.MaxGroups, n.cfg.MaxQuestions, n.cfg.MaxFarItems, n.cfg.MaxAdverts = 5, 6, 3, 32, 10, 8
	n.b = New(n.cfg, nil)
	f := n.peer("A", "cbid")
	for i := range 20 {
		n.dial(fmt.Sprint("P", i), "cbid", "")
		f.pipe(jxta.NetGroup, fmt.Sprintf("uuid-%032X%032X04", 1, i+1), jxta.PipeTypeUnicast, true)
		f.connect(fmt.Sprintf("uuid-%032X02", i+1))
		f.discover(jxta.NetGroup, fmt.Sprint("name", i))
		f.discover(jxta.NetGroup, "same")
		f.publish(jxta.NetGroup, fmt.Sprintf("<x:A><Name>%d</Name></x:A>", i), time.Hour)
		n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Endpoint, Scope: jxta.NetGroup, Owner: peerName("cbid", 500+i), Doc: []byte("<x/>")}})
		n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Listener, Scope: jxta.NetGroup, Owner: peerName("cbid", 500+i), ID: pipe1, Sub: PipeUnicast}})
	}
	st := n.b.Status()
	check.Equal(check.Fatal(t), "len(st.Peers)", len(st.Peers), 5)
	check.True(t, "len(st.Peers[0].Pipes) <= 6", len(st.Peers[0].Pipes) <= 6, len(st.Peers[0].Pipes))
	check.Equal(t, "len(st.Groups)", len(st.Groups), 3)
	check.True(t, "st.Questions <= 4", st.Questions <= 4, st.Questions)
	check.Equal(t, "st.Adverts", st.Adverts, 8)
	check.Equal(t, "st.Far[2].Peers+st.Far[2].Pipes", st.Far[2].Peers+st.Far[2].Pipes, 10)
	s := n.b.Stats()
	check.Equal(t, `s.Refused["peers"]`, s.Refused["peers"], 16)
	check.Equal(t, `s.Refused["pipes"]`, s.Refused["pipes"], 14)
	check.Differ(t, `s.Refused["groups"]`, s.Refused["groups"], 0)
	check.Differ(t, `s.Refused["far_items"]`, s.Refused["far_items"], 0)
	if len(n.b.directory.sent) != 8 || len(n.memory) != 1+8 {
		t.Errorf("%d told, %d remembered", len(n.b.directory.sent), len(n.memory))
	}
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Document, Scope: jxta.NetGroup, ID: "uuid-0106", Doc: []byte("no XML")}})
	if n.b.Stats().Refused["far_advertisement"] != 1 {
		t.Error("a far advertisement that is none")
	}
}

// A peer that came, took a lease and left does not keep others out.
func TestPeersThatCameAndWent(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.MaxPeers = 5
	n.b = New(n.cfg, nil)
	stays := n.peer("stays", "cbid")
	for i := range 20 {
		n.pass(time.Second)
		n.peer(fmt.Sprint("P", i), "cbid").hangUp()
	}
	n.peer("new", "cbid")
	if st := n.b.Status(); len(st.Peers) != 5 || n.b.outlets.peers[stays.id] == nil || len(n.memory) != 5 {
		t.Errorf("%+v, %d remembered", st, len(n.memory))
	}
}

func TestIdentityOnDisk(t *testing.T) {
	id := identities()[1]
	got, err := ParseIdentity(id.Marshal())
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "got.Peer", got.Peer, id.Peer)
	check.True(t, "the key that was written", got.Key.Equal(id.Key))
	check.True(t, "the certificate that was written", bytes.Equal(got.Cert, id.Cert))
	if jxta.IDKind(id.Peer) != jxta.KindPeer || !strings.HasPrefix(id.Peer, "uuid-") {
		t.Errorf("peer id %s", id.Peer)
	}
	for _, bad := range [][]byte{nil, []byte("x"), id.Marshal()[:300], bytes.Replace(id.Marshal(), []byte("JXTA-Peer: uuid"), []byte("JXTA-Peer: x/"), 1)} {
		if _, err := ParseIdentity(bad); err == nil {
			t.Errorf("%.40q is no identity", bad)
		}
	}
	if _, err := NewIdentity(bytes.NewReader(nil)); err == nil {
		t.Error("no randomness, no error")
	}
}

// Whatever a peer sends, the bridge answers within its bounds, and only to peers of this site.
func FuzzReceived(f *testing.F) {
	files, err := filepath.Glob("../jxta/testdata/*.msg")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	_, peer, gateway := captured(f, "jxta22-connect")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	cfg := Config{Name: "gw", Address: "10.0.0.1:9701", Identity: identities()[1], MaxHeld: 10, MaxQuestions: 16, MaxAdverts: 10}
	cfg.Identity.Peer = gateway
	f.Fuzz(func(t *testing.T, body []byte) {
		b := New(cfg, nil)
		b.Step(t0, Opened{Conn: 1, Remote: "10.0.0.2:1"})
		b.Step(t0, Welcomed{1, jxta.Welcome{Dest: "tcp://10.0.0.1:9701", Public: "tcp://10.0.0.2:1", Peer: jxta.URN(peer), Version: "1.1"}})
		connect, _, _ := captured(t, "jxta22-connect")
		b.Step(t0, Received{1, connect})
		b.Step(t0, site.FarItem{Site: 2, Item: site.Item{Kind: site.Listener, Scope: jxta.NetGroup, Owner: peerName("cbid", 1), ID: pipe1, Sub: PipePropagate}})
		out := b.Step(t0, Received{1, body})
		for _, s := range check.Only[Send](out.Orders) {
			if _, _, err := jxta.ParseMessage(s.Body, jxta.DefaultLimits); s.Conn != 1 || err != nil {
				t.Errorf("sent %d %q: %v", s.Conn, s.Body, err)
			}
		}
		for _, c := range out.Carry {
			for _, siteID := range c.Sites {
				if siteID != 2 {
					t.Errorf("carry to %d", siteID)
				}
			}
		}
		b.Step(t0.Add(time.Hour), nil)
	})
}

func BenchmarkDiscoveryQuery(b *testing.B) {
	t := &testing.T{}
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	for i := range 5000 {
		n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Document, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, ID: fmt.Sprintf("uuid-%032X%032X06", 1, i+1),
			Doc: []byte(fmt.Sprintf("<x:A><Name>service %d</Name></x:A>", i)), Expires: t0.Add(24 * time.Hour)}})
		f.take()
	}
	b.ResetTimer()
	for b.Loop() {
		f.discover(jxta.NetGroup, "service 4999")
		if len(f.take()) != 1 {
			b.Fatal("no answer")
		}
	}
}
