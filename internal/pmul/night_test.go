package pmul_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// silence orders a node to be silent or lifts the order, and tells other nodes.
func (w *world) silence(n *node, silent bool, told ...*node) {
	w.sendStep(n, pmul.EMCON{Silent: silent})
	w.receiveStep(n, pmul.EMCON{Silent: silent})
	for _, o := range told {
		w.sendStep(o, pmul.PeerEMCON{Node: n.id, Silent: silent})
	}
}

// TestSilence: six hours of silence, restarts in it, 200 messages; then few datagrams acknowledge them all.
func TestSilence(t *testing.T) {
	for _, coding := range []pmul.Coding{pmul.ACP142, pmul.Compact} {
		p := lossy(load(t, "hf-2400"), 10, false)
		w := newWorld(t, setup{nodes: 3, p: p, coding: coding, seed: 6})
		hq, silent, talker := w.nodes[0], w.nodes[1], w.nodes[2]
		w.silence(silent, true, hq)
		for i := range 200 {
			w.at(epoch.Add(time.Duration(i)*100*time.Second), func() { w.send(hq, content(120, uint64(i)), 1, 24*time.Hour, silent, talker) })
		}
		w.at(epoch.Add(time.Hour), func() { w.send(silent, content(500, 999), 1, 24*time.Hour, hq) }) // waits
		for i := range 5 {
			w.at(epoch.Add(time.Duration(i+1)*time.Hour), func() { w.kill(silent) })
		}
		w.run(7*time.Hour, nil)
		if silent.frames != 0 {
			t.Errorf("%s: the silent node sent %d frames", codingName[coding], silent.frames)
		}
		if !silent.receiver.Silent() || !silent.sender.Silent() {
			t.Errorf("%s: a restart broke the silence", codingName[coding])
		}
		if n := len(silent.delivered); n != 200 {
			t.Errorf("%s: %d of 200 messages reached the silent node", codingName[coding], n)
		}
		acks, datagrams, octets := silent.receiver.Owed(w.now)
		w.silence(silent, false)
		w.run(7*time.Hour+5*time.Second, nil) // before a node asks for lost messages
		per := (silent.cfg.DatagramOctets - 14) / 10
		want := (200 + per - 1) / per
		if coding == pmul.Compact {
			want = 1 // about two octets each
		}
		t.Logf("%s: after silence %d Ack_PDUs of %d octets; foretold %d of %d octets for %d acknowledgements", codingName[coding], silent.acks, silent.ackOctets, datagrams, octets, acks)
		if silent.acks != want || datagrams != want || silent.ackOctets != octets {
			t.Errorf("%s: %d Ack_PDUs, foretold %d, want %d", codingName[coding], silent.acks, datagrams, want)
		}
		w.run(12*time.Hour, nil)
		for _, f := range hq.fates {
			if f.State != pmul.Delivered {
				t.Errorf("%s: %+v", codingName[coding], f)
			}
		}
		if len(hq.fates) != 400 || len(silent.fates) != 1 || silent.twice != 0 {
			t.Errorf("%s: %d fates, %d of the silent node, %d twice", codingName[coding], len(hq.fates), len(silent.fates), silent.twice)
		}
	}
}

// TestBlindRepetition: how many messages reach a node that never answers, and at which cost, by the number of repetitions;
// plain, and with parity shards in the place of the fragments.
func TestBlindRepetition(t *testing.T) {
	base := load(t, "hf-2400")
	const messages = 200
	try := func(p profile.Profile, octets, count int, share float64) (reached float64, air int) {
		got := 0
		for seed := range uint64(4) {
			w := newWorld(t, setup{nodes: 2, p: p, coding: pmul.Compact, seed: seed + 1, change: func(c *pmul.Config) {
				c.RepeatCount, c.Parity, c.ParityShare = count, share > 0, share
			}})
			w.silence(w.nodes[1], true, w.nodes[0])
			for i := range messages / 4 {
				w.at(epoch.Add(time.Duration(i)*2*time.Hour), func() { w.send(w.nodes[0], content(octets, 1), 1, 12*time.Hour, w.nodes[1]) })
			}
			w.run(messages*2*time.Hour, nil)
			got += len(w.nodes[1].delivered)
			air += w.nodes[0].octets
		}
		return float64(got) / messages, air / messages
	}
	for _, link := range []struct {
		name   string
		p      profile.Profile
		counts []int
	}{
		{"10 % loss", lossy(base, 10, false), []int{0, 2, 4}},
		{"10 % loss in bursts", lossy(base, 10, true), []int{2, 4}},
		{"30 % loss", lossy(base, 30, false), []int{2, 4}},
	} {
		for _, octets := range []int{200, 2000, 20000} {
			for _, count := range link.counts {
				for _, share := range []float64{0, 0.2} {
					if octets == 200 && share > 0 || count == 0 && share > 0 {
						continue // one fragment has no parity
					}
					reached, air := try(link.p, octets, count, share)
					t.Logf("%s, %5d octets, %d repetitions, parity %.0f %%: %.2f %% reach a silent node, %d octets on the air each", link.name, octets, count, 100*share, 100*reached, air)
				}
			}
		}
	}
	for _, octets := range []int{200, 2000, 20000} { // as by default
		def := pmul.ConfigFor(base, 1, pmul.Compact, sealOctets, nil)
		if reached, air := try(lossy(base, 10, false), octets, def.RepeatCount, def.ParityShare); reached < 0.99 {
			t.Errorf("%d octets: %.2f %% reach a silent node by the default repetition, %d octets each", octets, 100*reached, air)
		}
	}
}

// TestCrashes: kill -9 at random points of both sides, before and after commits.
func TestCrashes(t *testing.T) {
	p := load(t, "hf-2400")
	crashes, messages, runs := 0, 0, 0
	for seed := uint64(1); crashes < 1000; seed++ {
		runs++
		w := newWorld(t, setup{nodes: 3, p: p, coding: pmul.Coding(seed % 2), seed: seed})
		w.crash, w.down = 0.1, 20*time.Second
		hq := w.nodes[0]
		type sent struct {
			key  pmul.Key
			want string
		}
		var all []sent
		for i := range 12 {
			at := epoch.Add(time.Duration(i) * 5 * time.Minute)
			var try func()
			try = func() { // an application submits again until it has an answer; the commit decides
				before := len(hq.accepted)
				ev := pmul.Submit{Ref: uint64(i), Payload: content(40+i*300, uint64(i)), Priority: uint8(i % 3), Expires: w.now.Add(12 * time.Hour)}
				for _, n := range w.nodes[1:] {
					ev.To = append(ev.To, n.id)
				}
				out := w.sendStep(hq, ev)
				if len(hq.accepted) > before {
					all = append(all, sent{pmul.Key{Source: hq.id, Message: out.Accepted[0].Message}, string(ev.Payload)})
					return
				}
				w.after(time.Minute, try)
			}
			w.at(at, try)
		}
		w.at(epoch.Add(2*time.Hour), func() { w.crash = 0 })
		w.run(16*time.Hour, nil)
		crashes += w.crashes
		messages += len(all)
		final := map[string]pmul.State{}
		for _, f := range hq.fates {
			k := fmt.Sprint(f.Message, f.To)
			if _, known := final[k]; known {
				t.Errorf("seed %d: message %d to %v ended twice", seed, f.Message, f.To)
			}
			final[k] = f.State
		}
		keys := map[pmul.Key]bool{}
		for _, m := range all {
			if keys[m.key] {
				t.Errorf("seed %d: %v was used twice", seed, m.key)
			}
			keys[m.key] = true
			for _, n := range w.nodes[1:] {
				if string(n.payload[m.key]) != m.want {
					t.Errorf("seed %d: %v is lost or changed at %s", seed, m.key, n.name)
				}
				if s := final[fmt.Sprint(m.key.Message, n.id)]; s != pmul.Delivered {
					t.Errorf("seed %d: %v to %s is %v", seed, m.key, n.name, s)
				}
				if s, known := hq.sender.Fate(m.key.Message, n.id); !known || s != pmul.Delivered {
					t.Errorf("seed %d: asked after all restarts, %v to %s is %v", seed, m.key, n.name, s)
				}
			}
		}
		for _, n := range w.nodes {
			if n.twice != 0 {
				t.Errorf("seed %d: %s got %d messages twice", seed, n.name, n.twice)
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d crashes in %d runs, %d messages to 2 receivers each: none lost, none twice, one final state each", crashes, runs, messages)
}

// day is HQ and 16 ships, 6 of them silent, with 5,000 messages from HQ to some of the ships.
func day(t testing.TB) (*world, int) {
	p := load(t, "vhf-cnr-16k")
	w := newWorld(t, setup{nodes: 17, p: p, coding: pmul.Compact, seed: 24, change: func(c *pmul.Config) { c.AckHold = 20 * time.Second }})
	hq := w.nodes[0]
	for _, n := range w.nodes[11:] {
		w.silence(n, true, hq)
		w.at(epoch.Add(16*time.Hour), func() { w.silence(n, false) })
	}
	recipients := 0
	for i := range 5000 {
		to := w.nodes[1+w.rng.IntN(14):]
		to = to[:1+w.rng.IntN(3)]
		recipients += len(to)
		w.at(epoch.Add(time.Duration(i)*16*time.Second), func() { w.send(hq, content(200, uint64(i)), uint8(i%6), 20*time.Hour, to...) })
	}
	w.run(40*time.Hour, nil)
	return w, recipients
}

// cpu is the processor time of this process.
func cpu(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestDay(t *testing.T) {
	began := cpu(t)
	w, recipients := day(t)
	took := cpu(t) - began
	count := map[pmul.State]int{}
	for _, f := range w.nodes[0].fates {
		count[f.State]++
	}
	octets := 0
	for _, n := range w.nodes {
		octets += n.octets
	}
	t.Logf("5,000 messages, %d recipients: %v, %d octets on the air, %v of CPU; sender %+v", recipients, count, octets, took.Round(time.Millisecond), w.nodes[0].sender.Stats())
	if took > 10*time.Second {
		t.Errorf("%v of CPU, want 10 s or less", took)
	}
	if len(w.nodes[0].fates) != recipients || count[pmul.Delivered] != recipients {
		t.Errorf("%v of %d", count, recipients)
	}
	again, _ := day(t)
	for i, n := range w.nodes {
		if n.octets != again.nodes[i].octets || len(n.fates) != len(again.nodes[i].fates) {
			t.Fatalf("the same seed gave another run at %s", n.name)
		}
	}
	for i, f := range w.nodes[0].fates {
		if f != again.nodes[0].fates[i] {
			t.Fatalf("the same seed gave another run: %+v, %+v", f, again.nodes[0].fates[i])
		}
	}
}
