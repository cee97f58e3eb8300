package jxtabridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

func (e *edge) has(want []string) {
	e.n.Helper()
	if !slices.Equal(e.read, want) {
		e.n.Errorf("%s has read %d blocks, want %d: %.200q", e.name, len(e.read), len(want), e.read)
	}
}

func eachKind(t *testing.T, f func(*testing.T, streamKind, bool)) {
	for kind, name := range []string{"socket", "BiDi"} {
		for _, signed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s signed %t", name, signed), func(t *testing.T) { f(t, streamKind(kind), signed) })
		}
	}
}

// meet is a client on side 1 connected to a server on side 0.
func meet(w *strait, kind streamKind, signed bool) (server, client *edge) {
	server, client = w.edge(0, "S", kind, signed), w.edge(1, "C", kind, !signed)
	pipe := server.listen()
	w.settle()
	client.connectTo(server.id, pipe)
	return server, client
}

func TestStreamOverAnyDelay(t *testing.T) {
	eachKind(t, func(t *testing.T, kind streamKind, signed bool) {
		for _, delay := range []time.Duration{0, 6 * time.Second, 35 * time.Second, 70 * time.Second} {
			for _, shuffle := range []bool{false, true} {
				w := newStrait(t, delay)
				w.shuffle = shuffle
				server, client := meet(w, kind, signed)
				if !client.opened.Equal(t0) {
					t.Errorf("%v: accepted at %v", delay, client.opened)
				}
				client.write(texts("c", 1, 30)...)
				w.pass(delay)
				if !shuffle && !server.opened.Equal(t0.Add(delay)) {
					t.Errorf("%v: opened at %v", delay, server.opened)
				}
				server.write(texts("s", 1, 30)...)
				w.pass(4*delay + time.Minute)
				client.write(texts("c", 31, 40)...)
				at := w.nodes[0].now
				w.pass(4*delay + time.Minute)
				server.has(texts("c", 1, 40))
				client.has(texts("s", 1, 30))
				if !shuffle && !server.when[30].Equal(at.Add(delay)) {
					t.Errorf("%v: latency %v", delay, server.when[30].Sub(at))
				}
				in := check.In(t, "a delay of", delay)
				n := client.repeat + server.repeat + client.dups + server.dups
				check.True(in, "no repeats while nothing overtakes", n == 0 || shuffle, n)
				check.True(in, "the client's stream unbroken", !client.broken)
				check.True(in, "the server's stream unbroken", !server.broken)
				client.shut()
				w.pass(4*delay + time.Minute)
				if server.closed.IsZero() || !shuffle && !server.closed.Equal(w.nodes[0].now.Add(-3*delay-time.Minute)) {
					t.Errorf("%v: server closed at %v", delay, server.closed)
				}
				if kind == streamSocket && client.closed.IsZero() {
					t.Errorf("%v: no closeACK", delay)
				}
				w.pass(streamLinger)
				w.bare()
				for _, n := range w.nodes {
					if len(n.b.streams.of)+len(n.b.streams.at)+len(n.b.fates)+len(n.b.streams.strays.of) != 0 {
						t.Errorf("left behind: %d streams, %d addresses, %d under way, %d strays", len(n.b.streams.of), len(n.b.streams.at), len(n.b.fates), len(n.b.streams.strays.of))
					}
					for k := range n.memory {
						if strings.HasPrefix(k, memStream) || strings.HasPrefix(k, memStreamAt) {
							t.Errorf("still remembered: %s", k)
						}
					}
				}
			}
		}
	})
}

// A sender that goes on through an outage has to wait, with no unacknowledged block that could break its stream, and then everything
// arrives once and in order.
func TestStreamWaitsThroughAnOutage(t *testing.T) {
	eachKind(t, func(t *testing.T, kind streamKind, signed bool) {
		w := newStrait(t, time.Second)
		server, client := meet(w, kind, signed)
		w.pass(10 * time.Second)
		w.outage(10 * time.Minute)
		client.write(texts("c", 1, 1000)...)
		w.pass(9 * time.Minute)
		if len(client.app) < 800 || len(client.retr) > 0 || client.broken {
			t.Errorf("in the outage %d blocks wait, %d are under way, broken %t", len(client.app), len(client.retr), client.broken)
		}
		w.pass(5 * time.Minute)
		server.has(texts("c", 1, 1000))
		if client.broken {
			t.Error("broken")
		}
		w.bare()
	})
}

// The acknowledgement that opens the window again is lost with its connection.
func TestStreamWindowOpensAgain(t *testing.T) {
	w := newStrait(t, time.Second)
	server, client := meet(w, streamSocket, true)
	w.pass(10 * time.Second)
	w.outage(3 * time.Minute)
	client.write(texts("c", 1, 300)...)
	w.pass(2 * time.Minute)
	client.hangUp()
	w.pass(5 * time.Minute)
	client.redial("")
	w.pass(2 * time.Minute)
	server.has(texts("c", 1, 300))
}

// A reader that does not read holds the far sender back, and its stream lives if this takes less than the ten
// minutes after which it is given up.
func TestStreamSlowReader(t *testing.T) {
	w := newStrait(t, time.Second)
	server, client := meet(w, streamSocket, true)
	w.pass(10 * time.Second)
	server.deaf = true
	client.write(texts("c", 1, 1500)...)
	w.pass(8 * time.Minute)
	if len(client.app) < 800 || client.broken {
		t.Errorf("%d blocks wait with the sender, broken %t", len(client.app), client.broken)
	}
	server.deaf = false
	server.drain()
	w.pass(5 * time.Minute)
	server.has(texts("c", 1, 1500))

	server.deaf = true
	client.write(texts("c", 1, 1500)...)
	w.pass(30 * time.Minute)
	if client.closed.IsZero() || server.closed.IsZero() {
		t.Error("a stream that nobody takes from is never given up")
	}
	w.bare()
}

// Connections to either edge break with blocks and acknowledgements under way.
func TestStreamOverBrokenConnections(t *testing.T) {
	eachKind(t, func(t *testing.T, kind streamKind, signed bool) {
		w := newStrait(t, time.Second)
		server, client := meet(w, kind, signed)
		w.pass(5 * time.Second)
		for i := range 20 {
			client.write(texts("c", 10*i+1, 10*i+10)...)
			server.write(texts("s", 10*i+1, 10*i+10)...)
			w.pass(time.Duration(i%7) * 300 * time.Millisecond)
			for _, e := range []*edge{client, server} {
				e.hangUp()
			}
			w.pass(time.Duration(i%3) * 20 * time.Second)
			for _, e := range []*edge{client, server} {
				e.redial("")
			}
			w.pass(3 * time.Second)
		}
		w.pass(5 * time.Minute)
		server.has(texts("c", 1, 200))
		client.has(texts("s", 1, 200))
		if client.broken || server.broken {
			t.Error("broken")
		}
		w.bare()
	})
}

// An edge's acknowledgements are lost; 2.7 does not answer a repeat, only a new block.
func TestStreamLostAcknowledgements(t *testing.T) {
	w := newStrait(t, time.Second)
	server, client := meet(w, streamBiDi, true)
	w.pass(5 * time.Second)
	client.write(texts("c", 1, 3)...)
	to := server.to
	server.to = pipeURN(99) // its messages go astray
	w.pass(30 * time.Second)
	server.to = to
	w.pass(10 * time.Minute)
	client.write("c 4")
	w.pass(2 * time.Minute)
	server.has(texts("c", 1, 4))
	w.bare()
}

// A BiDi edge gets the next block a moment after it has acknowledged the one before, a socket at once.
func TestStreamPace(t *testing.T) {
	for kind, want := range []time.Duration{0, 9 * 4 * 10 * time.Millisecond} {
		w := newStrait(t, time.Second)
		server, client := meet(w, streamKind(kind), true)
		w.pass(10 * time.Second)
		client.write(texts("c", 1, 10)...)
		w.pass(10 * time.Second)
		server.has(texts("c", 1, 10))
		if d := server.when[9].Sub(server.when[0]); d != want {
			t.Errorf("ten blocks within %v, want %v", d, want)
		}
	}
}

// Blocks are lost on the last metre while more arrive all the time: one repeat, and then each acknowledgement brings the
// next, however many were lost.
func TestStreamRepeats(t *testing.T) {
	w := newStrait(t, time.Second)
	server, client := meet(w, streamSocket, true)
	server.lose = 12
	client.write(texts("c", 1, 12)...)
	for i := range 20 {
		w.pass(500 * time.Millisecond)
		client.write(fmt.Sprintf("c %d", 13+i))
	}
	w.pass(2 * time.Second)
	server.has(texts("c", 1, 32))
	if at := t0.Add(time.Second + reliable.FirstRepeat); len(server.when) < 12 || server.when[11].After(at) {
		t.Errorf("the lost blocks are there at %v, want %v", server.when, at)
	}
	w.pass(time.Minute)
	w.bare()
}

// Either gateway is killed, again and again, in the middle of everything.
func TestStreamThroughRestarts(t *testing.T) {
	eachKind(t, func(t *testing.T, kind streamKind, signed bool) {
		for _, delay := range []time.Duration{0, 6 * time.Second} {
			w := newStrait(t, delay)
			server, client := meet(w, kind, signed)
			w.restart(0, 3*time.Second)
			w.restart(1, 3*time.Second)
			for i := range 10 {
				client.write(texts("c", 20*i+1, 20*i+20)...)
				server.write(texts("s", 20*i+1, 20*i+20)...)
				w.pass(time.Duration(i) * 1100 * time.Millisecond)
				w.restart(i%2, 3*time.Second)
				w.pass(time.Duration(i) * 700 * time.Millisecond)
			}
			w.pass(5 * time.Minute)
			server.has(texts("c", 1, 200))
			client.has(texts("s", 1, 200))
			if client.broken || server.broken {
				t.Errorf("%v: broken", delay)
			}
			server.shut()
			w.pass(2 * time.Minute)
			if client.closed.IsZero() {
				t.Errorf("%v: not closed", delay)
			}
			w.bare()
		}
	})
}

func TestStreamThatIsRefused(t *testing.T) {
	eachKind(t, func(t *testing.T, kind streamKind, signed bool) {
		t.Run("no such pipe", func(t *testing.T) {
			w := newStrait(t, 6*time.Second)
			server, client := w.edge(0, "S", kind, signed), w.edge(1, "C", kind, signed)
			w.settle()
			client.connectTo(server.id, pipeURN(77))
			client.write(texts("c", 1, 5)...)
			w.pass(12 * time.Second)
			if !client.closed.Equal(t0.Add(12 * time.Second)) {
				t.Errorf("closed at %v", client.closed)
			}
			w.pass(5 * time.Minute)
			w.bare()
		})
		t.Run("no answer, and then one", func(t *testing.T) {
			w := newStrait(t, 6*time.Second)
			server, client := w.edge(0, "S", kind, signed), w.edge(1, "C", kind, signed)
			pipe := server.listen()
			server.refuse = true
			w.settle()
			client.connectTo(server.id, pipe)
			client.write(texts("c", 1, 5)...)
			w.pass(12*time.Second + streamAccept)
			if !client.closed.Equal(t0.Add(12*time.Second + streamAccept)) {
				t.Errorf("closed at %v", client.closed)
			}
			server.peer, server.to = client.id, client.own
			server.accept()
			w.settle()
			if server.closed.IsZero() {
				t.Error("the late server is not told")
			}
			w.pass(5 * time.Minute)
			w.bare()
		})
		t.Run("server leaves", func(t *testing.T) {
			w := newStrait(t, 6*time.Second)
			server, client := meet(w, kind, signed)
			w.pass(10 * time.Second)
			server.write(texts("s", 1, 3)...)
			server.disconnect(jxta.NetGroup)
			w.pass(10 * time.Second)
			client.has(texts("s", 1, 3))
			if client.closed.IsZero() {
				t.Error("client is not closed")
			}
			w.pass(5 * time.Minute)
			w.bare()
		})
		t.Run("site is lost", func(t *testing.T) {
			w := newStrait(t, time.Second)
			server, client := meet(w, kind, signed)
			w.pass(10 * time.Second)
			items := w.nodes[1].b.Items()
			w.nodes[0].step(site.SiteLost{Site: 2})
			w.settle()
			if server.closed.IsZero() {
				t.Error("server is not closed")
			}
			for _, it := range items {
				w.nodes[0].step(site.FarItem{Site: 2, Item: it})
			}
			client.write("c 1") // the other gateway did not notice
			w.pass(streamStray + time.Minute)
			if client.closed.IsZero() {
				t.Error("client is not closed")
			}
			w.bare()
		})
	})
}

// Closing overtakes nothing, whoever does it and whatever is under way.
func TestStreamClosesBehindItsLastBlock(t *testing.T) {
	eachKind(t, func(t *testing.T, kind streamKind, signed bool) {
		for _, shuffle := range []bool{false, true} {
			w := newStrait(t, 6*time.Second)
			w.shuffle = shuffle
			server, client := meet(w, kind, signed)
			client.write(texts("c", 1, 20)...)
			client.shut()
			w.pass(time.Minute)
			server.has(texts("c", 1, 20))
			if server.closed.IsZero() {
				t.Error("server is not closed")
			}
			w.pass(5 * time.Minute)
			w.bare()
		}
	})
}

// An operator sees of streams: octets both ways, traffic that stayed on the LAN, and why they ended.
func TestStreamCounters(t *testing.T) {
	eachKind(t, func(t *testing.T, kind streamKind, signed bool) {
		w := newStrait(t, time.Second)
		server, client := meet(w, kind, signed)
		client.write(texts("c", 1, 20)...)
		server.write(texts("s", 1, 5)...)
		w.pass(time.Minute)
		server.has(texts("c", 1, 20))
		for i, n := range w.nodes {
			all := n.b.Status().Streams
			if len(all) != 1 {
				t.Fatalf("node %d: %d streams", i, len(all))
			}
			st, stats := all[0], n.b.Stats()
			in := check.In(t, "node", i)
			check.Differ(in, "st.OctetsOut", st.OctetsOut, 0)
			check.Differ(in, "st.OctetsIn", st.OctetsIn, 0)
			check.Equal(in, "st.OctetsOut", st.OctetsOut, stats.Stream.OctetsOut)
			check.Equal(in, "st.OctetsIn", st.OctetsIn, stats.Stream.OctetsIn)
			if stats.Stream.Acks == 0 || len(stats.StreamsEnded) != 0 {
				t.Errorf("node %d: %+v", i, stats)
			}
		}
		client.shut()
		w.pass(time.Minute)
		ended := map[string]uint64{}
		for _, n := range w.nodes {
			for why, count := range n.b.Stats().StreamsEnded {
				ended[why] += count
			}
			if open := len(n.b.Status().Streams); open != 0 {
				t.Errorf("%d streams are open", open)
			}
		}
		if ended["closed_here"] != 1 || ended["closed_there"] != 1 || len(ended) != 2 {
			t.Errorf("ended: %v", ended)
		}
	})
}

// In a sub-group everything is addressed with the group's name, and its pipes have another group in their ids.
func TestStreamInASubGroup(t *testing.T) {
	eachKind(t, func(t *testing.T, kind streamKind, signed bool) {
		w := newStrait(t, 6*time.Second)
		server, client := w.edge(0, "S", kind, signed), w.edge(1, "C", kind, signed)
		for _, e := range []*edge{server, client} {
			e.group = ops
			e.connect(ops)
		}
		client.own = jxta.URN("uuid-0102030405060708090A0B0C0D0E0F10000000000000000000000000000000B104")
		pipe := server.listen()
		w.settle()
		client.connectTo(server.id, pipe)
		client.write(texts("c", 1, 5)...)
		w.pass(6 * time.Second)
		server.write(texts("s", 1, 5)...)
		w.pass(time.Minute)
		server.has(texts("c", 1, 5))
		client.has(texts("s", 1, 5))
		server.disconnect(ops) // leaves the group, not the net
		w.pass(time.Minute)
		if client.closed.IsZero() {
			t.Error("client is not closed")
		}
		w.bare()
	})
}

// Far sites are not told of the pipes of a stream's ends.
func TestStreamPipesAreNotTold(t *testing.T) {
	w := newStrait(t, time.Second)
	server, client := meet(w, streamSocket, true)
	id := func(e *edge) string { return strings.TrimPrefix(e.own, "urn:jxta:") }
	early := w.edge(1, "E", streamSocket, true) // announces its pipe before it opens, as 2.7 does
	early.pipe(jxta.NetGroup, id(early), jxta.PipeTypeUnicast, true)
	early.connectTo(server.id, server.server)
	w.pass(100 * time.Millisecond)
	client.pipe(jxta.NetGroup, id(client), jxta.PipeTypeUnicast, true)
	w.pass(2 * time.Second)
	server.pipe(jxta.NetGroup, id(server), jxta.PipeTypeUnicast, true)
	w.pass(10 * time.Second)
	for _, n := range w.nodes {
		for _, s := range n.b.far.sites {
			for k := range s.pipes {
				if k.pipe != strings.TrimPrefix(server.server, "urn:jxta:") {
					t.Errorf("far sites are told of %s", k.pipe)
				}
			}
		}
	}
	w.restart(1, time.Second)
	for _, it := range w.nodes[1].b.Items() {
		if it.Kind == site.Listener {
			t.Errorf("after the restart far sites are told of %s", it.ID)
		}
	}
	client.pipe(jxta.NetGroup, id(client), jxta.PipeTypeUnicast, false) // gone without a word
	w.pass(10 * time.Second)
	if server.closed.IsZero() {
		t.Error("the server of a client whose pipe is closed is not told")
	}
}

// A pipe that was told before it became a stream's end is withdrawn also after a restart.
func TestToldPipeOfAStreamIsWithdrawn(t *testing.T) {
	w := newStrait(t, time.Second)
	server, client := w.edge(0, "S", streamSocket, true), w.edge(1, "C", streamSocket, true)
	server.listen()
	pipe := strings.TrimPrefix(client.own, "urn:jxta:")
	client.pipe(jxta.NetGroup, pipe, jxta.PipeTypeUnicast, true)
	owners := func() int { return len(w.nodes[0].b.far.sites[2].pipeOwners(pipeKey{jxta.NetGroup, pipe})) }
	w.pass(5 * time.Second)
	check.Equal(t, "owners of the pipe", owners(), 1)
	client.connectTo(server.id, server.server)
	w.pass(5 * time.Second)
	w.restart(1, time.Second)
	w.pass(5 * time.Second)
	client.pipe(jxta.NetGroup, pipe, jxta.PipeTypeUnicast, false)
	w.pass(5 * time.Second)
	check.Equal(t, "owners of the pipe that is closed", owners(), 0)
}

// Messages between two local peers pass unchanged.
func TestStreamsOfOneSitePass(t *testing.T) {
	n := newNode(t, 1)
	a, b := n.peer("A", "cbid"), n.peer("B", "cbid")
	a.say(b.id, jxta.NetGroup, svcPipe, pipeURN(1), jxta.Element{Namespace: nsRel, Name: "1", Type: mimeBlock, Data: []byte("x")})
	if h := b.one(); string(h.find("jxtarel:1")) != "x" {
		t.Errorf("heard %q", h.body)
	}
	a.silence("no acknowledgement")
}

// The octets of a block on the link, without the flow: those of the message, and three.
func TestStreamOverhead(t *testing.T) {
	w := newStrait(t, time.Second)
	server, client := meet(w, streamBiDi, true)
	w.pass(10 * time.Second)
	w.crossed = nil
	client.write(strings.Repeat("x", 200))
	server.write(strings.Repeat("y", 200))
	w.pass(10 * time.Second)
	must := check.Fatal(t)
	for _, pl := range w.crossed {
		check.Equal(must, "len(pl.Parts)", len(pl.Parts), 2)
		check.Equal(t, "len(pl.Parts[0].Data)", len(pl.Parts[0].Data), 3)
		check.Equal(t, "len(pl.Parts[1].Data)", len(pl.Parts[1].Data), 200)
		check.Equal(t, "pl.Param", pl.Param, "")
	}
	if len(w.crossed) != 2 {
		t.Errorf("%d payloads", len(w.crossed))
	}
	st := w.nodes[0].b.Status().Streams
	check.Equal(must, "len(st)", len(st), 1)
	check.Equal(t, "st[0].Kind", st[0].Kind, "bidi")
	check.Equal(t, "st[0].Peer", st[0].Peer, server.id)
	check.Equal(t, "st[0].FarPeer", st[0].FarPeer, client.id)
	check.Equal(t, "st[0].Sent", st[0].Sent, 1)
	check.Equal(t, "st[0].Taken", st[0].Taken, 1)
	check.Equal(t, "st[0].ToLink+st[0].ToPeer", st[0].ToLink+st[0].ToPeer, 0)
	check.True(t, "an open window", !st[0].Closed)
}
