package linkemu

import "testing"

func TestQuantiles(t *testing.T) {
	list := []float64{1, 2, 4, 8}
	for _, c := range []struct{ share, between, of float64 }{{0, 1, 1}, {0.25, 1.75, 1}, {0.5, 3, 2}, {0.51, 3.06, 4}, {0.95, 7.4, 8}, {1, 8, 8}} {
		if got := Between(list, c.share); got < c.between-1e-9 || got > c.between+1e-9 {
			t.Errorf("Between %v is %v, want %v", c.share, got, c.between)
		}
		if got := Quantile(list, c.share); got != c.of {
			t.Errorf("Of %v is %v, want %v", c.share, got, c.of)
		}
	}
	if Quantile(nil, 0.5) != 0 || Between([]float64{3}, 0.9) != 3 {
		t.Error("of none, and of one")
	}
}
