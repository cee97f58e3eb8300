// Package linkemu is a link as arithmetic: (now, frame) -> arrivals. Rate, delay, loss, queues, half duplex, outages.
//
// The model is that of the baselines (links 1), so that figures can be compared with theirs:
//
//   - Star: frame -> up queue of the sender (drop-tail) -> serialised at the up rate -> loss -> delay and jitter ->
//     hub -> copied to the down pipe of each receiver -> queue, serialisation, loss, delay -> arrival.
//   - Shared half-duplex channel: one talker at a time, ideal arbitration in turns. All nodes hear; loss is drawn for
//     each on its own down direction, also for frames meant for someone else.
//
// Besides the baselines' losses of frames, a profile may have fades, which last for a time and hit all frames on the air, hand-overs and
// dropped calls of a satellite terminal, modems that compress, and queues with a bound on frames or age. All these can be replaced by the
// results of a real link for each packet (Measured).
//
// The same seed, node names and k-th frame on a pipe give the same fate: every pipe has its own generator and draws a
// fixed count per frame.
//
// # Time and units
//
// Callers pass now; nothing here reads a clock. Sizes are IP octets, rates bits per second. internal/lab/sim uses it in
// virtual time, internal/lab/field between network namespaces.
//
// # The other way
//
// Fit finds out from captures at both ends of a link what the link does to packets: rate, delay and jitter each way, loss and its bursts,
// the change of talker on a shared channel, and how the two clocks differ. It writes the results as a profile. OfLinkProbe does the same
// with the datagrams of a link probe.
//
// The captures are joined by their packets. Neither clock is trusted: on a star the least delays of the two directions are taken to be
// equal. Fit sends the same packets through a model of the link, queues included, and picks the rate and the turnaround that make the
// remaining delays most alike.
//
// # Files
//
//   - channel.go: a channel that all share, and its turns
//   - compress.go: modems that compress
//   - estimate.go: rate, delay, jitter and loss of one direction
//   - few.go: the same from few packets, as a link probe has them
//   - fit.go: Join, Fit
//   - fittext.go: the findings, as JSON and as text
//   - fitwrite.go: a profile that names the origin of each number
//   - linkemu.go: Link: a star, and the events of both
//   - measured.go: the results of a real link, packet by packet
//   - ofprobe.go: OfLinkProbe
//   - pipe.go: one direction of one node: queue, airtime, loss and delay
//   - quantile.go: quantiles of sorted figures, in the two ways that reports use
//   - wander.go: a rate that wanders
//   - spells.go: fades, hand-overs, dropped calls
//   - stats.go: counters
package linkemu

import (
	"errors"
	"fmt"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/link/profile"
)

// Node is one station. Its profile is its own leg of the star, or the channel, which must then be the same for all.
type Node struct {
	Name        string
	Profile     profile.Profile
	ReceiveOnly bool // its frames never reach the air; it still receives
	// Up and Down are measurements of its leg in place of the profile's loss, delay and jitter; empty: there are none. On a channel Up
	// does not count: a frame is lost or delayed where it is heard.
	Up, Down Measured
}

// Config of a link. Seed decides every loss and every jitter.
type Config struct {
	Nodes []Node
	Seed  uint64
	Wild
}

// Wild is faults of networks on the way that no profile announces to a gateway.
type Wild struct {
	Reorder  bool    // jitter lets a frame overtake others, whatever the profiles say
	TwicePct float64 // share of the frames on each leg that arrive a second time, with a jitter of their own, in percent
}

// Event is an event of a link: a Frame, an Outage, a Window or a Rate.
type Event interface{ linkEvent() }

type (
	// Frame is offered by node From. To is a node's name, or "" for all others. Octets counts IP octets, headers
	// included: a UDP payload of n has n+28. Data is passed on as it is; the link neither reads nor copies it.
	Frame struct {
		From, To string
		Octets   int
		Data     []byte
		By       int // machine of From, for a receiver that asks at the arrival; passed on unchanged
	}
	// Outage switches a node off the air (Down) or back on, now. A frame on the air to or from it is lost; queues go on and spend their
	// airtime into the void, as those of a modem do that does not notice.
	Outage struct {
		Node string
		Down bool
	}
	// Window is an outage with a beginning and an end, made known in advance. Windows may overlap.
	Window struct {
		Node        string
		From, Until time.Time
	}
)

// Rate gives a node's leg another rate, in both directions and in bits per second, from the next frame on. On a channel it has no effect.
type Rate struct {
	Node string
	Bps  int
}

func (Rate) linkEvent()   {}
func (Frame) linkEvent()  {}
func (Outage) linkEvent() {}
func (Window) linkEvent() {}

// Delivery is a frame that arrives at a node at a time, which is never after the now of the Step that returns it.
type Delivery struct {
	Node  string
	At    time.Time
	Frame Frame
}

// Output of one Step. Deliver is in order of arrival.
type Output struct {
	Deliver  []Delivery
	Deadline time.Time // when Step must be called again; zero: nothing is under way
}

// Errors of New and Step.
var (
	ErrConfig  = errors.New("linkemu: bad configuration")
	ErrUnknown = errors.New("linkemu: no such node")
)

// Link is the state of one emulated link. It is not safe for concurrent use.
type Link struct {
	nodes  []*node
	byName map[string]*node
	chann  *channel // nil for a star
	events due.Heap[event]
	serial uint64
	now    time.Time
	out    []Delivery
}

// node is one station's state.
type node struct {
	Node
	index     int
	up, down  *pipe
	calls     *spells    // its node is off the air during them; nil: none
	handovers *handovers // nil: none
	off       int        // number of reasons to be off the air: open windows, and the switch
	switched  bool       // the switch's part of off
	lastOff   time.Time  // when it last was off; zero: never
	upStats   Counters
	dnStats   Counters
}

// New checks the configuration: names are unique and not empty, media are not mixed, a channel is the same for all.
func New(cfg Config) (*Link, error) {
	if len(cfg.Nodes) < 2 {
		return nil, fmt.Errorf("%w: a link needs two nodes, has %d", ErrConfig, len(cfg.Nodes))
	}
	l := &Link{byName: map[string]*node{}}
	first := cfg.Nodes[0].Profile
	for i, n := range cfg.Nodes {
		p := n.Profile
		switch {
		case n.Name == "":
			return nil, fmt.Errorf("%w: node %d has no name", ErrConfig, i)
		case l.byName[n.Name] != nil:
			return nil, fmt.Errorf("%w: two nodes are called %q", ErrConfig, n.Name)
		case p.Shared != first.Shared:
			return nil, fmt.Errorf("%w: %s (%s) and %s (%s) are different media", ErrConfig, cfg.Nodes[0].Name, first.Name, n.Name, p.Name)
		case p.Shared && (p.Up != first.Up || p.Turnaround != first.Turnaround || p.MaxHold != first.MaxHold || p.KeyUp != first.KeyUp || p.FrameOverhead != first.FrameOverhead):
			return nil, fmt.Errorf("%w: %s and %s describe different channels", ErrConfig, first.Name, p.Name)
		case p.Shared && p.Up.RateBps <= 0:
			return nil, fmt.Errorf("%w: %s: a shared channel needs a rate", ErrConfig, p.Name)
		}
		nd := &node{Node: n, index: i}
		nd.calls = newSpells(generator(cfg.Seed, n.Name, "calls"), p.Calls.DropEvery, p.Calls.Redial, true)
		nd.handovers = newHandovers(generator(cfg.Seed, n.Name, "handovers"), p.Calls)
		nd.up = newPipe(nd, p.Up, cfg, "up", &nd.upStats, n.Up)
		nd.down = newPipe(nd, p.Down, cfg, "down", &nd.dnStats, n.Down)
		l.nodes = append(l.nodes, nd)
		l.byName[n.Name] = nd
	}
	if first.Shared {
		l.chann = newChannel(first)
	}
	return l, nil
}

// Step brings the link to now and applies ev; a nil ev means that only time passed. Time never goes back: an earlier
// now counts as the latest one seen. The error wraps ErrUnknown when ev names a node that does not exist; the link is
// unharmed.
func (l *Link) Step(now time.Time, ev Event) (Output, error) {
	l.out = nil
	l.run(now)
	if now.After(l.now) {
		l.now = now
	}
	err := l.apply(ev)
	l.run(l.now) // events that take no time happen in the same Step
	out := Output{Deliver: l.out}
	if len(l.events) > 0 {
		out.Deadline = l.events[0].at
	}
	return out, err
}

func (l *Link) apply(ev Event) error {
	switch ev := ev.(type) {
	case nil:
	case Frame:
		from := l.byName[ev.From]
		if from == nil {
			return fmt.Errorf("%w: %q", ErrUnknown, ev.From)
		}
		if ev.To != "" && l.byName[ev.To] == nil {
			from.upStats.DroppedNoRoute.add(ev.Octets)
			return fmt.Errorf("%w: %q", ErrUnknown, ev.To)
		}
		l.offer(from, ev)
	case Outage:
		n := l.byName[ev.Node]
		if n == nil {
			return fmt.Errorf("%w: %q", ErrUnknown, ev.Node)
		}
		if ev.Down != n.switched {
			n.switched = ev.Down
			l.turn(n, ev.Down)
		}
	case Rate:
		n := l.byName[ev.Node]
		if n == nil {
			return fmt.Errorf("%w: %q", ErrUnknown, ev.Node)
		}
		n.up.dir.RateBps, n.down.dir.RateBps = ev.Bps, ev.Bps
	case Window:
		n := l.byName[ev.Node]
		if n == nil {
			return fmt.Errorf("%w: %q", ErrUnknown, ev.Node)
		}
		if ev.Until.After(ev.From) {
			l.schedule(ev.From, func() { l.turn(n, true) })
			l.schedule(ev.Until, func() { l.turn(n, false) })
		}
	}
	return nil
}

// turn opens or closes one reason to be off the air.
func (l *Link) turn(n *node, off bool) {
	if off {
		n.off++
	} else {
		n.off--
	}
	n.lastOff = l.now
}

// heardSince tells whether the node was on the air all the time from start until now.
func (l *Link) heardSince(n *node, start time.Time) bool {
	return !n.calls.during(start, l.now) && n.off == 0 && (n.lastOff.IsZero() || !n.lastOff.After(start))
}

// offer takes a frame at the sender's interface.
func (l *Link) offer(from *node, f Frame) {
	st := &from.upStats
	switch {
	case from.ReceiveOnly:
		st.DroppedSilent.add(f.Octets)
	case f.Octets > from.Profile.MTU:
		st.DroppedMTU.add(f.Octets)
	case l.chann != nil:
		if from.up.enqueue(l.now, f) {
			l.grant()
		}
	default:
		if from.up.enqueue(l.now, f) {
			l.serve(from.up, l.atHub)
		}
	}
}

// serve puts the next frame of a star's pipe on the air when the pipe is free; when its last octet is out, the frame
// suffers loss and delay and then goes to arrive.
func (l *Link) serve(p *pipe, arrive func(*pipe, Frame)) {
	if p.busy {
		return
	}
	f, ok := p.dequeue(l.now)
	if !ok {
		return
	}
	p.busy = true
	start := l.now
	air := p.airtime(f)
	l.schedule(p.node.handovers.end(start, air), func() {
		p.busy = false
		p.stats.sent(f.Octets, air)
		at, fate := p.fate(start, l.now, f.Octets)
		switch {
		case !l.heardSince(p.node, start):
			p.stats.DroppedOutage.add(f.Octets)
		case fate == lost:
			p.stats.DroppedLoss.add(f.Octets)
		default:
			l.arrive(p, at, func() { arrive(p, f) })
		}
		l.serve(p, arrive)
	})
}

// arrive schedules the arrival of a frame that was not lost, and of its copy if it has one.
func (l *Link) arrive(p *pipe, at time.Time, do func()) {
	l.schedule(at, do)
	if again, ok := p.twin(l.now); ok {
		l.schedule(again, do)
	}
}

// atHub copies a frame to the down pipe of each receiver.
func (l *Link) atHub(up *pipe, f Frame) {
	for _, n := range l.nodes {
		if n == up.node || f.To != "" && f.To != n.Name {
			continue
		}
		if n.down.enqueue(l.now, f) {
			l.serve(n.down, l.atNode)
		}
	}
}

// atNode is the end of a frame's way.
func (l *Link) atNode(down *pipe, f Frame) {
	down.stats.Delivered.add(f.Octets)
	l.out = append(l.out, Delivery{Node: down.node.Name, At: l.now, Frame: f})
}

// run runs all events that are due by then, each at its own time.
func (l *Link) run(until time.Time) {
	for len(l.events) > 0 && !l.events[0].at.After(until) {
		e := l.events.Pop()
		if e.at.After(l.now) {
			l.now = e.at
		}
		e.do()
	}
}

func (l *Link) schedule(at time.Time, do func()) {
	l.serial++
	l.events.Push(event{at, l.serial, do})
}

// event is something that will happen; serial keeps the order of events at one time.
type event struct {
	at     time.Time
	serial uint64
	do     func()
}

func (e event) Before(o event) bool {
	return e.at.Before(o.at) || e.at.Equal(o.at) && e.serial < o.serial
}
func (e event) Placed(int) {}
