//go:build long

package tak_test

import (
	"fmt"
	"testing"
)

// The same with eight seeds, also with the gateway ashore as the server.
func TestPictureOverManyOutagesAndKills(t *testing.T) {
	for _, served := range []bool{false, true} {
		var sum campaign
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("server %v, seed %d", served, seed+1), func(t *testing.T) {
				c := strike(t, seed+1, served, 10, 9)
				t.Logf("%d compared, %d beyond 50 m, worst %.0f m", c.compared, c.beyond, c.worst)
				sum.compared, sum.beyond, sum.worst = sum.compared+c.compared, sum.beyond+c.beyond, max(sum.worst, c.worst)
			})
		}
		sum.right(t)
	}
}
