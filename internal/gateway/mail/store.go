package mail

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/ground/due"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// Fate is the final state of a message for one recipient.
type Fate uint8

// The fates: all but Delivered mean that the recipient will not get it.
const (
	Delivered  Fate = iota // the recipient has it in its store
	Expired                // its time was over
	Refused                // not accepted
	Cancelled              // given up for a more urgent one, or by an order
	Superseded             // a newer one has taken its place
	Reissued               // the recipient has a new store: it begins again as another message
)

// Store holds every message of this site that has not ended for everybody. It is not for concurrent use.
type Store struct {
	services Services
	ended    func(*Entry, Fate)
	most     int    // octets for one peer in queues of its own
	next     uint64 // ID of the last message
	byID     map[uint64]*Message
	Lives    history.Lives
	again    map[*site.Message]*Entry // in this turn: ended Reissued, and to be accepted again
	// Elsewhere is called with each attempt under way whose message has arrived on another bearer. It calls Void or Drop.
	Elsewhere func(*Entry)
}

// NewStore makes a store whose IDs are those of this start: incarnation is new at every start. most bounds the octets held for
// one peer, ended is called once for each message and recipient.
func NewStore(services Services, incarnation uint32, most int, ended func(*Entry, Fate)) *Store {
	return &Store{services: services, ended: ended, most: most, next: uint64(incarnation) << 32, byID: map[uint64]*Message{}}
}

// New makes a message of content. It is in custody from Wait or Start on.
func (s *Store) New(content envelope.Message, kind Kind) (*Message, error) {
	full, err := envelope.Append(nil, content, 0, true)
	if err != nil {
		return nil, err
	}
	s.next++
	return &Message{ID: s.next, Content: content, Full: full, Kind: kind, to: map[uint16]*Entry{}}, nil
}

// Wait takes a message into custody for a peer that its carrier reaches in this queue, in the place of an older one of
// the same key. Nil: there is no room for it.
func (s *Store) Wait(now time.Time, p *Peer, m *Message, queue frame.Queue, a *SharedHistory) *Entry {
	e := &Entry{Message: m, Peer: p, Queue: queue, Order: m.ID, history: a}
	octets := len(m.Full)
	if older := a.older(m, p); older != nil {
		octets -= len(older.Full)
	}
	if !s.makeRoom(now, e, octets) {
		return nil
	}
	if older := a.older(m, p); older != nil { // it may have made room
		// The newer one takes its place, and keeps it after a restart: otherwise a message that is often replaced would never go.
		e.Order = older.Order
		s.End(older, Superseded)
	}
	s.hold(e)
	s.reapplyOrders(e)
	p.Box.push(e)
	a.Newest(m)
	s.record(e)
	return e
}

// Start notes that a carrier has given a message its number towards a peer.
func (s *Store) Start(p *Peer, m *Message, at TransmissionID, a *SharedHistory) *Entry {
	e := m.to[p.ID]
	switch {
	case e == nil:
		e = &Entry{Message: m, Peer: p, history: a}
		s.hold(e)
	case e.history == nil: // it comes from another bearer, and did not wait here
		e.history = a
	default:
		p.Box.pull(e)
		a.gone(m)
	}
	e.At, e.Queue = at, at.Queue
	p.Box.underWay[at] = e
	p.Box.octets[e.Queue] += len(m.Full)
	s.record(e)
	if e.Queue != Group { // there it still waits
		s.Lives.State(m.ID, p.ID, history.UnderWay)
	}
	return e
}

// Move puts an entry that waits into another queue.
func (s *Store) Move(e *Entry, queue frame.Queue) {
	e.Peer.Box.pull(e)
	e.Queue = queue
	e.Peer.Box.push(e)
}

// End is the one place where a message ends for a recipient: it is counted, forgotten, and told to the gateway.
func (s *Store) End(e *Entry, fate Fate) {
	if e.attempts != nil && fate != Delivered {
		s.Drop(e) // an attempt that has been on the air goes on
		return
	}
	defer s.settle(e.attempts, e)
	p, m := e.Peer, e.Message
	s.tellLife(e, fate)
	p.Box.pull(e)
	p.Pace.ended(s.Lives.Now(), e, fate)
	s.forget(e)
	e.history.gone(m)
	switch {
	case fate == Delivered && m.Content.Payload != nil:
		p.Counts.Delivered++
	case fate == Expired && m.Content.Payload != nil:
		p.Counts.Expired++
	case fate == Superseded:
		p.Counts.Superseded++
	case fate == Cancelled:
		p.Counts.Cancelled++
	}
	s.ended(e, fate)
}

// Clear ends the entries held for a peer in queues of its own, because the peer knows nothing of them, and returns them in the
// order in which they should go again.
func (s *Store) Clear(p *Peer) (again []*Entry) {
	for _, e := range p.Box.all() {
		if e.attempts == nil {
			again = append(again, e)
		}
		s.End(e, Reissued)
	}
	p.Box.expiry = time.Time{}
	return again
}

// Cancel ends the entries held for a peer in queues of its own: nothing goes there any more. detail says why in the lives.
func (s *Store) Cancel(p *Peer, detail string) {
	for _, e := range p.Box.all() {
		if e.Content.Payload != nil {
			s.Lives.End(e.ID, p.ID, history.Cancelled, detail)
		}
		s.End(e, Cancelled)
	}
	p.Box.expiry = time.Time{}
}

// makeRoom gives up messages less urgent than e, the least urgent and newest first, until octets more have room; then
// the newest equally urgent ones of the source that has the most waiting, as long as it has more than that of e. It gives up
// nothing if all this would not do.
func (s *Store) makeRoom(now time.Time, e *Entry, octets int) bool {
	p, b := e.Peer, &e.Peer.Box
	over := b.own() + octets - s.most
	if over <= 0 {
		return true
	}
	g := b.giving()
	var less, others []*Entry
	for rank := 0; rank < e.Rank() && over > 0; rank++ {
		for o := g.newest(rank); o != nil && over > 0; o = g.newest(rank) {
			less = append(less, o)
			over -= len(o.Full)
		}
	}
	for over > 0 && e.Content.Payload != nil {
		o := g.largest(e, octets)
		if o == nil {
			return false
		}
		others = append(others, o)
		over -= len(o.Full)
	}
	if over > 0 {
		return false
	}
	for _, o := range append(less, others...) {
		s.End(o, Cancelled)
	}
	s.noteGivenUp(now, p, &b.gaveUp, len(less), "waiting messages were cancelled for more urgent ones: the queue for the peer is full")
	s.noteGivenUp(now, p, &b.shared, len(others),
		"waiting messages were cancelled: the queue for the peer is full, and other local peers have less in it")
	return true
}

func (s *Store) noteGivenUp(now time.Time, p *Peer, t *tally, n int, text string) {
	t.n += n
	if t.n > 0 && now.Sub(t.said) >= time.Minute {
		s.services.Note("warn", text, "peer", p.Name, "given_up", t.n, "waiting_octets", p.Box.own())
		*t = tally{said: now}
	}
}

// Expire ends messages that wait for a peer and are no longer worth sending. Those that have been on the air are carried through.
func (s *Store) Expire(now time.Time, p *Peer) {
	b := &p.Box
	if !due.Reached(now, b.expiry) {
		return
	}
	b.expiry = time.Time{}
	var over []*Entry
	look := func(e *Entry) {
		if at := e.expires(); at.IsZero() || now.Before(at) {
			b.expiry = due.Earliest(b.expiry, at)
		} else {
			over = append(over, e)
		}
	}
	for queue := range b.waiting {
		b.waiting[queue].all(look)
	}
	for _, e := range b.onHold { // the order does not matter: they are sorted
		look(e)
	}
	slices.SortStableFunc(over, byUrgency)
	for _, e := range over {
		s.End(e, Expired)
	}
	b.expired.n += len(over)
	if b.expired.n > 0 && now.Sub(b.expired.said) >= time.Minute {
		s.services.Note("warn", "waiting messages expired before their turn", "peer", p.Name, "expired", b.expired.n)
		b.expired = tally{said: now}
	}
}

// Due is when Expire has something to do for a peer; zero: never.
func (s *Store) Due(p *Peer) time.Time { return p.Box.expiry }

// Journal buckets of the store. A message is written once; what changes for a recipient is eighteen octets.
const (
	bucketMail = "mail" // id -> envelope in full, when it was accepted
	bucketTo   = "to"   // peer, id -> queue, number (0: it waits), order, flags

	bucketOrdered = "ordered" // peer, id -> the operator's orders about it (ordered.append)
)

const flagSpelt = 1 << 0

func (s *Store) hold(e *Entry) {
	if len(e.to) == 0 {
		s.byID[e.ID] = e.Message
		e.Accepted = s.Lives.Now()
		s.services.Record(bucketMail, binary.BigEndian.AppendUint64(nil, e.ID), envelope.AppendAccepted(slices.Clone(e.Full), e.Accepted))
	}
	e.to[e.Peer.ID] = e
	s.begin(e)
}

func (s *Store) forget(e *Entry) {
	delete(e.to, e.Peer.ID)
	s.services.Record(bucketTo, toKey(e), nil)
	if e.ordered {
		s.services.Record(bucketOrdered, toKey(e), nil)
	}
	if m := s.byID[e.ID]; m == nil || len(e.to)+m.unknown == 0 {
		delete(s.byID, e.ID)
		s.services.Record(bucketMail, binary.BigEndian.AppendUint64(nil, e.ID), nil)
	}
}

func toKey(e *Entry) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16(nil, e.Peer.ID), e.ID)
}

// toOctets is the length of the record of an attempt on the bearer without a name, if it is the only one. Otherwise the name of its
// bearer stands behind each, with its length before it.
const toOctets = 18

func (s *Store) record(e *Entry) {
	var value []byte
	list := e.attempts.all(e)
	for _, e := range list {
		value = binary.BigEndian.AppendUint64(append(value, byte(e.Queue)), e.At.Number)
		value = binary.BigEndian.AppendUint64(value, e.Order)
		flags := byte(0)
		if e.Defines {
			flags |= flagSpelt
		}
		value = append(value, flags)
		if name := e.Peer.Bearer.Name; name != "" || len(list) > 1 {
			value = append(append(value, byte(len(name))), name...)
		}
	}
	s.services.Record(bucketTo, toKey(e), value)
}

// Restored is a message for a recipient as the journal has it.
type Restored struct {
	Peer      uint16
	ID        uint64
	At        TransmissionID // Number 0: it waits
	Order     uint64
	DefinedIn bool
	Fresh     bool   // it comes from a journal of version 0.1, under an ID that is new
	Bearer    string // the name of the one that it waits for, or is under way on
	try       int    // its place among the attempts of its message

	ordered *ordered // by the operator; nil: nothing
}

// Restore takes the store's own records and returns the messages for each recipient. The caller calls Resume or Leave with each of
// them. refuse hears of a record that cannot be used; Restore goes on without it, unless refuse returns an error.
func (s *Store) Restore(records []api.Record, refuse func(api.Record, error) error) (list []Restored, err error) {
	var waits []api.Record // of list, those that may lack their content
	orders := map[string]*ordered{}
	for _, r := range records {
		var err error
		switch {
		case r.Bucket == bucketMail && len(r.Key) == 8:
			err = s.recall(binary.BigEndian.Uint64(r.Key), r.Value)
		case r.Bucket == bucketTo && len(r.Key) == 10:
			var tries []Restored
			tries, err = parseTo(r)
			for _, one := range tries {
				list, waits = append(list, one), append(waits, r)
			}
		case r.Bucket == bucketOrdered && len(r.Key) == 10:
			orders[string(r.Key)], err = parseOrdered(r.Value)
		case r.Bucket == bucketMail, r.Bucket == bucketTo, r.Bucket == bucketOrdered:
			err = ErrRecord
		}
		if err != nil {
			if err = refuse(r, err); err != nil {
				return nil, err
			}
		}
	}
	whole := list[:0]
	for i, r := range list {
		r.ordered = orders[string(waits[i].Key)]
		switch {
		case s.byID[r.ID] != nil:
		case r.At.Number != 0:
			s.fill(r.ID)
		default:
			if err := refuse(waits[i], ErrContent); err != nil {
				return nil, err
			}
			continue
		}
		whole = append(whole, r)
	}
	return whole, nil
}

// ErrContent says that a message waits for a peer and its content is not there.
var ErrContent = errors.New("gateway: the content of a message is lost")

// fill puts an empty message in the place of one that is under way and whose content is lost: its peer waits for the
// number.
func (s *Store) fill(id uint64) {
	full := Nothing()
	if s.recall(id, full) == nil {
		s.services.Record(bucketMail, binary.BigEndian.AppendUint64(nil, id), full)
	}
}

// Adopt takes a message of a journal of version 0.1 and gives it an ID.
func (s *Store) Adopt(full []byte) (id uint64, err error) {
	s.next++
	if err := s.recall(s.next, full); err != nil {
		return 0, err
	}
	s.services.Record(bucketMail, binary.BigEndian.AppendUint64(nil, s.next), full)
	return s.next, nil
}

// parseTo reads what record wrote.
func parseTo(r api.Record) (list []Restored, err error) {
	value := r.Value
	for len(list) == 0 || len(value) > 0 {
		if len(value) < toOctets || value[0] >= queues {
			return nil, ErrRecord
		}
		one := Restored{Peer: binary.BigEndian.Uint16(r.Key), ID: binary.BigEndian.Uint64(r.Key[2:]),
			At:    TransmissionID{Queue: frame.Queue(value[0]), Number: binary.BigEndian.Uint64(value[1:])},
			Order: binary.BigEndian.Uint64(value[9:]), DefinedIn: value[17]&flagSpelt != 0, try: len(list)}
		if value = value[toOctets:]; len(value) > 0 {
			n := 1 + int(value[0])
			if n > len(value) {
				return nil, ErrRecord
			}
			one.Bearer, value = string(value[1:n]), value[n:]
		}
		list = append(list, one)
	}
	return list, nil
}

func (s *Store) recall(id uint64, full []byte) error {
	full, accepted := envelope.CutAccepted(full)
	content, _, _, err := envelope.Parse(full, nil)
	if err != nil {
		return err
	}
	m := &Message{ID: id, Content: content, Full: full, Accepted: accepted, to: map[uint16]*Entry{}}
	if content.Payload == nil {
		m.Kind = KindOf(content.Items)
	}
	s.byID[id] = m
	return nil
}

// Content is a restored message with its content.
func (s *Store) Content(r Restored) *Message { return s.byID[r.ID] }

// Resume goes on with a message: it waits in this queue, or is under way as before.
func (s *Store) Resume(r Restored, p *Peer, queue frame.Queue, a *SharedHistory) *Entry {
	m := s.byID[r.ID]
	m.Defines = r.DefinedIn
	e := &Entry{Message: m, Peer: p, Order: r.Order, Queue: queue, At: r.At, history: a, try: r.try}
	if other := m.to[p.ID]; other != nil {
		s.join(other, e)
	} else {
		m.to[p.ID] = e
	}
	s.recallOrders(e, r.ordered)
	m = e.Message
	if e.At.Number == 0 {
		p.Box.push(e)
		a.Newest(m)
	} else {
		e.Gone = true // perhaps
		p.Box.underWay[e.At] = e
		p.Box.octets[queue] += len(m.Full)
	}
	if r.Fresh {
		s.record(e)
	}
	s.begin(e)
	return e
}

// Leave keeps a message in the journal for a recipient or a carrier that is not configured now.
func (s *Store) Leave(r Restored) { s.byID[r.ID].unknown++ }

// Restarted forgets messages that are for nobody; it comes last in a restart.
func (s *Store) Restarted() {
	for id, m := range s.byID {
		if len(m.to)+m.unknown == 0 {
			delete(s.byID, id)
			s.services.Record(bucketMail, binary.BigEndian.AppendUint64(nil, id), nil)
		}
	}
}
