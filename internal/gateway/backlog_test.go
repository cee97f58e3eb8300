package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// A delay that varies has datagrams with dozens of short messages each come at once, faster than they are read. Those that wait
// to be read are acknowledged and kept, so that nothing goes twice on a link that loses nothing.
func TestMessagesWaitToBeRead(t *testing.T) {
	w := world(t, 2, "geo-satcom-128k", 1, lossless, func(c *sim.Config) { c.Profile.Up.Jitter, c.Profile.Up.RateBps = 2*time.Second, 1_000_000 })
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	sent := textTracks(w, ship, []uint16{hq.ID}, 1000, 0)
	w.Run(time.Minute)
	once(t, w, hq.Site, ship.ID, *sent)
	check.Equal(t, "messages that went again", ship.GW.Status(w.Now).Peers[0].Repeated, 0)
	check.Equal(t, "reasons for which messages were dropped", len(hq.GW.Status(w.Now).Dropped), 0)
}

// Messages that only the model can size wait while the far gateway is away, some that fit a datagram once they are coded
// and some that do not. When it is back they go at once: the air does not stand still until all are sized.
func TestBacklogGoesWhenTheLinkIsBack(t *testing.T) {
	t.Parallel()
	t.Run("random", func(t *testing.T) { backlog(t, 1000, 50, func(b []byte) []byte { return append(b, b...) }) })
	// sized, and then coded once more after the messages before
	t.Run("digits", func(t *testing.T) {
		backlog(t, 500, 25, func(b []byte) []byte { return fmt.Appendf(nil, "%x", b[:900]) })
	})
}

// backlog lets n texts wait, and wants so many of them delivered in each second from when the link is back.
func backlog(t *testing.T, n int, least uint64, text func([]byte) []byte) {
	w := world(t, 2, "geo-satcom-128k", 1, func(c *sim.Config) {
		p := &c.Profile
		for _, d := range []*profile.Direction{&p.Up, &p.Down} {
			*d = profile.Direction{RateBps: 4_000_000, Delay: 20 * time.Millisecond, QueueOctets: 1 << 18}
		}
		p.AckDelay, p.ProbeInterval, p.GapAge, p.GRTT, p.Bundle = 200*time.Millisecond, time.Second, 300*time.Millisecond, 200*time.Millisecond, 5*time.Millisecond
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(30 * time.Second)
	w.Kill(hq, time.Minute)
	var sent []offered
	for i := range n {
		m := track(ship.ID, pipeHQ, i, 1500)
		m.Parts[0].Data = text(m.Parts[0].Data)
		w.At(time.Duration(i)*10*time.Millisecond+time.Second, func() {
			sent = append(sent, offered{At: w.Now, Message: m})
			ship.Site.Send(w, m, hq.ID)
		})
	}
	w.Run(61 * time.Second)
	for last := uint64(0); last < uint64(n); {
		w.Run(time.Second)
		p := ship.GW.Status(w.Now).Peers[0]
		if p.Delivered < last+min(least, uint64(n)-last) {
			t.Fatalf("at %v the link is %s, %d wait, %d are under way, and %d were delivered in a second", w.Now, p.Link, p.Waiting, p.UnderWay, p.Delivered-last)
		}
		last = p.Delivered
	}
	once(t, w, hq.Site, 2, sent)
}
