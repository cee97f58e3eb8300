package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// The content of a told capsule: a sequence of these, each with unsigned varints behind it.
const (
	sayReceipt = 1 // set, all up to this number is here, the highest that is here
	sayUnread  = 2 // set, number: it cannot be read as it was coded
	saySkip    = 3 // set, number: nothing before it comes any more
	sayKey     = 4 // set; 32 octets of its key
)

// What a relay, or a node that speaks in another's name, may have done to a capsule; the reasons of the gateway's counters.
const (
	lieChanged  = "relay_changed"  // it is not as its origin sealed it: changed, or invented
	lieReplayed = "relay_replayed" // it came before
	lieStranger = "relay_stranger" // it claims to be of a node of which nothing is known
	lieLimit    = "relay_limit"    // an origin has more sets, or messages before their turn, than it may
)

// lies counts the capsules of one kind of lie that a hop passed on in the name of an origin.
type lies struct {
	hop, origin uint16
	kind        string
	n           int
	said        time.Time
}

func (l lies) due() time.Time { return l.said.Add(time.Minute) }

func (c *Carrier) lie(now time.Time, hop, origin uint16, kind string) {
	c.Services.Drop(kind)
	key := kind + "\x00" + c.Ways.Name(hop) + "\x00" + c.Ways.Name(origin)
	l, known := c.lies[key]
	if !known && len(c.lies) >= 256 {
		return
	}
	l.hop, l.origin, l.kind = hop, origin, kind
	if l.n++; !known {
		l.said = now.Add(-time.Minute)
	}
	c.lies[key] = l
	c.tellLies(now)
}

// tellLies writes the lies to the log, each of them once a minute at the most.
func (c *Carrier) tellLies(now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(c.lies)) {
		l := c.lies[key]
		if now.Before(l.due()) {
			continue
		}
		if l.n == 0 {
			delete(c.lies, key)
			continue
		}
		var text string
		switch l.kind {
		case lieChanged:
			text = "a relay has passed on what its origin did not seal so"
		case lieReplayed:
			text = "a relay has passed on what had come before"
		case lieStranger:
			text = "a relay has passed on what is of no known node"
		case lieLimit:
			text = "a node has more under way through relays than it may"
		}
		if l.kind != lieReplayed || l.n > 1 { // one message that goes once more is no lie
			c.Services.Note("warn", text, "relay", c.Ways.Name(l.hop), "origin", c.Ways.Name(l.origin), "times", l.n)
		}
		c.lies[key] = lies{hop: l.hop, origin: l.origin, kind: l.kind, said: now}
	}
}

// Arrived takes a capsule for this node that a hop has passed on. p is how urgent it was on its way.
func (c *Carrier) Arrived(now time.Time, hop uint16, capsule Capsule, p site.Precedence) {
	l := c.lines[capsule.Origin]
	if l == nil || l.Gone {
		c.lie(now, hop, capsule.Origin, lieStranger)
		return
	}
	if c.misses(now, hop, capsule.Origin) {
		c.Services.Drop(lieChanged)
		return
	}
	capsule = capsule.For([]uint16{c.Self})
	switch capsule.kind {
	case hello:
		key, ok := c.Ways.Key(l.ID, c.Self, nil)
		body, opened := key.Open(capsule.sealed, controlOctets, 0, capsule.head(c.Self, 0))
		if !ok || !opened || len(body) != 2*streamOctets+3 {
			c.lie(now, hop, capsule.Origin, lieChanged)
			return
		}
		l.learn(hop)
		l.hops = capsule.Hops
		l.greeted(now, hop, body)
	case told:
		key, ok := l.key(l.ID, c.Self)
		body, opened := key.Open(capsule.sealed, controlOctets, 0, capsule.head(c.Self, 0))
		if !ok || !opened {
			l.unopened(now, hop)
			return
		}
		l.heard(now, hop)
		l.hops = capsule.Hops
		l.hear(now, body)
	default:
		l.message(now, hop, capsule, p)
	}
}

// mostMisses is how many capsules of an origin may prove false at one hop in a minute, before the capsules that it passes on in that
// name are ignored until the minute ends: so a tag of four octets is guessed once in sixty years.
const mostMisses = 64

func (c *Carrier) misses(now time.Time, hop, origin uint16) bool {
	l := c.lies[lieChanged+"\x00"+c.Ways.Name(hop)+"\x00"+c.Ways.Name(origin)]
	return l.n > mostMisses && now.Before(l.due())
}

func (l *line) heard(now time.Time, hop uint16) {
	l.learn(hop)
	l.Heard(now)
}

// unopened counts a capsule that does not open. Its sender may not know which streams there are, and is told.
func (l *line) unopened(now time.Time, hop uint16) {
	l.of.lie(now, hop, l.ID, lieChanged)
	l.owes = true
}

// key is the key with which a node seals for another, one of them this one, once both know of each other's streams.
func (l *line) key(from, to uint16) (key endKey, ok bool) {
	if l.far == (stream{}) {
		return key, false
	}
	if from == l.ID {
		return l.of.Ways.Key(from, to, l.own.append(l.far.append(nil)))
	}
	return l.of.Ways.Key(from, to, l.far.append(l.own.append(nil)))
}

// helloEcho in the last octet of a hello: its sender has not taken the stream of the receiver for true yet, or has begun another stream
// and has to hear that this one is known. The other bits count hellos.
const helloEcho = 0x80

// say tells the node which streams this one knows.
func (l *line) say(now time.Time, hop uint16, echo byte) {
	c := l.of
	l.begin()
	key, ok := c.Ways.Key(c.Self, l.ID, nil)
	if !ok {
		return
	}
	capsule := Capsule{Origin: c.Self, To: []uint16{l.ID}, Hops: 1, kind: hello}
	body := append(binary.BigEndian.AppendUint16(l.far.append(l.own.append(nil)), c.Ways.Model()), byte(l.asks)&^helloEcho|echo)
	capsule.sealed = key.Seal(nil, controlOctets, 0, capsule.head(l.ID, 0), body)
	l.asked, l.asks = now, l.asks+1
	if c.Ways.Hand(now, hop, &capsule, site.Mark{Precedence: site.Immediate}) {
		l.owes = false
	}
}

// begin gives the numbers of this node a stream.
func (l *line) begin() {
	if l.own == (stream{}) {
		l.own = stream(l.of.Incarnation)
		l.Handshake.Stream = l.own.short()
		l.Record()
	}
}

// greeted takes a hello of a node, which says the streams that it knows. It counts only if it says this node's: otherwise somebody may
// have recorded it.
func (l *line) greeted(now time.Time, hop uint16, body []byte) {
	c := l.of
	theirs, ours := parseStream(body), parseStream(body[streamOctets:])
	model := binary.BigEndian.Uint16(body[2*streamOctets:])
	knows := ours == l.own && ours != (stream{})
	switch {
	case theirs == l.far:
		if !knows {
			l.owes = true
			return
		}
		l.owes = l.owes || body[len(body)-1]&helloEcho != 0
	case theirs.Number < l.far.Number:
		c.lie(now, hop, l.ID, lieReplayed)
		return
	case !knows:
		if !now.Before(l.echoed.Add(askAfter)) {
			l.echoed = now
			l.echo(now, hop, theirs)
		}
		return
	default:
		first := l.far == (stream{})
		if !first || l.Handshake.InStream != 0 && l.Handshake.InStream != theirs.short() {
			c.Ways.Anew(now, l.Peer, first)
		}
		l.far = theirs
		l.Handshake.Store, l.Handshake.InStream, l.Handshake.Placed = theirs.Number, theirs.short(), true
		l.owes, l.asked, l.asks = body[len(body)-1]&helloEcho != 0, time.Time{}, 0 // it has to hear that it is known
	}
	l.heard(now, hop)
	l.Handshake.Model, l.Handshake.KnowsUs, l.Handshake.Agreed = model, true, true
	l.Record()
}

// echo answers a node that does not know this one: if its next hello says this node's stream, that is no recording.
func (l *line) echo(now time.Time, hop uint16, theirs stream) {
	l.begin()
	far := l.far
	l.far = theirs
	l.say(now, hop, helloEcho)
	l.far = far
}

// message takes a message for this node.
func (l *line) message(now time.Time, hop uint16, capsule Capsule, p site.Precedence) {
	c := l.of
	in := l.in[capsule.Set]
	near := uint32(0)
	if in != nil {
		near = in.cumulative
	}
	n := widen(near, capsule.number)
	at := mail.TransmissionID{Queue: frame.Direct, Number: uint64(capsule.Set)<<32 | uint64(n)}
	key, ok := l.key(l.ID, c.Self)
	head := capsule.head(c.Self, p)
	body, several := capsule.sealed, false
	if ok {
		several = key.Proves(capsule.tags, at.Number, head, body)
	}
	if ok && !several {
		body, ok = key.Open(append(bytes.Clone(capsule.tags), capsule.sealed...), tagOctets, at.Number, head)
	}
	if !ok || n == 0 || uint64(n) > uint64(near)+1<<15 { // the last: it is before the first number
		l.unopened(now, hop)
		return
	}
	l.heard(now, hop)
	if in = l.inflow(capsule.Set); in == nil {
		c.lie(now, hop, l.ID, lieLimit)
		return
	}
	if capsule.kind == riding {
		size, w := binary.Uvarint(body)
		if w <= 0 || several || size > uint64(len(body)-w) {
			c.Services.Drop("malformed")
			return
		}
		l.hear(now, body[w:w+int(size)])
		body = body[w+int(size):]
	}
	in.news = true
	if p.Rank() >= site.Immediate.Rank() {
		l.owe(now, tellSoon)
	} else {
		l.owe(now, tellAfter)
	}
	if _, kept := in.early[n]; kept || n <= in.cumulative {
		l.Counts.Duplicates++
		c.lie(now, hop, l.ID, lieReplayed)
		return
	}
	if several {
		if in.key == nil {
			l.unread(capsule.Set, n)
			return
		}
		set := newEndKey(*in.key)
		if body, ok = set.Open(body, tagOctets, at.Number, nil); !ok {
			l.unread(capsule.Set, n) // proven, and sealed with another key
			return
		}
	}
	if l.early >= mostEarly && n != in.cumulative+1 {
		c.lie(now, hop, l.ID, lieLimit)
		return
	}
	l.keep(capsule.Set, in, n, body)
	l.read(now, capsule.Set, in)
	l.reminders = 0
}

// inflow has the messages that came of a set; nil: the node has too many sets.
func (l *line) inflow(set uint16) *inflow {
	in := l.in[set]
	if in == nil && len(l.in) < mostIn {
		in = &inflow{early: map[uint32][]byte{}}
		l.in[set] = in
	}
	return in
}

// read opens the messages that are in order.
func (l *line) read(now time.Time, set uint16, in *inflow) {
	c := l.of
	for {
		n := in.cumulative + 1
		body, ok := in.early[n]
		if !ok {
			return
		}
		if len(body) > 0 {
			at := mail.TransmissionID{Queue: frame.Direct, Number: uint64(set)<<32 | uint64(n)}
			err := c.Services.Open(now, l.Peer, at, body)
			if errors.Is(err, compact.ErrModel) || errors.Is(err, compact.ErrHistory) || errors.Is(err, envelope.ErrUnknownFlow) {
				l.forget(set, in, n)
				l.Reader.Unlearn()
				l.unread(set, n)
				return
			}
			if err != nil {
				l.Counts.Unreadable++
				c.Services.Unread(now, l.Peer, at)
				c.Services.Note("error", "a message of a peer cannot be read; it is dropped. Does the peer run another version?", "peer", l.Name, "number", at.Number, "error", err)
			}
		}
		l.forget(set, in, n)
		in.cumulative = n
		l.recordIn(set, in)
	}
}

// unread asks for a message anew.
func (l *line) unread(set uint16, n uint32) {
	l.says = append(l.says, binary.AppendUvarint(binary.AppendUvarint([]byte{sayUnread}, uint64(set)), uint64(n)))
}

// owe makes sure that the node is told within this time which of its messages have come.
func (l *line) owe(now time.Time, within time.Duration) {
	if l.tellAt.IsZero() {
		l.since = now
	}
	l.tellAt = due.Earliest(l.tellAt, now.Add(within))
}

// remind tells a node once more which messages are here, if they wait for others before them: the last receipt for the node, or the node's
// answer, may be lost. It does so after tellAfter, then each time after twice as long.
func remind(l *line, now time.Time) {
	if l.early == 0 || !l.tellAt.IsZero() {
		return
	}
	for _, in := range l.in {
		in.news = in.news || len(in.early) > 0
	}
	at := now.Add(min(tellAfter<<min(l.reminders, 8), askMost))
	l.tellAt, l.since = at, at
	l.reminders++
}

// tell tells the node which of its messages have come, and all else that waits in says.
func (l *line) tell(now time.Time, hop uint16) { l.tellNow(now, hop, site.Routine) }

func (l *line) tellNow(now time.Time, hop uint16, p site.Precedence) {
	c := l.of
	body, sets := l.toTell()
	key, ok := l.key(c.Self, l.ID)
	capsule := Capsule{Origin: c.Self, To: []uint16{l.ID}, Hops: 1, kind: told}
	if !ok || len(body) == 0 {
		l.tellAt, l.says = time.Time{}, nil
		return
	}
	capsule.sealed = key.Seal(nil, controlOctets, 0, capsule.head(l.ID, 0), body)
	if !c.Ways.Hand(now, hop, &capsule, site.Mark{Precedence: p}) {
		l.tellAt, l.since = now.Add(tellAfter), now.Add(tellAfter)
		return
	}
	l.told(now, sets)
}

// told notes that the octets of toTell are in custody. Receipts that had no room there are told at once.
func (l *line) told(now time.Time, sets []uint16) {
	l.tellAt, l.says = time.Time{}, nil
	for _, number := range sets {
		l.in[number].news = false
		l.recordIn(number, l.in[number])
	}
	for _, in := range l.in {
		if in.news {
			l.tellAt = now
		}
	}
}

// toTell is the content of a told capsule for a node, and the sets with a receipt in it.
func (l *line) toTell() (body []byte, sets []uint16) {
	for _, number := range slices.Sorted(maps.Keys(l.in)) {
		if in := l.in[number]; in.news && len(body) < mostTold {
			sets = append(sets, number)
			high := in.cumulative
			for n, b := range in.early {
				if len(b) > 0 {
					high = max(high, n)
				}
			}
			body = binary.AppendUvarint(append(body, sayReceipt), uint64(number))
			body = binary.AppendUvarint(binary.AppendUvarint(body, uint64(in.cumulative)), uint64(high-in.cumulative))
		}
	}
	for _, s := range l.says {
		body = append(body, s...)
	}
	return body, sets
}

// mostTold bounds the octets of receipts that are told at once.
const mostTold = 512

// hear takes the content of a told capsule of the node.
func (l *line) hear(now time.Time, b []byte) {
	c := l.of
	for len(b) > 0 {
		kind := b[0]
		var values [3]uint64
		want := map[byte]int{sayReceipt: 3, sayUnread: 2, saySkip: 2, sayKey: 1}[kind]
		b = b[1:]
		for i := range want {
			v, n := binary.Uvarint(b)
			if n <= 0 || v > 1<<32-1 {
				want = 0
				break
			}
			values[i], b = v, b[n:]
		}
		if want == 0 || values[0] > 1<<16-1 || kind == sayKey && len(b) < 32 {
			c.Services.Drop("malformed")
			return
		}
		number, n := uint16(values[0]), uint32(values[1])
		switch kind {
		case sayReceipt:
			l.receipt(now, number, n, n+uint32(values[2]))
		case sayUnread:
			if s := c.sets[number]; s != nil {
				delete(s.told, l.ID)
				c.Unlearn(l.Peer)
			}
		case saySkip:
			if in := l.inflow(number); in != nil && n > 0 && n-1 > in.cumulative {
				for _, early := range slices.Sorted(maps.Keys(in.early)) {
					if early < n {
						l.forget(number, in, early)
					}
				}
				in.cumulative = n - 1
				in.news = true // the origin may wait for a receipt for the messages that are read now
				l.recordIn(number, in)
				l.read(now, number, in)
				l.owe(now, tellSoon)
			}
		case sayKey:
			if in := l.inflow(number); in != nil {
				secret := [32]byte(b[:32])
				in.key, b = &secret, b[32:]
				l.recordIn(number, in)
			}
		}
	}
}

// receipt ends the messages of a set that have arrived. Those that are missing before the highest one that has arrived go once more, since
// a hop has lost them.
func (l *line) receipt(now time.Time, number uint16, cumulative, high uint32) {
	c := l.of
	s := c.sets[number]
	if s == nil {
		return
	}
	if high >= s.next { // it has messages that this node has not sent: this node was put back to an older copy of its data
		if l.own != stream(c.Incarnation) { // otherwise this very start began the stream, and was not put back
			c.Services.Note("warn", "a peer has what this gateway does not know that it has sent: this gateway runs on an older copy of its data", "peer", l.Name)
			c.putBack(now, l)
		}
		return
	}
	list := l.underWay(number)
	for _, e := range list {
		if uint32(e.At.Number) > cumulative {
			break
		}
		if out := l.out[e.At]; out != nil && out.hop == l.avoid {
			l.avoid = 0
		}
		forgetOut(l, e.At)
		read := e.Read()
		c.Store.End(e, mail.Delivered)
		if e.Message.Ended() { // all of the set have it
			s.history.Holds(l.Peer, e.At.Number, read, c.oldest(s))
		}
		if e.Content.Payload != nil {
			c.Services.TellFates(now)
		}
	}
	list = slices.DeleteFunc(list, func(e *mail.Entry) bool { return uint32(e.At.Number) <= cumulative })
	first := s.next
	if len(list) > 0 {
		first = uint32(list[0].At.Number)
	}
	if high > cumulative && first > cumulative+1 {
		l.says = append(l.says, binary.AppendUvarint(binary.AppendUvarint([]byte{saySkip}, uint64(number)), uint64(first)))
	}
	for _, e := range list {
		if out := l.out[e.At]; uint32(e.At.Number) < high && out != nil && !out.passed.IsZero() && now.Sub(out.since) > 2*tellAfter {
			out.again = true
		}
	}
}

// underWay lists the messages of a set that are under way to a node, the oldest first.
func (l *line) underWay(set uint16) []*mail.Entry {
	return slices.DeleteFunc(l.Box.UnderWay(frame.Direct), func(e *mail.Entry) bool { return uint16(e.At.Number>>32) != set })
}

// oldest is the first number of a set that some of its recipients do not have.
func (c *Carrier) oldest(s *set) uint64 {
	first := s.at(s.next).Number
	for _, id := range s.to {
		if l := c.lines[id]; l != nil {
			for _, e := range l.underWay(s.number) {
				first = min(first, e.At.Number)
			}
		}
	}
	return first
}

// putBack begins a new stream with a node that has messages that this one does not know.
func (c *Carrier) putBack(now time.Time, l *line) {
	l.own = stream(c.Incarnation)
	l.Handshake.Stream, l.Handshake.KnowsUs, l.owes = l.own.short(), false, true
	c.Ways.Anew(now, l.Peer, true)
	l.Record()
}

// PutBack says that this node runs on an older copy of its data, as a neighbour has noticed: numbers are used that were used before.
func (c *Carrier) PutBack(now time.Time) {
	for _, l := range c.order {
		if l.own != (stream{}) && l.own != stream(c.Incarnation) {
			c.putBack(now, l)
		}
	}
	for _, l := range c.away { // nothing is held for them
		l.own, l.owes = stream{}, true
		l.begin()
	}
}
