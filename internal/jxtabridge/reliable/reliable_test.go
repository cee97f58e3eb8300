package reliable

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestUpLook(t *testing.T) {
	u := New[string](&Terms{Reorder: 9}, State{}, true)
	u.Begin(10)
	u.Accept(13, "kept", nil)
	for _, tt := range []struct {
		n    uint32
		want Place
	}{{0, Wrong}, {1, Taken}, {10, Taken}, {11, Next}, {12, Early}, {13, Kept}, {10 + maxAhead, Early}, {11 + maxAhead, Wrong}, {1 << 31, Wrong}} {
		if got := u.Classify(tt.n); got != tt.want {
			t.Errorf("block %d: %d, want %d", tt.n, got, tt.want)
		}
	}
}

func TestUpTakesInOrder(t *testing.T) {
	for _, tt := range []struct {
		name  string
		early []uint32
		stop  string // the block after which nothing more is taken
		want  string
		taken uint32
		left  int
	}{
		{"alone", nil, "", "[1]", 1, 0},
		{"with what waited", []uint32{2, 3}, "", "[1 2 3]", 3, 0},
		{"up to the next gap", []uint32{2, 4, 5}, "", "[1 2]", 2, 2},
		{"up to the last", []uint32{2, 3, 4}, "2", "[1 2]", 2, 2},
	} {
		u := New[string](&Terms{}, State{}, true)
		for _, n := range tt.early {
			u.Accept(n, fmt.Sprint(n), nil)
		}
		var got []string
		u.Accept(1, "1", func(s string) bool {
			got = append(got, s)
			return s != tt.stop
		})
		if fmt.Sprint(got) != tt.want || u.taken != tt.taken || len(u.early) != tt.left {
			t.Errorf("%s: took %v up to %d, %d wait", tt.name, got, u.taken, len(u.early))
		}
	}
}

func TestUpCountsWhatTheLinkHas(t *testing.T) {
	c := New[string](&Terms{Hard: Room{150, 3}}, State{}, true)
	waits := func(when string, octets, blocks int) {
		t.Helper()
		if w := c.toLink; w != (Room{octets, blocks}) {
			t.Errorf("%s: %+v", when, w)
		}
	}
	c.Give(100)
	check.True(t, "room", !c.Full(), c.toLink)
	c.Give(50)
	check.True(t, "no room for octets", c.Full(), c.toLink)
	c.Begin(7)
	c.Stored(t0, 100)
	waits("after the first was stored", 50, 1)
	c.Give(1)
	c.Give(1)
	check.True(t, "no room for blocks", c.Full(), c.toLink)
	for range 4 {
		c.Stored(t0, 60)
	}
	waits("at the end", 0, 0)
}

// line is a conversation and the blocks that it sent.
type line struct {
	Conversation[string]
	out Output
}

func newLine(blocks ...uint32) *line {
	l := &line{Conversation: New[string](&Terms{Window: 2, Repeats: 1, Near: Room{1000, 100}, GiveUp: time.Hour}, State{}, true)}
	for _, n := range blocks {
		l.Put(n, &Block{Token: uint64(100 + n), Data: make([]byte, 10)})
	}
	return l
}

func numbers(out Output) (all []uint32) {
	for _, s := range out.Send {
		all = append(all, s.Number)
	}
	return all
}

func tokens(blocks []*Block) (all []uint64) {
	for _, b := range blocks {
		all = append(all, b.Token)
	}
	return all
}

func (l *line) ack(now time.Time, n uint32) Place {
	place, out := l.Ack(now, n)
	l.out.Freed, l.out.Send = append(l.out.Freed, out.Freed...), append(l.out.Send, out.Send...)
	return place
}

func (l *line) expect(t *testing.T, when string, sent ...uint32) {
	t.Helper()
	if got := numbers(l.out); !slices.Equal(got, sent) {
		t.Errorf("%s: sent %v, want %v", when, got, sent)
	}
	l.out.Send = nil
}

func TestDownWindow(t *testing.T) {
	l := newLine(1, 2, 3, 5)
	l.pump(t0, &l.out)
	l.expect(t, "a window of two", 1, 2)
	if !l.due.Equal(t0.Add(FirstRepeat)) {
		t.Errorf("repeat at %v", l.due)
	}
	l.ack(t0.Add(time.Second), 1)
	l.expect(t, "one was acknowledged", 3)
	l.ack(t0, 3)
	l.expect(t, "a gap")
	check.True(t, "nothing due", l.due.IsZero(), l.due)
	l.Put(4, &Block{Token: 104})
	l.next = t0.Add(time.Second)
	l.pump(t0, &l.out)
	l.expect(t, "not yet")
	l.pump(l.next, &l.out)
	l.expect(t, "the gap is filled", 4, 5)
	if got := tokens(l.out.Freed); fmt.Sprint(got) != "[101 102 103]" || l.octets != 10 || len(l.queue) != 2 {
		t.Errorf("done %v, %d octets in %d blocks wait", got, l.octets, len(l.queue))
	}
}

func TestDownAck(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    uint32
		ok   bool
		at   uint32
		sent uint32
	}{{"what was sent", 2, true, 2, 3}, {"what was sent before a restart", 3, true, 3, 3}, {"what is not here", 4, false, 0, 2}, {"made up", 1<<32 - 1, false, 0, 2}} {
		l := newLine(1, 2, 3)
		l.pump(t0, &l.out)
		if place := l.ack(t0, tt.n); (place == Next) != tt.ok || l.acked != tt.at || l.sent != tt.sent {
			t.Errorf("%s: %d, acknowledged %d, sent %d", tt.name, place, l.acked, l.sent)
		}
	}
}

func TestDownRepeats(t *testing.T) {
	l := newLine(1, 2, 3, 4, 5, 6)
	l.pump(t0, &l.out)
	l.expect(t, "at first", 1, 2)
	now, wait := t0, FirstRepeat
	for i := range uint32(3) {
		now = l.due
		if got := now.Sub(t0); i == 0 && got != wait {
			t.Errorf("first repeat after %v", got)
		}
		l.repeat(now, true, &l.out)
		l.expect(t, "the first again and one more", 1, 3+i)
		if wait *= 2; l.due.Sub(now) != wait {
			t.Errorf("repeat %d: next after %v, want %v", i, l.due.Sub(now), wait)
		}
	}
	l.ack(now, 2)
	l.expect(t, "what followed a lost block", 3)
	if !l.stuck.Equal(now) {
		t.Errorf("stuck since %v", l.stuck)
	}
	l.ack(now, 5)
	l.expect(t, "nothing before the repeat is missing", 6)
	for range 10 {
		l.repeat(now, true, &l.out)
	}
	if l.wait != LastRepeat || l.queue[6].sent != 11 {
		t.Errorf("wait %v after %d times", l.wait, l.queue[6].sent)
	}
}

func TestDownRepeatsInAHurry(t *testing.T) {
	l := newLine(1, 2, 3)
	l.terms.Repeats = 0
	l.hurry = 2
	l.pump(t0, &l.out)
	l.out.Send = nil
	for left := 1; left >= 0; left-- {
		now := l.due
		l.repeat(now, true, &l.out)
		l.expect(t, "all again, none beyond the window", 1, 2)
		if want := []time.Duration{FirstRepeat, hurryEvery}[left]; l.due.Sub(now) != want {
			t.Errorf("with %d left: next after %v", left, l.due.Sub(now))
		}
	}
	l.repeat(t0.Add(time.Hour), false, &l.out)
	if !l.stuck.Equal(t0.Add(time.Hour)) || !l.due.Equal(t0.Add(time.Hour+FirstRepeat)) {
		t.Errorf("absent: stuck since %v, due %v", l.stuck, l.due)
	}
	l.Back(t0.Add(2 * time.Hour))
	check.True(t, "due after its return", l.due.Equal(t0.Add(2*time.Hour+returnAfter)), l.due)
	l.ack(t0, 1)
	l.expect(t, "what followed was repeated", 3)
	l.terms.Repeats = 1
	l.Back(t0)
	l.ack(t0, 2)
	l.expect(t, "after its return", 3)
	l.ack(t0, 3)
	l.Back(t0)
	check.True(t, "nothing is under way", l.due.IsZero(), l.due)
}

func TestDownEnds(t *testing.T) {
	l := newLine(1, 2, 4, 6)
	check.Equal(t, "octets", l.octets, 40)
	last, cut := l.Cut()
	check.Equal(t, "last", last, 2)
	check.Equal(t, "cut", fmt.Sprint(cut), "[104 106]")
	l.repeat(t0, true, &l.out)
	check.Equal(t, "left", fmt.Sprint(l.Clear()), "[101 102]")
	check.True(t, "idle", l.Idle(), len(l.queue))
	check.Equal(t, "octets", l.octets, 0)
	check.True(t, "nothing due", l.due.IsZero(), l.due)
	check.Equal(t, "wait", l.wait, FirstRepeat)
	l.Expect(20)
	l.Put(21, &Block{Token: 1})
	l.out.Send = nil
	l.pump(t0, &l.out)
	l.expect(t, "begun anew", 21)
}
