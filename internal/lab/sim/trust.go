package sim

import (
	"time"

	"aldis/internal/gateway"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// NodeKey is the key of a node in a World with a roster.
func NodeKey(id uint16) *seal.SigningKey {
	return seal.NewSigningKey([32]byte{1, byte(id), byte(id >> 8)})
}

// Authority is the key that signs the rosters of a World.
func Authority() *seal.SigningKey { return seal.NewSigningKey([32]byte{2}) }

// First is the roster that all nodes begin with; nil without one.
func (w *World) First() *roster.Roster { return w.first }

// Roster is the roster after old (nil: the first) that names these nodes; its secret is used from at on.
func (w *World) Roster(old *roster.Roster, at time.Time, nodes ...*Node) *roster.Roster {
	var list []roster.Node
	for _, n := range nodes {
		node := roster.Node{ID: n.ID, Name: n.Name, Public: NodeKey(n.ID).Public()}
		if w.cfg.Ways != nil {
			node.Ways, node.Relay = w.cfg.Ways(n)
		}
		list = append(list, node)
	}
	var random [roster.RandomForIssue]byte
	for i := range random {
		random[i] = byte(w.chance.Uint32())
	}
	r, err := roster.Issue("sim", old, list, w.Now, at, random, Authority())
	if err != nil {
		panic(err) // our own nodes
	}
	return r
}

// trust is a node's own key and its first roster; nil without one.
func (w *World) trust(id uint16) *gateway.Trust {
	if w.first == nil {
		return nil
	}
	return &gateway.Trust{Own: NodeKey(id), Authority: Authority().Public(), Roster: w.first, Chance: w.draw}
}

// draw fills a key from the World's random numbers.
func (w *World) draw(key *[32]byte) {
	for i := range key {
		key[i] = byte(w.chance.Uint32())
	}
}
