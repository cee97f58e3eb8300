package tak_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// A site that joins while the gateway runs is told of the units and the markers that are here, and so is a site that comes back.
func TestSiteThatJoins(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	f, err := tak.New(tak.Config{Sites: []uint16{2}}, nil)
	check.Equal(t, "error", err, nil)
	said := map[uint16]map[string]int{}
	step := func(ev site.Event) {
		for _, c := range f.Step(now, ev).Carry {
			for _, to := range c.Sites {
				if said[to] == nil {
					said[to] = map[string]int{}
				}
				said[to][c.Message.Topic]++
			}
		}
	}
	w := &world{World: newWorld(t, 2, "wire", 1).World}
	w.Now = now
	for i := range 2 {
		step(tak.Opened{Conn: site.ConnID(i + 1), Remote: fmt.Sprintf("10.0.0.%d:5000", i+1)})
		step(tak.Heard{Conn: site.ConnID(i + 1), Frame: []byte(newUnit(i).report(now))})
	}
	step(tak.Heard{Conn: 1, Frame: []byte(w.marker("m", "a-h-G", "M", 24*time.Hour))})
	now = now.Add(time.Second)
	step(nil)
	check.Equal(t, "what the first site is told", fmt.Sprint(said[2]), "map[event:1 units:1]")
	step(site.Joined{Site: 3})
	now = now.Add(time.Second)
	step(tak.Heard{Conn: 1, Frame: []byte(newUnit(0).report(now))})
	now = now.Add(time.Second)
	step(nil)
	check.Equal(t, "what the one that has joined is told", fmt.Sprint(said[3]), "map[event:1 units:1]")
	check.Equal(t, "what the first is told", said[2]["event"], 1)
	step(site.SiteLost{Site: 3}) // it is taken out
	clear(said)
	step(site.Joined{Site: 3})
	check.Equal(t, "what the one that is back is told", fmt.Sprint(said[3]), "map[event:1]")
	clear(said)
	step(site.Joined{Site: 2}) // as at a start
	check.Equal(t, "what a site is told that was there", len(said), 0)
}
