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

// tlsBegins notes that the edge begins a connection.
func (b *Bridge) tlsBegins(t *tlsPair, hello bool) {
	t.cross.mute, t.cross.opening = false, time.Time{}
	switch {
	case hello && t.cross.yielding:
		t.cross.mute = true
		b.tlsYield(t)
	case hello:
		t.cross.opening = b.now.Add(tlsGiveUp)
	}
}

// tlsCrosses handles the first block of a far peer's connection when the edge has begun one too; it reports whether the
// block is void.
func (b *Bridge) tlsCrosses(t *tlsPair, id tlsID, hello bool) bool {
	open := b.now.Before(t.cross.opening)
	switch {
	case !hello:
		t.cross.opening = time.Time{} // the answer
	case open && t.local < t.remote:
		b.stats.SecureCrossed++
		t.past(id)
		return true
	case open:
		b.stats.SecureCrossed++
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

// tlsYield tells the edge that its attempt has failed, until it has heard.
func (b *Bridge) tlsYield(t *tlsPair) {
	t.cross.alert, t.down.Sent = true, t.down.Acked
	if m := b.tlsMessage(t, jxta.Element{Namespace: nsTLS, Name: "1", Type: mimeTLSBlock, Data: tlsAlert}); m != nil {
		b.enqueue(b.peers[t.local], m)
	}
	t.down.Due = b.now.Add(t.down.Wait)
	b.tlsAt(t.down.Due)
}

// tlsYielded: the edge has heard the alert, and lets go of its connection.
func (b *Bridge) tlsYielded(t *tlsPair, n uint32) bool {
	if !t.cross.alert || n == 0 {
		return false
	}
	t.cross.alert, t.cross.yields, t.down.Stuck, t.down.Due = false, tlsYieldTimes, b.now, time.Time{}
	b.tlsPump(t)
	return true
}

// again is the distance to the next repeat.
func (t *tlsPair) again() time.Duration {
	if t.cross.yields > 0 {
		return tlsYieldEvery
	}
	return t.down.Wait
}
