//go:build long

package tak_test

import (
	"testing"
	"time"
)

// An hour of it with an alert every two minutes, three seeds: no unit is shown as stale, and every picture is within its age of
// five minutes, also at a silent ship.
func TestRadioNetForAnHour(t *testing.T) {
	var took []time.Duration
	for seed := range uint64(3) {
		n := sail(t, seed+1, true, 29, 2*time.Minute, time.Hour)
		t.Logf("seed %d: looked at %d times, %d stale; age median %v, 95th percentile %v, worst %v; off median %.0f m, 95th percentile %.0f m, worst %.0f m",
			seed+1, n.looked, n.stale, at(n.ages, 50), at(n.ages, 95), at(n.ages, 100), at(n.off, 50), at(n.off, 95), at(n.off, 100))
		t.Logf("seed %d: %d of %d alerts, median %v, 95th percentile %v, worst %v", seed+1, len(n.took), n.raised, at(n.took, 50), at(n.took, 95), at(n.took, 100))
		if n.stale > 0 || at(n.ages, 100) > 5*time.Minute {
			t.Errorf("seed %d: %d pictures are stale, the oldest is of %v ago", seed+1, n.stale, at(n.ages, 100))
		}
		if len(n.took) != n.raised {
			t.Errorf("seed %d: %d of %d alerts", seed+1, len(n.took), n.raised)
		}
		took = append(took, n.took...)
	}
	if t.Logf("%d alerts, median %v, 95th percentile %v", len(took), at(took, 50), at(took, 95)); at(took, 95) > 15*time.Second {
		t.Errorf("the 95th percentile of alerts is %v", at(took, 95))
	}
}
