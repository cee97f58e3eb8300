package gateway

import (
	"encoding/binary"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/forecast"
	"aldis/internal/gateway/mail"
)

// peer is a sister gateway: what custody and the carriers know of it, and what the gateway itself does.
type peer struct {
	*leg           // on the first bearer
	legs    []*leg // on all, in their order
	far     farCopy
	ends    outcomes
	late    forecast.Late
	forgets forgets
	delays  api.Delays // of the messages that it has acknowledged
	usable  uint64     // the legs that messages may take, a bit for each, and those that have met the peer
	behind  bool       // some messages wait until an earlier one of their line has arrived on another bearer
	via     []uint16   // peers that pass on messages for it
}

// leg is a peer on one bearer.
type leg struct {
	*mail.Peer
	of          *peer
	bearer      *bearer
	link        linkState
	differs     differs
	queued      queued
	flaps       flaps
	emptied     emptied
	reckoning   forecast.Reckoning
	wanted      time.Time             // when messages first waited for the peer to be met here, since it was last heard
	silentUntil time.Time             // as the peer has said; zero: it did not
	parked      [len(precedences)]int // octets that wait here for another bearer, by the rank that they do not yield to
}

// unreachable says that the peer answers on none of its bearers.
func (p *peer) unreachable() bool {
	return !slices.ContainsFunc(p.legs, func(l *leg) bool {
		return l != nil && l.link.word != linkSilent && (l.Bearer.Name != mail.Relay || l.Reachable())
	})
}

// journal takes records, with the others of this Step.
type journal interface {
	Record(bucket string, key, value []byte)
}

// Journal buckets of the gateway itself. Keys start with the peer's id where they belong to one.
const (
	bucketCopy    = "copy"    // peer, item key -> version that the peer holds
	bucketDeliver = "deliver" // token -> for local peers: outcomes.go
	bucketFar     = "far"     // peer, item key -> envelope with the item
	bucketOwn     = "own"     // item key -> envelope with the item
	bucketBridge  = "bridge"  // memories of the JXTA adapter
	bucketAdapter = "face"    // adapter, key -> memories of the others
	bucketSilence = "silence" // "self" -> whether, until when, how long yet (silence.append)
)

func peerKey(id uint16, rest []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, id), rest...)
}

// tokenKey is the key of a received message, which its adapter knows by the token: the peer in the highest 16 bits, a number
// of ours below.
func tokenKey(t uint64) []byte { return binary.BigEndian.AppendUint64(nil, t) }

// senderOf is the peer whose message has this token.
func senderOf(token uint64) uint16 { return uint16(token >> 48) }
