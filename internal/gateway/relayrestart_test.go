package gateway_test

import (
	"net/netip"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// oneWay is three nodes of which the third names the first as relay for the second, and the second names none: it answers the third by
// the hop from which the messages of the third came.
func oneWay(t *testing.T) *sim.World {
	t.Helper()
	w := world(t, 3, "iridium-directip", 1, func(c *sim.Config) {
		c.Roster = true
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Relay = n.ID != 3
			for i := range g.Peers {
				if p := &g.Peers[i]; n.ID != 1 && p.ID != 1 {
					p.Addr = netip.AddrPort{}
					if n.ID == 3 {
						p.Via = []uint16{1}
					}
				}
			}
		}
	})
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if from.ID != 1 && to.ID != 1 {
			return nil
		}
		return [][]byte{data}
	}
	return w
}

// A peer behind a relay is taken out of a gateway that runs, and comes back with a restart. The numbers of its messages go on: none is
// taken for an earlier one and counted as delivered.
func TestPeerBehindARelayComesBackWithARestart(t *testing.T) {
	w := world(t, 3, "iridium-directip", 1, air.Star)
	a, c := w.Nodes[1], w.Nodes[2]
	before := tracks(w, a, []uint16{3}, 3, 200, 20*time.Second)
	w.Run(20 * time.Minute)
	w.Give(a, gateway.NewLink{Peers: peersBut(w, a, 3)})
	w.Kill(a, time.Second)
	w.Run(time.Minute)
	after := tracks(w, a, []uint16{3}, 5, 201, 20*time.Second)
	w.Run(2 * time.Hour)
	once(t, w, c.Site, 2, append(*before, *after...))
	ends(t, w, a, 3, 5)
}

// The relay to which a receipt would go back is taken out of a gateway that runs: the receipt waits.
func TestTheHopOfAReceiptIsTakenOut(t *testing.T) {
	w := oneWay(t)
	b, c := w.Nodes[1], w.Nodes[2]
	tracks(w, c, []uint16{2}, 1, 200, time.Second)
	w.Run(time.Minute)
	check.Equal(t, "messages at node 2", len(b.Site.Got), 1)
	w.Give(b, gateway.NewLink{Peers: peersBut(w, b, 1)})
	w.Run(6 * time.Minute)
	check.Equal(t, "peers of node 2", len(b.GW.Status(w.Now).Peers), 1)
}

// A peer behind a relay is taken out and in again while the gateway runs, and its last messages had no receipt yet. They are not read
// twice.
func TestPeerBehindARelayComesBackInOneRun(t *testing.T) {
	w := world(t, 3, "iridium-directip", 1, air.Star)
	a, c := w.Nodes[1], w.Nodes[2]
	sent := tracks(w, c, []uint16{2}, 1, 200, time.Second)
	w.Run(30 * time.Second)
	peers := peersBut(w, a, 3)
	w.Give(a, gateway.NewLink{Peers: peers})
	w.Run(10 * time.Second)
	w.Give(a, gateway.NewLink{Peers: append(peers, gateway.PeerConfig{ID: 3, Name: "ship2", Via: []uint16{1}})})
	w.Run(2 * time.Hour)
	once(t, w, a.Site, 3, *sent)
	ends(t, w, c, 2, 1)
}

// A gateway restarts while messages wait for a relay that is away: they wait on, and go once.
func TestARestartWhileTheRelayIsAway(t *testing.T) {
	w := world(t, 3, "iridium-directip", 1, air.Star)
	shore, a, c := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	sent := tracks(w, a, []uint16{3}, 5, 200, 20*time.Second) // they meet
	w.Run(20 * time.Minute)
	w.Kill(shore, 40*time.Minute)
	more := tracks(w, a, []uint16{3}, 5, 201, time.Second)
	w.Run(time.Minute)
	w.Kill(a, time.Second)
	w.Run(2 * time.Hour)
	once(t, w, c.Site, 2, append(*sent, *more...))
	check.Equal(t, "repeated", linkTo(w, a, 3).Repeated, 0)
}

// A capsule has ended before the relay took it, and its gateway restarts: the message goes again at once, and not as one that the relay has.
func TestACapsuleThatEndedGoesAfterARestart(t *testing.T) {
	w := world(t, 3, "iridium-directip", 1, air.Star)
	shore, a, c := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	sent := tracks(w, a, []uint16{3}, 5, 200, 20*time.Second) // they meet
	w.Run(20 * time.Minute)
	w.Kill(shore, time.Minute)
	more := tracks(w, a, []uint16{3}, 1, 201, time.Second)
	w.Run(30 * time.Second)
	w.Give(a, gateway.NewLink{Peers: peersBut(w, a, 1)})
	w.Kill(a, time.Second)
	w.Run(5 * time.Minute)
	once(t, w, c.Site, 2, append(*sent, *more...))
}

// A gateway that knows the way back to a peer only from the peer's messages knows the way after a restart.
func TestALearnedHopOutlivesARestart(t *testing.T) {
	w := oneWay(t)
	b, c := w.Nodes[1], w.Nodes[2]
	tracks(w, c, []uint16{2}, 1, 200, time.Second)
	w.Run(20 * time.Minute)
	w.Kill(b, time.Second)
	w.Run(2 * time.Second)
	sent := tracks(w, b, []uint16{3}, 1, 200, time.Second)
	w.Run(time.Hour)
	once(t, w, c.Site, 2, *sent)
}

// A relay drops a message, and its gateway restarts before that shows: the message goes again by another relay, not by the same.
func TestARestartForgetsNoRelayThatDrops(t *testing.T) {
	w := world(t, 4, "wire", 1, func(c *sim.Config) {
		c.Roster = true
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Relay = n.ID == 4
			for i := range g.Peers {
				if p := &g.Peers[i]; n.ID+p.ID == 4 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{4}
					if n.ID == 1 {
						p.Via = []uint16{2, 4}
					}
				}
			}
		}
	})
	a, b, c := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	w.Reconfigure(b, func(g *gateway.Config) { g.Relay = true })
	w.Kill(b, time.Second)
	sent := tracks(w, a, []uint16{3}, 5, 200, 20*time.Second) // they meet
	w.Run(20 * time.Minute)
	w.Reconfigure(b, func(g *gateway.Config) { g.Relay = false })
	w.Kill(b, time.Second)
	w.Run(time.Minute)
	more := tracks(w, a, []uint16{3}, 1, 201, time.Second)
	w.At(time.Minute, func() { w.Kill(a, time.Second) })
	w.Run(20 * time.Minute)
	once(t, w, c.Site, 1, append(*sent, *more...))
}

// A node behind a relay counts as silent after it has twice given no receipt, however many messages are on their way to it at once.
func TestSilentAfterTwoTimesWithoutAReceipt(t *testing.T) {
	w := world(t, 3, "iridium-directip", 1, air.Star)
	a, c := w.Nodes[1], w.Nodes[2]
	tracks(w, a, []uint16{3}, 5, 200, 20*time.Second) // they meet
	w.Run(20 * time.Minute)
	w.Kill(c, 3*time.Hour)
	tracks(w, a, []uint16{3}, 5, 201, 10*time.Second)
	w.Run(20 * time.Minute)
	check.Equal(t, "the link after the first time", linkTo(w, a, 3).Link, "up")
	w.Run(30 * time.Minute)
	check.True(t, "not after the second", linkTo(w, a, 3).Link != "up", linkTo(w, a, 3).Link)
}
