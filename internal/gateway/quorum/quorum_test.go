package quorum

import (
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"aldis/internal/gateway/pair"
)

// most is within how long somebody leads where a majority is up and hears each other.
const most = 8 * time.Second

// Chance kills, freezes, slows and cuts members, and takes their disks away; at most one transmits at any time, and each that leads has all
// entries that were confirmed.
func TestChance(t *testing.T) {
	for seed := range uint64(seeds) {
		if *only != 0 && seed != *only {
			continue
		}
		members := 3 + 2*int(seed%2)
		w := newWorld(t, seed, members)
		w.led(most)
		lost := false // a member has lost its disk, and may not know it
		for range 30 {
			w.pass(w.wait(4 * time.Second))
			i := w.chance.IntN(members)
			b := w.boxes[i]
			down := 0
			for _, x := range w.boxes {
				if x.m == nil || x.frozen || !x.m.Stored().Whole {
					down++
				}
			}
			switch w.chance.IntN(8) {
			case 0, 1: // without power; any number of them
				w.kill(i)
				if w.chance.IntN(3) == 0 {
					w.kill(w.chance.IntN(members))
				}
			case 2:
				for j := range w.boxes {
					w.cut[key(i, j)] = true
				}
			case 3:
				w.cut[key(i, w.chance.IntN(members))] = true
			case 4:
				if b.m != nil {
					b.frozen = true
				}
			case 5:
				b.slow = !b.slow
			case 6:
				if down == 0 && !lost { // a majority must keep what it has
					lost = true
					w.kill(i)
					b.disk = &disk{stored: Stored{Machine: w.chance.Uint64()}}
					if b.old != nil && w.chance.IntN(2) == 0 && w.leader() >= 0 {
						b.disk = b.old.clone()
						w.start(i)
						w.pass(time.Second)
					}
				}
			case 7:
				if b.m != nil && !b.frozen {
					w.step(i, Retire{-1})
				}
				b.old = b.clone()
			}
			w.pass(w.wait(6 * time.Second))
			if w.chance.IntN(2) == 0 {
				continue
			}
			w.heal()
			w.led(most)
			for end := w.now + 30*time.Second; slices.ContainsFunc(w.boxes, func(b *box) bool { return b.m == nil || !b.m.Stored().Whole }); w.pass(50 * time.Millisecond) {
				if w.now > end {
					t.Fatalf("at %v a member is not whole", w.now)
				}
			}
			lost = false
		}
		w.heal()
		w.led(most)
		w.pass(10 * time.Second)
		if len(w.confirmed) < 100 {
			t.Errorf("seed %d: only %d messages were confirmed", seed, len(w.confirmed))
		}
	}
}

func (w *world) heal() {
	clear(w.cut)
	for i, b := range w.boxes {
		b.slow = false
		if b.m == nil {
			w.start(i)
		}
		if b.frozen {
			b.frozen = false
			held := b.held
			b.held = nil
			for _, do := range held {
				do()
			}
		}
	}
}

// The leader loses its power: another one leads.
func TestTakeover(t *testing.T) {
	var all []time.Duration
	for seed := range uint64(seeds) {
		w := newWorld(t, seed, 3)
		w.led(most)
		w.pass(2*time.Second + w.wait(time.Second))
		w.kill(w.leader())
		all = append(all, w.led(most))
	}
	slices.Sort(all)
	t.Logf("another one leads after %v at the median, %v at most of %d", all[len(all)/2], all[len(all)-1], len(all))
	if all[len(all)-1] > 5*time.Second {
		t.Error("it takes longer than 5 s")
	}
}

// An entry that is alone costs one message to each other member and one back. A member learns with the next entry, or with the next beat,
// that a majority has it.
func TestOneMessageForAnEntry(t *testing.T) {
	for _, members := range []int{3, 5} {
		w := newWorld(t, 1, members)
		w.led(most)
		w.pass(2 * time.Second)
		clear(w.said)
		began := len(w.confirmed)
		w.pass(15 * time.Second)
		entries := len(w.confirmed) - began
		if to, back := w.said[raftpb.MsgApp], w.said[raftpb.MsgAppResp]; entries < 95 || to > (entries+1)*(members-1) || back > to {
			t.Errorf("%d entries cost %d messages to %d members and %d back", entries, to, members-1, back)
		}
		l := w.leader()
		w.mute = true
		w.pass(pair.Beat + 50*time.Millisecond)
		for i, b := range w.boxes {
			if has := b.m.Stored().Commit; has != w.boxes[l].m.last().Index {
				t.Errorf("machine %d knows of a majority until entry %d, and the leader %d has %d", i, has, l, w.boxes[l].m.last().Index)
			}
		}
	}
}

// A leader that hands over is followed at once.
func TestRetire(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.led(most)
	w.pass(2 * time.Second)
	before := w.leader()
	w.step(before, Retire{-1})
	if w.transmits(before) {
		t.Error("it transmits after it has handed over")
	}
	if took := w.led(most); took > time.Second || w.leader() == before {
		t.Errorf("machine %d leads after %d has handed over %v ago", w.leader(), before, took)
	}
	w.step((w.leader()+1)%3, Lead{})
	wanted := (w.leader() + 1) % 3
	w.pass(time.Second)
	if w.leader() != wanted {
		t.Errorf("machine %d leads; the order was given to %d", w.leader(), wanted)
	}
}

// The order to lead counts also where the leader is out of reach when the order is given.
func TestLeadWithoutConnection(t *testing.T) {
	for seed := range uint64(seeds) {
		w := newWorld(t, seed, 3)
		w.led(most)
		w.pass(2 * time.Second)
		before := w.leader()
		wanted := (before + 1) % 3
		w.part(before, wanted)
		w.step(wanted, Lead{})
		w.pass(wishTime)
		if w.leader() != wanted {
			t.Errorf("seed %d: machine %d leads; the order was given to %d", seed, w.leader(), wanted)
		}
		w.pass(10 * time.Second)
		if w.leader() != wanted {
			t.Errorf("seed %d: machine %d leads, some time after %d was made the leader", seed, w.leader(), wanted)
		}
	}
}

// A leader whose lease lapsed, because a majority was frozen, leads again in the same term only when the entries that it had proposed are settled: its
// new gateway knows them then.
func TestSameTermAgain(t *testing.T) {
	for seed := range uint64(seeds) {
		w := newWorld(t, seed, 3)
		w.led(most)
		w.pass(2 * time.Second)
		l := w.leader()
		m, a := w.boxes[l].m, w.boxes[(l+2)%3]
		term := m.Stored().Term
		w.kill((l + 1) % 3)
		a.frozen = true
		w.pass(pair.Lease + standDown + time.Second)
		if m.Role() == pair.Leading {
			t.Fatalf("seed %d: it leads without a majority", seed)
		}
		held := a.held
		a.frozen, a.held = false, nil
		for _, do := range held {
			do()
		}
		for end := w.now + most; m.Role() != pair.Leading && w.now < end; {
			w.pass(time.Millisecond)
		}
		if m.Role() == pair.Leading && m.Stored().Term == term && m.at != m.last() {
			t.Errorf("seed %d: it leads again at %v, and has proposed until %v", seed, m.at, m.last())
		}
	}
}

// New machines do not found a site while one is missing that may already be a member of it.
func TestFoundedOnce(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.led(most)
	w.pass(2 * time.Second)
	has := w.leader()
	for i, b := range w.boxes {
		w.kill(i)
		if i != has {
			b.disk = &disk{stored: Stored{Machine: uint64(100 + i)}}
			w.start(i)
		}
	}
	w.pass(time.Minute)
	if w.leader() >= 0 {
		t.Error("two machines that know nothing have made a site of their own")
	}
}
