package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/sim"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

const (
	// MaxTAKEvents bounds a play: an hour of two hundred devices that report every two seconds.
	MaxTAKEvents = 400_000

	// TAKDrain is the time for events under way after the last event.
	TAKDrain = 5 * time.Minute

	takMeeting   = 2 * time.Minute // for the gateways to know each other, before the first event
	overhead     = 40              // octets of a datagram besides a batch, by a gateway's estimate
	longestBatch = 400             // octets
)

// TAKEvent is an event that a device sent.
type TAKEvent struct {
	At    time.Duration // from the beginning
	From  string        // address of the device
	Event *cot.Event
}

// ErrNoTAK says that there are no events to play.
var ErrNoTAK = errors.New("replay: no events")

// RunTAK plays events, which are in order of time.
func RunTAK(ctx Context, events []TAKEvent, o Options) (*trace.CoTCost, error) {
	switch {
	case len(events) == 0:
		return nil, ErrNoTAK
	case len(events) > MaxTAKEvents:
		return nil, fmt.Errorf("replay: %d events, at most %d are played", len(events), MaxTAKEvents)
	}
	p, err := newTAKPlayer(events, o)
	if err != nil {
		return nil, err
	}
	return p.play(ctx, events)
}

// takPlayer is one play.
type takPlayer struct {
	w       *sim.World
	o       Options
	devices map[string]site.ConnID
	watch   *TAKWatch
	res     trace.CoTCost
}

const watcher site.ConnID = 1

func newTAKPlayer(events []TAKEvent, o Options) (*takPlayer, error) {
	p := &takPlayer{o: o, devices: map[string]site.ConnID{}, res: trace.CoTCost{Profile: o.Profile.Name, Summary: o.Profile.Summary, Seed: o.Seed, Events: len(events)}}
	p.watch = NewTAKWatch()
	shared := o.Profile.Transport == profile.PMul
	var err error
	p.w, err = o.world(func(_ *sim.Node, c *sim.Setup) {
		cfg := tak.Config{Shared: shared, RateBps: o.Profile.SlowerBps(), Twice: o.Profile.Free(), Bound: o.Bound, Octets: min(longestBatch, o.Profile.DatagramOctets-overhead)}
		for _, peer := range c.Peers {
			cfg.Sites = append(cfg.Sites, peer.ID)
		}
		c.Adapters[site.TAK] = func(memories []site.Memory) (sim.Adapter, error) { return tak.New(cfg, memories) }
	}, p.output)
	return p, err
}

func (p *takPlayer) shore() *sim.Node { return p.w.Nodes[0] }
func (p *takPlayer) ship() *sim.Node  { return p.w.Nodes[1] }

// output gives the watching device ashore the events from its gateway.
func (p *takPlayer) output(n *sim.Node, out api.Output) {
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

// device is the connection of an address, made at its first event.
func (p *takPlayer) device(from string) site.ConnID {
	conn, ok := p.devices[from]
	if !ok {
		conn = watcher + 1 + site.ConnID(len(p.devices))
		p.devices[from] = conn
		p.w.DeliverLAN(p.ship(), site.TAK, tak.Opened{Conn: conn, Remote: from + ":5000"})
	}
	return conn
}

func (p *takPlayer) play(ctx Context, events []TAKEvent) (*trace.CoTCost, error) {
	p.w.DeliverLAN(p.shore(), site.TAK, tak.Opened{Conn: watcher, Remote: "10.20.1.2:5000"})
	p.w.Run(takMeeting)
	before := p.w.Link.Stats()
	zero := p.w.Now
	for _, e := range events {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at := zero.Add(e.At); at.After(p.w.Now) {
			p.w.Run(at.Sub(p.w.Now))
		}
		moved := MovedTAK(e.Event, p.w.Now)
		xml := moved.AppendXML(nil)
		p.res.CoT += int64(len(xml))
		if said := p.watch.Said(p.w.Now, moved); said != nil {
			p.w.At(CompareAfter, said.Compare)
			p.res.Reports++
		}
		p.w.DeliverLAN(p.ship(), site.TAK, tak.Heard{Conn: p.device(e.From), Frame: xml})
	}
	length := max(time.Second, p.w.Now.Sub(zero))
	p.w.Run(TAKDrain)
	p.watch.Figures(&p.res)
	PriceTAK(&p.res, p.o.Profile, before, p.w.Link.Stats(), length, TAKDrain)
	return &p.res, nil
}

// PriceTAK fills in the cost of the events on a link with the nodes hq and ship. before and after are the link's counters; the events
// took length, and the traffic afterwards took drained.
func PriceTAK(r *trace.CoTCost, p profile.Profile, before, after linkemu.Stats, length, drained time.Duration) {
	was, is := before.Node(shipNode), after.Node(shipNode)
	r.Octets = is.Up.OnAir.Octets - was.Up.OnAir.Octets + is.Down.OnAir.Octets - was.Down.OnAir.Octets
	r.Datagrams = is.Up.OnAir.Frames - was.Up.OnAir.Frames + is.Down.OnAir.Frames - was.Down.OnAir.Frames
	r.PerReport = float64(r.Octets) / float64(max(1, r.Reports))
	if rate := p.Up.RateBps; rate > 0 {
		r.UnaidedPct = 100 * 8 * float64(r.CoT) / length.Seconds() / float64(rate)
	}
	busy := []time.Duration{is.Up.Busy - was.Up.Busy, is.Down.Busy - was.Down.Busy}
	if p.Shared {
		busy = []time.Duration{busy[0] + after.Node(shoreNode).Up.Busy - before.Node(shoreNode).Up.Busy}
	}
	r.BusyPct = 100 * slices.Max(busy).Seconds() / (length + drained).Seconds()
	for _, b := range busy {
		r.AirMinutes += b.Minutes()
	}
}

// MovedTAK is an event as if a device had made it now: start and stale times keep their distance from its time.
func MovedTAK(e *cot.Event, now time.Time) *cot.Event {
	c := *e
	c.Time, c.Start, c.Stale = now, now.Add(e.Start.Sub(e.Time)), now.Add(max(e.Stale.Sub(e.Time), time.Second))
	if c.Stale.Before(c.Start) {
		c.Start = now
	}
	return &c
}
