package unicast

import (
	"encoding/binary"
	"slices"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/custody"
	"aldis/internal/link/frame"
)

// Journal buckets.
const (
	bucketPeer    = "peer"  // peer -> numbers and address (AppendPeer)
	bucketFirst   = "first" // peer -> the starts that it has not said to have heard of, each with its first numbers
	bucketFlow    = "flow"  // peer, number -> its definer, flow towards it
	bucketNorm    = "norm"  // "generation"
	bucketPath    = "path"  // peer -> its addresses (mail.Paths)
	bucketCut     = "cut"   // peer, number of the direct queue -> object, octets of it: a segment under way to it; peer, number of a long message with wholeKey -> how many octets are there
	bucketCoded   = "coded" // peer, number of the bulk queue -> whether it is free, and a long message as it is cut
	bucketSegment = "piece" // peer, number of the direct queue -> frame: a segment from it whose turn has come, of a message that is not whole
)

// A peer's record is of format 2 since it has the last six octets before the address.
const (
	peerRecord1Len = 1 + 4 + 1 + 1 + 8*2*frame.Queues + 4 + 1 + 1 + 2 + 1 + 2 + 2
	peerRecordLen  = peerRecord1Len + 4 + 2
)

// wholeKey marks the number of a long message in a bucket where segments have theirs.
const wholeKey = 1 << 63

// The flags of a peer's record.
const (
	flagListening = 1 << 0
	refusedShift  = 1 // two bits
	flagSegments  = 1 << 3
	flagAhead     = 1 << 4
)

func peerKey(id uint16) []byte { return binary.BigEndian.AppendUint16(nil, id) }

// appendTo is the durable part of a line that has no records of its own.
func (l *peerLink) appendTo(b []byte) []byte {
	b = append(b, 2) // format
	b = binary.BigEndian.AppendUint32(b, l.Handshake.Store)
	b = append(b, l.Handshake.Stream, l.Handshake.InStream)
	for queue := range frame.Queue(frame.Queues) {
		b = binary.BigEndian.AppendUint64(b, l.sender.Next(queue))
		b = binary.BigEndian.AppendUint64(b, l.receiver.Cumulative(queue))
	}
	b = binary.BigEndian.AppendUint32(b, l.history.Next)
	generation, contiguous, known := l.long.wire.Progress()
	if known {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.BigEndian.AppendUint16(append(b, generation), contiguous)
	flags := byte(0)
	if l.sender.IsListening() {
		flags |= flagListening
	}
	if l.Handshake.Segments {
		flags |= flagSegments
	}
	if l.Handshake.Ahead {
		flags |= flagAhead
	}
	flags |= byte(l.Handshake.Refused) << refusedShift
	b = append(binary.BigEndian.AppendUint16(append(b, flags), l.Handshake.Model), l.Handshake.Forgot, l.Handshake.PeerForgot)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, l.Handshake.Compared), l.Handshake.Era)
}

// Renumbered is a peer's record for a new store: it keeps that we know the peer and where the peer is, and its numbers begin anew. false:
// b is no such record.
func Renumbered(b []byte) ([]byte, bool) {
	b, ok := current(b)
	if !ok {
		return nil, false
	}
	b = slices.Clone(b)
	b[5]++ // our stream; that of the peer stays, so that messages that it sends before it knows of the new store are forgotten then
	at := 7
	for range frame.Queues {
		binary.BigEndian.PutUint64(b[at:], 1)
		binary.BigEndian.PutUint64(b[at+8:], 0)
		at += 16
	}
	binary.BigEndian.PutUint32(b[at:], 1)                           // flows
	clear(b[at+4 : at+8])                                           // what NORM has sent
	b[peerRecord1Len-5] &= flagListening | flagSegments | flagAhead // nothing is refused
	clear(b[peerRecord1Len : peerRecord1Len+4])
	era := b[peerRecord1Len+4:]
	binary.BigEndian.PutUint16(era, binary.BigEndian.Uint16(era)+1)
	return b, true
}

// Forgotten is the record for a peer whose own record is lost: that of a peer that was never heard, but for its era, since
// messages of earlier eras may wait for local peers.
func Forgotten() []byte {
	b := make([]byte, peerRecordLen)
	b[0] = 2
	binary.BigEndian.PutUint16(b[peerRecord1Len+4:], 0x2000)
	b, _ = Renumbered(b)
	return b
}

// current brings a peer's record to the newest form; false: it is none.
func current(b []byte) ([]byte, bool) {
	if len(b) > 0 && b[0] == 1 && len(b) >= peerRecord1Len { // of a gateway that compared no numbers
		b = slices.Insert(slices.Clone(b), peerRecord1Len, make([]byte, peerRecordLen-peerRecord1Len)...)
		b[0] = 2
	}
	return b, len(b) >= peerRecordLen && b[0] == 2
}

// parse sets a line up from appendTo's record. In version 0.1 a learned address stood behind it.
func (c *Carrier) parse(l *peerLink, b []byte) error {
	b, ok := current(b)
	if !ok {
		return mail.ErrRecord
	}
	l.Handshake.Store = binary.BigEndian.Uint32(b[1:])
	l.Handshake.Stream, l.Handshake.InStream = b[5], b[6]
	var next, cum [frame.Queues]uint64
	at := 7
	for queue := range frame.Queues {
		next[queue], cum[queue] = binary.BigEndian.Uint64(b[at:]), binary.BigEndian.Uint64(b[at+8:])
		at += 16
	}
	l.history.Next = max(l.history.Next, binary.BigEndian.Uint32(b[at:]))
	if b[at+4] != 0 {
		l.long.wire.Recall(b[at+5], binary.BigEndian.Uint16(b[at+6:]))
	}
	if text := b[peerRecordLen:]; len(text) > 0 {
		if _, err := l.Paths.Restore(text); err != nil {
			return err
		}
	}
	l.history.Since(next[frame.Direct])
	l.sender = custody.NewSender(timing(&c.Config, l.Peer), next)
	l.receiver = custody.NewReceiver(c.Timing, cum)
	if b[peerRecord1Len-5]&flagListening != 0 {
		l.sender.Listening()
	}
	l.Handshake.Segments = b[peerRecord1Len-5]&flagSegments != 0
	l.Handshake.Ahead = b[peerRecord1Len-5]&flagAhead != 0
	l.sender.Ahead(l.Handshake.Ahead)
	l.Handshake.Refused = mail.Refusal(b[peerRecord1Len-5] >> refusedShift & 3)
	l.Handshake.Model = binary.BigEndian.Uint16(b[peerRecord1Len-4:])
	l.Handshake.Forgot, l.Handshake.PeerForgot = b[peerRecord1Len-2], b[peerRecord1Len-1]
	l.Handshake.Compared = binary.BigEndian.Uint32(b[peerRecord1Len:])
	l.Handshake.Era = binary.BigEndian.Uint16(b[peerRecord1Len+4:])
	return nil
}

// Restore takes a record of the carrier's buckets; that of a peer comes before all others of it.
func (c *Carrier) Restore(r api.Record) (bool, error) {
	if r.Bucket == bucketNorm {
		if len(r.Value) != 1 {
			return true, mail.ErrRecord
		}
		c.norm.generation = r.Value[0]
		return true, nil
	}
	if !slices.Contains([]string{bucketPeer, bucketFirst, bucketPath, bucketFlow, bucketCut, bucketCoded, bucketSegment, mail.BucketEarly}, r.Bucket) {
		return false, nil
	}
	if len(r.Key) < 2 {
		return true, mail.ErrRecord
	}
	l := c.links[binary.BigEndian.Uint16(r.Key)]
	if l == nil {
		return true, nil
	}
	switch r.Bucket {
	case bucketPeer:
		return true, c.parse(l, r.Value)
	case bucketPath:
		changed, err := l.Paths.Restore(r.Value)
		l.question.journal, l.question.changed = true, changed
		return true, err
	case bucketFirst:
		return true, l.recallStarts(r.Value)
	case bucketFlow:
		return true, l.history.Restore(r.Key[2:], r.Value)
	case bucketCut, bucketCoded, bucketSegment:
		return true, l.cut.restoreRecord(l, r)
	}
	a, err := mail.ParseEarly(r.Key[2:], r.Value)
	if a.Place.Queue >= frame.Queues {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	if !l.receiver.Restore(a.Place) {
		return true, mail.ErrRecord
	}
	l.reordered.Keep(a, false)
	return true, nil
}

// Resume goes on with a message of the direct or the bulk queue.
func (c *Carrier) Resume(r mail.Restored, p *mail.Peer) bool {
	l := c.links[p.ID]
	switch {
	case r.At.Number == 0:
		m := c.Store.Content(r)
		queue, known := queueAtOnce(c.Profile, m)
		if !known && r.At.Queue == frame.Bulk {
			queue, known = frame.Bulk, true
		}
		c.Store.Resume(r, p, queue, l.history).Unsized = !known
		c.Replica.Sent(p.ID, m.ID, m.Content.Items)
	case r.At.Queue < frame.Queues:
		if r.At.Queue == frame.Direct {
			l.history.Resumed(r.At.Number, c.Store.Content(r).Content.Payload)
		}
		e := c.Store.Resume(r, p, r.At.Queue, l.history)
		l.sender.Restore(e.At)
		l.cut.strays = l.cut.strays || r.At.Queue == frame.Bulk && !l.cut.resume(e)
		c.Replica.Sent(p.ID, e.ID, e.Content.Items)
	default:
		return false
	}
	return true
}
