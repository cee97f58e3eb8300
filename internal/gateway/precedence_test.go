package gateway_test

import (
	"bytes"
	"fmt"
	"strconv"
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
				{Element: "track", Precedence: site.Priority, Supersede: "track", Pattern: pattern},
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

// A flash message that comes when forty routine ones wait goes next: it has to wait only for what is on the air and for
// what has been sent and not arrived, because that is read before it.
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

// During an outage a hundred tracks are updated ten times each: the newest of each is what goes.
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
	if before.Waiting > 100 || s.Accepted != 1000 || s.Delivered+s.Superseded != 1000 || int(s.Delivered) != len(hq.Site.Got) {
		t.Errorf("%d waited; %+v", before.Waiting, s.PeerCounts)
	}
}

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
	// What was under way when the link went down may have arrived: it goes on.
	if got := len(arrivals(hq, "old")); got != 41-int(s.Expired) || got > 10 {
		t.Errorf("%d arrived, %d expired", got, s.Expired)
	}
	if got := len(arrivals(hq, "low")); got != 40 {
		t.Errorf("%d of 40 without a lifetime arrived", got)
	}
	said := 0
	for _, n := range w.Notes {
		if bytes.Contains([]byte(n), []byte("not worth sending any more")) {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the operator was told %d times", said)
	}
}

// When the store is full, the least urgent goes first, and the sender of as urgent ones is refused.
func TestFullStore(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 24, urgency(t), func(c *sim.Config) {
		before := c.Configure
		c.Configure = func(n *sim.Node, g *gateway.Config) { before(n, g); g.MaxWaiting = 20_000 }
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	w.Outage(ship, 5*time.Minute)
	w.Run(10 * time.Second)
	for i := range 100 {
		ship.Site.Send(w, named("low", fmt.Sprintf("LOW;%02d;", i), 300), 1)
	}
	w.Run(time.Second)
	full := ship.GW.Status(w.Now).Peers[0]
	for i := range 20 {
		ship.Site.Send(w, track(2, pipeShip, i, 300), 1)
	}
	w.Run(15 * time.Minute)
	s := ship.GW.Status(w.Now).Peers[0]
	flashes := 0
	for _, g := range hq.Site.Got {
		if g.Payload.Topic == pipeShip {
			flashes++
		}
	}
	if full.Refused == 0 || s.Refused != full.Refused || s.Withdrawn == 0 || flashes != 20 {
		t.Errorf("%d refused, then %d; %d withdrawn; %d of 20 flashes", full.Refused, s.Refused, s.Withdrawn, flashes)
	}
	if s.Accepted != s.Delivered+s.Withdrawn || int(s.Delivered) != len(hq.Site.Got) {
		t.Errorf("%+v, %d arrived", s.PeerCounts, len(hq.Site.Got))
	}
}

// Gateways that crash at any commit: every message ends once, each precedence stays in order, the newest of each track
// arrives, and what expires does so instead of arriving.
func TestCrashesOfTheQueue(t *testing.T) {
	for seed := range uint64(4) {
		w := world(t, 2, "iridium-dialup", 300+seed, urgency(t), func(c *sim.Config) { c.CrashBeforeCommit, c.CrashAfterCommit = 0.01, 0.01 })
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.At(2*time.Minute, func() { w.Outage(ship, 4*time.Minute) })
		for i := range 300 {
			w.At(time.Duration(i)*1500*time.Millisecond, func() {
				switch i % 4 {
				case 0:
					ship.Site.Send(w, named("track", fmt.Sprintf("TRK;T-%d;update=%03d;", i%20, i), 80), 1)
				case 1:
					ship.Site.Send(w, named("old", fmt.Sprintf("OLD;%03d;", i), 80), 1)
				case 2:
					ship.Site.Send(w, named("low", fmt.Sprintf("LOW;%03d;", i), 80), 1)
				case 3:
					ship.Site.Send(w, track(2, pipeShip, i, 60), 1)
				}
			})
		}
		w.Run(40 * time.Minute)
		last, count := map[string]int{}, map[string]int{} // of each kind, and of each track
		for _, g := range hq.Site.Got {
			e := g.Payload.Parts[0]
			fields := strings.Split(string(e.Data), ";")
			what, number := e.Name, fields[1]
			if e.Name == "track" {
				what, number = fields[1], strings.TrimPrefix(fields[2], "update=")
			}
			i, err := strconv.Atoi(number)
			if before, ok := last[what]; err != nil || ok && before >= i {
				t.Errorf("seed %d: %s %q behind %d", seed, what, number, before)
			}
			last[what] = i
			count[e.Name]++
		}
		for id, want := range map[string]int{"T-0": 280, "T-4": 284, "T-8": 288, "T-12": 292, "T-16": 296} {
			if got := last[id]; got != want {
				t.Errorf("seed %d: track %s ends with %d, want %d", seed, id, got, want)
			}
		}
		if count["low"] != 75 || count["body"] != 75 || count["old"] >= 75 || count["old"] < 20 {
			t.Errorf("seed %d: %v", seed, count)
		}
		if s := ship.GW.Status(w.Now).Peers[0]; s.Waiting+s.UnderWay > 0 {
			t.Errorf("seed %d: %d waiting, %d under way at last", seed, s.Waiting, s.UnderWay)
		}
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

// A silent ship's tracks wait in P_Mul: the newest of each goes out when silence ends, whatever crashed meanwhile.
func TestNewestPictureAfterSilence(t *testing.T) {
	w := mulWorld(t, 3, 26, urgency(t))
	hq, other, ship := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	w.Run(2 * time.Minute)
	order(w, ship, gateway.Silence{On: true, Until: w.Now.Add(time.Hour)})
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
