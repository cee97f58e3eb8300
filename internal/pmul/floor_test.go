package pmul

import (
	"os"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
)

// floorOf is the floor as node sees it on hf-2400, and its configuration.
func floorOf(t *testing.T, node NodeID) (*floor, *Config) {
	t.Helper()
	p, err := profile.Load("hf-2400", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	c := ConfigFor(p, node, Compact, 20, nil)
	c.Hears = true
	return &floor{}, &c
}

func loud(NodeID) bool { return false }

// TestFloor: turns go round in the order of the nodes, each as long as it may be, and a node that does not transmit is passed over.
func TestFloor(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f, c := floorOf(t, 2)
	check.Equal(t, "free: how long to wait", f.mayAt(now, c), now)

	f.heard(now, c, 3, TurnPDU{Source: 3, Number: 7, Left: 10 * time.Second, Next: 1, More: true}, now)
	f.heard(now, c, 1, TurnPDU{Source: 1, Number: 6, Left: 20 * time.Second, Next: 2, More: true}, now) // held back by a radio
	check.Equal(t, "who has it", f.holder, NodeID(3))
	check.Equal(t, "until", f.end, now.Add(10*time.Second))
	check.Equal(t, "this node, which nobody expects", f.mayAt(now, c), f.end.Add(c.afterTurn()))

	f.heard(now, c, 3, TurnPDU{Source: 3, Number: 7, Next: 2, More: true}, now)
	check.Equal(t, "not before all have heard the end", f.mine(now, c), false)
	now = now.Add(c.afterTurn())
	check.Equal(t, "its turn", f.mine(now, c), true)
	end := now.Add(4 * time.Second)
	f.holdTurn(now, c, end, time.Second)
	p := f.turnPDU(now, c, end, true, 5*time.Minute, loud)
	check.Equal(t, "number", p.Number, uint8(8))
	check.Equal(t, "next", p.Next, NodeID(3))
	check.True(t, "wants another turn", p.More, p)
	check.Equal(t, "left", p.Left, c.turnMost()-time.Second)
	check.Equal(t, "goes on", f.mayAt(now, c), now)
	f.heard(now, c, 1, TurnPDU{Source: 1, Number: 7, Next: 3, More: true}, now) // transmits between
	check.Equal(t, "who has it", f.holder, NodeID(2))
	end = end.Add(p.Left)
	p = f.turnPDU(now, c, end, true, 5*time.Minute, loud)
	check.Equal(t, "left at the end", p.Left, 0)
	check.Equal(t, "its next turn is after the others", f.mayAt(now, c), end.Add(c.afterTurn()+2*c.slot()))

	now = end.Add(c.afterTurn() + 2*c.slot()) // neither 3 nor 1 has transmitted
	check.True(t, "somebody's turn", f.taken(now, c), f)
	f.holdTurn(now, c, now, time.Second)
	p = f.turnPDU(now, c, now, true, 0, loud)
	check.Equal(t, "number", p.Number, uint8(9))
	check.Equal(t, "next but the one that did not come", p.Next, NodeID(1))
	check.Equal(t, "next where that one is silent", f.turnPDU(now, c, now, true, 0, func(n NodeID) bool { return n == 1 }).Next, NodeID(0))
}

// TestFloorTwice: two nodes that take the same turn agree which has it, and a node that has nothing to send gets no further turn.
func TestFloorTwice(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, by := range []NodeID{1, 3} {
		f, c := floorOf(t, 2)
		f.holdTurn(now, c, now.Add(time.Second), time.Second)
		mine := f.turnPDU(now, c, now.Add(time.Second), true, time.Minute, loud)
		f.heard(now, c, by, TurnPDU{Source: by, Number: mine.Number, Left: 9 * time.Second, More: true}, now)
		check.Equal(t, "the lower one has it", f.holder, min(by, 2))
		f.heard(now, c, by, TurnPDU{Source: by, Number: mine.Number + 1, Left: 9 * time.Second, More: true}, now)
		check.Equal(t, "a later turn", f.holder, by)
		check.Equal(t, "who takes turns", slices.Equal(f.after(c, 1), []NodeID{min(by, 2), max(by, 2)}), true)
		f.heard(now, c, by, TurnPDU{Source: by, Number: mine.Number + 1}, now)
		check.Equal(t, "who takes turns", slices.Equal(f.after(c, 1), []NodeID{2}), true)
		check.Equal(t, "nobody", f.taken(now.Add(time.Second), c), false)
	}
}

// TestFloorHostile: a lying member makes others wait for a minute at the most, and is remembered once.
func TestFloorHostile(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f, c := floorOf(t, 2)
	for n := range 1000 {
		f.heard(now, c, 3, TurnPDU{Source: 3, Number: uint8(n), Left: leftMost * TurnStep, Next: NodeID(n), More: true}, now)
	}
	check.Equal(t, "members", len(f.members), 1)
	check.True(t, "until", !f.end.After(now.Add(time.Minute)), f.end.Sub(now))
	check.Equal(t, "nobody comes", f.taken(now.Add(2*time.Minute), c), false)
}

// TestFloorGreedy: a member that takes turn after turn while this node waits is ignored from the sixth full one on, for
// half an hour, whether it numbers them or makes one longer. A member that claims nothing, takes turns of a datagram, or
// lets this node transmit between is not ignored.
func TestFloorGreedy(t *testing.T) {
	_, c := floorOf(t, 2)
	for _, tt := range []struct {
		name    string
		every   time.Duration
		left    time.Duration
		numbers uint8 // from a turn to the next
		waits   bool
		speaks  int // this node transmits after so many turns; 0: never
		refused int // the first turn that is ignored; 0: none
	}{
		{name: "turn after turn", every: 45 * time.Second, left: 45 * time.Second, numbers: 1, waits: true, refused: fairTurns + 1},
		{name: "a minute more each five seconds", every: 5 * time.Second, left: time.Minute, numbers: 1, waits: true, refused: fairTurns + 1},
		{name: "one turn that never ends", every: 100 * time.Second, left: time.Minute, waits: true, refused: fairTurns + 1},
		{name: "one long turn", every: 20 * time.Second, left: time.Minute, waits: true, refused: 26},
		{name: "this node has nothing to say", every: 45 * time.Second, left: 45 * time.Second, numbers: 1},
		{name: "this node speaks between", every: 45 * time.Second, left: 45 * time.Second, numbers: 1, waits: true, speaks: 3},
		{name: "turns of a datagram", every: 5 * time.Second, left: 4 * time.Second, numbers: 1, waits: true},
		{name: "it passes the floor on", every: 10 * time.Second, numbers: 1, waits: true},
	} {
		f, now, number := &floor{}, time.Unix(1_800_000_000, 0), uint8(0)
		refused := 0
		for n := 1; n <= max(20, tt.refused); n++ {
			heeded, greedy := f.heeds(now, c, 3, TurnPDU{Source: 3, Number: number, Left: tt.left, More: true}, tt.waits)
			if !heeded && refused == 0 {
				refused = n
				check.True(t, tt.name+": it is told", greedy)
			} else if greedy {
				t.Errorf("%s: it is told again", tt.name)
			}
			if tt.speaks > 0 && n%tt.speaks == 0 {
				f.spokeUp(now)
			}
			now, number = now.Add(tt.every), number+tt.numbers
		}
		check.Equal(t, tt.name+": the first that is not heeded", refused, tt.refused)
		f.spokeUp(now.Add(greedyFor))
		heeded, _ := f.heeds(now.Add(greedyFor), c, 3, TurnPDU{Source: 3, Number: number, Left: tt.left, More: true}, tt.waits)
		check.True(t, tt.name+": when this node has spoken half an hour later", heeded)
	}
}

// TestLately: recent acknowledgements are repeated with those that are owed, up to a bound.
func TestLately(t *testing.T) {
	l := lately{}
	for m := range MessageID(2 * latelyMost) {
		l.add(Key{ship, m})
	}
	ways := l.with([]Key{{ship, 5}, {ship, 2*latelyMost - 1}})
	check.Equal(t, "with what came lately", len(ways[0]), latelyMost+1)
	check.Equal(t, "without", len(ways[1]), 2)
	b, err := AppendCompact(nil, hq, 0, AckPDU{Source: hq, Runs: true, Entries: ways[0]})
	check.True(t, "a few octets", err == nil && len(b) < 12, b)
}

// TestTurnLapses: a node whose turn came while it was silent does not wait for that turn for ever afterwards; it used to
// ask for a Step each nanosecond.
func TestTurnLapses(t *testing.T) {
	_, c := floorOf(t, 2)
	s, err := NewSender(*c, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	s.Step(now, EMCON{Silent: true})
	s.Step(now, TurnPDU{Source: 3, Number: 7, Next: 2, More: true})
	out := s.Step(now, nil)
	check.Equal(t, "while it is silent", out.Deadline, time.Time{})
	now = now.Add(time.Hour)
	check.Equal(t, "an hour later", s.Step(now, EMCON{}).Deadline, time.Time{})

	s.Step(now, TurnPDU{Source: 3, Number: 9, Next: 2, More: true})
	out = s.Step(now, nil)
	check.True(t, "when it talks it is there in time", out.Deadline.After(now) && out.Deadline.Sub(now) < c.slot(), out.Deadline.Sub(now))
}

// TestRestForAnswers: if no other node takes turns, a node that has more to send waits between two turns until the first
// answer can have come. A node that has sent all does not wait, and neither does one after which another takes its turn.
func TestRestForAnswers(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	turn := func(c *Config, f *floor, waits time.Duration) time.Duration {
		end := now.Add(c.fullAir())
		f.holdTurn(now, c, end, c.fullAir())
		f.until = end
		f.turnPDU(now, c, end, true, waits, loud)
		return f.mayAt(end, c).Sub(end)
	}
	f, c := floorOf(t, 1)
	rest := turn(c, f, time.Hour)
	check.True(t, "it waits for an answer", rest >= c.Turnaround+c.ackAir()+2*c.oneWay() && rest < 3*c.Turnaround+c.ackAir()+3*c.oneWay(), rest)
	f, c = floorOf(t, 1)
	check.Equal(t, "all is said", turn(c, f, 0), 0)
	f, c = floorOf(t, 1)
	f.heard(now.Add(-time.Minute), c, 2, TurnPDU{Source: 2, Number: 1, Next: 1, More: true}, now.Add(-time.Minute))
	check.True(t, "another takes its turn", turn(c, f, time.Hour) >= c.slot(), 0)
}

// TestTurnIsOverForGood: the turn of a node after which no other takes one ends on time, however long another node talks
// from then on without taking turns.
func TestTurnIsOverForGood(t *testing.T) {
	f, c := floorOf(t, 1)
	now := time.Unix(1_800_000_000, 0)
	own := now.Add(3 * c.fullAir()) // another node talks before the radio sends it
	f.holdTurn(now, c, own, c.fullAir())
	f.turnPDU(now, c, own, true, 0, loud)
	end := now
	for range 100 {
		end = end.Add(c.fullAir())
		f.spoke(c, 2, end, c.fullAir(), true)
	}
	check.True(t, "it may speak again", !f.mayAt(end, c).After(end), f.mayAt(end, c).Sub(end))
}
