package pmul_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// heardBy says which of the sender's first frames each of the other nodes hears, with this seed and no other node talking:
// the fate of the k-th frame on a pipe depends on nothing else.
func heardBy(t testing.TB, p profile.Profile, nodes int, seed uint64, frames int) [][]bool {
	t.Helper()
	p.Up.QueueOctets, p.Down.QueueOctets = 1<<30, 1<<30
	cfg := linkemu.Config{Seed: seed}
	at := map[string]int{}
	for i := range nodes {
		name := fmt.Sprintf("node%d", i)
		at[name] = i - 1
		cfg.Nodes = append(cfg.Nodes, linkemu.Node{Name: name, Profile: p})
	}
	link, err := linkemu.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	heard := make([][]bool, nodes-1)
	for i := range heard {
		heard[i] = make([]bool, frames)
	}
	for k := range frames {
		out, err := link.Step(epoch, linkemu.Frame{From: "node0", Octets: 28})
		for {
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range out.Deliver {
				heard[at[d.Node]][k] = true
			}
			if out.Deadline.IsZero() {
				break
			}
			out, err = link.Step(out.Deadline, nil)
		}
	}
	return heard
}

// bounds of a transfer from one node to others on a shared channel, with the losses of one seed.
type bounds struct {
	// clairvoyant: the sender knows in advance which frames will be lost and codes perfectly: it sends until all nodes have
	// heard as many frames as the message has. No node ever answers.
	clairvoyant time.Duration
	// told: the sender has to learn which frames were lost: a first pass; if it lost any, one turn with the shortest Ack of
	// one receiver, then the missing frames, once; none of these is lost. coded: one shard can replace any frame.
	told, coded time.Duration
	// rounds: as told, but repairs are lost as the seed has it, and each round of them costs such a turn. A sender that
	// never guesses reaches this if every answer comes at the first moment and none is lost.
	rounds time.Duration
}

func boundsOf(t testing.TB, cfg pmul.Config, p profile.Profile, nodes int, seed uint64, octets int) (b bounds) {
	fragment := cfg.FragmentOctets()
	n := (octets + fragment - 1) / fragment
	air := func(octets int) time.Duration { return profile.Airtime(octets+cfg.Overhead, p.SlowerBps()) }
	header := cfg.DatagramOctets - fragment
	address := air(24 + 8*(nodes-1))
	if cfg.Coding == pmul.Compact {
		address = 0 // rides with the first fragment
	}
	full := air(cfg.DatagramOctets)
	first := address + time.Duration(n-1)*full + air(octets-(n-1)*fragment+header)
	heard := heardBy(t, p, nodes, seed, 16*n+64)
	last, union, most := n, map[int]bool{}, 0
	for _, h := range heard {
		got, lost := 0, 0
		for k, ok := range h {
			if ok && got < n {
				if got++; got == n {
					last = max(last, k+1)
				}
			}
			if k < n && !ok {
				lost++
				union[k] = true
			}
		}
		most = max(most, lost)
	}
	b.clairvoyant = first + time.Duration(last-n)*full + p.Up.Delay
	turn := time.Duration(0)
	if most > 0 {
		ack := air(14 + 10 + 2)
		if cfg.Coding == pmul.Compact {
			ack = air(4)
		}
		turn = max(p.Up.Delay, p.Turnaround) + ack + max(p.Up.Delay, p.Turnaround)
	}
	b.rounds = first
	missing, k := make([]map[int]bool, len(heard)), n
	for i, h := range heard {
		missing[i] = map[int]bool{}
		for f := range n {
			if !h[f] {
				missing[i][f] = true
			}
		}
	}
	for {
		left := map[int]bool{}
		for _, m := range missing {
			maps.Copy(left, m)
		}
		if len(left) == 0 || k+len(left) > len(heard[0]) {
			break
		}
		b.rounds += turn + time.Duration(len(left))*full
		if cfg.Coding == pmul.Compact { // one shard can replace any fragment
			count := 0
			for _, m := range missing {
				count = max(count, len(m))
			}
			b.rounds -= time.Duration(len(left)-count) * full
			for i, m := range missing {
				for j := range count {
					if heard[i][k+j] && len(m) > 0 {
						delete(m, slices.Min(slices.Collect(maps.Keys(m))))
					}
				}
			}
			k += count
			continue
		}
		for _, f := range slices.Sorted(maps.Keys(left)) {
			for i, m := range missing {
				if heard[i][k] {
					delete(m, f)
				}
			}
			k++
		}
	}
	b.rounds += p.Up.Delay
	b.told = first + turn + time.Duration(len(union))*full + p.Up.Delay
	b.coded = first + turn + time.Duration(most)*full + p.Up.Delay
	return b
}

// TestBounds: how far the engine is from the best that a sender could reach with the losses of each seed. The table is in
// docs/pmul.md.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		profile   string
		octets    int
		coding    pmul.Coding
		datagrams []int
	}{
		{"hf-2400", 20000, pmul.ACP142, []int{300, 508, 1472}},
		{"hf-2400", 20000, pmul.Compact, []int{300, 508, 1452}},
		{"hf-2400", 200, pmul.ACP142, []int{508}},
		{"hf-2400", 200, pmul.Compact, []int{508}},
		{"hf-300", 200, pmul.ACP142, []int{300}},
		{"hf-300", 200, pmul.Compact, []int{300}},
	} {
		p := load(t, tt.profile)
		for _, datagram := range tt.datagrams {
			names := []string{"clairvoyant", "told once", "told once, coded", "ideal feedback", "engine"}
			var all [5][]float64
			var mean [5]float64
			for seed := uint64(1); seed <= 100; seed++ {
				s := setup{nodes: 5, p: p, coding: tt.coding, seed: seed, change: func(c *pmul.Config) { c.DatagramOctets = datagram }}
				took, w := transfer(t, s, tt.octets)
				b := boundsOf(t, w.nodes[0].cfg, p, 5, seed, tt.octets)
				for i, d := range []time.Duration{b.clairvoyant, b.told, b.coded, b.rounds, took} {
					over := float64(d) / float64(limit(p, tt.octets))
					all[i] = append(all[i], over)
					mean[i] += over / 100
				}
			}
			line := ""
			for i, name := range names {
				slices.Sort(all[i])
				line += fmt.Sprintf(" | %s %.2f; %.2f, %.2f, %.2f, %.2f", name, mean[i], all[i][49], all[i][89], all[i][98], all[i][99])
			}
			t.Logf("%s, %d octets, %s, datagrams of %d: mean; median, 90th, 99th, worst over the limit%s", tt.profile, tt.octets, codingName[tt.coding], datagram, line)
			if tt.octets == 20000 && mean[4] > 1.08*mean[3] {
				t.Errorf("%s, datagrams of %d: the engine needs %.3f of the limit in the mean, a sender that is told at once %.3f", codingName[tt.coding], datagram, mean[4], mean[3])
			}
		}
	}
}
