package pmul_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/pmul"
)

const (
	self   pmul.NodeID = 0x0a4d0002
	origin pmul.NodeID = 0x0a4d0001
	other  pmul.NodeID = 0x0a4d0003
)

func config(t testing.TB, id pmul.NodeID, change func(*pmul.Config)) pmul.Config {
	c := pmul.ConfigFor(load(t, "hf-2400"), id, pmul.ACP142, 0, rand.New(rand.NewPCG(1, 2)))
	c.Group = 0xef010101
	if change != nil {
		change(&c)
	}
	return c
}

func newReceiver(t testing.TB, change func(*pmul.Config)) *pmul.Receiver {
	t.Helper()
	r, err := pmul.NewReceiver(config(t, self, change), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newSender(t testing.TB, change func(*pmul.Config)) *pmul.Sender {
	t.Helper()
	s, err := pmul.NewSender(config(t, self, change), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func address(message pmul.MessageID, total uint16, to ...pmul.NodeID) pmul.AddressPDU {
	p := pmul.AddressPDU{Total: total, Source: origin, Message: message, Expiry: epoch.Add(time.Hour)}
	for _, n := range to {
		p.Destinations = append(p.Destinations, pmul.Destination{Node: n, Sequence: 1})
	}
	return p
}

func data(message pmul.MessageID, n uint16, s string) pmul.DataPDU {
	return pmul.DataPDU{Number: n, Source: origin, Message: message, Fragment: []byte(s)}
}

// TestReceiverBadInput: bad PDUs are counted, and never delivered.
func TestReceiverBadInput(t *testing.T) {
	past, year2106 := address(1, 1, self), address(1, 1, self)
	past.Expiry = epoch.Add(-10 * time.Minute)
	year2106.Expiry = time.Unix(math.MaxUint32, 0).UTC()
	changed := address(1, 3, self)
	fec := address(1, 1, self)
	fec.FEC = &pmul.FEC{ID: 5}
	extra := address(1, 1, self)
	extra.Extra = true
	tests := []struct {
		name    string
		events  []pmul.Event
		deliver int
		want    pmul.ReceiverStats
	}{
		{"whole", []pmul.Event{address(1, 1, self), data(1, 1, "a")}, 1, pmul.ReceiverStats{Delivered: 1}},
		{"data first", []pmul.Event{data(1, 1, "a"), address(1, 1, self)}, 1, pmul.ReceiverStats{Delivered: 1, Orphans: 1}},
		{"data first, all of it twice", []pmul.Event{data(1, 1, "a"), data(1, 1, "a"), address(1, 1, self), address(1, 1, self), data(1, 1, "a")}, 1,
			pmul.ReceiverStats{Delivered: 1, Orphans: 2, Duplicates: 1}},
		{"for another", []pmul.Event{data(1, 1, "a"), address(1, 1, other), data(1, 1, "a")}, 0, pmul.ReceiverStats{Orphans: 2}},
		{"expired", []pmul.Event{past, data(1, 1, "a")}, 0, pmul.ReceiverStats{Expired: 1, Orphans: 1}},
		{"expires in 2106", []pmul.Event{year2106, data(1, 1, "a")}, 1, pmul.ReceiverStats{Delivered: 1}},
		{"no fragments", []pmul.Event{address(1, 0, self)}, 0, pmul.ReceiverStats{Illegal: 1}},
		{"number beyond the last", []pmul.Event{address(1, 2, self), data(1, 3, "a")}, 0, pmul.ReceiverStats{Illegal: 1}},
		{"another total", []pmul.Event{address(1, 2, self), changed, data(1, 1, "a"), data(1, 2, "b")}, 1, pmul.ReceiverStats{Delivered: 1, Changed: 1}},
		{"another total when done", []pmul.Event{address(1, 1, self), data(1, 1, "a"), changed}, 1, pmul.ReceiverStats{Delivered: 1, Changed: 1}},
		{"two senders with one Source_ID", []pmul.Event{address(1, 2, self), data(1, 1, "a"), data(1, 1, "b"), data(1, 2, "c")}, 1,
			pmul.ReceiverStats{Delivered: 1, Duplicates: 1, Conflict: 1}},
		{"our own Source_ID", []pmul.Event{pmul.DataPDU{Number: 1, Source: self}, pmul.AddressPDU{Source: self}}, 0, pmul.ReceiverStats{Twin: 2}},
		{"FEC and Extra", []pmul.Event{fec, extra, data(1, 1, "a")}, 0, pmul.ReceiverStats{PassedBy: 2, Orphans: 1}},
		{"forged Discard", []pmul.Event{address(1, 2, self), data(1, 1, "a"), pmul.DiscardPDU{Source: origin, Message: 1}, pmul.DiscardPDU{Source: origin, Message: 2}}, 0,
			pmul.ReceiverStats{Discarded: 1}},
		{"Discard of what is done", []pmul.Event{address(1, 1, self), data(1, 1, "a"), pmul.DiscardPDU{Source: origin, Message: 1}, address(1, 1, self), data(1, 1, "a")}, 1,
			pmul.ReceiverStats{Delivered: 1, Duplicates: 1}},
		{"group that is none", []pmul.Event{pmul.AnnouncePDU{Source: origin, Expiry: epoch.Add(time.Hour), Group: 0x0a000001, Destinations: []pmul.NodeID{self}}}, 0,
			pmul.ReceiverStats{Illegal: 1}},
		{"for senders", []pmul.Event{pmul.AckPDU{Source: origin}, pmul.RequestPDU{Source: origin}}, 0, pmul.ReceiverStats{PassedBy: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newReceiver(t, nil)
			got := 0
			for _, ev := range tt.events {
				out := r.Step(epoch, ev)
				got += len(out.Deliver)
				if len(out.Send) > 0 {
					t.Errorf("sent at once: %+v", out.Send)
				}
			}
			if got != tt.deliver || r.Stats() != tt.want {
				t.Errorf("delivered %d, %+v; want %d, %+v", got, r.Stats(), tt.deliver, tt.want)
			}
		})
	}
	t.Run("not a member", func(t *testing.T) {
		r := newReceiver(t, func(c *pmul.Config) { c.Peers = []pmul.NodeID{other} })
		r.Step(epoch, address(1, 1, self))
		if st := r.Stats(); st.Strangers != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestReceiverLimits: hostile senders fill their own share, and honest ones still get through.
func TestReceiverLimits(t *testing.T) {
	small := func(c *pmul.Config) {
		c.Limits.Incoming, c.Limits.IncomingSource, c.Limits.IncomingOctets, c.Limits.Orphans, c.Limits.Remembered = 16, 4, 4000, 40, 80
	}
	r := newReceiver(t, small)
	held := map[string]int{} // records in the journal, by bucket
	keep := func(out pmul.Output) {
		for _, rec := range out.Records {
			held[rec.Bucket]++
			if rec.Value == nil {
				held[rec.Bucket] -= 2
			}
		}
	}
	for m := pmul.MessageID(1); m < 20000; m++ { // one source, all kinds of state
		keep(r.Step(epoch, address(m, 65535, self)))
		keep(r.Step(epoch, data(m, uint16(m), "0123456789")))
		keep(r.Step(epoch, data(m+1_000_000, 1, "0123456789")))
		keep(r.Step(epoch, address(m+2_000_000, 1, self)))
		keep(r.Step(epoch, data(m+2_000_000, 1, "whole")))
		keep(r.Step(epoch, pmul.AnnouncePDU{Source: origin, Message: m, Expiry: epoch.Add(time.Hour), Group: 0xef000000 + pmul.GroupAddr(m), Destinations: []pmul.NodeID{self}}))
	}
	if held["pmul-in"] > 4 || held["pmul-frag"] > 100 || held["pmul-done"] > 20 {
		t.Errorf("one source made %v", held)
	}
	honest := address(7, 1, self)
	honest.Source = other
	keep(r.Step(epoch, honest))
	out := r.Step(epoch, pmul.DataPDU{Number: 1, Source: other, Message: 7, Fragment: []byte("hej")})
	keep(out)
	if len(out.Deliver) != 1 {
		t.Error("an honest sender does not get through")
	}
	for n := range 2000 { // many sources
		p := address(1, 65535, self)
		p.Source = pmul.NodeID(n)
		keep(r.Step(epoch, p))
		keep(r.Step(epoch, pmul.DataPDU{Number: 1, Source: pmul.NodeID(n), Message: 2, Fragment: []byte("orphan")}))
	}
	if held["pmul-in"] > 16 {
		t.Errorf("many sources made %v", held)
	}
	if out := r.Step(epoch.Add(2*time.Hour), nil); len(out.Records) == 0 {
		t.Error("nothing was swept")
	} else {
		keep(out)
	}
	if held["pmul-in"] != 0 || held["pmul-frag"] != 0 || held["pmul-done"] != 0 {
		t.Errorf("two hours after, the journal holds %v", held)
	}
}

// TestSubmitRefused: an operator's mistakes get an error.
func TestSubmitRefused(t *testing.T) {
	good := pmul.Submit{Ref: 9, Payload: []byte("hej"), To: []pmul.NodeID{origin}, Expires: epoch.Add(time.Hour)}
	tests := []struct {
		name   string
		change func(*pmul.Submit)
		want   error
	}{
		{"good", func(*pmul.Submit) {}, nil},
		{"unknown ship", func(s *pmul.Submit) { s.To = []pmul.NodeID{origin, 99} }, pmul.ErrUnknownNode},
		{"nobody", func(s *pmul.Submit) { s.To = nil }, pmul.ErrDestinations},
		{"twice", func(s *pmul.Submit) { s.To = []pmul.NodeID{origin, origin} }, pmul.ErrDestinations},
		{"itself", func(s *pmul.Submit) { s.To = []pmul.NodeID{self} }, pmul.ErrDestinations},
		{"past", func(s *pmul.Submit) { s.Expires = epoch }, pmul.ErrExpired},
		{"after 2106", func(s *pmul.Submit) { s.Expires = time.Unix(1<<32, 0) }, pmul.ErrExpired},
		{"too large", func(s *pmul.Submit) { s.Payload = make([]byte, 492*65535+1) }, pmul.ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSender(t, func(c *pmul.Config) { c.Peers = []pmul.NodeID{self, origin} })
			ev := good
			tt.change(&ev)
			out := s.Step(epoch, ev)
			if len(out.Accepted) != 1 || out.Accepted[0].Ref != 9 || !errors.Is(out.Accepted[0].Err, tt.want) {
				t.Errorf("%+v; want %v", out.Accepted, tt.want)
			}
			if tt.want != nil {
				check.Equal(t, "len(out.Records)", len(out.Records), 0)
				check.Equal(t, "len(out.Send)", len(out.Send), 0)
				check.Equal(t, "len(s.Messages())", len(s.Messages()), 0)
			}
		})
	}
}

// TestFullStore: the message of lowest priority that has not begun gives way, with a report; otherwise the new one is refused.
func TestFullStore(t *testing.T) {
	s := newSender(t, func(c *pmul.Config) { c.Limits.Messages = 3 })
	submit := func(priority uint8) pmul.Output {
		return s.Step(epoch, pmul.Submit{Payload: []byte("hej"), To: []pmul.NodeID{origin}, Priority: priority, Expires: epoch.Add(time.Hour)})
	}
	submit(0) // begins at once: it is on the air
	first := submit(2).Accepted[0].Message
	low := submit(1).Accepted[0].Message
	out := submit(5)
	check.Equal(check.Fatal(t), "len(out.Fates)", len(out.Fates), 1)
	check.Equal(t, "out.Fates[0].Message", out.Fates[0].Message, low)
	check.Equal(t, "out.Fates[0].State", out.Fates[0].State, pmul.Refused)
	check.True(t, "no out.Accepted[0].Err", out.Accepted[0].Err == nil, out.Accepted[0].Err)
	if out := submit(2); !errors.Is(out.Accepted[0].Err, pmul.ErrFull) {
		t.Errorf("%+v", out.Accepted)
	}
	if st, known := s.Fate(low, origin); !known || st != pmul.Refused {
		t.Errorf("%v, %v", st, known)
	}
	if st, known := s.Fate(first, origin); !known || st != pmul.Waiting {
		t.Errorf("%v, %v", st, known)
	}
}

// TestSenderBadInput: acknowledgements that make no sense change nothing.
func TestSenderBadInput(t *testing.T) {
	s := newSender(t, nil)
	out := s.Step(epoch, pmul.Submit{Payload: make([]byte, 1000), To: []pmul.NodeID{origin}, Expires: epoch.Add(time.Hour)})
	m := out.Accepted[0].Message
	ack := func(from pmul.NodeID, e pmul.AckEntry) {
		s.Step(epoch.Add(time.Second), pmul.AckPDU{Source: from, Entries: []pmul.AckEntry{e}})
	}
	ack(other, pmul.AckEntry{Source: self, Message: m})      // never sent to it
	ack(origin, pmul.AckEntry{Source: self, Message: m + 1}) // never sent
	ack(origin, pmul.AckEntry{Source: other, Message: m})    // another's message
	ack(origin, pmul.AckEntry{Source: self, Message: m, Missing: []pmul.Run{{From: 1, To: 65535}}})
	s.Step(epoch, pmul.DataPDU{Source: self, Number: 1})
	s.Step(epoch, pmul.RejectPDU{Source: other, Message: m})
	st := s.Stats()
	check.Equal(t, "st.Strangers", st.Strangers, 1)
	check.Equal(t, "st.Unknown", st.Unknown, 1)
	check.Equal(t, "st.PassedBy", st.PassedBy, 1)
	check.Equal(t, "st.Illegal", st.Illegal, 1)
	check.Equal(t, "st.Twin", st.Twin, 1)
	check.Equal(t, "st.Rejected", st.Rejected, 1)
	if state, known := s.Fate(m, origin); !known || state != pmul.Waiting {
		t.Errorf("%v, %v", state, known)
	}
	ack(origin, pmul.AckEntry{Source: self, Message: m})
	ack(origin, pmul.AckEntry{Source: self, Message: m})
	if state, _ := s.Fate(m, origin); state != pmul.Delivered || s.Stats().Late != 1 {
		t.Errorf("%v, %+v", state, s.Stats())
	}
}

// TestEnds: expiry and withdrawal end a message once, with a Discard_Message_PDU if it was on the air.
func TestEnds(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		s := newSender(t, nil)
		out := s.Step(epoch, pmul.Submit{Payload: []byte("hej"), To: []pmul.NodeID{origin, other}, Expires: epoch.Add(time.Minute)})
		m := out.Accepted[0].Message
		now := epoch
		var fates []pmul.Fate
		discards := 0
		step := func(ev pmul.Event) {
			out := s.Step(now, ev)
			fates = append(fates, out.Fates...)
			for _, p := range out.Send {
				if p.PDUs[0].Kind() == pmul.KindDiscard {
					discards++
				}
			}
		}
		want := pmul.Expired
		for ; now.Before(epoch.Add(2 * time.Minute)); now = now.Add(time.Second) {
			var ev pmul.Event
			switch now.Sub(epoch) {
			case 10 * time.Second:
				ev = pmul.AckPDU{Source: other, Entries: []pmul.AckEntry{{Source: self, Message: m}}}
			case 20 * time.Second:
				if cancel {
					ev, want = pmul.Cancel{Message: m}, pmul.Cancelled
				}
			}
			step(ev)
		}
		check.Equal(check.Fatal(t), "len(fates)", len(fates), 2)
		check.Equal(t, "fates[0].To", fates[0].To, other)
		check.Equal(t, "fates[0].State", fates[0].State, pmul.Delivered)
		check.Equal(t, "fates[1].To", fates[1].To, origin)
		check.Equal(t, "fates[1].State", fates[1].State, want)
		check.Equal(t, "discards", discards, 1)
		if out := s.Step(now, nil); len(s.Messages()) != 0 || !out.Deadline.IsZero() {
			t.Errorf("%d messages are left, deadline %v", len(s.Messages()), out.Deadline)
		}
	}
}

// TestBrokenJournal: a record that cannot be read is an error, not a guess.
func TestBrokenJournal(t *testing.T) {
	for _, bucket := range pmul.Buckets() {
		for _, rec := range []pmul.Record{{Bucket: bucket, Key: []byte{1}, Value: []byte{1}}, {Bucket: bucket, Key: make([]byte, 10), Value: []byte{}},
			{Bucket: bucket, Key: make([]byte, 8), Value: []byte{9}}, {Bucket: bucket, Key: make([]byte, 4), Value: make([]byte, 14)}} {
			_, err := pmul.NewSender(config(t, self, nil), []pmul.Record{rec})
			_, err2 := pmul.NewReceiver(config(t, self, nil), []pmul.Record{rec})
			for _, err := range []error{err, err2} {
				if err != nil && !errors.Is(err, pmul.ErrJournal) {
					t.Errorf("%s: %v", bucket, err)
				}
			}
		}
	}
	if _, err := pmul.NewReceiver(config(t, self, nil), []pmul.Record{{Bucket: "pmul-in", Key: []byte{1}}}); err == nil {
		t.Error("a short key was taken")
	}
	if _, err := pmul.NewSender(config(t, self, nil), []pmul.Record{{Bucket: "pmul-out", Key: []byte{1}}}); err == nil {
		t.Error("a short key was taken")
	}
}

// TestDynamicGroup: Request, no Reject, Announce, message, Release; and a group in use is rejected.
func TestDynamicGroup(t *testing.T) {
	p := lossy(load(t, "hf-2400"), 0, false)
	w := newWorld(t, setup{nodes: 4, p: p, seed: 3, change: func(c *pmul.Config) { c.FirstMessage, c.GroupPool = 1, []pmul.GroupAddr{0xef010201, 0xef010202} }})
	kinds := map[pmul.Kind]int{}
	w.sent = func(_ *node, data []byte) {
		pdu, _, err := pmul.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		kinds[pdu.Kind()]++
	}
	most := 0
	w.tap = func(_, _ *node, _ []byte) bool {
		for _, n := range w.nodes {
			most = max(most, len(n.joined))
		}
		return true
	}
	submit := func(from *node, g pmul.GroupAddr, to ...*node) {
		ev := pmul.Submit{Payload: content(3000, 1), Dynamic: true, Group: g, Expires: w.now.Add(time.Hour)}
		for _, n := range to {
			ev.To = append(ev.To, n.id)
		}
		w.sendStep(from, ev)
	}
	submit(w.nodes[0], 0xef010202, w.nodes[2], w.nodes[3])
	w.run(25*time.Second, nil)
	submit(w.nodes[1], 0xef010202, w.nodes[2], w.nodes[3]) // taken
	w.run(2*time.Hour, nil)
	for _, n := range w.nodes[2:] {
		if len(n.delivered) != 2 || len(n.joined) != 0 {
			t.Errorf("%s has %d messages and %d groups", n.name, len(n.delivered), len(n.joined))
		}
	}
	for _, n := range w.nodes[:2] {
		for _, f := range n.fates {
			if f.State != pmul.Delivered {
				t.Errorf("%s: %+v", n.name, f)
			}
		}
	}
	t.Logf("%v", kinds)
	check.Equal(t, "kinds[pmul.KindReject]", kinds[pmul.KindReject], 1)
	check.Equal(t, "kinds[pmul.KindRequest]", kinds[pmul.KindRequest], 3)
	check.Equal(t, "kinds[pmul.KindAnnounce]", kinds[pmul.KindAnnounce], 4)
	check.Equal(t, "kinds[pmul.KindRelease]", kinds[pmul.KindRelease], 3)
	check.Differ(t, "most", most, 0)
}

// TestGroupOfTwo: a sender asks for the group of another's message while that is on the air, and its Request_PDU or the
// Reject_PDU may be lost. A node that joined for one message may have heard the other, says so, and leaves with the first:
// it is asked to join again. 1 of 100 such messages used to wait until it expired.
func TestGroupOfTwo(t *testing.T) {
	p := lossy(load(t, "hf-2400"), 14, true)
	for seed := range uint64(400) {
		grouped := map[string]pmul.GroupAddr{}
		const group = 0xef010102
		w := newWorld(t, setup{nodes: 5, p: p, seed: seed + 1, change: func(c *pmul.Config) {
			c.FirstMessage, c.GroupPool = 1, []pmul.GroupAddr{group, group + 1, group + 2, group + 3}
		}})
		w.packet = func(p pmul.Packet, data []byte) {
			if p.Group >= group {
				grouped[string(data)] = p.Group
			}
		}
		w.tap = func(_, to *node, data []byte) bool {
			return grouped[string(data)] == 0 || to.joined[grouped[string(data)]]
		}
		submit := func(from *node, octets int, to ...*node) {
			ev := pmul.Submit{Payload: content(octets, 1), Dynamic: true, Group: group, Expires: w.now.Add(10 * time.Hour)}
			for _, n := range to {
				ev.To = append(ev.To, n.id)
			}
			w.sendStep(from, ev)
		}
		submit(w.nodes[0], 8000, w.nodes[2:]...)
		w.run(30*time.Second, nil)
		submit(w.nodes[1], 3000, w.nodes[2:4]...)
		w.run(2*time.Hour, func() bool { return len(w.nodes[0].fates) == 3 && len(w.nodes[1].fates) == 2 })
		if len(w.nodes[0].fates) != 3 || len(w.nodes[1].fates) != 2 {
			t.Errorf("seed %d: after two hours %+v, %+v", seed+1, w.nodes[0].fates, w.nodes[1].fates)
		}
		for _, f := range append(w.nodes[0].fates, w.nodes[1].fates...) {
			if f.State != pmul.Delivered {
				t.Errorf("seed %d: %+v", seed+1, f)
			}
		}
	}
}

// TestRide: acknowledgements fill the room that a datagram has left, and never leave a silent node.
func TestRide(t *testing.T) {
	receiver := func() *pmul.Receiver {
		cfg := pmul.ConfigFor(load(t, "hf-2400"), 2, pmul.Compact, sealOctets, nil)
		cfg.AckHold = time.Minute
		r, err := pmul.NewReceiver(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		for source := range pmul.NodeID(3) {
			for m := range pmul.MessageID(4) {
				a, d := address(m, 1, 2), data(m, 1, "x")
				a.Source, d.Source = source+10, source+10
				r.Step(epoch, a)
				r.Step(epoch, d)
			}
		}
		return r
	}
	r := receiver()
	count := func(out pmul.Output) (n int) {
		for _, p := range out.Ride {
			n += len(p.(pmul.AckPDU).Entries)
		}
		return n
	}
	if out := r.Step(epoch, pmul.Ride{Octets: 5}); count(out) != 0 {
		t.Errorf("%+v in 5 octets", out.Ride)
	}
	if out := r.Step(epoch, pmul.Ride{Octets: 25}); count(out) != 8 {
		t.Errorf("%+v in 25 octets", out.Ride)
	}
	if out := r.Step(epoch, pmul.Ride{Octets: 400}); count(out) != 4 || !out.Deadline.IsZero() {
		t.Errorf("%+v, deadline %v", out.Ride, out.Deadline)
	}
	r = receiver()
	late := epoch.Add(2 * time.Minute)
	if out := r.Step(late, pmul.Ride{Octets: 1}); count(out)+len(out.Send) != 0 || out.Deadline.IsZero() || out.Deadline.After(late) {
		t.Errorf("what is due and has no room went: %+v", out)
	}
	if out := r.Step(late, nil); len(out.Send) == 0 {
		t.Errorf("what is due and had no room did not go: %+v", out)
	}
	r = receiver()
	r.Step(epoch, pmul.EMCON{Silent: true})
	if out := r.Step(epoch, pmul.Ride{Octets: 400}); count(out) != 0 {
		t.Errorf("a silent node rides: %+v", out.Ride)
	}
}
