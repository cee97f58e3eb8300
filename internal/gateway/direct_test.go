package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// A message that fits a datagram beside the short seal, and none beside the long one and a HELLO, arrives wherever the HELLO has
// to go first: at the first meeting, after a restart of either side, and at a peer that is silent and answers nothing.
func TestMessagesThatLeaveNoRoomForAHello(t *testing.T) {
	for _, tt := range []struct {
		name string
		act  func(w *sim.World, hq, ship *sim.Node)
		late time.Duration
	}{
		{"they know each other", func(*sim.World, *sim.Node, *sim.Node) {}, time.Minute},
		{"the sender starts anew", func(w *sim.World, _, ship *sim.Node) { w.Kill(ship, time.Second) }, time.Minute},
		{"the receiver starts anew", func(w *sim.World, hq, _ *sim.Node) { w.Kill(hq, time.Second) }, 2 * time.Minute},
		{"the receiver is silent and the sender starts anew", func(w *sim.World, hq, ship *sim.Node) {
			order(w, hq, api.Silence{On: true, Announce: true})
			w.Run(10 * time.Second)
			w.Kill(ship, time.Second)
		}, 2 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world(t, 2, "iridium-directip", 3, func(c *sim.Config) { c.Profile.Up.LossPct, c.Profile.Down.LossPct = 0, 0 })
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(time.Minute)
			first := tracks(w, ship, []uint16{1}, 1, 20, 0) // its flow has a number from now on
			w.Run(30 * time.Second)
			once(t, w, hq.Site, 2, *first)
			tt.act(w, hq, ship)
			w.Run(2 * time.Second)
			sent := *first
			for i := range 6 {
				m := track(2, pipeHQ, 10+i, 425)
				sent = append(sent, offered{At: w.Now, Message: m})
				ship.Site.Send(w, m, 1)
			}
			w.Run(tt.late)
			once(t, w, hq.Site, 2, sent)
		})
	}
	t.Run("at the first meeting", func(t *testing.T) {
		w := world(t, 2, "iridium-directip", 3, func(c *sim.Config) { c.Profile.Up.LossPct, c.Profile.Down.LossPct = 0, 0 })
		sent := tracks(w, w.Nodes[1], []uint16{1}, 6, 425, 0)
		w.Run(time.Minute)
		once(t, w, w.Nodes[0].Site, 2, *sent)
	})
}

// A flash message goes twice, and the other ones that wait share its datagram only as far as they are short.
func TestFlashGoesTwice(t *testing.T) {
	w := world(t, 2, "iridium-directip", 3, func(c *sim.Config) { c.Profile.Up.LossPct, c.Profile.Down.LossPct = 0, 0 })
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	before := ship.GW.Status(w.Now).Peers[0]
	var sizes []int
	w.Tap = func(from, _ *sim.Node, data []byte) [][]byte {
		if from == ship {
			sizes = append(sizes, len(data))
		}
		return [][]byte{data}
	}
	sent := []offered{}
	for i := range 3 {
		m := track(2, pipeHQ, i, 200)
		if i == 2 {
			m.Precedence = site.Flash
		}
		sent = append(sent, offered{At: w.Now, Message: m})
		ship.Site.Send(w, m, 1)
	}
	w.Run(time.Minute)
	if n := len(hq.Site.Got); n != 3 {
		t.Fatalf("%d of 3 arrived", n)
	}
	if hq.Site.Got[0].Payload.Precedence != site.Flash || hq.Site.Got[0].At.Sub(sent[2].At) > 3*time.Second {
		t.Errorf("the first that arrived: %v after %v", hq.Site.Got[0].Payload.Precedence, hq.Site.Got[0].At.Sub(sent[2].At))
	}
	if again := ship.GW.Status(w.Now).Peers[0].Repeated - before.Repeated; again != 1 {
		t.Errorf("%d messages went again, want the flash message once", again)
	}
	if len(sizes) == 0 || sizes[0] > 350 {
		t.Errorf("datagrams of %v octets: the first has the flash message alone", sizes)
	}
}
