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
	u := Up[string]{}
	u.Restart(10)
	u.Keep(13, "kept")
	for _, tt := range []struct {
		n    uint32
		want Place
	}{{0, Wrong}, {1, Taken}, {10, Taken}, {11, Next}, {12, Early}, {13, Kept}, {10 + maxAhead, Early}, {11 + maxAhead, Wrong}, {1 << 31, Wrong}} {
		if got := u.Look(tt.n); got != tt.want {
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
		var u Up[string]
		for _, n := range tt.early {
			u.Keep(n, fmt.Sprint(n))
		}
		var got []string
		u.Take("1", func(s string) bool {
			got = append(got, s)
			return s != tt.stop
		})
		if fmt.Sprint(got) != tt.want || u.Taken != tt.taken || u.Early() != tt.left {
			t.Errorf("%s: took %v up to %d, %d wait", tt.name, got, u.Taken, u.Early())
		}
	}
}

func TestUpCountsWhatTheLinkHas(t *testing.T) {
	var u Up[string]
	u.Give(100)
	u.Give(50)
	if !u.Full(150, 10) || !u.Full(1000, 2) || u.Full(151, 3) {
		t.Errorf("%d octets in %d blocks", u.Waiting, u.Blocks)
	}
	u.Restart(7)
	u.Stored(100)
	if u.Waiting != 50 || u.Blocks != 1 {
		t.Errorf("%d octets in %d blocks after the first was stored", u.Waiting, u.Blocks)
	}
	u.Stored(60)
	u.Stored(1)
	if u.Waiting != 0 || u.Blocks != 0 {
		t.Errorf("%d octets in %d blocks at the end", u.Waiting, u.Blocks)
	}
}

// line is a Down and what it sent.
type line struct {
	Down
	sent []uint32
	done []uint64
}

func newLine(blocks ...uint32) *line {
	l := &line{Down: New(0)}
	for _, n := range blocks {
		l.Put(n, &Block{Token: uint64(100 + n), Data: make([]byte, 10)})
	}
	return l
}

func (l *line) send(n uint32, _ *Block)          { l.sent = append(l.sent, n) }
func (l *line) free(b *Block)                    { l.done = append(l.done, b.Token) }
func (l *line) ack(now time.Time, n uint32) bool { return l.Ack(now, n, l.free) }

func (l *line) expect(t *testing.T, when string, sent ...uint32) {
	t.Helper()
	if !slices.Equal(l.sent, sent) {
		t.Errorf("%s: sent %v, want %v", when, l.sent, sent)
	}
	l.sent = nil
}

func TestDownWindow(t *testing.T) {
	l := newLine(1, 2, 3, 5)
	l.Pump(t0, 2, nil, l.send)
	l.expect(t, "a window of two", 1, 2)
	if !l.Due.Equal(t0.Add(FirstRepeat)) {
		t.Errorf("repeat at %v", l.Due)
	}
	if !l.ack(t0.Add(time.Second), 1) || !l.Due.IsZero() {
		t.Errorf("acknowledged, and due at %v", l.Due)
	}
	l.Pump(t0.Add(time.Second), 2, nil, l.send)
	l.expect(t, "one was acknowledged", 3)
	l.ack(t0, 3)
	l.Pump(t0, 2, nil, l.send)
	l.expect(t, "a gap")
	l.Put(4, &Block{Token: 104})
	l.Pump(t0, 2, func() bool { return false }, l.send)
	l.expect(t, "not yet")
	l.Pump(t0, 2, nil, l.send)
	l.expect(t, "the gap is filled", 4, 5)
	if fmt.Sprint(l.done) != "[101 102 103]" || l.Octets != 10 || l.Len() != 2 {
		t.Errorf("done %v, %d octets in %d blocks wait", l.done, l.Octets, l.Len())
	}
}

func TestDownAck(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    uint32
		ok   bool
		at   uint32
	}{{"what was sent", 2, true, 2}, {"what was sent before a restart", 3, true, 3}, {"what is not here", 4, false, 0}, {"made up", 1<<32 - 1, false, 0}} {
		l := newLine(1, 2, 3)
		l.Pump(t0, 2, nil, l.send)
		if ok := l.ack(t0, tt.n); ok != tt.ok || l.Acked != tt.at || l.Sent != max(2, tt.at) {
			t.Errorf("%s: %t, acknowledged %d, sent %d", tt.name, ok, l.Acked, l.Sent)
		}
	}
}

func TestDownRepeats(t *testing.T) {
	l := newLine(1, 2, 3, 4, 5, 6)
	l.Pump(t0, 2, nil, l.send)
	l.expect(t, "at first", 1, 2)
	now, wait := t0, FirstRepeat
	for i := range uint32(3) {
		now = l.Due
		if got := now.Sub(t0); i == 0 && got != wait {
			t.Errorf("first repeat after %v", got)
		}
		l.Repeat(now, 2, 1, l.send)
		l.expect(t, "the first again and one more", 1, 3+i)
		if wait *= 2; l.Due.Sub(now) != wait {
			t.Errorf("repeat %d: next after %v, want %v", i, l.Due.Sub(now), wait)
		}
	}
	l.ack(now, 2)
	l.Fill(l.send)
	l.expect(t, "what followed a lost block", 3)
	if !l.Stuck.Equal(now) {
		t.Errorf("stuck since %v", l.Stuck)
	}
	l.ack(now, 5)
	l.Fill(l.send)
	l.expect(t, "nothing before the repeat is missing")
	l.Pump(now, 2, nil, l.send)
	l.expect(t, "on", 6)
	for range 10 {
		l.Repeat(now, 2, 1, l.send)
	}
	if l.Wait != LastRepeat || l.Block(6).Sent != 11 {
		t.Errorf("wait %v after %d times", l.Wait, l.Block(6).Sent)
	}
}

func TestDownResend(t *testing.T) {
	l := newLine(1, 2, 3)
	l.Pump(t0, 2, nil, l.send)
	l.sent = nil
	l.Resend(t0.Add(time.Second), 2, 100, l.send)
	l.expect(t, "all again, none beyond the window", 1, 2)
	if l.Wait != FirstRepeat || !l.Due.Equal(t0.Add(time.Second+FirstRepeat)) {
		t.Errorf("wait %v, due %v", l.Wait, l.Due)
	}
	l.Absent(t0.Add(time.Hour))
	if !l.Stuck.Equal(t0.Add(time.Hour)) || !l.Due.Equal(t0.Add(time.Hour+FirstRepeat)) {
		t.Errorf("absent: stuck since %v, due %v", l.Stuck, l.Due)
	}
	if !l.Return(t0.Add(2 * time.Hour)) {
		t.Error("nothing was under way")
	}
	l.ack(t0, 1)
	l.Fill(l.send)
	l.expect(t, "after its return", 2)
	if l.ack(t0, 2); l.Return(t0) {
		t.Error("something is under way")
	}
}

func TestDownEnds(t *testing.T) {
	l := newLine(1, 2, 4, 6)
	l.Put(7, &Block{Data: make([]byte, 100)}) // made here: not counted
	if l.Octets != 40 {
		t.Errorf("%d octets", l.Octets)
	}
	last, cut := l.Cut()
	must := check.Fatal(t)
	check.Equal(t, "last", last, 2)
	check.Equal(must, "len(cut)", len(cut), 3)
	check.Equal(t, "cut[0].Token", cut[0].Token, 104)
	check.Equal(t, "cut[2].Token", cut[2].Token, 0)
	l.Repeat(t0, 2, 1, l.send)
	all := l.Clear()
	check.Equal(must, "len(all)", len(all), 2)
	check.Equal(t, "all[1].Token", all[1].Token, 102)
	check.Equal(t, "l.Len()", l.Len(), 0)
	check.Equal(t, "l.Octets", l.Octets, 0)
	check.True(t, "nothing due", l.Due.IsZero(), l.Due)
	check.Equal(t, "l.Wait", l.Wait, FirstRepeat)
	l.Restart(20)
	l.Put(21, &Block{Token: 1})
	l.sent = nil
	l.Pump(t0, 2, nil, l.send)
	l.expect(t, "begun anew", 21)
}
