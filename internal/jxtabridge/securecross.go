package jxtabridge

import (
	"slices"
	"time"

	"aldis/internal/jxta"
)

// Two peers may open a TLS connection to each other at the same time. Each then gets a ClientHello where it waits for a
// ServerHello, and both give up. Over a link of seconds the second try ends the same way, and the library closes the
// pipe: it allows one further try (impl/pipe/NonBlockingOutputPipe). So both gateways keep the connection of the peer
// whose id sorts first. The gateway of the other peer ends that peer's attempt with an alert. Once the peer has dropped
// its attempt, the gateway hands it the ClientHello. The peer (2.7) answers as server, and its pipe, which tries again
// by itself, waits for that connection.

// tlsAlert ends a handshake: fatal, handshake_failure (RFC 2246, 7.2).
var tlsAlert = []byte{21, 3, 1, 0, 2, 2, 40}

// tlsCross is the state of a pair with crossing connections.
type tlsCross struct {
	opening  time.Time // until when a ClientHello of the edge waits for its answer
	mute     bool      // blocks of the connection that the edge has begun do not cross
	yielding bool      // the edge has to take the ClientHello of the far peer
}

// begins notes that the edge begins a connection.
func (sec *secure) begins(t *tlsPair, hello bool) {
	sec.stats.SecureBegun++
	// Blocks of the earlier connection would garble the new one. When both peers open at once, each has to see the other's
	// ClientHello, so that one stays.
	if _, acked := t.Position(); hello && (!t.server || acked > 1) {
		sec.over(t)
	}
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

// past notes a connection whose further blocks are dropped.
func (t *tlsPair) past(id tlsID) {
	if id != (tlsID{}) && !slices.Contains(t.before[:], id) {
		copy(t.before[1:], t.before[:])
		t.before[0] = id
	}
}

// yield tells the edge that its attempt has failed, and repeats this until the edge has acknowledged it.
func (sec *secure) yield(t *tlsPair) {
	t.Interrupt(sec.now)
	sec.alert(t)
}

func (sec *secure) alert(t *tlsPair) {
	sec.talks.toEdge(&t.conversation, jxta.Element{Namespace: nsTLS, Name: "1", Type: mimeTLSBlock, Data: tlsAlert})
	sec.talks.wakeBy(t.Deadline())
}
