package trace

import (
	"maps"
	"slices"

	"aldis/internal/link/elide"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// direction is the traffic from one node to another.
type direction struct {
	nodes    nodePair
	line     *timeline
	at       int64 // time of the present datagram, from the capture's beginning
	ledger   map[string]int64
	numbers  [frame.Queues]map[uint16]bool  // that were seen
	waiting  [frame.Queues]map[uint16]int64 // those without an acknowledgement: when they were first seen
	stream   uint16                         // of its Hello, +1; 0: no Hello seen
	store    uint32
	corpus   uint32 // of the network, as its sender names it; 0: none
	flows    map[uint32]envelope.Flow
	before   envelope.Histories // messages that later ones are coded after
	last     uint64             // highest number of the direct queue, in full
	next     uint64             // the first number that is not in before
	early    map[uint64]earlier // those that came before their turn
	session  *elide.Session
	segment  int
	sent     uint64 // generation, object and position of the highest DATA
	objects  map[uint32]*object
	segments map[uint8]map[uint64]frame.Segment // of messages that are not whole, by object and number
}

func newDirection(p nodePair, line *timeline) *direction {
	d := &direction{nodes: p, line: line, ledger: map[string]int64{}}
	d.forget()
	return d
}

// forget resets the direction: the sender counts its messages from 1 again.
func (d *direction) forget() {
	for queue := range d.numbers {
		d.numbers[queue], d.waiting[queue] = map[uint16]bool{}, map[uint16]int64{}
	}
	d.flows = map[uint32]envelope.Flow{}
	d.before, d.last, d.next, d.early = envelope.Histories{}, 0, 0, map[uint64]earlier{}
	d.objects, d.segments, d.sent = map[uint32]*object{}, map[uint8]map[uint64]frame.Segment{}, 0
}

func (d *direction) charge(kind string, octets int) {
	d.ledger[kind] += int64(octets)
	d.line.spend(d.at, kind, int64(octets))
}

// first notes a custody number and says whether it is new. Numbers are 16 bits; those half a round away are forgotten.
func (d *direction) first(queue frame.Queue, number uint16, at int64) bool {
	m := d.numbers[queue]
	if m[number] {
		return false
	}
	if len(m) >= 1<<14 {
		for n := range m {
			if number-n > 1<<13 {
				delete(m, n)
				delete(d.waiting[queue], n)
			}
		}
	}
	m[number], d.waiting[queue][number] = true, at
	return true
}

// earlier is a message that later ones may be coded after: its flow, and its payload, nil when it has none.
type earlier struct {
	flow    uint32
	payload *site.Message
}

// Bounds for messages before their turn.
const (
	firstNumbers = 64  // a capture whose first number is no higher begins with number 1
	maxEarly     = 256 // when more wait, the missing ones count as lost
)

// settle adds messages to the histories for later ones, in the order of their numbers, as the receiver does.
func (d *direction) settle(number uint64, e earlier) {
	if d.next == 0 {
		d.next = 1
		if number > firstNumbers {
			d.next = number
		}
	}
	d.last = max(d.last, number)
	if number < d.next {
		return
	}
	d.early[number] = e
	if len(d.early) > maxEarly {
		d.next = slices.Min(slices.Collect(maps.Keys(d.early)))
	}
	for {
		e, ok := d.early[d.next]
		if !ok {
			return
		}
		if e.payload != nil {
			d.before.Add(e.flow, d.next, e.payload)
		}
		delete(d.early, d.next)
		d.next++
	}
}

// unacked counts the messages of a direction, which may be nil, whose acknowledgement has not been seen.
func (d *direction) unacked() (n int64) {
	if d != nil {
		for _, w := range d.waiting {
			n += int64(len(w))
		}
	}
	return n
}
