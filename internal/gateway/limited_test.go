package gateway

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// An item that passes may withdraw others, as an adapter that is shown an item of another site may do. None of those that still wait is
// lost.
func TestLimitedKeepsWhatWaits(t *testing.T) {
	f := filter.New([]filter.Rule{{Rate: filter.Rate{Count: 100, Per: time.Second}}})
	now := time.Unix(1_800_000_000, 0)
	l, passed, items := limited{}, 0, make([]site.Item, 40)
	for i := range items {
		items[i] = site.Item{Kind: site.Listener, Scope: "jxta-NetGroup", Owner: "uuid-1", ID: fmt.Sprintf("uuid-%02d", i)}
		l.add(f, limitedItem{from: 1, item: items[i]}, now)
	}
	l.step(now, f, func(limitedItem) {
		if passed++; passed == 1 {
			for _, it := range items[1:29] {
				l.drop(1, it.Key())
			}
		}
	})
	check.Equal(t, "items that passed", passed, 12)
	check.Equal(t, "items left", len(l.queues[0].items), 0)
}
