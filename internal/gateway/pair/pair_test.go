package pair

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func TestTwoNewMachinesAgree(t *testing.T) {
	for _, witness := range []bool{false, true} {
		w := newWorld(t, 1, witness)
		w.settled()
		check.Equal(t, "leaderships", w.led, 1)
		w.pass(time.Minute)
		check.Equal(t, "leaderships after a minute", w.led, 1)
		check.True(t, "texts are confirmed", len(w.done) > 1000)
	}
}

// The leader loses its power: with a witness the other leads within the bound. When the first is back, it follows.
func TestPowerOfTheLeader(t *testing.T) {
	w := newWorld(t, 2, true)
	w.settled()
	first := w.leader()
	w.kill(first)
	took := w.within(5*time.Second, "the other leads", func() bool { return w.leader() == 1-first })
	t.Logf("the other leads after %v", took)
	w.pass(time.Minute)
	w.start(first)
	w.settled()
	check.Equal(t, "leader", w.leader(), 1-first)
}

// Without a witness nobody takes over by himself. When the leader is back, it leads; the other machine leads where an operator says so.
func TestWithoutWitnessTheOperatorDecides(t *testing.T) {
	w := newWorld(t, 3, false)
	w.settled()
	first := w.leader()
	w.kill(first)
	w.pass(time.Minute)
	check.Equal(t, "leader while it is off", w.leader(), -1)
	w.step(1-first, Lead{})
	check.Equal(t, "leader after the order", w.leader(), 1-first)
	w.start(first)
	w.settled()
	check.Equal(t, "leader", w.leader(), 1-first)

	w.kill(w.leader())
	w.pass(time.Minute)
	w.start(1 - first)
	w.settled()
}

// The follower is lost: the leader goes on without a pause that a far site would notice.
func TestFollowerIsLost(t *testing.T) {
	for _, witness := range []bool{false, true} {
		w := newWorld(t, 4, witness)
		w.settled()
		first := w.leader()
		w.kill(1 - first)
		w.within(Lease, "it is alone", func() bool { return w.box[first].m.Alone() })
		w.pass(time.Minute)
		check.Equal(t, "leaderships", w.led, 1)
		w.start(1 - first)
		w.settled()
		check.Equal(t, "leader", w.leader(), first)
	}
}

// A leader that was stopped for a minute and is awake again transmits nothing.
func TestStoppedAndAwake(t *testing.T) {
	w := newWorld(t, 5, true)
	w.settled()
	first := w.leader()
	w.box[first].stopped = true
	w.within(5*time.Second, "the other leads", func() bool { return w.leader() == 1-first })
	w.pass(time.Minute)
	w.box[first].stopped = false
	last := w.sent[first]
	w.pass(10 * time.Second)
	check.Equal(t, "its last datagram", w.sent[first], last)
	w.settled()
}

// A cut of ten minutes between the two: with the witness one of them leads, without it the leader does.
func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name    string
		witness bool
		away    [2]bool // for the leader, for the follower
		leads   int     // 0: the leader, 1: the follower, -1: nobody
	}{
		{"without a witness", false, [2]bool{}, 0},
		{"both reach it", true, [2]bool{}, 0},
		{"the follower reaches it", true, [2]bool{true, false}, 1},
		{"the leader reaches it", true, [2]bool{false, true}, 0},
		{"nobody reaches it", true, [2]bool{true, true}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, 6, tt.witness)
			w.settled()
			first := w.leader()
			w.cut = true
			w.away[first], w.away[1-first] = tt.away[0], tt.away[1]
			w.pass(10 * time.Minute)
			want := -1
			if tt.leads >= 0 {
				want = first ^ tt.leads
			}
			check.Equal(t, "leader", w.leader(), want)
			w.cut, w.away = false, [2]bool{}
			w.part()
			w.settled()
		})
	}
}

// A machine whose journal lacks commits that the other has confirmed alone does not lead.
func TestBehindDoesNotLead(t *testing.T) {
	w := newWorld(t, 7, true)
	w.settled()
	first := w.leader()
	w.kill(1 - first)
	w.pass(10 * time.Second)
	w.kill(first)
	w.start(1 - first)
	w.pass(time.Minute)
	check.Equal(t, "leader", w.leader(), -1)
	check.True(t, "it says so", w.box[1-first].m.Stuck())
	w.start(first)
	w.settled()
}

// A leader hands over: not one datagram's time passes.
func TestRetire(t *testing.T) {
	for _, witness := range []bool{false, true} {
		w := newWorld(t, 8, witness)
		w.settled()
		first := w.leader()
		w.pass(time.Second)
		w.step(first, Retire{})
		took := w.within(time.Second, "the other leads", func() bool { return w.leader() == 1-first })
		check.True(t, "at once", took < 100*time.Millisecond)
		w.settled()
		w.pass(time.Second)
		w.step(first, Lead{}) // a follower asks for it
		w.within(time.Second, "it leads again", func() bool { return w.leader() == first })
	}
}

// The order to lead reaches the leader although the connection is away when it is given, or ends with it: the leader hands over, and nothing that it
// has confirmed is put aside.
func TestLeadWhileTheConnectionIsAway(t *testing.T) {
	for _, witness := range []bool{false, true} {
		for _, away := range []bool{false, true} {
			w := newWorld(t, 10, witness)
			w.settled()
			w.pass(time.Second)
			first := w.leader()
			if away {
				w.cut = true
				w.part()
				w.pass(50 * time.Millisecond)
			}
			w.step(1-first, Lead{})
			if away {
				w.pass(100 * time.Millisecond)
				w.cut = false
			} else {
				w.part() // what it has said is lost
			}
			w.pass(wishTime)
			check.Equal(t, "leader", w.leader(), 1-first)
			check.True(t, "it was handed over", w.box[1-first].stored.Epoch < Jump)
		}
	}
}

// A follower that restarts may have promised, a moment before, not to lead: it waits as long as the leader may transmit.
func TestFollowerThatRestartsKeepsItsPromise(t *testing.T) {
	w := newWorld(t, 9, true)
	w.settled()
	w.pass(time.Second)
	first := w.leader()
	w.cut, w.away[first] = true, true
	w.kill(1 - first)
	w.start(1 - first)
	w.pass(4 * time.Second)
	check.Equal(t, "leader", w.leader(), 1-first)
}

// A witness that was away when an operator decided is told later, and does not give the lead to the machine that was off.
func TestWitnessHearsOfAnOrderLater(t *testing.T) {
	w := newWorld(t, 11, true)
	w.settled()
	first := w.leader()
	w.away[1-first] = true
	w.kill(first)
	w.pass(10 * time.Second)
	w.step(1-first, Lead{})
	w.away[1-first] = false
	w.pass(10 * time.Second)
	w.cut = true
	w.start(first)
	w.pass(10 * time.Second)
	check.Equal(t, "leader", w.leader(), 1-first)
	w.cut = false
	w.settled()
}

// Chance kills, stops and cuts, each way, both at once too. At most one machine transmits at any time, the machine that leads has lost no
// commit that was confirmed, and when all works again the site has a leader and a follower.
func TestSeeds(t *testing.T) {
	spoke, led := 0, 0
	for seed := range uint64(seeds) {
		w := newWorld(t, 100+seed, seed%3 != 0)
		w.settled()
		for range 40 {
			i := w.rng.IntN(2)
			switch w.rng.IntN(8) {
			case 0, 1:
				if w.box[i].on {
					w.kill(i)
				}
			case 2:
				for i := range w.box {
					if w.box[i].on {
						w.kill(i)
					}
				}
			case 3:
				w.box[i].stopped = true
			case 4:
				w.cut = !w.cut
				w.note("cut: %v", w.cut)
				if w.rng.IntN(2) == 0 {
					w.part()
				}
			case 5:
				w.away[i] = !w.away[i]
				w.note("the witness is away from %d: %v", i, w.away[i])
			case 6:
				if w.box[i].on && !w.box[i].stopped {
					w.step(i, Retire{})
				}
			}
			w.pass(time.Duration(w.rng.IntN(4000)) * time.Millisecond)
			for i, b := range w.box {
				if w.rng.IntN(3) == 0 && !b.on {
					w.start(i)
				}
				if w.rng.IntN(3) == 0 {
					b.stopped = false
				}
			}
			w.pass(time.Duration(w.rng.IntN(4000)) * time.Millisecond)
		}
		w.cut, w.away = false, [2]bool{}
		w.part()
		for i, b := range w.box {
			if b.stopped = false; !b.on {
				w.start(i)
			}
		}
		w.settled()
		spoke, led = spoke+w.spoke, led+w.led
	}
	t.Logf("%d leaderships and %d datagrams of %d sites", led, spoke, seeds)
}
