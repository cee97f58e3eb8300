package peertest

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/field"
)

// streamDelay is a pair of peers and the link's delay between them.
type streamDelay struct {
	a, b  string
	delay time.Duration
}

// streamDelays are the pairs that TestStreamsOverADelay plays. The longest takes two minutes and a half: delays_long_test.go.
var streamDelays = []streamDelay{
	{field.KindJXSE27, field.KindJXSE27, 50 * time.Millisecond},
	{field.KindJXSE27, field.KindJXSE27Unsigned, 6 * time.Second},
	{field.KindJXSE27Unsigned, field.KindJXSE27, 20 * time.Second},
}

// BiDi pipes and sockets over a delay that breaks them when every acknowledgement has to cross (ghosts 6.4): both ways,
// short and long, each once and in order, and no acknowledgement on the link.
func TestStreamsOverADelay(t *testing.T) {
	t.Parallel()
	for _, tt := range streamDelays {
		t.Run(fmt.Sprintf("%s with %s, %v", tt.a, tt.b, tt.delay), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4*time.Minute)
			sa, sb := pair(t)
			a, b := w.peer(sa, tt.a, "A", 9702), w.peer(sb, tt.b, "B", 9703)
			w.tell(a, "bidi-listen chat", "sock-listen file")
			w.tell(b, "find chat 1000", "find file 1000")
			w.await(b, "discovered", "chat")
			w.await(b, "discovered", "file")
			w.await(a, "pipe_ready", "chat")
			w.await(a, "pipe_ready", "file")
			slow(sa, sb, tt.delay)
			w.tell(b, "bidi-connect chat", "sock-connect file")
			begun := time.Now()
			opened := w.await(b, "opened", "chat")
			t.Logf("BiDi open after %.2f s", opened.At().Sub(begun).Seconds())
			opened = w.await(b, "opened", "file")
			t.Logf("socket open after %.2f s", opened.At().Sub(begun).Seconds())
			w.tell(b, "bidi-send chat 200 5 0.2", "bidi-send chat 20000 2 0.2", "sock-send file 200 5 0.2", "sock-send file 20000 2 0.2")
			w.await(a, "opened", "chat")
			w.await(a, "opened", "file")
			w.tell(a, "bidi-send chat 200 5 0.2", "bidi-send chat 20000 2 0.2", "sock-send file 200 5 0.2", "sock-send file 20000 2 0.2")
			for _, p := range []*field.Peer{a, b} {
				from := "A"
				if p == a {
					from = "B"
				}
				w.stream(p, "chat", from, 5, 2)
				w.stream(p, "file", from, 5, 2)
			}
			w.tell(b, "bidi-close chat", "sock-close file")
			w.await(b, "closed", "file")
			w.await(a, "closed", "file")
			w.await(a, "closed", "chat")
			for _, s := range []*side{sa, sb} {
				_, stats := s.status()
				t.Logf("%s: %d payloads, %d octets of %d streams; %d acknowledgements kept, %d blocks sent again, slowest step %v", s.name,
					s.crossed["jxtarel"], s.octets["jxtarel"], stats.Streams, stats.Stream.Acks, stats.Stream.Repeats, s.slowest)
				if s.crossed["PipeService"] != 0 || stats.BadMessages != 0 || len(stats.Refused) != 0 {
					t.Errorf("%s: %v crossed, %+v", s.name, s.crossed, stats)
				}
			}
		})
	}
}

// stream checks that p got short messages of 200 octets and then long ones of 20,000, each once, in order, unchanged.
func (w world) stream(p *field.Peer, name, from string, short, long int64) {
	w.Helper()
	if _, err := p.Wait(w.ctx, func(e field.Event) bool {
		return e.Ev == "received" && e.Name == name && e.From == from && e.Seq == short+long
	}); err != nil {
		w.Fatalf("%s: message %d of %s on %s: %v", p.Name(), short+long, from, name, err)
	}
	next := int64(1)
	for _, e := range inTime(p) {
		if e.Ev != "received" || e.Name != name || e.From != from {
			continue
		}
		size := 200
		if next > short {
			size = 20000
		}
		if e.Seq != next || !e.OK || e.Size != size {
			w.Errorf("%s received %+v; want number %d intact, %d octets", p.Name(), e, next, size)
		}
		if next == 1 || next == short+long {
			w.Logf("%s %s: message %d after %.3f s", p.Name(), name, next, e.At().Sub(e.SentAt()).Seconds())
		}
		next++
	}
}

// Sockets of 2.2, which are older and end without an acknowledgement, with each other and with 2.7.
func TestSocketsOf22(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b string }{{field.KindJXTA22, field.KindJXTA22}, {field.KindJXSE27, field.KindJXTA22}, {field.KindJXTA22, field.KindJXSE27}} {
		t.Run(tt.a+" serves "+tt.b, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2*time.Minute)
			sa, sb := pair(t)
			a, b := w.peer(sa, tt.a, "A", 9702), w.peer(sb, tt.b, "B", 9703)
			w.tell(a, "sock-listen file")
			w.tell(b, "find file 1000")
			w.await(b, "discovered", "file")
			w.await(a, "pipe_ready", "file")
			slow(sa, sb, 6*time.Second)
			w.tell(b, "sock-connect file")
			w.await(b, "opened", "file")
			w.tell(b, "sock-send file 200 5 0.2", "sock-send file 20000 2 0.2")
			w.await(a, "opened", "file")
			w.tell(a, "sock-send file 200 5 0.2", "sock-send file 20000 2 0.2")
			w.stream(a, "file", "B", 5, 2)
			w.stream(b, "file", "A", 5, 2)
			for _, s := range []*side{sa, sb} {
				_, stats := s.status()
				t.Logf("%s: %v crossed, %d blocks sent again", s.name, s.crossed, stats.Stream.Repeats)
				if s.crossed["PipeService"] != 0 {
					t.Errorf("%s: %v crossed", s.name, s.crossed)
				}
			}
		})
	}
}
