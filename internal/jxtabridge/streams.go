package jxtabridge

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"time"

	"aldis/internal/due"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
)

// The reliability layer of JxtaBiDiPipe and JxtaSocket (wire 8.6) ends here for streams between a peer of this site (the
// edge) and one of another (ghosts 6.4). The gateway acknowledges the edge's blocks at once in the far peer's name. Each
// block crosses the link once. The far gateway delivers it with the same number and repeats it by itself.
const (
	svcPipe   = "PipeService"
	nsRel     = "jxtarel"
	relAck    = "ack"
	mimeBlock = "application/x-jxta-reliable-block"
	mimeAck   = "application/x-jxta-reliable-ack"
)

// streams holds the BiDi pipes and sockets between local and far peers.
type streams struct {
	*step
	outlets     *outlets
	ghosts      *ghosts
	far         *far
	rules       *rules
	credentials *credentials
	strays      strays
	all         map[streamKey]*stream
	at          map[streamAddr]*stream
	over        *due.Recent[string] // keys of streams that ended or were refused: a late message does not open them again
	epochs      map[uint16]int      // how often a site has lost its store
	number      uint64              // of the newest that a local peer opened
	recalled    bool                // New restored streams, and no Step has started their timers
}

func newStreams(s *step, o *outlets, g *ghosts, f *far, r *rules) *streams {
	return &streams{step: s, outlets: o, ghosts: g, far: f, rules: r, credentials: newCredentials(s),
		strays: strays{of: map[streamKey]*stray{}}, all: map[streamKey]*stream{}, at: map[streamAddr]*stream{},
		over: due.NewRecent[string](8192), epochs: map[uint16]int{}}
}

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

// stream is one connection between a local edge and a ghost.
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

	up      reliable.Up[upward]
	down    reliable.Down
	edge    edgeWindow
	paused  bool      // the far gateway has enough
	pausing bool      // the far gateway was told to pause
	next    time.Time // earliest time of the next new block to a BiDi edge; see Config.Pace
	paced   time.Time // when a block that waits for next is sent; zero: none waits
	opening opening
	closing closing
	ended   bool // it only answers late messages until forget
	forget  time.Time
	tally   tally
}

// opening is what a far client's request waits for.
type opening struct {
	token uint64    // of the request, until the server accepts; 0: done
	until time.Time // when the server has to have accepted
}

// tally counts for Status.
type tally struct{ in, out, repeats uint64 } // octets the edge has acknowledged, octets taken from it, blocks it was sent again

// edgeWindow is what the edge knows of our window.
type edgeWindow struct {
	shut   bool          // it was told that the window is closed
	reopen time.Time     // when it is told again that the window is open
	wait   time.Duration // before the telling after that
}

// upward is a block of the edge as it crosses the link.
type upward struct {
	head     byte
	elements []jxta.Element // of the payload, behind its head
	octets   int
	closes   bool
}

const (
	streamReorder  = 64               // blocks beyond a gap that are kept
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
func (ss *streams) fromEdge(st *stream, in inbound) {
	for i := range in.elements {
		e := &in.elements[i]
		switch {
		case e.Namespace == st.kind.namespace() && e.Name == "remPipe":
			ss.accepted(st, in, e.Data)
		case e.Namespace == st.kind.namespace() && e.Name == "close":
			ss.edgeCloses(st, string(e.Data))
		case e.Namespace != nsRel:
		case e.Name == relAck || e.Type == mimeAck:
			ss.edgeAck(st, in, e.Data)
		case e.Type == mimeBlock:
			ss.edgeBlock(st, in, e)
		} // "retry" only marks a repeated block
	}
}

// edgeBlock takes a block of the edge: in order, once, acknowledged at once, and given to the gateway in the same Step,
// so that what is acknowledged is durable.
func (ss *streams) edgeBlock(st *stream, in inbound, e *jxta.Element) {
	n, err := blockNumber(e)
	place := st.up.Look(n)
	if err == nil && place == reliable.Wrong {
		err = errJump
	}
	switch {
	case err != nil:
		ss.complain(in.conn, "stream_block", err)
		return
	case place == reliable.Taken || place == reliable.Kept:
		ss.stats.StreamDuplicates++
		ss.acknowledge(st)
		return
	case st.ended:
		return
	case st.up.Full(ss.cfg.StreamOctets+streamHardPlus, 4*ss.cfg.StreamBlocks) || place == reliable.Early && st.up.Early() >= streamReorder:
		ss.stats.Refused["stream_full"]++
		return // the edge keeps the block, and its window is closed
	}
	up, err := streamBlock(st, in, e.Data)
	if err != nil {
		ss.complain(in.conn, "stream_block", err)
		return
	}
	if place == reliable.Early {
		st.up.Keep(n, up)
		return
	}
	closes := false
	st.up.Take(up, func(up upward) bool {
		closes = up.closes
		ss.stats.StreamBlocks++
		ss.stats.StreamOctetsOut += uint64(up.octets)
		st.tally.out += uint64(up.octets)
		ss.say(st, up.head, uint64(st.up.Taken), up.elements, up.octets)
		return !closes
	})
	ss.savePosition(st)
	ss.acknowledge(st)
	st.edge.reopen = time.Time{}
	if closes {
		st.because("closed_here")
		ss.end(st)
	}
}

// blockNumber is the number that a block has as its element's name.
func blockNumber(e *jxta.Element) (uint32, error) {
	n, err := strconv.ParseUint(e.Name, 10, 31)
	return uint32(n), err
}

// acknowledge answers the edge as the ghost. A block without an acknowledgement breaks the stream after 60 s, so a closed
// window is told by selective acknowledgements, which all repeat the highest block. JXSE takes 100 less their number for
// the receiver's free space (impl/util/pipe/reliable), and waits while it has more than twice that under way. With
// closedWindow of them it waits with nothing under way, for as long as it takes.
func (ss *streams) acknowledge(st *stream) {
	p := ss.outlets.peers[st.local]
	if p == nil || st.to == "" {
		return
	}
	st.edge.shut = !st.ended && (st.paused || st.up.Full(ss.cfg.StreamOctets, ss.cfg.StreamBlocks))
	n := 1
	if st.edge.shut {
		n += closedWindow
	}
	data := make([]byte, 0, 4*n)
	for range n {
		data = binary.BigEndian.AppendUint32(data, st.up.Taken)
	}
	m := ss.ghosts.said(p, st.remote, st.group, svcPipe, st.to, []jxta.Element{{Namespace: nsRel, Name: relAck, Type: mimeAck, Data: data}})
	m.confirms = true
	ss.outlets.enqueue(p, m)
}

// roomAgain opens the edge's window when enough of what waited has reached the far site.
func (ss *streams) roomAgain(st *stream) {
	if !st.edge.shut || st.paused || st.ended || st.up.Waiting > ss.cfg.StreamOctets/2 || st.up.Blocks > ss.cfg.StreamBlocks/2 {
		return
	}
	ss.acknowledge(st)
	st.edge.wait = streamReopen // if this acknowledgement is lost, the edge waits for the next
	st.edge.reopen = ss.now.Add(st.edge.wait)
	ss.until(st.edge.reopen)
}

// edgeAck frees what the edge has.
func (ss *streams) edgeAck(st *stream, in inbound, data []byte) {
	if len(data) < 4 || len(data)%4 != 0 {
		ss.complain(in.conn, "stream_ack", nil)
		return
	}
	ss.stats.StreamAcks++
	n := binary.BigEndian.Uint32(data)
	if n <= st.down.Acked || st.ended {
		return
	}
	closed := false
	if !st.down.Ack(ss.now, n, func(d *reliable.Block) {
		closed = closed || d.Closes
		if d.Token != 0 {
			ss.stats.StreamDelivered++
			ss.stats.StreamOctetsIn += uint64(len(d.Data))
			st.tally.in += uint64(len(d.Data))
			ss.done(d.Token)
		}
	}) {
		ss.complain(in.conn, "stream_ack", errJump)
		return
	}
	if st.kind == streamBiDi { // the edge acknowledges a block before its listener has it
		pace := ss.cfg.Pace
		if st.down.Len() < shortBacklog {
			pace *= 4
		}
		st.next = ss.now.Add(pace)
	}
	if closed {
		ss.end(st)
		return
	}
	ss.savePosition(st)
	st.down.Fill(ss.sender(st))
	ss.pump(st)
	if st.pausing && st.down.Len() <= ss.cfg.StreamBlocks && st.down.Octets <= ss.cfg.StreamOctets {
		st.pausing = false
		ss.save(st)
		ss.say(st, headGo, 0, nil, 0)
	}
}

// pump sends the edge what its window allows, and closes it behind the last block.
func (ss *streams) pump(st *stream) {
	p := ss.outlets.peers[st.local]
	if p == nil || st.to == "" || st.ended {
		return
	}
	end := &st.closing
	if end.begun && st.kind == streamBiDi && st.down.Block(end.final+1) == nil && st.down.Acked <= end.final {
		st.down.Put(end.final+1, closeBlock())
	}
	st.down.Pump(ss.now, st.kind.window(), func() bool {
		if ss.now.Before(st.next) {
			st.paced = st.next
			ss.until(st.paced)
			return false
		}
		return true
	}, ss.sender(st))
	ss.until(st.down.Due)
	if end.begun && st.kind == streamSocket && st.down.Acked >= end.final && end.told == 0 {
		ss.closeSocket(st, p)
	}
}

// sender hands blocks to the edge as the ghost.
func (ss *streams) sender(st *stream) reliable.Send {
	p := ss.outlets.peers[st.local]
	return func(n uint32, d *reliable.Block) {
		if d.Sent > 1 {
			ss.stats.StreamRepeats++
			st.tally.repeats++
		}
		data := d.Data
		if st.kind == streamBiDi && p.signed { // its block is a message, which a signed peer wants signed (ghosts 6.4)
			signed, err := jxta.SignMessage(slices.Clone(data), ss.cfg.Identity.Key, ss.cfg.Identity.Cert, jxta.URN(st.remote))
			if err != nil {
				ss.note("error", "block cannot be signed", "peer", p.id, "error", err)
			} else {
				data = signed
			}
		}
		ss.toEdge(st, p, jxta.Element{Namespace: nsRel, Name: strconv.FormatUint(uint64(n), 10), Type: mimeBlock, Data: data})
	}
}

// sorted lists the streams in one order, so that a run can be repeated.
func (ss *streams) sorted() []*stream {
	return slices.SortedFunc(maps.Values(ss.all), func(x, y *stream) int { return x.key.compare(y.key) })
}

// compare puts the streams that we opened before those of the same site that it opened.
func (k streamKey) compare(o streamKey) int {
	if k.site == o.site && k.mine != o.mine {
		if k.mine {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(k.site, o.site), cmp.Compare(k.number, o.number))
}

// carried counts a block off that the far site has stored; refused: the far site will never get it.
func (ss *streams) carried(key streamKey, octets int, refused bool) {
	st := ss.all[key]
	if st == nil || st.ended {
		return
	}
	if refused {
		ss.reset(st, "refused")
		return
	}
	if octets > 0 {
		st.up.Stored(octets)
	}
	ss.roomAgain(st)
}

// sweep does what is due.
func (ss *streams) sweep() {
	for _, st := range ss.sorted() {
		p := ss.outlets.peers[st.local]
		here := p != nil && len(p.conns) > 0
		switch {
		case st.ended:
			if due.Reached(ss.now, st.forget) {
				delete(ss.all, st.key)
				delete(ss.at, streamAddr{st.local, st.remote, st.from})
				ss.over.Add(ss.overKey(st.key))
			}
			continue
		case due.Reached(ss.now, st.opening.until):
			if st.opening.until = ss.now.Add(streamAccept); here {
				ss.reset(st, "not_accepted")
			}
			continue
		}
		if due.Reached(ss.now, st.paced) {
			st.paced = time.Time{}
			ss.pump(st)
		}
		if due.Reached(ss.now, st.edge.reopen) {
			ss.reopen(st, here)
		}
		if due.Reached(ss.now, st.closing.again) {
			switch {
			case !here:
				st.closing.again = ss.now.Add(closeAgain)
			case st.closing.told < closeTimes:
				ss.closeSocket(st, p)
			default:
				ss.end(st)
				continue
			}
		}
		if due.Reached(ss.now, st.down.Due) {
			ss.repeat(st, here)
		}
	}
	for _, key := range ss.strays.sorted() {
		if x := ss.strays.of[key]; due.Reached(ss.now, x.until) {
			ss.dropStray(key)
			ss.answerReset(key, x.messages[0].Message)
		}
	}
}

// reopen tells an edge that is there once more that the window is open.
func (ss *streams) reopen(st *stream, here bool) {
	e := &st.edge
	switch {
	case !here:
		e.reopen = ss.now.Add(e.wait)
	case e.shut || e.wait > reliable.LastRepeat:
		e.reopen = time.Time{}
	default:
		ss.acknowledge(st)
		e.wait *= 2
		e.reopen = ss.now.Add(e.wait)
	}
}

// repeat sends the first block without an acknowledgement again, or gives the edge up.
func (ss *streams) repeat(st *stream, here bool) {
	if !here {
		st.down.Absent(ss.now)
		return
	}
	limit := streamGiveUp
	if st.closing.begun {
		limit = streamAccept
	}
	// With nothing behind the sent blocks, perhaps only their acknowledgement was lost: the stream goes on.
	if ss.now.Sub(st.down.Stuck) < limit || !st.closing.begun && st.down.Block(st.down.Sent+1) == nil {
		st.down.Repeat(ss.now, st.kind.window(), 1, ss.sender(st))
		return
	}
	if !st.closing.begun {
		ss.stats.Refused["stream_not_taken"]++
		st.because("not_taken")
		ss.say(st, headReset, 0, nil, 0)
	}
	if st.kind == streamSocket {
		ss.toEdge(st, ss.outlets.peers[st.local], closeElement(st.kind, "close"))
	}
	ss.end(st)
}

// rearm asks to be woken for the streams.
func (ss *streams) rearm() {
	if ss.recalled {
		ss.until(time.Unix(0, 0)) // as soon as there is a time
	}
	for _, st := range ss.all {
		for _, t := range [...]time.Time{st.forget, st.opening.until, st.edge.reopen, st.closing.again, st.down.Due, st.paced} {
			ss.until(t)
		}
	}
	for _, x := range ss.strays.of {
		ss.until(x.until)
	}
}

// edgeIsBack sends a peer that has dialled in again what it may have lost.
func (ss *streams) edgeIsBack(p *peer) {
	if len(ss.all) == 0 {
		return
	}
	for _, st := range ss.sorted() {
		if st.local != p.id || st.ended {
			continue
		}
		soon := ss.now.Add(streamReopen / 5)
		if st.down.Return(soon) {
			ss.until(soon)
		}
		if !st.edge.reopen.IsZero() {
			st.edge.reopen = soon
			ss.until(soon)
		}
	}
}

// edgeGone ends the streams of a peer in a group, or those of one pipe of it.
func (ss *streams) edgeGone(p *peer, group, pipe string) {
	if len(ss.all) == 0 {
		return
	}
	for _, st := range ss.sorted() {
		if st.local == p.id && st.group == group && (pipe == "" || st.toID == pipe) {
			st.closing.gone = true
			ss.leave(st)
		}
	}
}

// ends reports whether a pipe is the end of a stream.
func (ss *streams) ends(u untoldPipe) bool {
	for _, st := range ss.all {
		if st.local == u.peer && st.group == u.group && st.toID == u.pipe {
			return true
		}
	}
	return false
}

// hush keeps a stream's own pipe from far sites, if they were not told yet.
func (o *outlets) hush(st *stream) {
	u := untoldPipe{st.local, pipeKey{st.group, st.toID}}
	if _, ok := o.untold[u]; ok {
		o.untold[u] = time.Time{}
	}
}
