package gateway_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// BenchmarkMillisecondBesideAFlood is how much processor time both gateways of a link take for a millisecond of virtual time,
// in which a turn of each loop codes a slice at the most, while a local peer sends fifty messages of 3 kB a second: about
// how long another peer's question waits.
func BenchmarkMillisecondBesideAFlood(b *testing.B) {
	p, err := profile.Load("iridium-directip", nil)
	if err != nil {
		b.Fatal(err)
	}
	wire, err := profile.Load("wire", nil)
	if err != nil {
		b.Fatal(err)
	}
	w, err := sim.New(sim.Config{Nodes: 2, Profile: p, Wire: wire, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	w.Run(time.Minute)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		if i%20 == 0 {
			m := track(2, pipeHQ, i, 1)
			m.Parts[0].Data = report(i, 3000)
			w.Nodes[1].Site.Send(w, m, 1)
		}
		began := time.Now()
		w.Run(time.Millisecond)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "longest-ms")
}
