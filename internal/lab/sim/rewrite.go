package sim

import (
	"maps"
	"slices"

	"aldis/internal/gateway/api"
)

// Rewrite gives the next start of n another journal, which change makes from the present one. With newStore the journal is a store of its
// own.
func (w *World) Rewrite(n *Node, newStore bool, change func([]api.Record) []api.Record) {
	var records []api.Record
	for _, key := range slices.Sorted(maps.Keys(n.journal)) {
		records = append(records, n.journal[key])
	}
	n.journal = map[string]api.Record{}
	for _, r := range change(records) {
		n.journal[r.Bucket+"\x00"+string(r.Key)] = r
	}
	if newStore {
		n.cfg.Store = w.rng.Uint32()
	}
}
