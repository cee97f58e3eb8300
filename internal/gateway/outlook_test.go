package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// marked is a message of local peer from with a precedence.
func marked(i int, precedence site.Precedence, octets int) site.Message {
	m := track(2, pipeHQ, i, octets)
	m.Precedence = precedence
	return m
}

func peerOf(w *sim.World, n *sim.Node, name string) api.PeerStatus {
	for _, p := range n.GW.Status(w.Now).Peers {
		if p.Name == name {
			return p
		}
	}
	return api.PeerStatus{}
}

// TestQueueSaysWhenItWillBeThere: the queue is shown by precedence, with its age and with a time that holds.
func TestQueueSaysWhenItWillBeThere(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1)
	ship, hq := w.Nodes[1], w.Nodes[0]
	w.Run(20 * time.Second)
	sent := 0
	begin := w.Now
	w.At(time.Second, func() {
		for i := range 60 {
			ship.Site.Send(w, marked(i, site.Routine, 800), hq.ID)
			sent++
		}
		for i := range 20 {
			ship.Site.Send(w, marked(100+i, site.Flash, 800), hq.ID)
			sent++
		}
	})
	w.Run(2 * time.Second)
	p := peerOf(w, ship, hq.Name)
	check.Equal(t, "Link", p.Link, "up")
	check.True(t, "the link is up since before the messages", !p.LinkSince.IsZero() && p.LinkSince.Before(begin), p.LinkSince)
	if len(p.Queue) != 2 || p.Queue[0].Precedence != "flash" || p.Queue[1].Precedence != "routine" {
		t.Fatalf("the queue is %+v", p.Queue)
	}
	messages, octets := 0, 0
	for _, q := range p.Queue {
		messages += q.Messages
		octets += q.Octets
		check.Equal(t, "Oldest of "+q.Precedence, q.Oldest.Sub(begin.Add(time.Second).UTC()).Round(time.Second), 0)
	}
	check.Equal(t, "messages in the queue", messages, p.Waiting)
	check.True(t, "octets in the queue", octets > 0 && octets <= p.WaitingOctets, octets)
	check.True(t, "flash is there first", p.Queue[0].Expected.Before(p.Queue[1].Expected), p.Queue)
	last := p.Queue[1].Expected
	var there time.Time
	for range 600 {
		if w.Run(time.Second); len(hq.Site.Got) == sent {
			there = w.Now
			break
		}
	}
	check.True(t, "all have come", !there.IsZero(), len(hq.Site.Got))
	told, took := last.Sub(begin), there.Sub(begin)
	check.True(t, "the time that was told is right within a factor of two", told > took/2 && told < 2*took, fmt.Sprint(told, took))
	p = peerOf(w, ship, hq.Name)
	check.Equal(t, "queue at the end", len(p.Queue), 0)
	check.Equal(t, "delays counted", p.Delays.Count, p.Delivered)
}

// TestLinkThatGoesDownIsLogged: the log says when a link goes down, once, and the status since when it is.
func TestLinkThatGoesDownIsLogged(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1)
	ship, hq := w.Nodes[1], w.Nodes[0]
	w.Run(20 * time.Second)
	before := len(w.Notes)
	w.Kill(hq, time.Hour)
	w.At(time.Second, func() { ship.Site.Send(w, marked(1, site.Routine, 100), hq.ID) })
	down := func() (n int) {
		for _, note := range w.Notes[before:] {
			if strings.Contains(note, "the link to a peer is down") {
				n++
			}
		}
		return n
	}
	for range 600 {
		if w.Run(time.Second); down() > 0 {
			break
		}
	}
	p := peerOf(w, ship, hq.Name)
	check.Equal(t, "Link", p.Link, "silent")
	check.True(t, "since now", w.Now.Sub(p.LinkSince) <= time.Second, p.LinkSince)
	check.True(t, "nobody knows when it will be there", p.Queue == nil || p.Queue[0].Expected.IsZero(), p.Queue)
	w.Run(5 * time.Minute)
	check.Equal(t, "times that the log says so", down(), 1)
}
