package pmul

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

// outgoing is a message that some destination does not have yet.
type outgoing struct {
	id        MessageID
	priority  uint8
	expiry    time.Time
	group     GroupAddr
	dynamic   *negotiation // of a group of its own
	fragments [][]byte
	size      int // the cut: octets of all fragments but the last
	octets    int
	dests     []*destination
	begun     bool // its first pass has been on the air, or a part of it

	// The pass under way, in this order: Address_PDUs, fragments ascending, and what ends it all.
	first   bool // it is the first pass
	address []AddressPDU
	numbers []uint16
	shards  []uint16 // parity, by index
	closing []PDU
	closed  bool // only closing is left: all destinations have ended

	parity     [][]byte    // shards made so far
	parityNext uint16      // the first that was never queued
	parityEnd  []time.Time // of those that were sent: end of transmission

	sentEnd   []time.Time // of each fragment: end of its last transmission; zero: never
	passBegan time.Time   // of the pass under way, or the last
	passEnd   time.Time   // of the last pass; zero while one is under way
	askedEnd  time.Time   // of the one before
	firstEnd  time.Time   // of the first pass
	heard     time.Time   // last Ack_PDU about it
	again     bool        // the message is presumed lost: the next question repeats a fragment
	bare      bool        // only its Ack_PDU is presumed lost: the next question goes without a fragment
	polls     int         // questions since
	rounds    int         // of repair
	repeats   int         // for silent nodes
	repairAt  time.Time   // send again what is lost
	pollAt    time.Time   // ask those who have not answered
	repeatAt  time.Time   // repeat for silent nodes
	wakeAt    time.Time   // where it is in the timer heap
	index     int         // in the timer heap; -1: not there
	ready     bool        // in the list of what has something to send
}

// destination is one recipient of a message.
type destination struct {
	node     NodeID
	sequence uint32
	state    State
	named    bool      // in the last pass
	dueAt    time.Time // its answer must have come; it is asked then
	missing  set       // what it has not acknowledged; nil: it never said anything
	lost     set       // what it said it misses and that is not on its way
}

// set of Sequence_Numbers.
type set []uint64

func newSet(most int) set       { return make(set, most/64+1) }
func (s set) has(n uint16) bool { return s != nil && s[n/64]>>(n%64)&1 != 0 }
func (s set) add(n uint16)      { s[n/64] |= 1 << (n % 64) }
func (s set) remove(n uint16)   { s[n/64] &^= 1 << (n % 64) }
func (s set) empty() bool       { return !slices.ContainsFunc(s, func(w uint64) bool { return w != 0 }) }
func (s set) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}
func (s set) numbers() (n []uint16) {
	for i := range len(s) * 64 {
		if s.has(uint16(i)) {
			n = append(n, uint16(i))
		}
	}
	return n
}

// cut makes the fragments. An empty message has one of no octets.
func (m *outgoing) cut(payload []byte, size int) {
	m.octets, m.size = len(payload), size
	for len(payload) > size {
		m.fragments = append(m.fragments, payload[:size:size])
		payload = payload[size:]
	}
	m.fragments = append(m.fragments, payload)
	m.sentEnd = make([]time.Time, len(m.fragments)+1)
	m.index = -1
}

func (m *outgoing) total() uint16 { return uint16(len(m.fragments)) }

func (m *outgoing) dest(n NodeID) *destination {
	for _, d := range m.dests {
		if d.node == n {
			return d
		}
	}
	return nil
}

// idle: nothing of it waits to be sent.
func (m *outgoing) idle() bool {
	return len(m.address) == 0 && len(m.numbers) == 0 && len(m.shards) == 0 && len(m.closing) == 0
}

// compare orders messages by what is sent first: the greater priority, then the lower Message_ID, which is the older.
func (m *outgoing) compare(o *outgoing) int {
	return cmp.Or(cmp.Compare(o.priority, m.priority), cmp.Compare(m.id, o.id))
}

// addressPDUs names destinations, in as many PDUs as they need.
func (c *Config) addressPDUs(m *outgoing, dests []*destination) (out []AddressPDU) {
	most := max(1, (c.DatagramOctets-addressHeader)/addressEntry)
	for len(dests) > 0 {
		p := AddressPDU{Priority: m.priority, Total: m.total(), Source: c.Self, Message: m.id, Expiry: m.expiry}
		n := min(most, len(dests))
		for _, d := range dests[:n] {
			p.Destinations = append(p.Destinations, Destination{Node: d.node, Sequence: d.sequence})
		}
		if len(out) > 0 {
			p.MAP |= NotFirst
			out[len(out)-1].MAP |= NotLast
		}
		out = append(out, p)
		dests = dests[n:]
	}
	return out
}

// next puts what comes next of the pass under way into a datagram: one PDU, or in the compact coding all that fit behind
// those of other messages.
func (m *outgoing) next(c *Config, p *Packet) (numbers []uint16, parity int) {
	take := func() bool {
		var pdu PDU
		var n uint16
		switch {
		case len(m.address) > 0:
			pdu = m.address[0]
		case len(m.numbers) > 0:
			n = m.numbers[0]
			d := DataPDU{Priority: m.priority, Number: n, Source: c.Self, Message: m.id, Fragment: m.fragments[n-1]}
			if c.Coding == Compact && m.total() > 1 {
				d.Priority = 0 // the Address_PDU says it
			}
			pdu = d
		case len(m.shards) > 0:
			pdu = ParityPDU{Source: c.Self, Message: m.id, Total: m.total(), Last: uint16(len(m.fragments[len(m.fragments)-1])),
				Index: m.shards[0], Shard: m.shard(m.shards[0])}
		case len(m.closing) > 0:
			pdu = m.closing[0]
		default:
			return false
		}
		if len(p.PDUs) > 0 {
			more := Packet{Group: p.Group, Port: p.Port, PDUs: append(slices.Clone(p.PDUs), pdu)}
			if c.octets(more) > c.DatagramOctets {
				return false
			}
		}
		p.PDUs = append(p.PDUs, pdu)
		switch {
		case len(m.address) > 0:
			m.address = m.address[1:]
		case n > 0:
			m.numbers = m.numbers[1:]
			numbers = append(numbers, n)
		case len(m.shards) > 0:
			m.shards = m.shards[1:]
			parity++
		default:
			m.closing = m.closing[1:]
		}
		return true
	}
	for take() && c.Coding == Compact {
	}
	return numbers, parity
}

// timers is a heap of messages by wakeAt.
type timers []*outgoing

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if t[i].wakeAt.Equal(t[j].wakeAt) {
		return t[i].id < t[j].id
	}
	return t[i].wakeAt.Before(t[j].wakeAt)
}
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}
func (t *timers) Push(x any) {
	m := x.(*outgoing)
	m.index = len(*t)
	*t = append(*t, m)
}
func (t *timers) Pop() any {
	old := *t
	m := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	m.index = -1
	return m
}
