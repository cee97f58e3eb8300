package jxtabridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

const mcastGroup = "224.0.1.85:1234"

func etherNode(t *testing.T) *node {
	n := newNode(t, 1)
	n.cfg.Multicast = mcastGroup
	n.cfg.Lease = 24 * time.Hour
	n.b = New(n.cfg, nil)
	return n
}

// datagram is a message that a peer of that id sends to everybody.
func datagram(t *testing.T, id, group, service, param string, elements ...jxta.Element) []byte {
	t.Helper()
	outer, outerParam := jxta.Mangle(group, service, param)
	d := jxta.Address{Scheme: "mcast", Host: mcastGroup, Service: outer, Param: outerParam}
	body, err := jxta.AppendMessage(nil, jxta.Message{Elements: append(elements, text(elHeaderSrc, jxta.URN(id)),
		text(elSource, jxta.PeerAddress(id)), text(elDestination, d.String()))})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func (n *node) hear(b []byte) site.Output { return n.step(Heard{"10.9.1.7:1234", b}) }

var etherMessage int

// everybody is a propagated message by multicast.
func everybody(t *testing.T, id, group, service, param string, elements ...jxta.Element) []byte {
	etherMessage++
	h := jxta.Propagate{MessageID: fmt.Sprintf("ether-%d", etherMessage), Service: service, Param: param, TTL: 2, Path: []string{id}}
	return datagram(t, id, group, svcPropagate, group, append(elements, xmlElement(elPropagate+group, h.Append(nil)))...)
}

func asked(id string, number int, q jxta.DiscoveryQuery) jxta.Element {
	rq := jxta.ResolverQuery{Handler: jxta.HandlerDiscovery, QueryID: number, Src: id, Query: string(q.Append(nil))}
	return xmlElement(jxta.NetGroup+"ORes", rq.Append(nil))
}

func published(doc string) jxta.Element {
	d := jxta.DiscoveryResponse{Type: jxta.TypeAdv, Found: []jxta.Found{{Life: time.Hour, Doc: doc}}}
	r := jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, Response: string(d.Append(nil))}
	return xmlElement(jxta.NetGroup+"IRes", r.Append(nil))
}

func wired(id, msgID string) []jxta.Element {
	w := jxta.WireHeader{Src: id, Pipe: pipe1, MsgID: msgID, TTL: 200}
	return []jxta.Element{body("news"), xmlElement(elWire, w.Append(nil))}
}

var ores, ires = jxta.NetGroup + "ORes", jxta.NetGroup + "IRes"

// shouted reads the datagrams of an output like a signed 2.7 peer, which checks the trailer.
func (n *node) shouted(out site.Output) (ms []jxta.Message) {
	n.Helper()
	for _, s := range check.Only[Shout](out.Orders) {
		m, rest, err := jxta.ParseMessage(s.Body, jxta.DefaultLimits)
		if err != nil {
			n.Fatal(err)
		}
		t, err := jxta.ParseTrailer(rest)
		if err == nil {
			err = t.Verify(s.Body[:s.Message])
		}
		if err != nil || t.Source != jxta.URN(n.cfg.Identity.Peer) {
			n.Errorf("trailer of %s: %v", t.Source, err)
		}
		ms = append(ms, m)
	}
	return ms
}

// A stranger's question is answered by multicast from the known far advertisements, with the question's own number.
func TestStrangerIsAnsweredByMulticast(t *testing.T) {
	n := etherNode(t)
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Document, Scope: jxta.NetGroup, Owner: peerName("cbid", 900), ID: "h-1", Sub: jxta.TypeAdv,
		Doc: []byte(msa("far-svc")), Expires: n.now.Add(time.Hour)}})
	id := peerName("uuid", 901)
	out := n.hear(everybody(t, id, jxta.NetGroup, jxta.URN(jxta.ClassResolver), ores, asked(id, 77, jxta.DiscoveryQuery{Type: jxta.TypeAdv, Threshold: 5, Attr: "Name", Value: "far-svc"})))
	ms := n.shouted(out)
	if len(ms) != 1 || len(check.Only[Send](out.Orders)) != 0 {
		t.Fatalf("%d datagrams, %d messages", len(ms), len(check.Only[Send](out.Orders)))
	}
	r, err := jxta.ParseResolverResponse(ms[0].Find("jxta", ires).Data)
	if err != nil || r.QueryID != 77 || !strings.Contains(r.Response, "far-svc") {
		t.Errorf("%+v, %v", r, err)
	}
	h, err := jxta.ParsePropagate(ms[0].Find("jxta", elPropagate+jxta.NetGroup).Data)
	if err != nil || h.TTL != 1 || h.Param != ires {
		t.Errorf("%+v, %v", h, err)
	}
	if e := ms[0].Find("jxta", elHeaderSrc); e == nil || string(e.Data) != jxta.URN(n.cfg.Identity.Peer) {
		t.Error("receivers cannot know their own datagrams")
	}
	// A question without an answer is not remembered; the far sites are asked once, as for a peer with a lease.
	out = n.hear(everybody(t, id, jxta.NetGroup, jxta.URN(jxta.ClassResolver), ores, asked(id, 78, jxta.DiscoveryQuery{Type: jxta.TypeAdv, Threshold: 5, Attr: "Name", Value: "none"})))
	if len(check.Only[Shout](out.Orders)) != 0 || n.b.Status().Questions != 0 || len(n.takeCarry()) != 0 {
		t.Errorf("%+v", out)
	}
	// A peer that looks for a rendezvous finds the gateway, by discovery (2.7) and by a probe (2.2).
	service := jxta.URN(jxta.ClassRendezvous) + jxta.NetGroup
	out = n.hear(everybody(t, id, jxta.NetGroup, jxta.URN(jxta.ClassResolver), ores, asked(id, 79, jxta.DiscoveryQuery{Type: jxta.TypeAdv, Threshold: 3, Attr: "RdvServiceName", Value: service})))
	if ms = n.shouted(out); len(ms) != 1 || !strings.Contains(string(ms[0].Find("jxta", ires).Data), n.cfg.Address) {
		t.Errorf("no rendezvous: %+v", ms)
	}
	probe := xmlElement("PeerView.PeerAdv", jxta.AppendDocument(nil, jxta.RdvAdvertisement{Group: jxta.NetGroup, Peer: id, ServiceName: service, Name: "x",
		Route: &jxta.Route{Dest: id, Access: jxta.AccessPoint{Peer: id}}}.Node()))
	out = n.hear(datagram(t, id, jxta.NetGroup, svcPeerView, jxta.NetGroup, probe))
	if ms = n.shouted(out); len(ms) != 1 || ms[0].Find("jxta", "PeerView.PeerAdv.Response") == nil {
		t.Errorf("no answer to the probe: %+v", ms)
	}
	// Answers to one stranger, and to all, are bounded.
	answers := 0
	for i := range 1000 {
		who := id
		if i >= 500 {
			who = peerName("uuid", 1000+i)
		}
		answers += len(check.Only[Shout](n.hear(datagram(t, who, jxta.NetGroup, svcPeerView, jxta.NetGroup, probe)).Orders))
	}
	if answers > shoutBurst {
		t.Errorf("%d answers at once", answers)
	}
	if len(n.b.multicast.strangers) > maxStrangers || n.b.stats.Refused["multicast_strangers"] == 0 {
		t.Errorf("%d strangers", len(n.b.multicast.strangers))
	}
	n.pass(strangerStays + time.Second)
	if out = n.hear(datagram(t, peerName("uuid", 5000), jxta.NetGroup, svcPeerView, jxta.NetGroup, probe)); len(check.Only[Shout](out.Orders)) != 1 {
		t.Error("the gone still keep others out")
	}
}

// A message that comes by multicast and over the connection is one message, whichever comes first, and the gateway's own
// datagrams and those of the platform's world group do not count.
func TestMulticastAndConnectionAreOneMessage(t *testing.T) {
	n := etherNode(t)
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Listener, Scope: jxta.NetGroup, Owner: peerName("cbid", 900), ID: pipe1, Sub: PipePropagate}})
	a, other := n.peer("A", "uuid"), n.peer("B", "uuid")
	n.takeItems()
	n.hear(everybody(t, a.id, jxta.NetGroup, svcWire, jxta.NetGroup, wired(a.id, "m1")...)) // the copy comes first
	if c := n.takeCarry(); len(c) != 0 {
		t.Errorf("the copy of a leased peer's message is carried: %+v", c)
	}
	a.wire(jxta.NetGroup, pipe1, "m1", body("news"))
	n.hear(everybody(t, a.id, jxta.NetGroup, svcWire, jxta.NetGroup, wired(a.id, "m1")...))
	if c := n.takeCarry(); len(c) != 1 {
		t.Errorf("carried %d times", len(c))
	}
	if got := other.bodies(); len(got) != 1 {
		t.Errorf("the other local peer heard %q", got)
	}
	if n.b.stats.MulticastCopies != 2 {
		t.Errorf("%d copies", n.b.stats.MulticastCopies)
	}
	// A stranger that dials in without a lease also sends it both ways.
	s := n.dial("S", "uuid", "")
	n.hear(everybody(t, s.id, jxta.NetGroup, svcWire, jxta.NetGroup, wired(s.id, "m2")...))
	s.wire(jxta.NetGroup, pipe1, "m2", body("news"))
	if c := n.takeCarry(); len(c) != 1 {
		t.Errorf("a stranger's message was carried %d times", len(c))
	}
	// It has no lease: others' messages go to it by multicast, once, and its own messages do not come back.
	other.take()
	other.wire(jxta.NetGroup, pipe1, "m3", body("more"))
	if n.b.stats.MulticastSent != 1 {
		t.Errorf("%d datagrams", n.b.stats.MulticastSent)
	}
	own := n.step(site.FarMessage{Site: 2, Token: 5, Message: site.Message{Published: true, Scope: jxta.NetGroup, Topic: pipe1, From: peerName("cbid", 900), ID: "m4", Parts: []jxta.Element{body("far")}}})
	if len(check.Only[Shout](own.Orders)) != 1 {
		t.Fatalf("%d datagrams of a far message", len(check.Only[Shout](own.Orders)))
	}
	n.takeCarry()
	before := n.b.stats
	if out := n.hear(check.Only[Shout](own.Orders)[0].Body); len(out.Orders)+len(out.Carry) != 0 || n.b.stats.WireIn != before.WireIn {
		t.Errorf("its own datagram: %+v", out)
	}
	n.hear(datagram(t, s.id, jxta.NetGroup, svcPropagate, worldGroup))
	if n.b.stats.BadMessages != 0 || n.b.stats.Refused["multicast_service"] != 0 {
		t.Errorf("%+v", n.b.stats)
	}
}

// Forged datagrams change nothing for a leased peer, spend little of the link, and take bounded memory.
func TestForgedMulticast(t *testing.T) {
	n := etherNode(t)
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Listener, Scope: jxta.NetGroup, Owner: peerName("cbid", 900), ID: pipe1, Sub: PipePropagate}})
	a, signed := n.peer("A", "uuid"), n.peer("S", "cbid")
	signed.pipe(jxta.NetGroup, pipe2, jxta.PipeTypePropagate, true) // its format is known
	a.publish(jxta.NetGroup, msa("svc"), time.Hour)
	n.pass(time.Minute)
	n.takeItems()
	state := func() string { return fmt.Sprintf("%+v", n.b.Items()) }
	before := state()
	srdi := jxta.ResolverSRDI{Handler: jxta.HandlerPipe, Payload: string(jxta.SRDI{Peer: a.id, Key: jxta.PipeTypePropagate, TTL: 1,
		Entries: []jxta.SRDIEntry{{Key: "Id", Value: jxta.URN(pipe1), Life: jxta.MaxLife}}}.Append(nil))}
	changed := strings.Replace(msa("svc"), "<Name>", "<Desc>\n\t\tforged\n\t</Desc>\n\t<Name>", 1)
	resolver := jxta.URN(jxta.ClassResolver)
	for _, tt := range []struct {
		name string
		body []byte
	}{
		{"a leased peer's advertisement, in its name", everybody(t, a.id, jxta.NetGroup, resolver, ires, published(changed))},
		{"the same in a stranger's name", everybody(t, peerName("uuid", 902), jxta.NetGroup, resolver, ires, published(changed))},
		{"its pipes", everybody(t, a.id, jxta.NetGroup, resolver, jxta.NetGroup+"Srdi", xmlElement(jxta.NetGroup+"Srdi", srdi.Append(nil)))},
		{"its end", datagram(t, a.id, jxta.NetGroup, jxta.URN(jxta.ClassRendezvous), jxta.NetGroup, xmlElement("Disconnect", a.advertisement(jxta.NetGroup)))},
		{"a lease", datagram(t, peerName("uuid", 903), jxta.NetGroup, jxta.URN(jxta.ClassRendezvous), jxta.NetGroup, xmlElement("Connect", a.advertisement(jxta.NetGroup)))},
		{"a signed peer without a trailer", everybody(t, signed.id, jxta.NetGroup, svcWire, jxta.NetGroup, wired(signed.id, "f1")...)},
		{"routed", datagram(t, peerName("uuid", 904), jxta.NetGroup, svcPropagate, jxta.NetGroup, xmlElement(elRouter,
			jxta.RouterMessage{Src: a.id, Dest: jxta.Address{Scheme: "jxta", Host: n.cfg.Identity.Peer, Service: svcPropagate}, Last: a.id}.Append(nil)))},
		{"in the gateway's name", everybody(t, n.cfg.Identity.Peer, jxta.NetGroup, resolver, ires, published(msa("mine")))},
		{"no message", []byte("jxmg\x00\xff\xff")},
		{"nobody's", func() []byte { b, _ := jxta.AppendMessage(nil, jxta.Message{}); return b }()},
		{"a group that is none", everybody(t, peerName("uuid", 905), peerName("uuid", 1), svcWire, peerName("uuid", 1), wired(peerName("uuid", 905), "f2")...)},
	} {
		n.hear(tt.body)
		if after := state(); after != before {
			t.Errorf("%s: state was\n%s\nand is\n%s", tt.name, before, after)
		}
		if c := n.takeCarry(); len(c) != 0 {
			t.Errorf("%s: carried %+v", tt.name, c)
		}
	}
	for _, reason := range []string{"multicast_state", "multicast_service", "multicast_forged", "multicast_message", "multicast_source", "multicast_address"} {
		if n.b.stats.Refused[reason] == 0 {
			t.Errorf("%s was not counted: %v", reason, n.b.stats.Refused)
		}
	}
	// A trailer must be made with the peer's own key: this one is made with another.
	id := identities()[3]
	forged, err := jxta.SignMessage(everybody(t, peerName("cbid", 906), jxta.NetGroup, svcWire, jxta.NetGroup, wired(peerName("cbid", 906), "f3")...), id.Key, id.Cert, jxta.URN(peerName("cbid", 906)))
	if err != nil {
		t.Fatal(err)
	}
	count := n.b.stats.Refused["multicast_forged"]
	if n.hear(forged); n.b.stats.Refused["multicast_forged"] != count+1 {
		t.Error("a trailer made with another key is believed")
	}
	// A flood of questions: far sites get few of them.
	for i := range 5000 {
		who := peerName("uuid", 20000+i%200)
		n.hear(everybody(t, who, jxta.NetGroup, resolver, ores, asked(who, i, jxta.DiscoveryQuery{Type: jxta.TypeAdv, Threshold: 5, Attr: "Name", Value: fmt.Sprint("no", i)})))
	}
	if asks := len(n.b.directory.asking) + len(n.b.directory.asked); asks > carriesBurst || len(n.takeItems()) > carriesBurst {
		t.Errorf("far sites are asked %d questions of strangers", asks)
	}
	n.pass(time.Minute)
	if items := len(n.takeItems()); items > carriesBurst {
		t.Errorf("far sites are told of %d questions of strangers", items)
	}
	// A flood in one second, each datagram of a new peer, with a new message and a new advertisement.
	for i := range 5000 {
		who := peerName("uuid", 10000+i%200)
		n.hear(everybody(t, who, jxta.NetGroup, svcWire, jxta.NetGroup, wired(who, fmt.Sprint("flood", i))...))
		n.hear(everybody(t, who, jxta.NetGroup, resolver, ires, published(msa(fmt.Sprint(string(rune('a'+i%26)), strings.Repeat("x", i%1000))))))
	}
	if c, items := len(n.takeCarry()), len(n.takeItems()); c+items > carriesBurst {
		t.Errorf("a flood sent %d messages and %d advertisements over the link", c, items)
	}
	if n.b.multicast.overheard.Len() > maxOverheard || len(n.b.multicast.adverts) > maxOverheard || len(n.b.multicast.strangers) > maxStrangers {
		t.Errorf("%d message ids, %d adverts, %d strangers", n.b.multicast.overheard.Len(), len(n.b.multicast.adverts), len(n.b.multicast.strangers))
	}
	// And the leased peer is served as before: nobody has made its messages look old.
	a.wire(jxta.NetGroup, pipe1, "flood1", body("news"))
	if c := n.takeCarry(); len(c) != 1 {
		t.Errorf("a leased peer's message was carried %d times after the flood", len(c))
	}
}
