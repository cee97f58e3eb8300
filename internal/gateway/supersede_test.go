package gateway_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// During an outage a hundred tracks are updated ten times each: only the newest of each goes.
func TestNewestPictureAfterAnOutage(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 22, urgency(t))
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	w.Outage(ship, 10*time.Minute)
	w.Run(10 * time.Second)
	for update := range 10 {
		for id := range 100 {
			w.At(time.Duration(update*50+id/2)*time.Second, func() {
				ship.Site.Send(w, named("track", fmt.Sprintf("TRK;T-%03d;update=%d;", id, update), 80), 1)
			})
		}
	}
	w.Run(9*time.Minute + 40*time.Second)
	before := ship.GW.Status(w.Now).Peers[0]
	w.Run(20 * time.Minute)
	newest := map[string]int{}
	for _, g := range hq.Site.Got {
		var id string
		var update int
		fmt.Sscanf(string(g.Payload.Parts[0].Data), "TRK;%5s;update=%d;", &id, &update)
		if last, ok := newest[id]; ok && last >= update {
			t.Errorf("%s: update %d behind %d", id, update, last)
		}
		newest[id] = update
	}
	for id := range 100 {
		if u, ok := newest[fmt.Sprintf("T-%03d", id)]; !ok || u != 9 {
			t.Errorf("track %d: newest update %d, %v", id, u, ok)
		}
	}
	s := ship.GW.Status(w.Now).Peers[0]
	t.Logf("of 1,000 updates %d waited at the end of the outage and %d arrived; %d superseded", before.Waiting, len(hq.Site.Got), s.Superseded)
	check.True(t, "before.Waiting <= 100", before.Waiting <= 100, before.Waiting)
	check.Equal(t, "s.Accepted", s.Accepted, 1000)
	check.Equal(t, "s.Delivered+s.Superseded", s.Delivered+s.Superseded, 1000)
	check.Equal(t, "int(s.Delivered)", int(s.Delivered), len(hq.Site.Got))
}

// A silent ship's tracks wait in P_Mul: the newest of each goes out when silence ends, whatever crashed meanwhile.
func TestNewestPictureAfterSilence(t *testing.T) {
	w := mulWorld(t, 3, 26, urgency(t))
	hq, other, ship := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	w.Run(2 * time.Minute)
	order(w, ship, api.Silence{On: true, Until: w.Now.Add(time.Hour)})
	for update := range 10 {
		for id := range 20 {
			w.At(time.Duration(update*120+id)*time.Second, func() {
				ship.Site.Send(w, named("track", fmt.Sprintf("TRK;T-%03d;update=%d;", id, update), 80), 1, 2)
			})
		}
	}
	w.At(10*time.Minute, func() { w.Kill(ship, time.Second) })
	w.Run(3 * time.Hour)
	for _, n := range []*sim.Node{hq, other} {
		if len(n.Site.Got) != 20 {
			t.Errorf("%s has %d messages, want the newest of twenty tracks\n%s", n.Name, len(n.Site.Got), tail(w.Notes))
		}
		for _, g := range n.Site.Got {
			if !bytes.Contains(g.Payload.Parts[0].Data, []byte("update=9;")) {
				t.Errorf("%s has %q", n.Name, g.Payload.Parts[0].Data[:24])
			}
		}
	}
	for _, p := range ship.GW.Status(w.Now).Peers {
		if p.Delivered != 20 || p.Superseded == 0 {
			t.Errorf("%+v", p.PeerCounts)
		}
	}
}
