package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

const (
	askers      = 32
	adverts     = 10_000
	underWay    = 4               // questions of one peer at a time, in the closed loop
	answerLimit = 5 * time.Second // after that it is lost
	loadBatch   = 50
)

// asker is a load peer that asks. Its counters are of the present measurement.
type asker struct {
	peer *tcp.Peer

	mu      sync.Mutex
	pending map[int]question
	early   map[int]time.Time // answered before Do had said which question it was
	took    times
	lost    int
	wrong   int                 // answers that do not hold what was asked for
	done    func(name string)   // called without the lock; nil: nothing follows
	again   func(lost []string) // the same for what was lost
}

type question struct {
	name string
	at   time.Time
}

func newAsker(ctx context.Context, s *server, name string) (*asker, error) {
	a := &asker{pending: map[int]question{}, early: map[int]time.Time{}}
	p, err := join(ctx, s, name, a.hear)
	a.peer = p
	return a, err
}

func (a *asker) hear(_ *tcp.Peer, n edgepeer.Notice) {
	answer, ok := n.(edgepeer.Answer)
	if !ok || answer.QueryID == 0 {
		return
	}
	now := time.Now()
	a.mu.Lock()
	q, known := a.pending[answer.QueryID]
	if !known {
		a.early[answer.QueryID] = now
		a.mu.Unlock()
		return
	}
	done := a.answered(answer.QueryID, q, now, bytes.Contains(answer.Raw, []byte(q.name)))
	a.mu.Unlock()
	if done != nil {
		done(q.name)
	}
}

// answered files an answer; the lock is held.
func (a *asker) answered(id int, q question, now time.Time, right bool) func(string) {
	delete(a.pending, id)
	if !right {
		a.wrong++
	}
	a.took = append(a.took, now.Sub(q.at))
	return a.done
}

// ask sends a question of which at is when it should have been sent.
func (a *asker) ask(name string, at time.Time) error {
	id, err := a.peer.Do(edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: name})
	if err != nil {
		return err
	}
	a.mu.Lock()
	q := question{name, at}
	var done func(string)
	if when, ok := a.early[id]; ok {
		delete(a.early, id)
		done = a.answered(id, q, when, true)
	} else {
		a.pending[id] = q
	}
	a.mu.Unlock()
	if done != nil {
		done(name)
	}
	return nil
}

// wonder asks for what nobody has.
func (a *asker) wonder(name string) error {
	_, err := a.peer.Do(edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: name})
	return err
}

// expire gives up what has waited too long.
func (a *asker) expire(now time.Time) {
	var lost []string
	a.mu.Lock()
	for id, q := range a.pending {
		if now.Sub(q.at) > answerLimit {
			delete(a.pending, id)
			lost = append(lost, q.name)
		}
	}
	a.lost += len(lost)
	again := a.again
	a.mu.Unlock()
	if again != nil && len(lost) > 0 {
		again(lost)
	}
}

// reset begins a new measurement.
func (a *asker) reset(done func(string), again func([]string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.early)
	a.took, a.lost, a.wrong, a.done, a.again = nil, 0, 0, done, again
}

func (a *asker) waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.pending)
}

func advName(i int) string { return fmt.Sprintf("bench-adv-%05d", i) }

// stock publishes advertisements through the server and makes sure that it has each of them: what it does not find is
// published again.
func (r *run) stock(ctx context.Context, s *server, n int) (_ *tcp.Peer, err error) {
	publisher, err := join(ctx, s, "publisher", nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			publisher.Close()
		}
	}()
	check, err := newAsker(ctx, s, "checker")
	if err != nil {
		return nil, err
	}
	defer check.peer.Close()
	publish := func(i int) error {
		_, err := publisher.Do(edgepeer.Publish{Doc: edgepeer.Specification(advName(i), edgepeer.NamedPipe(advName(i)), jxta.PipeTypePropagate), Life: 2 * time.Hour})
		return err
	}
	for first := 0; first < n; first += loadBatch {
		if first%(20*loadBatch) == 0 {
			r.progressf("%s: %d of %d advertisements published", s.name, first, n)
		}
		missing := map[string]int{}
		for i := first; i < min(n, first+loadBatch); i++ {
			missing[advName(i)] = i
			if err := publish(i); err != nil {
				return nil, err
			}
		}
		found := make(chan string, 4*loadBatch)
		check.reset(func(name string) { found <- name }, nil)
		for tries := 0; len(missing) > 0; tries++ {
			if tries == 20 {
				return nil, fmt.Errorf("%d of %d advertisements are not found", len(missing), n)
			}
			for name, i := range missing {
				if tries > 2 && tries%3 == 0 {
					if err := publish(i); err != nil {
						return nil, err
					}
				}
				if err := check.ask(name, time.Now()); err != nil {
					return nil, err
				}
			}
			late := time.After(time.Duration(min(tries+1, 4)) * 250 * time.Millisecond)
		wait:
			for len(missing) > 0 {
				select {
				case name := <-found:
					delete(missing, name)
				case <-late:
					break wait
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		}
	}
	return publisher, nil
}

// crew are the askers of one server.
type crew struct {
	*run
	server *server
	askers []*asker
	stock  int
	next   int
	mu     sync.Mutex
}

// draw is the next advertisement to ask for, all in turn and far apart.
func (c *crew) draw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = (c.next + 7919) % c.stock // a prime: every one comes
	return advName(c.next)
}

// outcome of one measurement.
type outcome struct {
	rate  float64 // questions per second that were handled
	p50   float64 // milliseconds
	p99   float64
	lost  int
	wrong int
	cpu   time.Duration // of the server, for one question
	best  float64       // p99 of the best and the worst window; open only
	worst float64
}

func (o outcome) note() string {
	return fmt.Sprintf("median %s ms, p99 %s ms, %.0f us of processor each", number(o.p50), number(o.p99), float64(o.cpu)/1e3)
}

// gather ends a measurement: waits for what is still under way and adds up.
func (c *crew) gather(ctx context.Context, began time.Time, window time.Duration, before cost, more int) (outcome, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	after := c.server.cost()
	for {
		waiting := 0
		for _, a := range c.askers {
			a.expire(time.Now())
			waiting += a.waiting()
		}
		if waiting == 0 {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		}
	}
	var o outcome
	var all times
	for _, a := range c.askers {
		a.mu.Lock()
		all = append(all, a.took...)
		o.lost += a.lost
		o.wrong += a.wrong
		a.mu.Unlock()
		a.reset(nil, nil)
	}
	o.rate = float64(len(all)+more) / window.Seconds()
	o.p50, o.p99 = all.at(0.5), all.at(0.99)
	if n := len(all) + more; n > 0 {
		o.cpu = (after.cpu - before.cpu) / time.Duration(n)
	}
	if o.wrong > 0 {
		return o, fmt.Errorf("%d answers do not hold what was asked for", o.wrong)
	}
	return o, nil
}

// closed keeps each peer's questions under way for a while. With half, as many again are asked that nobody can answer.
func (c *crew) closed(ctx context.Context, d time.Duration, half bool) (outcome, error) {
	var mu sync.Mutex
	var failed error
	unanswerable := 0
	stop := make(chan struct{})
	next := func(a *asker) {
		select {
		case <-stop:
			return
		default:
		}
		err := error(nil)
		if half {
			mu.Lock()
			unanswerable++
			name := fmt.Sprintf("nobody-has-%d", unanswerable)
			mu.Unlock()
			err = a.wonder(name)
		}
		if err == nil {
			err = a.ask(c.draw(), time.Now())
		}
		if err != nil {
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
		}
	}
	before := c.server.cost()
	for _, a := range c.askers {
		a.reset(func(string) { go next(a) }, func(lost []string) {
			for range lost {
				go next(a)
			}
		})
	}
	began := time.Now()
	for _, a := range c.askers {
		for range underWay {
			next(a)
		}
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for over := time.After(d); ; {
		select {
		case <-ticker.C:
			for _, a := range c.askers {
				a.expire(time.Now())
			}
			continue
		case <-over:
		case <-ctx.Done():
		}
		break
	}
	close(stop)
	window := time.Since(began)
	mu.Lock()
	more, err := unanswerable, failed
	mu.Unlock()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return outcome{}, err
	}
	return c.gather(ctx, began, window, before, more)
}

// open asks at a fixed rate, whatever the answers do, in several windows: the machine is not alone with this, so the
// median of their percentiles is what counts. Times are from when a question was due.
func (c *crew) open(ctx context.Context, rate int, d time.Duration) (outcome, error) {
	const windows = 5
	var all []outcome
	var sum outcome
	for range windows {
		o, err := c.window(ctx, rate, d/windows)
		if err != nil {
			return o, err
		}
		all = append(all, o)
		sum.lost += o.lost
		sum.cpu += o.cpu / windows
	}
	slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.p99, b.p99) })
	sum.rate, sum.p50, sum.p99 = float64(rate), all[windows/2].p50, all[windows/2].p99
	sum.best, sum.worst = all[0].p99, all[windows-1].p99
	return sum, nil
}

func (c *crew) window(ctx context.Context, rate int, d time.Duration) (outcome, error) {
	for _, a := range c.askers {
		a.reset(nil, nil)
	}
	before := c.server.cost()
	began := time.Now()
	ticker := time.NewTicker(500 * time.Microsecond)
	defer ticker.Stop()
	total := int(float64(rate) * d.Seconds())
	for asked := 0; asked < total; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		}
		for now := time.Now(); asked < total; asked++ {
			due := began.Add(time.Duration(float64(asked) / float64(rate) * 1e9))
			if due.After(now) {
				break
			}
			if err := c.askers[asked%len(c.askers)].ask(c.draw(), due); err != nil {
				return outcome{}, err
			}
		}
	}
	return c.gather(ctx, began, time.Since(began), before, 0)
}

func queries(ctx context.Context, r *run) ([]Row, error) {
	n := r.quick(adverts, 500)
	window := time.Duration(r.quick(8000, 400)) * time.Millisecond
	rows := []Row{
		{What: fmt.Sprintf("questions answered, %d peers, %d advertisements", askers, n), Unit: "per second", Must: 2000, Aim: 10000, Published: "4 to 16 (2004)"},
		{What: "the same, half of the questions unanswerable", Unit: "per second"},
		{What: "slowdown by the unanswerable half", Unit: "%", Must: 10, Aim: 1, Less: true, Published: "slower (2004)"},
		{What: "99th percentile at 16 questions per second", Unit: "ms"},
		{What: "99th percentile at 200 questions per second", Unit: "ms"},
		{What: "99th percentile at 2,000 questions per second", Unit: "ms", Must: 20, Aim: 5, Less: true},
		{What: "99th percentile at 10,000 questions per second", Unit: "ms"},
		{What: "resident memory after these measurements", Unit: "MB"},
	}
	rates := map[int]int{3: 16, 4: 200, 5: 2000, 6: 10000}
	err := r.both(ctx, func(ctx context.Context, s *server) error {
		publisher, err := r.stock(ctx, s, n)
		if err != nil {
			return err
		}
		defer publisher.Close()
		c := &crew{run: r, server: s, stock: n}
		defer func() {
			for _, a := range c.askers {
				a.peer.Close()
			}
		}()
		for i := range askers {
			a, err := newAsker(ctx, s, fmt.Sprintf("asker-%d", i))
			if err != nil {
				return err
			}
			c.askers = append(c.askers, a)
		}
		r.progressf("%s: warming up", s.name)
		if _, err := c.closed(ctx, window/2, false); err != nil {
			return err
		}
		r.progressf("%s: questions that can be answered", s.name)
		full, err := c.closed(ctx, window, false)
		if err != nil {
			return err
		}
		rows[0].put(s, Figure{Value: full.rate, Lost: full.lost, Note: full.note()})
		for i, rate := range rates {
			if float64(rate) > 0.9*full.rate {
				continue // not sustained: no percentile to quote
			}
			r.progressf("%s: %d questions per second", s.name, rate)
			o, err := c.open(ctx, rate, window)
			if err != nil {
				return err
			}
			rows[i].put(s, Figure{Value: o.p99, Lost: o.lost, Note: fmt.Sprintf("median %.2g; p99 of five windows %.2g to %.2g", o.p50, o.best, o.worst)})
		}
		r.progressf("%s: half of the questions unanswerable", s.name)
		half, err := c.closed(ctx, window, true)
		if err != nil {
			return err
		}
		rows[1].put(s, Figure{Value: half.rate, Lost: half.lost, Note: half.note()})
		change := 100 * (full.rate - half.rate) / full.rate
		rows[2].put(s, Figure{Value: max(0, change), Note: fmt.Sprintf("the rate changed by %+.1f %%", -change)})
		rows[7].put(s, Figure{Value: s.cost().resident})
		return nil
	})
	return rows, err
}
