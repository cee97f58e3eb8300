package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// engine answers each event with a function, and records when it was stepped.
type engine struct {
	step  func(now time.Time, ev api.Event) api.Output
	times []time.Time
}

func (e *engine) Step(now time.Time, ev api.Event) api.Output {
	e.times = append(e.times, now)
	if e.step == nil {
		return api.Output{}
	}
	return e.step(now, ev)
}

// world is a running daemon whose edges write down their orders, in one order.
type world struct {
	*Daemon
	engine *engine
	reg    *prometheus.Registry
	logged *bytes.Buffer
	stop   context.CancelFunc
	gather func(most int)
	ended  chan error

	mu   sync.Mutex
	did  []string
	full bool          // the disk
	why  error         // the error of a full disk; nil: ENOSPC
	slow chan struct{} // if not nil, a commit waits for it
}

func (w *world) wrote(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, fmt.Sprintf(format, args...))
}

// take returns the orders since the last take, once the loop has nothing more to do.
func (w *world) take() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	did := w.did
	w.did = nil
	return did
}

func (w *world) setFull(full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full = full
}

// lan carries out an order of an adapter.
func (w *world) lan(o api.LANOrder) {
	switch o := o.Order.(type) {
	case jxtabridge.Welcome:
		w.wrote("welcome %d", o.Conn)
	case soon:
		w.wrote("welcome %d", o.Conn)
	case jxtabridge.Send:
		w.wrote("send %d %.20s", o.Conn, o.Body)
	case jxtabridge.Close:
		w.wrote("close %d", o.Conn)
	}
}

// post hands over an event of the JXTA adapter's LAN.
func (w *world) post(ev site.Event) { w.PostLAN(site.JXTA)(ev) }

// orders are those of the JXTA adapter.
func orders(list ...site.Order) (out []api.LANOrder) {
	for _, o := range list {
		out = append(out, api.LANOrder{Adapter: site.JXTA, Order: o})
	}
	return out
}

func newWorld(step func(time.Time, api.Event) api.Output) *world {
	w := &world{engine: &engine{step: step}, reg: prometheus.NewRegistry(), logged: new(bytes.Buffer), ended: make(chan error, 1)}
	w.Daemon = New(slog.New(slog.NewTextHandler(w.logged, &slog.HandlerOptions{Level: slog.LevelDebug})), w.reg)
	return w
}

func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	parts := Parts{
		Engine: w.engine, LAN: w.lan, Gather: w.gather,
		Radio: func(ds []api.Datagram) {
			for _, d := range ds {
				w.wrote("datagram %.20s", d.Data)
			}
		},
		Norm: func(c api.NormCommand) { w.wrote("%T", c) },
		Commit: func(rs []api.Record) error {
			if w.slow != nil {
				<-w.slow
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.full {
				w.did = append(w.did, "full")
				if w.why != nil {
					return w.why
				}
				return fmt.Errorf("journal: %w", syscall.ENOSPC)
			}
			line := "commit"
			for _, r := range rs {
				line += fmt.Sprintf(" %.20s", r.Key)
			}
			w.did = append(w.did, line)
			return nil
		},
	}
	go func() { w.ended <- w.Run(ctx, parts) }()
}

func (w *world) end(t *testing.T) {
	t.Helper()
	w.stop()
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
}

// pass lets virtual time pass, and the loop do the work that is due.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("done:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// opened is an event named by a number.
func opened(n int) site.Event { return jxtabridge.Opened{Conn: site.ConnID(n)} }

// byConn answers opened(n): if n >= 100 it wants a record named after n; it always wants a datagram, and a body on the
// connection.
func byConn(now time.Time, ev api.Event) (out api.Output) {
	lan, ok := ev.(api.LAN)
	if !ok {
		return out
	}
	n := lan.Event.(jxtabridge.Opened).Conn
	if n >= 100 {
		out.Records = []api.Record{{Bucket: "b", Key: fmt.Append(nil, n), Value: []byte{1}}}
		out.Norm = []api.NormCommand{api.NormStart{}}
	}
	out.LAN = orders(jxtabridge.Send{Conn: n, Body: []byte("body")})
	out.Datagrams = []api.Datagram{{Data: fmt.Append(nil, n)}}
	return out
}

func TestCommitComesFirstAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(now time.Time, ev api.Event) api.Output {
			out := byConn(now, ev)
			if len(out.LAN) > 0 {
				send := out.LAN[0].Order.(jxtabridge.Send)
				out.LAN = orders(jxtabridge.Welcome{Conn: send.Conn}, send, jxtabridge.Close{Conn: send.Conn})
			}
			return out
		})
		for _, n := range []int{100, 1, 101} {
			w.post(opened(n))
		}
		w.start()
		got := w.take()
		if i := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, "commit") }); i != 0 {
			t.Errorf("the commit is not first: %q", got)
		}
		expect(t, got, "commit 100 101",
			"welcome 100", "send 100 body", "close 100", "datagram 100", "api.NormStart",
			"welcome 1", "send 1 body", "close 1", "datagram 1",
			"welcome 101", "send 101 body", "close 101", "datagram 101", "api.NormStart")
		w.post(opened(2)) // without records the journal is left alone
		expect(t, w.take(), "welcome 2", "send 2 body", "close 2", "datagram 2")
		w.end(t)
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var due []time.Duration
		w := newWorld(nil)
		w.engine.step = func(now time.Time, ev api.Event) (out api.Output) {
			due = append(due, now.Sub(start))
			switch len(due) {
			case 1:
				out.Deadline = now.Add(6 * time.Hour)
			case 2:
				out.Deadline = now.Add(-time.Hour) // overdue: soon, but not at once
			}
			return out
		}
		w.start()
		pass(24 * time.Hour)
		if want := []time.Duration{0, 6 * time.Hour, 6*time.Hour + leastWait}; !slices.Equal(due, want) {
			t.Errorf("steps after %v, want %v", due, want)
		}
		w.post(opened(1))
		synctest.Wait()
		if len(due) != 4 || due[3] != 24*time.Hour {
			t.Errorf("steps after %v", due)
		}
		w.end(t)
	})
}

func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(byConn)
		w.start()
		w.take()
		w.setFull(true)
		w.post(opened(100))
		expect(t, w.take(), "full")
		if s := w.Trouble(); !strings.Contains(s, "no space left on device") {
			t.Errorf("trouble: %q", s)
		}
		w.post(opened(1)) // a local peer's question is answered meanwhile; the link is silent
		expect(t, w.take(), "send 1 body")
		w.post(opened(101))
		expect(t, w.take())
		pass(2500 * time.Millisecond)
		expect(t, w.take(), "full", "full")
		w.setFull(false)
		pass(time.Second)
		expect(t, w.take(), "commit 100 101", "send 100 body", "api.NormStart", "send 101 body", "api.NormStart")
		if s := w.Trouble(); s != "" {
			t.Errorf("trouble: %q", s)
		}
		w.post(opened(102))
		expect(t, w.take(), "commit 102", "send 102 body", "datagram 102", "api.NormStart")
		pass(time.Minute)
		expect(t, w.take())
		if got := strings.Count(w.logged.String(), "\n"); got != 2 || !strings.Contains(w.logged.String(), "the journal writes again") {
			t.Errorf("%d lines logged, want one at the start and one at the end:\n%s", got, w.logged)
		}
		want := map[string]float64{"aldis_journal_failures_total": 3, "aldis_link_datagrams_withheld_total": 3, "aldis_journal_held_bytes": 0}
		for name, v := range want {
			if got := gathered(t, w.reg, name); got != v {
				t.Errorf("%s = %v, want %v", name, got, v)
			}
		}
		w.end(t)
	})
}

// gathered is the value of a counter or gauge; label picks one of several.
func gathered(t *testing.T, reg *prometheus.Registry, name string, label ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (len(label) == 0 || m.GetLabel()[0].GetValue() == label[0]) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s %v", name, label)
	return 0
}

// Kept outputs are bounded: then the LAN waits, the link drops, and everything goes on once the disk has room.
func TestFullDiskAndALotToWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 256 << 10
		stepped := 0
		w := newWorld(func(now time.Time, ev api.Event) (out api.Output) {
			if _, ok := ev.(api.LAN); ok {
				stepped++
				out.Records = []api.Record{{Bucket: "b", Key: fmt.Append(nil, stepped), Value: make([]byte, each)}}
			}
			return out
		})
		w.setFull(true)
		w.start()
		const posts = 400
		posted := make(chan int, posts)
		go func() {
			for i := range posts {
				w.post(opened(i))
				posted <- i
			}
		}()
		pass(10 * time.Second)
		if stepped < heldMax/each || stepped > heldMax/each+batchMax || len(posted) > stepped+lanInbox {
			t.Errorf("stepped %d, posted %d", stepped, len(posted))
		}
		if len(posted) == posts {
			t.Error("the LAN was never made to wait")
		}
		for range airInbox {
			if !w.PostAir(api.Datagram{Addr: netip.AddrPort{}}) {
				t.Fatal("no room for a datagram")
			}
		}
		if w.PostAir(api.Datagram{}) {
			t.Error("the link's inbox has no bound")
		}
		w.setFull(false)
		pass(2 * time.Second)
		if stepped != posts || len(posted) != posts {
			t.Errorf("with room again: stepped %d, posted %d of %d", stepped, len(posted), posts)
		}
		if w.Trouble() != "" {
			t.Error(w.Trouble())
		}
		w.end(t)
	})
}

type remedial string

func (r remedial) Error() string  { return "the disk: " + string(r) }
func (r remedial) Remedy() string { return string(r) }

// The remedy for a disk is logged when it changes, and not at each attempt.
func TestEachRemedyIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(byConn)
		w.start()
		fails := func(why error) {
			t.Helper()
			w.mu.Lock()
			w.full, w.why = why != nil, why
			w.mu.Unlock()
			pass(5 * time.Second)
		}
		for range 2 {
			fails(remedial("look at the cable"))
			w.post(opened(100))
			pass(5 * time.Second)
			fails(remedial("mount it anew"))
			fails(fmt.Errorf("again: %w", remedial("look at the cable")))
			if s := w.Trouble(); s != "again: the disk: look at the cable" {
				t.Errorf("trouble: %q", s)
			}
			fails(nil)
		}
		for _, do := range []string{"look at the cable", "mount it anew"} {
			if n := strings.Count(w.logged.String(), "do="+strconv.Quote(do)); n != 2 {
				t.Errorf("%q is told %d times in two outages", do, n)
			}
		}
		if n := strings.Count(w.logged.String(), "\n"); n != 6 {
			t.Errorf("%d lines, want 6:\n%s", n, w.logged)
		}
		w.end(t)
	})
}

func TestStopWithAFullDisk(t *testing.T) {
	for _, full := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(byConn)
			w.setFull(true)
			w.start()
			w.post(opened(100))
			w.take()
			w.setFull(full)
			w.stop()
			err := <-w.ended
			if full && check.True(t, "an error of a full disk", err != nil) {
				check.Contains(t, "err.Error()", err.Error(), "not written")
				check.Contains(t, "err.Error()", err.Error(), "no space left")
			}
			if !full {
				expect(t, w.take(), "commit 100", "send 100 body", "api.NormStart")
				if err != nil {
					t.Errorf("with room: %v", err)
				}
			}
		})
	}
}

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := w.Do(ctx, func(time.Time) { t.Error("ran without a loop") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before the start: %v", err)
		}
		w.start()
		pass(time.Hour)
		var at time.Time
		if err := w.Do(context.Background(), func(now time.Time) { at = now }); err != nil || !at.Equal(time.Now()) {
			t.Errorf("%v at %v", err, at)
		}
		looks, ran := 0, 0
		third := func() bool { looks++; return looks == 3 }
		if err := w.DoSettled(context.Background(), third, func() { ran++ }); err != nil || looks != 3 || ran != 1 {
			t.Errorf("when all is settled: %v, %d looks, ran %d times", err, looks, ran)
		}
		soon, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		if err := w.DoSettled(soon, func() bool { return false }, func() { ran++ }); !errors.Is(err, context.DeadlineExceeded) || ran != 1 {
			t.Errorf("when nothing is settled: %v, ran %d times", err, ran)
		}
		w.end(t)
		if err := w.Do(context.Background(), nil); !errors.Is(err, ErrStopped) {
			t.Errorf("after the end: %v", err)
		}
		w.post(opened(1)) // must not wait for ever
		w.PostNorm(api.NormDown{})
	})
}

func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(time.Time, api.Event) api.Output {
			return api.Output{Notes: []site.Note{
				{Level: "debug", Text: "one", Attrs: []any{"peer", 3}}, {Level: "warn", Text: "two"}, {Level: "loud", Text: "three"}}}
		})
		w.start()
		w.take()
		for _, want := range []string{"level=DEBUG msg=one peer=3", "level=WARN msg=two", "level=ERROR msg=three"} {
			if !strings.Contains(w.logged.String(), want) {
				t.Errorf("log lacks %q:\n%s", want, w.logged)
			}
		}
		w.end(t)
	})
}

func TestSourcesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(nil)
		w.post(opened(1))
		w.PostNorm(api.NormUp{})
		w.PostNorm(api.NormDown{})
		w.PostAir(api.Datagram{})
		w.start()
		w.take()
		for source, want := range map[string]float64{"lan": 1, "norm": 2, "link": 1} {
			if got := gathered(t, w.reg, "aldis_loop_events_total", source); got != want {
				t.Errorf("%s: %v, want %v", source, got, want)
			}
		}
		w.end(t)
	})
}

// A wall clock set by an hour, either way, moves no timer of the engine. The engine's time catches up at 5 %, never goes back,
// and the jump is logged once.
func TestWallClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var mu sync.Mutex
			var set time.Duration
			w := newWorld(nil)
			w.readers = func() (time.Duration, time.Time) {
				mu.Lock()
				defer mu.Unlock()
				return time.Since(start), time.Now().Round(0).Add(set)
			}
			var at []time.Duration // real time since the start of each step
			w.engine.step = func(now time.Time, ev api.Event) api.Output {
				at = append(at, time.Since(start))
				return api.Output{Deadline: now.Add(time.Minute)}
			}
			w.start()
			pass(10*time.Minute + time.Second)
			mu.Lock()
			set = jump
			mu.Unlock()
			pass(24 * time.Hour)
			w.end(t)
			for i := 1; i < len(at); i++ {
				// Early by the slew, and once more where the time runs slow and the timer was set for real time.
				if d := at[i] - at[i-1]; d > 61*time.Second {
					t.Fatalf("step %d came after %v", i, d)
				}
				if !w.engine.times[i].After(w.engine.times[i-1]) {
					t.Fatalf("step %d: time went back from %v to %v", i, w.engine.times[i-1], w.engine.times[i])
				}
				if d := w.engine.times[i].Sub(w.engine.times[i-1]); d > 64*time.Second {
					t.Fatalf("step %d: time ran on by %v", i, d)
				}
			}
			if n := len(at); n < 24*60-200 || n > 3*24*60 {
				t.Errorf("%d steps in a day", n)
			}
			last := w.engine.times[len(at)-1]
			if diff := last.Sub(start.Add(at[len(at)-1] + jump)).Abs(); diff > time.Second {
				t.Errorf("after a day the time differs by %v from the wall clock", diff)
			}
			if n := strings.Count(w.logged.String(), "the wall clock was set"); n != 1 {
				t.Errorf("told %d times:\n%s", n, w.logged)
			}
			if n := gathered(t, w.reg, "aldis_clock_jumps_total"); n != 1 {
				t.Errorf("%v jumps counted", n)
			}
		})
	}
}

func TestClock(t *testing.T) {
	wall := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := newClock(0, wall)
	steps := []struct {
		mono time.Duration
		wall time.Duration // since the start
		now  time.Duration
		jump time.Duration
	}{
		{10 * time.Second, 10 * time.Second, 10 * time.Second, 0},
		{20 * time.Second, 20*time.Second + 300*time.Millisecond, 20*time.Second + 300*time.Millisecond, 0}, // small steps are followed
		{40 * time.Second, 100*time.Second + 300*time.Millisecond, 41*time.Second + 300*time.Millisecond, 60 * time.Second},
		{60 * time.Second, 120*time.Second + 300*time.Millisecond, 62*time.Second + 300*time.Millisecond, 0},
		{60 * time.Second, 120*time.Second + 300*time.Millisecond, 62*time.Second + 300*time.Millisecond, 0}, // no time passed
		{80 * time.Second, 81*time.Second + 300*time.Millisecond, 81*time.Second + 300*time.Millisecond, -59 * time.Second},
		{70 * time.Second, 71 * time.Second, 81*time.Second + 300*time.Millisecond, -10*time.Second - 300*time.Millisecond}, // broken monotonic clock
	}
	for i, s := range steps {
		now, jump := c.read(s.mono, wall.Add(s.wall))
		if got := now.Sub(wall); got != s.now || jump != s.jump {
			t.Errorf("step %d: %v, jump %v; want %v, %v", i, got, jump, s.now, s.jump)
		}
	}
}
