package pmul

import (
	"math"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// TestSharesOf: a batch is divided evenly among the sources that have more to send than their share; the others can send
// all they have.
func TestSharesOf(t *testing.T) {
	const head = batchHead
	for _, tt := range []struct {
		name  string
		says  map[string][]int // octets of the messages of each source
		limit int
		each  int
	}{
		{"all fits", map[string][]int{"a": {100, 100}, "b": {50}}, 1000, math.MaxInt},
		{"one source", map[string][]int{"a": {400, 400, 400}}, 1000, 1000},
		{"two floods", map[string][]int{"a": {600, 600}, "b": {700, 700}}, 1000, 500},
		{"a flood and two who say little", map[string][]int{"a": {900, 900}, "b": {100 - head}, "c": {200 - head}}, 1000, 700},
	} {
		var waiting []*outgoing
		for source, list := range tt.says {
			for _, n := range list {
				waiting = append(waiting, &outgoing{content: content{octets: n, sourced: sourced{source: source}}})
			}
		}
		check.Equal(t, tt.name+": each", sharesOf(waiting, tt.limit).each, tt.each)
	}
	h := &shares{100, map[string]int{}}
	var held []bool
	for _, m := range []struct {
		source string
		octets int
	}{{"a", 60}, {"b", 300}, {"a", 60}, {"a", 10}, {"b", 1}} {
		held = append(held, h.holds(m.source, m.octets))
	}
	check.True(t, "the first of each source, and nothing behind what has no room", slices.Equal(held, []bool{true, true, false, false, false}), held)
}

// TestBatchAfter: a batch is read after the latest message outside of it that one of its messages follows, if that is
// before all of them.
func TestBatchAfter(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts [][2]uint32 // sequence, after
		want  uint32
	}{
		{"one after the other", [][2]uint32{{10, 1}, {11, 1}, {12, 1}}, 1},
		{"two sources", [][2]uint32{{10, 4}, {11, 8}, {12, 2}}, 4},
		{"one differs among its destinations", [][2]uint32{{10, 4}, {11, 0}}, 0},
		{"one follows what lies between", [][2]uint32{{10, 4}, {14, 2}}, 0},
		{"none before", [][2]uint32{{1, 1}, {2, 1}}, 1},
	} {
		var parts []*outgoing
		for _, p := range tt.parts {
			parts = append(parts, &outgoing{content: content{sourced: sourced{after: p[1]}}, batched: batched{sequence: p[0]}})
		}
		check.Equal(t, tt.name, batchAfter(parts), tt.want)
	}
}

// from submits a message of a source to all four nodes.
func (l *loneSender) from(source string, octets int) {
	l.step(Submit{Payload: make([]byte, octets), To: []NodeID{2, 3, 4, 5}, Source: source, Expires: l.now.Add(time.Hour)})
}

// addresses are the Address_PDUs of the datagrams from one on, by datagram.
func (l *loneSender) addresses(from int) (list [][]AddressPDU) {
	for _, p := range l.sent[from:] {
		var some []AddressPDU
		for _, pdu := range p.PDUs {
			if a, ok := pdu.(AddressPDU); ok {
				some = append(some, a)
			}
		}
		list = append(list, some)
	}
	return list
}

// TestAmidALongMessage: a short message of another source goes in the next datagram, and says that it waits for no other.
// It goes again with each of the next two of that source. A message of the long one's source waits for that.
func TestAmidALongMessage(t *testing.T) {
	l := newLoneSender(t)
	l.Batch(true)
	l.from("a", 20_000)
	l.play(l.now.Add(20 * time.Second))
	l.from("a", 40)
	var reports []MessageID
	for range 4 {
		reports = append(reports, l.Next(l.now))
		before := len(l.sent)
		l.from("b", 40)
		l.play(l.now.Add(5 * time.Second))
		next := l.addresses(before)[0]
		var ids []MessageID
		for _, a := range next {
			ids = append(ids, a.Message)
			check.True(t, "it says what it is read after", a.After > 0, a)
		}
		check.True(t, "the report and the two before it go next", slices.Equal(ids, reports[max(0, len(reports)-1-amidCopies):]), ids)
	}
	first := slices.Concat(l.addresses(0)...)
	i := slices.IndexFunc(first, func(a AddressPDU) bool { return a.Message == reports[0] })
	j := slices.IndexFunc(first, func(a AddressPDU) bool { return a.Message == reports[1] })
	check.Equal(t, "the first waits for nothing of this start", first[i].After, first[i].Destinations[0].Sequence)
	check.Equal(t, "the second waits for the first", first[j].After, 1)
	own := slices.IndexFunc(first, func(a AddressPDU) bool { return a.Message == reports[0]-1 })
	check.Equal(t, "the message behind the long one of its source has not gone", own, -1)
}

// TestOneSourceIsFirstComeFirstServed: messages of one source go in their order, and no Address_PDU is longer for them.
func TestOneSourceIsFirstComeFirstServed(t *testing.T) {
	l := newLoneSender(t)
	l.Batch(true)
	for range 40 {
		l.from("a", 200)
	}
	l.play(l.now.Add(10 * time.Minute))
	last, seen := MessageID(0), map[MessageID]bool{}
	for _, a := range slices.Concat(l.addresses(0)...) {
		check.Equal(t, "after", a.After, 0)
		if !a.Batch && !seen[a.Message] {
			check.True(t, "in order", a.Message > last, a.Message, last)
			last, seen[a.Message] = a.Message, true
		}
	}
}

// TestFreeIsDelivered: a receiver reports after which earlier message a message is read, whether it came singly or in a batch.
func TestFreeIsDelivered(t *testing.T) {
	r := newBatchReceiver(t)
	a := AddressPDU{Total: 1, Source: hq, Message: 7, Expiry: year2027, After: 3, Destinations: []Destination{to(ship, 70)}}
	r.hear(a)
	r.hear(DataPDU{Number: 1, Source: hq, Message: 7, Fragment: []byte("hej")})
	check.True(t, "alone", len(r.got) == 1 && r.got[0].Free && r.got[0].After == 67, r.got)
	r = newBatchReceiver(t)
	b := batchOf(40, "one", "two")
	address := batchAddress(b)
	address.After = address.Destinations[0].Sequence
	r.hear(address)
	for n := range b.fragments {
		r.hear(batchData(b, uint16(n+1)))
	}
	check.Equal(t, "messages", len(r.got), 2)
	for _, m := range r.got {
		check.True(t, "in a batch, after none", m.Free && m.After == 0, m)
	}
}
