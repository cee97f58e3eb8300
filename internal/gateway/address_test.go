package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// HQ has a new machine and a new address. HQ's file has no address of the ship; the ship's file is corrected, and the
// ship is restarted: it goes to the new address at once.
func TestCorrectedAddressWins(t *testing.T) {
	w := world(t, 2, "iridium-directip", 3, func(c *sim.Config) {
		c.Configure = func(n *sim.Node, c *gateway.Config) {
			if n.ID == 1 {
				c.Peers[0].Addr = netip.AddrPort{}
			}
		}
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	tracks(w, ship, []uint16{1}, 5, 60, time.Second)
	w.Run(time.Minute)
	w.Redial(hq) // an address that the ship cannot learn: HQ has nothing to say to it
	w.Reconfigure(ship, func(c *gateway.Config) {
		c.Peers = []gateway.PeerConfig{{ID: 1, Name: "hq", Addr: hq.Addr()}}
	})
	w.LoseStore(hq)
	w.Kill(hq, time.Second)
	w.Kill(ship, time.Second)
	w.Run(30 * time.Second)
	check.Equal(t, "the ship's address of HQ", ship.GW.Status(w.Now).Peers[0].Address, hq.Addr().String())
	check.Equal(t, "the link", ship.GW.Status(w.Now).Peers[0].Link, "up")
	tracks(w, ship, []uint16{1}, 5, 60, time.Second)
	w.Run(time.Minute)
	check.Equal(t, "messages at HQ", len(hq.Site.Got), 10)
	check.Equal(t, "lines", said(w, "the configured address of a peer has changed"), 1)
}

// A learned address that has gone stale while the configuration was right all the time: hellos and probes that are not
// answered try the configured one.
func TestUnansweredProbesTryTheConfiguredAddress(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := world(t, 2, "iridium-directip", 3)
		hq, ship := w.Nodes[0], w.Nodes[1]
		home := ship.Addr()
		w.Run(time.Minute)
		w.Redial(ship)
		tracks(w, ship, []uint16{1}, 5, 60, time.Second)
		tracks(w, hq, []uint16{2}, 5, 60, time.Second)
		w.Run(2 * time.Minute)
		check.Equal(t, "HQ's address of the ship", hq.GW.Status(w.Now).Peers[0].Address, ship.Addr().String())
		w.Move(ship, home) // back, and silent
		if restart {
			w.Kill(hq, time.Second)
		}
		w.Run(time.Minute)
		before := len(ship.Site.Got)
		tracks(w, hq, []uint16{2}, 5, 60, time.Second)
		w.Run(3 * time.Minute)
		check.Equal(t, "messages at the ship after its return", len(ship.Site.Got)-before, 5)
		check.Equal(t, "HQ's address of the ship after its return", hq.GW.Status(w.Now).Peers[0].Address, home.String())
	}
}

// Somebody on the path sends one fresh datagram of the ship from his own address and drops the original: he does not keep
// the traffic, whether HQ is restarted or not, and whether or not he goes on.
func TestOneStolenDatagramDoesNotKeepTheTraffic(t *testing.T) {
	for _, tt := range []struct{ restart, learned, again, mute bool }{{}, {restart: true}, {mute: true}, {mute: true, restart: true}, {mute: true, learned: true}, {learned: true}, {restart: true, learned: true}, {again: true}} {
		w := world(t, 2, "iridium-directip", 3, func(c *sim.Config) {
			c.Configure = func(n *sim.Node, c *gateway.Config) {
				if n.ID == 1 && tt.learned {
					c.Peers[0].Addr = netip.AddrPort{}
				}
			}
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		tracks(w, ship, []uint16{1}, 5, 60, time.Second)
		tracks(w, hq, []uint16{2}, 5, 60, time.Second)
		w.Run(2 * time.Minute)
		stolen := 0
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			if from == ship && (stolen == 0 || tt.again && stolen < 5) {
				stolen++
				w.Inject(hq, data)
				return nil
			}
			return [][]byte{data}
		}
		if tt.mute { // the stolen datagram wants no answer, and the ship sends nothing more by itself
			hq.Site.Send(w, track(1, pipeHQ, 9, 60), 2)
			w.Run(12 * time.Second)
		} else {
			ship.Site.Send(w, track(2, pipeHQ, 9, 60), 1)
			w.Run(4 * time.Second)
		}
		had := len(ship.Site.Got)
		check.Equal(t, "HQ's address of the ship", hq.GW.Status(w.Now).Peers[0].Address, "192.0.2.1:9")
		if tt.restart {
			w.Kill(hq, time.Second)
		}
		began := w.Now
		tracks(w, hq, []uint16{2}, 5, 60, time.Second)
		for len(ship.Site.Got) < had+5 && w.Now.Sub(began) < 5*time.Minute {
			w.Run(time.Second)
		}
		t.Logf("%+v: the traffic was back after %v", tt, w.Now.Sub(began))
		check.Equal(t, "messages at the ship", len(ship.Site.Got), had+5)
		w.Run(time.Minute)
		check.Equal(t, "HQ's address of the ship afterwards", hq.GW.Status(w.Now).Peers[0].Address, ship.Addr().String())
		check.True(t, "the traffic is back within a minute and a half", w.Now.Sub(began) < 150*time.Second, w.Now.Sub(began))
	}
}

// A terminal whose address changes with each call: any datagram of it moves the traffic at once, and no more is sent
// than by one whose address stays.
func TestRedialsCostNothing(t *testing.T) {
	octets := map[bool]int64{}
	for _, redial := range []bool{false, true} {
		w := world(t, 2, "iridium-directip-shore", 3)
		hq, ship := w.Nodes[0], w.Nodes[1]
		down := tracks(w, hq, []uint16{2}, 60, 60, 10*time.Second)
		up := tracks(w, ship, []uint16{1}, 60, 60, 10*time.Second)
		for i := range 8 {
			w.At(time.Duration(i+1)*time.Minute+9*time.Second, func() {
				if redial {
					w.Redial(ship)
				}
			})
		}
		w.Run(15 * time.Minute)
		once(t, w, ship.Site, 1, *down)
		once(t, w, hq.Site, 2, *up)
		a, b := w.Octets(ship)
		octets[redial] = a + b
		check.Equal(t, "lines about other addresses", said(w, "tries its addresses in turn"), 0)
	}
	check.True(t, "redials cost next to nothing", float64(octets[true]) < 1.05*float64(octets[false]), octets)
}

// Redials, restarts, outages, wrong clocks and replays of everything that was ever on the air, from anywhere: each message
// arrives once, and the link ends up where the ship is.
func TestMovesAndReplays(t *testing.T) {
	for seed := range seeds(100) {
		w := world(t, 2, "iridium-directip", 900+seed)
		hq, ship := w.Nodes[0], w.Nodes[1]
		rng := rand.New(rand.NewPCG(seed, 11))
		var heard [2][][]byte // for HQ, for the ship
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			if rng.IntN(12) == 0 {
				return nil
			}
			heard[to.ID-1] = append(heard[to.ID-1], data)
			return [][]byte{data}
		}
		down := tracks(w, hq, []uint16{2}, 60, 80, 25*time.Second)
		up := tracks(w, ship, []uint16{1}, 60, 80, 25*time.Second)
		for i := range 100 {
			w.At(time.Duration(i)*16*time.Second+time.Duration(rng.IntN(16000))*time.Millisecond, func() {
				n := w.Nodes[rng.IntN(2)]
				switch rng.IntN(6) {
				case 0:
					w.Redial(ship)
				case 1:
					w.Kill(n, time.Duration(rng.IntN(20))*time.Second)
				case 2:
					w.Outage(ship, time.Duration(rng.IntN(60))*time.Second)
				default: // recorded, and sent again from a stranger's address or from where it had come from
					old := heard[n.ID-1]
					for range min(len(old), 20) {
						d := old[rng.IntN(len(old))]
						if rng.IntN(2) == 0 {
							w.Inject(n, d)
						} else {
							w.Late(w.Nodes[2-n.ID], n, d)
						}
					}
				}
			})
		}
		w.Run(30 * time.Minute)
		w.Tap = nil
		w.Run(20 * time.Minute)
		ship.Site.Send(w, track(2, pipeHQ, 99, 60), 1) // it may have moved once more and said nothing
		w.Run(time.Minute)
		*up = append(*up, offered{At: w.Now, Message: track(2, pipeHQ, 99, 60)})
		eachOnce(t, w, ship.Site, 1, *down)
		eachOnce(t, w, hq.Site, 2, *up)
		check.Equal(t, fmt.Sprint("seed ", seed, ": HQ's address of the ship"), hq.GW.Status(w.Now).Peers[0].Address, ship.Addr().String())
		check.Equal(t, fmt.Sprint("seed ", seed, ": lines about twins"), said(w, "two nodes with one id"), 0)
		check.Equal(t, fmt.Sprint("seed ", seed, ": lines of the refused twin"), said(w, "has heard a later start"), 0)
	}
}

// A ship that has lost its store comes back with another address, and speaks more often than it is asked. The question goes to
// where it was heard last, and not to the old address because a question there had no answer.
func TestPeerThatHasMovedIsAskedWhereItIs(t *testing.T) {
	w := mulWorld(t, 2, 3)
	hq, ship := w.Nodes[0], w.Nodes[1]
	tracks(w, hq, []uint16{2}, 5, 200, 10*time.Second)
	w.Run(5 * time.Minute)
	w.LoseStore(ship)
	w.Redial(ship)
	w.Kill(ship, time.Second)
	w.Kill(hq, time.Second)
	ship.Site.Got = nil
	up := tracks(w, ship, []uint16{1}, 60, 100, 10*time.Second)
	down := tracks(w, hq, []uint16{2}, 5, 200, 10*time.Second)
	w.Run(30 * time.Minute)
	slices.SortFunc(ship.Site.Got, bySending) // messages that were asked for again come late
	slices.SortFunc(hq.Site.Got[max(0, len(hq.Site.Got)-len(*up)):], bySending)
	once(t, w, ship.Site, 1, *down)
	once(t, w, hq.Site, 2, *up)
}
