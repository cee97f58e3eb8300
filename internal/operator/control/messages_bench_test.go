package control

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
)

// BenchmarkMessages asks a gateway with so many waiting messages for one page of them, and reports the longest hold of the loop
// in one answer: its 99th percentile and its median.
func BenchmarkMessages(b *testing.B) {
	for _, bb := range []struct {
		name  string
		n     int
		query messageQuery
	}{
		{"1000 newest", 1000, messageQuery{limit: 1000}},
		{"1000 waiting", 1000, messageQuery{limit: 1000, state: api.StateWaiting}},
		{"10000 newest", 10000, messageQuery{limit: 100}},
		{"10000 waiting", 10000, messageQuery{limit: 100, state: api.StateWaiting}},
		{"10000 nobody", 10000, messageQuery{limit: 100, from: "nobody"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			a := ask(b)
			a.send(bb.n, "body", 1)
			var mu sync.Mutex
			var holds []time.Duration
			longest := time.Duration(0)
			s := Source{Messages: func(_ context.Context, f func(time.Time, gateway.Messages)) error {
				mu.Lock()
				defer mu.Unlock()
				began := time.Now()
				f(a.w.Now, a.ship.GW.Messages())
				longest = max(longest, time.Since(began))
				return nil
			}}
			for b.Loop() {
				longest = 0
				if _, err := s.find(context.Background(), bb.query); err != nil {
					b.Fatal(err)
				}
				holds = append(holds, longest)
			}
			slices.Sort(holds)
			b.ReportMetric(float64(holds[len(holds)/2].Microseconds()), "hold-p50-µs")
			b.ReportMetric(float64(holds[len(holds)*99/100].Microseconds()), "hold-p99-µs")
		})
	}
}
