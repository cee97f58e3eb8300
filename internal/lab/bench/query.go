package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

const (
	underWay    = 4               // questions of one peer at a time, in the closed loop
	answerLimit = 5 * time.Second // then the answer is lost
	loadBatch   = 50
)

// asker is a load peer that sends questions. Its counters are those of the present measurement.
type asker struct {
	peer *tcp.Peer

	mu      sync.Mutex
	wild    bool // the question has a wild card
	pending map[int]question
	early   map[int]time.Time // answered before Do had returned the id of the question
	took    times
	lost    int
	wrong   int                 // answers without the wanted name
	done    func(name string)   // called without the lock; nil: no next question
	again   func(lost []string) // the same for lost questions
}

type question struct {
	name string
	at   time.Time
}

func newAsker(ctx context.Context, s *server, name string) (*asker, error) {
	a := &asker{pending: map[int]question{}, early: map[int]time.Time{}}
	p, err := join(ctx, tcp.Config{Address: s.address, Hear: a.hear}, name)
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

// ask sends a question; at is when it should have been sent.
func (a *asker) ask(name string, at time.Time) error {
	value := name
	if a.wild {
		value += "*"
	}
	id, err := a.peer.Do(edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: value})
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

// wonder asks for a name that no peer has.
func (a *asker) wonder(name string) error {
	_, err := a.peer.Do(edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: name})
	return err
}

// expire gives up questions that have waited too long.
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

// forget drops the waiting questions, without counting them as lost.
func (a *asker) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.pending)
}

func (a *asker) waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.pending)
}

func advName(i int) string { return fmt.Sprintf("bench-adv-%05d", i) }

// stock publishes further advertisements, from one number to before another, and makes sure that the server has each of them: it
// publishes those again that the server does not find.
func (s *session) stock(ctx context.Context, srv *server, publisher *tcp.Peer, from, n int) error {
	check, err := newAsker(ctx, srv, "checker")
	if err != nil {
		return err
	}
	defer check.peer.Close()
	publish := func(i int) error {
		_, err := publisher.Do(edgepeer.Publish{Doc: edgepeer.Specification(advName(i), edgepeer.NamedPipe(advName(i)), jxta.PipeTypePropagate), Life: 2 * time.Hour})
		return err
	}
	for first := from; first < n; first += loadBatch {
		if (first-from)%(20*loadBatch) == 0 {
			s.run.progressf("%s, %s: %d of %d advertisements published", s.bench, s.where, first, n)
		}
		missing := map[string]int{}
		for i := first; i < min(n, first+loadBatch); i++ {
			missing[advName(i)] = i
			if err := publish(i); err != nil {
				return err
			}
		}
		found := make(chan string, 4*loadBatch)
		check.reset(func(name string) { found <- name }, nil)
		for tries := 0; len(missing) > 0; tries++ {
			if tries == 20 {
				return fmt.Errorf("%d of %d advertisements are not found", len(missing), n)
			}
			for name, i := range missing {
				if tries > 2 && tries%3 == 0 {
					if err := publish(i); err != nil {
						return err
					}
				}
				if err := check.ask(name, time.Now()); err != nil {
					return err
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
					return ctx.Err()
				}
			}
		}
	}
	return nil
}

// crew are the askers of one server.
type crew struct {
	server *server
	askers []*asker
	stock  int
	next   int
	wild   bool // questions have a wild card
	mu     sync.Mutex
}

// draw is the next advertisement to ask for: all come in turn, and neighbours are far apart.
func (c *crew) draw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = (c.next + 7919) % c.stock // a prime, so that every one comes
	return advName(c.next)
}

// outcome of one measurement.
type outcome struct {
	rate  float64 // questions handled per second
	all   times   // of the answers
	lost  int
	wrong int
	cpu   time.Duration // of the server, for one question
}

func (o outcome) note() string {
	return fmt.Sprintf("median %s ms, p99 %s ms, %.0f us of processor each", number(o.all.at(0.5)), number(o.all.at(0.99)), float64(o.cpu)/1e3)
}

// gather ends a measurement: it waits for questions under way and adds up.
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
	for _, a := range c.askers {
		a.mu.Lock()
		o.all = append(o.all, a.took...)
		o.lost += a.lost
		o.wrong += a.wrong
		a.mu.Unlock()
		a.reset(nil, nil)
	}
	o.rate = float64(len(o.all)+more) / window.Seconds()
	if n := len(o.all) + more; n > 0 {
		o.cpu = (after.cpu - before.cpu) / time.Duration(n)
	}
	if o.wrong > 0 {
		return o, fmt.Errorf("%d answers do not hold what was asked for", o.wrong)
	}
	return o, nil
}

// closed keeps each peer's questions under way for a while. With half, it adds as many questions that no peer can answer.
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

// window asks at a fixed rate, whether answers come or not. Times count from when a question was due.
func (c *crew) window(ctx context.Context, rate int, d time.Duration) (outcome, error) {
	for _, a := range c.askers {
		a.reset(nil, nil)
		a.wild = c.wild
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
