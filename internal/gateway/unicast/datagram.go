package unicast

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// datagramBuilder is a datagram being composed.
type datagramBuilder struct {
	budget  int           // octets left for frames
	room    int           // octets in all
	longer  time.Duration // how much longer the answer may take than timers allow, at the most
	parts   []part
	ride    *frame.Ack // room is kept for it: it goes with the first message, or else alone
	carries []carried  // the messages, or parts of messages, that it has
	hurry   bool       // the last message in it is a flash message
	full    bool       // a message had no room beside the frames before it: these go now, and the message next
}

// part is a frame of a datagram, with what its octets are charged to.
type part struct {
	frame.Frame
	kind mail.Kind
	of   *envelope.Message // that it has a part of; nil: none
}

// carried is the part of a message that a datagram has.
type carried struct {
	of     *mail.Entry
	octets int
	again  bool
}

// recordAired notes in the lives of messages that they are on the air.
func (l *datagramBuilder) recordAired(store *mail.Store) {
	for _, what := range l.carries {
		store.Aired(what.of, what.octets, len(l.carries)-1, what.again)
	}
}

// carry notes the message, or part of one, that the last frame has.
func (l *datagramBuilder) carry(e *mail.Entry, octets int, again bool) {
	l.carries = append(l.carries, carried{e, octets, again})
	l.parts[len(l.parts)-1].of = &e.Content
}

// size is how many octets f takes when another frame follows it.
func size(f frame.Frame) int { return len(frame.Append(nil, f, false)) }

// add puts f in if it fits: with another frame behind it, or at least as the last.
func (l *datagramBuilder) add(f frame.Frame, kind mail.Kind) bool {
	switch n := size(f); {
	case n <= l.budget:
		l.budget -= n
	case len(frame.Append(nil, f, true)) <= l.budget:
		l.budget = 0
	default:
		return false
	}
	l.parts = append(l.parts, part{Frame: f, kind: kind})
	return true
}

// addRiding is add for a message or a segment of one. It takes the acknowledgement along that waits for a ride.
func (l *datagramBuilder) addRiding(f frame.Frame, kind mail.Kind) bool {
	r := l.ride
	if r != nil {
		f = riding(f, uint8(r.Cumulative))
		l.ride = nil
		l.budget += size(*r)
	}
	if l.add(f, kind) {
		return true
	}
	if r != nil {
		l.ride = r
		l.budget -= size(*r)
	}
	return false
}

// riding is a frame that carries an acknowledgement.
func riding(f frame.Frame, cumulative uint8) frame.Frame {
	switch f := f.(type) {
	case frame.Data:
		f.Rides, f.Cumulative = true, cumulative
		return f
	case frame.Segment:
		f.Rides, f.Cumulative = true, cumulative
		return f
	}
	return f
}

// rides says whether a frame carries an acknowledgement.
func rides(f frame.Frame) bool {
	switch f := f.(type) {
	case frame.Data:
		return f.Rides
	case frame.Segment:
		return f.Rides
	}
	return false
}

// compose sends the next datagram to a peer; false when there is nothing that may go.
func (c *Carrier) compose(now time.Time, l *peerLink) bool {
	if l.Handshake.Unmet { // there is something for the peer
		l.Handshake.Owe(now)
	}
	probe := l.sender.ProbeDue(now)
	long := ask(now, l, probe) || l.greetsAlways()
	to := &datagramBuilder{}
	to.room, to.longer = room(now, l)
	to.budget = to.room - seal.Overhead(long)
	asks := c.TakesOver && !l.Handshake.KnowsUs && !probe // otherwise the answer waits for something to ride on
	if probe || asks {
		to.budget -= size(frame.Probe{})
	}
	if probe {
		if l.sender.Dead() { // when the probe gets through, the peer need not ask what has arrived
			l.receiver.Probed(now)
		}
	}
	if l.announce != nil {
		to.budget -= size(*l.announce)
	}
	if !l.Handshake.Ending {
		l.cut.startBulk(l, now)
	}
	refused := l.Handshake.Refused != mail.Taken
	if refused { // the peer has to know which messages of its stream are here
		l.receiver.Probed(now)
	}
	// An acknowledgement takes along this node's half of the key: an adversary that holds up the one holds up the other.
	hello := long || l.Handshake.Owed || refused || c.Lacks(l.ID) && (len(l.receiver.Acks()) > 0 || len(l.answers) > 0)
	if hello {
		to.add(c.Services.Hello(now, l.Peer), mail.Key)
		if f, ok := c.talkers(l); ok {
			to.add(f, mail.Key)
		}
		if c.Config.Beside != nil {
			for _, f := range c.Config.Beside(l.ID) {
				to.add(f, mail.Ack)
			}
		}
	}
	for _, r := range l.receiver.Acks() {
		if !refused && r.Queue == frame.Direct && len(r.Bitmap) == 0 && len(l.answers) == 0 && !c.Timing.Reorder && (!l.Handshake.Ahead || l.receiver.Byte()) && size(r) <= to.budget {
			to.ride = &r
			to.budget -= size(r)
			continue
		}
		to.add(r, mail.Ack)
	}
	for _, id := range l.answers {
		to.add(frame.Answer{ID: id}, mail.Ack)
	}
	if !l.sender.Dead() && !l.Handshake.Ending && !c.holds(l) {
		c.addMessages(now, l, to)
	}
	if to.ride != nil {
		to.precede(*to.ride)
	}
	if l.announce != nil {
		to.precede(*l.announce)
	}
	if probe {
		l.question.probe = l.sender.ProbeSent(now.Add(to.longer))
		to.precede(frame.Probe{ID: l.question.probe})
	}
	if asks {
		to.precede(frame.Probe{}) // no probe of a sender has this number so early
	}
	keepalive := *c.Keepalive > 0 && !now.Before(l.LastSent.Add(*c.Keepalive))
	if !(l.announce != nil || probe || len(l.answers) > 0 || !c.Greeting.greets(l) && due.Reached(now, l.Handshake.Due) || keepalive ||
		due.Reached(now, l.receiver.Due()) || to.full || to.carriesData()) {
		l.readyAt = time.Time{}
		return false
	}
	return c.post(now, l, to, long, hello)
}

// greetsAlways says that every datagram to a peer has a HELLO now: the peer has not heard this start, or does not know the short form's
// counter.
func (l *peerLink) greetsAlways() bool {
	return !l.Handshake.KnowsUs || l.of.Far != nil && l.of.Far(l.ID)
}

// precede puts a small frame, for which room was kept, before all others but a HELLO, which says what the others mean.
func (l *datagramBuilder) precede(f frame.Frame) {
	at := 0
	if len(l.parts) > 0 {
		if _, hello := l.parts[0].Frame.(frame.Hello); hello {
			at = 1
		}
	}
	l.parts = slices.Insert(l.parts, at, part{Frame: f, kind: mail.Ack})
}

func (l *datagramBuilder) carriesData() bool {
	for _, p := range l.parts {
		switch p.Frame.(type) {
		case frame.Data, frame.Segment, frame.NORM:
			return true
		}
	}
	return false
}

// post seals and sends a datagram, and notes that it went; false when it did not.
func (c *Carrier) post(now time.Time, l *peerLink, what *datagramBuilder, long, hello bool) bool {
	var body []byte
	sizes := make([]int, len(what.parts))
	for i, p := range what.parts {
		n := len(body)
		body = frame.Append(body, p.Frame, i == len(what.parts)-1)
		sizes[i] = len(body) - n
	}
	data, ok := c.Services.Seal(l.ID, long, body)
	if !ok {
		return false
	}
	state, payload, all := 0, false, mail.Shares{}
	for i, n := range sizes {
		p := what.parts[i]
		if rides(p.Frame) {
			l.Ledger.Add(mail.Sent, mail.Ack, 1)
			n--
		}
		var whose mail.Shares
		whose.GiveTo(p.of, n)
		all.GiveTo(p.of, n)
		l.Ledger.Charge(mail.Sent, p.kind, whose)
		switch p.kind {
		case mail.State, mail.Advertisement:
			state += n
		case mail.Payload:
			payload = true
		}
	}
	l.news.charge(now, c.shareOf(l), state, payload)
	l.Ledger.Head(mail.Sent, long)
	l.Counts.DatagramsSent++
	if hello {
		introduce(c, now, l)
		l.Handshake.Said(now, c.Greeting.prompt(l), c.Profile.ProbeInterval)
		if l.sender.IsListening() && l.Handshake.Tries() >= hellosToSilent { // the peer greets when its silence ends
			l.Handshake.Due = time.Time{}
		}
	}
	l.receiver.Settle()
	l.answers, l.announce, l.readyAt, l.LastSent = nil, nil, time.Time{}, now
	air, rate := l.Air()
	air.Sent(now, c.Profile, len(data), rate)
	what.recordAired(c.Store)
	what.aired(now, l, air)
	if payload {
		air.KeepCopy(c.Profile, l.Addr, data, l.Peer, &l.Ledger, all, long, 1, l.sender.IsListening())
	}
	c.Services.Send(l.Addr, data)
	return true
}

// hellosToSilent is how often a start of this node greets a silent peer: it may be unable to answer, its octets of the day used up.
const hellosToSilent = 3

// mostDirect is how many datagrams without NORM may go while NORM waits.
const mostDirect = 4

// bulkFirst says whether NORM goes before the direct queue: it has waited enough, or its source has the turn. Lost messages of the direct
// queue go before NORM, since all messages behind them wait at the peer.
func (l *peerLink) bulkFirst(lost bool) bool {
	if len(l.long.out) == 0 {
		return false
	}
	next := l.first(frame.Direct)
	switch {
	case next == nil:
		return l.long.passed >= mostDirect
	case next.Urgent():
		return false
	case l.long.passed >= mostDirect:
		return true
	}
	number, b := l.long.of(l.long.out[0].info.Object)
	if lost || b == nil {
		return false
	}
	e := l.Box.At(mail.TransmissionID{Queue: frame.Bulk, Number: number})
	return e != nil && l.Box.Yields(next, e)
}

// addMessages fills a datagram with lost messages, waiting messages and state, and with NORM when none of these is there or NORM goes
// first.
func (c *Carrier) addMessages(now time.Time, l *peerLink, to *datagramBuilder) {
	lost := l.sender.Lost(now)
	if l.bulkFirst(len(lost) > 0) && c.addNORM(now, l, to) {
		return
	}
	any := false
	for _, at := range lost {
		if _, _, ok := l.cut.Repeat(at.Number); ok {
			if !l.cut.repeat(l, now, to, at) {
				break
			}
			any = true
			continue
		}
		e := l.Box.At(at)
		if e == nil {
			break
		}
		alone := len(to.parts) == 0 && to.ride == nil && to.budget >= to.room-seal.OverheadShort
		to.hurries(e.Rank(), c.Profile.Filled())
		if !c.addData(now, l, to, at, e.Message, mail.Repair) {
			if alone && l.cut.outgrown(l, e) {
				continue
			}
			break
		}
		any = true
		l.Counts.Repeated++
	}
	if l.cut.turn(l) && l.cut.fill(l, now, to) {
		any = true
	}
	// New messages go behind lost ones, however urgent: the queue is read in order, so nothing is read before the lost ones.
	for e := l.first(frame.Direct); e != nil; e = l.first(frame.Direct) {
		to.hurries(e.Rank(), c.Profile.Filled())
		if !c.addData(now, l, to, mail.TransmissionID{Queue: frame.Direct, Number: l.sender.Next(frame.Direct)}, e.Message, e.Kind) {
			if to.carriesData() {
				break
			}
			if len(to.parts) > 0 && !l.greetsAlways() {
				to.full = true
				break
			}
			// It fits no datagram, though queueOf thought so, or none with a hello, and a silent peer may answer that in hours:
			// it must not stop those behind it.
			c.Store.Move(e, frame.Bulk)
			continue
		}
		any = true
	}
	if may, _ := c.mayTell(now, l); may {
		large := to.room - c.Profile.Filled() // one datagram of the usual size may be ahead of the share of news
		to.budget -= large
		for l.roomForNews() && c.addNews(now, l, to) {
			any = true
		}
		to.budget += large
	}
	if !l.cut.spares(l, to) && l.cut.fill(l, now, to) {
		any = true
	}
	if any {
		l.long.passed++
		return
	}
	c.addNORM(now, l, to)
}

// A message of flash precedence or above goes twice, so long after each other: until its loss were noticed, two round trips would
// pass. Less urgent messages make its datagrams only a little longer. docs/decisions/precedence.md.
const twiceAfter = profile.LeastCopyAfter

var flash = site.Flash.Rank()

// hurries notes that a message of this rank goes into a datagram. Behind a flash message little else has room.
func (l *datagramBuilder) hurries(rank, datagram int) {
	switch {
	case rank >= flash:
		l.hurry = true
	case l.hurry:
		l.hurry = false
		l.budget = min(l.budget, datagram/4)
	}
}

// addData puts one message into a datagram if it fits, assigning its number if it has none.
func (c *Carrier) addData(now time.Time, l *peerLink, to *datagramBuilder, at mail.TransmissionID, m *mail.Message, kind mail.Kind) bool {
	e := l.Box.At(at)
	gone := e != nil && e.Gone
	body := c.encode(now, l, at, m, gone, gone && (e.Again || e.Aired.So == 0))
	prompt := m.Content.Payload == nil // other sites wait for this site's state
	last, alone := endsBurst(l, c.Profile, e == nil, len(body)), l.sender.UnderWay(frame.Direct)+l.sender.UnderWay(frame.Bulk) == 0
	lone := alone && !prompt && l.Box.Waiting(frame.Direct, frame.Bulk) <= 1 && losesSome(l)
	weight, doubts := l.sender.Weigh(len(body)), l.sender.Asks(now)
	f := frame.Data{Number: uint16(at.Number), Short: l.sender.Short(at), Prompt: prompt || last || lone || doubts || l.asks(weight), Body: slices.Clone(body)}
	if f.Short {
		f.Number &= 0xff
	}
	f.Free, f.After = l.free(at, m)
	if f.Free && len(frame.Append(nil, f, true)) > to.budget {
		f.Free, f.After = false, 0
	}
	if !to.addRiding(f, kind) {
		return false
	}
	l.asked.went(f.Prompt, len(body), weight)
	if f.Prompt {
		l.cut.unasked = 0
	}
	if e == nil {
		e = c.assign(l, at, m, weight)
		l.given.gave(at.Number, l.Box.Oldest(frame.Direct, at.Number), m.Line())
		if flow := l.history.Flow(m.Content.Payload); flow != nil {
			l.history.Sent(flow, at.Number, m)
		}
	}
	if !e.Gone {
		e.Aired = mail.Aired{Asked: f.Prompt, Alone: alone}
	}
	e.Gone, e.Again = true, gone
	l.Box.Went(e, size(f))
	to.carry(e, size(f), kind == mail.Repair)
	went := now.Add(to.longer)
	switch {
	case m.Twice():
		l.sender.SentTwice(went, at, twiceAfter)
	case lone: // the timer is for a full datagram, which takes longer
		_, rate := l.Air()
		l.sender.SentPrompt(went.Add(-profile.Airtime(to.budget, rate)), at)
	case prompt || last:
		l.sender.SentPrompt(went, at)
	case doubts:
		l.sender.SentAsking(went, at)
	default:
		l.sender.Sent(went, at)
	}
	return true
}
