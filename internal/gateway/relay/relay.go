package relay

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// Ways is what the carrier asks of the gateway about other gateways.
type Ways interface {
	// Next is the gateway to which messages for another go first, but none of those in not, and whether it answers; 0: there is none.
	Next(to uint16, not ...uint16) (hop uint16, up bool)
	// Hand gives custody a capsule for a hop, as urgent as mark says; false: it was refused. Held is how many octets are in custody for the hop.
	Hand(now time.Time, hop uint16, c *Capsule, mark site.Mark) bool
	Held(hop uint16) int
	// Key is the key with which this node and another seal, and Secret a key that this node alone can make.
	Key(from, to uint16, streams []byte) (seal.EndKey, bool)
	Secret(of []byte) [32]byte
	// Anew says that another node knows nothing of this one any more; first: it never did.
	Anew(now time.Time, p *mail.Peer, first bool)
	// Model is the model that a peer needs to read messages that are compressed here.
	Model() uint16
	Name(id uint16) string
}

// Config is what a carrier is made of.
type Config struct {
	mail.Common
	Ways        Ways
	Incarnation seal.Incarnation
}

// Bounds.
const (
	mostHeld = 32 << 10 // octets in custody for a hop, beyond which messages wait here, where they can go another way
	// tellAfter is when a node is told at the latest which of its messages have come, tellSoon where one is of precedence immediate or
	// above, and rideAfter is when the receipt may go with a message.
	tellAfter, tellSoon, rideAfter = 5 * time.Minute, 10 * time.Second, 30 * time.Second
	// askAfter is the least between two hellos of ours to one node; without an answer each time twice as long.
	askAfter = 10 * time.Second
	askMost  = time.Hour
	// patience is how long a message may be with a relay before it goes once more; each time twice as long.
	patience     = 15 * time.Minute
	patienceMost = 4 * time.Hour
	// silentAfter is after how many times without an answer another bearer is tried.
	silentAfter = 2
	mostSets    = 64 // sets of several recipients of this node
	// mostNumbers is how many numbers a set of several gives before another takes its place. As many messages may wait for it by then. A
	// recipient to which none came yet tells numbers below 1 << 15 by their low 16 bits.
	mostNumbers = 1 << 14
	mostIn      = 1024 // sets of one origin
	mostEarly   = 256  // messages of one origin that came before their turn
)

// Carrier carries messages between this node and others that it reaches through further gateways.
type Carrier struct {
	Config
	order []*line // by id
	lines map[uint16]*line
	away  map[uint16]*line // nodes that were taken out in this run
	sets  map[uint16]*set  // by number
	named map[string]*set  // those for new messages, by setName
	of    map[uint64]*set  // of messages for several, by ID
	next  uint16           // number of the next set
	flows uint32           // number of the next flow
	lies  map[string]lies
}

// set is recipients that get one capsule, in one precedence: whoever they are, messages have numbers of the set and arrive in their order.
type set struct {
	number  uint16
	rank    int
	to      []uint16 // by id
	next    uint32
	told    map[uint16]bool // of several: the recipients that have been told the key in this run, or before
	history *mail.SharedHistory
}

// line is another node.
type line struct {
	*mail.Peer
	of *Carrier
	// own and far are the streams of numbers of both: which start of a node began it.
	own, far  stream
	owes      bool      // it has to be told both streams
	asked     time.Time // when it was told or asked last
	asks      int       // how often since it has answered
	echoed    time.Time // when a hello of it was answered that knew nothing of this node
	in        map[uint16]*inflow
	early     int // messages that came before their turn
	out       map[mail.TransmissionID]*sent
	learned   uint16    // the hop that its last capsule came from
	hops      int       // gateways that capsule has passed, as it says, this one included
	avoid     uint16    // a hop that took a message which was not acknowledged; 0: none
	tellAt    time.Time // when it is told which messages have come; zero: none have
	since     time.Time // when the first of these came
	reminders int       // since a message came that is not a repeat
	says      [][]byte  // parts of a told capsule that wait for it, besides receipts
	tries     int       // since it was heard; of messages that were under way at the same time one counts
	missed    time.Time // when the last of these got no receipt
	air       mail.Air
}

type stream seal.Incarnation

func (s stream) append(b []byte) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, s.Number), s.Salt)
}

func parseStream(b []byte) stream {
	return stream{binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])}
}

// short is the stream as marks of other bearers name it.
func (s stream) short() uint8 { return uint8(s.Salt) | 1 }

const streamOctets = 6

// inflow has the messages that came of a set of another node.
type inflow struct {
	cumulative uint32 // all messages up to it have been read
	early      map[uint32][]byte
	key        *[32]byte // of a set of several recipients
	news       bool      // messages have come of which the origin has not been told
}

// sent is a message under way.
type sent struct {
	hop    uint16    // 0: not known
	passed time.Time // when the hop took it; zero: the hop has not taken it yet
	since  time.Time
	tries  int // how often no receipt came
	misses int // how often it did not get to the hop
	again  bool
}

// New makes a carrier for peers that know nothing yet.
func New(cfg Config) *Carrier {
	c := &Carrier{Config: cfg, lines: map[uint16]*line{}, away: map[uint16]*line{}, sets: map[uint16]*set{}, named: map[string]*set{}, of: map[uint64]*set{}, next: 1, flows: 1, lies: map[string]lies{}}
	for _, p := range cfg.Peers {
		c.add(p)
	}
	return c
}

func (c *Carrier) add(p *mail.Peer) {
	l := c.away[p.ID]
	if l == nil {
		l = &line{of: c, in: map[uint16]*inflow{}, out: map[mail.TransmissionID]*sent{}}
	}
	delete(c.away, p.ID)
	l.asked, l.asks, l.tries = time.Time{}, 0, 0
	l.Peer, p.Link = p, l
	c.lines[p.ID] = l
	c.order = append(c.order, l)
	slices.SortFunc(c.order, func(a, b *line) int { return cmp.Compare(a.ID, b.ID) })
}

// Accept puts a message among those that wait for each peer.
func (c *Carrier) Accept(now time.Time, to []*mail.Peer, content envelope.Message, kind mail.Kind) (refused []*mail.Peer) {
	m, err := c.Store.New(content, kind)
	if err != nil {
		c.Services.Note("warn", "a message cannot be encoded; the gateway refused it", "error", err)
		return to
	}
	s := c.together(m, to)
	for _, p := range to {
		of := s
		if of == nil {
			of = c.setFor(m, []uint16{p.ID})
		}
		if c.Store.Wait(now, p, m, frame.Direct, of.history) == nil {
			refused = append(refused, p)
			c.Services.Note("warn", "a message was refused: the queue for the peer is full, or the message cannot be encoded",
				"peer", p.Name, "waiting_octets", p.Box.Waiting(frame.Direct))
		}
	}
	return refused
}

// Step hands on messages that wait, messages that have to go again, and told capsules for other nodes.
func (c *Carrier) Step(now time.Time) {
	for _, l := range c.order {
		hop, up := l.hop()
		l.Addr = netip.AddrPort{}
		if up && !l.Gone {
			l.Addr = somewhere
		}
		if hop == 0 || l.Gone {
			continue
		}
		if wants(l, now) && up && !now.Before(l.asksAt()) {
			echo := byte(0)
			if !l.Handshake.KnowsUs && l.far != (stream{}) {
				echo = helloEcho
			}
			l.say(now, hop, echo)
		}
		for _, at := range l.again(now) {
			s := l.out[at]
			if !s.again {
				s.again, l.avoid = true, s.hop
				s.tries++
				if !s.since.Before(l.missed) { // else it was on its way when the one before got no receipt
					l.tries, l.missed = l.tries+1, now
				}
				hop, up = l.hop()
			}
			if up && c.Ways.Held(hop) < mostHeld {
				l.repeat(now, hop, at, s)
			}
		}
		for up && c.Ways.Held(hop) < mostHeld && l.Handshake.KnowsUs {
			if e := l.Box.First(frame.Direct); e == nil || !c.begin(now, hop, e) {
				break
			}
		}
		c.tellState(now, l)
		remind(l, now)
		if due.Reached(now, l.tellsAt(hop)) || len(l.says) > 0 {
			l.tell(now, l.back(hop))
		}
	}
	for id := range c.of {
		if c.Store.Get(id) == nil {
			delete(c.of, id)
		}
	}
	c.tellLies(now)
}

// again lists the messages that have to go once more, the oldest first.
func (l *line) again(now time.Time) (list []mail.TransmissionID) {
	for at, s := range l.out {
		if due.Reached(now, s.due()) {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b mail.TransmissionID) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// tellsAt is when a node is told which of its messages have come; zero: none have. A node that this one reaches directly by now is told
// soon: its next messages wait there until then.
func (l *line) tellsAt(hop uint16) time.Time {
	if hop != l.ID || l.tellAt.IsZero() {
		return l.tellAt
	}
	return due.Earliest(l.tellAt, l.since.Add(tellSoon))
}

// somewhere stands for the address of a node that a hop reaches.
var somewhere = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)

// hop is the gateway to which capsules for a node go: the one that the operator names, or that its last capsule came from.
func (l *line) hop() (hop uint16, up bool) {
	if l.avoid != 0 {
		if hop, up = l.of.Ways.Next(l.ID, l.avoid); up {
			return hop, up
		}
	}
	hop, up = l.of.Ways.Next(l.ID)
	if r := l.of.lines[l.learned]; !up && r != nil && !r.Gone { // that one may have been taken out since
		if again, up := l.of.Ways.Next(l.learned); again == l.learned && up || hop == 0 {
			return l.learned, up
		}
	}
	return hop, up
}

// back is the hop for answers to a node: the one that its last capsule came from, since that one passes on capsules for it.
func (l *line) back(hop uint16) uint16 {
	if again, up := l.of.Ways.Next(l.learned); again == l.learned && up {
		return again
	}
	return hop
}

// wants says that the node has to be greeted: it does not know this one, and something waits for it, or nothing else tells it of this
// site. As long as there is nothing to tell, once is enough.
func wants(l *line, now time.Time) bool {
	return l.owes || !l.Handshake.KnowsUs && (l.Box.Waiting(frame.Direct) > 0 || len(l.out) > 0 ||
		(l.asks == 0 || len(l.of.Replica.Next(now, l.ID, 1)) > 0) && l.of.tells(l))
}

// tells says that nothing else than this carrier tells a node of this site.
func (c *Carrier) tells(l *line) bool { return c.Tells != nil && c.Tells(l.ID) && l.Addr.IsValid() }

// asksAt is when it may be greeted again.
func (l *line) asksAt() time.Time { return l.asked.Add(min(askAfter<<min(l.asks, 16), askMost)) }

// due is when a message goes once more; zero: not while it is on the way to its hop. One that has not come there goes soon, each time
// later: a capsule lives no longer than its message, perhaps a second.
func (s *sent) due() time.Time {
	switch {
	case s.again && s.misses == 0:
		return s.since
	case s.again:
		return s.since.Add(min(askAfter<<min(s.misses-1, 16), patience))
	case s.passed.IsZero():
		return time.Time{}
	}
	return s.passed.Add(min(patience<<min(s.tries, 8), patienceMost))
}

// Due is when Step has something to do.
func (c *Carrier) Due(now time.Time, silent bool) (at time.Time) {
	for _, l := range c.order {
		hop, up := l.hop()
		if up != l.Addr.IsValid() && !l.Gone {
			at = due.Earliest(at, now)
		}
		if hop == 0 || l.Gone {
			continue
		}
		at = due.Earliest(at, l.tellsAt(hop))
		if wants(l, now) && up {
			at = due.Earliest(at, due.Latest(now, l.asksAt()))
		}
		for _, s := range l.out {
			if up && (!s.again || s.due().After(now)) {
				at = due.Earliest(at, s.due())
			}
		}
	}
	for _, l := range c.lies {
		at = due.Earliest(at, l.due())
	}
	return at
}

// begin gives a message that waits its number, and hands it to the hop, together with that for other recipients of its set to whom it may
// go there now.
func (c *Carrier) begin(now time.Time, hop uint16, e *mail.Entry) bool {
	s := c.of[e.ID]
	if s == nil {
		s = c.setFor(e.Message, []uint16{e.Peer.ID})
	}
	list := []*mail.Entry{e}
	for _, id := range s.to {
		l := c.lines[id]
		if l == nil || id == e.Peer.ID {
			continue
		}
		other := e.Message.On(l.Peer)
		if to, up := l.hop(); other != nil && other.Waits() && !other.OnHold && to == hop && up && l.Handshake.KnowsUs && l.Box.First(frame.Direct) == other {
			list = append(list, other)
		}
	}
	slices.SortFunc(list, func(a, b *mail.Entry) int { return cmp.Compare(a.Peer.ID, b.Peer.ID) })
	at := s.at(s.next)
	var to []uint16
	for _, e := range list {
		to = append(to, e.Peer.ID)
	}
	if !c.hand(now, hop, s, at, e.Message, to, false) {
		return false
	}
	s.next++
	c.record(s)
	for _, e := range list {
		l := c.lines[e.Peer.ID]
		c.Store.Start(e.Peer, e.Message, at, s.history)
		l.out[at] = &sent{hop: hop, since: now}
		l.LastSent = now
	}
	if f := s.history.Flow(e.Spoken()); f != nil {
		s.history.Sent(f, at.Number, e.Message)
	}
	return true
}

// repeat hands a message on once more.
func (l *line) repeat(now time.Time, hop uint16, at mail.TransmissionID, was *sent) {
	c := l.of
	e, s := l.Box.At(at), c.sets[uint16(at.Number>>32)]
	if e == nil || s == nil {
		forgetOut(l, at)
		return
	}
	if c.hand(now, hop, s, at, e.Message, []uint16{l.ID}, true) {
		next := &sent{hop: hop, since: now, tries: was.tries, misses: was.misses}
		if !was.passed.IsZero() {
			next.misses = 0
		}
		forgetOut(l, at)
		l.out[at] = next
		l.Counts.Repeated++
		c.Store.Aired(e, len(e.Full), 0, true)
	}
}

// hand seals a message for some of a set and gives it to custody on the way to the hop.
func (c *Carrier) hand(now time.Time, hop uint16, s *set, at mail.TransmissionID, m *mail.Message, to []uint16, alone bool) bool {
	body := c.encode(s, at, m, to, alone)
	mark := site.Mark{Precedence: site.Routine}
	capsule := Capsule{Origin: c.Self, To: to, Set: s.number, Hops: 1, kind: message, number: uint16(at.Number)}
	if p := m.Content.Payload; p != nil {
		mark = p.Mark
		if !p.Expires.IsZero() {
			// Its number has to come even where nobody wants the message any more: no relay drops it before it would go again.
			capsule.Lifetime = max(p.Expires.Sub(now), patience)
		}
	}
	if len(s.to) > 1 {
		key := seal.NewEndKey(c.secret(s))
		body = key.Seal(nil, tagOctets, at.Number, nil, body)
		capsule.sealed = body
		for _, id := range to {
			l := c.lines[id]
			if !s.told[id] {
				s.told[id] = true
				secret := c.secret(s)
				l.says = append(l.says, append(binary.AppendUvarint([]byte{sayKey}, uint64(s.number)), secret[:]...))
				l.tellNow(now, hop, mark.Precedence)
			}
			end, ok := l.key(c.Self, id)
			if !ok {
				return false
			}
			capsule.tags = end.Tag(capsule.tags, tagOctets, at.Number, capsule.head(id, mark.Precedence), body)
		}
		return c.Ways.Hand(now, hop, &capsule, mark)
	}
	l := c.lines[to[0]]
	end, ok := l.key(c.Self, to[0])
	if !ok {
		return false
	}
	var riders []uint16
	if !l.tellAt.IsZero() && !now.Before(l.since.Add(rideAfter)) && len(body)+2*mostTold < mostHeld {
		if b, sets := l.toTell(); len(b) > 0 {
			capsule.kind, riders = riding, sets
			body = append(append(binary.AppendUvarint(nil, uint64(len(b))), b...), body...)
		}
	}
	sealed := end.Seal(nil, tagOctets, at.Number, capsule.head(to[0], mark.Precedence), body)
	capsule.tags, capsule.sealed = sealed[:tagOctets], sealed[tagOctets:]
	if !c.Ways.Hand(now, hop, &capsule, mark) {
		return false
	}
	if capsule.kind == riding {
		l.told(now, riders)
	}
	return true
}

// encode is the envelope of a message of a set, after those before it where it is for one recipient that has them.
func (c *Carrier) encode(s *set, at mail.TransmissionID, m *mail.Message, to []uint16, alone bool) []byte {
	peers := make([]*mail.Peer, len(to))
	for i, id := range to {
		peers[i] = c.lines[id].Peer
	}
	texts := c.Services.Texts(peers...)
	number, define := uint32(0), true
	if p := m.Spoken(); p != nil {
		s.history.Next = max(s.history.Next, c.flows)
		f := s.history.Flow(p)
		c.flows = max(c.flows, s.history.Next)
		number, define = f.Number, s.history.Spells(f, at.Number, false)
		if !alone {
			s.history.Encode(texts, f, at.Number, func() uint64 { return at.Number }, p, peers...)
		}
	}
	b, err := envelope.Packed(c.Coder, m.Content, number, define, texts)
	if err != nil {
		panic("relay: " + err.Error()) // it has been encoded before
	}
	return bytes.Clone(b)
}

// tellState hands on news of this site, where nothing else tells it.
func (c *Carrier) tellState(now time.Time, l *line) {
	if len(c.Replica.Next(now, l.ID, 1)) == 0 || !c.tells(l) || !l.Handshake.KnowsUs || l.Box.Waiting(frame.Direct) > 0 {
		return
	}
	n := 8
	for items := c.Replica.Next(now, l.ID, n); len(items) > 0; items = c.Replica.Next(now, l.ID, n) {
		content, items := c.Services.News(now, l.Peer, items)
		m, err := c.Store.New(content, mail.KindOf(content.Items))
		if err != nil && len(items) > 1 { // one alone may be the only one that cannot be sent
			n = 1
			continue
		}
		if err != nil || c.Store.Wait(now, l.Peer, m, frame.Direct, c.setFor(m, []uint16{l.ID}).history) == nil {
			for _, it := range items {
				c.Replica.Put(it.Withdrawal())
			}
			return
		}
		c.Replica.Sent(l.ID, m.ID, items)
	}
}

// Ended says what became of a capsule of this node on its way to the first hop.
func (c *Carrier) Ended(now time.Time, hop uint16, m *site.Message, fate mail.Fate) {
	capsule, err := Parse(m)
	if err != nil {
		return
	}
	for _, id := range capsule.To {
		l, s := c.lines[id], c.sets[capsule.Set]
		switch {
		case l == nil:
		case capsule.kind == hello:
			l.owes = l.owes || fate != mail.Delivered
		case capsule.kind != message && fate != mail.Delivered && fate != mail.Reissued:
			for _, in := range l.in { // the node may not have got its receipts
				in.news = true
			}
			l.owe(now, tellAfter)
			fallthrough
		case s != nil:
			if s == nil {
				continue
			}
			at := s.at(widen(s.next-1, capsule.number))
			out := l.out[at]
			if out == nil || out.hop != hop && out.hop != 0 {
				continue
			}
			if e := l.Box.At(at); fate == mail.Delivered && e != nil {
				out.passed = now
				recordOut(l, at, out)
				c.Store.Passed(e, c.Ways.Name(hop))
			} else if fate != mail.Delivered && fate != mail.Reissued {
				out.again, out.misses = true, out.misses+1
			}
		}
	}
}

// widen is the number near another that has these low 16 bits.
func widen(near uint32, low uint16) uint32 { return near + uint32(int32(int16(low-uint16(near)))) }

// Orders are those of the Store.
func (c *Carrier) Orders() mail.Orders { return c.Store.Orders() }

// The other events of a carrier do not concern one that has no datagrams: capsules come as messages, and go by other bearers, in whose custody
// they are. The journal says which receipts are owed.

func (c *Carrier) Receive(time.Time, *mail.Peer, frame.Frame, int, bool) bool { return false }
func (c *Carrier) Pump(time.Time)                                             {}
func (c *Carrier) Silence(time.Time, bool)                                    {}
func (c *Carrier) PeerSilent(time.Time, *mail.Peer, bool)                     {}
func (c *Carrier) Announce(time.Time, frame.Silence) bool                     { return false }
func (c *Carrier) Event(time.Time, api.Event)                                 {}
func (c *Carrier) Settle(time.Time)                                           {}
func (c *Carrier) Owed(time.Time) (o mail.Owed)                               { return o }
func (c *Carrier) Report(*api.Status)                                         {}

// Start begins the timers of the messages that were under way. One that no hop has waits for its hop if custody holds its capsule; otherwise
// the capsule has ended on its way, and the message goes again.
func (c *Carrier) Start(now time.Time) {
	handed := c.handed()
	for _, l := range c.order {
		for at, s := range l.out {
			s.since = now
			switch {
			case l.Box.At(at) == nil:
				forgetOut(l, at)
			case s.passed.After(now):
				s.passed = now
			case s.passed.IsZero():
				s.hop = handed[string(outKey(l.ID, at))]
				s.again = s.hop == 0
			}
		}
		for _, in := range l.in {
			if in.news {
				l.owe(now, tellAfter)
			}
		}
	}
}

// handed has the hops for which custody holds capsules of this node, by the outKey of their messages.
func (c *Carrier) handed() map[string]uint16 {
	list := map[string]uint16{}
	for _, id := range c.Store.IDs(nil) {
		m := c.Store.Get(id)
		p := m.Content.Payload
		if p == nil || p.Adapter != site.Relay {
			continue
		}
		capsule, err := Parse(p)
		s := c.sets[capsule.Set]
		if err != nil || capsule.Origin != c.Self || s == nil {
			continue
		}
		for _, hop := range c.order {
			for _, to := range capsule.To {
				if m.For(hop.ID) != nil {
					list[string(outKey(to, s.at(widen(s.next-1, capsule.number))))] = hop.ID
				}
			}
		}
	}
	return list
}

// never is a number of octets that nothing reaches.
const never = math.MaxInt
