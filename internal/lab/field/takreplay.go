package field

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
)

// takSettled is the time without new traffic on the link after which a live replay is over.
const takSettled = 15 * time.Second

// takLive is one live replay of events of TAK devices.
type takLive struct {
	*takGame
	mu      sync.Mutex
	watch   *replay.TAKWatch
	res     *trace.CoTCost
	devices map[string]*takStream
	pending sync.WaitGroup
}

// ReplayTAK plays events of TAK devices in real time: gateways as processes, the emulator between their namespaces, a TCP stream for each
// device aboard, and a device ashore that watches. It uses the options that Replay uses for the link. When ctx ends before the events do,
// the Result holds the figures until then and comes with the error.
func ReplayTAK(ctx context.Context, events []replay.TAKEvent, o ReplayOptions) (res *trace.CoTCost, err error) {
	if len(events) == 0 {
		return nil, replay.ErrNoTAK
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	prog, quiet := newProgress(o.Progress)
	defer quiet()
	l := &takLive{watch: replay.NewTAKWatch(), devices: map[string]*takStream{},
		res: &trace.CoTCost{Profile: o.Terminal.Name, Summary: o.Terminal.Summary, Seed: o.Seed, Events: len(events)}}
	l.takGame = &takGame{game: o.game(prog.voice("replay"))}
	all, end := context.WithCancel(ctx)
	defer func() {
		l.stands(nil)
		l.logf("removing namespaces and processes")
		end()
		run := &Run{}
		_, terr := l.tearDown(run, nil, func() {})
		for _, text := range run.GatewayErrors {
			terr = errors.Join(terr, errors.New("lab: "+text))
		}
		err = errors.Join(err, terr)
	}()
	if err := l.setUp(ctx); err != nil {
		return nil, err
	}
	if err := l.serve(ctx, all); err != nil {
		return nil, err
	}
	ashore := &takStream{dial: inSpace(l.served[0].ns, l.served[0].at), saw: func(e *cot.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watch.Saw(time.Now(), e)
	}}
	go ashore.keep(all)
	if err := opened(ctx, ashore); err != nil {
		return nil, err
	}
	before := l.hub.Stats().Link
	length, err := l.events(ctx, all, events, o.At)
	var drained time.Duration
	if err == nil {
		drained, err = l.settle(ctx)
	}
	end()
	l.pending.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch.Figures(l.res)
	replay.PriceTAK(l.res, o.Terminal, before, l.hub.Stats().Link, max(time.Second, length), drained)
	return l.res, err
}

// events has each device send its events, each at its time, and returns how long that took.
func (l *takLive) events(ctx, all context.Context, events []replay.TAKEvent, at func(at, of time.Duration)) (time.Duration, error) {
	l.zero = time.Now()
	of := events[len(events)-1].At
	l.stands(func() string {
		up, down := l.traffic()
		return fmt.Sprintf("%v of %v; link %.1f kB up, %.1f kB down", time.Since(l.zero).Round(time.Second), of.Round(time.Second), float64(up.Octets)/1000, float64(down.Octets)/1000)
	})
	for _, e := range events {
		if !pause(ctx, time.Until(l.zero.Add(e.At))) {
			return time.Since(l.zero), ctx.Err()
		}
		d := l.devices[e.From]
		if d == nil {
			d = l.served[1].stream()
			l.devices[e.From] = d
			go d.keep(all)
			if err := opened(ctx, d); err != nil {
				return time.Since(l.zero), err
			}
		}
		now := time.Now()
		moved := replay.MovedTAK(e.Event, now.UTC().Truncate(time.Millisecond))
		xml := moved.AppendXML(nil)
		l.mu.Lock()
		l.res.CoT += int64(len(xml))
		if said := l.watch.Said(now, moved); said != nil {
			l.res.Reports++
			l.pending.Go(func() {
				if pause(all, replay.CompareAfter) {
					l.mu.Lock()
					defer l.mu.Unlock()
					said.Compare()
				}
			})
		}
		l.mu.Unlock()
		if !d.send(string(xml)) {
			l.logf("the device %s has lost its stream", e.From)
		}
		if at != nil {
			at(e.At, of)
		}
	}
	return time.Since(l.zero), nil
}

// settle waits until the link has no new traffic and all events are shown, or for as long as a replay in virtual time.
func (l *takLive) settle(ctx context.Context) (time.Duration, error) {
	l.logf("the trace is over")
	begin := time.Now()
	quiet, last := begin, linkemu.Stats{}
	for time.Since(begin) < replay.TAKDrain {
		if !pause(ctx, drainTick) {
			return time.Since(begin), ctx.Err()
		}
		l.mu.Lock()
		waits := l.watch.Waiting()
		l.mu.Unlock()
		now := l.hub.Stats().Link
		if waits > 0 || now.Node("ship") != last.Node("ship") || now.Node("hq") != last.Node("hq") {
			quiet, last = time.Now(), now
		}
		if time.Since(quiet) >= takSettled {
			break
		}
	}
	return time.Since(begin), nil
}
