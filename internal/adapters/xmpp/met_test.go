package xmpp_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// Clients of other adapters hear and speak in a room, at its home and at another site, and every client of XMPP hears them once.
func TestMetInRooms(t *testing.T) {
	for _, at := range []uint16{1, 2} {
		w := newWorld(t, 2, "iridium-dialup", 7)
		hq, ship := w.servers[1], w.servers[2]
		m := hq.room()
		w.Run(time.Minute)
		m.enter("bert@hq.example/h", "bert")
		a := far{ship, anna, "anna"}
		w.DeliverLAN(w.Nodes[at-1], site.XMPP, xmpp.Ears{Rooms: []string{room, "x@nowhere.example", "nonsense"}})
		w.Run(time.Minute)
		check.Equal(t, "bert sees TAK", m.heard("bert@hq.example/h", "<presence from='"+room+"/TAK'"), 1)
		a.enter()
		w.Run(time.Minute)
		check.Equal(t, "anna sees TAK", a.heard("<presence from='"+room+"/TAK'"), 1)
		w.DeliverLAN(w.Nodes[at-1], site.XMPP, xmpp.Met{Room: room, From: "FALCON 1", Text: "on our way", ID: "t1"})
		w.Run(time.Minute)
		check.Equal(t, "anna hears TAK", a.heard("<body>FALCON 1: on our way</body>", "/TAK'"), 1)
		check.Equal(t, "bert hears TAK", m.heard("bert@hq.example/h", "<body>FALCON 1: on our way</body>", "/TAK'"), 1)
		check.Equal(t, "TAK does not hear itself", len(w.lines[at]), 0)
		a.say("a1", "from the ship")
		m.say("bert@hq.example/h", "b1", "<body>from ashore</body>")
		w.Run(time.Minute)
		var lines []string
		for _, l := range w.lines[at] {
			lines = append(lines, l.Room+" "+l.From+" "+l.Text)
		}
		got := strings.Join(lines, ", ")
		if len(lines) != 2 || !strings.Contains(got, room+" anna from the ship") || !strings.Contains(got, room+" bert from ashore") {
			t.Errorf("at node %d TAK hears %s", at, got)
		}
		hq.stop()
		m.restart()
		w.kill(1)
		m.enter("bert@hq.example/h", "bert")
		if at == 1 { // the rules say so at each start
			w.DeliverLAN(w.Nodes[0], site.XMPP, xmpp.Ears{Rooms: []string{room}})
		}
		w.Run(time.Minute)
		w.DeliverLAN(w.Nodes[at-1], site.XMPP, xmpp.Met{Room: room, From: "FALCON 1", Text: "still here", ID: "t2"})
		w.Run(time.Minute)
		check.Equal(t, "after a restart bert hears TAK", m.heard("bert@hq.example/h", "still here", "/TAK'"), 1)
		check.Equal(t, "after a restart anna hears TAK", a.heard("still here", "/TAK'"), 1)
	}
}
