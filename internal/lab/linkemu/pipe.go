package linkemu

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"

	"aldis/internal/link/profile"
)

// pipe is one direction of one node: a queue, a rate, and the fate of what has been sent.
type pipe struct {
	node    *node
	dir     profile.Direction
	stats   *Counters
	rng     *rand.Rand
	queue   []Frame
	waiting int // octets in queue
	busy    bool
	bad     bool      // Gilbert-Elliott state
	last    time.Time // latest arrival: jitter lets nothing overtake
}

type fate bool

const (
	kept fate = true
	lost fate = false
)

// newPipe seeds the pipe's generator from the seed, the node's name and the direction: the fates of one pipe do not
// depend on what other nodes there are.
func newPipe(n *node, d profile.Direction, seed uint64, direction string, st *Counters) *pipe {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, seed))
	h.Write([]byte(n.Name + "\x00" + direction))
	sum := h.Sum(nil)
	rng := rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])))
	return &pipe{node: n, dir: d, stats: st, rng: rng}
}

// enqueue takes a frame unless the queue is full. The frame that is on the air is no longer in the queue.
func (p *pipe) enqueue(f Frame) bool {
	p.stats.Offered.add(f.Octets)
	if q := p.dir.QueueOctets; q > 0 && p.waiting+f.Octets > q {
		p.stats.DroppedQueue.add(f.Octets)
		return false
	}
	p.queue = append(p.queue, f)
	p.waiting += f.Octets
	p.stats.QueueMax = max(p.stats.QueueMax, p.waiting)
	return true
}

func (p *pipe) dequeue() Frame {
	f := p.queue[0]
	p.queue[0] = Frame{} // lets go of the data
	p.queue = p.queue[1:]
	p.waiting -= f.Octets
	return f
}

// fate draws loss and arrival of the next frame that leaves the pipe at end. Always four draws, so that the k-th
// frame's fate does not depend on the sizes of those before it.
func (p *pipe) fate(end time.Time, octets int) (time.Time, fate) {
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
	if single >= keep || burst*100 < pct {
		return at, lost // a lost frame holds nobody up
	}
	if !p.node.Profile.Reorder && at.Before(p.last) {
		at = p.last
	}
	p.last = at
	return at, kept
}
