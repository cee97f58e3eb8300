package lan

import (
	"slices"
	"sync"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

const (
	batchCount = 64 // bodies of one write
	batchSize  = 256 << 10
)

// outgoing is one body with its header block, or a bare line. Over HTTP a body has no header block.
type outgoing struct {
	header, octets []byte
	rest           [][]byte // follow octets
	sign           string   // source of the trailer that is still to be made; empty: none
	token          uint64
	message        bool
	signed         bool
	unsigned       int // size before it was signed
}

func (o outgoing) size() int {
	n := len(o.header) + len(o.octets)
	for _, b := range o.rest {
		n += len(b)
	}
	return n
}

// cost is what it counts for while it waits: the same with its trailer and without.
func (o outgoing) cost() int {
	if o.signed || o.sign != "" {
		return o.unsigned + jxta.TrailerRoom
	}
	return o.size()
}

// outbox is what waits to be written to one connection or poll.
type outbox struct {
	lan    *LAN
	id     site.ConnID
	remote string // address of the peer with port
	bare   bool   // bodies go without a header block
	single bool   // one body a batch
	cut    func() // ends the connection at once

	gone     chan struct{} // closed with the connection
	mu       sync.Mutex
	more     sync.Cond // something was queued, or the end came
	waiting  []outgoing
	octets   int  // of waiting and of what is being written
	finished bool // write what waits, then close
	closed   bool
	shut     bool      // nothing is to be read
	opened   sync.Cond // it may be read again, or has closed
}

func (b *outbox) init(l *LAN, id site.ConnID, remote string, cut func()) {
	b.lan, b.id, b.remote, b.cut = l, id, remote, cut
	b.more.L, b.opened.L = &b.mu, &b.mu
	b.gone = make(chan struct{})
}

// close ends both directions at once.
func (b *outbox) close() {
	b.stop()
	b.cut()
}

// stop lets nothing more be read or written.
func (b *outbox) stop() {
	b.mu.Lock()
	if !b.closed {
		close(b.gone)
	}
	b.closed = true
	b.more.Signal()
	b.opened.Signal()
	b.mu.Unlock()
}

func (b *outbox) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// finish closes after what waits was written.
func (b *outbox) finish() {
	b.mu.Lock()
	b.finished = true
	b.more.Signal()
	b.mu.Unlock()
}

// gate shuts or opens the reading side.
func (b *outbox) gate(shut bool) {
	b.mu.Lock()
	b.shut = shut
	b.opened.Signal()
	b.mu.Unlock()
}

// wait returns true when the connection may be read, false when this side has closed it: nobody wants any more the
// messages that a reader still holds of a closed connection.
func (b *outbox) wait() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.shut && !b.closed {
		b.opened.Wait()
	}
	return !b.closed
}

func (b *outbox) queue(o outgoing) {
	b.mu.Lock()
	if b.closed || b.finished {
		b.mu.Unlock()
		return
	}
	full := b.octets+o.cost() > b.lan.cfg.MaxQueue
	if !full {
		b.waiting = append(b.waiting, o)
		b.octets += o.cost()
		b.more.Signal()
	}
	b.mu.Unlock()
	if full {
		b.lan.refuse("queue_full", b.remote, nil)
		b.close()
	}
}

// nextBatch waits for something to write; nil is the end. It signs the messages that are to be signed: here, in a
// goroutine of each connection, so that a fan-out keeps all processors busy and not the loop.
func (b *outbox) nextBatch() []outgoing {
	batch := b.wanted()
	for i := range batch {
		o := &batch[i]
		if o.sign == "" {
			continue
		}
		body, err := b.lan.cfg.Sign(o.octets, o.sign)
		if err != nil { // the key is ours: only a broken one does that
			b.lan.refuse("own_signature", b.remote, err)
			b.close()
			return nil
		}
		o.octets, o.sign, o.signed = body, "", true
		if o.header != nil {
			o.header = jxta.AppendPackageHeader(nil, len(body))
		}
	}
	return batch
}

func (b *outbox) wanted() []outgoing {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) == 0 && !b.closed && !b.finished {
		b.more.Wait()
	}
	if b.closed || len(b.waiting) == 0 {
		return nil
	}
	count, size := 0, 0
	most := batchCount
	if b.single {
		most = 1
	}
	for count < len(b.waiting) && count < most && (count == 0 || size+b.waiting[count].cost() <= batchSize) {
		size += b.waiting[count].cost()
		count++
	}
	batch := slices.Clone(b.waiting[:count])
	clear(b.waiting[:count]) // the bodies are not kept alive by what was written
	b.waiting = b.waiting[count:]
	if len(b.waiting) == 0 {
		b.waiting = nil
	}
	return batch
}

func sizeOf(batch []outgoing) (size int) {
	for _, o := range batch {
		size += o.size()
	}
	return size
}

// written tells of a batch that the peer has taken.
func (b *outbox) written(batch []outgoing) {
	var token uint64
	bodies, cost := 0, 0
	for _, o := range batch {
		cost += o.cost()
		if o.message {
			bodies++
		}
		if o.token != 0 {
			token = o.token
		}
	}
	b.lan.metrics.Messages.WithLabelValues("out").Add(float64(bodies))
	b.mu.Lock()
	b.octets -= cost
	b.mu.Unlock()
	if token != 0 {
		b.lan.post(jxtabridge.Written{Conn: b.id, Token: token})
	}
}
