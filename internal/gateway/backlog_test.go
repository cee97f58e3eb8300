package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// A delay that varies has datagrams with dozens of short messages each come at once, faster than they are read. What waits to be
// read is acknowledged and kept, so that nothing goes twice on a link that loses nothing.
func TestMessagesWaitToBeRead(t *testing.T) {
	w := world(t, 2, "geo-satcom-128k", 1, lossless, func(c *sim.Config) { c.Profile.Up.Jitter, c.Profile.Up.RateBps = 2*time.Second, 1_000_000 })
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	sent := textTracks(w, ship, []uint16{hq.ID}, 1000, 0)
	w.Run(time.Minute)
	once(t, w, hq.Site, ship.ID, *sent)
	check.Equal(t, "messages that went again", ship.GW.Status(w.Now).Peers[0].Repeated, 0)
	check.Equal(t, "reasons for which messages were dropped", len(hq.GW.Status(w.Now).Dropped), 0)
}
