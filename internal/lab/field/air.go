package field

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/air"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
	"aldis/internal/operator/cli"
)

// AirPlay is a scenario of internal/lab/air for real gateways to play, and its name in lines of progress.
type AirPlay struct {
	What string
	Live air.Live
	Seed uint64
}

// AirOptions of live plays.
type AirOptions struct {
	Gateway  string    // the binary under test; "": the one in this program's directory
	AtOnce   int       // plays at the same time; 1
	Keep     string    // directory for logs, configurations and captures of the link, by the number of the play; "": they are removed
	Progress io.Writer // a line of text now and then; nil: none
}

// Air plays scenarios in real time: gateways as processes in namespaces, the emulator between them, an edge peer on a TCP socket at each
// site. The samples are in the order of the plays. late is the worst delay with which the emulator handled an event: a busy machine slows
// the link down. The first failure, such as a lost message, ends all plays.
func Air(ctx context.Context, plays []AirPlay, o AirOptions) (samples []air.Samples, late time.Duration, err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Gateway == "" {
		if o.Gateway, err = cli.Beside("gateway"); err != nil {
			return nil, 0, fmt.Errorf("lab: %w", err)
		}
	}
	prog, quiet := newProgress(o.Progress)
	defer quiet()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	samples = make([]air.Samples, len(plays))
	lates := make([]time.Duration, len(plays))
	next := make(chan int)
	var all sync.WaitGroup
	for range min(max(1, o.AtOnce), len(plays)) {
		all.Go(func() {
			for i := range next {
				p := plays[i]
				a := &airPlay{AirPlay: p, game: &game{
					o: Options{Profile: p.Live.Link, Seed: p.Seed, Ships: p.Live.Ships, Gateway: o.Gateway, Keep: o.Keep}, p: p.Live.Profile, kind: fmt.Sprint("play-", i+1),
					voice: prog.voice(fmt.Sprintf("%d/%d", i+1, len(plays))),
				}}
				var err error
				if samples[i], err = a.play(ctx); err != nil {
					stop(fmt.Errorf("%s, seed %d: %w", p.What, p.Seed, err))
				}
				lates[i] = a.late
				a.falls()
			}
		})
	}
	for i := range plays {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	return samples, slices.Max(lates), context.Cause(ctx)
}

// airPlay is one play.
type airPlay struct {
	AirPlay
	*game
	peers []*tcp.Peer // of each site
	late  time.Duration

	mu      sync.Mutex
	seen    air.Seen
	post    map[string]int // by the data
	left    int            // arrivals that are still to come
	strange []string       // arrivals that no post explains
	bell    chan struct{}  // a message came
}

func (a *airPlay) play(ctx context.Context) (samples air.Samples, err error) {
	defer func() {
		for _, p := range a.peers {
			p.Close()
		}
		a.stands(nil)
		run := &Run{}
		_, terr := a.tearDown(run, nil, func() {})
		if len(run.GatewayErrors) > 0 && err == nil {
			err = errors.New(strings.Join(run.GatewayErrors, "; "))
		}
		if err = errors.Join(err, terr); err != nil {
			samples = nil
		}
	}()
	a.logf("%s, seed %d", a.What, a.Seed)
	if err := a.setUp(ctx); err != nil {
		return nil, err
	}
	for _, s := range a.sites {
		if err := s.gateway.start(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.join(ctx); err != nil {
		return nil, err
	}
	if err := a.settle(ctx); err != nil {
		return nil, err
	}
	up, down := a.traffic()
	if err := a.sail(ctx); err != nil {
		return nil, err
	}
	a.stands(nil)
	a.mu.Lock()
	samples, err = a.Live.Judge(a.seen)
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	up2, down2 := a.traffic()
	a.late = a.hub.Stats().LateMax
	a.logf("%s, seed %d: %.4g; %.1f kB up, %.1f kB down; the emulator was late by at most %v", a.What, a.Seed, samples[0][0],
		float64(up2.Octets-up.Octets)/1000, float64(down2.Octets-down.Octets)/1000, a.late.Round(time.Millisecond))
	return samples, nil
}

// join puts a peer on the LAN of each site; the peers of sites that receive posts listen on the pipe.
func (a *airPlay) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, replayDialIn)
	defer cancel()
	a.bell = make(chan struct{}, 1)
	a.post = map[string]int{}
	a.seen = air.Seen{Sent: make([]time.Time, len(a.Live.Posts)), Arrived: make([][]time.Time, len(a.Live.Posts))}
	for i, p := range a.Live.Posts {
		a.post[string(p.Data)] = i
		a.seen.Arrived[i] = make([]time.Time, len(a.sites))
	}
	a.left = len(a.Live.Posts) * (len(a.sites) - 1)
	for i, s := range a.sites {
		cfg := tcp.Config{
			Edge:    edgepeer.Config{Name: s.name + "-peer", Rand: rand.New(rand.NewPCG(a.Seed, uint64(i)))},
			Address: s.gateway.lan,
			Dial:    func(ctx context.Context, address string) (net.Conn, error) { return DialIn(ctx, s.ns, address) },
			Hear: func(_ *tcp.Peer, n edgepeer.Notice) {
				if m, ok := n.(edgepeer.Message); ok {
					a.hear(i, m)
				}
			},
		}
		if slices.ContainsFunc(a.Live.Posts, func(p air.Post) bool { return p.From != i }) {
			cfg.Pipes = []edgepeer.Listen{{Pipe: air.Pipe, Kind: jxta.PipeTypePropagate}}
		}
		p, err := tcp.Dial(ctx, cfg)
		if err != nil {
			return err
		}
		a.peers = append(a.peers, p)
		if err := p.WaitLease(ctx, ""); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until all gateways know each other and the link has been silent for as long as a receipt may wait.
func (a *airPlay) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, acquainted)
	defer cancel()
	a.logf("the gateways get to know each other")
	silence := a.game.p.AckDelay + a.game.p.RoundTripMax(a.game.p.MTU)
	var octets int64
	for since, known := time.Now(), false; !known || time.Since(since) < silence; {
		up, down := a.traffic()
		if now := up.Octets + down.Octets; now != octets {
			octets, since = now, time.Now()
		}
		if !known {
			var err error
			if known, err = a.known(ctx); err != nil {
				return err
			}
		}
		if !pause(ctx, 10*pollEvery) {
			return fmt.Errorf("lab: the gateways did not get to know each other: %w", ctx.Err())
		}
	}
	return nil
}

// known says whether every gateway knows all others.
func (a *airPlay) known(ctx context.Context) (bool, error) {
	for _, s := range a.sites {
		st, err := s.gateway.status(ctx)
		if err != nil {
			return false, err
		}
		for _, p := range st.Peers {
			if !p.Knows {
				return false, nil
			}
		}
	}
	return true, nil
}

// pause waits for d; false: ctx is over.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// hear records a message that came at a site.
func (a *airPlay) hear(at int, m edgepeer.Message) {
	now := time.Now()
	var body []byte
	for _, e := range m.Elements {
		if e.Name == "body" {
			body = e.Data
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i, ok := a.post[string(body)]
	switch {
	case !ok:
		a.strange = append(a.strange, fmt.Sprintf("%.40q came to %s", body, a.sites[at].name))
	case a.Live.Posts[i].From == at || !a.seen.Arrived[i][at].IsZero():
		a.strange = append(a.strange, fmt.Sprintf("message %d came to %s once too often", i, a.sites[at].name))
	default:
		a.seen.Arrived[i][at] = now
		a.left--
	}
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// standing is the state of the play, for people.
func (a *airPlay) standing() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := len(a.Live.Posts) * (len(a.sites) - 1)
	return fmt.Sprintf("%d of %d", all-a.left, all)
}

// sail sends the posts, each at its time, takes the link down and puts it back, and waits until all posts have arrived.
func (a *airPlay) sail(ctx context.Context) error {
	var plan []action
	for i, p := range a.Live.Posts {
		plan = append(plan, action{p.At, func() error { return a.send(i, p) }})
	}
	if l := a.Live; l.OutageFor > 0 {
		plan = append(plan,
			action{l.OutageAt, func() error { return a.switchLink(true) }},
			action{l.OutageAt + l.OutageFor, func() error {
				err := a.switchLink(false)
				a.seen.Back = time.Now()
				return err
			}})
	}
	slices.SortStableFunc(plan, func(x, y action) int { return cmp.Compare(x.at, y.at) })
	a.logf("%s, seed %d: %d messages", a.What, a.Seed, len(a.Live.Posts))
	a.stands(a.standing)
	zero := time.Now()
	for _, step := range plan {
		if !pause(ctx, time.Until(zero.Add(step.at))) {
			return context.Cause(ctx)
		}
		if err := step.what(); err != nil {
			return err
		}
	}
	return a.rest(ctx)
}

func (a *airPlay) send(i int, p air.Post) error {
	a.seen.Sent[i] = time.Now()
	_, err := a.peers[p.From].Do(edgepeer.Send{Pipe: air.Pipe, Kind: jxta.PipeTypePropagate,
		Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: p.Data}}})
	return err
}

// patience is the time without an arrival after which the rest counts as lost: many times as long as any link needs for one message.
const patience = 10 * time.Minute

func (a *airPlay) rest(ctx context.Context) error {
	for {
		a.mu.Lock()
		left, strange := a.left, a.strange
		a.mu.Unlock()
		switch {
		case len(strange) > 0:
			return errors.New(strings.Join(strange, "; "))
		case left == 0:
			return nil
		}
		timer := time.NewTimer(patience)
		select {
		case <-a.bell:
			timer.Stop()
		case <-timer.C:
			return nil // the judge reports the missing messages
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
