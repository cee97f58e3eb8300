package pmul_test

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/pmul"
)

// codedWorld is HF nodes whose answers all nodes hear, like the gateway's.
func codedWorld(t *testing.T, nodes int, pct float64, seed uint64) *world {
	t.Helper()
	return newWorld(t, setup{nodes: nodes, p: lossy(load(t, "hf-2400"), pct, false), coding: pmul.Compact, seed: seed,
		change: func(c *pmul.Config) { c.AckGroup = true }})
}

// shardsOnAir counts the shards that a node sends from now on.
func shardsOnAir(w *world, n *node) *int {
	count := 0
	w.sent = func(from *node, data []byte) {
		pdus, err := pmul.ParseCompact(data, from.id, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, p := range pdus {
			if _, shard := p.(pmul.ParityPDU); shard && from == n {
				count++
			}
		}
	}
	return &count
}

// TestShardsUnasked: shards go with the first pass if several receivers are expected to lose frames, to one receiver only
// after it has lost some, and never with a message of one fragment.
func TestShardsUnasked(t *testing.T) {
	for _, c := range []struct {
		name            string
		receivers       int
		expected        float64 // loss in the profile
		octets          int
		fewest, highest int
	}{
		{"several", 4, 0.05, 20000, 2, 10},
		{"many", 64, 0.05, 20000, 5, 15},
		{"several without loss", 4, 0, 20000, 0, 0},
		{"one", 1, 0.05, 20000, 0, 0},
		{"few fragments to few", 2, 0.05, 900, 0, 0},
		{"one fragment", 64, 0.05, 200, 0, 0},
	} {
		w := newWorld(t, setup{nodes: c.receivers + 1, p: lossy(load(t, "hf-2400"), 0, false), coding: pmul.Compact, seed: 1,
			change: func(cfg *pmul.Config) { cfg.AckGroup, cfg.Loss = true, c.expected }})
		shards := shardsOnAir(w, w.nodes[0])
		w.send(w.nodes[0], content(c.octets, 1), 1, time.Hour, w.nodes[1:]...)
		w.run(time.Hour, func() bool { return len(w.nodes[0].fates) == c.receivers })
		st := w.nodes[0].sender.Stats()
		if *shards < c.fewest || *shards > c.highest || st.DataAgain != 0 || st.Polls != 0 {
			t.Errorf("%s: %d shards, want %d to %d; %+v", c.name, *shards, c.fewest, c.highest, st)
		}
	}

	w := codedWorld(t, 2, 20, 1)
	for i := range 4 {
		w.send(w.nodes[0], content(20000, uint64(i)), 1, 24*time.Hour, w.nodes[1])
		w.run(24*time.Hour, func() bool { return len(w.nodes[0].fates) == i+1 })
	}
	before := w.nodes[0].sender.Stats().DataAgain
	shards := shardsOnAir(w, w.nodes[0])
	w.send(w.nodes[0], content(20000, 9), 1, 24*time.Hour, w.nodes[1])
	w.run(24*time.Hour, func() bool { return len(w.nodes[0].fates) == 5 })
	if asked := w.nodes[0].sender.Stats().DataAgain - before; *shards <= asked {
		t.Errorf("to one that loses a fifth: %d shards, %d of them asked for", *shards, asked)
	}
}

// TestNobodyAnswersIntoAPass: from the first frame of a pass to its last no other node transmits, neither one that has all
// nor one that lacks something.
func TestNobodyAnswersIntoAPass(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		w := codedWorld(t, 17, 5, seed)
		left, broken := 0, 0
		w.sent = func(from *node, data []byte) {
			pdus, err := pmul.ParseCompact(data, from.id, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pdus {
				switch p := p.(type) {
				case pmul.AddressPDU:
					if p.Plan != nil {
						left = int(p.Plan.Follow)
					}
				case pmul.DataPDU, pmul.ParityPDU:
					left--
				case pmul.AckPDU:
					if left > 0 {
						broken++
					}
				}
			}
		}
		w.send(w.nodes[0], content(20000, seed), 1, time.Hour, w.nodes[1:]...)
		w.run(time.Hour, func() bool { return len(w.nodes[0].fates) == 16 })
		check.Equal(t, "fates", len(w.nodes[0].fates), 16)
		check.Equal(t, "answers into a pass", broken, 0)
	}
}

// TestOneNumberForMany: when all lose as much, some nodes transmit, and the others hear them and stay quiet.
func TestOneNumberForMany(t *testing.T) {
	w := newWorld(t, setup{nodes: 65, p: lossy(load(t, "hf-2400"), 0, false), coding: pmul.Compact, seed: 1,
		change: func(c *pmul.Config) { c.AckGroup, c.Loss = true, 0.01 }})
	lists := 0
	w.tap = func(from, to *node, data []byte) bool {
		pdus, err := pmul.ParseCompact(data, from.id, to.id)
		if err != nil {
			t.Fatal(err)
		}
		d, is := pdus[len(pdus)-1].(pmul.DataPDU)
		return !is || d.Number < 5 || d.Number > 12 // a fade over the sender
	}
	w.sent = func(from *node, data []byte) {
		pdus, _ := pmul.ParseCompact(data, from.id, 0)
		for _, p := range pdus {
			if a, is := p.(pmul.AckPDU); is && len(a.Entries[0].Missing) > 0 {
				lists++
			}
		}
	}
	w.send(w.nodes[0], content(20000, 1), 1, time.Hour, w.nodes[1:]...)
	w.run(time.Hour, func() bool { return len(w.nodes[0].fates) == 64 })
	t.Logf("%d of 64 said that they lack something", lists)
	check.Equal(t, "fates", len(w.nodes[0].fates), 64)
	check.True(t, "lists <= 24", lists <= 24, lists)
}

// TestShardsBeforeTheAddress: a node that lost the first frame, and then the repeated Address_PDU, keeps the shards that it
// hears and has the message when it is asked.
func TestShardsBeforeTheAddress(t *testing.T) {
	w := newWorld(t, setup{nodes: 6, p: lossy(load(t, "hf-2400"), 0, false), coding: pmul.Compact, seed: 1,
		change: func(c *pmul.Config) { c.AckGroup, c.Loss = true, 0.05 }})
	addresses := 0
	w.tap = func(from, to *node, data []byte) bool {
		pdus, err := pmul.ParseCompact(data, from.id, to.id)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pdus {
			switch p := p.(type) {
			case pmul.AddressPDU:
				if to == w.nodes[3] && addresses < 2 {
					addresses++
					return false
				}
			case pmul.DataPDU:
				if to == w.nodes[3] && p.Number == 7 {
					return false
				}
			}
		}
		return true
	}
	w.send(w.nodes[0], content(20000, 1), 1, time.Hour, w.nodes[1:]...)
	w.run(time.Hour, func() bool { return len(w.nodes[0].fates) == 5 })
	check.Equal(t, "fates", len(w.nodes[0].fates), 5)
	check.Equal(t, "sent again", w.nodes[0].sender.Stats().DataAgain, 0)
}
