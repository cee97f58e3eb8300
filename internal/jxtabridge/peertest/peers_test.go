package peertest

import (
	"testing"
	"time"

	"aldis/internal/lab"
)

func TestPeersOfAllGenerationsMeet(t *testing.T) {
	tests := []struct{ name, a, b string }{
		{"2.7 signed", lab.KindJXSE27, lab.KindJXSE27},
		{"2.7 unsigned", lab.KindJXSE27Unsigned, lab.KindJXSE27Unsigned},
		{"2.2", lab.KindJXTA22, lab.KindJXTA22},
		{"2.2 with 2.7 signed", lab.KindJXTA22, lab.KindJXSE27},
		{"2.7 unsigned with signed", lab.KindJXSE27Unsigned, lab.KindJXSE27},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, 90*time.Second)
			sa, sb := pair(t)
			a, b := w.peer(sa, tt.a, "A", 9702), w.peer(sb, tt.b, "B", 9703)
			// B asks once for what A publishes much later: only a remembered question or a push can answer it.
			w.tell(a, "publish a-svc", "publish a-uni unicast", "find b-svc 1000", "listen b-svc", "find b-uni 1000", "find b-late 1000", "listen b-late")
			w.tell(b, "publish b-svc", "publish b-uni unicast", "find a-svc 1000", "listen a-svc", "find a-uni 1000")
			for _, p := range []*lab.Peer{a, b} {
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
			w.await(a, "discovered", "b-late")
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
				t.Logf("%s: %+v slowest step %v", s.name, stats, s.slowest)
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
