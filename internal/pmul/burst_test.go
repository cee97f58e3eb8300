package pmul_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// burstOf sends so many messages of 200 octets at once to every other node and returns when the last has arrived.
func burstOf(t *testing.T, p profile.Profile, nodes, messages int, seed uint64) (time.Duration, *world) {
	t.Helper()
	w := newWorld(t, setup{nodes: nodes, p: p, coding: pmul.Compact, seed: seed, change: func(c *pmul.Config) {
		c.AckGroup, c.AckHold = true, p.AckDelay/2
	}})
	w.ride = true
	var keys []pmul.Key
	for i := range messages {
		keys = append(keys, w.send(w.nodes[0], content(200, uint64(i)), 1, 24*time.Hour, w.nodes[1:]...))
	}
	w.run(24*time.Hour, func() bool { return len(w.nodes[0].fates) == messages*(nodes-1) })
	var end time.Time
	for _, key := range keys {
		at, ok := last(key, w.nodes[1:]...)
		if !ok {
			t.Fatalf("seed %d: %v was not delivered", seed, key)
		}
		end = later(end, at)
	}
	return end.Sub(epoch), w
}

// TestBurst: many short messages at once fill datagrams, and on a link without loss none goes again.
func TestBurst(t *testing.T) {
	for _, c := range []struct {
		link     string
		nodes, n int
		over     float64 // the limit, which is only their octets
	}{
		{"hf-2400", 2, 40, 2}, {"hf-2400", 2, 100, 2}, {"hf-2400", 4, 100, 2.5}, {"vhf-cnr-16k", 4, 100, 2.5},
	} {
		p := lossy(load(t, c.link), 0, false)
		took, w := burstOf(t, p, c.nodes, c.n, 1)
		st := w.nodes[0].sender.Stats()
		over := took.Seconds() / limit(p, 200*c.n).Seconds()
		acks := 0
		for _, n := range w.nodes[1:] {
			acks += n.acks
		}
		t.Logf("%s, %d to %d: %.1f s, %.2f x; %+v, %d acks", c.link, c.n, c.nodes-1, took.Seconds(), over, st, acks)
		if st.DataAgain != 0 {
			t.Errorf("%s, %d to %d: %d fragments went again", c.link, c.n, c.nodes-1, st.DataAgain)
		}
		if over > c.over {
			t.Errorf("%s, %d to %d: %.2f times the limit, want %.2f", c.link, c.n, c.nodes-1, over, c.over)
		}
	}
}

// TestBurstWithLoss: 128 short messages at once over lossy channels, seeds 1 to 20. Before whole announcements, and before
// the sender waited for answers while it talks, the medians were 3.9, 12.3 and 8.2; before answers waited for its pause,
// 1.48, 2.25 and 1.99.
func TestBurstWithLoss(t *testing.T) {
	for _, c := range []struct {
		link          string
		nodes         int
		median, worst float64 // over the limit, which is only their octets
	}{
		{"hf-2400", 2, 1.4, 1.8}, {"hf-2400", 4, 1.8, 3.1}, {"vhf-cnr-16k", 4, 2, 2.9},
	} {
		p := load(t, c.link)
		var over []float64
		again, polls, acks := 0, 0, 0
		for seed := uint64(1); seed <= 20; seed++ {
			took, w := burstOf(t, p, c.nodes, 128, seed)
			over = append(over, took.Seconds()/limit(p, 200*128).Seconds())
			st := w.nodes[0].sender.Stats()
			again, polls = again+st.DataAgain, polls+st.Polls
			for _, n := range w.nodes[1:] {
				acks += n.acks
			}
		}
		slices.Sort(over)
		t.Logf("%s, 128 to %d: median %.2f, 90 %% %.2f, worst %.2f times the limit; %d again, %d questions, %d datagrams of acks in 20 runs",
			c.link, c.nodes-1, over[10], over[18], over[19], again, polls, acks)
		if over[10] > c.median || over[19] > c.worst {
			t.Errorf("%s, 128 to %d: median %.2f, worst %.2f; want %.2f and %.2f", c.link, c.nodes-1, over[10], over[19], c.median, c.worst)
		}
	}
}
