package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"aldis/internal/jxta"
)

// served starts the server at the session's place for small peers, and stops it at the end. At "direct" there is none.
func (s *session) served(ctx context.Context, measure func(ctx context.Context, srv *server) error) (err error) {
	var srv *server
	switch s.where {
	case direct:
		return measure(ctx, nil)
	case jxse, jxseHTTP:
		srv, err = s.rendezvous(ctx, rendezvousUnsigned, s.where == jxseHTTP, "")
	case gatewaySite:
		srv, err = severalOf(ctx, s)
	case gatewayRow:
		srv, err = inARow(ctx, s)
	default:
		srv, err = s.gateway(ctx, site{id: 1, profile: "wire", http: s.where == gatewayHTTP})
	}
	if err != nil {
		return err
	}
	err = measure(ctx, srv)
	if end := srv.stop(); err == nil {
		err = end
	}
	return err
}

func (s *session) pair(ctx context.Context, srv *server) (*pair, error) {
	if srv == nil {
		return unwatched(ctx)
	}
	c, err := behind(ctx, srv, srv.far())
	if err == nil {
		c.limit = patience(s.where)
		err = c.meet(ctx, srv)
	}
	return c, err
}

// patience is the time after which a message is lost. A gateway holds messages of another site in custody and hands them to a peer at a
// pace that a 2.7 peer can bear: they wait and are not lost.
func patience(where string) time.Duration {
	if where == gatewayRow {
		return 2 * time.Minute
	}
	return pairLimit
}

// budget is how long a cell may take.
func (s *session) budget() time.Duration {
	return time.Duration(float64(s.quick(12000, 1000))*s.pace) * time.Millisecond
}

// pipes are unicast pipes between small peers.
func (s *session) pipes(ctx context.Context) error {
	return s.served(ctx, func(ctx context.Context, srv *server) error {
		for _, part := range []func(*session, context.Context, *server, *pair) error{(*session).bySize, (*session).rates, (*session).composition, (*session).bySenders, buffers} {
			c, err := s.pair(ctx, srv) // a pair of its own: damage by one part does not spoil the next
			if err != nil {
				return err
			}
			if err = part(s, ctx, srv, c); err != nil && ctx.Err() == nil {
				s.failed(ctx, Row{What: s.doing}, err)
			}
			c.close()
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	})
}

// bySize are figures 6.2, 6.3, 6.9 of 2004 and 2 to 11 of 2005.
func (s *session) bySize(ctx context.Context, srv *server, c *pair) error {
	for _, size := range upTo(s.where, s.sizes(1_000_000, 1, 1000, 10_000, 100_000, 1_000_000, 10_000_000)) {
		s.progressf("round trips, %s", octetsText(size))
		c.echo()
		before := c.octets.Load()
		t, err := c.pings(ctx, func(i int) []jxta.Element { return body(i, size) }, s.quick(warmUp, 100), s.series(), 0, s.budget())
		if err != nil {
			s.failed(ctx, Row{What: whatRoundTrip, Size: size, Unit: "us"}, err)
			return err
		}
		s.put(t.row(whatRoundTrip, size))
		n := len(t.all) + t.warm + t.lost
		share := 100 * float64(size*n) / float64(c.octets.Load()-before)
		s.put(Row{What: whatShare, Size: size, Unit: "%", N: n, Note: "octets of TCP, those of the sender"}.of(share))
	}
	return nil
}

// upTo leaves out sizes at which each message takes a minute: above 100 kB behind two gateways in a row.
func upTo(where string, sizes []int) []int {
	return slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return where == gatewayRow && n > 100_000 })
}

// rates are figures 6.5 to 6.8.
func (s *session) rates(ctx context.Context, srv *server, c *pair) error {
	window := s.budget() / time.Duration(s.series())
	for _, size := range s.sizes(10_000, 1000, 10_000) {
		s.progressf("messages, %s", octetsText(size))
		before := srv.cost()
		f, err := c.flow(ctx, size, 64, s.series(), window)
		if err != nil {
			return err
		}
		row := f.row(whatSmooth, size)
		if srv != nil {
			row.Note = fmt.Sprintf("%.0f us of processor each", us(srv.cost().cpu-before.cpu)/float64(max(1, f.n)))
		}
		if size == 1000 && s.where == gatewayTCP {
			row.Must, row.Aim = 5000, 20000
		}
		s.put(row)
		s.progressf("bursts, %s", octetsText(size))
		took, lost, err := c.bursts(ctx, size, s.quick(20, 4))
		if err != nil {
			return err
		}
		s.put(Row{What: whatBurst, Size: size, Unit: "ms", Lost: lost, Less: true}.of(took...))
	}
	for _, size := range upTo(s.where, s.sizes(4_000_000, 64<<10, 4_000_000)) {
		s.progressf("data, %s", octetsText(size))
		row, plain := Row{What: whatData, Size: size}, []float64{}
		part := Row{What: "share of what plain TCP carries", Size: size, Unit: "%"}
		if size == 4_000_000 && s.where == gatewayTCP {
			part.Must, part.Aim = 25, 50
		}
		var rates, shares []float64
		before := srv.cost()
		for range s.series() { // each together with plain TCP of the same moment, so that other work on the machine slows both
			f, err := c.flow(ctx, size, max(2, min(32, 16<<20/size)), 1, window)
			if err != nil {
				return err
			}
			tcp, err := plainTCP(size, window)
			if err != nil {
				return err
			}
			row.N, row.Lost = row.N+f.n, row.Lost+f.lost
			rates, plain = append(rates, f.rates[0]), append(plain, tcp)
			shares = append(shares, 100*f.rates[0]*float64(size)/1e6/tcp)
		}
		if srv != nil {
			row.Note = fmt.Sprintf("%.0f us of processor each", us(srv.cost().cpu-before.cpu)/float64(max(1, row.N)))
		}
		s.put(row.of(rates...).megabytes())
		part.Note = fmt.Sprintf("plain TCP on loopback %s MB/s", number(Row{}.of(plain...).Value))
		s.put(part.of(shares...))
	}
	return nil
}

// buffers are figures 8 and 9 of 2005: the same data with socket buffers of 16 and of 512 kB at the peers.
func buffers(s *session, ctx context.Context, srv *server, _ *pair) error {
	if srv == nil || srv.other != nil {
		return nil
	}
	for _, kB := range []int{16, 512} {
		s.progressf("socket buffers of %d kB", kB)
		c := newPair()
		c.buffer = kB << 10
		if _, err := c.behind(ctx, srv, srv); err != nil {
			return err
		}
		f, err := c.flow(ctx, 64<<10, 32, s.series(), s.budget()/time.Duration(s.series()))
		c.close()
		if err != nil {
			return err
		}
		row := f.row("data, socket buffers of the peers", 64<<10).megabytes()
		row.Number, row.Of = kB, "kB"
		s.put(row)
	}
	return nil
}

// plainTCP is how much a connection on loopback carries with writes of that size, MB/s.
func plainTCP(size int, d time.Duration) (float64, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	got := make(chan int64, 1)
	go func() {
		var n int64
		if c, err := ln.Accept(); err == nil {
			n, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 64<<10)) // ends with the connection
			c.Close()
		}
		got <- n
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return 0, err
	}
	data, began := make([]byte, size), time.Now()
	for time.Since(began) < d && err == nil {
		_, err = c.Write(data)
	}
	c.Close()
	return float64(<-got) / 1e6 / time.Since(began).Seconds(), err
}

// composition is figures 6.18 and 6.19: 20 kB in several elements.
func (s *session) composition(ctx context.Context, srv *server, c *pair) error {
	c.echo()
	var one, twenty []float64
	for _, n := range []int{1, 5, 10, 20} {
		s.progressf("20 kB in %d elements", n)
		elements := make([]jxta.Element, n)
		for i := range elements {
			elements[i] = jxta.Element{Namespace: "trk", Name: fmt.Sprintf("part%d", i), Data: make([]byte, 20_000/n)}
		}
		t, err := c.pings(ctx, func(int) []jxta.Element { return elements }, s.quick(warmUp, 100), s.series(), 0, s.budget())
		if err != nil {
			return err
		}
		row := t.row(whatElements, 0)
		row.Number, row.Of = n, "elements"
		s.put(row)
		switch n {
		case 1:
			one = t.means
		case 20:
			twenty = t.means
		}
	}
	s.ratio("message of 20 kB and its acknowledgement, 20 elements over 1", one, twenty, 1.2, 1.1)
	return nil
}

// ratio files the ratio of two series, and its spread.
func (s *session) ratio(what string, of, over []float64, must, aim float64) {
	row := Row{What: what, Unit: "times", Less: true, Note: "spread: least over most, and most over least"}
	if s.where == gatewayTCP {
		row.Must, row.Aim = must, aim
	}
	if x, y := (Row{}).of(of...), (Row{}).of(over...); x.Value > 0 {
		s.put(row.of(y.Low/x.High, y.Value/x.Value, y.High/x.Low))
	}
}

// paceOf2004 is the time between two messages of one sender: the fastest pipe of 2004 sent 115 a second.
const paceOf2004 = 10 * time.Millisecond

// bySenders are figures 6.12 to 6.15. Without a server there is only one sender.
func (s *session) bySenders(ctx context.Context, srv *server, c *pair) error {
	if srv == nil {
		return nil
	}
	means := map[int][]float64{}
	for _, n := range []int{1, 2, 4, 8} {
		s.progressf("%d senders", n)
		l, err := c.crowd(ctx, srv, n)
		if err != nil {
			return err
		}
		t, err := l.pings(ctx, 1000, 50, s.series(), paceOf2004, s.budget())
		if err == nil {
			row := t.row(whatRoundTrip+" of each sender, 100 a second each", 1000)
			row.Number, row.Of = n, "senders"
			s.put(row)
			means[n] = t.means
			t, err = l.pings(ctx, 1000, 50, s.series(), 0, s.budget())
		}
		l.close()
		if err != nil {
			return err
		}
		row := t.row(whatRoundTrip+" of each sender, as fast as they come", 1000)
		row.Number, row.Of = n, "senders"
		s.put(row)
		var together []float64
		for _, m := range t.means {
			together = append(together, float64(n)*1e6/m)
		}
		s.put(Row{What: "pairs of all senders together, as fast as they come", Size: 1000, Number: n, Of: "senders", Unit: "per second", N: len(t.all)}.of(together...))
	}
	s.ratio("message and acknowledgement of each sender, 8 senders over 1", means[1], means[8], 1.5, 1.1)
	plain := map[int][]float64{}
	for _, n := range []int{1, 8} {
		s.progressf("%d senders, plain TCP", n)
		t, err := plainPings(ctx, n, 1000, s.series(), paceOf2004, s.budget())
		if err != nil {
			return err
		}
		row := t.row("the same octets through a relay that only copies, of each sender, 100 a second each", 1000)
		row.Number, row.Of = n, "senders"
		s.put(row)
		plain[n] = t.means
	}
	s.ratio("the same octets through a relay that only copies, 8 senders over 1: what this machine does", plain[1], plain[8], 0, 0)
	return nil
}

// plainPings sends octets through a relay of plain TCP and back, from so many senders at once, paced as pings are.
func plainPings(ctx context.Context, senders, size, series int, pace, budget time.Duration) (sum trips, err error) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return sum, err
	}
	defer echo.Close()
	between, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return sum, err
	}
	defer between.Close()
	serve := func(ln net.Listener, each func(net.Conn)) {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // closed
			}
			go each(c)
		}
	}
	copied := func(to, from net.Conn) {
		_, _ = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from}) // through a buffer, as a relay that reads the messages; ends with the connection
		to.Close()
	}
	go serve(echo, func(c net.Conn) { copied(c, c) })
	go serve(between, func(c net.Conn) {
		if on, err := net.Dial("tcp", echo.Addr().String()); err == nil {
			go copied(c, on)
			copied(on, c)
		}
		c.Close()
	})
	results, errs := make(chan trips, senders), make(chan error, senders)
	for range senders {
		go func() {
			t, err := plainSender(ctx, between.Addr().String(), size, series, pace, budget)
			results <- t
			errs <- err
		}()
	}
	sum.means = make([]float64, series)
	for range senders {
		t := <-results
		err = errors.Join(err, <-errs)
		for k, m := range t.means {
			sum.means[k] += m / float64(senders)
		}
		sum.all = append(sum.all, t.all...)
	}
	return sum, err
}

// plainSender is one of these senders.
func plainSender(ctx context.Context, address string, size, series int, pace, budget time.Duration) (t trips, err error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return t, err
	}
	defer c.Close()
	data, steps := make([]byte, size), newRand()
	for range series {
		var sum time.Duration
		n := 0
		for began := time.Now(); n < pairs && (n == 0 || time.Since(began) < budget/time.Duration(series)) && ctx.Err() == nil; n++ {
			pause(ctx, pace/2+time.Duration(steps.Int64N(int64(pace))))
			at := time.Now()
			if _, err := c.Write(data); err != nil {
				return t, err
			}
			if _, err := io.ReadFull(c, data); err != nil {
				return t, err
			}
			t.all = append(t.all, time.Since(at))
			sum += time.Since(at)
		}
		t.means = append(t.means, us(sum)/float64(max(1, n)))
	}
	return t, ctx.Err()
}
