package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
	"aldis/internal/site"
)

const (
	lanInbox   = 256
	normInbox  = 256
	orderInbox = 16
	airInbox   = 1024
	batchMax   = 64 // events of one turn

	retryEvery = time.Second
	heldMax    = 4 << 20 // octets kept while the journal cannot write
	leastWait  = time.Millisecond
	slowTurn   = time.Second
)

// Engine is the gateway's state machine, gateway.Gateway.
type Engine interface {
	Step(now time.Time, ev api.Event) api.Output
}

// Parts are the parts that the loop drives. Their functions may wait for the disk, and for nothing else.
type Parts struct {
	Engine Engine
	// LAN carries out orders of the adapters.
	LAN   func(api.LANOrder)
	Radio func([]api.Datagram)
	Norm  func(api.NormCommand)
	Hush  func(api.Hush)
	// Handled tells the LAN room of an adapter how long one of its events has taken; nil: nobody wants to know.
	Handled func(ev api.LAN, took time.Duration)
	// Gather hands over, through PostAir, at most this many datagrams of the link that wait in the kernel; nil: there is no such
	// function.
	Gather func(most int)
	// Commit makes records durable, all or none; after an error the same records may be committed again.
	Commit func([]api.Record) error
}

// Daemon is the loop and its inboxes.
type Daemon struct {
	log     *slog.Logger
	metrics *metrics
	lan     chan api.Event
	norm    chan api.Event
	orders  chan api.Event
	air     chan heard
	asks    chan func(now time.Time)
	stopped chan struct{}
	trouble atomic.Pointer[string]

	// The fields below belong to the goroutine of Run.
	parts    Parts
	readers  func() (mono time.Duration, wall time.Time)
	clock    clock
	deadline time.Time
	aired    []heard // datagrams of this turn: they come before its events
	closing  bool    // only local peers are heard now
	unheard  int     // successive turns that left datagrams for the next turn
	events   []api.Event
	outputs  []api.Output

	waits    waiting
	written  chan error // the result of the commit in progress
	failing  bool
	told     []string      // remedies that were logged
	failedAt time.Duration // monotonic
	retryAt  time.Duration // monotonic
}

// New makes the inboxes; Run starts the loop. reg may be nil.
func New(log *slog.Logger, reg prometheus.Registerer) *Daemon {
	start := time.Now()
	return &Daemon{
		log: log, metrics: newMetrics(reg),
		lan:  make(chan api.Event, lanInbox),
		norm: make(chan api.Event, normInbox), orders: make(chan api.Event, orderInbox),
		air:  make(chan heard, airInbox),
		asks: make(chan func(time.Time)), stopped: make(chan struct{}), written: make(chan error, 1),
		waits: waiting{blocked: map[lane]int{}, began: -commitGap},
		readers: func() (time.Duration, time.Time) {
			now := time.Now()
			return now.Sub(start), now.Round(0) // Round drops the monotonic reading
		},
	}
}

// PostLAN returns the function with which the LAN room of an adapter posts an event; it waits for room in the inbox. After the
// loop has finished it does nothing.
func (d *Daemon) PostLAN(adapter site.Adapter) func(site.Event) {
	return func(ev site.Event) { d.wait(d.lan, api.LAN{Adapter: adapter, Event: ev}) }
}

// PostNorm posts an event of libnorm, and waits for room in the inbox. After the loop has finished it does nothing.
func (d *Daemon) PostNorm(ev api.Event) { d.wait(d.norm, ev) }

// PostOrder posts an operator's order, and waits for room in the inbox. After the loop has finished it does nothing.
func (d *Daemon) PostOrder(ev api.Event) { d.wait(d.orders, ev) }

func (d *Daemon) wait(inbox chan api.Event, ev api.Event) {
	select {
	case inbox <- ev:
	case <-d.stopped:
	}
}

// PostAir posts a datagram; false: the inbox has no room for it.
func (d *Daemon) PostAir(ev api.Datagram) bool {
	mono, _ := d.readers()
	select {
	case d.air <- heard{ev, mono - ev.Waited}:
		return true
	default:
		return false
	}
}

// ErrStopped says that the loop has finished.
var ErrStopped = errors.New("daemon: the gateway is stopping")

// Do runs f between two turns of the loop, which owns the engine, and returns when f has returned. It gives up if ctx ends
// before f begins.
func (d *Daemon) Do(ctx context.Context, f func(now time.Time)) error {
	done := make(chan struct{})
	select {
	case d.asks <- func(now time.Time) { f(now); close(done) }:
		<-done
		return nil
	case <-d.stopped:
		return ErrStopped
	case <-ctx.Done():
		return fmt.Errorf("daemon: the loop does not answer: %w", ctx.Err())
	}
}

// Durable waits until the journal has stored everything that the loop did before this call, or until ctx ends.
func (d *Daemon) Durable(ctx context.Context) error {
	var target, durable uint64
	if err := d.Do(ctx, func(time.Time) { target, durable = d.waits.put, d.waits.durable }); err != nil {
		return err
	}
	tick := time.NewTicker(leastWait)
	defer tick.Stop()
	for durable < target {
		select {
		case <-ctx.Done():
			return fmt.Errorf("daemon: the journal has not taken it: %w", ctx.Err())
		case <-tick.C:
		}
		if err := d.Do(ctx, func(time.Time) { durable = d.waits.durable }); err != nil {
			return err
		}
	}
	return nil
}

// DoSettled is Do at a moment at which ready has been true ever since the journal stored everything that the loop had done by then.
// It looks once a millisecond, and gives up when ctx ends.
func (d *Daemon) DoSettled(ctx context.Context, ready func() bool, f func()) error {
	tick := time.NewTicker(leastWait)
	defer tick.Stop()
	since, held, done := uint64(0), false, false
	look := func(time.Time) {
		if !held {
			since = d.waits.put
		}
		held = ready()
		if held && d.waits.durable >= since {
			f()
			done = true
		}
	}
	for {
		if err := d.Do(ctx, look); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Trouble says what keeps the gateway from working now; "": nothing does.
func (d *Daemon) Trouble() string {
	if s := d.trouble.Load(); s != nil {
		return *s
	}
	return ""
}

// Run owns the engine until ctx ends. It then drops events that were posted but have not reached the engine: they were not
// accepted.
func (d *Daemon) Run(ctx context.Context, parts Parts) error {
	defer close(d.stopped)
	d.parts = parts
	d.clock = newClock(d.readers())
	timer := time.NewTimer(0)
	defer timer.Stop()
	arm := func(wait time.Duration) {
		if wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
	for {
		lan, norm, orders, air := d.lan, d.norm, d.orders, d.air
		if d.full() {
			lan, norm, orders, air = nil, nil, nil, nil
		}
		d.events, d.aired = d.events[:0], d.aired[:0]
		select {
		case <-ctx.Done():
			return d.finish()
		case ask := <-d.asks:
			now, _ := d.now()
			ask(now)
			continue
		case err := <-d.written:
			now, mono := d.now()
			d.wrote(mono, err)
			arm(d.untilNext(now, mono))
			continue
		case ev := <-lan:
			d.events = append(d.events, ev)
		case ev := <-orders:
			d.events = append(d.events, ev)
		case ev := <-norm:
			d.events = append(d.events, ev)
		case h := <-air:
			d.aired = append(d.aired, h)
		case <-timer.C:
			if now, mono := d.now(); (d.deadline.IsZero() || now.Before(d.deadline)) && d.gathered(mono) {
				d.write(mono)
				arm(d.untilNext(now, mono))
				continue
			}
		}
		arm(d.turn())
	}
}

func (d *Daemon) full() bool { return d.waits.octets > heldMax }

// drain takes the other events that wait; select is fair among inboxes.
func (d *Daemon) drain() {
	for len(d.events)+len(d.aired) < batchMax {
		select {
		case ev := <-d.lan:
			d.events = append(d.events, ev)
		case ev := <-d.orders:
			d.events = append(d.events, ev)
		case ev := <-d.norm:
			d.events = append(d.events, ev)
		case h := <-d.air:
			d.aired = append(d.aired, h)
		default:
			return
		}
	}
}

// now reads the clocks, once per turn.
func (d *Daemon) now() (now time.Time, mono time.Duration) {
	mono, wall := d.readers()
	now, jump := d.clock.read(mono, wall)
	if jump != 0 {
		d.metrics.clockJumps.Inc()
		d.log.Warn("the wall clock was set; timers are unaffected, expiry times follow slowly, a restart adopts the new time at once",
			"by", jump, "wall", wall, "in use", now)
	}
	d.metrics.clockAhead.Set(d.clock.ahead.Seconds())
	return now, mono
}

// turn feeds the engine the events, or only the time, and carries out its outputs. It returns how long to wait for the next
// turn if no event comes; 0 is for ever.
func (d *Daemon) turn() time.Duration {
	began := time.Now()
	now, mono := d.now()
	d.outputs = d.outputs[:0]
	if !d.full() {
		if !d.closing {
			d.drain()
			d.hear(now, mono)
		}
		if len(d.events) == 0 || d.clock.news {
			d.events = slices.Insert(d.events, 0, d.clock.event())
		}
		for _, ev := range d.events {
			if _, local := ev.(api.LAN); local && d.failing && !d.deadline.IsZero() && !now.Before(d.deadline) {
				d.feed(now, d.clock.event()) // otherwise an answer to a local peer would wait with the records of timers that are due
			}
			d.feed(now, ev)
		}
		clear(d.events) // datagrams and bodies are large
		clear(d.aired)
	}
	d.settle(mono)
	clear(d.outputs)
	took := time.Since(began)
	d.metrics.turn.Observe(took.Seconds())
	if took > slowTurn {
		d.log.Warn("a turn of the loop took long", "seconds", took.Seconds(), "events", len(d.events))
	}
	return d.untilNext(now, mono)
}

// feed passes one event to the engine and keeps the output.
func (d *Daemon) feed(now time.Time, ev api.Event) {
	d.metrics.count(ev)
	out := d.step(now, ev)
	d.deadline = out.Deadline
	d.note(out.Notes)
	if len(out.Silent) > 0 {
		d.silence(out.Silent)
	}
	d.outputs = append(d.outputs, out)
}

// step calls the engine with one event, and measures the events of a LAN.
func (d *Daemon) step(now time.Time, ev api.Event) api.Output {
	of, is := ev.(api.LAN)
	if !is || d.parts.Handled == nil {
		return d.parts.Engine.Step(now, ev)
	}
	began := time.Now()
	out := d.parts.Engine.Step(now, ev)
	d.parts.Handled(of, time.Since(began))
	return out
}

func (d *Daemon) untilNext(now time.Time, mono time.Duration) time.Duration {
	var wait time.Duration
	if !d.deadline.IsZero() && !d.full() {
		wait = max(d.deadline.Sub(now), leastWait)
	}
	if d.gathering() {
		if gap := max(d.waits.began+commitGap-mono, leastWait); wait == 0 || gap < wait {
			wait = gap
		}
	}
	if d.failing {
		if retry := max(d.retryAt-mono, leastWait); wait == 0 || retry < wait {
			wait = retry
		}
	}
	return wait
}

// act carries out an output whose records are durable.
func (d *Daemon) act(out api.Output) {
	d.actLAN(out)
	if len(out.Datagrams) > 0 {
		d.parts.Radio(out.Datagrams)
	}
	for _, c := range out.Norm {
		d.parts.Norm(c)
	}
	for _, h := range out.Hush {
		d.parts.Hush(h)
	}
}

func (d *Daemon) actLAN(out api.Output) {
	for _, o := range out.LAN {
		d.parts.LAN(o)
	}
}

func (d *Daemon) note(notes []site.Note) {
	for _, n := range notes {
		var level slog.Level
		if level.UnmarshalText([]byte(n.Level)) != nil {
			level = slog.LevelError // an unknown level must not hide a message
		}
		d.log.Log(context.Background(), level, n.Text, n.Attrs...)
	}
}
