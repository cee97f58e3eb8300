package tcp

import (
	"net"
	"sync"

	"aldis/internal/jxta"
)

const small = 16 << 10 // octets; shorter bodies are copied together, so that one write takes many

// outbox holds the octets that the socket has not taken yet. A caller that finds it without a writer becomes the writer.
type outbox struct {
	mu      sync.Mutex
	cond    sync.Cond
	pending [][]byte
	octets  int // of pending
	writing bool
	err     error
	scratch []byte // the writer's
}

func (b *outbox) put(bodies [][]byte) {
	if len(bodies) == 0 {
		return
	}
	b.mu.Lock()
	for _, body := range bodies {
		b.octets += len(body)
	}
	b.pending = append(b.pending, bodies...)
	b.mu.Unlock()
}

// idle reports whether octets wait and nobody writes.
func (b *outbox) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending) > 0 && !b.writing && b.err == nil
}

// drain writes the pending octets, or with wait lets another writer do so and returns when few are left.
func (b *outbox) drain(p *Peer, wait bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.writing && wait && b.octets > maxPending && b.err == nil {
		b.cond.Wait()
	}
	if b.writing || b.err != nil {
		return b.err
	}
	b.writing = true
	for len(b.pending) > 0 && b.err == nil {
		bodies := b.pending
		b.pending, b.octets = nil, 0
		b.cond.Broadcast()
		b.mu.Unlock()
		err := b.write(p, bodies)
		b.mu.Lock()
		if err != nil && b.err == nil {
			b.err = err
		}
	}
	b.writing = false
	b.cond.Broadcast()
	return b.err
}

func (b *outbox) write(p *Peer, bodies [][]byte) error {
	b.scratch = b.scratch[:0]
	flush := func(more ...[]byte) error {
		parts := net.Buffers(append([][]byte{b.scratch}, more...))
		_, err := parts.WriteTo(p.conn)
		b.scratch = b.scratch[:0]
		return err
	}
	for _, body := range bodies {
		b.scratch = jxta.AppendPackageHeader(b.scratch, len(body))
		if len(body) >= small {
			if err := flush(body); err != nil {
				return err
			}
			continue
		}
		b.scratch = append(b.scratch, body...)
		if len(b.scratch) >= readBuffer {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(b.scratch) == 0 {
		return nil
	}
	return flush()
}

// end ends all waiting.
func (b *outbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.cond.Broadcast()
}
