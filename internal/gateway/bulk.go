package gateway

import (
	"encoding/binary"
	"time"

	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/norm/elide"
)

const (
	bulkWindow  = 2    // long messages under way to a peer
	maxNormOut  = 1024 // frames that wait for air; libnorm asks again for what is dropped
	maxFlushes  = 3    // FLUSHes without an answer before an object is sent anew
	normBackoff = time.Second
	normMost    = time.Minute
)

// normState is the child that runs libnorm.
type normState struct {
	generation uint8
	up         bool
	failures   int       // since a child was last up for normMost
	startAt    time.Time // of the next; zero while one runs
	upSince    time.Time
}

// bulk is one long message in libnorm's hands.
type bulk struct {
	object   uint16
	octets   int
	lastSent time.Time // a segment of it went out
	drained  bool      // libnorm has nothing more of it to send
	flushes  int
	flushed  time.Time
}

type normFrame struct {
	body []byte
	info elide.Info
}

// startNorm starts a child of the next generation. On a shared channel too every peer has a session of its own.
func (g *Gateway) startNorm(now time.Time) {
	g.norm.startAt = time.Time{}
	if len(g.peers) == 0 || g.cfg.Profile.Transport == profile.PMul {
		return
	}
	g.norm.generation++
	g.record(bucketNorm, []byte("generation"), []byte{g.norm.generation})
	ids := make([]uint16, len(g.peers))
	for i, p := range g.peers {
		ids[i] = p.ID
	}
	g.out.Norm = append(g.out.Norm, NormStart{Generation: g.norm.generation, Peers: ids})
}

// normUp: a new libnorm knows nothing, so it gets all long messages that are under way.
func (g *Gateway) normUp(now time.Time, generation uint8) {
	if generation != g.norm.generation {
		return
	}
	g.norm.up, g.norm.upSince = true, now
	for _, p := range g.peers {
		p.normwire.Restarted(generation)
		p.objects, p.normOut = 0, nil
		for _, id := range p.underWayIn(frame.Bulk) {
			g.enqueueObject(now, p, id)
		}
	}
}

func (g *Gateway) normDown(now time.Time, reason string) {
	if g.norm.up && now.Sub(g.norm.upSince) > normMost {
		g.norm.failures = 0
	}
	g.norm.up = false
	wait := min(normBackoff<<min(g.norm.failures, 10), normMost)
	if g.norm.failures == 0 {
		wait = 0
	}
	g.norm.failures++
	g.norm.startAt = now.Add(wait)
	g.note("warn", "the NORM process ended; long messages wait for the next", "reason", reason, "next_in", wait)
}

// startBulk gives libnorm the long messages that the window has room for.
func (g *Gateway) startBulk(now time.Time, p *peer) {
	for g.norm.up {
		m := p.first(frame.Bulk)
		if m == nil {
			return
		}
		p.shift(frame.Bulk)
		id := custody.ID{Lane: frame.Bulk, Number: p.sender.Next(frame.Bulk)}
		g.assign(p, id, m)
		g.enqueueObject(now, p, id)
	}
}

// enqueueObject hands a long message to libnorm: number and envelope.
func (g *Gateway) enqueueObject(now time.Time, p *peer, id custody.ID) {
	m := p.underWay[id]
	body := envelope.Pack(&g.coder, g.append(m.content, 0, true, g.texts(p))) // another lane: the flow is spelt out
	data := binary.BigEndian.AppendUint16(make([]byte, 0, objectHead+len(body)), uint16(id.Number))
	data = append(data, body...)
	p.objects++
	p.bulk[id.Number] = &bulk{object: p.objects, octets: len(data), lastSent: now}
	p.sender.Sent(now, id)
	g.out.Norm = append(g.out.Norm, NormEnqueue{Peer: p.ID, Data: data})
}

const objectHead = 2

// NormFrameOctets is what a NORM frame has beside its segment, at the most (norm-seal 4).
const NormFrameOctets = 8

// normPacket is what libnorm wants sent. Its FLUSHes stay here: the gateway sends its own when one is needed.
func (g *Gateway) normPacket(now time.Time, ev NormPacket) {
	p := g.byID[ev.Peer]
	if p == nil {
		return
	}
	body, info, err := p.normwire.Pack(nil, ev.Data)
	switch {
	case err != nil:
		g.stats.Dropped["norm_local"]++
	case info.Marker || info.Kind == elide.Flush || info.Kind == elide.Ack:
	case len(p.normOut) >= maxNormOut:
		g.stats.Dropped["norm_queue"]++
	case info.Kind == elide.Nack: // what it asks for should be on its way soon
		p.normOut = append([]normFrame{{body, info}}, p.normOut...)
	default:
		p.normOut = append(p.normOut, normFrame{body, info})
	}
}

func (g *Gateway) normSent(now time.Time, ev NormSent) {
	if p := g.byID[ev.Peer]; p != nil {
		if _, b := p.bulkOf(ev.Object); b != nil {
			b.drained = true
		}
	}
}

// bulkOf is the long message that libnorm has as this object.
func (p *peer) bulkOf(object uint16) (uint64, *bulk) {
	for number, b := range p.bulk {
		if b.object == object {
			return number, b
		}
	}
	return 0, nil
}

// addNORM puts a frame of libnorm, or a FLUSH of our own that is due, into l.
func (g *Gateway) addNORM(now time.Time, p *peer, l *letter) bool {
	for len(p.normOut) > 0 {
		f := p.normOut[0]
		isData := f.info.Kind == elide.Data
		number, b := p.bulkOf(f.info.Object)
		if isData && (b == nil || f.info.Generation != g.norm.generation) { // acknowledged meanwhile
			p.normOut = p.normOut[1:]
			continue
		}
		kind := kindPayload
		if f.info.Repair || !isData {
			kind = kindRepair
		}
		if !l.add(frame.NORM{Body: f.body}, kind) {
			if len(l.frames) == 0 { // larger than any datagram of this profile
				g.stats.Dropped["norm_local"]++
				p.normOut = p.normOut[1:]
				continue
			}
			return false
		}
		p.normOut = p.normOut[1:]
		p.direct = 0
		if isData {
			b.lastSent, b.flushes = now, 0
			b.drained = b.drained || f.info.Last
			p.sender.Sent(now, custody.ID{Lane: frame.Bulk, Number: number})
			if b.drained && !p.normMore(f.info.Object) && g.addFlush(p, l, b) { // a few octets more, instead of a datagram later
				b.flushed = now
			}
		}
		return true
	}
	for number, b := range p.bulk {
		if due := g.flushDue(b); now.Before(due) {
			continue
		}
		if b.flushes >= maxFlushes { // libnorm there does not know this object, or has forgotten it
			g.out.Norm = append(g.out.Norm, NormCancel{Peer: p.ID, Object: b.object})
			g.enqueueObject(now, p, custody.ID{Lane: frame.Bulk, Number: number})
			p.count.Repeated++
			return false
		}
		if !g.addFlush(p, l, b) {
			return false
		}
		b.flushed = now
		return true
	}
	return false
}

// addFlush asks the far libnorm for what it lacks of an object.
func (g *Gateway) addFlush(p *peer, l *letter, b *bulk) bool {
	ok := l.add(frame.NORM{Body: p.normwire.Flush(nil, b.object, b.octets)}, kindRepair)
	if ok {
		b.flushes++
	}
	return ok
}

// normMore says whether data of the object waits for air.
func (p *peer) normMore(object uint16) bool {
	for _, f := range p.normOut {
		if f.info.Kind == elide.Data && f.info.Object == object {
			return true
		}
	}
	return false
}

// flushDue is when the far end is asked whether it lacks something of the object: when all has gone out and its
// receipt should be here.
func (g *Gateway) flushDue(b *bulk) time.Time {
	trip := g.custody.RoundTrip
	if !b.drained {
		trip *= 4 // libnorm may still be at it
	}
	return later(b.lastSent, b.flushed).Add(trip << min(b.flushes, 3))
}

// bulkDeadline is when a FLUSH is due; zero when none is.
func (g *Gateway) bulkDeadline(p *peer) (due time.Time) {
	if !g.norm.up || len(p.normOut) > 0 {
		return time.Time{}
	}
	for _, b := range p.bulk {
		due = earlier(due, g.flushDue(b))
	}
	return due
}

// bulkAcked takes a long message that has arrived out of libnorm's hands.
func (g *Gateway) bulkAcked(p *peer, id custody.ID) {
	b := p.bulk[id.Number]
	if id.Lane != frame.Bulk || b == nil {
		return
	}
	delete(p.bulk, id.Number)
	if g.norm.up {
		g.out.Norm = append(g.out.Norm, NormCancel{Peer: p.ID, Object: b.object})
	}
}

// resetBulk takes all long messages out of libnorm's hands.
func (g *Gateway) resetBulk(p *peer) {
	for _, id := range p.underWayIn(frame.Bulk) {
		g.bulkAcked(p, id)
	}
	p.normOut = nil
}

// receiveNORM gives libnorm what the peer's libnorm sent.
func (g *Gateway) receiveNORM(now time.Time, p *peer, body []byte, octets int) {
	packets, info, err := p.normwire.Restore(body)
	if err != nil {
		g.stats.Dropped["norm"]++
		return
	}
	kind := kindPayload
	if info.Kind != elide.Data || info.Repair {
		kind = kindRepair
	}
	p.ledger.add(received, kind, octets)
	if info.Kind == elide.Flush {
		p.receiver.Probed(now) // it may be that only our receipt was lost
	}
	if !g.norm.up {
		return
	}
	for _, packet := range packets {
		g.out.Norm = append(g.out.Norm, NormInject{Peer: p.ID, Data: packet})
	}
}

// normObject: libnorm has put a long message of a peer together.
func (g *Gateway) normObject(now time.Time, ev NormObject) {
	p := g.byID[ev.Peer]
	if p == nil {
		return
	}
	if len(ev.Data) < objectHead { // canceled by its sender, or too large for libnorm: nothing of ours
		p.normwire.Delivered(ev.Generation, ev.Object)
		g.recordPeer(p)
		g.stats.Dropped["norm_empty"]++
		return
	}
	id, fresh := p.receiver.Accept(now, frame.Bulk, binary.BigEndian.Uint16(ev.Data), false)
	switch fresh {
	case custody.Beyond:
		g.stats.Dropped["beyond_window"]++
		return
	case custody.Duplicate:
		p.count.Duplicates++
	}
	p.normwire.Delivered(ev.Generation, ev.Object) // before arrived, which records it
	if fresh == custody.New {
		g.arrived(now, p, id, ev.Data[objectHead:])
	} else {
		g.recordPeer(p)
	}
}
