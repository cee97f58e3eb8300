package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/sim"
)

// TestSingleOnHF: messages of 200 random octets to four sites on hf-2400, five minutes apart, so that nothing else is on the air:
// when the last of the four has one. Seeds 1 to 20.
func TestSingleOnHF(t *testing.T) {
	const messages, most95, most = 20, 10 * time.Second, 45 * time.Second
	var last, told, asked []time.Duration
	for seed := uint64(1); seed <= 20; seed++ {
		w := onChannel(t, 5, seed)
		sent := tracks(w, w.Nodes[0], []uint16{2, 3, 4, 5}, messages, 200, 5*time.Minute)
		w.Run((messages + 12) * 5 * time.Minute)
		late := make([]time.Duration, messages)
		for _, n := range w.Nodes[1:] {
			if len(n.Site.Got) != messages {
				t.Fatalf("seed %d: %d of %d at %s", seed, len(n.Site.Got), messages, n.Name)
			}
			for _, g := range n.Site.Got {
				var from, i int
				if _, err := fmt.Sscanf(string(g.Payload.Parts[0].Data[:8]), "%d;%d;", &from, &i); err != nil {
					t.Fatal(err)
				}
				late[i] = max(late[i], g.At.Sub((*sent)[i].At))
			}
		}
		last = append(last, late...)
		told = append(told, singleBound(t, seed, 5, messages, false)...)
		asked = append(asked, singleBound(t, seed, 5, messages, true)...)
	}
	figures := func(list []time.Duration) (p95, worst time.Duration, text string) {
		slices.Sort(list)
		p95, worst = list[len(list)*95/100], list[len(list)-1]
		return p95, worst, fmt.Sprintf("%.1f s at the median, %.1f s for 90 %%, %.1f s for 95 %%, worst %.1f s",
			list[len(list)/2].Seconds(), list[len(list)*90/100].Seconds(), p95.Seconds(), worst.Seconds())
	}
	p95, worst, text := figures(last)
	_, _, one := figures(told)
	_, _, other := figures(asked)
	t.Logf("hf-2400, 200 octets to 4, nothing else on the air: the last has it after %s; no sender before %s; one that waits for answers %s", text, one, other)
	if p95 > most95 || worst > most {
		t.Errorf("95 %% after %v, worst %v: want %v and %v", p95, worst, most95, most)
	}
}

// singleBound is when the last of the others on hf-2400 has each of so many messages of 200 octets, five minutes apart, from a sender
// that none beats: it learns at once and at no cost which nodes lack the message, and sends again as soon as the air is free. If it
// learns that by answers, it asks with each datagram, and all nodes of which it knows nothing answer, one after the other, each in 57
// octets. It sends again when all answers that come have come; an answer is never lost.
func singleBound(t *testing.T, seed uint64, nodes, messages int, answers bool) (last []time.Duration) {
	t.Helper()
	p := load(t, "hf-2400")
	const octets, ack = 269, 57 // IP octets on the air, as the gateway's
	cfg := linkemu.Config{Seed: seed}
	for n := range nodes {
		cfg.Nodes = append(cfg.Nodes, linkemu.Node{Name: fmt.Sprint(n), Profile: p})
	}
	link, err := linkemu.New(cfg)
	check.NoError(check.Fatal(t), err)
	now := sim.Epoch
	say := func(by int, octets int) (lost []bool) {
		before := link.Stats()
		_, err := link.Step(now, linkemu.Frame{From: fmt.Sprint(by), Octets: octets})
		check.NoError(check.Fatal(t), err)
		now = now.Add(p.Airtime(p.Up, octets))
		_, err = link.Step(now, nil)
		check.NoError(check.Fatal(t), err)
		after := link.Stats()
		for n := range nodes {
			lost = append(lost, after.Node(fmt.Sprint(n)).Down.DroppedLoss.Frames > before.Node(fmt.Sprint(n)).Down.DroppedLoss.Frames)
		}
		return lost
	}
	for i := range messages {
		now = sim.Epoch.Add(time.Duration(i) * 5 * time.Minute)
		began, at := now, time.Time{}
		lacks, silent := make([]bool, nodes), make([]bool, nodes) // nodes that lack it, nodes of which nothing is known
		for n := 1; n < nodes; n++ {
			lacks[n], silent[n] = true, true
		}
		for slices.Contains(lacks, true) {
			for n, lost := range say(0, octets) {
				if lacks[n] && !lost {
					lacks[n], at = false, now.Add(p.Up.Delay)
				}
			}
			if !answers {
				continue
			}
			for n := range nodes {
				if silent[n] && !lacks[n] {
					silent[n] = false
					now = now.Add(p.Turnaround)
					say(n, ack)
				}
			}
			now = now.Add(p.Turnaround + p.Airtime(p.Up, ack) + p.Up.Delay) // the next answer does not come
		}
		last = append(last, at.Sub(began))
	}
	return last
}

// TestFileToSeveral: 20 kB to four and to sixteen sites on hf-2400 with nobody else on the air. A sender that waits for proof that its
// radio has sent what it was given takes four to six times the limit.
func TestFileToSeveral(t *testing.T) {
	p := load(t, "hf-2400")
	for ships, most := range map[int]float64{4: 1.28, 16: 1.5} {
		var times []float64
		for seed := range uint64(5) {
			f, err := air.ToAll(t.Context(), p.Name, seed+1, ships, 1, 20_000, 0)
			check.NoError(check.Fatal(t), err)
			times = append(times, f.Took[len(f.Took)-1].Seconds()/air.Limit(p, 20_000).Seconds())
		}
		slices.Sort(times)
		t.Logf("20 kB to %d: %.2f times the limit at the median, %.2f at worst", ships, times[2], times[4])
		check.True(t, "the median", times[2] <= most, times, most)
	}
}
