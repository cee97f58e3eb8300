package sim

import (
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/elide"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// library replaces the libnorm of one node. Objects go out in segments at the rate that the child sets. A receiver asks for missing
// segments when a later block, object or a FLUSH shows the gap, and gets as many parity segments, as measured with libnorm 1.5.9
// (norm-seal 5; transport 4.5). Parity has no content here: a complete object is taken from its sender.
type library struct {
	generation uint8
	send       map[uint16]*normSender   // by peer
	recv       map[uint16]*normReceiver // by peer
}

// normSender is the objects to one peer.
type normSender struct {
	objects map[uint16][]byte // with prefix; canceled ones stay, for receivers that have the segments already
	gone    map[uint16]bool   // canceled: no longer repaired
	next    uint16            // number of the next object
	queue   []segmentOf
	busy    bool // the last segment has not left at the rate yet
}

type segmentOf struct {
	object        uint16
	block, symbol int
	last          bool // of a first transmission
}

// normReceiver is the objects that one peer sends.
type normReceiver struct {
	generation uint8
	base       uint16 // all objects up to this one are done
	objects    map[uint16]*normObject
	newest     uint16
	holdOff    time.Time // earliest time of the next NACK
}

type normObject struct {
	size   int // 0: none of its segments has come yet
	layout elide.Layout
	have   []map[int]bool // by block: symbols
	done   bool
}

// holdOffTrips is how many GRTTs libnorm waits after a NACK before it asks again (backoff 0).
const holdOffTrips = 2

func (w *World) norm(n *Node, c api.NormCommand) {
	switch c := c.(type) {
	case api.NormStart:
		gw := n.GW
		n.library = &library{generation: c.Generation, send: map[uint16]*normSender{}, recv: map[uint16]*normReceiver{}}
		for _, id := range c.Peers {
			n.library.send[id] = &normSender{objects: map[uint16][]byte{}, gone: map[uint16]bool{}, next: 1} // 0 is the marker
			n.library.recv[id] = &normReceiver{objects: map[uint16]*normObject{}}
		}
		w.At(time.Millisecond, func() {
			if n.GW == gw {
				w.step(n, api.NormUp{Generation: c.Generation})
			}
		})
	case api.NormEnqueue:
		s := n.library.send[c.Peer]
		object := s.next
		s.next++
		s.objects[object] = append(elide.AppendPrefix(nil, n.library.generation, object), c.Data...)
		s.queue = append(s.queue, w.segments(n, s, object)...)
		w.normSend(n, n.library, c.Peer)
	case api.NormRequeue:
		if s := n.library.send[c.Peer]; s.objects[c.Object] != nil && !s.gone[c.Object] {
			s.queue = append(s.queue, w.segments(n, s, c.Object)...)
			w.normSend(n, n.library, c.Peer)
		}
	case api.NormCancel:
		s := n.library.send[c.Peer]
		s.gone[c.Object] = true
		s.queue = slices.DeleteFunc(s.queue, func(q segmentOf) bool { return q.object == c.Object })
	case api.NormInject:
		w.normHear(n, c.Peer, c.Data)
	}
}

func (w *World) wire(n *Node, peer uint16) elide.Config {
	return elide.Config{Self: n.ID, Peer: peer, Segment: n.cfg.Profile.SegmentOctets, GRTT: n.cfg.Profile.GRTT}
}

// segments are the source symbols of an object, in order.
func (w *World) segments(n *Node, s *normSender, object uint16) (list []segmentOf) {
	l := elide.LayoutOf(len(s.objects[object]), n.cfg.Profile.SegmentOctets)
	for b := range l.Blocks() {
		for i := range l.BlockLen(b) {
			list = append(list, segmentOf{object: object, block: b, symbol: i})
		}
	}
	list[len(list)-1].last = true
	return list
}

// normSend sends the next segment and waits as long as libnorm does at its rate.
func (w *World) normSend(n *Node, lib *library, peer uint16) {
	s := lib.send[peer]
	if n.library != lib || s.busy || len(s.queue) == 0 {
		return
	}
	q := s.queue[0]
	s.queue = s.queue[1:]
	data := s.objects[q.object]
	c := w.wire(n, peer)
	l := elide.LayoutOf(len(data), c.Segment)
	payload := make([]byte, l.Payload(q.block, q.symbol))
	if at, ok := l.Offset(q.block, q.symbol); ok {
		copy(payload, data[at:])
	}
	packet := c.AppendData(nil, lib.generation, q.object, len(data), q.block, q.symbol, payload)
	s.busy = true
	wait := profile.Airtime(len(packet), w.txRate(n))
	w.At(0, func() {
		if n.library == lib {
			w.step(n, api.NormPacket{Peer: peer, Data: packet})
		}
	})
	w.At(wait, func() {
		s.busy = false
		if q.last && n.library == lib && !s.gone[q.object] {
			w.step(n, api.NormSent{Peer: peer, Object: q.object})
		}
		w.normSend(n, lib, peer)
	})
}

// txRate is the rate that the child sets for libnorm.
func (w *World) txRate(n *Node) int {
	p := n.cfg.Profile
	bps := p.Sending(n.cfg.Shore).RateBps
	if bps == 0 {
		return 0
	}
	return int(elide.TxRate(float64(bps), p.SegmentOctets, profile.IPUDPOctets+seal.OverheadShort+api.NormFrameOctets+p.FrameOverhead))
}

// normHear takes a packet of the peer's libnorm, or the marker.
func (w *World) normHear(n *Node, peer uint16, packet []byte) {
	c := w.wire(n, peer)
	if object, ok := elide.SquelchOf(packet); ok {
		r := n.library.recv[peer]
		if int16(object-1-r.base) > 0 {
			r.base = object - 1
		}
		return
	}
	if object, block, symbol, ok := elide.FlushOf(packet); ok {
		r := n.library.recv[peer]
		if int16(object-r.newest) > 0 {
			r.newest = object
		}
		w.normAsk(n, peer, object, block, symbol)
		return
	}
	info := elide.Describe(packet, c.Segment)
	switch {
	case info.Kind == elide.Nack:
		w.normRepair(n, peer, packet)
	case info.Marker: // all objects before it are done
		n.library.recv[peer] = &normReceiver{generation: info.Generation, base: info.Object, newest: info.Object, objects: map[uint16]*normObject{}}
	case info.Kind == elide.Data:
		w.normData(n, peer, info)
	}
}

func (w *World) normData(n *Node, peer uint16, info elide.Info) {
	r := n.library.recv[peer]
	if int16(info.Object-r.base) <= 0 {
		return
	}
	o := r.object(info.Object)
	if o.done {
		return
	}
	if o.size == 0 {
		o.size, o.layout = info.Size, elide.LayoutOf(info.Size, n.cfg.Profile.SegmentOctets)
		for range o.layout.Blocks() {
			o.have = append(o.have, map[int]bool{})
		}
	}
	o.have[info.Block][info.Symbol] = true
	if int16(info.Object-r.newest) > 0 {
		r.newest = info.Object
	}
	if o.whole() {
		o.done = true
		w.normDeliver(n, peer, info)
	}
	// libnorm looks for gaps before the block of a segment.
	w.normAsk(n, peer, info.Object, info.Block, -1)
}

func (r *normReceiver) object(id uint16) *normObject {
	o := r.objects[id]
	if o == nil {
		o = &normObject{}
		r.objects[id] = o
	}
	return o
}

func (o *normObject) whole() bool {
	for b, have := range o.have {
		if len(have) < o.layout.BlockLen(b) {
			return false
		}
	}
	return o.size > 0
}

// normDeliver hands over a complete object.
func (w *World) normDeliver(n *Node, peer uint16, info elide.Info) {
	from := w.Nodes[peer-1]
	if from.library == nil || from.library.generation != info.Generation || from.library.send[n.ID] == nil {
		return // its sender has died meanwhile, and the content that only it has is gone here too
	}
	generation, id, data, ok := elide.CutPrefix(from.library.send[n.ID].objects[info.Object])
	if !ok {
		return
	}
	lib := n.library
	w.At(0, func() {
		if n.library == lib {
			w.step(n, api.NormObject{Peer: peer, Generation: generation, Object: id, Data: data})
		}
	})
}

// normAsk sends a NACK for the gaps before a symbol of an object; symbol -1: before the block.
func (w *World) normAsk(n *Node, peer uint16, object uint16, block, symbol int) {
	r := n.library.recv[peer]
	if w.Now.Before(r.holdOff) {
		return
	}
	var list []elide.Repair
	for id := r.base + 1; int16(object-id) >= 0; id++ {
		o := r.object(id)
		switch {
		case o.done:
		case o.size == 0:
			if id != object || symbol >= 0 {
				list = append(list, elide.Repair{Object: id, Whole: true})
			}
		default:
			for b, have := range o.have {
				if id == object && (b > block || b == block && symbol < 0) {
					break
				}
				list = append(list, o.missing(id, b, have)...)
			}
		}
	}
	if len(list) == 0 {
		return
	}
	r.holdOff = w.Now.Add(holdOffTrips * n.cfg.Profile.GRTT)
	packet := w.wire(n, peer).AppendNack(nil, r.generation, list)
	lib := n.library
	w.At(0, func() {
		if n.library == lib {
			w.step(n, api.NormPacket{Peer: peer, Data: packet})
		}
	})
}

// missing requests as many symbols of a block as are missing: parity first, then the source symbols themselves.
func (o *normObject) missing(id uint16, block int, have map[int]bool) (list []elide.Repair) {
	n := o.layout.BlockLen(block)
	lack := n - len(have)
	for s := n; s < n+elide.ParityLen && lack > 0; s++ {
		if !have[s] {
			list = append(list, elide.Repair{Object: id, Block: block, Symbol: s})
			lack--
		}
	}
	for s := 0; s < n && lack > 0; s++ {
		if !have[s] {
			list = append(list, elide.Repair{Object: id, Block: block, Symbol: s})
			lack--
		}
	}
	return list
}

// normRepair sends the segments that a NACK requests, before all others.
func (w *World) normRepair(n *Node, peer uint16, packet []byte) {
	s := n.library.send[peer]
	list, err := elide.ParseNack(packet)
	if err != nil {
		return
	}
	var repairs []segmentOf
	squelch := false
	for _, r := range list {
		switch {
		case s.objects[r.Object] == nil || s.gone[r.Object]:
			squelch = true
		case r.Whole:
			again := w.segments(n, s, r.Object)
			again[len(again)-1].last = false
			repairs = append(repairs, again...)
		case elide.LayoutOf(len(s.objects[r.Object]), n.cfg.Profile.SegmentOctets).Payload(r.Block, r.Symbol) > 0:
			repairs = append(repairs, segmentOf{object: r.Object, block: r.Block, symbol: r.Symbol})
		}
	}
	repairs = slices.DeleteFunc(repairs, func(q segmentOf) bool { return slices.Contains(s.queue, q) })
	s.queue = append(repairs, s.queue...)
	if squelch {
		oldest := s.next
		for id := s.next - 1; s.objects[id] != nil; id-- {
			if !s.gone[id] {
				oldest = id
			}
		}
		squelch := w.wire(n, peer).AppendSquelch(nil, n.library.generation, oldest)
		lib := n.library
		w.At(0, func() {
			if n.library == lib {
				w.step(n, api.NormPacket{Peer: peer, Data: squelch})
			}
		})
	}
	w.normSend(n, n.library, peer)
}
