package carriernet

import (
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/elide"
	"aldis/internal/link/profile"
)

// child replaces the process that runs libnorm: it sends the segments of an object at the rate of the link and reassembles the objects
// that come. It asks for a whole object again when a FLUSH shows that a part of it is missing.
type child struct {
	of         *Node
	generation uint8
	sends      map[uint16]map[uint16][]byte // by peer and number: objects with their prefix, until they are canceled
	next       map[uint16]uint16
	queue      []segment
	busy       bool
	parts      map[uint16]map[uint16]*parts // by peer and number
}

type segment struct {
	peer, object  uint16
	block, symbol int
	last          bool
}

type parts struct {
	info elide.Info
	data []byte
	have map[[2]int]bool
	lack int
	done bool
}

// KillChild ends a node's child, as a crash of libnorm does.
func (n *Node) KillChild() {
	n.child = nil
	n.step(func(now time.Time) { n.dispatch(now, api.NormDown{Reason: "killed"}) })
}

// ChildRuns says whether a node's child runs.
func (n *Node) ChildRuns() bool { return n.child != nil }

func (n *Node) dispatch(now time.Time, ev api.Event) {
	for _, c := range n.Bearer.Carriers {
		c.Event(now, ev)
	}
}

// later gives the carriers an event of the child after d, if the child still runs then.
func (c *child) later(d time.Duration, ev api.Event) {
	n := c.of
	n.network.At(d, func() {
		if n.up() && n.child == c {
			n.step(func(now time.Time) { n.dispatch(now, ev) })
		}
	})
}

func (c *child) wire(peer uint16) elide.Config {
	p := c.of.network.cfg.Profile
	return elide.Config{Self: c.of.ID, Peer: peer, Segment: p.SegmentOctets, GRTT: p.GRTT}
}

func (n *Node) norm(order api.NormCommand) {
	c := n.child
	switch o := order.(type) {
	case api.NormStart:
		c = &child{of: n, generation: o.Generation, sends: map[uint16]map[uint16][]byte{}, next: map[uint16]uint16{}, parts: map[uint16]map[uint16]*parts{}}
		n.child = c
		c.later(time.Millisecond, api.NormUp{Generation: o.Generation})
	case api.NormEnqueue:
		c.next[o.Peer]++
		if c.sends[o.Peer] == nil {
			c.sends[o.Peer] = map[uint16][]byte{}
		}
		c.sends[o.Peer][c.next[o.Peer]] = append(elide.AppendPrefix(nil, c.generation, c.next[o.Peer]), o.Data...)
		c.enqueue(o.Peer, c.next[o.Peer])
	case api.NormCancel:
		delete(c.sends[o.Peer], o.Object)
		c.queue = slices.DeleteFunc(c.queue, func(s segment) bool { return s.peer == o.Peer && s.object == o.Object })
	case api.NormInject:
		c.inject(o.Peer, o.Data)
	}
}

// enqueue sends all segments of an object.
func (c *child) enqueue(peer, object uint16) {
	l := elide.LayoutOf(len(c.sends[peer][object]), c.wire(peer).Segment)
	for b := range l.Blocks() {
		for i := range l.BlockLen(b) {
			c.queue = append(c.queue, segment{peer, object, b, i, b == l.Blocks()-1 && i == l.BlockLen(b)-1})
		}
	}
	c.pump()
}

// pump sends the next segment, and the one after it once the link has had time for this one.
func (c *child) pump() {
	n := c.of
	if !n.up() || n.child != c || c.busy || len(c.queue) == 0 {
		return
	}
	s := c.queue[0]
	c.queue = c.queue[1:]
	data, wire := c.sends[s.peer][s.object], c.wire(s.peer)
	l := elide.LayoutOf(len(data), wire.Segment)
	at, _ := l.Offset(s.block, s.symbol)
	packet := wire.AppendData(nil, c.generation, s.object, len(data), s.block, s.symbol, data[at:at+l.Payload(s.block, s.symbol)])
	c.later(0, api.NormPacket{Peer: s.peer, Data: packet})
	if s.last {
		c.later(time.Millisecond, api.NormSent{Peer: s.peer, Object: s.object})
	}
	c.busy = true
	n.network.At(profile.Airtime(len(packet)+profile.IPUDPOctets, n.network.cfg.Profile.Up.RateBps), func() {
		c.busy = false
		c.pump()
	})
}

// inject takes a packet of a peer's libnorm.
func (c *child) inject(peer uint16, packet []byte) {
	wire := c.wire(peer)
	if c.parts[peer] == nil {
		c.parts[peer] = map[uint16]*parts{}
	}
	if object, _, _, ok := elide.FlushOf(packet); ok {
		if o := c.parts[peer][object]; o == nil || !o.done {
			generation := uint8(0)
			if from := c.of.network.Nodes[peer-1]; from.up() && from.child != nil {
				generation = from.child.generation
			}
			c.later(0, api.NormPacket{Peer: peer, Data: wire.AppendNack(nil, generation, []elide.Repair{{Object: object, Whole: true}})})
		}
		return
	}
	info := elide.Describe(packet, wire.Segment)
	switch {
	case info.Kind == elide.Nack:
		list, err := elide.ParseNack(packet)
		for _, r := range list {
			if err == nil && c.sends[peer][r.Object] != nil && !slices.ContainsFunc(c.queue, func(s segment) bool { return s.object == r.Object }) {
				c.enqueue(peer, r.Object)
			}
		}
	case info.Kind == elide.Data && !info.Marker:
		c.join(peer, info, packet)
	}
}

// join adds a segment to an object.
func (c *child) join(peer uint16, info elide.Info, packet []byte) {
	l := elide.LayoutOf(info.Size, c.wire(peer).Segment)
	o := c.parts[peer][info.Object]
	if o == nil || o.info.Generation != info.Generation {
		o = &parts{info: info, data: make([]byte, info.Size), have: map[[2]int]bool{}}
		for b := range l.Blocks() {
			o.lack += l.BlockLen(b)
		}
		c.parts[peer][info.Object] = o
	}
	at, ok := l.Offset(info.Block, info.Symbol)
	place := [2]int{info.Block, info.Symbol}
	if !ok || o.have[place] {
		return
	}
	o.have[place] = true
	copy(o.data[at:], packet[len(packet)-info.Octets:])
	o.lack--
	if o.lack > 0 {
		return
	}
	o.done = true
	if generation, id, data, ok := elide.CutPrefix(o.data); ok {
		c.later(0, api.NormObject{Peer: peer, Generation: generation, Object: id, Data: data})
	}
}
