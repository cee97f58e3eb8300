package takplay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/sim"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
	"aldis/internal/site"
	"aldis/internal/tak"
	"aldis/internal/tak/cot"
)

const (
	// MaxEvents bounds a play: an hour of two hundred devices that report every two seconds.
	MaxEvents = 400_000

	// Drain is for what is under way when the last event was said.
	Drain = 5 * time.Minute

	acquaintance = 2 * time.Minute // that the gateways have to know each other, before the first event
	overhead     = 40              // octets of a datagram beside a batch, as a gateway reckons
	longestBatch = 400             // octets
)

// Event is what a device said.
type Event struct {
	At    time.Duration // from the beginning
	From  string        // address of the device
	Event *cot.Event
}

// Options of a play.
type Options struct {
	Profile profile.Profile
	Wire    profile.Profile // of the shore's leg of a star; zero: the profile called wire
	Seed    uint64
	Bound   float64 // metres that a far unit may be wrong by; 0: the face's own
}

// Context is what Play needs of a context.Context: why it should end, if it should.
type Context interface{ Err() error }

// Result is what a play cost, and what the far map was like.
type Result = trace.CoTCost

// ErrNothing says that there is nothing to play.
var ErrNothing = errors.New("takplay: no events")

// Play plays events, which are in order of time.
func Play(ctx Context, events []Event, o Options) (*Result, error) {
	switch {
	case len(events) == 0:
		return nil, ErrNothing
	case len(events) > MaxEvents:
		return nil, fmt.Errorf("takplay: %d events, at most %d are played", len(events), MaxEvents)
	}
	p, err := newPlayer(events, o)
	if err != nil {
		return nil, err
	}
	return p.play(ctx, events)
}

// player is one play.
type player struct {
	w       *sim.World
	o       Options
	devices map[string]site.ConnID
	watch   *Watch
	res     Result
}

const watcher site.ConnID = 1

func newPlayer(events []Event, o Options) (*player, error) {
	if o.Wire.Name == "" {
		var err error
		if o.Wire, err = profile.Load("wire", nil); err != nil {
			return nil, err
		}
	}
	p := &player{o: o, devices: map[string]site.ConnID{}, res: Result{Profile: o.Profile.Name, Summary: o.Profile.Summary, Seed: o.Seed, Events: len(events)}}
	p.watch = NewWatch()
	shared := o.Profile.Transport == profile.PMul
	var err error
	p.w, err = sim.New(sim.Config{Nodes: 2, Names: []string{"hq", "ship"}, Profile: o.Profile, Wire: o.Wire, Seed: o.Seed, Group: shared && o.Profile.Shared,
		Configure: func(n *sim.Node, g *gateway.Config) {
			cfg := tak.Config{Shared: shared, RateBps: o.Profile.SlowerBps(), Twice: o.Profile.Free(), Bound: o.Bound, Octets: min(longestBatch, o.Profile.DatagramOctets-overhead)}
			for _, peer := range g.Peers {
				cfg.Sites = append(cfg.Sites, peer.ID)
			}
			g.Faces[site.TAK] = func(memories []site.Memory) (gateway.Face, error) { return tak.New(cfg, memories) }
		},
		LAN: p.output})
	if err != nil {
		return nil, fmt.Errorf("takplay: %w", err)
	}
	return p, nil
}

func (p *player) shore() *sim.Node { return p.w.Nodes[0] }
func (p *player) ship() *sim.Node  { return p.w.Nodes[1] }

// output gives the watching device ashore what its gateway has for it.
func (p *player) output(n *sim.Node, out api.Output) {
	if n.ID != 1 {
		return
	}
	for _, o := range out.LAN {
		xml := tak.Given(o.Order, watcher)
		if len(xml) == 0 {
			continue
		}
		if e, err := cot.ParseXML(xml); err == nil {
			p.watch.Saw(p.w.Now, e)
		}
	}
}

// device is the connection of an address, made when it first speaks.
func (p *player) device(from string) site.ConnID {
	conn, ok := p.devices[from]
	if !ok {
		conn = watcher + 1 + site.ConnID(len(p.devices))
		p.devices[from] = conn
		p.w.TellFace(p.ship(), site.TAK, tak.Opened{Conn: conn, Remote: from + ":5000"})
	}
	return conn
}

func (p *player) play(ctx Context, events []Event) (*Result, error) {
	p.w.TellFace(p.shore(), site.TAK, tak.Opened{Conn: watcher, Remote: "10.20.1.2:5000"})
	p.w.Run(acquaintance)
	before := p.w.Link.Stats()
	zero := p.w.Now
	for _, e := range events {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at := zero.Add(e.At); at.After(p.w.Now) {
			p.w.Run(at.Sub(p.w.Now))
		}
		moved := Moved(e.Event, p.w.Now)
		xml := moved.AppendXML(nil)
		p.res.CoT += int64(len(xml))
		if said := p.watch.Said(p.w.Now, moved); said != nil {
			p.w.At(CompareAfter, said.Compare)
			p.res.Reports++
		}
		p.w.TellFace(p.ship(), site.TAK, tak.Heard{Conn: p.device(e.From), Frame: xml})
	}
	length := max(time.Second, p.w.Now.Sub(zero))
	p.w.Run(Drain)
	p.watch.Figures(&p.res)
	Price(&p.res, p.o.Profile, before, p.w.Link.Stats(), length, Drain)
	return &p.res, nil
}

// Price fills in what the events cost on a link with the nodes hq and ship. before and after are the link's counters; the events
// took length, and what was under way afterwards took drained.
func Price(r *Result, p profile.Profile, before, after linkemu.Stats, length, drained time.Duration) {
	was, is := before.Node("ship"), after.Node("ship")
	r.Octets = is.Up.OnAir.Octets - was.Up.OnAir.Octets + is.Down.OnAir.Octets - was.Down.OnAir.Octets
	r.Datagrams = is.Up.OnAir.Frames - was.Up.OnAir.Frames + is.Down.OnAir.Frames - was.Down.OnAir.Frames
	r.PerReport = float64(r.Octets) / float64(max(1, r.Reports))
	if rate := p.Up.RateBps; rate > 0 {
		r.UnaidedPct = 100 * 8 * float64(r.CoT) / length.Seconds() / float64(rate)
	}
	busy := []time.Duration{is.Up.Busy - was.Up.Busy, is.Down.Busy - was.Down.Busy}
	if p.Shared {
		busy = []time.Duration{busy[0] + after.Node("hq").Up.Busy - before.Node("hq").Up.Busy}
	}
	r.BusyPct = 100 * slices.Max(busy).Seconds() / (length + drained).Seconds()
	for _, b := range busy {
		r.AirMinutes += b.Minutes()
	}
}

// Moved is an event as if a device had made it now: start and staleness keep their distance from its time.
func Moved(e *cot.Event, now time.Time) *cot.Event {
	c := *e
	c.Time, c.Start, c.Stale = now, now.Add(e.Start.Sub(e.Time)), now.Add(max(e.Stale.Sub(e.Time), time.Second))
	if c.Stale.Before(c.Start) {
		c.Start = now
	}
	return &c
}
