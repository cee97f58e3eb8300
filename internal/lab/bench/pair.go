package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

const (
	warmUp    = 1000            // pairs of messages before the measurement (published 3)
	pairs     = 100             // pairs of messages in one series
	pairLimit = 5 * time.Second // after that the message is lost
	mostLost  = 3               // then the peer counts as dead
)

// pair is a sender, a receiver and a unicast pipe to each.
type pair struct {
	there, back string // pipes
	a, b        *tcp.Peer
	atA, atB    atomic.Pointer[func(edgepeer.Message)]
	limit       time.Duration // after that a message is lost
	octets      atomic.Int64  // written by the sender's connection
	buffer      int           // octets of each socket's buffers; 0: the kernel's choice
}

func newPair() *pair {
	return &pair{there: edgepeer.NamedPipe("bench-there"), back: edgepeer.NamedPipe("bench-back"), limit: pairLimit}
}

func hearing(at *atomic.Pointer[func(edgepeer.Message)]) func(*tcp.Peer, edgepeer.Notice) {
	return func(_ *tcp.Peer, n edgepeer.Notice) {
		if m, ok := n.(edgepeer.Message); ok {
			if f := at.Load(); f != nil {
				(*f)(m)
			}
		}
	}
}

// counted counts the octets written to a connection.
type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// counting dials connections that are counted.
func (c *pair) counting(ctx context.Context, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return counted{conn, &c.octets}, nil
}

// dial sets the buffers of the socket.
func (c *pair) dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if tcp, is := conn.(*net.TCPConn); is && c.buffer > 0 {
		err = errors.Join(tcp.SetReadBuffer(c.buffer), tcp.SetWriteBuffer(c.buffer))
	}
	return conn, err
}

// meet waits, behind a second server, until a message comes to the receiver: its site knows the receiver only a moment later.
func (c *pair) meet(ctx context.Context, srv *server) error {
	if srv.other == nil {
		return nil
	}
	heard := make(chan bool, 64)
	take := func(edgepeer.Message) { heard <- true }
	c.atB.Store(&take)
	defer c.atB.Store(nil)
	for end := time.Now().Add(serverReady); time.Now().Before(end); {
		if _, err := c.a.Do(edgepeer.Send{Pipe: c.there, To: c.b.ID(), Elements: body(0, 10)}); err != nil {
			return err
		}
		select {
		case <-heard:
			return nil
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("nothing has come to the receiver within %v", serverReady)
}

// listen opens the input pipes.
func (c *pair) listen() (*pair, error) {
	_, err := c.a.Do(edgepeer.Listen{Pipe: c.back, Kind: jxta.PipeTypeUnicast})
	_, err2 := c.b.Do(edgepeer.Listen{Pipe: c.there, Kind: jxta.PipeTypeUnicast})
	if err = errors.Join(err, err2); err != nil {
		c.close()
	}
	return c, err
}

func (c *pair) close() { closeAll([]*tcp.Peer{c.a, c.b}) }

// behind joins two peers behind a server each, or both behind the same.
func behind(ctx context.Context, sa, sb *server) (*pair, error) { return newPair().behind(ctx, sa, sb) }

func (c *pair) behind(ctx context.Context, sa, sb *server) (*pair, error) {
	var err error
	if c.a, err = join(ctx, tcp.Config{Address: sa.address, Dial: c.counting, Hear: hearing(&c.atA)}, "bench-a"); err != nil {
		return nil, err
	}
	if c.b, err = join(ctx, tcp.Config{Address: sb.address, Dial: c.dial, Hear: hearing(&c.atB)}, "bench-b"); err != nil {
		c.a.Close()
		return nil, err
	}
	return c.listen()
}

// unwatched joins two peers without a server between them: one TCP connection, and each takes the other for its rendezvous.
func unwatched(ctx context.Context) (*pair, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	c := newPair()
	dialled := make(chan error, 1)
	go func() {
		var err error
		c.a, err = tcp.Dial(ctx, tcp.Config{Address: ln.Addr().String(), Dial: c.counting, Hear: hearing(&c.atA), Edge: edgepeer.Config{Name: "bench-a", Rand: newRand()}})
		dialled <- err
	}()
	c.b, err = tcp.Dial(ctx, tcp.Config{Address: ln.Addr().String(), Hear: hearing(&c.atB), Edge: edgepeer.Config{Name: "bench-b", Rand: newRand()},
		Dial: func(context.Context, string) (net.Conn, error) { return ln.Accept() }})
	if err := errors.Join(err, <-dialled); err != nil {
		for _, p := range []*tcp.Peer{c.a, c.b} {
			if p != nil {
				p.Close()
			}
		}
		return nil, err
	}
	return c.listen()
}

// trips is the times of pairs of message and acknowledgement.
type trips struct {
	means []float64 // us, of each series
	all   times
	warm  int
	lost  int
}

func (t trips) row(what string, size int) Row {
	return Row{What: what, Size: size, Unit: "us", N: len(t.all), Warm: t.warm, Lost: t.lost, Less: true,
		Note: fmt.Sprintf("p50 %s, p99 %s", number(1e3*t.all.at(0.5)), number(1e3*t.all.at(0.99)))}.of(t.means...)
}

// echo has b return messages to their sender.
func (c *pair) echo() {
	echo := func(m edgepeer.Message) {
		_, _ = c.b.Do(edgepeer.Send{Pipe: c.back, To: m.Src, Elements: m.Elements}) // a lost message is the sender's to count
	}
	c.atB.Store(&echo)
}

// pings are message and acknowledgement pairs, one after the other. If pace is not 0, from half to one and a half of it passes in
// between, so that senders do not march in step. Warming up and measuring end when budget is over, whatever their number then.
func (c *pair) pings(ctx context.Context, elements func(int) []jxta.Element, warm, series int, pace, budget time.Duration) (t trips, err error) {
	back := make(chan struct{}, 1)
	ack := func(edgepeer.Message) {
		select {
		case back <- struct{}{}:
		default: // of one that was given up
		}
	}
	c.atA.Store(&ack)
	steps := newRand()
	one := func(i int) (time.Duration, error) {
		if pace > 0 {
			pause(ctx, pace/2+time.Duration(steps.Int64N(int64(pace))))
		}
		e := elements(i)
		began := time.Now()
		if _, err := c.a.Do(edgepeer.Send{Pipe: c.there, To: c.b.ID(), Elements: e}); err != nil {
			return 0, err
		}
		select {
		case <-back:
			return time.Since(began), nil
		case <-c.a.Done():
			return 0, fmt.Errorf("the sender's connection has ended: %w", io.ErrUnexpectedEOF)
		case <-time.After(c.limit):
			if t.lost++; t.lost > mostLost {
				return 0, fmt.Errorf("no answer to %d messages within %v each", t.lost, c.limit)
			}
			return 0, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	for began := time.Now(); t.warm < warm && time.Since(began) < budget/3; t.warm++ {
		if _, err := one(t.warm); err != nil {
			return t, err
		}
	}
	for range series {
		var sum time.Duration
		n := 0
		for began := time.Now(); n < pairs && (n == 0 || time.Since(began) < budget/time.Duration(series)); {
			d, err := one(n)
			if err != nil {
				return t, err
			}
			if d == 0 {
				continue
			}
			n++
			sum += d
			t.all = append(t.all, d)
		}
		t.means = append(t.means, us(sum)/float64(n))
	}
	return t, nil
}

// stream is the result of a stream of messages.
type stream struct {
	rates []float64 // received per second, of each series
	n     int       // sent
	lost  int
}

func (f stream) row(what string, size int) Row {
	return Row{What: what, Size: size, Unit: "per second", N: f.n, Lost: f.lost}.of(f.rates...)
}

// megabytes turns a rate of messages into one of data.
func (r Row) megabytes() Row {
	r.Unit = "MB/s"
	for _, v := range []*float64{&r.Value, &r.Low, &r.High} {
		*v *= float64(r.Size) / 1e6
	}
	return r
}

// flow sends messages with at most ahead of them under way, for d in each of the series.
func (c *pair) flow(ctx context.Context, size, ahead, series int, d time.Duration) (f stream, err error) {
	room := make(chan struct{}, ahead)
	var received atomic.Int64
	take := func(edgepeer.Message) {
		received.Add(1)
		select {
		case <-room:
		default: // a message that was given up
		}
	}
	c.atB.Store(&take)
	c.atA.Store(nil)
	elements := body(0, size)
	patience := time.NewTimer(c.limit)
	defer patience.Stop()
	before := int64(0)
	for range series {
		began := time.Now()
		for time.Since(began) < d {
			select {
			case room <- struct{}{}:
			default:
				patience.Reset(c.limit)
				select {
				case room <- struct{}{}:
				case <-patience.C: // all messages under way are lost: make room for as many again
					for range ahead {
						select {
						case <-room:
						default:
						}
					}
					continue
				case <-ctx.Done():
					return f, ctx.Err()
				}
			}
			if _, err := c.a.Do(edgepeer.Send{Pipe: c.there, To: c.b.ID(), Elements: elements}); err != nil {
				return f, err
			}
			f.n++
		}
		now := received.Load()
		f.rates = append(f.rates, float64(now-before)/time.Since(began).Seconds())
		before = now
	}
	for end := time.Now().Add(c.limit); received.Load() < int64(f.n) && time.Now().Before(end) && ctx.Err() == nil; {
		pause(ctx, time.Millisecond)
	}
	f.lost = f.n - int(received.Load())
	return f, ctx.Err()
}

// bursts sends fifty messages at once every half second, as in 2004, and returns how long each burst took to arrive.
func (c *pair) bursts(ctx context.Context, size, many int) (took []float64, lost int, err error) {
	const burst = 50
	arrived := make(chan struct{}, burst)
	take := func(edgepeer.Message) {
		select {
		case arrived <- struct{}{}:
		default:
		}
	}
	c.atB.Store(&take)
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for range many {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		began := time.Now()
		for i := range burst {
			if _, err := c.a.Do(edgepeer.Send{Pipe: c.there, To: c.b.ID(), Elements: body(i, size)}); err != nil {
				return nil, 0, err
			}
		}
		got := 0
		for late := time.After(c.limit); got < burst; {
			select {
			case <-arrived:
				got++
				continue
			case <-late:
			case <-ctx.Done():
				return nil, 0, ctx.Err()
			}
			break
		}
		lost += burst - got
		took = append(took, time.Since(began).Seconds()*1e3)
	}
	return took, lost, nil
}

// crowd is several senders to one receiver. The first sender is a pair with it.
type crowd struct{ all []*pair }

// crowd joins senders behind a server to the receiver of the first pair.
func (c *pair) crowd(ctx context.Context, s *server, senders int) (*crowd, error) {
	list := &crowd{[]*pair{c}}
	for i := 1; i < senders; i++ {
		more := &pair{there: c.there, back: c.back, b: c.b, limit: c.limit}
		p, err := join(ctx, tcp.Config{Address: s.address, Hear: hearing(&more.atA)}, fmt.Sprintf("bench-a%d", i))
		if err == nil {
			more.a = p
			_, err = p.Do(edgepeer.Listen{Pipe: c.back, Kind: jxta.PipeTypeUnicast})
		}
		if err != nil {
			list.close()
			return nil, err
		}
		list.all = append(list.all, more)
	}
	return list, nil
}

// close ends all but the first.
func (l *crowd) close() {
	for _, p := range l.all[1:] {
		if p.a != nil {
			p.a.Close()
		}
	}
}

// pings has all senders ping at once.
func (l *crowd) pings(ctx context.Context, size, warm, series int, pace, budget time.Duration) (sum trips, err error) {
	l.all[0].echo()
	var wait sync.WaitGroup
	results, errs := make([]trips, len(l.all)), make([]error, len(l.all))
	for i, p := range l.all {
		wait.Add(1)
		go func() {
			defer wait.Done()
			results[i], errs[i] = p.pings(ctx, func(k int) []jxta.Element { return body(k, size) }, warm, series, pace, budget)
		}()
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return sum, err
	}
	sum.means = make([]float64, series)
	for _, t := range results {
		for k, m := range t.means {
			sum.means[k] += m / float64(len(results))
		}
		sum.all, sum.warm, sum.lost = append(sum.all, t.all...), sum.warm+t.warm, sum.lost+t.lost
	}
	return sum, nil
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
