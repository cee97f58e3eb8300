package tcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
)

const (
	readBuffer = 64 << 10 // octets
	// maxPending is how many octets may wait for the socket before Do blocks.
	maxPending     = 1 << 20
	welcomeTimeout = 5 * time.Second // as JXSE 2.7 has it (wire 2.1)
	maxBody        = 64 << 20        // octets of one message
)

// Config of one peer on a socket.
type Config struct {
	Edge    edgepeer.Config
	Address string // "ip:port" of the rendezvous
	// Dial makes the connection; nil: from the present network namespace.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Pipes are the input pipes that the peer has open when it dials, as after a reconnection: messages that the rendezvous kept for it
	// may come with the first answer.
	Pipes []edgepeer.Listen
	// Hear is called with the notices that the application of a real peer would get, in order, by the goroutine that reads or by one that
	// calls Do. The contents of a notice are valid until Hear returns. It may call Do. nil: notices are dropped.
	Hear func(p *Peer, n edgepeer.Notice)
}

// Peer is an edge peer with its connection. Its methods may be called from any goroutine.
type Peer struct {
	cfg  Config
	conn net.Conn
	box  outbox

	mu      sync.Mutex // guards the fields below
	edge    *edgepeer.Peer
	timer   *time.Timer
	armed   time.Time
	lease   chan struct{} // closed and replaced when a lease is granted
	renewed int           // how often one was granted again

	done chan struct{} // closed when the connection has ended
	err  error         // why it ended; valid after done is closed
}

// ErrClosed is the error of a peer that was closed here.
var ErrClosed = errors.New("edgenet: closed")

// Dial connects a new peer and exchanges welcome lines; it returns while the requests for leases are under way.
func Dial(ctx context.Context, cfg Config) (*Peer, error) {
	dial := cfg.Dial
	if dial == nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	conn, err := dial(ctx, cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("edgenet: %w", err)
	}
	p := &Peer{cfg: cfg, conn: conn, edge: edgepeer.New(cfg.Edge), lease: make(chan struct{}), done: make(chan struct{})}
	p.box.cond.L = &p.box.mu
	for _, pipe := range cfg.Pipes {
		p.edge.Step(time.Now(), pipe)
	}
	r := bufio.NewReaderSize(conn, readBuffer)
	welcome, err := p.greet(ctx, r)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("edgenet: %s: welcome: %w", cfg.Address, err)
	}
	p.timer = time.AfterFunc(time.Hour, func() { p.post(nil) })
	p.post(edgepeer.Welcomed{Welcome: welcome})
	go p.read(r)
	return p, nil
}

func (p *Peer) greet(ctx context.Context, r *bufio.Reader) (jxta.Welcome, error) {
	stop := context.AfterFunc(ctx, func() { p.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := p.conn.SetDeadline(time.Now().Add(welcomeTimeout)); err != nil {
		return jxta.Welcome{}, err
	}
	hello := p.edge.Step(time.Now(), edgepeer.Dialled{Remote: p.cfg.Address, Local: p.conn.LocalAddr().String()}).Welcome
	line, err := jxta.AppendWelcome(nil, *hello)
	if err != nil {
		return jxta.Welcome{}, err
	}
	if _, err := p.conn.Write(line); err != nil {
		return jxta.Welcome{}, err
	}
	answer, err := r.ReadSlice('\n') // the buffer bounds it
	if err != nil {
		return jxta.Welcome{}, err
	}
	w, err := jxta.ParseWelcome(answer)
	if err != nil {
		return w, err
	}
	return w, errors.Join(p.conn.SetDeadline(time.Time{}), ctx.Err())
}

// Do gives the peer an event of its application and waits until the socket has taken most of the resulting octets. It returns the number
// of the question asked, if any.
func (p *Peer) Do(ev edgepeer.Event) (queryID int, err error) {
	queryID = p.step(ev)
	return queryID, p.box.drain(p, true)
}

// post is Do for callers that must not wait for the socket.
func (p *Peer) post(ev edgepeer.Event) {
	p.step(ev)
	if p.box.idle() {
		go p.box.drain(p, false)
	}
}

func (p *Peer) step(ev edgepeer.Event) int {
	p.mu.Lock()
	out := p.edge.Step(time.Now(), ev)
	p.box.put(out.Send)
	if !out.Deadline.Equal(p.armed) && p.timer != nil {
		p.armed = out.Deadline
		if p.armed.IsZero() {
			p.timer.Stop()
		} else {
			p.timer.Reset(max(0, time.Until(p.armed)))
		}
	}
	for _, n := range out.Notices {
		if l, ok := n.(edgepeer.Leased); ok {
			close(p.lease)
			p.lease = make(chan struct{})
			if l.Renewed {
				p.renewed++
			}
		}
	}
	p.mu.Unlock()
	if p.cfg.Hear != nil {
		for _, n := range out.Notices {
			p.cfg.Hear(p, n)
		}
	}
	return out.QueryID
}

func (p *Peer) read(r *bufio.Reader) {
	err := p.packages(r)
	p.conn.Close()
	p.timer.Stop()
	p.box.end(err)
	p.step(edgepeer.Lost{})
	p.err = err
	close(p.done)
}

// packages reads bodies until the connection ends, into one buffer: see Config.Hear.
func (p *Peer) packages(r *bufio.Reader) error {
	var body []byte
	for {
		h, err := header(r)
		if err != nil {
			return err
		}
		if h.Length > maxBody {
			return fmt.Errorf("edgenet: a body of %d octets", h.Length)
		}
		if uint64(cap(body)) < h.Length {
			body = make([]byte, h.Length)
		}
		body = body[:h.Length]
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		p.post(edgepeer.Received{Body: body})
	}
}

// header reads one header block.
func header(r *bufio.Reader) (jxta.PackageHeader, error) {
	for want := 1; ; {
		if _, err := r.Peek(want); err != nil {
			return jxta.PackageHeader{}, err
		}
		block, err := r.Peek(min(r.Buffered(), jxta.MaxPackageHeader))
		if err != nil {
			return jxta.PackageHeader{}, err
		}
		h, size, err := jxta.ParsePackageHeader(block)
		if err == nil {
			_, err = r.Discard(size)
			return h, err
		}
		if !errors.Is(err, jxta.ErrShort) || len(block) == jxta.MaxPackageHeader {
			return h, err
		}
		want = len(block) + 1
	}
}

// WaitLease returns when the peer has a lease in the group.
func (p *Peer) WaitLease(ctx context.Context, group string) error {
	return p.wait(ctx, func() bool { return p.edge.Leased(group) })
}

// Renew asks for the lease anew, and returns when the answer is here: a gateway of this module has on disk then what came before on the
// connection.
func (p *Peer) Renew(ctx context.Context) error {
	p.mu.Lock()
	before := p.renewed
	p.mu.Unlock()
	if _, err := p.Do(edgepeer.Renew{}); err != nil {
		return err
	}
	return p.wait(ctx, func() bool { return p.renewed > before })
}

// wait returns when something about leases holds.
func (p *Peer) wait(ctx context.Context, holds func() bool) error {
	for {
		p.mu.Lock()
		held, changed := holds(), p.lease
		p.mu.Unlock()
		if held {
			return nil
		}
		select {
		case <-changed:
		case <-p.done:
			return fmt.Errorf("edgenet: %s gave no lease: %w", p.cfg.Address, p.err)
		case <-ctx.Done():
			return fmt.Errorf("edgenet: %s gave no lease: %w", p.cfg.Address, ctx.Err())
		}
	}
}

// ID is the peer's unique value.
func (p *Peer) ID() string { return p.edge.ID() }

// Done is closed when the connection has ended.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Stats are the peer's counters.
func (p *Peer) Stats() edgepeer.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.edge.Stats()
}

// Close ends the connection without a word, as a dead peer does.
func (p *Peer) Close() {
	p.box.end(ErrClosed)
	p.conn.Close()
	<-p.done
}
