package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// full restarts a node with room for share times the octets that wait there for its peer, and no more.
func full(w *sim.World, n *sim.Node, share float64) (waiting int) {
	s := n.GW.Status(w.Now).Peers[0]
	w.Reconfigure(n, func(c *gateway.Config) { c.MaxWaiting = int(float64(s.WaitingOctets) * share) })
	w.Kill(n, time.Second)
	w.Run(5 * time.Second)
	return s.Waiting + s.UnderWay
}

// A notice of undeliverable messages waits while the queue for the peer is full, also across a restart, and then goes.
func TestNoticeWaitsForRoom(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 51)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Keep = true
	w.Run(time.Minute)
	sent := tracks(w, ship, []uint16{1}, 5, 100, time.Second)
	w.Run(30 * time.Second)
	w.Outage(ship, 20*time.Minute)
	w.Run(time.Second)
	for i := range 60 {
		hq.Site.Send(w, track(1, pipeShip, i, 300), 2)
	}
	w.Run(time.Minute)
	full(w, hq, 1)
	hq.Site.GiveUp(w)
	w.Run(2 * time.Minute)
	check.Equal(t, "undeliverable at the receiver's gateway", hq.GW.Status(w.Now).Peers[0].UndeliverableHere, uint64(len(*sent)))
	check.Differ(t, "lines of the log that the peer is told later", said(w, "hq warn: the queue for a peer is full; the notice of its undeliverable messages goes later"), 0)
	w.Kill(hq, time.Second)
	w.Run(time.Hour)
	check.Equal(t, "undeliverable at the sender's gateway", ship.GW.Status(w.Now).Peers[0].Undeliverable, uint64(len(*sent)))
	check.Equal(t, "messages that the ship has", len(ship.Site.Got), 60)
}

// A peer lost its store, and there is no room to take all messages that waited for it into custody again: those given
// up are counted and logged, and the rest arrives in order.
func TestGivenUpForAPeerThatBeginsAnew(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 52)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	w.Outage(ship, 5*time.Minute)
	w.Run(time.Second)
	for i := range 60 {
		hq.Site.Send(w, track(1, pipeShip, i, 300), 2)
	}
	w.Run(time.Minute)
	waited := full(w, hq, 0.5)
	w.LoseStore(ship)
	w.Kill(ship, time.Second)
	w.Run(time.Hour)
	s := hq.GW.Status(w.Now).Peers[0]
	check.Differ(t, "given up", s.Cancelled, 0)
	check.Equal(t, "delivered or given up", int(s.Delivered+s.Cancelled), waited)
	check.Equal(t, "lines of the log that say so", said(w, fmt.Sprintf("given_up %d", s.Cancelled)), 1)
	last := -1
	for _, g := range ship.Site.Got {
		var from, i int
		fmt.Sscanf(string(g.Payload.Parts[0].Data), "%d;%d;", &from, &i)
		if i <= last {
			t.Errorf("message %d came behind %d", i, last)
		}
		last = i
	}
	check.Equal(t, "messages that the ship has", len(ship.Site.Got), int(s.Delivered))
}
