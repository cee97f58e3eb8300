package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/replica"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// restored is the content of the journal until the first Step has used it.
type restored struct {
	own     []site.Item
	far     []site.FarItem
	mail    []site.FarMessage
	records []api.Record // that bring a journal of version 0.1 to the form of this one
}

// copyRecord is the record of an item of this site that a peer holds.
func copyRecord(peer uint16, h replica.Held) (bucket string, key, value []byte) {
	key = peerKey(peer, []byte(h.Key))
	if h.Gone {
		return bucketCopy, key, nil
	}
	value = slices.Clone(h.Version.Hash[:])
	expires := uint64(0)
	if !h.Version.Expires.IsZero() {
		expires = uint64(h.Version.Expires.UnixMilli())
	}
	return bucketCopy, key, binary.BigEndian.AppendUint64(value, expires)
}

// restore rebuilds the gateway's state from the journal. Records of peers that are no longer configured stay where they are.
// It returns the seals' states of the peers on each bearer. parts are the records by bearer.
func (g *Gateway) restore(parts map[string][]api.Record) (states []map[uint16]seal.PeerState, err error) {
	for i, b := range g.bearers {
		known := map[uint16]seal.PeerState{}
		for id, p := range g.byID {
			if p.legs[i] != nil {
				known[id] = seal.PeerState{}
			}
		}
		states = append(states, known)
		own := parts[b.name.Name]
		order := map[string]int{"peer": -1} // the rest builds on it
		slices.SortStableFunc(own, func(a, b api.Record) int {
			if d := order[a.Bucket] - order[b.Bucket]; d != 0 {
				return d
			}
			return slices.Compare(a.Key, b.Key)
		})
		for _, r := range own {
			if r.Bucket == keys.BucketSeal && len(r.Key) == 2 {
				if id := binary.BigEndian.Uint16(r.Key); g.byID[id] != nil && g.byID[id].legs[i] != nil {
					known[id], err = seal.ParsePeerState(r.Value)
				}
			} else if i == 0 {
				err = g.restoreRecord(r)
			} else {
				err = b.restore(r)
			}
			if err != nil {
				if err = g.cfg.refuse(r, err); err != nil {
					return nil, err
				}
			}
		}
	}
	records := parts[""]
	for _, p := range g.peers {
		p.ends.sort()
	}
	list, err := g.mail.Restore(records, g.cfg.refuse)
	if err != nil {
		return nil, err
	}
	old, err := g.adopt(records)
	if err != nil {
		return nil, err
	}
	g.resume(append(old, list...))
	return states, nil
}

// resume gives the carriers the messages that they had.
func (g *Gateway) resume(list []mail.Restored) {
	slices.SortStableFunc(list, func(a, b mail.Restored) int { return int(int64(a.At.Number - b.At.Number)) })
	for _, r := range list {
		p := g.byID[r.Peer]
		if p == nil {
			g.mail.Leave(r)
			continue
		}
		if payload := g.mail.Content(r).Content.Payload; payload != nil && (r.At.Number == 0 || r.At.Queue == mail.Group) {
			g.adapters.remark(g.cfg.Messages, payload)
		}
		if payload := g.mail.Content(r).Content.Payload; payload != nil {
			g.adapters.reroute(g.cfg.Messages, payload)
		}
		g.keys.Rosters.Resume(p.ID, g.mail.Content(r).Content.Roster)
		l := p.leg
		if r.Bearer != "" && r.Bearer != l.Bearer.Name {
			l = p.at(seal.BearerMark(r.Bearer))
		}
		if l == nil || !slices.ContainsFunc(l.bearer.Carriers, func(c mail.Carrier) bool { return c.Resume(r, l.Peer) }) {
			g.mail.Leave(r)
		}
	}
	g.mail.Restarted()
}

// restore takes a record of a bearer after the first.
func (b *bearer) restore(r api.Record) error {
	if r.Bucket == bucketBill {
		return b.billed.months.restore(r.Key, r.Value)
	}
	if r.Bucket == bucketDay {
		return b.day.restore(r.Value)
	}
	if r.Bucket == bucketDirect {
		return b.direct.restore(r.Key, r.Value)
	}
	for _, c := range b.Carriers {
		if taken, err := c.Restore(r); taken {
			return err
		}
	}
	if len(r.Key) < 2 {
		return nil
	}
	if p := b.road.g.byID[binary.BigEndian.Uint16(r.Key)]; p != nil && p.legs[b.index] != nil {
		if r.Bucket == bucketEmptied {
			return p.legs[b.index].emptied.restore(r.Value)
		}
		_, err := p.legs[b.index].Reader.Restore(r.Bucket, r.Key[2:], r.Value)
		return err
	}
	return nil
}

// restoreRecord takes one record of those that are not the store's or the seal's.
func (g *Gateway) restoreRecord(r api.Record) error {
	switch r.Bucket {
	case bucketBridge, bucketAdapter: // their adapters have read them
		return nil
	case bucketOwn:
		it, err := parseItem(r.Value)
		if err != nil {
			return err
		}
		it.Home = it.Kind == site.Document // until an adapter says who needs it; those that have it keep it
		g.restored.own = append(g.restored.own, it)
	case keys.BucketRoster:
		return g.keys.Rosters.Restore(r.Value)
	case bucketBill:
		return g.bearers[0].billed.months.restore(r.Key, r.Value)
	case bucketDay:
		return g.bearers[0].day.restore(r.Value)
	case bucketDirect:
		return g.bearers[0].direct.restore(r.Key, r.Value)
	case bucketFirst:
		return g.cfg.restoreFirst(string(r.Value))
	case bucketHeld:
		return g.passed.restore(r.Key, r.Value)
	case bucketGroup, bucketOpen, bucketGroupKeys, bucketUnread, bucketKeyless:
		return g.groups.restore(r)
	case bucketRollup:
		return g.rollups.restore(r.Value)
	case bucketStanding:
		return g.orders.restore(r.Key, r.Value)
	case bucketSilence:
		s, err := parseSilence(r.Value)
		of := &g.silence
		for _, b := range g.bearers {
			if string(r.Key) == string(b.silence.key()) && b.silence.name != "" {
				of = b.silence
			}
		}
		if of == &g.silence && strings.HasPrefix(string(r.Key), onBearer) {
			return err // of a bearer that is no longer configured
		}
		s.name, s.all = of.name, of.all
		*of = s
		return err
	}
	for _, b := range g.bearers {
		for _, c := range b.Carriers {
			if taken, err := c.Restore(r); taken {
				return err
			}
		}
	}
	if len(r.Key) < 2 {
		return nil
	}
	if p := g.byID[binary.BigEndian.Uint16(r.Key)]; p != nil {
		return p.restore(g.restored, g.replica, r.Bucket, r.Key[2:], r.Value)
	}
	return nil
}

// restore takes a record of the peer, its key without the peer.
func (p *peer) restore(into *restored, held *replica.Replica, bucket string, key, value []byte) (err error) {
	switch bucket {
	case bucketCopy:
		if len(value) != 12 {
			return mail.ErrRecord
		}
		v := replica.Version{Hash: envelope.Hash(value[:4])}
		if ms := binary.BigEndian.Uint64(value[4:]); ms != 0 {
			v.Expires = time.UnixMilli(int64(ms)).UTC()
		}
		held.RestoreHeld(p.ID, string(key), v)
	case bucketDeliver:
		into.mail, err = p.ends.restore(into.mail, key, value)
	case bucketStored:
		return p.ends.restoreStored(key, value)
	case bucketFar:
		it, err := parseItem(value)
		if err != nil {
			return err
		}
		p.far.put(it)
		into.far = append(into.far, site.FarItem{Site: p.ID, Item: it})
	case bucketEmptied:
		err = p.emptied.restore(value)
	default:
		_, err = p.Reader.Restore(bucket, key, value)
	}
	return err
}

// Journal buckets of version 0.1, in which each carrier kept its own messages, and one for several peers was kept once
// for each of them.
const (
	bucketOldWaiting = "waiting" // peer, order -> envelope in full
	bucketOldOut     = "out"     // peer, queue, number -> envelope in full
	bucketOldGroup   = "mul-out" // Message_ID -> peers, whether the flow is spelt out, envelope in full
)

// adopt takes the messages of a journal of version 0.1 into the store, and their records out of the journal. Messages
// for peers or a carrier that are not configured stay.
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
			if len(r.Key) != 11 || r.Key[2] >= frame.Queues {
				return nil, bad
			}
			to = []uint16{binary.BigEndian.Uint16(r.Key)}
			m.At = mail.TransmissionID{Queue: frame.Queue(r.Key[2]), Number: binary.BigEndian.Uint64(r.Key[3:])}
		case bucketOldGroup:
			ids, rest, ok := mail.CutPeers(r.Value)
			if !ok || len(r.Key) != 4 || len(rest) < 1 {
				return nil, bad
			}
			to, full, m.DefinedIn = ids, rest[1:], rest[0] != 0
			m.At = mail.TransmissionID{Queue: mail.Group, Number: uint64(binary.BigEndian.Uint32(r.Key))}
		default:
			continue
		}
		known := 0
		for _, id := range to {
			if p := g.byID[id]; p != nil && p.bearer.Has(m.At.Queue) {
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
			m.Peer = id
			if g.byID[id] != nil {
				list = append(list, m)
			}
		}
		g.Record(r.Bucket, r.Key, nil)
	}
	return list, nil
}
