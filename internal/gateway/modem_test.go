package gateway_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// The rate wanders as in 2004, and 60 % of its mean is offered for an hour: with the modem's reports nearly all of it arrives soon. Without
// them everything arrives too, but docs/limits.md says how late.
func TestARateThatWanders(t *testing.T) {
	t.Parallel()
	for seed := range seeds(20) {
		for _, told := range []bool{true, false} {
			share, times, err := air.Wandering(t.Context(), seed+1, told)
			check.NoError(check.Fatal(t), err)
			t.Logf("seed %d, told %v: %.1f %% in the hour, median %.2f times the limit", seed+1, told, share, times)
			if told {
				check.True(t, fmt.Sprintf("seed %d: share of what was offered", seed+1), share >= 90, share)
				check.True(t, fmt.Sprintf("seed %d: median beside the limit", seed+1), times <= 3, times)
			}
		}
	}
}

// long offers 20 kB of a ship to HQ.
func long(w *sim.World, ship *sim.Node) []offered {
	m := air.Track(2, pipeHQ, 1, 20_000)
	sent := []offered{{At: w.Now, Message: m}}
	ship.Site.Send(w, m, 1)
	return sent
}

// others is two bearers without P_Mul; the first is the cheaper.
func others(t *testing.T, first string, seed uint64, change ...func(*sim.Config)) *sim.World {
	return twoBearers(t, 2, first, seed, append(change, func(c *sim.Config) {
		c.Second = &sim.Second{Name: "other", Profile: load(t, "iridium-certus-100"), Wire: load(t, "wire"), Price: 2 * gateway.UsualPrice}
	})...)
}

// A modem that says down amid 20 kB stops its bearer at once, and the other goes on in the same turn of the loop; nothing more goes there
// until it says up, and then the cheaper bearer is used again at once.
func TestAModemThatSaysDown(t *testing.T) {
	for seed := range uint64(3) {
		w := others(t, "iridium-directip", seed+1)
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(30 * time.Second)
		sent := long(w, ship)
		w.Run(10*time.Second + time.Duration(seed)*time.Second)
		w.Give(ship, api.Modem{Down: true})
		w.Run(100 * time.Millisecond)
		up, _ := w.OctetsOn(0, ship)
		w.Run(3 * time.Second)
		first, _ := w.OctetsOn(1, ship)
		check.True(t, "the other bearer goes on", first > 2000, first)
		w.Run(time.Minute)
		after, _ := w.OctetsOn(0, ship)
		check.True(t, "nothing but what was on the air", after-up <= 1500, after-up)
		check.True(t, "the status says so", !ship.GW.Status(w.Now).Peers[0].Bearers[0].Up)
		w.Give(ship, api.Modem{})
		more := track(2, pipeHQ, 2, 100)
		sent = append(sent, offered{At: w.Now, Message: more})
		ship.Site.Send(w, more, 1)
		other, _ := w.OctetsOn(1, ship)
		w.Run(time.Minute)
		back, _ := w.OctetsOn(0, ship)
		same, _ := w.OctetsOn(1, ship)
		check.True(t, "the cheaper bearer is used again", back > after && same-other < 200, back-after, same-other)
		once(t, w, hq.Site, 2, sent)
	}
}

// P_Mul stops too while the modem is down, whatever it was about to send, and goes on when it is up.
func TestAModemOfAChannelThatSaysDown(t *testing.T) {
	w := world(t, 2, "hf-2400", 3, func(c *sim.Config) { c.Group = true })
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(5 * time.Minute)
	sent := tracks(w, ship, []uint16{1}, 5, 600, 2*time.Second)
	w.Run(8 * time.Second)
	w.Give(ship, api.Modem{Down: true})
	w.Run(30 * time.Second) // the octets in the modem are on the air
	before, _ := w.Octets(ship)
	w.Run(10 * time.Minute)
	after, _ := w.Octets(ship)
	check.Equal(t, "octets while it is down", after-before, 0)
	w.Give(ship, api.Modem{RateBps: 2400})
	w.Run(10 * time.Minute)
	once(t, w, hq.Site, 2, *sent)
}

// The octets that a modem reports in its queue go before the next datagram, for a minute at the most.
func TestAModemWithAQueue(t *testing.T) {
	for octets, want := range map[int]time.Duration{6000: 10 * time.Second, 1 << 24: time.Minute} {
		w := world(t, 2, "iridium-directip", 1)
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(30 * time.Second)
		w.Give(ship, api.Modem{QueueOctets: octets})
		sent := offered{At: w.Now, Message: track(2, pipeHQ, 1, 100)}
		ship.Site.Send(w, sent.Message, 1)
		w.Run(3 * time.Minute)
		took := once(t, w, hq.Site, 2, []offered{sent})[0]
		check.True(t, fmt.Sprintf("%d octets before it", octets), took > want && took < want+4*time.Second, took)
	}
}

// A bearer over TLS is down in the turn in which its connection is lost, and up when there is another; an address is that of the connection,
// whatever a datagram came from. Idle it costs nothing.
func TestALostConnection(t *testing.T) {
	for seed := range uint64(3) {
		w := others(t, "tls-443", seed+1, func(c *sim.Config) {
			c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Lines = true }
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		connect := func(there bool) {
			for i, n := range w.Nodes {
				at := w.Nodes[1-i].Addr()
				if !there {
					at = netip.AddrPort{}
				}
				w.Give(n, api.Line{Peer: w.Nodes[1-i].ID, Addr: at})
			}
		}
		w.Run(time.Minute)
		check.Equal(t, "octets before there is a connection", octetsOn(w, 0, ship), 0)
		connect(true)
		w.Run(time.Minute)
		idle := octetsOn(w, 0, ship)
		w.Run(24 * time.Hour)
		check.Equal(t, "octets of an idle day", octetsOn(w, 0, ship)-idle, 0)
		sent := long(w, ship)
		w.Run(60*time.Millisecond + time.Duration(seed)*20*time.Millisecond)
		check.Equal(t, "messages there", len(hq.Site.Got), 0)
		w.Cut(0, ship, true)
		connect(false)
		w.Run(2 * time.Second)
		first, _ := w.OctetsOn(1, ship)
		check.True(t, "the other bearer goes on", first > 500, first)
		w.Run(5 * time.Second)
		w.Cut(0, ship, false)
		w.Redial(ship) // the translation gives it another port
		connect(true)
		w.Run(2 * time.Second)
		down := offered{At: w.Now, Message: track(1, pipeShip, 1, 100)}
		hq.Site.Send(w, down.Message, 2)
		w.Run(time.Minute)
		once(t, w, hq.Site, 2, sent)
		once(t, w, ship.Site, 1, []offered{down})
		before := octetsOn(w, 0, ship)
		w.Inject(hq, []byte("whatever a stranger says"))
		w.Run(time.Minute)
		check.Equal(t, "octets for a stranger", octetsOn(w, 0, ship), before)
	}
}

// A silence ends the connections of a bearer over TLS after the announcement, and its end lets them be made again.
func TestSilenceOverTLS(t *testing.T) {
	var told []string
	w := world(t, 2, "tls-443", 1, func(c *sim.Config) {
		c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Lines = true }
		c.Committed = func(n *sim.Node, out api.Output) {
			for range out.Datagrams {
				if n.ID == 2 && len(told) > 0 && told[len(told)-1] == "silent" {
					told = append(told, "a datagram")
				}
			}
			for _, h := range out.Hush {
				if n.ID == 2 {
					told = append(told, map[bool]string{true: "silent", false: "may speak"}[h.On])
				}
			}
		}
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Give(hq, api.Line{Peer: 2, Addr: ship.Addr()})
	w.Give(ship, api.Line{Peer: 1, Addr: hq.Addr()})
	sent := tracks(w, ship, []uint16{1}, 10, 200, 10*time.Second)
	w.At(25*time.Second, func() { w.Give(ship, api.Silence{On: true, Announce: true}) })
	w.At(26*time.Second, func() { w.Give(hq, api.Line{Peer: 2}); w.Give(ship, api.Line{Peer: 1}) })
	w.At(5*time.Minute, func() { w.Give(ship, api.Silence{}) })
	w.At(5*time.Minute+time.Second, func() {
		w.Give(hq, api.Line{Peer: 2, Addr: ship.Addr()})
		w.Give(ship, api.Line{Peer: 1, Addr: hq.Addr()})
	})
	w.Run(10 * time.Minute)
	check.True(t, "what the edge was told", slices.Equal(told, []string{"may speak", "silent", "may speak"}), told)
	once(t, w, hq.Site, 2, *sent)
}
