package jxtabridge

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
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

// Messages that no peer reads have a bound for all peers together. A short message still reaches each, and a message for a group counts once.
func TestLocalMessagesOfAllHaveABound(t *testing.T) {
	n := newNode(t, 1)
	local := &n.b.outlets.local
	local.most = 4 << 20
	const octets = 128 << 10
	var peers []*fake
	for i := range 80 {
		peers = append(peers, n.peer(strconv.Itoa(i), "uuid"))
	}
	check.Equal(t, "octets while everything is read", local.octets, 0)
	n.stuck = true
	peers[0].propagate(jxta.NetGroup, "some.service", "p", body(strings.Repeat("x", 1<<20)))
	check.True(t, "a message for a group counts once", local.octets < 2<<20, local.octets)
	check.Equal(t, "messages refused", n.b.Stats().Overrun, 0)
	n.stuck = false
	for _, f := range peers {
		n.step(Written{f.conn, ^uint64(0)})
	}
	n.stuck = true
	for i := range 40 {
		for range 2 {
			peers[i].say(peers[40+i].id, jxta.NetGroup, svcPipe, jxta.URN(pipe1), body(strings.Repeat("y", octets)))
		}
	}
	sum := 0
	for _, p := range n.b.outlets.sortedPeers() {
		sum += p.queued + p.out.octets
	}
	check.True(t, "octets that wait", sum <= local.most+octets, sum)
	check.True(t, "octets in the stock", local.octets <= local.most+octets, local.octets)
	check.True(t, "messages refused", n.b.Stats().Overrun > 40, n.b.Stats().Overrun)
	peers[0].say(peers[79].id, jxta.NetGroup, svcPipe, jxta.URN(pipe1), body("short"))
	heard := peers[79].bodies()
	check.Equal(t, "the last that the last peer hears", heard[len(heard)-1], "short")
	for _, f := range peers {
		f.hangUp()
	}
	n.pass(25 * time.Hour)
	check.Equal(t, "octets when all have gone", local.octets+len(local.shared), 0)
}
