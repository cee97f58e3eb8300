package unicast_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
)

// buckets are those of the carrier, and those of the store and the reader that it works with.
var buckets = []string{"peer", "first", "flow", "norm", "path", "cut", "piece", "early", "mail", "to", "ordered", "inflow", "before"}

// busy is a node whose journal has records of every kind: messages that wait, are under way, came early, and segments either way.
func busy(t *testing.T, seed uint64, old bool) *game {
	cfg := wild(t, seed)
	cfg.Profile.Reorder, cfg.Wild.Reorder, cfg.Old = false, false, old
	g := begin(t, cfg)
	for i := range 6 {
		g.a.Say(carriernet.Report(1, i), 2)
		g.b.Say(carriernet.Report(2, i), 1)
		g.Run(3 * time.Second)
	}
	g.b.Say(carriernet.Noise(2, 0, 90, 6000), 1)
	g.Run(4 * time.Second)
	lost := map[uint16]int{}
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if carriernet.Has[frame.Data](d) {
			lost[to.ID]++
		}
		return lost[to.ID] == 1
	})
	for i := range 5 {
		g.a.Say(carriernet.Report(1, 10+i), 2)
		g.b.Say(carriernet.Report(2, 10+i), 1)
		g.Run(400 * time.Millisecond)
	}
	g.a.Say(carriernet.Noise(1, 0, 90, 4000), 2)
	g.Run(2 * time.Second)
	g.Fate = nil
	return g
}

// starts has a node start with a journal and live for a while. A journal is refused, or it is used; nothing panics.
func (g *game) starts(t check.T, journal []api.Record) {
	defer func() {
		if why := recover(); why != nil {
			t.Fatalf("the node panics: %v", why)
		}
	}()
	if g.StartWith(g.a, journal) == nil {
		g.Run(8 * time.Second)
	}
}

// Any one record of a busy journal may be spoilt: the start refuses it with an error, or goes on, and lives.
func TestSpoiltRecords(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, old := range []bool{false, true} {
		g := busy(t, 3, old)
		journal := g.a.Journal()
		for i, r := range journal {
			if seen[r.Bucket] {
				continue
			}
			seen[r.Bucket] = true
			g.starts(check.In(t, "without", r.Bucket, fmt.Sprintf("%x", r.Key)), slices.Delete(slices.Clone(journal), i, i+1))
			for k, bad := range carriernet.Spoilt(r, 12) {
				changed := slices.Clone(journal)
				changed[i] = bad
				g.starts(check.In(t, r.Bucket, fmt.Sprintf("%x", r.Key), "form", k), changed)
			}
		}
	}
	for _, bucket := range []string{"peer", "flow", "norm", "path", "cut", "piece", "early", "mail", "to", "inflow"} {
		check.Equal(check.In(t, bucket), "the journal has such records", seen[bucket], true)
	}
}

// FuzzRestore gives a carrier a record of its journal that anything may have written: the record is an error, or it is used, and the
// node lives.
func FuzzRestore(f *testing.F) {
	for _, r := range busyRecords(f) {
		f.Add(uint8(slices.Index(buckets, r.Bucket)), r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, bucket uint8, key, value []byte) {
		g := plain(t)
		g.say(1, time.Second)
		journal := g.a.Journal()
		r := api.Record{Bucket: buckets[int(bucket)%len(buckets)], Key: key, Value: value}
		g.starts(t, append(journal, r))
	})
}

func busyRecords(f *testing.F) (list []api.Record) {
	var t testing.T
	n := map[string]int{}
	for _, r := range busy(&t, 3, false).a.Journal() {
		if n[r.Bucket]++; n[r.Bucket] <= 2 {
			list = append(list, r)
		}
	}
	return list
}
