package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// overload sends more than the server can carry, as in figure 6.38: messages of 1 kB, each pair of peers both ways at once.
func (s *session) overload(ctx context.Context) error {
	for _, n := range []int{2, 8} {
		err := s.served(ctx, func(ctx context.Context, srv *server) error { return s.overloadBy(ctx, srv, n) })
		if err != nil && ctx.Err() == nil {
			s.failed(ctx, Row{What: s.doing}, err)
		}
	}
	err := s.served(ctx, func(ctx context.Context, srv *server) error { return million(ctx, s, srv) })
	if err != nil && ctx.Err() == nil {
		s.failed(ctx, Row{What: s.doing}, err)
	}
	return ctx.Err()
}

// million sends a million messages of 1 kB one after the other with 64 under way, in ten parts. It shows whether the server becomes
// slower or larger, and whether messages are lost (6.5.2: a relay of 2004 failed after 3,900). JXSE 2.7 gets a tenth. A part ends after
// half a minute, or three seconds of a quick run, however many messages have come.
func million(ctx context.Context, s *session, srv *server) error {
	want := s.quick(1_000_000, 10_000)
	if s.where == jxse {
		want /= 10
	}
	c, err := s.pair(ctx, srv)
	if err != nil {
		return err
	}
	defer c.close()
	began := srv.cost().resident
	row := Row{What: "messages one after the other, 64 under way", Size: 1000, Number: want, Of: "messages", Unit: "per second"}
	var rates []float64
	for part := range 10 {
		s.progressf("%s messages, %d of 10 parts", number(float64(want)), part+1)
		at, sum := time.Now(), 0
		for sum < want/10 && time.Since(at) < 5*s.budget()/2 {
			f, err := c.flow(ctx, 1000, 64, 1, 200*time.Millisecond)
			if err != nil {
				return err
			}
			sum += f.n
			row.Lost += f.lost
		}
		row.N += sum
		rates = append(rates, float64(sum)/time.Since(at).Seconds())
	}
	if row.N < want {
		row.Note = fmt.Sprintf("%s in the time there was; ", number(float64(row.N)))
	}
	row.Note += fmt.Sprintf("the first tenth %s a second, the last %s", number(rates[0]), number(rates[9]))
	s.put(row.of(rates...))
	s.put(Row{What: "resident memory after them", Number: want, Of: "messages", Unit: "MB", Less: true, Note: fmt.Sprintf("%s MB before", number(began))}.of(srv.cost().resident))
	return nil
}

// offers are percents of the rate at which messages go when each sender limits its messages under way.
var offers = []int{50, 100, 150, 200, 400}

func (s *session) overloadBy(ctx context.Context, srv *server, senders int) error {
	var all []*pair
	defer func() {
		for _, c := range all {
			c.close()
		}
	}()
	var got atomic.Int64
	count := func(edgepeer.Message) { got.Add(1) }
	for i := range senders {
		c := newPair()
		c.there, c.back = edgepeer.NamedPipe(fmt.Sprintf("bench-there-%d", i)), edgepeer.NamedPipe(fmt.Sprintf("bench-back-%d", i))
		var err error
		if c.a, err = join(ctx, tcp.Config{Address: srv.address, Hear: hearing(&c.atA)}, "bench-a"); err == nil {
			if c.b, err = join(ctx, tcp.Config{Address: srv.far().address, Hear: hearing(&c.atB)}, "bench-b"); err != nil {
				c.a.Close()
			}
		}
		if err == nil {
			_, err = c.listen()
		}
		if err == nil {
			err = c.meet(ctx, srv)
		}
		if err != nil {
			return err
		}
		c.atA.Store(&count)
		c.atB.Store(&count)
		all = append(all, c)
	}
	window := max(s.budget()/time.Duration((len(offers)+1)*s.series()), 400*time.Millisecond)
	sum, lost := 0, 0
	try := func(offered float64) (sent int, rate float64, err error) {
		got.Store(0)
		began := time.Now()
		sent, err = s.offer(ctx, all, &got, offered, window)
		rate = float64(got.Load()) / time.Since(began).Seconds()
		for end := time.Now().Add(patience(s.where)); got.Load() < int64(sent) && time.Now().Before(end) && ctx.Err() == nil; {
			pause(ctx, time.Millisecond)
		}
		sum, lost = sum+sent, lost+sent-int(got.Load())
		return sent, rate, err
	}
	s.progressf("%d senders each way, as fast as they come", senders)
	if _, _, err := try(0); err != nil { // to warm up
		return err
	}
	_, free, err := try(0)
	if err != nil {
		return err
	}
	received, sent, losses := map[int][]float64{}, map[int]int{}, map[int]int{}
	best := free
	for _, o := range offers {
		s.progressf("%d senders each way, %d %% of %s a second offered", senders, o, number(free))
		before := lost
		for range s.series() {
			n, rate, err := try(free * float64(o) / 100)
			if err != nil {
				return err
			}
			sent[o], received[o] = sent[o]+n, append(received[o], rate)
			best = max(best, rate)
		}
		losses[o] = lost - before
	}
	s.put(Row{What: "received at best", Size: 1000, Number: senders, Of: "senders each way", Unit: "per second", N: sum}.of(best))
	for _, o := range offers {
		row := Row{What: fmt.Sprintf("received, of the best rate, %d senders each way", senders), Number: o, Of: "% of the best offered", Unit: "%", N: sent[o], Lost: losses[o],
			Note: fmt.Sprintf("%s a second sent", number(float64(sent[o])/window.Seconds()/float64(s.series())))}
		if o >= 100 && s.where == gatewayTCP {
			row.Must, row.Aim = 95, 100
		}
		for i := range received[o] {
			received[o][i] *= 100 / best
		}
		s.put(row.of(received[o]...))
	}
	s.put(Row{What: "messages until the relay fails", Number: senders, Of: "senders each way", Unit: "messages", N: sum, Lost: lost, Note: "it did not: this is how many went through"}.of(float64(sum)))
	return nil
}

// offer has all pairs send both ways for d, together so many messages a second, however many have come by got; 0: as fast as they come,
// with 32 under way each.
func (s *session) offer(ctx context.Context, all []*pair, got *atomic.Int64, rate float64, d time.Duration) (int, error) {
	var sent atomic.Int64
	var wait sync.WaitGroup
	errs := make(chan error, 2*len(all))
	each := rate / float64(2*len(all))
	began := time.Now()
	way := func(from, to *tcp.Peer, pipe string) {
		defer wait.Done()
		elements := body(0, 1000)
		for n := 0; time.Since(began) < d && ctx.Err() == nil; {
			if each > 0 && float64(n) > each*time.Since(began).Seconds() || each == 0 && sent.Load()-got.Load() >= int64(64*len(all)) {
				pause(ctx, 200*time.Microsecond)
				continue
			}
			if _, err := from.Do(edgepeer.Send{Pipe: pipe, To: to.ID(), Elements: elements}); err != nil {
				errs <- err
				return
			}
			sent.Add(1)
			n++
		}
	}
	for _, c := range all {
		wait.Add(2)
		go way(c.a, c.b, c.there)
		go way(c.b, c.a, c.back)
	}
	wait.Wait()
	close(errs)
	var list []error
	for err := range errs {
		list = append(list, err)
	}
	return int(sent.Load()), errors.Join(list...)
}
