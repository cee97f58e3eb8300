package jxtabridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// farUnicast is a payload from a far peer for one local peer, on a pipe.
func farUnicast(token uint64, to *fake, pipe, s string) site.FarMessage {
	return site.FarMessage{Site: 2, Token: token, Message: site.Message{Scope: jxta.NetGroup, From: peerName("cbid", 777), To: to.id,
		Service: "PipeService", Param: jxta.URN(pipe), Parts: []jxta.Element{body(s)}}}
}

// living is a far message with a life.
func living(ev site.FarMessage, p site.Precedence, until time.Time) site.FarMessage {
	ev.Message.Precedence, ev.Until = p, until
	return ev
}

// restarted is a start after d without a gateway, with the far messages that the journal still has.
func (n *node) restarted(d time.Duration, again ...site.FarMessage) {
	n.Helper()
	n.now = n.now.Add(d)
	n.restart()
	n.step(nil)
	for _, ev := range again {
		n.step(ev)
	}
}

// unfinished leaves out the messages that have ended.
func (n *node) unfinished(all []site.FarMessage) []site.FarMessage {
	return slices.DeleteFunc(slices.Clone(all), func(ev site.FarMessage) bool {
		return slices.Contains(n.done, ev.Token) || slices.ContainsFunc(n.lost, func(u site.Undelivered) bool { return u.Token == ev.Token })
	})
}

// Messages for a listener whose lease has ended wait for it, and come when the pipe is open again: in order, once.
func TestAwayBeyondTheLease(t *testing.T) {
	for _, restart := range []string{"no restart", "restarts", "off for an hour"} {
		t.Run(restart, func(t *testing.T) {
			n := newNode(t, 1)
			f := n.peer("A", "cbid")
			f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
			f.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, true)
			n.pass(time.Second)
			f.hangUp()
			var all []site.FarMessage
			var want []string
			say := func(i int) {
				ev := farWire(uint64(i), fmt.Sprint(i))
				if i%2 == 0 {
					ev = farUnicast(uint64(i), f, pipe2, fmt.Sprint(i))
				}
				ev.Until = n.now.Add(24 * time.Hour)
				all, want = append(all, ev), append(want, fmt.Sprint(i))
				n.step(ev)
			}
			for i := 1; i <= 10; i++ {
				say(i)
			}
			switch restart {
			case "no restart":
				n.pass(25 * time.Minute)
			case "restarts":
				n.restarted(time.Second, n.unfinished(all)...)
				n.pass(25 * time.Minute)
				n.restarted(time.Second, n.unfinished(all)...)
			default:
				n.restarted(time.Hour, n.unfinished(all)...)
			}
			if len(n.b.Status().Groups) != 0 {
				t.Fatal("it still has a lease")
			}
			for i := 11; i <= 20; i++ { // they were under way when the lease ended
				say(i)
			}
			if restart == "restarts" {
				n.restarted(time.Second, n.unfinished(all)...)
			}
			n.pass(35 * time.Minute)
			if len(n.done)+len(n.lost) != 0 {
				t.Fatalf("ended: %v, %v", n.done, n.lost)
			}
			f.redial("")
			f.connect(jxta.NetGroup)
			n.pass(5 * time.Second)
			if got := f.bodies(); len(got) != 0 {
				t.Errorf("handed %q before its pipes are open", got)
			}
			f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
			n.step(farWire(21, "21"))
			n.pass(10 * time.Second)
			f.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, true)
			n.step(farUnicast(22, f, pipe2, "22"))
			n.pass(10 * time.Second)
			want = append(want, "21", "22")
			got := f.bodies()
			for k := range 2 { // of each pipe
				of := func(list []string) (some []string) {
					for _, s := range list {
						var i int
						if fmt.Sscan(s, &i); i%2 == k {
							some = append(some, s)
						}
					}
					return some
				}
				check.Same(t, "heard on a pipe", of(got), of(want))
			}
			check.Equal(t, "messages heard", len(got), len(want))
			check.Equal(t, "handed over", len(n.done), len(want))
			check.Equal(t, "undeliverable", len(n.lost), 0)
			check.Equal(t, "deliveries kept", len(n.b.outlets.waiting), 0)
			n.pass(48 * time.Hour)
			check.Equal(t, "memories of the messages", len(slices.DeleteFunc(keys(n.memory), func(k string) bool { return !strings.HasPrefix(k, memLeft) })), 0)
		})
	}
}

func keys(m map[string][]byte) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

// Of several listeners, those that are here get a message at once, and once. After a restart only the others get it.
func TestAwayWhileOthersListen(t *testing.T) {
	n := newNode(t, 1)
	f, g := n.peer("A", "cbid"), n.peer("B", "uuid")
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	g.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	f.disconnect(jxta.NetGroup)
	f.hangUp()
	ev := living(farWire(1, "one"), site.Routine, n.now.Add(time.Hour))
	n.step(ev)
	if got := g.bodies(); !slices.Equal(got, []string{"one"}) || len(n.done) != 0 {
		t.Fatalf("the one who is here heard %q, done %v", got, n.done)
	}
	n.restarted(time.Minute, ev)
	g.redial("")
	h := n.dial("C", "uuid", "")
	h.connect(jxta.NetGroup)
	h.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.pass(time.Minute)
	if got := append(g.bodies(), h.bodies()...); len(got) != 0 {
		t.Errorf("heard again, or by one who came later: %q", got)
	}
	f.redial("")
	f.connect(jxta.NetGroup)
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.pass(time.Second)
	if got := f.bodies(); !slices.Equal(got, []string{"one"}) || !slices.Equal(n.done, []uint64{1}) {
		t.Errorf("who was away heard %q, done %v", got, n.done)
	}
}

// A message ends undeliverable with its life, whether its peer has a lease or not, and the log says so once a minute.
func TestAwayBeyondItsLife(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	f.hangUp()
	n.step(living(farWire(1, "short"), site.Routine, n.now.Add(time.Minute)))
	for i := range 30 {
		n.step(living(farWire(uint64(i+2), "long"), site.Routine, n.now.Add(time.Hour).Add(time.Duration(i)*time.Second)))
	}
	n.pass(2 * time.Minute)
	check.Same(t, "undeliverable", n.lost, []site.Undelivered{{Token: 1, Why: site.LifeOver, For: f.id}})
	n.notes = nil
	n.pass(time.Hour)
	check.Equal(t, "undeliverable after an hour", len(n.lost), 31)
	check.Equal(t, "done", len(n.done), 0)
	lines, told := 0, 0
	for _, note := range n.notes {
		if note.Text == "messages from far sites are undeliverable" {
			lines++
			told += note.Attrs[3].(int)
		}
	}
	if lines < 1 || lines > 2 || told != 30 {
		t.Errorf("%d lines in the log tell of %d messages, want at most 2 of 30", lines, told)
	}
	f.redial("")
	f.connect(jxta.NetGroup)
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.pass(time.Minute)
	check.Equal(t, "messages heard when it is back", len(f.bodies()), 0)
}

// A message for no known peer waits for a moment, and ends undeliverable.
func TestAwayIsNobody(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	n.step(farWire(1, "early"))
	n.step(farWire(2, "early too"))
	n.pass(5 * time.Second)
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.pass(time.Second)
	check.Same(t, "heard by who has just begun to listen", f.bodies(), []string{"early", "early too"})
	check.Same(t, "done", n.done, []uint64{1, 2})
	ev := farWire(3, "for nobody")
	ev.Message.Topic = pipe2
	n.step(ev)
	n.step(site.FarMessage{Site: 2, Token: 4, Message: site.Message{Scope: jxta.NetGroup, To: peerName("cbid", 999), Service: "PipeService"}})
	n.pass(time.Minute)
	check.Same(t, "undeliverable", n.lost, []site.Undelivered{{Token: 3, Why: site.Nobody}, {Token: 4, Why: site.Nobody}})
	check.Equal(t, "counted", n.b.Stats().FarUndeliverable, 2)
	check.Equal(t, "kept", len(n.b.arrivals.away.of), 0)
}

// Waiting messages are bounded, for one peer and for all. The least urgent is dropped first, and of these the oldest.
func TestAwayIsBounded(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.MaxAwayOctets, n.cfg.MaxAwayOctetsOfPeer = 100_000, 50_000
	n.b = New(n.cfg, nil)
	var away []*fake
	for i := range 4 {
		f := n.peer(fmt.Sprint("P", i), "cbid")
		f.pipe(jxta.NetGroup, fmt.Sprintf("%s%X04", pipe1[:len(pipe1)-3], i), jxta.PipeTypePropagate, true)
		f.disconnect(jxta.NetGroup)
		f.hangUp()
		away = append(away, f)
	}
	token := uint64(0)
	say := func(to int, p site.Precedence) uint64 {
		token++
		ev := living(farWire(token, strings.Repeat("x", 9000)), p, n.now.Add(time.Hour))
		ev.Message.Topic = fmt.Sprintf("%s%X04", pipe1[:len(pipe1)-3], to)
		n.step(ev)
		if a := &n.b.arrivals.away; a.octets > 100_000 || a.of[away[to].id].octets > 50_000 {
			t.Fatalf("%d octets wait, %d for the peer", a.octets, a.of[away[to].id].octets)
		}
		return token
	}
	of := func() (tokens []uint64) {
		for _, u := range n.lost {
			check.Equal(t, "why", u.Why, site.NoRoom)
			tokens = append(tokens, u.Token)
		}
		n.lost = nil
		return tokens
	}
	for range 3 {
		say(0, site.Routine)
	}
	say(0, site.Deferred)
	say(0, site.Flash)
	check.Equal(t, "given up below the bound", len(of()), 0)
	say(0, site.Routine)
	check.Same(t, "given up of one peer's: the least urgent", of(), []uint64{4})
	say(0, site.Priority)
	check.Same(t, "given up of one peer's: then the oldest", of(), []uint64{1})
	say(0, site.Deferred)
	check.Same(t, "given up of one peer's: the new one", of(), []uint64{8})
	for range 5 {
		say(1, site.Priority)
	}
	check.Equal(t, "given up below both bounds", len(of()), 0)
	for range 5 {
		say(2, site.Immediate)
	}
	check.Same(t, "given up for all: the least urgent, whomever they are for", of(), []uint64{2, 3, 6, 7})
	say(3, site.Routine)
	check.Same(t, "given up for all: the new one", of(), []uint64{19})
}

// A peer that closes a pipe and opens it again gets the messages that came in between; one that does not open it for a day is forgotten.
func TestAwayFromAPipe(t *testing.T) {
	n := patient(t, 1)
	f := n.peer("A", "cbid")
	f.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, true)
	n.pass(time.Second)
	f.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, false)
	n.step(farUnicast(1, f, pipe2, "while it was closed"))
	n.step(farUnicast(2, f, pipe1, "of a pipe that nobody has told of"))
	n.pass(time.Second)
	check.Same(t, "heard", f.bodies(), []string{"of a pipe that nobody has told of"})
	f.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, true)
	n.pass(time.Second)
	check.Same(t, "heard when it is open again", f.bodies(), []string{"while it was closed"})
	f.pipe(jxta.NetGroup, pipe2, jxta.PipeTypeUnicast, false)
	n.pass(23 * time.Hour)
	check.Equal(t, "known after 23 hours", len(n.b.arrivals.away.of), 1)
	n.pass(26 * time.Hour)
	check.Equal(t, "known a day after the end of its lease", len(n.b.arrivals.away.of), 0)
}

// More messages than a queue holds wait for a peer, and come in order when it is back.
func TestAwayWithABacklog(t *testing.T) {
	n := newNode(t, 1)
	n.cfg.MaxQueue = 100
	n.b = New(n.cfg, nil)
	f := n.peer("A", "cbid")
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	f.disconnect(jxta.NetGroup)
	f.hangUp()
	var want []string
	say := func(i int) {
		n.step(farWire(uint64(i+1), fmt.Sprint(i)))
		want = append(want, fmt.Sprint(i))
	}
	for i := range 1000 {
		say(i)
	}
	f.redial("")
	f.connect(jxta.NetGroup)
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	for i := 1000; i < 1100; i++ {
		say(i)
		n.pass(20 * time.Millisecond)
	}
	n.pass(time.Minute)
	check.Same(t, "heard", f.bodies(), want)
	check.Equal(t, "done", len(n.done), 1100)
	check.Equal(t, "undeliverable", len(n.lost), 0)
}

// A message that a connection had when the lease ended counts as handed over if it was written, and waits if it was not.
func TestAwayWithSomethingInTheSocket(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.stuck = true
	for i := range 3 {
		n.step(farWire(uint64(i+1), fmt.Sprint(i)))
		n.pass(time.Second)
	}
	f.bodies()
	f.disconnect(jxta.NetGroup)
	check.Equal(t, "done before anything is written", len(n.done), 0)
	for _, x := range n.b.outlets.conns[f.conn].inflight {
		if x.msg != nil && x.msg.delivery != nil && x.msg.delivery.token == 1 {
			n.step(Written{f.conn, x.token})
			break
		}
	}
	check.Same(t, "done when the first is written", n.done, []uint64{1})
	f.hangUp()
	n.stuck = false
	f.redial("")
	f.connect(jxta.NetGroup)
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, true)
	n.pass(time.Second)
	check.Same(t, "heard", f.bodies(), []string{"1", "2"})
	check.Same(t, "done", n.done, []uint64{1, 2, 3})
}
