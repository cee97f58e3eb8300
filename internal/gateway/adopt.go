package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// Journal buckets of version 0.1, in which each carrier kept its own messages, and one for several peers was kept once
// for each of them.
const (
	bucketOldWaiting = "waiting" // peer, order -> envelope in full
	bucketOldOut     = "out"     // peer, lane, number -> envelope in full
	bucketOldGroup   = "mul-out" // Message_ID -> peers, whether the flow is spelt out, envelope in full
)

// adopt takes the messages of a journal of version 0.1 into the store, and their records out of the journal. What is for
// peers or a carrier that are not configured stays.
func (g *Gateway) adopt(records []api.Record) (list []mail.Restored, err error) {
	for _, r := range records {
		bad := fmt.Errorf("%w: %s %x", mail.ErrRecord, r.Bucket, r.Key)
		var to []uint16
		m, full := mail.Restored{Fresh: true}, r.Value
		switch r.Bucket {
		case bucketOldWaiting:
			if len(r.Key) != 10 {
				return nil, bad
			}
			to, m.Order = []uint16{binary.BigEndian.Uint16(r.Key)}, binary.BigEndian.Uint64(r.Key[2:])
		case bucketOldOut:
			if len(r.Key) != 11 || r.Key[2] >= frame.Lanes {
				return nil, bad
			}
			to = []uint16{binary.BigEndian.Uint16(r.Key)}
			m.At = mail.Attempt{Lane: frame.Lane(r.Key[2]), Number: binary.BigEndian.Uint64(r.Key[3:])}
		case bucketOldGroup:
			ids, rest, ok := mail.CutPeers(r.Value)
			if !ok || len(r.Key) != 4 || len(rest) < 1 {
				return nil, bad
			}
			to, full, m.Spelt = ids, rest[1:], rest[0] != 0
			m.At = mail.Attempt{Lane: mail.Group, Number: uint64(binary.BigEndian.Uint32(r.Key))}
		default:
			continue
		}
		known := 0
		for _, id := range to {
			if p := g.byID[id]; p != nil && p.bearer.Has(m.At.Lane) {
				known++
			}
		}
		if known == 0 {
			continue
		}
		if m.ID, err = g.mail.Adopt(full); err != nil {
			return nil, errors.Join(bad, err)
		}
		for _, id := range to {
			if m.Peer = id; g.byID[id] != nil {
				list = append(list, m)
			}
		}
		g.Record(r.Bucket, r.Key, nil)
	}
	return list, nil
}
