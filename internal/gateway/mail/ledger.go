package mail

import (
	"aldis/internal/link/envelope"
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

// Owners of octets, by the index of Ledger.Of.
const (
	gateways = iota
	jxta
	tak
	xmpp
	corpus
	relays
	others
	unread
	owners
)

// Owners names the owners: the gateway itself, the protocol adapters, and messages that gateways have sealed for each other, whose adapter
// is not known. "other" is an adapter of a far gateway that this version does not know. "unread" is what was received and has not been
// read: parts of messages, repeats, and messages for others on a shared channel.
var Owners = [owners]string{"gateway", "jxta", "tak", "xmpp", "corpus", "relay", "other", "unread"}

var ownerOf = map[site.Adapter]int{site.JXTA: jxta, site.TAK: tak, site.XMPP: xmpp, site.Corpora: corpus, site.Relay: relays}

// Shares divides octets among owners.
type Shares [owners]int

// Give gives octets to an adapter.
func (s *Shares) Give(a site.Adapter, octets int) {
	if owner, known := ownerOf[a]; known {
		s[owner] += octets
	} else {
		s[others] += octets
	}
}

// Whole gives all octets to an adapter.
func Whole(a site.Adapter, octets int) (s Shares) {
	s.Give(a, octets)
	return s
}

// GiveTo gives octets of a message to the adapter of its payload, or to those of its items by their lengths. Octets of no message (nil), and
// of one that has neither, are the gateway's.
func (s *Shares) GiveTo(m *envelope.Message, octets int) {
	switch {
	case m != nil && m.Payload != nil:
		s.Give(m.Payload.Adapter, octets)
	case m != nil && len(m.Items) > 0:
		var lengths Shares
		for _, it := range m.Items {
			lengths.Give(it.Adapter, 1+len(it.Owner)+len(it.ID)+len(it.Doc))
		}
		for owner, n := range lengths.Scaled(octets) {
			s[owner] += n
		}
	default:
		s[gateways] += octets
	}
}

// Scaled divides so many octets in the same proportion; without one they are the gateway's.
func (s Shares) Scaled(octets int) (scaled Shares) {
	all, sum, given := 0, 0, 0
	for _, n := range s {
		all += n
	}
	if all == 0 {
		scaled[gateways] = octets
		return scaled
	}
	for owner, n := range s {
		sum += n
		scaled[owner] = octets*sum/all - given
		given += scaled[owner]
	}
	return scaled
}

// Ledger is the IP octets of one peer or group. All has them by direction and kind, Of by direction, owner and kind. The sums of both are equal
// in each direction, but in Of received octets have the kind and the owner of the message only when it has been read.
type Ledger struct {
	All [2][kinds]uint64
	Of  [2][owners][kinds]uint64
}

// Add charges octets of the gateway itself to an account.
func (l *Ledger) Add(direction int, kind Kind, octets int) {
	l.Charge(direction, kind, Shares{gateways: octets})
}

// Charge charges octets of several owners to an account.
func (l *Ledger) Charge(direction int, kind Kind, s Shares) {
	for owner, octets := range s {
		l.All[direction][kind] += uint64(octets)
		l.Of[direction][owner][kind] += uint64(octets)
	}
}

// Came charges received octets of messages before these are read, and Named does so in All when their kind is known.
func (l *Ledger) Came(octets int) { l.Of[Received][unread][Payload] += uint64(octets) }

// Named completes Came.
func (l *Ledger) Named(kind Kind, octets int) { l.All[Received][kind] += uint64(octets) }

// messageHead is the least number of octets of a datagram in front of a message.
const messageHead = 3

// Read gives a received message of so many octets to its owners.
func (l *Ledger) Read(m *envelope.Message, octets int) {
	kind := Payload
	switch {
	case m.Payload != nil:
	case m.Roster != nil:
		kind = Key
	default:
		kind = KindOf(m.Items)
	}
	left := &l.Of[Received][unread][Payload]
	n := min(uint64(octets+messageHead), *left)
	*left -= n
	var s Shares
	s.GiveTo(m, int(n))
	for owner, octets := range s {
		l.Of[Received][owner][kind] += uint64(octets)
	}
}

// AddOf adds what another ledger has by owner.
func (l *Ledger) AddOf(other *Ledger) {
	for direction := range l.Of {
		for owner := range l.Of[direction] {
			for kind := range l.Of[direction][owner] {
				l.Of[direction][owner][kind] += other.Of[direction][owner][kind]
			}
		}
	}
}

// Head charges the octets that every datagram has besides its frames, and those that the long form has more.
func (l *Ledger) Head(direction int, long bool) {
	l.Add(direction, Header, profile.IPUDPOctets+seal.OverheadShort)
	if long {
		l.Add(direction, Key, seal.OverheadLong-seal.OverheadShort)
	}
}
