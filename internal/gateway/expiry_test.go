package gateway_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

func TestExpiry(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 23, urgency(t))
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	w.Outage(ship, 5*time.Minute)
	w.Run(10 * time.Second)
	for i := range 40 {
		ship.Site.Send(w, named("old", fmt.Sprintf("OLD;%02d;", i), 80), 1)
		ship.Site.Send(w, named("low", fmt.Sprintf("LOW;%02d;", i), 80), 1)
	}
	w.Kill(ship, time.Second) // lifetimes survive it
	w.Run(5 * time.Minute)
	s := ship.GW.Status(w.Now).Peers[0]
	if s.Expired == 0 || s.Waiting+s.UnderWay != 80-int(s.Expired) {
		t.Errorf("%+v, %d waiting, %d under way", s.PeerCounts, s.Waiting, s.UnderWay)
	}
	ship.Site.Send(w, named("old", "OLD;99;", 80), 1)
	w.Run(10 * time.Minute)
	// A message that was under way when the link went down may have arrived: it goes on.
	if got := len(arrivals(hq, "old")); got != 41-int(s.Expired) || got > 10 {
		t.Errorf("%d arrived, %d expired", got, s.Expired)
	}
	if got := len(arrivals(hq, "low")); got != 40 {
		t.Errorf("%d of 40 without a lifetime arrived", got)
	}
	said := 0
	for _, n := range w.Notes {
		if bytes.Contains([]byte(n), []byte("expired before their turn")) {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the operator was told %d times", said)
	}
}
