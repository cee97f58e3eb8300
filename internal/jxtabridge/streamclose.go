package jxtabridge

import (
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
	"aldis/internal/site"
)

// closing is how far the end of a stream is.
type closing struct {
	begun bool // final is the last block; behind it the edge is closed
	final uint32
	told  int       // how often a socket was told to close
	again time.Time // when it is told again
	why   string    // the first reason
	gone  bool      // the edge has not closed it: its lease or its pipe has ended
}

// closeSocket tells a socket that its other end has closed; its closeACK ends the stream.
func (ss *streams) closeSocket(st *stream, p *peer) {
	st.closing.told++
	st.closing.again = ss.now.Add(closeAgain)
	ss.until(st.closing.again)
	ss.toEdge(st, p, closeElement(st.kind, "close"))
}

func closeElement(kind streamKind, value string) jxta.Element {
	return jxta.Element{Namespace: kind.namespace(), Name: "close", Type: mimeText, Data: []byte(value)}
}

// closeBlock is what a BiDi pipe sends as its last block: a message of one element.
func closeBlock() *reliable.Block {
	data, err := jxta.AppendMessage(nil, jxta.Message{Elements: []jxta.Element{closeElement(streamBiDi, "close")}})
	if err != nil {
		panic("jxtabridge: a message of one element: " + err.Error())
	}
	return &reliable.Block{Data: data, Closes: true}
}

// edgeCloses answers a socket's close at once; the far end hears of it behind the last block.
func (ss *streams) edgeCloses(st *stream, value string) {
	if value == "closeACK" {
		if st.closing.told > 0 && !st.ended {
			st.because("closed_there")
			ss.end(st)
		}
		return
	}
	if p := ss.outlets.peers[st.local]; p != nil && st.to != "" {
		ss.toEdge(st, p, closeElement(st.kind, "closeACK"))
	}
	ss.leave(st)
}

// leave ends a stream whose edge has gone; the far edge is closed behind the last block.
func (ss *streams) leave(st *stream) {
	if st.ended {
		return
	}
	st.because("closed_here")
	knows := st.closing.begun // by the far end
	st.down.All(func(_ uint32, d *reliable.Block) { knows = knows || d.Closes && d.Sent > 0 })
	if !knows {
		ss.say(st, headClose, uint64(st.up.Taken), nil, 0)
	}
	ss.end(st)
}

// reset ends a stream that cannot go on, towards both sides.
func (ss *streams) reset(st *stream, why string) {
	if st.ended {
		return
	}
	ss.note("info", "stream ended", "peer", st.local, "far_peer", st.remote, "reason", why)
	ss.stats.Refused["stream_"+why]++
	st.because(why)
	ss.say(st, headReset, 0, nil, 0)
	ss.closeDown(st)
}

// closeDown closes the edge behind what has arrived without a gap; the rest is void.
func (ss *streams) closeDown(st *stream) {
	if st.to == "" || ss.outlets.peers[st.local] == nil {
		ss.end(st)
		return
	}
	var cut []*reliable.Block
	st.closing.begun = true
	st.closing.final, cut = st.down.Cut()
	lose(ss.step, site.Broken, st.local, cut...)
	st.down.Stuck = ss.now
	ss.save(st)
	ss.pump(st)
}

// end drops what waits. The stream stays for streamLinger to answer late messages.
func (ss *streams) end(st *stream) {
	if st.ended {
		return
	}
	st.because("closed_there")
	if why := st.closing.why; !st.closing.gone && (why == "closed_here" || why == "closed_there") {
		ss.drop(st.down.Clear()...)
	} else {
		lose(ss.step, site.Broken, st.local, st.down.Clear()...)
	}
	if st.opening.token != 0 {
		undelivered(ss.step, st.opening.token, site.Broken, st.local)
	}
	st.up.Restart(st.up.Taken)
	st.opening, st.paced, st.edge.reopen, st.closing.again = opening{}, time.Time{}, time.Time{}, time.Time{}
	st.ended, st.forget = true, ss.now.Add(streamLinger)
	ss.until(st.forget)
	ss.stats.StreamsEnded[st.closing.why]++
	ss.erase(st)
}

// because notes why a stream ends. The first reason stays.
func (st *stream) because(why string) {
	if st.closing.why == "" {
		st.closing.why = why
	}
}
