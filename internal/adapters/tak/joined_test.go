package tak_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
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

// A site that was taken out of the configuration and put back is shown where units are, although nothing told of the batches meanwhile.
func TestSiteThatIsPutBack(t *testing.T) {
	w := newWorld(t, 3, "iridium-dialup", 7)
	ship, far := w.connect(w.Nodes[0]), w.connect(w.Nodes[2])
	u := newUnit(1)
	run := func(d time.Duration) {
		for range d / (20 * time.Second) {
			u.lat += 0.01
			ship.say(u.report(w.Now))
			w.Run(20 * time.Second)
		}
	}
	peers := func(nodes ...*sim.Node) (list []gateway.PeerConfig) {
		for _, n := range nodes {
			list = append(list, gateway.PeerConfig{ID: n.ID, Name: fmt.Sprint("node", n.ID), Addr: n.Addr()})
		}
		return list
	}
	w.Run(time.Minute)
	run(2 * time.Minute)
	check.True(t, "it is shown", far.newest(u.uid) != nil)
	w.Give(w.Nodes[0], gateway.NewLink{Peers: peers(w.Nodes[1])})
	before := w.adapters[1].Counts()["batches"]
	run(10 * time.Minute)
	// The other site gets one in 20 s, and one in 15 s is for the site that is not there.
	check.True(t, "few batches are made", w.adapters[1].Counts()["batches"]-before <= 80, w.adapters[1].Counts()["batches"]-before)
	at := w.Now
	w.Give(w.Nodes[0], gateway.NewLink{Peers: peers(w.Nodes[1], w.Nodes[2])})
	run(5 * time.Minute)
	check.True(t, "it is shown again", far.newest(u.uid).Time.After(at), far.newest(u.uid).Time, at)
}
