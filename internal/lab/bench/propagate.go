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

const listeners = 8 // as the most of 2004

// propagate measures one sender and several listeners of a propagate pipe.
func propagate(ctx context.Context, r *run) ([]Row, error) {
	window := time.Duration(r.quick(5000, 500)) * time.Millisecond
	rows := []Row{
		{What: fmt.Sprintf("messages of 1 kB sent to %d listeners", listeners), Unit: "per second", Published: "9.06 (2004)"},
		{What: fmt.Sprintf("messages handed out, summed over the %d listeners", listeners), Unit: "per second"},
	}
	pipe := edgepeer.NamedPipe("bench-wire")
	const ahead = 32
	err := r.both(ctx, func(ctx context.Context, s *server) error {
		var all []*tcp.Peer
		defer func() { closeAll(all) }()
		var got atomic.Int64
		for i := range listeners + 1 {
			p, err := join(ctx, s, fmt.Sprintf("listener-%d", i), func(_ *tcp.Peer, n edgepeer.Notice) {
				if _, ok := n.(edgepeer.Message); ok {
					got.Add(1)
				}
			})
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
		send := func(i int) error {
			_, err := all[0].Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: body(i, 1000)})
			return err
		}
		if err := r.everybodyListens(ctx, &got, send); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.progressf("%s: propagate pipe", s.name)
		got.Store(0)
		before, began, sent := s.cost(), time.Now(), 0
		for time.Since(began) < window {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := send(sent); err != nil {
				return err
			}
			sent++
			for end := time.Now().Add(pairLimit); int64(sent-ahead)*listeners > got.Load() && time.Now().Before(end) && time.Since(began) < window; {
				pause(ctx, 100*time.Microsecond)
			}
		}
		took, handed := time.Since(began), got.Load()
		cpu := s.cost().cpu - before.cpu
		for end := time.Now().Add(pairLimit); got.Load() < int64(sent)*listeners && time.Now().Before(end); {
			pause(ctx, time.Millisecond)
		}
		lost := sent*listeners - int(got.Load())
		rows[0].put(s, Figure{Value: float64(handed) / listeners / took.Seconds(), Lost: lost,
			Note: fmt.Sprintf("%.0f us of processor for each message handed to a listener", float64(cpu.Microseconds())/float64(max(1, handed)))})
		rows[1].put(s, Figure{Value: float64(handed) / took.Seconds()})
		return nil
	})
	return rows, err
}

// everybodyListens sends until each listener has heard something: a rendezvous knows of a pipe only a moment later.
func (r *run) everybodyListens(ctx context.Context, got *atomic.Int64, send func(int) error) error {
	for try := range 50 {
		got.Store(0)
		if err := send(try); err != nil {
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
