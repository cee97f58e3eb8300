package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// propagate measures one sender and its listeners.
func (s *session) propagate(ctx context.Context) error {
	return s.served(ctx, func(ctx context.Context, srv *server) error {
		for _, n := range []int{1, 2, 4, 8} {
			if err := s.listeners(ctx, srv, n); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *session) listeners(ctx context.Context, srv *server, listeners int) error {
	s.progressf("%d receivers", listeners)
	pipe := edgepeer.NamedPipe(fmt.Sprintf("bench-wire-%d", listeners))
	var all []*tcp.Peer
	defer func() { closeAll(all) }()
	var got atomic.Int64
	for i := range listeners + 1 {
		p, err := join(ctx, tcp.Config{Address: srv.address, Hear: func(_ *tcp.Peer, n edgepeer.Notice) {
			if _, ok := n.(edgepeer.Message); ok {
				got.Add(1)
			}
		}}, fmt.Sprintf("listener-%d", i))
		if err != nil {
			return err
		}
		all = append(all, p)
		if i > 0 { // the first sends
			if _, err := p.Do(edgepeer.Listen{Pipe: pipe, Kind: jxta.PipeTypePropagate}); err != nil {
				return err
			}
		}
	}
	send := func(i, size int) error {
		_, err := all[0].Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: body(i, size)})
		return err
	}
	if err := everybodyListens(ctx, &got, int64(listeners), send); err != nil {
		return err
	}
	heard := func(want int64) bool {
		for end := time.Now().Add(pairLimit); got.Load() < want && time.Now().Before(end) && ctx.Err() == nil; {
			pause(ctx, 50*time.Microsecond)
		}
		return got.Load() >= want
	}
	for _, size := range s.sizes(10_000, 1000, 10_000, 100_000, 1_000_000) {
		s.progressf("%d receivers, %s", listeners, octetsText(size))
		row := Row{What: whatToReceivers + " and until the last has it", Size: size, Number: listeners, Of: "receivers", Unit: "us", Less: true}
		var means []float64
		for range s.series() {
			var sum time.Duration
			n := 0
			for began := time.Now(); n < pairs && time.Since(began) < s.budget()/time.Duration(2*s.series()); n++ {
				got.Store(0)
				at := time.Now()
				if err := send(n, size); err != nil {
					return err
				}
				if !heard(int64(listeners)) {
					if row.Lost += listeners - int(got.Load()); row.Lost > mostLost*listeners {
						return fmt.Errorf("%d of %d messages of %s did not come", row.Lost, row.N, octetsText(size))
					}
				}
				sum += time.Since(at)
				row.N++
			}
			means = append(means, us(sum)/float64(max(1, n)))
		}
		s.put(row.of(means...))
		if size > 10_000 {
			continue
		}
		const ahead = 32
		row = Row{What: whatToReceivers, Size: size, Number: listeners, Of: "receivers", Unit: "per second"}
		before, handed := srv.cost(), int64(0)
		var rates []float64
		for range s.series() {
			got.Store(0)
			began, sent := time.Now(), int64(0)
			for time.Since(began) < s.budget()/time.Duration(2*s.series()) {
				if err := send(row.N, size); err != nil {
					return err
				}
				sent++
				row.N++
				if !heard((sent - ahead) * int64(listeners)) {
					break
				}
			}
			rates = append(rates, float64(got.Load())/float64(listeners)/time.Since(began).Seconds())
			if !heard(sent * int64(listeners)) {
				row.Lost += int(sent)*listeners - int(got.Load())
			}
			handed += got.Load()
		}
		row.Note = fmt.Sprintf("%.0f us of processor for each message handed to a receiver", us(srv.cost().cpu-before.cpu)/float64(max(1, handed)))
		s.put(row.of(rates...))
	}
	return nil
}

// everybodyListens sends until each listener has received a message: a rendezvous knows a pipe only a moment later.
func everybodyListens(ctx context.Context, got *atomic.Int64, listeners int64, send func(i, size int) error) error {
	for try := range 50 {
		got.Store(0)
		if err := send(try, 1000); err != nil {
			return err
		}
		for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
			if got.Load() == listeners {
				return nil
			}
			pause(ctx, time.Millisecond)
		}
	}
	return fmt.Errorf("only %d of %d listeners hear", got.Load(), listeners)
}

// pause waits a moment, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
