package pair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world is a site of two and its witness in virtual time. Its journals are lists of texts, the disks do what they say.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	now     time.Duration
	box     [2]*box
	judge   Witness
	witness bool
	cut     bool // between the two
	parted  time.Duration
	away    [2]bool // of the witness, for each
	wire    []parcel
	last    [3][3]time.Duration // when the last parcel on a way arrives
	next    int                 // text
	done    map[int]bool
	sent    [2]time.Duration // when each transmitted last
	led     int              // leaderships
	spoke   int              // datagrams
	trace   []string
}

// box is a machine: what is durable, and the process that runs on it.
type box struct {
	stored   Stored
	log      []bool // by text
	run, seq uint64

	on       bool // power
	stopped  bool // SIGSTOP
	m        *Machine
	rate     float64 // of its clock
	offset   time.Duration
	line     int // of the connection; 0: there is none
	attached bool
	acked    uint64
	role     Role
	epoch    uint64
	waiting  map[uint64]int // commit -> text
	leader   uint64         // run of the leadership
}

type parcel struct {
	at   time.Duration
	to   int // box; 2: the witness
	from int
	line int // parcels on this line wait while it is cut, as with TCP
	what any
}

type (
	snapshot struct {
		log             []bool
		epoch, run, seq uint64
	}
	commit struct {
		epoch, run, seq uint64
		text            int
	}
	acked struct{ seq uint64 }
)

func newWorld(t *testing.T, seed uint64, witness bool) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 5)), witness: witness, done: map[int]bool{}}
	for i := range w.box {
		w.box[i] = &box{stored: Stored{Machine: uint64(i + 1)}, rate: 1 + 0.02*(w.rng.Float64()-0.5), offset: time.Duration(w.rng.IntN(1000)) * time.Hour}
		w.start(i)
	}
	return w
}

func (w *world) clock(i int) time.Duration {
	return w.box[i].offset + time.Duration(float64(w.now)*w.box[i].rate)
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) start(i int) {
	b := w.box[i]
	b.on, b.stopped, b.line, b.attached, b.role, b.waiting = true, false, 0, false, Waiting, map[uint64]int{}
	b.m = New(w.clock(i), b.stored, w.witness, func() (uint64, uint64) { return b.run, b.seq })
	w.note("%d starts %+v", i, b.stored)
}

func (w *world) kill(i int) {
	w.note("%d is killed", i)
	w.box[i].on, w.box[i].m = false, nil
	w.part()
}

// part ends the connection.
func (w *world) part() {
	for i, b := range w.box {
		if b.line != 0 {
			b.line, b.attached = 0, false
			if b.on {
				w.put(i, i, 0, Parted{})
			}
		}
	}
}

func (w *world) put(to, from, line int, what any) {
	at := w.now + time.Duration(1+w.rng.IntN(5))*time.Millisecond
	w.last[to][from] = max(at, w.last[to][from]) // in order
	at = w.last[to][from]
	w.wire = append(w.wire, parcel{at: at, to: to, from: from, line: line, what: what})
}

// connect joins the two where the network lets it.
func (w *world) connect(line int) {
	a, b := w.box[0], w.box[1]
	if w.cut || !a.on || !b.on || a.stopped || b.stopped || a.line != 0 {
		return
	}
	a.line, b.line = line, line
	for i, x := range w.box {
		x.attached, x.acked = false, 0
		w.put(1-i, i, line, x.m.Hello())
	}
}

func (w *world) step(i int, ev Event) {
	b := w.box[i]
	out := b.m.Step(w.clock(i), ev)
	if out.Store != nil {
		b.stored = *out.Store
	}
	if role, epoch := b.m.Role(), b.m.Stored().Epoch; role != b.role || role == Leading && epoch != b.epoch {
		w.note("%d is %v: %+v", i, role, b.m.Stored())
		if role == Leading && b.role != Leading {
			w.led++
			for text := range w.done {
				if text >= len(b.log) || !b.log[text] {
					w.fail("machine %d leads epoch %d without the confirmed text %d", i, epoch, text)
				}
			}
			b.leader = w.rng.Uint64()
			b.run, b.seq = b.leader, 0
		}
		if role != Leading {
			b.waiting, b.attached = map[uint64]int{}, false
		}
		b.role, b.epoch = role, epoch
	}
	for _, m := range out.Send {
		if m.Kind != KindBeat && m.Kind != KindAnswer {
			w.note("%d says %+v", i, m)
		}
		if b.line != 0 {
			w.put(1-i, i, b.line, m)
		}
	}
	if out.Ask != nil && !w.away[i] {
		w.put(2, i, 0, *out.Ask)
	}
	w.confirm(i)
}

// confirm confirms to local peers the texts that are on two disks, or on one that is alone.
func (w *world) confirm(i int) {
	b := w.box[i]
	if b.role != Leading {
		return
	}
	for seq, text := range b.waiting {
		if b.m.Alone() || b.attached && b.acked >= seq {
			w.done[text] = true
			delete(b.waiting, seq)
		}
	}
}

func (w *world) deliver(p parcel) {
	if p.to == 2 {
		if !w.away[p.from] {
			w.put(p.from, 2, 0, w.judge.Judge(p.what.(Claim)))
		}
		return
	}
	b := w.box[p.to]
	if !b.on || p.line != 0 && p.line != b.line || p.from == 2 && w.away[p.to] {
		return
	}
	switch x := p.what.(type) {
	case Hello:
		w.step(p.to, Met{x})
	case snapshot:
		if !b.m.Accepts(x.epoch) {
			w.part()
			return
		}
		b.log, b.run, b.seq = slices.Clone(x.log), x.run, x.seq
		w.put(p.from, p.to, p.line, acked{x.seq})
	case commit:
		if !b.m.Accepts(x.epoch) {
			w.part()
			return
		}
		b.log, b.run, b.seq = with(b.log, x.text), x.run, x.seq
		w.put(p.from, p.to, p.line, acked{x.seq})
	case acked:
		if b.role == Leading && b.attached {
			b.acked = x.seq
			if b.acked == b.seq {
				w.step(p.to, Caught{})
			}
			w.confirm(p.to)
		}
	case Event:
		w.step(p.to, x)
	}
}

func with(log []bool, text int) []bool {
	log = append(log, make([]bool, max(0, text+1-len(log)))...)
	log[text] = true
	return log
}

// accept has a leader take a text of a local peer.
func (w *world) accept(i int) {
	b := w.box[i]
	w.next++
	b.log, b.seq = with(b.log, w.next), b.seq+1
	b.waiting[b.seq] = w.next
	if b.attached {
		w.put(1-i, i, b.line, commit{b.epoch, b.run, b.seq, w.next})
	}
	w.confirm(i)
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	tail := w.trace
	if len(tail) > 60 {
		tail = tail[len(tail)-60:]
	}
	for _, line := range tail {
		w.t.Log(line)
	}
	w.t.Fatalf("at %v: %s", w.now, fmt.Sprintf(format, args...))
}

const tick = 5 * time.Millisecond

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += tick {
		if !w.cut {
			w.parted = w.now + 3*time.Second
		} else if w.now > w.parted { // nothing was heard for so long
			w.part()
		}
		w.connect(int(w.now/tick) + 1)
		for {
			i := slices.IndexFunc(w.wire, func(p parcel) bool {
				return p.at <= w.now && (p.to == 2 || !w.box[p.to].stopped) && !(w.cut && p.line != 0)
			})
			if i < 0 {
				break
			}
			p := w.wire[i]
			w.wire = slices.Delete(w.wire, i, i+1)
			w.deliver(p)
		}
		for i, b := range w.box {
			if !b.on || b.stopped {
				continue
			}
			w.step(i, nil)
			if b.line != 0 && !b.attached && b.m.Followed() {
				b.attached = true
				w.put(1-i, i, b.line, snapshot{slices.Clone(b.log), b.epoch, b.run, b.seq})
			}
			if b.role == Leading && len(b.waiting) < 50 && w.rng.IntN(4) == 0 {
				w.accept(i)
			}
			if b.role == Leading && b.m.MayTransmit(w.clock(i)) {
				w.spoke++
				w.sent[i] = w.now
				if other := w.box[1-i]; other.on && other.role == Leading && !other.stopped && other.m.MayTransmit(w.clock(1-i)) {
					w.fail("both transmit")
				}
			}
		}
	}
}

// leader is the machine that leads and may transmit; -1: none does.
func (w *world) leader() int {
	for i, b := range w.box {
		if b.on && !b.stopped && b.role == Leading && b.m.MayTransmit(w.clock(i)) {
			return i
		}
	}
	return -1
}

// within passes time until f holds.
func (w *world) within(most time.Duration, what string, f func() bool) time.Duration {
	w.t.Helper()
	began := w.now
	for !f() {
		if w.now-began > most {
			w.fail("not within %v: %s", most, what)
		}
		w.pass(tick)
	}
	return w.now - began
}

// settled is a site of two, both whole.
func (w *world) settled() {
	w.t.Helper()
	w.within(10*time.Second, "one leads, and the other is whole", func() bool {
		i := w.leader()
		return i >= 0 && !w.box[i].m.Alone() && w.box[1-i].role == Following && w.box[1-i].stored.Whole
	})
}
