package lan

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

const (
	peerID = "urn:jxta:uuid-59616261646162614A787461503250336D05A710FF3CF2DBFB25ADEC2FEE183803"
	hello1 = "JXTAHELLO tcp://127.0.0.1:9701 tcp://127.0.0.1:9702 " + peerID + " 0 1.1\r\n"
)

// world is a LAN room with its events in a list.
type world struct {
	*testing.T
	lan  *LAN
	addr string
	reg  *prometheus.Registry

	mu      sync.Mutex
	changed chan struct{}
	events  []site.Event
	block   chan bool // if set, post waits for it
}

func start(t *testing.T, cfg Config) *world {
	w := &world{T: t, changed: make(chan struct{}), reg: prometheus.NewRegistry()}
	w.lan = New(cfg, w.post, w.reg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = ln.Addr().String()
	served := make(chan error)
	go func() { served <- w.lan.Serve(ln) }()
	t.Cleanup(func() {
		w.lan.Shutdown()
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	return w
}

func (w *world) post(ev site.Event) {
	w.mu.Lock()
	block := w.block
	w.mu.Unlock()
	if _, is := ev.(jxtabridge.Received); is && block != nil {
		<-block
	}
	if o, ok := ev.(jxtabridge.Opened); ok && !o.HTTP { // as the bridge does
		w.lan.Welcome(jxtabridge.Welcome{Conn: o.Conn, Line: jxta.Welcome{Dest: "tcp://" + o.Remote, Public: "tcp://" + w.addr, Peer: peerID}})
	}
	w.mu.Lock()
	w.events = append(w.events, ev)
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
}

// await waits until cond holds for the events so far.
func (w *world) await(what string, cond func([]site.Event) bool) {
	w.Helper()
	limit := time.After(time.Minute)
	for {
		w.mu.Lock()
		ok, changed := cond(w.events), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit:
			w.Fatalf("no %s in %+v", what, w.events)
		}
	}
}

func (w *world) all() []site.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]site.Event(nil), w.events...)
}

func count[T any](events []site.Event) (n int) {
	for _, ev := range events {
		if _, ok := ev.(T); ok {
			n++
		}
	}
	return n
}

func (w *world) closed(n int) {
	w.Helper()
	w.await("Closed", func(e []site.Event) bool { return count[jxtabridge.Closed](e) >= n })
}

func (w *world) metric(name, label string) float64 {
	w.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && (label == "" || labelled(m, label)) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// until waits for a condition that no event reports.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	limit := time.After(time.Minute)
	for !ok() {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-limit:
			w.Fatal("not so: " + what)
		}
	}
}

func labelled(m *dto.Metric, value string) bool {
	for _, l := range m.Label {
		if l.GetValue() == value {
			return true
		}
	}
	return false
}

func (w *world) refused(reason string) float64 { return w.metric("aldis_lan_refused_total", reason) }

// dial connects; its own welcome is not sent yet.
func (w *world) dial() net.Conn {
	w.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	return c
}

func (w *world) say(c net.Conn, parts ...[]byte) {
	w.Helper()
	for _, p := range parts {
		if _, err := c.Write(p); err != nil {
			w.Fatal(err)
		}
	}
}

func body(n int) []byte { return bytes.Repeat([]byte{'b'}, n) }

func pack(b []byte) []byte { return append(jxta.AppendPackageHeader(nil, len(b)), b...) }

func TestConversation(t *testing.T) {
	w := start(t, Config{})
	c := w.dial()
	// The welcome and two packages, split at odd places.
	all := append([]byte(hello1), pack(body(10))...)
	all = append(all, pack(body(200_000))...)
	for len(all) > 0 {
		n := min(7001, len(all))
		w.say(c, all[:n])
		all = all[n:]
	}
	w.await("two bodies", func(e []site.Event) bool { return count[jxtabridge.Received](e) == 2 })
	ev := w.all()
	o, ok := ev[0].(jxtabridge.Opened)
	if !ok || o.Conn != 1 || o.Remote != c.LocalAddr().String() {
		t.Errorf("first event %+v", ev[0])
	}
	if h, ok := ev[1].(jxtabridge.Welcomed); !ok || h.Welcome.Peer != peerID || h.Welcome.Version != "1.1" {
		t.Errorf("second event %+v", ev[1])
	}
	if r := ev[2].(jxtabridge.Received); len(r.Body) != 10 {
		t.Errorf("third event %d octets", len(r.Body))
	}
	if r := ev[3].(jxtabridge.Received); !bytes.Equal(r.Body, body(200_000)) {
		t.Errorf("fourth event %d octets", len(r.Body))
	}
	w.lan.Send(jxtabridge.Send{Conn: 1, Body: body(5), Token: 1})
	w.lan.Send(jxtabridge.Send{Conn: 1, Body: body(6)})
	w.lan.Send(jxtabridge.Send{Conn: 1, Body: body(7), Token: 9})
	w.lan.Send(jxtabridge.Send{Conn: 77, Body: body(7), Token: 10}) // closed: dropped
	w.lan.Close(1)
	got, err := io.ReadAll(c)
	want := "JXTAHELLO tcp://" + c.LocalAddr().String() + " tcp://" + w.addr + " " + peerID + " 0 1.1\r\n"
	for n := 5; n <= 7; n++ {
		want += string(pack(body(n)))
	}
	if err != nil || string(got) != want {
		t.Errorf("peer read %q, %v; want %q", got, err, want)
	}
	w.closed(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	last := jxtabridge.Written{}
	for i, ev := range w.events {
		if wr, ok := ev.(jxtabridge.Written); ok {
			if wr.Token < last.Token {
				t.Errorf("Written out of order: %+v", w.events)
			}
			last = wr
		}
		if _, ok := ev.(jxtabridge.Closed); ok && i != len(w.events)-1 {
			t.Errorf("an event after Closed: %+v", w.events)
		}
	}
	if last.Token != 9 || last.Conn != 1 {
		t.Errorf("last Written %+v", last)
	}
	if w.metric("aldis_lan_messages_total", "in") != 2 || w.metric("aldis_lan_messages_total", "out") != 3 {
		t.Error("messages not counted")
	}
	if w.metric("aldis_lan_connections", "") != 0 || w.metric("aldis_lan_connections_total", "") != 1 {
		t.Error("connections not counted")
	}
}

func TestRefusals(t *testing.T) {
	long := append([]byte(hello1), []byte("\x0econtent-length\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x0ccontent-type\x00\x16"+jxta.MessageType+"\x00")...)
	tests := []struct {
		name, say, reason string
		hangup            bool
	}{
		{"garbage welcome", "GET / HTTP/1.1\r\n", "welcome", false},
		{"zero octets", "\x00\x00\x00\x00", "welcome", false},
		{"endless welcome", "JXTAHELLO " + strings.Repeat("a", 5000), "welcome", false},
		{"welcome of no peer", "JXTAHELLO a b c 0 1.1\r\n", "welcome", false},
		{"silence", "", "welcome_timeout", false},
		{"4 GiB announced", string(long), "body_too_long", false},
		{"no length", hello1 + "\x0ccontent-type\x00\x16" + jxta.MessageType + "\x00", "header", false},
		{"endless header", hello1 + strings.Repeat("\x01a\x00\x10"+strings.Repeat("v", 16), 200), "header", false},
		{"stalls in a header", hello1 + "\x0econtent", "header_timeout", false},
		{"stalls in a body", hello1 + string(pack(body(100))[:120]), "body_timeout", false},
		{"hangs up in a body", hello1 + string(pack(body(100))[:120]), "body_cut", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, Config{WelcomeTimeout: 200 * time.Millisecond, ReadStall: 200 * time.Millisecond})
			c := w.dial()
			if _, err := c.Write([]byte(tt.say)); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Log(err) // disconnected while it was still sending
			}
			if tt.hangup {
				c.(*net.TCPConn).CloseWrite()
			}
			w.closed(1)
			if w.refused(tt.reason) != 1 {
				t.Errorf("not counted as %s", tt.reason)
			}
			if count[jxtabridge.Received](w.all()) != 0 {
				t.Error("something was received")
			}
		})
	}
}

// Memory grows with the octets that have come: 50 peers that announce 16 MiB each and send a little take little. Peers that
// send run into the common allowance.
func TestAnnouncedLengthCostsNothing(t *testing.T) {
	w := start(t, Config{MaxReading: 4 << 20})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 50 {
		c := w.dial()
		w.say(c, []byte(hello1), jxta.AppendPackageHeader(nil, 16<<20), body(1000))
	}
	w.await("50 welcomes", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) == 50 })
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 20<<20 {
		t.Errorf("%d octets for 50 kB", grown)
	}
	c := w.dial()
	if _, err := c.Write(append([]byte(hello1), jxta.AppendPackageHeader(nil, 16<<20)...)); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); err == nil; {
		_, err = c.Write(body(1 << 20))
	}
	w.closed(1)
	if w.refused("memory") != 1 {
		t.Error("not counted")
	}
	w.lan.room.mu.Lock()
	defer w.lan.room.mu.Unlock()
	if held := w.lan.room.held; held > 4<<20 {
		t.Errorf("%d octets held", held)
	}
}

func TestPeerThatNeverReads(t *testing.T) {
	w := start(t, Config{WriteStall: 300 * time.Millisecond, MaxQueue: 64 << 20})
	c := w.dial()
	w.say(c, []byte(hello1))
	w.await("welcome", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) == 1 })
	for i := range 32 {
		w.lan.Send(jxtabridge.Send{Conn: 1, Body: body(1 << 20), Token: uint64(i + 1)})
	}
	w.closed(1)
	if w.refused("never_reads") != 1 {
		t.Error("not counted")
	}
	if n := count[jxtabridge.Written](w.all()); n > 16 {
		t.Errorf("%d bodies of 1 MiB called written", n)
	}
}

// Octets that our kernel keeps for a peer that does not read are not reported as written: they would be lost with this process.
func TestWrittenIsOnThePeersMachine(t *testing.T) {
	const size, bodies = 64 << 10, 64
	w := start(t, Config{MaxQueue: 64 << 20})
	c := w.dial()
	if err := c.(*net.TCPConn).SetReadBuffer(size); err != nil { // the peer's machine keeps only so much
		t.Fatal(err)
	}
	w.say(c, []byte(hello1))
	w.await("welcome", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) == 1 })
	for i := range bodies {
		w.lan.Send(jxtabridge.Send{Conn: 1, Body: body(size), Token: uint64(i + 1)})
	}
	last := func(events []site.Event) int {
		for _, ev := range slices.Backward(events) {
			if wr, is := ev.(jxtabridge.Written); is {
				return int(wr.Token)
			}
		}
		return 0
	}
	check.Still(t, 200*time.Millisecond, time.Minute, "what is written", func() int { return last(w.all()) })
	if got := last(w.all()); got > 8 {
		t.Errorf("%d bodies of %d octets called written, and the peer has room for one or two", got, size)
	}
	go io.Copy(io.Discard, c)
	w.await("all written", func(e []site.Event) bool { return last(e) == bodies })
}

// On a connection that another machine passes on, octets that its kernel has acknowledged are not yet written; those that the peer
// has are.
func TestWrittenIsOnThePeersMachineBehindAnother(t *testing.T) {
	const size = 1000
	var has atomic.Uint64
	w := start(t, Config{Passed: func(netip.AddrPort) (uint64, bool) { return has.Load(), true }})
	c := w.dial()
	go io.Copy(io.Discard, c)
	w.say(c, []byte(hello1))
	w.await("welcome", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) == 1 })
	w.lan.Send(jxtabridge.Send{Conn: 1, Body: body(size), Token: 1})
	written := func() int { return count[jxtabridge.Written](w.all()) }
	check.Still(t, 200*time.Millisecond, time.Minute, "what is written", written)
	check.Equal(t, "written while the peer has nothing", written(), 0)
	has.Store(size / 2)
	check.Still(t, 200*time.Millisecond, time.Minute, "what is written", written)
	check.Equal(t, "written while the peer has a half", written(), 0)
	has.Store(1 << 20)
	w.await("the body", func(e []site.Event) bool { return count[jxtabridge.Written](e) == 1 })
}

func TestQueueIsBounded(t *testing.T) {
	w := start(t, Config{MaxQueue: 1 << 20})
	c := w.dial()
	w.say(c, []byte(hello1))
	w.await("welcome", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) == 1 })
	for range 20 {
		w.lan.Send(jxtabridge.Send{Conn: 1, Body: body(900 << 10)})
	}
	w.closed(1)
	if w.refused("queue_full") != 1 {
		t.Error("not counted")
	}
}

// A callback that blocks causes back-pressure: the peer's octets stay in its own socket.
func TestBackPressure(t *testing.T) {
	w := start(t, Config{})
	w.mu.Lock()
	block := make(chan bool)
	w.block = block
	w.mu.Unlock()
	c := w.dial()
	w.say(c, []byte(hello1))
	c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	sent, p := 0, pack(body(100_000))
	for {
		n, err := c.Write(p)
		sent += n
		if err != nil {
			break
		}
		if sent > 100<<20 {
			t.Fatal("100 MB taken while nobody received")
		}
	}
	close(block)
	w.await("what was sent before", func(e []site.Event) bool { return count[jxtabridge.Received](e) == sent/len(p) })
}

func TestConnectionLimits(t *testing.T) {
	w := start(t, Config{MaxConns: 8, MaxConnsPerAddress: 5})
	var first net.Conn
	for i := range 200 {
		c := w.dial()
		if i == 0 {
			first = c
		}
	}
	w.await("refusals", func(e []site.Event) bool { return count[jxtabridge.Opened](e) == 5 })
	w.say(first, []byte(hello1), pack(body(3)))
	w.await("a message among the flood", func(e []site.Event) bool { return count[jxtabridge.Received](e) == 1 })
	limit := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for w.refused("connections_per_address") != 195 {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%v refused, want 195", w.refused("connections_per_address"))
		}
	}
	first.Close()
	w.closed(1)
	c := w.dial()
	w.say(c, []byte(hello1))
	w.await("a place that became free", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) == 2 })
}

func TestShutdownPostsEveryClosed(t *testing.T) {
	w := start(t, Config{})
	for range 5 {
		w.say(w.dial(), []byte(hello1))
	}
	w.await("welcomes", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) == 5 })
	w.lan.Shutdown()
	if n := count[jxtabridge.Closed](w.all()); n != 5 {
		t.Errorf("%d Closed after Shutdown, want 5", n)
	}
	w.lan.Send(jxtabridge.Send{Conn: 1, Body: body(1)})
	w.lan.Close(1)
}

// A connection with a shut gate is not read; it can still be closed, by either end.
func TestGate(t *testing.T) {
	w := start(t, Config{})
	for _, end := range []string{"peer", "gateway"} {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		before := count[jxtabridge.Welcomed](w.all())
		closed := count[jxtabridge.Closed](w.all())
		io.WriteString(c, hello1)
		w.await("Welcomed", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) > before })
		var id site.ConnID
		for _, ev := range w.all() {
			if o, ok := ev.(jxtabridge.Welcomed); ok {
				id = o.Conn
			}
		}
		received := func(e []site.Event) (n int) {
			for _, ev := range e {
				if r, ok := ev.(jxtabridge.Received); ok && r.Conn == id {
					n++
				}
			}
			return n
		}
		two := func() { // in one segment, so that the reader has the second when it has posted the first
			one := append(jxta.AppendPackageHeader(nil, 3), "abc"...)
			if _, err := c.Write(append(one, one...)); err != nil {
				t.Fatal(err)
			}
		}
		w.lan.Gate(jxtabridge.Gate{Conn: id, Shut: true})
		two() // a read in progress may still post one
		w.lan.Gate(jxtabridge.Gate{Conn: id, Shut: false})
		w.await("both", func(e []site.Event) bool { return received(e) == 2 })
		w.lan.Gate(jxtabridge.Gate{Conn: id, Shut: true})
		two() // one of the two is posted if a read is in progress, none if the reader waits at the gate already
		if end == "peer" {
			c.Close()
			w.lan.Gate(jxtabridge.Gate{Conn: id, Shut: false})
		} else {
			w.lan.Close(id)
		}
		w.closed(closed + 1)
		if n := received(w.all()); end == "gateway" && n > 3 {
			t.Errorf("%d packages read, at most one of them by the read that was under way", n)
		}
	}
	w.lan.Gate(jxtabridge.Gate{Conn: 999, Shut: true}) // closed already
}

// A reader passes only an open gate, and never again once its connection was closed, whatever messages it still holds.
func TestGateOfAClosedConnection(t *testing.T) {
	var b outbox
	b.init(nil, 1, "a peer", func() {})
	if !b.wait() {
		t.Error("an open gate stops the reader")
	}
	b.gate(true)
	let := make(chan bool)
	go func() { let <- b.wait() }()
	b.close()
	if <-let {
		t.Error("the end opened a shut gate")
	}
	b.gate(false)
	if b.wait() {
		t.Error("a closed connection is still read")
	}
}

// A message that needs a trailer is signed on its way out. Its length includes the trailer, and the queue is empty afterwards.
func TestSignedOnTheWayOut(t *testing.T) {
	w := start(t, Config{Sign: func(m []byte, source string) ([]byte, error) {
		if source == "" {
			return nil, errors.New("no source")
		}
		return append(m, source...), nil
	}})
	c := w.dial()
	defer c.Close()
	io.WriteString(c, hello1)
	w.await("Welcomed", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) == 1 })
	id := w.all()[0].(jxtabridge.Opened).Conn
	w.lan.Send(jxtabridge.Send{Conn: id, Body: []byte("signed by "), Sign: "urn:a", Token: 1})
	w.lan.Send(jxtabridge.Send{Conn: id, Body: []byte("not"), Token: 2})
	want := append(jxta.AppendPackageHeader(nil, 15), "signed by urn:a"...)
	want = append(append(want, jxta.AppendPackageHeader(nil, 3)...), "not"...)
	got := make([]byte, 0, 512)
	buf := make([]byte, 512)
	for !bytes.HasSuffix(got, want) && len(got) < 512 {
		n, err := c.Read(buf)
		if got = append(got, buf[:n]...); err != nil {
			t.Fatalf("%v after %q", err, got)
		}
	}
	w.await("both written", func(e []site.Event) bool {
		last, ok := e[len(e)-1].(jxtabridge.Written)
		return ok && last.Token == 2
	})
	n := w.lan.conn(id)
	n.mu.Lock()
	if n.octets != 0 {
		t.Errorf("%d octets seem to wait", n.octets)
	}
	n.mu.Unlock()
}
