package peertest

import (
	"testing"
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
)

func multicast(c *jxtabridge.Config) { c.Multicast = "224.0.1.85:1234" }

// Peers that know no rendezvous find the gateway by multicast, and through it a far peer. Their messages to
// everybody go out twice, by multicast and to their rendezvous, and arrive once.
func TestPeersFindTheGatewayByMulticast(t *testing.T) {
	t.Parallel()
	for _, kind := range multicastKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 90*time.Second)
			sa, sb := pair(t, multicast)
			a := w.start(sa, field.PeerConfig{Kind: kind, Name: "A", Port: 9702, Multicast: true})
			b := w.peer(sb, field.KindJXSE27, "B", 9703)
			w.tell(a, "publish a-svc", "publish a-uni unicast", "find b-svc 1000", "listen b-svc")
			w.tell(b, "publish b-svc", "find a-svc 1000", "listen a-svc", "find a-uni 1000")
			e := w.await(a, "rendezvous", "")
			t.Logf("rendezvous %.1f s after start", e.At().Sub(a.Started).Seconds())
			w.await(a, "pipe_ready", "b-svc")
			w.await(b, "pipe_ready", "a-svc")
			w.await(b, "discovered", "a-uni")
			w.tell(a, "send a-svc 200 5 0.2")
			w.tell(b, "send b-svc 300 5 0.2", "send a-uni 300 3 0.1")
			w.receives(b, "a-svc", "A", 5, 200, 1)
			w.receives(a, "b-svc", "B", 5, 300, 1)
			w.receives(a, "a-uni", "B", 3, 300, 1)
			st, stats := sa.status()
			t.Logf("%+v", stats)
			check.Equal(t, "len(st.Peers)", len(st.Peers), 1)
			check.Equal(t, "stats.BadMessages", stats.BadMessages, 0)
			check.Equal(t, "len(stats.Refused)", len(stats.Refused), 0)
			check.Differ(t, "stats.MulticastCopies", stats.MulticastCopies, 0)
			check.True(t, "stats.MulticastSent <= 40", stats.MulticastSent <= 40, stats.MulticastSent)
			sa.mu.Lock()
			defer sa.mu.Unlock()
			if sa.crossed[""] != 5 {
				t.Errorf("%d propagated messages crossed the link, want 5", sa.crossed[""])
			}
		})
	}
}

// A peer without any rendezvous, JXSE 2.7's ad-hoc mode, asks by multicast and is answered by multicast from the far
// advertisements that the gateway knows; its messages to everybody cross once.
func TestAdhocPeerDiscoversFarService(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 60*time.Second)
	sa, sb := pair(t, multicast)
	b := w.peer(sb, field.KindJXSE27, "B", 9703)
	w.tell(b, "publish b-svc")
	w.await(b, "pipe_ready", "b-svc")
	a := w.start(sa, field.PeerConfig{Kind: field.KindJXSE27, Name: "A", Port: 9702, Adhoc: true})
	w.tell(a, "find b-svc 3")
	e := w.await(a, "discovered", "b-svc")
	t.Logf("the far service is known %.1f s after start", e.At().Sub(a.Started).Seconds())
	w.tell(a, "send b-svc 200 5 0.2")
	w.receives(b, "b-svc", "A", 5, 200, 1)
	st, stats := sa.status()
	check.Equal(t, "len(st.Peers)", len(st.Peers), 0)
	check.Equal(t, "stats.BadMessages", stats.BadMessages, 0)
	check.Equal(t, "stats.MulticastCopies", stats.MulticastCopies, 0)
	check.Equal(t, "stats.MulticastWithheld", stats.MulticastWithheld, 0)
	t.Logf("%+v", stats)
}
