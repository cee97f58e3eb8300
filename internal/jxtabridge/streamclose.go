package jxtabridge

import (
	"time"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

// closing is how far the end of a stream is.
type closing struct {
	told  int       // how often a socket was told to close
	again time.Time // when it is told again
	why   string    // the first reason
	gone  bool      // the edge has not closed the stream itself: its lease or its pipe has ended
}

// closeSocket tells a socket that its other end has closed; its closeACK ends the stream.
func (ss *streams) closeSocket(st *stream) {
	st.closing.told++
	st.closing.again = ss.now.Add(closeAgain)
	ss.talks.wakeBy(st.closing.again)
	ss.talks.toEdge(&st.conversation, st.kind.word("close", "close"))
}

// closeBlock is the last block of a BiDi pipe: a message of one element.
func closeBlock() []byte {
	data, err := jxta.AppendMessage(nil, jxta.Message{Elements: []jxta.Element{streamBiDi.word("close", "close")}})
	if err != nil {
		panic("jxtabridge: a message of one element: " + err.Error())
	}
	return data
}

// edgeCloses answers a socket's close at once; the far end gets it after the last block.
func (ss *streams) edgeCloses(st *stream, value string) {
	if value == "closeACK" {
		if st.closing.told > 0 && !st.Ended() {
			st.because("closed_there")
			ss.end(st)
		}
		return
	}
	if st.to != "" {
		ss.talks.toEdge(&st.conversation, st.kind.word("close", "closeACK"))
	}
	ss.leave(st)
}

// leave ends a stream whose edge has gone; the far edge is closed after the last block.
func (ss *streams) leave(st *stream) {
	if st.Ended() {
		return
	}
	st.because("closed_here")
	if !st.Told() {
		taken, _ := st.Position()
		ss.carryPart(st, headClose, taken, nil, 0)
	}
	ss.end(st)
}

// reset ends a stream that cannot go on, towards both sides.
func (ss *streams) reset(st *stream, why string) {
	if st.Ended() {
		return
	}
	ss.note("info", "stream ended", "peer", st.local, "far_peer", st.remote, "reason", why)
	ss.stats.Refused["stream_"+why]++
	st.because(why)
	ss.carryPart(st, headReset, 0, nil, 0)
	ss.closeDown(st)
}

// closeDown closes the edge after the blocks that have arrived without a gap; the rest is dropped.
func (ss *streams) closeDown(st *stream) {
	if st.to == "" || ss.outlets.peers[st.local] == nil {
		ss.end(st)
		return
	}
	last, cut := st.Cut()
	ss.talks.lose(site.Broken, &st.conversation, cut)
	ss.sent(st, st.Close(ss.now, last))
	ss.save(st)
}

// end drops waiting blocks. The stream stays for streamLinger to answer late messages.
func (ss *streams) end(st *stream) {
	if st.Ended() {
		return
	}
	st.because("closed_there")
	waited := st.End()
	if why := st.closing.why; !st.closing.gone && (why == "closed_here" || why == "closed_there") {
		ss.talks.drop(waited)
	} else {
		ss.talks.lose(site.Broken, &st.conversation, waited)
	}
	if st.opening.token != 0 {
		undelivered(ss.step, st.opening.token, site.Broken, st.local)
	}
	st.opening, st.closing.again, st.forget = opening{}, time.Time{}, ss.now.Add(streamLinger)
	ss.talks.wakeBy(st.forget)
	ss.stats.StreamsEnded[st.closing.why]++
	ss.erase(st)
}

// because notes why a stream ends. The first reason stays.
func (st *stream) because(why string) {
	if st.closing.why == "" {
		st.closing.why = why
	}
}
