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

// A peer that is new to a gateway which runs is greeted, told what the rules let it know, and sent messages; those of the
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

// Another address, name, keepalive and tariff count at once; one that is not named stays; one of which the journal tells, and
// one on a shared channel, are not taken.
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
	w.Give(ship, gateway.NewLink{})
	check.Equal(t, "peers, none of them named", len(ship.GW.Status(w.Now).Peers), 1)

	shared := world(t, 2, "hf-2400", 63)
	shared.Give(shared.Nodes[0], gateway.NewLink{Peers: []gateway.PeerConfig{{ID: 9, Name: "new"}}})
	check.Equal(t, "peers on a shared channel", len(shared.Nodes[0].GW.Status(shared.Now).Peers), 1)
}
