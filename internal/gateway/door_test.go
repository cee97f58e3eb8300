package gateway_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// captured lets a world run and returns what a node sent to another.
func captured(w *sim.World, from, to *sim.Node, d time.Duration) [][]byte {
	var all [][]byte
	w.Tap = func(a, b *sim.Node, data []byte) [][]byte {
		if a == from && b == to {
			all = append(all, data)
		}
		return [][]byte{data}
	}
	w.Run(d)
	w.Tap = nil
	return all
}

func said(w *sim.World, text string) (n int) {
	for _, note := range w.Notes {
		if strings.Contains(note, text) {
			n++
		}
	}
	return n
}

// offAir takes a node off the link in both directions, but not what a test gives it by hand.
func offAir(w *sim.World, n *sim.Node) {
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if from == n || to == n {
			return nil
		}
		return [][]byte{data}
	}
}

// Yesterday's datagrams, after the receiver has lost its store: while the true ship is off the air none counts, and the
// stranger who sends them gets next to nothing. When the ship is back, everything arrives once.
func TestYesterdaysDatagramsAfterALostStore(t *testing.T) {
	for _, learned := range []bool{false, true} {
		t.Run(fmt.Sprint("address learned ", learned), func(t *testing.T) {
			w := world(t, 2, "iridium-directip", 3, func(c *sim.Config) {
				c.Configure = func(n *sim.Node, c *gateway.Config) {
					if n.ID == 1 && learned {
						c.Peers[0].Addr = netip.AddrPort{}
					}
				}
			})
			hq, ship := w.Nodes[0], w.Nodes[1]
			tracks(w, ship, []uint16{1}, 300, 60, time.Second)
			yesterday := captured(w, ship, hq, 10*time.Minute)
			if len(yesterday) < 50 || len(hq.Site.Got) != 300 {
				t.Fatalf("%d datagrams, %d messages captured", len(yesterday), len(hq.Site.Got))
			}
			offAir(w, ship)
			w.LoseStore(hq)
			w.Kill(hq, time.Second)
			w.Run(10 * time.Second)
			hq.Site.Got = nil
			before := hq.GW.Status(w.Now).Peers[0]
			for i, d := range yesterday {
				w.At(time.Duration(i)*100*time.Millisecond, func() { w.Inject(hq, d) })
			}
			w.Run(2 * time.Minute)
			s := hq.GW.Status(w.Now).Peers[0]
			t.Logf("%d captured datagrams: %d delivered, %d answered", len(yesterday), len(hq.Site.Got), s.DatagramsSent-before.DatagramsSent)
			check.Equal(t, "delivered", len(hq.Site.Got), 0)
			check.Equal(t, "link", s.Link, "unknown")
			check.Equal(t, "address", s.Address, before.Address)
			check.Equal(t, "received", s.Received, 0)
			w.Tap = nil
			tracks(w, ship, []uint16{1}, 20, 60, time.Second)
			w.Run(20 * time.Minute)
			for _, d := range yesterday {
				w.Inject(hq, d)
			}
			w.Run(10 * time.Second)
			check.Equal(t, "delivered when the ship is back", len(hq.Site.Got), 20)
			check.Equal(t, "lines about twins", said(w, "two nodes with one id"), 0)
		})
	}
}

// A gateway that starts with the state of its peer takes the first datagram at once: no round trip more.
func TestKnownPeersNeedNoAnswer(t *testing.T) {
	w := world(t, 2, "iridium-directip", 3)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	w.Kill(hq, time.Second)
	w.Run(time.Minute)
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if from == hq {
			return nil // HQ is not heard
		}
		return [][]byte{data}
	}
	w.Kill(ship, time.Second)
	w.Run(2 * time.Second)
	ship.Site.Send(w, track(2, pipeHQ, 1, 60), 1)
	w.Run(10 * time.Second)
	check.Equal(t, "messages at HQ", len(hq.Site.Got), 1)
}

// A network that meets for the first time, on links of every kind, carries everything once.
func TestStrangersMeet(t *testing.T) {
	for _, name := range []string{"iridium-directip", "iridium-dialup", "hf-2400", "vhf-cnr-16k"} {
		for seed := range uint64(3) {
			w := world(t, 3, name, seed, func(c *sim.Config) { c.Group = name != "iridium-dialup" && name != "iridium-directip" })
			hq, ship := w.Nodes[0], w.Nodes[1]
			down := tracks(w, hq, []uint16{2, 3}, 5, 100, 10*time.Second)
			up := tracks(w, ship, []uint16{1}, 5, 100, 10*time.Second)
			w.Run(30 * time.Minute)
			in := fmt.Sprint(name, " seed ", seed, ": ")
			check.Equal(t, in+"messages at the ship", len(ship.Site.Got), len(*down))
			check.Equal(t, in+"messages at the other ship", len(w.Nodes[2].Site.Got), len(*down))
			check.Equal(t, in+"messages at HQ", len(hq.Site.Got), len(*up))
		}
	}
}

// A key holder, or a clock that is wrong, must not lock a node out: starts far ahead of the clock are refused, the
// operator may allow one, and forgetting it brings the true node back.
func TestStartsFarAheadAreRefused(t *testing.T) {
	var store uint32
	w := world(t, 2, "iridium-directip", 3, func(c *sim.Config) {
		c.Configure = func(_ *sim.Node, c *gateway.Config) { store = c.Store } // the ship's at last
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	far := seal.NewSealer(seal.Key{1, 2, 3}, 2, seal.Incarnation{Number: 1<<32 - 1, Salt: 1})
	lie := func() {
		hello := frame.Append(nil, frame.Hello{Store: store, Stream: 1, HeardIncarnation: hq.Incarnation(), HeardStream: 1}, true)
		d, _ := far.Seal(nil, 1, true, hello)
		w.Inject(hq, d)
	}
	for range 5 {
		lie()
	}
	ship.Site.Send(w, track(2, pipeHQ, 1, 60), 1)
	w.Run(time.Minute)
	check.Equal(t, "messages at HQ", len(hq.Site.Got), 1)
	check.Equal(t, "refused", hq.GW.Status(w.Now).Dropped["far_boot"], 5)
	check.Equal(t, "lines", said(w, "ahead of this clock"), 1)

	w.Give(hq, api.Forget{Peer: 2, AnyStart: true})
	lie() // the first start to answer is the one that the operator asked for
	w.Run(time.Minute)
	ship.Site.Send(w, track(2, pipeHQ, 2, 60), 1)
	w.Run(time.Minute)
	check.Equal(t, "messages while the other start is believed", len(hq.Site.Got), 1)
	w.Give(hq, api.Forget{Peer: 2})
	lie()
	w.Run(5 * time.Minute)
	check.Equal(t, "messages after that was forgotten", len(hq.Site.Got), 2)
	check.Equal(t, "the link", hq.GW.Status(w.Now).Peers[0].Link, "up")
}

// What came before a peer was forgotten does not count again afterwards.
func TestForgottenPeersAreNotReplayed(t *testing.T) {
	w := world(t, 2, "iridium-directip", 3)
	hq, ship := w.Nodes[0], w.Nodes[1]
	tracks(w, ship, []uint16{1}, 20, 60, time.Second)
	old := captured(w, ship, hq, 2*time.Minute)
	offAir(w, ship)
	w.Give(hq, api.Forget{Peer: 2})
	for _, d := range old {
		w.Inject(hq, d)
	}
	w.Run(time.Minute)
	s := hq.GW.Status(w.Now)
	check.Equal(t, "link", s.Peers[0].Link, "unknown")
	check.Equal(t, "messages", len(hq.Site.Got), 20)
	w.Tap = nil
	tracks(w, ship, []uint16{1}, 20, 60, time.Second)
	w.Run(10 * time.Minute)
	check.Equal(t, "messages in all", len(hq.Site.Got), 40)
}

// A gateway whose own clock is behind hears everybody, and says that its clock is wrong.
func TestClockBehindHearsEverybody(t *testing.T) {
	for _, behind := range []time.Duration{30 * 365 * 24 * time.Hour, 57 * 365 * 24 * time.Hour} {
		cfg := gateway.Config{ID: 3, Name: "late", Peers: []gateway.PeerConfig{{ID: 2, Name: "ship"}}, Profile: load(t, "iridium-directip"),
			Key: seal.Key{1, 2, 3}, Incarnation: seal.Incarnation{Number: 40, Salt: 4}, Store: 5}
		gw, err := gateway.New(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		now := sim.Epoch.Add(-behind)
		out := gw.Step(now, nil)
		if len(out.Notes) != 1 || !strings.Contains(out.Notes[0].Text, "clock is behind") {
			t.Errorf("%v behind: notes %v", behind, out.Notes)
		}
		ship := seal.NewSealer(seal.Key{1, 2, 3}, 2, seal.Incarnation{Number: uint32(sim.Epoch.Unix()), Salt: 1})
		hello := frame.Append(nil, frame.Hello{Store: 7, Stream: 1, HeardIncarnation: 40, HeardStream: 1}, true)
		d, _ := ship.Seal(nil, 3, true, hello)
		gw.Step(now, api.Datagram{Addr: netip.MustParseAddrPort("192.0.2.2:7142"), Data: d})
		check.Equal(t, "link", gw.Status(now).Peers[0].Link, "up")
	}
}

// Nobody without the key can raise the line about twins, and each of two real twins has one.
func TestTwinsAndReplays(t *testing.T) {
	w := world(t, 2, "iridium-directip", 3)
	hq, ship := w.Nodes[0], w.Nodes[1]
	tracks(w, ship, []uint16{1}, 20, 60, time.Second)
	old := captured(w, ship, hq, 2*time.Minute)
	for range 3 {
		w.Kill(ship, time.Second)
		w.Run(time.Minute)
		old = append(old, captured(w, ship, hq, time.Minute)...)
	}
	w.Kill(hq, time.Second)
	w.Run(time.Minute)
	for i, d := range old {
		w.At(time.Duration(i)*3*time.Second, func() { w.Inject(hq, d) })
	}
	w.Run(10 * time.Minute)
	check.Equal(t, "lines about twins after replays", said(w, "two nodes with one id"), 0)

	// A second ship with the same disk, whose clock is behind: it is refused, and says so itself.
	twin, err := gateway.New(gateway.Config{ID: 2, Name: "twin", Peers: []gateway.PeerConfig{{ID: 1, Name: "hq", Addr: hq.Addr()}},
		Profile: load(t, "iridium-directip"), Key: seal.Key{1, 2, 3}, Incarnation: seal.Incarnation{Number: ship.Incarnation() - 1000, Salt: 77}, Store: 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort("192.0.2.9:7142")
	var notes []string
	step := func(ev api.Event) {
		out := twin.Step(w.Now, ev)
		for _, n := range out.Notes {
			notes = append(notes, n.Level+" "+n.Text)
		}
		for _, d := range out.Datagrams {
			hqOut := hq.GW.Step(w.Now, api.Datagram{Addr: at, Data: d.Data})
			for _, n := range hqOut.Notes {
				w.Notes = append(w.Notes, n.Text)
			}
			for _, back := range hqOut.Datagrams {
				if back.Addr == at {
					for _, n := range twin.Step(w.Now, api.Datagram{Addr: hq.Addr(), Data: back.Data}).Notes {
						notes = append(notes, n.Level+" "+n.Text)
					}
				}
			}
		}
	}
	for range 120 {
		step(nil)
		w.Run(time.Second)
	}
	check.True(t, "the refused twin says so", strings.Contains(strings.Join(notes, "\n"), "error a peer has heard a later start of this node"), notes)
	check.True(t, "its peer says so", said(w, "two nodes with one id") > 0, w.Notes)
}

// A wrong network key at one side has one line at the other.
func TestWrongKeyHasALine(t *testing.T) {
	for _, learned := range []bool{false, true} {
		w := world(t, 2, "iridium-directip", 3, func(c *sim.Config) {
			c.Configure = func(n *sim.Node, c *gateway.Config) {
				if n.ID == 2 {
					c.Key = seal.Key{4, 5, 6}
				} else if learned {
					c.Peers[0].Addr = netip.AddrPort{}
				}
			}
		})
		w.Run(9 * time.Minute)
		n := 0
		for _, note := range w.Notes {
			if strings.Contains(note, "have another network key?") && strings.Contains(note, " hq warn") {
				n++
			}
		}
		check.Equal(t, fmt.Sprint("lines at HQ, address learned ", learned), n, 1)
	}
}
