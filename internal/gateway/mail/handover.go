package mail

import (
	"cmp"
	"slices"

	"aldis/internal/gateway/mail/history"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// A message changes its bearer here: docs/decisions/bearers.md. A message that waits has no number, and goes to another Peer at no cost. A
// message under way may arrive: it stays, and a second attempt on another bearer names the first by its mark. The journal has both until one
// is acknowledged.

// attempts are the entries of one message for one recipient on several bearers, the newest last: it alone may wait.
type attempts struct{ list []*Entry }

// all are the attempts of e's message, e among them.
func (a *attempts) all(e *Entry) []*Entry {
	if a == nil {
		return []*Entry{e}
	}
	return a.list
}

// Mark names a message under way for other bearers.
func (e *Entry) Mark() envelope.Moved {
	return envelope.Moved{Bearer: e.Peer.Bearer.Mark, Stream: e.Peer.Handshake.Stream, Queue: uint8(e.At.Queue), Number: e.At.Number}
}

// On is the attempt of the entry's message on a bearer; nil: there is none.
func (e *Entry) On(p *Peer) *Entry {
	for _, one := range e.attempts.all(e) {
		if one.Peer == p {
			return one
		}
	}
	return nil
}

// On is the entry of a recipient on the bearer of p; nil: there is none.
func (m *Message) On(p *Peer) *Entry {
	if e := m.to[p.ID]; e != nil {
		return e.On(p)
	}
	return nil
}

// Spoken is the message, after which others of the flow may be coded; nil where its rest goes in its place.
func (m *Message) Spoken() *site.Message {
	if m.Content.Rest != nil {
		return nil
	}
	return m.Content.Payload
}

// Read is the message as its recipient has read it under its number: without content where a later attempt may have brought it.
func (e *Entry) Read() *Message {
	if e.attempts != nil && e.to[e.Peer.ID] != e {
		return &Message{}
	}
	return e.Message
}

// Waits says that the entry has no number, whatever its bearer.
func (e *Entry) Waits() bool { return e.At.Number == 0 }

// Seconded says that another attempt of the message waits, perhaps on the same bearer. That one must stay the newest: it has no number, so
// that no mark of a third one could name it.
func (e *Entry) Seconded() bool {
	return slices.ContainsFunc(e.attempts.all(e), func(one *Entry) bool { return one != e && one.Waits() })
}

// Tried says that another attempt of the message has been given a number: the message may have arrived by it.
func (e *Entry) Tried() bool {
	return slices.ContainsFunc(e.attempts.all(e), func(one *Entry) bool { return one != e && !one.Waits() })
}

// TakeOff takes an entry that waits off its bearer, for that of to. It is nowhere until a carrier adopts it, or back puts it where it was.
func (s *Store) TakeOff(e *Entry, to *Peer) (back func()) {
	from, queue, before, unsized := e.Peer, e.Queue, e.history, e.Unsized
	e.Peer.Box.pull(e)
	e.history.gone(e.Message)
	e.Peer, e.history, e.Coded, e.Learned, e.Unsized, e.Behind, e.Way = to, nil, false, false, false, false, nil
	return func() {
		e.Peer = from
		s.Seat(e, queue, before)
		e.Unsized = unsized
	}
}

// Again makes another attempt of an entry under way, on the bearer of to, whose carrier seats it. more are the marks of numbers that count
// as used besides the entry's own; rest, if it is not nil, goes in the place of the message.
func (s *Store) Again(e *Entry, to *Peer, more []envelope.Moved, rest *envelope.Rest) *Entry {
	next := &Entry{Message: e.Message, Peer: to, Order: e.Order, ordered: e.ordered}
	for _, one := range e.attempts.all(e) {
		next.try = max(next.try, one.try+1)
	}
	if next.Order == 0 {
		next.Order = e.ID
	}
	s.join(e, next)
	next.Content.Moved = append(next.Content.Moved, more...)
	next.Content.Rest = rest
	e.history.Leaves(e.At, e.Content.Payload)
	s.Lives.Note(e.ID, history.Event{What: history.Moved, Peer: to.ID, Detail: to.Bearer.Name})
	return next
}

// Whole lets a message go in full where its rest could not be read.
func (s *Store) Whole(e *Entry) {
	if e.Content.Rest != nil {
		copied := *e.Message
		copied.Content.Rest = nil
		e.Message = &copied
	}
}

// join makes e another attempt of the message of one. Each attempt has a copy of the message, with the marks of all attempts before it; the
// last counts. After a restart they come in any order.
func (s *Store) join(one, e *Entry) {
	a := one.attempts
	if a == nil {
		a = &attempts{list: []*Entry{one}}
		one.attempts = a
	}
	e.attempts = a
	a.list = append(a.list, e)
	slices.SortStableFunc(a.list, func(a, b *Entry) int { return cmp.Compare(a.try, b.try) })
	for i, e := range a.list {
		copied := *e.Message
		copied.Content.Moved, copied.Content.Rest, copied.Defines = nil, nil, copied.Defines && i == 0
		for _, before := range a.list[:i] {
			copied.Content.Moved = append(copied.Content.Moved, before.Mark())
		}
		if i > 0 {
			e.Message = &copied
		}
		e.to[e.Peer.ID] = e
	}
}

// Seat puts an entry that was taken off its bearer, or a new attempt, among those that wait in a queue of its new bearer.
func (s *Store) Seat(e *Entry, queue frame.Queue, a *SharedHistory) {
	e.Queue, e.history = queue, a
	e.Peer.Box.push(e)
	if e.attempts == nil { // one that may arrive otherwise is not replaced
		a.Newest(e.Message)
	}
	s.record(e)
}

// Drop ends an attempt while another one of its message goes on, or where the message has arrived and nobody waits for its number.
func (s *Store) Drop(e *Entry) {
	e.Peer.Box.pull(e)
	e.history.gone(e.Message)
	s.Undo(e)
}

// Undo takes back an attempt that was not seated.
func (s *Store) Undo(e *Entry) {
	a := e.attempts
	e.attempts = nil
	if a == nil {
		return
	}
	a.list = slices.DeleteFunc(a.list, func(one *Entry) bool { return one == e })
	last := a.list[len(a.list)-1]
	e.to[e.Peer.ID] = last
	if len(a.list) == 1 {
		last.attempts = nil
	}
	s.record(last)
}

// settle ends the other attempts of a message that has arrived.
func (s *Store) settle(a *attempts, arrived *Entry) {
	if a == nil {
		return
	}
	for _, e := range a.list {
		e.attempts = nil
		switch {
		case e == arrived:
		case e.Waits():
			e.Peer.Box.pull(e)
		default:
			s.Elsewhere(e)
		}
	}
}

// nothing is an empty message.
var nothing = envelope.Message{Void: []envelope.Hash{{}}}

// Nothing is the envelope of an empty message.
func Nothing() []byte {
	b, err := envelope.Append(nil, nothing, 0, true)
	if err != nil {
		panic(err) // it has neither text nor document
	}
	return b
}

// Void empties an attempt under way: the message has arrived, and its queue waits for the number.
func (s *Store) Void(e *Entry) {
	v, err := s.New(nothing, State)
	if err != nil {
		panic(err) // it has neither text nor document
	}
	e.Peer.Box.pull(e)
	e.Message, e.ordered, e.OnHold = v, false, false
	e.Peer.Box.underWay[e.At] = e
	e.Peer.Box.octets[e.Queue] += len(v.Full)
	s.hold(e)
	s.record(e)
}

// Movable are the entries held for the peer: those that wait, the most urgent first, and those under way with their content, in the order in
// which their sources sent them.
func (b *PeerQueue) Movable() (waiting, underWay []*Entry) {
	for i := range b.waiting {
		waiting = append(waiting, b.waiting[i].list()...)
	}
	waiting = append(waiting, b.listOnHold()...)
	slices.SortStableFunc(waiting, byUrgency)
	for _, e := range b.underWay {
		if len(e.Content.Void) == 0 {
			underWay = append(underWay, e)
		}
	}
	slices.SortFunc(underWay, func(a, b *Entry) int { return cmp.Or(cmp.Compare(a.Place(), b.Place()), cmp.Compare(a.ID, b.ID)) })
	return waiting, underWay
}

// Empty says that nothing is held for the peer.
func (b *PeerQueue) Empty() bool {
	return len(b.underWay)+len(b.onHold)+b.waiting[frame.Direct].n+b.waiting[frame.Bulk].n == 0
}

// Next is the most urgent and oldest waiting entry that ok accepts; nil: there is none.
func (b *PeerQueue) Next(ok func(*Entry) bool) *Entry {
	var list []*Entry
	for i := range b.waiting {
		list = append(list, b.waiting[i].list()...)
	}
	slices.SortStableFunc(list, byUrgency)
	if i := slices.IndexFunc(list, ok); i >= 0 {
		return list[i]
	}
	return nil
}

// Place is where an entry stands among those of its line.
func (e *Entry) Place() uint64 { return cmp.Or(e.Order, e.ID) }

// Holds says whether a message of m's line waits or is under way that stands before a place, is no less urgent, and has no newer attempt on
// another bearer.
func (b *PeerQueue) Holds(m *Message, before uint64) bool {
	if b.Empty() {
		return false
	}
	line, rank := m.Line(), m.Rank()
	for _, e := range b.underWay {
		if e.to[e.Peer.ID] == e && e.Place() < before && e.Rank() >= rank && len(e.Content.Void) == 0 && e.Line() == line { // else a newer attempt counts
			return true
		}
	}
	return b.anyWaits(func(e *Entry) bool { return e.Place() < before && e.Rank() >= rank && e.Line() == line })
}

// Any says whether the function is accepts an entry that is held for the peer.
func (b *PeerQueue) Any(is func(*Entry) bool) bool {
	for _, e := range b.underWay {
		if len(e.Content.Void) == 0 && is(e) {
			return true
		}
	}
	return b.anyWaits(is)
}

func (b *PeerQueue) anyWaits(is func(*Entry) bool) (found bool) {
	for i := range b.waiting {
		b.waiting[i].all(func(e *Entry) { found = found || is(e) })
	}
	return found
}

// Line marks the entries that wait for something on another bearer; any: there are some.
func (b *PeerQueue) Line(behind func(*Entry) bool) (any bool) {
	for i := range b.waiting {
		b.waiting[i].all(func(e *Entry) {
			e.Behind = behind(e)
			any = any || e.Behind
		})
	}
	return any
}
