package unicast

import (
	"encoding/binary"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/custody"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/link/segment"
)

// A long message to a peer that understands segments goes in segments that fill datagrams, instead of libnorm's segments. The message
// has a number of the bulk queue, each segment one of the direct queue. docs/decisions/segments.md.

// cut is the messages that go in segments to one peer. Its methods take the line that it belongs to.
type cut struct {
	segment.Cutter
	unasked int              // octets of segments since an acknowledgement was asked for
	passed  int              // datagrams without a segment since the last with one, while segments waited
	behind  uint64           // number of the direct queue that segments would wait for, since its message has outgrown it; 0: none
	strays  bool             // a long message may be under way of which neither libnorm nor the Cutter knows
	coded   map[uint64]coded // those that the journal has, until their entries are restored
}

// coded is a long message as it is cut, so that it goes on after a restart where it was.
type coded struct {
	body  []byte
	free  bool
	there int // all octets before it are acknowledged
}

// strikes is how often a peer has to say that it has all segments of a message but not the message, before the message goes anew.
const strikes = 3

// inSegments says whether a message goes in segments if it is a long one. To a peer that is silent for hours none does: that peer
// acknowledges nothing, and the segments would use up the numbers that may be ahead. Nor does one while a message has outgrown its number.
func (l *peerLink) inSegments(e *mail.Entry) bool {
	return l.Handshake.Segments && !l.sender.IsListening() && len(e.Full) <= segment.MaxObject && !l.cut.waits(l)
}

// outgrown gives libnorm a lost message that, as the peer reads it now, fits no datagram any more: the peer has another corpus or model than
// before, or has forgotten what the message was coded after. The copy names the message's number, so that the peer reads one of the two.
// Segments would wait for that number, so other long messages go by libnorm too until then. false: libnorm is not there.
func (k *cut) outgrown(l *peerLink, e *mail.Entry) bool {
	if !l.of.norm.up {
		return false
	}
	k.behind = e.At.Number
	for _, number := range k.All() {
		k.end(l, number)
		k.strays = true
	}
	if e.For(l.ID) == e { // otherwise it goes another way already
		l.of.Store.Seat(l.of.Store.Again(e, l.Peer, nil, nil), frame.Bulk, l.history)
	}
	return true
}

// waits says whether segments would wait for a number that has no message yet that fits.
func (k *cut) waits(l *peerLink) bool {
	if k.behind == 0 {
		return false
	}
	e := l.Box.At(mail.TransmissionID{Queue: frame.Direct, Number: k.behind})
	if e == nil || len(e.Content.Void) > 0 {
		k.behind = 0
	}
	return k.behind != 0
}

// mayBegin says whether a message may begin to go in segments: no other one that is as urgent is half cut.
func (l *peerLink) mayBegin(e *mail.Entry) bool {
	_, rank, open := l.cut.Next()
	return l.sender.Next(frame.Bulk)-l.sender.Settled(frame.Bulk) <= segment.MostUnder && l.mayCut() && (!open || e.Rank() > rank)
}

// mayCut says whether another segment may be under way: up to twice the octets that the link holds, as with long messages in libnorm's
// hands.
func (l *peerLink) mayCut() bool {
	return l.Handshake.KnowsUs && l.cut.Octets() < 2*l.held && l.sender.HasNumber(frame.Direct)
}

// ready says whether a segment may go.
func (k *cut) ready(l *peerLink) bool {
	_, _, open := k.Next()
	return open && l.mayCut()
}

// startBulk begins the long messages that the window has room for: it cuts them in segments, or gives them to libnorm.
func (k *cut) startBulk(l *peerLink, now time.Time) {
	k.goOn(l, now)
	for {
		e := k.nextLong(l)
		if e == nil || !e.Coded {
			return
		}
		at := mail.TransmissionID{Queue: frame.Bulk, Number: l.sender.Next(frame.Bulk)}
		e = l.of.assign(l, at, e.Message, 1)
		k.beginLong(l, now, e)
		l.history.SentLong(e.Spoken(), at.Number)
	}
}

// nextLong is the next long message that may begin; nil: there is none.
func (k *cut) nextLong(l *peerLink) *mail.Entry {
	if e := l.first(frame.Bulk); e != nil && (l.of.norm.up || l.inSegments(e)) {
		return e
	}
	return nil
}

// beginLong begins a long message that has its number, for the first time or anew. One that is more urgent than the message that is half
// cut is read before that one, and so spells its flow out.
func (k *cut) beginLong(l *peerLink, now time.Time, e *mail.Entry) {
	_, rank, open := k.Next()
	free := open && e.Rank() > rank && l.inSegments(e)
	flow, spells := l.history.Long(e.Spoken(), e.At.Number)
	texts := l.of.Services.Texts(l.Peer)
	if !free {
		l.history.EncodeLong(texts, e.Spoken(), e.At.Number)
	}
	body := l.of.pack(e.Message, flow, spells || free, texts)
	switch {
	case l.inSegments(e) && len(body) <= segment.MaxObject:
		k.end(l, e.At.Number)
		k.Begin(e.At.Number, e.Rank(), free, body)
		head := []byte{0}
		if free {
			head[0] = 1
		}
		l.of.Services.Record(bucketCoded, k.key(l, e.At.Number), append(head, body...))
		l.sender.Sent(now, e.At)
	case l.of.norm.up:
		l.of.enqueueObject(now, l, e, body)
	default:
		k.strays = true
	}
}

// goOn begins anew with messages that have their number and are in nobody's hands: after a restart, or when the peer has another
// version now.
func (k *cut) goOn(l *peerLink, now time.Time) {
	if !l.Handshake.Segments {
		for _, number := range k.All() {
			k.end(l, number)
			k.strays = true
		}
	}
	if !k.strays {
		return
	}
	k.strays = false
	for _, e := range l.Box.UnderWay(frame.Bulk) {
		n, cuts := e.At.Number, l.inSegments(e)
		switch {
		case e.Held || l.long.under[n] != nil || k.Has(n):
		case cuts && !l.Handshake.KnowsUs, !cuts && !l.of.norm.up:
			k.strays = true
		default:
			k.beginLong(l, now, e)
		}
	}
}

// turn says whether a segment goes before short messages: it has waited enough, it is more urgent, or its source has the turn.
func (k *cut) turn(l *peerLink) bool {
	number, rank, ok := k.Next()
	next := l.first(frame.Direct)
	switch {
	case !ok || next == nil:
		return false
	case rank != next.Rank():
		return rank > next.Rank()
	case k.passed >= mostDirect:
		return true
	}
	e := l.Box.At(mail.TransmissionID{Queue: frame.Bulk, Number: number})
	return e != nil && l.Box.Yields(next, e)
}

// spares says whether a datagram goes as it is, though it has room for a segment: where short messages fill less than half of it, a
// segment behind them would keep them on the air twice as long. Where the bill has units the rest of a unit costs nothing, and the
// datagram is filled all the same.
func (k *cut) spares(l *peerLink, to *datagramBuilder) bool {
	short := slices.ContainsFunc(to.parts, func(p part) bool {
		_, data := p.Frame.(frame.Data)
		return data
	})
	spares := short && l.of.Profile.UnitOctets == 0 && to.budget > to.room/2
	if spares && k.ready(l) {
		k.passed++
	}
	return spares
}

// fill puts segments into a datagram until it is full; false: it got none.
func (k *cut) fill(l *peerLink, now time.Time, to *datagramBuilder) (any bool) {
	for {
		k.startBulk(l, now)
		number, rank, ok := k.Next()
		if !ok || !l.mayCut() {
			break
		}
		to.hurries(rank, l.of.Profile.Filled())
		f, last, ok := k.Cut(min(to.budget+k.riding(l, to), k.most(l)) - k.head(l, to))
		if !ok {
			break
		}
		at := mail.TransmissionID{Queue: frame.Direct, Number: l.sender.Next(frame.Direct)}
		f.Prompt = k.asks(l, len(f.Body), last)
		if !k.add(l, now, to, at, f, number, mail.Payload) {
			break
		}
		any = true
	}
	if any {
		k.passed = 0
	} else if k.ready(l) {
		k.passed++
	}
	return any
}

// most is how many octets a segment's frame may have, so that it fits a datagram when it goes again with a number of 16 bits and an
// acknowledgement.
func (k *cut) most(l *peerLink) int { return l.of.Profile.Filled() - seal.OverheadShort - 2 }

// head is how many octets stand before a segment's body, and riding the room of the acknowledgement that it takes along.
func (k *cut) head(l *peerLink, to *datagramBuilder) int {
	head := 3
	if !l.sender.Short(mail.TransmissionID{Queue: frame.Direct, Number: l.sender.Next(frame.Direct)}) {
		head++
	}
	if to.ride != nil {
		head++
	}
	return head
}

func (k *cut) riding(l *peerLink, to *datagramBuilder) int {
	if to.ride == nil {
		return 0
	}
	return size(*to.ride)
}

// asks says whether a segment of so many octets asks for an acknowledgement at once: when half of the octets that may be under way have
// gone since the last one that asked, or a quarter where another bearer could go on, and when it is the end of all that waits.
func (k *cut) asks(l *peerLink, octets int, last bool) bool {
	most := l.held
	if l.of.Timing.Hasty {
		most /= 2
	}
	return k.unasked+octets >= most || last && l.Box.Waiting(frame.Direct, frame.Bulk) == 0 && k.Open() == 1
}

// add puts a segment under a number into a datagram, for the first time or again.
func (k *cut) add(l *peerLink, now time.Time, to *datagramBuilder, at mail.TransmissionID, f frame.Segment, object uint64, kind mail.Kind) bool {
	f.Number, f.Short = uint16(at.Number), l.sender.Short(at)
	if f.Short {
		f.Number &= 0xff
	}
	if !to.addRiding(f, kind) {
		return false
	}
	if kind != mail.Repair {
		if got := l.sender.Assign(frame.Direct, 0); got != at.Number {
			panic("unicast: numbers out of step")
		}
		k.Gave(at.Number, f)
		_, from, to := k.Span(at.Number)
		l.of.Services.Record(bucketCut, k.key(l, at.Number), binary.AppendUvarint(binary.AppendUvarint([]byte{f.Object}, uint64(from)), uint64(to)))
		l.Record()
	}
	k.unasked += len(f.Body)
	if f.Prompt {
		l.asked, k.unasked = asked{}, 0
		l.sender.SentPrompt(now.Add(to.longer), at)
	} else {
		l.sender.Sent(now.Add(to.longer), at)
	}
	whole := mail.TransmissionID{Queue: frame.Bulk, Number: object}
	if e := l.Box.At(whole); object != 0 && e != nil {
		l.sender.Sent(now, whole)
		l.Box.Went(e, len(f.Body))
		to.carry(e, len(f.Body), kind == mail.Repair)
	}
	return true
}

// repeat puts a segment that was lost into a datagram; false: it does not fit.
func (k *cut) repeat(l *peerLink, now time.Time, to *datagramBuilder, at mail.TransmissionID) bool {
	f, object, _ := k.Repeat(at.Number)
	f.Prompt = k.Open() == 0 && l.Box.Waiting(frame.Direct, frame.Bulk) == 0
	if !l.Handshake.Segments { // it has an older version now, and waits for the number
		return k.void(l, now, to, at)
	}
	if !k.add(l, now, to, at, f, object, mail.Repair) {
		return false
	}
	l.Counts.Repeated++
	return true
}

// void puts a message without content into a datagram, in the place of a segment.
func (k *cut) void(l *peerLink, now time.Time, to *datagramBuilder, at mail.TransmissionID) bool {
	if !to.addRiding(frame.Data{Number: uint16(at.Number), Body: mail.Nothing()}, mail.Repair) {
		return false
	}
	l.sender.Sent(now, at)
	return true
}

// noteArrived notes that the peer has the segment with this number, if it is a segment's; acked: and all before it.
func (k *cut) noteArrived(l *peerLink, at mail.TransmissionID, acked bool) {
	object, _, to := k.Span(at.Number)
	if at.Queue == frame.Direct && k.Arrived(at.Number, acked) && acked {
		l.of.Services.Record(bucketCut, k.key(l, at.Number), nil)
		if object > 0 {
			l.of.Services.Record(bucketCut, k.key(l, object|wholeKey), binary.AppendUvarint(nil, uint64(to)))
		}
	}
}

// end forgets a message that was being cut, if it was: it has arrived, or begins anew.
func (k *cut) end(l *peerLink, number uint64) {
	if !k.Has(number) {
		return
	}
	for _, at := range k.End(number) {
		f, _, _ := k.Repeat(at)
		l.of.Services.Record(bucketCut, k.key(l, at), []byte{f.Object})
	}
	k.unrecord(l, number)
}

// unrecord takes a message that is cut out of the journal.
func (k *cut) unrecord(l *peerLink, number uint64) {
	l.of.Services.Record(bucketCoded, k.key(l, number), nil)
	l.of.Services.Record(bucketCut, k.key(l, number|wholeKey), nil)
}

// resume goes on with a message that was being cut when the gateway stopped; false: the journal lacks the coded message.
func (k *cut) resume(e *mail.Entry) bool {
	was, ok := k.coded[e.At.Number]
	if ok {
		k.Resume(e.At.Number, e.Rank(), was.free, was.body, was.there)
		delete(k.coded, e.At.Number)
	}
	return ok
}

// missed is called when the peer has said what it has. A message that it lacks, though it has all segments of it, goes anew.
func (k *cut) missed(l *peerLink, now time.Time) {
	for _, number := range k.Strike(strikes) {
		k.end(l, number)
		k.strays = true
		l.Counts.Repeated++
	}
	k.goOn(l, now)
}

// join takes a segment of the peer in its turn.
func (k *cut) join(l *peerLink, now time.Time, number uint64, body []byte) {
	f, _, err := frame.Parse(body)
	part, ok := f.(frame.Segment)
	if err != nil || !ok {
		l.of.Services.Drop("piece_record")
		return
	}
	low := segment.Number(part.Object, l.receiver.Cumulative(frame.Bulk))
	if part.Total > 0 && l.receiver.Known(frame.Bulk, low) { // its sender did not know that, and began anew
		l.receiver.AcceptRiding(now, frame.Bulk, low)
		part.Total, part.Body = 0, nil
	}
	whole, over, gaveUp, err := l.joiner.Add(number, part)
	kept := true
	for _, n := range over {
		if n == number {
			kept = false
			continue
		}
		l.of.Services.Record(bucketSegment, k.key(l, n), nil)
	}
	if kept {
		l.of.Services.Record(bucketSegment, k.key(l, number), body)
	}
	for range gaveUp {
		l.of.Services.Drop("piece_room")
	}
	switch {
	case err == segment.ErrLarge:
		l.of.Services.Drop("piece_large")
	case err != nil:
		l.of.Services.Drop("piece_orphan")
	}
	if whole == nil {
		return
	}
	id, fresh := l.receiver.AcceptRiding(now, frame.Bulk, low)
	switch fresh {
	case custody.New:
		l.of.arrived(now, l, mail.Arrival{Place: id, Number: id.Number, Body: whole.Body, Free: whole.Free})
	case custody.Duplicate:
		l.Counts.Duplicates++
	case custody.Beyond:
		l.of.Services.Drop("beyond_window")
	}
}

// clear forgets the long messages to the peer, which begins anew.
func (k *cut) clear(l *peerLink) {
	for _, at := range k.Numbers() {
		l.of.Services.Record(bucketCut, k.key(l, at), nil)
	}
	for _, number := range k.All() {
		k.unrecord(l, number)
	}
	*k = cut{}
}

// forgetReceived forgets the segments of the peer, which begins anew.
func (k *cut) forgetReceived(l *peerLink) {
	for _, number := range l.joiner.Clear() {
		l.of.Services.Record(bucketSegment, k.key(l, number), nil)
	}
}

func (k *cut) key(l *peerLink, number uint64) []byte {
	return binary.BigEndian.AppendUint64(peerKey(l.ID), number)
}

// restoreRecord takes a record of a bucket of segments. The records of a peer come by number, those of coded messages first.
func (k *cut) restoreRecord(l *peerLink, r api.Record) error {
	if len(r.Key) != 10 || len(r.Value) == 0 {
		return mail.ErrRecord
	}
	number := binary.BigEndian.Uint64(r.Key[2:])
	switch r.Bucket {
	case bucketCoded:
		if k.coded == nil {
			k.coded = map[uint64]coded{}
		}
		was := k.coded[number]
		was.free, was.body = r.Value[0] != 0, r.Value[1:]
		k.coded[number] = was
		return nil
	case bucketCut:
		return k.restoreCut(l, number, r.Value)
	}
	f, rest, err := frame.Parse(r.Value)
	part, ok := f.(frame.Segment)
	if err != nil || !ok || len(rest) > 0 {
		return mail.ErrRecord
	}
	l.joiner.Add(number, part)
	return nil
}

// restoreCut takes a segment under way, or how far a message is acknowledged. Where a record does not say which octets a segment has, as
// commit 7755b1ce wrote it, the message begins anew.
func (k *cut) restoreCut(l *peerLink, number uint64, value []byte) error {
	if number&wholeKey != 0 {
		there, n := binary.Uvarint(value)
		if was, ok := k.coded[number&^wholeKey]; ok && n > 0 && there <= uint64(len(was.body)) {
			was.there = int(there)
			k.coded[number&^wholeKey] = was
		}
		return nil
	}
	from, n := binary.Uvarint(value[1:])
	to, m := binary.Uvarint(value[1+max(n, 0):])
	if len(value) > 1 && (n <= 0 || m <= 0 || to < from || to > segment.MaxObject) {
		return mail.ErrRecord
	}
	k.Restore(number, value[0], int(from), int(to))
	l.sender.Restore(mail.TransmissionID{Queue: frame.Direct, Number: number})
	return nil
}
