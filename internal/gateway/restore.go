package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/replica"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

var errRecord = errors.New("gateway: journal record of another format")

const peerRecordLen = 1 + 4 + 1 + 1 + 8*2*frame.Lanes + 4 + 1 + 1 + 2 + 1 + 2 + 2

// flagListening is a flag of a peer's record.
const flagListening = 1 << 0

// appendPeer is the durable part of p that has no records of its own.
func appendPeer(b []byte, p *peer) []byte {
	b = append(b, 1) // format
	b = binary.BigEndian.AppendUint32(b, p.store)
	b = append(b, p.stream, p.inStream)
	for lane := range frame.Lane(frame.Lanes) {
		b = binary.BigEndian.AppendUint64(b, p.sender.Next(lane))
		b = binary.BigEndian.AppendUint64(b, p.receiver.Cumulative(lane))
	}
	b = binary.BigEndian.AppendUint32(b, p.nextFlow)
	generation, contiguous, known := p.normwire.Progress()
	if known {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.BigEndian.AppendUint16(append(b, generation), contiguous)
	flags := byte(0)
	if p.sender.IsListening() {
		flags |= flagListening
	}
	b = append(binary.BigEndian.AppendUint16(append(b, flags), p.model), p.forgot, p.heForgot)
	if p.addr.IsValid() {
		b = append(b, p.addr.String()...)
	}
	return b
}

// parsePeer sets p up from appendPeer's record. An address in the configuration is older than a learned one.
func (g *Gateway) parsePeer(p *peer, b []byte) error {
	if len(b) < peerRecordLen || b[0] != 1 {
		return errRecord
	}
	p.store = binary.BigEndian.Uint32(b[1:])
	p.stream, p.inStream = b[5], b[6]
	var next, cum [frame.Lanes]uint64
	at := 7
	for lane := range frame.Lanes {
		next[lane], cum[lane] = binary.BigEndian.Uint64(b[at:]), binary.BigEndian.Uint64(b[at+8:])
		at += 16
	}
	p.nextFlow = binary.BigEndian.Uint32(b[at:])
	if b[at+4] != 0 {
		p.normwire.Recall(b[at+5], binary.BigEndian.Uint16(b[at+6:]))
	}
	if text := string(b[peerRecordLen:]); text != "" {
		addr, err := netip.ParseAddrPort(text)
		if err != nil {
			return errRecord
		}
		p.addr = addr
	}
	p.learnFrom = next[frame.Direct]
	p.sender = custody.NewSender(g.custody, next)
	p.receiver = custody.NewReceiver(g.custody, cum)
	if b[peerRecordLen-5]&flagListening != 0 {
		p.sender.Listening()
	}
	p.model = binary.BigEndian.Uint16(b[peerRecordLen-4:])
	p.forgot, p.heForgot = b[peerRecordLen-2], b[peerRecordLen-1]
	return nil
}

func (g *Gateway) recordHeld(p *peer, key string, gone bool, v replica.Version) {
	if gone {
		g.record(bucketHeld, peerKey(p.ID, []byte(key)), nil)
		return
	}
	value := append([]byte(nil), v.Hash[:]...)
	expires := uint64(0)
	if !v.Expires.IsZero() {
		expires = uint64(v.Expires.UnixMilli())
	}
	g.record(bucketHeld, peerKey(p.ID, []byte(key)), binary.BigEndian.AppendUint64(value, expires))
}

// restore rebuilds what the journal holds. Records of peers that are configured no more are left where they are.
func (g *Gateway) restore(records []Record) (states map[uint16]seal.PeerState, err error) {
	states = map[uint16]seal.PeerState{}
	for id := range g.byID {
		states[id] = seal.PeerState{}
	}
	records = slices.Clone(records)
	order := map[string]int{bucketPeer: -1} // the rest builds on it
	slices.SortStableFunc(records, func(a, b Record) int {
		if d := order[a.Bucket] - order[b.Bucket]; d != 0 {
			return d
		}
		return slices.Compare(a.Key, b.Key)
	})
	for _, r := range records {
		switch r.Bucket {
		case bucketBridge, bucketFace: // their faces have read them
			continue
		case bucketOwn:
			it, err := parseItem(r.Value)
			if err != nil {
				return nil, fmt.Errorf("%w: %s %q", err, r.Bucket, r.Key)
			}
			it.Home = it.Kind == site.Document // until a face says who needs it; those that have it keep it
			g.restoredOwn = append(g.restoredOwn, it)
			continue
		case bucketSilence:
			if g.silence, err = parseSilence(r.Value); err != nil {
				return nil, fmt.Errorf("%w: %s %q", err, r.Bucket, r.Key)
			}
			continue
		case bucketNorm:
			if len(r.Value) != 1 {
				return nil, fmt.Errorf("%w: %s %q", errRecord, r.Bucket, r.Key)
			}
			g.norm.generation = r.Value[0]
			continue
		}
		if len(r.Key) < 2 {
			return nil, fmt.Errorf("%w: %s %q", errRecord, r.Bucket, r.Key)
		}
		p := g.byID[binary.BigEndian.Uint16(r.Key)]
		if p == nil {
			continue
		}
		if r.Bucket == bucketSeal {
			states[p.ID], err = seal.ParsePeerState(r.Value)
		} else {
			err = g.restorePeer(p, r.Bucket, r.Key[2:], r.Value)
		}
		if err != nil {
			return nil, fmt.Errorf("%w (bucket %s, key %x)", err, r.Bucket, r.Key)
		}
	}
	return states, nil
}

func (g *Gateway) restorePeer(p *peer, bucket string, key, value []byte) error {
	switch bucket {
	case bucketPeer:
		return g.parsePeer(p, value)
	case bucketWaiting:
		m, err := parseMessage(value)
		if err != nil || len(key) != 8 {
			return errors.Join(errRecord, err)
		}
		m.seq = binary.BigEndian.Uint64(key)
		g.seq = max(g.seq, m.seq)
		m.lane = g.laneOf(p, m)
		if m.content.Payload != nil {
			g.remark(m.content.Payload)
		}
		p.push(m)
		g.replica.Sent(p.ID, waitingState|m.seq, m.content.Items)
	case bucketOut:
		m, err := parseMessage(value)
		id, ok := parseIDKey(key)
		if err != nil || !ok {
			return errors.Join(errRecord, err)
		}
		m.gone = true // perhaps
		p.underWay[id] = m
		p.octets += len(m.full)
		p.sender.Restore(id)
		g.replica.Sent(p.ID, stateKey(id), m.content.Items)
	case bucketHeld:
		if len(value) != 12 {
			return errRecord
		}
		v := replica.Version{Hash: envelope.Hash(value[:4])}
		if ms := binary.BigEndian.Uint64(value[4:]); ms != 0 {
			v.Expires = time.UnixMilli(int64(ms)).UTC()
		}
		g.replica.RestoreHeld(p.ID, string(key), v)
	case bucketEarly:
		id, ok := parseIDKey(key)
		if !ok || len(value) == 0 {
			return errRecord
		}
		p.receiver.Restore(id)
		p.held[id] = value
	case bucketDeliver:
		m, err := parseMessage(value)
		if err != nil || len(key) != 6 || m.content.Payload == nil {
			return errors.Join(errRecord, err)
		}
		t := binary.BigEndian.Uint64(append(binary.BigEndian.AppendUint16(nil, p.ID), key...))
		id := custody.ID{Lane: frame.Lane(key[0]), Number: t & (1<<40 - 1)}
		m.content.Payload.ID = messageID(p, id)
		p.count.Pending++
		g.restoredMail = append(g.restoredMail, site.FarMessage{Site: p.ID, Token: t, Message: *m.content.Payload})
	case bucketFlow:
		if len(key) != 4 || len(value) < 8 {
			return errRecord
		}
		p.flows[envelope.Flow(value[8:])] = &flow{binary.BigEndian.Uint32(key), binary.BigEndian.Uint64(value)}
	case bucketInFlow:
		if len(key) != 4 {
			return errRecord
		}
		p.inFlows[binary.BigEndian.Uint32(key)] = envelope.Flow(value)
	case bucketBefore:
		if len(key) != 13 || len(value) == 0 {
			return errRecord
		}
		number := binary.BigEndian.Uint64(key[5:])
		if g.cfg.Profile.Transport == profile.PMul {
			g.insertBefore(p, binary.BigEndian.Uint32(key), int(key[4]), number, value[1:])
			break
		}
		p.gotBefore.AddElement(binary.BigEndian.Uint32(key), int(key[4]), number, value[1:])
		name := string(peerKey(p.ID, key[:5]))
		p.gotNumbers[name] = append(p.gotNumbers[name], number)
	case bucketFar:
		it, err := parseItem(value)
		if err != nil {
			return err
		}
		p.far[it.Key()] = it
		p.farEnds.Add(it.Expires, it.Key())
		g.restoredFar = append(g.restoredFar, site.FarItem{Site: p.ID, Item: it})
	}
	return nil
}

func parseMessage(full []byte) (*message, error) {
	content, _, _, err := envelope.Parse(full, nil)
	if err != nil {
		return nil, err
	}
	m := &message{full: full, content: content, kind: kindPayload}
	if content.Payload == nil {
		m.kind = kindOf(content.Items)
	}
	return m, nil
}

func parseIDKey(key []byte) (custody.ID, bool) {
	if len(key) != 9 || key[0] >= frame.Lanes {
		return custody.ID{}, false
	}
	return custody.ID{Lane: frame.Lane(key[0]), Number: binary.BigEndian.Uint64(key[1:])}, true
}
