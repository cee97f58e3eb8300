package jxtabridge

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

// The reliability layer of JxtaBiDiPipe and JxtaSocket (wire 8.6) ends here for streams between a peer of this site
// and one of another (ghosts 6.4): blocks are acknowledged at once in the far peer's name, cross the link once, and
// are delivered there with the same numbers, window and repeats being this gateway's business.
const (
	svcPipe   = "PipeService"
	nsRel     = "jxtarel"
	relAck    = "ack"
	mimeBlock = "application/x-jxta-reliable-block"
	mimeAck   = "application/x-jxta-reliable-ack"
)

// streamKind says which of the two a stream is; their blocks and their closing differ.
type streamKind uint8

const (
	streamSocket streamKind = iota
	streamBiDi
)

// namespace of the elements that open and close.
func (k streamKind) namespace() string {
	if k == streamBiDi {
		return "JXTABIP"
	}
	return "JXTASOC"
}

// window is how many blocks an edge may have without having acknowledged them. A BiDi edge of 2.7 hands two blocks to
// two threads, and its listener may see the second first (ghosts 6.4): it gets one at a time. A socket's reader sorts.
func (k streamKind) window() uint32 {
	if k == streamBiDi {
		return 1
	}
	return 16
}

// streamKey names a stream towards one site: the opener's gateway drew the number, and mine says whether that is us.
type streamKey struct {
	site   uint16
	mine   bool
	number uint64
}

// streamAddr is where an edge sends what belongs to a stream.
type streamAddr struct{ local, remote, pipe string }

// stream is one connection between a local edge and a ghost. "up" is from the edge to the link, "down" the other way.
type stream struct {
	key    streamKey
	kind   streamKind
	group  string
	local  string // unique value of the edge
	remote string // of the ghost
	server string // URN of the pipe that was opened
	name   string // of the client's pipe
	from   string // URN of the ghost's pipe, to which the edge sends
	to     string // URN of the edge's own pipe; empty until the server has accepted
	toID   string // its unique value

	// up
	recv    uint32            // highest block that was taken, all before it too
	early   map[uint32]upward // blocks beyond a gap
	waiting int               // octets given to the gateway that the far site does not have yet
	blocks  int               // and how many blocks
	shut    bool              // the edge was told that our window is closed
	held    bool              // the far gateway has enough
	reopen  time.Time         // when the edge is told once more that the window is open
	wait    time.Duration     // before that

	// down
	acked   uint32
	sent    uint32
	queue   map[uint32]*downward // beyond acked
	octets  int                  // of queue
	extra   uint32               // blocks let through beyond the window after repeats without an answer
	recover uint32               // highest block sent before the last repeat
	rto     time.Duration
	due     time.Time // of the next repeat
	next    time.Time // before that a BiDi edge gets no new block; see Config.Pace
	paced   time.Time // when one waits for next
	stuck   time.Time // since when the edge has acknowledged nothing that it was sent
	holding bool      // the far gateway was told to hold
	ending  bool      // no more comes than up to final; then the edge is closed
	final   uint32
	closes  int       // how often a socket was told to close
	closeAt time.Time // when it is told again

	in, out, repeats uint64 // octets the edge has acknowledged, octets taken from it, blocks it was sent again
	why              string // the first reason for its end

	open     uint64 // token of the opening, until the server accepts; 0: done
	acceptBy time.Time
	ended    bool      // kept for a while only to answer what is late
	forget   time.Time // when ended
}

type upward struct {
	head     byte
	elements []jxta.Element // of the payload, behind its head
	octets   int
	closes   bool
}

type downward struct {
	token    uint64 // 0: made here
	data     []byte // of the block, without a signature of its own
	message  bool   // data is a message, which a signed peer wants signed (ghosts 6.4)
	closes   bool
	attempts int
}

const (
	streamReorder  = 64              // blocks beyond a gap that are kept
	streamAhead    = 1024            // a number further ahead is no gap but a mistake
	streamRTO      = 3 * time.Second // first repeat; doubled up to streamRTOMax
	streamRTOMax   = time.Minute
	streamGiveUp   = 10 * time.Minute // an edge that is there and takes nothing for so long has lost its stream
	streamAccept   = time.Minute      // as long as JxtaSocket waits for its connection
	streamLinger   = 2 * time.Minute  // an ended stream answers late messages
	streamStray    = 10 * time.Minute // blocks wait so long for an opening that travels in the slower lane
	streamReopen   = 5 * time.Second
	closeAgain     = 10 * time.Second
	closeTimes     = 3
	closedWindow   = 102 // selective acknowledgements that tell JXSE of a queue without room
	streamHardPlus = 2 << 20
)

// fromEdge handles whatever an edge sends to the ghost's end of a stream.
func (b *Bridge) fromEdge(st *stream, in inbound) {
	for i := range in.elements {
		e := &in.elements[i]
		switch {
		case e.Namespace == st.kind.namespace() && e.Name == "remPipe":
			b.accepted(st, in, e.Data)
		case e.Namespace == st.kind.namespace() && e.Name == "close":
			b.edgeCloses(st, string(e.Data))
		case e.Namespace != nsRel:
		case e.Name == relAck || e.Type == mimeAck:
			b.edgeAck(st, in, e.Data)
		case e.Type == mimeBlock:
			b.edgeBlock(st, in, e)
		} // "retry" only marks a repeated block
	}
}

// edgeBlock takes a block of the edge: in order, once, acknowledged at once, and given to the gateway in the same Step,
// so that what is acknowledged is durable.
func (b *Bridge) edgeBlock(st *stream, in inbound, e *jxta.Element) {
	n64, err := strconv.ParseUint(e.Name, 10, 31)
	n := uint32(n64)
	if err == nil && (n == 0 || n > st.recv+streamAhead) {
		err = errJump
	}
	if err != nil {
		b.complain(in.conn, "stream_block", err)
		return
	}
	if _, have := st.early[n]; n <= st.recv || have {
		b.stats.StreamDuplicates++
		b.acknowledge(st)
		return
	}
	if st.ended {
		return
	}
	if st.waiting >= b.cfg.StreamOctets+streamHardPlus || st.blocks >= 4*b.cfg.StreamBlocks || n > st.recv+1 && len(st.early) >= streamReorder {
		b.stats.Refused["stream_full"]++
		return // it keeps it, and its window is closed
	}
	up, err := b.upward(st, in, e.Data)
	if err != nil {
		b.complain(in.conn, "stream_block", err)
		return
	}
	if n > st.recv+1 {
		if st.early == nil {
			st.early = map[uint32]upward{}
		}
		st.early[n] = up // not acknowledged, even selectively: the edge keeps it until it is durable here
		return
	}
	closes := b.take(st, up)
	for up, ok := st.early[st.recv+1]; ok && !closes; up, ok = st.early[st.recv+1] {
		delete(st.early, st.recv+1)
		closes = b.take(st, up)
	}
	b.rememberStreamPosition(st)
	b.acknowledge(st)
	st.reopen = time.Time{}
	if closes {
		st.because("closed_here")
		b.endStream(st)
	}
}

// take gives the next block to the gateway. It reports whether that was the edge's last.
func (b *Bridge) take(st *stream, up upward) bool {
	st.recv++
	st.waiting += up.octets
	st.blocks++
	b.stats.StreamBlocks++
	b.stats.StreamOctetsOut += uint64(up.octets)
	st.out += uint64(up.octets)
	b.carryStream(st, up.head, uint64(st.recv), up.elements, up.octets)
	return up.closes
}

// acknowledge answers the edge as the ghost. A closed window is said with so many selective acknowledgements that JXSE
// sees a queue without room (impl/util/pipe/reliable: the free space is 100 less their number, and a sender waits while
// it has more under way than twice that): it then waits with nothing under way, for as long as it takes, whereas a
// block without an acknowledgement breaks the stream after 60 s. They repeat the highest block and acknowledge no other.
func (b *Bridge) acknowledge(st *stream) {
	p := b.peers[st.local]
	if p == nil || st.to == "" {
		return
	}
	st.shut = !st.ended && (st.held || st.waiting >= b.cfg.StreamOctets || st.blocks >= b.cfg.StreamBlocks)
	n := 1
	if st.shut {
		n += closedWindow
	}
	data := make([]byte, 0, 4*n)
	for range n {
		data = binary.BigEndian.AppendUint32(data, st.recv)
	}
	m := b.edgeMessage(st, p, jxta.Element{Namespace: nsRel, Name: relAck, Type: mimeAck, Data: data})
	m.confirms = true
	b.enqueue(p, m)
}

// roomAgain opens the edge's window when enough of what waited has reached the far site.
func (b *Bridge) roomAgain(st *stream) {
	if !st.shut || st.held || st.ended || st.waiting > b.cfg.StreamOctets/2 || st.blocks > b.cfg.StreamBlocks/2 {
		return
	}
	b.acknowledge(st)
	st.wait = streamReopen // an edge that missed it would wait for ever
	st.reopen = b.now.Add(st.wait)
	b.until(st.reopen)
}

// edgeAck frees what the edge has.
func (b *Bridge) edgeAck(st *stream, in inbound, data []byte) {
	if len(data) < 4 || len(data)%4 != 0 {
		b.complain(in.conn, "stream_ack", nil)
		return
	}
	b.stats.StreamAcks++
	n := binary.BigEndian.Uint32(data)
	if n <= st.acked || st.ended {
		return
	}
	// After a restart it may have more than we know to have sent, but never more than there is.
	for m := st.acked + 1; m <= n; m++ {
		if st.queue[m] == nil {
			b.complain(in.conn, "stream_ack", errJump)
			return
		}
	}
	closed := false
	for ; st.acked < n; st.acked++ {
		d := st.queue[st.acked+1]
		delete(st.queue, st.acked+1)
		st.octets -= len(d.data)
		closed = closed || d.closes
		if d.token != 0 {
			b.stats.StreamDelivered++
			b.stats.StreamOctetsIn += uint64(len(d.data))
			st.in += uint64(len(d.data))
			b.out.Done = append(b.out.Done, d.token)
		}
	}
	st.sent = max(st.sent, st.acked)
	st.extra, st.rto, st.stuck, st.due = 0, streamRTO, b.now, time.Time{}
	if st.kind == streamBiDi { // it acknowledges a block before its listener has it
		pace := b.cfg.Pace
		if len(st.queue) < shortBacklog {
			pace *= 4
		}
		st.next = b.now.Add(pace)
	}
	if closed {
		b.endStream(st)
		return
	}
	b.rememberStreamPosition(st)
	if st.acked < st.recover { // what came after the lost one is probably lost too
		b.sendBlock(st, st.acked+1)
	}
	b.pumpStream(st)
	if st.holding && len(st.queue) <= b.cfg.StreamBlocks && st.octets <= b.cfg.StreamOctets {
		st.holding = false
		b.rememberStream(st)
		b.carryStream(st, headGo, 0, nil, 0)
	}
}

// pumpStream sends the edge what its window allows, and closes it behind the last block.
func (b *Bridge) pumpStream(st *stream) {
	p := b.peers[st.local]
	if p == nil || st.to == "" || st.ended {
		return
	}
	if st.ending && st.kind == streamBiDi && st.queue[st.final+1] == nil && st.acked <= st.final {
		st.queue[st.final+1] = &downward{data: closeMessage(st.kind), message: true, closes: true}
	}
	idle := st.sent == st.acked
	for st.sent < st.acked+st.kind.window()+st.extra && st.queue[st.sent+1] != nil {
		if b.now.Before(st.next) {
			st.paced = st.next
			b.until(st.paced)
			break
		}
		st.sent++
		b.sendBlock(st, st.sent)
	}
	if idle && st.sent > st.acked {
		st.rto, st.stuck = streamRTO, b.now
	}
	switch {
	case st.sent == st.acked:
		st.due = time.Time{}
	case st.due.IsZero():
		st.due = b.now.Add(st.rto)
		b.until(st.due)
	}
	if st.ending && st.kind == streamSocket && st.acked >= st.final && st.closes == 0 {
		b.closeSocket(st, p)
	}
}

// closeSocket tells a socket that its other end has closed; its closeACK ends the stream.
func (b *Bridge) closeSocket(st *stream, p *peer) {
	st.closes++
	st.closeAt = b.now.Add(closeAgain)
	b.until(st.closeAt)
	b.toEdge(st, p, closeElement(st.kind, "close"))
}

func closeElement(kind streamKind, value string) jxta.Element {
	return jxta.Element{Namespace: kind.namespace(), Name: "close", Type: mimeText, Data: []byte(value)}
}

// closeMessage is what a BiDi pipe sends as its last block.
func closeMessage(kind streamKind) []byte {
	m, err := jxta.AppendMessage(nil, jxta.Message{Elements: []jxta.Element{closeElement(kind, "close")}})
	if err != nil {
		panic("jxtabridge: a message of one element: " + err.Error())
	}
	return m
}

// sendBlock hands one block to the edge as the ghost.
func (b *Bridge) sendBlock(st *stream, n uint32) {
	p, d := b.peers[st.local], st.queue[n]
	if p == nil || d == nil {
		return
	}
	if d.attempts++; d.attempts > 1 {
		b.stats.StreamRepeats++
		st.repeats++
	}
	data := d.data
	if d.message && p.signed {
		signed, err := jxta.SignMessage(slices.Clone(data), b.cfg.Identity.Key, b.cfg.Identity.Cert, jxta.URN(st.remote))
		if err != nil {
			b.note("error", "block cannot be signed", "peer", p.id, "error", err)
		} else {
			data = signed
		}
	}
	b.toEdge(st, p, jxta.Element{Namespace: nsRel, Name: strconv.FormatUint(uint64(n), 10), Type: mimeBlock, Data: data})
}

// edgeCloses answers a socket's close at once; the far end hears of it behind the last block.
func (b *Bridge) edgeCloses(st *stream, value string) {
	if value == "closeACK" {
		if st.closes > 0 && !st.ended {
			st.because("closed_there")
			b.endStream(st)
		}
		return
	}
	if p := b.peers[st.local]; p != nil && st.to != "" {
		b.toEdge(st, p, closeElement(st.kind, "closeACK"))
	}
	b.leave(st)
}

// leave ends a stream whose edge has gone; the far edge is closed behind the last block.
func (b *Bridge) leave(st *stream) {
	if st.ended {
		return
	}
	st.because("closed_here")
	closing := st.ending // by the far end, then it knows
	for n, d := range st.queue {
		closing = closing || d.closes && n <= st.sent
	}
	if !closing {
		b.carryStream(st, headClose, uint64(st.recv), nil, 0)
	}
	b.endStream(st)
}

// reset ends a stream that cannot go on, towards both sides.
func (b *Bridge) reset(st *stream, why string) {
	if st.ended {
		return
	}
	b.note("info", "stream ended", "peer", st.local, "far_peer", st.remote, "reason", why)
	b.stats.Refused["stream_"+why]++
	st.because(why)
	b.carryStream(st, headReset, 0, nil, 0)
	b.closeDown(st)
}

// closeDown closes the edge behind what has arrived without a gap; the rest is void.
func (b *Bridge) closeDown(st *stream) {
	if st.to == "" || b.peers[st.local] == nil {
		b.endStream(st)
		return
	}
	st.ending, st.final = true, st.acked
	for st.queue[st.final+1] != nil {
		st.final++
	}
	for n, d := range st.queue {
		if n > st.final {
			b.drop(d)
			delete(st.queue, n)
		}
	}
	st.stuck = b.now
	b.rememberStream(st)
	b.pumpStream(st)
}

func (b *Bridge) drop(d *downward) {
	if d.token != 0 {
		b.out.Done = append(b.out.Done, d.token)
	}
}

// endStream finishes what waits; the stream stays a while to answer what is late.
func (b *Bridge) endStream(st *stream) {
	if st.ended {
		return
	}
	for _, n := range sortedNumbers(st.queue) {
		b.drop(st.queue[n])
	}
	if st.open != 0 {
		b.out.Done = append(b.out.Done, st.open)
	}
	st.queue, st.early, st.open, st.octets = nil, nil, 0, 0
	st.due, st.paced, st.reopen, st.closeAt, st.acceptBy = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	st.ended, st.forget = true, b.now.Add(streamLinger)
	b.until(st.forget)
	st.because("closed_there")
	b.stats.StreamsEnded[st.why]++
	b.forgetStream(st)
}

// because notes why a stream ends; what comes first counts.
func (st *stream) because(why string) {
	if st.why == "" {
		st.why = why
	}
}

func sortedNumbers(m map[uint32]*downward) []uint32 {
	ns := make([]uint32, 0, len(m))
	for n := range m {
		ns = append(ns, n)
	}
	slices.Sort(ns)
	return ns
}

// sortedStreams gives runs with the same events the same order.
func (b *Bridge) sortedStreams() []*stream {
	all := make([]*stream, 0, len(b.streams))
	for _, st := range b.streams {
		all = append(all, st)
	}
	slices.SortFunc(all, func(x, y *stream) int {
		if c := cmp.Compare(x.key.site, y.key.site); c != 0 {
			return c
		}
		if x.key.mine != y.key.mine {
			if x.key.mine {
				return -1
			}
			return 1
		}
		return cmp.Compare(x.key.number, y.key.number)
	})
	return all
}

// carried: the far site has what was given with this token, or never will.
func (b *Bridge) carried(ev site.Fate) {
	c, ok := b.carrying[ev.Token]
	if !ok {
		return
	}
	delete(b.carrying, ev.Token)
	st := b.streams[c.stream]
	if st == nil || st.ended {
		return
	}
	if ev.Refused {
		b.reset(st, "refused")
		return
	}
	if c.octets > 0 {
		st.waiting -= c.octets
		st.blocks--
	}
	b.roomAgain(st)
}

// carrying is a block on its way to the far site.
type carrying struct {
	stream streamKey
	octets int
}

// sweepStreams does what is due.
func (b *Bridge) sweepStreams() {
	due := func(t time.Time) bool { return !t.IsZero() && !b.now.Before(t) }
	for _, st := range b.sortedStreams() {
		p := b.peers[st.local]
		here := p != nil && len(p.conns) > 0
		switch {
		case st.ended:
			if due(st.forget) {
				b.removeStream(st)
			}
			continue
		case due(st.acceptBy):
			if st.acceptBy = b.now.Add(streamAccept); here {
				b.reset(st, "not_accepted")
			}
			continue
		}
		if due(st.paced) {
			st.paced = time.Time{}
			b.pumpStream(st)
		}
		if due(st.reopen) {
			switch {
			case !here:
				st.reopen = b.now.Add(st.wait)
			case st.shut || st.wait > streamRTOMax:
				st.reopen = time.Time{}
			default:
				b.acknowledge(st)
				st.wait *= 2
				st.reopen = b.now.Add(st.wait)
			}
		}
		if due(st.closeAt) {
			switch {
			case !here:
				st.closeAt = b.now.Add(closeAgain)
			case st.closes < closeTimes:
				b.closeSocket(st, p)
			default:
				b.endStream(st)
				continue
			}
		}
		if due(st.due) {
			b.repeat(st, here)
		}
	}
	b.sweepUntold()
	for _, key := range b.sortedStrays() {
		if s := b.strays[key]; due(s.until) {
			b.dropStray(key, s)
			b.answerReset(key, s.payloads[0].Message)
		}
	}
}

// repeat sends the first block without an acknowledgement again and lets one more go: 2.7 does not answer a repeat that
// it has already, only what is new (impl/util/pipe/reliable/ReliableInputStream).
func (b *Bridge) repeat(st *stream, here bool) {
	if !here {
		st.stuck, st.due = b.now, b.now.Add(st.rto)
		return
	}
	limit := streamGiveUp
	if st.ending {
		limit = streamAccept
	}
	if b.now.Sub(st.stuck) >= limit {
		// Where nothing waits behind them, it may be their acknowledgement that was lost.
		if st.ending || st.queue[st.sent+1] != nil {
			if !st.ending {
				b.stats.Refused["stream_not_taken"]++
				st.because("not_taken")
				b.carryStream(st, headReset, 0, nil, 0)
			}
			if st.kind == streamSocket {
				b.toEdge(st, b.peers[st.local], closeElement(st.kind, "close"))
			}
			b.endStream(st)
			return
		}
	}
	st.recover = st.sent
	st.extra++
	b.sendBlock(st, st.acked+1)
	st.rto = min(2*st.rto, streamRTOMax)
	for st.sent < st.acked+st.kind.window()+st.extra && st.queue[st.sent+1] != nil {
		st.sent++
		b.sendBlock(st, st.sent)
	}
	st.due = b.now.Add(st.rto)
}

// rearmStreams asks to be woken for the streams.
func (b *Bridge) rearmStreams() {
	if b.recalled {
		b.until(time.Unix(0, 0)) // as soon as there is a time
	}
	for _, st := range b.streams {
		for _, t := range [...]time.Time{st.forget, st.acceptBy, st.reopen, st.closeAt, st.due, st.paced} {
			if !t.IsZero() {
				b.until(t)
			}
		}
	}
	for _, s := range b.strays {
		b.until(s.until)
	}
	for _, t := range b.untold {
		if !t.IsZero() {
			b.until(t)
		}
	}
}

// edgeIsBack sends a peer that has dialled in again what it may have lost.
func (b *Bridge) edgeIsBack(p *peer) {
	if len(b.streams) == 0 {
		return
	}
	for _, st := range b.sortedStreams() {
		if st.local != p.id || st.ended {
			continue
		}
		if st.sent > st.acked {
			st.recover = st.sent
			st.due = b.now.Add(streamReopen / 5)
			b.until(st.due)
		}
		if !st.reopen.IsZero() {
			st.reopen = b.now.Add(streamReopen / 5)
			b.until(st.reopen)
		}
	}
}

// edgeGone ends the streams of a peer in a group, or those of one pipe of it.
func (b *Bridge) edgeGone(p *peer, group, pipe string) {
	if len(b.streams) == 0 {
		return
	}
	for _, st := range b.sortedStreams() {
		if st.local == p.id && st.group == group && (pipe == "" || st.toID == pipe) {
			b.leave(st)
		}
	}
}
