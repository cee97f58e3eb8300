package peertest

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/lab/field"
	"aldis/internal/site"
)

func TestPeersOfAllGenerationsMeet(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, a, b string }{
		{"2.7 signed", field.KindJXSE27, field.KindJXSE27},
		{"2.7 unsigned", field.KindJXSE27Unsigned, field.KindJXSE27Unsigned},
		{"2.2", field.KindJXTA22, field.KindJXTA22},
		{"2.2 with 2.7 signed", field.KindJXTA22, field.KindJXSE27},
		{"2.7 unsigned with signed", field.KindJXSE27Unsigned, field.KindJXSE27},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 90*time.Second)
			sa, sb := pair(t)
			a, b := w.peer(sa, tt.a, "A", 9702), w.peer(sb, tt.b, "B", 9703)
			// B asks once for what A publishes much later: only a remembered question or a push can answer it.
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

// A sub-group has its own lease, discovery and pipes across the gateways: of one generation and of both, with and
// without signatures, over TCP and HTTP, whatever its membership service is, which asks nothing of a gateway.
func TestSubGroup(t *testing.T) {
	t.Parallel()
	const pse, none, null = "PSEMembershipService", "NoneMembershipService", "NullMembershipService"
	tests := []struct {
		name, a, b string
		polls      bool
		option     string
		membership [2]string // of A and B
	}{
		{"2.7", field.KindJXSE27, field.KindJXSE27, false, "", [2]string{pse, pse}},
		{"2.2", field.KindJXTA22, field.KindJXTA22, false, "", [2]string{null, null}},
		{"2.7, None", field.KindJXSE27, field.KindJXSE27, false, " none", [2]string{none, none}},
		{"2.2 and 2.7 signed", field.KindJXTA22, field.KindJXSE27, false, "", [2]string{null, pse}},
		{"2.7 signed and unsigned, None", field.KindJXSE27, field.KindJXSE27Unsigned, false, " none", [2]string{none, none}},
		{"2.7 over HTTP", field.KindJXSE27, field.KindJXSE27, true, "", [2]string{pse, pse}},
		{"2.2 over HTTP", field.KindJXTA22, field.KindJXTA22, true, "", [2]string{null, null}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 120*time.Second)
			sa, sb := pair(t)
			start := w.peer
			if tt.polls {
				start = w.pollingPeer
			}
			a, b := start(sa, tt.a, "A", 9702), start(sb, tt.b, "B", 9703)
			w.tell(a, "newgroup ops"+tt.option, "publish a-svc group ops", "publish a-uni unicast group ops", "find b-svc 1000 group ops", "listen b-svc group ops", "find b-uni 1000 group ops")
			w.tell(b, "joingroup ops"+tt.option, "publish b-svc group ops", "publish b-uni unicast group ops", "find a-svc 1000 group ops", "listen a-svc group ops", "find a-uni 1000 group ops")
			for i, p := range []*field.Peer{a, b} {
				if e := w.await(p, "joined", "ops"); !strings.Contains(e.Kind, tt.membership[i]) {
					t.Errorf("%s: membership %s, want %s", p.Name(), e.Kind, tt.membership[i])
				}
			}
			w.await(a, "discovered", "b-svc")
			w.await(b, "discovered", "a-svc")
			w.await(b, "discovered", "a-uni")
			w.await(a, "discovered", "b-uni")
			w.await(a, "pipe_ready", "b-svc")
			w.await(b, "pipe_ready", "a-svc")
			w.tell(a, "send a-svc 200 3 0.2 group ops", "send b-uni 300 3 0.1 group ops")
			w.tell(b, "send b-svc 200 3 0.2 group ops", "send a-uni 300 3 0.1 group ops")
			w.receives(b, "a-svc", "A", 3, 200, 1)
			w.receives(a, "b-svc", "B", 3, 200, 1)
			w.receives(a, "a-uni", "B", 3, 300, 1)
			w.receives(b, "b-uni", "A", 3, 300, 1)
			for _, s := range []*side{sa, sb} {
				st, stats := s.status()
				if len(st.Groups) != 2 || stats.BadMessages != 0 || len(stats.Refused) != 0 {
					t.Errorf("%s: groups %v, %+v", s.name, st.Groups, stats)
				}
			}
		})
	}
}

// Signed and unsigned peers of one LAN, of both generations, meet in a sub-group and in the net peer group, and a far
// one, too; messages in the sub-group stay in it.
func TestSubGroupOnOneLAN(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 120*time.Second)
	sa, sb := pair(t)
	peers := []*field.Peer{w.peer(sa, field.KindJXSE27, "A", 9702), w.peer(sa, field.KindJXSE27Unsigned, "C", 9704),
		w.peer(sa, field.KindJXTA22, "D", 9705), w.peer(sb, field.KindJXSE27, "B", 9703)}
	outside := w.peer(sa, field.KindJXSE27Unsigned, "E", 9706)
	names := []string{"A", "C", "D", "B"}
	svc := func(n string) string { return strings.ToLower(n) + "-svc" }
	for i, p := range peers {
		w.tell(p, "joingroup ops", "publish "+svc(names[i])+" group ops")
		for _, n := range names {
			if n != names[i] {
				w.tell(p, "find "+svc(n)+" 1000 group ops", "listen "+svc(n)+" group ops")
			}
		}
	}
	w.tell(outside, "find a-svc 2", "publish e-svc") // the name is of another group
	for i, p := range peers {
		for _, n := range names {
			if n != names[i] {
				w.await(p, "pipe_ready", svc(n))
			}
		}
	}
	for i, p := range peers {
		w.tell(p, "send "+svc(names[i])+" 200 3 0.2 group ops")
	}
	for i, p := range peers {
		for _, n := range names {
			if n != names[i] {
				w.receives(p, svc(n), n, 3, 200, 1)
			}
		}
	}
	for _, e := range outside.Events() {
		if e.Ev == "discovered" || e.Ev == "received" {
			t.Errorf("a peer outside the group: %+v", e)
		}
	}
	for _, s := range []*side{sa, sb} {
		if _, stats := s.status(); stats.BadMessages != 0 || len(stats.Refused) != 0 {
			t.Errorf("%s: %+v", s.name, stats)
		}
	}
}

// Two peers of one LAN, of different formats, meet each other and a far one. No peer hears itself, and none learns an
// address except the gateway's.
func TestTwoLocalPeersAndAFarOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 90*time.Second)
	sa, sb := pair(t)
	a, c := w.peer(sa, field.KindJXSE27, "A", 9702), w.peer(sa, field.KindJXTA22, "D", 9704)
	b := w.peer(sb, field.KindJXSE27Unsigned, "B", 9703)
	w.tell(a, "publish svc", "publish a-uni unicast")
	w.tell(c, "find svc 1000", "listen svc", "find a-uni 1000", "publish c-uni unicast")
	w.tell(b, "find svc 1000", "listen svc", "find c-uni 1000")
	w.await(b, "pipe_ready", "svc")
	w.await(c, "pipe_ready", "svc")
	w.await(c, "discovered", "a-uni")
	w.await(b, "discovered", "c-uni")
	w.tell(a, "send svc 200 5 0.1")
	w.tell(b, "send svc 300 5 0.1", "send c-uni 400 5 0.1")
	w.tell(c, "send svc 500 5 0.1", "send a-uni 600 5 0.1")
	w.receives(b, "svc", "A", 5, 200, 1)
	w.receives(c, "svc", "A", 5, 200, 1)
	w.receives(a, "svc", "B", 5, 300, 1)
	w.receives(c, "svc", "B", 5, 300, 1)
	w.receives(a, "svc", "D", 5, 500, 1)
	w.receives(b, "svc", "D", 5, 500, 1)
	w.receives(c, "c-uni", "B", 5, 400, 1)
	w.receives(a, "a-uni", "D", 5, 600, 1)
	if direct := connections(t, sa); direct != "" {
		t.Errorf("the two local peers talk past the gateway:\n%s", direct)
	}
	for _, s := range []*side{sa, sb} {
		if _, stats := s.status(); stats.BadMessages != 0 || len(stats.Refused) != 0 {
			t.Errorf("%s: %+v", s.name, stats)
		}
	}
}

// connections are the TCP connections inside the peers' namespace, also those closed a moment ago, that go anywhere but
// to the gateway.
func connections(t *testing.T, s *side) string {
	t.Helper()
	out, err := exec.Command("ip", "netns", "exec", s.ns, "ss", "-Htn", "state", "all").CombinedOutput()
	if err != nil {
		t.Fatalf("ss: %v: %s", err, out)
	}
	var direct []string
	for _, line := range strings.Split(string(out), "\n") {
		f := strings.Fields(line)
		if len(f) >= 5 && !strings.Contains(f[4], s.gateway) && f[0] != "LISTEN" {
			direct = append(direct, line)
		}
	}
	return strings.Join(direct, "\n")
}

// A gateway that was killed and came back with its memories knows its peers: messages that arrived for them meanwhile are
// delivered when they dial in again, and they need no new start.
func TestGatewayRestart(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{field.KindJXSE27, field.KindJXTA22} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 150*time.Second)
			sa, sb := pair(t)
			a, b := w.peer(sa, kind, "A", 9702), w.peer(sb, field.KindJXSE27, "B", 9703)
			w.tell(a, "find svc 1000", "listen svc")
			w.tell(b, "publish svc")
			w.await(a, "pipe_ready", "svc")
			w.tell(b, "send svc 200 1")
			w.receives(a, "svc", "B", 1, 200, 1)
			sa.halt()
			sa.restart()
			down := time.Now()
			w.tell(b, "send svc 200 5")
			w.tell(a, "send svc 300 1")
			if _, err := a.Wait(w.ctx, func(e field.Event) bool { return e.Ev == "received" && e.From == "B" && e.Seq == 6 }); err != nil {
				t.Fatalf("what came during the restart: %v", err)
			}
			t.Logf("%s: all delivered %.1f s after the restart", kind, time.Since(down).Seconds())
			for _, e := range a.Events() {
				if e.Ev == "rendezvous_lost" {
					t.Logf("%+v", e)
				}
			}
		})
	}
}

// Messages that waited while the link was down come all at once, and yet the peer's application sees them in order and once.
// Distance is all that a gateway can do for the order inside a 2.7 peer, so this test uses more than usual: it has
// to hold on a busy machine, too.
func TestBacklogStaysInOrder(t *testing.T) {
	w := newWorld(t, 60*time.Second)
	sa, sb := pair(t, func(c *jxtabridge.Config) { c.Pace = 30 * time.Millisecond })
	a, b := w.peer(sa, field.KindJXSE27, "A", 9702), w.peer(sb, field.KindJXSE27, "B", 9703)
	w.tell(a, "find svc 1000", "listen svc")
	w.tell(b, "publish svc")
	w.await(a, "pipe_ready", "svc")
	sb.link(false)
	w.tell(b, "send svc 200 20 0.02")
	if _, err := b.Wait(w.ctx, func(e field.Event) bool { return e.Ev == "sent" && e.Seq == 20 }); err != nil {
		t.Fatal(err)
	}
	sb.settle(20)
	sb.link(true)
	w.receives(a, "svc", "B", 20, 200, 1)
}

// A gateway that came back without memories, even without its peers' leases, gets all peers again without restarting them.
func TestGatewayThatForgot(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{field.KindJXSE27, field.KindJXTA22} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 150*time.Second)
			sa, sb := pair(t)
			a, b := w.peer(sa, kind, "A", 9702), w.peer(sb, field.KindJXSE27, "B", 9703)
			w.tell(a, "find svc 1000", "listen svc", "publish a-svc")
			w.tell(b, "publish svc", "find a-svc 1000", "listen a-svc")
			w.await(a, "pipe_ready", "svc")
			w.await(b, "pipe_ready", "a-svc")
			w.tell(b, "send svc 200 1")
			w.receives(a, "svc", "B", 1, 200, 1)
			sa.halt()
			clear(sa.memory)
			sb.inbox <- site.SiteLost{Site: sa.number}
			sa.restart()
			down := time.Now()
			w.tell(b, "send svc 200 0 2") // A says nothing by itself
			after := func(p *field.Peer, from string) {
				t.Helper()
				if _, err := p.Wait(w.ctx, func(e field.Event) bool { return e.Ev == "received" && e.From == from && e.SentAt().After(down) }); err != nil {
					t.Fatalf("%s hears nothing of %s: %v", p.Name(), from, err)
				}
				t.Logf("%s: %s hears %s %.1f s after the restart", kind, p.Name(), from, time.Since(down).Seconds())
			}
			after(a, "B")
			w.tell(a, "send a-svc 200 0 2")
			after(b, "A")
		})
	}
}
