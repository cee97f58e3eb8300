package custody

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
)

var epoch = time.Unix(1_800_000_000, 0)

var cfg = Config{
	Window: [frame.Queues]int{8, 2}, RoundTrip: 5 * time.Second, AckDelay: 6 * time.Second,
	ProbeInterval: 15 * time.Second,
}

func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

func d(n ...uint64) (ids []ID) {
	for _, n := range n {
		ids = append(ids, ID{frame.Direct, n})
	}
	return ids
}

func sendN(s *Sender, now time.Time, n int) {
	for range n {
		s.Sent(now, ID{frame.Direct, s.Assign(frame.Direct, 1)})
	}
}

func TestAckFindsTheGap(t *testing.T) {
	s := NewSender(cfg, [frame.Queues]uint64{1, 1})
	sendN(s, at(0), 5)
	if got, held := s.Ack(at(3), frame.Ack{Cumulative: 1, Bitmap: []byte{0b0110}}); !reflect.DeepEqual(got, d(1)) || !reflect.DeepEqual(held, d(3, 4)) {
		t.Errorf("acknowledged %v, held %v; want 1, and 3 4", got, held)
	}
	if got := s.Lost(at(0)); !reflect.DeepEqual(got, d(2)) { // 5 went after 4 and may be on its way
		t.Errorf("lost %v, want 2", got)
	}
	s.Sent(at(3), ID{frame.Direct, 2})
	if got, held := s.Ack(at(4), frame.Ack{Cumulative: 1, Bitmap: []byte{0b1110}}); got != nil || !reflect.DeepEqual(held, d(5)) {
		t.Errorf("acknowledged %v, held %v; want none, and 5", got, held)
	}
	if got := s.Lost(at(0)); got != nil { // the repeat went after 5
		t.Errorf("lost %v, want none", got)
	}
	for _, r := range []frame.Ack{{Cumulative: 0xfff0}, {Cumulative: 400}, {Queue: frame.Bulk, Cumulative: 1}} {
		if got, held := s.Ack(at(5), r); got != nil || held != nil {
			t.Errorf("%+v acknowledged %v, held %v; want none", r, got, held)
		}
	}
	if got, _ := s.Ack(at(6), frame.Ack{Cumulative: 5}); !reflect.DeepEqual(got, d(2, 3, 4, 5)) || s.UnderWay(frame.Direct) != 0 {
		t.Errorf("acknowledged %v, %d under way; want 2 to 5 and none", got, s.UnderWay(frame.Direct))
	}
}

func TestWindow(t *testing.T) {
	s := NewSender(cfg, [frame.Queues]uint64{1 << 20, 1})
	sendN(s, at(0), 8)
	if s.Room(frame.Direct) || !s.Room(frame.Bulk) {
		t.Error("eight under way: want no room for more, and room in the other queue")
	}
	s.Ack(at(1), frame.Ack{Cumulative: 0xffff, Bitmap: []byte{0xfe}}) // all but the first
	if !s.Room(frame.Direct) {
		t.Error("one under way: want room")
	}
	for s.Room(frame.Direct) {
		n := s.Assign(frame.Direct, 1)
		s.Sent(at(2), ID{frame.Direct, n})
		if n > 1<<20 {
			s.Ack(at(2), frame.Ack{Cumulative: 0xffff, Bitmap: bitAt(int(n - 1<<20))})
		}
	}
	if ahead := s.Next(frame.Direct) - 1<<20; ahead > MaxAhead {
		t.Errorf("%d numbers ahead of the oldest, want at most %d", ahead, MaxAhead)
	}
}

func bitAt(n int) []byte {
	b := make([]byte, n/8+1)
	b[n/8] = 1 << (n % 8)
	return b
}

func TestProbeInsteadOfRepeats(t *testing.T) {
	s := NewSender(cfg, [frame.Queues]uint64{1, 1})
	sendN(s, at(0), 2)
	if s.ProbeDue(at(10.9)) || !s.Deadline().Equal(at(11)) {
		t.Errorf("deadline %v, want 11 s", s.Deadline().Sub(epoch))
	}
	if !s.ProbeDue(at(11)) {
		t.Fatal("want a probe 11 s after the first message")
	}
	s.ProbeSent(at(11))
	var probes []float64
	for now := 11.0; now < 100; now += 0.5 {
		if s.ProbeDue(at(now)) {
			s.ProbeSent(at(now))
			probes = append(probes, now)
		}
	}
	if want := []float64{26, 41, 56, 71, 86}; !slices.Equal(probes, want) {
		t.Errorf("probes at %v, want %v", probes, want)
	}
	if !s.Dead() || s.Room(frame.Direct) || s.Lost(at(0)) != nil {
		t.Error("a link that does not answer: want dead, no room, nothing repeated")
	}
	s.Heard(at(100))
	s.Answer(at(100), 6)
	if got := s.Lost(at(0)); s.Dead() || !reflect.DeepEqual(got, d(1, 2)) || s.ProbeDue(at(100)) {
		t.Errorf("after the answer: lost %v, want 1 2 and no further probe", got)
	}
}

func TestPromptMessageGoesAgainOnce(t *testing.T) {
	c := cfg
	c.Prompt = 4 * time.Second
	s := NewSender(c, [frame.Queues]uint64{1, 1})
	s.SentPrompt(at(0), ID{frame.Direct, s.Assign(frame.Direct, 1)})
	if !s.Deadline().Equal(at(4)) || s.Lost(at(3.9)) != nil {
		t.Errorf("deadline %v, want 4 s and nothing lost before", s.Deadline().Sub(epoch))
	}
	if got := s.Lost(at(4)); !reflect.DeepEqual(got, d(1)) {
		t.Fatalf("after 4 s lost %v, want 1", got)
	}
	s.SentPrompt(at(4), ID{frame.Direct, 1})
	if got := s.Lost(at(14)); got != nil || !s.Deadline().Equal(at(15)) {
		t.Errorf("lost %v, deadline %v; want no second repeat by time but a probe at 15 s", got, s.Deadline().Sub(epoch))
	}
	s.ResendAll()
	if got := s.Lost(at(14)); !reflect.DeepEqual(got, d(1)) {
		t.Errorf("the peer has begun anew: lost %v, want 1", got)
	}
}

// Messages that were under way when the gateway stopped are asked about again when the first probe, or its answer, is lost
// on a link that is up.
func TestRestoredMessagesAreAskedForAgain(t *testing.T) {
	s := NewSender(cfg, [frame.Queues]uint64{11, 1})
	s.Restore(ID{frame.Direct, 10})
	s.ProbeSent(at(0))
	s.Heard(at(1)) // a hello, and no answer
	if s.ProbeDue(at(6)) || s.Dead() {
		t.Error("it is asked again too soon, or the link counts as dead")
	}
	if due := s.Deadline(); due.IsZero() || due.After(at(15)) {
		t.Errorf("nobody looks again before %v", due)
	}
	if !s.ProbeDue(at(15)) {
		t.Error("it is not asked for again")
	}
	id := s.ProbeSent(at(15))
	if s.Answer(at(18), id); !reflect.DeepEqual(s.Lost(at(18)), d(10)) {
		t.Errorf("lost %v", s.Lost(at(18)))
	}
}

func TestRestoredMessagesAreAskedFor(t *testing.T) {
	s := NewSender(cfg, [frame.Queues]uint64{10, 1})
	s.Restore(ID{frame.Direct, 11})
	s.Restore(ID{frame.Direct, 9})
	if s.Next(frame.Direct) != 12 || s.Lost(at(0)) != nil || !s.ProbeDue(at(0)) {
		t.Fatal("want the next number 12, nothing lost yet, and a probe at once")
	}
	id := s.ProbeSent(at(0))
	s.Heard(at(2))
	s.Ack(at(2), frame.Ack{Cumulative: 9})
	s.Answer(at(2), id)
	if got := s.Lost(at(0)); !reflect.DeepEqual(got, d(11)) {
		t.Errorf("lost %v, want 11", got)
	}
}

func TestReceiver(t *testing.T) {
	r := NewReceiver(cfg, [frame.Queues]uint64{0xfffe, 0})
	steps := []struct {
		low   uint16
		want  uint64
		fresh Fresh
		due   float64
	}{
		{0xffff, 0xffff, New, 6},
		{0xffff, 0xffff, Duplicate, 6},
		{0xfff0, 0xfff0, Duplicate, 6},
		{1, 0x10001, New, 0}, // 0x10000 is missing: at once
		{0x0800, 0x10800, Beyond, 0},
	}
	for _, st := range steps {
		id, fresh := r.Accept(at(0), frame.Direct, st.low, false)
		if id.Number != st.want || fresh != st.fresh || !r.Due().Equal(at(st.due)) {
			t.Errorf("Accept(%x) = %x %d, due %v; want %x %d, %v s", st.low, id.Number, fresh, r.Due().Sub(epoch), st.want, st.fresh, st.due)
		}
		if st.low == 0xffff && st.fresh == New {
			if id, ok := r.Advance(frame.Direct); !ok || id.Number != 0xffff {
				t.Errorf("Advance = %v %v, want 0xffff", id, ok)
			}
		}
	}
	if _, ok := r.Advance(frame.Direct); ok {
		t.Error("Advance moved over a gap")
	}
	if got, want := r.Acks(), []frame.Ack{{Queue: frame.Direct, Cumulative: 0xffff, Bitmap: []byte{0b10}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("acknowledgements %+v, want %+v", got, want)
	}
	r.Settle()
	if r.Acks() != nil || !r.Due().IsZero() {
		t.Error("settled, and still something owed")
	}
}

// TestExactlyOnce plays ten thousand messages over a link that loses a quarter of all datagrams, with outages and
// restarts of either side, and wants every message once and in order.
func TestExactlyOnce(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 142))
			s, r := NewSender(cfg, [frame.Queues]uint64{1, 1}), NewReceiver(cfg, [frame.Queues]uint64{})
			type packet struct {
				at       time.Time
				toSender bool
				number   uint16
				data     bool
				acks     []frame.Ack
				probe    uint8
			}
			var air []packet
			var got []uint64
			out := map[uint64]bool{} // numbers under way, as the journal knows them
			offered, now := 0, epoch
			delay := func() time.Duration { return time.Second + time.Duration(now.UnixNano()%7) }
			carry := func(p packet) {
				minute := now.Sub(epoch) / time.Minute
				if rng.IntN(4) == 0 || minute%10 == 5 {
					return
				}
				p.at = now.Add(delay())
				air = append(air, p)
			}
			const total = 2000
			for len(got) < total || s.UnderWay(frame.Direct) > 0 {
				now = now.Add(100 * time.Millisecond)
				if now.Sub(epoch) > 24*time.Hour {
					t.Fatalf("after a day: %d of %d delivered, %d under way", len(got), total, s.UnderWay(frame.Direct))
				}
				for len(air) > 0 && !air[0].at.After(now) {
					p := air[0]
					air = air[1:]
					if p.toSender {
						s.Heard(now)
						for _, rec := range p.acks {
							acked, _ := s.Ack(now, rec)
							for _, id := range acked {
								delete(out, id.Number)
							}
						}
						if p.probe != 0 {
							s.Answer(now, p.probe)
						}
						continue
					}
					if p.data {
						r.Accept(now, frame.Direct, p.number, p.number%5 == 0)
						for id, ok := r.Advance(frame.Direct); ok; id, ok = r.Advance(frame.Direct) {
							got = append(got, id.Number)
						}
					}
					if p.probe != 0 {
						r.Probed(now)
						carry(packet{toSender: true, acks: r.Acks(), probe: p.probe})
						r.Settle()
					}
				}
				if due := r.Due(); !due.IsZero() && !now.Before(due) {
					carry(packet{toSender: true, acks: r.Acks()})
					r.Settle()
				}
				for _, id := range s.Lost(now) {
					s.Sent(now, id)
					carry(packet{number: uint16(id.Number), data: true})
				}
				if s.ProbeDue(now) {
					carry(packet{probe: s.ProbeSent(now)})
				}
				if offered < total && rng.IntN(10) == 0 && s.Room(frame.Direct) {
					n := s.Assign(frame.Direct, 1)
					out[n] = true
					offered++
					s.Sent(now, ID{frame.Direct, n})
					carry(packet{number: uint16(n), data: true})
				}
				if rng.IntN(5000) == 0 { // the sender restarts
					s = NewSender(cfg, [frame.Queues]uint64{s.Next(frame.Direct), 1})
					for n := range out {
						s.Restore(ID{frame.Direct, n})
					}
				}
				if rng.IntN(5000) == 0 { // the receiver restarts
					held := r.held[frame.Direct]
					r = NewReceiver(cfg, [frame.Queues]uint64{r.Cumulative(frame.Direct), 0})
					for n := range held {
						r.Restore(ID{frame.Direct, n})
					}
				}
			}
			for i, n := range got {
				if n != uint64(i+1) {
					t.Fatalf("delivery %d was message %d", i+1, n)
				}
			}
		})
	}
}

// Eight bits of a number or of an acknowledgement mean the same at both ends, whichever numbers are under way and wherever
// they begin.
func TestShortNumbers(t *testing.T) {
	for _, start := range []uint64{1, 100, 250, 65500, 1 << 20} {
		s := NewSender(Config{}, [frame.Queues]uint64{start, 1})
		for s.HasNumber(frame.Direct) {
			id := ID{frame.Direct, s.Assign(frame.Direct, 1)}
			if ahead := id.Number - start; s.Short(id) != (ahead < ShortAhead) {
				t.Fatalf("%d ahead of the oldest: short %v", ahead, s.Short(id))
			}
		}
		next := s.Next(frame.Direct)
		if next-start != ByteAhead {
			t.Fatalf("%d under way, want %d", next-start, ByteAhead)
		}
		for cum := start - 1; cum < next; cum++ {
			if got := s.Widen(frame.Direct, uint8(cum)); got != uint16(cum) {
				t.Fatalf("acknowledgement up to %d of %d to %d is understood as %d", cum, start, next-1, got)
			}
		}
		for cum := start - 1; cum < start+ShortAhead; cum++ {
			r := NewReceiver(Config{}, [frame.Queues]uint64{cum, 0})
			for n := start; n < start+ShortAhead; n++ {
				if got := r.Widen(frame.Direct, uint8(n)); got != uint16(n) {
					t.Fatalf("message %d is understood as %d by one that has all up to %d", n, got, cum)
				}
			}
		}
	}
	s := NewSender(Config{Reorder: true}, [frame.Queues]uint64{1, 1})
	if s.Short(ID{frame.Direct, 1}) {
		t.Error("a short number on a link that does not keep order")
	}
}

// A message that comes for a dead link brings the next three probes forward, for the first ten minutes.
func TestNewMessagesAskSooner(t *testing.T) {
	s := NewSender(cfg, [frame.Queues]uint64{1, 1})
	sendN(s, at(0), 2)
	s.Wanted() // before the link is known to be dead: no probe is brought forward
	if !s.ProbeDue(at(11)) {
		t.Fatal("want a probe 11 s after the first message")
	}
	s.ProbeSent(at(11))
	var probes []float64
	for now := 11.0; now < 760; now += 0.5 {
		if now == 20 || now == 700 {
			s.Wanted()
		}
		if s.ProbeDue(at(now)) {
			s.ProbeSent(at(now))
			probes = append(probes, now)
		}
	}
	if want := []float64{20, 25, 30, 45, 60, 75}; !slices.Equal(probes[:6], want) {
		t.Errorf("probes at %v, want %v", probes[:6], want)
	}
	late := probes[len(probes)-2:]
	if gap := late[1] - late[0]; gap != 60 || late[1] < 700 {
		t.Errorf("the last probes at %v: after ten minutes a message brings nothing forward, want 60 s between them", late)
	}
}

// If probes come more often than they can be answered, the answer to any of them since the link died tells which messages
// were lost; an answer to an earlier probe tells nothing.
func TestProbesUnderWayTogether(t *testing.T) {
	for earlier, want := range map[uint8][]ID{0: d(1, 2), 1: d(1, 2), 2: d(1, 2), 3: nil, 200: nil} {
		c := cfg
		c.EagerInterval = 2 * time.Second
		s := NewSender(c, [frame.Queues]uint64{1, 1})
		s.ProbeSent(at(0)) // on a link that is up
		s.Answer(at(1), 1)
		sendN(s, at(1), 2)
		s.ProbeDue(at(12))
		first := s.ProbeSent(at(12))
		if s.ProbeDue(at(18)); !s.Dead() {
			t.Fatal("want a dead link")
		}
		s.Wanted()
		last := first
		for _, now := range []float64{20, 22} {
			if !s.ProbeDue(at(now)) {
				t.Fatalf("want a probe after %v s", now)
			}
			last = s.ProbeSent(at(now))
		}
		s.Heard(at(24))
		s.Answer(at(24), last-earlier)
		if got := s.Lost(at(24)); !reflect.DeepEqual(got, want) {
			t.Errorf("the answer to the probe %d before the last: lost %v, want %v", earlier, got, want)
		}
	}
}

// The first acknowledgement on a link that was dead tells which messages were lost, without a question: a message that went
// a round trip ago or earlier and is not named goes again. And the window is as large as it gets.
func TestAckOfALinkThatIsBack(t *testing.T) {
	c := cfg
	c.Most = 30
	s := NewSender(c, [frame.Queues]uint64{1, 1})
	sendN(s, at(0), 3)
	s.ProbeDue(at(11))
	s.ProbeSent(at(11))
	if s.ProbeDue(at(17)); !s.Dead() || s.Window(frame.Direct) != c.Window[frame.Direct] {
		t.Fatalf("dead %v, window %d; want a dead link with the profile's window", s.Dead(), s.Window(frame.Direct))
	}
	s.Heard(at(40))
	s.Ack(at(40), frame.Ack{Queue: frame.Direct, Cumulative: 1})
	s.Back(at(40))
	if got := s.Lost(at(40)); !reflect.DeepEqual(got, d(2, 3)) || s.ProbeDue(at(40)) || s.Window(frame.Direct) != 30 {
		t.Errorf("lost %v, probe due %v, window %d; want 2 and 3 lost, no question, 30", got, s.ProbeDue(at(40)), s.Window(frame.Direct))
	}
	s.Back(at(41)) // on a link that was not dead: nothing is known from that
	sendN(s, at(41), 1)
	s.Back(at(60))
	if got := s.Lost(at(60)); !reflect.DeepEqual(got, d(2, 3)) {
		t.Errorf("lost %v, want still 2 and 3", got)
	}
}

// A window that acknowledgements have let grow stays while the next burst follows at once. It shrinks when nothing was
// under way for a while.
func TestWindowAfterABurst(t *testing.T) {
	c := cfg
	c.Most, c.Prompt = 30, 4*time.Second
	for _, tt := range []struct {
		pause float64
		want  int
	}{{1, 2 * c.Window[frame.Direct]}, {10, c.Window[frame.Direct]}} {
		s := NewSender(c, [frame.Queues]uint64{1, 1})
		n := c.Window[frame.Direct]
		sendN(s, at(0), n)
		s.Ack(at(3), frame.Ack{Queue: frame.Direct, Cumulative: uint16(n)})
		sendN(s, at(3+tt.pause), 1)
		if got := s.Window(frame.Direct); got != tt.want {
			t.Errorf("%.0f s after all was acknowledged: a window of %d, want %d", tt.pause, got, tt.want)
		}
	}
}

// Short messages weigh so much that no window holds more of them than 8-bit numbers can name.
func TestWeight(t *testing.T) {
	c := cfg
	c.Window[frame.Direct], c.Most = 10_000, 20_000
	s := NewSender(c, [frame.Queues]uint64{1, 1})
	check.Equal(t, "the weight of a long message", s.Weigh(400), 400)
	for s.Room(frame.Direct) {
		s.Sent(at(0), ID{frame.Direct, s.Assign(frame.Direct, s.Weigh(10))})
	}
	n := s.UnderWay(frame.Direct)
	check.True(t, "short messages under way", n >= ShortAhead && n <= ShortAhead+2, n)
	s.Ack(at(1), frame.Ack{Cumulative: uint16(n)})
	check.Equal(t, "the weight of none", s.Weight(frame.Direct), 0)
	check.Equal(t, "the window when all are acknowledged", s.Window(frame.Direct), c.Most)
}

func TestSentTwice(t *testing.T) {
	s := NewSender(cfg, [frame.Queues]uint64{1, 1})
	id := ID{frame.Direct, s.Assign(frame.Direct, 1)}
	s.SentTwice(at(0), id, 100*time.Millisecond)
	if s.Lost(at(0.05)) != nil || !reflect.DeepEqual(s.Lost(at(0.1)), d(1)) {
		t.Fatalf("after 50 ms %v goes again, after 100 ms %v; want nothing, then 1", s.Lost(at(0.05)), s.Lost(at(0.1)))
	}
	s.SentTwice(at(0.1), id, 100*time.Millisecond)
	if got := s.Lost(at(5)); got != nil {
		t.Errorf("%v goes a third time", got)
	}
}

// A message that is here but not read is named singly, and acknowledged when it has been read.
func TestUnreadIsNamedSingly(t *testing.T) {
	r := NewReceiver(cfg, queues(0, 0))
	for n := range uint16(3) {
		r.Accept(at(0), frame.Direct, n+1, false)
	}
	r.Advance(frame.Direct)
	want := frame.Ack{Queue: frame.Direct, Cumulative: 1, Bitmap: []byte{0b11}}
	if got := r.Acks(); !reflect.DeepEqual(got, []frame.Ack{want}) {
		t.Errorf("acknowledgements %v, want %v", got, want)
	}
	r.Settle()
	r.Read(at(1), frame.Direct)
	if !r.Due().IsZero() {
		t.Error("an acknowledgement is owed, and nothing was read since the last one")
	}
	r.Advance(frame.Direct)
	r.Advance(frame.Direct)
	r.Read(at(1), frame.Direct)
	if got := r.Acks(); r.Due().IsZero() || got[0].Cumulative != 3 || got[0].Bitmap != nil {
		t.Errorf("acknowledgements %v due at %v", got, r.Due())
	}
	r.Settle()
	r.Read(at(2), frame.Direct)
	if !r.Due().IsZero() {
		t.Error("the same is owed twice")
	}
}

// A message that an acknowledgement has no room to name is not lost.
func TestAckWithoutRoom(t *testing.T) {
	wide := cfg
	wide.Window[frame.Direct] = 200
	r, s := NewReceiver(wide, queues(0, 0)), NewSender(wide, queues(1, 1))
	sendN(s, at(0), 140)
	for n := range uint16(140) {
		if n != 4 { // number 5 is lost
			r.Accept(at(0), frame.Direct, n+1, false)
		}
	}
	id := s.ProbeSent(at(0))
	s.Ack(at(1), r.Acks()[0])
	s.Answer(at(1), id)
	if got := s.Lost(at(1)); !reflect.DeepEqual(got, d(5)) {
		t.Errorf("lost %v, want 5 alone", got)
	}
	if under := s.UnderWay(frame.Direct); under != 21 {
		t.Errorf("%d under way, want 5 and 121 to 140", under)
	}
}

// All messages that the peer has not read and cannot read in their coding go again, except those that are not coded after any.
func TestResend(t *testing.T) {
	s := NewSender(cfg, queues(1, 1))
	sendN(s, at(0), 4)
	s.Ack(at(1), frame.Ack{Cumulative: 1, Bitmap: []byte{0b10}})
	if held := s.Resend(func(n uint64) bool { return n == 4 }); !reflect.DeepEqual(held, d(3)) {
		t.Errorf("%v had arrived, want 3", held)
	}
	if got := s.Lost(at(1)); !reflect.DeepEqual(got, d(2, 3)) {
		t.Errorf("%v go again, want 2 and 3", got)
	}
}

// When an acknowledgement that was asked for is overdue, all messages in the datagram with the one that asked go again.
func TestPromptDatagramGoesAgain(t *testing.T) {
	c := cfg
	c.Prompt = 4 * time.Second
	s := NewSender(c, queues(1, 1))
	sendN(s, at(0), 2)
	sendN(s, at(1), 1)
	s.SentPrompt(at(1), ID{frame.Direct, s.Assign(frame.Direct, 1)})
	check.Equal(t, "lost before the acknowledgement is overdue", len(s.Lost(at(4.9))), 0)
	if got := s.Lost(at(5)); !reflect.DeepEqual(got, d(3, 4)) {
		t.Errorf("lost %v, want 3 and 4, which went together", got)
	}
	for _, id := range s.Lost(at(5)) {
		s.Sent(at(5), id)
	}
	check.Equal(t, "lost once they have gone again", len(s.Lost(at(20))), 0)
}

// To a peer that accepts this, numbers go far ahead. An acknowledgement names all of them while one is missing. 8 bits are
// enough for the cumulative number only while they are enough for the messages' numbers.
func TestNumbersFarAhead(t *testing.T) {
	c := cfg
	c.Window[frame.Direct], c.Most = 600, 600
	s, r := NewSender(c, queues(1, 1)), NewReceiver(c, queues(0, 0))
	s.Ahead(true)
	sendN(s, at(0), 600)
	check.True(t, "nothing has come: 8 bits may not do", !r.Byte())
	for n := range uint64(600) {
		id := ID{frame.Direct, n + 1}
		r.Newest(s.Short(id))
		if n < 4 || n > 22 { // a datagram of nineteen is lost
			r.Accept(at(1), frame.Direct, uint16(id.Number), false)
		}
	}
	for _, ok := r.Advance(frame.Direct); ok; _, ok = r.Advance(frame.Direct) {
	}
	check.True(t, "far ahead 8 bits do not do", !r.Byte())
	ack, _, err := frame.Parse(frame.Append(nil, r.Acks()[0], true))
	check.NoError(check.Fatal(t), err)
	acked, held := s.Ack(at(2), ack.(frame.Ack))
	check.Equal(t, "acknowledged", len(acked), 4)
	check.Equal(t, "named beyond the gap", len(held), 600-23)
	check.Equal(t, "lost", len(s.Lost(at(2))), 19)
	check.True(t, "another number is free", s.HasNumber(frame.Direct))

	s.Ahead(false) // an older version runs there now
	check.True(t, "no number is free", !s.HasNumber(frame.Direct))
	check.Equal(t, "the lost ones are near", len(s.Lost(at(2))), 19)
}

// An acknowledgement that a later message triggered does not show how long an answer takes.
func TestLateAcknowledgementOfALaterMessage(t *testing.T) {
	c := cfg
	c.Prompt = 4 * time.Second
	s := NewSender(c, queues(1, 1))
	prompt := func(now float64) { s.SentPrompt(at(now), ID{frame.Direct, s.Assign(frame.Direct, 1)}) }
	prompt(0) // its acknowledgement is lost
	prompt(5)
	s.Ack(at(8), frame.Ack{Cumulative: 2})
	prompt(10)
	check.True(t, "the next goes again when its own is overdue", s.Deadline().Equal(at(14)), s.Deadline().Sub(epoch))
	s.Ack(at(16), frame.Ack{Cumulative: 3})
	prompt(20)
	check.True(t, "one that was late is granted more", s.Deadline().After(at(25.9)), s.Deadline().Sub(epoch))
}
