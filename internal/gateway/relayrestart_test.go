package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/air"
)

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
