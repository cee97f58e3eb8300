package pmul

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// batchID is the Message_ID of the batch of these tests, and batchBehind the varint in its head with the difference to its
// first message.
const (
	batchID     MessageID = 5010
	batchBehind MessageID = 1000
)

// batchOf is a batch to a ship, cut into fragments of so many octets. The first message expires a minute before the others.
func batchOf(size int, payloads ...string) *outgoing {
	b := &outgoing{content: content{id: batchID, expiry: year2027, batch: true}, plan: true}
	for i, text := range payloads {
		m := &outgoing{content: content{id: batchID - batchBehind + MessageID(i), expiry: year2027},
			dests: dests{{node: ship, sequence: 70 + uint32(i)}}}
		if i == 0 {
			m.expiry = year2027.Add(-time.Minute)
		}
		m.cut([]byte(text), 4)
		m.sequence = m.dests[0].sequence
		b.parts = append(b.parts, m)
	}
	b.cut(b.encodeParts(nil, 0), size)
	return b
}

// batchReceiver is the ship, on a channel whose answers are planned, and the content of its journal.
type batchReceiver struct {
	*Receiver
	cfg     Config
	now     time.Time
	journal map[string]Record
	got     []Message
}

func newBatchReceiver(t testing.TB) *batchReceiver {
	t.Helper()
	r := &batchReceiver{now: year2027.Add(-time.Hour), journal: map[string]Record{}, cfg: Config{Self: ship, Coding: Compact, Parity: true, RateBps: 2400,
		DatagramOctets: 100, Delay: time.Second, Turnaround: time.Second, ClockError: time.Minute, OrphanFor: time.Minute, RememberFor: 24 * time.Hour,
		Limits: Limits{Incoming: 16, IncomingSource: 16, IncomingOctets: 1 << 20, Orphans: 8, Remembered: 4 * batchMost * 2}}}
	r.restart(t)
	return r
}

func (r *batchReceiver) restart(t testing.TB) {
	t.Helper()
	var records []Record
	for _, rec := range r.journal {
		records = append(records, rec)
	}
	var err error
	if r.Receiver, err = NewReceiver(r.cfg, records); err != nil {
		t.Fatal(err)
	}
}

// hear gives the receiver a PDU, and returns the texts that were delivered.
func (r *batchReceiver) hear(ev Event) (texts []string) {
	out := r.Step(r.now, ev)
	for _, rec := range out.Records {
		if rec.Value == nil {
			delete(r.journal, rec.Bucket+string(rec.Key))
		} else {
			r.journal[rec.Bucket+string(rec.Key)] = rec
		}
	}
	for _, d := range out.Deliver {
		d.Payload = bytes.Clone(d.Payload)
		r.got = append(r.got, d)
		texts = append(texts, string(d.Payload))
	}
	return texts
}

// batchAddress is the Address_PDU of the first pass of a batch.
func batchAddress(b *outgoing) AddressPDU {
	p := b.addressPDU(hq, &destination{node: ship, sequence: 70})
	b.numbers = b.all()
	return b.withPlan(p)
}

func batchData(b *outgoing, n uint16) DataPDU {
	return DataPDU{Number: n, Source: hq, Message: b.id, Fragment: b.fragments[n-1]}
}

func TestBatchOctets(t *testing.T) {
	b := batchOf(100, "hej", "", "abcdefghi")
	b.parts[2].id++
	const want = "e807003c0368656a" + "01010000" + "02010009616263646566676869"
	if got := hex.EncodeToString(b.encodeParts(nil, 0)); got != want {
		t.Errorf("encodeParts = %s, want %s", got, want)
	}
	payload, err := hex.DecodeString(want)
	check.NoError(t, err)
	o := opening{b: payload, last: Message{Key: Key{hq, batchID}, Priority: 3, Sequence: 70}}
	var got []string
	for len(o.b) > 0 {
		ok, err := o.next(year2027)
		check.NoError(check.Fatal(t), err)
		check.True(check.Fatal(t), "a message more", ok)
		got = append(got, fmt.Sprintf("%v %d %d %d %v %s", o.last.Source, o.last.Message, o.last.Priority, o.last.Sequence, year2027.Sub(o.last.Expiry), o.last.Payload))
	}
	check.Same(t, "messages", got, []string{"0.0.0.1 4010 3 70 1m0s hej", "0.0.0.1 4011 3 71 0s ", "0.0.0.1 4013 3 72 0s abcdefghi"})
}

// A message of a batch is waited for to its last octet, and no part of it is delivered before.
func TestBatchPrefixes(t *testing.T) {
	payload := batchOf(100, "hej", "hopp").encodeParts(nil, 0)
	for n := 1; n < len(payload); n++ {
		o := opening{b: payload[:n]}
		ok, err := o.next(year2027)
		check.NoError(t, err)
		if whole := n >= 8; ok != whole {
			t.Errorf("of %d octets: %v", n, ok)
		}
		if len(o.b) == 0 {
			continue
		}
		if ok, err = o.next(year2027); ok || err != nil {
			t.Errorf("a second message in %d octets: %v, %v", n, ok, err)
		}
	}
}

// A batch with an invalid head delivers no message.
func TestBatchRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a Message_ID of 33 bits":         "8080808010 00 00 00",
		"a sequence too far on":           "0a 8120 00 00",
		"seconds of 33 bits":              "0a 00 8080808010 00",
		"a message of more than 64 MB":    "0a 00 00 81808020",
		"a Message_ID that does not end":  "ffffffffffffffffffff7f 00 00 00",
		"a message that is its own batch": "01 00 00 01 78 01 00 00 03 68656a",
	} {
		r, b := newBatchReceiver(t), batchOf(100, "x")
		b.cut(unhex(t, text), 100)
		r.hear(batchAddress(b))
		r.hear(batchData(b, 1))
		check.Equal(t, name+": delivered", len(r.got), map[bool]int{true: 1}[b.octets == 12])
		check.Equal(t, name+": illegal", r.Stats().Illegal, 1)
		r.empty(t, name)
	}
	most := make([]string, batchMost+1)
	for i := range most {
		most[i] = "x"
	}
	r, b := newBatchReceiver(t), batchOf(60, most...)
	r.hear(batchAddress(b))
	for n := range b.total() {
		r.hear(batchData(b, n+1))
	}
	check.Equal(t, "messages of a batch", len(r.got), batchMost)
	check.Equal(t, "one too many: illegal", r.Stats().Illegal, 1)
	r.empty(t, "one too many")
	r, b = newBatchReceiver(t), batchOf(60, "hej", "hopp")
	b.cut(b.encodeParts(nil, 0)[:13], 6)
	r.hear(batchAddress(b))
	for n := range b.total() {
		r.hear(batchData(b, n+1))
	}
	check.Equal(t, "cut short: illegal", r.Stats().Illegal, 1)
	r.empty(t, "cut short")
}

// Zeros fill up a batch that a message has left, wherever a fragment ends.
func TestBatchFilledUp(t *testing.T) {
	for size := 1; size < 40; size++ {
		r, b := newBatchReceiver(t), batchOf(100, "hej", "hopp")
		b.cut(append(b.encodeParts(nil, 0), make([]byte, 20)...), size)
		r.hear(batchAddress(b))
		for n := range b.total() {
			r.hear(batchData(b, n+1))
		}
		check.Equal(t, "delivered", len(r.got), 2)
		check.Equal(t, "illegal", r.Stats().Illegal, 0)
		check.True(t, "it is complete", r.done[Key{hq, b.id}] != nil)
		r.empty(t, "filled up")
	}
}

// empty expects that nothing is held, and that the accounts and the journal agree.
func (r *batchReceiver) empty(t testing.TB, what string) {
	t.Helper()
	check.Equal(t, what+": messages that are held", len(r.in), 0)
	check.Equal(t, what+": octets that are held", r.octets, 0)
	check.Equal(t, what+": messages of the source", r.used(hq).incoming, 0)
	check.Equal(t, what+": octets of the source", r.used(hq).octets, 0)
	for _, rec := range r.journal {
		if rec.Bucket != bucketDone {
			t.Errorf("%s: the journal has %s %x", what, rec.Bucket, rec.Key)
		}
	}
}

// A message is delivered as soon as its last octet and all before it are here, and once: not again by repeated PDUs, by a
// restart, by the message itself, or by parity that completes the batch.
func TestBatchDeliversPrefixes(t *testing.T) {
	b := batchOf(10, "one", "two", "three and more of it", "four", "five", "six")
	k := b.total()
	var ends []int // octets up to the end of each message
	octets := 0
	for _, p := range b.parts {
		octets += 4 + p.octets
		if len(ends) == 0 {
			octets++
		}
		ends = append(ends, octets)
	}
	check.Equal(check.Fatal(t), "octets", octets, b.octets)
	for lost := uint16(1); lost <= k; lost++ {
		r := newBatchReceiver(t)
		r.hear(batchAddress(b))
		in := check.In(t, "lost", lost)
		for n := uint16(1); n <= k; n++ {
			if n == lost {
				continue
			}
			r.hear(batchData(b, n))
			r.hear(batchData(b, n))
			r.restart(t)
			here := 10 * int(n)
			if n > lost {
				here = 10 * int(lost-1)
			}
			want, _ := slices.BinarySearch(ends, min(here, octets)+1)
			check.Equal(in, fmt.Sprint("messages delivered after fragment ", n), len(r.got), want)
		}
		r.hear(ParityPDU{Source: hq, Message: b.id, Index: 3, Shard: b.shard(3)})
		r.hear(batchAddress(b))
		r.hear(batchData(b, 1))
		check.Equal(check.Fatal(in), "delivered", len(r.got), len(b.parts))
		for i, m := range r.got {
			p := b.parts[i]
			check.Same(in, "message", m, Message{Key{hq, p.id}, p.priority, p.expiry, p.dests[0].sequence, bytes.Join(p.fragments, nil), false, 0})
			check.Equal(in, "delivered when it goes by itself", len(r.hear(p.addressPDU(hq, p.dests...))), 0)
			check.Equal(in, "delivered when it goes by itself", len(r.hear(DataPDU{Number: 1, Source: hq, Message: p.id, Fragment: p.fragments[0]})), 0)
		}
		check.True(in, "it is known as delivered", r.done[Key{hq, b.id}] != nil)
		check.Equal(in, "Address_PDUs that say otherwise than the first", r.Stats().Changed, 0)
		r.empty(t, fmt.Sprint("lost ", lost))
	}
}

// A message of which a part came singly is delivered when the batch brings it, and the part is dropped.
func TestBatchBringsWhatHasBegun(t *testing.T) {
	r, b := newBatchReceiver(t), batchOf(100, "a message", "another")
	p := b.parts[0]
	r.hear(p.addressPDU(hq, p.dests...))
	r.hear(DataPDU{Number: 1, Source: hq, Message: p.id, Fragment: p.fragments[0]})
	check.Equal(t, "messages that are held", len(r.in), 1)
	r.hear(batchAddress(b))
	check.Same(t, "delivered", r.hear(batchData(b, 1)), []string{"a message", "another"})
	r.empty(t, "at the end")
	check.Equal(t, "delivered again", len(r.hear(DataPDU{Number: 2, Source: hq, Message: p.id, Fragment: p.fragments[1]})), 0)
}

// A message that expires long before its batch is complete is remembered as long as the batch is waited for, also by a
// receiver that restarts then.
func TestBatchOutlivesItsMessages(t *testing.T) {
	r, b := newBatchReceiver(t), batchOf(10, "one", "two", "three and more of it")
	b.parts[0].expiry = r.now.Add(time.Minute)
	b.cut(b.encodeParts(nil, 0), 10)
	r.hear(batchAddress(b))
	check.Same(t, "delivered at once", r.hear(batchData(b, 1)), []string{"one"})
	for range 40 {
		r.now = r.now.Add(time.Minute)
		r.hear(nil)
	}
	r.restart(t)
	for n := uint16(2); n <= b.total(); n++ {
		r.hear(batchData(b, n))
	}
	var texts []string
	for _, m := range r.got {
		texts = append(texts, string(m.Payload))
	}
	check.Same(t, "delivered", texts, []string{"one", "two", "three and more of it"})
}

// The payload with which a message of a batch is delivered is its own: appending to it does not overwrite the next.
func TestBatchPayloadsAreApart(t *testing.T) {
	r, b := newBatchReceiver(t), batchOf(10, "one", "two", "three")
	r.hear(batchAddress(b))
	var all []string
	for n := range b.total() {
		for _, d := range r.Step(r.now, batchData(b, n+1)).Deliver {
			all = append(all, string(d.Payload))
			_ = append(d.Payload, "xxxxxxxxxx"...)
		}
	}
	check.Same(t, "delivered", all, []string{"one", "two", "three"})
}

// The record of a batch has 20 octets and ends with 1.
func TestBatchJournal(t *testing.T) {
	r, b := newBatchReceiver(t), batchOf(10, "one", "two", "three and more of it")
	r.hear(batchAddress(b))
	key := keyOctets(Key{hq, b.id})
	value := r.journal[bucketIncoming+string(key)].Value
	nanoseconds := hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(year2027.UnixNano())))
	check.Equal(t, "its record", hex.EncodeToString(value), "00"+"0004"+nanoseconds+"00000046"+"0001"+"0009"+"01")
	for _, v := range [][]byte{value[:16], value[:18], append(bytes.Clone(value[:19]), 0), append(bytes.Clone(value[:19]), 2), append(bytes.Clone(value), 1), append(bytes.Clone(value), 0, 0)} {
		if _, err := NewReceiver(r.cfg, []Record{{bucketIncoming, key, v}}); !errors.Is(err, ErrJournal) {
			t.Errorf("a record of %d octets, the last %d: %v", len(v), v[len(v)-1], err)
		}
	}
	for _, v := range [][]byte{value, value[:19], value[:17]} {
		again, err := NewReceiver(r.cfg, []Record{{bucketIncoming, key, v}})
		check.NoError(check.Fatal(t), err)
		check.Equal(t, "a batch", again.in[Key{hq, b.id}].batch, len(v) == 20)
		check.Equal(t, "octets of the last fragment", again.in[Key{hq, b.id}].last, map[bool]int{true: 9}[len(v) >= 19])
	}
}

// FuzzBatch: for any octets as a batch, in any fragments and order, with restarts between: no message of it is delivered
// twice or has another sender, delivered messages have come, the accounts are right, and unreadable batches are counted.
func FuzzBatch(f *testing.F) {
	f.Add([]byte("\x0a\x00\x3c\x03hej\x01\x01\x00\x00\x02\x01\x00\x03abc"), uint8(5), uint8(0))
	f.Add([]byte("\x0a\x00\x3c\x03hej\x01\x01\x00\x00\x02\x01\x00\x03abc"), uint8(5), uint8(2))
	f.Add([]byte("\x00\x00\x00\x01x\x00\x00\x00\x01y"), uint8(3), uint8(1))                  // the batch itself
	f.Add([]byte("\x0a\x00\x00\x01x\x0a\x00\x00\x01y\x00\x00\x00\x01z"), uint8(4), uint8(3)) // the batch itself, and a message twice
	f.Add([]byte("\x0a\x00\x00\x01x\x01\x81\x20\x00\x01y"), uint8(4), uint8(0))
	f.Add(bytes.Repeat([]byte("\x01\x01\x00\x00"), 300), uint8(90), uint8(0))
	f.Add([]byte("\x0a\x00\x00\x85\x80\x80\x20"), uint8(90), uint8(0))
	f.Fuzz(func(t *testing.T, payload []byte, size, order uint8) {
		b := batchOf(100, "x")
		b.cut(payload[:min(len(payload), 8000)], max(1, int(size)))
		if b.total() > 300 {
			return
		}
		r := newBatchReceiver(t)
		r.hear(batchAddress(b))
		numbers := b.all()
		if order%4 == 1 {
			slices.Reverse(numbers)
		}
		for i, n := range numbers {
			r.hear(batchData(b, n))
			if order%4 > 1 && i%7 == int(order/4)%7 {
				r.restart(t)
			}
		}
		seen, octets := map[Key]bool{}, 0
		for _, m := range r.got {
			if seen[m.Key] || m.Source != hq || m.Message == b.id {
				t.Fatalf("%v is delivered, %v", m.Key, r.got)
			}
			seen[m.Key] = true
			octets += len(m.Payload) + 4
		}
		must := check.Fatal(t)
		check.True(must, "octets of what is delivered", octets <= b.octets, octets, b.octets)
		if r.done[Key{hq, b.id}] == nil {
			if order%4 < 2 {
				check.True(must, "illegal", r.Stats().Illegal > 0)
			}
			r.hear(DiscardPDU{Source: hq, Message: b.id})
		} else {
			check.True(must, "messages", len(r.got) <= batchMost, len(r.got))
		}
		r.empty(t, "at the end")
		check.Equal(must, "loose fragments", r.loose, 0)
		r.restart(t)
	})
}
