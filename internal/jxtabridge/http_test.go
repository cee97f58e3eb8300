package jxtabridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// poll opens a back channel, with the events of internal/edge/lan.
func (f *fake) poll(dest string) site.ConnID {
	f.n.Helper()
	f.n.conns++
	id := f.n.conns
	f.n.peers[id] = f
	f.conn, f.gone = id, false
	f.n.step(Opened{Conn: id, Remote: f.addr, HTTP: true})
	f.n.step(Welcomed{id, jxta.Welcome{Dest: dest, Public: "http://" + f.addr, Peer: jxta.URN(f.id), Version: "1.1"}})
	return id
}

func httpNode(t *testing.T) (*node, *fake, string) {
	n := newNode(t, 1)
	n.cfg.HTTP = "10.0.1.1:9700"
	n.b = New(n.cfg, nil)
	peerNumber++
	f := &fake{n: n, name: "A", addr: fmt.Sprintf("10.9.1.%d:40000", peerNumber), signed: true, signer: signerOf(peerNumber)}
	f.id = f.signer.Peer
	n.secret = append(n.secret, f.addr)
	return n, f, "http://" + n.cfg.HTTP + "/EndpointService:jxta-NetGroup/" + jxta.ClassRelay + "/connect,3600000,keep,true"
}

func TestPollIsRelayConnection(t *testing.T) {
	n, f, relay := httpNode(t)
	f.poll(relay)
	if f.greeted != (jxta.Welcome{}) {
		t.Errorf("a welcome line over HTTP: %+v", f.greeted)
	}
	h := f.one()
	check.Equal(t, "relay:response", string(h.find("relay:response")), "connected")
	check.Equal(t, "h.dest.Scheme", h.dest.Scheme, "http")
	check.Equal(t, "h.dest.Host", h.dest.Host, f.addr)
	check.True(t, "a signed relay answer", h.trailer != nil)
	f.connect(jxta.NetGroup)
	h = f.one()
	want := []string{"tcp://" + n.cfg.Address, "http://" + n.cfg.HTTP}
	if h.erm.Route == nil || !slices.Equal(h.erm.Route.Access.Addresses, want) {
		t.Errorf("route %+v, want %q", h.erm.Route, want)
	}
	// Only HTTP is served: nothing else is handed out.
	n.cfg.Address = ""
	n.b = New(n.cfg, nil)
	f.poll(relay)
	f.take()
	f.connect(jxta.NetGroup)
	if h = f.one(); !slices.Equal(h.erm.Route.Access.Addresses, want[1:]) {
		t.Errorf("route %+v, want %q", h.erm.Route, want[1:])
	}
}

// Two polls are open, and the newest carries; messages that it did not write go to the older, and messages that none can write wait for
// the next. Meanwhile the peer's own messages are heard.
func TestTwoPollsAndThenNone(t *testing.T) {
	n, f, relay := httpNode(t)
	first := f.poll(relay)
	second := f.poll("http://" + n.cfg.HTTP)
	f.connect(jxta.NetGroup)
	f.take()
	var carrier []site.ConnID
	deliver := func(s string) {
		n.Helper()
		from := peerName("cbid", 7777)
		n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Endpoint, Scope: jxta.NetGroup, Owner: from, Doc: reducePeer(mustXML(t, f.advertisement(jxta.NetGroup)))}})
		out := n.step(site.FarMessage{Site: 2, Token: uint64(len(carrier) + 1), Message: site.Message{Scope: jxta.NetGroup, From: from, To: f.id, Service: "PipeService", Param: jxta.URN(pipe1), Parts: []jxta.Element{body(s)}}})
		for _, s := range check.Only[Send](out.Orders) {
			carrier = append(carrier, s.Conn)
		}
		n.now = n.now.Add(n.b.cfg.Pace * 16)
	}
	deliver("one")
	n.stuck = true
	deliver("two")
	if !slices.Equal(carrier, []site.ConnID{second, second}) || !slices.Equal(f.bodies(), []string{"one", "two"}) {
		t.Errorf("carried by %v, want the newest, %d", carrier, second)
	}
	n.step(Closed{second}) // "two" was not written
	n.pass(n.b.cfg.Pace * 15)
	if got := f.bodies(); !slices.Equal(got, []string{"two"}) {
		t.Errorf("after the newest ended the older carries %q, want two", got)
	}
	n.step(Quiet{first})
	deliver("three")
	f.conn = first
	f.connect(jxta.NetGroup)
	f.silence("nothing can be written")
	if len(n.done) != 1 {
		t.Errorf("done %v, want only the first", n.done)
	}
	n.stuck = false
	n.pass(n.b.cfg.Pace * 30)
	f.poll(relay)
	n.step(Closed{first})
	n.pass(n.b.cfg.Pace * 60)
	g := f.take()
	var bodies []string
	granted := false
	for _, h := range g {
		if d := h.find("trk:body"); d != nil {
			bodies = append(bodies, string(d))
		}
		granted = granted || h.find("ConnectedLease") != nil
	}
	in := check.In(t, "what the next poll brings")
	check.True(check.Fatal(in), "any message", len(g) > 0)
	check.Equal(in, "relay:response of the first", string(g[0].find("relay:response")), "connected")
	check.True(in, "the lease", granted)
	check.Same(in, "bodies", bodies, []string{"two", "three"})
	if !slices.Equal(n.done, []uint64{1, 2, 3}) || n.b.Status().Peers[0].Connections != 1 {
		t.Errorf("done %v, status %+v", n.done, n.b.Status())
	}
}

// A message of a peer that has no poll yet, or of somebody who claims to be that peer, gets no messages sent to it.
func TestQuietFromTheBeginning(t *testing.T) {
	n, f, relay := httpNode(t)
	poll := f.poll(relay)
	f.take()
	n.conns++
	stranger := n.conns
	at := strings.Replace(f.addr, ":40000", ":1", 1)
	n.step(Opened{Conn: stranger, Remote: at, HTTP: true})
	n.step(Quiet{stranger})
	n.step(Welcomed{stranger, jxta.Welcome{Dest: "http://" + n.cfg.HTTP, Public: "http://" + at, Peer: jxta.URN(f.id), Version: "1.1"}})
	f.conn = stranger
	f.connect(jxta.NetGroup)
	f.one()
	if c := n.b.outlets.peers[f.id]; len(c.conns) != 2 || c.out == nil || c.out.id != poll {
		t.Errorf("answered over %+v, want the poll %d", c.out, poll)
	}
	n.step(Quiet{12345})
	n.step(Closed{12345})
}

// A relay renewal that comes between two polls is answered by the next.
func TestRenewalBetweenPolls(t *testing.T) {
	n, f, relay := httpNode(t)
	first := f.poll(relay)
	f.take()
	n.step(Quiet{first})
	service, param := jxta.Mangle(jxta.NetGroup, jxta.ClassRelay, f.id)
	f.send(service, param, jxta.Element{Namespace: "relay", Name: "request", Type: mimeText, Data: []byte("connect,3600000,keep,other")})
	f.silence("no poll is open")
	f.poll("http://" + n.cfg.HTTP)
	if h := f.one(); string(h.find("relay:response")) != "connected" {
		t.Errorf("renewal %q", h.body)
	}
}

func mustXML(t *testing.T, doc []byte) *jxta.Node {
	t.Helper()
	n, err := jxta.ParseXML(doc, jxta.DefaultXML)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
