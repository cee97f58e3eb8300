package peertest
import ("testing";"time";"aldis/internal/lab";"aldis/internal/jxtabridge")
func TestZZRenewal(t *testing.T) {
	for _, kind := range []string{lab.KindJXSE27, lab.KindJXTA22} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 300*time.Second)
			sa, sb := pair(t, func(c *jxtabridge.Config) { c.Lease = 60*time.Second; c.RelayLease=45*time.Second })
			a, b := w.peer(sa, kind, "A", 9702), w.peer(sb, lab.KindJXSE27Unsigned, "B", 9703)
			w.tell(a, "find svc 1000", "listen svc")
			w.tell(b, "publish svc")
			w.await(a, "pipe_ready", "svc")
			w.tell(b, "send svc 200 100 2")
			w.receives(a, "svc", "B", 90, 200, 1)
			for _, s := range []*side{sa, sb} { st, stats := s.status(); t.Logf("%+v %+v", st, stats) }
			for _, p := range []*lab.Peer{a,b} { for _, e := range p.Events() { if e.Ev=="rendezvous_lost" || e.Ev=="rendezvous" || e.Ev=="error" { t.Logf("%s %+v", p.Name(), e) } } }
		})
	}
}
