package norm

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aldis/internal/edge/norm/cell"
	"aldis/internal/gateway/api"
)

// A child is killed or stopped while objects are in transmission both ways: the gateway hears of it within 6 s, the next
// generation goes on, and everything arrives.
func TestChildFault(t *testing.T) {
	tests := []struct {
		name   string
		fault  syscall.Signal
		within time.Duration
		reason string
	}{
		{"kill", syscall.SIGKILL, time.Second, "signal: killed"},
		{"stop", syscall.SIGSTOP, 6 * time.Second, "no heartbeat"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNet(t, 0.02, 3, 100*time.Millisecond, 448, 2e6, 1, 2)
			n.run(5*time.Second, n.allUp)
			a, b := n.ends[1], n.ends[2]
			for i := range 4 {
				a.send(2, uint32(i), filled(n.rnd, 100_000))
				b.send(1, uint32(i), filled(n.rnd, 100_000))
			}
			n.run(10*time.Second, func() bool { return len(b.got) >= 1 && len(a.got) >= 1 })
			if err := b.process().Signal(tt.fault); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			n.run(tt.within, func() bool { return b.downs == 1 })
			t.Logf("down after %v: %s", time.Since(begin), b.reasons[0])
			if !strings.Contains(b.reasons[0], tt.reason) {
				t.Errorf("reason %q, want %q in it", b.reasons[0], tt.reason)
			}
			n.run(5*time.Second, n.allUp)
			t.Logf("up after %v", time.Since(begin))
			n.run(40*time.Second, n.delivered)
			t.Logf("all delivered after %v; duplicates %d and %d", time.Since(begin), a.duplicates, b.duplicates)
			if a.downs != 0 || b.downs != 1 || b.ups != 2 {
				t.Errorf("downs %d and %d, ups %d", a.downs, b.downs, b.ups)
			}
			if b.duplicates != 0 { // the surviving side's objects are only repaired, never enqueued again
				t.Errorf("%d objects came twice to the end that restarted", b.duplicates)
			}
			a.send(2, 100, filled(n.rnd, 5000))
			b.send(1, 100, filled(n.rnd, 5000))
			n.run(20*time.Second, n.delivered)
		})
	}
}

// The very first DATA is lost, and no more follows: only the marker lets a FLUSH fetch it.
func TestFirstObjectLost(t *testing.T) {
	n := newNet(t, 0, 1, 100*time.Millisecond, 448, 1e6, 1, 2)
	n.run(5*time.Second, n.allUp)
	carry, dropped := n.carry, 0
	n.carry = func(from, to *end, frames [][]byte, repair bool) {
		if dropped < 3 && len(frames[0]) > 100 {
			dropped++
			return
		}
		carry(from, to, frames, repair)
	}
	n.ends[1].send(2, 1, filled(n.rnd, 1000))
	n.run(10*time.Second, n.delivered)
	if dropped != 3 {
		t.Errorf("%d frames dropped, want 3", dropped)
	}
}

// A star of three legs: objects for one peer do not reach another.
func TestStar(t *testing.T) {
	n := newNet(t, 0.05, 5, 100*time.Millisecond, 448, 2e6, 1, 2, 3, 65535)
	n.run(5*time.Second, n.allUp)
	for i, id := range []uint16{2, 3, 65535} {
		n.ends[1].send(id, uint32(10+i), filled(n.rnd, 5000))
		n.ends[id].send(1, uint32(20+i), filled(n.rnd, 5000))
	}
	n.run(30*time.Second, n.delivered)
	for id, e := range n.ends {
		if want := len(e.wire); len(e.got) != want {
			t.Errorf("end %d has %d objects, want %d", id, len(e.got), want)
		}
	}
}

// If a child has no network of its own, everybody on the machine can write to the supervisor's sockets: it accepts only packets
// from its child.
func TestStrangerOnLoopback(t *testing.T) {
	n := newNetIn(t, []cell.Way{{}}, 0, 1, 100*time.Millisecond, 448, 1e6, 1, 2)
	n.run(5*time.Second, n.allUp)
	sup := n.ends[1].sup
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for netNo := firstNet; netNo < firstNet+6; netNo++ {
		for _, member := range []int{memberPeer, memberAll} {
			if _, err := conn.WriteTo([]byte("not from libnorm"), udpAddr(netNo, 0, member, portSession)); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.run(5*time.Second, func() bool { return sup.Stats().StrangePacket == 2 })
	n.ends[1].send(2, 1, filled(n.rnd, 3000))
	n.run(10*time.Second, n.delivered)
	if len(n.ends[2].got) != 1 {
		t.Errorf("%d objects", len(n.ends[2].got))
	}
}

// A child that reads nothing: the queue fills, which counts as a hang; the caller never waits.
func TestFullQueue(t *testing.T) {
	n := newNet(t, 0, 1, 100*time.Millisecond, 448, 1e6, 1, 2)
	n.run(5*time.Second, n.allUp)
	a := n.ends[1]
	if err := a.process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	data := filled(n.rnd, 20_000)
	begin := time.Now()
	for range 3 * queueLen {
		a.sup.Do(api.NormEnqueue{Peer: 2, Data: data})
	}
	if d := time.Since(begin); d > time.Second {
		t.Errorf("Do took %v", d)
	}
	n.run(3*time.Second, func() bool { return a.downs == 1 })
	if !strings.Contains(a.reasons[0], "does not") {
		t.Errorf("reason %q", a.reasons[0])
	}
	n.run(5*time.Second, n.allUp)
	if h := a.sup.held.Load(); h != 0 {
		t.Errorf("%d octets still counted as held", h)
	}
	n.seen = map[string]bool{}
	a.send(2, 1, filled(n.rnd, 3000))
	n.run(10*time.Second, n.delivered)
}

// More objects than libnorm's cache holds: the child keeps the rest, in order and with their promised numbers.
func TestManyObjects(t *testing.T) {
	n := newNet(t, 0, 1, 100*time.Millisecond, 448, 4e6, 1, 2)
	n.run(5*time.Second, n.allUp)
	for i := range 2 * cacheObjects {
		n.ends[1].send(2, uint32(i), filled(n.rnd, 600))
	}
	n.run(30*time.Second, n.delivered)
	if _, last, _ := n.ends[2].wire[1].Progress(); last != 2*cacheObjects {
		t.Errorf("delivered without gap up to object %d, want %d", last, 2*cacheObjects)
	}
}

func TestCancelAndRequeue(t *testing.T) {
	n := newNet(t, 0, 1, 100*time.Millisecond, 448, 4e5, 1, 2)
	n.run(5*time.Second, n.allUp)
	a, b := n.ends[1], n.ends[2]
	a.send(2, 1, filled(n.rnd, 30_000))
	a.send(2, 2, filled(n.rnd, 30_000))
	a.send(2, 3, filled(n.rnd, 30_000))
	a.sup.Do(api.NormCancel{Peer: 2, Object: 2})
	a.out[2] = append(a.out[2][:1:1], a.out[2][2])
	n.run(20*time.Second, n.delivered)
	if len(b.got) != 2 {
		t.Errorf("%d objects arrived, want 2: one was canceled", len(b.got))
	}
	before := n.frames
	a.sup.Do(api.NormRequeue{Peer: 2, Object: 3})
	n.run(5*time.Second, func() bool { return n.frames-before >= 67 }) // (30,000 + 8 + 3) / 448
}

func TestBadStart(t *testing.T) {
	events := make(chan api.Event, 16)
	var starts atomic.Int32
	s, err := New(Config{Self: 7, Segment: 448, GRTT: time.Second, TxRate: 1e5, Command: func() *exec.Cmd {
		starts.Add(1)
		return exec.Command("sh", "-c", "echo first >&2; echo no library here >&2; exit 3")
	}}, func(e api.Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, peers := range [][]uint16{nil, {7}, {0}, {3, 3}, make([]uint16, MaxPeers+1)} {
		if legs, err := s.legsOf(peers); err == nil {
			t.Errorf("legs of %v: %v", peers, legs)
		}
	}
	s.Do(api.NormStart{Generation: 1, Peers: []uint16{7}})
	if e, ok := (<-events).(api.NormDown); !ok || e.Reason == "" {
		t.Errorf("start with ourselves as peer: %#v", e)
	}
	s.Do(api.NormStart{Generation: 2, Peers: []uint16{1}})
	e, ok := (<-events).(api.NormDown)
	if want := "norm: child ended: exit status 3: no library here"; !ok || e.Reason != want {
		t.Errorf("%#v, want NormDown %q", e, want)
	}
	if starts.Load() != 1 {
		t.Errorf("%d children", starts.Load())
	}
}

// Children that die at once must not keep the processor busy: each start waits longer.
func TestPauseBetweenYoungDeaths(t *testing.T) {
	events := make(chan api.Event, 16)
	s, err := New(Config{Self: 7, Segment: 448, GRTT: time.Second, TxRate: 1e5,
		Command: func() *exec.Cmd { return exec.Command("false") }}, func(e api.Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begin := time.Now()
	for i := range 4 {
		s.Do(api.NormStart{Generation: uint8(i), Peers: []uint16{1}})
		<-events
	}
	if d := time.Since(begin); d < 3*time.Second || d > 8*time.Second { // 0, 0, 1, 2 and ticks
		t.Errorf("four starts took %v", d)
	}
}

// A child whose parent is gone exits by itself.
func TestChildEndsWithItsParent(t *testing.T) {
	c := exec.Command("/proc/self/exe", childCommand)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	ours, childs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	c.ExtraFiles = []*os.File{childs}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	childs.Close()
	config := `{"Net":99,"Self":1,"Generation":1,"Peers":[2],"Segment":448,"GRTT":1000000000,"TxRateBps":9600}`
	if _, err := in.Write(appendRecord(nil, record{kind: recConfig, data: []byte(config)})); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// Nonsense on its stdin makes a child exit with a reason and code 1.
func TestChildRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"record too long", "\xff\xff\xff\xff\x01\x00\x00\x00", "malformed record"},
		{"no configuration first", string(appendRecord(nil, record{kind: recEnqueue})), "malformed record"},
		{"not JSON", string(appendRecord(nil, record{kind: recConfig, data: []byte("{")})), "configuration"},
		{"no peers", string(appendRecord(nil, record{kind: recConfig, data: []byte("{}")})), "0 peers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := exec.Command("/proc/self/exe", childCommand)
			c.Stdin = strings.NewReader(tt.in)
			out, err := c.CombinedOutput()
			if c.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestRecords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b []byte
	want := []record{{kind: recBeat, data: []byte{}}, {recObject, 3, 513, filled(rnd, 70_000)}, {recSent, 255, 65535, []byte{}}}
	for _, r := range want {
		b = appendRecord(b, r)
	}
	in := strings.NewReader(string(b))
	for _, w := range want {
		got, err := readRecord(in)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(w) {
			t.Errorf("readRecord = %v, %v", got.kind, err)
		}
	}
	for _, bad := range []string{"\xff\xff\xff\xff1234", "\x00\x00\x00\x031234", "\x00\x00\x00\x091234"} {
		if r, err := readRecord(strings.NewReader(bad)); err == nil {
			t.Errorf("readRecord(%q) = %v", bad, r)
		}
	}
}

// If nothing gets through for longer than libnorm flushes (40 x GRTT) and asks again, a FLUSH from the gateway revives the
// object, and segments that had arrived are not sent again.
func TestOutage(t *testing.T) {
	n := newNet(t, 0, 9, 50*time.Millisecond, 448, 1e6, 1, 2)
	n.run(5*time.Second, n.allUp)
	n.ends[1].send(2, 1, filled(n.rnd, 100_000))
	n.run(5*time.Second, func() bool { return n.frames >= 100 })
	n.loss = 1
	overdue := n.overdue
	n.overdue = time.Hour
	back := time.Now().Add(60 * 50 * time.Millisecond)
	n.run(10*time.Second, func() bool { return time.Now().After(back) })
	n.loss, n.overdue = 0, overdue
	begin, lost := time.Now(), n.lost
	n.run(10*time.Second, n.delivered)
	t.Logf("delivered %v after the link came back; %d frames, %d lost", time.Since(begin), n.frames, lost)
	if e := n.ends[1]; e.ids[2] != 1 {
		t.Errorf("%d objects for one message", e.ids[2])
	}
	// 224 segments, a few frames to ask, and on a busy machine repairs that were requested twice within this short GRTT. Sent
	// anew, the object would be 324 segments: the hundred that had arrived must not be sent again.
	if got := n.frames - lost; got > 224+50 {
		t.Errorf("%d frames arrived, want little more than 224", got)
	}
}
