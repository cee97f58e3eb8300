package replay

import (
	"cmp"
	"fmt"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/lab/trace"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/rules/route"
)

// Context is the part of a context.Context that Run needs: why it should end, if it should.
type Context interface{ Err() error }

// Gateway is an operator's settings of the gateway of one side. The zero value is a gateway without settings of its own.
type Gateway struct {
	Name      string
	Rules     []compact.Rule
	Filters   []filter.Rule // their Site is 1 for the shore, 2 for the ship, 0 for any
	Messages  []mark.Rule
	Routes    []route.Rule // their Sites are empty: a trace has two sides
	Keepalive time.Duration
	PerDay    [2]int64 // IP octets that each of two bearers may carry in a day; 0: any
}

// Options of a replay.
type Options struct {
	Profile profile.Profile // of the ship's terminal; every value of it counts
	Wire    profile.Profile // of the shore's leg of a star; zero: the profile called wire
	Link    string          // with two bearers, the name of Profile's bearer, and Price its price
	Price   float64         // of 1,000 octets
	Second  *sim.Second     // the other bearer; nil: there is only one
	Seed    uint64          // of losses and jitter, and of the data that the trace lacks
	// Ship and Shore are the gateways' configurations.
	Ship, Shore Gateway
	Content     string        // of messages that have only sizes: trace.ContentXML (the default), ContentText, ContentRandom
	Bin         time.Duration // of Result.Bins; zero: a 120th of the trace, a second at least
	Drain       time.Duration // how long to wait after the trace for messages under way, at most; zero: an hour
	Bound       float64       // metres by which a far TAK unit may be wrong; 0: the adapter's own bound
	// Progress is called with the time reached in the trace; may be nil. It runs on the caller's goroutine.
	Progress func(at, of time.Duration)
}

// The nodes on the emulated link, as in the lab, so that the same seed has the same losses and delays in both.
const (
	shoreNode = "hq"
	shipNode  = "ship"
)

const (
	warmUp    = 10 * time.Minute // at most, for the gateways to get to know each other
	drainMost = time.Hour
	tick      = time.Second
	// QuietFor is how long no message must be under way between the gateways until missing ones are given up: peers wait a minute for a
	// pipe's listener, bridges a quarter of a minute for a propagate pipe's.
	QuietFor = 90 * time.Second
)

// Run plays a trace in virtual time. When ctx ends before the trace does, the Result holds the figures until then and is marked partial,
// and the error is the context's. An *OverloadError comes with the whole Result.
func Run(ctx Context, f *trace.File, o Options) (*Result, error) {
	s, err := NewScript(f, o.Content, o.Seed)
	if err != nil {
		return nil, err
	}
	return RunScript(ctx, s, o)
}

// RunScript is Run for a trace that has been read before. The script is not changed: many runs may share it.
func RunScript(ctx Context, s *Script, o Options) (*Result, error) {
	p, err := newPlayer(s, o)
	if err != nil {
		return nil, err
	}
	return p.play(ctx)
}

// player is one replay in virtual time.
type player struct {
	o     Options
	s     *Script
	r     *Record
	w     *sim.World
	shore *sim.Node
	ship  *sim.Node
	lan   *lan
	zero  time.Time // when the trace begins
	res   *Result
	meter *Meter
}

func newPlayer(s *Script, o Options) (*player, error) {
	if o.Bin == 0 {
		o.Bin = max(time.Second, (s.Duration / 120).Round(time.Second))
	}
	o.Drain = cmp.Or(o.Drain, drainMost)
	p := &player{o: o, s: s, r: NewRecord(s)}
	p.lan = newLAN(p)
	p.meter = NewMeter(o.Profile)
	p.res = p.meter.Result
	*p.res = Result{Mode: "sim", Profile: o.Profile.Name, Seed: o.Seed, BinS: round(o.Bin.Seconds())}
	var err error
	p.w, err = o.world(func(n *sim.Node, c *sim.Setup) {
		g := o.Shore
		if n.ID != 1 {
			g = o.Ship
		}
		c.Name = cmp.Or(g.Name, n.Name)
		c.Rules, c.Messages, c.Keepalive, c.Filter = g.Rules, g.Messages, g.Keepalive, filter.New(g.Filters)
		c.Bearer, c.Price, c.Routes, c.PerDay = o.Link, o.Price, g.Routes, g.PerDay[0]
		for i := range c.More {
			c.More[i].PerDay = g.PerDay[1]
		}
		p.lan.configure(n, c)
	}, p.output)
	if err != nil {
		return nil, err
	}
	p.shore, p.ship = p.w.Nodes[0], p.w.Nodes[1]
	return p, nil
}

// world is two gateways with clients of any kind, and the link between them.
func (o Options) world(configure func(*sim.Node, *sim.Setup), lan func(*sim.Node, api.Output)) (w *sim.World, err error) {
	if o.Wire.Name == "" {
		if o.Wire, err = profile.Load("wire", nil); err != nil {
			return nil, err
		}
	}
	w, err = sim.New(sim.Config{Nodes: 2, Names: []string{shoreNode, shipNode}, Profile: o.Profile, Wire: o.Wire, Seed: o.Seed, Second: o.Second,
		Group: o.Profile.Transport == profile.PMul && o.Profile.Shared, Configure: configure, LAN: lan, Known: new(compact.Known)})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return w, nil
}

func (p *player) node(edge bool) *sim.Node {
	if edge {
		return p.ship
	}
	return p.shore
}

// at is the time since the trace's beginning.
func (p *player) at() time.Duration { return p.w.Now.Sub(p.zero) }

// play plays to the end, or until ctx ends.
func (p *player) play(ctx Context) (*Result, error) {
	for w := time.Duration(0); w < warmUp && !p.acquainted(); w += tick {
		p.w.Run(tick)
	}
	p.zero = p.w.Now
	p.lan.begin()
	for i := range p.s.Actions {
		a := &p.s.Actions[i]
		p.w.At(a.At, func() { p.lan.cast.Do(p.at(), a) })
	}
	err := p.bins(ctx, p.s.Duration)
	if err == nil {
		err = p.drain(ctx)
	}
	if err != nil {
		p.res.Problem("ended early, after %.0f s of %.0f s", p.at().Seconds(), p.s.Duration.Seconds())
	}
	p.meter.Finish(p.r, p.at(), p.reading())
	p.waysOf()
	if err != nil {
		return p.res, err
	}
	return p.res, p.meter.Overload(p.s)
}

func (p *player) acquainted() bool {
	for _, n := range p.w.Nodes {
		if !n.GW.Status(p.w.Now).Peers[0].Knows {
			return false
		}
	}
	return true
}

// bins plays until a time of the trace, and notes the bins.
func (p *player) bins(ctx Context, until time.Duration) error {
	for p.at() < until {
		if err := ctx.Err(); err != nil {
			return err
		}
		step := min(p.o.Bin, until-p.at())
		from := p.at()
		p.w.Run(step)
		p.meter.Bin(from, p.reading())
		if p.o.Progress != nil {
			p.o.Progress(p.at(), p.s.Duration)
		}
	}
	return nil
}

// drain waits until every message has arrived and is acknowledged, or none is under way any more.
func (p *player) drain(ctx Context) error {
	quiet := p.at()
	for end := p.at() + p.o.Drain; p.at() < end; {
		r := p.reading()
		switch {
		case !r.Idle():
			quiet = p.at()
		case p.r.Delivered() || p.at()-quiet >= QuietFor:
			return nil
		}
		if err := p.bins(ctx, min(end, p.at()+p.o.Bin)); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) reading() Reading {
	r := Reading{Ship: p.ship.GW.Status(p.w.Now), Shore: p.shore.GW.Status(p.w.Now), Link: p.w.Link.Stats(),
		ShipNode: p.ship.Name, ShoreNode: p.shore.Name}
	if p.o.Second != nil {
		r.Other = p.aired(1)
	}
	return r
}
