package daemon

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// While the disk is slow, local peers are answered, in order for each of them, and the link waits; the next commit takes all
// records that have gathered.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(now time.Time, ev api.Event) api.Output {
			out := byConn(now, ev)
			if e, ok := ev.(api.LAN); ok {
				switch e.Event.(jxtabridge.Opened).Remote {
				case "lan":
					out.Datagrams = nil
				case "confirm":
					send := out.LAN[0].Order.(jxtabridge.Send)
					send.Confirms = true
					out.Datagrams, out.LAN = nil, orders(send)
				}
			}
			return out
		})
		w.slow = make(chan struct{})
		w.start()
		local := func(n int) {
			w.post(jxtabridge.Opened{Conn: site.ConnID(n), Remote: "lan"})
		}
		w.post(opened(100))
		expect(t, w.take())
		local(1)
		expect(t, w.take(), "send 1 body")
		w.post(opened(2)) // for the link as well
		local(2)          // not before it
		local(3)
		w.post(jxtabridge.Opened{Conn: 5, Remote: "confirm"}) // not before any commit
		expect(t, w.take(), "send 3 body")
		w.post(opened(101))
		w.post(jxtabridge.Opened{Conn: 100, Remote: "again"})
		local(4)
		expect(t, w.take(), "send 4 body")
		w.slow <- struct{}{}
		expect(t, w.take(), "commit 100", "send 100 body", "datagram 100", "api.NormStart",
			"send 2 body", "datagram 2", "send 2 body", "send 5 body")
		local(2)
		expect(t, w.take(), "send 2 body")
		w.slow <- struct{}{}
		expect(t, w.take(), "commit 101 100", "send 101 body", "datagram 101", "api.NormStart", "send 100 body", "datagram 100", "api.NormStart")
		w.post(opened(102))
		synctest.Wait()
		w.post(opened(103))
		synctest.Wait()
		close(w.slow)
		w.end(t) // the commit in progress is waited for
		expect(t, w.take(), "commit 102", "send 102 body", "datagram 102", "api.NormStart", "commit 103", "send 103 body", "datagram 103", "api.NormStart")
	})
}

// soon is an order that promises nothing.
type soon struct {
	jxtabridge.Welcome
	lane string
	late bool // it promises something
}

func (s soon) Early() bool  { return !s.late }
func (s soon) Lane() string { return s.lane }

// An order that promises nothing goes before the commit of its own step, but behind queued orders for the same connection.
func TestWhatPromisesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(now time.Time, ev api.Event) api.Output {
			out := byConn(now, ev)
			if len(out.LAN) > 0 {
				send := out.LAN[0].Order.(jxtabridge.Send)
				early := soon{Welcome: jxtabridge.Welcome{Conn: send.Conn}}
				out.Norm, out.Datagrams, out.LAN = nil, nil, orders(early, early, send, early)
			}
			return out
		})
		w.slow = make(chan struct{})
		w.start()
		w.post(opened(100))
		expect(t, w.take(), "welcome 100", "welcome 100")
		w.post(opened(100))
		w.post(opened(101))
		expect(t, w.take(), "welcome 101", "welcome 101")
		close(w.slow)
		w.end(t)
		expect(t, w.take(), "commit 100", "send 100 body", "welcome 100", "commit 100 101", "welcome 100", "welcome 100", "send 100 body", "welcome 100", "send 101 body", "welcome 101")
	})
}

// On one connection a lane that waits does not hold up the others; an order without a lane waits for all.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(now time.Time, ev api.Event) (out api.Output) {
			lan, ok := ev.(api.LAN)
			if !ok {
				return out
			}
			to := func(id int, lane string, late bool) site.Order {
				return soon{jxtabridge.Welcome{Conn: site.ConnID(id)}, lane, late}
			}
			n := int(lan.Event.(jxtabridge.Opened).Conn)
			out.Records = []api.Record{{Bucket: "b", Key: fmt.Append(nil, n), Value: []byte{1}}}
			names := []string{"anna", "bert", "carl"}
			out.LAN = orders(to(1, names[(n+1)%3], false), to(1, names[(n+2)%3], false), to(1, names[n%3], true))
			if n == 102 {
				out.LAN = orders(to(1, "", false))
			}
			return out
		})
		w.slow = make(chan struct{})
		w.start()
		w.post(opened(99)) // anna's: to bert and carl at once
		expect(t, w.take(), "welcome 1", "welcome 1")
		w.post(opened(100)) // bert's: to carl at once, to anna behind her own
		expect(t, w.take(), "welcome 1")
		w.post(opened(102))
		expect(t, w.take())
		close(w.slow)
		w.end(t)
		expect(t, w.take(), "commit 99", "welcome 1", "commit 100 102", "welcome 1", "welcome 1", "welcome 1")
	})
}

// An output that nobody waits for is committed at once if the last commit is long ago, otherwise together with all outputs of
// commitGap.
func TestCommitsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(now time.Time, ev api.Event) (out api.Output) {
			if lan, ok := ev.(api.LAN); ok {
				n := lan.Event.(jxtabridge.Opened).Conn
				out.Records = []api.Record{{Bucket: "b", Key: fmt.Append(nil, n), Value: []byte{1}}}
				out.Datagrams = []api.Datagram{{Data: fmt.Append(nil, n)}}
				if n == 200 {
					out.LAN = orders(jxtabridge.Send{Conn: n, Body: []byte("body")})
				}
			}
			return out
		})
		w.start()
		w.post(opened(100))
		expect(t, w.take(), "commit 100", "datagram 100")
		for n := range 3 {
			pass(2 * time.Millisecond)
			w.post(opened(101 + n))
		}
		expect(t, w.take())
		pass(commitGap)
		expect(t, w.take(), "commit 101 102 103", "datagram 101", "datagram 102", "datagram 103")
		w.post(opened(104))
		w.post(opened(200)) // its peer waits
		expect(t, w.take(), "commit 104 200", "datagram 104", "send 200 body", "datagram 200")
		w.post(opened(105))
		w.end(t)
		expect(t, w.take(), "commit 105", "datagram 105")
	})
}

// A local peer that asks while the disk fails is answered, even when a timer is due at that moment: the due work gets an output
// of its own.
func TestWhatIsDueHoldsUpNoLocalPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var due time.Time
		w := newWorld(func(now time.Time, ev api.Event) (out api.Output) {
			if e, local := ev.(api.LAN); local {
				out = byConn(now, ev)
				if e.Event == opened(1) {
					<-time.After(2 * time.Millisecond) // a busy machine: the loop runs timers late
					due = now.Add(time.Millisecond)
				}
			}
			if !due.IsZero() && !now.Before(due) {
				out.Records = append(out.Records, api.Record{Key: []byte("due")})
				due = time.Time{}
			}
			out.Deadline = due
			return out
		})
		w.start()
		w.take()
		w.setFull(true)
		w.post(opened(100))
		expect(t, w.take(), "full")
		w.post(opened(1))
		synctest.Wait()
		w.post(opened(2)) // in the next turn
		pass(10 * time.Millisecond)
		expect(t, w.take(), "send 1 body", "send 2 body")
		check.True(t, "what was due is done", due.IsZero())
		w.setFull(false)
		pass(time.Second)
		expect(t, w.take(), "commit 100 due", "send 100 body", "api.NormStart")
		w.end(t)
	})
}
