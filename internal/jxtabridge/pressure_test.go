package jxtabridge

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"aldis/internal/jxta"
)

// jammedNode is a node with a sender and a receiver whose socket takes nothing, and a queue for 160 messages.
func jammedNode(t *testing.T) (n *node, from, to *fake) {
	n = newNode(t, 1)
	n.cfg.MaxQueue = 160
	n.cfg.Window = 1 << 12
	n.b = New(n.cfg, nil)
	from, to = n.peer("A", "uuid"), n.peer("B", "uuid")
	n.stuck = true
	return n, from, to
}

func (n *node) gates() (g []Gate) {
	g, n.gated = n.gated, nil
	return g
}

// A sender that is faster than its receiver is not read from until there is room again, and nothing is lost.
func TestSenderWaitsForReceiver(t *testing.T) {
	n, from, to := jammedNode(t)
	sent := 0
	for n.gated == nil && sent < 160 {
		from.say(to.id, jxta.NetGroup, svcPipe, jxta.URN(pipe1), body(strconv.Itoa(sent)))
		sent++
	}
	if got := n.gates(); len(got) != 1 || got[0] != (Gate{from.conn, true}) || sent < 20 {
		t.Fatalf("after %d messages: gates %v, want the sender's shut", sent, got)
	}
	for range 30 { // messages that were read already
		from.say(to.id, jxta.NetGroup, svcPipe, jxta.URN(pipe1), body(strconv.Itoa(sent)))
		sent++
	}
	for range 200 {
		n.step(Written{to.conn, ^uint64(0)}) // the socket takes the messages that it was given
	}
	if got := n.gates(); len(got) != 1 || got[0] != (Gate{from.conn, false}) {
		t.Errorf("when the queue is empty: gates %v, want the sender's open", got)
	}
	var want []string
	for i := range sent {
		want = append(want, strconv.Itoa(i))
	}
	if got := to.bodies(); !slices.Equal(got, want) {
		t.Errorf("arrived %d of %d: %q", len(got), sent, got)
	}
	if st := n.b.Stats(); st.Throttled != 1 || st.Overrun != 0 {
		t.Errorf("throttled %d, overrun %d", st.Throttled, st.Overrun)
	}
}

// A receiver that takes nothing at all stops its senders only for a moment, and then loses its oldest messages.
func TestStalledReceiverStopsNobodyForLong(t *testing.T) {
	n, from, to := jammedNode(t)
	send := func(count int) {
		for range count {
			from.say(to.id, jxta.NetGroup, svcPipe, jxta.URN(pipe1), body("x"))
		}
	}
	send(60)
	if got := n.gates(); len(got) != 1 || !got[0].Shut {
		t.Fatalf("gates %v", got)
	}
	n.pass(jamMost - time.Millisecond)
	if got := n.gates(); got != nil {
		t.Errorf("too early: gates %v", got)
	}
	n.pass(time.Millisecond)
	if got := n.gates(); len(got) != 1 || got[0] != (Gate{from.conn, false}) {
		t.Errorf("after %v: gates %v, want the sender's open", jamMost, got)
	}
	send(300)
	if got := n.gates(); got != nil {
		t.Errorf("it is slow, and nobody waits for it: gates %v", got)
	}
	if st := n.b.Stats(); st.Overrun == 0 || len(n.b.outlets.peers[to.id].queue) > n.cfg.MaxQueue {
		t.Errorf("overrun %d, waiting %d", st.Overrun, len(n.b.outlets.peers[to.id].queue))
	}
	for range 300 {
		n.step(Written{to.conn, ^uint64(0)})
	}
	send(60)
	if got := n.gates(); len(got) != 1 || !got[0].Shut {
		t.Errorf("it has caught up, and is waited for again: gates %v", got)
	}
	to.hangUp()
	if got := n.gates(); len(got) != 1 || got[0].Shut {
		t.Errorf("nobody waits for a peer that is away: gates %v", got)
	}
	send(60)
	if got := n.gates(); got != nil {
		t.Errorf("away: gates %v", got)
	}
	to.redial("")
	send(60)
	n.gates()
	from.hangUp()
	if p := n.b.outlets.peers[to.id]; len(p.jam.feeders) != 0 || !p.jam.until.IsZero() {
		t.Errorf("the sender has left: %+v", p.jam)
	}
	n.pass(time.Hour)
}
