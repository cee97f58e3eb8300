package gateway_test

import (
	"context"
	"slices"
	"testing"

	"aldis/internal/lab/air"
)

// TestBurstsOnStars: the last of 128 messages at once, for the worst of five seeds.
func TestBurstsOnStars(t *testing.T) {
	for _, c := range []struct {
		link string
		down bool
		over float64
	}{
		{"iridium-directip", false, 1.17}, {"iridium-dialup", false, 1.17}, {"iridium-certus-100", false, 1.12}, {"geo-satcom-128k", false, 1.15},
		{"iridium-directip", true, 1.35}, {"iridium-certus-100", true, 1.2}, {"geo-satcom-128k", true, 1.15},
	} {
		var over []float64
		for seed := uint64(1); seed <= 5; seed++ {
			took, err := air.Burst(context.Background(), c.link, seed, 128, 200, c.down)
			if err != nil {
				t.Fatal(err)
			}
			over = append(over, took)
		}
		t.Logf("%s, to the ship %v: the last after %.2f times the limit", c.link, c.down, over)
		if worst := slices.Max(over); worst > c.over {
			t.Errorf("%s, to the ship %v: %.2f, want %.2f", c.link, c.down, worst, c.over)
		}
	}
}
