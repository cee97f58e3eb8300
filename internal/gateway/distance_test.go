package gateway_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
)

// What a gateway says of the time that a message takes, beside what the next one took, from no load to four fifths of the rate.
func TestDistanceAgainstTheNextMessage(t *testing.T) {
	t.Parallel()
	for _, name := range distanceProfiles() {
		for _, load := range []float64{0, 0.4, 0.8} {
			for _, octets := range []int{200, 20_000} {
				var said, took []float64
				for seed := range seeds(20) {
					a, b, err := air.Distances(t.Context(), name, load, octets, seed+1)
					check.NoError(check.Fatal(t), err)
					said, took = append(said, a...), append(took, b...)
				}
				a, b := median(said), median(took)
				var off []float64
				for i := range said {
					off = append(off, math.Abs(math.Log(said[i]/took[i])))
				}
				t.Logf("%s, load %.0f %%, %d octets: said %.2f s, took %.2f s, %+.0f %%; single ones off by %.0f %%", name, 100*load, octets, a, b, 100*(a/b-1), 100*(math.Exp(median(off))-1))
				check.True(t, "within 25 %", a/b < 1.25 && b/a < 1.25, a, b)
			}
		}
	}
}

// distanceProfiles are those whose carrier sends to each peer: over P_Mul what is said is further off (docs/limits.md). It takes minutes to
// compute them all: the short form has one.
func distanceProfiles() []string {
	list := []string{"iridium-directip", "iridium-certus-100", "geo-satcom-128k", "iridium-dialup"}
	return list[:min(int(seeds(4)), len(list))]
}

func median[T cmp.Ordered](list []T) T {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
