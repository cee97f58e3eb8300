package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// News of a site is not taken for messages: in silence both wait, and are counted apart.
func TestNewsIsCountedApart(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 71)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(time.Minute)
	w.Outage(ship, 10*time.Minute)
	ship.Site.Put(w, pipeItem(2, pipeShip))
	for i := range 3 {
		ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
	}
	w.Run(time.Minute)
	p := ship.GW.Status(w.Now).Peers[0]
	waiting, underWay, _ := p.Messages()
	check.Equal(t, "messages that wait or are under way", waiting+underWay, 3)
	check.True(t, "no row of what waits counts news", len(p.Queue) == 0 || len(p.Queue) == 1 && p.Queue[0].Messages == waiting, p.Queue)
	check.True(t, "news of the pipe, too", p.NewsWaiting+p.NewsUnderWay > 0, p)
	w.Run(15 * time.Minute)
	p = ship.GW.Status(w.Now).Peers[0]
	check.Equal(t, "of either afterwards", p.Waiting+p.UnderWay+p.NewsWaiting+p.NewsUnderWay, 0)
}
