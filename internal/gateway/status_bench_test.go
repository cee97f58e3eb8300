package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/lab/air"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// BenchmarkStatus: how long the loop is held up for a status with 64 sites and 1,000 messages that wait.
func BenchmarkStatus(b *testing.B) {
	p, err := profile.Load("iridium-directip", nil)
	if err != nil {
		b.Fatal(err)
	}
	w, err := sim.New(sim.Config{Nodes: 65, Profile: p, Wire: p, Seed: 1, Down: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	ship := w.Nodes[1]
	w.Run(10 * time.Second)
	for _, n := range w.Nodes {
		if n != ship {
			w.Kill(n, 24*time.Hour)
		}
	}
	for i := range 1000 {
		to := w.Nodes[(2+i)%64]
		if to != ship {
			ship.Site.Send(w, air.Track(ship.ID, air.Pipe, i, 300), to.ID)
		}
	}
	for b.Loop() {
		ship.GW.Status(w.Now)
	}
}
