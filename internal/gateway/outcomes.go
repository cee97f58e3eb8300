package gateway

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/ground/due"
	"aldis/internal/link/compact"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// DefaultWait is how long a far message waits for a local peer that is away, where no rule says otherwise.
const DefaultWait = 24 * time.Hour

// outcomes is what becomes of messages after their acknowledgements: of the peer's here, where they are handed to local peers, and
// of ours there, as far as the peer reports. docs/decisions/waiting.md.
type outcomes struct {
	services endingsRoad
	peer     *mail.Peer                  // on the first bearer
	on       func(mark uint8) *mail.Peer // on a bearer; nil: it does not reach the peer
	lives    *history.Lives

	last    uint64            // number of the newest token
	pending map[uint64]origin // of messages that wait for local peers, by token
	untold  []untold          // messages that ended here, of which the peer is to be told
	tellAt  time.Time         // when it is told; zero: there is nothing to tell
	told    time.Time         // when it was last told

	stored  []*storedMessage // ours that the peer has acknowledged, the oldest first
	byName  map[messageName]*storedMessage
	unsaid  int       // messages reported since the log last said so
	said    time.Time // when it did
	texts   map[[2]string]*correspondence
	unnamed int // reported, but unknown here
}

// endingsRoad is the part of the gateway that outcomes need.
type endingsRoad interface {
	journal
	log
	// submit gives custody a message for a peer alone; false: it was refused.
	submit(now time.Time, p *mail.Peer, content envelope.Message, kind mail.Kind) bool
	// waitsUntil is until when a message waits for local peers; zero: as long as the connection that it belongs to.
	waitsUntil(now time.Time, m *site.Message) time.Time
}

func newOutcomes(p *mail.Peer, services endingsRoad, lives *history.Lives) outcomes {
	return outcomes{services: services, peer: p, lives: lives, pending: map[uint64]origin{}, byName: map[messageName]*storedMessage{}, texts: map[[2]string]*correspondence{}}
}

// origin is how the sender of a message knows it, and in which era of its numbers that was.
type origin struct {
	store  uint32
	era    uint16
	stream uint8
	at     custody.ID
	bearer string // on which it came
}

// untold is a message of the peer that could not be handed to all who should have had it.
type untold struct {
	token uint64
	origin
	why site.Why
}

// The peer is told tellSoon after a message has ended, with all that end until then, and not again within tellAgain: a
// notice costs a dozen octets and its datagram.
const (
	tellSoon  = 10 * time.Second
	tellAgain = 5 * time.Minute
)

// Values of bucketDeliver. A message begins with its origin, since the peer's numbers may begin anew while it waits; one of
// an earlier version is the envelope alone, which begins with neither of these octets. Of one that has ended, and of which the
// peer is to be told, the value is the reason and the origin.
const (
	valueMessage = 0x00
	valueEnded   = 0xff
	valueOn      = 0x01 // before either: the name of the bearer on which it came, if that has one
	originOctets = 4 + 2 + 1 + 1 + 8
)

func (o origin) append(head ...byte) []byte {
	var b []byte
	if o.bearer != "" {
		b = append(append(b, valueOn, byte(len(o.bearer))), o.bearer...)
	}
	b = append(b, head...)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, o.store), o.era)
	b = append(b, o.stream, byte(o.at.Queue))
	return binary.BigEndian.AppendUint64(b, o.at.Number)
}

func parseOrigin(b []byte) (origin, []byte, bool) {
	if len(b) < originOctets {
		return origin{}, nil, false
	}
	return origin{store: binary.BigEndian.Uint32(b), era: binary.BigEndian.Uint16(b[4:]), stream: b[6],
		at: custody.ID{Queue: frame.Queue(b[7]), Number: binary.BigEndian.Uint64(b[8:])}}, b[originOctets:], true
}

// maxToken is the greatest number of a token of one peer.
const maxToken = 1<<48 - 1

// originOf is how a peer knows a message that came on one of its bearers.
func originOf(p *mail.Peer, at custody.ID) origin {
	return origin{p.Handshake.Store, p.Handshake.Era, p.Handshake.InStream, at, p.Bearer.Name}
}

// keep takes a message of the peer, which came on the bearer of p, into custody for local peers.
func (e *outcomes) keep(now time.Time, p *mail.Peer, m envelope.Message, at custody.ID) (site.FarMessage, error) {
	o := originOf(p, at)
	m.Payload.ID = messageID(p.ID, o)
	until := e.services.waitsUntil(now, m.Payload)
	kept := *m.Payload
	kept.Expires = until
	full, err := envelope.Append(o.append(valueMessage), envelope.Message{Payload: &kept}, 0, true)
	if err != nil {
		return site.FarMessage{}, err
	}
	t := e.token()
	e.services.Record(bucketDeliver, tokenKey(t), full)
	e.pending[t] = o
	p.Counts.Received++
	p.Counts.Pending++
	return site.FarMessage{Site: p.ID, Token: t, Message: *m.Payload, Until: until}, nil
}

// restore takes a record of bucketDeliver, its key without the peer. It adds the message to far, those that wait for local peers.
func (e *outcomes) restore(far []site.FarMessage, key, value []byte) ([]site.FarMessage, error) {
	p := e.peer
	if len(key) != 6 || len(value) == 0 {
		return far, mail.ErrRecord
	}
	t := binary.BigEndian.Uint64(append(binary.BigEndian.AppendUint16(nil, p.ID), key...))
	e.last = max(e.last, t&maxToken)
	ok := true
	o := originOf(p, custody.ID{Queue: frame.Queue(key[0]), Number: t & (1<<40 - 1)})
	o.era, o.bearer = 0, ""
	bearer := ""
	if n := 2; value[0] == valueOn {
		if len(value) > n {
			n += int(value[1])
		}
		if len(value) <= n {
			return far, mail.ErrRecord
		}
		bearer, value = string(value[2:n]), value[n:]
	}
	switch value[0] {
	case valueEnded:
		u := untold{token: t}
		if len(value) != 2+originOctets {
			return far, mail.ErrRecord
		}
		u.why = site.Why(value[1])
		u.origin, _, _ = parseOrigin(value[2:])
		u.bearer = bearer
		e.untold = append(e.untold, u)
		return far, nil
	case valueMessage:
		if o, value, ok = parseOrigin(value[1:]); !ok {
			return far, mail.ErrRecord
		}
		o.bearer = bearer
	}
	m, _, _, err := envelope.Parse(value, nil)
	if err != nil || m.Payload == nil {
		return far, errors.Join(mail.ErrRecord, err)
	}
	m.Payload.ID = messageID(p.ID, o)
	until := m.Payload.Expires
	m.Payload.Expires = time.Time{}
	e.pending[t] = o
	p.Counts.Pending++
	return append(far, site.FarMessage{Site: p.ID, Token: t, Message: *m.Payload, Until: until}), nil
}

// boundLife bounds what is left of a message's life after a restart: the clock may have gone back meanwhile.
func (e *outcomes) boundLife(now time.Time, m *site.FarMessage) {
	if most := e.services.waitsUntil(now, &m.Message); m.Until.After(most) {
		m.Until = most
	}
}

// start plans a notice of the endings that, by the journal, the peer has yet to be told.
func (e *outcomes) start(now time.Time) {
	if len(e.untold) > 0 {
		e.tellAt = now.Add(tellSoon)
	}
}

// handed: all who wait here for a message have it.
func (e *outcomes) handed(token uint64) {
	e.services.Record(bucketDeliver, tokenKey(token), nil)
	if _, pending := e.pending[token]; pending {
		delete(e.pending, token)
		e.peer.Counts.HandedOver++
		e.peer.Counts.Pending--
	}
}

// failed: somebody here will not get a message. Its sender's gateway is told, unless the end of the connection tells it anyway.
func (e *outcomes) failed(now time.Time, u site.Undelivered) {
	o, pending := e.pending[u.Token]
	if !pending {
		return
	}
	delete(e.pending, u.Token)
	e.peer.Counts.UndeliverableHere++
	e.peer.Counts.Pending--
	if u.Why == site.Broken || o.at.Queue == openQueue { // nobody waits for the outcome
		e.services.Record(bucketDeliver, tokenKey(u.Token), nil)
		return
	}
	e.owe(now, untold{u.Token, o, u.Why})
}

// step sends the peer a notice that is due, and logs the notices of the peer.
func (e *outcomes) step(now time.Time) {
	if due.Reached(now, e.tellAt) {
		e.notify(now)
	}
	if e.unsaid > 0 && !now.Before(e.said.Add(time.Minute)) {
		e.logUndeliverable(now)
	}
}

// due is when step has something to do; zero: never.
func (e *outcomes) due() time.Time {
	at := e.tellAt
	if e.unsaid > 0 {
		at = due.Earliest(at, e.said.Add(time.Minute))
	}
	return at
}

// notify gives custody a notice of messages that have ended here. From then on it is as durable as any message. Until custody
// has room for it, their records stay in the journal.
func (e *outcomes) notify(now time.Time) {
	list := e.untold[:min(len(e.untold), envelope.MaxLost)]
	e.told, e.tellAt = now, time.Time{}
	if !e.services.submit(now, e.peer, envelope.Message{Lost: e.notice(list)}, mail.State) {
		e.tellAt = now.Add(tellAgain)
		e.services.Note("warn", "the queue for a peer is full; the notice of its undeliverable messages goes later",
			"peer", e.peer.Name, "messages", len(e.untold))
		return
	}
	for _, u := range list {
		e.services.Record(bucketDeliver, tokenKey(u.token), nil)
	}
	e.untold = e.untold[len(list):]
	if len(e.untold) > 0 {
		e.tellAt = now.Add(tellAgain)
	}
}

// notice tells a peer of these messages.
func (e *outcomes) notice(list []untold) (lost []envelope.Lost) {
	for _, u := range list {
		l := envelope.Lost{Why: u.why, Bearer: seal.BearerMark(u.bearer), Stream: u.stream, Queue: uint8(u.at.Queue)}
		on := e.on(l.Bearer)
		named := on != nil && u.store == on.Handshake.Store && u.era == on.Handshake.Era
		if !named {
			l.Bearer, l.Stream, l.Queue = 0, 0, 0
		}
		i := slices.IndexFunc(lost, func(o envelope.Lost) bool {
			return o.Why == l.Why && o.Bearer == l.Bearer && o.Stream == l.Stream && o.Queue == l.Queue && (o.Count == 0) == named
		})
		if i < 0 {
			i = len(lost)
			lost = append(lost, l)
		}
		if o := &lost[i]; named {
			o.Numbers = append(o.Numbers, u.at.Number)
		} else {
			o.Count++
		}
	}
	for i := range lost {
		slices.Sort(lost[i].Numbers)
	}
	return lost
}

// nameless is a notice that says only how many messages ended: the numbers that it names are those of other messages by now.
func nameless(list []envelope.Lost) (counts []envelope.Lost) {
	for _, l := range list {
		counts = append(counts, envelope.Lost{Why: l.Why, Count: l.Count + len(l.Numbers)})
	}
	return counts
}

// back takes a notice back that did not reach the peer: it is told again.
func (e *outcomes) back(now time.Time, lost []envelope.Lost) {
	for _, l := range lost {
		o := origin{}
		if on := e.on(l.Bearer); on != nil {
			o = originOf(on, custody.ID{})
			o.stream = l.Stream
		}
		for _, number := range l.Numbers {
			o.at = custody.ID{Queue: frame.Queue(l.Queue), Number: number}
			e.owe(now, untold{e.token(), o, l.Why})
		}
		for range l.Count { // of an unknown store: the peer is told how many
			e.owe(now, untold{e.token(), origin{}, l.Why})
		}
	}
}

// owe notes durably that the peer is to be told of a message.
func (e *outcomes) owe(now time.Time, u untold) {
	e.services.Record(bucketDeliver, tokenKey(u.token), u.origin.append(valueEnded, byte(u.why)))
	e.untold = append(e.untold, u)
	if e.tellAt.IsZero() {
		e.tellAt = due.Latest(now.Add(tellSoon), e.told.Add(tellAgain))
	}
}

// token is a new token.
func (e *outcomes) token() uint64 {
	e.last = e.last%maxToken + 1
	return uint64(e.peer.ID)<<48 | e.last
}

// messageName is how we know a message that the peer has acknowledged.
type messageName struct {
	bearer uint8 // its mark
	stream uint8
	queue  frame.Queue
	number uint64
}

// storedMessage is the trace of a message that the peer has acknowledged, in case the peer reports that it could not be
// handed over.
type storedMessage struct {
	messageName
	*correspondence
	at      time.Time // of the acknowledgement
	octets  uint32    // as journalled
	counted bool      // as delivered, in this run
	id      uint64    // in custody; 0: it was acknowledged in an earlier run
}

// correspondence is a sender and the recipient of its messages.
type correspondence struct{ from, to string }

// maxStored is how many messages of one peer are kept.
const maxStored = 4096

const bucketStored = "stored" // peer, stream, queue, number, mark of a bearer that has a name -> time of the acknowledgement, octets, from, to

// acknowledged keeps a message that the peer has acknowledged.
func (e *outcomes) acknowledged(now time.Time, m *mail.Entry) {
	p := m.Content.Payload
	to := p.Topic
	if to == "" {
		to = p.To
		if p.Param != "" {
			to += " " + p.Param
		}
	}
	s := &storedMessage{messageName{m.Peer.Bearer.Mark, m.Peer.Handshake.Stream, m.Queue, m.At.Number}, e.between(p.From, to), now, uint32(len(m.Full)), true, m.ID}
	e.put(s)
	from := compact.AppendID(nil, s.from)
	value := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	value = binary.BigEndian.AppendUint32(value, s.octets)
	value = append(binary.AppendUvarint(value, uint64(len(from))), from...)
	e.services.Record(bucketStored, e.storedKey(s), append(value, s.to...))
	if len(e.stored) > maxStored {
		e.drop(e.stored[0])
	}
}

func (e *outcomes) storedKey(s *storedMessage) []byte {
	key := peerKey(e.peer.ID, binary.BigEndian.AppendUint64([]byte{s.stream, byte(s.queue)}, s.number))
	if s.bearer != 0 {
		key = append(key, s.bearer)
	}
	return key
}

// between is the one correspondence of all messages from a sender to a receiver.
func (e *outcomes) between(from, to string) *correspondence {
	key := [2]string{from, to}
	c := e.texts[key]
	if c == nil {
		if len(e.texts) >= maxStored/16 {
			clear(e.texts)
		}
		c = &correspondence{from, to}
		e.texts[key] = c
	}
	return c
}

func (e *outcomes) put(s *storedMessage) {
	if old := e.byName[s.messageName]; old != nil {
		e.forget(old)
	}
	e.byName[s.messageName] = s
	e.stored = append(e.stored, s)
}

func (e *outcomes) drop(s *storedMessage) {
	e.forget(s)
	e.services.Record(bucketStored, e.storedKey(s), nil)
}

func (e *outcomes) forget(s *storedMessage) {
	delete(e.byName, s.messageName)
	if i := slices.Index(e.stored, s); i == 0 {
		e.stored = e.stored[1:]
	} else {
		e.stored = slices.Delete(e.stored, i, i+1)
	}
}

// restoreStored takes a record of bucketStored, its key without the peer.
func (e *outcomes) restoreStored(key, value []byte) error {
	bearer := uint8(0)
	if len(key) == 11 {
		key, bearer = key[:10], key[10]
	}
	if len(key) != 10 || len(value) < 13 {
		return mail.ErrRecord
	}
	n, w := binary.Uvarint(value[12:])
	rest := value[12+max(w, 0):]
	if w <= 0 || n > uint64(len(rest)) {
		return mail.ErrRecord
	}
	from, err := compact.ParseID(rest[:n])
	if err != nil {
		return errors.Join(mail.ErrRecord, err)
	}
	e.put(&storedMessage{messageName{bearer, key[0], frame.Queue(key[1]), binary.BigEndian.Uint64(key[2:])}, e.between(from, string(rest[n:])),
		time.Unix(int64(binary.BigEndian.Uint64(value)), 0).UTC(), binary.BigEndian.Uint32(value[8:]), false, 0})
	return nil
}

// sort puts the messages of the journal into the order of their acknowledgements.
func (e *outcomes) sort() {
	slices.SortStableFunc(e.stored, func(a, b *storedMessage) int { return a.at.Compare(b.at) })
}

// lines is how many lines the log gets of one notice.
const lines = 5

// lost takes a notice of the peer about messages of ours: it has received them, and could not hand them to all who should
// have had them.
func (e *outcomes) lost(now time.Time, list []envelope.Lost) {
	type line struct {
		*correspondence
		site.Why
	}
	said := map[line]int{}
	c := e.peer.Counts
	for _, l := range list {
		c.Undeliverable += uint64(l.Count)
		e.unsaid += l.Count
		e.unnamed += l.Count
		for _, number := range l.Numbers {
			s := e.byName[messageName{l.Bearer, l.Stream, frame.Queue(l.Queue), number}]
			if s == nil && l.Why == site.Unread {
				continue // it was no message, but news of this site
			}
			c.Undeliverable++
			e.unsaid++
			if s == nil {
				e.unnamed++
				continue
			}
			if s.counted {
				c.Delivered--
				c.Revoked++
			}
			e.drop(s)
			e.lives.End(s.id, e.peer.ID, history.Undeliverable, l.Why.String())
			key := line{s.correspondence, l.Why}
			said[key]++
			if said[key] == 1 && len(said) <= lines && !now.Before(e.said.Add(time.Minute)) {
				e.services.Note("warn", "a peer acknowledged a message but could not deliver it", "peer", e.peer.Name, "reason", l.Why,
					"from", s.from, "to", s.to, "octets", s.octets, "received", s.at.Format(time.RFC3339))
			}
		}
	}
	e.step(now)
}

// logUndeliverable logs how many messages of ours were undeliverable.
func (e *outcomes) logUndeliverable(now time.Time) {
	e.services.Note("warn", "a peer acknowledged messages but could not deliver them", "peer", e.peer.Name, "messages", e.unsaid,
		"of_which_unknown_here", e.unnamed)
	e.unsaid, e.unnamed, e.said = 0, 0, now
}

// Unread tells a peer that one of its messages is here and cannot be read, so that it does not count as delivered there.
func (g *Gateway) Unread(now time.Time, from *mail.Peer, at mail.TransmissionID) {
	g.byID[from.ID].ends.unread(now, from, at)
}

// Gone notes that a peer cannot read a message of ours that it has acknowledged, and that we no longer have.
func (g *Gateway) Gone(now time.Time, to *mail.Peer, at mail.TransmissionID) {
	g.byID[to.ID].ends.lost(now, []envelope.Lost{{Why: site.Unread, Bearer: to.Bearer.Mark, Stream: to.Handshake.Stream, Queue: uint8(at.Queue), Numbers: []uint64{at.Number}}})
}

// unread ends a message of the peer that nobody here will see. Its content is not known: if it was
// state of the site, the peer sends again what is missing.
func (e *outcomes) unread(now time.Time, p *mail.Peer, at mail.TransmissionID) {
	if len(e.untold) >= envelope.MaxLost { // a peer that sends so much nonsense need not know of each
		return
	}
	e.owe(now, untold{e.token(), originOf(p, at), site.Unread})
}
