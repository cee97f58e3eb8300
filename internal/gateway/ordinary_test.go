package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/shapes"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// strangersReports has a node send n reports of strangers, of 200 octets each, one every interval.
func strangersReports(w *sim.World, from *sim.Node, to uint16, n int, every time.Duration) *[]offered {
	sent := &[]offered{}
	app := shapes.Report(uint64(from.ID), from.Name, 200)
	for i := range n {
		w.At(time.Duration(i)*every+time.Second, func() {
			m := site.Message{Published: true, Scope: "jxta-NetGroup", Topic: pipeHQ, From: peerID(from.ID), ID: fmt.Sprint(from.ID, i)}
			for _, e := range app.Next(w.Now) {
				m.Parts = append([]site.Part{{Namespace: "own", Name: e.Name, Type: e.Type, Data: e.Data}}, m.Parts...)
			}
			*sent = append(*sent, offered{At: w.Now, Message: m})
			from.Site.Send(w, m, to)
		})
	}
	return sent
}

// TestOrdinaryDay: reports of strangers each way over networks that reorder by as much as the jitter, which no profile tells. All come
// once and soon, and nobody calls the link down or a peer put back.
func TestOrdinaryDay(t *testing.T) {
	for _, tt := range []struct {
		profile     string
		every       time.Duration
		median, p95 float64 // seconds at most
	}{
		{"iridium-directip", 600 * time.Millisecond, 2.5, 6}, {"iridium-dialup", 1500 * time.Millisecond, 4, 10},
		{"iridium-certus-100", 100 * time.Millisecond, 1, 2.5}, {"hf-2400", 20 * time.Second, 10, 60},
	} {
		for seed := range seeds(5) {
			in := check.In(t, fmt.Sprintf("%s, seed %d", tt.profile, seed))
			w := world(t, 2, tt.profile, seed, func(c *sim.Config) { c.Group, c.Wild = c.Profile.Shared, linkemu.Wild{Reorder: true} })
			n := min(int(150*time.Second/tt.every), 30*int(seeds(10)))
			down := strangersReports(w, w.Nodes[0], 2, n, tt.every)
			up := strangersReports(w, w.Nodes[1], 1, n, tt.every)
			w.Run(time.Duration(n)*tt.every + 10*time.Minute)
			for to, sent := range map[int][]offered{1: *down, 0: *up} {
				judge := air.Once
				if tt.profile == "hf-2400" { // over P_Mul messages may overtake each other
					judge = air.Each
				}
				took, err := judge(w.Nodes[to].Site.Got, uint16(2-to), sent)
				check.NoError(check.Fatal(in), err)
				median, p95 := took[n/2].Seconds(), took[n*95/100].Seconds()
				t.Logf("%s, seed %d, to %s: median %.1f s, 95 %% %.1f s", tt.profile, seed, w.Nodes[to].Name, median, p95)
				check.True(in, fmt.Sprintf("median %.1f s, 95 %% %.1f s in time", median, p95), median <= tt.median && p95 <= tt.p95)
			}
			for _, alarm := range []string{"is down", "put back", "cannot be read", "is dropped", "asked for again"} {
				check.Equal(in, alarm, said(w, alarm), 0)
			}
		}
	}
}
