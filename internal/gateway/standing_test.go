package gateway_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// class gives an order about all messages of a precedence and returns the answer.
func class(w *sim.World, n *sim.Node, do gateway.MessageDo, p site.Precedence) gateway.MessageAnswer {
	orderRef++
	w.Give(n, gateway.ClassOrder{Ref: orderRef, Do: do, Precedence: p, By: "the test"})
	w.Run(time.Second)
	a, _ := n.GW.Messages().Answer(orderRef)
	return a
}

// An order to hold a precedence holds messages that wait and that come, over kills, and no others; a message raised out of it goes, and
// the rest goes once when it is released.
func TestHoldAPrecedence(t *testing.T) {
	for name, w := range bothCarriers(t, 3, 41, urgency(t)) {
		t.Run(name, func(t *testing.T) {
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(2 * time.Minute)
			a := class(w, ship, gateway.DoHold, site.Deferred)
			check.Contains(t, "with nothing waiting", a.Text, "deferred messages are held until they are released, also those that come: none waits now")
			check.True(t, "it is obeyed", a.Obeyed, a)
			class(w, ship, gateway.DoRelease, site.Deferred)
			order(w, ship, api.Silence{On: true})
			send := func(from, to int) {
				for i := from; i < to; i++ {
					low := named("low", "LOW", 200)
					low.Parts[0].Data[100] = byte(i)
					ship.Site.Send(w, low, 1, 3)
				}
			}
			send(0, 10)
			w.Run(time.Second)
			a = class(w, ship, gateway.DoHold, site.Deferred)
			check.Contains(t, "with ten waiting", a.Text, "10 held now")
			order(w, ship, api.Silence{})
			send(10, 20)
			ship.Site.Send(w, track(2, pipeHQ, 7, 200), 1, 3)
			w.Run(10 * time.Second)
			w.Kill(ship, time.Second)
			w.Run(time.Minute)
			send(20, 30)
			w.Run(10 * time.Minute)
			check.Equal(t, "what is routine", len(arrivals(hq, "track"))+len(hq.Site.Got), 1)
			check.Equal(t, "deferred ones that have arrived", len(arrivals(hq, "low")), 0)
			check.Equal(t, "rows of what waits for its turn", len(ship.GW.Status(w.Now).Peers[0].Queue), 0)
			holds := ship.GW.Status(w.Now).Holds
			check.Equal(t, "standing orders", len(holds), 1)
			check.Equal(t, "held, once for each site", holds[0].Messages, 60)
			check.Equal(t, "whose order", holds[0].Precedence+", "+holds[0].By, "deferred, the test")
			check.True(t, "since when", w.Now.Sub(holds[0].Since) > 10*time.Minute, holds[0].Since)
			var held []api.MessageRow
			for _, r := range known(ship) {
				if r.Held {
					held = append(held, r)
				}
			}
			check.Equal(t, "held messages", len(held), 30)
			do(w, ship, held[3].Number, gateway.DoPrecede, site.Routine)
			w.Run(time.Minute)
			check.Equal(t, "the raised one has arrived", len(arrivals(hq, "low")), 1)
			a = class(w, ship, gateway.DoHold, site.Deferred)
			check.Contains(t, "ordered again", a.Text, "29 held now")
			a = class(w, ship, gateway.DoRelease, site.Deferred)
			check.Contains(t, "released", a.Text, "29 released")
			send(30, 31)
			w.Run(10 * time.Minute)
			for _, n := range []*sim.Node{hq, w.Nodes[2]} {
				var got []byte
				for _, g := range arrivals(n, "low") {
					got = append(got, g.Payload.Parts[0].Data[100])
				}
				slices.Sort(got)
				check.Equal(t, "deferred messages at "+n.Name, len(got), 31)
				check.Equal(t, "different ones", len(slices.Compact(got)), 31)
			}
			w.Kill(ship, time.Second)
			w.Run(time.Minute)
			check.Equal(t, "standing orders at the end", len(ship.GW.Status(w.Now).Holds), 0)
		})
	}
}

// A queue that is full of held messages makes room for more urgent ones by giving up the newest first.
func TestHeldMakesRoom(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 42, urgency(t), func(c *sim.Config) {
		before := c.Configure
		c.Configure = func(n *sim.Node, g *gateway.Config) { before(n, g); g.MaxWaiting = 20_000 }
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	class(w, ship, gateway.DoHold, site.Deferred)
	for range 200 {
		ship.Site.Send(w, named("low", "LOW", 500), 1)
	}
	w.Run(time.Second)
	full := ship.GW.Status(w.Now).Peers[0]
	check.True(t, "the queue is full", full.Refused > 100, full.PeerCounts)
	for i := range 5 {
		ship.Site.Send(w, track(2, pipeHQ, i, 500), 1)
	}
	w.Run(time.Minute)
	check.Equal(t, "routine messages that arrived", len(hq.Site.Got), 5)
	p := ship.GW.Status(w.Now).Peers[0]
	check.Equal(t, "refused since", p.Refused-full.Refused, 0)
	check.True(t, "given up for them", p.Cancelled-full.Cancelled >= 5 && p.Cancelled-full.Cancelled <= 7, p.Cancelled)
	check.Equal(t, "the rest waits", uint64(p.Waiting), uint64(full.Waiting)-(p.Cancelled-full.Cancelled))
}

// An order to hold a precedence holds a message that goes to two sites by two bearers.
func TestHoldAPrecedenceOnTwoBearers(t *testing.T) {
	w := twoBearers(t, 3, "iridium-directip", 1)
	hq, ship2, ship3 := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	w.Run(2 * time.Minute)
	w.Cut(0, ship3, true)
	sent := tracks(w, hq, []uint16{2, 3}, 5, 200, 10*time.Second)
	w.Run(10 * time.Minute)
	once(t, w, ship2.Site, 1, *sent)
	once(t, w, ship3.Site, 1, *sent)
	class(w, hq, gateway.DoHold, site.Routine)
	hq.Site.Send(w, track(1, pipeHQ, 9, 200), 2, 3)
	w.Run(5 * time.Minute)
	check.Equal(t, "messages at the ship on satellite", len(ship2.Site.Got), 5)
	check.Equal(t, "messages at the ship on HF", len(ship3.Site.Got), 5)
	class(w, hq, gateway.DoRelease, site.Routine)
	w.Run(5 * time.Minute)
	check.Equal(t, "messages at the ship on satellite when it is released", len(ship2.Site.Got), 6)
	check.Equal(t, "messages at the ship on HF when it is released", len(ship3.Site.Got), 6)
}
