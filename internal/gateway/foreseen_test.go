package gateway_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// TestForeseen: that a message will expire in the queue is reported long before: in the status, once in the log and in the message's
// life. A message that is in time is not reported.
func TestForeseen(t *testing.T) {
	for _, name := range []string{"iridium-dialup", "hf-2400"} {
		w := world(t, 2, name, 1, func(c *sim.Config) { c.Group = c.Profile.Shared })
		ship, hq := w.Nodes[1], w.Nodes[0]
		w.Run(2 * time.Minute)
		// 120 messages of 200 octets take about two minutes; the last thirty may take one, and the first five half an hour.
		for i := range 120 {
			m := marked(i, site.Routine, 200)
			switch {
			case i < 5:
				m.Expires = w.Now.Add(30 * time.Minute)
			case i >= 90:
				m.Expires = w.Now.Add(time.Minute)
			}
			ship.Site.Send(w, m, hq.ID)
		}
		w.Run(25 * time.Second)
		late := peerOf(w, ship, hq.Name).Late
		if late.Messages < 20 || late.Messages > 30 || !late.Expected.After(late.Expires) || !late.Expires.After(w.Now) {
			t.Errorf("%s: %+v at %v", name, late, w.Now)
		}
		lines, told := 0, 0
		for _, note := range w.Notes {
			if strings.Contains(note, "messages will expire before they arrive") {
				lines++
			}
		}
		for _, place := range ship.GW.Messages().Queue(w.Now, hq.ID).Places {
			if one, ok := ship.GW.Messages().Row(place.ID); ok {
				for _, e := range one.Life {
					if e.What == "late" {
						told++
					}
				}
			}
		}
		if lines != 1 || told != late.Messages {
			t.Errorf("%s: %d lines in the log, %d lives say so, of %d", name, lines, told, late.Messages)
		}
		w.Run(20 * time.Minute)
		p := peerOf(w, ship, hq.Name)
		if p.Late.Messages != 0 || p.Waiting > 0 || p.Expired == 0 || int(p.Expired) > late.Messages+5 {
			t.Errorf("%s at the end: %+v, %d expired, %d wait", name, p.Late, p.Expired, p.Waiting)
		}
	}
}
