package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

const (
	warmUp    = 1000 // pairs before anything is measured (published 3)
	series    = 5
	pairs     = 100             // of one series
	pairLimit = 5 * time.Second // after that the message is lost
)

// pair is a sender, a receiver and a unicast pipe of each.
type pair struct {
	there, back string // pipes
	a, b        *tcp.Peer
	atA, atB    atomic.Pointer[func(edgepeer.Message)]
	limit       time.Duration // after that a message is lost
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
func behind(ctx context.Context, sa, sb *server) (*pair, error) {
	c := newPair()
	var err error
	if c.a, err = join(ctx, sa, "bench-a", hearing(&c.atA)); err != nil {
		return nil, err
	}
	if c.b, err = join(ctx, sb, "bench-b", hearing(&c.atB)); err != nil {
		c.a.Close()
		return nil, err
	}
	return c.listen()
}

// direct joins two peers with nobody between them: one TCP connection, and each takes the other for its rendezvous.
func direct(ctx context.Context) (*pair, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	c := newPair()
	dialled := make(chan error, 1)
	go func() {
		var err error
		c.a, err = tcp.Dial(ctx, tcp.Config{Address: ln.Addr().String(), Hear: hearing(&c.atA), Edge: edgepeer.Config{Name: "bench-a", Rand: newRand()}})
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

// pings are message and acknowledgement pairs, one after the other. It answers the median of the series' means.
func (c *pair) pings(ctx context.Context, size int) (mean time.Duration, all times, err error) {
	back := make(chan struct{}, 1)
	echo := func(m edgepeer.Message) {
		_, _ = c.b.Do(edgepeer.Send{Pipe: c.back, To: c.a.ID(), Elements: m.Elements}) // lost is lost: the sender counts
	}
	ack := func(edgepeer.Message) { back <- struct{}{} }
	c.atA.Store(&ack)
	c.atB.Store(&echo)
	one := func(i int) (time.Duration, error) {
		elements := body(i, size)
		began := time.Now()
		if _, err := c.a.Do(edgepeer.Send{Pipe: c.there, To: c.b.ID(), Elements: elements}); err != nil {
			return 0, err
		}
		select {
		case <-back:
			return time.Since(began), nil
		case <-time.After(c.limit):
			return 0, fmt.Errorf("no answer to message %d within %v", i, c.limit)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	for i := range warmUp {
		if _, err := one(i); err != nil {
			return 0, nil, err
		}
	}
	var means times
	for range series {
		var sum time.Duration
		for i := range pairs {
			d, err := one(i)
			if err != nil {
				return 0, nil, err
			}
			sum += d
			all = append(all, d)
		}
		means = append(means, sum/pairs)
	}
	return time.Duration(means.at(0.5) * 1e6), all, nil
}

// flow sends messages with at most ahead of them under way, for as long as d, and answers those received per second.
func (c *pair) flow(ctx context.Context, size, ahead int, d time.Duration) (rate float64, lost int, err error) {
	room := make(chan struct{}, ahead)
	var received atomic.Int64
	take := func(m edgepeer.Message) {
		received.Add(1)
		select {
		case <-room:
		default: // one that was given up
		}
	}
	c.atB.Store(&take)
	c.atA.Store(nil)
	elements := body(0, size)
	send := func() error {
		_, err := c.a.Do(edgepeer.Send{Pipe: c.there, To: c.b.ID(), Elements: elements})
		return err
	}
	began := time.Now()
	sent := 0
	patience := time.NewTimer(c.limit)
	defer patience.Stop()
	for time.Since(began) < d {
		select {
		case room <- struct{}{}:
		default:
			patience.Reset(c.limit)
			select {
			case room <- struct{}{}:
			case <-patience.C: // everything under way is lost: make room for as much again
				for range ahead {
					select {
					case <-room:
					default:
					}
				}
				continue
			case <-ctx.Done():
				return 0, 0, ctx.Err()
			}
		}
		if err := send(); err != nil {
			return 0, 0, err
		}
		sent++
	}
	window := time.Since(began)
	got := int(received.Load())
	for end := time.Now().Add(c.limit); int(received.Load()) < sent && time.Now().Before(end); {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
	return float64(got) / window.Seconds(), sent - int(received.Load()), nil
}

// bursts sends fifty messages at once every half second, as in 2004, and answers how long a burst takes to be there.
func (c *pair) bursts(ctx context.Context, size, many int) (took times, lost int, err error) {
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
		took = append(took, time.Since(began))
	}
	return took, lost, nil
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func relay(ctx context.Context, r *run) ([]Row, error) {
	window := time.Duration(r.quick(6000, 500)) * time.Millisecond
	const ms64 = 64 << 10
	rows := []Row{
		{What: "message and acknowledgement of 1 octet, two peers directly", Unit: "us", Published: "J2SE unicast pipe 711, JXTA-C 298 (2005)"},
		{What: "the same through the relay", Unit: "us"},
		{What: "added by the relay", Unit: "us", Must: 300, Aim: 100, Less: true, Published: "JXTA-C endpoint 137 without relay (2005)"},
		{What: "messages of 1 kB at an even rate", Unit: "per second", Must: 5000, Aim: 20000, Published: "unicast 115 without relay (2004)"},
		{What: "burst of 50 messages of 1 kB until all arrive", Unit: "ms", Published: "179 messages/s bursty, without relay (2004)"},
		{What: "data in messages of 64 kB", Unit: "MB/s", Must: 100, Aim: 300, Published: "JXTA-C endpoint 103, pipe 96, without relay (2005)"},
	}
	r.progressf("two peers directly")
	d, err := direct(ctx)
	if err != nil {
		return rows, err
	}
	bare, all, err := d.pings(ctx, 1)
	d.close()
	if err != nil {
		return rows, err
	}
	note := func(t times) string { return fmt.Sprintf("median %.0f, p99 %.0f", 1e3*t.at(0.5), 1e3*t.at(0.99)) }
	rows[0].Direct = &Figure{Value: us(bare), Note: note(all)}
	rows[0].Gateway = rows[0].Direct
	err = r.both(ctx, func(ctx context.Context, s *server) error {
		c, err := behind(ctx, s, s)
		if err != nil {
			return err
		}
		defer c.close()
		r.progressf("%s: round trips", s.name)
		mean, all, err := c.pings(ctx, 1)
		if err != nil {
			return err
		}
		rows[1].put(s, Figure{Value: us(mean), Note: note(all)})
		rows[2].put(s, Figure{Value: us(mean - bare)})
		r.progressf("%s: messages of 1 kB", s.name)
		before := s.cost()
		rate, lost, err := c.flow(ctx, 1000, 64, window)
		if err != nil {
			return err
		}
		cpu := (s.cost().cpu - before.cpu).Seconds() / (rate * window.Seconds())
		rows[3].put(s, Figure{Value: rate, Lost: lost, Note: fmt.Sprintf("%.0f us of processor each", cpu*1e6)})
		r.progressf("%s: bursts", s.name)
		took, lost, err := c.bursts(ctx, 1000, r.quick(10, 2))
		if err != nil {
			return err
		}
		rows[4].put(s, Figure{Value: took.at(0.5), Lost: lost})
		r.progressf("%s: messages of 64 kB", s.name)
		rate, lost, err = c.flow(ctx, ms64, 32, window)
		if err != nil {
			return err
		}
		rows[5].put(s, Figure{Value: rate * ms64 / 1e6, Lost: lost})
		return nil
	})
	return rows, err
}
