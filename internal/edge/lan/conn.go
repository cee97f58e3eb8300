package lan

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

const readBuffer = 16 << 10 // octets

type conn struct {
	outbox
	net   net.Conn
	host  string // IP address of the peer
	taken taken
	stall sync.Once
}

func newConn(l *LAN, id site.ConnID, c net.Conn, host string) *conn {
	n := &conn{net: c, host: host}
	n.outbox.init(l, id, c.RemoteAddr().String(), func() { c.Close() })
	n.taken.init(n)
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
	n.stop()
	n.net.SetWriteDeadline(time.Unix(1, 0)) // do not wait for octets that are being written
	<-written
	n.close()
	n.taken.end()
	n.lan.forget(n)
	n.lan.post(jxtabridge.Closed{Conn: n.id})
}

func (n *conn) write() {
	defer n.close()       // the reader may be waiting for its gate
	defer n.taken.check() // the socket still knows now how much the peer had acknowledged when it left
	for {
		batch := n.nextBatch()
		if batch == nil {
			n.taken.last()
			return
		}
		var parts net.Buffers
		for _, o := range batch {
			if o.header != nil {
				parts = append(parts, o.header)
			}
			parts = append(append(parts, o.octets), o.rest...)
		}
		if err := n.flush(parts); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				n.stalled()
			}
			return
		}
		n.lan.metrics.Octets.WithLabelValues("out").Add(float64(n.taken.wrote(batch)))
	}
}

// stalled closes a connection whose peer reads nothing.
func (n *conn) stalled() {
	n.stall.Do(func() { n.lan.refuse("never_reads", n.remote, nil) })
	n.close()
}

// flush writes all parts. Each time the peer takes octets the deadline is renewed, so a large body may be slow.
func (n *conn) flush(parts net.Buffers) error {
	for len(parts) > 0 {
		if err := n.net.SetWriteDeadline(time.Now().Add(n.lan.cfg.WriteStall)); err != nil {
			return err
		}
		if n.over() {
			return net.ErrClosed
		}
		taken, err := parts.WriteTo(n.net)
		if err != nil && (taken == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
	}
	return nil
}

// read posts the peer's messages until the peer leaves or breaks a rule, or the connection closes.
func (n *conn) read() {
	r := bufio.NewReaderSize(n.net, readBuffer)
	w, err := n.welcome(r)
	if err != nil {
		n.report("welcome", err)
		return
	}
	n.lan.post(jxtabridge.Welcomed{Conn: n.id, Welcome: w})
	for n.wait() {
		size, err := n.header(r)
		if err != nil {
			n.report("header", err)
			return
		}
		if size > uint64(n.lan.cfg.MaxBody) {
			n.lan.refuse("body_too_long", n.remote, nil)
			return
		}
		if err := n.message(r, int(size)); err != nil {
			n.report("body", err)
			return
		}
	}
}

// message reads one body and hands it to the loop.
func (n *conn) message(r io.Reader, size int) error {
	bill := &bill{host: n.host, cut: n.close}
	defer n.lan.room.free(bill)
	body, err := n.lan.body(r, n.net.SetReadDeadline, n.gone, bill, size)
	n.lan.metrics.Octets.WithLabelValues("in").Add(float64(len(body)))
	if err != nil {
		return err
	}
	n.lan.metrics.Messages.WithLabelValues("in").Inc()
	debt, ok := n.lan.accounts.enter(time.Now, n.host, body, n.gone)
	if !ok {
		return net.ErrClosed
	}
	n.lan.accounts.book(n.id, debt)
	n.lan.post(jxtabridge.Received{Conn: n.id, Body: body})
	return nil
}

var (
	errMemory  = errors.New("too slow while others wait for room")
	errGarbage = errors.New("not a JXTA welcome")
)

// report counts why reading stopped. A peer that leaves between packages is not counted.
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

// welcome reads the peer's welcome line. It refuses garbage at the first wrong octet.
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

// header reads one header block and returns the length of the body. Between packages a peer may be silent for ever; TCP
// keepalive notices a dead one.
func (n *conn) header(r *bufio.Reader) (uint64, error) {
	if err := n.net.SetReadDeadline(time.Time{}); err != nil {
		return 0, err
	}
	if _, err := r.Peek(1); err != nil {
		return 0, err // the peer left between packages
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
