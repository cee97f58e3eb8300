package trace

import (
	"net/netip"
	"slices"
)

const (
	maxConns       = 32768   // connections followed at the same time
	maxPending     = 4 << 20 // octets out of order of one direction
	maxPendingAll  = 32 << 20
	maxPendingSegs = 4096 // segments out of order of one direction
	chunkCost      = 64   // the cost of keeping a segment, besides its octets
)

// before orders sequence numbers (RFC 9293 3.4).
func before(a, b uint32) bool { return int32(a-b) < 0 }

type connKey struct{ a, b netip.AddrPort }

// conn is one TCP connection, which tshark calls a stream.
type conn struct {
	key         connKey
	index       int64 // from 0, in order of first packets
	first, last int64 // times of its first and last packet
	packets     int64
	data        int64   // packets with payload
	side        [2]flow // 0: from key.a to key.b
	opener      int     // side of the first SYN, -1 not seen
	synAt       int64   // of the first SYN
	lastSYN     int64   // of the latest, from which tshark counts
	synACK      bool
	refused     bool  // reset before the SYN and ACK: the link worked, but no program listened
	setup       int64 // ns from the first SYN to the first ACK after the SYN and ACK; -1: not seen
	firstRTT    int64 // tshark's initial RTT, 0: not known
	over        bool  // reset
	unacked     int64 // octets of both directions that were sent and are not acknowledged
	dialog      dialog
}

// flow is one direction of a connection.
type flow struct {
	// The values that tshark keeps of a direction, see judge.
	baseSet   bool
	base      uint32
	nextSeq   uint32 // after the highest octet seen
	nextAt    int64
	maxAcked  uint32 // after the last octet seen without a gap
	lastAck   uint32
	lastAckAt int64
	dupAcks   uint32
	window    uint16
	lastMarks uint8

	// Reassembly.
	started    bool
	expect     uint32 // next octet for the dialog
	pending    []chunk
	held       int   // octets and costs in pending
	missedFrom int64 // packets of the connection when the octets missing before them were first acknowledged; 0 for never
	ended      bool
}

// chunk is a segment that waits for octets before it.
type chunk struct {
	seq    uint32
	length int // on the wire
	data   []byte
	at     int64
	number int64
}

// Marks of a segment, named as in tshark's tcp.analysis.
const (
	markRetransmission = 1 << iota // retransmission, fast and spurious ones together
	markKeepAlive
	markZeroWindowProbe
	markOutOfOrder
	markLost // segments before it are not in the capture
)

// fastRetransmission is how soon after a duplicate ACK a segment counts as an answer to it; outOfOrder how soon after
// a later segment an earlier one counts as overtaken, while the round-trip time is not known. Both in ns, from tshark.
const (
	fastRetransmission = 20_000_000
	outOfOrder         = 3_000_000
)

// judge marks a segment as tshark 4.0 does, by the code of its packet-tcp.c, in the same order of questions. side is the sender's. Only
// the parts that decide on retransmissions are kept.
func (c *conn) judge(s *tcpSegment, side int) (marks uint8) {
	fwd, rev := &c.side[side], &c.side[1-side]
	length := uint32(s.length)
	control := s.flags&(flagSYN|flagFIN) != 0
	plain := s.flags&(flagSYN|flagFIN|flagRST) == 0
	if !fwd.baseSet {
		fwd.baseSet, fwd.base = true, s.seq-1
		if s.flags&flagSYN != 0 {
			fwd.base = s.seq
		}
	}
	if !rev.baseSet && s.flags&flagACK != 0 {
		rev.baseSet, rev.base = true, s.ack-1
	}
	if length == 1 && s.seq == fwd.nextSeq && rev.window == 0 {
		marks |= markZeroWindowProbe
	} else {
		if fwd.nextSeq != 0 && before(fwd.nextSeq, s.seq) && s.flags&flagRST == 0 {
			marks |= markLost
		}
		if length <= 1 && s.seq == fwd.nextSeq-1 && plain {
			marks |= markKeepAlive
		}
		same := length == 0 && s.window == fwd.window && s.seq == fwd.nextSeq && s.ack == fwd.lastAck && plain
		switch {
		case same && s.window != 0 && rev.lastMarks&markKeepAlive != 0: // answers a keep-alive
		case same && s.window == 0 && rev.lastMarks&markZeroWindowProbe != 0: // answers a probe
		case same && s.window != 0:
			if fwd.dupAcks == ^uint32(0) {
				fwd.dupAcks = 0
			}
			fwd.dupAcks++
		}
	}
	if s.ack != fwd.lastAck {
		fwd.dupAcks = 0
	}
	if rev.maxAcked != 0 && before(rev.maxAcked, s.ack) && s.flags&flagACK != 0 {
		if rev.maxAcked > rev.nextSeq {
			rev.maxAcked = rev.nextSeq
		} else {
			rev.dupAcks = ^uint32(0) // tshark's unsigned -1
		}
	}
	if (length > 0 || control) && marks&markKeepAlive == 0 {
		marks |= c.retransmitted(s, fwd, rev)
	}
	next := s.seq + length
	if control {
		next++
	}
	if before(fwd.nextSeq, next) || fwd.nextSeq == 0 {
		if marks&markZeroWindowProbe == 0 {
			fwd.nextSeq, fwd.nextAt = next, s.at
		}
	}
	if s.seq == fwd.maxAcked || fwd.maxAcked == 0 {
		if marks&markZeroWindowProbe == 0 {
			fwd.maxAcked = fwd.nextSeq
		}
	}
	fwd.window, fwd.lastAck, fwd.lastAckAt, fwd.lastMarks = s.window, s.ack, s.at, marks
	return marks
}

// retransmitted decides whether a segment that takes sequence numbers is a retransmission, or was overtaken.
func (c *conn) retransmitted(s *tcpSegment, fwd, rev *flow) uint8 {
	length := uint32(s.length)
	old := fwd.nextSeq != 0 && before(s.seq, fwd.nextSeq)
	if length > 1 && fwd.nextSeq-1 == s.seq {
		old = false // one octet of a probe, now with more octets
	}
	if length > 0 && rev.lastAck != 0 && !before(rev.lastAck, s.seq+length) {
		return markRetransmission // spurious: it was acknowledged
	}
	if !old {
		return 0
	}
	// Differences as unsigned numbers, as there: a clock that runs backwards makes them huge.
	if rev.dupAcks >= 2 && rev.lastAck == s.seq && uint64(s.at-rev.lastAckAt) < fastRetransmission {
		return markRetransmission
	}
	end := s.seq + length
	if s.flags&(flagSYN|flagFIN) != 0 {
		end++
	}
	limit := uint64(outOfOrder)
	if c.firstRTT != 0 {
		limit = uint64(c.firstRTT)
	}
	if uint64(s.at-fwd.nextAt) < limit && fwd.nextSeq != end {
		return markOutOfOrder
	}
	return markRetransmission
}

// find returns the connection of a segment and its sender's side; a SYN with other numbers starts a new one.
func (a *Analyser) find(s *tcpSegment) (*conn, int) {
	key, side := connKey{s.src, s.dst}, 0
	if s.dst.Compare(s.src) < 0 {
		key, side = connKey{s.dst, s.src}, 1
	}
	c := a.conns[key]
	if c != nil && s.flags&(flagSYN|flagACK) == flagSYN && c.side[side].baseSet {
		if f := &c.side[side]; f.base != s.seq {
			a.retire(c)
			c = nil
		} else {
			f.nextSeq = f.maxAcked
		}
	}
	if c != nil {
		if s.flags&(flagSYN|flagACK) == flagSYN|flagACK && c.side[side].baseSet && c.side[side].base != s.seq {
			c.side[side].base = s.seq
		}
		return c, side
	}
	if len(a.conns) >= maxConns {
		a.evict()
	}
	c = &conn{key: key, index: a.connCount, first: s.at, last: s.at, opener: -1, setup: -1}
	c.dialog.init(c, a)
	a.connCount++
	a.conns[key] = c
	a.order = append(a.order, c)
	return c, side
}

// evict makes room: connections that both ends have closed go first, then the older half of the rest. Further segments of a retired
// connection count as a new one.
func (a *Analyser) evict() {
	var live []*conn
	for _, c := range a.order {
		switch {
		case a.conns[c.key] != c:
		case c.over || c.side[0].ended && c.side[1].ended:
			a.retire(c)
		default:
			live = append(live, c)
		}
	}
	if len(live) > maxConns/2 {
		a.problem("more than %d connections at a time: the oldest are taken for ended", maxConns/2)
		for _, c := range live[:len(live)/2] {
			a.retire(c)
		}
		live = slices.Clone(live[len(live)/2:])
	}
	a.order = live
}

// tcp takes in one segment.
func (a *Analyser) tcp(s *tcpSegment) {
	c, side := a.find(s)
	c.packets++
	c.last = s.at
	marks := c.judge(s, side)
	t := &a.totals
	t.packets++
	t.octets += int64(s.frame)
	if s.length > 0 {
		c.data++
		t.dataPackets++
		t.dataOctets += int64(s.frame)
	}
	if marks&markRetransmission != 0 {
		t.retransmissions++
	}
	c.handshake(s, side)
	c.reassemble(a, s, side)
	a.account(c, s)
}

// account gives the timeline the octets of a segment and those under way.
func (a *Analyser) account(c *conn, s *tcpSegment) {
	at := s.at - a.start
	a.line.spend(at, spentHeaders, int64(s.frame-s.length))
	a.line.spend(at, spentCut, int64(s.length-len(s.data)))
	a.line.spend(at, spentAgain, int64(len(s.data))-(a.read.stream-a.charged.stream)-(a.read.kept-a.charged.kept))
	a.settle(at, a.read)
	a.unacked -= c.unacked
	c.unacked = c.side[0].unacked(&c.side[1]) + c.side[1].unacked(&c.side[0])
	if c.over {
		c.unacked = 0
	}
	a.unacked += c.unacked
	a.line.wait(at, a.unacked)
}

// unacked are the octets that a direction sent beyond what the other acknowledged.
func (f *flow) unacked(back *flow) int64 {
	n := int32(f.nextSeq - back.lastAck)
	if f.nextSeq == 0 || back.lastAck == 0 || n < 0 {
		return 0
	}
	return int64(n)
}

// handshake notes how long the set-up took: from the first SYN to the ACK that ends it (report, section 5.2.3).
func (c *conn) handshake(s *tcpSegment, side int) {
	if s.flags&flagRST != 0 && c.opener == 1-side && !c.synACK {
		c.refused = true
	}
	switch s.flags & (flagSYN | flagACK) {
	case flagSYN:
		if c.opener < 0 {
			c.opener, c.synAt = side, s.at
		}
		c.lastSYN = s.at
	case flagSYN | flagACK:
		c.synACK = true
	case flagACK:
		if c.lastSYN != 0 && c.firstRTT == 0 {
			c.firstRTT = s.at - c.lastSYN
		}
		if c.synACK && c.setup < 0 && c.opener == side && s.flags&flagRST == 0 {
			c.setup = s.at - c.synAt
		}
	}
}

// reassemble gives the dialog the octets that are new and in order.
func (c *conn) reassemble(a *Analyser, s *tcpSegment, side int) {
	f := &c.side[side]
	seq := s.seq
	switch {
	case s.flags&flagSYN != 0:
		seq++
		if !f.started {
			f.started, f.expect = true, seq
		}
		c.dialog.begun[side] = true
	case s.flags&flagRST != 0:
		c.over = true // octets that the other end had sent by then still come
		return
	case !f.started && s.length > 0:
		f.started, f.expect = true, seq
	}
	if s.length > 0 && f.started && !f.ended {
		c.inSequence(a, side, chunk{seq, s.length, s.data, s.at, s.number})
	}
	if s.flags&flagACK != 0 {
		c.acked(a, 1-side, s.ack)
	}
	if s.flags&flagFIN != 0 && len(f.pending) == 0 && !before(f.expect, seq+uint32(s.length)) && f.started && !f.ended {
		f.ended = true
		c.dialog.end(side)
	}
}

// inSequence delivers a chunk, or keeps it until the octets before it come.
func (c *conn) inSequence(a *Analyser, side int, k chunk) {
	f := &c.side[side]
	if end := k.seq + uint32(k.length); !before(f.expect, end) {
		return // all its octets came before
	}
	if before(f.expect, k.seq) {
		if int32(k.seq-f.expect) > 1<<28 || f.held+len(k.data) > maxPending || len(f.pending) >= maxPendingSegs || a.held > maxPendingAll {
			c.skipTo(a, side, f.nextGap(k.seq))
			if before(f.expect, k.seq) {
				c.gap(a, side, k.seq)
			}
			c.inSequence(a, side, k)
			return
		}
		i, found := slices.BinarySearchFunc(f.pending, k.seq, func(p chunk, seq uint32) int { return int(int32(p.seq - seq)) })
		if found && f.pending[i].length >= k.length {
			return
		}
		k.data = slices.Clone(k.data)
		f.pending = slices.Insert(f.pending, i, k)
		f.held += len(k.data) + chunkCost
		a.read.kept += int64(len(k.data))
		a.held += len(k.data) + chunkCost
		return
	}
	c.deliver(side, k)
	c.drain(a, side)
}

// nextGap is the beginning of the kept segments, seq if there are none.
func (f *flow) nextGap(seq uint32) uint32 {
	if len(f.pending) > 0 && before(f.pending[0].seq, seq) {
		return f.pending[0].seq
	}
	return seq
}

// deliver gives the dialog the part of k from f.expect on; a part that the capture cut off becomes a gap.
func (c *conn) deliver(side int, k chunk) {
	f := &c.side[side]
	skip := int(f.expect - k.seq)
	if skip < len(k.data) {
		c.dialog.data(side, k.data[skip:], k.at, k.number)
	}
	if missing := k.length - max(len(k.data), skip); missing > 0 {
		c.dialog.gap(side, missing)
	}
	f.expect = k.seq + uint32(k.length)
}

// drain delivers the kept segments that are now in order.
func (c *conn) drain(a *Analyser, side int) {
	f := &c.side[side]
	n := 0
	for _, k := range f.pending {
		if before(f.expect, k.seq) {
			break
		}
		n++
		f.held -= len(k.data) + chunkCost
		a.read.kept -= int64(len(k.data))
		a.held -= len(k.data) + chunkCost
		if before(f.expect, k.seq+uint32(k.length)) {
			c.deliver(side, k)
		}
	}
	f.pending = slices.Delete(f.pending, 0, n)
}

// stored is by how many packets of a connection a capture may store an acknowledgement before its data, as several queues of a receiver
// do.
const stored = 64

// acked notes an acknowledgement. Acknowledged octets that do not come within some packets will not come any more.
func (c *conn) acked(a *Analyser, side int, ack uint32) {
	f := &c.side[side]
	gap := f.started && len(f.pending) > 0 && before(f.expect, f.pending[0].seq) && !before(ack, f.pending[0].seq)
	switch {
	case !gap:
		f.missedFrom = 0
	case f.missedFrom == 0:
		f.missedFrom = c.packets
	case c.packets-f.missedFrom >= stored:
		f.missedFrom = 0
		c.skipTo(a, side, f.pending[0].seq)
	}
}

// gap tells the dialog that the octets up to seq are not in the capture.
func (c *conn) gap(a *Analyser, side int, seq uint32) {
	f := &c.side[side]
	n := int(seq - f.expect)
	if ack := c.side[1-side].lastAck; ack != 0 && !before(ack, seq) {
		a.missed.places++
		a.missed.octets += int64(n)
	}
	c.dialog.gap(side, n)
	f.expect = seq
}

func (c *conn) skipTo(a *Analyser, side int, seq uint32) {
	if before(c.side[side].expect, seq) {
		c.gap(a, side, seq)
	}
	c.drain(a, side)
}

// finish ends both directions: it gives the dialog everything kept, with the gaps.
func (c *conn) finish(a *Analyser) {
	c.over = true
	for side := range c.side {
		f := &c.side[side]
		for len(f.pending) > 0 {
			c.skipTo(a, side, f.pending[0].seq)
		}
		if f.started && !f.ended {
			f.ended = true
			c.dialog.end(side)
		}
	}
}

// retire ends a connection and adds it to the figures.
func (a *Analyser) retire(c *conn) {
	c.finish(a)
	at := c.last - a.start // octets kept twice were sent again
	a.line.spend(at, spentAgain, a.charged.stream-a.read.stream+a.charged.kept-a.read.kept)
	a.settle(at, a.read)
	a.unacked -= c.unacked
	c.unacked = 0
	a.ended(c)
}

// opening is the end that sent the first SYN.
func (c *conn) opening() netip.AddrPort {
	if c.opener == 1 {
		return c.key.b
	}
	return c.key.a
}

// sender is the end at a side.
func (c *conn) sender(side int) netip.AddrPort {
	if side == 0 {
		return c.key.a
	}
	return c.key.b
}
