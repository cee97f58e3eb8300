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

// cut is the messages that go in pieces to one peer.
type cut struct {
	piece.Cutter
	unasked int  // octets of pieces since a receipt was asked for
	passed  int  // datagrams without a piece since the last with one, while pieces waited
	strays  bool // a long message may be under way of which neither libnorm nor the Cutter knows
}

// strikes is how often a peer has to say that it has all pieces of a message but not the message, before that goes anew.
const strikes = 3

// pieces cuts the long messages of a line, and joins those of its peer.
type pieces struct {
	c *Carrier
	l *line
}

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

// Progress is how many octets of a long message are at the peer, and how many it has as coded; 0, 0: it does not go in pieces.
func Progress(c *Carrier, e *mail.Entry) (there, all int) {
	if e.At.Number == 0 || e.At.Lane != frame.Bulk {
		return 0, 0
	}
	return c.lines[e.Peer.ID].cut.Progress(e.At.Number)
}

// ready says whether a piece may go.
func (p pieces) ready() bool {
	_, _, open := p.l.cut.Next()
	return open && p.l.mayCut()
}

// startBulk begins the long messages that the window has room for: it cuts them in pieces, or gives them to libnorm.
func (p pieces) startBulk(now time.Time) {
	p.goOn(now)
	for {
		e := p.next()
		if e == nil || !e.Coded {
			return
		}
		at := mail.Attempt{Lane: frame.Bulk, Number: p.l.sender.Next(frame.Bulk)}
		e = p.c.assign(p.l, at, e.Message)
		p.begin(now, e)
		p.l.audience.SentLong(e.Content.Payload, at.Number)
	}
}

// next is the next long message that may begin; nil: there is none.
func (p pieces) next() *mail.Entry {
	if e := p.l.first(frame.Bulk); e != nil && (p.c.norm.up || p.l.inPieces(e)) {
		return e
	}
	return nil
}

// begin begins a long message that has its number, for the first time or anew. One that is more urgent than what is half cut
// is read before that, and so spells its flow out.
func (p pieces) begin(now time.Time, e *mail.Entry) {
	c, l := p.c, p.l
	_, rank, open := l.cut.Next()
	free := open && e.Rank() > rank && l.inPieces(e)
	flow, spells := l.audience.Long(e.Content.Payload, e.At.Number)
	texts := c.Road.Texts(l.Peer)
	if !free {
		l.audience.EncodeLong(texts, e.Content.Payload, e.At.Number)
	}
	body := c.pack(e.Message, flow, spells || free, texts)
	switch {
	case l.inPieces(e) && len(body) <= piece.MaxObject:
		l.cut.Begin(e.At.Number, e.Rank(), free, body)
		l.sender.Sent(now, e.At)
	case c.norm.up:
		c.enqueueObject(now, l, e, body)
	default:
		l.cut.strays = true
	}
}

// goOn begins anew with messages that have their number and are in nobody's hands: after a restart, or when the peer has another
// version now.
func (p pieces) goOn(now time.Time) {
	l := p.l
	if !l.Met.Pieces {
		for _, number := range l.cut.All() {
			l.cut.End(number)
			l.cut.strays = true
		}
	}
	if !l.cut.strays {
		return
	}
	l.cut.strays = false
	for _, e := range l.Box.UnderWay(frame.Bulk) {
		n, cuts := e.At.Number, l.inPieces(e)
		switch {
		case e.Held || l.long.under[n] != nil || l.cut.Has(n):
		case cuts && !l.Met.KnowsUs, !cuts && !p.c.norm.up:
			l.cut.strays = true
		default:
			p.begin(now, e)
		}
	}
}

// turn says whether a piece goes before short messages: it has waited enough, it is more urgent, or its source has the turn.
func (p pieces) turn() bool {
	l := p.l
	number, rank, ok := l.cut.Next()
	next := l.first(frame.Direct)
	switch {
	case !ok || next == nil:
		return false
	case rank != next.Rank():
		return rank > next.Rank()
	case l.cut.passed >= mostDirect:
		return true
	}
	e := l.Box.At(mail.Attempt{Lane: frame.Bulk, Number: number})
	return e != nil && l.Box.Yields(next, e)
}

// spares says whether a letter goes as it is, though it has room for a piece: where short messages fill less than half of it, a
// piece behind them would keep them on the air twice as long. Where the bill has units the rest of a unit costs nothing, and the
// letter is filled all the same.
func (p pieces) spares(to *letter) bool {
	short := slices.ContainsFunc(to.frames, func(f frame.Frame) bool {
		_, data := f.(frame.Data)
		return data
	})
	spares := short && p.c.Profile.UnitOctets == 0 && to.budget > p.c.Profile.Filled()/2
	if spares && p.ready() {
		p.l.cut.passed++
	}
	return spares
}

// fill puts pieces into a letter until it is full; false: it got none.
func (p pieces) fill(now time.Time, to *letter) (any bool) {
	l := p.l
	for {
		p.startBulk(now)
		number, rank, ok := l.cut.Next()
		if !ok || !l.mayCut() {
			break
		}
		to.hurries(rank, p.c.Profile.Filled())
		f, last, ok := l.cut.Cut(min(to.budget+p.riding(to), p.most()) - p.head(to))
		if !ok {
			break
		}
		at := mail.Attempt{Lane: frame.Direct, Number: l.sender.Next(frame.Direct)}
		f.Prompt = p.asks(len(f.Body), last)
		if !p.add(now, to, at, f, number, mail.Payload) {
			break
		}
		any = true
	}
	if any {
		l.cut.passed = 0
	} else if p.ready() {
		l.cut.passed++
	}
	return any
}

// most is what a piece's frame may take, so that it fits a datagram when it goes again with a number of 16 bits and a receipt.
func (p pieces) most() int { return p.c.Profile.Filled() - seal.OverheadShort - 2 }

// head is what stands before a piece's body, and riding the room of the receipt that it takes along.
func (p pieces) head(to *letter) int {
	head := 3
	if !p.l.sender.Short(mail.Attempt{Lane: frame.Direct, Number: p.l.sender.Next(frame.Direct)}) {
		head++
	}
	if to.ride != nil {
		head++
	}
	return head
}

func (p pieces) riding(to *letter) int {
	if to.ride == nil {
		return 0
	}
	return size(*to.ride)
}

// asks says whether a piece of so many octets asks for a receipt at once: when half of what may be under way has gone since
// the last that did, and when it is the end of all that waits.
func (p pieces) asks(octets int, last bool) bool {
	l := p.l
	return l.cut.unasked+octets >= l.held || last && l.Box.Waiting(frame.Direct, frame.Bulk) == 0 && l.cut.Open() == 1
}

// add puts a piece under a number into a letter, for the first time or again.
func (p pieces) add(now time.Time, to *letter, at mail.Attempt, f frame.Piece, object uint64, kind mail.Kind) bool {
	c, l := p.c, p.l
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
		l.cut.Gave(at.Number, f)
		c.Road.Record(bucketCut, p.key(at.Number), []byte{f.Object})
		c.RecordPeer(l.Peer)
	}
	if l.cut.unasked += len(f.Body); f.Prompt {
		l.unasked, l.silent, l.cut.unasked = 0, 0, 0
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

// again puts a piece that was lost into a letter; false: it does not fit.
func (p pieces) again(now time.Time, to *letter, at mail.Attempt) bool {
	f, object, _ := p.l.cut.Again(at.Number)
	f.Prompt = p.l.cut.Open() == 0 && p.l.Box.Waiting(frame.Direct, frame.Bulk) == 0
	if !p.l.Met.Pieces { // it has an older version now, and waits for the number
		return p.void(now, to, at)
	}
	if !p.add(now, to, at, f, object, mail.Repair) {
		return false
	}
	p.l.Counts.Repeated++
	return true
}

// void puts a message without content into a letter, in the place of a piece.
func (p pieces) void(now time.Time, to *letter, at mail.Attempt) bool {
	body, err := envelope.Append(nil, envelope.Message{Void: []envelope.Hash{{}}}, 0, true)
	if err != nil {
		panic(err) // it has neither text nor document
	}
	if !to.addRiding(frame.Data{Number: uint16(at.Number), Body: body}, mail.Repair) {
		return false
	}
	p.l.sender.Sent(now, at)
	return true
}

// arrived notes that the peer has what has this number, if it is a piece; acked: and all before it.
func (p pieces) arrived(at mail.Attempt, acked bool) {
	if at.Lane == frame.Direct && p.l.cut.Arrived(at.Number, acked) && acked {
		p.c.Road.Record(bucketCut, p.key(at.Number), nil)
	}
}

// missed is called when the peer has said what it has. A message of which it has all pieces, and which it has not, goes anew.
func (p pieces) missed(now time.Time) {
	for _, number := range p.l.cut.Strike(strikes) {
		p.l.cut.End(number)
		p.l.cut.strays = true
		p.l.Counts.Repeated++
	}
	p.goOn(now)
}

// join takes a piece of the peer in its turn.
func (p pieces) join(now time.Time, number uint64, body []byte) {
	c, l := p.c, p.l
	f, _, err := frame.Parse(body)
	part, ok := f.(frame.Piece)
	if err != nil || !ok {
		c.Road.Drop("piece_record")
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
		c.Road.Record(bucketPiece, p.key(n), nil)
	}
	if kept {
		c.Road.Record(bucketPiece, p.key(number), body)
	}
	for range gaveUp {
		c.Road.Drop("piece_room")
	}
	switch {
	case err == piece.ErrLarge:
		c.Road.Drop("piece_large")
	case err != nil:
		c.Road.Drop("piece_orphan")
	}
	if whole == nil {
		return
	}
	id, fresh := l.receiver.AcceptRiding(now, frame.Bulk, low)
	switch fresh {
	case custody.New:
		c.arrived(now, l, mail.Arrival{Place: id, Number: id.Number, Body: whole.Body, Free: whole.Free})
	case custody.Duplicate:
		l.Counts.Duplicates++
	case custody.Beyond:
		c.Road.Drop("beyond_window")
	}
}

// clear forgets what goes to the peer: it begins anew.
func (p pieces) clear() {
	for _, at := range p.l.cut.Numbers() {
		p.c.Road.Record(bucketCut, p.key(at), nil)
	}
	p.l.cut = cut{}
}

// forget forgets what has come in pieces: the peer begins anew.
func (p pieces) forget() {
	for _, number := range p.l.joiner.Clear() {
		p.c.Road.Record(bucketPiece, p.key(number), nil)
	}
}

func (p pieces) key(number uint64) []byte {
	return binary.BigEndian.AppendUint64(peerKey(p.l.ID), number)
}

// restore takes a record of either bucket; those of a peer come by number.
func (p pieces) restore(r api.Record) error {
	if len(r.Key) != 10 {
		return mail.ErrRecord
	}
	number := binary.BigEndian.Uint64(r.Key[2:])
	if r.Bucket == bucketCut {
		if len(r.Value) != 1 {
			return mail.ErrRecord
		}
		p.l.cut.Restore(number, r.Value[0])
		p.l.sender.Restore(mail.Attempt{Lane: frame.Direct, Number: number})
		return nil
	}
	f, rest, err := frame.Parse(r.Value)
	part, ok := f.(frame.Piece)
	if err != nil || !ok || len(rest) > 0 {
		return mail.ErrRecord
	}
	p.l.joiner.Add(number, part)
	return nil
}
