package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// known are the messages of a node, the oldest first, with their lives.
func known(n *sim.Node) (rows []gateway.MessageRow) {
	ids := gateway.MessagesOf(n.GW).IDs()
	slices.Sort(ids)
	for _, id := range ids {
		if row, ok := gateway.MessagesOf(n.GW).Row(id); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// whats are the kinds of the events of a life.
func whats(r gateway.MessageRow) string {
	var list []string
	for _, e := range r.Life {
		list = append(list, e.What)
	}
	return strings.Join(list, ", ")
}

// states are where a message stands with its recipients.
func states(r gateway.MessageRow) string {
	var list []string
	for _, to := range r.Recipients {
		list = append(list, to.Site+" "+to.State)
	}
	return strings.Join(list, ", ")
}

var orderRef uint64

// do gives an order about a message and returns the answer.
func do(w *sim.World, n *sim.Node, number uint64, what gateway.MessageDo, p site.Precedence) gateway.MessageAnswer {
	orderRef++
	w.Give(n, gateway.MessageOrder{Ref: orderRef, Message: number, Do: what, Precedence: p, By: "the test"})
	a, _ := gateway.MessagesOf(n.GW).Answer(orderRef)
	return a
}

// texts are the numbers of the tracks that a site was handed, in order.
func texts(n *sim.Node) (list []string) {
	for _, g := range n.Site.Got {
		list = append(list, strings.Split(string(g.Payload.Parts[0].Data), ";")[1])
	}
	return list
}

// A message's life says when it was accepted, on the air and acknowledged, over either carrier.
func TestLifeOfAMessage(t *testing.T) {
	for name, w := range bothCarriers(t, 2, 31) {
		t.Run(name, func(t *testing.T) {
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(time.Minute)
			accepted := w.Now
			ship.Site.Send(w, track(2, pipeHQ, 7, 300), 1)
			w.Run(2 * time.Minute)
			check.Equal(t, "messages that arrived", len(hq.Site.Got), 1)
			rows := known(ship)
			check.Equal(t, "messages", len(rows), 1)
			r := rows[0]
			check.Equal(t, "state", r.State, "ended")
			check.Equal(t, "states", states(r), "hq delivered")
			check.Equal(t, "life", whats(r), "accepted, on the air, delivered")
			check.Equal(t, "accepted", r.Accepted, accepted)
			check.Equal(t, "from", r.From, peerID(2))
			check.Equal(t, "pipe", r.ToPipe, pipeHQ)
			check.True(t, "coded octets are known", r.Coded > 0 && r.Coded < 400, r.Coded)
			check.Contains(t, "detail", r.Life[1].Detail, " octets")
		})
	}
}

// bothCarriers are worlds of n nodes in which messages go to each peer alone, and to all at once.
func bothCarriers(t *testing.T, n int, seed uint64, change ...func(*sim.Config)) map[string]*sim.World {
	return map[string]*sim.World{"unicast": world(t, n, "hf-2400", seed, change...), "group": mulWorld(t, n, seed, change...)}
}

// What is held does not go until it is released, also after a restart in between, and then goes once.
func TestHoldAndRelease(t *testing.T) {
	for name, w := range bothCarriers(t, 3, 32) {
		t.Run(name, func(t *testing.T) {
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(2 * time.Minute)
			for i := range 30 {
				ship.Site.Send(w, track(2, pipeHQ, i, 200), 1, 3)
			}
			w.Run(time.Second)
			rows := known(ship)
			check.Equal(t, "messages", len(rows), 30)
			last := rows[29]
			check.Equal(t, "state", states(last), "hq waiting, ship2 waiting")
			a := do(w, ship, last.Number, gateway.DoHold, 0)
			check.True(t, "it is held", a.Changed, a.Text)
			check.Contains(t, "answer", a.Text, "it does not go to hq, ship2 until it is released")
			a = do(w, ship, last.Number, gateway.DoHold, 0)
			check.True(t, "it is held already", a.Obeyed && !a.Changed, a.Text)
			w.Run(10 * time.Second)
			w.Kill(ship, time.Second)
			w.Run(20 * time.Minute)
			check.Equal(t, "messages that arrived", len(hq.Site.Got), 29)
			check.Equal(t, "waiting", ship.GW.Status(w.Now).Peers[0].Waiting+ship.GW.Status(w.Now).Peers[0].UnderWay, 1)
			r, ok := gateway.MessagesOf(ship.GW).Row(last.Number)
			check.True(t, "it is known after the restart", ok && r.Held, states(r))
			check.Equal(t, "states", states(r), "hq held, ship2 held")
			w.Kill(ship, time.Second)
			w.Run(time.Minute)
			a = do(w, ship, last.Number, gateway.DoRelease, 0)
			check.True(t, "it is released", a.Changed, a.Text)
			w.Run(5 * time.Minute)
			for _, n := range []*sim.Node{hq, w.Nodes[2]} {
				check.Equal(t, "messages that arrived at "+n.Name, len(n.Site.Got), 30)
				check.Equal(t, "the last at "+n.Name, texts(n)[29], "29")
			}
			r, _ = gateway.MessagesOf(ship.GW).Row(last.Number)
			check.Equal(t, "states", states(r), "hq delivered, ship2 delivered")
			check.Contains(t, "life", whats(r), "ordered")
			a = do(w, ship, last.Number, gateway.DoHold, 0)
			check.True(t, "nothing changes what has ended", a.Known && !a.Obeyed, a.Text)
			check.Contains(t, "answer", a.Text, "has ended")
		})
	}
}

// What is withdrawn does not arrive and ends once; what is under way goes through, and the answer says so.
func TestWithdraw(t *testing.T) {
	for name, w := range bothCarriers(t, 2, 33) {
		t.Run(name, func(t *testing.T) {
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(2 * time.Minute)
			for i := range 20 {
				ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
			}
			w.Run(2 * time.Second)
			rows := known(ship)
			a := do(w, ship, rows[19].Number, gateway.DoWithdraw, 0)
			check.True(t, "it is withdrawn", a.Changed, a.Text)
			a = do(w, ship, rows[0].Number, gateway.DoWithdraw, 0)
			check.True(t, "the first is under way", !a.Obeyed && a.Known, a.Text)
			check.Contains(t, "answer", a.Text, "goes through")
			a = do(w, ship, rows[0].Number, gateway.DoHold, 0)
			check.True(t, "the first cannot be held", !a.Obeyed && a.Known, a.Text)
			w.Kill(ship, time.Second)
			w.Run(20 * time.Minute)
			check.Equal(t, "messages that arrived", len(hq.Site.Got), 19)
			check.True(t, "the last is not among them", !slices.Contains(texts(hq), "19"), texts(hq))
			s := ship.GW.Status(w.Now).Peers[0]
			check.Equal(t, "left", s.Waiting+s.UnderWay, 0)
		})
	}
}

// A message whose precedence is raised goes before those that it has passed, also after a restart.
func TestRaise(t *testing.T) {
	for name, w := range bothCarriers(t, 2, 34) {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " killed ", kill), func(t *testing.T) {
				hq, ship := w.Nodes[0], w.Nodes[1]
				hq.Site.Got = nil
				w.Run(2 * time.Minute)
				for i := range 40 {
					ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
				}
				w.Run(2 * time.Second)
				rows := known(ship)
				rows = rows[len(rows)-40:]
				a := do(w, ship, rows[39].Number, gateway.DoPrecede, site.Flash)
				check.True(t, "it is raised", a.Changed, a.Text)
				r, _ := gateway.MessagesOf(ship.GW).Row(rows[39].Number)
				check.Equal(t, "precedence", r.Precedence, "flash")
				if kill {
					w.Kill(ship, time.Second)
				}
				w.Run(20 * time.Minute)
				check.Equal(t, "messages that arrived", len(hq.Site.Got), 40)
				at := slices.Index(texts(hq), "39")
				check.True(t, "it has passed most", at >= 0 && at < 25, at)
				check.Equal(t, "the precedence that arrived", hq.Site.Got[max(at, 0)].Payload.Precedence, site.Flash)
				rest := slices.Delete(texts(hq), at, at+1)
				for i, text := range rest {
					if text != fmt.Sprint(i) {
						t.Fatalf("the others are out of order: %v", rest)
					}
				}
			})
		}
	}
}
