package pmul_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/pmul"
)

// deaths plays a world of one batch repeatedly, and kills one of its nodes once in each: before or after the commit of the
// first Step since messages wait for the first one to leave, of the second, and so on.
func deaths(t *testing.T, victim int, pct float64, seed uint64) {
	octets := []int{400, 150, 900, 0, 90, 300, 1200, 40, 700, 250}
	play := func(at int, early bool) (steps int) {
		w, air := batchWorld(t, 3, pct, seed)
		w.down = 20 * time.Second
		hq, ships := w.nodes[0], w.nodes[1:]
		var keys []pmul.Key
		for i, n := range octets {
			keys = append(keys, w.send(hq, content(n, uint64(i)), 0, 2*time.Hour, ships...))
		}
		w.dies = func(n *node) (before, after bool) {
			if n != w.nodes[victim] {
				return false, false
			}
			steps++
			return steps == at && early, steps == at && !early
		}
		w.run(90*time.Minute, func() bool {
			return len(hq.fates) == len(octets)*len(ships) && hq.sender != nil && (at == 0 || w.crashes > 0)
		})
		in := check.In(t, "seed", seed, "victim", victim, "killed at", at, "before the commit", early)
		w.allThere(in, hq, keys, octets, ships...)
		check.True(in, "batches", len(air.ids) == 1 || len(air.ids) <= 3 && victim == 0 && at > 0, len(air.ids)) // messages that had not begun may go in another batch, and so may missing ones
		return steps
	}
	steps := play(0, false)
	check.True(check.Fatal(t), "steps", steps > 15, steps)
	for at := 1; at <= steps && !t.Failed(); at++ {
		play(at, true)
		play(at, false)
	}
	t.Logf("seed %d, node %d: killed at each of %d steps", seed, victim, steps)
}

// A sender that is killed at any Step of a batch continues with single messages. Each is delivered once, and none is lost.
func TestBatchSenderDies(t *testing.T) {
	for seed := uint64(1); seed <= seeds(3, 20); seed++ {
		deaths(t, 0, []float64{0, 10, 25}[seed%3], seed)
	}
}

// A receiver that is killed at any Step of a batch continues with the parts in its journal.
func TestBatchReceiverDies(t *testing.T) {
	for seed := uint64(1); seed <= seeds(3, 20); seed++ {
		deaths(t, 1, []float64{0, 10, 25}[seed%3], seed)
	}
}

// Any node dies, at any Step, with batches from two sides that lose a tenth: no message is lost or comes twice.
func TestBatchesAndDeaths(t *testing.T) {
	for seed := uint64(1); seed <= seeds(6, 60); seed++ {
		w, air := batchWorld(t, 4, 10, seed)
		w.crash, w.down = 0.02, 15*time.Second
		total := 0
		for i, at := range []time.Duration{0, 0, 0, 0, 20, 20, 20, 300, 300, 301, 302, 500, 500, 500} {
			from := w.nodes[i%2]
			to := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return n == from })
			total += len(to)
			for n := range 3 {
				w.at(epoch.Add(at*time.Second), func() {
					ev := pmul.Submit{Payload: content(100+100*n, uint64(i)), Expires: w.now.Add(20 * time.Hour)}
					for _, o := range to {
						ev.To = append(ev.To, o.id)
					}
					w.sendStep(from, ev)
				})
			}
		}
		w.run(time.Hour, nil)
		w.crash = 0
		w.run(19*time.Hour, func() bool {
			return w.nodes[0].sender != nil && w.nodes[1].sender != nil && len(w.nodes[0].sender.Messages())+len(w.nodes[1].sender.Messages()) == 0
		})
		in := check.In(t, "seed", seed)
		check.True(in, "batches", len(air.ids) > 0)
		for _, from := range w.nodes[:2] {
			seen := map[fateOf]bool{}
			for _, f := range from.fates {
				check.Equal(in, "the state", f.State, pmul.Delivered)
				check.True(in, "it is said once", !seen[fateOf{f.Message, f.To}])
				seen[fateOf{f.Message, f.To}] = true
				_, is := w.byID(f.To).delivered[pmul.Key{Source: from.id, Message: f.Message}]
				check.True(in, "it is there", is)
			}
			check.Equal(in, "messages that are held", len(from.sender.Messages()), 0)
		}
		for _, n := range w.nodes {
			check.Equal(in, "messages that came twice", n.twice, 0)
		}
		t.Logf("seed %d: %d deaths, %d batches", seed, w.crashes, len(air.ids))
	}
}

// A sender that is ordered to be silent amid a batch continues with it afterwards.
func TestBatchAndEMCON(t *testing.T) {
	for seed := uint64(1); seed <= seeds(4, 40); seed++ {
		w, air := batchWorld(t, 4, 10, seed)
		hq, ships := w.nodes[0], w.nodes[1:]
		keys := w.sendTogether(hq, sizes, ships...)
		begin := epoch.Add(time.Duration(seed) * 1500 * time.Millisecond)
		frames := 0
		w.at(begin, func() { w.sendStep(hq, pmul.EMCON{Silent: true}); frames = hq.frames })
		w.at(begin.Add(20*time.Minute), func() {
			check.Equal(t, "datagrams in silence", hq.frames-frames, 0)
			w.sendStep(hq, pmul.EMCON{Silent: false})
		})
		w.run(3*time.Hour, func() bool { return w.now.After(begin.Add(20*time.Minute)) && len(hq.fates) == len(sizes)*len(ships) })
		in := check.In(t, "seed", seed)
		w.allThere(in, hq, keys, sizes, ships...)
		check.Equal(in, "batches", len(air.ids), 1)
	}
}

// One of two receivers that lose much is silent: it gets the batch by repetitions, and acknowledges it when its silence
// ends; the other does not wait for it.
func TestBatchToTheSilent(t *testing.T) {
	for seed := uint64(1); seed <= seeds(4, 40); seed++ {
		w, air := batchWorld(t, 3, 15, seed)
		hq, silent, talker := w.nodes[0], w.nodes[1], w.nodes[2]
		w.silence(silent, true, hq)
		keys := w.sendTogether(hq, sizes, silent, talker)
		if seed%2 == 0 {
			w.at(epoch.Add(30*time.Minute), func() { w.kill(silent) })
		}
		w.run(time.Hour, nil)
		in := check.In(t, "seed", seed)
		check.Equal(in, "fates before silence ends", len(hq.fates), len(sizes))
		check.Equal(in, "datagrams of the silent node", silent.frames, 0)
		check.True(in, "repetitions", hq.sender.Stats().Repeats > 0)
		for i, key := range keys {
			_, is := silent.got[key]
			check.True(in, fmt.Sprint("the silent node has message ", i), is)
		}
		w.silence(silent, false, hq)
		w.run(3*time.Hour, func() bool { return len(hq.fates) == 2*len(sizes) })
		w.allThere(in, hq, keys, sizes, silent, talker)
		check.Equal(in, "batches", len(air.ids), 1)
	}
}

// A message of a batch that has not been on the air is cancelled, held and replaced as if it waited singly, whenever the
// order comes. The rest of the batch arrives unchanged, with losses too, and no state is left over.
func TestBatchesThatMessagesLeave(t *testing.T) {
	left := 0
	for seed := uint64(1); seed <= seeds(40, 400); seed++ {
		w, air := batchWorld(t, 4, []float64{0, 10, 20}[seed%3], seed)
		hq := w.nodes[0]
		rng := rand.New(rand.NewPCG(seed, 3))
		type sent struct {
			payload         []byte
			to              []*node
			cancelled, held bool
		}
		all := map[pmul.Key]*sent{}
		var keys []pmul.Key
		w.sendStep(hq, pmul.EMCON{Silent: true})
		for i := range 4 + rng.IntN(12) {
			s := &sent{payload: content(rng.IntN(900), seed*100+uint64(i)), to: w.nodes[1:3]}
			if rng.IntN(3) == 0 { // messages of others, between these in the queue
				s.to = w.nodes[3:]
			}
			key := w.send(hq, s.payload, 0, 5*time.Hour, s.to...)
			keys, all[key] = append(keys, key), s
		}
		w.sendStep(hq, pmul.EMCON{Silent: false})
		if len(air.ids) == 0 { // one datagram holds all messages for the same recipients
			continue
		}
		for i := range 12 {
			key := keys[rng.IntN(len(keys))]
			do := func() {
				s, waits := all[key], hq.sender.Waits(key.Message)
				if waits && air.data[air.ids[0]] > 0 {
					left++
				}
				switch op := rng.IntN(4); {
				case op == 0 && slices.Contains(hq.sender.Messages(), key.Message):
					if !waits {
						return // some nodes may have it
					}
					w.sendStep(hq, pmul.Cancel{Message: key.Message})
					s.cancelled = true
				case op == 1 && waits:
					w.sendStep(hq, pmul.Hold{Message: key.Message, On: !s.held})
					s.held = !s.held
				case op >= 2:
					payload := content(rng.IntN(900), seed*1000+uint64(i))
					a := w.sendStep(hq, pmul.Replace{Message: key.Message, Payload: payload, Expires: epoch.Add(5 * time.Hour)}).Accepted
					check.Equal(t, "it is replaced", a[0].Err == nil, waits)
					if waits {
						s.payload = payload
					}
				}
			}
			if at := epoch.Add(time.Duration(rng.IntN(12)) * 800 * time.Millisecond); at.After(w.now) {
				w.at(at, do)
			} else {
				do()
			}
		}
		w.run(time.Hour, nil)
		in := check.In(t, "seed", seed)
		for _, key := range keys {
			for _, n := range all[key].to {
				if s := all[key]; s.held {
					check.True(in, "a held one is not there", n.got[key].Payload == nil)
				}
			}
			if all[key].held {
				w.sendStep(hq, pmul.Hold{Message: key.Message})
			}
		}
		w.run(4*time.Hour, func() bool { return len(hq.sender.Messages()) == 0 })
		fates := 0
		for _, key := range keys {
			for _, n := range all[key].to {
				fates++
				m, is := n.got[key]
				check.Equal(in, fmt.Sprint(n.name, " has ", key.Message), is, !all[key].cancelled)
				if is {
					check.True(in, fmt.Sprint(n.name, " has the octets of ", key.Message), bytes.Equal(m.Payload, all[key].payload))
				}
				state, _ := hq.sender.Fate(key.Message, n.id)
				check.Equal(in, "its fate", state, map[bool]pmul.State{false: pmul.Delivered, true: pmul.Cancelled}[all[key].cancelled])
			}
		}
		check.Equal(in, "fates", len(hq.fates), fates)
		check.Equal(in, "messages that are held", len(hq.sender.Messages()), 0)
		for _, n := range w.nodes {
			check.Equal(in, "messages that came twice", n.twice, 0)
			if n != hq {
				check.Equal(in, "illegal", n.receiver.Stats().Illegal, 0)
			}
		}
	}
	check.True(t, "messages that could leave a batch", left > 20, left)
}

// A batch that all of its messages have left ends.
func TestBatchThatAllLeave(t *testing.T) {
	s := newCompactSender(t)
	s.cfg.LargeOctets = 0 // so that a part of it waits for the radio
	s.restart()
	s.step(pmul.EMCON{Silent: true})
	var ids []pmul.MessageID
	for range 4 {
		ids = append(ids, s.submit(func(ev *pmul.Submit) { ev.Payload = content(900, 1) }))
	}
	s.step(pmul.EMCON{Silent: false})
	batch := s.batch()
	waiting := 0
	for _, id := range ids {
		if s.Waits(id) {
			waiting++
			s.step(pmul.Hold{Message: id, On: true})
		} else {
			s.step(pmul.Cancel{Message: id})
		}
	}
	check.True(t, "some have not begun", waiting > 0 && waiting <= len(ids), waiting)
	s.play(time.Minute)
	check.Equal(t, "messages that are held", len(s.Messages()), waiting)
	before := len(s.sent)
	s.play(10 * time.Minute)
	for _, pdu := range s.sent[before:] {
		if a, is := pdu.(pmul.AddressPDU); is && a.Message == batch {
			t.Fatalf("it goes on: %+v", a)
		}
	}
}

// The first message of a batch is held while other messages wait after the batch: all keep their places.
func TestBatchThatItsFirstLeaves(t *testing.T) {
	s := newCompactSender(t)
	s.cfg.LargeOctets = 0 // the first datagram has no room for a fragment
	s.restart()
	s.step(pmul.EMCON{Silent: true})
	to := func(nodes ...pmul.NodeID) func(*pmul.Submit) {
		return func(ev *pmul.Submit) { ev.To, ev.Payload = nodes, content(470*len(nodes), 1) } // a short one waits for its turn too
	}
	first, other := s.submit(to(2, 3)), s.submit(to(4))
	second := s.submit(to(2, 3))
	s.step(pmul.Busy{By: 9, Air: 3 * time.Second})
	s.step(pmul.TurnPDU{Source: 9, Number: 1, Next: 8, More: true}) // after this turn no node expects this one: it sends one datagram
	s.step(pmul.EMCON{Silent: false})
	batch := s.batch()
	check.True(check.Fatal(t), "nothing of its first message has been on the air", s.Waits(first))
	s.step(pmul.Hold{Message: first, On: true})
	s.step(pmul.Hold{Message: other, On: true})
	opened := s.sent
	s.sent = nil
	s.play(2 * time.Minute)
	cfg := s.cfg
	cfg.Self = 2
	receiver, err := pmul.NewReceiver(cfg, nil)
	check.NoError(check.Fatal(t), err)
	for _, pdu := range slices.Concat(opened, s.sent) {
		for _, d := range receiver.Step(s.now, pdu.(pmul.Event)).Deliver {
			check.Equal(t, "message that comes", d.Message, second)
			check.Equal(t, "its Message_Sequence_Number", d.Sequence, 2)
		}
	}
	check.Equal(t, "messages that come", receiver.Stats().Delivered, 1)
	data := map[pmul.MessageID]int{}
	for _, pdu := range s.sent {
		if d, is := pdu.(pmul.DataPDU); is {
			data[d.Message]++
		}
	}
	check.True(t, "the batch goes on with its second message", data[batch] > 2 && !s.Waits(second), data)
	check.Equal(t, "fragments of what is held", data[first]+data[other], 0)
	s.acknowledged(2, batch)
	s.acknowledged(3, batch)
	check.Same(t, "messages that are held", s.Messages(), []pmul.MessageID{first, other})
	s.step(pmul.Hold{Message: first})
	s.step(pmul.Hold{Message: other})
	s.play(2 * time.Minute)
	check.True(t, "they go when they are let go", !s.Waits(first) && !s.Waits(other))
}
