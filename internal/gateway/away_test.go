package gateway_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// crew are edge peers that come and go, in front of gateways with real bridges that do so too.
type crew struct {
	*sim.World
	hands  []*hand
	at     map[site.ConnID]*hand
	conns  site.ConnID
	totals map[uint16]*api.PeerCounts // of a node's runs that have ended
	up     map[uint16]time.Time       // when a node's last run began, by the World's time
	// settles is how long after its start an application opens its pipes.
	settles time.Duration
}

// hand is one edge peer. Its process starts anew whenever it comes.
type hand struct {
	c      *crew
	n      *sim.Node
	id     string
	peer   *edgepeer.Peer // nil: it is away
	conn   site.ConnID    // 0: none
	serial int            // of its process
	listen []edgepeer.Listen
	heard  map[string][]string // by pipe
}

func newCrew(t *testing.T, profile string, seed uint64, wait time.Duration, rules ...mark.Rule) *crew {
	t.Helper()
	c := &crew{at: map[site.ConnID]*hand{}, totals: map[uint16]*api.PeerCounts{1: {}, 2: {}},
		up: map[uint16]time.Time{1: sim.Epoch, 2: sim.Epoch}, settles: 3 * time.Second}
	c.World = world(t, 2, profile, seed, func(s *sim.Config) {
		s.Group = s.Profile.Shared
		s.Configure = func(n *sim.Node, g *gateway.Config) {
			parts := jxta.IDParts{Kind: jxta.KindPeer, Group: jxta.WorldUUID, UUID: [16]byte{0xa1, 0xd1, 15: byte(n.ID)}}
			g.Wait, g.Messages = wait, rules
			cfg := jxtabridge.Config{Name: n.Name, Site: n.ID, Address: fmt.Sprintf("10.20.%d.1:9701", n.ID), Identity: jxtabridge.Identity{Peer: parts.Unique()},
				Hold: gateway.Hold(s.Profile), AskAfter: gateway.AskAfter(s.Profile), Wait: wait}
			g.Adapters[site.JXTA] = func(memories []site.Memory) (gateway.Adapter, error) { return jxtabridge.New(cfg, memories), nil }
		}
		s.LAN = func(n *sim.Node, out api.Output) { c.output(n, out) }
	})
	return c
}

func (c *crew) output(n *sim.Node, out api.Output) {
	for _, o := range out.LAN {
		conn, _ := o.Concerns()
		h := c.at[conn]
		switch o := o.Order.(type) {
		case jxtabridge.Welcome:
			c.At(0, func() { h.step(conn, edgepeer.Welcomed{Welcome: o.Line}) })
		case jxtabridge.Send:
			body := slices.Clone(o.Body)
			c.At(0, func() {
				if h.conn != conn { // the socket is closed
					return
				}
				h.step(conn, edgepeer.Received{Body: body})
				c.DeliverJXTA(n, jxtabridge.Written{Conn: conn, Token: o.Token})
			})
		}
	}
}

func (c *crew) hand(n *sim.Node, pipes ...edgepeer.Listen) *hand {
	h := &hand{c: c, n: n, id: peerID(uint16(len(c.hands) + 11)), listen: pipes, heard: map[string][]string{}}
	c.hands = append(c.hands, h)
	h.come()
	return h
}

// come starts the peer's process.
func (h *hand) come() {
	if h.peer != nil {
		return
	}
	h.serial++
	serial := h.serial
	h.peer = edgepeer.New(edgepeer.Config{ID: h.id, Name: fmt.Sprint("P", h.id[len(h.id)-4:]), Rand: rand.New(rand.NewPCG(uint64(serial), 7))})
	h.dial(serial)
	h.c.At(h.c.settles, func() {
		if h.serial == serial && h.peer != nil {
			for _, l := range h.listen {
				h.step(h.conn, l)
			}
		}
	})
}

// dial connects to the gateway, again every five seconds while that is down.
func (h *hand) dial(serial int) {
	if h.serial != serial || h.peer == nil || h.conn != 0 {
		return
	}
	if h.n.GW == nil {
		h.c.At(5*time.Second, func() { h.dial(serial) })
		return
	}
	h.c.conns++
	h.conn = h.c.conns
	h.c.at[h.conn] = h
	local := fmt.Sprintf("10.20.%d.%d:4711", h.n.ID, 2+len(h.id)%200)
	h.c.DeliverJXTA(h.n, jxtabridge.Opened{Conn: h.conn, Remote: local})
	h.step(h.conn, edgepeer.Dialled{Remote: fmt.Sprintf("10.20.%d.1:9701", h.n.ID), Local: local})
}

// vanish ends the process as a power cut does, or in good order.
func (h *hand) vanish(orderly bool) {
	if h.peer == nil {
		return
	}
	if orderly {
		h.step(h.conn, edgepeer.Leave{Group: jxta.NetGroup})
	}
	conn := h.conn
	h.peer, h.conn = nil, 0
	h.serial++
	if conn != 0 {
		h.c.At(0, func() { h.c.DeliverJXTA(h.n, jxtabridge.Closed{Conn: conn}) })
	}
}

func (h *hand) step(conn site.ConnID, ev edgepeer.Event) {
	if h.peer == nil || h.conn != conn {
		return
	}
	serial, w := h.serial, h.c
	out := h.peer.Step(w.Now, ev)
	if line := out.Welcome; line != nil {
		w.At(0, func() { w.DeliverJXTA(h.n, jxtabridge.Welcomed{Conn: conn, Welcome: *line}) })
	}
	for _, body := range out.Send {
		w.At(0, func() { w.DeliverJXTA(h.n, jxtabridge.Received{Conn: conn, Body: body}) })
	}
	if !out.Deadline.IsZero() {
		w.At(max(0, out.Deadline.Sub(w.Now)), func() {
			if h.serial == serial && h.conn == conn && conn != 0 {
				h.step(conn, nil)
			}
		})
	}
	for _, n := range out.Notices {
		if m, ok := n.(edgepeer.Message); ok {
			h.heard[m.Pipe] = append(h.heard[m.Pipe], string(m.Elements[0].Data))
		}
	}
}

// kill is a power cut of a gateway. Its peers lose their connections and dial until it is back.
func (c *crew) kill(n *sim.Node, d time.Duration) {
	if n.GW == nil {
		return
	}
	add(c.totals[n.ID], n.GW.Status(c.Clock(n)).Peers[0].PeerCounts)
	c.Kill(n, d)
	c.up[n.ID] = c.Now.Add(d)
	for _, h := range c.hands {
		if h.n == n && h.peer != nil && h.conn != 0 {
			h.step(h.conn, edgepeer.Lost{})
			h.conn = 0
			serial := h.serial
			c.At(5*time.Second, func() { h.dial(serial) })
		}
	}
}

// counts are those of all runs of a node.
func (c *crew) counts(n *sim.Node) api.PeerCounts {
	sum := *c.totals[n.ID]
	if n.GW != nil {
		add(&sum, n.GW.Status(c.Clock(n)).Peers[0].PeerCounts)
	}
	return sum
}

func add(to *api.PeerCounts, x api.PeerCounts) {
	to.Accepted += x.Accepted
	to.Refused += x.Refused
	to.Delivered += x.Delivered
	to.Revoked += x.Revoked
	to.Undeliverable += x.Undeliverable
	to.Received += x.Received
	to.HandedOver += x.HandedOver
	to.UndeliverableHere += x.UndeliverableHere
	to.Pending = x.Pending
}

// say sends text to a listener on a propagate pipe, or to it alone on a unicast one.
func (h *hand) say(to *hand, pipe, kind, text string) {
	ev := edgepeer.Send{Pipe: pipe, Kind: kind, Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(text)}}}
	if kind == jxta.PipeTypeUnicast {
		ev.To = to.id
	}
	h.step(h.conn, ev)
}

var (
	listensTo = edgepeer.Listen{Pipe: pipeHQ, Kind: jxta.PipeTypePropagate}
	holds     = edgepeer.Listen{Pipe: pipeShip, Kind: jxta.PipeTypeUnicast}
)

// sayTwenty sends a message each second, on both kinds of pipe.
func (c *crew) sayTwenty(from, to *hand) (want map[string][]string) {
	want = map[string][]string{}
	for i := range 20 {
		l := []edgepeer.Listen{listensTo, holds}[i%2]
		text := fmt.Sprintf("report %d, all is well", i)
		want[l.Pipe] = append(want[l.Pipe], text)
		c.At(time.Duration(i)*time.Second, func() { from.say(to, l.Pipe, l.Kind, text) })
	}
	return want
}

// A listener is away for an hour, or its gateway is off for so long, or both; power cuts come in between. Messages that
// wait for it come when it is back: all of them, in order, once. Those whose life ends before are undeliverable, and both ends say so.
func TestTwentyForAListenerThatIsAway(t *testing.T) {
	const life = 24 * time.Hour
	for _, tt := range []struct {
		name  string
		wait  time.Duration
		rules []mark.Rule
		away  func(c *crew, hq *sim.Node) // what happens in the hour that the listener is away
		back  bool

		profile string
	}{
		{"the listener is away", life, nil, func(c *crew, hq *sim.Node) { c.Run(time.Hour) }, true, ""},
		{"its gateway is off", life, nil, func(c *crew, hq *sim.Node) { c.kill(hq, time.Hour); c.Run(time.Hour + time.Minute) }, true, ""},
		{"both, one after the other", life, nil, func(c *crew, hq *sim.Node) {
			c.Run(30 * time.Minute)
			c.kill(hq, time.Hour)
			c.Run(2 * time.Hour)
		}, true, ""},
		{"with power cuts", life, nil, func(c *crew, hq *sim.Node) {
			for range 12 {
				c.kill(hq, time.Second)
				c.Run(5 * time.Minute)
			}
		}, true, ""},
		{"for almost its life", life, nil, func(c *crew, hq *sim.Node) { c.Run(23*time.Hour + 54*time.Minute) }, true, ""},
		{"for longer than its life", 30 * time.Minute, nil, func(c *crew, hq *sim.Node) { c.Run(time.Hour) }, false, ""},
		{"for longer than its life, by rule", life, []mark.Rule{{Peer: peerID(11), Wait: 10 * time.Minute}},
			func(c *crew, hq *sim.Node) { c.Run(time.Hour) }, false, ""},
		{"for longer than its life, its gateway off", 30 * time.Minute, nil,
			func(c *crew, hq *sim.Node) { c.kill(hq, time.Hour); c.Run(61 * time.Minute) }, false, ""},
		{"the listener is away, over P_Mul", life, nil, func(c *crew, hq *sim.Node) { c.Run(time.Hour) }, true, "hf-2400"},
		{"for longer than its life, over P_Mul", 30 * time.Minute, nil, func(c *crew, hq *sim.Node) { c.Run(time.Hour) }, false, "hf-2400"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, cmp.Or(tt.profile, "iridium-dialup"), 1, tt.wait, tt.rules...)
			hq, ship := c.Nodes[0], c.Nodes[1]
			sender, listener := c.hand(ship), c.hand(hq, listensTo, holds)
			c.Run(4 * time.Minute)
			listener.vanish(false)
			c.Run(time.Second)
			want := c.sayTwenty(sender, listener)
			c.Run(5 * time.Minute)
			check.Equal(t, "messages that wait", hq.GW.Status(c.Now).Peers[0].Pending, 20)
			tt.away(c, hq)
			listener.come()
			c.Run(10 * time.Minute)
			here, there := c.counts(hq), c.counts(ship)
			handed := uint64(20)
			if !tt.back {
				handed = 0
				want = map[string][]string{}
			}
			check.Same(t, "heard on the propagate pipe", listener.heard[pipeHQ], want[pipeHQ])
			check.Same(t, "heard on the unicast pipe", listener.heard[pipeShip], want[pipeShip])
			check.Equal(t, "received here", here.Received, 20)
			check.Equal(t, "handed over here", here.HandedOver, handed)
			check.Equal(t, "undeliverable here", here.UndeliverableHere, 20-handed)
			check.Equal(t, "pending here", here.Pending, 0)
			check.Equal(t, "accepted by the sender's gateway", there.Accepted, 20)
			check.Equal(t, "delivered, as the sender's gateway says", there.Delivered, handed)
			check.Equal(t, "undeliverable, as the sender's gateway says", there.Undeliverable, 20-handed)
			told := slices.ContainsFunc(c.Notes, func(s string) bool {
				return strings.Contains(s, "ship1 warn") && strings.Contains(s, "could not deliver") && strings.Contains(s, sender.id)
			})
			check.Equal(t, "told in the log of the sender's gateway", told, !tt.back)
		})
	}
}

// Peers and gateways come and go at random for hours. In the end every message that was accepted is in one state at either
// end, both ends agree, and it is true.
func TestEveryMessageEndsInOneTrueState(t *testing.T) {
	for seed := range uint64(seedsOfAbsence) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			absence(t, seed, func(*crew, func(time.Duration) time.Duration) {}, func(*crew) {})
		})
	}
}

// The same, and the clocks of both gateways are set by minutes, hours and a year, while leases run and messages wait. In the
// end they are right again, and the operator has done what the log asks for.
func TestEveryMessageEndsInOneTrueStateWhateverTheClocksSay(t *testing.T) {
	for seed := range uint64(seedsOfAbsence) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			absence(t, seed, func(c *crew, upTo func(time.Duration) time.Duration) {
				c.settles = 0 // a gateway that starts with a clock far ahead no longer knows who has listened
				for at := upTo(time.Hour); at < playOfAbsence; at += upTo(2 * time.Hour) {
					n := c.Nodes[upTo(2)]
					most := []time.Duration{10 * time.Minute, 12 * time.Hour, 400 * 24 * time.Hour}[upTo(3)]
					by, restart := upTo(2*most)-most, upTo(2) == 0
					c.At(at, func() {
						c.SetClock(n, by)
						if restart {
							c.kill(n, time.Second)
						}
					})
				}
			}, func(c *crew) {
				for _, n := range c.Nodes {
					c.SetClock(n, -c.Wrong(n))
				}
				c.Run(2 * time.Hour) // nodes that are off come back
				for i, n := range c.Nodes {
					if refusesForItsClock(c.World, n, c.Nodes[1-i]) {
						c.Give(n, api.Forget{Peer: c.Nodes[1-i].ID, AnyStart: true})
					}
				}
			})
		})
	}
}

// refusesForItsClock says whether a node's log asks its operator to have a peer forgotten whose start lies far ahead.
func refusesForItsClock(w *sim.World, n, peer *sim.Node) bool {
	return slices.ContainsFunc(w.Notes, func(note string) bool {
		return strings.Contains(note, n.Name+" error: a peer's start lies ahead") && strings.Contains(note, "peer "+peer.Name)
	})
}

// playOfAbsence is how long peers and gateways come and go.
const playOfAbsence = 6 * time.Hour

// absence is a run in which they do. before plans more for it, after is when it is over.
func absence(t *testing.T, seed uint64, before func(*crew, func(time.Duration) time.Duration), after func(*crew)) {
	rng := rand.New(rand.NewPCG(seed, 11))
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	c := newCrew(t, "iridium-dialup", seed, 10*time.Minute+upTo(2*time.Hour))
	hq, ship := c.Nodes[0], c.Nodes[1]
	sender, listener := c.hand(ship), c.hand(hq, listensTo, holds)
	c.Run(2 * time.Minute)
	sent := 0
	for at := time.Duration(0); at < playOfAbsence; at += upTo(4 * time.Minute) {
		l, text := []edgepeer.Listen{listensTo, holds}[rng.IntN(2)], fmt.Sprint("message ", sent)
		c.At(at, func() { sender.say(listener, l.Pipe, l.Kind, text) })
		sent++
	}
	for at := upTo(time.Hour); at < playOfAbsence; at += time.Hour / 2 {
		away, orderly := time.Minute+upTo(90*time.Minute), rng.IntN(2) == 0
		c.At(at, func() {
			listener.vanish(orderly)
			c.At(away, func() { c.whenUp(hq, listener.come) })
		})
		at += upTo(time.Hour)
	}
	for at := upTo(time.Hour); at < playOfAbsence; at += upTo(2 * time.Hour) {
		n, off := []*sim.Node{hq, ship}[rng.IntN(2)], time.Second+upTo(time.Minute)
		if rng.IntN(3) == 0 {
			off = upTo(90 * time.Minute)
		}
		c.At(at, func() {
			c.kill(n, off)
		})
	}
	before(c, upTo)
	c.Run(playOfAbsence)
	after(c)
	c.Run(3 * time.Hour)
	c.whenUp(hq, listener.come)
	c.Run(3 * time.Hour)
	here, there := c.counts(hq), c.counts(ship)
	heard := len(listener.heard[pipeHQ]) + len(listener.heard[pipeShip])
	st := ship.GW.Status(c.Clock(ship)).Peers[0]
	check.Equal(t, "waiting at the sender's gateway", st.Waiting+st.UnderWay, 0)
	check.Equal(t, "pending", here.Pending, 0)
	check.Equal(t, "acknowledged of those accepted", there.Delivered+there.Revoked, there.Accepted)
	check.Equal(t, "received of those acknowledged", here.Received, there.Accepted)
	check.Equal(t, "handed over or undeliverable of those received", here.HandedOver+here.UndeliverableHere, here.Received)
	check.Equal(t, "heard of those handed over", uint64(heard), here.HandedOver)
	check.Equal(t, "undeliverable as the sender's gateway was told", there.Undeliverable, here.UndeliverableHere)
	for pipe, texts := range listener.heard {
		last := -1
		for _, text := range texts {
			var i int
			if fmt.Sscanf(text, "message %d", &i); i <= last {
				t.Errorf("on pipe %s message %d came behind %d", pipe[len(pipe)-6:], i, last)
			}
			last = i
		}
	}
	t.Logf("%d sent, %d accepted, %d heard, %d undeliverable", sent, there.Accepted, heard, there.Undeliverable)
}

// whenUp calls f once a gateway has been up for a moment: one that has just started takes whoever dials in for the process
// that it knew.
func (c *crew) whenUp(n *sim.Node, f func()) {
	if n.GW == nil || c.Now.Sub(c.up[n.ID]) < 10*time.Second {
		c.At(time.Minute, func() { c.whenUp(n, f) })
		return
	}
	f()
}
