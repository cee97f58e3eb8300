package pmul

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// turnOf makes another node announce that it has the floor.
func (l *loneSender) turnOf(by, next NodeID, left time.Duration) {
	l.step(Busy{By: by, Air: time.Second})
	l.step(TurnPDU{Source: by, Number: 7, Left: left, Next: next, More: true})
}

func (l *loneSender) flash() {
	l.step(Submit{Payload: make([]byte, 100), To: []NodeID{2, 3, 4, 5}, Expires: l.now.Add(time.Hour), Priority: alarm})
}

// of lists the Address_PDUs of a message that were sent.
func (l *loneSender) of(m MessageID) (list []AddressPDU) {
	for _, p := range l.sent {
		for _, pdu := range p.PDUs {
			if a, ok := pdu.(AddressPDU); ok && a.Message == m {
				list = append(list, a)
			}
		}
	}
	return list
}

// TestUrgentInTurns: while another node has the floor, a flash goes at once and a routine message does not. The flash goes
// again in this node's next turn, to nodes that have not acknowledged it, in a datagram with other messages.
func TestUrgentInTurns(t *testing.T) {
	for _, all := range []bool{false, true} {
		l := newLoneSender(t)
		for range 8 {
			l.submit(2, 3, 4, 5)
		}
		l.play(l.now.Add(20 * time.Second))
		l.turnOf(3, 1, 25*time.Second)
		for range 8 {
			l.submit(2, 3, 4, 5)
		}
		sent := len(l.sent)
		l.flash()
		check.Equal(t, "datagrams", len(l.sent)-sent, 1)
		check.Equal(t, "the flash", len(l.of(17)), 1)
		l.play(l.now.Add(20 * time.Second))
		check.Equal(t, "datagrams amid the turn", len(l.sent)-sent, 1)
		by := []NodeID{2, 3, 5}
		if all {
			by = append(by, 4)
		}
		for _, n := range by {
			l.step(AckPDU{Source: n, Entries: []AckEntry{{Source: 1, Message: 17}}})
		}
		l.play(l.now.Add(40 * time.Second))
		again := l.of(17)[1:]
		if all {
			check.Equal(t, "again, though all have it", len(again), 0)
			continue
		}
		check.Equal(t, "again", len(again), 1)
		check.True(t, "to whom", len(again[0].Destinations) == 1 && again[0].Destinations[0].Node == 4, again)
		for _, p := range l.sent[sent+1:] {
			if slices.ContainsFunc(p.PDUs, func(pdu PDU) bool { a, ok := pdu.(AddressPDU); return ok && a.Message == 17 }) {
				check.True(t, "in a datagram of the turn", p.PDUs[0].Kind() == kindTurn && len(p.PDUs) > 3, p.PDUs)
			}
		}
	}
}

// TestUrgentBounded: many flashes do not all go to the radio at once while another node has the floor.
func TestUrgentBounded(t *testing.T) {
	l := newLoneSender(t)
	l.turnOf(3, 1, time.Minute)
	for range 100 {
		l.flash()
	}
	check.True(t, "some at once, and not all", len(l.sent) >= 2 && len(l.sent) < 8, len(l.sent))
}

// TestCountedOnce: a datagram that is handed over in the turn of another node leaves when that turn ends; the datagrams of
// the turn do not put it off once more. The radio used to count as still holding it, and no other datagram went.
func TestCountedOnce(t *testing.T) {
	l := newLoneSender(t)
	l.turnOf(3, 1, 25*time.Second)
	end := l.floor.end
	l.flash()
	leaves := l.airAt
	for at := l.now.Add(time.Second); at.Before(end.Add(l.cfg.Delay)); at = at.Add(time.Second) {
		l.play(at)
		l.step(Busy{By: 3, Air: time.Second})
	}
	check.Equal(t, "when it leaves", l.airAt, leaves)
	l.step(Busy{By: 2, Air: time.Second})
	check.Equal(t, "when another has spoken too", l.airAt, leaves.Add(time.Second+l.cfg.Turnaround))
}

// TestFloorWaitsLonger: a node that transmits between the end of a turn and the first datagram of the next puts off the
// following turns.
func TestFloorWaitsLonger(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f, c := floorOf(t, 2)
	f.heard(now, c, 3, TurnPDU{Source: 3, Number: 7, Next: 4, More: true}, now)
	lapse := f.lapse(c)
	f.spoke(c, 5, now.Add(3*time.Second), time.Second, false)
	check.Equal(t, "nobody has the floor", f.lapse(c), lapse.Add(time.Second+2*c.Turnaround))
}

// TestBreath: once another node has sent a flash, the radio of the talker runs dry again and again, and not before that.
func TestBreath(t *testing.T) {
	for _, broken := range []bool{false, true} {
		l := newLoneSender(t)
		l.step(Busy{By: 3, Air: time.Second})
		for range 60 {
			l.submit(2, 3, 4, 5)
		}
		l.play(l.now.Add(5 * time.Second))
		if broken {
			l.step(AddressPDU{Source: 4, Priority: alarm})
		}
		dry := 0
		for until := l.now.Add(20 * time.Second); !l.next.IsZero() && l.next.Before(until); {
			l.now = l.next
			was, left := len(l.sent), l.airAt
			l.step(nil)
			if len(l.sent) > was && !left.After(l.now) {
				dry++
			}
		}
		check.True(t, "dry in 20 s", dry >= 2 == broken, dry)
	}
}
