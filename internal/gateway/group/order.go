package group

import (
	"encoding/binary"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/pmul"
)

// order puts the P_Mul messages of one peer into the order of their Message_Sequence_Number, which counts the messages
// that the peer has sent to us. A message before its turn is kept in the journal, for a while: the missing ones may have expired.
type order struct {
	next  uint32 // 0: nothing heard yet, the first sets it
	early mail.ReorderBuffer
	begun uint32    // the highest that had come when this start began
	since time.Time // when a message went to the peer first since it was heard; zero: none is under way, or no other bearer waits
	put   bool      // early may have messages whose turn came when a turn of the loop had no room for them
	acks
}

const (
	bucketNext     = "mul-next"  // peer -> next Message_Sequence_Number
	bucketAcked    = "mul-acked" // peer -> acknowledgements
	bucketOldEarly = "mul-early" // of version 0.1: peer, Message_Sequence_Number -> Message_ID, payload

	// A peer's first messages may have come before it was known and were not taken. They come again, so that a peer whose
	// first message is one of so many is heard from its beginning.
	firstFew = 16

	maxEarly = 1024 // when more messages than that wait for their turn, those missing before them are waited for no more
)

// patience is how long a gap is waited for: time enough for a sender to find a loss, by acknowledgements that ride, and repair it. A
// silent node gives no acknowledgements: besides copies on idle air, messages that it has lost come again after many minutes, and no
// others wait for them.
func (c *Carrier) patience() time.Duration {
	if c.sender.Silent() {
		if uncopied(c) {
			return c.Timing.RoundTrip
		}
		return c.Timing.RoundTrip + 2*mail.CopiesForSilent*c.Profile.CopyAfter
	}
	return 4*c.Timing.RoundTrip + 3*c.Profile.AckDelay
}

func place(sequence uint32) mail.TransmissionID {
	return mail.TransmissionID{Queue: mail.Group, Number: uint64(sequence)}
}

// inOrder delivers d if its turn has come, and the messages that follow it; otherwise d is kept.
func (c *Carrier) inOrder(now time.Time, p *mail.Peer, o *order, d pmul.Message) {
	if o.next == 0 {
		o.begin(d.Sequence)
		o.put = o.early.Len() > 0 // messages of a run in which none had its turn: behind this one they wait for no other
		c.record(p, o)
	}
	ahead := int32(d.Sequence - o.next)
	a := mail.Arrival{Place: place(d.Sequence), Number: uint64(d.Message), Body: d.Payload, At: now}
	switch {
	case len(d.Payload) == 0: // it has come another way; the messages behind it are read when that one has been
		if ahead >= 0 && o.early.Len() < 2*maxEarly && !o.early.Has(a) {
			o.early.Keep(a, true)
			o.put = true
		}
	case o.early.Has(a): // its sender was put back: another message has that place
		c.open(now, p, d.Message, d.Payload)
	case !p.Turn.Room(now) && o.early.Len() < 2*maxEarly:
		o.early.Keep(a, true)
		o.put = true
	case ahead > 0 && o.early.Len() >= maxEarly: // those that wait have waited enough
		waiting := o.early.Len()
		c.skip(now, p, o)
		if o.early.Len() == waiting { // this turn of the loop has no room for any of them: there are far too many
			c.open(now, p, d.Message, d.Payload)
			break
		}
		c.inOrder(now, p, o, d)
	case ahead > 0 && (d.Priority > 0 || p.Reader.Fleeting(d.Payload)): // urgent, or of use only now: it waits for no other, and its place is noted
		a.Body = nil
		o.early.Keep(a, true)
		c.open(now, p, d.Message, d.Payload)
	case ahead > 0:
		a.Free, a.After = d.Free, uint64(d.After)
		o.early.Keep(a, true)
		c.readAhead(now, p, o)
	case ahead < 0: // its turn is over
		c.open(now, p, d.Message, d.Payload)
	default:
		c.open(now, p, d.Message, d.Payload)
		o.next++
		c.drain(now, p, o)
	}
}

// begin: this is the first message heard of a peer.
func (o *order) begin(sequence uint32) {
	o.next = sequence
	if sequence <= firstFew {
		o.next = 1
	}
}

// drain delivers the messages that are in order now while this turn of the loop has room, and notes how far that is.
func (c *Carrier) drain(now time.Time, p *mail.Peer, o *order) {
	for o.put && p.Turn.Room(now) {
		late, ok := o.early.Before(o.next)
		if !ok {
			o.put = false
			break
		}
		if a, _ := o.early.Remove(late, true); len(a.Body) > 0 {
			c.open(now, p, pmul.MessageID(a.Number), a.Body)
		}
	}
	for p.Turn.Room(now) {
		a, ok := o.early.Remove(place(o.next), true)
		if !ok {
			break
		}
		if len(a.Body) > 0 { // otherwise it was delivered before its turn
			c.open(now, p, pmul.MessageID(a.Number), a.Body)
		}
		o.next++
	}
	o.put = o.put || o.early.Kept(place(o.next))
	c.record(p, o)
	c.readAhead(now, p, o)
}

// readAhead delivers messages that need not wait for missing ones, while this turn of the loop has room. Their places are noted.
func (c *Carrier) readAhead(now time.Time, p *mail.Peer, o *order) {
	a, ok := o.early.Ahead(mail.Group, uint64(o.next-1))
	for ; ok && p.Turn.Room(now); a, ok = o.early.Ahead(mail.Group, uint64(o.next-1)) {
		body := a.Body
		a.Body = nil
		o.early.Keep(a, true)
		c.open(now, p, pmul.MessageID(a.Number), body)
	}
	o.put = o.put || ok
}

// record makes durable which message is next.
func (c *Carrier) record(p *mail.Peer, o *order) {
	c.Services.Record(bucketNext, peerKey(p.ID), binary.BigEndian.AppendUint32(nil, o.next))
}

// skip gives up waiting for the messages that are missing before the first one that waits.
func (c *Carrier) skip(now time.Time, p *mail.Peer, o *order) {
	waits := false
	for _, at := range o.early.Places() { // some wait only for the one before them of their own source
		if a, _ := o.early.Get(at); a.Free && len(a.Body) > 0 && due.Reached(now, a.At.Add(c.patience())) {
			a.After, waits = 0, true
			o.early.Keep(a, false)
		}
	}
	if waits {
		c.readAhead(now, p, o)
		return
	}
	for _, at := range o.early.Places() {
		if ahead := int32(uint32(at.Number) - o.next); ahead >= 0 {
			o.next += uint32(ahead)
			break
		}
	}
	o.put = true // messages whose turn comes with it go as well
	c.drain(now, p, o)
}

// NewNumbers: the peer counts from 1 again.
func (c *Carrier) NewNumbers(now time.Time, p *mail.Peer) {
	o := c.orders[p.ID]
	for _, a := range o.early.TakeAll() {
		if len(a.Body) > 0 {
			c.open(now, p, pmul.MessageID(a.Number), a.Body)
		}
	}
	if o.next != 0 {
		c.Services.Record(bucketNext, peerKey(p.ID), nil)
	}
	o.next, o.begun = 0, 0
}

func peerKey(id uint16) []byte { return binary.BigEndian.AppendUint16(nil, id) }

// Restore takes a record of the carrier's buckets.
func (c *Carrier) Restore(r api.Record) (bool, error) {
	if r.Bucket == bucketFlow {
		return true, c.history.Restore(r.Key, r.Value)
	}
	if r.Bucket == bucketEnded {
		return true, c.ended.recall(r.Key, r.Value)
	}
	var o *order
	if len(r.Key) >= 2 {
		o = c.orders[binary.BigEndian.Uint16(r.Key)]
	}
	switch {
	case r.Bucket == bucketNext && len(r.Key) == 2 && len(r.Value) == 4:
		if o != nil {
			o.next = binary.BigEndian.Uint32(r.Value)
		}
	case r.Bucket == bucketAcked && len(r.Key) == 2:
		acks, err := parseAcks(r.Value)
		if err != nil {
			return true, err
		}
		if o != nil {
			o.acks = acks
		}
	case r.Bucket == bucketOldEarly && len(r.Key) == 6 && len(r.Value) >= 4:
		if o != nil {
			o.early.Keep(mail.Arrival{Place: place(binary.BigEndian.Uint32(r.Key[2:])),
				Number: uint64(binary.BigEndian.Uint32(r.Value)), Body: r.Value[4:]}, true)
			c.Services.Record(bucketOldEarly, r.Key, nil)
		}
	case r.Bucket == mail.BucketEarly && len(r.Key) > 2 && frame.Queue(r.Key[2]) == mail.Group:
		a, err := mail.ParseEarly(r.Key[2:], r.Value)
		if err != nil {
			return true, err
		}
		if o != nil {
			o.early.Keep(a, false)
			o.put = true
		}
	case r.Bucket == bucketNext, r.Bucket == bucketAcked, r.Bucket == bucketOldEarly:
		return true, mail.ErrRecord
	default:
		return false, nil
	}
	return true, nil
}
