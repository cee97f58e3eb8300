package pmul_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// TestForgedDiscard: the harm that anybody can do to plain ACP 142. A receiver drops its fragments of the one message that
// is named, asks for it again and gets it; other messages and complete ones are not affected.
func TestForgedDiscard(t *testing.T) {
	w := newWorld(t, setup{nodes: 3, p: lossy(load(t, "hf-2400"), 0, false), seed: 1})
	hq := w.nodes[0]
	done := w.send(hq, content(300, 1), 0, time.Hour, w.nodes[1:]...)
	w.run(2*time.Minute, func() bool { return len(hq.fates) == 2 })
	named := w.send(hq, content(5000, 2), 0, time.Hour, w.nodes[1:]...)
	spared := w.send(hq, content(3000, 3), 0, time.Hour, w.nodes[1:]...)
	w.run(w.now.Sub(epoch)+14*time.Second, nil)
	victim := w.nodes[1]
	if in := victim.receiver.Incoming(); len(in) == 0 || in[0].Key != named || in[0].Has < 3 {
		t.Fatalf("in the middle it has %+v", in)
	}
	for _, m := range []pmul.MessageID{done.Message, named.Message, named.Message + 1000} {
		w.receiveStep(victim, pmul.DiscardPDU{Source: hq.id, Message: m})
	}
	if st := victim.receiver.Stats(); st.Discarded != 1 {
		t.Errorf("%+v", st)
	}
	w.run(time.Hour, func() bool { return len(hq.fates) == 6 })
	for key, want := range map[pmul.Key][]byte{done: content(300, 1), named: content(5000, 2), spared: content(3000, 3)} {
		for _, n := range w.nodes[1:] {
			if !bytes.Equal(n.payload[key], want) || n.twice != 0 {
				t.Errorf("message %d at %s: %d octets, %d twice", key.Message, n.name, len(n.payload[key]), n.twice)
			}
		}
	}
	for _, f := range hq.fates {
		if f.State != pmul.Delivered {
			t.Errorf("%+v", f)
		}
	}
	extra := hq.sender.Stats().AgainOctets
	t.Logf("a forged Discard_Message_PDU in the middle of 5,000 octets cost %d octets again", extra)
	if extra == 0 || extra > 5000 {
		t.Errorf("%d octets went again, want what was forgotten", extra)
	}
}

// TestForgedAck: it ends the one message for the one recipient that it names as its Source_ID, and no other.
func TestForgedAck(t *testing.T) {
	s := newSender(t, nil)
	first := s.Step(epoch, pmul.Submit{Payload: []byte("a"), To: []pmul.NodeID{origin, other}, Expires: epoch.Add(time.Hour)}).Accepted[0].Message
	second := s.Step(epoch, pmul.Submit{Payload: []byte("b"), To: []pmul.NodeID{origin, other}, Expires: epoch.Add(time.Hour)}).Accepted[0].Message
	for now := epoch; now.Before(epoch.Add(10 * time.Second)); now = now.Add(100 * time.Millisecond) {
		s.Step(now, nil)
	}
	out := s.Step(epoch.Add(10*time.Second), pmul.AckPDU{Source: origin, Entries: []pmul.AckEntry{{Source: self, Message: first}}})
	if len(out.Fates) != 1 || out.Fates[0].Message != first || out.Fates[0].To != origin {
		t.Errorf("%+v", out.Fates)
	}
	for _, tt := range []struct {
		m    pmul.MessageID
		n    pmul.NodeID
		want pmul.State
	}{{first, origin, pmul.Delivered}, {first, other, pmul.Waiting}, {second, origin, pmul.Waiting}, {second, other, pmul.Waiting}} {
		if got, _ := s.Fate(tt.m, tt.n); got != tt.want {
			t.Errorf("message %d to %v is %v, want %v", tt.m, tt.n, got, tt.want)
		}
	}
}

// TestProfileLimits: the profile sets the engines' limits, for one sender and in all, and both can be filled.
func TestProfileLimits(t *testing.T) {
	p := load(t, "hf-2400")
	p.PMulUse = profile.PMulUse{RepeatCount: 7, RepeatEvery: time.Hour, Messages: 5, Octets: 3000, Incoming: 8, IncomingOctets: 4000}
	cfg := pmul.ConfigFor(p, self, pmul.ACP142, 0, nil)
	if cfg.RepeatCount != 7 || cfg.RepeatEvery != time.Hour {
		t.Errorf("%d repetitions, every %v", cfg.RepeatCount, cfg.RepeatEvery)
	}
	submit := func(octets, most int) (n int) {
		s, err := pmul.NewSender(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		for ; n < 100; n++ {
			err := s.Step(epoch, pmul.Submit{Payload: make([]byte, octets), To: []pmul.NodeID{origin}, Expires: epoch.Add(time.Hour)}).Accepted[0].Err
			if errors.Is(err, pmul.ErrFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n != most {
			t.Errorf("a sender took %d messages of %d octets, want %d", n, octets, most)
		}
		return n
	}
	submit(10, 5)
	submit(1000, 3)

	r, err := pmul.NewReceiver(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(source pmul.NodeID, m pmul.MessageID) {
		a := address(m, 9, self)
		a.Source = source
		r.Step(epoch, a)
	}
	for m := range pmul.MessageID(20) {
		begin(origin, m)
	}
	if n := len(r.Incoming()); n != 2 || r.Stats().Full != 18 {
		t.Errorf("one sender has %d messages begun, %d refused; want a quarter of 8", n, r.Stats().Full)
	}
	for source := range pmul.NodeID(20) {
		begin(100+source, 1)
	}
	if n := len(r.Incoming()); n != 8 {
		t.Errorf("%d messages begun, want 8", n)
	}
	held := func() (n int) {
		for _, m := range r.Incoming() {
			n += m.Has
		}
		return n
	}
	for n := range uint16(9) { // 100 octets each: 1,000 of one sender, 4,000 in all
		for m := range pmul.MessageID(2) {
			r.Step(epoch, pmul.DataPDU{Source: origin, Message: m, Number: n + 1, Fragment: make([]byte, 100)})
		}
	}
	if n := held(); n != 10 {
		t.Errorf("%d fragments of 100 octets of one sender are held, want 10", n)
	}
	for source := range pmul.NodeID(20) {
		for n := range uint16(8) {
			r.Step(epoch, pmul.DataPDU{Source: 100 + source, Message: 1, Number: n + 1, Fragment: make([]byte, 100)})
			r.Step(epoch, pmul.DataPDU{Source: 200 + source, Message: 1, Number: n + 1, Fragment: make([]byte, 100)}) // without Address_PDU
		}
	}
	if n := held(); n > 40 {
		t.Errorf("%d fragments of 100 octets are held, want 40 or fewer", n)
	}
}
