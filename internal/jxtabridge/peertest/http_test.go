package peertest

import (
	"testing"
	"time"

	"aldis/internal/lab/field"
)

// Peers over HTTP, the transport of 2004, meet each other, and a peer over TCP: rendezvous, discovery, propagate and
// unicast pipes work as over TCP. All messages to them go through their polls.
func TestPeersOverHTTP(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, a, b string
		tcp        bool // B
	}{
		{"2.7 signed", field.KindJXSE27, field.KindJXSE27, false},
		{"2.7 unsigned", field.KindJXSE27Unsigned, field.KindJXSE27Unsigned, false},
		{"2.2", field.KindJXTA22, field.KindJXTA22, false},
		{"2.2 with 2.7 signed over TCP", field.KindJXTA22, field.KindJXSE27, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 90*time.Second)
			sa, sb := pair(t)
			start := w.pollingPeer
			if tt.tcp {
				start = w.peer
			}
			a, b := w.pollingPeer(sa, tt.a, "A", 9702), start(sb, tt.b, "B", 9703)
			w.tell(a, "publish a-svc", "publish a-uni unicast", "find b-svc 1000", "listen b-svc", "find b-uni 1000", "find b-late 1000", "listen b-late")
			w.tell(b, "publish b-svc", "publish b-uni unicast", "find a-svc 1000", "listen a-svc", "find a-uni 1000")
			for _, p := range []*field.Peer{a, b} {
				e := w.await(p, "rendezvous", "")
				t.Logf("%s: rendezvous %.1f s after start", p.Name(), e.At().Sub(p.Started).Seconds())
			}
			w.await(a, "discovered", "b-svc")
			w.await(b, "discovered", "a-svc")
			w.await(a, "discovered", "b-uni")
			w.await(b, "discovered", "a-uni")
			w.await(a, "pipe_ready", "b-svc")
			w.await(b, "pipe_ready", "a-svc")
			w.tell(b, "publish b-late")
			w.await(a, "pipe_ready", "b-late")
			w.tell(a, "send a-svc 200 5 0.2", "send b-svc 300 5 0.2", "send b-uni 1000 3 0.1 elements=5")
			w.tell(b, "send b-svc 200 5 0.2 elements=3", "send a-uni 300 3 0.1", "send b-late 20000 2")
			w.receives(b, "a-svc", "A", 5, 200, 1)
			w.receives(b, "b-svc", "A", 5, 300, 1)
			w.receives(a, "b-svc", "B", 5, 200, 3)
			w.receives(a, "b-late", "B", 2, 20000, 1)
			w.receives(b, "b-uni", "A", 3, 1000, 5)
			w.receives(a, "a-uni", "B", 3, 300, 1)
			for _, s := range []*side{sa, sb} {
				st, stats := s.status()
				t.Logf("%s: %+v %+v", s.name, st, stats)
				if stats.BadMessages != 0 || len(stats.Refused) != 0 {
					t.Errorf("%s: refused %+v", s.name, stats)
				}
				if len(st.Peers) != 1 {
					t.Errorf("%s: %+v", s.name, st)
				}
			}
		})
	}
}

// A gateway that was killed and came back has its polls again, and waiting messages go out by them; messages of a peer
// before it polled again are taken in.
func TestGatewayRestartOverHTTP(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{field.KindJXSE27, field.KindJXTA22} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 150*time.Second)
			sa, sb := pair(t)
			a, b := w.pollingPeer(sa, kind, "A", 9702), w.peer(sb, field.KindJXSE27, "B", 9703)
			w.tell(a, "find svc 1000", "listen svc", "publish a-svc")
			w.tell(b, "publish svc", "find a-svc 1000", "listen a-svc")
			w.await(a, "pipe_ready", "svc")
			w.await(b, "pipe_ready", "a-svc")
			w.tell(b, "send svc 200 1")
			w.receives(a, "svc", "B", 1, 200, 1)
			sa.halt()
			sa.restart()
			down := time.Now()
			w.tell(b, "send svc 200 5")
			w.tell(a, "send a-svc 300 0 2")
			after := func(p *field.Peer, from string, seq int64) {
				t.Helper()
				if _, err := p.Wait(w.ctx, func(e field.Event) bool {
					return e.Ev == "received" && e.From == from && e.Seq >= seq && e.SentAt().After(down)
				}); err != nil {
					t.Fatalf("%s hears nothing of %s: %v", p.Name(), from, err)
				}
				t.Logf("%s: %s hears %s %.1f s after the restart", kind, p.Name(), from, time.Since(down).Seconds())
			}
			after(a, "B", 6)
			after(b, "A", 1)
		})
	}
}
