package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aldis/internal/edge/daemon"
	"aldis/internal/edge/journal"
	"aldis/internal/edge/lan"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// rig is a whole gateway except the link: real sockets, loop, bridge and journal. Its one sister never answers.
type rig struct {
	testing.TB
	*daemon.Daemon
	address string
	me      string // unique value
	bridge  *jxtabridge.Bridge
	journal *journal.Journal
	gateway *gateway.Gateway
	peers   atomic.Int64
	buffer  int // of each direction of a load peer, octets
}

func newRig(tb testing.TB, profileName string) *rig {
	tb.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	r := &rig{TB: tb, Daemon: daemon.New(log, nil), buffer: 256 << 10}
	must := func(err error) {
		if err != nil {
			tb.Helper()
			tb.Fatal(err)
		}
	}
	j, err := journal.Open(tb.TempDir(), journal.Identity{Node: 1, Name: "ship"})
	must(err)
	r.journal = j
	ln, err := lan.Listen("127.0.0.1:0")
	must(err)
	r.address = ln.Addr().String()
	identity, err := jxtabridge.NewIdentity(rand.Reader)
	must(err)
	r.me = identity.Peer
	link, err := profile.Load(profileName, nil)
	must(err)
	r.gateway, err = gateway.New(gateway.Config{
		ID: 1, Name: "ship", Profile: link, Incarnation: seal.Incarnation{Number: 1}, Store: j.StoreID(), Rand: mrand.New(mrand.NewPCG(1, 2)),
		Peers: []gateway.PeerConfig{{ID: 2, Name: "shore", Addr: netip.MustParseAddrPort("127.0.0.2:9")}},
		Adapters: map[site.Adapter]func([]site.Memory) (gateway.Adapter, error){site.JXTA: func(memories []site.Memory) (gateway.Adapter, error) {
			r.bridge = jxtabridge.New(jxtabridge.Config{Name: "ship", Address: r.address, Identity: identity, SignLater: true}, memories)
			return r.bridge, nil
		}},
	}, nil)
	must(err)
	l := lan.New(lan.Config{Peer: identity.Peer, Sign: func(m []byte, source string) ([]byte, error) {
		return jxta.SignMessage(m, identity.Key, identity.Cert, source)
	}, MaxConns: 4096, MaxConnsPerAddress: 4096, Share: lan.DefaultShare}, r.PostLAN(site.JXTA), nil, log)
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { l.Serve(ln) })
	ended.Go(func() {
		err := r.Run(ctx, daemon.Parts{Engine: r.gateway, LAN: func(o api.LANOrder) { l.Do(o.Order) }, Radio: func([]api.Datagram) {}, Norm: func(api.NormCommand) {},
			Handled: func(ev api.LAN, took time.Duration) { l.Handled(ev.Event, took) },
			Commit: func(records []api.Record) error {
				ops := make([]journal.Op, len(records))
				for i, rec := range records {
					ops[i] = journal.Op(rec)
				}
				return j.Commit(ops)
			}})
		if err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(func() {
		l.Shutdown()
		cancel()
		ended.Wait()
		j.Close()
	})
	return r
}

// loader is a load peer: it sends prepared messages, and looks into received ones only as far as it must.
type loader struct {
	rig  *rig
	id   string
	from net.IP // nil: the kernel chooses
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
	head []byte
}

// dial makes a connection and gets a lease. It returns errors to callers that join while others leave; the rig's own callers
// fail the test.
func (r *rig) dial() (*loader, error) {
	n := r.peers.Add(1)
	p := &loader{rig: r, id: loaderID(n)}
	return p, p.redial()
}

func loaderID(n int64) string {
	return fmt.Sprintf("uuid-59616261646162614A78746150325033%032X03", n*0x1000+1)
}

func (p *loader) redial() (err error) {
	r := p.rig
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: p.from}}
	if p.conn, err = d.Dial("tcp", p.rig.address); err != nil {
		return err
	}
	p.r, p.w = bufio.NewReaderSize(p.conn, r.buffer), bufio.NewWriterSize(p.conn, r.buffer)
	if _, err := p.r.ReadSlice('\n'); err != nil {
		return err
	}
	line, err := jxta.AppendWelcome(nil, jxta.Welcome{Dest: "tcp://" + p.rig.address, Public: "tcp://" + p.conn.LocalAddr().String(), Peer: jxta.URN(p.id), Version: "1.1"})
	if err != nil {
		return err
	}
	p.w.Write(line)
	return p.lease()
}

func (p *loader) lease() error {
	route := jxta.Route{Dest: p.id, Access: jxta.AccessPoint{Peer: p.id, Addresses: []string{"tcp://" + p.conn.LocalAddr().String()}}}
	adv := jxta.PeerAdvertisement{Peer: p.id, Group: jxta.NetGroup, Name: "load", Services: []jxta.Service{
		{Class: jxta.ClassEndpoint, Node: jxta.ServiceNode(jxta.ClassEndpoint, route.Node())}}}
	service, param := jxta.Mangle(jxta.NetGroup, jxta.URN(jxta.ClassRendezvous), jxta.NetGroup)
	p.put(p.body(service, param, docElement("Connect", jxta.AppendDocument(nil, adv.Node()))))
	if err := p.w.Flush(); err != nil {
		return err
	}
	for {
		b, err := p.get(nil)
		if err != nil {
			return err
		}
		if bytes.Contains(b, []byte("ConnectedLease")) {
			return nil
		}
	}
}

func docElement(name string, doc []byte) jxta.Element {
	return jxta.Element{Namespace: "jxta", Name: name, Type: "text/xml", Data: doc}
}

func (r *rig) peer() *loader { return r.peerAt(nil) }

// peerAt is a peer that dials from an address.
func (r *rig) peerAt(from net.IP) *loader {
	r.Helper()
	n := r.peers.Add(1)
	p := &loader{rig: r, id: loaderID(n), from: from}
	if err := p.redial(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { p.conn.Close() })
	return p
}

func (p *loader) body(service, param string, elements ...jxta.Element) []byte {
	dest := jxta.Address{Scheme: "tcp", Host: p.rig.address, Service: service, Param: param}
	b, err := jxta.AppendMessage(nil, jxta.Message{Elements: append(elements,
		jxta.Element{Namespace: "jxta", Name: "EndpointSourceAddress", Data: []byte(jxta.PeerAddress(p.id))},
		jxta.Element{Namespace: "jxta", Name: "EndpointDestinationAddress", Data: []byte(dest.String())})})
	if err != nil {
		panic(err)
	}
	return b
}

func (p *loader) routed(to, service, param string, elements ...jxta.Element) []byte {
	m := jxta.RouterMessage{Src: p.id, Last: p.id, Dest: jxta.Address{Scheme: "jxta", Host: to, Service: service, Param: param}}
	outer, outerParam := jxta.Mangle(jxta.NetGroup, "EndpointRouter", "")
	return p.body(outer, outerParam, append(elements, docElement("EndpointRouterMsg", m.Append(nil)))...)
}

// serial is a placeholder in prepared messages for the number that each message gets when it is sent.
const serial = "serial-000000000000"

func (p *loader) propagated(service, param string, elements ...jxta.Element) []byte {
	h := jxta.Propagate{MessageID: serial, Service: service, Param: param, TTL: 200, Path: []string{p.id}}
	return p.routed(p.rig.me, "JxtaPropagate", jxta.NetGroup, append(elements, docElement("RendezVousPropagate"+jxta.NetGroup, h.Append(nil)))...)
}

func (p *loader) question(attr, value string) []byte {
	dq := jxta.DiscoveryQuery{Type: jxta.TypeAdv, Threshold: 1, Attr: attr, Value: value}
	q := jxta.ResolverQuery{Handler: jxta.HandlerDiscovery, QueryID: 7, Src: p.id, Query: string(dq.Append(nil)),
		Route: &jxta.Route{Dest: p.id, Access: jxta.AccessPoint{Peer: p.id, Addresses: []string{"tcp://" + p.conn.LocalAddr().String()}}}}
	return p.propagated(jxta.URN(jxta.ClassResolver), jxta.NetGroup+"ORes", docElement(jxta.NetGroup+"ORes", q.Append(nil)))
}

func (p *loader) publication(docs ...string) []byte {
	d := jxta.DiscoveryResponse{Type: jxta.TypeAdv}
	for _, doc := range docs {
		d.Found = append(d.Found, jxta.Found{Life: 24 * time.Hour, Doc: doc})
	}
	a := jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, Response: string(d.Append(nil))}
	return p.propagated(jxta.URN(jxta.ClassResolver), jxta.NetGroup+"IRes", docElement(jxta.NetGroup+"IRes", a.Append(nil)))
}

// number gives a prepared message a number of its own.
func number(body []byte, n uint64) []byte {
	text := fmt.Appendf(nil, "serial-%012d", n)
	for at := 0; ; {
		i := bytes.Index(body[at:], []byte("serial-"))
		if i < 0 {
			return body
		}
		at += i + copy(body[at+i:], text)
	}
}

// put writes one package into the buffer.
func (p *loader) put(body []byte) error {
	p.head = jxta.AppendPackageHeader(p.head[:0], len(body))
	p.w.Write(p.head)
	_, err := p.w.Write(body)
	return err
}

func (p *loader) send(body []byte) error {
	if err := p.put(body); err != nil {
		return err
	}
	return p.w.Flush()
}

// get reads one package into b, which grows as needed.
func (p *loader) get(b []byte) ([]byte, error) {
	head, err := p.r.Peek(63) // the gateway's heads are never shorter
	if err != nil {
		return nil, err
	}
	h, n, err := jxta.ParsePackageHeader(head)
	if err != nil {
		return nil, err
	}
	p.r.Discard(n)
	b = slices.Grow(b[:0], int(h.Length))[:h.Length]
	_, err = io.ReadFull(p.r, b)
	return b, err
}

func pipeAdv(i int) string {
	n := jxta.El("jxta:PipeAdvertisement", jxta.Leaf("Id", fmt.Sprintf("urn:jxta:uuid-59616261646162614E50472050325033%032X04", i+1)),
		jxta.Leaf("Type", jxta.PipeTypeUnicast), jxta.Leaf("Name", adName(i)),
		jxta.Leaf("Desc", "position and course every ten seconds, for whoever plots this sector"))
	n.Attr = []jxta.Attr{{Name: "xmlns:jxta", Value: "http://jxta.org"}}
	return string(jxta.AppendDocument(nil, n))
}

func adName(i int) string { return fmt.Sprintf("track %06d", i) }

// fill makes the gateway hold count advertisements of a peer, before there are other peers to be informed of them.
func (r *rig) fill(p *loader, count int) {
	r.Helper()
	for i := 0; i < count; i += 100 {
		docs := make([]string, min(100, count-i))
		for k := range docs {
			docs[k] = pipeAdv(i + k)
		}
		if err := p.send(number(p.publication(docs...), uint64(1<<30+i))); err != nil {
			r.Fatal(err)
		}
	}
	r.until("the advertisements are there", func() bool { return r.bridge.Status().Adverts == count })
}

// until waits for a condition that the loop can see.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		done := false
		if err := r.Do(ctx, func(time.Time) { done = ok() }); err != nil {
			r.Fatalf("waiting until %s: %v", what, err)
		}
		if done {
			return
		}
		<-tick.C
	}
}

func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	us := func(share float64) float64 {
		return float64(times[int(share*float64(len(times)-1))].Nanoseconds()) / 1e3
	}
	b.ReportMetric(us(0.5), "p50-us")
	b.ReportMetric(us(0.99), "p99-us")
	b.ReportMetric(us(1), "max-us")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "per-s")
}

// Discovery through real sockets: 32 peers, each with one open query, and 10,000 advertisements. With "half" every other query
// is for an advertisement that nobody has. Those are not answered at once, so the peer sends the next query right after.
func BenchmarkQueries(b *testing.B) {
	for _, kind := range []string{"answered", "half"} {
		b.Run(kind, func(b *testing.B) {
			r := newRig(b, "wire")
			publisher := r.peer()
			go io.Copy(io.Discard, publisher.r)
			r.fill(publisher, 10000)
			const peers = 32
			var left atomic.Int64
			left.Store(int64(b.N))
			var mu sync.Mutex
			var times []time.Duration
			var failed error
			var all sync.WaitGroup
			askers := make([]*loader, peers)
			for i := range askers {
				askers[i] = r.peer()
			}
			b.ResetTimer()
			for i, p := range askers {
				all.Go(func() {
					known, unknown := p.question("Name", adName(i*300)), p.question("Name", "nobody has this")
					var mine []time.Duration
					var buf []byte
					var err error
					for n := uint64(i) << 32; err == nil && left.Add(-1) >= 0; n++ {
						began := time.Now()
						if kind == "half" && left.Add(-1) >= 0 {
							n++
							err = p.put(number(unknown, n))
						}
						if err == nil {
							err = p.send(number(known, n+1<<24))
						}
						if err == nil {
							buf, err = p.get(buf)
						}
						mine = append(mine, time.Since(began))
					}
					mu.Lock()
					times, failed = append(times, mine...), errors.Join(failed, err)
					mu.Unlock()
				})
			}
			all.Wait()
			b.StopTimer()
			if failed != nil {
				b.Fatal(failed)
			}
			report(b, times)
		})
	}
}

// The round trip of a message between two local peers, through the gateway and, for comparison, direct.
func BenchmarkRelayRoundTrip(b *testing.B) {
	data := jxta.Element{Namespace: "trk", Name: "body", Data: bytes.Repeat([]byte("x"), 200)}
	pong := func(p *loader, answer []byte, n uint64) {
		var buf []byte
		var err error
		for err == nil {
			if buf, err = p.get(buf); err == nil {
				n++
				err = p.send(number(answer, n))
			}
		}
	}
	ping := func(b *testing.B, p *loader, body []byte) {
		var times []time.Duration
		var buf []byte
		var err error
		for n := uint64(1); b.Loop(); n++ {
			began := time.Now()
			if err = p.send(number(body, n)); err == nil {
				buf, err = p.get(buf)
			}
			if err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(began))
		}
		report(b, times)
	}
	b.Run("direct", func(b *testing.B) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer ln.Close()
		one, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		other, err := ln.Accept()
		if err != nil {
			b.Fatal(err)
		}
		ends := [2]*loader{}
		for i, c := range []net.Conn{one, other} {
			ends[i] = &loader{rig: &rig{address: ln.Addr().String()}, id: fmt.Sprintf("uuid-0%d03", i), conn: c, r: bufio.NewReader(c), w: bufio.NewWriter(c)}
			defer c.Close()
		}
		body := ends[0].routed(ends[1].id, "PipeService", "urn:jxta:uuid-0104", data)
		go pong(ends[1], body, 0)
		ping(b, ends[0], body)
	})
	b.Run("unicast", func(b *testing.B) {
		r := newRig(b, "wire")
		one, other := r.peer(), r.peer()
		go pong(other, other.routed(one.id, "PipeService", "urn:jxta:uuid-0104", data), 1<<32)
		ping(b, one, one.routed(other.id, "PipeService", "urn:jxta:uuid-0104", data))
	})
	b.Run("propagate", func(b *testing.B) {
		r := newRig(b, "wire")
		one, other := r.peer(), r.peer()
		body := func(p *loader) []byte {
			w := jxta.WireHeader{Src: p.id, Pipe: "uuid-0104", MsgID: serial, TTL: 200}
			return p.propagated("jxta.service.wirepipe", jxta.NetGroup, data, docElement("JxtaWireHeader", w.Append(nil)))
		}
		go pong(other, body(other), 1<<32)
		ping(b, one, body(one))
	})
}

// Messages from one local peer to another as fast as possible; every one must arrive.
func BenchmarkRelayFlow(b *testing.B) {
	for _, how := range []string{"unicast", "propagate"} {
		for _, size := range []int{200, 64 << 10, 4_000_000} {
			b.Run(fmt.Sprintf("%s/%d", how, size), func(b *testing.B) {
				r := newRig(b, "wire")
				from, to := r.peer(), r.peer()
				data := jxta.Element{Namespace: "trk", Name: "body", Data: bytes.Repeat([]byte("x"), size)}
				body := from.routed(to.id, "PipeService", "urn:jxta:uuid-0104", data)
				if how == "propagate" {
					w := jxta.WireHeader{Src: from.id, Pipe: "uuid-0104", MsgID: serial, TTL: 200}
					body = from.propagated("jxta.service.wirepipe", jxta.NetGroup, data, docElement("JxtaWireHeader", w.Append(nil)))
				}
				b.SetBytes(int64(size))
				b.ResetTimer()
				done := make(chan error, 1)
				go func() {
					var buf []byte
					for range b.N {
						var err error
						if buf, err = to.get(buf); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
				for n := range b.N {
					if err := from.put(number(body, uint64(n))); err != nil {
						b.Fatal(err)
					}
				}
				if err := from.w.Flush(); err != nil {
					b.Fatal(err)
				}
				select {
				case err := <-done:
					if err != nil {
						b.Fatal(err)
					}
				case <-time.After(30 * time.Second):
					b.Fatal("some have not arrived")
				}
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "per-s")
			})
		}
	}
}
