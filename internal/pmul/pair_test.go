package pmul

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// newPairSender is a sender of one of two on hf-2400.
func newPairSender(t *testing.T) *loneSender {
	l := newLoneSender(t)
	c := *l.cfg
	c.Peers, c.Hears, c.Pair = []NodeID{2}, false, true
	s, err := NewSender(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.cfg, l.Sender = &c, s
	return l
}

// While the other of two talks the radio is given no more than some datagrams ahead, so that its queue does not run over; nothing
// is asked for what waits in it; and all of it goes afterwards.
func TestPairCountsTheAirOfTheOther(t *testing.T) {
	l := newPairSender(t)
	for range 30 {
		l.submit(2)
	}
	began, full := l.now, l.cfg.fullAir()
	for range 20 { // a minute of it, one datagram after the other
		l.play(l.now.Add(3 * time.Second))
		l.step(Busy{By: 2, Air: 3 * time.Second})
	}
	most := 1 + aheadAir + int((l.cfg.Delay+l.cfg.Turnaround+l.cfg.oneWay()+3*time.Second)/full)
	check.True(t, "datagrams that the radio was given while the other talked", len(l.sent) <= most, len(l.sent), most)
	check.Equal(t, "questions", l.Stats().Polls, 0)
	l.play(began.Add(2 * time.Minute))
	check.True(t, "all have gone", l.Stats().DataSent >= 30, l.Stats().DataSent)
}

// Of two, one answers about later messages, and what it says of the first is lost again and again: the question about that comes no
// later the fifth time than the second, and its lateness is not learnt from answers that questions have brought.
func TestPairAsksAgainSoon(t *testing.T) {
	l := newPairSender(t)
	l.submit(2)
	for n := MessageID(2); n < 30; n++ {
		l.play(l.now.Add(20 * time.Second))
		l.submit(2)
		l.play(l.now.Add(10 * time.Second))
		l.step(Busy{By: 2, Air: l.cfg.ackAir()})
		l.step(AckPDU{Source: 2, Entries: []AckEntry{{Source: 1, Message: n}}})
	}
	var last time.Time
	asked := 0
	for i, p := range l.sent {
		for _, pdu := range p.PDUs {
			if a, ok := pdu.(AddressPDU); ok && a.Message == 1 {
				if asked++; asked > 1 {
					check.True(t, "within a turn and what an answer takes", l.at[i].Sub(last) <= l.cfg.Hold+l.cfg.ackWait(1, 1), l.at[i].Sub(last))
				}
				last = l.at[i]
			}
		}
	}
	check.True(t, "it was asked for often", asked > 10, asked)
	check.True(t, "until the end", l.now.Sub(last) <= l.cfg.Hold+l.cfg.ackWait(1, 1), l.now.Sub(last))
	check.Equal(t, "lateness", l.late, 0)
}
