package norm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"aldis/internal/edge/norm/cell"
	"aldis/internal/gateway/api"
	"aldis/internal/link/elide"
)

const childCommand = "norm-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childCommand {
		os.Exit(ChildMain(os.Args[2:]))
	}
	if os.Getenv(noNamespaces) != "" {
		forbidNamespaces()
	}
	os.Exit(m.Run())
}

// end is the part of a gateway that NORM needs around a supervisor: sessions, the gate, one FLUSH when an object is overdue,
// and enqueueing objects again in a new generation.
type end struct {
	id         uint16
	net        *net2
	sup        *Supervisor
	wire       map[uint16]*elide.Session
	generation uint8
	up         bool
	ups, downs int
	reasons    []string
	out        map[uint16][]*object // by peer: not delivered yet, in order
	ids        map[uint16]uint16    // last object id by peer
	got        [][]byte
	duplicates int
	cmd        *exec.Cmd
	lacks      [][]string // the missing parts of the cell, at each report of the supervisor
}

type object struct {
	number uint32
	data   []byte
	id     uint16 // in the present generation; 0: not enqueued
	sentAt time.Time
	asked  int

	complete bool // the last segment has left in this generation
}

type input struct {
	end   *end
	event api.Event
	do    func() // instead of an event
}

// net2 is two or more ends and a link between them that loses frames by seed. One goroutine runs all of it.
type net2 struct {
	t       testing.TB
	in      chan input
	ends    map[uint16]*end
	loss    float64
	rnd     *rand.Rand
	overdue time.Duration
	eager   bool                                              // the last segment and repairs take a FLUSH along
	carry   func(from, to *end, frames [][]byte, repair bool) // the link; loses nothing itself
	frames  int
	octets  int
	lost    int
	raw     int
	packed  map[elide.Kind]int
	seen    map[string]bool // delivered: from, to, number
	again   map[string]bool // enqueued again because there was no answer: may come twice, and custody drops the second
	mu      sync.Mutex
}

func newNet(t testing.TB, loss float64, seed uint64, grtt time.Duration, segment int, rate float64, ids ...uint16) *net2 {
	return newNetIn(t, nil, loss, seed, grtt, segment, rate, ids...)
}

// newNetIn sets the ways in which children may be confined; nil: all that this machine allows.
func newNetIn(t testing.TB, ways []cell.Way, loss float64, seed uint64, grtt time.Duration, segment int, rate float64, ids ...uint16) *net2 {
	n := &net2{t: t, in: make(chan input, 1024), ends: map[uint16]*end{}, loss: loss, rnd: rand.New(rand.NewPCG(seed, 1)),
		overdue: 4 * grtt, packed: map[elide.Kind]int{}, seen: map[string]bool{}, again: map[string]bool{}}
	n.carry = n.arrive
	for _, id := range ids {
		e := &end{id: id, net: n, wire: map[uint16]*elide.Session{}, out: map[uint16][]*object{}, ids: map[uint16]uint16{}}
		for _, peer := range ids {
			if peer == id || (id != ids[0] && peer != ids[0]) { // a star: the first is its centre
				continue
			}
			w, err := elide.NewSession(elide.Config{Self: id, Peer: peer, Segment: segment, GRTT: grtt})
			if err != nil {
				t.Fatal(err)
			}
			e.wire[peer] = w
		}
		sup, err := New(Config{Self: id, Segment: segment, GRTT: grtt, TxRate: rate, Ways: ways, Lacks: e.lack, Command: func() *exec.Cmd {
			c := exec.Command("/proc/self/exe", childCommand)
			n.mu.Lock()
			e.cmd = c
			n.mu.Unlock()
			return c
		}}, func(ev api.Event) { n.in <- input{end: e, event: ev} })
		if err != nil {
			t.Fatal(err)
		}
		e.sup = sup
		n.ends[id] = e
		t.Cleanup(func() {
			done := make(chan struct{})
			go func() { sup.Close(); close(done) }()
			for {
				select {
				case <-n.in:
				case <-done:
					return
				}
			}
		})
		e.start()
	}
	return n
}

func (e *end) start() {
	e.generation++
	var peers []uint16
	for p := range e.wire {
		peers = append(peers, p)
	}
	e.sup.Do(api.NormStart{Generation: e.generation, Peers: peers})
}

func (e *end) lack(missing []string) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.lacks = append(e.lacks, missing)
}

func (e *end) process() *os.Process {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	return e.cmd.Process
}

// send gives data to custody, with its number in front.
func (e *end) send(to uint16, number uint32, data []byte) {
	o := &object{number: number, data: append([]byte(fmt.Sprintf("%08d", number)), data...)}
	e.out[to] = append(e.out[to], o)
	if e.up {
		e.enqueue(to, o)
	}
}

func (e *end) enqueue(to uint16, o *object) {
	e.ids[to]++
	o.id, o.sentAt, o.asked, o.complete = e.ids[to], time.Time{}, 0, false
	e.sup.Do(api.NormEnqueue{Peer: to, Data: o.data})
}

func (e *end) handle(ev api.Event) {
	switch ev := ev.(type) {
	case api.NormUp:
		if ev.Generation != e.generation {
			e.net.t.Errorf("end %d: up with generation %d, asked for %d", e.id, ev.Generation, e.generation)
		}
		e.up = true
		e.ups++
		for peer, w := range e.wire {
			w.Restarted(ev.Generation)
			e.ids[peer] = 0
			for _, o := range e.out[peer] {
				e.enqueue(peer, o)
			}
		}
	case api.NormDown:
		e.up = false
		e.downs++
		e.reasons = append(e.reasons, ev.Reason)
		e.start()
	case api.NormPacket:
		frame, info, err := e.wire[ev.Peer].Pack(nil, ev.Data)
		if err != nil {
			e.net.t.Errorf("end %d: Pack(%x): %v", e.id, ev.Data, err)
			return
		}
		e.net.packed[info.Kind]++
		if info.Raw {
			e.net.raw++
			e.net.t.Logf("raw: %x", frame[:min(len(frame), 64)])
		}
		if info.Generation != e.generation && info.Kind != elide.Nack {
			e.net.t.Errorf("end %d: packet of generation %d in %d", e.id, info.Generation, e.generation)
		}
		if info.Marker || info.Kind == elide.Flush {
			return
		}
		frames := [][]byte{frame}
		if info.Kind == elide.Data && e.net.eager {
			frames = e.withFlush(ev.Peer, frames, info)
		}
		e.transmit(ev.Peer, info.Repair || info.Kind != elide.Data, frames...)
	case api.NormSent:
		for _, o := range e.out[ev.Peer] {
			if o.id == ev.Object {
				o.sentAt = time.Now()
			}
		}
	case api.NormObject:
		var number uint32
		fmt.Sscanf(string(ev.Data[:8]), "%d", &number)
		e.wire[ev.Peer].Delivered(ev.Generation, ev.Object)
		key := fmt.Sprint(ev.Peer, e.id, number)
		if e.net.seen[key] {
			if !e.net.again[key] {
				e.duplicates++
			}
			return
		}
		e.net.seen[key] = true
		e.got = append(e.got, ev.Data)
		// The acknowledgement, which is never lost here.
		from := e.net.ends[ev.Peer]
		for i, o := range from.out[e.id] {
			if o.number == number {
				if !bytes.Equal(o.data, ev.Data) {
					e.net.t.Errorf("object %d from %d changed: %d octets, want %d", number, ev.Peer, len(ev.Data), len(o.data))
				}
				from.out[e.id] = append(from.out[e.id][:i:i], from.out[e.id][i+1:]...)
				break
			}
		}
	}
}

// withFlush adds a FLUSH to the last segment of an object and to each repair after it, which asks at once for missing segments.
func (e *end) withFlush(to uint16, frames [][]byte, info elide.Info) [][]byte {
	for _, o := range e.out[to] {
		if o.id == info.Object {
			o.complete = o.complete || info.Last
			if o.complete {
				return append(frames, e.wire[to].Flush(nil, o.id, len(o.data)))
			}
		}
	}
	return frames
}

// transmit sends frames that share one datagram.
func (e *end) transmit(to uint16, repair bool, frames ...[]byte) {
	n := e.net
	n.frames++
	for _, f := range frames {
		n.octets += len(f)
	}
	if n.rnd.Float64() < n.loss {
		n.lost++
		return
	}
	n.carry(e, n.ends[to], frames, repair)
}

func (n *net2) arrive(from, to *end, frames [][]byte, _ bool) {
	if !to.up {
		return
	}
	for _, frame := range frames {
		packets, _, err := to.wire[from.id].Restore(frame)
		if err != nil {
			if to.downs+from.downs == 0 {
				n.t.Errorf("end %d: Restore(%x): %v", to.id, frame[:min(len(frame), 40)], err)
			}
			return
		}
		for _, p := range packets {
			to.sup.Do(api.NormInject{Peer: from.id, Data: p})
		}
	}
}

// ask sends one FLUSH for the last overdue object of each leg.
func (n *net2) ask() {
	for _, e := range n.ends {
		if !e.up {
			continue
		}
		for to, list := range e.out {
			for i := len(list) - 1; i >= 0; i-- {
				o := list[i]
				if !o.sentAt.IsZero() && time.Since(o.sentAt) > n.overdue {
					o.sentAt = time.Now()
					if o.asked++; o.asked > 5 {
						n.again[fmt.Sprint(e.id, to, o.number)] = true
						e.enqueue(to, o)
						break
					}
					e.transmit(to, false, e.wire[to].Flush(nil, o.id, len(o.data))) // after the queued frames
					break
				}
			}
		}
	}
}

// run runs until done says so.
func (n *net2) run(limit time.Duration, done func() bool) {
	n.t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case in := <-n.in:
			if in.do != nil {
				in.do()
			} else {
				in.end.handle(in.event)
			}
		case <-tick.C:
			n.ask()
		case <-deadline:
			for _, e := range n.ends {
				for to, list := range e.out {
					for _, o := range list {
						n.t.Logf("end %d to %d: object %d of %d octets (id %d, asked %d) not delivered", e.id, to, o.number,
							len(o.data), o.id, o.asked)
					}
				}
				n.t.Logf("end %d: up %v, %d ups, downs %q", e.id, e.up, e.ups, e.reasons)
			}
			n.t.Fatalf("not done after %v; %d frames, %d lost", limit, n.frames, n.lost)
		}
	}
}

func (n *net2) delivered() bool {
	for _, e := range n.ends {
		for _, list := range e.out {
			if len(list) > 0 {
				return false
			}
		}
	}
	return true
}

func (n *net2) allUp() bool {
	for _, e := range n.ends {
		if !e.up {
			return false
		}
	}
	return true
}

func filled(rnd *rand.Rand, octets int) []byte {
	b := make([]byte, octets)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

var sizes = []int{1, 447, 448, 2000, 20_000, 200_000}

func TestObjectsBothWays(t *testing.T) {
	for _, loss := range []float64{0, 0.05, 0.20} {
		t.Run(fmt.Sprintf("loss %v", loss), func(t *testing.T) {
			n := newNet(t, loss, 7, 100*time.Millisecond, 448, 4e6, 1, 40000)
			n.run(5*time.Second, n.allUp)
			start := time.Now()
			for i, size := range sizes {
				n.ends[1].send(40000, uint32(i), filled(n.rnd, size))
				n.ends[40000].send(1, uint32(i), filled(n.rnd, size))
			}
			n.run(60*time.Second, n.delivered)
			t.Logf("%v: %d frames, %d octets, %d lost, %d raw, packets %v", time.Since(start), n.frames, n.octets, n.lost,
				n.raw, n.packed)
			for _, e := range n.ends {
				if e.duplicates > 0 || e.downs > 0 {
					t.Errorf("end %d: %d duplicates, down %q", e.id, e.duplicates, e.reasons)
				}
			}
			if n.raw > 0 {
				t.Errorf("%d packets went raw", n.raw)
			}
		})
	}
}

// libnorm advertises the GRTT that normwire expects, so it need not be carried.
func TestGRTTOctet(t *testing.T) {
	for _, grtt := range []time.Duration{500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 4 * time.Second,
		6 * time.Second, 8 * time.Second, 15 * time.Second, 40 * time.Second} {
		n := newNet(t, 0, 1, grtt, 448, 1e6, 1, 2)
		n.run(5*time.Second, n.allUp)
		var frame []byte
		n.carry = func(_, _ *end, f [][]byte, _ bool) { frame = f[0] }
		n.ends[1].send(2, 1, []byte("hej"))
		n.run(5*time.Second, func() bool { return frame != nil })
		if want := 3 + elide.PrefixOctets + 8 + 3; len(frame) != want { // head, prefix, number, data
			t.Errorf("GRTT %v: frame of %d octets, want %d: %x", grtt, len(frame), want, frame)
		}
	}
}
