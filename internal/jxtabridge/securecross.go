package jxtabridge

import (
	"slices"
	"time"

	"aldis/internal/jxta"
)

// Two peers that open a TLS connection to each other at the same time each hear a ClientHello where they wait for a
// ServerHello, and both give up; over a link of seconds they meet again at the next try, and the library's pipe closes
// (impl/pipe/NonBlockingOutputPipe allows one). So of two that cross, both gateways keep the one of the peer whose id
// sorts first. The other's own gateway ends its attempt with an alert, and hands it the ClientHello as soon as it has
// let go of it: 2.7 then answers as server, and its pipe, which tries again by itself, waits for that.
const (
	tlsYieldEvery = 5 * time.Millisecond // it asks where the pipe is before it opens anew, which takes longer
	tlsYieldTimes = 30
)

// tlsAlert ends a handshake: fatal, handshake_failure (RFC 2246, 7.2).
var tlsAlert = []byte{21, 3, 1, 0, 2, 2, 40}

// tlsCross is what a pair has to know for that.
type tlsCross struct {
	opening  time.Time // until when a ClientHello of the edge waits for its answer
	mute     bool      // what the edge says on the connection that it begun is not for the far peer
	yielding bool      // the edge has to take the ClientHello of the far peer
	alert    bool      // and first to give up its own
	yields   int       // how often it may be sent that at short distance
}

// begins notes that the edge begins a connection.
func (sec *secure) begins(t *tlsPair, hello bool) {
	t.cross.mute, t.cross.opening = false, time.Time{}
	switch {
	case hello && t.cross.yielding:
		t.cross.mute = true
		sec.yield(t)
	case hello:
		t.cross.opening = sec.now.Add(tlsGiveUp)
	}
}

// crosses handles the first block of a far peer's connection when the edge has begun one too; it reports whether the
// block is void.
func (sec *secure) crosses(t *tlsPair, id tlsID, hello bool) bool {
	open := sec.now.Before(t.cross.opening)
	switch {
	case !hello:
		t.cross.opening = time.Time{} // the answer
	case open && t.local < t.remote:
		sec.stats.SecureCrossed++
		t.past(id)
		return true
	case open:
		sec.stats.SecureCrossed++
		t.cross.yielding, t.cross.mute, t.cross.opening = true, true, time.Time{}
	}
	return false
}

// past notes a connection of which nothing more is wanted.
func (t *tlsPair) past(id tlsID) {
	if id != (tlsID{}) && !slices.Contains(t.before[:], id) {
		copy(t.before[1:], t.before[:])
		t.before[0] = id
	}
}

// yield tells the edge that its attempt has failed, until it has heard.
func (sec *secure) yield(t *tlsPair) {
	t.cross.alert, t.down.Sent = true, t.down.Acked
	if m := sec.message(t, jxta.Element{Namespace: nsTLS, Name: "1", Type: mimeTLSBlock, Data: tlsAlert}); m != nil {
		sec.outlets.enqueue(sec.outlets.peers[t.local], m)
	}
	t.down.Due = sec.now.Add(t.down.Wait)
	sec.at(t.down.Due)
}

// yielded: the edge has heard the alert, and lets go of its connection.
func (sec *secure) yielded(t *tlsPair, n uint32) bool {
	if !t.cross.alert || n == 0 {
		return false
	}
	t.cross.alert, t.cross.yields, t.down.Stuck, t.down.Due = false, tlsYieldTimes, sec.now, time.Time{}
	sec.pump(t)
	return true
}

// again is the distance to the next repeat.
func (t *tlsPair) again() time.Duration {
	if t.cross.yields > 0 {
		return tlsYieldEvery
	}
	return t.down.Wait
}
