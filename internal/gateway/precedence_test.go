package gateway_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// urgency gives every gateway rules: pipeShip's messages are flash; text that begins with TRK; is of a track; what begins
// with OLD; is worth a minute; what begins with LOW; is deferred, by its element's name.
func urgency(t *testing.T) func(*sim.Config) {
	pattern, err := mark.ParsePattern("TRK;{key};*")
	if err != nil {
		t.Fatal(err)
	}
	return func(c *sim.Config) {
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Messages = []mark.Rule{
				{Pipe: pipeShip, Precedence: site.Flash},
				{Element: "old", Expires: time.Minute},
				{Element: "low", Precedence: site.Deferred},
				{Element: "track", Precedence: site.Priority, LastValue: "track", Pattern: pattern},
			}
		}
	}
}

// named is a message whose only element has this name and begins with text.
func named(name, text string, octets int) site.Message {
	p := track(1, pipeHQ, len(text)+7*int(text[len(text)-1]), octets)
	p.Parts[0].Name = name
	copy(p.Parts[0].Data, text)
	return p
}

func arrivals(n *sim.Node, name string) (got []sim.Got) {
	for _, g := range n.Site.Got {
		if g.Payload.Parts[0].Name == name {
			got = append(got, g)
		}
	}
	return got
}

// A flash message that comes when forty routine ones wait goes next: it has to wait only for messages on the air and for
// those that have been sent and not arrived, because they are read before it.
func TestFlashOvertakes(t *testing.T) {
	for _, tt := range []struct {
		profile string
		loss    bool
		within  time.Duration
	}{{"hf-300", false, 2 * time.Minute}, {"iridium-dialup", false, 10 * time.Second}} {
		t.Run(tt.profile, func(t *testing.T) {
			w := world(t, 2, tt.profile, 21, urgency(t))
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(time.Minute)
			for i := range 40 {
				ship.Site.Send(w, track(2, pipeHQ, i, 120), 1)
			}
			w.Run(20 * time.Second)
			sent := w.Now
			ship.Site.Send(w, track(2, pipeShip, 99, 60), 1)
			w.Run(40 * time.Minute)
			if len(hq.Site.Got) != 41 {
				t.Fatalf("%d of 41 arrived\n%s", len(hq.Site.Got), tail(w.Notes))
			}
			place := 0
			for i, g := range hq.Site.Got {
				if g.Payload.Topic == pipeShip {
					place = i
					t.Logf("%s: after %v, behind %d of 40; the last routine one after %v", tt.profile, g.At.Sub(sent), i, hq.Site.Got[40].At.Sub(sent))
					if g.At.Sub(sent) > tt.within {
						t.Errorf("flash after %v, want %v at the most", g.At.Sub(sent), tt.within)
					}
				}
			}
			routine := append(append([]sim.Got(nil), hq.Site.Got[:place]...), hq.Site.Got[place+1:]...)
			for i, g := range routine {
				if !bytes.HasPrefix(g.Payload.Parts[0].Data, fmt.Appendf(nil, "2;%d;", i)) {
					t.Fatalf("the routine ones are out of order at %d", i)
				}
			}
		})
	}
}

// Over P_Mul a flash message is delivered when it is there, though routine ones before it are not.
func TestFlashOverPMul(t *testing.T) {
	for _, crash := range []bool{false, true} {
		w := mulWorld(t, 2, 25, urgency(t))
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(time.Minute)
		for i := range 40 {
			ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
		}
		w.Run(5 * time.Second)
		ship.Site.Send(w, track(2, pipeShip, 99, 30), 1)
		sent := w.Now
		if crash {
			w.At(15*time.Second, func() { w.Kill(hq, time.Second) })
		}
		w.Run(2 * time.Hour)
		if len(hq.Site.Got) != 41 {
			t.Fatalf("%d of 41 arrived\n%s", len(hq.Site.Got), tail(w.Notes))
		}
		for i, g := range hq.Site.Got {
			if g.Payload.Topic == pipeShip {
				t.Logf("after %v, behind %d of 40; the last routine one after %v", g.At.Sub(sent), i, hq.Site.Got[40].At.Sub(sent))
				if i > 20 {
					t.Errorf("flash behind %d of 40", i)
				}
			}
		}
	}
}

// Over P_Mul a message that is of use only now is delivered when it is there, though one before it was lost; others keep their order.
func TestFleetingOverPMul(t *testing.T) {
	for _, fleeting := range []bool{false, true} {
		w := mulWorld(t, 2, 25)
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(time.Minute)
		lose := false
		w.Tap = func(from, _ *sim.Node, data []byte) [][]byte {
			if lose && from == ship && len(data) > 150 {
				return nil
			}
			return [][]byte{data}
		}
		for i := range 4 {
			m := track(2, pipeHQ, i, 200)
			m.Fleeting = fleeting
			lose = i == 2
			ship.Site.Send(w, m, 1)
			w.Run(10 * time.Second)
		}
		lose = false
		w.Run(10 * time.Minute)
		order := ""
		for _, g := range hq.Site.Got {
			order += strings.Split(string(g.Payload.Parts[0].Data), ";")[1]
		}
		if want := map[bool]string{false: "0123", true: "0132"}[fleeting]; order != want {
			t.Errorf("fleeting %v: they came as %s, want %s", fleeting, order, want)
		}
	}
}
