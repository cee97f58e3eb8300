package gateway_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/sim"
)

// TestNewsWhileMessagesAreHeld: the other site knows of a listener while its bridge still keeps the messages sent when the peer began
// to listen. On shared channels without other traffic, where bursts of losses last longest.
func TestNewsWhileMessagesAreHeld(t *testing.T) {
	for _, link := range []string{"hf-2400", "hf-2400-fading", "hf-300", "vhf-cnr-16k"} {
		var took []float64
		for seed := uint64(1); seed <= 400; seed++ {
			took = append(took, newsOfListener(t, link, seed).Seconds())
		}
		slices.Sort(took)
		hold := gateway.Hold(load(t, link))
		late, _ := slices.BinarySearch(took, hold.Seconds()+1)
		late = len(took) - late
		t.Logf("%s: news of a listener takes %.0f s at the median, %.0f s for 95 %%, %.0f s for 98 %%, worst %.0f s; messages are kept for %.0f s: too short in %d of %d games",
			link, linkemu.Quantile(took, 0.5), linkemu.Quantile(took, 0.95), linkemu.Quantile(took, 0.98), took[len(took)-1], hold.Seconds(), late, len(took))
		check.True(t, "news in time on "+link, late <= len(took)/50, late)
	}
}

// newsOfListener is how long the news takes between two sites that have started together up to nine seconds before.
func newsOfListener(t *testing.T, link string, seed uint64) time.Duration {
	w := world(t, 2, link, seed, func(c *sim.Config) { c.Group = true })
	w.Run(time.Duration(seed%10) * time.Second)
	w.Nodes[0].Site.Put(w, pipeItem(1, pipeHQ))
	began := w.Now
	for far := w.Nodes[1].Site; len(far.Far[1]) == 0 && w.Now.Sub(began) < time.Hour; {
		w.Run(time.Second)
	}
	return w.Now.Sub(began)
}
