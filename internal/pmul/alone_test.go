package pmul

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// loneSender is a sender of a network of five on hf-2400, with the packets that it has sent; play lets time pass for it.
type loneSender struct {
	*Sender
	t    *testing.T
	cfg  *Config
	now  time.Time
	next time.Time
	sent []Packet
	at   []time.Time
}

func newLoneSender(t *testing.T) *loneSender {
	_, c := floorOf(t, 1)
	c.Peers, c.AckGroup, c.AckHold, c.FirstMessage = []NodeID{2, 3, 4, 5}, true, 12*time.Second, 1
	s, err := NewSender(*c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &loneSender{Sender: s, t: t, cfg: c, now: time.Unix(1_800_000_000, 0)}
}

func (l *loneSender) step(ev Event) {
	out := l.Step(l.now, ev)
	l.next = out.Deadline
	for _, p := range out.Send {
		l.sent, l.at = append(l.sent, p), append(l.at, l.now)
	}
}

func (l *loneSender) play(until time.Time) {
	for !l.next.IsZero() && !l.next.After(until) {
		l.now = l.next
		l.step(nil)
	}
	l.now = until
}

func (l *loneSender) submit(to ...NodeID) {
	l.step(Submit{Payload: make([]byte, 200), To: to, Expires: l.now.Add(time.Hour)})
}

// acknowledged makes a node acknowledge a message in a datagram that has just come.
func (l *loneSender) acknowledged(by NodeID, m MessageID) {
	l.step(Busy{By: by, Air: l.cfg.ackAir()})
	l.step(AckPDU{Source: by, Entries: []AckEntry{{Source: 1, Message: m}}})
}

// TestAlone: three of four nodes acknowledge a message that is alone on the channel. Soon after, the fourth gets it again,
// whole and to be acknowledged at once, and again as soon as no answer can come any more.
func TestAlone(t *testing.T) {
	l := newLoneSender(t)
	began := l.now
	l.submit(2, 3, 4, 5)
	check.Equal(t, "datagrams at once", len(l.sent), 1)
	for i, by := range []NodeID{2, 3, 5} {
		l.play(began.Add(15*time.Second + time.Duration(i)*l.cfg.turns(1)))
		l.acknowledged(by, 1)
	}
	last := l.now
	l.play(began.Add(45 * time.Second))
	check.True(t, "at least five more in 45 s", len(l.sent) >= 6, len(l.sent))
	check.True(t, "the first as soon as the fourth would have been heard", l.at[1].Sub(last) < 4*time.Second, l.at[1].Sub(last))
	for i, p := range l.sent[1:] {
		a, ok := p.PDUs[0].(AddressPDU)
		check.True(t, "whole, to be acknowledged at once, to the one that lacks it",
			ok && len(p.PDUs) == 2 && a.AtOnce && len(a.Destinations) == 1 && a.Destinations[0].Node == 4, p.PDUs)
		if i > 0 {
			check.True(t, "not before an answer could come", l.at[i+1].Sub(l.at[i]) > l.cfg.turns(1)+l.cfg.oneWay(), l.at[i+1].Sub(l.at[i]))
		}
	}
	l.play(began.Add(10 * time.Minute))
	check.True(t, "a node that is not there gets few more", len(l.sent) < 24, len(l.sent))
}

// TestNotAlone: if others transmit, or another message follows, the sender asks in the usual way for a missing acknowledgement.
func TestNotAlone(t *testing.T) {
	for name, before := range map[string]func(*loneSender){
		"another has just spoken":  func(l *loneSender) { l.step(Busy{By: 3, Air: time.Second}) },
		"another message has gone": func(l *loneSender) { l.submit(2, 3, 4, 5) },
	} {
		l := newLoneSender(t)
		began := l.now
		if name == "another has just spoken" {
			before(l)
		}
		l.submit(2, 3, 4, 5)
		l.play(began.Add(3 * time.Second))
		if name != "another has just spoken" {
			before(l)
		}
		l.play(began.Add(25 * time.Second))
		for _, p := range l.sent {
			for _, pdu := range p.PDUs {
				a, _ := pdu.(AddressPDU)
				check.Equal(t, name+": at once, message 1", a.AtOnce && a.Message == 1, false)
			}
		}
	}
}

// TestQuestionsBringShortMessages: on a channel of several, a node that does not answer gets a short message with each question.
func TestQuestionsBringShortMessages(t *testing.T) {
	l := newLoneSender(t)
	l.step(Busy{By: 3, Air: time.Second}) // the message does not stand alone
	l.submit(2)
	l.play(l.now.Add(2 * time.Minute))
	check.True(t, "datagrams", len(l.sent) > 2, len(l.sent))
	for _, p := range l.sent {
		_, ok := p.PDUs[len(p.PDUs)-1].(DataPDU)
		check.True(t, "has the message", ok, p.PDUs)
	}
}

// TestManyAtOnce: a message that many nodes should acknowledge at once says so. A node that has not acknowledged it when
// all have had a turn gets it again. With few nodes the usual rules hold.
func TestManyAtOnce(t *testing.T) {
	for _, many := range []bool{true, false} {
		l := newLoneSender(t)
		l.cfg.Peers = []NodeID{2, 3, 4, 5, 6, 7}
		s, err := NewSender(*l.cfg, nil)
		check.NoError(check.Fatal(t), err)
		l.Sender = s
		to := []NodeID{2, 3, 4}
		if many {
			to = l.cfg.Peers
		}
		l.step(Submit{Payload: make([]byte, 200), To: to, Expires: l.now.Add(time.Hour), AtOnce: true})
		a, _ := l.sent[0].PDUs[0].(AddressPDU)
		check.Equal(t, "says at once", a.AtOnce, many)
		if many {
			l.play(l.now.Add(l.cfg.turns(1) * 6))
			check.Equal(t, "datagrams before all could answer", len(l.sent), 1)
			l.play(l.now.Add(2*l.cfg.oneWay() + l.cfg.spread(6) + l.cfg.settle()))
			check.Equal(t, "datagrams after that", len(l.sent), 2)
		}
	}
}

// TestAtOnce: a receiver acknowledges a repeated message at once, because its sender waits, and other messages later.
func TestAtOnce(t *testing.T) {
	for _, again := range []bool{false, true} {
		_, c := floorOf(t, 4)
		c.Peers, c.AckHold = []NodeID{1, 2, 3, 5}, 12*time.Second
		r, err := NewReceiver(*c, nil)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1_800_000_000, 0)
		r.Step(now, AddressPDU{Total: 1, Source: 1, Message: 1, Expiry: now.Add(time.Hour), Destinations: []Destination{{Node: 4, Sequence: 1}}, AtOnce: again})
		r.Step(now, DataPDU{Number: 1, Source: 1, Message: 1, Fragment: []byte("one")})
		r.Step(now.Add(2*time.Second), nil)
		check.Equal(t, "acknowledged after two seconds", r.Stats().AcksSent == 1, again)
	}
}

// TestTrain: the acknowledgements of messages with pauses between wait for each other, and a node that lacks a message says
// so when the next has come. The sender repeats it at once for that node, to be acknowledged at once.
func TestTrain(t *testing.T) {
	for _, missing := range []bool{false, true} {
		_, c := floorOf(t, 4)
		c.Peers, c.AckHold, c.AckGroup = []NodeID{1, 2, 3, 5}, 12*time.Second, true
		r, err := NewReceiver(*c, nil)
		check.NoError(check.Fatal(t), err)
		now := time.Unix(1_800_000_000, 0)
		for m := range MessageID(6) {
			if !missing || m != 4 {
				r.Step(now, AddressPDU{Total: 1, Source: 1, Message: m, Expiry: now.Add(time.Hour), Destinations: []Destination{{Node: 4, Sequence: uint32(m + 1)}, {Node: 2, Sequence: uint32(m + 1)}}})
				r.Step(now, DataPDU{Number: 1, Source: 1, Message: m, Fragment: []byte("one")})
			}
			for range 9 {
				now = now.Add(time.Second)
				r.Step(now, nil)
			}
		}
		check.Equal(t, "acknowledged within a second of the last", r.Stats().AcksSent == 2, missing)
		for range 120 {
			now = now.Add(time.Second)
			r.Step(now, nil)
		}
		check.Equal(t, "in all, in runs", r.Stats().AcksSent, 2)
	}

	l := newLoneSender(t)
	for m := range MessageID(5) {
		l.submit(2, 3, 4, 5)
		l.play(l.now.Add(10 * time.Second))
		for n := NodeID(2); m < 2 && n <= 5; n++ {
			l.acknowledged(n, m+1)
		}
	}
	check.Equal(t, "datagrams", len(l.sent), 5)
	l.step(AckPDU{Source: 3, Entries: []AckEntry{{Source: 1, Message: 3}, {Source: 1, Message: 5}}})
	l.play(l.now.Add(2 * time.Second))
	again := l.of(4)[1:]
	check.True(t, "repeated to who misses it, to be acknowledged at once",
		len(again) == 1 && again[0].AtOnce && len(again[0].Destinations) == 1 && again[0].Destinations[0].Node == 3, again)
}
