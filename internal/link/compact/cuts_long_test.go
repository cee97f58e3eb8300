//go:build long

package compact

import (
	"fmt"
	"testing"
)

// A hundred thousand codes expand in slices as they do at once.
func TestHundredThousandCuts(t *testing.T) {
	const draws, shards = 100_000, 4
	network := cutNetwork(t)
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			cuts(t, 100+shard, draws/shards, network)
		})
	}
}
