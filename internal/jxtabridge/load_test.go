package jxtabridge

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// crowd is a bridge under load: many peers of one format in the net peer group, whose sockets take everything at once.
type crowd struct {
	testing.TB
	b     *Bridge
	cfg   Config
	now   time.Time
	peers []*member
	heard int // messages to peers
	bytes int
	count uint64
	wake  time.Time
}

type member struct {
	id, addr string
	conn     site.ConnID
}

func newCrowd(tb testing.TB, cfg Config, peers int) *crowd {
	cfg.Name, cfg.Address, cfg.Identity = "gw", "10.0.0.1:9701", identities()[1]
	c := &crowd{TB: tb, cfg: cfg, now: t0}
	c.b = New(cfg, nil)
	for range peers {
		c.join()
	}
	return c
}

// join adds the next member, with a connection and a lease.
func (c *crowd) join() *member {
	i := len(c.peers) + 1
	m := &member{id: peerName("uuid", i), addr: fmt.Sprintf("10.1.%d.%d:9702", i/250, i%250), conn: site.ConnID(i)}
	c.peers = append(c.peers, m)
	c.step(Opened{Conn: m.conn, Remote: m.addr})
	c.step(Welcomed{m.conn, jxta.Welcome{Dest: "tcp://" + c.cfg.Address, Public: "tcp://" + m.addr, Peer: jxta.URN(m.id), Version: "1.1"}})
	c.lease(m)
	return m
}

func (c *crowd) lease(m *member) { c.step(Received{m.conn, c.connectBody(m)}) }

func (c *crowd) connectBody(m *member) []byte {
	route := jxta.Route{Dest: m.id, Access: jxta.AccessPoint{Peer: m.id, Addresses: []string{"tcp://" + m.addr}}}
	adv := jxta.PeerAdvertisement{Peer: m.id, Group: jxta.NetGroup, Name: "peer " + m.addr, Services: []jxta.Service{
		{Class: jxta.ClassEndpoint, Node: jxta.ServiceNode(jxta.ClassEndpoint, route.Node())}}}
	service, param := jxta.Mangle(jxta.NetGroup, jxta.URN(jxta.ClassRendezvous), jxta.NetGroup)
	return c.body(m, service, param, xmlElement("Connect", jxta.AppendDocument(nil, adv.Node())))
}

func (c *crowd) step(ev site.Event) site.Output {
	out := c.b.Step(c.now, ev)
	c.wake = out.Deadline
	var last Written // a socket reports bodies that it took together once
	for _, s := range check.Only[Send](out.Orders) {
		c.heard++
		c.bytes += len(s.Body)
		if last.Conn != s.Conn && last.Conn != 0 {
			c.step(last)
		}
		last = Written{s.Conn, s.Token}
	}
	if last.Conn != 0 {
		c.step(last)
	}
	return out
}

func (c *crowd) body(m *member, service, param string, elements ...jxta.Element) []byte {
	d := jxta.Address{Scheme: "tcp", Host: m.addr, Service: service, Param: param}
	body, err := jxta.AppendMessage(nil, jxta.Message{Elements: append(elements, text(elSource, jxta.PeerAddress(m.id)), text(elDestination, d.String()))})
	if err != nil {
		c.Fatal(err)
	}
	return body
}

// routed is a message of m's to a peer through the gateway.
func (c *crowd) routed(m *member, to, service, param string, elements ...jxta.Element) []byte {
	r := jxta.RouterMessage{Src: m.id, Dest: jxta.Address{Scheme: "jxta", Host: to, Service: service, Param: param}, Last: m.id}
	outer, outerParam := jxta.Mangle(jxta.NetGroup, svcRouter, "")
	return c.body(m, outer, outerParam, append(elements, xmlElement(elRouter, r.Append(nil)))...)
}

// serial is the place in prepared messages for a number of their own.
const serial = "serial-000000000000"

// propagated is a message of m's to the whole group.
func (c *crowd) propagated(m *member, service, param string, elements ...jxta.Element) []byte {
	h := jxta.Propagate{MessageID: serial, Service: service, Param: param, TTL: 200, Path: []string{m.id}}
	return c.routed(m, c.cfg.Identity.Peer, svcPropagate, jxta.NetGroup, append(elements, xmlElement(elPropagate+jxta.NetGroup, h.Append(nil)))...)
}

// next numbers a prepared message. The bridge keeps no body, so the same octets serve again.
func (c *crowd) next(body []byte) []byte {
	c.count++
	number := fmt.Appendf(nil, "serial-%012d", c.count)
	for at := 0; ; {
		i := bytes.Index(body[at:], []byte("serial-"))
		if i < 0 {
			return body
		}
		at += i + copy(body[at+i:], number)
	}
}

func (c *crowd) discovery(m *member, kind, threshold int, attr, value string) []byte {
	dq := jxta.DiscoveryQuery{Type: kind, Threshold: threshold, Attr: attr, Value: value}
	q := jxta.ResolverQuery{Handler: jxta.HandlerDiscovery, QueryID: 7, Src: m.id, Query: string(dq.Append(nil)),
		Route: &jxta.Route{Dest: m.id, Access: jxta.AccessPoint{Peer: m.id, Addresses: []string{"tcp://" + m.addr}}}}
	return c.propagated(m, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"ORes", xmlElement(jxta.NetGroup+"ORes", q.Append(nil)))
}

// pipeAdv is a pipe advertisement as peers publish them, about 500 octets.
func pipeAdv(i int) string {
	n := jxta.El("jxta:PipeAdvertisement", jxta.Leaf("Id", fmt.Sprintf("urn:jxta:uuid-59616261646162614E50472050325033%032X04", i+1)),
		jxta.Leaf("Type", jxta.PipeTypeUnicast), jxta.Leaf("Name", fmt.Sprintf("track %06d of ship %d", i, i%97)),
		jxta.Leaf("Desc", "position and course every ten seconds, for whoever plots this sector"))
	n.Attr = []jxta.Attr{{Name: "xmlns:jxta", Value: "http://jxta.org"}}
	return string(jxta.AppendDocument(nil, n))
}

// fill gives the bridge advertisements of a far site, before there are peers to push them to, or of its first peer.
func (c *crowd) fill(first, count int, siteID uint16, life time.Duration) {
	for i := first; i < first+count; i++ {
		if siteID != 0 {
			c.step(site.FarItem{Site: siteID, Item: site.Item{Kind: site.Document, Scope: jxta.NetGroup, Owner: peerName("cbid", 9000+i%50), Sub: jxta.TypeAdv,
				ID: fmt.Sprintf("uuid-59616261646162614E50472050325033%032X04", i+1), Doc: []byte(pipeAdv(i)), Expires: c.now.Add(life)}})
			continue
		}
		m := c.peers[i%len(c.peers)]
		d := jxta.DiscoveryResponse{Type: jxta.TypeAdv, Found: []jxta.Found{{Life: life, Doc: pipeAdv(i)}}}
		r := jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, Response: string(d.Append(nil))}
		c.step(Received{m.conn, c.next(c.propagated(m, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"IRes", xmlElement(jxta.NetGroup+"IRes", r.Append(nil))))})
	}
}

// The row of the load table: 32 peers, 10,000 advertisements. "half" asks every other time for something that nobody has.
func BenchmarkQuery(b *testing.B) {
	for _, q := range []struct {
		name, attr string
		values     []string
		answers    float64
	}{
		{"exact", "Name", []string{"track 001234 of ship 70", "track 009999 of ship 8", "track 000001 of ship 1"}, 1},
		{"half", "Name", []string{"track 001234 of ship 70", "track 777777 of ship 1"}, 0.5},
		{"missing", "Name", []string{"track 777777 of ship 1"}, 0},
		{"id", "Id", []string{jxta.URN(fmt.Sprintf("uuid-59616261646162614E50472050325033%032X04", 5000))}, 1},
		{"prefix", "Name", []string{"track 00123*"}, 1},
		{"suffix", "Name", []string{"*0777 of ship 1"}, 1},
		{"inside", "Name", []string{"*001234*"}, 1},
		{"any", "", []string{""}, 1},
	} {
		b.Run(q.name, func(b *testing.B) {
			c := newCrowd(b, Config{}, 32)
			c.fill(0, 10000, 7, 24*time.Hour)
			var bodies [][]byte
			for i := range 64 {
				bodies = append(bodies, c.discovery(c.peers[i/2], jxta.TypeAdv, 1, q.attr, q.values[i%len(q.values)]))
			}
			c.heard = 0
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				body := bodies[i%len(bodies)]
				c.step(Received{c.peers[i%len(bodies)/2].conn, c.next(body)})
			}
			if got := float64(c.heard) / float64(b.N); got < q.answers-0.01 || q.answers == 0 && got > 0 {
				b.Errorf("%.2f answers to a question, want %v", got, q.answers)
			}
		})
	}
}

// A message of a pipe between two local peers; only the cost of the bridge.
func BenchmarkRelay(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		data := jxta.Element{Namespace: "trk", Name: "body", Data: []byte(strings.Repeat("x", size))}
		b.Run(fmt.Sprintf("unicast/%d", size), func(b *testing.B) {
			c := newCrowd(b, Config{}, 32)
			body := c.routed(c.peers[0], c.peers[1].id, svcPipe, jxta.URN(pipe1), data)
			c.heard = 0
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				c.step(Received{c.peers[0].conn, body})
			}
			if c.heard != b.N {
				b.Errorf("%d of %d arrived", c.heard, b.N)
			}
		})
		b.Run(fmt.Sprintf("unicast/%d in 20", size), func(b *testing.B) {
			c := newCrowd(b, Config{}, 32)
			var parts []jxta.Element
			for i := range 20 {
				parts = append(parts, jxta.Element{Namespace: "trk", Name: fmt.Sprintf("part%d", i), Data: data.Data[i*size/20 : (i+1)*size/20]})
			}
			body := c.routed(c.peers[0], c.peers[1].id, svcPipe, jxta.URN(pipe1), parts...)
			c.heard = 0
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				c.step(Received{c.peers[0].conn, body})
			}
			if c.heard != b.N {
				b.Errorf("%d of %d arrived", c.heard, b.N)
			}
		})
		b.Run(fmt.Sprintf("propagate/%d", size), func(b *testing.B) {
			c := newCrowd(b, Config{}, 2)
			w := jxta.WireHeader{Src: c.peers[0].id, Pipe: pipe1, MsgID: serial, TTL: 200}
			body := c.propagated(c.peers[0], svcWire, jxta.NetGroup, data, xmlElement(elWire, w.Append(nil)))
			c.heard = 0
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				c.step(Received{c.peers[0].conn, c.next(body)})
			}
			if c.heard != b.N {
				b.Errorf("%d of %d arrived", c.heard, b.N)
			}
		})
	}
}
