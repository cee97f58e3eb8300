package gateway

import (
	"encoding/binary"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/custody"
)

// peer is a sister gateway: what custody and the carriers know of it, and what the gateway itself does.
type peer struct {
	*mail.Peer
	bearer *bearer // that reaches it
	far    farCopy
}

// Journal buckets of the gateway itself. Keys start with the peer's id where they belong to one.
const (
	bucketSeal    = "seal"    // peer -> seal.PeerState
	bucketCopy    = "copy"    // peer, item key -> version that the peer holds
	bucketDeliver = "deliver" // token -> envelope in full, for local peers
	bucketFar     = "far"     // peer, item key -> envelope with the item
	bucketOwn     = "own"     // item key -> envelope with the item
	bucketBridge  = "bridge"  // memories of the JXTA face
	bucketFace    = "face"    // face, key -> memories of the others
	bucketSilence = "silence" // "self" -> whether, until when, how long yet (silence.append)
)

func peerKey(id uint16, rest []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, id), rest...)
}

// token names a received message for its face: peer, era of its numbers (14 bits), lane, number. Messages of eras before
// may wait for local peers yet.
func token(p *peer, at custody.ID) uint64 {
	return uint64(p.ID)<<48 | uint64(p.Met.Era)<<50>>16 | uint64(at.Lane)<<32 | at.Number&(1<<32-1)
}

func tokenKey(t uint64) []byte { return binary.BigEndian.AppendUint64(nil, t) }
