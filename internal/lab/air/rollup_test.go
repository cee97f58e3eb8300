package air

import (
	"context"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// At the headquarters of 64 gateways the sum is that of the records, and none is missing, whichever gateway is off the air.
func TestSumsEqualTheirParts(t *testing.T) {
	got, err := rolledUp(context.Background(), 1, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "records missing, or wrong sums", got[3][0], 0.0)
	if got[1][0] > 360 {
		t.Errorf("of 100 records 99 are at most %.0f s old, want a period of 300 s and a way", got[1][0])
	}
}
