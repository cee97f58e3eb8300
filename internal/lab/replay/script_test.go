package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
	"aldis/internal/link/compact"
)

// written is a trace of lines, with totals that fit.
func written(t testing.TB, h trace.Header, fill func(w *trace.FileWriter), end float64) *trace.File {
	t.Helper()
	var b bytes.Buffer
	w := trace.NewFileWriter(&b, h)
	fill(w)
	if _, err := w.End(end, false); err != nil {
		t.Fatal(err)
	}
	f, err := trace.ReadFile(&b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// talk is two peers that send to each other: ship over a propagate pipe, shore over a unicast one of the ship's.
func talk(t testing.TB, h trace.Header, messages int) *trace.File {
	return written(t, h, func(w *trace.FileWriter) {
		ship, shore := w.Peer(0, "uuid-59616261646162614A78746150325033AA03", "", "ship", true), w.Peer(0, "nobody", "", "hq", false)
		wide := w.Pipe(0, "uuid-59616261646162614E50472050325033BB04", "propagate")
		narrow := w.Pipe(0, "uuid-59616261646162614E50472050325033CC04", "unicast")
		w.Write(trace.Line{T: 0, Do: Publish, Peer: ship, Pipe: narrow, Name: "orders", Octets: 900})
		w.Write(trace.Line{T: 0.5, Do: Query, Peer: shore, Attr: "Name", Name: "order*"})
		w.Write(trace.Line{T: 1, Do: Open, Peer: ship, Pipe: narrow, Listen: true})
		w.Write(trace.Line{T: 6, Do: Open, Peer: shore, Pipe: narrow})
		for i := range messages {
			at := 10 + 5*float64(i)
			w.Write(trace.Line{T: at, Do: Send, Peer: ship, Pipe: wide, Octets: 300 + i,
				Parts: []trace.PartOf{trace.PartWith("trk:body", "text/plain", fmt.Appendf(nil, "%0*d", 300+i, i))}})
			w.Write(trace.Line{T: at + 1, Do: Send, Peer: shore, Pipe: narrow, Octets: 2000,
				Parts: []trace.PartOf{trace.PartWith("ord:head", "", bytes.Repeat([]byte("same "), 40)), trace.PartWith("ord:body", "", bytes.Repeat([]byte{byte(i), 0xff}, 900))}})
		}
	}, 10+5*float64(messages))
}

// Unicast pipes are resolved across the link, equal messages are told apart, and a peer that is not seen to listen does listen.
func TestUnicast(t *testing.T) {
	f := talk(t, trace.Header{Content: "data"}, 20)
	res, err := Run(context.Background(), f, Options{Profile: load(t, "iridium-dialup"), Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	m := res.Messages
	check.Equal(t, "m.Expected", m.Expected, 40)
	check.Equal(t, "m.Delivered", m.Delivered, 40)
	check.Equal(t, "m.Duplicates+m.Corrupted+m.OutOfOrder", m.Duplicates+m.Corrupted+m.OutOfOrder, 0)
	check.True(t, "not res.Partial", !res.Partial, res.Problems)
	if a := res.Application; a.Replay.In != 40000 || a.Replay.Out != a.Trace.Out || a.Trace.In != 40000 {
		t.Errorf("application octets: %+v", a)
	}
	if s := res.ShoreFindsS.Replay["orders"]; s <= 0.5 || s > 12 {
		t.Errorf("the shore found the service after %v s", s)
	}
	check.True(check.Fatal(t), "res.PipeSetupS.Replay", res.PipeSetupS.Replay != nil)
	check.Equal(t, "*res.PipeSetupS.Replay", *res.PipeSetupS.Replay, 0)
	check.True(check.Fatal(t), "res.PipeKnownS", res.PipeKnownS != nil)
	check.True(t, "*res.PipeKnownS > 0", *res.PipeKnownS > 0, *res.PipeKnownS)
	if len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "nobody of the other side is seen to open") {
		t.Errorf("notes: %q", res.Notes)
	}
}

// The remaining data of an anonymised trace suffice: sizes, times and peers.
func TestOnlySizes(t *testing.T) {
	for _, content := range []string{trace.ContentXML, trace.ContentText, trace.ContentRandom} {
		f := talk(t, trace.Header{Content: "data", Anonymised: true}, 6)
		res, err := Run(context.Background(), f, Options{Profile: load(t, "geo-satcom-128k"), Seed: 1, Content: content})
		if err != nil {
			t.Fatal(err)
		}
		if m := res.Messages; m.Expected != 12 || m.Delivered != 12 || res.Application.Replay.In != 12000 {
			t.Errorf("%s: %+v, in %d", content, m, res.Application.Replay.In)
		}
		total := res.LinkBytes.Up + res.LinkBytes.Down // for 13815 of the application's
		switch content {
		case trace.ContentRandom:
			check.True(t, "random octets: total >= 13800", total >= 13800, total)
		case trace.ContentText:
			check.True(t, "text: total <= 13800", total <= 13800, total)
		}
	}
}

func TestNothingToPlay(t *testing.T) {
	empty := written(t, trace.Header{Content: "data"}, func(*trace.FileWriter) {}, 1)
	if _, err := Run(context.Background(), empty, Options{Profile: load(t, "iridium-dialup")}); !errors.Is(err, ErrNoPeers) {
		t.Errorf("no peers: %v", err)
	}
	silent := written(t, trace.Header{Content: "data"}, func(w *trace.FileWriter) {
		w.Write(trace.Line{Do: Query, Peer: w.Peer(0, "x", "", "x", true), Name: "nothing"})
	}, 1)
	if _, err := Run(context.Background(), silent, Options{Profile: load(t, "iridium-dialup")}); !errors.Is(err, ErrNothing) {
		t.Errorf("no message: %v", err)
	}
}

// TestTooThin: the result says that the link is too thin, and by how much, with the figures so far.
func TestTooThin(t *testing.T) {
	res, err := Run(context.Background(), blueGame(t, 5, trace.ContentRandom), Options{Profile: load(t, "hf-300"), Seed: 1, Drain: 5 * time.Minute})
	var over *OverloadError
	must := check.Fatal(t)
	check.True(must, "errors.As(err, &over)", errors.As(err, &over), err)
	check.Equal(must, "over.RateBps", over.RateBps, 300)
	check.True(must, "over.OfferedBps >= 400", over.OfferedBps >= 400, over.OfferedBps)
	check.True(must, "over.OfferedBps <= 1200", over.OfferedBps <= 1200, over.OfferedBps)
	check.True(check.Fatal(t), "res", res != nil)
	check.True(t, "res.Partial", res.Partial)
	check.Differ(t, "len(res.Problems)", len(res.Problems), 0)
	check.Differ(t, "res.Messages.Lost", res.Messages.Lost, 0)
	check.Differ(t, "res.Messages.Delivered", res.Messages.Delivered, 0)
}

// stopper ends a run after a number of calls.
type stopper struct{ looks int }

func (s *stopper) Err() error {
	if s.looks--; s.looks < 0 {
		return context.Canceled
	}
	return nil
}

func TestEndedEarly(t *testing.T) {
	seen := time.Duration(0)
	res, err := Run(&stopper{60}, blueGame(t, 3, trace.ContentText), Options{Profile: load(t, "iridium-directip-shore"), Seed: 1,
		Progress: func(at, _ time.Duration) { seen = at }})
	must := check.Fatal(t)
	check.ErrorIs(must, err, context.Canceled)
	check.True(must, "res", res != nil)
	check.True(must, "res.Partial", res.Partial)
	check.Differ(must, "len(res.Problems)", len(res.Problems), 0)
	check.Equal(t, "len(res.Bins)", len(res.Bins), 60)
	check.Equal(t, "seen", seen, 600*time.Second)
	check.Equal(t, "res.Captures.Replay.TotalS", res.Captures.Replay.TotalS, 600)
	check.Differ(t, "res.LinkBytes.Up", res.LinkBytes.Up, 0)
}

// TestWindow: publications and open pipes from before are there, earlier messages are not.
func TestWindow(t *testing.T) {
	f := Window(blueGame(t, 1, trace.ContentXML), 500*time.Second, 620*time.Second)
	if f.Header.Duration != 120 || f.Totals.MessagesIn != 4 || f.Totals.MessagesOut != 4 {
		t.Fatalf("%+v %+v", f.Header, f.Totals)
	}
	res, err := Run(context.Background(), f, Options{Profile: load(t, "iridium-dialup"), Seed: 1})
	if err != nil || res.Messages.Delivered != 8 || res.Application.Replay.In != f.Totals.In {
		t.Errorf("%v: %+v", err, res)
	}
}

// TestRecord: equal messages are told apart by their order, and one that comes twice does not hide the next.
func TestRecord(t *testing.T) {
	same := []jxta.Element{{Namespace: "a", Name: "b", Data: []byte("same")}}
	s := &Script{Peers: []Peer{{Edge: true}, {}}, Pipes: []Pipe{{ID: "p"}}}
	for i := range 4 {
		s.Messages = append(s.Messages, Message{Peer: i & 1, Octets: 4, To: []int{1 - i&1}, key: contentKey("p", same)})
	}
	r := NewRecord(s)
	r.Sent(0, 1)
	r.Sent(1, 2)
	r.Got(1, 0, same, 3) // message 0
	r.Got(1, 0, same, 4) // again
	r.Sent(2, 5)
	r.Got(1, 0, same, 6) // message 2
	r.Got(0, 0, same, 7) // message 1
	r.Got(0, 0, []jxta.Element{{Namespace: "a", Name: "b", Data: []byte("other")}}, 8)
	check.Equal(t, "r.duplicates", r.duplicates, 1)
	check.Equal(t, "r.strange", r.strange, 1)
	check.Equal(t, "r.delivered", r.delivered, 3)
	check.True(t, "r.Delivered()", r.Delivered())
	for want, at := range map[delivery]time.Duration{{0, 1}: 3, {2, 1}: 6, {1, 0}: 7} {
		if r.got[want] != at {
			t.Errorf("message %d came at %d, want %d", want.message, r.got[want], at)
		}
	}
	r.Sent(3, 9)
	if r.Delivered() {
		t.Error("all delivered, with one under way")
	}
}

// TestNoCompaction: a message stored without compression fits fewer datagrams than one whose flow is spelt out and deflated; none waits
// for ever.
func TestNoCompaction(t *testing.T) {
	plain := Gateway{Rules: []compact.Rule{{Effort: compact.None}}}
	for _, name := range []string{"geo-satcom-128k", "iridium-dialup", "hf-2400"} {
		f := Window(blueGame(t, 3, trace.ContentText), 600*time.Second, 900*time.Second)
		res, err := Run(context.Background(), f, Options{Profile: load(t, name), Seed: 2, Ship: plain, Shore: plain})
		if err != nil || res.Messages.Delivered != 16 || res.Messages.Expected != 16 {
			t.Errorf("%s: %v: %+v", name, err, res.Messages)
		}
	}
}

// TestBins: the bins add up to the whole.
func TestBins(t *testing.T) {
	res, err := Run(context.Background(), talk(t, trace.Header{Content: "data"}, 10), Options{Profile: load(t, "iridium-dialup"), Seed: 3, Bin: 7 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int64{}
	busy := 0.0
	for i, b := range res.Bins {
		if b.T != float64(7*i) && b.T < 60 {
			t.Errorf("bin %d begins at %v s", i, b.T)
		}
		for _, m := range []map[string]int64{b.Octets.Up, b.Octets.Down} {
			for kind, n := range m {
				kinds[kind] += n
			}
		}
		busy += b.BusyS.Up
	}
	for kind, n := range res.Kinds {
		if kinds[kind] != n {
			t.Errorf("%s: %d octets in all, the bins have %d", kind, n, kinds[kind])
		}
	}
	if busy <= 0 || res.BinS != 7 {
		t.Errorf("busy %v s, bins of %v s", busy, res.BinS)
	}
}
