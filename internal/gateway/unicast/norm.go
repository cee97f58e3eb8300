package unicast

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/custody"
	"aldis/internal/link/elide"
	"aldis/internal/link/frame"
)

// BulkWindow is how many long messages may be under way to a peer.
const BulkWindow = 2

const (
	maxNormOut  = 1024 // frames that wait for air; libnorm asks again for those that are dropped
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

// long is the long messages to one peer.
type long struct {
	wire    *elide.Session
	out     []normFrame        // that libnorm wants sent
	objects uint16             // of the present child, enqueued so far
	under   map[uint64]*object // bulk number -> how far the message is
	passed  int                // datagrams without NORM since the last with it, while NORM waited
}

// object is one long message in libnorm's hands.
type object struct {
	id       uint16
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
func (c *Carrier) startNorm(now time.Time) {
	c.norm.startAt = time.Time{}
	if len(c.order) == 0 || !c.Messages {
		return
	}
	c.norm.generation++
	c.Services.Record(bucketNorm, []byte("generation"), []byte{c.norm.generation})
	ids := make([]uint16, len(c.order))
	for i, l := range c.order {
		ids[i] = l.ID
	}
	c.Services.Norm(api.NormStart{Generation: c.norm.generation, Peers: ids})
}

// Event takes an event of the child that runs libnorm.
func (c *Carrier) Event(now time.Time, ev api.Event) {
	switch ev := ev.(type) {
	case api.NormUp:
		c.normUp(now, ev.Generation)
	case api.NormDown:
		c.normDown(now, ev.Reason)
	case api.NormPacket:
		c.normPacket(ev.Peer, ev.Data)
	case api.NormObject:
		c.normObject(now, ev.Peer, ev.Generation, ev.Object, ev.Data)
	case api.NormSent:
		c.normSent(ev.Peer, ev.Object)
	}
}

// normUp: a new libnorm knows nothing, so it gets all long messages that are under way.
func (c *Carrier) normUp(now time.Time, generation uint8) {
	if generation != c.norm.generation {
		return
	}
	c.norm.up, c.norm.upSince = true, now
	for _, l := range c.order {
		l.long.wire.Restarted(generation)
		l.long.objects, l.long.out = 0, nil
		clear(l.long.under)
		l.cut.strays = true
		l.cut.goOn(l, now)
	}
}

// normDown notes that the process of libnorm has ended, and why.
func (c *Carrier) normDown(now time.Time, reason string) {
	if c.norm.up && now.Sub(c.norm.upSince) > normMost {
		c.norm.failures = 0
	}
	c.norm.up = false
	wait := min(normBackoff<<min(c.norm.failures, 10), normMost)
	if c.norm.failures == 0 {
		wait = 0
	}
	c.norm.failures++
	c.norm.startAt = now.Add(wait)
	c.Services.Note("warn", "the NORM process ended; long messages wait until the gateway starts it again", "reason", reason, "next_in", wait)
}

// enqueueObject hands a long message to libnorm: number and envelope.
func (s *shared) enqueueObject(now time.Time, l *peerLink, e *mail.Entry, body []byte) {
	data := binary.BigEndian.AppendUint16(make([]byte, 0, objectHead+len(body)), uint16(e.At.Number))
	data = append(data, body...)
	l.long.objects++
	l.long.under[e.At.Number] = &object{id: l.long.objects, octets: len(data), lastSent: now}
	l.sender.Sent(now, e.At)
	s.Services.Norm(api.NormEnqueue{Peer: l.ID, Data: data})
}

const objectHead = 2

// normPacket takes a packet that libnorm wants sent. Its FLUSHes stay here: the gateway sends its own when one is needed.
func (c *Carrier) normPacket(peer uint16, packet []byte) {
	l := c.links[peer]
	if l == nil {
		return
	}
	body, info, err := l.long.wire.Pack(nil, packet)
	switch {
	case err != nil:
		c.Services.Drop("norm_local")
	case info.Marker || info.Kind == elide.Flush || info.Kind == elide.Ack:
	case len(l.long.out) >= maxNormOut:
		c.Services.Drop("norm_queue")
	case info.Kind == elide.Nack: // the data that it asks for should be on their way soon
		l.long.out = append([]normFrame{{body, info}}, l.long.out...)
	default:
		l.long.out = append(l.long.out, normFrame{body, info})
	}
}

// normSent notes that libnorm has sent all of an object to a peer.
func (c *Carrier) normSent(peer, object uint16) {
	if l := c.links[peer]; l != nil {
		if _, b := l.long.of(object); b != nil {
			b.drained = true
		}
	}
}

// of is the long message that libnorm has as this object.
func (l *long) of(object uint16) (uint64, *object) {
	for number, b := range l.under {
		if b.id == object {
			return number, b
		}
	}
	return 0, nil
}

// addNORM puts a frame of libnorm, or a FLUSH of our own that is due, into a datagram.
func (c *Carrier) addNORM(now time.Time, l *peerLink, to *datagramBuilder) bool {
	for len(l.long.out) > 0 {
		f := l.long.out[0]
		isData := f.info.Kind == elide.Data
		number, b := l.long.of(f.info.Object)
		if isData && (b == nil || f.info.Generation != c.norm.generation) { // acknowledged meanwhile
			l.long.out = l.long.out[1:]
			continue
		}
		kind := mail.Payload
		if f.info.Repair || !isData {
			kind = mail.Repair
		}
		if !to.add(frame.NORM{Body: f.body}, kind) {
			if len(to.parts) == 0 { // larger than any datagram of this profile
				c.Services.Drop("norm_local")
				l.long.out = l.long.out[1:]
				continue
			}
			return false
		}
		l.long.out = l.long.out[1:]
		l.long.passed = 0
		if isData {
			b.lastSent, b.flushes = now, 0
			b.drained = b.drained || f.info.Last
			at := mail.TransmissionID{Queue: frame.Bulk, Number: number}
			l.sender.Sent(now, at)
			if e := l.Box.At(at); e != nil {
				l.Box.Went(e, len(f.body))
				to.carry(e, len(f.body), f.info.Repair)
			}
			if b.drained && !l.long.more(f.info.Object) && c.addFlush(l, to, b) { // a few octets more, instead of a datagram later
				b.flushed = now
			}
		}
		return true
	}
	for _, number := range slices.Sorted(maps.Keys(l.long.under)) {
		b := l.long.under[number]
		if now.Before(b.flushDue(c.Timing.RoundTrip)) {
			continue
		}
		if b.flushes >= maxFlushes { // libnorm there does not know this object, or has forgotten it
			c.Services.Norm(api.NormCancel{Peer: l.ID, Object: b.id})
			delete(l.long.under, number)
			l.cut.beginLong(l, now, l.Box.At(mail.TransmissionID{Queue: frame.Bulk, Number: number}))
			l.Counts.Repeated++
			return false
		}
		if !c.addFlush(l, to, b) {
			return false
		}
		b.flushed = now
		return true
	}
	return false
}

// addFlush asks the far libnorm which parts of an object it lacks.
func (c *Carrier) addFlush(l *peerLink, to *datagramBuilder, b *object) bool {
	ok := to.add(frame.NORM{Body: l.long.wire.Flush(nil, b.id, b.octets)}, mail.Repair)
	if ok {
		b.flushes++
	}
	return ok
}

// more says whether data of the object waits for air.
func (l *long) more(object uint16) bool {
	for _, f := range l.out {
		if f.info.Kind == elide.Data && f.info.Object == object {
			return true
		}
	}
	return false
}

// flushDue is when the far end is asked whether it lacks something of the object: when all has gone out and its
// acknowledgement should be here.
func (b *object) flushDue(trip time.Duration) time.Time {
	if !b.drained {
		trip *= 4 // libnorm may still be at it
	}
	return due.Latest(b.lastSent, b.flushed).Add(trip << min(b.flushes, 3))
}

// bulkDeadline is when a FLUSH is due; zero when none is.
func (c *Carrier) bulkDeadline(l *peerLink) (at time.Time) {
	if !c.norm.up || len(l.long.out) > 0 {
		return time.Time{}
	}
	for _, b := range l.long.under {
		at = due.Earliest(at, b.flushDue(c.Timing.RoundTrip))
	}
	return at
}

// bulkAcked takes a long message that has arrived out of libnorm's hands.
func (s *shared) bulkAcked(l *peerLink, id mail.TransmissionID) {
	if id.Queue != frame.Bulk {
		return
	}
	l.cut.end(l, id.Number)
	b := l.long.under[id.Number]
	if b == nil {
		return
	}
	delete(l.long.under, id.Number)
	if s.norm.up {
		s.Services.Norm(api.NormCancel{Peer: l.ID, Object: b.id})
	}
}

// receiveNORM gives libnorm the packets that the peer's libnorm sent.
func (c *Carrier) receiveNORM(now time.Time, l *peerLink, body []byte, octets int) {
	packets, info, err := l.long.wire.Restore(body)
	if err != nil {
		c.Services.Drop("norm")
		return
	}
	kind := mail.Payload
	if info.Kind != elide.Data || info.Repair {
		kind = mail.Repair
	}
	if info.Kind == elide.Data {
		l.Ledger.Came(octets)
		l.Ledger.Named(kind, octets)
	} else {
		l.Ledger.Add(mail.Received, kind, octets)
	}
	if info.Kind == elide.Flush {
		l.receiver.Probed(now) // it may be that only our acknowledgement was lost
	}
	if !c.norm.up {
		return
	}
	for _, packet := range packets {
		c.Services.Norm(api.NormInject{Peer: l.ID, Data: packet})
	}
}

// normObject: libnorm has put a long message of a peer together.
func (c *Carrier) normObject(now time.Time, peer uint16, generation uint8, number uint16, data []byte) {
	l := c.links[peer]
	if l == nil {
		return
	}
	if len(data) < objectHead { // canceled by its sender, or too large for libnorm: nothing of ours
		l.long.wire.Delivered(generation, number)
		l.Record()
		c.Services.Drop("norm_empty")
		return
	}
	id, fresh := l.receiver.Accept(now, frame.Bulk, binary.BigEndian.Uint16(data), false)
	switch fresh {
	case custody.Beyond:
		c.Services.Drop("beyond_window")
		return
	case custody.Duplicate:
		l.Counts.Duplicates++
	}
	l.long.wire.Delivered(generation, number) // before arrived, which records it
	if fresh == custody.New {
		c.arrived(now, l, mail.Arrival{Place: id, Number: id.Number, Body: data[objectHead:]})
	} else {
		l.Record()
	}
}
