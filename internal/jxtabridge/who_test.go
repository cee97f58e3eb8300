package jxtabridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// impostor dials in from another address with the id of f. It signs nothing, or with a key of its own.
func (f *fake) impostor(signed bool) *fake {
	peerNumber++
	x := &fake{n: f.n, name: "impostor of " + f.name, id: f.id, addr: fmt.Sprintf("10.66.%d.%d:9702", f.n.site, peerNumber), signed: signed, dead: true}
	if signed {
		x.signer = signerOf(peerNumber)
	}
	x.redial("")
	return x
}

// far sends the peer one message from site 2.
func (f *fake) far(token uint64, text string) {
	f.n.step(site.FarMessage{Site: 2, Token: token, Message: site.Message{Scope: jxta.NetGroup, From: peerName("cbid", 777), To: f.id,
		Service: "PipeService", Param: jxta.URN(pipe1), Parts: []jxta.Element{body(text)}}})
}

func (n *node) count(text string) (found int) {
	for _, x := range n.notes {
		if strings.Contains(x.Text, text) {
			found++
		}
	}
	return found
}

// D3 of the notes on reliability: 54 messages in six seconds, and a stranger in the peer's name.
func TestStrangerGetsNothingOfASignedPeer(t *testing.T) {
	for _, here := range []bool{true, false} {
		for _, signed := range []bool{false, true} {
			t.Run(fmt.Sprintf("here %t, the stranger signs %t", here, signed), func(t *testing.T) {
				n := newNode(t, 1)
				f := n.peer("victim", "cbid")
				f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, true)
				n.pass(time.Second)
				f.take()
				if !here {
					f.hangUp()
				}
				n.takeItems()
				x := f.impostor(signed)
				for i := range 54 {
					f.far(uint64(i+1), fmt.Sprint(i))
					if i == 20 {
						x.disconnect(jxta.NetGroup)
						x.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, false)
						x.connect(ops)
						x.wire(jxta.NetGroup, pipe2, "in its name", body("forged"))
					}
					n.pass(111 * time.Millisecond)
				}
				n.pass(time.Minute)
				check.Equal(t, "len(x.bodies())", len(x.bodies()), 0)
				check.Equal(t, "items that the stranger changed", len(n.takeItems()), 0)
				check.Equal(t, "messages that it sent in the peer's name", len(n.takeCarry()), 0)
				if !here {
					check.Equal(t, "len(n.done) while the peer is away", len(n.done), 0)
					f.redial("")
					f.connect(jxta.NetGroup) // like every peer that connects
				}
				n.pass(10 * time.Second)
				check.Equal(t, "len(f.bodies())", len(f.bodies()), 54)
				check.Equal(t, "len(n.done)", len(n.done), 54)
				reason := "unsigned"
				if signed {
					reason = "signer"
				}
				check.Differ(t, "st.Refused[reason]", n.b.Stats().Refused[reason], 0)
				check.Differ(t, "warnings", n.count("message refused"), 0)
			})
		}
	}
}

// A signed peer that only reconnects and has nothing to send is asked for a sign, over a poll like over TCP.
func TestSilentSignedPeerIsAskedForASign(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	f.hangUp()
	f.far(1, "waits")
	f.redial("") // answers the question, which fakes do not list
	check.Equal(t, "f.bodies()", strings.Join(f.bodies(), ","), "waits")
	// A peer whose library does not answer gets its messages when it sends something by itself.
	f.hangUp()
	f.far(2, "waits on")
	f.dead = true
	f.redial("")
	n.pass(3 * time.Minute)
	check.Equal(t, "len(f.bodies()) before a sign", len(f.bodies()), 0)
	f.connect(jxta.NetGroup)
	check.Equal(t, "f.bodies()", strings.Join(f.bodies(), ","), "waits on")
	// While one connection serves it, others that say nothing are left in peace; then one of them is asked.
	second := *f
	second.dead, second.addr = false, strings.Replace(f.addr, ":9702", ":9777", 1)
	n.secret = append(n.secret, second.addr)
	second.redial("")
	sent := n.b.stats.Sent
	n.pass(time.Hour / 6)
	check.Equal(t, "messages meanwhile", n.b.stats.Sent-sent, 0)
	f.hangUp()
	second.far(3, "over the other")
	check.Equal(t, "second.bodies()", strings.Join(second.bodies(), ","), "over the other")
}

// A connection that spoke for a peer before the peer itself came loses its standing with the peer's first signature.
func TestSignatureBeatsWhoCameFirst(t *testing.T) {
	n := newNode(t, 1)
	f := n.dial("A", "cbid", "")
	f.hangUp()
	x := f.impostor(false)
	x.connect(jxta.NetGroup)
	f.redial("")
	f.far(1, "secret")
	f.connect(jxta.NetGroup)
	f.far(2, "more")
	n.pass(20 * time.Second)
	x.take()
	f.far(3, "and more")
	n.pass(20 * time.Second)
	x.silence("after the peer's own signature")
	if got := strings.Join(f.bodies(), ","); !strings.HasSuffix(got, "more,and more") {
		t.Errorf("the peer has heard %q", got)
	}
}

// A signed peer counts as signed after a restart, and as unsigned when it is forgotten.
func TestRestartRemembersWhoSigns(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	n.restart()
	f.far(1, "after the restart")
	x := f.impostor(false)
	x.connect(jxta.NetGroup)
	n.pass(10 * time.Second)
	x.silence("a stranger")
	f.redial("")
	f.connect(jxta.NetGroup)
	check.Equal(t, "f.bodies()", strings.Join(f.bodies(), ","), "after the restart")
}

// While the first address answers, a second one with the same id gets nothing, and its messages do not count: neither for an
// unsigned peer nor for a signed one whose JXTA home was copied with its key.
func TestSecondAddressGetsNothing(t *testing.T) {
	for _, format := range []string{"uuid", "cbid"} {
		t.Run(format, func(t *testing.T) { secondAddress(t, format) })
	}
}

func secondAddress(t *testing.T, format string) {
	n := newNode(t, 1)
	f := n.peer("A", format)
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, true)
	n.pass(time.Second)
	f.take()
	n.takeItems()
	x := f.impostor(false)
	x.signed, x.signer = f.signed, f.signer
	for i := range 54 {
		f.far(uint64(i+1), fmt.Sprint(i))
		if i%10 == 0 {
			x.connect(jxta.NetGroup)
			x.disconnect(jxta.NetGroup)
			x.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, false)
			x.wire(jxta.NetGroup, pipe2, fmt.Sprint("forged", i), body("forged"))
		}
		n.pass(111 * time.Millisecond)
	}
	n.pass(5 * time.Minute)
	x.silence("the second address")
	check.Equal(t, "len(f.bodies())", len(f.bodies()), 54)
	check.Equal(t, "items", len(n.takeItems()), 0)
	check.Equal(t, "carried", len(n.takeCarry()), 0)
	check.True(t, "counted", n.b.Stats().Refused["second_address"] >= 20, n.b.Stats().Refused)
	check.Equal(t, "log lines about it", n.count("used at two addresses"), 1)
	// When the first has gone the second is served.
	f.hangUp()
	f.far(100, "to whoever is there")
	n.pass(time.Second)
	check.Equal(t, "x.bodies()", strings.Join(x.bodies(), ","), "to whoever is there")
}

// A peer that signs may have a connection by each machine of its site: its messages on either count. A peer that does not sign may not,
// and neither may a signing peer's key at a third address.
func TestPeerByBothMachines(t *testing.T) {
	for _, format := range []string{"cbid", "uuid"} {
		n := newNode(t, 1)
		n.cfg.Beside = []string{"10.20.0.2"}
		n.b = New(n.cfg, nil)
		f := n.peer("A", format)
		n.pass(time.Second)
		by := func(addr string) {
			x := &fake{n: n, name: "A by another", id: f.id, addr: addr, signed: f.signed, signer: f.signer, dead: true}
			x.redial("")
			x.connect(jxta.NetGroup)
			x.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, true)
			n.pass(time.Second)
		}
		by("10.20.0.3:5000")
		check.Equal(t, format+": pipes of a third address", len(n.b.outlets.peers[f.id].pipes), 0)
		n.pass(time.Minute)
		by("10.20.0.2:5000")
		want := 0
		if format == "cbid" {
			want = 1
		}
		check.Equal(t, format+": pipes of the other machine", len(n.b.outlets.peers[f.id].pipes), want)
	}
}

// A peer that has moved is served at its new address within seconds, and loses no message that came meanwhile.
func TestMovedPeerIsServed(t *testing.T) {
	for _, format := range []string{"uuid", "cbid"} {
		n := newNode(t, 1)
		f := n.peer("A", format)
		n.pass(time.Minute)
		f.dead, n.stuck = true, true // its machine is gone; nobody has told the gateway
		f.far(1, "1")
		moved := &fake{n: n, name: "A moved", id: f.id, addr: fmt.Sprintf("10.77.1.%d:9702", peerNumber), signed: f.signed, signer: f.signer}
		moved.redial("")
		moved.connect(jxta.NetGroup)
		moved.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, true)
		f.far(2, "2")
		n.pass(answerWithin - time.Millisecond)
		check.Equal(t, "len(moved.bodies())", len(moved.bodies()), 0)
		n.stuck = false
		n.pass(time.Second)
		check.Equal(t, "what the moved peer has heard", strings.Join(moved.bodies(), ","), "1,2")
		if !strings.Contains(fmt.Sprint(n.closed), fmt.Sprint(f.conn)) {
			t.Errorf("closed %v, want %d", n.closed, f.conn)
		}
		if p := n.b.outlets.peers[f.id]; len(p.pipes) != 1 {
			t.Errorf("%s: %d pipes: what it said while it waited is lost", format, len(p.pipes))
		}
		n.step(Closed{f.conn})
		moved.connect(jxta.NetGroup)
		moved.one()
	}
}

// A peer that starts again on the same machine is served at once, though its old connection is still open.
func TestSameAddressIsServedAtOnce(t *testing.T) {
	for _, format := range []string{"uuid", "cbid"} {
		n := newNode(t, 1)
		f := n.peer("A", format)
		again := &fake{n: n, name: "A again", id: f.id, addr: strings.Replace(f.addr, ":9702", ":9999", 1), signed: f.signed, signer: f.signer}
		f.dead = true
		again.redial("")
		again.connect(jxta.NetGroup)
		again.take()
		f.far(1, "new")
		check.Equal(t, "again.bodies()", strings.Join(again.bodies(), ","), "new")
	}
}

// Many connections in a peer's name do not keep the peer out, nor make the gateway talk to all of them for ever.
func TestManyImpostorsKeepNobodyOut(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	f.hangUp()
	f.far(1, "waits")
	f.dead = true
	f.redial("")
	for i := range 300 {
		x := f.impostor(false)
		if i%2 == 0 {
			x.addr = "10.66.1.1:9702"
			x.redial("")
		}
	}
	p := n.b.outlets.peers[f.id]
	check.Equal(t, "connections without standing", len(p.identity.outside), maxOutside)
	sent := n.b.stats.Sent
	n.pass(time.Hour / 6)
	check.True(t, "questions in ten minutes <= 15 each", n.b.stats.Sent-sent <= 15*maxOutside, n.b.stats.Sent-sent)
	f.connect(jxta.NetGroup)
	check.Equal(t, "f.bodies()", strings.Join(f.bodies(), ","), "waits")
}

// Messages that wait for a verdict are bounded.
func TestWhoIsBounded(t *testing.T) {
	n := newNode(t, 1)
	n.stuck = true
	for range 4 {
		f := n.peer("A", "uuid")
		f.dead = true
		for i := range 50 {
			x := f.impostor(false)
			for range 20 {
				x.wire(jxta.NetGroup, pipe2, fmt.Sprint("x", i), body(strings.Repeat("x", 10<<10)))
			}
		}
	}
	if n.b.identity.heard > maxHeardAll || n.b.identity.heard < maxHeardAll/2 {
		t.Errorf("%d octets held", n.b.identity.heard)
	}
	n.pass(time.Minute)
	for id := range n.peers {
		n.step(Closed{id})
	}
	if n.b.identity.heard != 0 || len(n.b.identity.open) != 0 {
		t.Errorf("%d octets held, %d peers watched", n.b.identity.heard, len(n.b.identity.open))
	}
}

// D13 of the notes on reliability: a host with invented ids. Each takes a lease and goes.
func TestInventedIDsKeepNobodyOut(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.MaxPeers = 200
	n.b = New(n.cfg, nil)
	away := n.peer("away", "uuid")
	away.hangUp()
	away.far(1, "for whom something waits")
	for i := range 4100 {
		peerNumber++
		x := &fake{n: n, name: "invented", id: peerName("uuid", peerNumber), addr: fmt.Sprintf("10.66.0.%d:%d", i%8, 10000+i)}
		x.redial("")
		x.connect(jxta.NetGroup)
		x.hangUp()
		delete(n.peers, x.conn)
		n.pass(7 * time.Millisecond)
	}
	f := n.peer("newcomer", "uuid")
	check.Equal(t, "leases of the newcomer", len(n.b.outlets.peers[f.id].leases), 1)
	byHost := map[string]int{}
	for _, p := range n.b.outlets.peers {
		byHost[p.identity.host]++
	}
	for host, ids := range byHost {
		check.True(t, "ids of "+host+" <= 64", ids <= 64, ids)
	}
	n.stuck = false
	away.redial("")
	n.pass(time.Second)
	check.Equal(t, "away.bodies()", strings.Join(away.bodies(), ","), "for whom something waits")
}

// The origin that a message on a propagate pipe names is its sender.
func TestForgedSourceOfAWireMessage(t *testing.T) {
	n := newNode(t, 1)
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Listener, Scope: jxta.NetGroup, Owner: peerName("cbid", 900), ID: pipe1, Sub: PipePropagate}})
	f, victim := n.peer("A", "uuid"), n.peer("B", "cbid")
	w := jxta.WireHeader{Src: victim.id, Pipe: pipe1, MsgID: "forged", TTL: 200}
	f.propagate(jxta.NetGroup, svcWire, jxta.NetGroup, body("x"), xmlElement(elWire, w.Append(nil)))
	check.Equal(t, "len(n.takeCarry())", len(n.takeCarry()), 0)
	check.Equal(t, `st.Refused["wire_source"]`, n.b.Stats().Refused["wire_source"], 1)
	victim.silence("its own name")
	w.Src = "" // 2.2
	f.propagate(jxta.NetGroup, svcWire, jxta.NetGroup, body("x"), xmlElement(elWire, w.Append(nil)))
	if c := n.takeCarry(); len(c) != 1 || c[0].Message.From != f.id {
		t.Errorf("%+v", c)
	}
}
