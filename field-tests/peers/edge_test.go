package peers

import (
	"context"
	"crypto/rand"
	mrand "math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
	"aldis/internal/lab/field"
)

// goEdge is a peer of internal/lab/edgepeer behind a rendezvous, with a channel of its notices.
func goEdge(t *testing.T, ctx context.Context, address, name string, signed bool) (*tcp.Peer, chan edgepeer.Notice) {
	t.Helper()
	heard := make(chan edgepeer.Notice, 1024)
	cfg := edgepeer.Config{Name: name, Rand: mrand.New(mrand.NewPCG(uint64(len(name)), uint64(name[0])))}
	if signed {
		id, err := jxtabridge.NewIdentity(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Key, cfg.Cert = id.Key, id.Cert
	}
	p, err := tcp.Dial(ctx, tcp.Config{Address: address, Edge: cfg, Hear: func(_ *tcp.Peer, n edgepeer.Notice) {
		if m, ok := n.(edgepeer.Message); ok { // valid only now
			m.Elements = append([]jxta.Element(nil), m.Elements...)
			for i := range m.Elements {
				m.Elements[i].Data = append([]byte(nil), m.Elements[i].Data...)
			}
			n = m
		}
		if a, ok := n.(edgepeer.Answer); ok {
			a.Raw = append([]byte(nil), a.Raw...)
			n = a
		}
		heard <- n
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.WaitLease(ctx, ""); err != nil {
		t.Fatal(err)
	}
	return p, heard
}

// hears waits for a notice for which match is true.
func hears[T edgepeer.Notice](t *testing.T, ctx context.Context, who string, heard chan edgepeer.Notice, match func(T) bool) T {
	t.Helper()
	for {
		select {
		case n := <-heard:
			if v, ok := n.(T); ok && match(v) {
				return v
			}
		case <-ctx.Done():
			t.Fatalf("%s: no %T: %v", who, *new(T), ctx.Err())
		}
	}
}

func do(t *testing.T, p *tcp.Peer, ev edgepeer.Event) {
	t.Helper()
	if _, err := p.Do(ev); err != nil {
		t.Fatal(err)
	}
}

// Edge peers of internal/lab/edgepeer behind an unmodified rendezvous, together with an unmodified edge.
func TestEdgePeer(t *testing.T) {
	for _, kind := range []string{field.KindJXSE27Unsigned, field.KindJXSE27} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
			t.Cleanup(cancel)
			w := world{t, ctx}
			port := check.FreePort(t, "tcp")
			rdv := w.start(field.PeerConfig{Kind: kind, Name: "R", Host: "127.0.0.1", Port: port, Role: "rdv"})
			w.await(rdv, "ready", "", nil)
			address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			java := w.start(field.PeerConfig{Kind: kind, Name: "J", Host: "127.0.0.1", Port: check.FreePort(t, "tcp"), Seed: "tcp://" + address})
			w.tell(java, "publish j-svc", "publish j-uni unicast", "find a-svc 1", "listen a-svc", "find a-uni 1")
			signed := !strings.HasSuffix(kind, "unsigned")
			a, heardA := goEdge(t, ctx, address, "a", signed)
			b, heardB := goEdge(t, ctx, address, "b", signed)
			wire, uni := edgepeer.NamedPipe("a-svc"), edgepeer.NamedPipe("a-uni")
			for _, p := range []*tcp.Peer{a, b} {
				do(t, p, edgepeer.Listen{Pipe: wire, Kind: jxta.PipeTypePropagate})
			}
			do(t, b, edgepeer.Listen{Pipe: uni, Kind: jxta.PipeTypeUnicast})
			do(t, a, edgepeer.Publish{Doc: edgepeer.Specification("a-svc", wire, jxta.PipeTypePropagate)})
			do(t, a, edgepeer.Publish{Doc: edgepeer.Specification("a-uni", uni, jxta.PipeTypeUnicast), Index: true})
			w.await(java, "pipe_ready", "a-svc", nil)
			w.await(java, "discovered", "a-uni", nil)

			for heard := false; !heard; { // the rendezvous knows of the pipe a moment after its peer announces it
				do(t, a, edgepeer.Send{Pipe: wire, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte("hello")}}})
				soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				_, err := java.Wait(soon, func(e field.Event) bool { return e.Ev == "received" && e.Name == "a-svc" })
				cancel()
				if heard = err == nil; ctx.Err() != nil {
					t.Fatal(err)
				}
			}
			hears(t, ctx, "b", heardB, func(m edgepeer.Message) bool { return string(m.Elements[0].Data) == "hello" && m.Src == a.ID() })
			do(t, a, edgepeer.Send{Pipe: uni, Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte("for you")}}})
			hears(t, ctx, "b", heardB, func(m edgepeer.Message) bool { return m.Pipe == uni && m.Src == a.ID() })

			w.tell(java, "send a-svc 200", "send a-uni 300 3 0.1")
			hears(t, ctx, "a", heardA, func(m edgepeer.Message) bool { return m.Pipe == wire && len(m.Elements[0].Data) == 200 })
			for range 3 {
				hears(t, ctx, "b", heardB, func(m edgepeer.Message) bool { return m.Pipe == uni && len(m.Elements[0].Data) == 300 })
			}
			for _, name := range []string{"a-uni", "j-svc"} { // known by index at its owner; published by the other library
				do(t, b, edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: name})
				hears(t, ctx, "b", heardB, func(m edgepeer.Answer) bool {
					found, err := m.Found()
					return err == nil && len(found) == 1 && strings.Contains(found[0].Doc, name)
				})
			}
			for _, p := range []*tcp.Peer{a, b} {
				if s := p.Stats(); s.Bad+s.Unsent > 0 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}
