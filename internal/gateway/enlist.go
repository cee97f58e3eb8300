package gateway

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/roster"
)

// Peers that the roster names, and no configuration: docs/decisions/rollover.md.

// reached are the addresses of a node of the roster on the bearers of a configuration, by their place in the list. A bearer reaches the node
// if the roster gives its address, or if the bearer learns it by itself: on a shared channel, or ashore, where terminals call. No roster
// names the bearer over other gateways (relayBearer).
func reached(ways []BearerConfig, n roster.Node) map[int]netip.AddrPort {
	on := map[int]netip.AddrPort{}
	for i, b := range ways {
		if w, is := n.On(b.Name); is && b.Name != mail.Relay && (w.Addr.IsValid() || b.Group.IsValid() || b.Shore) {
			on[i] = w.Addr
		}
	}
	return on
}

// willing are the ids of the nodes that pass on messages for others, as a roster says.
func willing(nodes []roster.Node) (ids []uint16) {
	for _, n := range nodes {
		if n.Relay {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// Enrolled are the other nodes that the rosters of a configuration and a journal name, and since when they name this one; t nil: none.
func Enrolled(t *Trust, records []api.Record) (nodes []roster.Node, since uint32) {
	if t == nil {
		return nil, 0
	}
	var kept [][]byte
	for _, r := range records {
		if r.Bucket == keys.BucketRoster {
			kept = append(kept, r.Value)
		}
	}
	return keys.Enrolled(t, kept)
}

// enroll adds to the configuration the peers that its roster names, or a roster of the journal.
func (c *Config) enroll(records []api.Record) {
	nodes, since := Enrolled(c.Trust, records)
	if nodes == nil {
		return
	}
	c.Peers, c.More = slices.Clone(c.Peers), slices.Clone(c.More)
	for i := range c.More {
		c.More[i].Peers = maps.Clone(c.More[i].Peers)
	}
	ways := c.bearersOf()
	c.willing = willing(nodes)
	for _, n := range nodes {
		if slices.ContainsFunc(c.Peers, func(p PeerConfig) bool { return p.ID == n.ID }) {
			continue
		}
		on, via := reached(ways, n), []uint16(nil)
		if len(on) == 0 {
			via = c.willing
		}
		if len(on)+len(via) == 0 {
			continue
		}
		c.Peers = append(c.Peers, PeerConfig{ID: n.ID, Name: n.Name, Addr: on[0], Via: via, later: n.Since > since, enrolled: true})
		for i, addr := range on {
			if i > 0 {
				c.More[i-1].Peers[n.ID] = addr
			}
		}
	}
}

// onRoster says whether the roster makes a node a peer, and how it is reached: by which bearers, or else by which gateways.
func onRoster(g *Gateway, n roster.Node) (on map[int]netip.AddrPort, via []uint16, is bool) {
	on = reached(g.cfg.bearersOf(), n)
	if len(on) == 0 && g.bearers[len(g.bearers)-1].Relay != nil {
		via = g.cfg.willing
	}
	return on, via, len(on)+len(via) > 0
}

// enrolls makes a peer that no configuration names any more one that the roster names; false: it does not name it either.
func enrolls(g *Gateway, p *peer) bool {
	n, named := g.keys.Rosters.Node(p.ID)
	on, via, is := onRoster(g, n)
	if !named || !is {
		return false
	}
	rename(g, p, n.Name)
	p.Ashore, p.via = false, via
	for l := range legsTo(p) {
		l.Enrolled = true
	}
	if addr := on[0]; addr.IsValid() {
		p.Link.Readdress(addr)
	}
	return true
}

// enlist adds the peers of a roster that has come while the gateway runs.
func enlist(g *Gateway, now time.Time) {
	nodes, since := g.keys.Rosters.Enrolled()
	g.cfg.willing = willing(nodes)
	for _, n := range nodes {
		p := g.byID[n.ID]
		if n.ID == g.cfg.ID || p != nil && !p.Enrolled {
			continue
		}
		on, via, is := onRoster(g, n)
		if p != nil {
			if len(on) == 0 {
				p.via = via
			}
			continue
		}
		if !is {
			if len(n.Ways) > 0 && !slices.ContainsFunc(n.Ways, func(w roster.Way) bool {
				return slices.ContainsFunc(g.bearers, func(b *bearer) bool { return b.name.Name == w.Bearer })
			}) {
				g.Note("warn", "the roster places a node on no bearer of this gateway; nothing is sent to it", "id", n.ID, "name", n.Name)
			}
			continue
		}
		for i, addr := range on {
			if other := siteAt(g, i, addr); addr.IsValid() && other != 0 {
				g.Note("warn", "the roster gives a new peer the address of another; the gateway learns its address when it hears it", "id", n.ID, "address", addr, "address_of", g.siteName(other))
				on[i] = netip.AddrPort{}
			}
		}
		if slices.Contains(g.roll.left, n.ID) {
			g.Note("warn", "a new peer was not added; restart the gateway to add it", "id", n.ID)
			continue
		}
		g.join(now, PeerConfig{ID: n.ID, Name: n.Name, Addr: on[0], Via: via, later: n.Since > since, enrolled: true}, on)
	}
}
