//go:build long

package tak_test

import (
	"fmt"
	"testing"
	"time"
)

// The same for an hour, three seeds.
func TestUnitsThatMoveForAnHour(t *testing.T) {
	for _, link := range []string{"iridium-dialup", "hf-300"} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(link, " ", seed+1), func(t *testing.T) {
				h := play(t, link, seed+1, 10, time.Hour, 50)
				t.Log(h.figures())
				if each := float64(h.octets) / float64(h.reports); each > 40 {
					t.Errorf("a report costs %.1f octets", each)
				}
				if h.overdue > 0 && link == "iridium-dialup" {
					t.Errorf("%d positions of %d are shown more than 50 m off", h.overdue, h.shown)
				}
			})
		}
	}
}
