package jxtabridge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
)

// The reliability layer of JxtaBiDiPipe and JxtaSocket (wire 8.6) ends here for streams between a peer of this site (the
// edge) and a peer of another site (ghosts 6.4).
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
	talks       *conversations
	far         *far
	rules       *rules
	credentials *credentials
	strays      strays
	layers      [2]layer // by kind
	of          map[streamKey]*stream
	at          map[streamAddr]*stream
	over        *due.Recent[string] // keys of streams that ended or were refused: a late message does not open them again
	epochs      map[uint16]int      // how often a site has lost its store
	number      uint64              // of the newest stream that a local peer opened
}

func newStreams(s *step, o *outlets, g *ghosts, f *far, r *rules) *streams {
	return &streams{step: s, outlets: o, ghosts: g, talks: newConversations(s, o, g), far: f, rules: r,
		credentials: newCredentials(s), layers: streamLayers(s),
		strays: strays{of: map[streamKey]*stray{}}, of: map[streamKey]*stream{}, at: map[streamAddr]*stream{},
		over: due.NewRecent[string](8192), epochs: map[uint16]int{}}
}

// streamKind says which of the two a stream is; their blocks and their closing differ.
type streamKind uint8

const (
	streamSocket streamKind = iota
	streamBiDi
)

// namespace is the namespace of the elements that open and close a stream.
func (k streamKind) namespace() string {
	if k == streamBiDi {
		return "JXTABIP"
	}
	return "JXTASOC"
}

// word is such an element with one word.
func (k streamKind) word(name, value string) jxta.Element {
	return jxta.Element{Namespace: k.namespace(), Name: name, Type: mimeText, Data: []byte(value)}
}

// document is such an element with a document.
func (k streamKind) document(name string, data []byte) jxta.Element {
	return jxta.Element{Namespace: k.namespace(), Name: name, Type: mimeXML, Data: data}
}

// streamKey names a stream towards one site: the opener's gateway drew the number, and mine says whether that was this gateway.
type streamKey struct {
	site   uint16
	mine   bool
	number uint64
}

// streamAddr is the address to which an edge sends the messages of a stream.
type streamAddr struct{ local, remote, pipe string }

// stream is one connection between a local edge and a ghost. Its parameter to is the URN of the edge's own pipe, and
// empty until the server has accepted.
type stream struct {
	conversation
	key    streamKey
	kind   streamKind
	server string // URN of the pipe that was opened
	name   string // of the client's pipe
	from   string // URN of the ghost's pipe, to which the edge sends
	toID   string // unique value of the edge's own pipe

	opening opening
	closing closing
	forget  time.Time // when a stream that has ended no longer answers late messages
}

// opening is the state of a far client's request.
type opening struct {
	token uint64    // of the request, until the server accepts; 0: done
	until time.Time // when the server has to have accepted
}

const (
	streamReorder  = 64               // blocks beyond a gap that are kept
	streamGiveUp   = 10 * time.Minute // an edge that is there and takes nothing for that time has lost its stream
	streamAccept   = time.Minute      // as long as JxtaSocket waits for its connection
	streamLinger   = 2 * time.Minute  // an ended stream answers late messages
	streamStray    = 10 * time.Minute // how long blocks wait for an opening that travels in the slower lane
	closeAgain     = 10 * time.Second
	closeTimes     = 3
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
			ss.streamBlock(st, in, e)
		} // "retry" only marks a repeated block
	}
}

func (ss *streams) streamBlock(st *stream, in inbound, e *jxta.Element) {
	closes := false
	read := func(data []byte) (upward, error) { return readStreamBlock(st, in, data) }
	if !ss.talks.edgeBlock(&st.conversation, in, e, read, func(up upward) bool {
		closes = up.closes
		taken, _ := st.Position()
		ss.carryPart(st, up.head, taken, up.elements, up.octets)
		return !closes
	}) {
		return
	}
	ss.savePosition(st)
	if closes {
		st.because("closed_here")
		ss.end(st)
	}
}

// edgeAck frees the blocks that the edge has.
func (ss *streams) edgeAck(st *stream, in inbound, data []byte) {
	n, ok := ss.talks.ackNumber(st.layer, in, data)
	if !ok {
		return
	}
	place, out := st.Ack(ss.now, n)
	switch {
	case place == reliable.Wrong:
		ss.complain(in.conn, "stream_ack", errJump)
	case place != reliable.Next:
	case out.Closed:
		ss.talks.settle(&st.conversation, out)
		ss.end(st)
	default:
		ss.savePosition(st)
		ss.sent(st, out)
	}
}

// sent carries out a conversation's output, and closes the edge after the last block.
func (ss *streams) sent(st *stream, out reliable.Output) {
	ss.talks.settle(&st.conversation, out)
	if st.kind == streamSocket && st.Finished() && st.closing.told == 0 {
		ss.closeSocket(st)
	}
	switch {
	case out.Hold:
		ss.save(st)
		ss.carryPart(st, headHold, 0, nil, 0)
	case out.Go:
		ss.save(st)
		ss.carryPart(st, headGo, 0, nil, 0)
	}
}

// sorted lists the streams in one order, so that a run can be repeated.
func (ss *streams) sorted() []*stream {
	return slices.SortedFunc(maps.Values(ss.of), func(x, y *stream) int { return x.key.compare(y.key) })
}

// compare puts streams that this gateway's peers opened before those that the same site's peers opened.
func (k streamKey) compare(o streamKey) int {
	if k.site == o.site && k.mine != o.mine {
		if k.mine {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(k.site, o.site), cmp.Compare(k.number, o.number))
}

// carried counts off a block that the far site has stored; refused: the far site will never get it.
func (ss *streams) carried(key streamKey, octets int, refused bool) {
	st := ss.of[key]
	switch {
	case st == nil || st.Ended():
	case refused:
		ss.reset(st, "refused")
	case octets > 0:
		ss.talks.settle(&st.conversation, st.Stored(ss.now, octets))
	}
}

// sweep does what is due.
func (ss *streams) sweep() {
	if !ss.talks.due() {
		return
	}
	for _, st := range ss.sorted() {
		if due.Reached(ss.now, st.forget) {
			delete(ss.talks.all, &st.conversation)
			delete(ss.of, st.key)
			delete(ss.at, streamAddr{st.local, st.remote, st.from})
			ss.over.Add(ss.overKey(st.key))
			continue
		}
		ss.tick(st)
		for _, t := range [...]time.Time{st.forget, st.opening.until, st.closing.again, st.Deadline()} {
			ss.talks.wakeBy(t)
		}
	}
	for _, key := range ss.strays.sorted() {
		x := ss.strays.of[key]
		if due.Reached(ss.now, x.until) {
			ss.dropStray(key)
			ss.answerReset(key, x.messages[0].Message)
		} else {
			ss.talks.wakeBy(x.until)
		}
	}
}

func (ss *streams) tick(st *stream) {
	here := ss.talks.here(st.local)
	if due.Reached(ss.now, st.opening.until) {
		st.opening.until = ss.now.Add(streamAccept)
		if here {
			ss.reset(st, "not_accepted")
		}
		return
	}
	out := st.Tick(ss.now, here)
	ss.talks.settle(&st.conversation, out)
	switch {
	case out.GaveUp:
		ss.giveUp(st)
	case !due.Reached(ss.now, st.closing.again):
	case !here:
		st.closing.again = ss.now.Add(closeAgain)
	case st.closing.told < closeTimes:
		ss.closeSocket(st)
	default:
		ss.end(st)
	}
}

// giveUp ends a stream whose edge takes nothing.
func (ss *streams) giveUp(st *stream) {
	if !st.State().Ending {
		ss.stats.Refused["stream_not_taken"]++
		st.because("not_taken")
		ss.carryPart(st, headReset, 0, nil, 0)
	}
	if st.kind == streamSocket {
		ss.talks.toEdge(&st.conversation, st.kind.word("close", "close"))
	}
	ss.end(st)
}

// edgeGone ends the streams of a peer in a group, or the streams of one of its pipes.
func (ss *streams) edgeGone(p *peer, group, pipe string) {
	if len(ss.of) == 0 {
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
	for _, st := range ss.of {
		if st.local == u.peer && st.group == u.group && st.toID == u.pipe {
			return true
		}
	}
	return false
}

// hush keeps a stream's own pipe from far sites, if they do not know it yet.
func (o *outlets) hush(st *stream) {
	u := untoldPipe{st.local, pipeKey{st.group, st.toID}}
	if _, ok := o.untold[u]; ok {
		o.untold[u] = time.Time{}
	}
}
