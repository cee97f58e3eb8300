package lan

import (
	"slices"
	"sync"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

const (
	batchCount = 64 // bodies in one write
	batchSize  = 256 << 10
)

// outgoing is one body with its header block, or a bare line. Over HTTP a body has no header block.
type outgoing struct {
	header, octets []byte
	rest           [][]byte // parts behind octets
	sign           string   // source for which a trailer must still be made; empty: none
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

// cost is its size in the queue; a trailer that is still to be made counts already.
func (o outgoing) cost() int {
	if o.signed || o.sign != "" {
		return o.unsigned + jxta.TrailerRoom
	}
	return o.size()
}

// outbox is the queue of messages to one connection or poll.
type outbox struct {
	lan    *LAN
	id     site.ConnID
	remote string // address of the peer with port
	bare   bool   // bodies go without a header block
	single bool   // a batch has one body
	cut    func() // closes the connection at once

	gone     chan struct{} // closed with the connection
	mu       sync.Mutex
	more     sync.Cond // the queue is not empty, or is finished or closed
	waiting  []outgoing
	octets   int  // of waiting and of the batch that is being written
	finished bool // write the queue, then close
	closed   bool
	shut     bool      // the connection must not be read
	opened   sync.Cond // it may be read again, or is closed
}

func (b *outbox) init(l *LAN, id site.ConnID, remote string, cut func()) {
	b.lan, b.id, b.remote, b.cut = l, id, remote, cut
	b.more.L, b.opened.L = &b.mu, &b.mu
	b.gone = make(chan struct{})
}

// close closes both directions at once.
func (b *outbox) close() {
	b.stop()
	b.cut()
}

// stop ends reading and writing.
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

// finish closes once the queue has been written.
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

// wait returns true when the connection may be read, and false when this side has closed it: messages that a reader still holds
// of a closed connection are not wanted.
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

// nextBatch waits for messages to write; nil: there will be none. It makes the trailers here, in a goroutine of each
// connection, so that a fan-out uses all processors and not the loop.
func (b *outbox) nextBatch() []outgoing {
	batch := b.wanted()
	for i := range batch {
		o := &batch[i]
		if o.sign == "" {
			continue
		}
		body, err := b.lan.cfg.Sign(o.octets, o.sign)
		if err != nil { // the key is our own: only a broken key fails
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
	clear(b.waiting[:count]) // so that this array keeps no written bodies alive
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

// written reports a batch that the peer has received.
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
