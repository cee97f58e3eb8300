package replay

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/compact"
	"aldis/internal/gateway"
	"aldis/internal/linkemu"
	"aldis/internal/profile"
	"aldis/internal/sim"
	"aldis/internal/trace"
)

// Context is what Run needs of a context.Context: why it should end, if it should.
type Context interface{ Err() error }

// Gateway is what an operator's configuration says of the gateway of one side. The zero value is a gateway without
// settings of its own.
type Gateway struct {
	Name      string
	Rules     []compact.Rule
	Keepalive time.Duration
	Group     netip.AddrPort
}

// Options of a replay.
type Options struct {
	Profile profile.Profile // of the ship's terminal, every value of it counts
	Wire    profile.Profile // of the shore's leg of a star; zero: the profile called wire
	Seed    uint64          // of losses and jitter, and of what the trace does not say
	// Ship and Shore are the gateways' configurations.
	Ship, Shore Gateway
	Content     string        // of messages that have only sizes: trace.ContentXML (the default), ContentText, ContentRandom
	Bin         time.Duration // of Result.Bins; zero: a 120th of the trace, a second at least
	Drain       time.Duration // the most that is waited after the trace for what is under way; zero: an hour
	// Progress is told how far the trace is; may be nil. It runs on the caller's goroutine.
	Progress func(at, of time.Duration)
}

// OverloadError says that a profile cannot carry a trace, and by how much.
type OverloadError struct {
	Profile    string
	Direction  string  // "ship to shore" or "shore to ship"
	OfferedBps float64 // octets on the air and those that waited at the end, over the time that there was
	RateBps    int
}

func (e *OverloadError) Error() string {
	return fmt.Sprintf("profile %s cannot carry the trace: %s %.0f bit/s are offered and the link takes %d (%.1f times too much)",
		e.Profile, e.Direction, e.OfferedBps, e.RateBps, e.OfferedBps/float64(e.RateBps))
}

const (
	warmUp    = 10 * time.Minute // at most, for the gateways to get to know each other
	drainMost = time.Hour
	tick      = time.Second // how finely the end is looked for
)

// Run plays a trace in virtual time. When ctx ends before the trace does, the Result holds what there was until then,
// is marked partial, and the error is the context's. An *OverloadError comes with the whole Result.
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
	zero  time.Time // of the trace
	res   *Result
	prev  [2]map[string]int64 // ledgers at the end of the last bin
	busy  [2]time.Duration
}

func newPlayer(s *Script, o Options) (*player, error) {
	if o.Wire.Name == "" {
		var err error
		if o.Wire, err = profile.Load("wire", nil); err != nil {
			return nil, err
		}
	}
	if o.Bin == 0 {
		o.Bin = max(time.Second, (s.Duration / 120).Round(time.Second))
	}
	o.Drain = cmp.Or(o.Drain, drainMost)
	p := &player{o: o, s: s, r: NewRecord(s)}
	p.lan = newLAN(p)
	p.res = &Result{Mode: "sim", Profile: o.Profile.Name, Seed: o.Seed, BinS: round(o.Bin.Seconds())}
	mul := o.Profile.Transport == profile.PMul
	var err error
	p.w, err = sim.New(sim.Config{
		Nodes: 2, Profile: o.Profile, Wire: o.Wire, Seed: o.Seed, Group: mul && o.Profile.Shared, LAN: p.lan.output,
		Configure: func(n *sim.Node, c *gateway.Config) {
			g, name := o.Shore, "hq"
			if n.ID != 1 {
				g, name = o.Ship, "ship"
			}
			c.Name = cmp.Or(g.Name, name)
			c.Rules, c.Keepalive = g.Rules, g.Keepalive
			p.lan.configure(n, c)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	p.shore, p.ship = p.w.Nodes[0], p.w.Nodes[1]
	return p, nil
}

func (p *player) node(edge bool) *sim.Node {
	if edge {
		return p.ship
	}
	return p.shore
}

// at is the time since the trace's beginning.
func (p *player) at() time.Duration { return p.w.Now.Sub(p.zero) }

// play runs to the end, or as far as ctx allows.
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
		p.res.problem("ended at %.0f s of %.0f s: %v", p.at().Seconds(), p.s.Duration.Seconds(), err)
	}
	p.figures()
	if err != nil {
		return p.res, err
	}
	return p.res, p.overload()
}

func (p *player) acquainted() bool {
	for _, n := range p.w.Nodes {
		if !n.GW.Status(p.w.Now).Peers[0].Knows {
			return false
		}
	}
	return true
}

// bins plays until a time of the trace.
func (p *player) bins(ctx Context, until time.Duration) error {
	for p.at() < until {
		if err := ctx.Err(); err != nil {
			return err
		}
		step := min(p.o.Bin, until-p.at())
		from := p.at()
		p.w.Run(step)
		p.bin(from)
		if p.o.Progress != nil {
			p.o.Progress(p.at(), p.s.Duration)
		}
	}
	return nil
}

// drain waits until everything has arrived and is acknowledged.
func (p *player) drain(ctx Context) error {
	for end := p.at() + p.o.Drain; p.at() < end && !p.settled(); {
		if err := p.bins(ctx, min(end, p.at()+p.o.Bin)); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) settled() bool {
	if !p.r.Delivered() {
		return false
	}
	for _, n := range p.w.Nodes {
		q := queueOf(n.GW.Status(p.w.Now))
		if q.Messages+q.UnderWay > 0 {
			return false
		}
	}
	return true
}

func queueOf(st gateway.Status) (q Queue) {
	for _, peer := range st.Peers {
		q.Messages += peer.Waiting
		q.UnderWay += peer.UnderWay
		q.Octets += peer.WaitingOctets
	}
	return q
}

// bin notes what happened since from.
func (p *player) bin(from time.Duration) {
	b := Bin{T: round(from.Seconds())}
	kinds := [2]map[string]int64{{}, {}}
	for i, n := range []*sim.Node{p.ship, p.shore} {
		st := n.GW.Status(p.w.Now)
		total := map[string]int64{}
		for _, row := range st.Ledger {
			if row.Direction == "sent" {
				total[row.Kind] += int64(row.Octets)
			}
		}
		for kind, octets := range total {
			if d := octets - p.prev[i][kind]; d > 0 {
				kinds[i][kind] = d
			}
		}
		p.prev[i] = total
		q := queueOf(st)
		if i == 0 {
			b.Queue.Up = q
		} else {
			b.Queue.Down = q
		}
	}
	b.Octets = UpDown[map[string]int64]{kinds[0], kinds[1]}
	up, down := p.counters()
	b.BusyS = UpDown[float64]{round((up.Busy - p.busy[0]).Seconds()), round((down.Busy - p.busy[1]).Seconds())}
	p.busy = [2]time.Duration{up.Busy, down.Busy}
	p.res.Bins = append(p.res.Bins, b)
}

// figures draws the result.
func (p *player) figures() {
	up, down := p.counters()
	res := p.res
	res.LinkBytes = UpDown[int64]{up.OnAir.Octets, down.OnAir.Octets}
	res.LinkPackets = UpDown[int64]{up.OnAir.Frames, down.OnAir.Frames}
	res.Dropped = UpDown[int64]{up.DroppedQueue.Frames, down.DroppedQueue.Frames}
	st := p.w.Link.Stats()
	res.Lost = UpDown[int64]{up.DroppedLoss.Frames, down.DroppedLoss.Frames}
	if p.o.Profile.Shared { // drawn where it is heard
		res.Lost = UpDown[int64]{st.Node(p.shore.Name).Down.DroppedLoss.Frames, st.Node(p.ship.Name).Down.DroppedLoss.Frames}
	}
	ship, shore := p.ship.GW.Status(p.w.Now), p.shore.GW.Status(p.w.Now)
	res.Ledger = slices.Concat(ledgerOf(ship, shore.Name), ledgerOf(shore, ship.Name))
	res.Waiting = UpDown[Queue]{queueOf(ship), queueOf(shore)}
	res.setRates(p.o.Profile, p.s, p.at())
	res.BusyPct = UpDown[float64]{percent(int64(up.Busy), int64(p.at())), percent(int64(down.Busy), int64(p.at()))}
	var repeated int64
	for _, st := range []gateway.Status{ship, shore} {
		for _, peer := range st.Peers {
			repeated += int64(peer.Repeated)
		}
	}
	res.Captures.Replay.Retransmissions = &repeated
	res.Figures(p.r, p.at())
	res.Link()
}

// setRates is what was offered beside what the link takes.
func (res *Result) setRates(p profile.Profile, s *Script, _ time.Duration) {
	res.RateBps = UpDown[int]{p.Up.RateBps, p.Down.RateBps}
	var up, down int64
	for _, m := range s.Messages {
		switch {
		case len(m.To) == 0:
		case s.Peers[m.Peer].Edge:
			up += int64(m.Octets)
		default:
			down += int64(m.Octets)
		}
	}
	if d := s.Duration.Seconds(); d > 0 {
		res.Offered = UpDown[float64]{round(float64(up) * 8 / d), round(float64(down) * 8 / d)}
	}
}

// overload says whether the link was too thin: something was left at the end.
func (p *player) overload() error {
	if p.res.Messages.Lost == 0 {
		return nil
	}
	if err := p.res.Overload(p.o.Profile, p.at()); err != nil {
		p.res.problem("%v", err)
		return err
	}
	return nil
}

// Overload is an *OverloadError when messages were left over because the link takes less than it was offered; elapsed is
// how long it was given.
func (res *Result) Overload(p profile.Profile, elapsed time.Duration) error {
	var errs []error
	for _, d := range []struct {
		name   string
		octets int64
		rate   int
	}{
		{"ship to shore", res.LinkBytes.Up + int64(res.Waiting.Up.Octets), p.Up.RateBps},
		{"shore to ship", res.LinkBytes.Down + int64(res.Waiting.Down.Octets), p.Down.RateBps},
	} {
		bps := float64(d.octets) * 8 / elapsed.Seconds()
		if d.rate > 0 && bps > float64(d.rate) {
			errs = append(errs, &OverloadError{p.Name, d.name, round(bps), d.rate})
		}
	}
	return errors.Join(errs...)
}

// counters are those of the ship's two directions; on a shared channel what each said.
func (p *player) counters() (up, down linkemu.Counters) {
	st := p.w.Link.Stats()
	up, down = st.Node(p.ship.Name).Up, st.Node(p.ship.Name).Down
	if p.o.Profile.Shared {
		down = st.Node(p.shore.Name).Up
	}
	return up, down
}
