package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// When the store is full, the least urgent messages go first, and senders of equally urgent ones are refused.
func TestFullStore(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 24, urgency(t), func(c *sim.Config) {
		before := c.Configure
		c.Configure = func(n *sim.Node, g *gateway.Config) { before(n, g); g.MaxWaiting = 20_000 }
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	w.Outage(ship, 5*time.Minute)
	w.Run(10 * time.Second)
	for i := range 100 {
		ship.Site.Send(w, named("low", fmt.Sprintf("LOW;%02d;", i), 300), 1)
	}
	w.Run(time.Second)
	full := ship.GW.Status(w.Now).Peers[0]
	for i := range 20 {
		ship.Site.Send(w, track(2, pipeShip, i, 300), 1)
	}
	w.Run(15 * time.Minute)
	s := ship.GW.Status(w.Now).Peers[0]
	flashes := 0
	for _, g := range hq.Site.Got {
		if g.Payload.Topic == pipeShip {
			flashes++
		}
	}
	check.Differ(t, "full.Refused", full.Refused, 0)
	check.Equal(t, "s.Refused", s.Refused, full.Refused)
	check.Differ(t, "s.Withdrawn", s.Cancelled, 0)
	check.Equal(t, "flashes", flashes, 20)
	if s.Accepted != s.Delivered+s.Cancelled || int(s.Delivered) != len(hq.Site.Got) {
		t.Errorf("%+v, %d arrived", s.PeerCounts, len(hq.Site.Got))
	}
}
