//go:build long

package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/jxtabridge"
)

// Ten minutes of 330 joins and leaves a second: what they cost does not grow with time, and pictures are right a minute later.
func TestChurnForTenMinutes(t *testing.T) {
	for _, view := range []jxtabridge.View{jxtabridge.Count, "tree(3)", jxtabridge.Complete} {
		t.Run(string(view), func(t *testing.T) {
			if c := churn(t, view, 10*time.Minute); float64(c.heap[1]) > 1.25*float64(c.heap[0]) {
				t.Errorf("%d octets of memory at the end, %d a quarter of the way", c.heap[1], c.heap[0])
			}
		})
	}
}
