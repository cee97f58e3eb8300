package mail

import (
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// Kind is what an octet on the air was for (design 8).
type Kind uint8

// Kinds of the ledger's accounts.
const (
	Payload Kind = iota
	Advertisement
	State
	Ack
	Repair
	Header
	Key
	LinkProbe
	kinds
)

// String is the kind's name in the ledger and the metrics.
func (k Kind) String() string {
	return [...]string{"payload", "advertisement", "state", "ack", "repair", "header", "key", "link_probe"}[k]
}

// KindOf is the account of a message with these items.
func KindOf(items []site.Item) Kind {
	for _, it := range items {
		if it.Kind == site.Document {
			return Advertisement
		}
	}
	return State
}

// Directions of the ledger.
const (
	Sent = iota
	Received
)

// Ledger is the IP octets of one peer or group, by direction and kind.
type Ledger [2][kinds]uint64

// Add charges octets to an account.
func (l *Ledger) Add(direction int, kind Kind, octets int) { l[direction][kind] += uint64(octets) }

// Head charges the octets that every datagram has besides its frames, and those that the long form has more.
func (l *Ledger) Head(direction int, long bool) {
	l.Add(direction, Header, profile.IPUDPOctets+seal.OverheadShort)
	if long {
		l.Add(direction, Key, seal.OverheadLong-seal.OverheadShort)
	}
}
