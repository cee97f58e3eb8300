package config

import (
	"fmt"
	"slices"
	"strings"
)

// relayName is the name of the bearer that consists of other gateways: a message rule may name it, and no [[link]] has it.
const relayName = "relay"

// Hops are the ids of the peers that pass on messages to p, in the order of its key via.
func (l *Link) Hops(p Peer) (ids []uint16) {
	for _, name := range vias(p) {
		if i := l.peerOf(name); i >= 0 {
			ids = append(ids, l.Peers[i].ID)
		}
	}
	return ids
}

func vias(p Peer) []string {
	if p.Via == "" {
		return nil
	}
	list := strings.Split(p.Via, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// peerOf is the index of a peer in Peers, by name or id; negative: there is none.
func (l *Link) peerOf(name string) int {
	return slices.IndexFunc(l.Peers, func(p Peer) bool { return p.Name == name || fmt.Sprint(p.ID) == name })
}

// called says whether a peer has an address on any bearer.
func (c *Config) called(id uint16) bool {
	return slices.ContainsFunc(c.Bearers(), func(b Link) bool {
		return slices.ContainsFunc(b.Peers, func(p Peer) bool { return p.ID == id && p.Address.IsValid() })
	})
}

// checkRelays reports mistakes in via keys: nothing may go in a circle, as far as this configuration shows.
func (r *reader) checkRelays() {
	l := &r.cfg.Link
	for _, b := range r.cfg.Bearers() {
		if b.Name == relayName {
			r.section("link").fail("name", "%q is the way over other gateways (via of a peer): give this one another name", relayName)
		}
	}
	for _, t := range r.tree.links {
		for _, pt := range t.peers {
			if s := (section{r, pt, "link.peer", len(r.faults)}); s.has("via") {
				s.fail("via", "belongs to the peer, not to a bearer: write it in the first [[link]] alone")
			}
		}
	}
	for i, t := range r.tree.arrays["link.peer"] {
		if i >= len(l.Peers) {
			break
		}
		p, s, seen := l.Peers[i], section{r, t, "link.peer", len(r.faults)}, map[int]bool{}
		for _, name := range vias(p) {
			switch at := l.peerOf(name); {
			case at < 0:
				s.fail("via", "%s is no peer of this gateway", name)
			case at == i:
				s.fail("via", "%s is this peer itself", name)
			case seen[at]:
				s.fail("via", "%s is there twice", name)
			case at > i && slices.Contains(l.Hops(l.Peers[at]), p.ID) && !r.cfg.called(l.Peers[at].ID) && !r.cfg.called(p.ID):
				s.fail("via", "%s and %s are a circle: each goes via the other, and neither has an address", p.Name, l.Peers[at].Name)
			default:
				seen[at] = true
			}
		}
	}
}
