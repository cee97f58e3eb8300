package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// BenchmarkFleet: a shore gateway with 256 ships, each of which says one line a minute and is told one. An operation is a minute
// of that. The figure is the share of a core that all 257 gateways and their links take together, so the shore gateway takes
// less; journal and sockets are not in it.
func BenchmarkFleet(b *testing.B) {
	const ships = 256
	p, err := profile.Load("iridium-certus-100", nil)
	if err != nil {
		b.Fatal(err)
	}
	wire, err := profile.Load("wire", nil)
	if err != nil {
		b.Fatal(err)
	}
	w, err := sim.New(sim.Config{Nodes: ships + 1, Profile: p, Wire: wire, Seed: 1, Configure: func(n *sim.Node, c *gateway.Config) {
		if n.ID > 1 { // a ship knows HQ alone
			c.Peers = c.Peers[:1]
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	hq := w.Nodes[0]
	for _, n := range w.Nodes {
		n.Site.Put(w, pipeItem(n.ID, pipeHQ))
	}
	w.Run(5 * time.Minute)
	began := len(hq.Site.Got)
	b.ResetTimer()
	var took time.Duration
	for i := range b.N {
		for k, ship := range w.Nodes[1:] {
			at := time.Duration(k) * time.Minute / ships
			w.At(at, func() { ship.Site.Send(w, textTrack(ship.ID, pipeHQ, i), hq.ID) })
			w.At(at+time.Second/9, func() { hq.Site.Send(w, textTrack(hq.ID, pipeHQ, i*ships+k), ship.ID) })
		}
		before := time.Now()
		w.Run(time.Minute)
		took += time.Since(before)
	}
	b.ReportMetric(100*took.Seconds()/(60*float64(b.N)), "%core")
	b.ReportMetric(float64(len(hq.Site.Got)-began)/float64(b.N), "messages/op")
}
