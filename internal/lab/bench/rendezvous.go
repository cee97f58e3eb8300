package bench

import (
	"context"
	"fmt"
	"time"

	"aldis/internal/lab/edgepeer/tcp"
)

// queries are figures 6.20 to 6.33: questions about advertisements that the rendezvous has.
func (s *session) queries(ctx context.Context) error {
	return s.served(ctx, func(ctx context.Context, srv *server) error {
		publisher, err := join(ctx, tcp.Config{Address: srv.address}, "publisher")
		if err != nil {
			return err
		}
		defer publisher.Close()
		stocks := []int{100, 1000, 10_000, 100_000}
		if s.Quick {
			stocks = stocks[:2]
		}
		had := 0
		for _, n := range stocks {
			if n > 10_000 && s.where == jxse {
				s.failed(ctx, Row{What: whatQuestions, Number: n, Of: "advertisements", Unit: "per second"}, fmt.Errorf("not tried: publishing 10,000 takes JXSE 2.7 minutes"))
				continue
			}
			s.progressf("%s advertisements", number(float64(n)))
			if err := s.stock(ctx, srv, publisher, had, n); err != nil {
				return err
			}
			had = n
			if err := s.stocked(ctx, srv, n); err != nil {
				return err
			}
			if n == 1000 {
				if err := s.groups(ctx, srv, n); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// crewed runs a measurement with so many askers.
func (s *session) crewed(ctx context.Context, srv *server, peers, stock int, measure func(c *crew) error) error {
	c := &crew{server: srv, stock: stock}
	defer func() {
		for _, a := range c.askers {
			a.peer.Close()
		}
	}()
	for i := range peers {
		a, err := newAsker(ctx, srv, fmt.Sprintf("asker-%d", i))
		if err != nil {
			return err
		}
		c.askers = append(c.askers, a)
	}
	return measure(c)
}

// stocked measures the questions of 32 peers about a stock: as fast as the answers come, and at a rate.
func (s *session) stocked(ctx context.Context, srv *server, n int) error {
	return s.crewed(ctx, srv, 32, n, func(c *crew) error {
		window := s.budget() / time.Duration(s.series())
		if _, err := c.closed(ctx, window, false); err != nil {
			return err
		}
		rates := map[bool][]float64{}
		for _, half := range []bool{false, true} {
			row := Row{What: whatQuestions, Number: n, Of: "advertisements", Unit: "per second"}
			if half {
				row.What += ", half of them unanswerable"
			} else if s.where == gatewayTCP {
				row.Must, row.Aim = 2000, 10000
			}
			for range s.series() {
				o, err := c.closed(ctx, window, half)
				if err != nil {
					return err
				}
				rates[half], row.N, row.Lost, row.Note = append(rates[half], o.rate), row.N+len(o.all), row.Lost+o.lost, o.note()
			}
			s.put(row.of(rates[half]...))
		}
		full, half := Row{}.of(rates[false]...), Row{}.of(rates[true]...)
		change := 100 * (full.Value - half.Value) / full.Value
		s.put(Row{What: "slowdown by an unanswerable half", Number: n, Of: "advertisements", Unit: "%", Must: 10, Aim: 1, Less: true, N: full.Series + half.Series,
			Note: fmt.Sprintf("the rate changed by %+.1f %%", -change)}.of(max(0, change)))
		s.put(Row{What: "resident memory after these questions", Number: n, Of: "advertisements", Unit: "MB", Less: true}.of(srv.cost().resident))
		for _, rate := range []int{2, 16, 200, 2000, 10_000} {
			if float64(rate) > 0.9*full.Value {
				s.failed(ctx, Row{What: answersTime + ", mean, " + number(float64(n)) + " advertisements", Number: rate, Of: "questions a second", Unit: "ms"},
					fmt.Errorf("only %s a second are sustained", number(full.Value)))
				continue
			}
			if err := s.asked(ctx, c, rate, number(float64(n))+" advertisements", rate, "questions a second"); err != nil {
				return err
			}
		}
		if n != 1000 {
			return nil
		}
		c.wild = true
		defer func() { c.wild = false }()
		return s.asked(ctx, c, 200, "1,000 advertisements, wild card", 200, "questions a second")
	})
}

const answersTime = "answers' time"

// asked measures answers at a rate: mean, deviation over mean, percentiles.
func (s *session) asked(ctx context.Context, c *crew, rate int, what string, n int, of string) error {
	s.progressf("%s, %d questions a second", what, rate)
	window := s.budget() / time.Duration(s.series())
	if few := time.Duration(s.quick(60, 6)) * time.Second / time.Duration(rate*s.series()); window < few {
		window = few
	}
	var means, deviations, p50, p99 []float64
	row := Row{Number: n, Of: of, Unit: "ms", Less: true}
	for range s.series() {
		o, err := c.window(ctx, rate, window)
		if err != nil {
			return err
		}
		mean, deviation := o.all.mean()
		means, deviations = append(means, mean), append(deviations, deviation/mean)
		p50, p99 = append(p50, o.all.at(0.5)), append(p99, o.all.at(0.99))
		row.N, row.Lost = row.N+len(o.all), row.Lost+o.lost
	}
	for _, x := range []struct {
		name   string
		values []float64
	}{{"mean", means}, {"median", p50}, {"99th percentile", p99}} {
		r := row
		r.What = answersTime + ", " + x.name + ", " + what
		if x.name != "mean" {
			r.Lost = 0 // counted once
		}
		s.put(r.of(x.values...))
	}
	row.What, row.Unit, row.Lost = "deviation over mean of the answers' times, "+what, "times", 0
	if s.where == gatewayTCP {
		row.Must, row.Aim = 0.5, 0.3
	}
	s.put(row.of(deviations...))
	return nil
}

// groups is figure 6.26: the same questions from more peers.
func (s *session) groups(ctx context.Context, srv *server, stock int) error {
	for _, n := range []int{4, 8, 16, 32, 1000} {
		if n == 1000 && (s.Quick || s.where == jxse) {
			continue
		}
		err := s.crewed(ctx, srv, n, stock, func(c *crew) error { return s.asked(ctx, c, 200, "200 questions a second", n, "peers") })
		if err != nil {
			return err
		}
	}
	return nil
}

// start is figure 6.1: how long a rendezvous with so many advertisements takes to start.
func (s *session) start(ctx context.Context) error {
	for _, n := range []int{0, 100, 1000, 10_000, 100_000} {
		if s.Quick && n > 1000 {
			break
		}
		if err := s.startWith(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) startWith(ctx context.Context, n int) error {
	s.progressf("%s advertisements", number(float64(n)))
	at := site{id: 1, profile: "wire", dir: s.dir + fmt.Sprintf("/start-%d", n)}
	srv, err := s.gateway(ctx, at)
	if err != nil {
		return err
	}
	if n > 0 {
		p, err := join(ctx, tcp.Config{Address: srv.address}, "publisher")
		if err == nil {
			err = s.stock(ctx, srv, p, 0, n)
			p.Close()
		}
		if err != nil {
			return fmt.Errorf("%w; %w", err, srv.stop())
		}
	}
	row := Row{What: "until peers are taken", Number: n, Of: "advertisements in its store", Unit: "ms", Less: true}
	if n == 0 {
		row.What += ", empty store"
	}
	var took []float64
	for range s.series() {
		if err := srv.stop(); err != nil {
			return err
		}
		began := time.Now()
		if srv, err = s.gateway(ctx, at); err != nil {
			return err
		}
		took = append(took, time.Since(began).Seconds()*1e3)
	}
	if n > 0 {
		c, err := newAsker(ctx, srv, "checker")
		if err != nil {
			return fmt.Errorf("%w; %w", err, srv.stop())
		}
		err = c.ask(advName(0), time.Now())
		pause(ctx, 500*time.Millisecond)
		found := c.waiting() == 0
		c.peer.Close()
		if err != nil {
			return fmt.Errorf("%w; %w", err, srv.stop())
		}
		row.Note = map[bool]string{true: "it answers for them then", false: "peers publish theirs again when they are back"}[found]
	}
	s.put(row.of(took...))
	return srv.stop()
}
