package quorum

import (
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"aldis/internal/gateway/pair"
)

var only = flag.Uint64("seed", 0, "the only seed")

// disk is what a machine finds when it starts.
type disk struct {
	stored Stored
	at     At
	log    []Entry
	state  []uint64 // the data of the entries until at, in their order
}

func (d *disk) clone() *disk {
	return &disk{d.stored, d.at, slices.Clone(d.log), slices.Clone(d.state)}
}

func (d *disk) apply(list []Entry) {
	for _, e := range list {
		if e.Index <= d.at.Index {
			continue
		}
		if e.Index != d.at.Index+1 {
			panic(fmt.Sprintf("entry %d is applied behind %d", e.Index, d.at.Index))
		}
		if len(e.Data) > 0 {
			d.state = append(d.state, binary.BigEndian.Uint64(e.Data))
		}
		d.at = e.At
	}
	for len(d.log) > 0 && d.log[0].Index <= d.at.Index {
		d.log = d.log[1:]
	}
}

// write makes the state and the entries of a Work durable.
func (d *disk) write(w *Work) {
	if w.Stored != nil {
		d.stored = *w.Stored
	}
	if at, ok := w.Base(); ok {
		d.at = at
	}
	if len(w.Entries) > 0 {
		for len(d.log) > 0 && d.log[len(d.log)-1].Index >= w.Entries[0].Index {
			d.log = d.log[:len(d.log)-1]
		}
		d.log = append(d.log, w.Entries...)
	}
}

type box struct {
	*disk
	old     *disk
	m       *Machine
	work    *Work
	pending []Entry // committed, and not in the journal yet
	frozen  bool
	slow    bool
	held    []func() // while it is frozen
	waits   map[uint64]bool
	leads   bool
}

type world struct {
	t         *testing.T
	seed      uint64
	chance    *rand.Rand
	now       time.Duration
	seq       int
	events    []event
	boxes     []*box
	cut       map[[2]int]bool
	linked    map[[2]int]uint64 // connections, each with a number
	next      uint64
	confirmed map[uint64]bool
	said      map[raftpb.MessageType]int // messages of the library that were sent
	mute      bool                       // nobody has a message
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	e := event{w.now + d, w.seq, do}
	i, _ := slices.BinarySearchFunc(w.events, e, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	w.events = slices.Insert(w.events, i, e)
}

func (w *world) wait(most time.Duration) time.Duration {
	return time.Duration(w.chance.Int64N(int64(most)))
}

func key(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

func (w *world) start(i int) {
	b := w.boxes[i]
	m, err := New(w.now, Config{Self: i, Members: len(w.boxes), Chance: w.chance.Uint64()}, b.stored, b.at, b.log)
	if err != nil {
		w.t.Fatal(err)
	}
	b.m, b.work, b.pending, b.waits, b.leads = m, nil, nil, map[uint64]bool{}, false
	w.tick(i, m)
}

func (w *world) kill(i int) {
	b := w.boxes[i]
	if b.m == nil {
		return
	}
	if b.work != nil && w.chance.IntN(2) == 0 { // it was on the disk, and nobody was told
		b.write(b.work)
	}
	b.m, b.work, b.held, b.frozen = nil, nil, nil, false
	for j := range w.boxes {
		w.part(i, j)
	}
}

// tick steps a machine as often as it wants.
func (w *world) tick(i int, m *Machine) {
	if w.boxes[i].m != m {
		return
	}
	at := w.now + 50*time.Millisecond
	w.run(i, func() { at = w.step(i, nil) })
	w.after(max(at-w.now, time.Millisecond), func() { w.tick(i, m) })
}

// run does something on a machine, once it is not frozen.
func (w *world) run(i int, do func()) {
	b := w.boxes[i]
	if b.frozen {
		b.held = append(b.held, do)
		return
	}
	do()
}

func (w *world) step(i int, ev Event) time.Duration {
	b := w.boxes[i]
	out := b.m.Step(w.now, ev)
	if out.Strange != "" {
		w.t.Fatalf("seed %d, at %v machine %d does not take %s", w.seed, w.now, i, out.Strange)
	}
	w.send(i, out.Send)
	w.copies(i, out.Copy)
	w.look(i)
	w.begin(i)
	return out.Deadline
}

// begin begins the work that is to be made durable.
func (w *world) begin(i int) {
	b := w.boxes[i]
	if b.m == nil || b.work != nil {
		return
	}
	k := b.m.Work()
	if k == nil {
		return
	}
	b.work = k
	w.send(i, k.Early)
	w.copies(i, k.Copy)
	b.pending = append(b.pending, k.Committed...)
	for _, e := range k.Committed {
		if len(e.Data) > 0 && b.m.Role() == pair.Leading && b.waits[binary.BigEndian.Uint64(e.Data)] {
			w.confirmed[binary.BigEndian.Uint64(e.Data)] = true
		}
	}
	took, m := w.wait(3*time.Millisecond), b.m
	if b.slow {
		took = 200 * time.Millisecond
	}
	ready := b.pending[:len(b.pending):len(b.pending)]
	w.after(took, func() {
		w.run(i, func() {
			if b.m != m || b.work != k {
				return
			}
			b.write(k)
			b.apply(ready)
			b.pending = b.pending[len(ready):]
			b.work = nil
			w.send(i, m.Done())
			if k.Stored != nil && !k.Stored.Whole { // it says hello anew
				for j := range w.boxes {
					w.part(i, j)
				}
			}
			w.look(i)
			w.begin(i)
		})
	})
}

func (w *world) send(from int, list []Sent) {
	for _, s := range list {
		conn, there := w.linked[key(from, s.To)]
		if !there || w.cut[key(from, s.To)] {
			continue
		}
		x := s.Message
		if x.Kind == KindRaft {
			is := &raftpb.Message{}
			if err := proto.Unmarshal(x.Raft, is); err != nil {
				w.t.Fatal(err)
			}
			w.said[is.GetType()]++
		}
		w.after(time.Millisecond, func() {
			w.run(s.To, func() {
				if w.linked[key(from, s.To)] == conn && w.boxes[s.To].m != nil {
					w.step(s.To, Heard{from, x})
				}
			})
		})
	}
}

// copies gives members copies of the journal.
func (w *world) copies(from int, to []int) {
	for _, i := range to {
		conn := w.linked[key(from, i)]
		src := w.boxes[from].clone()
		src.apply(w.boxes[from].pending)
		w.after(200*time.Millisecond, func() {
			b := w.boxes[i]
			if w.linked[key(from, i)] != conn || b.m == nil || b.work != nil || b.frozen || w.cut[key(from, i)] {
				w.part(from, i)
				return
			}
			b.stored = b.m.Stored().Given(src.at, src.stored.Term)
			b.disk = &disk{stored: b.stored, at: src.at, state: slices.Clone(src.state)}
			w.kill(i)
			w.start(i)
		})
	}
}

func (w *world) part(i, j int) {
	if _, there := w.linked[key(i, j)]; !there {
		return
	}
	delete(w.linked, key(i, j))
	for _, k := range [][2]int{{i, j}, {j, i}} {
		w.run(k[0], func() {
			if w.boxes[k[0]].m != nil {
				w.step(k[0], Parted{k[1]})
			}
		})
	}
}

// connect makes connections where there are none.
func (w *world) connect() {
	for i := range w.boxes {
		for j := range i {
			a, b := w.boxes[i], w.boxes[j]
			if w.cut[key(i, j)] {
				if w.chance.IntN(4) == 0 {
					w.part(i, j)
				}
				continue
			}
			if _, there := w.linked[key(i, j)]; there || a.m == nil || b.m == nil || a.frozen || b.frozen {
				continue
			}
			w.seq++
			w.linked[key(i, j)] = uint64(w.seq)
			ha, hb := a.m.Hello(), b.m.Hello()
			w.step(i, Met{j, hb})
			w.step(j, Met{i, ha})
		}
	}
	w.after(300*time.Millisecond, w.connect)
}

func (w *world) transmits(i int) bool {
	m := w.boxes[i].m
	return m != nil && w.now < m.Lease()
}

// look checks what must always hold, and has leaders accept messages.
func (w *world) look(i int) {
	b := w.boxes[i]
	if b.m == nil {
		return
	}
	for j := range w.boxes {
		if i != j && w.transmits(i) && w.transmits(j) {
			w.t.Fatalf("seed %d, at %v machines %d and %d both transmit", w.seed, w.now, i, j)
		}
	}
	leads := b.m.Role() == pair.Leading
	if leads && !b.leads {
		b.waits = map[uint64]bool{}
		all := b.clone()
		all.apply(b.pending)
		have := map[uint64]bool{}
		for _, n := range all.state {
			if have[n] {
				w.t.Fatalf("seed %d, at %v machine %d leads and has message %d twice", w.seed, w.now, i, n)
			}
			have[n] = true
		}
		for n := range w.confirmed {
			if !have[n] {
				w.t.Fatalf("seed %d, at %v machine %d leads and lacks message %d, which was confirmed", w.seed, w.now, i, n)
			}
		}
	}
	b.leads = leads
}

func (w *world) load() {
	for i, b := range w.boxes {
		w.run(i, func() {
			if !w.mute && b.m != nil && b.m.Role() == pair.Leading && b.m.Propose(binary.BigEndian.AppendUint64(nil, w.next)) == nil {
				b.waits[w.next] = true
				w.next++
				w.begin(i)
			}
		})
	}
	w.after(150*time.Millisecond, w.load)
}

func (w *world) until(at time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= at {
		e := w.events[0]
		w.events = w.events[1:]
		w.now = e.at
		e.do()
	}
	w.now = at
}

func (w *world) pass(d time.Duration) { w.until(w.now + d) }

func (w *world) leader() int {
	for i := range w.boxes {
		if w.transmits(i) {
			return i
		}
	}
	return -1
}

// led passes time until somebody leads.
func (w *world) led(most time.Duration) time.Duration {
	began := w.now
	for w.leader() < 0 {
		if w.now-began > most {
			for i, b := range w.boxes {
				if b.m != nil {
					w.t.Logf("machine %d: %v, %+v, forgetful %v, frozen %v, working %v, promise until %v, asks at %v, journal at %+v", i, b.m.Role(), b.m.Stored(), b.m.Forgetful(), b.frozen, b.work != nil, b.m.promise, b.m.nextAsk, b.at)
				}
			}
			w.t.Fatalf("seed %d, at %v nobody leads after %v; connected are %v", w.seed, w.now, most, w.linked)
		}
		w.pass(20 * time.Millisecond)
	}
	return w.now - began
}

func newWorld(t *testing.T, seed uint64, members int) *world {
	w := &world{t: t, seed: seed, chance: rand.New(rand.NewPCG(seed, 1)), cut: map[[2]int]bool{}, linked: map[[2]int]uint64{}, confirmed: map[uint64]bool{}, said: map[raftpb.MessageType]int{}, next: 1}
	for i := range members {
		w.boxes = append(w.boxes, &box{disk: &disk{stored: Stored{Machine: uint64(i + 1)}}})
	}
	for i := range members {
		w.start(i)
	}
	w.connect()
	w.load()
	return w
}
