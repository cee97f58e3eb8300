package mail

import "time"

// Turn bounds what is read of the peers' messages in one turn of the loop, so that local peers do not wait for it. What
// has no room is kept as what came before its turn is, and read in later turns. The zero value is ready.
type Turn struct {
	began time.Time
	spent int
}

const (
	// turnOctets is how many octets of work begin in one turn: those of a full datagram of coded reports. The message
	// that goes beyond it is read to its end.
	turnOctets = 24 << 10
	// octetTime is about what an octet of work takes. After a turn that was full the loop is free for as long.
	octetTime = 4 * time.Microsecond
	// plainOctets is how many octets that no model expands are as much work as one that it does.
	plainOctets = 16
)

// Room says whether another message may be read now.
func (t *Turn) Room(now time.Time) bool {
	if !now.Before(t.Due()) {
		t.began, t.spent = now, 0
	}
	return t.spent < turnOctets
}

// Spent notes a message: the octets that the model took to read it, and all that it holds.
func (t *Turn) Spent(modelled uint64, octets int) { t.spent += int(modelled) + octets/plainOctets }

// Due is when there is room for certain.
func (t *Turn) Due() time.Time { return t.began.Add(time.Duration(t.spent) * octetTime) }
