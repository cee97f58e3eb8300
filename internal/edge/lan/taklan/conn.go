package taklan

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/site"
)

// conn is one stream.
type conn struct {
	lan    *LAN
	id     site.ConnID
	net    net.Conn
	remote string
	server bool // the gateway has called a server
	host   string
	wake   chan struct{} // events wait, or the stream has closed

	mu      sync.Mutex
	proto   bool     // events that are queued from now on are version 1
	waiting [][]byte // events to write; all their receivers share them
	octets  int      // of them
	asked   []uint64 // tokens of them
	closed  bool
	taken   taken
}

// handshakeTime is how long a device may take for the TLS handshake.
const handshakeTime = 10 * time.Second

// greeted says whether a TLS handshake has succeeded; TCP has none.
func (n *conn) greeted() bool {
	t, ok := n.net.(*tls.Conn)
	if !ok {
		return true
	}
	t.SetDeadline(time.Now().Add(handshakeTime))
	if err := t.HandshakeContext(n.lan.life); err != nil {
		n.lan.refuse("tls", n.remote, err)
		return false
	}
	t.SetDeadline(time.Time{})
	return true
}

// lookAgain is how often the certificate of a device is checked again, when the device sends; ATAK pings every 15 s.
const lookAgain = 5 * time.Second

// welcome says whether a device's certificate is still good.
func (n *conn) welcome() bool {
	t, ok := n.net.(*tls.Conn)
	if !ok || n.server || n.lan.cfg.Verify == nil {
		return true
	}
	if err := n.lan.cfg.Verify(t.ConnectionState()); err != nil {
		n.lan.refuse("tls", n.remote, err)
		return false
	}
	return true
}

func (n *conn) run() {
	defer n.lan.wait.Done()
	if !n.greeted() {
		n.net.Close()
		n.lan.forget(n)
		return
	}
	n.lan.post(tak.Opened{Conn: n.id, Remote: n.remote, Server: n.server})
	written := make(chan struct{})
	go func() {
		defer close(written)
		n.write()
	}()
	n.read()
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.nudge()
	n.net.Close()
	<-written
	n.taken.end()
	n.lan.forget(n)
	n.lan.post(tak.Closed{Conn: n.id})
}

// read posts the device's events until the device leaves or breaks a rule. A device may be silent for ever between events; TCP
// keepalive notices a dead one.
func (n *conn) read() {
	var s cot.Splitter
	buf := make([]byte, 16<<10)
	began := time.Time{} // of an incomplete event
	looked := time.Now()
	for {
		deadline := time.Time{}
		if !began.IsZero() {
			deadline = began.Add(n.lan.cfg.ReadStall)
		}
		n.net.SetReadDeadline(deadline)
		size, err := n.net.Read(buf)
		if time.Since(looked) > lookAgain {
			looked = time.Now()
			if !n.welcome() {
				return
			}
		}
		n.lan.metrics.octets.WithLabelValues("in").Add(float64(size))
		whole := false
		fault := s.Feed(buf[:size], func(frame []byte) {
			whole = true
			for wait := n.lan.late(n.host); wait > 0; wait = n.lan.late(n.host) {
				n.lan.metrics.held.Inc()
				<-time.After(wait)
			}
			n.lan.metrics.events.Inc()
			n.lan.post(tak.Heard{Conn: n.id, Frame: slices.Clone(frame)})
		})
		switch {
		case fault != nil:
			n.lan.refuse("broken", n.remote, fault)
			n.lan.post(tak.Broken{Conn: n.id, Err: fault})
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			n.lan.refuse("never_ends", n.remote, nil)
			return
		case err != nil:
			return
		case !s.Open():
			began = time.Time{}
		case whole || began.IsZero():
			began = time.Now()
		}
	}
}

// queue queues an event in the version that the device reads. With a token, Taken is posted when the device's machine has it.
func (n *conn) queue(xml, proto []byte, token uint64) {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return
	}
	if n.proto {
		xml = protoForm(xml, proto) // nil: there is nothing to write
	}
	if n.octets+len(xml) > n.lan.cfg.MaxQueue {
		n.closed = true
		n.mu.Unlock()
		n.lan.refuse("never_reads", n.remote, nil)
		n.net.Close()
		return
	}
	if xml != nil {
		n.waiting = append(n.waiting, xml)
		n.octets += len(xml)
	}
	if token != 0 {
		n.asked = append(n.asked, token)
	}
	n.mu.Unlock()
	n.nudge()
}

// protoForm is an event in version 1, made now if it was queued before a device had asked for that version; nil: it has no such
// form.
func protoForm(xml, proto []byte) []byte {
	if len(proto) > 0 {
		return proto
	}
	e, err := cot.ParseXML(xml)
	if err != nil {
		return nil
	}
	return e.AppendFrame(nil)
}

// speak makes events that are queued from now on version 1.
func (n *conn) speak() {
	n.mu.Lock()
	n.proto = true
	n.mu.Unlock()
}

func (n *conn) nudge() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// writeApart is the least time between two rounds of writing to one device: events that come meanwhile are written together.
const writeApart = 50 * time.Millisecond

// mostAtOnce is the most octets that one write passes to the kernel.
const mostAtOnce = 32 << 10

// scratch are buffers in which events are put together for a write.
var scratch = sync.Pool{New: func() any { b := make([]byte, 0, mostAtOnce); return &b }}

// write writes the queued events, several in one write.
func (n *conn) write() {
	defer n.net.Close()
	var wrote time.Time
	var spare [][]byte
	for range n.wake {
		if early := writeApart - time.Since(wrote); early > 0 {
			<-time.After(early)
		}
		wrote = time.Now()
		n.mu.Lock()
		batch, closed, asked := n.waiting, n.closed, n.asked
		n.waiting, n.octets, n.asked = spare[:0], 0, nil
		n.mu.Unlock()
		if closed || !n.writeAll(batch) {
			return
		}
		n.taken.wrote(asked)
		clear(batch)
		if cap(batch) <= 1024 {
			spare = batch
		} else {
			spare = nil
		}
	}
}

// writeAll writes events in as few writes as possible; false: the stream has closed.
func (n *conn) writeAll(batch [][]byte) bool {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	for len(batch) > 0 {
		b := (*buf)[:0]
		for len(batch) > 0 && (len(b) == 0 || len(b)+len(batch[0]) <= mostAtOnce) {
			b, batch = append(b, batch[0]...), batch[1:]
		}
		for len(b) > 0 {
			n.net.SetWriteDeadline(time.Now().Add(n.lan.cfg.WriteStall))
			size, err := n.net.Write(b)
			n.lan.metrics.octets.WithLabelValues("out").Add(float64(size))
			if err != nil && (size == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					n.lan.refuse("never_reads", n.remote, nil)
				}
				return false
			}
			b = b[size:]
		}
	}
	return true
}
