package field

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

// ReplayOptions of a live replay.
type ReplayOptions struct {
	Profile     string          // name or path
	Terminal    profile.Profile // the profile of that name
	Ship, Shore replay.Gateway
	Seed        uint64        // of the emulator
	Bin         time.Duration // for Result.Bins; zero: a 120th of the trace, a second at least
	Drain       time.Duration // how long to wait after the trace, at most; zero: a minute and four round trips
	Gateway     string        // the binary under test; "": this one
	Keep        string        // directory for logs, configurations and captures of the link; "": they are removed
	Progress    io.Writer     // a line of text now and then; nil: none
	// At is called with the time reached in the trace; may be nil.
	At func(at, of time.Duration)
}

const (
	acquainted   = 5 * time.Minute // for the gateways to get to know each other
	settledFor   = 2               // readings of the ledger in a row that must be equal
	settleEvery  = 500 * time.Millisecond
	replayDialIn = 20 * time.Second
)

// Replay plays a trace in real time: gateways as processes, the emulator between their namespaces, edge peers on TCP
// sockets. When ctx ends before the trace does, the Result holds the figures until then and is marked partial.
func Replay(ctx context.Context, s *replay.Script, o ReplayOptions) (*replay.Result, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if o.Bin == 0 {
		o.Bin = max(time.Second, (s.Duration / 120).Round(time.Second))
	}
	if o.Drain == 0 {
		o.Drain = time.Minute + 4*o.Terminal.RoundTripMax(o.Terminal.MTU)
		if o.Terminal.Transport == profile.PMul { // the acknowledgements of P_Mul take their time
			o.Drain += 4 * time.Minute
		}
	}
	prog := &progressLog{w: o.Progress, begin: time.Now()}
	r := &liveReplay{
		o: o, s: s, voice: prog.voice("replay"), record: replay.NewRecord(s), meter: replay.NewMeter(o.Terminal), bell: make(chan struct{}, 1),
		peers: make([]*tcp.Peer, len(s.Peers)),
	}
	return r.play(ctx)
}

// complete fills in the options that a live replay of any clients needs.
func (o *ReplayOptions) complete() (err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Gateway == "" {
		if o.Gateway, err = cli.Beside("gateway"); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	return nil
}

// game has namespaces, emulator and gateways for the replay; no peers.
func (o *ReplayOptions) game(v *voice) *game {
	return &game{o: Options{Profile: o.Profile, Seed: o.Seed, Ships: 1, Gateway: o.Gateway, Keep: o.Keep}, p: o.Terminal, kind: "replay", voice: v}
}

// liveReplay is one run.
type liveReplay struct {
	o ReplayOptions
	s *replay.Script
	*voice
	record *replay.Record
	cast   *replay.Cast
	meter  *replay.Meter
	game   *game // namespaces, emulator and gateways; no JXTA peers
	peers  []*tcp.Peer
	zero   time.Time
	failed error // of an edge peer

	mu    sync.Mutex
	heard []heardNotice
	bell  chan struct{} // a message was heard
}

type heardNotice struct {
	at   time.Time
	peer int
	n    edgepeer.Notice
}

func (r *liveReplay) play(ctx context.Context) (res *replay.Result, err error) {
	g := r.o.game(r.voice)
	g.settings, g.capture = []replay.Gateway{r.o.Shore, r.o.Ship}, true
	r.game = g
	var captured string
	defer func() {
		for _, p := range r.peers {
			if p != nil {
				p.Close()
			}
		}
		r.logf("removing namespaces and processes")
		if g.hub != nil {
			err = errors.Join(err, g.hub.Close())
			if res != nil && err == nil {
				if cerr := r.compare(res, captured); cerr != nil {
					res.Problem("the capture of the link: %v", cerr)
				}
			}
		}
		run := &Run{}
		_, terr := g.tearDown(run, nil, func() {})
		if res != nil {
			for _, e := range run.GatewayErrors {
				res.Problem("%s", e)
			}
		}
		err = errors.Join(err, terr)
	}()
	if err := g.setUp(ctx); err != nil {
		return nil, err
	}
	captured = g.dir
	for _, site := range g.sites {
		if err := site.gateway.start(ctx); err != nil {
			return nil, err
		}
	}
	r.logf("both gateways take connections")
	if err := r.meet(ctx); err != nil {
		return nil, err
	}
	if err := r.dialAll(ctx); err != nil {
		return nil, err
	}
	err = r.actions(ctx)
	if err == nil {
		err = r.drain(ctx)
	}
	end := time.Since(r.zero)
	if err != nil {
		r.meter.Result.Problem("ended early, after %.0f s of %.0f s", end.Seconds(), r.s.Duration.Seconds())
	}
	return r.finish(end, err)
}

// meet waits until the gateways know each other.
func (r *liveReplay) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, acquainted)
	defer cancel()
	for {
		reading, err := r.reading(ctx)
		if err != nil {
			return err
		}
		if reading.Ship.Peers[0].Knows && reading.Shore.Peers[0].Knows {
			r.logf("the gateways know each other: time counts from here")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lab: the gateways did not get to know each other: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// dialAll starts the edge peers, all of them in the namespaces of their gateways.
func (r *liveReplay) dialAll(ctx context.Context) error {
	r.cast = replay.NewCast(r.s, r.record, func(peer int, ev edgepeer.Event) {
		if _, err := r.peers[peer].Do(ev); err != nil && r.failed == nil {
			r.failed = fmt.Errorf("peer %s: %w", r.s.Peers[peer].Name, err)
		}
	})
	ctx, cancel := context.WithTimeout(ctx, replayDialIn)
	defer cancel()
	r.zero = time.Now()
	for i, p := range r.s.Peers {
		site := r.game.sites[0]
		if p.Edge {
			site = r.game.sites[1]
		}
		cfg := tcp.Config{
			Edge:    edgepeer.Config{ID: p.ID, Name: p.Name, Rand: rand.New(rand.NewPCG(r.o.Seed, uint64(i)))},
			Address: site.gateway.lan,
			Dial:    func(ctx context.Context, address string) (net.Conn, error) { return DialIn(ctx, site.ns, address) },
			Hear:    func(_ *tcp.Peer, n edgepeer.Notice) { r.post(i, n) },
		}
		var err error
		if r.peers[i], err = tcp.Dial(ctx, cfg); err != nil {
			return err
		}
	}
	return nil
}

// post keeps a notice for the loop. It copies the data to which the notice refers, because they are lost when it returns.
func (r *liveReplay) post(peer int, n edgepeer.Notice) {
	switch m := n.(type) {
	case edgepeer.Message:
		m.Elements = slices.Clone(m.Elements)
		for i := range m.Elements {
			m.Elements[i] = jxta.Element{Namespace: strings.Clone(m.Elements[i].Namespace), Name: strings.Clone(m.Elements[i].Name), Data: slices.Clone(m.Elements[i].Data)}
		}
		n = m
	case edgepeer.Answer:
		m.Raw = slices.Clone(m.Raw)
		n = m
	}
	r.mu.Lock()
	r.heard = append(r.heard, heardNotice{time.Now(), peer, n})
	r.mu.Unlock()
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

// listen records the messages that were heard.
func (r *liveReplay) listen() {
	r.mu.Lock()
	list := r.heard
	r.heard = nil
	r.mu.Unlock()
	for _, h := range list {
		r.cast.Hear(h.at.Sub(r.zero), h.peer, h.n)
	}
}

// until lets time pass until a time of the trace, while it listens and notes each bin that is over.
func (r *liveReplay) until(ctx context.Context, at time.Duration) error {
	for {
		r.listen()
		if r.failed != nil {
			return r.failed
		}
		now := time.Since(r.zero)
		bins := time.Duration(len(r.meter.Result.Bins))
		if now >= (bins+1)*r.o.Bin {
			reading, err := r.reading(ctx)
			if err != nil {
				return err
			}
			r.meter.Bin(bins*r.o.Bin, reading)
			if r.o.At != nil {
				r.o.At(now, r.s.Duration)
			}
			continue
		}
		if now >= at {
			return nil
		}
		timer := time.NewTimer(min(at, (bins+1)*r.o.Bin) - now)
		select {
		case <-timer.C:
		case <-r.bell:
		case <-ctx.Done():
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// actions plays the trace.
func (r *liveReplay) actions(ctx context.Context) error {
	for i := range r.s.Actions {
		a := &r.s.Actions[i]
		if err := r.until(ctx, a.At); err != nil {
			return err
		}
		r.cast.Do(time.Since(r.zero), a)
	}
	return r.until(ctx, r.s.Duration)
}

// drain waits until all messages have arrived and are acknowledged, and the link is silent; or until none is under way any more.
func (r *liveReplay) drain(ctx context.Context) error {
	r.logf("the trace is over")
	begin := time.Since(r.zero)
	quiet := begin
	var last [2]int64
	same := 0
	for now := begin; now < begin+r.o.Drain && same < settledFor; now = time.Since(r.zero) {
		if err := r.until(ctx, now+settleEvery); err != nil {
			return err
		}
		reading, err := r.reading(ctx)
		if err != nil {
			return err
		}
		st := reading.Link
		sum := [2]int64{sentBy(reading.Ship) + sentBy(reading.Shore), st.Node("ship").Up.OnAir.Octets + st.Node("hq").Up.OnAir.Octets}
		if !reading.Idle() || sum != last {
			quiet = now
		}
		if reading.Idle() && sum == last && (r.record.Delivered() || now-quiet >= replay.QuietFor) {
			same++
		} else {
			same = 0
		}
		last = sum
	}
	return nil
}

// sentBy is the octets sent, by a ledger.
func sentBy(st api.Status) (octets int64) {
	for _, row := range st.Ledger {
		if row.Direction == "sent" {
			octets += int64(row.Octets)
		}
	}
	return octets
}

// finish computes the figures. broken is the error that ended the run early, if there was one.
func (r *liveReplay) finish(end time.Duration, broken error) (*replay.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gatewayStop)
	defer cancel()
	reading, err := r.reading(ctx)
	if err != nil {
		return nil, errors.Join(broken, err)
	}
	r.listen()
	res := r.meter.Result
	res.Mode, res.Profile, res.Seed, res.BinS = "live", r.o.Terminal.Name, r.o.Seed, r.o.Bin.Seconds()
	r.meter.Finish(r.record, end, reading)
	if broken != nil {
		return res, broken
	}
	return res, r.meter.Overload(r.s)
}

// reading reads the figures of both gateways and the emulator.
func (r *liveReplay) reading(ctx context.Context) (reading replay.Reading, err error) {
	sites := r.game.sites
	reading.ShoreNode, reading.ShipNode = sites[0].name, sites[1].name
	if reading.Shore, err = sites[0].gateway.status(ctx); err != nil {
		return reading, err
	}
	if reading.Ship, err = sites[1].gateway.status(ctx); err != nil {
		return reading, err
	}
	reading.Link = r.game.hub.Stats().Link
	return reading, nil
}

// compare checks the ledgers against the emulator's captures of each node's own packets.
func (r *liveReplay) compare(res *replay.Result, dir string) error {
	c := &replay.LinkCapture{}
	for _, s := range r.game.sites {
		f, err := os.Open(filepath.Join(dir, s.name+".pcap"))
		if err != nil {
			return err
		}
		defer f.Close()
		in, err := trace.NewReader(f)
		if err != nil {
			return err
		}
		own := linkAddr(s.index).Addr()
		for {
			p, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			const source, protocol, udp = 12, 9, 17
			if len(p.Data) < 20 || netip.AddrFrom4([4]byte(p.Data[source:source+4])) != own {
				continue
			}
			if p.Data[protocol] != udp {
				c.Other += int64(p.Length)
				continue
			}
			c.Octets += int64(p.Length)
			c.Packets++
		}
	}
	for _, row := range res.Ledger {
		c.Ledger += row.Octets
	}
	res.SetCapture(c)
	return nil
}
