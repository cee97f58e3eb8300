package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

// A drain takes nothing more and sends what waits. A sender that is told of a full queue is told of a drain, too. It ends by order.
func TestDrain(t *testing.T) {
	w := world(t, 3, "iridium-dialup", 51)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(time.Minute)
	for i := range 60 {
		w.At(0, func() { ship.Site.Send(w, track(2, pipeHQ, i, 200), 1) })
	}
	w.At(time.Second, func() { w.Give(ship, api.Drain{On: true}) })
	w.At(2*time.Second, func() { ship.Site.Send(w, track(2, pipeHQ, 99, 200), 1) })
	w.At(3*time.Second, func() { w.Give(ship, api.Drain{On: true}) })
	w.Run(4 * time.Second)
	d := ship.GW.Status(w.Now).Drain
	if d == nil || d.Refused != 1 || d.Messages == 0 || d.Sites["hq"] != d.Messages {
		t.Fatalf("soon after the order: %+v", d)
	}
	w.Run(5 * time.Minute)
	d = ship.GW.Status(w.Now).Drain
	check.Equal(t, "messages that have to go out", d.Messages, 0)
	check.Equal(t, "messages at HQ", len(hq.Site.Got), 60)
	w.At(0, func() { w.Give(ship, api.Drain{}) })
	w.At(time.Second, func() { ship.Site.Send(w, track(2, pipeHQ, 100, 200), 1) })
	w.Run(time.Minute)
	check.True(t, "there is no drain any more", ship.GW.Status(w.Now).Drain == nil)
	check.Equal(t, "messages at HQ afterwards", len(hq.Site.Got), 61)
}
