package unicast

import (
	"encoding/binary"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/piece"
	"aldis/internal/link/seal"
)

// A long message to a peer that understands pieces goes in pieces that fill datagrams, instead of libnorm's segments. The message
// has a number of the bulk lane, each piece one of the direct lane. docs/decisions/pieces.md.

// cut is the messages that go in pieces to one peer. Its methods take the line that it belongs to.
type cut struct {
	piece.Cutter
	unasked int  // octets of pieces since a receipt was asked for
	passed  int  // datagrams without a piece since the last with one, while pieces waited
	strays  bool // a long message may be under way of which neither libnorm nor the Cutter knows
}

// strikes is how often a peer has to say that it has all pieces of a message but not the message, before that goes anew.
const strikes = 3

// inPieces says whether a message goes in pieces if it is a long one. To a peer that is silent for hours none does: that peer
// acknowledges nothing, and the pieces would use up the numbers that may be ahead.
func (l *line) inPieces(e *mail.Entry) bool {
	return l.Met.Pieces && !l.sender.IsListening() && len(e.Full) <= piece.MaxObject
}

// mayBegin says whether a message may begin to go in pieces: no other one that is as urgent is half cut.
func (l *line) mayBegin(e *mail.Entry) bool {
	_, rank, open := l.cut.Next()
	return l.sender.Next(frame.Bulk)-l.sender.Settled(frame.Bulk) <= piece.MostUnder && l.mayCut() && (!open || e.Rank() > rank)
}

// mayCut says whether another piece may be under way: up to twice what the link holds, as of long messages in libnorm's hands.
func (l *line) mayCut() bool {
	return l.Met.KnowsUs && l.cut.Octets() < 2*l.held && l.sender.RoomFor(frame.Direct, max(0, custody.ShortAhead-l.sender.Window(frame.Direct)))
}

// ready says whether a piece may go.
func (k *cut) ready(l *line) bool {
	_, _, open := k.Next()
	return open && l.mayCut()
}

// startBulk begins the long messages that the window has room for: it cuts them in pieces, or gives them to libnorm.
func (k *cut) startBulk(l *line, now time.Time) {
	k.goOn(l, now)
	for {
		e := k.nextLong(l)
		if e == nil || !e.Coded {
			return
		}
		at := mail.Attempt{Lane: frame.Bulk, Number: l.sender.Next(frame.Bulk)}
		e = l.of.assign(l, at, e.Message)
		k.beginLong(l, now, e)
		l.audience.SentLong(e.Content.Payload, at.Number)
	}
}

// nextLong is the next long message that may begin; nil: there is none.
func (k *cut) nextLong(l *line) *mail.Entry {
	if e := l.first(frame.Bulk); e != nil && (l.of.norm.up || l.inPieces(e)) {
		return e
	}
	return nil
}

// beginLong begins a long message that has its number, for the first time or anew. One that is more urgent than what is half cut
// is read before that, and so spells its flow out.
func (k *cut) beginLong(l *line, now time.Time, e *mail.Entry) {
	_, rank, open := k.Next()
	free := open && e.Rank() > rank && l.inPieces(e)
	flow, spells := l.audience.Long(e.Content.Payload, e.At.Number)
	texts := l.of.Road.Texts(l.Peer)
	if !free {
		l.audience.EncodeLong(texts, e.Content.Payload, e.At.Number)
	}
	body := l.of.pack(e.Message, flow, spells || free, texts)
	switch {
	case l.inPieces(e) && len(body) <= piece.MaxObject:
		k.Begin(e.At.Number, e.Rank(), free, body)
		l.sender.Sent(now, e.At)
	case l.of.norm.up:
		l.of.enqueueObject(now, l, e, body)
	default:
		k.strays = true
	}
}

// goOn begins anew with messages that have their number and are in nobody's hands: after a restart, or when the peer has another
// version now.
func (k *cut) goOn(l *line, now time.Time) {
	if !l.Met.Pieces {
		for _, number := range k.All() {
			k.End(number)
			k.strays = true
		}
	}
	if !k.strays {
		return
	}
	k.strays = false
	for _, e := range l.Box.UnderWay(frame.Bulk) {
		n, cuts := e.At.Number, l.inPieces(e)
		switch {
		case e.Held || l.long.under[n] != nil || k.Has(n):
		case cuts && !l.Met.KnowsUs, !cuts && !l.of.norm.up:
			k.strays = true
		default:
			k.beginLong(l, now, e)
		}
	}
}

// turn says whether a piece goes before short messages: it has waited enough, it is more urgent, or its source has the turn.
func (k *cut) turn(l *line) bool {
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
	e := l.Box.At(mail.Attempt{Lane: frame.Bulk, Number: number})
	return e != nil && l.Box.Yields(next, e)
}

// spares says whether a letter goes as it is, though it has room for a piece: where short messages fill less than half of it, a
// piece behind them would keep them on the air twice as long. Where the bill has units the rest of a unit costs nothing, and the
// letter is filled all the same.
func (k *cut) spares(l *line, to *letter) bool {
	short := slices.ContainsFunc(to.frames, func(f frame.Frame) bool {
		_, data := f.(frame.Data)
		return data
	})
	spares := short && l.of.Profile.UnitOctets == 0 && to.budget > l.of.Profile.Filled()/2
	if spares && k.ready(l) {
		k.passed++
	}
	return spares
}

// fill puts pieces into a letter until it is full; false: it got none.
func (k *cut) fill(l *line, now time.Time, to *letter) (any bool) {
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
		at := mail.Attempt{Lane: frame.Direct, Number: l.sender.Next(frame.Direct)}
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

// most is what a piece's frame may take, so that it fits a datagram when it goes again with a number of 16 bits and a receipt.
func (k *cut) most(l *line) int { return l.of.Profile.Filled() - seal.OverheadShort - 2 }

// head is what stands before a piece's body, and riding the room of the receipt that it takes along.
func (k *cut) head(l *line, to *letter) int {
	head := 3
	if !l.sender.Short(mail.Attempt{Lane: frame.Direct, Number: l.sender.Next(frame.Direct)}) {
		head++
	}
	if to.ride != nil {
		head++
	}
	return head
}

func (k *cut) riding(l *line, to *letter) int {
	if to.ride == nil {
		return 0
	}
	return size(*to.ride)
}

// asks says whether a piece of so many octets asks for a receipt at once: when half of what may be under way has gone since
// the last that did, and when it is the end of all that waits.
func (k *cut) asks(l *line, octets int, last bool) bool {
	return k.unasked+octets >= l.held || last && l.Box.Waiting(frame.Direct, frame.Bulk) == 0 && k.Open() == 1
}

// add puts a piece under a number into a letter, for the first time or again.
func (k *cut) add(l *line, now time.Time, to *letter, at mail.Attempt, f frame.Piece, object uint64, kind mail.Kind) bool {
	f.Number, f.Short = uint16(at.Number), l.sender.Short(at)
	if f.Short {
		f.Number &= 0xff
	}
	if !to.addRiding(f, kind) {
		return false
	}
	if kind != mail.Repair {
		if got := l.sender.Assign(frame.Direct); got != at.Number {
			panic("unicast: numbers out of step")
		}
		k.Gave(at.Number, f)
		l.of.Road.Record(bucketCut, k.key(l, at.Number), []byte{f.Object})
		l.Record()
	}
	if k.unasked += len(f.Body); f.Prompt {
		l.unasked, l.silent, k.unasked = 0, 0, 0
		l.sender.SentPrompt(now, at)
	} else {
		l.sender.Sent(now, at)
	}
	whole := mail.Attempt{Lane: frame.Bulk, Number: object}
	if e := l.Box.At(whole); object != 0 && e != nil {
		l.sender.Sent(now, whole)
		l.Box.Went(e, len(f.Body))
		to.carries = append(to.carries, carried{e, len(f.Body), kind == mail.Repair})
	}
	return true
}

// repeat puts a piece that was lost into a letter; false: it does not fit.
func (k *cut) repeat(l *line, now time.Time, to *letter, at mail.Attempt) bool {
	f, object, _ := k.Again(at.Number)
	f.Prompt = k.Open() == 0 && l.Box.Waiting(frame.Direct, frame.Bulk) == 0
	if !l.Met.Pieces { // it has an older version now, and waits for the number
		return k.void(l, now, to, at)
	}
	if !k.add(l, now, to, at, f, object, mail.Repair) {
		return false
	}
	l.Counts.Repeated++
	return true
}

// void puts a message without content into a letter, in the place of a piece.
func (k *cut) void(l *line, now time.Time, to *letter, at mail.Attempt) bool {
	body, err := envelope.Append(nil, envelope.Message{Void: []envelope.Hash{{}}}, 0, true)
	if err != nil {
		panic(err) // it has neither text nor document
	}
	if !to.addRiding(frame.Data{Number: uint16(at.Number), Body: body}, mail.Repair) {
		return false
	}
	l.sender.Sent(now, at)
	return true
}

// noteArrived notes that the peer has what has this number, if it is a piece; acked: and all before it.
func (k *cut) noteArrived(l *line, at mail.Attempt, acked bool) {
	if at.Lane == frame.Direct && k.Arrived(at.Number, acked) && acked {
		l.of.Road.Record(bucketCut, k.key(l, at.Number), nil)
	}
}

// missed is called when the peer has said what it has. A message of which it has all pieces, and which it has not, goes anew.
func (k *cut) missed(l *line, now time.Time) {
	for _, number := range k.Strike(strikes) {
		k.End(number)
		k.strays = true
		l.Counts.Repeated++
	}
	k.goOn(l, now)
}

// join takes a piece of the peer in its turn.
func (k *cut) join(l *line, now time.Time, number uint64, body []byte) {
	f, _, err := frame.Parse(body)
	part, ok := f.(frame.Piece)
	if err != nil || !ok {
		l.of.Road.Drop("piece_record")
		return
	}
	low := piece.Number(part.Object, l.receiver.Cumulative(frame.Bulk))
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
		l.of.Road.Record(bucketPiece, k.key(l, n), nil)
	}
	if kept {
		l.of.Road.Record(bucketPiece, k.key(l, number), body)
	}
	for range gaveUp {
		l.of.Road.Drop("piece_room")
	}
	switch {
	case err == piece.ErrLarge:
		l.of.Road.Drop("piece_large")
	case err != nil:
		l.of.Road.Drop("piece_orphan")
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
		l.of.Road.Drop("beyond_window")
	}
}

// clear forgets what goes to the peer: it begins anew.
func (k *cut) clear(l *line) {
	for _, at := range k.Numbers() {
		l.of.Road.Record(bucketCut, k.key(l, at), nil)
	}
	*k = cut{}
}

// forgetReceived forgets what has come in pieces: the peer begins anew.
func (k *cut) forgetReceived(l *line) {
	for _, number := range l.joiner.Clear() {
		l.of.Road.Record(bucketPiece, k.key(l, number), nil)
	}
}

func (k *cut) key(l *line, number uint64) []byte {
	return binary.BigEndian.AppendUint64(peerKey(l.ID), number)
}

// restoreRecord takes a record of either bucket; those of a peer come by number.
func (k *cut) restoreRecord(l *line, r api.Record) error {
	if len(r.Key) != 10 {
		return mail.ErrRecord
	}
	number := binary.BigEndian.Uint64(r.Key[2:])
	if r.Bucket == bucketCut {
		if len(r.Value) != 1 {
			return mail.ErrRecord
		}
		k.Restore(number, r.Value[0])
		l.sender.Restore(mail.Attempt{Lane: frame.Direct, Number: number})
		return nil
	}
	f, rest, err := frame.Parse(r.Value)
	part, ok := f.(frame.Piece)
	if err != nil || !ok || len(rest) > 0 {
		return mail.ErrRecord
	}
	l.joiner.Add(number, part)
	return nil
}
