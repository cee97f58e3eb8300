package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// thief has recorded all that went over the link, and has taken the keys of all nodes afterwards.
type thief struct {
	w       *sim.World
	since   time.Time
	openers map[[2]uint16]*seal.Opener
	read    map[string]int // messages that he reads, by sender and receiver, since then
	hidden  int            // datagrams since then that he cannot read
}

func newThief(w *sim.World) *thief {
	s := &thief{w: w, since: w.Now, openers: map[[2]uint16]*seal.Opener{}, read: map[string]int{}}
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		s.look(from, to, data)
		return [][]byte{data}
	}
	return s
}

func (s *thief) look(from, to *sim.Node, data []byte) {
	way := [2]uint16{from.ID, to.ID}
	if s.openers[way] == nil {
		ring, err := roster.Ring(to.ID, sim.NodeKey(to.ID), s.w.First())
		if err != nil {
			panic(err) // keys of our own
		}
		s.openers[way] = seal.NewOpener(ring, to.ID, seal.Incarnation{}, map[uint16]seal.PeerState{from.ID: {}})
	}
	_, body, _, err := s.openers[way].Open(data)
	if s.w.Now.Before(s.since) {
		return
	}
	if err != nil {
		s.hidden++
		return
	}
	for len(body) > 0 {
		f, rest, err := frame.Parse(body)
		if err != nil {
			return
		}
		switch f.(type) {
		case frame.Data, frame.NORM:
			s.read[from.Name+">"+to.Name]++
		}
		body = rest
	}
}

// A thief who has recorded a link and takes the keys of both nodes afterwards reads nothing that two nodes said to each other while both
// talked. Messages to a node that has announced its silence he reads. Nothing is lost or taken twice, and steady datagrams are not longer.
func TestForwardSecrecy(t *testing.T) {
	for seed := range uint64(4) {
		name := []string{"iridium-directip", "iridium-certus-100"}[seed%2]
		in := check.In(t, fmt.Sprint(name, " ", seed))
		w := world(t, 3, name, seed, withRoster)
		hq, ship := w.Nodes[0], w.Nodes[1]
		s := newThief(w)
		w.Run(10 * time.Minute)
		s.since = w.Now
		down := tracks(w, hq, []uint16{2, 3}, 20, 200, 10*time.Second)
		up := tracks(w, ship, []uint16{1}, 20, 200, 10*time.Second)
		w.Run(5 * time.Minute)
		long := tracks(w, ship, []uint16{1}, 2, 6000, time.Minute)
		w.Run(15 * time.Minute)
		check.Equal(in, "messages that he reads", fmt.Sprint(s.read), "map[]")
		check.True(in, "datagrams that he does not", s.hidden > 60, s.hidden)
		once(t, w, ship.Site, 1, *down)
		once(t, w, w.Nodes[2].Site, 1, *down)
		*up = append(*up, *long...)
		once(t, w, hq.Site, 2, *up)

		order(w, ship, api.Silence{On: true, Until: w.Now.Add(time.Hour), Announce: true})
		w.Run(time.Minute)
		w.Kill(ship, time.Second) // it cannot say so
		w.Run(time.Minute)
		quiet := tracks(w, hq, []uint16{2}, 3, 200, 10*time.Second)
		w.Run(5 * time.Minute)
		*down = append(*down, *quiet...)
		once(t, w, ship.Site, 1, *down)
		check.True(in, "what is for the silent one he reads", s.read["hq>ship1"] > 0)
		w.Run(time.Hour + 10*time.Minute)
		s.read = map[string]int{}
		more := tracks(w, hq, []uint16{2}, 3, 200, 10*time.Second)
		w.Run(10 * time.Minute)
		*down = append(*down, *more...)
		once(t, w, ship.Site, 1, *down)
		check.Equal(in, "when it speaks again", fmt.Sprint(s.read), "map[]")
		check.True(in, "nobody is accused", !strings.Contains(strings.Join(w.Notes, "\n"), "in_the_name_of"))
	}
}

// One of two, or both, is killed at each of many points of their talk. Messages cross once, nobody is accused, and soon all
// are secret again.
func TestForwardRestarts(t *testing.T) {
	for point := range 12 {
		in := check.In(t, fmt.Sprint("point ", point))
		w := world(t, 2, "iridium-certus-100", uint64(point), withRoster)
		hq, ship := w.Nodes[0], w.Nodes[1]
		s := newThief(w)
		down := tracks(w, hq, []uint16{2}, 30, 200, time.Second)
		up := tracks(w, ship, []uint16{1}, 30, 200, time.Second)
		w.Run(time.Duration(point)*1700*time.Millisecond + 50*time.Millisecond)
		w.Kill(w.Nodes[point%2], 0)
		if point%4 == 3 {
			w.Kill(w.Nodes[1-point%2], 0)
		}
		w.Run(5 * time.Minute)
		s.since, s.read = w.Now, map[string]int{}
		down2 := tracks(w, hq, []uint16{2}, 5, 201, 2*time.Second)
		up2 := tracks(w, ship, []uint16{1}, 5, 201, 2*time.Second)
		w.Run(time.Minute)
		*down, *up = append(*down, *down2...), append(*up, *up2...)
		once(t, w, ship.Site, 1, *down)
		once(t, w, hq.Site, 2, *up)
		check.Equal(in, "messages that a thief reads afterwards", fmt.Sprint(s.read), "map[]")
		check.True(in, "nobody is accused", !strings.Contains(strings.Join(w.Notes, "\n"), "in_the_name_of"))
	}
}

// The other machine of a site begins and does not tell that it has the peer's key. Its messages are secret at once, the peer's as soon as
// the peer has heard one of its datagrams.
func TestForwardTakeover(t *testing.T) {
	w := world(t, 2, "iridium-directip", 5, withRoster)
	hq, ship := w.Nodes[0], w.Nodes[1]
	s := newThief(w)
	w.Run(5 * time.Minute)
	w.Reconfigure(ship, func(c *gateway.Config) { c.TakesOver = true })
	w.Kill(ship, 3*time.Second)
	w.Run(5 * time.Minute)
	s.since = w.Now
	down := tracks(w, hq, []uint16{2}, 20, 200, 5*time.Second)
	w.Run(2 * time.Minute)
	up := tracks(w, ship, []uint16{1}, 20, 200, 5*time.Second)
	w.Run(5 * time.Minute)
	once(t, w, ship.Site, 1, *down)
	once(t, w, hq.Site, 2, *up)
	check.Equal(t, "messages that a thief reads afterwards", fmt.Sprint(s.read), "map[hq>ship1:1]")
}

// An adversary who drops every datagram that tells of a key, as far as he can see, makes a node say no more under the nodes' own keys
// than to a peer that is not there: acknowledged messages have come with the key.
func TestForwardHelloDropped(t *testing.T) {
	said := func(drop func(from, to *sim.Node, data []byte) bool) int {
		w := world(t, 2, "iridium-certus-100", 5, withRoster)
		ship := w.Nodes[1]
		w.Run(5 * time.Minute)
		s := newThief(w)
		look := w.Tap
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			look(from, to, data)
			if drop(from, to, data) {
				return nil
			}
			return [][]byte{data}
		}
		w.Kill(ship, time.Second)
		w.Run(2 * time.Second)
		tracks(w, ship, []uint16{1}, 100, 100, time.Second)
		w.Run(10 * time.Minute)
		return s.read["ship1>hq"]
	}
	absent := said(func(from, _ *sim.Node, _ []byte) bool { return from.ID == 1 })
	dropped := said(func(from, _ *sim.Node, data []byte) bool { return from.ID == 1 && len(data) >= 19+27+34 })
	t.Logf("datagrams with messages under the nodes' own keys: %d to one that is not there, %d to one whose keys are dropped", absent, dropped)
	check.True(t, "no more than to one that is not there", dropped <= absent, dropped, absent)
	check.True(t, "it is bounded", absent < 60, absent)
}
