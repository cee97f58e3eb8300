package lan

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
)

const (
	readBuffer = 16 << 10 // octets
	firstChunk = 64 << 10 // octets of a body that every connection may hold; more is taken from MaxReading
	batchCount = 64       // bodies of one write
	batchSize  = 256 << 10
)

// outgoing is one body with its header block, or a bare line.
type outgoing struct {
	header, octets []byte
	token          uint64
}

func (o outgoing) size() int { return len(o.header) + len(o.octets) }

type conn struct {
	lan    *LAN
	id     jxtabridge.ConnID
	net    net.Conn
	host   string // IP address of the peer
	remote string // with port

	mu       sync.Mutex
	more     sync.Cond // something was queued, or the end came
	waiting  []outgoing
	octets   int  // of waiting and of what is being written
	finished bool // write what waits, then close
	closed   bool
}

func newConn(l *LAN, id jxtabridge.ConnID, c net.Conn, host string) *conn {
	n := &conn{lan: l, id: id, net: c, host: host, remote: c.RemoteAddr().String()}
	n.more.L = &n.mu
	return n
}

func (n *conn) run() {
	defer n.lan.wait.Done()
	n.lan.post(jxtabridge.Opened{Conn: n.id, Remote: n.remote})
	written := make(chan struct{})
	go func() {
		defer close(written)
		n.write()
	}()
	n.read()
	n.close()
	<-written
	n.lan.forget(n)
	n.lan.post(jxtabridge.Closed{Conn: n.id})
}

// close ends both directions at once.
func (n *conn) close() {
	n.mu.Lock()
	n.closed = true
	n.more.Signal()
	n.mu.Unlock()
	n.net.Close()
}

// finish closes after what waits was written.
func (n *conn) finish() {
	n.mu.Lock()
	n.finished = true
	n.more.Signal()
	n.mu.Unlock()
}

func (n *conn) queue(o outgoing) {
	n.mu.Lock()
	if n.closed || n.finished {
		n.mu.Unlock()
		return
	}
	full := n.octets+o.size() > n.lan.cfg.MaxQueue
	if !full {
		n.waiting = append(n.waiting, o)
		n.octets += o.size()
		n.more.Signal()
	}
	n.mu.Unlock()
	if full {
		n.lan.refuse("queue_full", n.remote, nil)
		n.close()
	}
}

// take waits for something to write; nil is the end.
func (n *conn) take() []outgoing {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.waiting) == 0 && !n.closed && !n.finished {
		n.more.Wait()
	}
	if n.closed || len(n.waiting) == 0 {
		return nil
	}
	count, size := 0, 0
	for count < len(n.waiting) && count < batchCount && (count == 0 || size+n.waiting[count].size() <= batchSize) {
		size += n.waiting[count].size()
		count++
	}
	batch := slices.Clone(n.waiting[:count])
	clear(n.waiting[:count]) // the bodies are not kept alive by what was written
	if n.waiting = n.waiting[count:]; len(n.waiting) == 0 {
		n.waiting = nil
	}
	return batch
}

func (n *conn) write() {
	defer n.net.Close()
	for {
		batch := n.take()
		if batch == nil {
			return
		}
		var parts net.Buffers
		var token uint64
		size, bodies := 0, 0
		for _, o := range batch {
			if o.header != nil {
				parts = append(parts, o.header)
				bodies++
			}
			parts = append(parts, o.octets)
			size += o.size()
			if o.token != 0 {
				token = o.token
			}
		}
		if err := n.flush(parts); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				n.lan.refuse("never_reads", n.remote, nil)
			}
			return
		}
		n.lan.metrics.Octets.WithLabelValues("out").Add(float64(size))
		n.lan.metrics.Messages.WithLabelValues("out").Add(float64(bodies))
		n.mu.Lock()
		n.octets -= size
		n.mu.Unlock()
		if token != 0 {
			n.lan.post(jxtabridge.Written{Conn: n.id, Token: token})
		}
	}
}

// flush writes all parts. The deadline is renewed while the peer takes anything, so that a large body may be slow.
func (n *conn) flush(parts net.Buffers) error {
	for len(parts) > 0 {
		if err := n.net.SetWriteDeadline(time.Now().Add(n.lan.cfg.WriteStall)); err != nil {
			return err
		}
		taken, err := parts.WriteTo(n.net)
		if err != nil && (taken == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
	}
	return nil
}

// read posts what the peer says until it ends, breaks a rule or the connection closes.
func (n *conn) read() {
	r := bufio.NewReaderSize(n.net, readBuffer)
	w, err := n.welcome(r)
	if err != nil {
		n.report("welcome", err)
		return
	}
	n.lan.post(jxtabridge.Welcomed{Conn: n.id, Welcome: w})
	for {
		size, err := n.header(r)
		if err != nil {
			n.report("header", err)
			return
		}
		if size > uint64(n.lan.cfg.MaxBody) {
			n.lan.refuse("body_too_long", n.remote, nil)
			return
		}
		body, held, err := n.body(r, int(size))
		if err != nil {
			n.lan.reading.Add(-int64(held))
			n.report("body", err)
			return
		}
		n.lan.metrics.Messages.WithLabelValues("in").Inc()
		n.lan.post(jxtabridge.Received{Conn: n.id, Body: body})
		n.lan.reading.Add(-int64(held))
	}
}

var (
	errMemory  = errors.New("too many octets of messages under way")
	errGarbage = errors.New("not a JXTA welcome")
)

// report counts why reading ended; that a peer leaves between packages needs no report.
func (n *conn) report(where string, err error) {
	var parse *jxta.ParseError
	switch {
	case errors.Is(err, errGarbage), where == "welcome" && errors.As(err, &parse):
		n.lan.refuse("welcome", n.remote, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		n.lan.refuse(where+"_timeout", n.remote, nil)
	case errors.Is(err, errMemory):
		n.lan.refuse("memory", n.remote, err)
	case errors.As(err, &parse):
		n.lan.refuse(where, n.remote, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		n.lan.refuse(where+"_cut", n.remote, nil)
	}
}

const hello = "JXTAHELLO "

// welcome reads the peer's line. Garbage is noticed at its first octet.
func (n *conn) welcome(r *bufio.Reader) (jxta.Welcome, error) {
	if err := n.net.SetReadDeadline(time.Now().Add(n.lan.cfg.WelcomeTimeout)); err != nil {
		return jxta.Welcome{}, err
	}
	var line []byte
	for {
		c, err := r.ReadByte()
		if err != nil {
			return jxta.Welcome{}, err
		}
		line = append(line, c)
		if len(line) <= len(hello) && c != hello[len(line)-1] || len(line) > jxta.MaxWelcome {
			return jxta.Welcome{}, errGarbage
		}
		if c == '\n' {
			break
		}
	}
	n.lan.metrics.Octets.WithLabelValues("in").Add(float64(len(line)))
	return jxta.ParseWelcome(line)
}

// header reads one header block and answers the length of the body. Between packages a peer may be silent for ever;
// keepalive notices a dead one.
func (n *conn) header(r *bufio.Reader) (uint64, error) {
	if err := n.net.SetReadDeadline(time.Time{}); err != nil {
		return 0, err
	}
	if _, err := r.Peek(1); err != nil {
		return 0, err // io.EOF: left between packages
	}
	if err := n.net.SetReadDeadline(time.Now().Add(n.lan.cfg.ReadStall)); err != nil {
		return 0, err
	}
	for want := 1; ; {
		block, err := r.Peek(want)
		if err == nil || len(block) > 0 {
			more, _ := r.Peek(min(r.Buffered(), jxta.MaxPackageHeader))
			h, size, perr := jxta.ParsePackageHeader(more)
			if perr == nil {
				_, derr := r.Discard(size)
				n.lan.metrics.Octets.WithLabelValues("in").Add(float64(size))
				return h.Length, derr
			}
			if !errors.Is(perr, jxta.ErrShort) || len(more) == jxta.MaxPackageHeader {
				return 0, perr
			}
			want = len(more) + 1
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
	}
}

// body reads size octets. The buffer grows with what has come, not with what was announced; held is what it took of
// the room's common allowance, to be given back.
func (n *conn) body(r *bufio.Reader, size int) (body []byte, held int, err error) {
	buf := bytes.NewBuffer(make([]byte, 0, min(size, firstChunk)))
	for buf.Len() < size {
		if err := n.net.SetReadDeadline(time.Now().Add(n.lan.cfg.ReadStall)); err != nil {
			return nil, held, err
		}
		chunk := min(size-buf.Len(), firstChunk)
		if buf.Available() < chunk {
			grow := min(max(buf.Cap(), chunk), size-buf.Cap())
			if n.lan.reading.Add(int64(grow)) > int64(n.lan.cfg.MaxReading) {
				return nil, held + grow, errMemory
			}
			held += grow
			bigger := bytes.NewBuffer(make([]byte, 0, buf.Cap()+grow))
			bigger.Write(buf.Bytes())
			buf = bigger
		}
		part := buf.AvailableBuffer()[:min(chunk, buf.Available())]
		got, err := io.ReadFull(r, part)
		buf.Write(part[:got])
		n.lan.metrics.Octets.WithLabelValues("in").Add(float64(got))
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, held, err
		}
	}
	return buf.Bytes(), held, nil
}
