package gateway_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// peersBut are the peers of a node but one.
func peersBut(w *sim.World, n *sim.Node, id uint16) (list []gateway.PeerConfig) {
	for _, p := range n.GW.Status(w.Now).Peers {
		if p.ID != id {
			at, _ := netip.ParseAddrPort(p.Address)
			list = append(list, gateway.PeerConfig{ID: p.ID, Name: p.Name, Addr: at})
		}
	}
	return list
}

// A peer that is new to a running gateway is greeted, and gets the items that the rules allow, and messages; those of the
// others go on meanwhile, short and long, and none is lost or comes twice.
func TestNewPeerWhileMessagesFlow(t *testing.T) {
	keeps := []filter.Rule{{Direction: site.Out, Site: 3, Type: filter.Spec, Action: filter.Deny}}
	w := world(t, 3, "iridium-dialup", 61, func(cfg *sim.Config) {
		cfg.Configure = func(n *sim.Node, c *gateway.Config) {
			if n.ID == 1 { // HQ does not know the second ship
				c.Peers, c.Filter = slices.DeleteFunc(slices.Clone(c.Peers), func(p gateway.PeerConfig) bool { return p.ID == 3 }), filter.New(keeps)
			}
		}
	})
	hq, ship, other := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	ship.Site.Put(w, pipeItem(2, pipeShip))
	other.Site.Put(w, pipeItem(3, pipeShip))
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	secret := specItem(1)
	hq.Site.Put(w, secret)
	w.Run(2 * time.Minute)
	check.Equal(t, "peers of HQ", len(hq.GW.Status(w.Now).Peers), 1)
	down := tracks(w, hq, []uint16{2}, 60, 200, 2*time.Second)
	up := tracks(w, ship, []uint16{1}, 60, 200, 2*time.Second)
	w.At(30*time.Second, func() { hq.Site.Send(w, track(1, pipeShip, 900, 6000), 2) })
	w.At(35*time.Second, func() {
		w.Give(hq, gateway.NewLink{Peers: append(peersBut(w, hq, 0), gateway.PeerConfig{ID: 3, Name: "ship2", Addr: other.Addr()})})
	})
	w.Run(5 * time.Minute)
	s := hq.GW.Status(w.Now)
	check.Equal(t, "peers of HQ", len(s.Peers), 2)
	check.Equal(t, "the link to the new one", s.Peers[1].Link, "up")
	once(t, w, hq.Site, 2, *up)
	got := map[string]int{}
	for _, m := range ship.Site.Got {
		got[fmt.Sprint(m.Payload)]++
	}
	check.Equal(t, "different messages at the ship", len(got), len(*down)+1)
	check.Equal(t, "messages at the ship", len(ship.Site.Got), len(*down)+1)

	check.True(t, "the new one knows HQ's pipe", len(other.Site.Far[1]) > 0, other.Site.Far[1])
	for _, it := range other.Site.Far[1] {
		check.True(t, "what a rule keeps from the new one is not there", it.Kind != secret.Kind, it)
	}
	hq.Site.Send(w, track(1, pipeShip, 1, 200), 3)
	other.Site.Send(w, track(3, pipeHQ, 2, 200), 1)
	w.Run(time.Minute)
	check.Equal(t, "messages at the new one", len(other.Site.Got), 1)
	check.Equal(t, "messages at HQ", len(hq.Site.Got), len(*up)+1)
}

// Another address, name, keepalive and tariff count at once; peers come and go on a shared channel too.
func TestNewLink(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 62)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(time.Minute)
	elsewhere := netip.MustParseAddrPort("192.0.2.77:7142")
	w.Give(ship, gateway.NewLink{Peers: []gateway.PeerConfig{{ID: 1, Name: "shore", Addr: elsewhere}}, Tariff: "minutes"})
	s := ship.GW.Status(w.Now)
	check.Equal(t, "address", s.Peers[0].Address, elsewhere.String())
	check.Equal(t, "configured", s.Peers[0].Configured, elsewhere.String())
	check.Equal(t, "name", s.Peers[0].Name, "shore")
	check.Equal(t, "tariff", s.Link.Tariff, "minutes")
	check.Equal(t, "orders", s.Relinked, 1)
	shared := world(t, 2, "hf-2400", 63)
	shared.Give(shared.Nodes[0], gateway.NewLink{Peers: []gateway.PeerConfig{{ID: 9, Name: "new"}}})
	s = shared.Nodes[0].GW.Status(shared.Now)
	check.Equal(t, "peers on a shared channel", len(s.Peers), 1)
	check.Equal(t, "the one that has come", s.Peers[0].ID, 9)
}

// A peer that is taken out of a gateway which runs is gone from its status. Messages that wait for it are cancelled, once, and
// their senders hear that; its own messages still wait for local peers. When it is taken in again all goes on, and nothing comes twice.
func TestPeerTakenOut(t *testing.T) {
	for seed := range uint64(5) {
		w := world(t, 3, "iridium-dialup", 64+seed)
		hq, ship, other := w.Nodes[0], w.Nodes[1], w.Nodes[2]
		for i, n := range w.Nodes {
			n.Site.Put(w, pipeItem(uint16(i+1), pipeHQ))
		}
		w.Run(2 * time.Minute)
		to := tracks(w, hq, []uint16{2}, 40, 200, time.Second)
		from := tracks(w, other, []uint16{1}, 40, 200, time.Second)
		w.Run(20 * time.Second)
		w.Outage(other, time.Minute)
		for i := range 10 {
			hq.Site.Send(w, track(1, pipeHQ, 500+i, 200+3000*(i%2)), 3)
		}
		w.Run(2 * time.Second)
		all := peersBut(w, hq, 0)
		w.Give(hq, gateway.NewLink{Peers: peersBut(w, hq, 3)})
		w.Run(time.Second)
		s := hq.GW.Status(w.Now)
		check.Equal(t, "peers", len(s.Peers), 1)
		cancelled := 0
		for _, r := range known(hq) {
			if states(r) == "ship2 cancelled" {
				check.Equal(t, "why", r.Recipients[0].Detail, "the site was taken out of the configuration")
				cancelled++
			}
		}
		check.Equal(t, "messages that were cancelled", cancelled, 10)
		w.Run(3 * time.Minute)
		once(t, w, ship.Site, 1, *to)
		received := hq.GW.Status(w.Now).Peers
		check.Equal(t, "the link to the other", received[0].Link, "up")
		check.True(t, "nothing of the one that was taken out is heard", hq.GW.Status(w.Now).Dropped["not_authentic"]+hq.GW.Status(w.Now).Dropped["unknown_peer"] > 0, hq.GW.Status(w.Now).Dropped)
		w.Kill(ship, time.Second)

		w.Give(hq, gateway.NewLink{Peers: all})
		w.Run(5 * time.Minute)
		s = hq.GW.Status(w.Now)
		check.Equal(t, "peers again", len(s.Peers), 2)
		check.Equal(t, "the link to it", s.Peers[1].Link, "up")
		once(t, w, hq.Site, 3, *from)
		hq.Site.Send(w, track(1, pipeHQ, 900, 200), 3)
		hq.Site.Send(w, track(1, pipeHQ, 901, 6000), 3)
		w.Run(2 * time.Minute)
		check.Equal(t, "messages at the one that is back", len(other.Site.Got), 2)
		check.True(t, "and it knows the site", len(other.Site.Far[1]) > 0 && len(hq.Site.Far[3]) > 0)

		w.Give(hq, gateway.NewLink{Peers: peersBut(w, hq, 3)})
		w.Run(time.Second)
		w.Reconfigure(hq, func(c *gateway.Config) {
			c.Peers = slices.DeleteFunc(c.Peers, func(p gateway.PeerConfig) bool { return p.ID == 3 })
		})
		w.Kill(hq, time.Second)
		w.Run(time.Minute)
		s = hq.GW.Status(w.Now)
		check.Equal(t, "peers after a restart without it", len(s.Peers), 1)
		w.Give(hq, gateway.NewLink{Peers: all})
		check.Equal(t, "peers: the journal tells of it, which needs a restart", len(hq.GW.Status(w.Now).Peers), 1)
		w.Reconfigure(hq, func(c *gateway.Config) { c.Peers = all })
		w.Kill(hq, time.Second)
		w.Run(5 * time.Minute)
		hq.Site.Send(w, track(1, pipeHQ, 902, 200), 3)
		w.Run(time.Minute)
		check.Equal(t, "messages at the one that is back after a restart", len(other.Site.Got), 3)
	}
}
