package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/calendar"
)

// once48 is a window that comes once, so long after the beginning of a world.
func once48(from, to time.Duration) calendar.Window {
	return calendar.Window{Begins: sim.Epoch.Add(from), Ends: sim.Epoch.Add(to), Announce: true}
}

// A window of silence begins and ends by itself, also while the gateway is away when it begins; nothing is transmitted in it, and
// messages that wait go afterwards. Its peer is told.
func TestWindowOfSilence(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 48, func(cfg *sim.Config) {
		cfg.Configure = func(n *sim.Node, c *gateway.Config) {
			if n.ID == 2 {
				c.Windows = calendar.Windows{once48(10*time.Minute, 30*time.Minute), once48(30*time.Minute, 40*time.Minute), once48(60*time.Minute, 70*time.Minute)}
			}
		}
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	sent := tracks(w, ship, []uint16{1}, 80, 200, time.Minute)
	silent := func(at time.Duration, want bool) {
		t.Helper()
		w.Run(sim.Epoch.Add(at).Sub(w.Now))
		check.Equal(t, "silent after "+at.String(), ship.GW.Status(w.Now).Silence.On, want)
	}
	silent(9*time.Minute, false)
	check.Equal(t, "the next one", ship.GW.Status(w.Now).Silence.Next, sim.Epoch.Add(10*time.Minute).Format(time.RFC3339))
	silent(10*time.Minute+time.Second, true)
	check.Equal(t, "its end", ship.GW.Status(w.Now).Silence.Until, sim.Epoch.Add(40*time.Minute).Format(time.RFC3339))
	w.Run(time.Minute)
	check.Equal(t, "the peer knows", hq.GW.Status(w.Now).Peers[0].Link, "listening")
	up, _ := w.Octets(ship)
	silent(39*time.Minute, true)
	now, _ := w.Octets(ship)
	check.Equal(t, "octets in the silence", now, up)
	silent(41*time.Minute, false)

	w.At(18*time.Minute+30*time.Second, func() { w.Kill(ship, time.Minute) }) // the last window begins while it is away
	w.Run(sim.Epoch.Add(60*time.Minute + 31*time.Second).Sub(w.Now))
	check.True(t, "silent from its start on", ship.GW != nil && ship.GW.Status(w.Now).Silence.On)
	up, _ = w.Octets(ship)
	silent(69*time.Minute, true)
	now, _ = w.Octets(ship)
	check.Equal(t, "octets in the silence of a start", now, up)
	silent(73*time.Minute, false)
	w.Run(20 * time.Minute)
	once(t, w, hq.Site, 2, *sent)
}

// An order ends the silence of a window for good, a longer order outlasts it, and other windows count at once.
func TestWindowsAndOrders(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 49, func(cfg *sim.Config) {
		cfg.Configure = func(n *sim.Node, c *gateway.Config) {
			c.Windows = calendar.Windows{once48(10*time.Minute, 30*time.Minute), once48(60*time.Minute, 70*time.Minute)}
		}
	})
	ship := w.Nodes[1]
	silent := func(at time.Duration, want bool) {
		t.Helper()
		w.Run(sim.Epoch.Add(at).Sub(w.Now))
		check.Equal(t, "silent after "+at.String(), ship.GW.Status(w.Now).Silence.On, want)
	}
	silent(11*time.Minute, true)
	order(w, ship, api.Silence{})
	silent(12*time.Minute, false)
	silent(29*time.Minute, false)
	order(w, ship, api.Silence{On: true, Until: sim.Epoch.Add(80 * time.Minute)})
	silent(75*time.Minute, true)
	silent(81*time.Minute, false)
	w.Give(ship, gateway.NewLink{Peers: peersBut(w, ship, 0), Windows: calendar.Windows{once48(80*time.Minute, 90*time.Minute)}})
	silent(82*time.Minute, true)
	silent(91*time.Minute, false)
	check.Equal(t, "the next one", ship.GW.Status(w.Now).Silence.Next, "")
}

// A Step that comes late, in a window that should have begun, transmits nothing: neither what its event brings nor what P_Mul has ready.
func TestLateStepInAWindow(t *testing.T) {
	w := mulWorld(t, 2, 7, func(cfg *sim.Config) {
		cfg.Configure = func(n *sim.Node, c *gateway.Config) {
			if n.ID == 2 {
				c.Windows = calendar.Windows{{Begins: sim.Epoch.Add(10 * time.Minute), Ends: sim.Epoch.Add(time.Hour)}}
			}
		}
	})
	ship := w.Nodes[1]
	w.Run(10*time.Minute - time.Second)
	octets, _ := w.Octets(ship)
	w.Squeeze(func(n *sim.Node) time.Duration {
		if n == ship && w.Now.Before(sim.Epoch.Add(10*time.Minute)) {
			return 2 * time.Minute
		}
		return 0
	})
	ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1)
	w.Run(10 * time.Minute)
	check.Equal(t, "it is silent", ship.GW.Status(w.Now).Silence.On, true)
	now, _ := w.Octets(ship)
	check.Equal(t, "octets in the window", now-octets, 0)
}
