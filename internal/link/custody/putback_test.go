package custody

import (
	"reflect"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
)

func queues(direct, bulk uint64) [frame.Queues]uint64 { return [frame.Queues]uint64{direct, bulk} }

// An acknowledgement of numbers that this start has given is no news from a peer that has not heard of this start.
func TestEarlier(t *testing.T) {
	s := NewSender(cfg, queues(100, 1))
	s.Restore(ID{frame.Direct, 98})
	s.Restore(ID{frame.Direct, 103})
	sendN(s, at(0), 3) // 104, 105, 106
	if first := s.First(frame.Direct); first != 104 {
		t.Errorf("the first number of this start is %d, want 104", first)
	}
	if got, _ := s.Earlier(frame.Ack{Cumulative: 105}, queues(104, 1)); !reflect.DeepEqual(got, d(98, 103)) || s.UnderWay(frame.Direct) != 3 {
		t.Errorf("acknowledged %v, %d under way; want 98 and 103, and three", got, s.UnderWay(frame.Direct))
	}
	s = NewSender(cfg, queues(1<<16, 1))
	s.Restore(ID{frame.Direct, 0xfffe})
	s.Restore(ID{frame.Direct, 0x10001})
	last := frame.Ack{Cumulative: 0xfffd, Bitmap: []byte{0b1000}}
	if got, held := s.Earlier(last, queues(0x10002, 1)); got != nil || !reflect.DeepEqual(held, d(0x10001)) {
		t.Errorf("acknowledged %v, held %v; want none, and 10001 in hex", got, held)
	}
	if got := s.Last(last, queues(0x10001, 1)); got != nil {
		t.Errorf("acknowledged %v, which the peer does not mean", got)
	}
	if got := s.Last(last, queues(0x10002, 1)); !reflect.DeepEqual(got, d(0x10001)) {
		t.Errorf("acknowledged %v, want 10001 in hex", got)
	}
}

// A message that a peer held after a gap goes again when the peer does not hold it any more.
func TestDropped(t *testing.T) {
	s := NewSender(cfg, queues(1, 1))
	sendN(s, at(0), 4)
	s.Ack(at(1), frame.Ack{Cumulative: 1, Bitmap: []byte{0b0110}})
	if got := s.Dropped(frame.Ack{Cumulative: 1, Bitmap: []byte{0b1110}}); got != nil {
		t.Errorf("%v go again, and all are there", got)
	}
	less := frame.Ack{Cumulative: 2, Bitmap: []byte{0b10}}
	if got := s.Dropped(less); !reflect.DeepEqual(got, d(3)) {
		t.Errorf("%v go again, want 3", got)
	}
	if got, _ := s.Ack(at(2), less); !reflect.DeepEqual(got, d(2)) || !reflect.DeepEqual(s.Lost(at(2)), d(3)) {
		t.Errorf("acknowledged %v, lost %v; want 2 and 3", got, s.Lost(at(2)))
	}
}

func TestLacks(t *testing.T) {
	for _, c := range []struct {
		name    string
		acked   frame.Ack // before
		now     frame.Ack
		missing int
	}{
		{"the same", frame.Ack{Cumulative: 4}, frame.Ack{Cumulative: 4}, 0},
		{"more", frame.Ack{Cumulative: 4}, frame.Ack{Cumulative: 6}, 0},
		{"less", frame.Ack{Cumulative: 4}, frame.Ack{Cumulative: 1}, 3},
		{"with what lies above", frame.Ack{Cumulative: 2, Bitmap: []byte{0b1100}}, frame.Ack{Cumulative: 2, Bitmap: []byte{0b1100}}, 0},
		{"without it, which was not acknowledged", frame.Ack{Cumulative: 2, Bitmap: []byte{0b1100}}, frame.Ack{Cumulative: 2}, 0},
		{"all", frame.Ack{Cumulative: 2, Bitmap: []byte{0b1100}}, frame.Ack{}, 2},
		{"what lies above has been joined", frame.Ack{Cumulative: 2, Bitmap: []byte{0b1100}}, frame.Ack{Cumulative: 6}, 0},
	} {
		s := NewSender(cfg, queues(1, 1))
		sendN(s, at(0), 8)
		s.Ack(at(1), c.acked)
		if got := s.Lacks(c.now); got != c.missing {
			t.Errorf("%s: %d missing, want %d", c.name, got, c.missing)
		}
	}
}

func TestReused(t *testing.T) {
	for _, c := range []struct {
		cum    uint64
		held   []uint64
		first  uint16
		count  int
		reused bool
		takes  bool
	}{
		{0, nil, 1, 0, false, false},
		{0, nil, 200, 0, false, false}, // messages under way have not come
		{0, nil, 1000, 0, true, false}, // so many are never under way
		{0, nil, 1000, 0, false, true},
		{0, nil, 3000, 0, true, true},
		{100, nil, 101, 0, false, false},
		{100, nil, 98, 3, true, false},
		{100, []uint64{104}, 105, 0, false, false},
		{100, []uint64{104}, 102, 3, true, false},
		{0x1fffe, []uint64{0x20003}, 4, 0, false, false},
		{0x1fffe, []uint64{0x20003}, 0xffff, 5, true, false},
		{50_000, nil, 10_000, 0, true, true}, // more than half of all numbers back
	} {
		r := NewReceiver(cfg, queues(c.cum, 0))
		for _, n := range c.held {
			r.Restore(ID{frame.Direct, n})
		}
		if n, reused := r.Reused(frame.Direct, c.first, c.takes); n != c.count || reused != c.reused {
			t.Errorf("%d and %v are here, the start begins with %d: %d %v, want %d %v", c.cum, c.held, c.first, n, reused, c.count, c.reused)
		}
	}
}

// A number far beyond those that can be under way, from a bad record of a journal, is not counted up to.
func TestFarNumbers(t *testing.T) {
	for _, far := range []uint64{1 << 40, 1 << 63, 1<<64 - 2} {
		in := check.In(t, far)
		s := NewSender(Config{}, [frame.Queues]uint64{5, 1})
		s.Restore(ID{frame.Direct, 4})
		s.Restore(ID{frame.Direct, far})
		ack := frame.Ack{Queue: frame.Direct, Cumulative: 4}
		check.True(in, "what is lacking is bounded", s.Lacks(ack) <= MaxAhead)
		acked, _ := s.Earlier(ack, [frame.Queues]uint64{far, 1})
		check.Same(in, "what is acknowledged of earlier starts", acked, []ID{{frame.Direct, 4}})
		check.Equal(in, "what is acknowledged last", len(s.Last(ack, [frame.Queues]uint64{far, far})), 0)

		r := NewReceiver(Config{}, [frame.Queues]uint64{3, 0})
		check.Equal(in, "a message that came so early is taken", r.Restore(ID{frame.Direct, far}), false)
		check.Equal(in, "the next", r.Restore(ID{frame.Direct, 4}), true)
		check.Equal(in, "one that was read", r.Restore(ID{frame.Direct, 3}), true)
		check.Equal(in, "the last that can come early", r.Restore(ID{frame.Direct, 3 + MaxAhead}), true)
		check.Equal(in, "acknowledgements", len(r.Acks()), 0)
	}
}
