package mail

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"aldis/internal/gateway/mail/history"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// The operator's orders about a message concern it as it waits for a recipient: whether it is held, and its precedence. The
// journal has them for each recipient, apart from the message, which stays as its sender gave it. A message that waits with
// another precedence is a copy of the message, under the same ID: for a recipient to which it is under way it stays as it
// was, because its flow is part of what was sent.

// ordered has the operator's orders about a message for one recipient.
type ordered struct {
	hold       bool
	precedence site.Precedence
	changed    bool // the precedence is the operator's
}

const (
	orderedHold    = 1 << 0
	orderedChanged = 1 << 1
)

func (o ordered) append(b []byte) []byte {
	flags := byte(0)
	if o.hold {
		flags |= orderedHold
	}
	if o.changed {
		flags |= orderedChanged
	}
	return append(b, flags, byte(o.precedence))
}

func parseOrdered(b []byte) (*ordered, error) {
	if len(b) != 2 || b[0] > orderedHold|orderedChanged || site.Precedence(b[1]) > site.Deferred {
		return nil, ErrRecord
	}
	return &ordered{b[0]&orderedHold != 0, site.Precedence(b[1]), b[0]&orderedChanged != 0}, nil
}

// recallOrders applies to an entry from the journal the orders about it.
func (s *Store) recallOrders(e *Entry, o *ordered) {
	if o == nil || e.Content.Payload == nil {
		return
	}
	e.ordered = true
	if o.changed && o.precedence != e.Content.Payload.Precedence {
		if copied, err := e.Message.With(o.precedence); err == nil {
			e.Message = copied
		}
	}
	e.OnHold = o.hold && (e.At.Number == 0 || e.Queue == Group)
}

// recordOrders makes the orders about an entry durable.
func (s *Store) recordOrders(e *Entry) {
	o := ordered{hold: e.OnHold, precedence: e.Content.Payload.Precedence}
	if m := s.byID[e.ID]; m != nil {
		o.changed = m.Content.Payload.Precedence != o.precedence
	}
	var value []byte
	if o.hold || o.changed {
		value = o.append(nil)
	}
	if value != nil || e.ordered {
		s.services.Record(bucketOrdered, toKey(e), value)
	}
	e.ordered = value != nil
}

// With is a copy of a message that has another precedence. Its recipients are common to both.
func (m *Message) With(p site.Precedence) (*Message, error) {
	payload := *m.Content.Payload
	payload.Precedence = p
	copied := *m
	copied.Content.Payload = &payload
	var err error
	copied.Full, err = envelope.Append(nil, copied.Content, 0, true)
	return &copied, err
}

// Hold keeps an entry back that waits, or lets it go again, to its place. If the entry has a number, the caller has seen to the
// carrier.
func (s *Store) Hold(e *Entry, on bool) {
	if e.OnHold == on {
		return
	}
	if e.At.Number == 0 {
		e.Peer.Box.pull(e)
		e.OnHold = on
		e.Peer.Box.push(e)
	} else {
		e.OnHold = on
	}
	s.recordOrders(e)
	state := history.Waiting
	if on {
		state = history.OnHold
	}
	s.Lives.State(e.ID, e.Peer.ID, state)
}

// Precede gives an entry that waits another precedence: it goes behind entries of that precedence that were accepted before it.
func (s *Store) Precede(e *Entry, p site.Precedence) error {
	copied, err := e.Message.With(p)
	if err != nil {
		return err
	}
	s.exchange(e, copied)
	return nil
}

// Exchange puts a copy of a message into its place for all recipients to which it goes under this number.
func (s *Store) Exchange(of *Message, at TransmissionID, copied *Message) {
	for _, id := range of.Recipients() {
		if e := of.to[id]; e.At == at {
			s.exchange(e, copied)
		}
	}
}

func (s *Store) exchange(e *Entry, copied *Message) {
	was := e.Message
	e.Peer.Box.pull(e)
	e.Message, e.Coded, e.Learned = copied, false, false
	if key := was.supersedes(); key != "" && e.history.latest[key] == was {
		e.history.latest[key] = copied
	}
	if e.At.Number == 0 {
		e.Peer.Box.push(e)
	} else {
		e.Peer.Box.underWay[e.At] = e
		e.Peer.Box.octets[e.Queue] += len(e.Full)
	}
	s.recordOrders(e)
}

// Recipients are the peers for which a message has not ended, by id.
func (m *Message) Recipients() (ids []uint16) {
	for id := range m.to {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// reapplyOrders gives an entry that goes again under another ID the orders about the message before.
func (s *Store) reapplyOrders(e *Entry) {
	before := s.again[e.Content.Payload]
	if before == nil || e.Content.Payload == nil {
		return
	}
	s.Lives.End(before.ID, e.Peer.ID, history.Again, "as "+history.Name(e.ID)+": the site begins anew")
	e.OnHold = before.OnHold
	if e.OnHold {
		s.recordOrders(e)
		s.Lives.State(e.ID, e.Peer.ID, history.OnHold)
	}
}

// Get is the message with this ID that is in custody; nil: none is.
func (s *Store) Get(id uint64) *Message { return s.byID[id] }

// Newest is the message that was made last; nil: it is not in custody.
func (s *Store) Newest() *Message { return s.byID[s.next] }

// HeldBack counts the messages of a rank that the operator holds.
func (b *PeerQueue) HeldBack(rank int) (n int) {
	for _, e := range b.onHold {
		if e.Rank() == rank {
			n++
		}
	}
	for a, e := range b.underWay {
		if a.Queue == Group && e.OnHold && e.Rank() == rank {
			n++
		}
	}
	return n
}

// listOnHold are the entries for a peer that the operator holds, by urgency.
func (b *PeerQueue) listOnHold() (list []*Entry) {
	for _, e := range b.onHold {
		list = append(list, e)
	}
	slices.SortFunc(list, byUrgency)
	return list
}

// toOf is where a message goes: a pipe or topic, or an endpoint and which part of it.
func toOf(p *site.Message) string {
	switch {
	case p.Topic != "":
		return p.Topic
	case p.Param != "":
		return p.To + " " + p.Param
	}
	return p.To
}

// begin notes in the life of a message that it is in custody for a recipient.
func (s *Store) begin(e *Entry) {
	p := e.Content.Payload
	if p == nil || p.Adapter == site.Relay { // the life of a message is with its origin
		return
	}
	if s.Lives.Get(e.ID) == nil {
		l := history.Life{ID: e.ID, Adapter: p.Adapter, From: p.From, To: toOf(p), Label: p.About(), Precedence: p.Precedence, Octets: len(e.Full),
			Accepted: e.Accepted, Expires: p.Expires}
		s.Lives.Begin(l)
	}
	s.Lives.For(e.ID, e.Peer.ID, e.Stands())
}

// Stands is the state of a message that has not ended for a recipient.
func (e *Entry) Stands() history.State {
	switch {
	case e.OnHold:
		return history.OnHold
	case e.At.Number != 0 && (e.Queue != Group || e.Gone):
		return history.UnderWay
	}
	return history.Waiting
}

// fates are the final states of lives, by Fate.
var fates = [...]history.State{Delivered: history.Delivered, Expired: history.Expired, Refused: history.Refused, Cancelled: history.Cancelled, Superseded: history.Superseded}

// tellLife notes how a message ends for a recipient. One that begins anew ends when the new one has been accepted.
func (s *Store) tellLife(e *Entry, fate Fate) {
	if e.Content.Payload == nil {
		return
	}
	if fate == Reissued {
		if s.again == nil {
			s.again = map[*site.Message]*Entry{}
		}
		s.again[e.Content.Payload] = e
		return
	}
	s.Lives.End(e.ID, e.Peer.ID, fates[fate], "")
}

// Aired notes that octets of a message went on the air to its recipient.
func (s *Store) Aired(e *Entry, octets, company int, again bool) {
	if e.Content.Payload != nil {
		s.Lives.Aired(e.ID, e.Peer.ID, octets, company, again)
	}
}

// Arrived notes that a recipient has a message, and waits for one before it.
func (s *Store) Arrived(e *Entry) {
	if e.Content.Payload != nil {
		s.Lives.Note(e.ID, history.Event{What: history.Arrived, Peer: e.Peer.ID})
	}
}

// Passed notes that another gateway has taken a message for its recipient, and has it from now on.
func (s *Store) Passed(e *Entry, by string) {
	if e.Content.Payload != nil {
		s.Lives.Note(e.ID, history.Event{What: history.Passed, Peer: e.Peer.ID, Detail: by})
	}
}

// Turn brings the store to now. Messages that were to be accepted again in the turn before have been, or never are.
func (s *Store) Turn(now time.Time) {
	s.Lives.Turn(now)
	if len(s.again) == 0 {
		return
	}
	left := slices.SortedFunc(maps.Values(s.again), func(a, b *Entry) int { return cmp.Compare(a.ID, b.ID) })
	for _, e := range left {
		s.Lives.End(e.ID, e.Peer.ID, history.Cancelled, "the site begins anew, and the queue for it is full")
	}
	clear(s.again)
}

// single are orders for messages that go to each recipient by itself.
type single struct{ store *Store }

// Orders for messages that go to each recipient by itself: they wait in the Store.
func (s *Store) Orders() Orders { return single{s} }

func (single) Together() bool        { return false }
func (single) Waits(e *Entry) bool   { return e.At.Number == 0 }
func (o single) Whole(e *Entry) bool { return !o.Waits(e) }

func (o single) Hold(_ time.Time, e *Entry, on bool)                    { o.store.Hold(e, on) }
func (o single) Cancel(_ time.Time, e *Entry)                           { o.store.End(e, Cancelled) }
func (o single) Precede(_ time.Time, e *Entry, p site.Precedence) error { return o.store.Precede(e, p) }

func (single) Queue(_ time.Time, p *Peer) Queued {
	return Queued{Places: p.Box.Places(make([]Place, 0, p.Box.Waiting(frame.Direct, frame.Bulk))), UnderWay: p.Box.UnderWayOctets()}
}

func (single) Ahead(_ time.Time, p *Peer) int { return p.Box.UnderWayOctets() }
