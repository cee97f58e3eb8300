package pmul

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// parityMessage is a message, and the same message at a receiver that has no part of it yet.
func parityMessage(octets, size int) (*outgoing, *incoming) {
	payload := make([]byte, octets)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	m := &outgoing{}
	m.cut(payload, size)
	return m, &incoming{total: m.total(), fragments: map[uint16][]byte{}, parity: map[uint16][]byte{}, last: len(m.fragments[len(m.fragments)-1])}
}

// TestParity: any as many shards as there are fragments give the message, whichever of them are parity.
func TestParity(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, octets := range []int{101, 200, 999, 12800, 12901, 30000} {
		for range 20 {
			m, in := parityMessage(octets, 100)
			k := len(m.fragments)
			for _, i := range rng.Perm(k + 40)[:k] {
				if i < k {
					in.fragments[uint16(i+1)] = m.fragments[i]
				} else {
					in.parity[uint16(i-k)] = m.shard(uint16(i - k))
				}
			}
			if len(in.parity) == 0 {
				continue
			}
			if !in.recover() {
				t.Fatalf("%d octets: not recovered from %d fragments and %d shards", octets, len(in.fragments), len(in.parity))
			}
			for i, f := range m.fragments {
				if !bytes.Equal(in.fragments[uint16(i+1)], f) {
					t.Fatalf("%d octets: fragment %d is %x, want %x", octets, i+1, in.fragments[uint16(i+1)], f)
				}
			}
		}
	}
}

// TestParityIsStable: a shard is the same however many are made with it, so that a sender makes them when it needs them.
func TestParityIsStable(t *testing.T) {
	m, _ := parityMessage(5000, 100)
	o, _ := parityMessage(5000, 100)
	late := o.shard(100)
	check.True(t, "bytes.Equal(late, o.shard(100))", bytes.Equal(late, o.shard(100)))
	check.True(t, "bytes.Equal(m.shard(0), o.shard(0))", bytes.Equal(m.shard(0), o.shard(0)))
	check.True(t, "bytes.Equal(m.shard(15), o.shard(15))", bytes.Equal(m.shard(15), o.shard(15)))
	check.True(t, "bytes.Equal(m.shard(100), late)", bytes.Equal(m.shard(100), late))
}

// TestParityRunsOut: a message has no more shards than the field.
func TestParityRunsOut(t *testing.T) {
	m, _ := parityMessage(12800, 100)
	if !m.takeParity(128) || m.takeParity(1) {
		t.Errorf("%d shards of %d fragments", m.parityNext, len(m.fragments))
	}
	if b := m.shard(127); len(b) != 100 {
		t.Errorf("%d octets", len(b))
	}
}

// TestBadParity: shards that do not fit are counted and dropped, and the message still comes from its fragments.
func TestBadParity(t *testing.T) {
	now := year2027.Add(-time.Hour)
	r, err := NewReceiver(Config{Self: ship, Coding: Compact, DatagramOctets: 500, ClockError: time.Minute, OrphanFor: time.Minute, RememberFor: time.Hour,
		Limits: Limits{Incoming: 8, IncomingSource: 8, IncomingOctets: 4000, Orphans: 8, Remembered: 8}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	step := func(p PDU) Output { return r.Step(now, p) }
	shard := func(message MessageID, index uint16, n int) PDU {
		return ParityPDU{Source: hq, Message: message, Index: index, Shard: make([]byte, n)}
	}
	address := func(message MessageID, total, last uint16) PDU {
		return AddressPDU{Total: total, Source: hq, Message: message, Expiry: year2027, Destinations: []Destination{to(ship, 1)}, Plan: &Plan{Last: last}}
	}
	step(shard(1, 0, 10)) // before its Address_PDU
	step(address(1, 3, 5))
	step(address(2, 1, 5))                   // one fragment has no shards
	step(shard(2, 0, 10))                    // but this is one
	step(shard(1, 253, 10))                  // beyond the field
	step(shard(1, 65535, 9))                 // far beyond
	step(shard(1, 0, 0))                     // empty
	step(shard(1, 0, 4))                     // shorter than the last fragment
	step(DiscardPDU{Source: hq, Message: 2}) // so that only the first is left
	if st := r.Stats(); st.Illegal != 5 || st.Orphans != 1 {
		t.Errorf("%+v", st)
	}
	step(shard(1, 2, 2000)) // more than one source may have
	step(shard(1, 1, 10))
	step(shard(1, 1, 10))
	step(address(1, 3, 6)) // differs from the first
	step(DataPDU{Number: 1, Source: hq, Message: 1, Fragment: make([]byte, 7)})
	out := step(DataPDU{Number: 2, Source: hq, Message: 1, Fragment: make([]byte, 7)}) // enough, but no length fits
	{
		st := r.Stats()
		check.Equal(t, "len(out.Deliver)", len(out.Deliver), 0)
		check.Equal(t, "st.Conflict", st.Conflict, 1)
		check.Equal(t, "st.Full", st.Full, 1)
		check.Equal(t, "st.Duplicates", st.Duplicates, 1)
		check.Equal(t, "st.Illegal", st.Illegal, 5)
		check.Equal(t, "st.Changed", st.Changed, 1)
	}
	if out = step(DataPDU{Number: 3, Source: hq, Message: 1, Fragment: make([]byte, 5)}); len(out.Deliver) != 1 {
		t.Errorf("%+v", out)
	}
	if u := r.use[hq]; u.octets != 0 || r.octets != 0 {
		t.Errorf("%d octets are still counted, %d of the source", r.octets, u.octets)
	}
}

// FuzzEngines: for any PDUs, in any order, nothing panics, state stays within its limits, and records can be restored.
func FuzzEngines(f *testing.F) {
	f.Add([]byte("\x10\x44\x88\x27\x03\x6b\x36\xec\x80\x01\xac\x02\x46hej"))
	f.Add([]byte("\x0d\x02\x05\x03\x6b\x36\xec\x80\x01\xac\x02\x46" + "\x05\x00\x05\x01ab" + "\x07\x05\x05\x03\x02\x00ab" + "\x07\x05\x05\x03\x02\x01cd" + "\x05\x01\x01\x05\x00"))
	f.Fuzz(func(t *testing.T, script []byte) {
		cfg := Config{Self: ship, Coding: Compact, Parity: true, ParityShare: 0.2, RateBps: 2400, DatagramOctets: 100, Delay: time.Second, Turnaround: time.Second,
			RepeatCount: 2, RepeatEvery: time.Minute, ClockError: time.Minute, OrphanFor: time.Minute, RememberFor: time.Hour, ProbeEvery: time.Second, FirstMessage: 5,
			Limits: Limits{Messages: 4, Octets: 4000, Destinations: 4, Fates: 8, Incoming: 4, IncomingSource: 4, IncomingOctets: 2000, Orphans: 8, Remembered: 16}}
		s, err := NewSender(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReceiver(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		journal := map[string]Record{}
		now := year2027.Add(-time.Hour)
		act := func(out Output) {
			for _, rec := range out.Records {
				if rec.Value == nil {
					delete(journal, rec.Bucket+string(rec.Key))
				} else {
					journal[rec.Bucket+string(rec.Key)] = rec
				}
			}
			for _, p := range out.Send {
				if b, err := cfg.Encode(nil, p); err != nil || len(b) > cfg.DatagramOctets {
					t.Fatalf("%+v: %d octets, %v", p, len(b), err)
				}
			}
		}
		for i := range 3 {
			act(s.Step(now, Submit{Payload: make([]byte, 300*i), To: []NodeID{hq, 7}, Expires: now.Add(time.Hour)}))
		}
		for len(script) > 0 {
			n := min(int(script[0]), len(script)-1)
			part := script[1 : 1+n]
			script = script[1+n:]
			now = now.Add(time.Duration(n) * 100 * time.Millisecond)
			pdus, err := ParseCompact(part, hq, ship)
			if err != nil {
				if n > 0 && part[0]%4 == 0 {
					act(s.Step(now, EMCON{part[0]%8 == 0}))
					act(r.Step(now, EMCON{part[0]%8 == 0}))
				}
				continue
			}
			for _, p := range pdus {
				act(s.Step(now, p))
				act(r.Step(now, p))
			}
		}
		must := check.Fatal(t)
		check.True(must, "r.octets <= 2000", r.octets <= 2000, r.octets)
		check.True(must, "len(r.in) <= 4", len(r.in) <= 4, len(r.in))
		check.True(must, "r.loose <= 8", r.loose <= 8, r.loose)
		check.True(must, "len(r.done) <= 16", len(r.done) <= 16, len(r.done))
		check.True(must, "len(s.fates) <= 8", len(s.fates) <= 8, len(s.fates))
		check.True(must, "len(s.messages) <= 4", len(s.messages) <= 4, len(s.messages))
		var records []Record
		for _, rec := range journal {
			records = append(records, rec)
		}
		if _, err := NewSender(cfg, records); err != nil {
			t.Fatal(err)
		}
		if _, err := NewReceiver(cfg, records); err != nil {
			t.Fatal(err)
		}
	})
}

// TestJournalOf01: a receiver continues with a coded message from the journal of version 0.1. There only the records of the
// shards had the octets of its last fragment; today the message's record has them.
func TestJournalOf01(t *testing.T) {
	sent, _ := parityMessage(950, 100)
	cfg := Config{Self: ship, Coding: Compact, Parity: true, DatagramOctets: 500, ClockError: time.Minute, OrphanFor: time.Minute, RememberFor: time.Hour,
		Limits: Limits{Incoming: 8, IncomingSource: 8, IncomingOctets: 8000, Orphans: 8, Remembered: 8}}
	key := Key{hq, 1}
	now := year2027.Add(-time.Hour)
	records := func(coded bool) (list []Record) {
		m := &incoming{key: key, total: sent.total(), expiry: year2027, nodes: 1, last: 50, coding: coding{coded: coded}}
		list = append(list, Record{bucketIncoming, keyOctets(key), m.encode()})
		for n := uint16(1); n <= 7; n++ {
			list = append(list, Record{bucketFragment, fragmentKey(key, n), sent.fragments[n-1]})
		}
		if !coded {
			list = append(list, Record{bucketParity, fragmentKey(key, 0), append([]byte{0, 50}, sent.shard(0)...)})
		}
		return list
	}
	for _, coded := range []bool{false, true} {
		r, err := NewReceiver(cfg, records(coded))
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		for i := uint16(1); i <= 3 && len(out.Deliver) == 0; i++ {
			out = r.Step(now, ParityPDU{Source: hq, Message: 1, Index: i, Shard: sent.shard(i)})
		}
		want := bytes.Join(sent.fragments, nil)
		if len(out.Deliver) != 1 || !bytes.Equal(out.Deliver[0].Payload, want) {
			t.Errorf("coded %v: %d delivered", coded, len(out.Deliver))
		}
	}
	if n := len(records(false)[0].Value); n != 17 {
		t.Errorf("%d octets, version 0.1 wrote 17", n)
	}
}

// TestPlanCompletes: a receiver that has enough shards of a message, and learns only from a later question how long its
// last fragment is, has the message then, and acknowledges it.
func TestPlanCompletes(t *testing.T) {
	now := year2027.Add(-time.Hour)
	r, err := NewReceiver(Config{Self: ship, Coding: Compact, Parity: true, Turnaround: time.Second, RateBps: 2400, DatagramOctets: 500, ClockError: time.Minute,
		OrphanFor: time.Minute, RememberFor: time.Hour, Limits: Limits{Incoming: 8, IncomingSource: 8, IncomingOctets: 4000, Orphans: 8, Remembered: 8}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := parityMessage(250, 100)
	address := AddressPDU{Total: 3, Source: hq, Message: 1, Expiry: year2027, Destinations: []Destination{to(ship, 1)}}
	n := 0
	for _, p := range []PDU{address, DataPDU{Number: 1, Source: hq, Message: 1, Fragment: m.fragments[0]},
		ParityPDU{Source: hq, Message: 1, Index: 0, Left: 1, Shard: m.shard(0)}, ParityPDU{Source: hq, Message: 1, Index: 1, Shard: m.shard(1)}} {
		n += len(r.Step(now, p).Deliver)
	}
	if n != 0 {
		t.Fatalf("%d messages whose length nobody has told", n)
	}
	address.Plan = &Plan{Last: 50}
	out := r.Step(now, address)
	if len(out.Deliver) != 1 || len(out.Deliver[0].Payload) != 250 {
		t.Fatalf("%d messages after the question", len(out.Deliver))
	}
	for range 20 {
		if out.Deadline.IsZero() || len(out.Send) > 0 {
			break
		}
		out = r.Step(out.Deadline, nil)
	}
	if len(out.Send) != 1 {
		t.Errorf("%d answers to the question", len(out.Send))
	}
}
