package node

import (
	"crypto/rand"
	"fmt"

	"aldis/internal/edge/config"
	"aldis/internal/edge/rights"
	"aldis/internal/gateway"
)

// trust is the keys of single nodes, if the configuration has them.
func (n *node) trust() *gateway.Trust {
	t := n.cfg.Link.Trust
	if !t.On() {
		return nil
	}
	return &gateway.Trust{Own: t.Own, Authority: t.Authority, Roster: t.Roster,
		Chance: func(key *[32]byte) { rand.Read(key[:]) }, Hold: func(octets []byte) { rights.Hold(octets) }, // hold has reported whether that is possible
		Members: n.noteMembers}
}

// keyText says which keys a gateway uses, for the audit record.
func keyText(c *config.Config) string {
	t := c.Link.Trust
	if !t.On() {
		return "key " + c.Link.Key.Fingerprint()
	}
	return fmt.Sprintf("node key %s, roster %d of authority %s", t.Own.Public().Fingerprint(), t.Roster.Serial, t.Authority.Fingerprint())
}
