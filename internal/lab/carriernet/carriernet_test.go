package carriernet_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
)

func play(t *testing.T, seed uint64) *carriernet.Network {
	t.Helper()
	p, err := profile.Load("iridium-directip", nil)
	check.NoError(check.Fatal(t), err)
	p.Reorder = true
	w, err := carriernet.New(carriernet.Config{Nodes: 3, Profile: p, Seed: seed, Plain: true, Wild: linkemu.Wild{Reorder: true, TwicePct: 5}})
	check.NoError(check.Fatal(t), err)
	w.Crash = 0.02
	for i := range 20 {
		w.Nodes[0].Say(carriernet.Report(1, i), 2, 3)
		w.Run(20 * time.Second)
	}
	w.Crash = 0
	w.Run(10 * time.Minute)
	return w
}

// TestSameSeedSameRun: a network depends on no clock and no chance except its seed.
func TestSameSeedSameRun(t *testing.T) {
	one, again, other := play(t, 7), play(t, 7), play(t, 8)
	check.Same(t, "the datagrams of the second run", again.Sent, one.Sent)
	check.Same(t, "the notes of the second run", again.Notes, one.Notes)
	check.Differ(t, "the datagrams of another seed", fmt.Sprint(other.Sent), fmt.Sprint(one.Sent))
}
