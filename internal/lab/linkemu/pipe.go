package linkemu

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"

	"aldis/internal/link/profile"
)

// pipe is one direction of one node: a queue, a rate, and the fate of frames sent.
type pipe struct {
	node    *node
	dir     profile.Direction
	stats   *Counters
	rng     *rand.Rand
	queue   []queued
	waiting int // octets in queue
	busy    bool
	bad     bool      // Gilbert-Elliott state
	last    time.Time // latest arrival: jitter lets nothing overtake
	wild    Wild
	twins   *rand.Rand // for frames that arrive twice

	fades      *spells     // nil: none
	compressor *compressor // nil: none
	measured   Measured    // fates that replace those of the profile; empty: the profile counts
	begin      time.Time   // time of the first of them
}

// queued is a frame and the time when it came.
type queued struct {
	Frame
	since time.Time
}

type fate bool

const (
	kept fate = true
	lost fate = false
)

// newPipe seeds the pipe's generator from the seed, the node's name and the direction: the fates of one pipe do not depend on the other
// nodes.
func newPipe(n *node, d profile.Direction, cfg Config, direction string, st *Counters, m Measured) *pipe {
	p := &pipe{node: n, dir: d, stats: st, rng: generator(cfg.Seed, n.Name, direction), measured: m}
	p.wild, p.twins = cfg.Wild, generator(cfg.Seed, n.Name, direction+" twins")
	p.wild.Reorder = p.wild.Reorder || n.Profile.Reorder
	p.fades = newSpells(generator(cfg.Seed, n.Name, direction+" fades"), d.Fades.Every, d.Fades.Lasts, false)
	if d.Compresses {
		p.compressor = new(compressor)
	}
	return p
}

// generator is the generator for one kind of random event at a node.
func generator(seed uint64, name, what string) *rand.Rand {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, seed))
	h.Write([]byte(name + "\x00" + what))
	sum := h.Sum(nil)
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])))
}

// enqueue takes a frame unless the queue is full. The frame that is on the air is no longer in the queue.
func (p *pipe) enqueue(now time.Time, f Frame) bool {
	p.stats.Offered.add(f.Octets)
	if q, n := p.dir.QueueOctets, p.dir.QueueFrames; q > 0 && p.waiting+f.Octets > q || n > 0 && len(p.queue) >= n {
		p.stats.DroppedQueue.add(f.Octets)
		return false
	}
	p.queue = append(p.queue, queued{f, now})
	p.waiting += f.Octets
	p.stats.QueueMax = max(p.stats.QueueMax, p.waiting)
	return true
}

// waits drops the frames that are too old, and says whether any are left.
func (p *pipe) waits(now time.Time) bool {
	for age := p.dir.QueueAge; age > 0 && len(p.queue) > 0 && now.Sub(p.queue[0].since) > age; {
		p.stats.DroppedQueue.add(p.pop().Octets)
	}
	return len(p.queue) > 0
}

// dequeue takes the first frame that is not too old; false: there is none.
func (p *pipe) dequeue(now time.Time) (Frame, bool) {
	if !p.waits(now) {
		return Frame{}, false
	}
	return p.pop(), true
}

func (p *pipe) pop() Frame {
	f := p.queue[0].Frame
	p.queue[0] = queued{} // frees the data
	p.queue = p.queue[1:]
	p.waiting -= f.Octets
	return f
}

// airtime is how long a frame that is sent now is on the air.
func (p *pipe) airtime(f Frame) time.Duration {
	octets := f.Octets
	if p.compressor != nil {
		octets = p.compressor.octets(f)
	}
	return p.node.Profile.Airtime(p.dir, octets)
}

// fate draws loss and arrival of the next frame, which was on the air from start to end. Always four draws, so that the k-th
// frame's fate does not depend on the sizes of those before it; fades have a generator of their own.
func (p *pipe) fate(start, end time.Time, octets int) (time.Time, fate) {
	jitter, single, change, burst := p.rng.Float64(), p.rng.Float64(), p.rng.Float64(), p.rng.Float64()
	if p.bad {
		p.bad = change >= p.dir.GEr
	} else {
		p.bad = change < p.dir.GEp
	}
	pct := p.dir.GEGoodPct
	if p.bad {
		pct = p.dir.GEBadPct
	}
	keep := 1 - p.dir.LossPct/100
	if ref := p.dir.LossRef; ref > 0 {
		keep = math.Pow(keep, math.Ceil(float64(octets)/float64(ref)))
	}
	at := end.Add(p.dir.Delay + time.Duration(jitter*float64(p.dir.Jitter)))
	gone := single >= keep || burst*100 < pct || p.fades.during(start, end) && p.fades.rng.Float64()*100 < p.dir.Fades.LossPct
	if len(p.measured) > 0 {
		if p.begin.IsZero() {
			p.begin = start
		}
		met := p.measured.at(start.Sub(p.begin))
		at, gone = end.Add(met.Delay), met.Lost
	}
	if gone {
		return at, lost // a lost frame delays no other
	}
	return p.inOrder(at), kept
}

// inOrder is the arrival of a frame that would arrive at at, but not before earlier frames.
func (p *pipe) inOrder(at time.Time) time.Time {
	if !p.wild.Reorder && at.Before(p.last) {
		return p.last
	}
	p.last = at
	return at
}

// twin is when the frame that was sent by end arrives a second time; false: it does not. Its draws do not change another frame's fate.
func (p *pipe) twin(end time.Time) (time.Time, bool) {
	if p.wild.TwicePct == 0 || p.twins.Float64()*100 >= p.wild.TwicePct {
		return time.Time{}, false
	}
	return p.inOrder(end.Add(p.dir.Delay + time.Duration(p.twins.Float64()*float64(p.dir.Jitter)))), true
}
