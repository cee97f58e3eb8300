package jxtabridge

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

var t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var identities = sync.OnceValue(func() (ids [4]Identity) {
	for i := range ids {
		id, err := NewIdentity(rand.Reader)
		if err != nil {
			panic(err)
		}
		ids[i] = id
	}
	return ids
})

// node is one gateway's bridge with fake peers in front of it and a link that the test controls.
type node struct {
	*testing.T
	b     *Bridge
	cfg   Config
	now   time.Time
	site  uint16
	conns site.ConnID
	peers map[site.ConnID]*fake
	wake  time.Time

	memory map[string][]byte
	items  []site.Item
	carry  []site.Carry
	done   []uint64
	lost   []site.Undelivered
	ended  []uint64 // done or lost
	notes  []site.Note
	closed []site.ConnID
	gated  []Gate
	stuck  bool // sockets swallow nothing: no Written
	secret []string
	record func(Received) // is given each message on a connection; nil: none
}

func newNode(t *testing.T, siteID uint16) *node {
	n := &node{T: t, site: siteID, now: t0, peers: map[site.ConnID]*fake{}, memory: map[string][]byte{}}
	n.cfg = Config{Site: siteID, Name: fmt.Sprintf("gw%d", siteID), Address: fmt.Sprintf("10.0.%d.1:9701", siteID), Identity: identities()[siteID]}
	n.b = New(n.cfg, nil)
	return n
}

// patient is newNode with leases that outlast the test.
func patient(t *testing.T, siteID uint16) *node {
	n := newNode(t, siteID)
	n.cfg.Lease = 24 * time.Hour
	n.b = New(n.cfg, nil)
	return n
}

// step gives the bridge an event and carries out its orders; fake peers read at once.
func (n *node) step(ev site.Event) site.Output {
	n.Helper()
	if r, ok := ev.(Received); ok && n.record != nil {
		n.record(r)
	}
	out := n.b.Step(n.now, ev)
	n.wake = out.Deadline
	for _, m := range out.Remember {
		if n.memory[m.Key] = m.Value; len(m.Value) == 0 {
			delete(n.memory, m.Key)
		}
	}
	n.items = append(n.items, out.Items...)
	n.carry = append(n.carry, out.Carry...)
	n.done = append(n.done, out.Done...)
	n.lost = append(n.lost, out.Undelivered...)
	n.ended = append(n.ended, out.Done...)
	for _, u := range out.Undelivered {
		n.ended = append(n.ended, u.Token)
	}
	n.notes = append(n.notes, out.Notes...)
	for _, c := range check.Only[Close](out.Orders) {
		n.closed = append(n.closed, c.Conn)
	}
	n.gated = append(n.gated, check.Only[Gate](out.Orders)...)
	for _, w := range check.Only[Welcome](out.Orders) {
		n.peers[w.Conn].greeted = w.Line
	}
	for _, s := range check.Only[Send](out.Orders) {
		f := n.peers[s.Conn]
		for _, addr := range n.secret {
			if bytes.Contains(s.Body, []byte(addr)) && !strings.HasPrefix(addr, f.addr) {
				n.Errorf("%s is told the address %s of another peer: %q", f.id, addr, s.Body)
			}
		}
		if s.Confirms != (bytes.Contains(s.Body, []byte(mimeAck)) || bytes.Contains(s.Body, []byte(mimeTLSAck))) {
			n.Errorf("to %s: confirms something: %t: %q", f.id, s.Confirms, s.Body)
		}
		f.read(s.Body)
	}
	if !n.stuck {
		for _, s := range check.Only[Send](out.Orders) {
			n.step(Written{s.Conn, s.Token})
		}
	}
	return out
}

// pass lets time go by, waking the bridge when it asked for it.
func (n *node) pass(d time.Duration) {
	n.Helper()
	end := n.now.Add(d)
	for !n.wake.IsZero() && !n.wake.After(end) {
		n.now = n.wake
		before := n.wake
		n.step(nil)
		if n.wake.Equal(before) {
			n.Fatalf("asks to be woken at %v again and again", before)
		}
	}
	n.now = end
}

func (n *node) restart() {
	var ms []site.Memory
	for k, v := range n.memory {
		ms = append(ms, site.Memory{Key: k, Value: v})
	}
	n.b = New(n.cfg, ms)
	for _, f := range n.peers {
		f.gone = true
	}
}

// takeItems empties the list of items.
func (n *node) takeItems() []site.Item {
	it := n.items
	n.items = nil
	return it
}

func (n *node) takeCarry() []site.Carry {
	c := n.carry
	n.carry = nil
	return c
}

// join connects two nodes: items and payloads of one go to the other until nothing moves.
func join(a, b *node) {
	token := uint64(0)
	for len(a.items)+len(b.items)+len(a.carry)+len(b.carry) > 0 {
		for _, x := range [][2]*node{{a, b}, {b, a}} {
			for _, it := range x[0].takeItems() {
				if !it.Home || slices.Contains(it.To, x[1].site) {
					x[1].step(site.FarItem{Site: x[0].site, Item: it})
				}
			}
			for _, c := range x[0].takeCarry() {
				token++
				pl := c.Message
				if pl.ID != "" {
					pl.ID = fmt.Sprintf("00000000-0000-4000-8000-%012x", token)
				}
				x[1].step(site.FarMessage{Site: x[0].site, Token: token, Message: pl})
			}
		}
	}
}

// fake is a JXTA peer that the references describe, on one connection.
type fake struct {
	n       *node
	conn    site.ConnID
	id      string
	name    string
	addr    string
	signed  bool
	signer  Identity // of a signed one: its id is made of the certificate
	greeted jxta.Welcome
	gone    bool
	dead    bool // its machine is gone, and its connection still open
	got     []heard
	qid     int
	msg     int
}

// heard is one message at a peer's endpoint.
type heard struct {
	body     []byte
	source   string
	dest     jxta.Address // outer
	erm      *jxta.RouterMessage
	elements []jxta.Element
	trailer  *jxta.Trailer
}

func (h heard) find(name string) []byte {
	for _, e := range h.elements {
		if e.Namespace == "jxta" && e.Name == name || e.Namespace+":"+e.Name == name {
			return e.Data
		}
	}
	return nil
}

var peerNumber int

var signers = map[int]Identity{}

// signerOf is the identity of a signed peer: its id is made of its certificate (wire 1.3). All have one modulus, each an exponent
// of its own, because a new modulus takes long to find.
func signerOf(n int) Identity {
	if id, ok := signers[n]; ok {
		return id
	}
	base := identities()[3].Key
	one := big.NewInt(1)
	phi := big.NewInt(1)
	for _, p := range base.Primes {
		phi.Mul(phi, new(big.Int).Sub(p, one))
	}
	e := int64(65537 + 2*len(signers))
	for ; new(big.Int).GCD(nil, nil, big.NewInt(e), phi).Cmp(one) != 0 || used[e]; e += 2 {
	}
	used[e] = true
	key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: base.N, E: int(e)}, D: new(big.Int).ModInverse(big.NewInt(e), phi), Primes: base.Primes}
	key.Precompute()
	template := &x509.Certificate{SerialNumber: big.NewInt(e)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	peer, err := jxta.CertPeer(cert)
	if err != nil {
		panic(err)
	}
	signers[n] = Identity{peer, key, cert}
	return signers[n]
}

var used = map[int64]bool{}

func peerName(format string, n int) string {
	return fmt.Sprintf("%s-59616261646162614A78746150325033%032X03", format, n*0x1000+1)
}

// dial opens a connection and exchanges welcomes.
func (n *node) dial(name, format string, dest string) *fake {
	n.Helper()
	peerNumber++
	f := &fake{n: n, name: name, id: peerName(format, peerNumber), addr: fmt.Sprintf("10.9.%d.%d:9702", n.site, peerNumber), signed: format == "cbid"}
	if f.signed {
		f.signer = signerOf(peerNumber)
		f.id = f.signer.Peer
	}
	n.secret = append(n.secret, f.addr)
	f.redial(dest)
	return f
}

func (f *fake) redial(dest string) {
	f.n.Helper()
	f.n.conns++
	f.conn, f.gone = f.n.conns, false
	f.n.peers[f.conn] = f
	if dest == "" {
		dest = "tcp://" + f.n.cfg.Address
	}
	f.n.step(Opened{Conn: f.conn, Remote: f.addr})
	f.n.step(Welcomed{f.conn, jxta.Welcome{Dest: dest, Public: "tcp://" + f.addr, Peer: jxta.URN(f.id), Version: "1.1"}})
}

func (f *fake) hangUp() {
	f.n.Helper()
	f.gone = true
	f.n.step(Closed{f.conn})
}

// peer is dial and a lease in the net peer group.
func (n *node) peer(name, format string) *fake {
	n.Helper()
	f := n.dial(name, format, "")
	f.connect(jxta.NetGroup)
	f.got = nil
	return f
}

func (f *fake) read(body []byte) {
	t := f.n.T
	t.Helper()
	if f.gone {
		t.Errorf("%s: message on a closed connection", f.name)
	}
	m, rest, err := jxta.ParseMessage(body, jxta.DefaultLimits)
	if err != nil {
		t.Fatalf("%s cannot read: %v", f.name, err)
	}
	h := heard{body: body}
	if len(rest) > 0 {
		tr, err := jxta.ParseTrailer(rest)
		if err == nil {
			err = tr.Verify(body[:len(body)-len(rest)])
		}
		if err != nil {
			t.Errorf("%s: trailer: %v", f.name, err)
		}
		h.trailer = &tr
	}
	for _, e := range m.Elements {
		switch e.Name {
		case elSource:
			h.source = string(e.Data)
		case elDestination:
			if h.dest, err = jxta.ParseAddress(string(e.Data)); err != nil {
				t.Error(err)
			}
		case elRouter:
			r, err := jxta.ParseRouterMessage(e.Data)
			if err != nil {
				t.Errorf("%s: %v: %s", f.name, err, e.Data)
			}
			h.erm = &r
		case elFingerprint:
			t.Errorf("%s: a fingerprint", f.name)
		default:
			h.elements = append(h.elements, e)
		}
	}
	// Demands of an unmodified signed 2.7 peer (wire 0.1 to 0.3, ghosts 6.3).
	in, source := check.In(t, "what", f.name, "hears"), strings.TrimPrefix(h.source, "jxta://")
	if h.trailer != nil {
		check.Equal(in, "h.trailer.Source, which a peer holds against address spoofing,", h.trailer.Source, "urn:jxta:"+source)
	}
	if h.trailer != nil && h.erm != nil {
		check.Equal(in, "h.erm.Src, which a peer holds against address spoofing,", h.erm.Src, source)
	}
	if h.erm != nil {
		me := f.n.cfg.Identity.Peer
		check.Equal(in, "h.erm.Dest.Host", h.erm.Dest.Host, f.id)
		check.Equal(in, "h.erm.Last", h.erm.Last, me)
		if h.erm.Src != me && check.Equal(in, "len(h.erm.Rvs) of another's message", len(h.erm.Rvs), 1) {
			check.Equal(in, "h.erm.Rvs[0].Peer", h.erm.Rvs[0].Peer, me)
		}
	}
	if f.poked(h) {
		return
	}
	f.got = append(f.got, h)
}

// poked answers a question for the peer's own advertisement, like every JXTA peer, and reports whether it was one.
func (f *fake) poked(h heard) bool {
	q, err := jxta.ParseResolverQuery(h.find(jxta.NetGroup + "ORes"))
	if err != nil || q.Src != f.n.cfg.Identity.Peer {
		return false
	}
	d, err := jxta.ParseDiscoveryQuery([]byte(q.Query))
	if err != nil || d.Attr != "PID" || d.Value != jxta.URN(f.id) {
		return false
	}
	if f.dead {
		return true
	}
	found := jxta.DiscoveryResponse{Type: d.Type, Attr: d.Attr, Value: d.Value, Found: []jxta.Found{{Life: time.Hour, Doc: string(f.advertisement(jxta.NetGroup))}}}
	r := jxta.ResolverResponse{Handler: q.Handler, QueryID: q.QueryID, Response: string(found.Append(nil))}
	f.say(q.Src, jxta.NetGroup, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"IRes", xmlElement(jxta.NetGroup+"IRes", r.Append(nil)))
	return true
}

// say sends elements to a service of the gateway, or of another peer, routed or direct.
func (f *fake) say(to, group, service, param string, elements ...jxta.Element) {
	f.n.Helper()
	inner, innerParam := innerService(group, service, param)
	r := jxta.RouterMessage{Src: f.id, Dest: jxta.Address{Scheme: "jxta", Host: to, Service: inner, Param: innerParam}, Last: f.id}
	elements = append(elements, xmlElement(elRouter, r.Append(nil)))
	outer, outerParam := jxta.Mangle(jxta.NetGroup, svcRouter, "")
	f.send(outer, outerParam, elements...)
}

func (f *fake) send(service, param string, elements ...jxta.Element) {
	f.n.Helper()
	d := jxta.Address{Scheme: "tcp", Host: f.addr, Service: service, Param: param}
	body, err := jxta.AppendMessage(nil, jxta.Message{Elements: append(elements, text(elSource, jxta.PeerAddress(f.id)), text(elDestination, d.String()))})
	if err != nil {
		f.n.Fatal(err)
	}
	if f.signed {
		id := f.signer
		if body, err = jxta.SignMessage(body, id.Key, id.Cert, jxta.URN(f.id)); err != nil {
			f.n.Fatal(err)
		}
	}
	f.n.step(Received{f.conn, body})
}

func (f *fake) advertisement(group string) []byte {
	route := jxta.Route{Dest: f.id, Access: jxta.AccessPoint{Peer: f.id, Addresses: []string{"tcp://" + f.addr}}}
	n := jxta.PeerAdvertisement{Peer: f.id, Group: group, Name: f.name, Services: []jxta.Service{
		{Class: jxta.ClassEndpoint, Node: jxta.ServiceNode(jxta.ClassEndpoint, route.Node())},
		{Class: jxta.ClassPeerGroup, Node: jxta.ServiceNode(jxta.ClassPeerGroup, jxta.Leaf("RootCert", "AAAA"))},
		{Class: "uuid-0123456789ABCDEF0123456789ABCDEF05", Node: jxta.ServiceNode("uuid-0123456789ABCDEF0123456789ABCDEF05", jxta.Leaf("Own", "kept"))},
	}}.Node()
	n.Kids = append(n.Kids, jxta.El("XMLSignature", jxta.Leaf("signature", "BBBB")))
	return jxta.AppendDocument(nil, n)
}

func (f *fake) connect(group string) {
	f.n.Helper()
	service, param := jxta.Mangle(group, jxta.URN(jxta.ClassRendezvous), group)
	f.send(service, param, xmlElement("Connect", f.advertisement(group)))
}

func (f *fake) disconnect(group string) {
	f.n.Helper()
	f.say(f.n.cfg.Identity.Peer, group, jxta.URN(jxta.ClassRendezvous), group, xmlElement("Disconnect", f.advertisement(group)))
}

// propagate sends to the whole group through the rendezvous.
func (f *fake) propagate(group, service, param string, elements ...jxta.Element) {
	f.n.Helper()
	f.msg++
	h := jxta.Propagate{MessageID: fmt.Sprintf("%s-%d", f.id, f.msg), Service: service, Param: param, TTL: 200, Path: []string{f.id}}
	elements = append(elements, xmlElement(elPropagate+group, h.Append(nil)))
	f.say(f.n.cfg.Identity.Peer, group, svcPropagate, group, elements...)
}

func (f *fake) publish(group, doc string, life time.Duration) {
	f.n.Helper()
	d := jxta.DiscoveryResponse{Type: jxta.TypeAdv, Found: []jxta.Found{{Life: life, Doc: doc}}}
	r := jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, Response: string(d.Append(nil))}
	f.propagate(group, jxta.URN(jxta.ClassResolver), group+"IRes", xmlElement(group+"IRes", r.Append(nil)))
}

func (f *fake) ask(group, handler, query string) int {
	f.n.Helper()
	f.qid++
	q := jxta.ResolverQuery{Handler: handler, QueryID: f.qid, Src: f.id, Query: query,
		Route: &jxta.Route{Dest: f.id, Access: jxta.AccessPoint{Peer: f.id, Addresses: []string{"tcp://" + f.addr}}}}
	f.propagate(group, jxta.URN(jxta.ClassResolver), group+"ORes", xmlElement(group+"ORes", q.Append(nil)))
	return f.qid
}

func (f *fake) discover(group, name string) int {
	f.n.Helper()
	return f.ask(group, jxta.HandlerDiscovery, string(jxta.DiscoveryQuery{Type: jxta.TypeAdv, Threshold: 5, Attr: "Name", Value: name}.Append(nil)))
}

func (f *fake) pipe(group, pipe, kind string, open bool) {
	f.n.Helper()
	life := jxta.MaxLife
	if !open {
		life = 0
	}
	s := jxta.SRDI{Peer: f.id, Key: kind, TTL: 1, Entries: []jxta.SRDIEntry{{Key: "Id", Value: jxta.URN(pipe), Life: life}}}
	r := jxta.ResolverSRDI{Handler: jxta.HandlerPipe, Payload: string(s.Append(nil))}
	f.propagate(group, jxta.URN(jxta.ClassResolver), group+"Srdi", xmlElement(group+"Srdi", r.Append(nil)))
}

func (f *fake) wire(group, pipe, msgID string, app ...jxta.Element) {
	f.n.Helper()
	w := jxta.WireHeader{Src: f.id, Pipe: pipe, MsgID: msgID, TTL: 200}
	f.propagate(group, svcWire, group, append(app, xmlElement(elWire, w.Append(nil)))...)
}

func body(s string) jxta.Element {
	return jxta.Element{Namespace: "trk", Name: "body", Data: []byte(s)}
}

// take empties the list of messages that the peer has heard.
func (f *fake) take() []heard {
	g := f.got
	f.got = nil
	return g
}

// one is the only message heard since the last time.
func (f *fake) one() heard {
	f.n.Helper()
	g := f.take()
	if len(g) != 1 {
		f.n.Fatalf("%s heard %d messages, want 1: %s", f.name, len(g), describe(g))
	}
	return g[0]
}

func (f *fake) silence(why string) {
	f.n.Helper()
	if g := f.take(); len(g) != 0 {
		f.n.Errorf("%s: %s heard %s", why, f.name, describe(g))
	}
}

func describe(g []heard) (s string) {
	for _, h := range g {
		s += fmt.Sprintf("%q\n", h.body)
	}
	return s
}

// bodies are the payload texts heard, in order.
func (f *fake) bodies() (out []string) {
	for _, h := range f.take() {
		if d := h.find("trk:body"); d != nil {
			out = append(out, string(d))
		}
	}
	return out
}

// answer is a resolver response and the discovery response inside.
func (f *fake) answer(h heard, group string) (jxta.ResolverResponse, jxta.DiscoveryResponse) {
	f.n.Helper()
	r, err := jxta.ParseResolverResponse(h.find(group + "IRes"))
	if err != nil {
		f.n.Fatalf("%s: no response: %v in %q", f.name, err, h.body)
	}
	if h.erm == nil || !strings.HasSuffix(h.erm.Dest.Param, group+"IRes") {
		f.n.Errorf("response to %+v", h.erm)
	}
	var d jxta.DiscoveryResponse
	if r.Handler == jxta.HandlerDiscovery {
		if d, err = jxta.ParseDiscoveryResponse([]byte(r.Response)); err != nil {
			f.n.Fatal(err)
		}
	}
	return r, d
}

const (
	pipe1 = "uuid-59616261646162614E50472050325033000000000000000000000000000000A104"
	pipe2 = "uuid-59616261646162614E50472050325033000000000000000000000000000000A204"
	ops   = "uuid-0102030405060708090A0B0C0D0E0F1002"
)

func msa(name string) string {
	return "<?xml version=\"1.0\"?>\n<!DOCTYPE jxta:MSA>\n<jxta:MSA xmlns:jxta=\"http://jxta.org\">\n\t<MSID>\n\t\turn:jxta:uuid-" +
		fmt.Sprintf("%032X%032X", []byte(name)[0], len(name)) + "06\n\t</MSID>\n\t<Name>\n\t\t" + name + "\n\t</Name>\n</jxta:MSA>\n"
}
