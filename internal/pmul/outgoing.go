package pmul

import (
	"cmp"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// outgoing is a message that some destination does not have yet.
type outgoing struct {
	content
	pass
	sent
	timers
	batched
	urged
	dests   dests
	dynamic *negotiation  // of a group of its own
	plan    bool          // shards of it were queued: its Address_PDUs say how many frames follow
	once    bool          // it is not repeated for silent nodes
	begun   bool          // its first pass has been on the air, or a part of it
	lone    bool          // a short message that began while no other node transmitted
	train   time.Duration // by how much longer its answers may take, because it is one of a train
	prompt  bool          // a short message that is acknowledged at once
	held    bool          // it waits until a Hold releases it
	closed  bool          // all destinations have ended; of the pass only closing has still to be sent

	polls     int // questions since its last Ack_PDU
	carry     carry
	rounds    int           // of repair
	repeats   int           // for silent nodes
	handed    time.Duration // the air of all datagrams handed to the radio up to its first one
	handedAll time.Duration // the same up to the datagram with its last fragment
	putOff    time.Duration // by how much the talk of others has put off questions since its last pass

	ready bool // in the Sender's queue
	place int  // in the Sender's timers
}

// batched is how a message goes together with others (batch.go).
type batched struct {
	parts    []*outgoing // of a batch: its messages
	in       *outgoing   // the batch that it goes with
	sequence uint32      // its Message_Sequence_Number for the first destination of the batch
	skew     uint32      // of a batch: by how much the Message_Sequence_Number of its first message is above that of its Address_PDUs
	starts   int         // where it starts in the octets of the batch, and where it ends
	ends     int
	wakes    bool // a node that lacks it has been heard again
	whole    bool // it goes again as a whole
}

// urged is how a message is urgent: an urgent message goes again (urgent.go).
type urged struct {
	atOnce bool  // as in its Submit
	nth    int   // how many datagrams were handed over, up to its last one
	rides  bool  // it goes again with the next datagram
	ridden int   // how often it did so
	turn   uint8 // the turn in which it last went
}

// carry says whether the next question brings along fragments that its destination may have lost.
type carry uint8

const (
	carryCheap   carry = iota // it does if that costs less than one more turn
	carryLost                 // it does: the message is presumed lost
	carryNothing              // it does not: only the Ack_PDU of the message is presumed lost
)

// content is the content of a message.
type content struct {
	id        MessageID
	priority  uint8
	expiry    time.Time
	group     GroupAddr
	fragments [][]byte
	parity    [][]byte // shards made so far
	size      int      // the cut: octets of all fragments but the last
	octets    int
	batch     bool // the message is a batch
	sourced
}

// pass is the parts of a message that go out before answers are awaited, in the order of the lists.
type pass struct {
	address    []AddressPDU
	numbers    []uint16     // of fragments, ascending
	again      []AddressPDU // before the first shard of a first pass: a node that lost the others can use no shard
	shards     []uint16     // parity, by index
	closing    []PDU        // PDUs that end the message
	parityNext uint16       // the first shard that was never queued

	frames    int           // fragments and shards of the pass, including those already sent
	first     bool          // it is the first pass
	passBegan time.Time     // of the pass under way, or the last
	passEnd   time.Time     // of the last pass; zero while one is under way
	askedEnd  time.Time     // of the pass before
	firstEnd  time.Time     // of the first pass
	grant     time.Duration // how long answers to the last pass wait for this node or, if planned, for their turn
	asked     time.Duration // the same of the pass before
}

// sent is when the last octet of each part of a message left.
type sent struct {
	sentEnd   []time.Time // by number, the last transmission of that fragment; zero: never
	parityEnd []time.Time // of the shards that were sent
}

// timers of a message; zero: not set.
type timers struct {
	repairAt time.Time // send lost fragments again
	pollAt   time.Time // ask the nodes that have not answered
	repeatAt time.Time // repeat for silent nodes
	wakeAt   time.Time // the first of these that counts, or its expiry
}

// cut makes the fragments, of which none has been sent. An empty message has one fragment of no octets.
func (m *outgoing) cut(payload []byte, size int) {
	m.octets, m.size, m.fragments, m.parity = len(payload), size, nil, nil
	for len(payload) > size {
		m.fragments = append(m.fragments, payload[:size:size])
		payload = payload[size:]
	}
	m.fragments = append(m.fragments, payload)
	m.pass, m.sent = pass{}, sent{sentEnd: make([]time.Time, len(m.fragments)+1)}
}

func (c *content) total() uint16 { return uint16(len(c.fragments)) }

// addressPDU makes an Address_PDU that names some of the destinations.
func (c *content) addressPDU(self NodeID, dests ...*destination) AddressPDU {
	p := AddressPDU{Priority: c.priority, Total: c.total(), Source: self, Message: c.id, Expiry: c.expiry, Batch: c.batch}
	for _, d := range dests {
		p.Destinations = append(p.Destinations, Destination{Node: d.node, Sequence: d.sequence})
	}
	return p
}

// named is how many destinations an Address_PDU has room for.
func (c *Config) named() int { return max(1, (c.DatagramOctets-addressHeader)/addressEntry) }

// addressPDUs makes as many Address_PDUs as the destinations need.
func (c *content) addressPDUs(cfg *Config, dests dests) (out []AddressPDU) {
	for some := range slices.Chunk(dests, cfg.named()) {
		p := c.addressPDU(cfg.Self, some...)
		if len(out) > 0 {
			p.MAP |= NotFirst
			out[len(out)-1].MAP |= NotLast
		}
		out = append(out, p)
	}
	return out
}

// idle says that no PDU of the pass is left to be sent.
func (p *pass) idle() bool {
	return len(p.address)+len(p.numbers)+len(p.again)+len(p.shards)+len(p.closing) == 0
}

// clear leaves no PDU to be sent.
func (p *pass) clear() { p.address, p.numbers, p.again, p.shards, p.closing = nil, nil, nil, nil, nil }

// add puts a fragment into the pass under way, once.
func (p *pass) add(n uint16) {
	if i, queued := slices.BinarySearch(p.numbers, n); !queued {
		p.numbers = slices.Insert(slices.Clone(p.numbers), i, n)
	}
}

// drop takes off the next PDU.
func (p *pass) drop() {
	switch {
	case len(p.address) > 0:
		p.address = p.address[1:]
	case len(p.numbers) > 0:
		p.numbers = p.numbers[1:]
	case len(p.again) > 0:
		p.again = p.again[1:]
	case len(p.shards) > 0:
		p.shards = p.shards[1:]
	default:
		p.closing = p.closing[1:]
	}
}

// upcoming is the next PDU; nil when the pass has no more.
func (m *outgoing) upcoming(c *Config) PDU {
	if len(m.address) > 0 {
		return m.withPlan(m.address[0])
	}
	return m.behind(c)
}

// behind is the next PDU after the first Address_PDUs.
func (m *outgoing) behind(c *Config) PDU {
	switch {
	case len(m.numbers) > 0:
		n := m.numbers[0]
		d := DataPDU{Priority: m.priority, Number: n, Source: c.Self, Message: m.id, Fragment: m.fragments[n-1]}
		if c.Coding == Compact && m.total() > 1 {
			d.Priority = 0 // the Address_PDU has it
		}
		return d
	case len(m.again) > 0:
		return m.withPlan(m.again[0])
	case len(m.shards) > 0:
		return ParityPDU{Source: c.Self, Message: m.id, Index: m.shards[0], Left: m.leftOf(len(m.shards) - 1), Shard: m.shard(m.shards[0])}
	case len(m.closing) > 0:
		return m.closing[0]
	}
	return nil
}

// following is the part of the message that must be in the datagram of its last Address_PDU: a node that hears of a short
// message waits for it, and asks for it when it does not come. nil: no part must; a fragment that fills a datagram follows
// in the next.
func (m *outgoing) following(c *Config) PDU {
	if len(m.address) != 1 || m.total() > 1 {
		return nil
	}
	return m.behind(c)
}

// next puts the next PDUs of the pass under way into a datagram: one PDU, or in the compact coding all that fit after those
// of other messages.
func (m *outgoing) next(c *Config, p *Packet) {
	for more := true; more; more = c.Coding == Compact {
		pdu := m.upcoming(c)
		if pdu == nil {
			return
		}
		if len(p.PDUs) > 0 {
			both := Packet{Group: p.Group, Port: p.Port, PDUs: append(slices.Clone(p.PDUs), pdu)}
			if follows := m.following(c); follows != nil && c.Coding == Compact {
				both.PDUs = append(both.PDUs, follows)
			}
			if c.octets(both) > c.most(m.batch) {
				return
			}
		}
		p.PDUs = append(p.PDUs, pdu)
		m.pass.drop()
	}
}

// shift puts off all times of a message that are later than after, because the radio could not send meanwhile.
func (m *outgoing) shift(after time.Time, by time.Duration) {
	move := func(at *time.Time) {
		if at.After(after) {
			*at = at.Add(by)
		}
	}
	for n := range m.sentEnd {
		move(&m.sentEnd[n])
	}
	for i := range m.parityEnd {
		move(&m.parityEnd[i])
	}
	move(&m.passEnd)
	move(&m.firstEnd) // it is compared with the passEnd of others
	move(&m.pollAt)
	for _, d := range m.dests {
		move(&d.dueAt)
	}
}

// earliest is the first of repairs, questions and repetitions.
func (t *timers) earliest() time.Time {
	return due.Earliest(t.repairAt, due.Earliest(t.pollAt, t.repeatAt))
}

// Before orders the Sender's timers.
func (m *outgoing) Before(o *outgoing) bool {
	return m.wakeAt.Before(o.wakeAt) || m.wakeAt.Equal(o.wakeAt) && m.id < o.id
}
func (m *outgoing) Placed(n int) { m.place = n }

// bundle is the most messages that share a datagram.
const bundle = 8

// queue is the messages with parts to be sent, the next one in front.
type queue []*outgoing

// urgency is the priority with which a message goes out.
func (m *outgoing) urgency() uint8 {
	if m.rides {
		return 0
	}
	return m.priority
}

// rank is higher for messages that are sent before others.
func (m *outgoing) rank() int {
	if m.rides {
		return 1 // before all others that are not urgent
	}
	return 2 * int(m.priority)
}

// compare orders messages by which is sent first: the greater priority, then the one that leads, then the lower Message_ID,
// which is older.
func (m *outgoing) compare(o *outgoing) int {
	switch {
	case m.rank() != o.rank():
		return cmp.Compare(o.rank(), m.rank())
	case m.leads != o.leads && m.leads:
		return -1
	case m.leads != o.leads:
		return 1
	}
	return cmp.Or(cmp.Compare(m.order(), o.order()), cmp.Compare(m.id, o.id))
}

// order is a message's place among those of its Priority: a batch has that of its first message.
func (m *outgoing) order() MessageID {
	if len(m.parts) > 0 {
		return m.parts[0].id
	}
	return m.id
}

func (q *queue) put(m *outgoing) {
	if !m.ready {
		m.ready = true
		i, _ := slices.BinarySearchFunc(*q, m, (*outgoing).compare)
		*q = slices.Insert(*q, i, m)
	}
}

func (q *queue) remove(m *outgoing) {
	if m.ready {
		m.ready = false
		i, _ := slices.BinarySearchFunc(*q, m, (*outgoing).compare)
		*q = slices.Delete(*q, i, i+1)
	}
}

// part is one message's part of a datagram.
type part struct {
	m    *outgoing
	pdus []PDU
}

// datagram takes the next PDUs: of the first message, and in the compact coding of others of its priority too, as long as
// all fit: short messages share the overhead of a datagram.
func (q queue) datagram(c *Config, head ...PDU) (Packet, []part) {
	first := q[0]
	p := Packet{Group: first.group, Port: DataPort, PDUs: head}
	var parts []part
	for _, m := range q[:min(bundle, len(q))] {
		if m.group != first.group || m.urgency() != first.urgency() || len(parts) > 0 && c.Coding != Compact {
			break
		}
		if len(parts) > 0 && !m.begun && m.total() > 1 && !m.batch { // the next datagram may begin a batch with this message
			break
		}
		n := len(p.PDUs)
		m.next(c, &p)
		if len(p.PDUs) == n {
			break
		}
		parts = append(parts, part{m, p.PDUs[n:]})
	}
	if len(parts) == 0 && len(head) > 0 { // there is no room besides head
		return q.datagram(c)
	}
	return p, parts
}
